"""Signatures: the traces of its queries that a registration keeps, and by which they are recognised.

===========  =======================================================  ==================================================
``content``  rows and labels, exactly                                 the digest of the collection
``ids``      a hash of the query id                                   with labels that agree far beyond chance
``labels``   how often each label stands in the query                 "
documents    the k smallest hashes of documents, with their labels    "; added and removed documents; positives only
rows         hashes of rows, rounded, without labels                  other labels, rows added or dropped, float32
"            of embeddings: of which columns are less than the next   "; float16, rows divided by their length
columns      the smallest hashes of columns (`query_values`)          columns scaled, mapped, added, dropped, reordered
``text``     the text of the query
===========  =======================================================  ==================================================

Each row, document and column carries bits of evidence, in the registration itself: what is rare
there is rare elsewhere. Queries are sorted by content, so that a ledger does not reveal their order
in the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.evidence import (
    ENOUGH_POSITIVES,
    IDENTIFIABLE_BITS,
    Recurrence,
    chances_of_labels,
    rarity,
)
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.query_values import LEAST_BITS, LabelCounts, QueryValues, times_among
from rankeval.join.matching import Hashes

_KEPT = 40_000
_LEAST, _MOST_ROWS, _MOST_DOCUMENTS, _MOST_COLUMNS = 4, 16, 100, 6
"""Values kept of a kind: 40,000 in all, but at least four and at most so many a query."""

_ROWS = 1 << 18
"""Rows kept: all of them up to so many, else equally many of each query. Ledgers of old have the `_MOST_ROWS` only."""


@dataclass(frozen=True, eq=False)
class Signature:
    """The traces of the queries of a registration, sorted by content."""

    content: Hashes  # (n_queries,): One hash per query, over its strongest content and its labels
    ids: Hashes  # (n_queries,): One hash per query id
    label_counts: LabelCounts | None = None  # How often each label stands in each query
    row_entries: QueryValues | None = None  # The values kept of each query
    document_entries: QueryValues | None = None
    columns: QueryValues | None = None
    texts: Hashes | None = None  # (n_queries,): One hash per text; 0 where several queries have it
    # (n_queries,): The queries that are no evidence any more
    left_out: NDArray[np.bool_] | None = None
    # Whether the rows are told by the signs of the differences of their columns, as those of
    # embeddings are.
    by_signs: bool = False

    @classmethod
    def of(cls, data: Fingerprint) -> Signature:
        """Return the signature of some data."""
        order = np.argsort(data.content, kind="stable")
        place = np.argsort(order).astype(np.int32)
        parts = (_kept_rows(data), _kept_documents(data), _kept_columns(data))
        rows, documents, columns = (
            None if part is None else part.renumbered(place) for part in parts
        )
        labels, text = data.label_counts, _kept_texts(data)
        return cls(
            data.content[order],
            data.ids[order],
            label_counts=None if labels is None else labels.take(order),
            row_entries=rows,
            document_entries=documents,
            columns=columns,
            texts=None if text is None else text[order],
            by_signs=data.by_signs,
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.content)

    def rows_told(self, *, by_signs: bool) -> QueryValues | None:
        """Return the rows, if they are told in this way."""
        return self.row_entries if by_signs == self.by_signs else None

    @cached_property
    def identifiable(self) -> NDArray[np.bool_]:
        """Whether each query can be told from others by its rows, its documents or its text."""
        return (
            self.told_without_text
            if self.texts is None
            else self.told_without_text | (self.texts != 0)
        )

    @cached_property
    def told_without_text(self) -> NDArray[np.bool_]:
        """Whether each query can be told from others by its rows or its documents.

        Relevant documents alone tell none if they are so few that all of them together would not
        refuse data.
        """
        recognised = np.zeros(self.n_queries, dtype=bool)
        documents = self.document_entries
        if self.has_positives_only and documents is not None and len(documents) < ENOUGH_POSITIVES:
            documents = None
        for kept in (self.row_entries, documents):
            if kept is not None:
                recognised |= kept.per_query(self.n_queries, kept.bits) >= IDENTIFIABLE_BITS
        if self.row_entries is not None and self.recurrence is not None:
            recognised |= (
                self.recurrence.bits_of_all(self.row_entries, self.n_queries) >= IDENTIFIABLE_BITS
            )
        return recognised

    def without(self, queries: NDArray[np.bool_]) -> Signature:
        """Return the signature with some queries that are no evidence any more; places stay."""

        def part(kept: QueryValues | None) -> QueryValues | None:
            return None if kept is None else kept.take(~queries[kept.query])

        kept = replace(
            self,
            row_entries=part(self.row_entries),
            document_entries=part(self.document_entries),
            columns=part(self.columns),
            texts=None if self.texts is None else np.where(queries, np.uint64(0), self.texts),
            left_out=queries,
        )
        if (
            self.row_entries is not None and self.recurrence is not None
        ):  # which all rows have taught
            rows = ~queries[self.row_entries.query]
            kept.__dict__["recurrence"] = Recurrence(
                self.recurrence.times[rows], self.recurrence.chance[rows]
            )
        return kept

    @cached_property
    def has_positives_only(self) -> bool:
        """Whether all documents are relevant."""
        kept, labels = self.document_entries, self.label_counts
        if kept is None or not len(kept) or labels is None:
            return False
        return bool(kept.positive(labels).all())

    @property
    def knows_documents(self) -> bool:
        """Whether documents are known."""
        return self.document_entries is not None

    @cached_property
    def greatest_documents(self) -> NDArray[np.uint32]:
        """The greatest hash of a document up to which those of each query are kept."""
        greatest = np.full(self.n_queries, np.iinfo(np.uint32).max, dtype=np.uint32)
        kept = self.document_entries
        if kept is not None:
            cut = kept.places() == _n_kept(self.n_queries, _MOST_DOCUMENTS) - 1
            greatest[kept.query[cut]] = kept.value[cut]
        return greatest

    @property
    def keeps_all_documents(self) -> bool:
        """Whether no document was left out."""
        return bool((self.greatest_documents == np.iinfo(np.uint32).max).all())

    @cached_property
    def recurrence(self) -> Recurrence | None:
        """How often the rows come back in other queries."""
        return None if self.row_entries is None else Recurrence.of(self.row_entries, self.n_queries)

    @cached_property
    def chances(self) -> NDArray[np.float64] | None:
        """The chances that the labels of each query are met again by accident."""
        return None if self.label_counts is None else chances_of_labels(self.label_counts)

    @cached_property
    def ids_in_order(self) -> tuple[NDArray[np.intp], Hashes]:
        """The queries in the order of the hashes of their ids, and these hashes."""
        return self._in_order(self.ids)

    @cached_property
    def labels_in_order(self) -> tuple[NDArray[np.intp], Hashes]:
        """The queries in the order of the hashes of their labels, and these hashes."""
        return self._in_order(
            np.zeros(0, dtype=np.uint64) if self.label_counts is None else self.label_counts.hashes
        )

    def _in_order(self, hashes: Hashes) -> tuple[NDArray[np.intp], Hashes]:
        order = np.argsort(hashes, kind="stable")
        if self.left_out is not None:
            order = order[~self.left_out[order]]
        return order, hashes[order]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the signature as arrays of one dimension, for the ledger."""
        arrays: dict[str, NDArray[Any]] = {"content": self.content, "ids": self.ids}
        if self.texts is not None:
            arrays["text"] = self.texts
        if self.label_counts is not None:
            arrays |= self.label_counts.arrays()
        if self.by_signs:
            arrays["rows.by_signs"] = np.ones(1, dtype=bool)
        kept = {
            "rows": self.row_entries,
            "documents": self.document_entries,
            "columns": self.columns,
        }
        n_first = _n_kept(self.n_queries, _MOST_ROWS)
        if (
            self.row_entries is not None
            and self.row_entries.per_query(self.n_queries).max(initial=0) > n_first
        ):
            first = self.row_entries.places() < n_first
            kept |= {
                "rows": self.row_entries.take(first),
                "more_rows": self.row_entries.take(~first),
            }
        for name, part in kept.items():
            if part is not None:
                arrays |= part.arrays(name, self.n_queries)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Signature:
        """Return the signature of `arrays`."""
        has_labels = "labels.levels" in arrays or "labels.hashes" in arrays
        rows, more = (QueryValues.from_arrays(name, arrays) for name in ("rows", "more_rows"))
        if rows is not None and more is not None:
            rows = QueryValues.together([rows, more])
        return cls(
            arrays["content"],
            arrays["ids"],
            label_counts=LabelCounts.from_arrays(arrays) if has_labels else None,
            row_entries=rows,
            document_entries=QueryValues.from_arrays("documents", arrays),
            columns=QueryValues.from_arrays("columns", arrays),
            texts=arrays.get("text"),
            by_signs="rows.by_signs" in arrays,
        )

    def column_entries(self, wanted: NDArray[np.bool_]) -> QueryValues | None:
        """Return the kept columns of some queries."""
        return None if self.columns is None else self.columns.take(wanted[self.columns.query])


