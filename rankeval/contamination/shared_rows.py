"""Rows of features that come back unchanged, and whether that can be chance.

What a row is worth is learnt from the rows themselves, by two questions.

**One query.** x of the m rows of a query stand in one registered query. How likely is that, if each row is drawn as
rows recur between the registered queries (`evidence.Recurrence`)? So rows that stood together and stand together again
say it, even where each of them recurs, as with features of documents alone. If queries of one side overlap as much
among themselves, as searches for nearly the same do, then only pairs that overlap more count.

**All queries.** Where lists are short, a query may have one row in common with a registered one, and that alone says
little. All of them together do. Take the rows that stand in exactly two queries, of both sides together::

    both registered   both in the data   one of each
          2                  3                400        by chance about as many "one of each" as of the others

If queries of both sides were drawn from one source, a row that recurs would do so within a side as often as between the
sides. So no row needs to be known as rare: a catalogue shared by all users shows in the first two columns. Only where
no row recurs at all do digits count, and a few rows are enough.

The trap: rows recur together, as those of a query that was asked twice. So pairs of queries are counted, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import Entries, times_among
from rankeval.contamination.evidence import ENOUGH_BITS, IDENTIFIABLE_BITS, Recurrence, rarity, surprise
from rankeval.contamination.signature import Pairs, Signature, Traces
from rankeval.join.matching import Hashes

_BY_CHANCE = 0.25
"""Share of the pairs that may be chance, if all of them are to be named."""

_NEARER = 0.25
"""A pair is told by its overlap alone if it lacks less than this part of what the most alike of one side lack."""

_SHARE = 0.4
"""Share of the shorter query that must be found if digits tell a pair: rows may have moved to other queries."""

_SOME, _ALSO_BITS = 3, 10.0
"""Once so many pairs are told, others need so many bits more than there are pairs of queries."""

_PAIRS_OF_ROWS = 400_000
"""If no row recurs in so many pairs, three of 40 bits are no chance: a catalogue of 20,000 would show 20 that recur."""

_AT_ONCE = 1 << 16
"""Rows of the data looked up at once."""

_LOOKED_AT = 100
"""Queries of the data that are compared with each other, or as many as are registered, if that is more."""

_NONE: Pairs = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Pairs of queries, one of the data and one that is registered, with unchanged rows in common.

    Attributes
    ----------
    together : ndarray of int of shape (k, 2)
        Pairs that are told by their rows.
    alone : ndarray of int of shape (l, 2)
        Pairs that only all queries together tell.
    """

    together: Pairs
    alone: Pairs

    @classmethod
    def of(cls, known: Signature, data: Traces) -> SharedRows:
        """Find the pairs.

        Parameters
        ----------
        known : Signature
            The registration.
        data : Fingerprint or Signature
            The data.
        """
        rows, theirs, learnt = known.row_entries, data.row_entries, known.recurrence
        if rows is None or theirs is None or learnt is None:
            return cls(_NONE, _NONE)
        found = Overlaps.of(rows, learnt, theirs)
        if not len(found.places) and not len(found.single):
            return cls(_NONE, _NONE)
        recur = rows.recur or theirs.recur
        bits = found.bits if recur else np.maximum(found.bits, found.digits)
        least = IDENTIFIABLE_BITS
        if _n_of_both(found.places[bits >= least]) >= _SOME:  # once some are told, less is enough for the others
            least = min(least, _ALSO_BITS + np.log2(known.n_queries * data.n_queries))
        together = found.take(bits >= least)
        if len(together.places):
            together = together.take(together.share >= _least_overlap(together, known, rows, theirs))
        sizes = rows.per_query(known.n_queries, learnt.times > 0), theirs.per_query(data.n_queries)
        of_two = np.bincount(found.row)[found.row] == 1
        alone = _is_more(found.single[of_two], (_n_pairs(rows, theirs), _n_pairs(theirs, rows)), sizes)
        if not recur and not alone and rows.bits is not None:
            distinct = found.single[of_two & (rows.bits[found.row] >= IDENTIFIABLE_BITS)]
            seen = len(rows) ** 2 + len(theirs) ** 2 >= 2 * _PAIRS_OF_ROWS and _n_of_both(distinct) >= _SOME
            alone = seen or _n_of_both(found.single[of_two]) >= max(_SOME, known.n_queries / 2)
        return cls(together.places, np.unique(found.single, axis=0) if alone else _NONE)


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of queries that have rows in common.

    Attributes
    ----------
    places : ndarray of int of shape (n_pairs, 2)
        Query of the data, known query: the pairs that may be told.
    bits, digits, share : ndarray of float of shape (n_pairs,)
        The evidence of their common rows, by recurrence and by unusual values, and their share of the shorter query.
    single : ndarray of int of shape (n_single, 2)
        The pair of each common row that stands in no other known query.
    row : ndarray of int of shape (n_single,)
        Its place among the known rows.
    """

    places: Pairs
    bits: NDArray[np.float64]
    digits: NDArray[np.float64]
    share: NDArray[np.float64]
    single: Pairs
    row: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Entries, learnt: Recurrence, theirs: Entries) -> Overlaps:
        """Find them, for some queries of the data at a time: a catalogue gives each row many pairs."""
        edges = {0, *np.searchsorted(theirs.query, theirs.query[::_AT_ONCE]).tolist(), len(theirs)}
        parts = [cls._of(rows, learnt, theirs.take(slice(*ends))) for ends in pairwise([*sorted(edges), len(theirs)])]
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    @classmethod
    def _of(cls, rows: Entries, learnt: Recurrence, theirs: Entries) -> Overlaps:
        places, pair, ours, _ = rows.found_in(theirs)
        n, n_known = np.bincount(pair, minlength=len(places)), int(rows.query.max(initial=0)) + 1
        first, last = (np.searchsorted(theirs.query, places[:, 0], side=side) for side in ("left", "right"))
        m = last - first
        bits = surprise(m, n, rows.per_query(n_known, learnt.chance)[places[:, 1]])
        once = learnt.times[ours] == 1
        weights = np.zeros(len(rows)) if rows.bits is None else rows.bits
        share = n / np.minimum(m, rows.per_query(n_known, learnt.times > 0)[places[:, 1]])
        digits = np.bincount(pair[once], weights=weights[ours[once]], minlength=len(n)).astype(np.float64)
        digits[(n < 2) | (share < _SHARE)] = 0
        found = cls(places, bits, digits, share, places[pair[once]], ours[once])
        return found.take(np.maximum(bits, digits) >= _ALSO_BITS)

    def take(self, some: NDArray[np.bool_]) -> Overlaps:
        """Return some of the pairs."""
        chosen = {name: getattr(self, name)[some] for name in ("places", "bits", "digits", "share")}
        return replace(self, **chosen)


def _least_overlap(told: Overlaps, known: Signature, rows: Entries, theirs: Entries) -> float:
    """Return the least overlap that tells a pair: all do if no two queries of one side overlap as much.

    Parameters
    ----------
    told : Overlaps
        The pairs that may be told.
    known : Signature
        The registration.
    rows, theirs : Entries
        The rows of both sides.
    """
    n_queries, n_known = int(theirs.query.max()) + 1, known.n_queries
    step = max(1, n_queries // max(n_known, _LOOKED_AT))
    some = theirs.take(theirs.query % step == 0)
    sides = _within(rows, n_known, known.content), _within(rarity(some, some, n_queries // step), n_queries // step)
    greatest = max(side.max(initial=0) for side in sides)
    sizes = np.ones(n_known), np.ones(n_queries)
    for level in np.unique(told.share) if greatest else [0.0]:
        within = int((sides[0] >= level).sum()), int((sides[1] >= level).sum()) * step**2
        alike = told.places[told.share >= level]
        if not greatest or 1 - level < _NEARER * (1 - greatest) or _is_more(alike, within, sizes):
            return float(level)
    return np.inf


def _within(rows: Entries, n_queries: int, content: Hashes | None = None) -> NDArray[np.float64]:
    """Return the overlaps of pairs of queries of one side that may be told, but for copies."""
    found = Overlaps.of(rows, Recurrence.of(rows, n_queries), rows)
    one, other = found.places.T
    is_copy = one == other if content is None else content[one] == content[other]
    return found.take((one <= other) & ~is_copy).share


def _is_more(between: Pairs, within: tuple[int, int], sizes: tuple[NDArray[Any], NDArray[Any]]) -> bool:
    """Return whether so many pairs between the sides are more than chance, and few of them are; a query counts once.

    If both sides are drawn from one source, pairs within and between them stand as p^2 : 2 p (1 - p) : (1 - p)^2, like
    genotypes (Hardy and Weinberg). Rows of other sources may stand beside: so p is at least the registered share.

    Parameters
    ----------
    between : ndarray of int of shape (k, 2)
        Pairs between the sides.
    within : tuple of int
        Number of pairs of two registered queries, and of two queries of the data.
    sizes : tuple of ndarray
        The number of rows of each query, on both sides.
    """
    found = np.array([within[0], _n_of_both(between), within[1]], dtype=float)
    if not found[1]:
        return False
    n, m = (float(side.sum()) for side in sizes)
    p = max((found[0] + found[1] / 2) / found.sum(), n / (n + m))
    apart = [1 - float((side.astype(float) ** 2).sum()) / float(side.sum()) ** 2 for side in sizes]
    expected = np.array([p**2 * apart[0], 2 * p * (1 - p), (1 - p) ** 2 * apart[1]])
    expected = np.maximum(expected * found.sum() / expected.sum(), 1e-300)
    bits = float((found * np.log2(np.maximum(found, 1e-300) / expected)).sum())
    by_chance = 2 * np.sqrt(found[0] * found[2])
    return bool(bits >= ENOUGH_BITS and found[1] > expected[1] and by_chance <= _BY_CHANCE * found[1])


def _n_of_both(pairs: Pairs) -> int:
    return min(len(np.unique(side)) for side in pairs.T)


def _n_pairs(rows: Entries, others: Entries) -> int:
    """Return how many pairs of queries of one side share a row that no third query of either side has."""
    values, queries = rows.of_two_queries
    return len(np.unique(queries[times_among(values, others.value) == 0], axis=0))
