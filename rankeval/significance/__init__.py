"""Significance: arrays in, numbers out. The query is the unit of everything here."""

# Each of these declares its tests and corrections below their functions; tables and help have them in this order.
from rankeval.significance import paired, randomization, bootstrap, multiple  # isort: skip # noqa: F401
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    FOLD_TESTS,
    TESTS,
    Claim,
    Correction,
    PairedResult,
    Settings,
    SignificanceTest,
)
from rankeval.significance.running import adjust, paired_test

__all__ = [
    "CLAIMS",
    "CORRECTIONS",
    "FOLD_TESTS",
    "TESTS",
    "Claim",
    "Correction",
    "PairedResult",
    "Settings",
    "SignificanceTest",
    "adjust",
    "paired_test",
]
