"""Significance: arrays in, numbers out. The query is the unit of everything here."""

from rankeval.significance.claims import CLAIMS, Claim
from rankeval.significance.declarations import Correction, PairedResult, Settings, SignificanceTest
from rankeval.significance.registry import CORRECTIONS, FOLD_TESTS, TESTS
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
