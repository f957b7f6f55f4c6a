"""How many inputs the tests of random ones try: of the fuzz tests 2,000 in `.ci/run`, 200,000 in `.ci/run --full`."""

from __future__ import annotations

import os

SHARES = {"files": 1000, "trec_eval": 600, "python": 400}
"""Inputs of each kind in `.ci/run`: mutated files, random collections and flags, calls of the Python API."""

SCALE = 100 if os.environ.get("RANKEVAL_TESTS") == "full" else 1


def n_inputs(kind: str) -> int:
    """Return how many inputs of a kind to try."""
    return SHARES[kind] * SCALE


def examples(number: int) -> int:
    """Return how many examples of Hypothesis to try: all in `.ci/run --full`, a third of them otherwise."""
    return number if SCALE > 1 else max(number // 3, 8)
