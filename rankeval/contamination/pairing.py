"""Pairs of queries, one of some data and one that is registered, that have values in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import Entries
from rankeval.contamination.evidence import IDENTIFIABLE_BITS
from rankeval.contamination.label_counts import LabelCounts
from rankeval.contamination.memory import Shown
from rankeval.contamination.signature import Signature
from rankeval.join.matching import Hashes

Pairs = NDArray[np.int64]
"""Shape (k, 2): a query of the data, and a registered one."""

_SHARE = 0.4
"""Share of a query's kept rows or documents that must be found; three quarters are where five of 20 were dropped."""


class Traces(Protocol):
    """The traces of queries: a `Fingerprint` has all of them, a `Signature` those that it keeps."""

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        ...

    @property
    def ids(self) -> Hashes:
        """A hash per query id."""
        ...

    @property
    def label_counts(self) -> LabelCounts | None:
        """The labels."""
        ...

    @property
    def row_entries(self) -> Entries | None:
        """Rounded rows."""
        ...

    @property
    def document_entries(self) -> Entries | None:
        """Documents with their labels."""
        ...

    @property
    def texts(self) -> Hashes | None:
        """A hash per text."""
        ...

    def column_entries(self, wanted: NDArray[np.bool_]) -> Entries | None:
        """Return the columns of some queries."""
        ...


@dataclass(frozen=True, eq=False)
class SharedValues:
    """Pairs of queries that have values in common.

    Attributes
    ----------
    places : ndarray of int of shape (n_pairs, 2)
        The pairs.
    n, bits : ndarray of shape (n_pairs,)
        How many values they have in common, and the evidence of these.
    recognised : ndarray of bool of shape (n_pairs,)
        Whether that is enough to take them for the same query.
    pair, ours, theirs : ndarray of int of shape (n_common,)
        The pair of each common value, and the places of the value on both sides.
    """

    places: Pairs
    n: NDArray[np.int64]
    bits: NDArray[np.float64]
    recognised: NDArray[np.bool_]
    pair: NDArray[np.int64]
    ours: NDArray[np.intp]
    theirs: NDArray[np.intp]

    @classmethod
    def of(cls, known: Entries, data: Entries, n_known: int) -> SharedValues:
        """Find the values that registered queries and queries of the data have in common.

        Parameters
        ----------
        known, data : Entries
            The values on both sides.
        n_known : int
            Number of registered queries.
        """
        ours, theirs = known.found_in(data)
        key, pair = np.unique(data.query[theirs] * np.int64(n_known) + known.query[ours], return_inverse=True)
        places = np.stack([key // n_known, key % n_known], axis=1)
        n = np.bincount(pair, minlength=len(key))
        weights = np.ones(len(known)) if known.bits is None else known.bits
        bits = np.zeros(len(key))
        np.add.at(bits, pair, weights[ours])
        telling = known.per_query(n_known, weights > 0).astype(np.int64)[places[:, 1]]
        needed = np.maximum(np.minimum(2, telling), np.ceil(_SHARE * telling))
        return cls(places, n, bits, (bits >= IDENTIFIABLE_BITS) & (n >= needed), pair, ours, theirs)


@dataclass(frozen=True, eq=False)
class ColumnHits:
    """Queries with the labels of registered ones, and those of them that have columns in common.

    Attributes
    ----------
    pairs : ndarray of int of shape (k, 2)
        Pairs with two columns in common or more.
    bits : ndarray of float of shape (k,)
        The evidence of the best column: columns of a query resemble each other, so their bits do not add up.
    candidates : ndarray of int of shape (n_registered,)
        How many queries of the data have the labels of each registered one that keeps columns.
    """

    pairs: Pairs
    bits: NDArray[np.float64]
    candidates: NDArray[np.int64]

    @classmethod
    def of(cls, known: Signature, data: Traces, *, most_rows: int | None = None) -> ColumnHits:
        """Look for the columns that a registration keeps, in queries with the labels of registered ones.

        Parameters
        ----------
        known : Signature
            The registration.
        data : Fingerprint or Signature
            The data.
        most_rows : int, optional
            Rows to look at first, of the queries whose labels are rarest in the data; at all others only if these show
            anything. By default all are looked at.
        """
        none = cls(np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(known.n_queries, dtype=np.int64))
        kept, theirs = known.columns, data.label_counts
        if kept is None or not len(kept) or known.labels is None or theirs is None:
            return none
        keeps = kept.per_query(known.n_queries) > 0
        hashes, wanted_hashes = np.sort(theirs.hashes), known.labels.hashes
        n_with = np.searchsorted(hashes, wanted_hashes, side="right") - np.searchsorted(hashes, wanted_hashes)
        candidates = np.where(keeps, n_with, 0)
        wanted = np.isin(theirs.hashes, wanted_hashes[candidates > 0])
        if most_rows is not None and int(theirs.sizes[wanted].sum()) > most_rows:
            place = np.flatnonzero(wanted)
            _, alike, times = np.unique(theirs.hashes[place], return_inverse=True, return_counts=True)
            place = place[np.argsort(times[alike], kind="stable")]
            first = np.zeros_like(wanted)
            first[place[np.cumsum(theirs.sizes[place]) <= most_rows]] = True
            first[place[0]] = True
            if not len(cls._found(kept, known.labels, data, theirs, first, candidates).pairs):
                return none
        return cls._found(kept, known.labels, data, theirs, wanted, candidates) if wanted.any() else none

    @classmethod
    def _found(
        cls,
        kept: Entries,
        ours: LabelCounts,
        data: Traces,
        theirs: LabelCounts,
        wanted: NDArray[np.bool_],
        candidates: NDArray[np.int64],
    ) -> ColumnHits:
        """Compare the columns of the wanted queries."""
        columns, n_known = data.column_entries(wanted), len(candidates)
        if columns is None:
            return cls(np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros_like(candidates))
        found = SharedValues.of(kept, columns, n_known)
        best = np.zeros(len(found.n))
        np.maximum.at(best, found.pair, np.zeros(0) if kept.bits is None else kept.bits[found.ours])
        same = theirs.hashes[found.places[:, 0]] == ours.hashes[found.places[:, 1]]
        two = (found.n >= 2) & same
        # Any column of the data may meet any that is kept.
        chances = len(columns) / max(1, int(wanted.sum())) * kept.per_query(n_known)[found.places[:, 1]]
        return cls(found.places[two], (best - np.log2(np.maximum(chances, 1)))[two], candidates)

    def without(self, pairs: Pairs) -> ColumnHits:
        """Return the hits of other pairs."""
        if not len(pairs) or not len(self.pairs):
            return self
        width = 1 + max(int(self.pairs[:, 1].max()), int(pairs[:, 1].max()))
        other = ~np.isin(self.pairs[:, 0] * width + self.pairs[:, 1], pairs[:, 0] * width + pairs[:, 1])
        return ColumnHits(self.pairs[other], self.bits[other], self.candidates)

    def add_to(self, shown: Shown) -> None:
        """Remember these hits."""
        np.add(shown.candidates, self.candidates, out=shown.candidates)
        np.maximum.at(shown.columns, self.pairs[:, 1], self.bits)
