"""Pairs of queries, one of some data and one that is registered, that have values in common.

Such queries have columns in common (`ColumnHits`), or the same id or documents (`SharedLabels`); what the labels of the
latter say, `contamination.evidence` weighs. They may be the registered labels with grades mapped, or with rows of the
lowest grade missing::

    registered grades   0   1   2   3   4      counts of a query   9   4   3   2   2
    label in the data   0   0   1   1   1      merged             13       7

An increasing map of grades, such as 2^y - 1 or y >= 2, merges neighbouring levels. If the data has m of L levels, there
are C(L - 1, m - 1) such maps. The counts of the shared queries choose one: for each level of the data, the registered
grade above which as many rows stand in most queries. The second question drops rows of the lowest level, as where
negatives were sampled: then the counts of all other levels are compared.

Each answer is weighed as `contamination.evidence` weighs plain counts, with the chances of the merged ones, and pays
for the choice: one bit, and log2 of twice the number of maps. So a Bayes factor that reaches 2^b by the best of all
answers still has a chance of at most 1.5 2^-b.

Rows that were dropped independently of their labels are no evidence: a shorter list with new clicks fits a longer one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import Entries, LabelCounts
from rankeval.contamination.evidence import (
    CHANGED,
    IDENTIFIABLE_BITS,
    bayes_factor_bits,
    chances_of_labels,
    paid,
    ratios_of_counts,
    ratios_of_documents,
)
from rankeval.contamination.signature import Pairs, Signature, Traces

_SHARE = 0.4
"""Share of a query's kept rows or documents that must be found; three quarters are where five of 20 were dropped."""


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
        places, pair, ours, theirs = known.found_in(data)
        n = np.bincount(pair, minlength=len(places))
        weights = np.ones(len(known)) if known.bits is None else known.bits
        bits = np.zeros(len(places))
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
        if kept is None or not len(kept) or known.label_counts is None or theirs is None:
            return none
        keeps = kept.per_query(known.n_queries) > 0
        hashes, wanted_hashes = np.sort(theirs.hashes), known.label_counts.hashes
        n_with = np.searchsorted(hashes, wanted_hashes, side="right") - np.searchsorted(hashes, wanted_hashes)
        candidates = np.where(keeps, n_with, 0)
        wanted = np.isin(theirs.hashes, wanted_hashes[candidates > 0])
        looks = [wanted] if wanted.any() else []
        if most_rows is not None and int(theirs.sizes[wanted].sum()) > most_rows:
            place = np.flatnonzero(wanted)
            _, alike, times = np.unique(theirs.hashes[place], return_inverse=True, return_counts=True)
            place = place[np.argsort(times[alike], kind="stable")]
            looks.insert(0, np.zeros_like(wanted))
            looks[0][place[np.cumsum(theirs.sizes[place]) <= most_rows]] = looks[0][place[0]] = True
        hits = none
        for look in looks:
            columns = data.column_entries(look)
            if columns is None:
                return none
            found = SharedValues.of(kept, columns, known.n_queries)
            best = np.zeros(len(found.n))
            np.maximum.at(best, found.pair, np.zeros(0) if kept.bits is None else kept.bits[found.ours])
            same = theirs.hashes[found.places[:, 0]] == wanted_hashes[found.places[:, 1]]
            two = (found.n >= 2) & same
            # Any column of the data may meet any that is kept.
            chances = len(columns) / max(1, int(look.sum())) * kept.per_query(known.n_queries)[found.places[:, 1]]
            hits = cls(found.places[two], (best - np.log2(np.maximum(chances, 1)))[two], candidates)
            if not len(hits.pairs) and look is not wanted:
                return none
        return hits

    def without(self, pairs: Pairs) -> ColumnHits:
        """Return the hits of other pairs."""
        if not len(pairs) or not len(self.pairs):
            return self
        width = 1 + max(int(self.pairs[:, 1].max()), int(pairs[:, 1].max()))
        other = ~np.isin(self.pairs[:, 0] * width + self.pairs[:, 1], pairs[:, 0] * width + pairs[:, 1])
        return ColumnHits(self.pairs[other], self.bits[other], self.candidates)


