"""Judgments by aspect: a document may answer one subtopic of a query and not another.

The join sees one grade a document, the greatest over its aspects (`fold_aspects`). This table keeps
the others:

    q1  d1  aspect 1  2                document   0        1             (d1 of q1, d4 of q1)
    q1  d1  aspect 2  0     becomes    offsets    0        2    3
    q1  d4  aspect 1  1                aspect     0   1    0
                                       grade      2   0    1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.io.columns import numbers_of, row_numbers
from rankeval.join.flat import Ints, spread
from rankeval.join.repeats import refuse_repeats

if TYPE_CHECKING:
    from rankeval.collection.qrels import Qrels


class AspectGrades(NamedTuple):
    """Judgments by aspect: the document's number, the aspect's number and the grade of each."""

    document: Ints
    aspect: Ints
    grade: NDArray[Any]


@dataclass(frozen=True, eq=False)
class AspectTable:
    """The judgments of a collection by aspect, documents numbered by (query, document)."""

    offsets: Ints  # (n_documents + 1,): Where the entries of each document begin
    aspect: Ints  # (n_entries,): Number of the aspect, in the order of the names
    grade: NDArray[Any]  # (n_entries,): The grade for that aspect
    docid: pa.Array  # Name of each document
    # (n_aspects,): The group of each sub-group, if sub-groups take the place of aspects
    group: Ints | None = None

    def entries(self, document: Ints) -> tuple[Ints, AspectGrades]:
        """Return the entries of documents, and for each entry the place of its document in them."""
        size = self.offsets[document + 1] - self.offsets[document]
        at, of = spread(self.offsets[document], size)
        return of, AspectGrades(document[of], self.aspect[at], self.grade[at])

    @cached_property
    def byte_rank(self) -> Ints:
        """Place of each document in ascending order of its name's bytes."""
        names = np.array([str(name).encode() for name in self.docid.to_pylist()], dtype=object)
        return np.unique(names, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class JoinedAspects:
    """The judgments by aspect of a run's rows and of the documents that it lacks."""

    table: AspectTable  # All judgments
    document: Ints  # (n_rows,): Judged document of each row of the run, -1 if it has none
    unretrieved: Ints  # Judged documents that were not ranked and count, grouped by query
    # A grade below this counts as no judgment; None unless unjudged documents are taken out
    skips_below: float | None = None

    def block(
        self,
        rows: slice | Ints,
        ranked: Ints,
        keep: NDArray[np.bool_] | None,
        offsets: Ints,
        unretrieved: tuple[Ints, Ints],
    ) -> AspectBlock:
        """Return the judgments of a chunk: of its rows in rank order, and of all known documents.

        ``unretrieved`` has the places of its documents that were not ranked, and the query of each.
        """
        document = self.document[rows]
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        known = np.concatenate([document[document >= 0], self.unretrieved[unretrieved[0]]])
        known_query = np.concatenate([query[document >= 0], unretrieved[1]])
        document = document[ranked] if keep is None else document[ranked][keep]
        return AspectBlock(self.table, document, known, known_query, self.skips_below)


@dataclass(frozen=True, eq=False)
class AspectBlock:
    """The judgments by aspect of one chunk."""

    table: AspectTable  # All judgments of the collection
    document: Ints  # (n_rows,): Judged document of each row in rank order, -1 if it has none
    known: Ints  # (n_known,): The judged documents that count, retrieved or not
    known_query: Ints  # (n_known,): Their queries
    skips_below: float | None = None  # As in `JoinedAspects`


def fold_aspects(qrels: Qrels) -> tuple[Qrels, AspectTable]:
    """Return the judgments with each document's greatest grade, and the table of all grades."""
    aspect = qrels.aspect
    assert aspect is not None
    query, document, part = (_ranks(column) for column in (qrels.qid, qrels.docid, aspect))
    group = None
    if qrels.subgroup is not None:
        within = _ranks(qrels.subgroup)
        n_within = int(within.max(initial=0)) + 1
        both, part = np.unique(part * n_within + within, return_inverse=True)
        group = both // n_within
    # One number for each document of a query; aspects of equal names in two queries are one number
    # too.
    pair = query * (int(document.max(initial=0)) + 1) + document

    def problem(row: int) -> str:
        names = (column[row].as_py() for column in (qrels.docid, aspect, qrels.qid))
        return "qrels: document {!r} occurs twice for aspect {!r} of query {!r}".format(*names)

    row = np.arange(len(pair))
    refuse_repeats(pair, part, row, problem, qrels.source, relevance=qrels.relevance)
    order = np.lexsort((part, pair))
    start = np.flatnonzero(np.diff(pair[order], prepend=-1))
    grade = qrels.relevance[order]
    best = np.maximum.reduceat(grade, start) if len(start) else grade
    rows = row_numbers(order[start])
    # The folded rows are no rows of the file, so they have no source.
    ids = {name: getattr(qrels, name).take(rows) for name in ("qid", "docid")}
    folded = replace(qrels, **ids, relevance=best, aspect=None, subgroup=None, source=None)
    offsets = np.append(start, len(order))
    return folded, AspectTable(offsets, part[order], grade, folded.docid, group)


def _ranks(column: pa.Array) -> Ints:
    # A text of digits counts as a number, so that aspect 10 comes behind 9.
    coded = column.dictionary_encode()
    names = coded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda at: _natural(names[at]))
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    ranks: Ints = place[numbers_of(coded.indices)]
    return ranks


def _natural(name: Any) -> tuple[int, int, str]:
    text = str(name)
    return (0, int(text), "") if text.isascii() and text.isdigit() else (1, 0, text)
