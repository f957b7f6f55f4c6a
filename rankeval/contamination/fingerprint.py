"""Fingerprints: the content of a collection as 64-bit hashes, query by query.

A fingerprint is built in three layers. Take three rows of two queries::

    qid docid label features        rows (layer 1)                           queries (layer 2)
     7   d1     2   .5 1.0  ->  features a1  documents b1  labels c2  --+
     7   d2     0   .1 0.0  ->  features a2  documents b2  labels c0  --+->  7: features A  labels C  ...
     9   d1     1   .2 0.3  ->  features a3  documents b1  labels c1  ---->  9: features D  labels E  ...

    digest (layer 3) = SHA-256 over the sorted content hashes of all queries

Layer 1 hashes each row once per kind of content. Layer 2 adds up the row hashes of a query, so that their order does
not matter. Query ids enter no hash: codes only say which rows belong together. So renamed ids and any order of rows
and queries lead to the same hashes. The kinds of content are

``features``   the feature rows; they find data that is fitted or scored with other labels
``judgments``  pairs of document id and label
``documents``  the judged documents of a collection, whatever their labels
``labels``     the labels alone; weak evidence, weighed for the whole collection
``text``       the texts of the queries; in layer 2 only

The trap: generated data sets often give their documents the same ids (the third document of query 7 is "7-3"). So rows
with features have no ``documents`` among their signatures, or every two generated data sets would match.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.hashing import as_numbers, join, number_hashes, row_hashes, text_hashes
from rankeval.errors import InvalidInput
from rankeval.io.columns import scores as as_scores
from rankeval.join.grouping import group_rows
from rankeval.join.matching import Hashes, mixed

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The content of a collection as hashes.

    Attributes
    ----------
    names : ndarray of shape (n_queries,)
        The ids of the queries in this data; part of no hash.
    codes : ndarray of int of shape (n_rows,)
        The query of each row, as its place among `names`.
    rows : mapping of str to ndarray of uint64 of shape (n_rows,)
        Kind of content -> hash of each row.
    queries : mapping of str to ndarray of uint64 of shape (n_queries,)
        Kind of content -> signature of each query.
    """

    names: NDArray[Any]
    codes: NDArray[np.intp]
    rows: Mapping[str, Hashes]
    queries: Mapping[str, Hashes]

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.names)

    @property
    def strongest(self) -> str:
        """The kind of content by which rows are told from each other best."""
        return next(kind for kind in ("features", "judgments", "documents", "labels") if kind in self.rows)

    @cached_property
    def content(self) -> Hashes:
        """One hash per query, over its strongest content and its labels."""
        rows, labels = self.rows[self.strongest], self.rows.get("labels")
        if self.strongest == "labels":
            return self.queries["labels"]
        return _per_query(rows if labels is None else join(rows, labels), self.codes, self.n_queries)

    @property
    def digest(self) -> str:
        """SHA-256 over the content of all queries; their order does not matter."""
        return hashlib.sha256(b"rankeval content 1\n" + np.sort(self.content).astype("<u8").tobytes()).hexdigest()

    @property
    def names_by_content(self) -> NDArray[Any]:
        """The ids of the queries, sorted by content: the same queries in the same order under whatever ids."""
        return self.names[np.argsort(self.content, kind="stable")]

    def canonical_order(self) -> NDArray[np.intp]:
        """Return the rows sorted by content, the rows of a query together, whatever order they were given in."""
        rank = np.empty(self.n_queries, dtype=np.intp)
        rank[np.argsort(self.content, kind="stable")] = np.arange(self.n_queries)
        keys = [self.rows[self.strongest], rank[self.codes]]
        if "labels" in self.rows:  # rows of equal content and other labels need an order too
            keys.insert(0, self.rows["labels"])
        return np.lexsort(keys)

    def outputs(self, score: Any) -> dict[str, Hashes]:
        """Return the ranking of each query as one hash per kind of row, ties included.

        Increasing transforms of the scores of a query change nothing. The order of labels is all that an evaluation
        can reveal; the orders of features and documents hold for other labels too.

        Parameters
        ----------
        score : array of shape (n_rows,)
            The scores.
        """
        scores = as_numbers(as_scores(score, "score"), name="score")
        if len(scores) != len(self.codes):
            raise InvalidInput(
                f"score has {count(len(scores), 'value')} for {count(len(self.codes), 'row')}: give one per row"
            )
        level = tie_levels(self.codes, scores)
        return {
            kind: _per_query(join(self.rows[kind], level), self.codes, self.n_queries)
            for kind in ("features", "documents", "labels")
            if kind in self.rows
        }


