"""Rows as columns: the check that columns of a call have the same rows; base of `Qrels` and `Run`.

Arrays go together by position, pandas objects by label. If both could be meant, a wrong guess gives
a number like any other: a shuffled ``df.y`` beside ``pd.Series(model.predict(X))`` is right by
position and wrong by label; a shuffled ``qid`` is the other way round. So all Series and frames of
one call must have equal indexes in the same order, and then both readings agree. Columns without an
index go by position.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankeval._arguments import explained
from rankeval._checks import count, few, require
from rankeval._display import Displayed
from rankeval.errors import InvalidInput, QueryIdError, warn
from rankeval.io import formats, frames
from rankeval.io.columns import (
    Columns,
    id_column,
    numbers_of,
    refuse_masked,
    row_numbers,
    value_column,
)
from rankeval.io.json_formats import content_columns
from rankeval.io.opening import DEFAULT, Limits
from rankeval.io.words import Grades

if TYPE_CHECKING:
    import pandas as pd


RowSource = formats.Source | frames.FrameSource
"""The file or the frame that rows were read from, for messages."""


def check_rows(**columns: Any) -> None:
    """Refuse columns with different indexes, masked values and lazy frames, but no lengths."""
    first, known = "", None
    for name, column in columns.items():
        refuse_masked(column, name)
        index = index_of(column)
        if index is None:
            continue
        if known is None:
            first, known = name, index
        elif len(known) == len(index) and (difference := _difference(known, index)):
            row, label, other = difference
            differ = f"row {row} is {label!r} in {first} and {other!r} in {name}"
            by_label = (
                f"give {name}.loc[{first}.index] if the labels say which rows belong together, or "
            )
            is_known = (
                index.is_unique and index.nlevels == known.nlevels and index.isin(known).any()
            )
            remedy = f"{by_label if is_known else ''}give {name}.to_numpy() if the rows are in the same order"
            raise QueryIdError(
                f"{first} and {name} have different indexes: {differ}", remedy=remedy
            )


def column_names(table: Any) -> list[Any]:
    """Return the names of the columns of a frame or an Arrow table; none of other rows."""
    names = getattr(table, "column_names", None)  # Arrow's `columns` are the columns themselves
    return list(getattr(table, "columns", ()) if names is None else names)


def may_number_rows(index: Any, queries: Any) -> bool:
    """Say whether an index is 0, 1, 2, ... without a name, and may number rows or queries."""
    n = len(index)
    is_plain = (
        index.name is None
        and n >= len(queries)
        and getattr(index, "step", 0) == 1
        and index.start == 0
    )
    return is_plain and not np.array_equal(index, queries)


def index_of(column: Any) -> Any | None:
    """Return the pandas index of a Series or frame; None for other columns."""
    index = getattr(column, "index", None)
    return index if hasattr(index, "get_indexer") else None


def same_rows(index: Any, other: Any) -> bool:
    """Say whether two pandas indexes have equal labels in the same order."""
    return len(index) == len(other) and _difference(index, other) is None


def _difference(index: Any, other: Any) -> tuple[int, Any, Any] | None:
    """Return the first row at which two indexes of one length differ, and its labels, or None."""
    if index is other or index.equals(other):
        return None
    # Compare labels too: for pandas an index of pyarrow's integers never equals one of NumPy's.
    for row, (left, right) in enumerate(zip(index.tolist(), other.tolist(), strict=True)):
        if left is right:  # pd.NA cannot be compared with itself
            continue
        are_nan = left != left and right != right  # noqa: PLR0124 - only nan differs from itself
        if type(left) is not type(right) or not (left == right or are_nan):
            return row, left, right
    return None


@explained
class Rows(Displayed):
    """Rows of a query, a document and a number each, in the order in which they were given."""

    qid: pa.Array
    docid: pa.Array
    source: RowSource | None
    notes: tuple[str, ...]

    _ids: ClassVar[tuple[str, ...]] = ("qid", "docid")
    _value: ClassVar[str]
    _numbers: ClassVar[Any]  # a static function: the numbers as they are held
    _words: ClassVar[str]

    def __post_init__(self) -> None:
        check_rows(**{name: getattr(self, name) for name in (*self._ids, self._value)})
        names = [
            name
            for name in self._ids
            if name in ("qid", "docid") or getattr(self, name) is not None
        ]
        columns: dict[str, Any] = {name: id_column(getattr(self, name), name) for name in names}
        columns[self._value] = self._numbers(
            value_column(getattr(self, self._value), self._value, self._value)
        )
        for name, column in columns.items():
            object.__setattr__(self, name, column)
            if len(column) != len(self.qid):
                problem = f"{name} has {count(len(column), 'row')}, but qid has {len(self.qid)}"
                raise InvalidInput(problem, remedy=f"give one {name} a row")

    @classmethod
    def _of(cls, columns: Columns) -> Self:
        raise NotImplementedError

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        columns: Mapping[str, Any] | None = None,
        grades: Grades = None,
        limits: Limits = DEFAULT,
    ) -> Self:
        """Read a file: TREC text, CSV or TSV with a header, JSON, JSON lines, Parquet, or a format of your own.

        JSON may also be that of search engines, annotation tools and benchmarks, which the guide to
        files lists: answers of Elasticsearch and OpenSearch, ``_rank_eval``, Quepid and others.
        ``notes`` say what such a file has that was left out.

        Parameters
        ----------
        path : path
            The file, also as ``.gz``, ``.zst`` or ``.lz4``.
        format : str, optional
            The name of a format, such as "trec". By default it is recognised by content, then by
            suffix. Two formats of judgments must be named: "ndeval" is TREC text whose second
            column is the subtopic or the judge, kept as ``aspect``; "prefs" has the five columns of
            trec_eval's preferences: query, group, sub-group, document and grade.
        columns : mapping of str to str, optional
            Names of columns of a table by their parts, such as ``{"docid": "sku"}``. By default a
            column has our name, or its usual name in another tool.
        grades : mapping of str to number, optional
            The grades of labels that are words, such as ``{"Exact": 2, "Partial": 1, "Irrelevant":
            0}``, for judgments. Labels that are not named are refused.
        limits : Limits
            How far a compressed file may expand, and how long a line may be. Raise them for a file
            that you know.

        Raises
        ------
        InvalidInput
            If there is no such file.
        FileFormatError
            If a line does not follow the format; the message has the line and the text found there.
        LimitExceeded
            If the file exceeds a limit; the message names it.
        UnknownName
            If there is no such format.

        Examples
        --------
        >>> import tempfile
        >>> import rankeval as rk
        >>> path = f"{tempfile.mkdtemp()}/bm25.run.gz"
        >>> rk.Run.from_dict({"q1": {"d1": 2.5, "d2": 0.1}}, name="bm25").write(path)
        >>> rk.Run.read(path)
        Run('bm25', 2 rows, 1 query)
        """
        cls._refuse_grades(grades)
        wanted = dict(columns or {})
        with formats.reading_rows(path, cls._value, format, limits, wanted, grades) as read:
            return cls._of(read)

    @classmethod
    def _refuse_grades(cls, grades: Any) -> None:
        fits = grades is None or cls._value == "relevance"
        require(fits, "grades", grades, "None: a ranking has scores")

    @classmethod
    def from_any(
        cls,
        given: Any,
        *,
        columns: Mapping[str, Any] | None = None,
        grades: Grades = None,
    ) -> Self:
        """Return rows of any supported kind as an object of this class.

        Parameters
        ----------
        given : Qrels, Run, mapping, frame, path, records or dataset of ir_datasets, or object of ranx
            The rows. An object of this class is returned as it is. A mapping may contain the
            answers of Elasticsearch or OpenSearch, ``{qid: answer}``, or another object that `read`
            takes from JSON.
        columns, grades : mapping, optional
            As in `read`, for frames, records and files; a dict has grades only.

        Raises
        ------
        InvalidInput
            If the rows are given as anything else.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls.read(given, columns=columns, grades=grades)
        cls._refuse_grades(grades)
        if hasattr(given, "read") and hasattr(given, "readline"):
            path = getattr(given, "name", None)
            remedy = (
                f"give its path, {path!r}"
                if isinstance(path, str)
                else "write the text to a file, and give its path"
            )
            raise InvalidInput(
                f"expected {cls._words}, found an open file ({type(given).__name__})", remedy=remedy
            )
        wanted = columns or {}
        frames.check_parts(wanted)
        if (known := content_columns(given, cls._value)) is not None:
            frames.refuse_columns(wanted, "such an object")
            return cls._of(known.graded(grades))
        if isinstance(given, Mapping):
            frames.refuse_columns(wanted, "a dict")
            return cls._of(frames.from_dict(given, cls._value).graded(grades))
        if frames.is_frame(given):
            return cls._of(frames.from_frame(given, cls._value, grades, **wanted))
        if frames.is_records(given):
            return cls._of(frames.from_records(given, cls._value, **wanted).graded(grades))
        forms = f"{cls.__name__}, {{qid: {{docid: {cls._value}}}}}, {{qid: [docid, ...]}}, a frame or a path"
        raise InvalidInput(f"expected {cls._words} as {forms}, found a {type(given).__name__}")

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the rows, replacing the file in one step; they read back to the last bit.

        TREC text of judgments is ``qid iter docid relevance``, with the aspect or 0 in the second
        column. With sub-groups it has the five columns of format "prefs". TREC text of a run is
        ``qid Q0 docid rank score tag``; the tag is the name of the run, or ``run``. Tables have one
        column for each part, and allow ids with blanks too. Runs are written query by query, each
        by descending score. Equal scores stay in the order of their rows.

        Parameters
        ----------
        path : path
            The file; with ``.gz``, ``.zst`` or ``.lz4`` it is compressed.
        format : str, optional
            The name of a format, by default the one of the suffix, or "trec".

        Raises
        ------
        InvalidInput
            If an id does not fit the format, the folder does not exist, or there are no rows to
            write.
        UnknownName
            If there is no such format to write.
        """
        if not len(self):
            raise InvalidInput(
                f"there are no rows to write to {str(path)!r}: a file without rows cannot be read"
            )
        formats.write_rows(path, self._table(), format)
        if failed := getattr(self, "failed", None):
            lost = f"{count(len(failed), 'query')} whose search failed: {few([*failed])}"
            warn(f"{str(path)!r} does not name {lost}; read back, they count as empty rankings")

    def _table(self) -> pa.Table:
        return pa.table({name: pa.array(column) for name, column in self._parts().items()})

    def _parts(self) -> dict[str, Any]:
        parts = {
            name: getattr(self, name) for name in ("qid", "docid", self._value, *self._ids[2:])
        }
        return {name: column for name, column in parts.items() if column is not None}

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame.

        Returns
        -------
        DataFrame of shape (n_rows, n_columns)
            Columns qid, docid, and relevance (also aspect and subgroup, if given) or score.
        """
        import pandas as pd

        parts = self._parts().items()
        return pd.DataFrame(
            {name: part.to_pandas() if isinstance(part, pa.Array) else part for name, part in parts}
        )

    def __len__(self) -> int:
        return len(self.qid)


Table = TypeVar("Table", bound=Rows)


def without_own(rows: Table) -> tuple[Table, list[Any]]:
    """Return the rows without documents that are their own query, and the queries of these."""
    qid, docid = (column.cast(pa.large_string()) for column in (rows.qid, rows.docid))
    own = numbers_of(pc.equal(qid, docid))
    kept, left_out = (row_numbers(np.flatnonzero(places)) for places in (~own, own))
    # Qrels and Run share `_parts`, which lists their columns; this function is of the same module.
    parts = {name: column.take(kept) for name, column in rows._parts().items()}  # noqa: SLF001
    rest: Any = rows  # a dataclass, as all that derive from Rows
    return replace(rest, **parts, source=None), rows.qid.take(left_out).to_pylist()
