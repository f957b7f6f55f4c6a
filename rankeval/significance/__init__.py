"""Significance: arrays in, numbers out. The query is the unit of everything here."""

# Each of these declares its tests and corrections below their functions.
from rankeval.significance import paired, randomization, bootstrap, multiple  # isort: skip # noqa: F401
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    FOLD_TESTS,
    TESTS,
    Claim,
    Correction,
    PairedResult,
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
    "SignificanceTest",
    "adjust",
    "paired_test",
]

# Tables and help name tests without a warning first, and those that are liberal last.
for _name, _test in sorted(
    TESTS.items(), key=lambda named: (bool(named[1].liberal), bool(named[1].note))
):
    TESTS[_name] = TESTS.pop(_name)
