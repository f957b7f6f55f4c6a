"""Truth and ranking, joined by a convention: from arrays or files to chunks of `Judged`.

The result does not know which measures will be asked for; no measure knows what happened here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import shown
from rankeval.collection.alignment import check_rows
from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io import columns
from rankeval.io.columns import places_of
from rankeval.io.ids import as_typed, comparable
from rankeval.join.aspects import JoinedAspects
from rankeval.join.flat import Ints
from rankeval.join.grouping import Grouping, group_rows
from rankeval.join.judged import BELOW_ALL, NO_GROUPS, Groups, Judged, with_unlike_labels
from rankeval.join.ranking import rank_rows

CHUNK = 2**18
"""Rows in a chunk: large enough that calls cost little, small enough that memory does not count."""

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Joined:
    """Rows of a ranking with their judgments, grouped by query; ranked chunk by chunk.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        The queries that count, ascending.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query's rows begin among the grouped rows.
    order : ndarray or None
        Row of the input at each grouped place; None when the input stands grouped.
    score, relevance : ndarray
        The input's columns, in its own order.
    judged : ndarray of bool or None
        Which rows of the input have a judgment; None when all have.
    unretrieved, unretrieved_offsets : ndarray
        Labels of judged documents that were not ranked, grouped by query.
    convention : Convention
        With its rule on judgments resolved.
    lacking : ndarray of bool of shape (n_queries,), optional
        Which of the queries the ranking lacks; None when it lacks none.
    docid : array, optional
        Documents of the input's rows, read for tied rows only.
    aspects : JoinedAspects, optional
        The judgments by aspect, where the qrels have such.
    separate_unjudged : bool
        Give unjudged rows a level below all others, for measures to which a judged 0 is worth something; otherwise
        they are of level 0 and known by `judged` alone.
    ascending : bool
        Whether ``ties="docid"`` goes by ascending ids, as trec_eval does for preferences alone.
    identity : ndarray of uint64 of shape (n_queries,), optional
        A sum over hashes of each query's judged documents, for the digest.
    excluded : mapping of str to tuple
        Reason -> queries left out.
    rule_counts : dict of str to int
        How many rows or queries each rule had a say in; filled up while chunks are made.
    """

    queries: NDArray[Any]
    offsets: Ints
    order: Ints | None
    score: NDArray[Any]
    relevance: NDArray[Any]
    convention: Convention
    judged: NDArray[np.bool_] | None = None
    unretrieved: NDArray[Any] = field(default_factory=lambda: _NONE)
    unretrieved_offsets: Ints | None = None
    lacking: NDArray[np.bool_] | None = None
    docid: Any | None = None
    aspects: JoinedAspects | None = None
    separate_unjudged: bool = False
    ascending: bool = False
    identity: NDArray[np.uint64] | None = None
    excluded: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    rule_counts: dict[str, int] = field(default_factory=dict)

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    def chunks(self) -> Iterator[tuple[slice, Judged, Groups]]:
        """Yield the queries of each chunk, their judged rows, and every group of tied rows."""
        first = 0
        while first < self.n_queries:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + CHUNK, side="right")) - 1
            last = min(max(last, first + 1), self.n_queries, first + CHUNK)
            yield slice(first, last), *self._chunk(first, last)
            first = last

    def _chunk(self, first: int, last: int) -> tuple[Judged, Groups]:
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        rows = slice(begin, end) if self.order is None else self.order[begin:end]
        offsets = self.offsets[first : last + 1] - begin
        judged = None if self.judged is None else self.judged[rows]

        score = self._checked_scores(rows)
        labels, rest, rest_query = self.relevance[rows], _NONE, _NONE
        if self.unretrieved_offsets is not None:
            upto = self.unretrieved_offsets[first : last + 1]
            rest = self.unretrieved[upto[0] : upto[-1]]
            rest_query = np.repeat(np.arange(last - first), np.diff(upto))
        levels, code, rest_code = self._coded(labels, rest, rows)
        if self.separate_unjudged and judged is not None and self.convention.unjudged != "highest":
            levels, rest_code = np.concatenate(([BELOW_ALL], levels)), rest_code + 1
            code = np.where(judged | (labels < 0), code + 1, 0)  # below zero: pooled, which some measures count

        counts = _count_labels(code, offsets, len(levels), judged)
        if len(rest_code):
            cells = rest_query * len(levels) + rest_code
            counts += np.bincount(cells, minlength=counts.size).reshape(counts.shape)

        ties = self.convention.ties
        depth, keep = self.convention.depth, None
        ranking = rank_rows(
            score,
            code,
            offsets,
            n_levels=len(levels),
            by_position=ties in ("docid", "stable"),
            with_rows=ties == "docid" or judged is not None,
        )
        ranked, row = ranking.code, ranking.row
        if ties == "docid" and len(ranking.ties.start):
            row = self._by_docid(row, ranking.ties, rows)
            ranked = code[row]
        if ties == "best":  # they stand by label, the lowest first
            turned = _turned(len(ranked), ranking.ties)
            ranked, row = ranked[turned], None if row is None else row[turned]
        if judged is not None:
            judged = judged[row]
        mixed = with_unlike_labels(ranking.ties, ranked)
        self._count("ties", int((mixed.end - mixed.start).sum()))
        if depth is not None:
            keep = np.arange(len(ranked)) - np.repeat(offsets[:-1], np.diff(offsets)) < depth
            self._count("depth", int(len(keep) - keep.sum()))
            if judged is not None and self.convention.unjudged == "skip":
                keep &= judged
            ranked = ranked[keep]
            judged = None if judged is None else judged[keep]
            offsets = np.concatenate(([0], np.cumsum(keep)))[offsets]
        chunk = Judged(
            offsets=offsets,
            levels=levels,
            code=ranked,
            counts=counts,
            groups=mixed if ties == "expected" else NO_GROUPS,
            judged=judged,
            ties=ranking.ties if ties == "expected" else NO_GROUPS,
            aspects=None
            if self.aspects is None
            else self.aspects.block(rows, row, keep, self.offsets[first : last + 1], slice(first, last)),
            queries=self.queries[first:last],
        )
        return chunk, ranking.ties

    def _count(self, rule: str, number: int) -> None:
        self.rule_counts[rule] = self.rule_counts.get(rule, 0) + number

    def _checked_scores(self, rows: slice | Ints) -> NDArray[np.float64]:
        score = np.asarray(self.score[rows], dtype=np.float64)
        # A sum is finite if every part is; only when it is not do we look closer.
        with np.errstate(over="ignore", invalid="ignore"):
            total = score.sum()
        if not np.isfinite(total) and not np.isfinite(score).all():
            at = int(np.argmin(np.isfinite(score)))
            row = rows.start + at if isinstance(rows, slice) else int(rows[at])
            raise InvalidInput(
                f"y_score: row {row} is {score[at]}; scores must be finite numbers, mend or drop the row"
            )
        if self.convention.score_dtype == "float32":
            with np.errstate(over="ignore"):  # beyond its range all are infinite, and tied, as in C
                score = score.astype(np.float32).astype(np.float64)
        return score

    def _coded(self, labels: NDArray[Any], rest: NDArray[Any], rows: slice | Ints) -> tuple[NDArray[Any], Ints, Ints]:
        """Return the distinct labels, and the labels of rows and of unretrieved documents as indices into them."""
        if labels.dtype.kind == "f" and not _whole(labels):
            at = int(np.argmin(np.isfinite(labels)))
            if not np.isfinite(labels[at]):
                row = rows.start + at if isinstance(rows, slice) else int(rows[at])
                raise InvalidInput(f"y_true: row {row} is {labels[at]}; relevance must be a finite number")
            return self._coded_by_value(labels, rest)
        if not _whole(rest):
            return self._coded_by_value(labels, rest)
        code, rest_code = labels.astype(np.int64, copy=False), rest.astype(np.int64, copy=False)
        lowest = min(int(code.min(initial=0)), int(rest_code.min(initial=0)))
        if lowest < 0:
            self._negative(lowest, int((code < 0).sum() + (rest_code < 0).sum()))
        highest = max(int(code.max(initial=0)), int(rest_code.max(initial=0)))
        if highest - lowest > 63:
            return self._coded_by_value(code, rest_code)
        if lowest < 0:
            code, rest_code = code - lowest, rest_code - lowest
        return np.arange(lowest, highest + 1), code, rest_code

    def _coded_by_value(self, labels: NDArray[Any], rest: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints]:
        both = np.concatenate([labels, rest])
        below = both < 0
        if below.any():
            self._negative(both.min(), int(below.sum()))
        levels, code = np.unique(np.append(both, both.dtype.type(0)), return_inverse=True)
        return levels, code[: len(labels)], code[len(labels) : -1]

    def _negative(self, lowest: float, number: int) -> None:
        if self.convention.negative == "error":
            raise InvalidInput(
                f"relevance: found {number} labels below zero (down to {lowest}), which the convention "
                f"{self.convention.name!r} refuses; set them to 0 or choose a convention with negative='zero'"
            )
        self._count("negative", number)

    def _by_docid(self, row: Ints | None, ties: Groups, rows: slice | Ints) -> Ints:
        """Return the rows with tied ones by their document ids, compared as bytes: descending, unless `ascending`."""
        if self.docid is None:
            raise InvalidInput(
                "ties='docid' needs docid=, one document id for each row; or choose another rule for ties"
            )
        assert row is not None
        size = ties.end - ties.start
        group = np.repeat(np.arange(len(size)), size)
        place = np.arange(int(size.sum())) - (np.cumsum(size) - size)[group] + ties.start[group]
        inside = row[place]
        names = _byte_ranks(self.docid, inside + rows.start if isinstance(rows, slice) else rows[inside])
        row[place] = inside[np.lexsort((names if self.ascending else -names, group))]
        return row

    def digest_of_queries(self) -> Any:
        """Return a SHA-256 that has been fed with the query ids, for digests over them."""
        ids = self.queries
        text = (
            "\x00".join(map(str, ids.tolist())) if ids.dtype.kind in "OU" else ids.astype(ids.dtype.newbyteorder("<"))
        )
        return hashlib.sha256(text.encode() if isinstance(text, str) else text.tobytes())


def _count_labels(code: Ints, offsets: Ints, n_levels: int, judged: NDArray[np.bool_] | None) -> Ints:
    """Return how many rows of each query have each label."""
    lengths = np.diff(offsets)
    bits = int(lengths.max(initial=0)).bit_length()
    if judged is None and len(lengths) and int(lengths.min()) > 0 and bits * n_levels <= 62:
        # One sum counts all labels, each in bits of its own: half the time of counting cells.
        place = np.arange(n_levels) * bits
        packed = np.add.reduceat((np.int64(1) << place).take(code), offsets[:-1])
        counts: Ints = packed[:, None] >> place & np.int64((1 << bits) - 1)
        return counts
    cell = np.repeat(np.arange(0, len(lengths) * n_levels, n_levels), lengths)
    cell += code
    if judged is not None:
        cell = cell[judged]
    counted: Ints = np.bincount(cell, minlength=len(lengths) * n_levels).reshape(len(lengths), n_levels)
    return counted


def _whole(values: NDArray[Any]) -> bool:
    """Say whether all values are whole numbers that fit an int64."""
    if values.dtype.kind in "iub":
        return True
    with np.errstate(invalid="ignore"):
        return bool((values.astype(np.int64) == values).all())


def _turned(n_rows: int, ties: Groups) -> Ints:
    """Return the rows with each tie group turned round."""
    size = ties.end - ties.start
    place = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size - ties.start, size)
    order = np.arange(n_rows)
    order[place] = np.repeat(ties.start + ties.end - 1, size) - place
    return order


def _byte_ranks(docid: Any, rows: Ints) -> Ints:
    """Return the place of each row's document id in ascending order of bytes."""
    if isinstance(docid, (pa.Array, pa.ChunkedArray)):
        names = docid.take(places_of(rows)).to_pylist()
    else:
        names = np.asarray(docid)[rows].tolist()
    _, place = np.unique(np.array([str(name).encode() for name in names], dtype=object), return_inverse=True)
    return place


