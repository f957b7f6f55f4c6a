"""The mean of interpolated precision over the orders of tied rows.

The value is the greatest precision at a hit from the one that reaches the recall level on. In no order is it below the
value L of the worst one, where in each group of tied rows the hits come last. Above L,

    mean = L + integral over v > L of 1 - prod over groups of P(no hit of the group that counts has precision >= v),

since groups are independent, and so are their chances, which change only at the precisions that a hit of the group can
have. Each chance is that of a path of hits and misses that keeps below a boundary (see `lattice`): hit number h of the
list keeps below v at the ranks above h / v. A group whose best order does not exceed L has no say, which spares most of
them; and one walk from the last place to the first serves all recall levels, for a level says only from which hit on
the boundary holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.measures.lattice import CELLS, Mixed, mean_of_products

MOST = 2**28
"""States of paths times boundaries in a query, up to which no orders are drawn: those of 200 tied rows."""

EXACT_TO = "200 tied rows, and more where few of them are relevant"
"""What is exact, for people."""


class Levels(NamedTuple):
    """Recall levels of queries: hits that each asks for, and the value of the worst order; (n_levels, n_queries)."""

    needed: Ints
    worst: Floats


class _Steps(NamedTuple):
    """Falls of a chance: of which level and query, below which precision, and by which factor."""

    job: Ints
    precision: Floats
    factor: Floats


def with_a_say(groups: Mixed, levels: Levels) -> NDArray[np.bool_]:
    """Say of which groups the order matters to which levels, (n_levels, n_groups)."""
    all_hits = groups.hits_above + groups.hits
    best = all_hits / (groups.above + groups.hits)
    says: NDArray[np.bool_] = (levels.needed[:, groups.query] <= all_hits) & (best > levels.worst[:, groups.query])
    return says


def work(groups: Mixed, n_queries: int) -> Floats:
    """Return how many states the paths of each query have at most."""
    hits, misses = groups.hits.astype(np.float64), groups.misses
    # So many states has a path, and nearly so many precisions, doubled, are above that of the whole group.
    states = hits * (hits + misses) * hits * misses
    return np.bincount(groups.query, states, n_queries).astype(np.float64, copy=False)


def mean_interpolated(groups: Mixed, levels: Levels) -> Floats:
    """Return the mean of interpolated precision.

    Parameters
    ----------
    groups : Mixed
        Groups of tied rows, relevant and not, with a say at some level.
    levels : Levels
        The recall levels, any number of them.

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
    chance = np.empty(len(job))  # that the value is below this precision
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        np.multiply.accumulate(factor[begin:end], out=chance[begin:end])
    value = levels.worst.ravel().copy()
    below = np.append(precision[1:], 0.0)
    below[last - 1] = value[job[first]]
    value += np.bincount(job, (precision - below) * (1 - chance), len(value))
    return value.reshape(levels.worst.shape)


def _steps_of_shape(groups: Mixed, levels: Levels) -> Iterator[_Steps]:
    """Yield the falls of the chances of groups with like numbers of hits and misses."""
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    at_once = max(1, CELLS // (hits * (misses + 1)))
    for begin in range(0, len(groups.query), at_once):
        some = groups.of(np.arange(begin, min(begin + at_once, len(groups.query))))
        says = with_a_say(some, levels)
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
    """Return the distinct precisions above a bound that hits of each group can have, rising, and whose they are."""
    hit = np.arange(1, int(groups.hits[0]) + 1)[:, None]
    place = hit + np.arange(int(groups.misses[0]) + 1)
    precision = (groups.hits_above[:, None, None] + hit) / (groups.above[:, None, None] + place)
    precision = np.sort(precision.reshape(len(groups.query), -1), axis=1)
    new = (precision > least[:, None]) & (np.diff(precision, axis=1, prepend=-1) > 0)
    return np.nonzero(new)[0], precision[new]


def _keeps_below(allowed: Ints) -> Callable[[int, int, int], NDArray[np.bool_]]:
    def factor(place: int, low: int, high: int) -> NDArray[np.bool_]:
        return place >= allowed[low - 1 : high]

    return factor


def _chances(groups: Mixed, group: Ints, precision: Floats, at_least: Ints) -> Floats:
    """Return the chance at each level that all hits of the group that count are below a precision."""
    hits, misses = int(groups.hits[0]), int(groups.misses[0])
    hit = np.arange(1, hits + 1)[:, None]
    found = np.empty((len(at_least), len(group)))
    at_once = max(1, CELLS // (hits + 1))
    for begin in range(0, len(group), at_once):
        of = group[begin : begin + at_once]
        # Hit h reaches v = a / b at rank h / v or before. That is whole or 1 / a from it: more than a float errs by.
        reach = (groups.hits_above[of] + hit) / precision[begin : begin + at_once]
        allowed = np.floor(reach + 1e-7).astype(np.int64) - groups.above[of] + 1
        chance = mean_of_products(hits, misses, len(of), _keeps_below(allowed), from_hit=True)
        found[:, begin : begin + at_once] = chance[at_least[:, of], np.arange(len(of))]
    return found
