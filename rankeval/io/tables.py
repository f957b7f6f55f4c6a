"""Tables with named columns: CSV, TSV, JSON lines and Parquet; and JSON objects of queries.

The columns of judgments and rankings are found under our names or the usual ones of other tools
(`frames.SPELLINGS`); those of a table of features are the caller's (`feature_tables`). Ids of CSV
are text; JSON lines and Parquet say whether an id is text or an integer. Arrow reads the cells of
CSV. A file with quotes is read by Python's strict reader before, because Arrow's reads on after a
stray quote, through other rows.

In Parquet a column of equal values takes almost no bytes, however often and however long they are:
a file of 100 KB can hold 100 GB. Neither its own size nor the sizes in its metadata tell, because
both count a value of a dictionary once. Before anything is read, two bounds are checked: the number
of values, and for text the longest value of each dictionary, which comes with the first row of its
group. The trap: text cannot be read as a dictionary, small as that would be, because Arrow mixes up
the rows if a value stands in a dictionary twice.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval._checks import count, few, said, shown, unique_keys
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import IDS, Columns, as_list, distinct, numbers_of, row_numbers
from rankeval.io.formats import NUL, Format, OpenFile, add_format, suffix_of, text_lines
from rankeval.io.frames import SCORED, TEXTS, columns_in, columns_of, from_dict, others, spelled
from rankeval.io.json_formats import content_columns
from rankeval.io.opening import (
    ALWAYS,
    BOM,
    CUT,
    NUMBER,
    Limits,
    checked_text,
    filled_lines,
    first_line,
    in_utf8,
    not_utf8,
)
from rankeval.io.opening import PARQUET as MAGIC
from rankeval.io.words import plain

_ADVICE = "name the columns: columns={{{columns}}} ({options})"
_ONE_EACH = "write one object for each document, without lists or objects in it"
_VALUE = 8  # bytes of a value in memory, at least
_BYTES = 1 << 24  # of CSV that Arrow parses at a time
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_COMMA = re.compile(r"[+-]?\d+,\d+")
_GUARDED = "^ ([-=+@])"  # Quepid keeps a spreadsheet from computing such a text
_SCORED = """import pandas as pd; t = pd.read_csv(%s, sep=None, engine="python", dtype=str); \
t.assign(score=-t["rank"].astype(float)).to_csv("scored.csv", index=False)"""
_NO_JUDGE = re.compile(
    "|unnamed:.*|(row|line|pair|annotation|task)?(id|no|number|index)|rank|position|pos|row|line|"
    "score|time|timestamp|date|comments?|notes?|title|url|text|query|querytext"
)
"""`plain` names of columns that have no grades of a judge."""
TABLES: tuple[str, ...] = ("parquet", *_DELIMITERS)
"""Formats of tables of features."""
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")
# Its first value is not a container.
_RECORD = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"([^"\\]|\\.)*"\s*:\s*[^\s\[{][^\n]*\n?')
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table that is open: its columns can be read once."""

    path: str  # The file, for messages
    names: Sequence[str]  # The columns; a name may be there twice
    kinds: Mapping[str, pa.DataType]  # The type of each column; text for CSV
    columns: Callable[[Sequence[str]], pa.Table]  # Takes names and returns these columns
    place: Callable[[int], str]  # Takes a row and returns its place in the file, in words
    delimiter: str = ""  # That of CSV or TSV, empty for Parquet


def open_table(file: pa.NativeFile, path: str, format: str | None, limits: Limits) -> TableSource:  # noqa: A002
    """Open a table in a format of `TABLES`, by default the one of its content or suffix."""
    is_parquet = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    if format is not None:
        name = chosen("format of a table of features", format, TABLES)
    elif is_parquet:
        name = "parquet"
    else:
        name = "tsv" if suffix_of(Path(path)) == ".tsv" else "csv"
    if (name == "parquet") != is_parquet:
        found = "Parquet" if is_parquet else "another content"
        raise FileFormatError(f"{path}: expected {name}, found {found}")
    if is_parquet:
        return _distinct(_open_parquet(file, path, limits))
    source = _open_text(file, path, limits, _DELIMITERS[name])
    if not source.names:
        raise FileFormatError(
            f"{path} is empty: expected a first line with the names of the columns"
        )
    return _distinct(source)


