"""Which queries of a registered collection are in some data, and how sure that is.

Three kinds of evidence are looked for, and each adds up in its own way::

    content   rounded rows, texts           40 bits for one query
    columns   labels in the order of values  40 bits for all queries together, one column each
    labels    of shared ids and documents    14 bits for all queries together, for and against
    whole     the same content, the labels   14 bits for all queries together; 5 bits for equal content
              or the relevant documents of
              all queries

Data is refused if enough registered queries are found (`RegisteredContent.n_to_refuse`). What was
shown in earlier calls of this process counts too (`Shown`), so that a loop over queries adds up.

**Memory.** The same query again and again does not add up: content is kept as a set, and of the
labels of a query the last word counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.evidence import (
    CHANGED,
    ENOUGH_BITS,
    ENOUGH_IF_ALL_AGREE,
    IDENTIFIABLE_BITS,
    REFUSAL_CHANCE,
    bayes_factor_bits,
    chance_of_being_contained,
    surprise_of_equality,
)
from rankeval.contamination.query_values import are_among
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.shared import ColumnHits, SharedLabels, SharedRows, same_texts
from rankeval.contamination.signature import NO_PAIRS, Pairs, Signature, Traces
from rankeval.join.matching import Hashes


@dataclass(frozen=True, eq=False)
class Shown:
    """Evidence on the queries of one registered collection."""

    content: NDArray[np.bool_]  # (n_queries,): The queries whose content was shown
    # (n_queries,): The best evidence of columns of each query, in bits; 0 for none.
    columns: NDArray[np.float64]
    candidates: NDArray[
        np.int64
    ]  # (n_queries,): How many queries with the labels of each one were shown
    # (n_queries, len(CHANGED): The evidence of the labels of each query (`contamination.evidence`);
    # nan where none was shown.
    ratios: NDArray[np.float64]

    @classmethod
    def empty(cls, n_queries: int) -> Shown:
        """Return no evidence."""
        return cls(
            np.zeros(n_queries, dtype=bool),
            np.zeros(n_queries),
            np.zeros(n_queries, dtype=np.int64),
            np.full((n_queries, len(CHANGED)), np.nan),
        )

    def without(self, exempt: NDArray[np.bool_] | None) -> Shown:
        """Return a copy without some queries of the collection, which may be used now."""
        kept = Shown(
            self.content.copy(), self.columns.copy(), self.candidates.copy(), self.ratios.copy()
        )
        if exempt is not None:
            kept.content[exempt] = kept.columns[exempt] = kept.candidates[exempt] = 0
            kept.ratios[exempt] = np.nan
        return kept

    def told_by_columns(self, least: float, enough: float) -> NDArray[np.bool_]:
        """Return the queries that their columns tell, all together.

        M of N queries with candidates are found with s_i bits each. The chance that any M of them
        are found is at most ``C(N, M) prod 2^-s_i``, and so few are chosen that this is least.
        """
        recognised = np.zeros(len(self.columns), dtype=bool)
        net = self.columns - np.log2(np.maximum(self.candidates, 1))
        found = np.flatnonzero((self.columns > 0) & (net >= least))
        if not len(found):
            return recognised
        from scipy.special import gammaln

        found = found[np.argsort(-net[found])]
        n, m = int((self.candidates > 0).sum()), np.arange(1, len(found) + 1)
        ways = (gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)) / np.log(2)
        total = np.cumsum(net[found]) - ways - np.log2(n)
        if total.max() >= enough:
            recognised[found[: int(total.argmax()) + 1]] = True
        return recognised


_LEAST_COLUMN_BITS = 3.0
"""Evidence by which the columns of one query count among those of others."""

_SAME_ORDER = {
    "features": "features",
    "documents": "documents ranked",
    "labels": "labels",
    "ranked": "documents",
}
"""Kind of row -> the kinds of an opened output that it may equal; rows are compared with a run too."""

_WARNING_BITS = 8.0
"""Evidence of shared labels that is worth a warning."""


@dataclass(frozen=True, eq=False)
class Match:
    """The part of a registered collection that some data holds, and how sure that is."""

    registered: RegisteredContent  # The collection
    # (n_registered,): The registered queries that were found, here or in earlier calls of this
    # process.
    matched: NDArray[np.bool_]
    pairs: Pairs  # (k, 2): Query of the data, registered query: those found here
    queries: NDArray[np.bool_]  # (n_queries,): The queries of the data that are in the collection
    suspects: NDArray[
        np.bool_
    ]  # (n_queries,): The queries of the data that are evidence of any strength
    # Evidence of the labels of shared ids and documents, for (above 0) or against; log2 of a Bayes
    # factor.
    bits: float = 0.0
    # Chance that other data has the labels, or the relevant documents, of all queries; 1 if they
    # are no evidence.
    chance: float = 1.0
    alike: str = "labels"  # Which of the two it is
    same_labels: bool = (
        False  # Whether the data has the labels of the whole collection, query for query
    )
    n_before: int = 0  # Registered queries that only earlier calls showed
    by_ids: bool = True  # Whether only labels under the same ids show what was found
    # Whether some queries were found by evidence that counts for all queries together only. Then
    # others may be in the data that nothing shows.
    collective: bool = False
    shown: Shown | None = None  # What to remember of this call; None if nothing

    @property
    def n_matched(self) -> int:
        """Number of registered queries that were found."""
        return int(self.matched.sum())

    @property
    def found_among(self) -> str:
        """The registered queries among which some were found, counted: those that can be recognised, or all."""
        registered, can_be = self.registered, self.registered.protected.identifiable
        if self.by_ids or can_be.all() or (self.matched & ~can_be).any():
            return count(registered.n_queries, "query")
        return count(registered.n_identifiable, "recognisable query")

    @property
    def by_labels(self) -> bool:
        """Whether the labels or relevant documents of all queries together agree far beyond chance."""
        return self.chance < REFUSAL_CHANCE

    @property
    def n_unaccounted(self) -> int:
        """Number of registered queries that were not found, without exempted ones."""
        exempt = self.registered.exempt
        return int((~self.matched if exempt is None else ~self.matched & ~exempt).sum())

    @property
    def n_unseen(self) -> int:
        """Number of registered queries that may be in the data although nothing shows them."""
        return self.n_unaccounted if self.collective else 0

    @property
    def strength(self) -> tuple[bool, int, bool]:
        """A value that is greater for the stronger of two matches: refusals and `Guard.status` name the strongest."""
        return self.refused, self.n_matched, self.same_labels

    @property
    def refused(self) -> bool:
        """Whether the evidence is enough to refuse the data."""
        found = bool(self.queries.any()) and self.n_matched >= max(1, self.registered.n_to_refuse)
        return self.by_labels or found

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
            return (
                f"the {self.alike} are those of {len(self.queries)} of its {of} (chance {chance})"
            )
        if self.n_matched:
            if self.by_ids:
                words = (
                    f"{here} of its {self.found_among} {'is' if here == 1 else 'are'} in the data: "
                    "they have the same ids, and labels agree far beyond chance"
                )
            else:
                words = f"{here} of its {self.found_among} are in the data"
            return words + (
                f", and {self.n_before} more were in data shown before" if self.n_before else ""
            )
        if self.same_labels:
            return f"the labels equal those of its {count(registered.n_queries, 'query')}, which may be chance"
        if self.queries.any():
            return "ids or documents are the same, and labels agree more than by chance"
        return "none of its queries are in the data"


def match_content(
    registered: RegisteredContent,
    data: Traces,
    before: Shown | None = None,
    *,
    most_rows: int | None = None,
    for_looks: bool = False,
) -> Match:
    """Look for the queries of a registered collection in some data, which earlier calls may have shown in part."""
    known = registered.protected
    if known.n_queries > _LARGE and not _may_touch(known, data):
        return _untouched(registered, data)
    here = _Evidence.of(known, data, most_rows=most_rows, for_looks=for_looks)
    here = replace(here, content=np.concatenate([here.content, _same_collection(known, data)]))
    earlier = (
        before.without(registered.exempt)
        if before and here.any
        else Shown.empty(registered.n_queries)
    )
    shown = here.added_to(earlier)
    found, by_content, recognised, bits, enough = here.weigh(shown)
    chance, same_labels, by_labels = 1.0, False, NO_PAIRS
    if not here.labels.other_documents:
        chance, same_labels, by_labels = _all_labels(known, data, found)
    alike, (chance_of_documents, by_documents) = "labels", _all_positives(known, data)
    if chance_of_documents < chance:
        alike, chance, by_labels = "relevant documents", chance_of_documents, by_documents
    pairs = np.unique(np.concatenate([found, by_labels]), axis=0)
    n_found = len(np.union1d(np.append(pairs[:, 1], here.alone[:, 1]), np.flatnonzero(recognised)))
    # What is refused is named generously, and each query of the data once.
    enough_found = len(by_labels) or n_found >= max(1, registered.n_to_refuse)
    more = np.concatenate([here.alone, here.columns.pairs]) if enough_found else here.alone
    named = np.concatenate([pairs, more[~np.isin(more[:, 0], pairs[:, 0])]])
    queries, matched = np.zeros(data.n_queries, dtype=bool), np.zeros(known.n_queries, dtype=bool)
    queries[named[:, 0]] = matched[named[:, 1]] = True
    n_here = int(matched.sum())
    if n_here:
        matched |= recognised
    agreeing = here.labels.pairs[here.labels.agrees, 0]
    suspects = queries.copy()
    suspects[here.columns.pairs[:, 0]] = suspects[agreeing] = True
    if bits >= _WARNING_BITS and not enough:
        queries[agreeing] = True
    n_before = int(matched.sum()) - n_here
    one_by_one = np.isin(pairs[:, 1], here.content[:, 1]).all()
    by_more = np.isin(pairs[:, 1], by_content).any()
    collective = bool(len(here.alone)) or not one_by_one
    return Match(
        registered,
        matched=matched,
        pairs=pairs,
        queries=queries,
        bits=bits,
        chance=chance,
        alike=alike,
        same_labels=same_labels,
        n_before=n_before,
        by_ids=not len(here.alone) and not by_more,
        collective=collective,
        suspects=suspects,
        shown=shown if here.any else None,
    )


_LARGE = 10_000
"""Registered queries above which data is looked at briefly first: most of it has nothing to do with a test."""


def _may_touch(known: Signature, data: Traces) -> bool:
    """Return whether data has an id or a value of a registration, columns, or so many queries that labels may tell."""
    if isinstance(data, Signature) or (known.columns is not None and data.X is not None):
        return True
    # If all patterns differ, n draws of N have none twice with a chance of about exp(-n^2 / 2 N);
    # else it is greater.
    if data.n_queries**2 >= -2 * math.log(REFUSAL_CHANCE) * known.n_queries:
        return True
    if are_among(data.ids, known.ids):
        return True
    if known.texts is not None and data.texts is not None and are_among(data.texts, known.texts):
        return True
    rows = known.row_entries, data.rows_told(by_signs=known.by_signs)
    entries = rows, (known.document_entries, data.document_entries)
    return any(ours and theirs and are_among(theirs.value, ours.value) for ours, theirs in entries)


def _untouched(registered: RegisteredContent, data: Traces) -> Match:
    """Return that data shows nothing of a registration."""
    none = np.zeros(data.n_queries, dtype=bool)
    return Match(
        registered,
        matched=np.zeros(registered.n_queries, dtype=bool),
        pairs=NO_PAIRS,
        queries=none,
        suspects=none,
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What some data shows of a collection: pairs of queries with the same content, columns, and shared labels."""

    content: Pairs
    alone: Pairs
    columns: ColumnHits
    labels: SharedLabels

    @classmethod
    def of(
        cls,
        known: Signature,
        data: Traces,
        *,
        most_rows: int | None = None,
        for_looks: bool = False,
    ) -> _Evidence:
        labels, rows = SharedLabels.of(known, data, for_looks=for_looks), SharedRows.of(known, data)
        columns = ColumnHits.of(known, data, most_rows=most_rows).without(labels.refuted)
        texts = same_texts(known, data, for_looks=for_looks)
        return cls(np.concatenate([rows.together, texts]), rows.alone, columns, labels)

    @property
    def any(self) -> bool:
        """Whether there is evidence of any strength."""
        return any(map(len, (self.content, self.alone, self.columns.pairs, self.labels.pairs)))

    def added_to(self, shown: Shown) -> Shown:
        """Return what was shown before together with this."""
        shown.content[self.content[:, 1]] = shown.content[self.alone[:, 1]] = True
        np.add(shown.candidates, self.columns.candidates, out=shown.candidates)
        np.maximum.at(shown.columns, self.columns.pairs[:, 1], self.columns.bits)
        shown.ratios[self.labels.pairs[:, 1]] = self.labels.ratios
        return shown

    def weigh(
        self, shown: Shown
    ) -> tuple[Pairs, NDArray[np.int64], NDArray[np.bool_], float, bool]:
        """Return pairs, the registered queries that are told by more than their ids, and all that were found.

        The others are the bits of shared labels, and whether these are enough.
        """
        by_columns = shown.told_by_columns(_LEAST_COLUMN_BITS, IDENTIFIABLE_BITS)
        bits = bayes_factor_bits(shown.ratios[~np.isnan(shown.ratios[:, 0])])
        enough = bits >= (ENOUGH_IF_ALL_AGREE if self.labels.complete else ENOUGH_BITS)
        fits = self.labels.fits & (enough and bool(self.labels.agrees.any()))
        by_labels = np.logical_and(enough, (shown.ratios > 0).any(axis=1))
        by_labels[self.labels.pairs[:, 1]] = False  # those of this data are told by their pairs
        recognised: NDArray[np.bool_] = shown.content | by_columns | by_labels
        recognised[self.alone[:, 1]] = False
        pairs = np.concatenate(
            [self.content, self.columns.pairs[by_columns[self.columns.pairs[:, 1]]]]
        )
        by_content = np.append(pairs[:, 1], self.labels.pairs[self.labels.by_documents, 1])
        return (
            np.concatenate([pairs, self.labels.pairs[fits]]),
            by_content,
            recognised,
            bits,
            enough,
        )


