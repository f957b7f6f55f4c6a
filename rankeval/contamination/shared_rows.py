"""Rows of features that come back unchanged, and whether that can be chance.

What a row is worth is learnt from the rows themselves, by two questions.

**One query.** x of the m rows of a query stand in one registered query. How likely is that, if each row is drawn as rows
recur between the registered queries (`evidence.Recurrence`)? So rows that stood together and stand together again say
it, even where each of them recurs, as with features of documents alone. If queries of one side overlap as much among
themselves, as searches for nearly the same do, then only pairs that overlap more count.

**All queries.** Where lists are short, a query may have one row in common with a registered one, and that alone says
little. All of them together do. Take the rows that stand in exactly two queries, of both sides together::

    both registered   both in the data   one of each
          2                  3                400        by chance about as many "one of each" as of the others

If queries of both sides were drawn from one source, a row that recurs would do so within a side as often as between the
sides. So no row needs to be known as rare: a catalogue shared by all users shows in the first two columns.

The trap: rows recur together, as those of a query that was asked twice. So pairs of queries are counted, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.agreement import ENOUGH_BITS
from rankeval.contamination.entries import Entries, times_among
from rankeval.contamination.evidence import IDENTIFIABLE_BITS, Recurrence, rarity, surprise
from rankeval.contamination.pairing import Pairs, Traces
from rankeval.contamination.signature import Signature
from rankeval.join.matching import Hashes

_BY_CHANCE = 0.25
"""Share of the pairs that may be chance, if all of them are to be named."""

_NEARER = 0.25
"""A pair is told by its overlap alone if it lacks less than this part of what the most alike of one side lack."""

_SOME, _ALSO_BITS = 3, 10.0
"""Once so many pairs are told, others need so many bits more than there are pairs of queries."""

_AT_ONCE = 1 << 16
"""Rows of the data looked up at once."""

_LOOKED_AT = 1 << 17
"""Rows of the data whose queries are compared with each other; of more rows, about so many."""

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
        rows, theirs, learnt = known.rows, data.row_entries, known.recurrence
        if rows is None or theirs is None or learnt is None:
            return cls(_NONE, _NONE)
        found = Overlaps.of(rows, learnt, theirs)
        if not len(found.places) and not len(found.single):
            return cls(_NONE, _NONE)
        recur = rows.recur or theirs.recur
        together = _told(found, found.bits if recur else np.maximum(found.bits, found.digits), known, theirs)
        within = _n_pairs(rows, theirs), _n_pairs(theirs, rows)
        sizes = rows.per_query(known.n_queries, learnt.times > 0), theirs.per_query(data.n_queries)
        of_two = found.single[np.bincount(found.row, minlength=len(rows))[found.row] == 1]
        most = not recur and _n_of_both(of_two) >= max(_SOME, known.n_queries / 2)
        alone = most or _is_more(of_two, within, sizes)
        return cls(found.places[together], np.unique(found.single, axis=0) if alone else _NONE)


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
        edges = np.unique(np.searchsorted(theirs.query, theirs.query[::_AT_ONCE]))
        parts = [cls._of(rows, learnt, theirs.take(slice(*ends))) for ends in pairwise([*edges, len(theirs)])]
        names = [one.name for one in fields(cls)]
        parts = parts or [cls._of(rows, learnt, theirs)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @classmethod
    def _of(cls, rows: Entries, learnt: Recurrence, theirs: Entries) -> Overlaps:
        ours, there = rows.found_in(theirs)
        n_known = int(rows.query.max(initial=0)) + 1
        key, pair, n = np.unique(
            theirs.query[there] * np.int64(n_known) + rows.query[ours], return_inverse=True, return_counts=True
        )
        places = np.stack([key // n_known, key % n_known], axis=1)
        m = theirs.per_query(0)[places[:, 0]]
        bits = surprise(m, n, rows.per_query(n_known, learnt.chance)[places[:, 1]])
        once = learnt.times[ours] == 1
        weights = np.zeros(len(rows)) if rows.bits is None else rows.bits
        digits = np.where(n >= 2, np.bincount(pair[once], weights=weights[ours[once]], minlength=len(n)), 0)
        share = n / np.minimum(m, rows.per_query(n_known, learnt.times > 0)[places[:, 1]])
        some = np.maximum(bits, digits) >= _ALSO_BITS
        return cls(places[some], bits[some], digits[some], share[some], places[pair[once]], ours[once])


def _told(found: Overlaps, bits: NDArray[np.float64], known: Signature, data: Entries) -> NDArray[np.intp]:
    """Return the pairs that are told by their rows. Once some are, less is enough for the others."""
    least = IDENTIFIABLE_BITS
    if _n_of_both(found.places[bits >= least]) >= _SOME:
        least = min(least, _ALSO_BITS + np.log2(known.n_queries * (int(data.query[-1]) + 1)))
    told = np.flatnonzero(bits >= least)
    if not len(told):
        return told
    return told[found.share[told] >= _least_overlap(found.places[told], found.share[told], known, data)]


def _least_overlap(places: Pairs, overlap: NDArray[np.float64], known: Signature, data: Entries) -> float:
    """Return the least overlap that tells a pair: all do if no two queries of one side overlap as much.

    Parameters
    ----------
    places : ndarray of int of shape (n_pairs, 2)
        The pairs that may be told.
    overlap : ndarray of float of shape (n_pairs,)
        Their overlaps.
    known : Signature
        The registration.
    data : Entries
        The rows of the data.
    """
    n_queries = int(data.query[-1]) + 1
    some = data.take(data.query % max(1, len(data) // _LOOKED_AT) == 0)
    sides = _within(known.rows, known.n_queries, known.content), _within(rarity(some, some, n_queries), n_queries)
    greatest = max(side.max(initial=0) for side in sides)
    sizes = np.ones(known.n_queries), np.ones(len(np.unique(some.query)))
    for level in [0.0] if not greatest else np.unique(overlap):
        within = int((sides[0] >= level).sum()), int((sides[1] >= level).sum())
        if not greatest or 1 - level < _NEARER * (1 - greatest) or _is_more(places[overlap >= level], within, sizes):
            return float(level)
    return np.inf


def _within(rows: Entries, n_queries: int, content: Hashes | None = None) -> NDArray[np.float64]:
    """Return the overlaps of pairs of queries of one side that may be told, but for copies."""
    found = Overlaps.of(rows, Recurrence.of(rows, n_queries), rows)
    one, other = found.places.T
    told = (one < other) & (found.bits >= IDENTIFIABLE_BITS / 2)
    if content is not None:
        told &= content[one] != content[other]
    return found.share[told]


def _is_more(between: Pairs, within: tuple[int, int], sizes: tuple[NDArray[Any], NDArray[Any]]) -> bool:
    """Return whether so many pairs between the sides are more than chance, and few of them are; each query counts once.

    If both sides were drawn from one source, pairs within and between them would stand as p^2 : 2 p (1 - p) : (1 - p)^2,
    as genotypes do (Hardy and Weinberg). Rows of other sources may stand beside: so p is at least the registered share.

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
    """Return how many queries stand in pairs, of the side that has fewer."""
    return min(len(np.unique(side)) for side in pairs.T)


def _n_pairs(rows: Entries, others: Entries) -> int:
    """Return how many pairs of queries of one side share a row that no third query of either side has."""
    values, queries = rows.of_two_queries
    return len(np.unique(queries[times_among(values, others.value) == 0], axis=0))
