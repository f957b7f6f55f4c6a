"""Tables with named columns: CSV, TSV, JSON lines and Parquet.

The columns of judgments and rankings are found under our names or the usual ones of other tools (`frames.SPELLINGS`);
those of a table of features are the caller's (`feature_tables`). Ids of CSV are text; JSON lines and Parquet say
whether an id is text or an integer. Arrow reads the cells of CSV. A file with quotes is read by Python's strict reader
before, because Arrow's reads on after a stray quote, through other rows.
"""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval._checks import count, said, unique_keys
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import IDS, Columns
from rankeval.io.formats import Format, OpenFile, add_format, suffix_of, text_lines
from rankeval.io.frames import NUMBER_IN_INDEX, columns_of, refuse_other_pairs, spelled
from rankeval.io.opening import BOM, Limits, check_text
from rankeval.io.opening import PARQUET as MAGIC

_LONG = 1 << 12  # bytes; a longer first line is no row of TREC text
NUL = r"\x00"
"""A pattern for ids that no file of TREC can hold."""

_ADVICE = "rename it, or read the file as a frame and say {part}= in Qrels.from_frame or Run.from_frame"
_BYTES = 1 << 24  # of CSV that Arrow parses at a time
_DELIMITERS = {"csv": ",", "tsv": "\t"}
TABLES: tuple[str, ...] = ("parquet", *_DELIMITERS)
"""Formats of tables of features."""
_OBJECT = re.compile(rb"\{\s*[\"}]")


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table that is open: its columns can be read once.

    Attributes
    ----------
    path : str
        The file, for messages.
    names : sequence of str
        The columns; a name may be there twice.
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
    names: Sequence[str]
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
    is_parquet = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    told = "parquet" if is_parquet else "tsv" if suffix_of(Path(path)) == ".tsv" else "csv"
    wanted = told if format is None else chosen("format of a table of features", format, TABLES)
    if (wanted == "parquet") != is_parquet:
        raise FileFormatError(f"{path}: expected {wanted}, found {'Parquet' if is_parquet else 'another content'}")
    source = _open_parquet(file, path, limits) if is_parquet else _open_text(file, path, _DELIMITERS[wanted], limits)
    if source.delimiter and not source.names:
        raise FileFormatError(f"{path} is empty: expected a first line with the names of the columns")
    for name in source.names:
        if source.names.count(name) > 1 and name:
            raise FileFormatError(f"{path}: the column {name!r} is there {source.names.count(name)} times: keep one")
    return source


def _open_parquet(file: pa.NativeFile, path: str, limits: Limits) -> TableSource:
    from rankeval.io.parquet import parquet_kinds, parquet_table, whole_parquet

    with whole_parquet(path):
        kinds = parquet_kinds(file)

    def columns(names: Sequence[str]) -> pa.Table:
        with whole_parquet(path):
            return parquet_table(file, path, limits, list(names))

    return TableSource(path, [name for name, _ in kinds], dict(kinds), columns, lambda row: f"row {row + 1}")


def _open_text(file: pa.NativeFile, path: str, delimiter: str, limits: Limits) -> TableSource:
    check_text(file, path, limits)
    data = bytes(file.read()).removeprefix(BOM)
    # Without a quote there is nothing that Arrow's reader could take wrongly; Python's would take ten times as long.
    is_plain = b'"' not in data and not data.startswith((b"\n", b"\r"))
    first = data[: data.find(b"\n")] if is_plain and b"\n" in data else data
    _, header = next(_records(first, delimiter, path), (1, []))
    lines = cache(partial(csv_lines, delimiter, data))

    def columns(names: Sequence[str]) -> pa.Table:
        if not is_plain:
            deque(_records(data, delimiter, path), maxlen=0)
        try:
            return _cells(data, delimiter, len(header), [header.index(name) for name in names]).rename_columns(names)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            deque(_records(data, delimiter, path), maxlen=0)  # says at which line
            raise FileFormatError(said(error), where=path) from error

    return TableSource(
        path, header, dict.fromkeys(header, pa.string()), columns, lambda row: f"line {lines()[row]}", delimiter
    )


