"""Judgments, as columns: which document is how relevant to which query."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval.collection.alignment import check_rows
from rankeval.errors import InvalidInput
from rankeval.io import formats, frames, opening, trec, writing
from rankeval.io.limits import DEFAULT, Limits

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    """Relevance judgments, one row per (query, document).

    Rows stay as they came, in their order, repeated ones included: what to do with those is the convention's matter.

    Parameters
    ----------
    qid, docid : array-like of str or of int
        The query and the document of each row; stored as Arrow arrays of string or int64.
    relevance : array-like of number
        The grade of each row; stored as int64 if all are whole, else float64.
    aspect : array-like of str or of int, optional
        The subtopic that was judged, or the group of judges (a user, an assessor).
    subgroup : array-like of str or of int, optional
        Within a group of judges: only documents of one sub-group were compared with each other.
    source : Source, optional
        The file that they were read from, for messages.

    Raises
    ------
    InvalidInput
        For missing ids, ids of mixed types, grades that are no finite numbers, and columns of different lengths.

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
    source: formats.Source | None = None

    def __post_init__(self) -> None:
        check_rows(qid=self.qid, docid=self.docid, relevance=self.relevance, aspect=self.aspect, subgroup=self.subgroup)
        object.__setattr__(self, "qid", frames.id_column(self.qid, "qid"))
        object.__setattr__(self, "docid", frames.id_column(self.docid, "docid"))
        object.__setattr__(self, "relevance", frames.whole(frames.value_column(self.relevance, "relevance")))
        for name in ("aspect", "subgroup"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frames.id_column(getattr(self, name), name))
        frames.check_lengths(self, "docid", "relevance", "aspect", "subgroup")
        if self.subgroup is not None and self.aspect is None:
            raise InvalidInput("subgroup= is given without aspect=: sub-groups are parts of a group of judges")

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        limits: Limits = DEFAULT,
    ) -> Qrels:
        """Read judgments from a file: TREC text, CSV or TSV with a header, JSON lines or Parquet.

        Parameters
        ----------
        path : path
            The file, also as ``.gz`` or ``.zst``.
        format : {"trec", "ndeval", "prefs", "csv", "tsv", "jsonl", "parquet"}, optional
            By default read off the content and the name, but for two: "ndeval" is TREC text whose second column is
            the subtopic, or the group of judges, kept as ``aspect``; "prefs" has the five columns of trec_eval's
            preferences, query, group, sub-group, document and grade.
        limits : Limits
            How far a compressed file may expand, and how long a line may be; raised for files known to be sound.

        Raises
        ------
        InvalidInput
            If there is no such file.
        FileFormatError
            If a line is not as the format asks; the message has the line and what was found.
        LimitExceeded
            If the file is larger than a limit allows; the message names it.
        """
        if format == "ndeval":
            with opening.reading(path, limits) as file:
                by_aspect, aspect = trec.read_ndeval(file, str(path), limits)
            source = formats.Source(str(path), "trec", limits)
            return cls(by_aspect.qid, by_aspect.docid, by_aspect.value, aspect, source=source)
        if format == "prefs":
            with opening.reading(path, limits) as file:
                return cls._of(trec.read_prefs(file, str(path), limits))
        return cls._of(formats.read_columns(path, trec.QRELS, format, limits))

    @classmethod
    def _of(cls, columns: frames.Columns) -> Qrels:
        return cls(columns.qid, columns.docid, columns.value, columns.aspect, columns.subgroup, columns.source)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        qid: str = "qid",
        docid: str = "docid",
        relevance: str = "relevance",
        aspect: str | None = "aspect",
    ) -> Qrels:
        """Take judgments from a pandas or polars frame, an Arrow table or any object with an Arrow C stream.

        Parameters
        ----------
        df : frame
            One row per judgment.
        qid, docid, relevance : str
            Names of its columns. Where the default is not there, usual spellings such as ``docno`` and ``label`` are
            looked for.
        aspect : str, optional
            Name of the column of aspects (subtopics, groups of judges). The default is taken if it is there, with a
            column ``subgroup`` if there is one; None takes neither.

        Raises
        ------
        InvalidInput
            If a column is missing, or holds what cannot be an id or a grade.
        """
        return cls._of(frames.from_frame(df, qid=qid, docid=docid, value=relevance, role="relevance", aspect=aspect))

    @classmethod
    def from_records(cls, records: Any) -> Qrels:
        """Take judgments from records with query_id, doc_id and relevance, as those of ir_datasets.

        Parameters
        ----------
        records : iterable of records, or dataset
            A dataset with ``qrels_iter()``, or what that gives; a ``subtopic_id`` is the aspect.

        Raises
        ------
        InvalidInput
            If a record lacks one of these, or holds what cannot be an id or a grade.
        """
        return cls._of(frames.from_records(records, "relevance"))

    @classmethod
    def from_dict(cls, judgments: Mapping[Any, Mapping[Any, Any]]) -> Qrels:
        """Take judgments from ``{qid: {docid: relevance}}``, or ``{qid: {docid: {aspect: relevance}}}``.

        Parameters
        ----------
        judgments : mapping
            A query with an empty mapping has no judgments and so no rows.

        Raises
        ------
        InvalidInput
            If the inner values are no mappings, or ids or grades are not as they must be.
        """
        return cls._of(frames.from_dict(judgments, "relevance"))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with the columns qid, docid, relevance (and aspect and subgroup, if there)."""
        import pandas as pd

        columns = {"qid": self.qid.to_pandas(), "docid": self.docid.to_pandas(), "relevance": self.relevance}
        columns |= {name: column.to_pandas() for name, column in self._more().items()}
        return pd.DataFrame(columns)

    def _more(self) -> dict[str, pa.Array]:
        return {name: getattr(self, name) for name in ("aspect", "subgroup") if getattr(self, name) is not None}

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the judgments, replacing the file in one step.

        TREC text is ``qid iter docid relevance``, the second column the aspect or 0; with sub-groups it has the five
        columns of format "prefs". Tables have a column for each part, and hold ids with blanks too.

        Parameters
        ----------
        path : path
            Where to; ``.gz`` and ``.zst`` are compressed.
        format : {"trec", "csv", "tsv", "jsonl", "parquet"}, optional
            By default what the name ends in, or else "trec".

        Raises
        ------
        InvalidInput
            For ids that the format cannot hold, such as those with blanks; when there is nothing to write, as no file
            is read that has no rows; when there is no such folder.
        """
        if not len(self):
            raise InvalidInput(f"there are no judgments to write to {str(path)!r}: a file without rows cannot be read")
        kind = formats.write_format(path, format)
        if kind != "trec":
            columns = {"qid": self.qid, "docid": self.docid, "relevance": pa.array(self.relevance), **self._more()}
            formats.write_table(path, pa.table(columns), kind)
            return
        for name in ("qid", "docid", "aspect", "subgroup"):
            trec.check_writable(getattr(self, name), name)
        between = list(self._more().values()) or [pa.repeat("0", len(self))]
        writing.write_atomically(path, trec.trec_text([self.qid, *between, self.docid, pa.array(self.relevance)]))

    def __len__(self) -> int:
        return len(self.relevance)

    def __repr__(self) -> str:
        n_queries = len(self.qid.unique())
        grades = f", grades {np.min(self.relevance)} to {np.max(self.relevance)}" if len(self) else ""
        return f"Qrels({len(self)} judgments, {n_queries} queries{grades})"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def as_qrels(judgments: Any) -> Qrels:
    """Return judgments given as Qrels, dict, frame or path as Qrels.

    Parameters
    ----------
    judgments : Qrels, mapping, frame, path or records
        ``{qid: {docid: relevance}}``, a frame with the columns qid, docid, relevance, a file, or what ir_datasets has.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if isinstance(judgments, Qrels):
        return judgments
    if isinstance(judgments, Mapping):
        return Qrels.from_dict(judgments)
    if isinstance(judgments, (str, os.PathLike)):
        return Qrels.read(judgments)
    if frames.is_frame(judgments):
        return Qrels.from_frame(judgments)
    if frames.is_records(judgments):
        return Qrels.from_records(judgments)
    raise InvalidInput(
        f"expected judgments as Qrels, {{qid: {{docid: relevance}}}}, a frame or a path, "
        f"found a {type(judgments).__name__}"
    )
