"""Files and frames, read into columns and written whole."""
