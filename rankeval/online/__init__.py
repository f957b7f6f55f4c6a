"""Online: what users do, from interleaved lists and click logs to weights, values and A/B tests.

::

    two rankings -> Interleaver.show -> a list with its credits -> clicks -> compare_interleaved -> Comparison
    a file of impressions -> ClickLog -> ClickModel, Propensities -> weights to learn from, values of other rankers
    a frame of users in two arms -> ab_test -> ABTest
"""

from __future__ import annotations

from rankeval.online.logs import ClickLog
from rankeval.online.models import ClickModel, Perplexity
from rankeval.online.positions import Propensities, propensities
from rankeval.online.valuing import PolicyValue, counterfactual, policy_value

__all__ = [
    "ClickLog",
    "ClickModel",
    "Perplexity",
    "PolicyValue",
    "Propensities",
    "counterfactual",
    "policy_value",
    "propensities",
]


def __dir__() -> list[str]:
    return sorted(__all__)
