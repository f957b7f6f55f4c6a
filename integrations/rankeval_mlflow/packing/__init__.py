"""Pack evaluations, comparisons and records of experiments into the nodes of an upload."""
