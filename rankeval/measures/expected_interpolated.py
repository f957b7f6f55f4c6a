"""The mean of interpolated precision over the orders of tied rows.

The value is the greatest precision at a hit, from the hit on that reaches the recall level. It is least in the worst
order, in which the hits come last in each group; call that value L. Above L,

    mean = L + integral over v > L of 1 - F(v),      F(v) = prod over groups of P(all counted hits are below v).

The product holds because groups are ordered independently. F is a step function, with steps at the precisions that a
hit can have:

    F   1 |          ______      mean - L is the area above F, right of L
          |     ____|            each step of each group is one _Steps entry: its precision, and the factor by which
          |  __|                 F falls to the left of it
        0 +--L--------------> v

Each chance is that of a path of hits and misses that keeps below a boundary (see `lattice`): hit number h of the list
is below precision v if its rank is above h / v. A group whose best order does not exceed L cannot matter, which spares
most groups. One pass over the places serves all recall levels, since a level only says at which hit the boundary
begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.measures.lattice import CELLS, Mixed, mean_of_products

MOST = 2**28
"""States of paths times boundaries in a query, beyond which orders are drawn: 200 tied rows have as many."""

EXACT_TO = "200 tied rows, and more where few of them are relevant"
"""The queries with an exact mean, in words for users."""


class RecallLevels(NamedTuple):
    """Recall levels by query: the hits that each needs, and the value of the worst order; (n_levels, n_queries)."""

    needed: Ints
    worst: Floats


class _Steps(NamedTuple):
    """Steps of F: the job (level times n_queries, plus query), the precision, and the factor below that precision."""

    job: Ints
    precision: Floats
    factor: Floats


def order_matters(groups: Mixed, levels: RecallLevels) -> NDArray[np.bool_]:
    """Return a mask (n_levels, n_groups): at which levels the order of a group matters."""
    all_hits = groups.hits_above + groups.hits
    best = all_hits / (groups.above + groups.hits)
    return (levels.needed[:, groups.query] <= all_hits) & (best > levels.worst[:, groups.query])


def n_states(groups: Mixed, n_queries: int) -> Floats:
    """Return an upper bound of the number of states of each query, summed over its boundaries."""
    hits, misses = groups.hits.astype(np.float64), groups.misses
    # The lattice of a group has hits * (hits + misses) states, and there is a boundary for each possible precision.
    states = hits * (hits + misses) * hits * misses
    return np.bincount(groups.query, states, n_queries).astype(np.float64, copy=False)


def mean_interpolated(groups: Mixed, levels: RecallLevels) -> Floats:
    """Return the mean of interpolated precision.

    Parameters
    ----------
    groups : Mixed
        Groups of relevant and other rows whose order matters at some level.
    levels : RecallLevels
        One or more recall levels.

    Returns
    -------
    ndarray of shape (n_levels, n_queries)
    """
    steps = [one for shape in groups.by_shape() for one in _steps_of_shape(groups.of(shape[2]), levels)]
    if not steps:
        return levels.worst
    job, precision, factor = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    order = np.lexsort((-precision, job))
    job, precision, factor = job[order], precision[order], factor[order]
    first = np.flatnonzero(np.diff(job, prepend=-1))
    last = np.append(first[1:], len(job))
    # F at each step is the product of all factors from the greatest precision down to it.
    chance = np.empty(len(job))
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        np.multiply.accumulate(factor[begin:end], out=chance[begin:end])
    value = levels.worst.ravel().copy()
    below = np.append(precision[1:], 0.0)
    below[last - 1] = value[job[first]]
    value += np.bincount(job, (precision - below) * (1 - chance), len(value))
    return value.reshape(levels.worst.shape)


def _steps_of_shape(groups: Mixed, levels: RecallLevels) -> Iterator[_Steps]:
    """Yield the steps of groups that have the same numbers of hits and misses."""
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    at_once = max(1, CELLS // (hits * (misses + 1)))
    for begin in range(0, len(groups.query), at_once):
        some = groups.of(np.arange(begin, min(begin + at_once, len(groups.query))))
        says = order_matters(some, levels)
        least = np.where(says, levels.worst[:, some.query], np.inf).min(axis=0)
        group, precision = _precisions(some, least)
        at_least = np.clip(levels.needed[:, some.query] - some.hits_above, 1, hits) - 1
        chances = _chances(some, group, precision, at_least)
        ends = np.diff(group, append=-1) != 0
        for level, chance in enumerate(chances):
            query = some.query[group]
            kept = says[level, group] & (precision > levels.worst[level, query])
            above = np.where(ends, 1.0, np.append(chance[1:], 1.0))[kept]
            yield _Steps(level * levels.worst.shape[1] + query[kept], precision[kept], chance[kept] / above)


def _precisions(groups: Mixed, least: Floats) -> tuple[Ints, Floats]:
    """Return the distinct precisions above a bound that a group's hits can have, ascending, with their groups."""
    hit = np.arange(1, int(groups.hits[0]) + 1)[:, None]
    place = hit + np.arange(int(groups.misses[0]) + 1)
    precision = (groups.hits_above[:, None, None] + hit) / (groups.above[:, None, None] + place)
    precision = np.sort(precision.reshape(len(groups.query), -1), axis=1)
    new = (precision > least[:, None]) & (np.diff(precision, axis=1, prepend=-1) > 0)
    return np.nonzero(new)[0], precision[new]


def _keeps_below(allowed: Ints) -> Callable[[int, int, int], NDArray[np.bool_]]:
    """Return factors for `mean_of_products`: 1 for a hit at or behind its first allowed place, else 0."""

    def factor(place: int, low: int, high: int) -> NDArray[np.bool_]:
        return place >= allowed[low - 1 : high]

    return factor


def _chances(groups: Mixed, group: Ints, precision: Floats, at_least: Ints) -> Floats:
    """Return the chance that all hits of a group that count at a level are below a precision."""
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    hit = np.arange(1, hits + 1)[:, None]
    found = np.empty((len(at_least), len(group)))
    at_once = max(1, CELLS // (hits + 1))
    for begin in range(0, len(group), at_once):
        of = group[begin : begin + at_once]
        # Hit h reaches precision v = a / b at rank h / v = h b / a or before. That quotient is whole or at least 1 / a
        # from a whole number, which is more than the error of a float: so 1e-7 rounds down safely.
        reach = (groups.hits_above[of] + hit) / precision[begin : begin + at_once]
        allowed = np.floor(reach + 1e-7).astype(np.int64) - groups.above[of] + 1
        chance = mean_of_products(hits, misses, len(of), _keeps_below(allowed), from_hit=True)
        found[:, begin : begin + at_once] = chance[at_least[:, of], np.arange(len(of))]
    return found
