"""Truth and ranking, joined by a convention, and ranked chunk by chunk into `Judged`.

`Joined` holds the input's columns as they were given. `order` and `offsets` say which rows belong
to a query, so nothing is copied until a chunk of about 520,000 rows is taken:

    columns   score      relevance      judged         (in the input's order)
       |  rows of the chunk: order[offsets[first] : offsets[last]]
       v
    labels -> codes and counts -> rank order -> cut at the convention's depth -> Judged -> kernels

Arrays and collections differ here in two things only. Arrays hold no judgments but those of their
rows. A collection also has judged documents that were not retrieved: they are counted
(`Judged.counts`) and have no rank.

The trap: the levels of a chunk are those of its own labels. A code means nothing outside its chunk.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import count
from rankeval.collection.convention import Convention
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.io.columns import comparable, is_text_type, row_numbers
from rankeval.join.aspects import JoinedAspects
from rankeval.join.by_rank import MOST_PADDED, ByRank
from rankeval.join.byte_order import order_tied_by_bytes
from rankeval.join.flat import (
    NO_ROWS,
    Floats,
    Grouping,
    Ints,
    group_rows,
    offsets_of,
    query_blocks,
    spread,
)
from rankeval.join.judged import (
    BELOW_ALL,
    NO_GROUPS,
    Column,
    Judged,
    TiedGroups,
    with_unlike_labels,
)
from rankeval.join.ranking import Ranked, rank_rows
from rankeval.join.repeats import refuse_repeats

CHUNK = 2**19
"""Rows in a chunk: calls then cost little (bench_arrays A, C), and memory does not count."""

DEEPEST = 2**40
"""Deeper than any list."""

_ROLE = "columns"

_FEW_LABELS = 64
"""Whole labels over so short a range are counted off from the lowest, and not sorted."""

_MANY_QUERIES = 256
"""With fewer queries the calls of a table by rank, one a rank, cost more than their arithmetic."""

_BY_POSITION = "docid", "stable"
"""Rules of tied rows that do not look at their labels."""

_LARGEST = np.finfo(np.float64).max
"""In place of infinity, which is no score."""


@dataclass(frozen=True, eq=False)
class Joined:
    """Rows of a ranking with their judgments, grouped by query."""

    queries: NDArray[Any]  # (n_queries,): The queries that count, ascending
    offsets: Ints  # (n_queries + 1,): Where each query's rows begin among the grouped rows
    # Row of the input at each grouped place; None if the input is already grouped
    order: Ints | None
    score: NDArray[Any]  # The input's columns, in its own order
    relevance: NDArray[Any]
    convention: Convention  # The rules, with `judgments` resolved
    judged: NDArray[np.bool_] | None = None  # Rows of the input with a judgment; None if all
    # Labels of judged documents that were not retrieved, grouped by query
    unretrieved: NDArray[Any] = field(default_factory=lambda: NO_ROWS)
    unretrieved_offsets: Ints | None = None
    lacking: NDArray[np.bool_] | None = None  # (n_queries,): Not ranked; None: all are
    docid: Any | None = None  # Documents of the input's rows, read for tied rows only
    columns: Mapping[str, Floats] = field(default_factory=dict)  # (n_rows,): Read by measures
    reach: int = DEEPEST  # The deepest rank at which they read an untied row
    aspects: JoinedAspects | None = None  # The judgments by aspect, if the qrels have aspects
    # Give unjudged rows a level below all others, for measures that value a judged 0. Otherwise
    # they have level 0, and only `judged` tells them apart.
    separate_unjudged: bool = False
    ascending: bool = False  # With ties="docid", as trec_eval orders ids for preferences
    # (n_queries,): A sum over hashes of each query's judged documents, for the digest
    identity: NDArray[np.uint64] | None = None
    excluded: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # Reason -> queries
    # (n_queries,): How many rows of each query a rule affected, or 1 for the query itself; complete
    # once all chunks are made
    rule_counts: dict[str, Ints] = field(default_factory=dict)
    # The same for the queries that were left out, all together
    left_out_counts: Mapping[str, int] = field(default_factory=dict)
    # Signs of a mistake in the input, as `QueryFacts.signs`
    signs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    truth_name: str = "truth"  # The caller's name of the judgments, for messages

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    def beside_ranks(self, rank: Any) -> Joined:
        """Return this with a sign if the scores run against a column of ranks of the input."""
        rows = slice(None) if self.order is None else self.order
        query = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        is_sign = columns.runs_against(np.asarray(rank)[rows], query, self.score[rows])
        return replace(self, signs={**self.signs, "rank": ()}) if is_sign else self

    def without(self, own: list[Any], of_judgments: Sequence[Any] = ()) -> Joined:
        """Return this with counts of the documents left out that were their own query, given their queries."""
        rules: dict[str, Ints] = {}
        others: dict[str, int] = {}
        left_out = {"own_document": [*own, *of_judgments], "own_judgment": of_judgments}
        for rule, queries in left_out.items():
            number = Counter(queries)
            rules[rule] = np.array([number[query] for query in self.queries.tolist()], np.int64)
            others[rule] = len(queries) - int(rules[rule].sum())
        return replace(
            self,
            rule_counts=self.rule_counts | rules,
            left_out_counts={**self.left_out_counts, **others},
        )

    def chunks(self) -> Iterator[tuple[slice, Judged, TiedGroups]]:
        """Yield the queries of each chunk, their rows as `Judged`, and all groups of tied rows."""
        for queries in query_blocks(self.offsets, CHUNK):
            begin, end = self.offsets[queries.start], self.offsets[queries.stop]
            rows = slice(begin, end) if self.order is None else self.order[begin:end]
            offsets = self.offsets[queries.start : queries.stop + 1] - begin
            yield (queries, *self._chunk(queries, rows, offsets))

    def chunks_by_length(self) -> Iterator[tuple[Ints, Judged, TiedGroups]]:
        """Yield the same, with lists of similar length in one chunk: these fit a table by rank.

        Queries are numbers here. If lists are similar as they stand, the chunks are those of
        `chunks`.
        """
        lengths, blocks = np.diff(self.offsets), list(query_blocks(self.offsets, CHUNK))
        padded = sum(int(lengths[block].max()) * (block.stop - block.start) for block in blocks)
        if padded <= MOST_PADDED * self.offsets[-1]:
            for queries, chunk, ties in self.chunks():
                yield np.arange(queries.start, queries.stop), chunk, ties
            return
        by_length = np.argsort(lengths, kind="stable")
        for block in query_blocks(offsets_of(lengths[by_length]), CHUNK):
            numbers = by_length[block]
            rows, _ = spread(self.offsets[numbers], lengths[numbers])
            rows = rows if self.order is None else self.order[rows]
            yield (numbers, *self._chunk(numbers, rows, offsets_of(lengths[numbers])))

    def _chunk(
        self, queries: slice | Ints, rows: slice | Ints, offsets: Ints
    ) -> tuple[Judged, TiedGroups]:
        is_judged = None if self.judged is None else _taken(self.judged, rows)
        levels, code, unretrieved = self._labels(queries, rows, offsets, is_judged)
        ranked = self._ranked(rows, code, offsets, len(levels))
        flat, ties, by_rank = ranked.code, ranked.ties, ranked.by_rank
        if flat is not None and len(offsets) > _MANY_QUERIES:
            by_rank = ByRank.of(flat, offsets)
        if is_judged is not None:
            is_judged = is_judged[ranked.row]
        if by_rank is not None and is_judged is None:
            counts = by_rank.counts(len(levels), np.diff(offsets))
        else:
            assert flat is not None
            counts = _count_labels(flat, offsets, len(levels), is_judged)
        if unretrieved is not None:
            counts += unretrieved
        open_ties = self.convention.ties == "expected"
        read = {
            name: self._column(column, rows, ranked, offsets)
            for name, column in self.columns.items()
        }
        chunk = Judged(
            offsets=offsets,
            levels=levels,
            flat=flat,
            counts=counts,
            groups=NO_GROUPS,
            judged=is_judged,
            ties=ties if open_ties else NO_GROUPS,
            queries=self.queries[queries],
            by_rank=by_rank,
            columns=read,
        )
        if self.convention.ties in _BY_POSITION:
            unlike = with_unlike_labels(ties, chunk.code)
        else:  # tied rows stand by label
            first = chunk.codes_at(ties.start, ties.query)
            unlike = ties.of(first != chunk.codes_at(ties.end - 1, ties.query))
        n_tied = np.bincount(unlike.query, unlike.end - unlike.start, len(offsets) - 1)
        self._count("ties", queries, n_tied)
        if open_ties:
            chunk.groups = unlike
        keep = self._kept(queries, offsets, is_judged)
        if keep is not None:
            chunk = chunk.kept(keep)
        if self.aspects is not None:
            assert ranked.row is not None
            unretrieved_places = self._unretrieved_of(queries)
            chunk.aspects = self.aspects.block(rows, ranked.row, keep, offsets, unretrieved_places)
        return chunk, ties

    def _column(self, column: Floats, rows: slice | Ints, ranked: Ranked, offsets: Ints) -> Column:
        whole = column[rows] if isinstance(rows, slice) else column

        def at(query: Ints, rank: Ints) -> Floats:
            place = ranked.rows_at(query, rank, offsets)
            return whole.take(place if isinstance(rows, slice) else rows[place], mode="clip")

        return Column(at, offsets)

    def _labels(
        self,
        queries: slice | Ints,
        rows: slice | Ints,
        offsets: Ints,
        is_judged: NDArray[np.bool_] | None,
    ) -> tuple[NDArray[Any], Ints, Ints | None]:
        """Return the distinct labels, rows' codes into them, and counts of those not retrieved."""
        labels, n_queries = _taken(self.relevance, rows), len(offsets) - 1
        place, unretrieved_query = self._unretrieved_of(queries)
        unretrieved = self.unretrieved[place]
        both = np.concatenate([labels, unretrieved]) if len(unretrieved) else labels
        levels, codes = self._coded(both)
        if levels[0] < 0:
            query = np.repeat(np.arange(n_queries), np.diff(offsets))
            negative = np.concatenate([query, unretrieved_query])[both < 0]
            self._count("negative", queries, np.bincount(negative, minlength=n_queries))
        code, unretrieved_code = codes[: len(labels)], codes[len(labels) :]
        is_apart = self.separate_unjudged and self.convention.unjudged != "highest"
        if is_apart and is_judged is not None:
            levels, unretrieved_code = np.concatenate(([BELOW_ALL], levels)), unretrieved_code + 1
            # A label below zero without a judgment marks a pooled document, which some measures
            # count.
            code = np.where(is_judged | (labels < 0), code + 1, 0)
        if not len(unretrieved):
            return levels, code, None
        cells = unretrieved_query * len(levels) + unretrieved_code
        counts = np.bincount(cells, minlength=n_queries * len(levels))
        return levels, code, counts.reshape(n_queries, len(levels))

    def _unretrieved_of(self, queries: slice | Ints) -> tuple[Ints, Ints]:
        """Return places of judged documents not retrieved, and the query of each in the chunk."""
        if (offsets := self.unretrieved_offsets) is None:
            return NO_ROWS, NO_ROWS
        return spread(offsets[:-1][queries], np.diff(offsets)[queries])

    def _coded(self, labels: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
        """Return the distinct labels, zero among them, and each label as an index into them."""
        labels = columns.whole(labels)
        if labels.dtype.kind != "f":
            labels = labels.astype(np.int64, copy=False)
            # As unsigned numbers, labels below zero are great ones.
            highest = int(labels.view(np.uint64).max(initial=0))
            if highest < _FEW_LABELS:  # one look at the labels, and no sort (bench_arrays A)
                return np.arange(highest + 1), labels
        lowest, highest = labels.min(initial=0), labels.max(initial=0)
        if lowest < 0 and self.convention.negative == "error":
            negative = count(int((labels < 0).sum()), "label")
            raise InvalidInput(
                f"found {negative} below zero (down to {lowest}), which the convention "
                f"{self.convention.name!r} refuses",
                argument=self.truth_name,
                remedy="set them to 0 or choose a convention with negative='zero'",
            )
        if labels.dtype.kind != "f" and int(highest) - int(lowest) < _FEW_LABELS:
            return np.arange(lowest, highest + 1), labels - lowest
        levels, code = np.unique(np.append(labels, labels.dtype.type(0)), return_inverse=True)
        return levels, code[:-1]

    def _ranked(self, rows: slice | Ints, code: Ints, offsets: Ints, n_levels: int) -> Ranked:
        ties = self.convention.ties
        score = np.asarray(_taken(self.score, rows), dtype=np.float64)
        if self.convention.score_dtype == "float32":
            with np.errstate(over="ignore"):  # beyond float32 all are infinite and tied, as in C
                score = score.astype(np.float32).astype(np.float64)
            score = score.clip(-_LARGEST, _LARGEST)  # keys are finite numbers
        head = self.reach if self.convention.depth is None else DEEPEST
        ranked = rank_rows(
            score,
            code,
            offsets,
            n_levels=n_levels,
            by_position=ties in _BY_POSITION,
            highest_first=ties == "best",
            with_rows=ties == "docid" or self.judged is not None,
            with_head=head if self.columns else 0,
            with_table=len(offsets) > _MANY_QUERIES,
        )
        if ties != "docid" or not len(ranked.ties.start):
            return ranked
        if self.docid is None:
            lacking = "ties='docid' needs docid=, one document id for each row"
            raise InvalidInput(lacking, remedy="or choose another rule for ties")
        assert ranked.row is not None
        # Ids are read for tied rows alone: a column of text is slow to read.
        ids_of = partial(self._ids_of, rows)
        order_tied_by_bytes(ranked.row, ranked.ties, ids_of, ascending=self.ascending)
        return Ranked(code[ranked.row], ranked.row, ranked.ties)

    def _kept(
        self, queries: slice | Ints, offsets: Ints, is_judged: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_] | None:
        """Return which ranks the convention's depth leaves; None if it leaves all."""
        if self.convention.depth is None:
            return None
        # Unjudged rows are skipped only after the cut: they take up ranks until then.
        lengths, depth = np.diff(offsets), self.convention.depth
        keep = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) < depth
        self._count("depth", queries, np.maximum(lengths - depth, 0))
        if is_judged is None or self.convention.unjudged != "skip":
            return keep
        return keep & is_judged

    def _count(self, rule: str, queries: slice | Ints, numbers: NDArray[Any]) -> None:
        counts = self.rule_counts.setdefault(rule, np.zeros(self.n_queries, dtype=np.int64))
        counts[queries] = numbers

    def _ids_of(self, rows: slice | Ints, tied: Ints) -> pa.Array:
        at = tied + rows.start if isinstance(rows, slice) else rows[tied]
        if not isinstance(self.docid, (pa.Array, pa.ChunkedArray)):
            ids = np.asarray(self.docid)[at].tolist()
        elif is_text_type((ids := columns.combined(self.docid.take(row_numbers(at)))).type):
            return ids
        return pa.array([str(name) for name in columns.as_list(ids)], pa.large_string())


