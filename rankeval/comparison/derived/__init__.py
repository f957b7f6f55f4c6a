"""What follows from a finished comparison: the value of the best, effects, posteriors, ranks."""