_LEAST_ALIKE = 0.1
"""Share of shared queries whose counts must be the same before a map is weighed at all."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The evidence in the labels of shared queries.

    Attributes
    ----------
    ratios : ndarray of float of shape (k, len(CHANGED))
        Natural logarithms of l_i(e), as `contamination.evidence` defines them.
    fits : ndarray of bool of shape (k,)
        Whether the sizes of the queries allow that they are the same.
    """

    ratios: NDArray[np.float64]
    fits: NDArray[np.bool_]

    @classmethod
    def best(
        cls, known: LabelCounts, chances: NDArray[np.float64], queries: NDArray[np.int64], theirs: LabelCounts
    ) -> Agreement:
        """Return the agreement under the map of grades that is the strongest evidence, paid for; often there is none.

        Parameters
        ----------
        known : LabelCounts
            The labels of all registered queries.
        chances : ndarray of float of shape (n_registered, 3)
            Their chances under H0.
        queries : ndarray of int of shape (k,)
            The shared queries among them.
        theirs : LabelCounts of shape (k,)
            The same queries in the data.
        """
        ours = known.take(queries)
        plain = cls(ratios_of_counts(ours, theirs, chances[queries]), ours.sizes == theirs.sizes)
        theirs = theirs.occurring()
        if not 2 <= len(theirs.levels) <= len(known.levels):
            return plain
        best, most = plain, max(0.0, bayes_factor_bits(plain.ratios))
        price = 2 + math.log2(math.comb(len(known.levels) - 1, len(theirs.levels) - 1))
        for mapped in _mapped(known, queries, theirs):
            bits = bayes_factor_bits(mapped.ratios) - price
            if bits > most:
                best, most = cls(paid(mapped.ratios, price), mapped.fits), bits
        return best


def _mapped(known: LabelCounts, queries: NDArray[np.int64], theirs: LabelCounts) -> Iterator[Agreement]:
    """Yield the agreement of merged labels, and that without some rows of the lowest level."""
    ours = known.take(queries)
    starts = _starts(ours, theirs)
    merged = ours.merged(starts, theirs.levels)
    if (merged.counts[:, 1:] == theirs.counts[:, 1:]).all(axis=1).mean() < _LEAST_ALIKE:
        return
    everywhere = known.merged(starts, theirs.levels)
    if not np.array_equal(known.levels, theirs.levels):  # otherwise these are the plain counts
        chances = chances_of_labels(everywhere)[queries]
        yield Agreement(ratios_of_counts(merged, theirs, chances), merged.sizes == theirs.sizes)
    rest = merged.sizes - merged.counts[:, 0]
    fits = (theirs.sizes <= merged.sizes) & (rest <= theirs.sizes)
    if (fits & (theirs.sizes < merged.sizes)).any():
        counts = merged.counts.copy()
        counts[fits, 0] = (theirs.sizes - rest)[fits]
        left = LabelCounts(np.where(fits, theirs.sizes, merged.sizes), theirs.levels, counts)
        chances = chances_of_labels(left, alike=everywhere.alike(but=0)[queries])
        yield Agreement(ratios_of_counts(left, theirs, chances), fits)


def _starts(ours: LabelCounts, theirs: LabelCounts) -> list[int]:
    """Return the place of the registered level at which each level of the data begins."""
    above, wanted = _at_least(ours), _at_least(theirs)
    starts, n_levels = [0], len(theirs.levels)
    for level in range(1, n_levels):
        first, last = starts[-1] + 1, len(ours.levels) - (n_levels - level)
        agree = (above[:, first : last + 1] == wanted[:, [level]]).sum(axis=0)
        starts.append(first + int(agree.argmax()))
    return starts


