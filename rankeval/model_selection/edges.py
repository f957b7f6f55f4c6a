"""How a search ranks the ends of what it tried, against the best setting further inside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.significance.declarations import Floats

EdgeGains = Mapping[tuple[str, str], Floats]
"""Parameter and end ("smallest", "greatest") -> gain of the end, by split of a search."""

_OUTER = 0.2
"""The share of the values tried that is an end, one at least: draws from a range meet no end."""

_LEAST_VALUES = 3
"""With fewer values, each is an end, and there is no inside to compare with."""


def edge_gains(search: Any) -> EdgeGains:
    """Return the gain of both ends of each number that a fitted search varied.

    A halving search has none, since it scores settings on unequal numbers of rows.
    """
    results = getattr(search, "cv_results_", {})
    metric = search.refit if isinstance(getattr(search, "refit", None), str) else "score"
    if f"split0_test_{metric}" not in results or "iter" in results:
        return {}
    columns = [results[f"split{split}_test_{metric}"] for split in range(search.n_splits_)]
    settings, scores = results["params"], np.column_stack(columns)
    gains = {}
    for name in dict.fromkeys(name for setting in settings for name in setting):
        values = np.array([_number(setting.get(name)) for setting in settings])
        tried = np.isfinite(values) & np.isfinite(scores).all(axis=1)
        for end, is_outer in _ends(values[tried]):
            gains[name, end] = _best(scores[tried][is_outer]) - _best(scores[tried][~is_outer])
    return gains


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


def _ends(values: Floats) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    distinct = np.unique(values)
    if len(distinct) >= _LEAST_VALUES:
        n_outer = math.ceil(_OUTER * len(distinct))
        yield "smallest", values <= distinct[n_outer - 1]
        yield "greatest", values >= distinct[-n_outer]


def _best(scores: Floats) -> Floats:
    best: Floats = scores[scores.mean(axis=1).argmax()]
    return best
