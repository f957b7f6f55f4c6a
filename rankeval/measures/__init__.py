"""Measures of ranking quality, one declaration each."""
