"""Compare systems: paired by query, tested, corrected."""

from rankeval.comparison.choice import Choice
from rankeval.comparison.comparing import compare
from rankeval.comparison.result import Comparison

__all__ = ["Choice", "Comparison", "compare"]