def _distinct(source: TableSource) -> TableSource:
    """Return a table after checking that no two columns have the same name."""
    for name, times in Counter(source.names).items():
        if times > 1 and name:
            raise FileFormatError(
                f"{source.path}: the column {name!r} is there {times} times: keep one"
            )
    return source


def _open_parquet(file: pa.NativeFile, path: str, limits: Limits) -> TableSource:
    import pyarrow.parquet as pq

    file.seek(0)
    with whole_parquet(path):
        schema = pq.read_schema(file)
    kinds = dict(zip(schema.names, schema.types, strict=True))
    columns = partial(parquet_table, file, path, limits)
    return TableSource(path, schema.names, kinds, columns, lambda row: f"row {row + 1}")


def _open_text(file: pa.NativeFile, path: str, limits: Limits, delimiter: str) -> TableSource:
    data = checked_text(file, path, limits)
    delimiter = delimiter_of(data, delimiter)
    # Without a quote there is nothing that Arrow's reader could take wrongly; Python's would take
    # ten times as long.
    is_plain = b'"' not in data and not data.startswith((b"\n", b"\r"))
    first = data.partition(b"\n")[0] if is_plain else data
    _, header = next(records(first, delimiter, path), (1, []))
    lines = cache(partial(csv_lines, delimiter, data))

    def columns(names: Sequence[str]) -> pa.Table:
        if not is_plain:
            deque(records(data, delimiter, path), maxlen=0)
        # By places, because a name may stand twice in the header, or be empty.
        kinds = {str(header.index(name)): pa.string() for name in names}
        places = [str(place) for place in range(len(header))]
        source, quoted = pa.BufferReader(data), b'"' in data
        try:
            table = csv_cells(source, places, kinds, delimiter, quoted=quoted, block=_BYTES)
            return table.slice(1).rename_columns(names)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            deque(records(data, delimiter, path), maxlen=0)  # says at which line
            raise FileFormatError(said(error), where=path) from error

    texts = dict.fromkeys(header, pa.string())
    return TableSource(path, header, texts, columns, lambda row: f"line {lines()[row]}", delimiter)


def delimiter_of(data: bytes, usual: str) -> str:
    """Return the delimiter of the header: with known names, else the usual one, if it is there."""
    first = first_line(data)
    fitting = [mark for mark in (usual, *_SEPARATORS) if _has_names(first, mark)]
    most = max(_SEPARATORS, key=first.count)
    return [*fitting, usual if usual in first else most][0]


def _has_names(header: str, delimiter: str) -> bool:
    names = [cell.strip(' "\r') for cell in header.split(delimiter)]
    return bool(spelled(names, "qid") and spelled(names, "docid"))


def csv_cells(
    source: pa.NativeFile,
    names: Sequence[str],
    kinds: Mapping[str, Any],
    delimiter: str,
    *,
    quoted: bool,
    block: int,
) -> pa.Table:
    """Return columns of text as Arrow reads them, all rows, and no cell as missing."""
    quote = '"' if quoted else False
    return pacsv.read_csv(
        source,
        pacsv.ReadOptions(column_names=names, use_threads=False, block_size=block),
        pacsv.ParseOptions(delimiter=delimiter, quote_char=quote, newlines_in_values=quoted),
        pacsv.ConvertOptions(include_columns=list(kinds), column_types=kinds, null_values=[]),
    )


def _columns(
    names: Sequence[str],
    read: Callable[[Sequence[str]], Any],
    opened: OpenFile,
    line: str = "",
    advice: str = _ADVICE,
) -> Columns:
    """Return the columns that ``read`` returns by name; ``line`` is the place of the header."""
    if not names:
        return Columns([], [], [])
    expected = f"{line}expected columns called qid, docid and {opened.value}; the table"
    command = f"python -c {shlex.quote(_SCORED % json.dumps(opened.path))}"
    ranked = f"make a table with scores: {command}" if line else SCORED
    parts = columns_of(names, opened.value, opened.columns, expected, advice, ranked)
    table = read([*dict.fromkeys(parts.values())])
    columns = columns_in(table, parts, opened.value, "the table", advice)
    if opened.value in opened.columns:  # the caller knows what it is
        columns = replace(columns, value_name=None)
    first = next(iter(distinct(columns.systems)), None)
    return replace(columns, name=first) if isinstance(first, str) and first else columns


