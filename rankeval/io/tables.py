"""Tables with named columns: CSV, TSV, JSON lines and Parquet.

The columns are found under our names or the usual ones of other tools (`names.SPELLINGS`). Ids of CSV are text;
JSON lines and Parquet say whether an id is text or an integer. CSV is read by Python's own reader in strict mode,
because Arrow's reads on after a stray quote, through other rows.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO, StringIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval._checks import count, unique_keys
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import Columns
from rankeval.io.formats import Format, OpenFile, add_format, text_lines
from rankeval.io.names import NUMBER_IN_INDEX, columns_of, refuse_other_pairs, spelled
from rankeval.io.opening import PARQUET as MAGIC
from rankeval.io.text import BOM, check_text

_LONG = 1 << 12  # bytes; a longer first line is no row of TREC text
NUL = r"\x00"
"""A pattern for ids that no file of TREC can hold."""

_ADVICE = "rename it, or read the file as a frame and say {part}= in Qrels.from_frame or Run.from_frame"
_OBJECT = re.compile(rb"\{\s*[\"}]")


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
    for part in cells.keys() & {"qid", "docid", "aspect", "subgroup"}:
        refuse_bad_ids(cells[part], bad, given.path, part, place)
    # The first row names the system, as in TREC files.
    name = next(iter(cells.pop("name", ())), None)
    name = name if isinstance(name, str) and name else None
    return Columns(value=cells.pop(given.value), value_name=parts[given.value], name=name, **cells)


def refuse_bad_ids(cells: Any, bad: str, path: str, column: str, place: Callable[[int], str]) -> None:
    """Refuse ids that match a pattern, such as that of `swallowed`; ``place`` gives a row's place in the file."""
    row = _first_match(cells, bad)
    if row >= 0:
        raise FileFormatError(
            f"{path}, {place(row)}, column {column}: found {str(cells[row])[:80]!r}; an id holds no NUL, and no rows "
            "between two quotes: is a quote too many?"
        )


def _first_match(cells: Any, pattern: str) -> int:
    """Return the first row whose text matches, or -1; cells may be a list or an Arrow column."""
    if isinstance(cells, list):
        search = re.compile(pattern).search
        return next((row for row, cell in enumerate(cells) if isinstance(cell, str) and search(cell)), -1)
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    # Arrow's own search: a Python string for each of a million ids would take longer than the reading.
    if kind not in (pa.string(), pa.large_string(), pa.binary()):
        return -1
    try:
        cells = cells.cast(pa.large_string())
    except pa.ArrowInvalid:  # bytes that are no UTF-8: refused with their row, as no ids
        return -1
    return int(pc.index(pc.match_substring_regex(cells, pattern), True).as_py())


def swallowed(delimiter: str) -> str:
    """Return a pattern for ids that hold NUL, or rows between two stray quotes."""
    return rf"(?s){NUL}|\n.*{delimiter}|{delimiter}.*\n"


def rows_of(data: bytes, delimiter: str, where: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header, empty if there is none, and line and fields of each row, which are as many as the header's."""
    records = _records(data, delimiter, where)
    _, header = next(records, (1, []))
    return header, _whole_rows(records, header, delimiter, where)


def _whole_rows(
    records: Iterator[tuple[int, list[str]]], header: Sequence[str], delimiter: str, where: str
) -> Iterator[tuple[int, list[str]]]:
    for line, fields in records:
        if len(fields) != len(header):
            raise FileFormatError(
                f"{where}, line {line}: expected {count(len(header), 'column')} ({', '.join(header)[:80]}), "
                f"found {len(fields)}: {delimiter.join(fields)[:80]!r}"
            )
        yield line, fields


def _records(data: bytes, delimiter: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each record; a field in quotes may hold line breaks."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        found = data.split(b"\n")[line][:80]
        raise FileFormatError(f"{where}, line {line + 1}: expected UTF-8 text, found {found!r}") from error
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for fields in reader:
            if fields:
                yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(f"{where}, line {reader.line_num}: a quote stands where none can: {error}") from error


def _read_csv(delimiter: str, given: OpenFile) -> Columns:
    check_text(given.file, given.path, given.limits)
    header, rows = rows_of(given.file.read(), delimiter, given.path)
    if not header:
        return Columns([], [], [])
    parts = _parts(header, given.value, f"{given.path}, line 1")
    # Column by column: a list for each of a million rows would keep Python's garbage collector busy.
    cells: dict[str, list[str]] = {part: [] for part in parts}
    taken = [(cells[part], header.index(name)) for part, name in parts.items()]
    lines = []
    for line, fields in rows:
        lines.append(line)
        for column, place in taken:
            column.append(fields[place])
    return _columns(cells, parts, given, swallowed(delimiter), lambda row: f"line {lines[row]}")


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
            raise FileFormatError(f"{given.path}, line {line}: {error}") from error
        except (ValueError, RecursionError):  # of the text, its encoding, or thousands of brackets
            row = None
        if not isinstance(row, dict):
            raise FileFormatError(f"{given.path}, line {line}: expected one JSON object, found {text[:80]!r}")
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


def _read_parquet(given: OpenFile) -> Columns:
    from rankeval.io.parquet import parquet_kinds, parquet_table, whole_parquet

    with whole_parquet(given.path):
        parts = _parts([name for name, _ in parquet_kinds(given.file)], given.value, given.path)
        table = parquet_table(given.file, given.path, given.limits, list(parts.values()))
    cells = {part: table.column(name) for part, name in parts.items()}
    if "name" in cells:
        cells["name"] = cells["name"].slice(0, 1).to_pylist()
    if pa.types.is_string(cells[given.value].type):
        cells[given.value] = cells[given.value].to_pylist()
    return _columns(cells, parts, given, NUL, lambda row: f"row {row + 1}")


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
