"""The calls that log: what the user has becomes an upload."""
