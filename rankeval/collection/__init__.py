"""A test collection as columns: judgments, rankings, data to rank, and the convention."""