def digest_of_queries(ids: NDArray[Any]) -> Any:
    """Return a SHA-256 fed with query ids, for digests over them."""
    if ids.dtype.kind in "OU":
        return hashlib.sha256("\x00".join(map(str, ids.tolist())).encode())
    return hashlib.sha256(ids.astype(ids.dtype.newbyteorder("<")).tobytes())


def _count_labels(
    code: NDArray[np.uint8] | Ints,
    offsets: Ints,
    n_levels: int,
    is_judged: NDArray[np.bool_] | None,
) -> Ints:
    lengths = np.diff(offsets)
    bits = int(lengths.max(initial=0)).bit_length()
    if is_judged is None and len(lengths) and int(lengths.min()) > 0 and bits * n_levels <= 62:
        # One sum counts all labels, each in bits of its own: half the time of counting cells
        # (bench_arrays A).
        place = np.arange(n_levels) * bits
        packed = np.add.reduceat((np.int64(1) << place).take(code), offsets[:-1])
        return packed[:, None] >> place & np.int64((1 << bits) - 1)
    cell = np.repeat(np.arange(0, len(lengths) * n_levels, n_levels), lengths)
    cell += code
    if is_judged is not None:
        cell = cell[is_judged]
    return np.bincount(cell, minlength=len(lengths) * n_levels).reshape(len(lengths), n_levels)