def _cells(data: bytes, delimiter: str, width: int, places: Sequence[int]) -> pa.Table:
    """Read the texts of some columns, by their places: a name may stand twice in the header, or be empty."""
    names = [str(place) for place in range(width)]
    table = pacsv.read_csv(
        pa.BufferReader(data),
        pacsv.ReadOptions(use_threads=False, block_size=_BYTES, column_names=names),
        pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
        pacsv.ConvertOptions(
            include_columns=[names[place] for place in places],
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
        ),
    )
    return table.slice(1)  # the header


def _parts(names: Sequence[str], value: str, where: str) -> dict[str, str]:
    """Return part -> column, as `columns_of` finds them."""
    said = f"{where}: expected columns called qid, docid and {value}; the table"
    return columns_of(names, value, where=said, advice=_ADVICE, error=FileFormatError)


def _columns(
    cells: dict[str, Any], parts: dict[str, str], given: OpenFile, bad: str, place: Callable[[int], str]
) -> Columns:
    """Return the columns of a table; refuse ids with NUL, as in TREC files, and ids that are swallowed rows."""
    if NUMBER_IN_INDEX in cells:
        refuse_other_pairs(cells["docid"], cells.pop(NUMBER_IN_INDEX), given.path, _ADVICE, FileFormatError)
    for part in [name for name in IDS if name in cells]:
        refuse_bad_ids(cells[part], bad, given.path, part, place)
    # The first row names the system, as in TREC files.
    name = next(iter(cells.pop("name", ())), None)
    name = name if isinstance(name, str) and name else None
    return Columns(value=cells.pop(given.value), value_name=parts[given.value], name=name, **cells)


def refuse_bad_ids(cells: Any, bad: str, path: str, column: str, place: Callable[[int], str]) -> None:
    """Refuse ids that match a pattern, such as that of `swallowed`; ``place`` gives a row's place in the file."""
    if not isinstance(cells, list) and pa.types.is_integer(cells.type):
        return
    try:  # Arrow's own search: a Python string for each of a million ids would take longer than the reading
        texts = pa.array(cells, pa.large_string()) if isinstance(cells, list) else cells.cast(pa.large_string())
    except (pa.ArrowException, TypeError, UnicodeError):  # numbers, bytes that are no UTF-8: `id_column` judges them
        return
    row = pc.index(pc.match_substring_regex(texts, bad), True).as_py()
    if row >= 0:
        raise FileFormatError(
            f"found {texts[row].as_py()[:80]!r}; an id holds no NUL, and no rows between two quotes: is a quote too "
            "many?",
            where=f"{path}, {place(row)}, column {column}",
        )


def swallowed(delimiter: str) -> str:
    """Return a pattern for ids that hold NUL or, in text, rows between two stray quotes."""
    return rf"(?s){NUL}|\n.*{delimiter}|{delimiter}.*\n" if delimiter else NUL


def _records(data: bytes, delimiter: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each record, as many as of the first; a field in quotes may hold line breaks."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        found = data.split(b"\n")[line][:80]
        raise FileFormatError(f"expected UTF-8 text, found {found!r}", where=f"{where}, line {line + 1}") from error
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    begin = 1
    try:
        for fields in reader:
            header = header or fields
            if fields and len(fields) != len(header):
                raise FileFormatError(
                    f"expected {count(len(header), 'column')} ({', '.join(header)[:80]}), found {len(fields)}: "
                    f"{delimiter.join(fields)[:80]!r}",
                    where=f"{where}, line {begin}",
                )
            if fields:
                yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        where = f"{where}, line {reader.line_num}"
        raise FileFormatError(f"a quote stands where none can: {error}", where=where) from error


def csv_lines(delimiter: str, data: bytes) -> list[int]:
    """Return the line of each row."""
    return [line for line, _ in _records(data, delimiter, "")][1:]


def _is_csv(delimiter: str, start: bytes) -> bool:
    """Say whether the first line is a header with names for query and document."""
    first = start.removeprefix(BOM).lstrip().split(b"\n", 1)[0]
    if delimiter.encode() not in first:
        return False
    names = [name.strip().strip(b'"').decode(errors="replace") for name in first.split(delimiter.encode())]
    return bool(spelled(names, "qid") and spelled(names, "docid"))


def _write_csv(delimiter: str, table: pa.Table) -> list[pa.Buffer]:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=delimiter, quoting_style="needed"))
    return [sink.getvalue()]