def _at_least(labels: LabelCounts) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = labels.counts[:, ::-1].cumsum(axis=1, dtype=np.int64)[:, ::-1]
    return counts


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Queries with the same id or the same documents, and what their labels say.

    Attributes
    ----------
    pairs : ndarray of int of shape (k, 2)
        The pairs, each registered query once.
    ratios : ndarray of float of shape (k, len(CHANGED))
        As `agreement` defines them.
    fits : ndarray of bool of shape (k,)
        Whether the queries are the same if the labels are: by their size or their documents.
    by_documents : ndarray of bool of shape (k,)
        Whether the documents tell the query from others.
    complete : bool
        Whether all registered queries are told by their documents, and no label differs.
    """

    pairs: Pairs
    ratios: NDArray[np.float64]
    fits: NDArray[np.bool_]
    by_documents: NDArray[np.bool_]
    complete: bool

    @property
    def agrees(self) -> NDArray[np.bool_]:
        """Whether the labels of each pair are evidence for."""
        best: NDArray[np.float64] = self.ratios.max(axis=1, initial=-np.inf)
        return best > 0

    @property
    def refuted(self) -> Pairs:
        """The pairs, if their labels are evidence against: then they are queries that recur with new labels.

        The values of their features and some of their labels recur too, and are no evidence.
        """
        return self.pairs if bayes_factor_bits(self.ratios) < 0 else self.pairs[:0]

    @classmethod
    def of(cls, known: Signature, data: Traces) -> SharedLabels:
        """Pair queries by their ids and documents, and weigh their labels.

        Parameters
        ----------
        known : Signature
            The registration.
        data : Fingerprint or Signature
            The data.
        """
        ours, theirs, chances = known.label_counts, data.label_counts, known.chances
        by_id = same_ids(known, data)
        if ours is None or theirs is None or chances is None:
            return cls.none()
        shared = _same_documents(known, data, by_id)
        alone = by_id[~np.isin(by_id[:, 1], shared.pairs[:, 1])]
        of_counts = Agreement.best(ours, chances, alone[:, 1], theirs.take(alone[:, 0]))
        return cls(
            np.concatenate([shared.pairs, alone]),
            np.concatenate([shared.ratios, of_counts.ratios]),
            np.append(shared.fits, of_counts.fits),
            np.append(shared.by_documents, np.zeros(len(alone), dtype=bool)),
            int(shared.by_documents.sum()) == len(known.ids_in_order[0]) > 0
            and bool(np.isfinite(shared.ratios[:, 0]).all()),
        )

    @classmethod
    def none(cls) -> SharedLabels:
        """Return no pairs."""
        none = np.zeros(0, dtype=bool)
        return cls(np.zeros((0, 2), dtype=np.int64), np.zeros((0, len(CHANGED))), none, none, complete=False)


def same_ids(known: Signature, data: Traces) -> Pairs:
    """Return the pairs of queries with the same id.

    Parameters
    ----------
    known : Signature
        The registration.
    data : Fingerprint or Signature
        The data.
    """
    order, ids = known.ids_in_order
    if not len(ids):
        return np.zeros((0, 2), dtype=np.int64)
    place = np.minimum(np.searchsorted(ids, data.ids), len(ids) - 1)
    same = np.flatnonzero(ids[place] == data.ids)
    return np.stack([same, order[place[same]]], axis=1)


def shared_documents(known: Signature, data: Traces, by_id: Pairs) -> SharedValues | None:
    """Choose for each registered query the query of the data that has most of its documents.

    Parameters
    ----------
    known : Signature
        The registration.
    data : Fingerprint or Signature
        The data.
    by_id : ndarray of int of shape (n, 2)
        The pairs with the same id, which one common document is enough for.

    Returns
    -------
    SharedValues or None
        Each registered query once, ascending. None if either side knows no documents, or no pair counts.
    """
    kept = known.document_entries
    documents = None if kept is None else data.document_entries  # which a fingerprint makes when it is asked
    if kept is None or documents is None:
        return None
    n = known.n_queries
    found = SharedValues.of(kept, documents, n)
    one = found.recognised | np.isin(found.places[:, 0] * n + found.places[:, 1], by_id[:, 0] * n + by_id[:, 1])
    order = np.flatnonzero(one)
    order = order[np.lexsort((-found.n[order], found.places[order, 1]))]
    order = order[np.unique(found.places[order, 1], return_index=True)[1]]
    place = np.full(len(one), -1)
    place[order] = np.arange(len(order))
    common = np.flatnonzero(place[found.pair] >= 0)
    pairs = {name: getattr(found, name)[order] for name in ("places", "n", "bits", "recognised")}
    return SharedValues(**pairs, pair=place[found.pair][common], ours=found.ours[common], theirs=found.theirs[common])


def _same_documents(known: Signature, data: Traces, by_id: Pairs) -> SharedLabels:
    """Return the pairs with the same documents, and what their labels say.

    Judgments may hold positives only. So documents that are missing are also taken for ones of the lowest label, at the
    price of one bit. Queries with the same id and no common document count then too: they have lost their positives.
    """
    shared, labels, kept = shared_documents(known, data, by_id), known.label_counts, known.document_entries
    documents = None if shared is None or not len(shared.places) else data.document_entries
    if shared is None or labels is None or documents is None or documents.label is None:
        return SharedLabels.none()
    if kept is None or kept.label is None or kept.bits is None:
        return SharedLabels.none()
    common, levels, other = shared.ours, labels.level_bytes, documents.label[shared.theirs]
    usual = int(levels[labels.most_frequent]) if len(levels) else -1
    _, ratios = ratios_of_documents(kept.query[common], kept.label[common], other, usual=usual)
    pairs, told = shared.places, shared.recognised
    plain = SharedLabels(pairs, ratios, np.ones(len(pairs), dtype=bool), told, complete=False)
    if len(levels) != 2 and usual not in levels[:1]:
        return plain
    theirs = np.full(len(kept), levels[0])
    theirs[common] = other
    alone = by_id[~np.isin(by_id[:, 1], pairs[:, 1])]
    pairs = np.concatenate([pairs, alone])
    some = np.isin(kept.query, pairs[:, 1]) & (kept.bits > 0)
    queries, ratios = ratios_of_documents(kept.query[some], kept.label[some], theirs[some], usual=int(levels[0]))
    if bayes_factor_bits(ratios) - 1 <= max(0.0, bayes_factor_bits(plain.ratios)):
        return plain
    there = np.isin(pairs[:, 1], queries)
    pairs, ratios = pairs[there], paid(ratios, 1)[np.searchsorted(queries, pairs[there, 1])]
    fits, told = (np.append(one, np.zeros(len(alone), dtype=bool))[there] for one in (plain.fits, told))
    return SharedLabels(pairs, ratios, fits, told, complete=False)
