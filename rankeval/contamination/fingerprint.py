"""Fingerprints: the content of a collection as 64-bit hashes, query by query.

A fingerprint is built in three layers. Take three rows of two queries::

    qid docid label features        rows (layer 1)                           queries (layer 2)
     7   d1     2   .5 1.0  ->  features a1  documents b1  labels c2  --+
     7   d2     0   .1 0.0  ->  features a2  documents b2  labels c0  --+->  7: features A  labels C  ...
     9   d1     1   .2 0.3  ->  features a3  documents b1  labels c1  ---->  9: features D  labels E  ...

    digest (layer 3) = SHA-256 over the sorted content hashes of all queries

Layer 1 hashes each row once per kind of content. Layer 2 adds up the row hashes of a query, so that
their order does not matter. Query ids enter none of these hashes: codes only say which rows belong
together. So renamed ids and any order of rows and queries lead to the same hashes. The kinds of
content are

``features``   the feature rows, every digit of them
``judgments``  pairs of document id and label
``documents``  the judged documents of a collection, whatever their labels
``labels``     the labels alone
``text``       the texts of the queries; in layer 2 only

Data is recognised after changes by coarser traces of each query: rounded rows, documents with their
labels, counts of labels, columns (`contamination.query_values`), and a hash of the query id.

All of it is computed when it is first asked for, and once. So a fingerprint must be asked before
the data changes, and a scorer does not pay for what its ledger need not know.

The trap: generated data sets often give their documents the same ids (the third document of query 7
is "7-3"). So documents alone never show that rows with features are registered.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import require
from rankeval.contamination.hashing import (
    are_embeddings,
    as_matrix,
    as_numbers,
    join,
    n_features,
    number_hashes,
    rounded_hashes,
    row_hashes,
    sign_hashes,
    text_hashes,
)
from rankeval.contamination.query_values import (
    LabelCounts,
    QueryValues,
    column_entries,
    label_bytes,
    multisets,
    upper_half,
)
from rankeval.errors import InvalidInput
from rankeval.io.columns import scores as as_scores
from rankeval.join.flat import Grouping, group_rows, order_of
from rankeval.join.matching import Hashes

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run


_SORTED_AT_ONCE = 2**16
"""Rows whose places are found at once (bench_guard_large)."""


class Lazy(UserDict[str, Any]):
    """Kind of content -> hashes, computed when first asked for."""

    def __init__(
        self, makers: Mapping[str, Callable[[], Hashes]], not_kept: Sequence[str] = ()
    ) -> None:
        super().__init__(
            {kind: make if kind in not_kept else cache(make) for kind, make in makers.items()}
        )

    def __getitem__(self, kind: str) -> Hashes:
        made: Hashes = self.data[kind]()
        return made


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The content of a collection as hashes."""

    names: NDArray[Any]  # (n_queries,): The ids of the queries in this data; part of no content
    codes: NDArray[np.intp]  # (n_rows,): The query of each row, as its place among `names`
    rows: Mapping[str, Hashes]  # (n_rows,): Kind of content -> hash of each row
    queries: Mapping[str, Hashes]  # (n_queries,): Kind of content -> signature of each query
    X: Any | None = None  # The features
    y: NDArray[np.float64] | None = None  # (n_rows,): The labels

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.names)

    @property
    def knows_documents(self) -> bool:
        """Whether documents are known."""
        return "documents" in self.rows

    @property
    def strongest(self) -> str:
        """The kind of content by which rows are told from each other best."""
        return next(
            kind for kind in ("features", "judgments", "documents", "labels") if kind in self.rows
        )

    @cached_property
    def content(self) -> Hashes:
        """One hash per query, over its strongest content and its labels."""
        rows, labels = self.rows[self.strongest], self.rows.get("labels")
        if self.strongest == "labels":
            return self.queries["labels"]
        return multisets(rows if labels is None else join(rows, labels), self.codes, self.n_queries)

    @cached_property
    def ids(self) -> Hashes:
        """One hash per query id."""
        return text_hashes(self.names)

    @cached_property
    def label_counts(self) -> LabelCounts | None:
        """How often each label stands in each query; None without labels."""
        return None if self.y is None else LabelCounts.of(self.y, self.codes, self.n_queries)

    @cached_property
    def by_signs(self) -> bool:
        """Whether rows are registered by the signs of the differences of their columns."""
        return self.X is not None and are_embeddings(self.X)

    def rows_told(self, *, by_signs: bool) -> QueryValues | None:
        """Return the rows without their labels, rounded or by their signs, by query; None without features."""
        if self.X is None:
            return None
        if by_signs not in self._known_rows:
            hashes = sign_hashes(self.X) if by_signs else rounded_hashes(self.X)
            self._known_rows[by_signs] = QueryValues.of(self.codes, upper_half(hashes))
        return self._known_rows[by_signs]

    @cached_property
    def _known_rows(self) -> dict[bool, QueryValues]:
        return {}

    @property
    def texts(self) -> Hashes | None:
        """One hash per text; None without texts."""
        return self.queries.get("text")

    @cached_property
    def document_entries(self) -> QueryValues | None:
        """The documents with their labels, by query; None without document ids or labels."""
        if not self.knows_documents or "labels" not in self.rows:
            return None
        return QueryValues.of(
            self.codes, upper_half(self.rows["documents"]), label=label_bytes(self.rows["labels"])
        )

    @cached_property
    def _known_columns(self) -> tuple[NDArray[np.bool_], list[QueryValues]]:
        return np.zeros(self.n_queries, dtype=bool), []

    def column_entries(
        self, wanted: NDArray[np.bool_], *, with_bits: bool = False
    ) -> QueryValues | None:
        """Return the columns of some queries as `column_entries` does; None without features or labels."""
        if self.X is None or self.y is None:
            return None
        if with_bits:
            return column_entries(self.X, self.y, self.codes, wanted, with_bits=True)
        # Several registered collections may ask for the same queries.
        known, parts = self._known_columns
        new = wanted & ~known
        if new.any():
            parts.append(column_entries(self.X, self.y, self.codes, new))
            known |= new
        found = [part.take(wanted[part.query]) for part in parts]
        query, value = (
            np.concatenate([getattr(part, name) for part in found]) for name in ("query", "value")
        )
        return QueryValues(query, value)

    @property
    def digest(self) -> str:
        """SHA-256 over the content of all queries; their order does not matter."""
        return hashlib.sha256(
            b"rankeval content 1\n" + np.sort(self.content).astype("<u8").tobytes()
        ).hexdigest()

    @property
    def names_by_content(self) -> NDArray[Any]:
        """The ids of the queries, sorted by content: the same queries in the same order under whatever ids."""
        return self.names[np.argsort(self.content, kind="stable")]

    def places(self, names: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places of query ids among the queries sorted by content; -1 for other ids."""
        if np.array_equal(
            names, self.names
        ):  # as those of a run on these judgments are: a dict takes seconds
            return self._rank
        place = dict(zip(self.names.tolist(), self._rank.tolist(), strict=True))
        return np.array([place.get(name, -1) for name in names.tolist()], dtype=np.int64)

    @cached_property
    def _rank(self) -> NDArray[np.int64]:
        return np.argsort(np.argsort(self.content, kind="stable"), kind="stable")

    @cached_property
    def canonical_order(self) -> NDArray[np.intp]:
        """The rows sorted by content, the rows of a query together, whatever order they were given in."""
        # Rows of equal content and other labels need an order too.
        minor = [self.rows["labels"]] if "labels" in self.rows else []
        return np.lexsort([*minor, self.rows[self.strongest], self._rank[self.codes]])

    def outputs(self, score: Any, queries: NDArray[np.bool_] | None = None) -> dict[str, Hashes]:
        """Return the ranking of each query as one hash per kind of row, ties included.

        Increasing transforms of the scores of a query change nothing. The order of labels is all
        that an evaluation can reveal; the orders of features and documents hold for other labels
        too.
        """
        scores = as_numbers(as_scores(score, "score"), name="score")
        if len(scores) != len(self.codes):
            raise InvalidInput(
                argument="score",
                found=f"{len(scores)} long",
                expected=f"{len(self.codes)}, one a row",
            )
        rows = (
            slice(None) if queries is None or queries.all() else np.flatnonzero(queries[self.codes])
        )
        codes = self.codes[rows]
        level = tie_levels(codes, scores[rows])
        return {
            kind: multisets(join(self.rows[kind][rows], level), codes, self.n_queries)
            for kind in ("features", "documents", "labels")
            if kind in self.rows
        }


def fingerprint(
    X: Any | None,
    y: Any | None,
    qid: Any,
    *,
    docid: Any | None = None,
    queries: Mapping[Any, str] | None = None,
) -> Fingerprint:
    """Fingerprint rows."""
    rows: dict[str, Callable[[], Hashes]] = {}
    lengths = {}
    if X is not None:
        matrix = X = as_matrix(X)
        lengths["features"] = matrix.shape[0]
        if n_features(matrix):
            rows["features"] = lambda: row_hashes(matrix)
        else:
            X = None
    labels = None if y is None else as_numbers(y, name="y")
    if labels is not None:
        rows["labels"], lengths["labels"] = lambda: number_hashes(labels, name="y"), len(labels)
    if docid is not None:
        require(np.ndim(docid) == 1, "docid", docid, "one id for each row")
        rows["documents"], lengths["documents"] = lambda: text_hashes(docid), len(docid)
    if not rows:
        raise InvalidInput("nothing to fingerprint: give at least one of X, y and docid")
    return _by_query(rows, lengths, qid, queries, without=("documents",), X=X, y=labels)


def fingerprint_qrels(qrels: Qrels, *, queries: Mapping[Any, str] | None = None) -> Fingerprint:
    """Fingerprint judgments."""

    def documents() -> Hashes:
        hashes = text_hashes(qrels.docid)
        for column in (qrels.aspect, qrels.subgroup):
            if column is not None:
                hashes = join(hashes, text_hashes(column))
        return hashes

    labels = as_numbers(qrels.relevance, name="relevance")
    rows = {"documents": documents, "labels": lambda: number_hashes(labels, name="relevance")}
    return _by_query(rows, dict.fromkeys(rows, len(labels)), qrels.qid, queries, y=labels)


def run_outputs(data: Fingerprint, run: Run) -> dict[str, Hashes]:
    """Return the ranking of each query in a run as one hash per kind.

    ``"documents"`` is of the list of documents and the judged ones of the query, ``"ranked"`` of
    the list alone: rows of the same documents in the same order have it under ``"documents"``.
    """
    ranked = _by_query(
        {"documents": lambda: text_hashes(run.docid)}, {"documents": len(run.docid)}, run.qid, None
    )
    level = tie_levels(ranked.codes, run.score)
    order = multisets(join(ranked.rows["documents"], level), ranked.codes, ranked.n_queries)
    if np.array_equal(ranked.names, data.names):
        own = order
    else:
        found = dict(zip(ranked.names.tolist(), order.tolist(), strict=True))
        own = np.array([found.get(name, 0) for name in data.names.tolist()], dtype=np.uint64)
    # The same list of documents under another query is another output.
    return {"documents": join(own, data.queries["documents"]), "ranked": own}


def tie_levels(codes: NDArray[np.intp], score: NDArray[np.float64]) -> Hashes:
    """Return, for each row, the number of distinct scores of its query that are greater than its own."""
    if (codes[1:] < codes[:-1]).any():
        order = order_of(codes)
        level = np.empty(len(codes), dtype=np.uint64)
        level[order] = tie_levels(codes[order], score[order])
        return level
    # Some queries at a time, so that what is sorted stays in the cache.
    edges = np.unique(np.searchsorted(codes, codes[::_SORTED_AT_ONCE]))
    parts = map(slice, edges, [*edges[1:], len(codes)])
    return np.concatenate(
        [_levels(codes[part], score[part]) for part in parts] or [np.empty(0, dtype=np.uint64)]
    )


def _levels(codes: NDArray[np.intp], score: NDArray[np.float64]) -> Hashes:
    # Rows of one score stand in any order. Two sorts of one key each are three times as fast as a
    # lexsort.
    order = np.argsort(-score)
    order = order[order_of(codes[order])]
    query, sorted_score = codes[order], score[order]
    new_query = np.append(True, query[1:] != query[:-1])
    total = np.cumsum(np.append(True, sorted_score[1:] != sorted_score[:-1]) | new_query)
    level = np.empty(len(order), dtype=np.uint64)
    # The running total goes on from query to query: subtract its value at the first row of each.
    level[order] = total - np.maximum.accumulate(np.where(new_query, total, 0))
    return level


def queries_of(qid: Any) -> tuple[Grouping, NDArray[np.intp]]:
    """Group rows by query, and return the place of each row's query too."""
    grouping = group_rows(qid)
    codes = np.repeat(np.arange(len(grouping.queries)), np.diff(grouping.offsets))
    if grouping.order is not None:
        grouped, codes = codes, np.empty_like(codes)
        codes[grouping.order] = grouped
    return grouping, codes


def _by_query(
    makers: dict[str, Callable[[], Hashes]],
    lengths: Mapping[str, int],
    qid: Any,
    queries: Mapping[Any, str] | None,
    *,
    without: Sequence[str] = (),
    **fields: Any,
) -> Fingerprint:
    """Group the rows by query; their hashes are made, and added up, when they are asked for."""
    grouping, codes = queries_of(qid)
    lengths = {**lengths, "qid": int(grouping.offsets[-1])}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{kind} has {length}" for kind, length in lengths.items())
        raise InvalidInput(
            f"the rows do not fit together: {found}", remedy="give one value per row"
        )
    if "documents" in makers and "labels" in makers:
        makers["judgments"] = lambda: join(rows["documents"], rows["labels"])
    rows = Lazy(makers, not_kept=("labels", "judgments"))

    def added(kind: str) -> Hashes:
        return multisets(rows[kind], codes, len(grouping.queries))

    hashes: dict[str, Callable[[], Hashes]] = {
        kind: partial(added, kind) for kind in makers if kind not in without
    }
    if queries is not None:
        texts = _query_texts(grouping.queries, queries)
        hashes["text"] = lambda: texts
    return Fingerprint(grouping.queries, codes, rows, Lazy(hashes), **fields)


def _query_texts(names: NDArray[Any], queries: Mapping[Any, str]) -> Hashes:
    # Case, width, ligatures and white space make no difference.
    texts = {str(name): text for name, text in queries.items() if isinstance(text, str)}
    found = [unicodedata.normalize("NFKC", texts.get(str(name), "")) for name in names.tolist()]
    normal = np.array([" ".join(text.casefold().split()) for text in found], dtype=object)
    return np.where(normal == "", np.uint64(0), text_hashes(normal))