def _n_kept(n_queries: int, most: int) -> int:
    return min(most, max(_LEAST, _KEPT // max(1, n_queries)))


def _kept_rows(data: Fingerprint) -> QueryValues | None:
    rows = data.rows_told(by_signs=data.by_signs)
    if rows is None:
        return None
    kept = rows if len(rows) <= _ROWS else rows.smallest(max(_LEAST, _ROWS // data.n_queries))
    return rarity(rows, kept, data.n_queries)


def _kept_documents(data: Fingerprint) -> QueryValues | None:
    documents = data.document_entries
    if documents is None:
        return None
    return rarity(
        documents, documents.smallest(_n_kept(data.n_queries, _MOST_DOCUMENTS)), data.n_queries
    )


def _kept_columns(data: Fingerprint) -> QueryValues | None:
    """Keep columns of queries that have at least two, each unlike those of all other queries."""
    if data.label_counts is None:
        return None
    columns = data.column_entries(data.label_counts.entropy >= LEAST_BITS, with_bits=True)
    if columns is None:
        return None
    columns = columns.take(times_among(columns.value, columns.value) == 1)
    columns = columns.take((columns.per_query(data.n_queries) >= 2)[columns.query])
    kept = columns.smallest(_n_kept(data.n_queries, _MOST_COLUMNS))
    return (
        kept if kept.bits is None else replace(kept, bits=np.floor(kept.bits))
    )  # whole numbers take less space


def _kept_texts(data: Fingerprint) -> Hashes | None:
    if "text" not in data.queries:
        return None
    text = data.queries["text"]
    _, place, count = np.unique(text, return_inverse=True, return_counts=True)
    return np.where(count[place] == 1, text, np.uint64(0))


@dataclass(frozen=True, eq=False)
class KeptTraces:
    """The traces of data without features: ids, documents and label counts of kept queries, which come first."""

    names: NDArray[Any]  # (n_kept,): The ids of the kept queries
    ids: Hashes  # (n_kept,): A hash of each of them, and of its content
    own: Hashes
    label_counts: LabelCounts  # Their labels
    document_entries: QueryValues | None  # Their documents; None if no documents are known
    others: Hashes  # (n_others,): A hash of the content of each other query
    # (n_kept,): Kind of row -> hash of the ranking of each kept query; empty if no output was
    # opened.
    ranked: Mapping[str, Hashes]

    X: None = None
    texts: None = None

    @classmethod
    def of(cls, data: Fingerprint, ranked: Mapping[str, Hashes]) -> KeptTraces:
        """Return the traces of all queries."""
        assert data.label_counts is not None
        others = np.zeros(0, dtype=np.uint64)
        return cls(
            data.names,
            data.ids,
            data.content,
            data.label_counts,
            data.document_entries,
            others,
            ranked,
        )

    @classmethod
    def together(cls, parts: Sequence[KeptTraces]) -> KeptTraces:
        """Return the traces of several parts."""
        starts = np.cumsum([0, *(len(part.names) for part in parts)])
        documents = [
            replace(part.document_entries, query=part.document_entries.query + start)
            for part, start in zip(parts, starts, strict=False)
            if part.document_entries is not None
        ]
        kinds = ("names", "ids", "own", "others")
        names, ids, own, others = (
            np.concatenate([getattr(part, kind) for part in parts]) for kind in kinds
        )
        labels = LabelCounts.together([part.label_counts for part in parts])
        ranked = {
            kind: np.concatenate([part.ranked[kind] for part in parts]) for kind in parts[0].ranked
        }
        return cls(
            names,
            ids,
            own,
            labels,
            QueryValues.together(documents) if documents else None,
            others,
            ranked,
        )

    def take(self, some: NDArray[np.intp]) -> KeptTraces:
        """Return the traces of some of the kept queries, in this order; of the others their content alone."""
        place = np.full(len(self.names), -1, dtype=np.int32)
        place[some] = np.arange(len(some))
        documents = (
            None if self.document_entries is None else self.document_entries.renumbered(place)
        )
        labels, others = self.label_counts.take(some), np.append(self.own[place < 0], self.others)
        ranked = {kind: hashes[some] for kind, hashes in self.ranked.items()}
        return KeptTraces(
            self.names[some], self.ids[some], self.own[some], labels, documents, others, ranked
        )

    @cached_property
    def content(self) -> Hashes:
        """The content of all queries, the kept ones first."""
        return np.append(self.own, self.others)

    @property
    def n_queries(self) -> int:
        """Number of queries, kept or not."""
        return len(self.content)

    @property
    def knows_documents(self) -> bool:
        """Whether documents are known."""
        return self.document_entries is not None

    @property
    def strongest(self) -> str:
        """The kind of content by which rows are told from each other best."""
        return "judgments" if self.knows_documents else "labels"

    def rows_told(self, *, by_signs: bool) -> None:
        """Return None: the data has no features."""

    def column_entries(self, wanted: NDArray[np.bool_]) -> None:  # noqa: ARG002 - there are no features
        """Return None: the data has no features."""
        return


Traces = Fingerprint | Signature | KeptTraces
"""The traces of queries: a fingerprint has all of them, the others those that they keep."""

Pairs = NDArray[np.int64]
"""Shape (k, 2): a query of some data, and a registered one."""

NO_PAIRS: Pairs = np.zeros((0, 2), dtype=np.int64)