def number_column(values: ArrayLike, name: str) -> Floats:
    """Return a column that a measure reads as floats."""
    numbers = columns.scores(values, column_role(name))
    columns.refuse_unbounded(numbers, column_role(name))
    return numbers.astype(np.float64, copy=False)


def column_role(column: str) -> str:
    """Return the argument that a column is, in messages and among the columns of a file."""
    return f"{_ROLE}[{column!r}]"


def columns_of_roles(roles: Iterable[str]) -> dict[str, str]:
    """Return the roles that `column_role` made, by the names of the columns."""
    of_columns = [role for role in roles if role.startswith(f"{_ROLE}[")]
    return {ast.literal_eval(role.removeprefix(_ROLE))[0]: role for role in of_columns}


def join_arrays(
    y: ArrayLike,
    score: ArrayLike,
    qid: ArrayLike,
    *,
    docid: ArrayLike | None,
    convention: Convention,
    read: Mapping[str, Any] = MappingProxyType({}),
    arguments: tuple[str, str] = ("relevance", "score"),
) -> Joined:
    """Join labels and scores row by row; only ``ties="docid"`` reads ``docid``."""
    of_truth, of_score = arguments
    of_read = {column_role(name): column for name, column in read.items()}
    check_rows(**{of_truth: y, of_score: score, "qid": qid, "docid": docid}, **of_read)
    relevance, scores = columns.relevances(y, of_truth), columns.scores(score, of_score)
    grouping = group_rows(qid)
    lengths = {of_truth: len(relevance), of_score: len(scores), "qid": int(grouping.offsets[-1])}
    documents, names = (None, None) if docid is None else comparable(docid, "docid")
    if documents is not None:
        lengths["docid"] = len(documents)
    read_columns = {name: number_column(column, name) for name, column in read.items()}
    lengths |= {column_role(name): len(column) for name, column in read_columns.items()}
    if len({*lengths.values()}) > 1:
        unequal = ", ".join(f"{name} has {number}" for name, number in lengths.items())
        raise InvalidInput(
            f"expected one value a row in every array, found unequal lengths: {unequal}"
        )
    if not len(relevance):
        raise InvalidInput(
            f"{of_truth}, {of_score} and qid are empty: give a row for each ranked document"
        )
    columns.refuse_unbounded(relevance, of_truth)
    columns.refuse_unbounded(scores, of_score)
    if documents is not None:
        _refuse_repeats(documents, names, grouping, **{of_truth: relevance, of_score: scores})
    if isinstance(docid, (pa.Array, pa.ChunkedArray)):
        docid = docid.cast(columns.without_view(docid.type))
    pooled = convention.negative == "unjudged" and bool((relevance < 0).any())
    joined = Joined(
        queries=grouping.queries,
        offsets=grouping.offsets,
        order=grouping.order,
        score=scores,
        relevance=relevance,
        convention=convention.resolved("rows"),  # only ranked rows have judgments
        judged=relevance >= 0 if pooled else None,
        docid=docid,
        columns=read_columns,
        truth_name=of_truth,
    )
    if convention.own_document == "keep":
        return joined
    if documents is None:
        lacking = "own_document='exclude' needs docid=, one document id for each row"
        raise InvalidInput(lacking, argument="docid")
    return _without_own(joined, documents if names is None else names[documents])


