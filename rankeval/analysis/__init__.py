"""Look into results: curves, contingency tables, overlap of rankings, and why two tools disagree."""
