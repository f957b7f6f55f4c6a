"""Online: what users do, from interleaved lists and click logs to weights, values and A/B tests.

::

    two rankings -> Interleaver.show -> a list with its credits -> clicks -> compare_interleaved -> Comparison
    a file of impressions -> ClickLog -> ClickModel, Propensities -> weights to learn from, values of other rankers
    a frame of users in two arms -> ab_test -> ABTest

Names are imported when they are first asked for, so that a server that interleaves loads neither
NumPy nor pandas.
"""

from __future__ import annotations

from rankeval._registry import late

_HOMES = {
    "crediting": ("compare_interleaved",),
    "experiments": ("ABTest", "ab_power", "ab_test", "assign"),
    "interleaving": ("Interleaved", "Interleaver", "interleaving_bias"),
    "logs": ("ClickLog", "ClickRates", "LogChecks"),
    "looks": ("LooksPlan", "confidence_sequence", "looks_plan"),
    "models": ("ClickModel", "Perplexity"),
    "weighting": ("PolicyValue", "Propensities", "counterfactual", "policy_value", "propensities"),
}

__all__, __getattr__ = late(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
