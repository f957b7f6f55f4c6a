"""Parquet within limits: a column of equal values takes almost no bytes, however often and however long they are.

So a file of 100 KB can hold 100 GB. Neither its own size nor the sizes in its metadata tell, because both count a value
of a dictionary once. Before anything is read, two bounds are checked: the number of values, and for text the longest
value of each dictionary, which comes with the first row of its group. The trap: text cannot be read as a dictionary,
small as that would be, because Arrow mixes up the rows if a value stands in a dictionary twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval._checks import said
from rankeval.errors import FileFormatError
from rankeval.io.opening import ALWAYS, Limits

_VALUE = 8  # bytes of a value in memory, at least


@contextmanager
def whole_parquet(where: str) -> Iterator[None]:
    """Refuse a file that Arrow finds damaged; ``where`` is the file's name."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"not a whole Parquet file ({said(error)})", where=where) from error


def parquet_kinds(source: pa.NativeFile) -> list[tuple[str, pa.DataType]]:
    """Return name and type of the columns of a Parquet file; a name may be there twice."""
    source.seek(0)
    schema = pq.read_schema(source)
    return list(zip(schema.names, schema.types, strict=True))


def parquet_table(source: pa.NativeFile, where: str, limits: Limits, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file.

    Parameters
    ----------
    source : Arrow file
        The file.
    where : str
        The file's name for messages.
    limits : Limits
        How far it may expand.
    columns : sequence of str, optional
        The columns to read; all if not given.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the file is damaged.
    FileFormatError
        If a column holds lists.
    LimitExceeded
        If the values could take more memory than the limit allows.
    """
    source.seek(0)
    metadata = pq.read_metadata(source)
    most = max(ALWAYS, limits.expansion * source.size())
    # Only from the schema: pyarrow 25 ends the process if the metadata of a column's chunk are damaged.
    leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    wanted = [leaf for leaf in leaves if columns is None or leaf.path.partition(".")[0] in columns]
    if nested := [leaf.path for leaf in wanted if leaf.max_repetition_level]:
        raise FileFormatError(f"{where}: the column {nested[0].partition('.')[0]!r} holds lists: give one value a row")
    if metadata.num_rows * _VALUE > most:
        raise limits.exceeded("expansion", where, f"{metadata.num_rows:,} rows in {source.size():,} bytes")
    n_bytes = _most_bytes(source, [leaf.path for leaf in wanted if leaf.physical_type == "BYTE_ARRAY"])
    if n_bytes > most:
        raise limits.exceeded("expansion", where, f"up to {n_bytes:,} bytes of text in {source.size():,} bytes")
    source.seek(0)
    table = pq.read_table(source, columns=columns)
    table.validate(full=True)  # Parquet does not check that text is UTF-8
    return table


def _most_bytes(source: pa.NativeFile, names: list[str]) -> int:
    """Return how many bytes texts may take at most: each row might have the longest."""
    source.seek(0)
    file = pq.ParquetFile(source, read_dictionary=names)
    total = 0
    for group in range(file.num_row_groups if names else 0):
        n_rows = file.metadata.row_group(group).num_rows
        for first in file.iter_batches(batch_size=1, row_groups=[group], columns=names, use_threads=False):
            total += sum(n_rows * _longest(column) for column in first.columns)
            break
    return total


def _longest(column: pa.Array) -> int:
    """Return the bytes of the longest value of a dictionary."""
    if not pa.types.is_dictionary(column.type) or not len(column.dictionary):
        return 0
    return int(pc.max(pc.binary_length(column.dictionary)).as_py() or 0)
