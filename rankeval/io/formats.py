"""Files of judgments and rankings: which format, compressed or not, and replacing a file in one step.

A reader is one entry of `_READERS`: it takes the uncompressed file, the layout (judgments or ranking) and what to
call it, and returns columns. The format is read off the content first and the name second, since ``.tsv`` may be
a table with a header (BEIR) or a TREC file with tabs (MS MARCO), and ``qrels`` has no suffix at all.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval._registry import unknown
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io import lines
from rankeval.io.frames import Columns, from_frame, spelled
from rankeval.io.limits import DEFAULT, Limits
from rankeval.io.opening import PARQUET, read_bytes, reading
from rankeval.io.text import BOM, check_text
from rankeval.io.trec import Layout, number_of, read_trec
from rankeval.io.writing import COMPRESSION, write_atomically

_SNIFFED = 1 << 14
_LONG = 1 << 12
_NUL = r"\x00"
_OBJECT = re.compile(rb"\{\s*[\"}]")


_Reader = Callable[[pa.NativeFile, Layout, str, Limits], Columns]


def read_columns(
    path: str | os.PathLike[str],
    layout: Layout,
    format: str | None = None,  # noqa: A002
    limits: Limits = DEFAULT,
) -> Columns:
    """Read a file of judgments or a ranking.

    Parameters
    ----------
    path : path
        The file; gzip and zstd are recognised by content.
    layout : Layout
        `trec.QRELS` or `trec.RUN`.
    format : {"trec", "csv", "tsv", "jsonl", "parquet"}, optional
        By default read off the content and the name.
    limits : Limits
        What the file may hold.

    Raises
    ------
    InvalidInput
        If the file does not exist or cannot be read.
    FileFormatError
        If its content is not what the format asks for, or changed while it was read.
    LimitExceeded
        If it is larger than a limit allows.
    UnknownName
        If there is no such format.
    """
    where = Path(path)
    if format is not None and format not in _READERS:
        raise unknown("format", format, _READERS)
    with reading(where, limits) as source:
        kind = format or _sniff(source.read(_SNIFFED), where)
        source.seek(0)
        columns = _READERS[kind](source, layout, str(where), limits)
    return replace(columns, source=Source(str(where), kind, limits))


@dataclass(frozen=True)
class Source:
    """The file that rows were read from, for messages."""

    path: str
    format: str
    limits: Limits = DEFAULT

    def place(self, rows: Iterable[int]) -> str:
        """Say in which lines of the file these rows are.

        Parameters
        ----------
        rows : iterable of int
            Rows, counting from 0.
        """
        numbers = [row + 1 for row in rows]
        if self.format != "parquet" and Path(self.path).is_file():  # a pipe is gone
            found = lines.line_numbers(read_bytes(self.path, self.limits), self.format)
            if max(numbers) <= len(found):
                return f"{self.path}, lines {' and '.join(str(found[number - 1]) for number in numbers)}"
        return f"{self.path}, rows {' and '.join(map(str, numbers))}"


def _sniff(start: bytes, where: Path) -> str:
    """Return the format: by magic bytes and first line, then by suffix."""
    if start.startswith(PARQUET):
        return "parquet"
    start = start.removeprefix(BOM).lstrip()
    first = start.split(b"\n", 1)[0].rstrip()
    # A query may be called "{" too, and a broken object is still to be told as one.
    if _OBJECT.match(first) and (first.endswith(b"}") or len(first) > _LONG or len(first.split()) < 4):
        return "jsonl"
    for name, delimiter in (("tsv", b"\t"), ("csv", b",")):
        heads = [head.strip().strip(b'"').decode(errors="replace") for head in first.split(delimiter)]
        if spelled(heads, "qid") and spelled(heads, "docid"):
            return name
    suffixes = [suffix for suffix in where.suffixes if suffix not in COMPRESSION]
    return {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}.get(suffixes[-1] if suffixes else "", "trec")


def _read_delimited(kind: str) -> _Reader:
    delimiter = lines.DELIMITERS[kind]

    def read(source: pa.NativeFile, layout: Layout, where: str, limits: Limits) -> Columns:
        check_text(source, where, limits)
        if wrong := lines.wrong_quotes(source.read(), delimiter, where):
            raise wrong
        source.seek(0)
        names = _header(source, delimiter, limits)
        try:
            table = pacsv.read_csv(
                source,
                read_options=pacsv.ReadOptions(use_threads=False),
                parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[]),
            )
            table.column_names  # noqa: B018 - decodes the header
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            source.seek(0)
            data = source.read()
            if not data.strip():
                raise _empty(layout, where) from None
            wrong = lines.wrong_record(data, delimiter, where)
            raise wrong or FileFormatError(f"{where}: {' '.join(str(error).split())}") from error

        def rows() -> list[str]:
            source.seek(0)
            return [f"line {number}" for number in lines.line_numbers(source.read(), kind)]

        return _from_table(table, layout, f"{where}, line 1", where, rows, _swallowing(delimiter))

    return read


def _header(source: pa.NativeFile, delimiter: str, limits: Limits) -> list[str]:
    """Return the names of all columns: those that Arrow is not told to be text it would read as numbers."""
    start = source.read(limits.line).removeprefix(BOM).lstrip(b"\r\n").decode(errors="replace")
    source.seek(0)
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except csv.Error:  # a name of more than 128 KB
        return []


def _read_jsonl(source: pa.NativeFile, layout: Layout, where: str, limits: Limits) -> Columns:
    import json

    check_text(source, where, limits)

    rows: list[dict[str, Any]] = []
    numbers: list[str] = []
    for number, line in enumerate(io.BytesIO(source.read().removeprefix(BOM)), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError) as error:  # of the text, its encoding, or thousands of brackets
            raise FileFormatError(f"{where}, line {number}: expected one JSON object, found {line[:80]!r}") from error
        if not isinstance(row, dict):
            raise FileFormatError(f"{where}, line {number}: expected one JSON object, found {line[:80]!r}")
        rows.append(row)
        numbers.append(f"line {number}")
    if not rows:
        raise _empty(layout, where)
    names = list(dict.fromkeys(name for row in rows for name in row))
    parts = _parts(names, layout, where)
    wanted = [*parts.values(), *(name for name in _FURTHER[layout.value] if name in names)]
    cells = {name: [row.get(name) for row in rows] for name in wanted}
    for name in _FURTHER["score"]:  # read off the first row; nobody asks what stands in others
        if name in cells:
            cells[name] = [str(cells[name][0] or "")] * len(rows)
    try:
        table = pa.table({name: pa.array(column) for name, column in cells.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        wrong = lines.wrong_cell(*_split(cells, parts, layout), numbers, where)
        raise wrong or FileFormatError(f"{where}: the values of one key have different types ({error})") from error
    return _from_table(table, layout, where, where, lambda: numbers)


def _read_parquet(source: pa.NativeFile, layout: Layout, where: str, limits: Limits) -> Columns:
    from rankeval.io.parquet import parquet_names, parquet_table

    try:
        names = parquet_names(source)
        parts = _parts(names, layout, where)
        further = [name for name in _FURTHER[layout.value] if names.count(name) == 1]
        table = parquet_table(source, where, limits, list(dict.fromkeys([*parts.values(), *further])))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{where}: not a whole Parquet file ({' '.join(str(error).split())})") from error
    return _from_table(table, layout, where, where, lambda: [f"row {row}" for row in range(1, len(table) + 1)])


_FURTHER = {"relevance": ("aspect", "subgroup"), "score": ("run", "tag")}
"""Columns that are taken where they are there: parts of judgments; what the system is called."""


def _from_table(
    table: pa.Table, layout: Layout, header: str, where: str, rows: Callable[[], list[str]], bad: str = _NUL
) -> Columns:
    """Take the columns of a table that came from a file; text numbers are parsed as in TREC files."""
    parts = _parts(table.column_names, layout, header)
    if table.num_rows == 0:
        raise _empty(layout, where)
    name = parts[layout.value]
    aspect = "aspect" if layout.value == "relevance" else None
    taken = table
    try:
        if pa.types.is_string(table.column(name).type):
            numbers = [number_of(text, "") for text in table.column(name).to_pylist()]
            taken = table.set_column(table.column_names.index(name), name, pa.array(numbers, pa.float64()))
        columns = from_frame(
            taken, qid=parts["qid"], docid=parts["docid"], value=name, role=layout.value, aspect=aspect
        )
    except (InvalidInput, TypeError) as error:
        cells = {one: table.column(one).to_pylist() for one in parts.values()}
        wrong = lines.wrong_cell(*_split(cells, parts, layout), rows(), where)
        raise wrong or FileFormatError(f"{where}: {' '.join(str(error).split())}") from error
    _check_ids(columns, rows, where, bad)
    return columns if aspect else replace(columns, name=_name(table))


def _swallowing(delimiter: str) -> str:
    """Return a pattern of ids that no table of text holds: with NUL, or rows between two stray quotes."""
    return rf"(?s){_NUL}|\n.*{delimiter}|{delimiter}.*\n"


def _check_ids(columns: Columns, rows: Callable[[], list[str]], where: str, bad: str) -> None:
    """Refuse ids with NUL, as in TREC files, and those that are rows which a stray quote swallowed."""
    for name in ("qid", "docid", "aspect", "subgroup"):
        ids = getattr(columns, name)
        if ids is None or pa.types.is_integer(ids.type):
            continue
        row = pc.index(pc.match_substring_regex(ids, bad), True).as_py()
        if row >= 0:
            places = rows()
            place = places[row] if row < len(places) else f"row {row + 1}"
            raise FileFormatError(
                f"{where}, {place}, column {name}: found {ids[row].as_py()!r}; ids hold no NUL, and no rows between "
                "two quotes: is a quote too many?"
            )


def _parts(names: list[str], layout: Layout, where: str) -> dict[str, str]:
    """Return which column is the query, the document and the value, or say which is missing or there twice."""
    parts = {}
    for part in ("qid", "docid", layout.value):
        found = spelled(names, part)
        if len(found) == 1 and names.count(found[0]) > 1:
            raise FileFormatError(f"{where}: the column {found[0]!r} is there {names.count(found[0])} times: keep one")
        if len(found) != 1:
            could = f"columns {', '.join(map(repr, found))} could be it" if found else f"found {names}"
            raise FileFormatError(
                f"{where}: expected columns called qid, docid and {layout.value}, but there is no {part!r}: {could}; "
                f"rename it, or read the file as a frame and say {part}= in {layout.kind.capitalize()}.from_frame"
            )
        parts[part] = found[0]
    return parts


def _split(
    cells: dict[str, list[Any]], parts: dict[str, str], layout: Layout
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the columns of ids, and the one of numbers."""
    value = parts[layout.value]
    return {name: column for name, column in cells.items() if name != value}, {value: cells[value]}