def _read_jsonl(given: OpenFile) -> Columns:
    check_text(given.file, given.path, given.limits)
    rows, lines = [], []
    for line, text in enumerate(BytesIO(given.file.read().removeprefix(BOM)), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text.decode())
            if isinstance(row, dict) and text.count(b":") > len(row):  # the hook alone would take half as long again
                json.loads(text, object_pairs_hook=unique_keys)
        except InvalidInput as error:
            raise FileFormatError(f"{error}", where=f"{given.path}, line {line}") from error
        except (ValueError, RecursionError):  # of the text, its encoding, or thousands of brackets
            row = None
        if not isinstance(row, dict):
            raise FileFormatError(f"expected one JSON object, found {text[:80]!r}", where=f"{given.path}, line {line}")
        rows.append(row)
        lines.append(line)
    if not rows:
        return Columns([], [], [])
    parts = _parts(list(dict.fromkeys(name for row in rows for name in row)), given.value, given.path)
    cells = {part: [row.get(name) for row in rows] for part, name in parts.items()}
    return _columns(cells, parts, given, NUL, lambda row: f"line {lines[row]}")


def _is_jsonl(start: bytes) -> bool:
    """Say whether the first line is a JSON object, perhaps a broken one; a query of TREC text may be called { too."""
    first = start.removeprefix(BOM).lstrip().split(b"\n", 1)[0].rstrip()
    is_object = first.endswith(b"}") or len(first) > _LONG or len(first.split()) < 4
    return is_object and _OBJECT.match(first) is not None


def _write_jsonl(table: pa.Table) -> Iterator[bytes]:
    return (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in table.to_pylist())


def _read_named(source: TableSource, given: OpenFile) -> Columns:
    if source.delimiter and not source.names:
        return Columns([], [], [])
    parts = _parts(source.names, given.value, f"{given.path}, line 1" if source.delimiter else given.path)
    table = source.columns(list(parts.values()))
    cells = {part: table.column(name) for part, name in parts.items()}
    if "name" in cells:
        cells["name"] = cells["name"].slice(0, 1).to_pylist()
    if pa.types.is_string(cells[given.value].type):
        cells[given.value] = cells[given.value].to_pylist()
    return _columns(cells, parts, given, swallowed(source.delimiter), source.place)


def _read_csv(delimiter: str, given: OpenFile) -> Columns:
    return _read_named(_open_text(given.file, given.path, delimiter, given.limits), given)


def _read_parquet(given: OpenFile) -> Columns:
    return _read_named(_open_parquet(given.file, given.path, given.limits), given)


def _write_parquet(table: pa.Table) -> list[pa.Buffer]:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return [sink.getvalue()]


def _delimited(name: str, words: str, delimiter: str, *, is_told_by_suffix: bool = True) -> Format:
    return Format(
        name,
        words,
        read=partial(_read_csv, delimiter),
        write=partial(_write_csv, delimiter),
        suffixes=(f".{name}",),
        sniff=partial(_is_csv, delimiter),
        row_lines=partial(csv_lines, delimiter),
        unfit=rf"{swallowed(delimiter)}|\r",
        is_told_by_suffix=is_told_by_suffix,
    )


CSV = add_format(_delimited("csv", "CSV with a header", ","))
# TREC files with tabs are called .tsv too, so that only a header tells.
TSV = add_format(_delimited("tsv", "TSV with a header", "\t", is_told_by_suffix=False))
JSONL = add_format(
    Format(
        "jsonl",
        "JSON lines",
        read=_read_jsonl,
        write=_write_jsonl,
        suffixes=(".jsonl", ".ndjson"),
        sniff=_is_jsonl,
        row_lines=text_lines,
    )
)
PARQUET = add_format(
    Format(
        "parquet",
        "Parquet",
        read=_read_parquet,
        write=_write_parquet,
        suffixes=(".parquet",),
        sniff=lambda start: start.startswith(MAGIC),
    )
)