def link(a: Signature, b: Signature) -> Pairs:
    """Return the pairs of queries of two registrations that are the same, from what the registrations keep."""
    # Both directions: either collection may be the one with merged grades.
    pairs = np.concatenate([_found(b, a), _found(a, b)[:, ::-1]])
    return np.unique(pairs, axis=0)


def _found(known: Signature, data: Signature) -> Pairs:
    here = _Evidence.of(known, data, for_looks=True)
    return here.weigh(here.added_to(Shown.empty(known.n_queries)))[0]


def was_opened(found: Match, outputs: Mapping[str, Hashes]) -> bool:
    """Return whether one opened output ranks all queries that are evidence as this ranking does."""
    queries = np.flatnonzero(found.queries if found.queries.any() else found.suspects)
    if not len(queries):
        return False
    for opened, kind in product(found.registered.opened, outputs):
        for opened_kind in _SAME_ORDER[kind].split():
            if opened_kind in opened and np.isin(outputs[kind][queries], opened[opened_kind]).all():
                return True
    return False


def _same_collection(known: Signature, data: Traces) -> Pairs:
    """Return all pairs if the data has the content of the registration, and chance would not bring as much.

    Labels alone are no such content: all collections of one positive among nine zeros have it.
    """
    if (
        isinstance(data, Signature)
        or data.strongest == "labels"
        or data.n_queries != known.n_queries
    ):
        return NO_PAIRS
    order = np.argsort(data.content, kind="stable")
    if not np.array_equal(data.content[order], known.content):
        return NO_PAIRS
    ids = data.ids[np.lexsort([data.ids, data.content])]
    same_ids = np.array_equal(ids, known.ids[np.lexsort([known.ids, known.content])])
    times = np.unique(known.content, return_counts=True)[1]
    if surprise_of_equality(times, same_ids=same_ids) < ENOUGH_IF_ALL_AGREE:
        return NO_PAIRS
    pairs = np.stack([order, np.arange(known.n_queries)], axis=1)
    return pairs if known.left_out is None else pairs[~known.left_out]