def fingerprint(
    X: Any | None, y: Any | None, qid: Any, *, docid: Any | None = None, queries: Mapping[Any, str] | None = None
) -> Fingerprint:
    """Fingerprint rows.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n_rows, n_features), optional
        The features.
    y : array of shape (n_rows,), optional
        The labels.
    qid : array of shape (n_rows,)
        The query of each row.
    docid : array of shape (n_rows,), optional
        The document of each row.
    queries : mapping of query id to str, optional
        The texts of the queries.

    Raises
    ------
    InvalidInput
        If parts differ in length or hold wrong values, or all of X, y and docid are missing.
    """
    rows: dict[str, Hashes] = {}
    if X is not None:
        rows["features"] = row_hashes(X)
    if y is not None:
        rows["labels"] = number_hashes(y, name="y")
    if docid is not None:
        rows["documents"] = text_hashes(docid)
    if not rows:
        raise InvalidInput("nothing to fingerprint: give at least one of X, y and docid")
    data = _by_query(rows, qid, queries)
    return replace(data, queries={kind: data.queries[kind] for kind in data.queries if kind != "documents"})


def fingerprint_qrels(qrels: Qrels, *, queries: Mapping[Any, str] | None = None) -> Fingerprint:
    """Fingerprint judgments.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    queries : mapping of query id to str, optional
        The texts of the queries.
    """
    documents = text_hashes(qrels.docid)
    for column in (qrels.aspect, qrels.subgroup):
        if column is not None:
            documents = join(documents, text_hashes(column))
    rows = {"documents": documents, "labels": number_hashes(qrels.relevance, name="relevance")}
    return _by_query(rows, qrels.qid, queries)


def run_outputs(data: Fingerprint, run: Run) -> dict[str, Hashes]:
    """Return the ranking of each query in a run as one hash.

    Parameters
    ----------
    data : Fingerprint
        The judgments, which give the queries.
    run : Run
        The ranking. Its queries without judgments are left out.
    """
    ranked = _by_query({"documents": text_hashes(run.docid)}, run.qid, None)
    level = tie_levels(ranked.codes, run.score)
    order = _per_query(join(ranked.rows["documents"], level), ranked.codes, ranked.n_queries)
    found = dict(zip(ranked.names.tolist(), order.tolist(), strict=True))
    own = np.array([found.get(name, 0) for name in data.names.tolist()], dtype=np.uint64)
    # The same list of documents under another query is another output.
    return {"documents": join(own, data.queries["documents"])}


def tie_levels(codes: NDArray[np.intp], score: NDArray[np.float64]) -> Hashes:
    """Return, for each row, the number of distinct scores of its query that are greater than its own.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows,)
        The query of each row.
    score : ndarray of shape (n_rows,)
        The scores.
    """
    order = np.lexsort((-score, codes))
    query, sorted_score = codes[order], score[order]
    new_query = np.ones(len(order), dtype=bool)
    new_query[1:] = query[1:] != query[:-1]
    step = np.zeros(len(order), dtype=np.int64)
    step[1:] = (sorted_score[1:] != sorted_score[:-1]) & ~new_query[1:]
    total = np.cumsum(step)
    level = np.empty(len(order), dtype=np.uint64)
    # The running total goes on from query to query: subtract its value at the first row of each.
    level[order] = total - np.maximum.accumulate(np.where(new_query, total, 0))
    return level


def _by_query(rows: dict[str, Hashes], qid: Any, queries: Mapping[Any, str] | None) -> Fingerprint:
    """Add up the row hashes of each query."""
    grouping = group_rows(qid)
    lengths = {kind: len(hashes) for kind, hashes in rows.items()} | {"qid": int(grouping.offsets[-1])}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{kind} has {length}" for kind, length in lengths.items())
        raise InvalidInput(f"the rows do not fit together: {found}; give one value per row")
    n_queries = len(grouping.queries)
    codes = np.repeat(np.arange(n_queries), np.diff(grouping.offsets))
    if grouping.order is not None:
        grouped, codes = codes, np.empty_like(codes)
        codes[grouping.order] = grouped
    if "documents" in rows and "labels" in rows:
        rows["judgments"] = join(rows["documents"], rows["labels"])
    hashes = {kind: _per_query(values, codes, n_queries) for kind, values in rows.items()}
    if queries is not None:
        hashes["text"] = _query_texts(grouping.queries, queries)
    return Fingerprint(grouping.queries, codes, rows, hashes)


def _per_query(rows: Hashes, codes: NDArray[np.intp], n_queries: int) -> Hashes:
    """Hash the multiset of the row hashes of each query: a sum does not depend on their order."""
    total = np.zeros(n_queries, dtype=np.uint64)
    # The constant keeps rows that hash to zero in the sum.
    np.add.at(total, codes, mixed(rows + np.uint64(0xD1B54A32D192ED03)))
    return join(total, np.bincount(codes, minlength=n_queries).astype(np.uint64))


def _query_texts(names: NDArray[Any], queries: Mapping[Any, str]) -> Hashes:
    """Hash the texts of queries; case, width, ligatures and white space make no difference."""
    texts = {str(name): text for name, text in queries.items()}
    missing = [name for name in names.tolist() if str(name) not in texts]
    if missing:
        raise InvalidInput(
            f"queries= has no text for {len(missing)} of {count(len(names), 'query')}, such as {missing[0]!r}"
        )
    normal = [" ".join(unicodedata.normalize("NFKC", texts[str(name)]).casefold().split()) for name in names.tolist()]
    return text_hashes(np.asarray(normal, dtype=object))
