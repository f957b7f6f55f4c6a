"""Truth and ranking, joined query by query into all that a measure sees."""
