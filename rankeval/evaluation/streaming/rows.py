"""Rows of Parquet files as record batches, under the names of what they are.

Texts of queries are read as dictionaries, which takes half the time. The trap: a dictionary may hold a value twice;
Arrow drops the second and keeps the places, so that rows change their query. A place beyond the end shows that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from rankeval.errors import FileFormatError, InvalidInput
from rankeval.evaluation.streaming.kinds import is_text
from rankeval.evaluation.streaming.source import Columns, File, RowGroup
from rankeval.io.columns import numbers_of

BATCH = 15 << 14
"""Rows of a batch: twice as many are no quicker, and take twice the memory (bench_streaming)."""

_BUFFER = 1 << 20
"""Bytes read at a time of each column, so that a row group of any size takes little memory."""


@dataclass(frozen=True, eq=False)
class Place:
    """A row group of a file."""

    file: File
    group: RowGroup

    def __str__(self) -> str:
        return f"{self.file.path}, row group {self.group.number}"


class Batch(NamedTuple):
    """Some rows of a row group, and where they stand."""

    rows: pa.RecordBatch
    place: Place


def batches(files: Sequence[File], columns: Columns, *, coded: bool = True, most: int | None = None) -> Iterator[Batch]:
    """Yield the rows of files, under the names ``qid``, ``relevance`` and so on.

    Parameters
    ----------
    files : sequence of File
        Files, or some of their row groups.
    columns : Columns
        The columns to read.
    coded : bool
        Whether texts of queries are read as dictionaries. If rows are not sorted these are large, and gain nothing.
    most : int, optional
        Rows of a batch at most; by default `BATCH`.

    Raises
    ------
    FileFormatError
        If a file is damaged.
    """
    for file in files:
        place = Place(file, file.row_groups[0])
        try:
            with _opened(file, columns, coded=coded) as parquet:
                for group in file.row_groups:
                    place = Place(file, group)
                    yield from _of_group(parquet, place, columns, most or BATCH)
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"{place}: cannot be read ({' '.join(str(error).split())})") from error


def _opened(file: File, columns: Columns, *, coded: bool) -> pq.ParquetFile:
    remote = file.filesystem.type_name != "local"
    qid = columns.names["qid"]
    return pq.ParquetFile(
        file.filesystem.open_input_file(file.path),
        read_dictionary=[qid] if coded and is_text(columns.types["qid"]) and qid not in file.keys else None,
        pre_buffer=remote,  # joins many small requests into a few
        buffer_size=0 if remote else _BUFFER,
    )


def _of_group(parquet: pq.ParquetFile, place: Place, columns: Columns, most: int) -> Iterator[Batch]:
    keys = place.file.keys
    # If all columns stand in the names of folders, another one is read to count the rows.
    wanted = [name for name in dict.fromkeys(columns.names.values()) if name not in keys]
    wanted = wanted or parquet.schema_arrow.names[:1]
    for batch in parquet.iter_batches(most, [place.group.number], wanted, use_threads=False):
        found = []
        for role, name in columns.names.items():
            kind = columns.types[role]
            if name in keys:
                found.append(pa.repeat(pa.scalar(keys[name], kind), batch.num_rows))
            else:
                found.append(_as_type(batch.column(name), kind, f"{place}: {role}={name!r}"))
        yield Batch(pa.RecordBatch.from_arrays(found, list(columns.names)), place)


def _as_type(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    """Return a column in the type of the data set; a dictionary of texts stays one, since it is quick to group by."""
    if pa.types.is_dictionary(column.type):
        if not column.null_count and len(column) and int(numbers_of(column.indices).max()) >= len(column.dictionary):
            raise FileFormatError(f"{what}: its dictionary holds a value twice; write the file again")
        if column.type.value_type == kind and is_text(kind):
            return column
    try:
        return column if column.type == kind else column.cast(kind)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{what}: {' '.join(str(error).split())}; the data set has this column as {kind}") from None


def as_columns(rows: Any) -> dict[str, Any]:
    """Return the columns of rows as the arguments of `join_arrays`, ``docid`` None if it is not read."""
    names = {"y": "relevance", "score": "score", "qid": "qid", "docid": "docid"}
    return {name: rows[role] if role in rows.schema.names else None for name, role in names.items()}
