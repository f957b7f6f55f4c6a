"""Online: what users do, from interleaved lists and click logs to weights, values and A/B tests.

::

    two rankings -> Interleaver.show -> a list with its credits -> clicks -> compare_interleaved -> Comparison
    a file of impressions -> ClickLog -> ClickModel, Propensities -> weights to learn from, values of other rankers
    a frame of users in two arms -> ab_test -> ABTest

Names are imported when they are first asked for, so that a server that interleaves loads neither NumPy nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "crediting": ("compare_interleaved",),
    "experiments": ("ABTest", "ab_power", "ab_test", "assign", "user_outcomes"),
    "interleaving": ("Interleaved", "Interleaver", "interleaving_bias"),
    "logs": ("ClickLog",),
    "looks": ("LooksPlan", "confidence_sequence", "looks_plan"),
    "models": ("ClickModel", "Perplexity"),
    "positions": ("Propensities", "propensities"),
    "valuing": ("PolicyValue", "counterfactual", "policy_value"),
}
_HOME_OF = {name: f"rankeval.online.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]  # noqa: PLE0604 - strings all, collected from the table above


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankeval.online' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
