"""Which queries of a registered collection are in some data, and how sure that is.

Three kinds of evidence are looked for, and each adds up in its own way::

    content   rounded rows, texts           40 bits for one query
    columns   labels in the order of values  40 bits for all queries together, one column each
    labels    of shared ids and documents    20 bits for all queries together, for and against

Data is refused if enough registered queries are found (`RegisteredContent.n_to_refuse`). What was shown in earlier
calls of this process counts too (`contamination.memory`), so that a loop over queries adds up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.agreement import (
    CHANGED,
    ENOUGH_BITS,
    bayes_factor_bits,
    ratios_of_counts,
    ratios_of_documents,
)
from rankeval.contamination.entries import Entries
from rankeval.contamination.evidence import IDENTIFIABLE_BITS, REFUSAL_CHANCE, chance_of_labels
from rankeval.contamination.label_counts import LabelCounts
from rankeval.contamination.memory import Shown
from rankeval.contamination.register import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.join.matching import Hashes

Pairs = NDArray[np.int64]
"""Shape (k, 2): a query of the data, and a registered one."""

_SHARE = 0.4
"""Share of a query's kept rows or documents that must be found; three quarters are where five of 20 were dropped."""

_LEAST_COLUMN_BITS = 3.0
"""Evidence by which the columns of one query count among those of others."""

_WARNING_BITS = 10.0
"""Evidence of shared labels that is worth a warning."""


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
class Match:
    """The part of a registered collection that some data holds, and how sure that is.

    Attributes
    ----------
    registered : RegisteredContent
        The collection.
    matched : ndarray of bool of shape (n_registered,)
        The registered queries that were found, here or in earlier calls of this process.
    pairs : ndarray of int of shape (k, 2)
        Query of the data, registered query: those found here.
    queries : ndarray of bool of shape (n_queries,)
        The queries of the data that are in the collection.
    bits : float
        Evidence of the labels of shared ids and documents, for (above 0) or against; log2 of a Bayes factor.
    chance : float
        Chance that other data has the labels of all queries; 1 if they are no evidence.
    same_labels : bool
        Whether the data has the labels of the whole collection, query for query.
    n_before : int
        Registered queries that only earlier calls showed.
    by_ids : bool
        Whether only labels under the same ids show what was found.
    suspects : ndarray of bool of shape (n_queries,)
        The queries of the data that are evidence of any strength.
    shown : Shown, optional
        What to remember of this call; None if nothing.
    """

    registered: RegisteredContent
    matched: NDArray[np.bool_]
    pairs: Pairs
    queries: NDArray[np.bool_]
    bits: float
    chance: float
    same_labels: bool
    n_before: int
    by_ids: bool
    suspects: NDArray[np.bool_]
    shown: Shown | None = None

    @property
    def n_matched(self) -> int:
        """Number of registered queries that were found."""
        return int(self.matched.sum())

    @property
    def by_labels(self) -> bool:
        """Whether the labels of all queries together agree far beyond chance."""
        return self.chance < REFUSAL_CHANCE

    @property
    def refused(self) -> bool:
        """Whether the evidence is enough to refuse the data."""
        enough = self.n_matched >= max(1, self.registered.n_to_refuse)
        return self.by_labels or (enough and bool(self.queries.any()))

    @property
    def warned(self) -> bool:
        """Whether there is evidence, but too little to refuse the data."""
        return not self.refused and bool(self.queries.any())

    @property
    def why(self) -> str:
        """The evidence in words."""
        registered = self.registered
        here = self.n_matched - self.n_before
        if self.by_labels and here == len(self.queries) and self.by_ids and self.bits < ENOUGH_BITS:
            chance = f"{self.chance:.0e}" if self.chance >= 1e-12 else "under 1e-12"
            of = count(registered.n_queries, "query")
            return f"the labels are those of {len(self.queries)} of its {of} (chance {chance})"
        if self.n_matched:
            if self.by_ids:
                said = (
                    f"{here} of its {count(registered.n_queries, 'query')} {'is' if here == 1 else 'are'} in the data: "
                    f"they have the same ids, and labels agree far beyond chance ({self.bits:.0f} bits)"
                )
            else:
                said = f"{here} of its {count(registered.n_identifiable, 'identifiable query')} are in the data"
            return said + (f", and {self.n_before} more were in data shown before" if self.n_before else "")
        if self.same_labels:
            return f"the labels equal those of its {count(registered.n_queries, 'query')}, which may be chance"
        if self.queries.any():
            return f"ids or documents are the same, and labels agree more than by chance ({self.bits:.0f} bits)"
        return "none of its queries are in the data"