def swallowed(delimiter: str) -> str:
    """Return a pattern for ids that hold NUL or, in text, rows between two stray quotes."""
    mark = f"[{''.join(_SEPARATORS)}]"
    return rf"(?s){NUL}|\n.*{mark}|{mark}.*\n" if delimiter else NUL


def records(data: bytes, delimiter: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each record of CSV; all records have as many fields as the first."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        content = data.split(b"\n")[line]
        raise not_utf8(content, f"{where}, line {line + 1}", where, data) from error
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    begin = 1
    try:
        for fields in reader:
            header = header or fields
            if fields and len(fields) != len(header):
                expected = f"{count(len(header), 'column')} ({', '.join(header)[:80]})"
                found = f"{len(fields)}: {delimiter.join(fields)[:80]!r}"
                place = f"{where}, line {begin}"
                is_cut = len(fields) < len(header) and text.count("\n") < reader.line_num
                problem = f"expected {expected}, found {found}"
                raise FileFormatError(problem, where=place, remedy=CUT if is_cut else None)
            if fields:
                yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        where = f"{where}, line {reader.line_num}"
        raise FileFormatError(f"a quote in the wrong place: {error}", where=where) from error


def csv_lines(delimiter: str, data: bytes) -> list[int]:
    """Return the line of each row."""
    return [line for line, _ in records(data, delimiter_of(data, delimiter), "")][1:]


def _is_csv(usual: str, start: bytes) -> bool:
    marks = "\t" if usual == "\t" else _SEPARATORS.keys() - {"\t"}
    return any(map(partial(_has_names, first_line(start)), marks))


def _write_csv(delimiter: str, table: pa.Table) -> list[pa.Buffer]:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=delimiter, quoting_style="needed"))
    return [sink.getvalue()]


