"""Compare systems: paired by query, tested, corrected."""

from rankeval.comparison.comparing import compare
from rankeval.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