def _without_own(joined: Joined, documents: NDArray[Any]) -> Joined:
    rows = np.arange(len(documents)) if joined.order is None else joined.order
    query = np.repeat(np.arange(joined.n_queries), np.diff(joined.offsets))
    own = documents.astype(str)[rows] == joined.queries.astype(str)[query]
    sizes = np.bincount(query[~own], minlength=joined.n_queries)
    filled = sizes > 0
    emptied = tuple(joined.queries[~filled].tolist())
    rest = replace(
        joined,
        queries=joined.queries[filled],
        offsets=offsets_of(sizes[filled]),
        order=rows[~own],
        excluded={"no document but its own": emptied} if emptied else {},
    )
    return rest.without(joined.queries[query[own]].tolist())


def _refuse_repeats(
    documents: NDArray[Any], names: NDArray[Any] | None, grouping: Grouping, **values: NDArray[Any]
) -> None:
    rows = np.arange(len(documents)) if grouping.order is None else grouping.order
    query = np.repeat(np.arange(len(grouping.queries)), np.diff(grouping.offsets))

    def problem(place: int) -> str:
        document = documents[rows[place]] if names is None else names[documents[rows[place]]]
        qid = str(grouping.queries[query[place]])
        return f"document {str(document)!r} occurs twice in query {qid!r}"

    try:
        refuse_repeats(query, documents[rows], rows, problem, None, **values)
    except InvalidInput as error:
        raise error.having(argument="docid") from None


def _taken(column: NDArray[Any], rows: slice | Ints) -> NDArray[Any]:
    # Numbers within a column need no check, which is a fifth of the time (bench_arrays A).
    return column[rows] if isinstance(rows, slice) else column.take(rows, mode="clip")
