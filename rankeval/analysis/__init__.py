"""Look into results: curves, contingency tables, overlap of rankings, why two tools disagree."""