def join_arrays(
    y: ArrayLike, score: ArrayLike, qid: ArrayLike, *, docid: ArrayLike | None, convention: Convention
) -> Joined:
    """Join labels and scores that stand row by row.

    Parameters
    ----------
    y, score, qid : array of shape (n_rows,)
        Relevance, score and query of each row.
    docid : array of shape (n_rows,), optional
        Document of each row; needed by ``ties="docid"`` only, and checked: none stands twice in a query.
    convention : Convention
        The rules.

    Raises
    ------
    InvalidInput
        When the columns are empty, differ in length or are no numbers, ids are missing or of several types, or a
        document stands twice in a query.
    """
    check_rows(y_true=y, y_score=score, qid=qid, docid=docid)
    relevance, scores = columns.labels(y, "y_true"), columns.scores(score, "y_score")
    ids = qid if isinstance(qid, (pa.Array, pa.ChunkedArray)) else as_typed(qid)
    if not isinstance(ids, (pa.Array, pa.ChunkedArray)) and ids.ndim != 1:
        raise QueryIdError(f"qid: expected one id for each row, found an array of shape {np.shape(ids)}")
    lengths = {"y_true": len(relevance), "y_score": len(scores), "qid": len(ids)}
    if docid is not None:
        if not hasattr(docid, "__len__"):
            raise InvalidInput(f"docid: expected one id for each row, found {shown(docid)}")
        lengths["docid"] = len(docid)  # type: ignore[arg-type] # as was asked just now
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {number}" for name, number in lengths.items())
        raise InvalidInput(f"expected one value a row in every array, found unequal lengths: {found}")
    if not len(relevance):
        raise InvalidInput("y_true, y_score and qid are empty: give a row for each ranked document")
    grouping = group_rows(ids)
    if docid is not None:
        _refuse_twice(docid, grouping)
    marks = convention.negative == "unjudged" and bool((relevance < 0).any())
    return Joined(
        queries=grouping.queries,
        offsets=grouping.offsets,
        order=grouping.order,
        score=scores,
        relevance=relevance,
        # The ranked rows are all the judgments that arrays hold.
        convention=convention.resolved("rows"),
        judged=relevance >= 0 if marks else None,
        docid=docid,
    )


def _refuse_twice(docid: ArrayLike, grouping: Grouping) -> None:
    """Refuse a document that stands twice in a query, as in the files of a collection."""
    ids, names = comparable(docid, "docid")
    if not len(ids):
        return
    narrow = ids.dtype.kind in "iu" and int(ids.max()) - int(ids.min()) < 2**31
    number = (ids - ids.min()).astype(np.int64) if narrow else np.unique(ids, return_inverse=True)[1]
    number = number if grouping.order is None else number[grouping.order]
    query = np.repeat(np.arange(len(grouping.queries)), np.diff(grouping.offsets))
    key = query * (int(number.max()) + 1) + number
    ordered = np.sort(key)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        places = np.flatnonzero(key == ordered[twice[0]])[:2]
        rows = places if grouping.order is None else grouping.order[places]
        document = ids[rows[0]] if names is None else names[ids[rows[0]]]
        raise InvalidInput(
            f"docid: document {str(document)!r} stands twice in query {str(grouping.queries[query[places[0]]])!r}, in "
            f"rows {rows[0]} and {rows[1]} ({len(twice)} such rows in all); keep one row for each document of a query"
        )
