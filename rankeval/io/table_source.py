"""Open a table with named columns (Parquet, CSV or TSV), and read all columns or some.

CSV with quotes is read row by row by Python's strict reader, since Arrow's reads on after a stray quote. Its cells
become Arrow columns block by block: a million rows of Python texts would take ten times the memory of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from rankeval._registry import chosen
from rankeval.errors import FileFormatError
from rankeval.io.limits import Limits
from rankeval.io.opening import COMPRESSION, PARQUET
from rankeval.io.parquet import parquet_kinds, parquet_table, whole_parquet
from rankeval.io.tables import csv_lines, rows_of
from rankeval.io.text import BOM, check_text

_BYTES = 1 << 24  # of CSV that Arrow parses at a time
_BLOCK = 1 << 14  # rows of CSV that are Python texts at a time
_DELIMITERS = {"csv": ",", "tsv": "\t"}
FORMATS: tuple[str, ...] = ("parquet", *_DELIMITERS)
"""Formats of tables of features."""


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table that is open: its columns can be read once.

    Attributes
    ----------
    path : str
        The file, for messages.
    kinds : mapping of str to Arrow type
        The type of each column; text for CSV.
    columns : callable
        Takes names and returns these columns.
    place : callable
        Takes a row and returns its place in the file, in words.
    delimiter : str
        That of CSV or TSV, empty for Parquet.
    """

    path: str
    kinds: Mapping[str, pa.DataType]
    columns: Callable[[Sequence[str]], pa.Table]
    place: Callable[[int], str]
    delimiter: str = ""


def open_table(file: pa.NativeFile, path: str, format: str | None, limits: Limits) -> TableSource:  # noqa: A002
    """Open a table in the format given (named as in `Qrels.read`), or in the one that content and suffix tell.

    Parameters
    ----------
    file : Arrow file
        The file.
    path : str
        Its name.
    format : {"parquet", "csv", "tsv"}, optional
        The format to expect.
    limits : Limits
        How far the file may expand, and how long a line may be.

    Raises
    ------
    FileFormatError
        If the file is of another format, damaged or empty, or a column is there twice.
    UnknownName
        If there is no such format.
    """
    is_parquet = file.read(len(PARQUET)) == PARQUET
    file.seek(0)
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in COMPRESSION]
    told = "parquet" if is_parquet else "tsv" if suffixes[-1:] == [".tsv"] else "csv"
    wanted = told if format is None else chosen("format of a table of features", format, FORMATS)
    if (wanted == "parquet") != is_parquet:
        raise FileFormatError(f"{path}: expected {wanted}, found {'Parquet' if is_parquet else 'another content'}")
    return _parquet(file, path, limits) if is_parquet else _delimited(file, path, _DELIMITERS[wanted], limits)


def _parquet(file: pa.NativeFile, path: str, limits: Limits) -> TableSource:
    with whole_parquet(path):
        kinds = parquet_kinds(file)

    def columns(names: Sequence[str]) -> pa.Table:
        with whole_parquet(path):
            return parquet_table(file, path, limits, list(names))

    _check_unique([name for name, _ in kinds], path)
    return TableSource(path, dict(kinds), columns, lambda row: f"row {row + 1}")


def _delimited(file: pa.NativeFile, path: str, delimiter: str, limits: Limits) -> TableSource:
    check_text(file, path, limits)
    data = bytes(file.read()).removeprefix(BOM)
    # Without a quote there is nothing that Arrow's reader could take wrongly, and it is ten times as fast.
    is_plain = b'"' not in data and not data.startswith((b"\n", b"\r"))
    header, _ = rows_of(data[: data.find(b"\n")] if is_plain and b"\n" in data else data, delimiter, path)
    if not header:
        raise FileFormatError(f"{path} is empty: expected a first line with the names of the columns")
    _check_unique(header, path)
    lines: list[int] = []

    def columns(names: Sequence[str]) -> pa.Table:
        if is_plain and all(names) and (table := _plain(data, delimiter, names)) is not None:
            return table
        _, rows = rows_of(data, delimiter, path)
        blocks = list(_blocks(rows, [header.index(name) for name in names], lines))
        empty = [pa.array([], pa.string()) for _ in names]
        return pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(block, names=list(names)) for block in blocks or [empty]]
        )

    def place(row: int) -> str:
        if not lines:
            lines.extend(csv_lines(delimiter, data))
        return f"line {lines[row]}"

    return TableSource(path, dict.fromkeys(header, pa.string()), columns, place, delimiter)


def _plain(data: bytes, delimiter: str, names: Sequence[str]) -> pa.Table | None:
    """Read texts without quotes by Arrow; None if it stumbles, so that Python's reader says at which line."""
    try:
        return pacsv.read_csv(
            pa.BufferReader(data),
            pacsv.ReadOptions(use_threads=False, block_size=_BYTES),
            pacsv.ParseOptions(delimiter=delimiter, quote_char=False),
            pacsv.ConvertOptions(
                include_columns=list(names),
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def _blocks(
    records: Iterator[tuple[int, list[str]]], places: Sequence[int], lines: list[int]
) -> Iterator[list[pa.Array]]:
    """Yield the columns of some rows after the other; note the line of each row."""
    rows: list[list[str]] = []
    for line, fields in records:
        lines.append(line)
        rows.append(fields)
        if len(rows) == _BLOCK:
            yield _block(rows, places)
            rows = []
    if rows:
        yield _block(rows, places)


def _block(rows: list[list[str]], places: Sequence[int]) -> list[pa.Array]:
    return [pa.array([row[place] for row in rows], pa.string()) for place in places]


def _check_unique(names: Sequence[str], path: str) -> None:
    for name in names:
        if names.count(name) > 1 and name:
            raise FileFormatError(f"{path}: the column {name!r} is there {names.count(name)} times: keep one")
