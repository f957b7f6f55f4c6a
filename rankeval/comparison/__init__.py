"""Compare systems: paired by query, tested, corrected."""

from rankeval.comparison.result import Comparison, compare

__all__ = ["Comparison", "compare"]
