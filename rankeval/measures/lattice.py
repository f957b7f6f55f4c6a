"""Tied rows of two kinds, hits and misses: means over their orders, place by place.

A group of n tied rows, r of them hits, has C(n, r) orders, all equally likely, and each is a path on a lattice: after t
places it stands at j hits, and goes on to j + 1 with chance (r - j) / (n - t), whatever the path was before. The mean
of a product of factors that the hits bring, each by its number and its place, is therefore found from the last place
to the first, with one value for each j instead of one for each order. Factors of 0 and 1 give the chance that all hits
keep to a boundary (the ballot problem); factors exp(-cost) give the transform of a sum of costs. All terms are chances,
so that nothing overflows and nothing cancels.

           places 1 ... n          group: rows tied, `misses_above` and `hits_above` stand above it in its query
    ... |  . x . . x  | ...        hit number j of the group at place t has rank misses_above + hits_above + t
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
"""Cells of a table of states at once: small enough to stay in the processor's cache."""


class Mixed(NamedTuple):
    """Groups of tied rows of which some are hits and some are misses; rows that are neither are left out."""

    query: Ints
    misses_above: Ints
    hits_above: Ints
    misses: Ints
    hits: Ints

    @property
    def above(self) -> Ints:
        """How many rows stand above each group in its query."""
        return self.misses_above + self.hits_above

    def of(self, which: NDArray[np.bool_] | Ints) -> Mixed:
        """Return some of the groups."""
        return Mixed(*(part[which] for part in self))

    def by_shape(self) -> Iterator[tuple[int, int, Ints]]:
        """Yield numbers of hits and misses, and the groups that have them."""
        for (hits, misses), groups in alike(np.column_stack((self.hits, self.misses))):
            yield hits, misses, groups


def alike(table: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield the distinct rows of a table, and which rows they are."""
    order = np.lexsort(table.T)
    table = table[order]
    first = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
    for begin, rows in zip((0, *first.tolist()), np.split(order, first), strict=True):
        if len(rows):
            yield tuple(table[begin].tolist()), rows


def mixed_groups(groups: Groups, offsets: Ints, hit: Ints, miss: Ints) -> Mixed:
    """Return the groups with hits and misses, from the numbers of both before each row of the chunk."""
    start, end, query = groups
    hits, misses = hit[end] - hit[start], miss[end] - miss[start]
    begin = offsets[query]
    found = Mixed(query, miss[start] - miss[begin], hit[start] - hit[begin], misses, hits)
    return found.of((hits > 0) & (misses > 0))


def outside(groups: Mixed, offsets: Ints, hit: Ints) -> NDArray[np.bool_]:
    """Say which of the hits of the chunk are in none of the groups."""
    first = hit[offsets[groups.query]] + groups.hits_above
    edges = np.zeros(int(hit[-1]) + 1, dtype=np.int64)
    edges[first] += 1
    edges[first + groups.hits] -= 1
    alone: NDArray[np.bool_] = np.cumsum(edges[:-1]) == 0
    return alone


def relevant_or_not(judged: Judged, rel: float) -> tuple[Mixed, NDArray[np.bool_]]:
    """Return the groups of tied rows relevant and not, and which of the relevant rows are outside of them."""
    hit = judged.prefix(rel).astype(np.int64)
    groups = mixed_groups(judged.groups, judged.offsets, hit, np.arange(len(hit)) - hit)
    return groups, outside(groups, judged.offsets, hit)


def worst_ranks(judged: Judged, rel: float, groups: Mixed, alone: NDArray[np.bool_]) -> Ints:
    """Return the ranks of relevant rows in the worst order, in which they come last in each group."""
    found = judged.relevant(rel)
    rank = found.rank.copy()
    rank[~alone] = found.hits[~alone] + np.repeat(groups.misses_above + groups.misses, groups.hits)
    return rank


def as_listed(judged: Judged) -> Judged:
    """Return the chunk with its tied rows in the order in which they stand."""
    return replace(judged, groups=NO_GROUPS, ties=NO_GROUPS, _memo={})


def drawn(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance of j hits among the first t rows of a group, for t = 0 ... n (or fewer) and all j."""
    places = hits + misses if places is None else min(places, hits + misses)
    width = min(hits, places) + 1
    return (_drawn_often if width * places < _OFTEN else _drawn)(hits, misses, places, width)


def _drawn(hits: int, misses: int, places: int, width: int) -> Floats:
    number = np.arange(width)
    table = np.zeros((places + 1, width))
    table[0, 0] = 1
    for place in range(places):
        next_hits = np.maximum(hits - number, 0) / (hits + misses - place)
        table[place + 1] = table[place] * np.maximum(1 - next_hits, 0)
        table[place + 1, 1:] += (table[place] * next_hits)[:-1]
    table.flags.writeable = False
    return table


_OFTEN = 2**10
"""Tables smaller than this are kept: nearly all groups of tied rows are small."""

_drawn_often = lru_cache(maxsize=1024)(_drawn)


def place_of_hit(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance that hit number k of a group has place t: row t - 1, column k - 1."""
    before = drawn(hits, misses, places)[:-1]
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
    """Return the mean over orders of the product of what hits bring.

    Parameters
    ----------
    hits, misses : int
        Rows of the group.
    n_items : int
        So many products at once.
    factor : callable
        ``factor(place, low, high)`` gives the factors of hits number low ... high at a place, of shape
        (high - low + 1, n_items).
    from_hit : bool
        Whether products from each hit on are wanted, not just of all.

    Returns
    -------
    ndarray of shape (hits or 1, n_items)
        Row k - 1: of hits number k and behind.
    """
    size = hits + misses
    left = np.ones((hits + 1, n_items))  # by hits so far: the mean of the product of all that come
    found = np.zeros((hits, n_items)) if from_hit else left[:1]
    chance = place_of_hit(hits, misses) if from_hit else None
    for place in range(size, 0, -1):
        low, high = max(place - misses, 1), min(hits, place)
        hit = left[low : high + 1] * factor(place, low, high)
        if chance is not None:
            found[low - 1 : high] += chance[place - 1, low - 1 : high, None] * hit
        goes_up = ((hits - np.arange(low - 1, high)) / (size - place + 1))[:, None]
        left[low - 1 : high] *= 1 - goes_up
        left[low - 1 : high] += goes_up * hit
    return found
