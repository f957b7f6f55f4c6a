"""Fuse the scores of several systems into one ranking: one declaration for each method and norm.

This file is copied into models of MLflow and runs there without rankeval, so it imports none of it.

A method gives points to the rows that a system retrieved, and combines the points of all systems::

    scores (n_systems, n_rows)    nan where a system did not retrieve the row; rows grouped by query
      -> points (n_systems, n_rows)   by rank, or by a norm of the scores
      -> combined (n_rows,)           their sum, largest, median ...

Equal scores of a system in a query share the mean of their ranks, so the order of rows does not
matter. The trap is the last bit: a sum over the rows of a query depends on their order. So norms see
the scores of a query in descending order, and the points of systems are added in ascending order.
A model that is served gets the bits that were computed in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

BLOCK = 2**17
"""Rows of whole queries that are fused at a time, so that arrays stay in the cache."""


@dataclass(frozen=True, eq=False)
class Retrieved:
    """The rows that a system retrieved: by query, and in each query by descending score."""

    score: Floats  # (n_retrieved,), as all others
    first: Ints  # Place of the first row of the query
    size: Ints  # Rows of the query that the system retrieved
    candidates: Ints  # Rows of the query that any system retrieved

    @property
    def highest(self) -> Floats:
        """The highest score of the query of each row."""
        return self.score[self.first]

    @property
    def lowest(self) -> Floats:
        """The lowest score of the query of each row."""
        last: Ints = self.first + self.size - 1
        return self.score[last]

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Whether a row is the first of its query."""
        begins: NDArray[np.bool_] = self.first == np.arange(len(self.first))
        return begins

    @property
    def rank(self) -> Floats:
        """The rank of each row from 1 on, the mean of their ranks for rows of equal score."""
        firsts = np.flatnonzero(self.begins | (np.diff(self.score, prepend=np.nan) != 0))
        sizes = np.diff(firsts, append=len(self.score))
        middle: Floats = np.repeat(firsts + (sizes + 1) / 2, sizes)
        return middle - self.first

    def sums(self, values: Floats) -> Floats:
        """Return for each row the sum of its query."""
        starts = np.flatnonzero(self.begins)
        return np.repeat(np.add.reduceat(values, starts), self.size[starts])


def _ratio(above: Floats, below: Floats) -> Floats:
    """Divide; 0 / 0 is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


def _min_max(rows: Retrieved) -> Floats:
    return _ratio(rows.score - rows.lowest, rows.highest - rows.lowest)


def _max(rows: Retrieved) -> Floats:
    if (rows.highest < 0).any():
        raise ValueError("the norm max needs a query's highest score to be 0 or greater")
    return _ratio(rows.score, rows.highest)


def _sum(rows: Retrieved) -> Floats:
    above = rows.score - rows.lowest
    return _ratio(above, rows.sums(above))


def _z_score(rows: Retrieved) -> Floats:
    above = rows.score - rows.sums(rows.score) / rows.size
    # A mean of equal scores may differ from them in its last bit.
    above[rows.highest == rows.lowest] = 0
    return _ratio(above, np.sqrt(rows.sums(above**2) / rows.size))


def _rank(rows: Retrieved) -> Floats:
    return 1 - (rows.rank - 1) / rows.size


def _borda(rows: Retrieved) -> Floats:
    return 1 - (rows.rank - 1) / rows.candidates


def _borda_of_missing(retrieved: Ints, candidates: Ints) -> Floats:
    return 0.5 - (retrieved - 1) / (2 * candidates)


@dataclass(frozen=True)
class Points:
    """The points of a system's rows."""

    function: Callable[..., Floats]  # Of `Retrieved`, and perhaps k
    formula: str
    source: str = ""
    # The points of a row that the system did not retrieve, by the numbers of rows that it and all
    # systems retrieved; without it, such a row has none.
    missing: Callable[[Ints, Ints], Floats] | None = None


NORMS: dict[str, Points] = {}
"""Norms by name, over the n scores s that a system gave in a query of c candidates; r is the rank."""

NORMS["min-max"] = Points(_min_max, "(s - min) / (max - min)", "Lee 1997")
NORMS["max"] = Points(_max, "s / max", "Lee 1995")
NORMS["sum"] = Points(_sum, "(s - min) / sum(s - min)", "Montague and Aslam 2001")
NORMS["z-score"] = Points(_z_score, "(s - mean) / standard deviation", "Montague and Aslam 2001")
NORMS["rank"] = Points(_rank, "1 - (r - 1) / n", "Lee 1997")
NORMS["borda"] = Points(_borda, "1 - (r - 1) / c", "Renda and Straccia 2003", _borda_of_missing)
NORMS["none"] = Points(attrgetter("score"), "s")


def _total(points: Floats) -> Any:
    # In ascending order, so that equal points of other systems have the same sum to the last bit.
    return np.nansum(np.sort(points, axis=0), axis=0)


def _mean(points: Floats) -> Any:
    return np.nanmean(np.sort(points, axis=0), axis=0)


def _multiplied(points: Floats) -> Any:
    return np.isfinite(points).sum(axis=0) * _total(points)


