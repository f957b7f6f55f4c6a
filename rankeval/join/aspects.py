"""Judgments by aspect: a document may answer one subtopic of a query and not another.

The join sees one grade a document, the greatest over its aspects. What stands here keeps the rest, and gives it as one
more `Judged` in which every aspect of a query is a query of its own: so any measure has its intent-aware form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import numbers_of
from rankeval.join.flat import Ints
from rankeval.join.judged import NO_GROUPS, Groups, Judged, with_unlike_labels

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels


class Entries(NamedTuple):
    """Judgments by aspect: the document's number, the aspect's number and the grade of each."""

    document: Ints
    aspect: Ints
    grade: NDArray[Any]


@dataclass(frozen=True, eq=False)
class AspectTable:
    """The judgments of a collection by aspect, documents numbered by (query, document).

    Parameters
    ----------
    offsets : ndarray of shape (n_documents + 1,)
        Where the entries of each document begin.
    aspect : ndarray of shape (n_entries,)
        Number of the aspect, ascending as the names do.
    grade : ndarray of shape (n_entries,)
        The grade for that aspect.
    docid : pyarrow.Array
        Name of each document.
    group : ndarray of shape (n_aspects,), optional
        Where what is counted as an aspect is a sub-group of judgments: the number of its group.
    """

    offsets: Ints
    aspect: Ints
    grade: NDArray[Any]
    docid: pa.Array
    group: Ints | None = None

    def entries(self, document: Ints) -> tuple[Ints, Entries]:
        """Return the entries of these documents, and which of the documents given each is of."""
        size = self.offsets[document + 1] - self.offsets[document]
        of = np.repeat(np.arange(len(document)), size)
        at = np.arange(int(size.sum())) - (np.cumsum(size) - size)[of] + self.offsets[document][of]
        return of, Entries(document[of], self.aspect[at], self.grade[at])

    @cached_property
    def byte_rank(self) -> Ints:
        """Place of each document in ascending order of its name's bytes."""
        names = np.array([str(name).encode() for name in self.docid.to_pylist()], dtype=object)
        place: Ints = np.unique(names, return_inverse=True)[1].astype(np.int64)
        return place


@dataclass(frozen=True, eq=False)
class JoinedAspects:
    """The judgments by aspect of a run's rows and of the documents that it lacks.

    Parameters
    ----------
    table : AspectTable
        All judgments.
    document : ndarray of shape (n_rows,)
        Judged document of each row of the run, -1 if it has none.
    unretrieved, unretrieved_offsets : ndarray
        Judged documents that were not ranked, grouped by query; None where they do not count.
    skips_below : float, optional
        Where unjudged documents are taken out: the grade below which a judgment is none.
    """

    table: AspectTable
    document: Ints
    unretrieved: Ints | None
    unretrieved_offsets: Ints | None
    skips_below: float | None = None

    def block(
        self, rows: slice | Ints, ranked: Ints | None, keep: NDArray[np.bool_] | None, offsets: Ints, queries: slice
    ) -> AspectBlock:
        """Return the judgments of a chunk: of its rows in rank order, and of all documents that its queries know."""
        document = self.document[rows]
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        known, known_query = document[document >= 0], query[document >= 0]
        if self.unretrieved is not None and self.unretrieved_offsets is not None:
            upto = self.unretrieved_offsets[queries.start : queries.stop + 1]
            known = np.concatenate([known, self.unretrieved[upto[0] : upto[-1]]])
            known_query = np.concatenate([known_query, np.repeat(np.arange(len(upto) - 1), np.diff(upto))])
        document = document if ranked is None else document[ranked]
        document = document if keep is None else document[keep]
        return AspectBlock(self.table, document, known, known_query, self.skips_below)


class Parts(NamedTuple):
    """Every aspect of every query as a query of its own, and the query that each is an aspect of."""

    judged: Judged
    query: Ints


