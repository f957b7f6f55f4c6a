"""A test collection, as columns: judgments, rankings, and how the two are joined."""
