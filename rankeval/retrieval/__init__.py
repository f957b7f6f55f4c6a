"""A search becomes a ranking: ask a function or an engine each query, and keep what it answers."""