def match(registered: RegisteredContent, data: Traces, before: Shown | None = None) -> Match:
    """Look for the queries of a registered collection in some data.

    Parameters
    ----------
    registered : RegisteredContent
        The collection.
    data : Fingerprint
        The data.
    before : Shown, optional
        What earlier calls of this process showed of it.
    """
    known = registered.protected
    n_known, n_data = known.n_queries, data.n_queries
    chance, same_labels, by_pattern = _all_labels(known, data)
    content, columns, labels = _by_content(known, data), _ColumnHits.of(known, data), _SharedLabels.of(known, data)
    columns = columns.without(labels.refuted)
    shown = None
    if len(content) or len(columns.pairs) or len(labels.pairs):
        shown = Shown.empty(n_known) if before is None else before.copy()
        shown.content[content[:, 1]] = True
        columns.add_to(shown)
        shown.ratios[labels.pairs[:, 1]] = labels.ratios
    if shown is None:
        by_columns, by_labels, bits = np.zeros((0, 2), dtype=np.int64), content, 0.0
        earlier = np.zeros(n_known, dtype=bool)
    else:
        told = shown.told_by_columns(_LEAST_COLUMN_BITS, IDENTIFIABLE_BITS)
        by_columns = columns.pairs[told[columns.pairs[:, 1]]]
        bits = bayes_factor_bits(shown.ratios[~np.isnan(shown.ratios[:, 0])])
        agrees = (labels.ratios > 0).any(axis=1)
        by_labels = labels.pairs[labels.fits & (bits >= ENOUGH_BITS) & agrees.any()]
        earlier = shown.content | told
        if bits >= ENOUGH_BITS:
            earlier |= (shown.ratios > 0).any(axis=1)
    found = np.concatenate([content, by_columns, by_labels, by_pattern])
    pairs = np.unique(found, axis=0)
    queries, here = np.zeros(n_data, dtype=bool), np.zeros(n_known, dtype=bool)
    queries[pairs[:, 0]], here[pairs[:, 1]] = True, True
    suspects = queries.copy()
    suspects[columns.pairs[:, 0]] = True
    agreeing = labels.pairs[(labels.ratios > 0).any(axis=1)]
    suspects[agreeing[:, 0]] = True
    if _WARNING_BITS <= bits < ENOUGH_BITS:
        queries[agreeing[:, 0]] = True
    return Match(
        registered,
        matched=here | earlier if len(pairs) else here,
        pairs=pairs,
        queries=queries,
        bits=bits,
        chance=chance,
        same_labels=same_labels,
        n_before=int((earlier & ~here).sum()) if len(pairs) else 0,
        by_ids=not len(content)
        and not len(by_columns)
        and not labels.by_documents[np.isin(labels.pairs[:, 1], by_labels[:, 1])].any(),
        suspects=suspects,
        shown=shown if suspects.any() or len(labels.pairs) else None,
    )


def link(a: Signature, b: Signature) -> Pairs:
    """Return the pairs of queries of two registrations that are the same, from what the registrations keep.

    Parameters
    ----------
    a, b : Signature
        The registrations.

    Returns
    -------
    ndarray of int of shape (k, 2)
        Query of a, query of b. Their labels may differ.
    """
    content, columns, labels = _by_content(b, a), _ColumnHits.of(b, a), _SharedLabels.of(b, a)
    columns = columns.without(labels.refuted)
    shown = Shown.empty(b.n_queries)
    columns.add_to(shown)
    by_columns = columns.pairs[shown.told_by_columns(_LEAST_COLUMN_BITS, IDENTIFIABLE_BITS)[columns.pairs[:, 1]]]
    by_labels = labels.pairs[labels.fits & (bayes_factor_bits(labels.ratios) >= ENOUGH_BITS)]
    return np.unique(np.concatenate([content, by_columns, by_labels]), axis=0)


def was_opened(found: Match, outputs: Mapping[str, Hashes]) -> bool:
    """Return whether one opened output ranks all queries that are evidence as this ranking does.

    Parameters
    ----------
    found : Match
        The queries of the data that are in the collection.
    outputs : mapping of str to ndarray of uint64
        Kind of row -> hash of the ranking of each query of the data.
    """
    asked = found.queries if found.queries.any() else found.suspects
    return any(
        bool(np.isin(hashes[asked], opened[kind]).all())
        for opened in found.registered.opened
        for kind, hashes in outputs.items()
        if kind in opened
    )