def json_lines(data: bytes, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line and object of each line that is not blank."""
    for line, text in filled_lines(data.removeprefix(BOM)):
        place, remedy = f"{where}, line {line}", None
        try:
            row = json.loads(text.decode())
            # The hook alone would take half as long again.
            if isinstance(row, dict) and text.count(b":") > len(row):
                json.loads(text, object_pairs_hook=unique_keys)
        except InvalidInput as error:
            raise FileFormatError(f"{error}", where=place) from error
        except UnicodeDecodeError:
            row, remedy = None, in_utf8(where, data)
        except (ValueError, RecursionError):  # of the text, its encoding, or thousands of brackets
            row = None
        if not isinstance(row, dict):
            problem = f"expected one JSON object, found {text[:80]!r}"
            raise FileFormatError(problem, where=place, remedy=remedy)
        yield line, row


def _read_jsonl(opened: OpenFile) -> Columns:
    records = _lines_of(opened)
    return content_columns(records, opened.value) or _of_records(records, opened, "jsonl")


def _lines_of(opened: OpenFile) -> list[dict[str, Any]]:
    data = checked_text(opened.file, opened.path, opened.limits)
    return [row for _, row in json_lines(data, opened.path)]


def _names_of(records: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(records)))


def _of_records(records: list[dict[str, Any]], opened: OpenFile, format: str) -> Columns:  # noqa: A002
    has_parts = any(
        isinstance(value, (list, dict)) for row in records[:1] for value in row.values()
    )
    advice = _ONE_EACH if has_parts else _ADVICE
    columns = _columns(_names_of(records), partial(_fields_of, records), opened, advice=advice)
    return replace(columns, format=format)


def _fields_of(records: list[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [record.get(name) for record in records] for name in names}


def _is_json(start: bytes) -> bool:
    # A query of TREC text may be called { too: then the first line is a row of cells.
    first = start.removeprefix(BOM).lstrip().split(b"\n", 1)[0].split()
    has_number = len(first) > 3 and NUMBER.fullmatch(first[3].decode(errors="replace"))
    is_row = has_number and not any(cell.endswith((b",", b":")) for cell in first)
    return _JSON.match(start) is not None and not is_row


def _json_in(opened: OpenFile) -> Any:
    """Return the value of a text of JSON; None for JSON lines, unless the caller names JSON."""
    data = opened.file.read()
    try:
        text = data.decode("utf-8-sig")
        begin = len(text) - len(text.lstrip())
        content, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        if not opened.is_named and _RECORD.fullmatch(data, 0, data.find(b"\n") + 1 or len(data)):
            return None
        raise
    rest = text[end:].lstrip(" \t")
    if rest.startswith(("\n", "\r")) and rest.strip() and not opened.is_named:
        return None
    if rest.strip():
        raise json.JSONDecodeError("Extra data", text, end)
    is_line = "\n" not in text[begin:end] and not opened.is_named
    return None if is_line and _is_record(content) else content


def _is_record(content: Any) -> bool:
    return isinstance(content, dict) and bool(spelled(content, "docid"))


def _read_json(opened: OpenFile) -> Columns:
    """Read an object of queries, an array of records, or JSON lines."""
    content = _json_in(opened)
    if content is None:
        return _read_jsonl(opened)
    if (columns := content_columns(content, opened.value)) is not None:
        return columns
    values = content.values() if isinstance(content, dict) else [None]
    if all(isinstance(value, (dict, list)) for value in values):
        return from_dict(content, opened.value)
    records = [content] if _is_record(content) else content
    if isinstance(records, list) and all(isinstance(record, dict) for record in records):
        return _of_records(records, opened, "json_records") if records else Columns([], [], [])
    if isinstance(content, list):
        found = f"an array with items such as {shown(content[0])}"
    else:
        found = f"an object with the keys {few([*content])}"
    number = opened.value
    problem = f"expected {{qid: {{docid: {number}}}}} or records with qid, docid and {number}"
    kind = "Qrels" if number == "relevance" else "Run"
    remedy = f"load it with json, and give its documents to rk.{kind}.from_dict"
    raise FileFormatError(f"{problem}, found {found}", where=opened.path, remedy=remedy)


def _beside_records(
    load: Callable[[OpenFile], list[dict[str, Any]]], opened: OpenFile, rows: Sequence[int]
) -> dict[str, list[Any]]:
    records = load(opened)
    return _fields_of(
        [records[row] for row in rows], others(_names_of(records), opened.value, opened.columns)
    )


def _write_jsonl(table: pa.Table) -> Iterator[bytes]:
    return (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in table.to_pylist())


_Opener = Callable[[pa.NativeFile, str, Limits], TableSource]


def _read_parquet(opened: OpenFile) -> Columns:
    source = _open_parquet(opened.file, opened.path, opened.limits)
    return _columns(source.names, source.columns, opened)


def _read_text(open_source: _Opener, opened: OpenFile) -> Columns:
    source = open_source(opened.file, opened.path, opened.limits)
    if judges := _judges_in(source.names, opened):
        columns = _by_judge(source, judges)
    else:
        advice = _header_advice(source, opened.value)
        columns = _columns(source.names, source.columns, opened, "line 1: ", advice)
    cells = as_list(columns.value)
    columns = replace(columns, value=cells)
    if not cells:
        return columns
    if source.delimiter not in _DELIMITERS.get(suffix_of(Path(opened.path))[1:], ",\t"):
        columns = columns.noting(f"the columns are separated by {_SEPARATORS[source.delimiter]}")
    if source.delimiter != "," and all(map(_COMMA.fullmatch, cells)):
        numbers = [cell.replace(",", ".") for cell in cells]
        columns = replace(columns, value=numbers).noting("the numbers have decimal commas")
    if {*map(plain, spelled(source.names, "qid"))} <= TEXTS:
        columns = _unguarded(columns)
    if opened.value == "relevance" and "" in cells:
        may_be_open = plain(columns.value_name) == "rating" or "relevance" in opened.columns
        may_be_open = may_be_open or not all(map(NUMBER.fullmatch, filter(None, cells)))
        columns = _judged(columns, may_be_open=may_be_open)
    notes = tuple(f"{opened.path}: {note}" for note in columns.notes)
    return replace(columns, notes=notes)


def _header_advice(source: TableSource, value: str) -> str:
    """Say how to mend a first line that does not name the columns."""
    first = source.delimiter.join(source.names)
    path, copy = source.path, f"mended-{Path(source.path).name}"
    files = f"{shlex.quote(path)} > {shlex.quote(copy)}".replace("{", "{{").replace("}", "}}")
    if re.match("sep=|# ", first):
        return f"line 1 is not a header: sed 1d {files}"
    marks = re.sub(r"\w", "", first)
    if len(source.names) == 1 and marks:
        return f"separate the columns by commas: tr -s {shlex.quote(marks[0])} , < {files}"
    if any(map(NUMBER.fullmatch, source.names)):
        return f"name the columns in line 1: {source.delimiter.join(('qid', 'docid', value))}"
    return _ADVICE


def _judges_in(names: Sequence[str], opened: OpenFile) -> list[str]:
    """Return the columns of judges, one of grades each, if judges are compared and not in rows."""
    is_compared = isinstance(opened.columns.get("aspect"), tuple) and opened.value == "relevance"
    ids = [*spelled(names, "qid"), *spelled(names, "docid")]
    has_rows = any(spelled(names, part) for part in ("relevance", "aspect"))
    if not is_compared or len(ids) != 2 or has_rows or "relevance" in opened.columns:
        return []
    others = [name for name in names if name not in ids]
    return [name for name in others if not _NO_JUDGE.fullmatch(plain(name))]


def _by_judge(source: TableSource, judges: list[str]) -> Columns:
    """Return the grades of all judges, one below the other, without empty cells."""
    ids = [*spelled(source.names, "qid"), *spelled(source.names, "docid")]
    table = source.columns([*ids, *judges])
    judges = [judge for judge in judges if _has_grades(table.column(judge))] or judges
    cells = np.array([as_list(table.column(judge)) for judge in judges], dtype=object)
    judge, row = np.nonzero(cells != "")
    qid, docid = (table.column(name).take(row_numbers(row)) for name in ids)
    aspect = [judges[place] for place in judge]
    columns = Columns(qid, docid, cells[judge, row].tolist(), aspect=aspect, kept=row.tolist())
    columns = replace(columns, parts=dict(zip(IDS, ids, strict=False)))
    return columns.noting(f"a column for each judge: {few(judges)}")


def _has_grades(cells: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(cells, "^[-+]?[0-9.]+$")).as_py())


def _unguarded(columns: Columns) -> Columns:
    """Return the texts of queries without the blanks that Quepid puts before some of them."""
    n_guarded = pc.sum(pc.match_substring_regex(columns.qid, _GUARDED)).as_py()
    if not n_guarded:
        return columns
    texts = pc.replace_substring_regex(columns.qid, _GUARDED, r"\1")
    rows = count(n_guarded, "row")
    note = f"the blank before - = + or @ is left out, as Quepid writes it, in {rows}"
    return replace(columns, qid=texts).noting(note)


def _judged(columns: Columns, *, may_be_open: bool) -> Columns:
    """Leave out rows without a grade that have no document, or whose grade may be left open."""
    has_document = numbers_of(pc.not_equal(columns.docid, ""))
    has_grade = np.array(columns.value, dtype=object) != ""
    rows = np.flatnonzero(has_grade | (has_document & (not may_be_open)))
    n_open = len(has_grade) - len(rows)
    if not n_open:
        return columns
    parts = [part for part in IDS if part in columns.parts]
    ids = {part: getattr(columns, part).take(row_numbers(rows)) for part in parts}
    grades = [columns.value[row] for row in rows]
    note = f"{count(n_open, 'row')} without a grade left out"
    return replace(columns, value=grades, kept=rows.tolist(), **ids).noting(note)


def _beside(open_source: _Opener, opened: OpenFile, rows: Sequence[int]) -> Any:
    source = open_source(opened.file, opened.path, opened.limits)
    names = others(source.names, opened.value, opened.columns)
    flat = [name for name in names if not pa.types.is_nested(source.kinds[name])]
    return source.columns(flat).take(rows).to_pydict() if flat else {}


def _write_parquet(table: pa.Table) -> list[pa.Buffer]:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return [sink.getvalue()]


@contextmanager
def whole_parquet(where: str) -> Iterator[None]:
    """Refuse a file that Arrow finds damaged; ``where`` is the file's name."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"not a whole Parquet file ({said(error)})", where=where) from error


def parquet_table(
    source: pa.NativeFile, where: str, limits: Limits, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a Parquet file, or some of its columns."""
    import pyarrow.parquet as pq

    source.seek(0)
    with whole_parquet(where):
        metadata = pq.read_metadata(source)
        most = max(ALWAYS, limits.expansion * source.size())
        # Only from the schema: pyarrow 25 ends the process if the metadata of a column's chunk are
        # damaged.
        leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        texts = []
        for leaf in leaves:
            column = leaf.path.partition(".")[0]
            if columns is not None and column not in columns:
                continue
            if leaf.max_repetition_level:
                raise FileFormatError(
                    f"{where}: the column {column!r} has lists: give one value per row"
                )
            if leaf.physical_type == "BYTE_ARRAY":
                texts.append(leaf.path)
        size = f"{source.size():,} bytes"
        if metadata.num_rows * _VALUE > most:
            raise limits.exceeded("expansion", where, f"{metadata.num_rows:,} rows in {size}")
        if (n_bytes := _most_bytes(source, texts)) > most:
            raise limits.exceeded("expansion", where, f"up to {n_bytes:,} bytes of text in {size}")
        source.seek(0)
        table = pq.read_table(source, columns=columns)
        table.validate(full=True)  # Parquet does not check that text is UTF-8
        return table


def _most_bytes(source: pa.NativeFile, names: list[str]) -> int:
    """Return the bytes of the columns if each row had the longest text of its dictionary."""
    import pyarrow.parquet as pq

    source.seek(0)
    file = pq.ParquetFile(source, read_dictionary=names)
    total = 0
    for group in range(file.num_row_groups if names else 0):
        n_rows = file.metadata.row_group(group).num_rows
        batches = file.iter_batches(
            batch_size=1, row_groups=[group], columns=names, use_threads=False
        )
        for column in next(batches, None) or ():
            if pa.types.is_dictionary(column.type):
                longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                total += n_rows * longest
    return total


for _name, _delimiter in _DELIMITERS.items():
    _open, _unread = partial(_open_text, delimiter=_delimiter), swallowed(_delimiter)
    add_format(
        Format(
            _name,
            f"{_name.upper()} with a header",
            read=partial(_read_text, _open),
            write=partial(_write_csv, _delimiter),
            suffixes=(f".{_name}",),
            sniff=partial(_is_csv, _delimiter),
            row_lines=partial(csv_lines, _delimiter),
            beside=partial(_beside, _open),
            unfit=rf"{_unread}|\r",
            unread=_unread,
            is_told_by_suffix=_name == "csv",  # TREC files with tabs are called .tsv too
        )
    )
add_format(
    Format(
        "jsonl",
        "JSON lines",
        read=_read_jsonl,
        write=_write_jsonl,
        suffixes=(".jsonl", ".ndjson"),
        row_lines=text_lines,
        beside=partial(_beside_records, _lines_of),
    )
)
add_format(
    Format(
        "json",
        "JSON (an object of queries, or records)",
        read=_read_json,
        suffixes=(".json",),
        sniff=_is_json,
        is_told_by_suffix=False,  # TREC text is written to any other name
        is_keyed=True,
    )
)
add_format(
    Format(
        "json_records",
        "a JSON array of records",
        read=_read_json,
        beside=partial(_beside_records, _json_in),
        is_keyed=True,
    )
)
add_format(
    Format(
        "parquet",
        "Parquet",
        read=_read_parquet,
        write=_write_parquet,
        beside=partial(_beside, _open_parquet),
        suffixes=(".parquet",),
        sniff=lambda start: start.startswith(MAGIC),
    )
)
