"""How many inputs the tests of random ones try, for each kind and circle."""

from __future__ import annotations

from circles import choose

SCALE = choose(default=0.1, complete=0.5, full=10)
SHARES = {"files": 1000, "trec_eval": 600, "python": 400, "commands": 60}
"""Inputs of each kind in `.ci/run`: mutated files, random collections and flags, calls in Python, command lines."""


def n_inputs(kind: str) -> int:
    """Return how many inputs of a kind to try."""
    return int(SHARES[kind] * SCALE)
