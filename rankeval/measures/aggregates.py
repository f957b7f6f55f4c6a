"""How the values of queries become one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    if weights is not None:
        return float(np.average(values, weights=weights))
    # Added up one after the other, as trec_eval does: NumPy adds up by pairs, and the last digit printed may differ.
    return float(np.add.accumulate(values)[-1] / len(values))


AGGREGATES: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64] | None], float]] = {
    "mean": _mean,
    "sum": lambda values, weights: float(values.sum() if weights is None else (values * weights).sum()),
    "gmean": lambda values, weights: float(np.exp(_mean(values, weights))),
}
"""By name; the values of a geometric mean are logarithms already."""
