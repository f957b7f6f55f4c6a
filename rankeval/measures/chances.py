"""The chances of the number of hits above a row within its group of tied rows.

The number of hits among the first rows of a group is hypergeometric. `chance_of_hits` tabulates it
for all numbers of rows, and `place_of_hit` turns the table into the place of each hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.join.flat import Floats, Ints

CELLS = 2**18
"""Cells of a table of states: small enough to stay in the processor's cache."""


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


def distinct_rows(table: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield the distinct rows of a table, each with its row numbers."""
    order = np.lexsort(table.T)
    table = table[order]
    first = np.flatnonzero((table[1:] != table[:-1]).any(axis=1)) + 1
    for begin, rows in zip((0, *first.tolist()), np.split(order, first), strict=True):
        if len(rows):
            yield tuple(table[begin].tolist()), rows


def chance_of_hits(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance of j hits (column) among the first t rows (row), to row n or ``places``."""
    places = hits + misses if places is None else min(places, hits + misses)
    width = min(hits, places) + 1
    table = _cached_table if width * places < _CACHED_CELLS else _chance_table
    return table(hits, misses, places, width)


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
"""Tables with fewer cells are cached: most groups of tied rows are small, and sizes come again."""

_cached_table = lru_cache(maxsize=1024)(_chance_table)


def place_of_hit(hits: int, misses: int, places: int | None = None) -> Floats:
    """Return the chance that hit number k of a group has place t, in row t - 1 and column k - 1."""
    # Place t holds hit k if k - 1 hits are among the t - 1 rows before, and the next row is a hit.
    before = chance_of_hits(hits, misses, places)[:-1]
    place, number = np.ogrid[: before.shape[0], : min(hits, before.shape[0])]
    chance: Floats = before[:, : number.size] * (hits - number) / (hits + misses - place)
    return chance
