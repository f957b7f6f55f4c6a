"""The chances of the number of hits among tied rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.join.flat import Floats


def hypergeometric(size: ArrayLike, marked: ArrayLike, drawn: ArrayLike, hits: ArrayLike) -> Floats:
    """Return the chance that ``drawn`` of ``size`` rows include ``hits`` of the ``marked`` ones."""
    from scipy.special import gammaln

    size, marked, drawn, hits = np.broadcast_arrays(size, marked, drawn, hits)
    misses, rest = drawn - hits, size - marked
    can = (hits >= 0) & (hits <= marked) & (misses >= 0) & (misses <= rest)

    def log_choose(whole: NDArray[np.int64], part: NDArray[np.int64]) -> Floats:
        part = np.where(can, part, 0)
        return gammaln(whole + 1) - gammaln(part + 1) - gammaln(whole - part + 1)

    logs = log_choose(marked, hits) + log_choose(rest, misses) - log_choose(size, drawn)
    return np.where(can, np.exp(logs), 0.0)
