"""rankeval_spark: evaluate a Spark DataFrame on its executors, with the numbers that memory gives.

A public name is imported at its first use, since executors import this package and need no driver.
"""

from __future__ import annotations

from rankeval._registry import late

__all__, __getattr__ = late(__name__, {"evaluating": ("SparkEvaluation", "evaluate")})


def __dir__() -> list[str]:
    return sorted(__all__)
