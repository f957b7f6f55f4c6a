"""The chances of what stands above a row within its group of tied rows: the number of hits, and the sum of gains.

The number of hits among the first rows of a group is hypergeometric; `chance_of_hits` tabulates it for all numbers of
rows, `place_of_hit` turns that into the place of each hit.

A row at place t of a group of n tied rows has t - 1 other rows of the group above it, drawn at random. The number of
these that have a gain is hypergeometric. Given that number, the sum of their gains is that of a random subset of the
rows with a gain. Subsets are built up kind by kind (a kind is the rows of one gain), and those of one size and one sum
are merged:

    group   gains 2 1 1 0        above a row of gain 2, at place 3:   two of 1 1 0
                                 sums    1     2
                                 chance  2/3   1/3

Suppose that a measure depends on the rows above only by their gain. Then its mean over orders is

    sum over kinds of rows(kind) / n * sum over places and sums of chance(sum | place, kind) * f(kind, place, sum).

Whole gains have few distinct sums. Fractions may have as many sums as there are subsets; groups beyond `MOST` are left
to drawn orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.join.flat import Floats, Ints, spread
from rankeval.join.judged import NO_GROUPS, Groups, Judged

CELLS = 2**18
"""Cells of a table of states: small enough to stay in the processor's cache."""

MOST = 2**19
"""A group's subsets by size and sum, or its places by sums above, beyond which orders are drawn.

This is a fifth of a second for 300 tied rows of four grades."""

EXACT_TO = "some hundred tied rows with whole gains, fewer if sums of gains differ by a fraction"
"""The groups with an exact mean, in words for users."""


def hypergeometric(size: ArrayLike, marked: ArrayLike, drawn: ArrayLike, hits: ArrayLike) -> Floats:
    """Return the chance that ``drawn`` out of ``size`` rows include ``hits`` of the ``marked`` ones.

    Parameters
    ----------
    size, marked, drawn, hits : array of int
        Numbers that broadcast together. The chance of an impossible number is 0.
    """
    from scipy.special import gammaln

    size, marked, drawn, hits = np.broadcast_arrays(size, marked, drawn, hits)
    misses, rest = drawn - hits, size - marked
    can = (hits >= 0) & (hits <= marked) & (misses >= 0) & (misses <= rest)

    def log_choose(whole: NDArray[np.int64], part: NDArray[np.int64]) -> Floats:
        part = np.where(can, part, 0)
        return gammaln(whole + 1) - gammaln(part + 1) - gammaln(whole - part + 1)

    logs = log_choose(marked, hits) + log_choose(rest, misses) - log_choose(size, drawn)
    return np.where(can, np.exp(logs), 0.0)


