"""The mean of the logarithm of a sum over hits, over the orders of tied rows.

AP and bpref are sums over hits, and the mean of a sum is easy. The mean of its logarithm is not: the sum takes about as
many values as there are orders. Frullani's integral turns the logarithm into exponentials. For S > 0 and any c > 0

    log S = log c + integral over x of exp(-t) - exp(-t S / c),   t = e^x,

and the mean of exp(-t S) is the mean of a product with one factor for each hit, group by group. `lattice` gives that
mean exactly.

    ranks of hits     1    |  4 .. 8, 2 hits among 5 tied rows  |   9
    HitSum            fixed: terms of ranks 1 and 9                 groups: the five rows, with adds(place) for terms

As a function of x the integrand is analytic and falls exponentially on both sides. So a plain sum over steps of 0.3 is
as exact as the arithmetic: its error is |Gamma(2 pi i / 0.3)|, about 1e-15. With c = the mean of S, the terms of first
order in t cancel, so that small t count only by their squares.

The trap: orders without any hit have S = 0 and no logarithm. Their chance is the limit of the mean of exp(-t S) for
t to infinity; it is subtracted from the transform and returned separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.measures.lattice import CELLS, Mixed, mean_of_products, place_of_hit

MOST = 2**22
"""Rows times hits in the tied groups of a query, beyond which orders are drawn."""

_STEP = 0.3
_LOWEST = -20.0
"""The least x of the sum: there t^2 is 1e-17."""

_NO_MORE = 40.0
"""exp(-40) is below the precision of a float beside 1."""

_INFINITE = 1e300
"""A rate at which exp(-rate * sum) is 0 unless the sum is 0."""


class HitSum(NamedTuple):
    """A sum over the hits of each query, some of them in groups of tied rows.

    Parameters
    ----------
    fixed : ndarray of shape (n_queries,)
        The part that does not depend on the order of tied rows.
    groups : Mixed
        Groups of tied rows, by query.
    adds : callable
        ``adds(groups, place, hits)`` gives the terms, 0 or more, of these hits of each group at a place, of shape
        (n_hits, n_groups).
    least : ndarray of shape (n_queries,)
        A lower bound above 0 of the sum, over the orders in which it is not 0.
    """

    fixed: Floats
    groups: Mixed
    adds: Callable[[Mixed, int, Ints], Floats]
    least: Floats


def too_large(groups: Mixed, n_queries: int) -> NDArray[np.bool_]:
    """Return a mask of the queries whose groups would take too long."""
    states = (groups.hits + groups.misses).astype(np.float64) * groups.hits
    return np.bincount(groups.query, states, n_queries) > MOST


def mean_log(sums: HitSum, query: Ints) -> tuple[Floats, Floats]:
    """Return the mean of log(sum), with 0 for orders of sum 0, and the chance of such orders.

    Parameters
    ----------
    sums : HitSum
        The sums.
    query : ndarray of shape (n,)
        The queries wanted, ascending. In some order of each the sum must be above 0.

    Returns
    -------
    ndarray, ndarray of shape (n,)
    """
    none = _transform(sums, query, np.full((len(query), 1), _INFINITE))[:, 0]
    centre = np.maximum(_mean(sums)[query] / np.maximum(1 - none, 1e-15), sums.least[query])
    spread = centre / sums.least[query]
    # Numbers of nodes are rounded up to eights, so that few lengths occur and queries share tables. Each query has its
    # own number, so that its value does not depend on the other queries.
    n_nodes = np.ceil((np.log(_NO_MORE * spread) - _LOWEST) / _STEP / 8).astype(np.int64) * 8
    total = (1 - none) * np.log(centre)
    for number in np.unique(n_nodes).tolist():
        t = np.exp(_LOWEST + _STEP * np.arange(number))
        for some in _blocks(np.flatnonzero(n_nodes == number), number):
            left = _transform(sums, query[some], t / centre[some, None]) - none[some, None]
            total[some] += _STEP * ((1 - none[some, None]) * np.exp(-t) - left).sum(axis=1)
    return total, none


def _mean(sums: HitSum) -> Floats:
    """Return the mean over orders of each query's sum."""
    by_group = np.empty(len(sums.groups.query))
    for hits, misses, of_shape in sums.groups.by_shape():
        groups, chance = sums.groups.of(of_shape), place_of_hit(hits, misses)
        total = np.zeros(len(of_shape))
        for place in range(1, hits + misses + 1):
            low, high = max(place - misses, 1), min(hits, place)
            adds = sums.adds(groups, place, np.arange(low, high + 1)[:, None])
            total += np.add.accumulate(chance[place - 1, low - 1 : high, None] * adds)[-1]
        by_group[of_shape] = total
    return sums.fixed + np.bincount(sums.groups.query, by_group, len(sums.fixed))


def _blocks(at: Ints, n_nodes: int) -> Iterator[Ints]:
    """Yield parts whose tables fit into the cache."""
    step = max(1, CELLS // n_nodes)
    return (at[begin : begin + step] for begin in range(0, len(at), step))


def _transform(sums: HitSum, query: Ints, rate: Floats) -> Floats:
    """Return the mean over orders of exp(-rate * sum) for some queries, of shape (n, n_nodes)."""
    value: Floats = np.exp(-rate * sums.fixed[query, None])
    place = np.full(len(sums.fixed), -1)
    place[query] = np.arange(len(query))
    groups = sums.groups.of(place[sums.groups.query] >= 0)
    mine = place[groups.query]
    by_group = np.empty((len(mine), rate.shape[1]))
    for hits, misses, of_shape in groups.by_shape():
        step = max(1, CELLS // ((hits + 1) * rate.shape[1]))
        for begin in range(0, len(of_shape), step):
            at = of_shape[begin : begin + step]
            by_group[at] = _of_groups(sums, groups.of(at), hits, misses, rate[mine[at]])
    if len(mine):
        first = np.flatnonzero(np.diff(mine, prepend=-1))
        value[mine[first]] *= np.multiply.reduceat(by_group, first, axis=0)
    return value


def _of_groups(sums: HitSum, groups: Mixed, hits: int, misses: int, rate: Floats) -> Floats:
    """Return the transform of groups with the same numbers of hits and misses, of shape (n_groups, n_nodes)."""

    def factor(place: int, low: int, high: int) -> Floats:
        adds = sums.adds(groups, place, np.arange(low, high + 1)[:, None])
        chance: Floats = np.exp(-adds[:, :, None] * rate)
        return chance.reshape(len(adds), -1)

    return mean_of_products(hits, misses, rate.size, factor, from_hit=False).reshape(rate.shape)
