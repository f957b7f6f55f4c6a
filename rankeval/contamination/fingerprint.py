"""What a query is, but for its name: hashes that survive renamed ids and any order of rows and queries.

A query is known by some of four kinds of content, each the multiset of one hash a row:

``features``   the feature rows; finds data that is fitted or scored with whatever labels
``judgments``  the (document id, label) pairs
``documents``  the judged documents of a collection, whatever their labels; of rows with features not, since generated
               data sets number their documents alike
``labels``     the labels alone; weak, and weighed for the whole collection in `rankeval.contamination.evidence`

Each registered query carries bits of evidence per kind: how surprised one would be to meet the same rows in another
query by chance. Below 40 bits a query is not identifiable, and never a reason to refuse anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.hashing import Hashes, as_numbers, blocks, join, mix, number_hashes, row_hashes, text_hashes
from rankeval.errors import InvalidInput
from rankeval.io.columns import scores as as_scores
from rankeval.join.grouping import group_rows

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels
    from rankeval.collection.run import Run

IDENTIFIABLE_BITS = 40.0
"""Evidence that a query needs to count; 2^-40 is chance enough for collections of a million queries."""

STRONG = ("features", "documents", "judgments", "text")
"""Kinds of content that can identify one query on its own."""

_UNUSUAL_VALUE_BITS = 6.0
"""Evidence of a value with three or more significant digits, about log2(100); repeated ones count once a row."""


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The content of a collection, query by query, as hashes.

    Attributes
    ----------
    names : ndarray of shape (n_queries,)
        The ids the queries go by here; no part of any hash.
    codes : ndarray of int of shape (n_rows,)
        Place among `names` of the query of each row.
    rows : mapping of str to ndarray of uint64 of shape (n_rows,)
        Kind of content -> hash of each row.
    queries : mapping of str to ndarray of uint64 of shape (n_queries,)
        Kind of content -> hash of each query.
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
    def content(self) -> Hashes:
        """One hash a query over the strongest content and its labels."""
        for kind in ("features", "judgments", "documents"):
            if kind in self.rows:
                rows = self.rows[kind] if "labels" not in self.rows else join(self.rows[kind], self.rows["labels"])
                return _per_query(rows, self.codes, self.n_queries)
        return self.queries["labels"]

    @property
    def digest(self) -> str:
        """SHA-256 over the content of all queries, in no order."""
        return hashlib.sha256(b"rankeval content 1\n" + np.sort(self.content).astype("<u8").tobytes()).hexdigest()

    def canonical_order(self) -> NDArray[np.intp]:
        """Return the rows sorted by content, those of one query together: the same whatever order they came in."""
        rank = np.empty(self.n_queries, dtype=np.intp)
        rank[np.argsort(self.content, kind="stable")] = np.arange(self.n_queries)
        kind = next(kind for kind in ("features", "judgments", "documents", "labels") if kind in self.rows)
        columns = [self.rows[kind], rank[self.codes]]
        if "labels" in self.rows:
            columns.insert(0, self.rows["labels"])
        return np.lexsort(columns)

    def outputs(self, score: Any) -> dict[str, Hashes]:
        """Return, per kind of row, one hash a query of the order that scores put its rows in, ties included.

        Increasing transforms of the scores within a query change nothing. The order of labels is all that an
        evaluation can reveal; the orders of features and documents hold for other labels too.

        Parameters
        ----------
        score : array of shape (n_rows,)
            The scores.
        """
        scores = as_numbers(as_scores(score, "score"), name="score")
        if len(scores) != len(self.codes):
            raise InvalidInput(f"score has {len(scores)} values for {len(self.codes)} rows: give one a row")
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
        The text of the queries.

    Raises
    ------
    InvalidInput
        When parts differ in length or are not what they should be, or nothing is given.
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
    known = _by_query(rows, qid, queries)
    return replace(known, queries={kind: known.queries[kind] for kind in known.queries if kind != "documents"})


def fingerprint_qrels(qrels: Qrels, *, queries: Mapping[Any, str] | None = None) -> Fingerprint:
    """Fingerprint judgments.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    queries : mapping of query id to str, optional
        The text of the queries.
    """
    documents = text_hashes(qrels.docid)
    if qrels.aspect is not None:
        documents = join(documents, text_hashes(qrels.aspect))
    if qrels.subgroup is not None:
        documents = join(documents, text_hashes(qrels.subgroup))
    rows = {"documents": documents, "labels": number_hashes(qrels.relevance, name="relevance")}
    return _by_query(rows, qrels.qid, queries)


def run_outputs(known: Fingerprint, run: Run) -> dict[str, Hashes]:
    """Return one hash a query of the order in which a run has its documents.

    Parameters
    ----------
    known : Fingerprint
        Of the judgments that the run belongs to: names and content of the queries.
    run : Run
        The ranking. Its queries without judgments are left out.
    """
    ranked = _by_query({"documents": text_hashes(run.docid)}, run.qid, None)
    level = tie_levels(ranked.codes, run.score)
    order = _per_query(join(ranked.rows["documents"], level), ranked.codes, ranked.n_queries)
    found = dict(zip(ranked.names.tolist(), order.tolist(), strict=True))
    own = np.array([found.get(name, 0) for name in known.names.tolist()], dtype=np.uint64)
    return {"documents": join(own, known.queries["documents"])}


def tie_levels(codes: NDArray[np.intp], score: NDArray[np.float64]) -> Hashes:
    """Return, for each row, how many distinct scores of its query are above its own.

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
    level[order] = total - np.maximum.accumulate(np.where(new_query, total, 0))
    return level


