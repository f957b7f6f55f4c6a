"""Runs as data: load what was logged, list it, compare it."""