def _name(table: pa.Table) -> str | None:
    """Return what a table calls the system: its first row, as in TREC files."""
    named = [one for one in _FURTHER["score"] if table.column_names.count(one) == 1]
    value = table.column(named[0])[0].as_py() if named else None
    return value if isinstance(value, str) and value else None


def _empty(layout: Layout, where: str) -> FileFormatError:
    return FileFormatError(f"{where} is empty: expected rows with qid, docid and {layout.value}")


_READERS: dict[str, _Reader] = {
    "trec": read_trec,
    "csv": _read_delimited("csv"),
    "tsv": _read_delimited("tsv"),
    "jsonl": _read_jsonl,
    "parquet": _read_parquet,
}


_WRITERS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def write_format(path: str | os.PathLike[str], format: str | None) -> str:  # noqa: A002
    """Return the format to write: the one asked for, else by the name, TREC text where that says nothing.

    Raises
    ------
    UnknownName
        If there is no such format.
    """
    if format is not None:
        if format not in _READERS:
            raise unknown("format", format, _READERS)
        return format
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in COMPRESSION]
    return _WRITERS.get(suffixes[-1] if suffixes else "", "trec")


def write_table(path: str | os.PathLike[str], table: pa.Table, format: str) -> None:  # noqa: A002
    """Write a table as CSV, TSV, JSON lines or Parquet, replacing the file in one step.

    Parameters
    ----------
    path : path
        Where to; ``.gz`` and ``.zst`` are compressed.
    table : pyarrow.Table
        The columns.
    format : {"csv", "tsv", "jsonl", "parquet"}
        How to write them.

    Raises
    ------
    InvalidInput
        For ids that would not be read again: with NUL; in CSV and TSV also with CR, or with LF and the delimiter.
    """
    bad = rf"{_swallowing(lines.DELIMITERS[format])}|\r" if format in lines.DELIMITERS else _NUL
    for name in table.column_names:
        ids = table.column(name)
        row = pc.index(pc.match_substring_regex(ids, bad), True).as_py() if pa.types.is_string(ids.type) else -1
        if row >= 0:
            raise InvalidInput(
                f"{name} {ids[row].as_py()!r} in row {row} (counting from 0) cannot stand in a {format} file"
            )
    if format == "jsonl":
        import json

        write_atomically(path, (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in table.to_pylist()))
        return
    sink = pa.BufferOutputStream()
    if format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, sink)
    else:
        options = pacsv.WriteOptions(delimiter="\t" if format == "tsv" else ",", quoting_style="needed")
        pacsv.write_csv(table, sink, options)
    write_atomically(path, [sink.getvalue()])
