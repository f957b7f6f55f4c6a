"""Rankings, as columns: which document got which score for which query."""

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
from rankeval.io import formats, frames, trec, writing
from rankeval.io.columns import numbers_of
from rankeval.io.limits import DEFAULT, Limits

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A ranking: the score that a system gave to a document for a query, one row each.

    The order of documents is that of their scores, descending; rows stay in the order they came in.

    Parameters
    ----------
    qid, docid : array-like of str or of int
        The query and the document of each row; stored as Arrow arrays of string or int64.
    score : array-like of number
        The score of each row; stored as float64.
    name : str, optional
        What to call the system: the tag of a TREC file.
    source : Source, optional
        The file that it was read from, for messages.

    Raises
    ------
    InvalidInput
        For missing ids, ids of mixed types, scores that are no finite numbers, and columns of different lengths.

    Examples
    --------
    >>> Run.from_dict({"q1": {"d1": 2.5, "d2": 0.1}}, name="bm25")
    Run('bm25', 2 rows, 1 queries)
    """

    qid: pa.Array
    docid: pa.Array
    score: NDArray[np.float64]
    name: str | None = None
    source: formats.Source | None = None

    def __post_init__(self) -> None:
        check_rows(qid=self.qid, docid=self.docid, score=self.score)
        object.__setattr__(self, "qid", frames.id_column(self.qid, "qid"))
        object.__setattr__(self, "docid", frames.id_column(self.docid, "docid"))
        score = frames.value_column(self.score, "score", "score").astype(np.float64, copy=False)
        object.__setattr__(self, "score", score)
        frames.check_lengths(self, "docid", "score")

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        format: str | None = None,  # noqa: A002
        *,
        limits: Limits = DEFAULT,
    ) -> Run:
        """Read a ranking from a file: TREC text, CSV or TSV with a header, JSON lines or Parquet.

        Parameters
        ----------
        path : path
            The file, also as ``.gz`` or ``.zst``.
        format : {"trec", "csv", "tsv", "jsonl", "parquet"}, optional
            By default read off the content and the name.
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
        columns = formats.read_columns(path, trec.RUN, format, limits)
        return cls(columns.qid, columns.docid, columns.value, columns.name, columns.source)

    @classmethod
    def from_frame(
        cls, df: Any, *, qid: str = "qid", docid: str = "docid", score: str = "score", name: str | None = None
    ) -> Run:
        """Take a ranking from a pandas or polars frame, an Arrow table or any object with an Arrow C stream.

        Parameters
        ----------
        df : frame
            One row per retrieved document.
        qid, docid, score : str
            Names of its columns. Where the default is not there, usual spellings such as ``docno`` are looked for.
        name : str, optional
            What to call the system.

        Raises
        ------
        InvalidInput
            If a column is missing, or holds what cannot be an id or a score.
        """
        columns = frames.from_frame(df, qid=qid, docid=docid, value=score, role="score")
        return cls(columns.qid, columns.docid, columns.value, name)

    @classmethod
    def from_records(cls, records: Any, *, name: str | None = None) -> Run:
        """Take a ranking from records with query_id, doc_id and score, as those of ir_datasets and ir_measures.

        Parameters
        ----------
        records : iterable of records, or dataset
            A dataset with ``scoreddocs_iter()``, or what that gives.
        name : str, optional
            What to call the system.

        Raises
        ------
        InvalidInput
            If a record lacks one of these, or holds what cannot be an id or a score.
        """
        columns = frames.from_records(records, "score")
        return cls(columns.qid, columns.docid, columns.value, name)

    @classmethod
    def from_dict(cls, scores: Mapping[Any, Mapping[Any, Any]], *, name: str | None = None) -> Run:
        """Take a ranking from ``{qid: {docid: score}}``.

        Parameters
        ----------
        scores : mapping
            A query with an empty mapping retrieved nothing and has no rows.
        name : str, optional
            What to call the system.

        Raises
        ------
        InvalidInput
            If the inner values are no mappings, or ids or scores are not as they must be.
        """
        columns = frames.from_dict(scores, "score")
        return cls(columns.qid, columns.docid, columns.value, name)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame with the columns qid, docid, score."""
        import pandas as pd

        return pd.DataFrame({"qid": self.qid.to_pandas(), "docid": self.docid.to_pandas(), "score": self.score})

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the ranking, replacing the file in one step.

        TREC text is ``qid Q0 docid rank score tag``; tables have the columns qid, docid and score, and run if there
        is a name. Queries come in the order of their first row, documents by descending score, equal scores in the
        order of their rows. Scores are written so that they read back to the last bit.

        Parameters
        ----------
        path : path
            Where to; ``.gz`` and ``.zst`` are compressed. The tag is the name, or ``run``.
        format : {"trec", "csv", "tsv", "jsonl", "parquet"}, optional
            By default what the name ends in, or else "trec".

        Raises
        ------
        InvalidInput
            For ids that the format cannot hold, such as those with blanks; when there is nothing to write, as no file
            is read that has no rows; when there is no such folder.
        """
        if not len(self):
            raise InvalidInput(f"the run has no rows to write to {str(path)!r}: a file without rows cannot be read")
        query = numbers_of(self.qid.dictionary_encode().indices)
        order = np.lexsort((-self.score, query))  # stable: equal scores stay in row order
        kind = formats.write_format(path, format)
        if kind != "trec":
            columns = {"qid": self.qid, "docid": self.docid, "score": pa.array(self.score)}
            table = pa.table(columns).take(pa.array(order))
            if self.name:
                table = table.append_column("run", pa.repeat(self.name, len(self)))
            formats.write_table(path, table, kind)
            return
        for column in ("qid", "docid"):
            trec.check_writable(getattr(self, column), column)
        starts = np.flatnonzero(np.r_[True, np.diff(query[order]) != 0]) if len(self) else np.empty(0, np.int64)
        rank = np.arange(1, len(self) + 1) - np.repeat(starts, np.diff(np.r_[starts, len(self)]))
        rows = [
            self.qid.take(pa.array(order)),
            pa.repeat("Q0", len(self)),
            self.docid.take(pa.array(order)),
            pa.array(rank),
            pa.array(self.score[order]),
            pa.repeat("_".join((self.name or "run").split()), len(self)),
        ]
        writing.write_atomically(path, trec.trec_text(rows))

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        return f"Run({label}{len(self)} rows, {len(self.qid.unique())} queries)"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def as_run(ranking: Any) -> Run:
    """Return a ranking given as Run, dict, frame or path as Run.

    Parameters
    ----------
    ranking : Run, mapping, frame, path or records
        ``{qid: {docid: score}}``, a frame with the columns qid, docid, score, a file, or what ir_datasets has.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if isinstance(ranking, Run):
        return ranking
    if isinstance(ranking, Mapping):
        return Run.from_dict(ranking)
    if isinstance(ranking, (str, os.PathLike)):
        return Run.read(ranking)
    if frames.is_frame(ranking):
        return Run.from_frame(ranking)
    if frames.is_records(ranking):
        return Run.from_records(ranking)
    raise InvalidInput(
        f"expected a ranking as Run, {{qid: {{docid: score}}}}, a frame or a path, found a {type(ranking).__name__}"
    )
