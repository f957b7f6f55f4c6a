"""rankeval_spark: evaluate the rows of a Spark DataFrame where they lie, with the numbers that memory gives.

A public name is imported at its first use, since executors import this package and need no driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME_OF = {
    "SparkEvaluation": "rankeval_spark.evaluating",
    "evaluate": "rankeval_spark.evaluating",
}

__all__ = ["SparkEvaluation", "evaluate"]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for (PEP 562)."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankeval_spark' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