def distinct_rows(table: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield the distinct rows of a table, each with its row numbers."""
    order = np.lexsort(table.T)
    table = table[order]
    first = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
    for begin, rows in zip((0, *first.tolist()), np.split(order, first), strict=True):
        if len(rows):
            yield tuple(table[begin].tolist()), rows


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


class Above(NamedTuple):
    """One kind of row in a group, and the chances of the sums of gains above it.

    Parameters
    ----------
    gain : float
        Gain of the kind.
    share : float
        Share of the group's rows that are of the kind.
    sums : ndarray of shape (n_sums,)
        Possible sums of the gains above it in the group.
    chance : ndarray of shape (n_places, n_sums)
        Chance of each sum, given the place.
    """

    gain: float
    share: float
    sums: Floats
    chance: Floats

    def mean(self, n_groups: int, value: Callable[[slice, Ints, Floats], Floats]) -> Floats:
        """Return the sum over places of the mean of a value, times the kind's share of the group.

        Parameters
        ----------
        n_groups : int
            Groups of this composition.
        value : callable
            ``value(groups, place, sums)`` gives the value for some groups and for all possible pairs of a place (from
            0) and a sum above it, of shape (n_groups, n_pairs).

        Returns
        -------
        ndarray of shape (n_groups,)
        """
        place, possible = np.nonzero(self.chance)
        chance, sums = self.chance[place, possible] * self.share, self.sums[possible]
        step = max(1, CELLS // len(sums))
        parts = [slice(first, min(first + step, n_groups)) for first in range(0, n_groups, step)]
        # Contiguous rows: NumPy then adds a group's values in the same order, whichever groups are in the block.
        weighed = (np.ascontiguousarray(value(some, place, sums) * chance) for some in parts)
        return np.concatenate([one.sum(axis=1) for one in weighed])


def by_composition(
    judged: Judged, groups: Groups, gain: Floats, places: Ints
) -> Iterator[tuple[tuple[Above, ...] | None, Ints]]:
    """Yield the kinds of each composition, None if there are too many sums, and the groups that have it."""
    for present, seen, at in compositions(judged, groups, gain, places):
        yield _kinds_of(present, seen), at


def compositions(
    judged: Judged, groups: Groups, gain: Floats, places: Ints
) -> Iterator[tuple[tuple[tuple[float, int], ...], int, Ints]]:
    """Yield each composition (gains with their numbers of rows), its places that count, and the groups that have it."""
    kinds, kind_of = np.unique(gain, return_inverse=True)
    size = groups.end - groups.start
    step = max(1, CELLS // len(kinds))  # labels may be many
    for first in range(0, len(size), step):
        some = slice(first, first + step)
        row, group = spread(groups.start[some], size[some])
        counts = np.bincount(group * len(kinds) + kind_of[judged.code[row]], minlength=len(size[some]) * len(kinds))
        table = np.column_stack((places[some], counts.reshape(-1, len(kinds))))
        for (seen, *rows), at in distinct_rows(table):
            present = tuple((one, number) for one, number in zip(kinds.tolist(), rows, strict=True) if number)
            yield present, seen, first + at


def _kinds_of(rows: tuple[tuple[float, int], ...], places: int) -> tuple[Above, ...] | None:
    """Return the kinds of a group, given gains and numbers of rows; None if there are too many sums."""
    found = []
    for at, (gain, number) in enumerate(rows):
        others = [(one, rows_of - (place == at)) for place, (one, rows_of) in enumerate(rows)]
        without = sum(rows_of for one, rows_of in others if one == 0)
        above = _above(without, [one for one in others if one[0] and one[1]], places)
        if above is None:
            return None
        found.append(Above(gain, number / sum(number for _, number in rows), *above))
    return tuple(found)


def _above(without: int, rows: list[tuple[float, int]], places: int) -> tuple[Floats, Floats] | None:
    """Return the possible sums of gains, and the chance of each given the number of rows above (0 to places - 1).

    ``rows`` are the gains above 0 with their numbers of rows; ``without`` is the number of rows without gain.
    """
    # Subsets of the kinds so far: size, sum of gains, and the chance of this sum among subsets of this size.
    subset, total, chance = np.zeros(1, dtype=np.int64), np.zeros(1), np.ones(1)
    so_far = 0
    for gain, number in rows:
        more = np.arange(min(number, places - 1) + 1)
        if max(len(subset), min(so_far + number + 1, places)) * len(more) > MOST:
            return None
        before, more = (part.ravel() for part in np.broadcast_arrays(np.arange(len(subset))[:, None], more))
        fits = subset[before] + more < places
        before, more = before[fits], more[fits]
        size, sums = subset[before] + more, total[before] + more * gain
        # A random subset of the old kinds and the new one: the chance of this many rows of the new kind.
        share = chance[before] * chance_of_hits(number, so_far, places - 1)[size, more]
        # Merge subsets of equal size and equal sum: they are neighbours once sorted.
        order = np.lexsort((sums, size))
        first = np.flatnonzero((np.diff(size[order], prepend=-1) != 0) | (np.diff(sums[order], prepend=-1) != 0))
        subset, total = size[order][first], sums[order][first]
        chance = np.add.reduceat(share[order], first)
        so_far += number
    sums, at = np.unique(total, return_inverse=True)
    if places * max(len(sums), min(so_far + 1, places)) > MOST:
        return None
    by_size = np.zeros((min(so_far, places - 1) + 1, len(sums)))
    by_size[subset, at] = chance
    return sums, chance_of_hits(so_far, without, places - 1) @ by_size
