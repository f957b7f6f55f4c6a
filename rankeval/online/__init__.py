"""Online: what users do, from interleaved lists and click logs to weights, values and A/B tests.

::

    two rankings -> Interleaver.show -> a list with its credits -> clicks -> compare_interleaved -> Comparison
    a file of impressions -> ClickLog -> ClickModel, Propensities -> weights to learn from, values of other rankers
    a frame of users in two arms -> ab_test -> ABTest
"""

from __future__ import annotations

from rankeval.online.experiments import ABTest, ab_power, ab_test, assign, user_outcomes
from rankeval.online.logs import ClickLog
from rankeval.online.looks import LooksPlan, confidence_sequence, looks_plan

__all__ = [
    "ABTest",
    "ClickLog",
    "LooksPlan",
    "ab_power",
    "ab_test",
    "assign",
    "confidence_sequence",
    "looks_plan",
    "user_outcomes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
