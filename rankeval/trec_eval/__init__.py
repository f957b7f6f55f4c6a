"""The printed output of trec_eval, and its z-scores."""
