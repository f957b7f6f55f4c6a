"""Average over the orders of tied rows of two kinds, hits and misses, without listing the orders.

A group of n tied rows with r hits has C(n, r) orders, all equally likely. Read from the top, an order is a path over
states (t places passed, j hits found):

    hits
     2               o---o      a group of 4 rows with 2 hits; this path is the order  miss hit hit miss
                   /
     1           o              from (t, j) the next place is a hit with chance (r - j) / (n - t),
               /                whatever the path was before
     0   o---o
         0   1   2   3   4      places

Suppose that hit number j at place t brings a factor, and that the mean of the product of all factors is wanted. A pass
from the last place to the first finds it with one value for each j, in place of one value for each order. Two uses:

    factors 0 and 1          the chance that all hits keep to a boundary (the ballot problem): `expected_interpolated`
    factors exp(-cost)       the transform of a sum of costs: `expected_logs`

All terms are chances, so nothing overflows and nothing cancels. Rows above the group give the rank of a hit:

    ... |  . x . . x  | ...      hit number j of the group at place t has rank misses_above + hits_above + t
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import NO_GROUPS, Groups, Judged

CELLS = 2**18
"""Cells of a table of states: small enough to stay in the processor's cache."""


class Mixed(NamedTuple):
    """Groups of tied rows with at least one hit and one miss.

    ``misses_above`` and ``hits_above`` count the rows of the query above the group. Rows that are neither a hit nor a
    miss (unjudged rows in bpref) are not counted anywhere.
    """

    query: Ints
    misses_above: Ints
    hits_above: Ints
    misses: Ints
    hits: Ints

    @property
    def above(self) -> Ints:
        """Number of rows above each group in its query."""
        return self.misses_above + self.hits_above

    def of(self, which: NDArray[np.bool_] | Ints) -> Mixed:
        """Return some of the groups."""
        return Mixed(*(part[which] for part in self))

    def by_shape(self) -> Iterator[tuple[int, int, Ints]]:
        """Yield each pair of a number of hits and a number of misses, with the groups that have it."""
        for (hits, misses), groups in distinct_rows(np.column_stack((self.hits, self.misses))):
            yield hits, misses, groups


def distinct_rows(table: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield the distinct rows of a table, each with its row numbers."""
    order = np.lexsort(table.T)
    table = table[order]
    first = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
    for begin, rows in zip((0, *first.tolist()), np.split(order, first), strict=True):
        if len(rows):
            yield tuple(table[begin].tolist()), rows


def mixed_groups(groups: Groups, offsets: Ints, hit: Ints, miss: Ints) -> Mixed:
    """Return the groups that have both hits and misses, given the numbers of both before each row of the chunk."""
    start, end, query = groups
    hits, misses = hit[end] - hit[start], miss[end] - miss[start]
    begin = offsets[query]
    found = Mixed(query, miss[start] - miss[begin], hit[start] - hit[begin], misses, hits)
    return found.of((hits > 0) & (misses > 0))


def outside(groups: Mixed, offsets: Ints, hit: Ints) -> NDArray[np.bool_]:
    """Return a mask over the hits of the chunk: those outside of all groups."""
    # Hits are numbered through the chunk, so a group holds consecutive ones: mark its ends, and add up.
    first = hit[offsets[groups.query]] + groups.hits_above
    edges = np.zeros(int(hit[-1]) + 1, dtype=np.int64)
    edges[first] += 1
    edges[first + groups.hits] -= 1
    alone: NDArray[np.bool_] = np.cumsum(edges[:-1]) == 0
    return alone


def relevant_or_not(judged: Judged, rel: float) -> tuple[Mixed, NDArray[np.bool_]]:
    """Return the groups with relevant and other rows, and a mask over the relevant rows: those outside of groups."""
    hit = judged.prefix(rel).astype(np.int64)
    groups = mixed_groups(judged.groups, judged.offsets, hit, np.arange(len(hit)) - hit)
    return groups, outside(groups, judged.offsets, hit)


def worst_ranks(judged: Judged, rel: float, groups: Mixed, alone: NDArray[np.bool_]) -> Ints:
    """Return the ranks of the relevant rows in the worst order, which puts them last in each group."""
    found = judged.relevant(rel)
    rank = found.rank.copy()
    rank[~alone] = found.hits[~alone] + np.repeat(groups.misses_above + groups.misses, groups.hits)
    return rank


def as_listed(judged: Judged) -> Judged:
    """Return the chunk with its ties broken by the current order."""
    return replace(judged, groups=NO_GROUPS, ties=NO_GROUPS, _memo={})


def chance_of_hits(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance of j hits (column) among the first t rows (row) of a group, for t = 0 to n or ``places``."""
    places = hits + misses if places is None else min(places, hits + misses)
    width = min(hits, places) + 1
    return (_cached_table if width * places < _CACHED_CELLS else _chance_table)(hits, misses, places, width)


def _chance_table(hits: int, misses: int, places: int, width: int) -> Floats:
    number = np.arange(width)
    table = np.zeros((places + 1, width))
    table[0, 0] = 1
    for place in range(places):
        next_hits = np.maximum(hits - number, 0) / (hits + misses - place)
        table[place + 1] = table[place] * np.maximum(1 - next_hits, 0)
        table[place + 1, 1:] += (table[place] * next_hits)[:-1]
    table.flags.writeable = False  # callers share a cached table
    return table


_CACHED_CELLS = 2**10
"""Tables with fewer cells are cached: nearly all groups of tied rows are small, and the same sizes come again."""

_cached_table = lru_cache(maxsize=1024)(_chance_table)


def place_of_hit(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance that hit number k of a group has place t, in row t - 1 and column k - 1."""
    # Place t holds hit k if k - 1 hits are among the t - 1 rows before, and the next row is a hit.
    before = chance_of_hits(hits, misses, places)[:-1]
    place, number = np.ogrid[: before.shape[0], : min(hits, before.shape[0])]
    chance: Floats = before[:, : number.size] * (hits - number) / (hits + misses - place)
    return chance


def mean_of_products(
    hits: int,
    misses: int,
    n_items: int,
    factor: Callable[[int, int, int], Floats | NDArray[np.bool_]],
    *,
    from_hit: bool,
) -> Floats:
    """Return the mean over orders of a product with one factor for each hit.

    Parameters
    ----------
    hits, misses : int
        Rows of the group.
    n_items : int
        Number of products that are computed together.
    factor : callable
        ``factor(place, low, high)`` gives the factors of hits number ``low`` to ``high`` at a place, of shape
        (high - low + 1, n_items).
    from_hit : bool
        Whether to return the product from each hit on, too, and not only that of all hits.

    Returns
    -------
    ndarray of shape (hits or 1, n_items)
        Row k - 1 is the mean of the product over hit number k and those behind it.
    """
    size = hits + misses
    left = np.ones((hits + 1, n_items))  # row j, with j hits found so far: the mean product of the hits still to come
    found = np.zeros((hits, n_items)) if from_hit else left[:1]
    chance = place_of_hit(hits, misses) if from_hit else None
    for place in range(size, 0, -1):
        low, high = max(place - misses, 1), min(hits, place)  # numbers that a hit at this place can have
        hit = left[low : high + 1] * factor(place, low, high)
        if chance is not None:
            found[low - 1 : high] += chance[place - 1, low - 1 : high, None] * hit
        goes_up = ((hits - np.arange(low - 1, high)) / (size - place + 1))[:, None]
        left[low - 1 : high] *= 1 - goes_up
        left[low - 1 : high] += goes_up * hit
    return found