@dataclass(eq=False)
class AspectBlock:
    """The judgments by aspect of one chunk.

    Parameters
    ----------
    table : AspectTable
        All judgments of the collection.
    document : ndarray of shape (n_rows,)
        Judged document of each row in rank order, -1 if it has none.
    known, known_query : ndarray of shape (n_known,)
        The judged documents that count, retrieved or not, and their queries.
    skips_below : float, optional
        As of `JoinedAspects`.
    """

    table: AspectTable
    document: Ints
    known: Ints
    known_query: Ints
    skips_below: float | None = None
    _memo: dict[str, Parts] = field(default_factory=dict, repr=False)

    def parts(self, whole: Judged) -> Parts:
        """Return the aspects of a chunk as queries.

        Parameters
        ----------
        whole : Judged
            The chunk that this block belongs to.
        """
        return self._once("aspects", lambda: self._parts(whole, None))

    def groups(self, whole: Judged) -> Parts:
        """Return the groups of judgments of a chunk as queries, each without the documents that it skips.

        A subtopic that a document was not judged for is one that it does not answer; a group of judges that has not
        judged it does not know it.

        Parameters
        ----------
        whole : Judged
            The chunk that this block belongs to.
        """
        return self._once("groups", lambda: self._parts(whole, self.skips_below))

    def _once(self, key: str, compute: Callable[[], Parts]) -> Parts:
        if self.table.group is not None:
            raise InvalidInput(
                "judgments by sub-group say which documents are preferred to which within one: only measures of "
                "preferences read them (Prefs, PrefsR, NumPrefs, NumPrefsFul); give Qrels without subgroup= for others"
            )
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def _parts(self, whole: Judged, skips_below: float | None) -> Parts:
        of, known = self.table.entries(self.known)
        n_aspects = int(self.table.aspect.max(initial=0)) + 1
        pair, part = np.unique(self.known_query[of] * n_aspects + known.aspect, return_inverse=True)
        query = pair // n_aspects
        levels, code = np.unique(np.append(known.grade, known.grade.dtype.type(0)), return_inverse=True)
        counts = np.bincount(part * len(levels) + code[:-1], minlength=len(pair) * len(levels))

        length = whole.n_retrieved[query]
        offsets = np.concatenate(([0], np.cumsum(length))).astype(np.int64)
        row = np.flatnonzero(self.document >= 0)
        of_row, ranked = self.table.entries(self.document[row])
        row = row[of_row]
        its_query = np.searchsorted(whole.offsets, row, side="right") - 1
        part_of_row = np.searchsorted(pair, its_query * n_aspects + ranked.aspect)
        place = offsets[part_of_row] + row - whole.offsets[its_query]
        labels = np.full(int(offsets[-1]), np.searchsorted(levels, 0))
        labels[place] = np.searchsorted(levels, ranked.grade)
        seen = np.zeros(len(labels), dtype=bool)
        seen[place] = skips_below is None or ranked.grade >= skips_below
        ties = _repeated(whole.ties, whole, query, offsets)
        if skips_below is not None and not seen.all():
            before = np.concatenate(([0], np.cumsum(seen)))
            offsets, labels, seen = before[offsets], labels[seen], seen[seen]
            ties = Groups(before[ties.start], before[ties.end], ties.query)
            several = ties.end - ties.start > 1
            ties = Groups(ties.start[several], ties.end[several], ties.query[several])
        judged = Judged(
            offsets=offsets,
            levels=levels,
            code=labels,
            counts=counts.reshape(len(pair), len(levels)),
            groups=with_unlike_labels(ties, labels),
            judged=seen,
            ties=ties,
            queries=None if whole.queries is None else whole.queries[query],
        )
        return Parts(judged, query)


def _repeated(ties: Groups, whole: Judged, query: Ints, offsets: Ints) -> Groups:
    """Return the tie groups of each query once for each of its aspects."""
    if not len(ties.start):
        return NO_GROUPS
    first = np.searchsorted(ties.query, np.arange(whole.n_queries + 1))
    size = np.diff(first)[query]
    part = np.repeat(np.arange(len(query)), size)
    group = np.arange(int(size.sum())) - (np.cumsum(size) - size)[part] + first[query][part]
    shift = offsets[part] - whole.offsets[query[part]]
    return Groups(ties.start[group] + shift, ties.end[group] + shift, part)


def fold_aspects(qrels: Qrels) -> tuple[Qrels, AspectTable]:
    """Return the judgments with one grade a document, the greatest over its aspects, and the table of all.

    Parameters
    ----------
    qrels : Qrels
        Judgments with ``aspect``.

    Raises
    ------
    InvalidInput
        When a document is judged twice for one aspect (sub-group) of a query.
    """
    from rankeval.collection.qrels import Qrels

    aspect = qrels.aspect
    assert aspect is not None
    codes = [np.asarray(_ranks(column), dtype=np.int64) for column in (qrels.qid, qrels.docid, aspect)]
    group = None
    if qrels.subgroup is not None:
        within = np.asarray(_ranks(qrels.subgroup), dtype=np.int64)
        both, codes[2] = np.unique(codes[2] * (int(within.max(initial=0)) + 1) + within, return_inverse=True)
        group = both // (int(within.max(initial=0)) + 1)
    order = np.lexsort((codes[2], codes[1], codes[0]))
    query, document, part = (code[order] for code in codes)
    new = np.ones(len(order), dtype=bool)
    new[1:] = (query[1:] != query[:-1]) | (document[1:] != document[:-1])
    twice = np.flatnonzero(~new[1:] & (part[1:] == part[:-1]))
    if len(twice):
        rows_twice = sorted(order[twice[0] : twice[0] + 2].tolist())
        row = rows_twice[0]
        place = (
            f"rows {row} and {rows_twice[1]}, counting from 0"
            if qrels.source is None
            else qrels.source.place(rows_twice)
        )
        raise InvalidInput(
            f"qrels: document {qrels.docid[row].as_py()!r} stands twice for aspect {aspect[row].as_py()!r} of query "
            f"{qrels.qid[row].as_py()!r} ({place}; {len(twice)} such rows in all); keep one row each"
        )
    start = np.flatnonzero(new)
    grade = qrels.relevance[order]
    rows = pa.array(order[start])
    best = np.maximum.reduceat(grade, start) if len(start) else grade
    folded = Qrels(qid=qrels.qid.take(rows), docid=qrels.docid.take(rows), relevance=best)
    return folded, AspectTable(np.append(start, len(order)), part, grade, folded.docid, group)


def _ranks(column: pa.Array) -> NDArray[Any]:
    """Return the place of each value in the order of the values; digits in text are read as numbers."""
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda at: _natural(names[at]))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    ranks: NDArray[Any] = place[numbers_of(coded.indices)]
    return ranks


def _natural(name: Any) -> tuple[int, int, str]:
    text = str(name)
    return (0, int(text), "") if text.isascii() and text.isdigit() else (1, 0, text)