def _all_positives(known: Signature, data: Traces) -> tuple[float, Pairs]:
    """Return the chance that the relevant documents of all queries are registered ones, and pairs of these queries.

    Asked of registrations of positives only, all of which are kept. One document of each query is
    drawn: those of one query may always stand together.
    """
    kept, documents = known.document_entries, data.document_entries
    if kept is None or not documents or known.label_counts is None or data.label_counts is None:
        return 1.0, NO_PAIRS
    if (
        not known.has_positives_only
        or not known.keeps_all_documents
        or data.n_queries > known.n_queries
    ):
        return 1.0, NO_PAIRS
    relevant = documents.take(documents.positive(data.label_counts))
    order = np.argsort(kept.value, kind="stable")
    ours = kept.value[order]
    if not len(relevant) or not _places_in(ours, np.sort(relevant.value))[1].all():
        return 1.0, NO_PAIRS
    first = relevant.take(relevant.places() == 0)
    first = first.take(np.argsort(first.value, kind="stable"))
    chance = chance_of_being_contained(np.unique(ours, return_counts=True)[1], len(first))
    if chance >= REFUSAL_CHANCE:
        return chance, NO_PAIRS
    place, _ = _places_in(ours, first.value)
    return chance, np.stack([first.query, kept.query[order[place]]], axis=1).astype(np.int64)