def _multiplied_by_logarithm(points: Floats) -> Any:
    return np.log(np.isfinite(points).sum(axis=0)) * _total(points)


def _reciprocal(rows: Retrieved, k: float) -> Floats:
    return 1 / (k + rows.rank)


def _inverse_square(rows: Retrieved) -> Floats:
    return 1 / rows.rank**2


def _borda_count(rows: Retrieved) -> Floats:
    return rows.candidates - rows.rank + 1


def _borda_count_of_missing(retrieved: Ints, candidates: Ints) -> Floats:
    return (candidates - retrieved + 1) / 2


@dataclass(frozen=True)
class Method:
    """A method of fusion."""

    combine: Callable[[Floats], Any]  # Of points, (n_systems, n_rows), to (n_rows,)
    formula: str
    missing: str  # What counts for a system that did not retrieve a row
    source: str
    doi: str = ""
    points: Points | None = None  # By rank; without it, points are scores by a norm
    k: float | None = None  # The default of the parameter k, if there is one
    weighted: bool = False  # Whether the points of each system are multiplied by its weight


METHODS: dict[str, Method] = {}
"""Methods by name: r is a rank, s a score by the norm, w a weight, n the rows that a system retrieved
in a query, c those that any system did, and hits the number of systems that retrieved a row."""

_RRF = Points(_reciprocal, "1 / (k + r)")
_SQUARE = Points(_inverse_square, "1 / r^2")
_BORDA = Points(_borda_count, "c - r + 1", missing=_borda_count_of_missing)
_CORMACK = "Cormack, Clarke and Buettcher 2009", "10.1145/1571941.1572114"
_MOURAO = "Mourao, Martins and Magalhaes 2015", "10.1016/j.compmedimag.2014.05.006"
_FOX = "Fox and Shaw 1994", ""
_ASLAM = "Aslam and Montague 2001", "10.1145/383952.384007"
_VOGT = "Vogt and Cottrell 1999", "10.1023/A:1009980820262"
_NO_HIT, _LEFT_OUT = "0, and no hit", "nothing"
_SHARE = "(c - n + 1) / 2"

METHODS["rrf"] = Method(_total, "sum of 1 / (k + r)", "0", *_CORMACK, _RRF, k=60)
METHODS["isr"] = Method(_multiplied, "hits * sum of 1 / r^2", _NO_HIT, *_MOURAO, _SQUARE)
METHODS["log_isr"] = Method(
    _multiplied_by_logarithm, "log(hits) * sum of 1 / r^2", _NO_HIT, *_MOURAO, _SQUARE
)
METHODS["bordafuse"] = Method(_total, "sum of c - r + 1", _SHARE, *_ASLAM, _BORDA)
METHODS["combsum"] = Method(_total, "sum of s", "0", *_FOX)
METHODS["combmnz"] = Method(_multiplied, "hits * sum of s", _NO_HIT, *_FOX)
METHODS["combanz"] = Method(_mean, "sum of s / hits", _LEFT_OUT, *_FOX)
METHODS["combmax"] = Method(partial(np.nanmax, axis=0), "largest s", _LEFT_OUT, *_FOX)
METHODS["combmin"] = Method(partial(np.nanmin, axis=0), "smallest s", _LEFT_OUT, *_FOX)
METHODS["combmed"] = Method(partial(np.nanmedian, axis=0), "median of s", _LEFT_OUT, *_FOX)
METHODS["weighted"] = Method(_total, "sum of w * s", "0", *_VOGT, weighted=True)


def fused(
    scores: Floats,
    query: Ints,
    method: str,
    *,
    norm: str = "min-max",
    k: float | None = None,
    weights: Sequence[float] | None = None,
) -> Floats:
    """Return the fused score of each row, by the number of its query; rows in any order."""
    declared = METHODS[method]
    points_of = declared.points or NORMS[norm]
    options = {} if declared.k is None else {"k": declared.k if k is None else k}
    order = np.argsort(query, kind="stable")
    grouped = query[order]
    # A block begins with a query: that of each so many-th row.
    begins = np.searchsorted(grouped, grouped[::BLOCK])
    found = np.empty(len(order))
    for rows in np.split(order, np.unique(begins)[1:]):
        points = _points(points_of, scores[:, rows], query[rows], options)
        if weights is not None:
            points *= np.asarray(weights, dtype=np.float64)[:, None]
        found[rows] = declared.combine(points)
    return found


def _points(declared: Points, scores: Floats, query: Ints, options: Mapping[str, Any]) -> Floats:
    query = np.cumsum(np.diff(query, prepend=query[:1]) != 0)
    sizes = np.bincount(query)
    points = np.full(scores.shape, np.nan)
    for system, column in enumerate(scores):
        found = np.flatnonzero(~np.isnan(column))
        found = found[np.lexsort((-column[found], query[found]))]
        counts = np.bincount(query[found], minlength=len(sizes))
        of_queries = (np.cumsum(counts) - counts, counts, sizes)
        rows = Retrieved(column[found], *(np.repeat(values, counts) for values in of_queries))
        if declared.missing is not None:
            points[system] = declared.missing(counts, sizes)[query]
        points[system, found] = declared.function(rows, **options)
    return points
