"""Rankings as columns: the score of a document for a query."""

from __future__ import annotations

import os
import shlex
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import count, few, require
from rankeval._display import View
from rankeval.collection.rows import Rows, RowSource
from rankeval.errors import InvalidInput
from rankeval.io import formats, frames
from rankeval.io.columns import (
    Columns,
    distinct,
    id_column,
    numbers_of,
    row_numbers,
    runs_against,
)
from rankeval.io.opening import DEFAULT, Limits, parsed_numbers


@explained
@dataclass(frozen=True, eq=False, repr=False)
class Run(Rows):
    """A ranking: the score that a system gave to a document for a query, one row each.

    Scores order the documents, descending; the rows themselves keep the order in which they were
    given.

    Parameters
    ----------
    qid, docid : array-like of str or of int, shape (n_rows,)
        The query and the document of each row, stored as Arrow arrays of string or int64.
    score : array-like of number, shape (n_rows,)
        The score of each row, stored as float64.
    name : str, optional
        The system's name: the tag of a TREC file.
    source : Source or FrameSource, optional
        The file or the frame that the rows were read from, for messages.
    against_rank : bool
        Whether the scores run against a column of ranks that the rows had: in every query, in the
        order of the ranks, scores rise. Evaluations note it.
    queries : mapping of query id to str, optional
        The texts that the rankings were found for, as the rankers of ``rk.text`` give them. By
        these the guard recognises registered queries. They are not written to files.
    notes : tuple of str
        What was taken for something else, or left out, when the rows were read or retrieved.
        Evaluations note it.
    seconds : mapping of query id to float
        The time of each answer to `rankeval.retrieve`. It is not written to files.
    failed : mapping of query id to str
        The queries without an answer, and the reason of each. An evaluation is refused where they
        are judged, or leaves them out under ``missing="skip"``.

    Raises
    ------
    InvalidInput
        If an id is missing, ids mix text and integers, a score is not a finite number, or columns
        differ in length.

    Examples
    --------
    >>> Run.from_dict({"q1": {"d1": 2.5, "d2": 0.1}}, name="bm25")
    Run('bm25', 2 rows, 1 query)
    """

    qid: pa.Array
    docid: pa.Array
    score: NDArray[np.float64]
    name: str | None = None
    source: RowSource | None = None
    against_rank: bool = False
    queries: Mapping[Any, str] | None = None
    notes: tuple[str, ...] = ()
    seconds: Mapping[Any, float] = field(default_factory=dict)
    failed: Mapping[Any, str] = field(default_factory=dict)

    _value: ClassVar[str] = "score"
    _numbers = staticmethod(partial(np.asarray, dtype=np.float64))
    _words: ClassVar[str] = "a ranking"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            isinstance(self.name, str | None), "name", self.name, "text: the name of the system"
        )

    @classmethod
    def _of(cls, columns: Columns, *, is_one: bool = True) -> Run:
        systems = distinct(columns.systems)
        if is_one and len(systems) > 1:
            by_system = "rk.Run.by_system gives a run of each, and rankeval compare compares them"
            choice = f"--system {shlex.quote(str(systems[0]))} chooses one in a shell"
            problem = f"the table has the rankings of {len(systems)} systems: {few(systems)}"
            choice += f"; drop the column {columns.parts.get('name')!r} if it is something else"
            raise InvalidInput(problem, found=few(systems), remedy=f"{by_system}; {choice}")
        score = parsed_numbers(columns.value)
        rows = columns.qid, columns.docid, score, columns.name, columns.source
        made = cls(*rows, notes=columns.notes)
        if columns.rank is not None:
            query = numbers_of(made.qid.dictionary_encode().indices)
            object.__setattr__(made, "against_rank", runs_against(columns.rank, query, made.score))
        return made

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        qid: str | None = None,
        docid: str | None = None,
        score: str | None = None,
        name: str | None = None,
    ) -> Run:
        """Return the ranking of a pandas or polars frame, an Arrow table or any object with an Arrow C stream.

        Parameters
        ----------
        df : frame
            One row per retrieved document.
        qid, docid, score : str, optional
            Names of its columns. By default a column has our name, or its usual name in another
            tool, such as ``docno``. A ``docid`` beside ``docno`` is PyTerrier's number in the
            index, and no id.
        name : str, optional
            The system's name.

        Raises
        ------
        InvalidInput
            If a column is missing, an id or a score is refused, or the frame has several systems,
            which `by_system` separates.

        Examples
        --------
        >>> import pandas as pd
        >>> Run.from_frame(pd.DataFrame({"qid": ["q1", "q1"], "docno": ["d1", "d2"], "score": [2.5, 0.1]}))
        Run(2 rows, 1 query)
        """
        columns = frames.from_frame(df, "score", qid=qid, docid=docid, score=score)
        return cls._of(replace(columns, name=name))

    @classmethod
    def by_system(
        cls,
        table: Any,
        *,
        system: str | None = None,
        format: str | None = None,  # noqa: A002 - as in `read`
        columns: Mapping[str, str] | None = None,
        limits: Limits = DEFAULT,
    ) -> dict[str, Run]:
        """Return a run of each system of a table that has several.

        Parameters
        ----------
        table : path, frame or records
            One row for each retrieved document of each system.
        system : str, optional
            Name of the column of systems. By default its usual name, such as ``run`` or
            ``Algorithm``.
        format : str, optional
            The format of a file, as in `read`.
        columns : mapping of str to str, optional
            Names of the other columns by part, as in `read`.
        limits : Limits
            As in `read`.

        Returns
        -------
        dict of str to Run
            The runs by the names of the systems, in the order of the rows. A table of one system,
            or a file without names of systems, gives one run.

        Raises
        ------
        InvalidInput
            As `read` and `from_frame`.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [("bm25", "q1", "d1", 2.5), ("dense", "q1", "d1", 0.7), ("dense", "q1", "d2", 0.4)]
        >>> table = pd.DataFrame(rows, columns=["Algorithm", "qid", "docid", "score"])
        >>> Run.by_system(table)
        {'bm25': Run('bm25', 1 row, 1 query), 'dense': Run('dense', 2 rows, 1 query)}
        """
        wanted: dict[str, Any] = dict(columns or {})
        if system:
            wanted["name"] = system
        if isinstance(table, (str, os.PathLike)):
            with formats.reading_rows(table, "score", format, limits, wanted) as read:
                return cls._split(read)
        frames.check_parts(wanted)
        rows_of = frames.from_frame if frames.is_frame(table) else frames.from_records
        return cls._split(rows_of(table, "score", **wanted))

    @classmethod
    def _split(cls, columns: Columns) -> dict[str, Run]:
        run = cls._of(columns, is_one=False)
        if len(distinct(columns.systems)) < 2:
            return {run.name or "run": run}
        names = id_column(columns.systems, "of systems").cast(pa.string())
        runs = {}
        for name in distinct(names):
            kept = np.flatnonzero(numbers_of(pc.equal(names, name)))
            rows = row_numbers(kept)
            ids = {"qid": run.qid.take(rows), "docid": run.docid.take(rows)}
            source = None
            if isinstance(run.source, formats.Source):
                source = replace(run.source, kept=array("q", kept.tolist()))  # 8 bytes a row
            runs[name] = replace(run, **ids, score=run.score[kept], name=name, source=source)
        return runs

    @classmethod
    def from_records(cls, records: Any, *, name: str | None = None) -> Run:
        """Return the ranking of records with query_id, doc_id and score, as those of ir_datasets and ir_measures.

        Parameters
        ----------
        records : iterable of records, dataset, or Run of ranx
            Named tuples, other objects or mappings. For a dataset of ir_datasets, its
            ``scoreddocs_iter()`` is read.
        name : str, optional
            The system's name; by default the one of a Run of ranx.

        Raises
        ------
        InvalidInput
            If a record lacks one of these, or an id or a score is refused.

        Examples
        --------
        >>> from collections import namedtuple
        >>> Scored = namedtuple("Scored", ["query_id", "doc_id", "score"])
        >>> Run.from_records([Scored("q1", "d1", 2.5), Scored("q1", "d2", 0.1)], name="bm25")
        Run('bm25', 2 rows, 1 query)
        """
        columns = frames.from_records(records, "score")
        return cls._of(replace(columns, name=name or columns.name))

    @classmethod
    def from_dict(cls, scores: Mapping[Any, Any], *, name: str | None = None) -> Run:
        """Return the ranking of ``{qid: {docid: score}}``, ``{qid: [docid, ...]}`` or ``{qid: [(docid, score), ...]}``.

        Parameters
        ----------
        scores : mapping
            A list of ids is ranked, the best first: its scores are -1, -2, ... Lists may be tuples,
            arrays or columns. A query with an empty mapping or list retrieved nothing and has no
            rows.
        name : str, optional
            The system's name.

        Raises
        ------
        InvalidInput
            If an inner value is neither a mapping nor a list, a list has a document twice, or an id
            or a score is refused.

        Examples
        --------
        >>> Run.from_dict({"q1": ["d7", "d2"], "q2": ["d1"]}).score.tolist()
        [-1.0, -2.0, -1.0]
        """
        return cls._of(replace(frames.from_dict(scores, "score"), name=name))

    def _table(self) -> pa.Table:
        query = numbers_of(self.qid.dictionary_encode().indices)
        order = np.lexsort(
            (-self.score, query)
        )  # stable: equal scores stay in the order of their rows
        table = super()._table().take(row_numbers(order))
        return table.append_column("run", pa.repeat(self.name, len(self))) if self.name else table

    def _view(self) -> View:
        label = f"{self.name!r}, " if self.name else ""
        queries = count(len(self.qid.unique()), "query")
        return View([f"Run({label}{count(len(self), 'row')}, {queries})"], notes=self.notes)


def as_run(ranking: Any) -> Run:
    """Return a Run from a dict, frame, path or records; raises as `Rows.from_any`."""
    return Run.from_any(ranking)
