"""Parquet within limits: a column of equal values takes almost no bytes, however often and however long they are.

A file of 100 KB can so hold 100 GB. Neither its own size nor the sizes in its metadata tell, as both count a value of
a dictionary once. So the numbers of values are looked at before anything is read, and text is read as the file has it,
as places in a dictionary, whose values are measured before they are copied into their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankeval.collection.limits import ALWAYS, Limits

_VALUE = 8  # bytes of a value in memory, at least


def parquet_names(source: pa.NativeFile) -> list[str]:
    """Return the names of the columns of a Parquet file.

    Parameters
    ----------
    source : Arrow file
        The file.
    """
    source.seek(0)
    return list(pq.read_schema(source).names)


def parquet_table(source: pa.NativeFile, where: str, limits: Limits, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, its text columns as plain text.

    Parameters
    ----------
    source : Arrow file
        The file.
    where : str
        What messages call the file.
    limits : Limits
        How far it may expand.
    columns : sequence of str, optional
        The columns to read; all if not given.

    Raises
    ------
    pyarrow.ArrowInvalid
        When the file is damaged.
    LimitExceeded
        When the values would take more memory than the limit allows.
    """
    source.seek(0)
    metadata = pq.read_metadata(source)
    most = max(ALWAYS, limits.expansion * source.size())
    chunks = [
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    ]
    n_values = sum(one.num_values for one in chunks if columns is None or one.path_in_schema in columns)
    if max(metadata.num_rows, n_values) * _VALUE > most:
        raise limits.exceeded("expansion", where, f"{metadata.num_rows:,} rows in {source.size():,} bytes")
    packed = {one.path_in_schema for one in chunks if one.physical_type == "BYTE_ARRAY" and one.has_dictionary_page}
    source.seek(0)
    table = pq.read_table(source, columns=columns, read_dictionary=sorted(packed))
    n_bytes = sum(_n_bytes(column) for column in table.columns)
    if n_bytes > most:
        raise limits.exceeded("expansion", where, f"{n_bytes:,} bytes of text in {source.size():,} bytes")
    for place, name in enumerate(table.column_names):
        if name in packed:
            table = table.set_column(place, name, _plain(table.column(place)))
    table.validate(full=True)  # nobody else looks whether text is UTF-8
    return table


def _n_bytes(column: pa.ChunkedArray) -> int:
    """Return how many bytes the values of a dictionary take when each row has its own."""
    if not pa.types.is_dictionary(column.type):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(one).as_py() or 0 for one in lengths)


def _plain(column: pa.ChunkedArray) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