def _all_labels(known: Signature, data: Traces, found: Pairs) -> tuple[float, bool, Pairs]:
    """Return the chance of the labels of all queries, whether they equal the registered ones, and pairs of the rest."""
    theirs = data.label_counts
    if (
        theirs is None
        or known.label_counts is None
        or data.n_queries > known.n_queries
        or not data.n_queries
    ):
        return 1.0, False, NO_PAIRS
    queries, ours = known.labels_in_order
    order = np.argsort(theirs.hashes, kind="stable")
    drawn = theirs.hashes[order]
    if not _places_in(ours, drawn)[1].all():
        return 1.0, False, NO_PAIRS
    times = np.unique(ours, return_counts=True)[1]
    chance, same = chance_of_being_contained(times, len(drawn)), len(drawn) == len(ours)
    if chance >= REFUSAL_CHANCE:
        return chance, same, NO_PAIRS
    # They show that all are here, but not which of several with the same labels is which.
    here, there = ~np.isin(order, found[:, 0]), ~np.isin(queries, found[:, 1])
    place, known_too = _places_in(ours[there], drawn[here])
    return (
        chance,
        same,
        np.stack([order[here][known_too], queries[there][place[known_too]]], axis=1),
    )


def _places_in(
    ours: NDArray[Any], drawn: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return a place of its own for each drawn value among equal ones, both ascending, and whether it has one."""
    place = np.searchsorted(ours, drawn) + np.arange(len(drawn)) - np.searchsorted(drawn, drawn)
    inside = place < len(ours)
    inside[inside] = ours[place[inside]] == drawn[inside]
    return place, inside