def _all_labels(known: Signature, data: Traces) -> tuple[float, bool, Pairs]:
    """Return the chance of the labels of all queries, whether they equal the registered ones, and the pairs."""
    none = np.zeros((0, 2), dtype=np.int64)
    theirs = data.label_counts
    if theirs is None or known.labels is None or data.n_queries > known.n_queries or not data.n_queries:
        return 1.0, False, none
    queries, ours = known.labels_in_order
    order = np.argsort(theirs.hashes, kind="stable")
    drawn = theirs.hashes[order]
    # Queries with the same labels are paired in the order in which they stand.
    place = np.searchsorted(ours, drawn) + np.arange(len(drawn)) - np.searchsorted(drawn, drawn)
    if (place >= len(ours)).any() or (ours[place] != drawn).any():
        return 1.0, False, none
    chance, same = chance_of_labels(ours, drawn), len(drawn) == len(ours)
    pairs = np.stack([order, queries[place]], axis=1) if chance < REFUSAL_CHANCE else none
    return chance, same, pairs


def _by_content(known: Signature, data: Traces) -> Pairs:
    """Return the pairs of queries with the same rows or the same text."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    if known.rows is not None and data.row_entries is not None:
        pairs = _Pairs.of(known.rows, data.row_entries, known.n_queries)
        found.append(pairs.places[pairs.recognised])
    if known.text is not None and data.texts is not None:
        order = np.argsort(known.text)
        place = order[np.minimum(np.searchsorted(known.text[order], data.texts), known.n_queries - 1)]
        same = np.flatnonzero((known.text[place] == data.texts) & (data.texts != 0))
        found.append(np.stack([same, place[same]], axis=1))
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of queries that have values in common: where, how many, and their bits."""

    places: Pairs
    n: NDArray[np.int64]
    bits: NDArray[np.float64]
    recognised: NDArray[np.bool_]
    pair: NDArray[np.int64]
    """The pair of each common value."""
    ours: NDArray[np.intp]
    theirs: NDArray[np.intp]

    @classmethod
    def of(cls, known: Entries, data: Entries, n_known: int) -> _Pairs:
        ours, theirs = known.found_in(data)
        key, pair = np.unique(data.query[theirs] * n_known + known.query[ours], return_inverse=True)
        places = np.stack([key // n_known, key % n_known], axis=1)
        n = np.bincount(pair, minlength=len(key))
        weights = np.ones(len(known)) if known.bits is None else known.bits
        bits = np.zeros(len(key))
        np.add.at(bits, pair, weights[ours])
        telling = known.per_query(n_known, weights > 0).astype(np.int64)[places[:, 1]]
        needed = np.maximum(np.minimum(2, telling), np.ceil(_SHARE * telling))
        return cls(places, n, bits, (bits >= IDENTIFIABLE_BITS) & (n >= needed), pair, ours, theirs)


@dataclass(frozen=True, eq=False)
class _ColumnHits:
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
    def of(cls, known: Signature, data: Traces) -> _ColumnHits:
        none = cls(np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(known.n_queries, dtype=np.int64))
        kept, theirs = known.columns, data.label_counts
        if kept is None or not len(kept) or known.labels is None or theirs is None:
            return none
        keeps = kept.per_query(known.n_queries) > 0
        hashes = np.sort(theirs.hashes)
        wanted_hashes = known.labels.hashes
        n_with = np.searchsorted(hashes, wanted_hashes, side="right") - np.searchsorted(hashes, wanted_hashes)
        candidates = np.where(keeps, n_with, 0)
        if not candidates.any():
            return none
        wanted = np.isin(theirs.hashes, wanted_hashes[candidates > 0])
        columns = data.column_entries(wanted)
        if columns is None:
            return none
        found = _Pairs.of(kept, columns, known.n_queries)
        best = np.zeros(len(found.n))
        np.maximum.at(best, found.pair, np.zeros(0) if kept.bits is None else kept.bits[found.ours])
        same = theirs.hashes[found.places[:, 0]] == wanted_hashes[found.places[:, 1]]
        two = (found.n >= 2) & same
        # Any column of the data may meet any that is kept.
        chances = len(columns) / max(1, int(wanted.sum())) * kept.per_query(known.n_queries)[found.places[:, 1]]
        return cls(found.places[two], (best - np.log2(np.maximum(chances, 1)))[two], candidates)

    def without(self, pairs: Pairs) -> _ColumnHits:
        """Return the hits of other pairs."""
        if not len(pairs) or not len(self.pairs):
            return self
        width = 1 + max(int(self.pairs[:, 1].max()), int(pairs[:, 1].max()))
        other = ~np.isin(self.pairs[:, 0] * width + self.pairs[:, 1], pairs[:, 0] * width + pairs[:, 1])
        return _ColumnHits(self.pairs[other], self.bits[other], self.candidates)

    def add_to(self, shown: Shown) -> None:
        """Remember these hits."""
        np.add(shown.candidates, self.candidates, out=shown.candidates)
        np.maximum.at(shown.columns, self.pairs[:, 1], self.bits)


@dataclass(frozen=True, eq=False)
class _SharedLabels:
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
    """

    pairs: Pairs
    ratios: NDArray[np.float64]
    fits: NDArray[np.bool_]
    by_documents: NDArray[np.bool_]

    @property
    def refuted(self) -> Pairs:
        """The pairs, if their labels are evidence against: then they are queries that recur with new labels.

        The values of their features and some of their labels recur too, and are no evidence.
        """
        return self.pairs if bayes_factor_bits(self.ratios) < 0 else self.pairs[:0]

    @classmethod
    def of(cls, known: Signature, data: Traces) -> _SharedLabels:
        ours, theirs, chances = known.labels, data.label_counts, known.chances
        by_id = _same_ids(known, data)
        if ours is None or theirs is None or chances is None:
            none = np.zeros(0, dtype=bool)
            return cls(np.zeros((0, 2), dtype=np.int64), np.zeros((0, len(CHANGED))), none, none)
        by_documents, of_documents, told = _same_documents(known, data, by_id)
        alone = by_id[~np.isin(by_id[:, 1], by_documents[:, 1])]
        left, right = ours.take(alone[:, 1]), theirs.take(alone[:, 0])
        of_counts = ratios_of_counts(left, right, chances.take(alone[:, 1]))
        fits = np.append(np.ones(len(by_documents), dtype=bool), left.sizes == right.sizes)
        told = np.append(told, np.zeros(len(alone), dtype=bool))
        return cls(np.concatenate([by_documents, alone]), np.concatenate([of_documents, of_counts]), fits, told)


def _same_ids(known: Signature, data: Traces) -> Pairs:
    order, ids = known.ids_in_order
    if not len(ids):
        return np.zeros((0, 2), dtype=np.int64)
    place = np.minimum(np.searchsorted(ids, data.ids), len(ids) - 1)
    same = np.flatnonzero(ids[place] == data.ids)
    return np.stack([same, order[place[same]]], axis=1)


def _same_documents(
    known: Signature, data: Traces, by_id: Pairs
) -> tuple[Pairs, NDArray[np.float64], NDArray[np.bool_]]:
    """Return pairs with the same documents, what their labels say, and if the documents tell the query."""
    none = np.zeros((0, 2), dtype=np.int64), np.zeros((0, len(CHANGED))), np.zeros(0, dtype=bool)
    kept, documents = known.documents, data.document_entries
    if kept is None or documents is None or kept.label is None or documents.label is None or known.labels is None:
        return none
    found = _Pairs.of(kept, documents, known.n_queries)
    n = known.n_queries
    one = found.recognised | np.isin(found.places[:, 0] * n + found.places[:, 1], by_id[:, 0] * n + by_id[:, 1])
    # A registered query counts once: with the query that has most of its documents.
    order = np.flatnonzero(one)
    order = order[np.lexsort((-found.n[order], found.places[order, 1]))]
    order = order[np.unique(found.places[order, 1], return_index=True)[1]]
    rank = np.full(len(one), -1)
    rank[order] = np.arange(len(order))
    common = np.flatnonzero(rank[found.pair] >= 0)
    if not len(common):
        return none
    queries, ratios = ratios_of_documents(
        found.places[found.pair[common], 1],
        kept.label[found.ours[common]],
        documents.label[found.theirs[common]],
        known.labels.modal,
    )
    pairs = found.places[order]
    return pairs, ratios[np.searchsorted(queries, pairs[:, 1])], found.recognised[order]
