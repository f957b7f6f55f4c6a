"""Assertions about rankings, for the tests of a release.

::

    assert_no_regression      fails if a loss is shown                a gate that rarely stops an equal system
    assert_not_worse          fails unless "not worse" is shown       a gate that rarely lets a worse system pass
    assert_evaluations_equal  fails if any score differs              nothing was meant to change
    check_host                fails if a host loses a record          a tracker of your own

A query is the unit: all of them compare query by query, and print the queries that lost most.
Beside the values that they return, `CHECKS` keeps what was checked in this process, which the
pytest plugin prints at the end of a run.
"""

from __future__ import annotations

from rankeval.testing.assertions import (
    assert_evaluations_equal,
    assert_no_regression,
    assert_not_worse,
)
from rankeval.testing.check import CHECKS, Check
from rankeval.testing.hosts import check_host

__all__ = [
    "CHECKS",
    "Check",
    "assert_evaluations_equal",
    "assert_no_regression",
    "assert_not_worse",
    "check_host",
]


def __dir__() -> list[str]:
    return sorted(__all__)
