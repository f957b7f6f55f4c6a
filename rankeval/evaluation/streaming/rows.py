"""Rows of Parquet files as record batches, under the names of what they are.

Texts of queries are read as dictionaries, which takes half the time. The trap: a dictionary may hold a value twice;
Arrow drops the second and keeps the places, so that rows change their query. A place beyond the end shows that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    kinds = _kinds(columns, coded=coded)
    for file in files:
        place = Place(file, file.row_groups[0])
        try:
            with _opened(file, columns, coded=coded) as parquet:
                for group in file.row_groups:
                    place = Place(file, group)
                    yield from _of_group(parquet, place, columns, most or BATCH, kinds)
        except (pa.ArrowException, OSError) as error:
            raise FileFormatError(f"{place}: cannot be read ({' '.join(str(error).split())})") from error


def _opened(file: File, columns: Columns, *, coded: bool) -> pq.ParquetFile:
    remote = file.filesystem.type_name != "local"
    coded = coded and all(group.reads_coded for group in file.row_groups)
    return pq.ParquetFile(
        file.filesystem.open_input_file(file.path),
        read_dictionary=[columns.names["qid"]] if coded else None,
        pre_buffer=remote,  # joins many small requests into a few
        buffer_size=0 if remote else _BUFFER,
    )


def _of_group(
    parquet: pq.ParquetFile, place: Place, columns: Columns, most: int, kinds: Mapping[str, pa.DataType]
) -> Iterator[Batch]:
    keys = place.file.keys
    # If all columns stand in the names of folders, another one is read to count the rows.
    wanted = [name for name in dict.fromkeys(columns.names.values()) if name not in keys]
    wanted = wanted or parquet.schema_arrow.names[:1]
    for batch in parquet.iter_batches(most, [place.group.number], wanted, use_threads=False):
        found = []
        for role, name in columns.names.items():
            if name in keys:
                column = pa.repeat(pa.scalar(keys[name], columns.types[role]), batch.num_rows)
            else:
                column = batch.column(name)
            found.append(_as_type(column, kinds[role], f"{place}: {role}={name!r}"))
        yield Batch(pa.RecordBatch.from_arrays(found, list(columns.names)), place)


def _kinds(columns: Columns, *, coded: bool) -> dict[str, pa.DataType]:
    """Return the types of the columns of all batches, whatever files hold."""
    kinds = dict(columns.types)
    if coded and is_text(kinds["qid"]):
        kinds["qid"] = pa.dictionary(pa.int32(), kinds["qid"])
    return kinds


def _as_type(column: pa.Array, kind: pa.DataType, what: str) -> pa.Array:
    """Return a column in the type of all batches, which a file may hold as a dictionary, or in another width."""
    held = column.type
    is_coded = pa.types.is_dictionary(held)
    if is_coded and _lacks_values(column):
        raise FileFormatError(f"{what}: its dictionary holds a value twice; write the file again")
    if held == kind:
        return column
    try:
        if not pa.types.is_dictionary(kind):
            return (column.dictionary_decode() if is_coded else column).cast(kind)
        coded = column if is_coded else column.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            coded.indices.cast(kind.index_type), coded.dictionary.cast(kind.value_type)
        )
    except pa.ArrowInvalid as error:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        raise InvalidInput(f"{what}: {' '.join(str(error).split())}; the data set has this column as {kind}") from None


def _lacks_values(coded: pa.DictionaryArray) -> bool:
    """Say whether places lie beyond the end of the dictionary, as they do if Arrow has dropped a value from it."""
    is_full = len(coded) and not coded.null_count
    return bool(is_full and int(numbers_of(coded.indices).max()) >= len(coded.dictionary))


def as_columns(rows: Any) -> dict[str, Any]:
    """Return the columns of rows as the arguments of `join_arrays`, ``docid`` None if it is not read."""
    names = {"y": "relevance", "score": "score", "qid": "qid", "docid": "docid"}
    return {name: rows[role] if role in rows.schema.names else None for name, role in names.items()}
