"""Online: what users do, from interleaved lists and click logs to weights, values and A/B tests.

::

    two rankings -> Interleaver.show -> a list with its credits -> clicks -> compare_interleaved -> Comparison
    a file of impressions -> ClickLog -> ClickModel, Propensities -> weights to learn from, values of other rankers
    a frame of users in two arms -> ab_test -> ABTest

Names are imported when they are first asked for, so that a server that interleaves loads neither NumPy nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankeval.online.crediting import compare_interleaved
    from rankeval.online.experiments import ABTest, ab_power, ab_test, assign, user_outcomes
    from rankeval.online.interleaving import Interleaved, Interleaver, interleaving_bias
    from rankeval.online.logs import ClickLog
    from rankeval.online.looks import LooksPlan, confidence_sequence, looks_plan
    from rankeval.online.models import ClickModel, Perplexity
    from rankeval.online.positions import Propensities, propensities
    from rankeval.online.valuing import PolicyValue, counterfactual, policy_value

_HOMES = {
    "crediting": ("compare_interleaved",),
    "experiments": (
        "ABTest",
        "ab_power",
        "ab_test",
        "assign",
        "user_outcomes",
    ),
    "interleaving": (
        "Interleaved",
        "Interleaver",
        "interleaving_bias",
    ),
    "logs": ("ClickLog",),
    "looks": (
        "LooksPlan",
        "confidence_sequence",
        "looks_plan",
    ),
    "models": (
        "ClickModel",
        "Perplexity",
    ),
    "positions": (
        "Propensities",
        "propensities",
    ),
    "valuing": (
        "PolicyValue",
        "counterfactual",
        "policy_value",
    ),
}
_HOME_OF = {name: f"rankeval.online.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "ABTest",
    "ClickLog",
    "ClickModel",
    "Interleaved",
    "Interleaver",
    "LooksPlan",
    "Perplexity",
    "PolicyValue",
    "Propensities",
    "ab_power",
    "ab_test",
    "assign",
    "compare_interleaved",
    "confidence_sequence",
    "counterfactual",
    "interleaving_bias",
    "looks_plan",
    "policy_value",
    "propensities",
    "user_outcomes",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankeval.online' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
