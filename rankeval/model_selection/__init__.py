"""Rankers under scikit-learn: scorers, splitters, one estimator for all boosters, cross-validation."""