def evidence_bits(known: Fingerprint, X: Any | None) -> dict[str, NDArray[np.float64]]:
    """Return, per strong kind of content, the bits of evidence that each query carries.

    A row that stands in c of Q queries is met in another query with a chance of about c / (Q + 1). That says little
    for a small collection, so a row of features that stands in one query only may instead count its unusual values
    (three or more significant digits), which no count over few queries can underrate.

    Parameters
    ----------
    known : Fingerprint
        The content.
    X : array, sparse matrix or DataFrame, optional
        The features themselves.
    """
    bits: dict[str, NDArray[np.float64]] = {}
    for kind in STRONG:
        if kind not in known.queries:
            continue
        if kind == "text":
            bits[kind] = _text_bits(known)
            continue
        row, count = _rows_in_queries(known.rows[kind], known.codes)
        surprise = np.log2((known.n_queries + 1) / count)
        total = _sums(known, row, surprise)
        if kind == "features" and X is not None and (total < IDENTIFIABLE_BITS).any():
            surprise = np.where(count == 1, np.maximum(surprise, _unusual_values(X)[row]), surprise)
            total = _sums(known, row, surprise)
        bits[kind] = total
    return bits


def _by_query(rows: dict[str, Hashes], qid: Any, queries: Mapping[Any, str] | None) -> Fingerprint:
    grouping = group_rows(qid)
    lengths = {kind: len(hashes) for kind, hashes in rows.items()} | {"qid": int(grouping.offsets[-1])}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{kind} has {length}" for kind, length in lengths.items())
        raise InvalidInput(f"the rows do not fit together: {found}; give one value a row")
    n_queries = len(grouping.queries)
    codes = np.repeat(np.arange(n_queries), np.diff(grouping.offsets))
    if grouping.order is not None:
        grouped, codes = codes, np.empty_like(codes)
        codes[grouping.order] = grouped
    if "documents" in rows and "labels" in rows:
        rows["judgments"] = join(rows["documents"], rows["labels"])
    hashes = {kind: _per_query(values, codes, n_queries) for kind, values in rows.items()}
    if queries is not None:
        hashes["text"] = _normal_texts(grouping.queries, queries)
    return Fingerprint(grouping.queries, codes, rows, hashes)


def _per_query(rows: Hashes, codes: NDArray[np.intp], n_queries: int) -> Hashes:
    """Hash the multiset of the row hashes of each query: a sum forgets the order."""
    total = np.zeros(n_queries, dtype=np.uint64)
    np.add.at(total, codes, mix(rows + np.uint64(0xD1B54A32D192ED03)))
    return join(total, np.bincount(codes, minlength=n_queries).astype(np.uint64))


def _rows_in_queries(rows: Hashes, codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return one row for each distinct (content, query), and in how many queries that content stands."""
    order = np.lexsort((codes, rows))
    content, query = rows[order], codes[order]
    new_content = np.ones(len(order), dtype=bool)
    new_content[1:] = content[1:] != content[:-1]
    new_pair = new_content.copy()
    new_pair[1:] |= query[1:] != query[:-1]
    group = np.cumsum(new_content[new_pair]) - 1
    return order[new_pair], np.bincount(group)[group]


def _sums(known: Fingerprint, row: NDArray[np.intp], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.bincount(known.codes[row], weights=values, minlength=known.n_queries).astype(np.float64)


def _unusual_values(X: Any) -> NDArray[np.float64]:
    """Return the bits of evidence in each row's distinct values of three or more significant digits."""
    bits = []
    for _, block in blocks(X):
        values = np.sort(np.abs(block.astype(np.float64)), axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            leading = values / 10.0 ** (np.floor(np.log10(values)) - 1)  # two digits before the point
            unusual = np.isfinite(leading) & (np.abs(leading - np.round(leading)) > 1e-4 * leading)
        unusual[:, 1:] &= values[:, 1:] != values[:, :-1]
        bits.append(_UNUSUAL_VALUE_BITS * unusual.sum(axis=1))
    return np.concatenate(bits) if bits else np.zeros(0)


def _normal_texts(names: NDArray[Any], queries: Mapping[Any, str]) -> Hashes:
    import unicodedata

    texts = {str(name): text for name, text in queries.items()}
    missing = [name for name in names.tolist() if str(name) not in texts]
    if missing:
        raise InvalidInput(f"queries= has no text for {len(missing)} of {len(names)} queries, such as {missing[0]!r}")
    normal = [" ".join(unicodedata.normalize("NFKC", texts[str(name)]).casefold().split()) for name in names.tolist()]
    return text_hashes(np.asarray(normal, dtype=object))


def _text_bits(known: Fingerprint) -> NDArray[np.float64]:
    """Return evidence of the query texts: one that stands alone identifies its query, a repeated one does not."""
    _, place, count = np.unique(known.queries["text"], return_inverse=True, return_counts=True)
    return np.where(count[place] == 1, IDENTIFIABLE_BITS, 0.0)
