"""Judgments as columns: how relevant a document is to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import count
from rankeval._display import View
from rankeval.collection.rows import Rows, RowSource
from rankeval.errors import InvalidInput
from rankeval.io import frames
from rankeval.io.columns import Columns, whole
from rankeval.io.opening import parsed_numbers
from rankeval.io.words import Grades


@explained
@dataclass(frozen=True, eq=False, repr=False)
class Qrels(Rows):
    """Relevance judgments, one row per (query, document).

    Rows keep their order. Repeated rows stay, and the convention decides about them.

    Parameters
    ----------
    qid, docid : array-like of str or of int, shape (n_rows,)
        The query and the document of each row, stored as Arrow arrays of string or int64.
    relevance : array-like of number, shape (n_rows,)
        The grade of each row, stored as int64 if all are whole numbers, otherwise as float64.
    aspect : array-like of str or of int, shape (n_rows,), optional
        The subtopic that was judged, or the judge (a user, an assessor).
    subgroup : array-like of str or of int, shape (n_rows,), optional
        A part of a judge's documents. Only documents of one sub-group were compared with each
        other.
    source : Source or FrameSource, optional
        The file or the frame that the rows were read from, for messages.
    notes : tuple of str
        What was taken for something else, or left out, when the rows were read. Evaluations note
        it.

    Raises
    ------
    InvalidInput
        If an id is missing, ids mix text and integers, a grade is not a finite number, or columns
        differ in length.

    Examples
    --------
    >>> Qrels.from_dict({"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}})
    Qrels(3 judgments, 2 queries, grades 0 to 2)
    """

    qid: pa.Array
    docid: pa.Array
    relevance: NDArray[Any]
    aspect: pa.Array | None = None
    subgroup: pa.Array | None = None
    source: RowSource | None = None
    notes: tuple[str, ...] = ()

    _ids: ClassVar[tuple[str, ...]] = ("qid", "docid", "aspect", "subgroup")
    _value: ClassVar[str] = "relevance"
    _numbers = staticmethod(whole)
    _words: ClassVar[str] = "judgments"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subgroup is not None and self.aspect is None:
            raise InvalidInput(
                "subgroup= is given without aspect=: sub-groups are parts of a judge's documents"
            )

    @classmethod
    def _of(cls, columns: Columns) -> Qrels:
        made = cls(
            columns.qid,
            columns.docid,
            parsed_numbers(columns.value),
            columns.aspect,
            columns.subgroup,
            columns.source,
            columns.notes,
        )
        if columns.value_name == "score" and made.relevance.dtype.kind == "f":
            problem = "the column 'score', the relevance in data of BEIR and ranx, has fractions, like a ranking"
            raise InvalidInput(
                problem, remedy="give the judgments, or say relevance='score' in Qrels.from_frame"
            )
        return made

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        qid: str | None = None,
        docid: str | None = None,
        relevance: str | None = None,
        aspect: str | Literal[False] | None = None,
        grades: Grades = None,
    ) -> Qrels:
        """Return the judgments of a pandas or polars frame, an Arrow table or any object with an Arrow C stream.

        Parameters
        ----------
        df : frame
            One row per judgment.
        qid, docid, relevance : str, optional
            Names of its columns. By default a column has our name, or its usual name in another
            tool, such as ``docno`` and ``label``. ``score`` is the relevance beside the ids' names
            of BEIR and ranx, if it is whole.
        aspect : str or False, optional
            Name of the column of aspects (subtopics, judges). By default the columns ``aspect`` (or
            ``subtopic_id``) and ``subgroup`` are read if they exist. With False, neither is read.
        grades : mapping of str to number, optional
            As in `read`.

        Raises
        ------
        InvalidInput
            If a column is missing, or an id or a grade is refused.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "label": ["R", "N"]})
        >>> Qrels.from_frame(frame, grades={"R": 1, "N": 0})
        Qrels(2 judgments, 1 query, grades 0 to 1)
        """
        return cls._of(
            frames.from_frame(
                df, "relevance", grades, qid=qid, docid=docid, relevance=relevance, aspect=aspect
            )
        )

    @classmethod
    def from_records(cls, records: Any, *, grades: Grades = None) -> Qrels:
        """Return the judgments of records with query_id, doc_id and relevance, as those of ir_datasets.

        Parameters
        ----------
        records : iterable of records, dataset, or Qrels of ranx
            Named tuples, other objects or mappings, such as those of ir_measures. For a dataset of
            ir_datasets, its ``qrels_iter()`` is read. A ``subtopic_id`` is the aspect.
        grades : mapping of str to number, optional
            As in `read`.

        Raises
        ------
        InvalidInput
            If a record lacks one of these, or an id or a grade is refused.

        Examples
        --------
        >>> from collections import namedtuple
        >>> Judgment = namedtuple("Judgment", ["query_id", "doc_id", "relevance"])
        >>> Qrels.from_records([Judgment("q1", "d1", 2), Judgment("q1", "d2", 0)])
        Qrels(2 judgments, 1 query, grades 0 to 2)
        """
        return cls._of(frames.from_records(records, "relevance").graded(grades))

    @classmethod
    def from_dict(cls, judgments: Mapping[Any, Any], *, grades: Grades = None) -> Qrels:
        """Return the judgments of ``{qid: {docid: relevance}}``, or ``{qid: {docid: {aspect: relevance}}}``.

        Parameters
        ----------
        judgments : mapping
            Instead of a dict, a query may have a list or a set of its relevant documents, which get
            the grade 1, or a list of pairs ``(docid, relevance)``. A query with an empty mapping or
            list has no judgments and so no rows.
        grades : mapping of str to number, optional
            As in `read`.

        Raises
        ------
        InvalidInput
            If an inner value is neither a mapping nor a list, a list has a document twice, or an id
            or a grade is refused.

        Examples
        --------
        >>> Qrels.from_dict({"q1": ["d1", "d2"], "q2": {"d1": 2}})
        Qrels(3 judgments, 2 queries, grades 1 to 2)
        """
        return cls._of(frames.from_dict(judgments, "relevance").graded(grades))

    def _view(self) -> View:
        grades = (
            f", grades {np.min(self.relevance)} to {np.max(self.relevance)}" if len(self) else ""
        )
        queries = count(len(self.qid.unique()), "query")
        sentence = f"Qrels({count(len(self), 'judgment')}, {queries}{grades})"
        return View([sentence], notes=self.notes)


def as_qrels(judgments: Any) -> Qrels:
    """Return Qrels from a dict, frame, path or records; raises as `Rows.from_any`."""
    return Qrels.from_any(judgments)
