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

from rankeval.collection import formats, frames, trec
from rankeval.errors import InvalidInput

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
        The subtopic that was judged.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "qid", frames.id_column(self.qid, "qid"))
        object.__setattr__(self, "docid", frames.id_column(self.docid, "docid"))
        object.__setattr__(self, "relevance", frames.whole(frames.value_column(self.relevance, "relevance")))
        if self.aspect is not None:
            object.__setattr__(self, "aspect", frames.id_column(self.aspect, "aspect"))
        frames.check_lengths(self, "docid", "relevance", "aspect")

    @classmethod
    def read(cls, path: str | os.PathLike[str], format: str | None = None) -> Qrels:  # noqa: A002
        """Read judgments from a file: TREC text, CSV or TSV with a header, JSON lines or Parquet.

        Parameters
        ----------
        path : path
            The file, also as ``.gz`` or ``.zst``.
        format : {"trec", "ndeval", "csv", "tsv", "jsonl", "parquet"}, optional
            By default read off the content and the name, but for "ndeval": TREC text whose second column is the
            subtopic, kept as ``aspect``.

        Raises
        ------
        InvalidInput
            If there is no such file.
        FileFormatError
            If a line is not as the format asks; the message has the line and what was found.
        """
        if format == "ndeval":
            by_aspect, aspect = trec.read_ndeval(formats.read_bytes(path), str(path))
            return cls(by_aspect.qid, by_aspect.docid, by_aspect.value, aspect)
        columns = formats.read_columns(path, trec.QRELS, format)
        return cls(columns.qid, columns.docid, columns.value)

    @classmethod
    def from_frame(cls, df: Any, *, qid: str = "qid", docid: str = "docid", relevance: str = "relevance") -> Qrels:
        """Take judgments from a pandas or polars frame, an Arrow table or any object with an Arrow C stream.

        Parameters
        ----------
        df : frame
            One row per judgment.
        qid, docid, relevance : str
            Names of its columns. Where the default is not there, usual spellings such as ``docno`` and ``label`` are
            looked for.

        Raises
        ------
        InvalidInput
            If a column is missing, or holds what cannot be an id or a grade.
        """
        columns = frames.from_frame(df, qid=qid, docid=docid, value=relevance, role="relevance")
        return cls(columns.qid, columns.docid, columns.value)

    @classmethod
    def from_dict(cls, judgments: Mapping[Any, Mapping[Any, Any]]) -> Qrels:
        """Take judgments from ``{qid: {docid: relevance}}``.

        Parameters
        ----------
        judgments : mapping
            A query with an empty mapping has no judgments and so no rows.

        Raises
        ------
        InvalidInput
            If the inner values are no mappings, or ids or grades are not as they must be.
        """
        columns = frames.from_dict(judgments, "relevance")
        return cls(columns.qid, columns.docid, columns.value)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with the columns qid, docid, relevance (and aspect, if there is one)."""
        import pandas as pd

        columns = {"qid": self.qid.to_pandas(), "docid": self.docid.to_pandas(), "relevance": self.relevance}
        if self.aspect is not None:
            columns["aspect"] = self.aspect.to_pandas()
        return pd.DataFrame(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write TREC text, ``qid iter docid relevance``, replacing the file in one step.

        Parameters
        ----------
        path : path
            Where to; ``.gz`` and ``.zst`` are compressed. The second column is the aspect, or 0.

        Raises
        ------
        InvalidInput
            For ids that the format cannot hold, such as those with blanks.
        """
        for name in ("qid", "docid", "aspect"):
            trec.check_writable(getattr(self, name), name)
        iteration = pa.repeat("0", len(self)) if self.aspect is None else self.aspect
        rows = [self.qid, iteration, self.docid, pa.array(self.relevance)]
        formats.write_atomically(path, trec.trec_text(rows))

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
    judgments : Qrels, mapping, frame or path
        ``{qid: {docid: relevance}}``, a frame with the columns qid, docid, relevance, or a file.

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
    raise InvalidInput(
        f"expected judgments as Qrels, {{qid: {{docid: relevance}}}}, a frame or a path, "
        f"found a {type(judgments).__name__}"
    )
