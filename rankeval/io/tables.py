"""Tables with named columns: CSV, TSV, JSON lines and Parquet; and JSON objects of queries, which have no columns.

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
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval._checks import count, few, said, shown, unique_keys
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import Columns, as_list
from rankeval.io.formats import NUL, Format, OpenFile, Source, add_format, suffix_of, text_lines
from rankeval.io.frames import columns_in, columns_of, from_dict, others, spelled
from rankeval.io.opening import ALWAYS, BOM, NUMBER, Limits, checked_text, filled_lines
from rankeval.io.opening import PARQUET as MAGIC

_ADVICE = (
    "rename it, or read the file as a frame and say {part}= in Qrels.from_frame or Run.from_frame"
)
_ONE_EACH = "write one object for each document, without lists or objects in it"
_VALUE = 8  # bytes of a value in memory, at least
_BYTES = 1 << 24  # of CSV that Arrow parses at a time
_DELIMITERS = {"csv": ",", "tsv": "\t"}
TABLES: tuple[str, ...] = ("parquet", *_DELIMITERS)
"""Formats of tables of features."""
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")
_RECORD = re.compile(
    rb'(\xef\xbb\xbf)?\s*\{\s*"([^"\\]|\\.)*"\s*:\s*[^\s\[{][^\n]*\n?'
)  # its first value is no container
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
    """Open a table in the format given (named as in `Qrels.read`), or in the one that content and suffix tell."""
    is_parquet = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    told = "parquet" if is_parquet else "tsv" if suffix_of(Path(path)) == ".tsv" else "csv"
    wanted = told if format is None else chosen("format of a table of features", format, TABLES)
    if (wanted == "parquet") != is_parquet:
        raise FileFormatError(
            f"{path}: expected {wanted}, found {'Parquet' if is_parquet else 'another content'}"
        )
    source = (
        _open_parquet(file, path, limits)
        if is_parquet
        else _open_text(file, path, limits, _DELIMITERS[wanted])
    )
    if source.delimiter and not source.names:
        raise FileFormatError(
            f"{path} is empty: expected a first line with the names of the columns"
        )
    for name in source.names:
        if source.names.count(name) > 1 and name:
            raise FileFormatError(
                f"{path}: the column {name!r} is there {source.names.count(name)} times: keep one"
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
    # Without a quote there is nothing that Arrow's reader could take wrongly; Python's would take
    # ten times as long.
    is_plain = b'"' not in data and not data.startswith((b"\n", b"\r"))
    first = data[: data.find(b"\n")] if is_plain and b"\n" in data else data
    _, header = next(records(first, delimiter, path), (1, []))
    lines = cache(partial(csv_lines, delimiter, data))

    def columns(names: Sequence[str]) -> pa.Table:
        if not is_plain:
            deque(records(data, delimiter, path), maxlen=0)
        # By places, because a name may stand twice in the header, or be empty.
        kinds = {str(header.index(name)): pa.string() for name in names}
        places = [str(place) for place in range(len(header))]
        try:
            table = csv_cells(
                pa.BufferReader(data), places, kinds, delimiter, quoted=b'"' in data, block=_BYTES
            )
            return table.slice(1).rename_columns(names)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            deque(records(data, delimiter, path), maxlen=0)  # says at which line
            raise FileFormatError(said(error), where=path) from error

    return TableSource(
        path,
        header,
        dict.fromkeys(header, pa.string()),
        columns,
        lambda row: f"line {lines()[row]}",
        delimiter,
    )


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
    return pacsv.read_csv(
        source,
        pacsv.ReadOptions(column_names=names, use_threads=False, block_size=block),
        pacsv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
        ),
        pacsv.ConvertOptions(include_columns=list(kinds), column_types=kinds, null_values=[]),
    )


def _columns(
    names: Sequence[str],
    read: Callable[[Sequence[str]], Any],
    given: OpenFile,
    line: str = "",
    advice: str = _ADVICE,
) -> Columns:
    """Return the columns of a table, which ``read`` returns by name; ``line`` is that of the header, for messages."""
    if not names:
        return Columns([], [], [])
    expected = f"{line}expected columns called qid, docid and {given.value}; the table"
    parts = columns_of(names, given.value, {}, expected, advice)
    table = read([*parts.values()])
    columns = columns_in(table, parts, given.value, "the table", advice)
    # The first row names the system, as in TREC files.
    first = as_list(table[parts["name"]][:1]) if "name" in parts else []
    return replace(
        columns, name=first[0] if first and isinstance(first[0], str) and first[0] else None
    )


def swallowed(delimiter: str) -> str:
    """Return a pattern for ids that hold NUL or, in text, rows between two stray quotes."""
    return rf"(?s){NUL}|\n.*{delimiter}|{delimiter}.*\n" if delimiter else NUL


def records(data: bytes, delimiter: str, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each record of CSV, as many as of the first; a field in quotes may hold line breaks."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start)
        found = data.split(b"\n")[line][:80]
        raise FileFormatError(
            f"expected UTF-8 text, found {found!r}", where=f"{where}, line {line + 1}"
        ) from error
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    begin = 1
    try:
        for fields in reader:
            header = header or fields
            if fields and len(fields) != len(header):
                expected = f"{count(len(header), 'column')} ({', '.join(header)[:80]})"
                problem = (
                    f"expected {expected}, found {len(fields)}: {delimiter.join(fields)[:80]!r}"
                )
                raise FileFormatError(problem, where=f"{where}, line {begin}")
            if fields:
                yield begin, fields
            begin = reader.line_num + 1
    except csv.Error as error:
        where = f"{where}, line {reader.line_num}"
        raise FileFormatError(f"a quote stands where none can: {error}", where=where) from error


def csv_lines(delimiter: str, data: bytes) -> list[int]:
    """Return the line of each row."""
    return [line for line, _ in records(data, delimiter, "")][1:]


def _is_csv(delimiter: str, start: bytes) -> bool:
    first = start.removeprefix(BOM).lstrip().split(b"\n", 1)[0]
    if delimiter.encode() not in first:
        return False
    names = [
        name.strip().strip(b'"').decode(errors="replace")
        for name in first.split(delimiter.encode())
    ]
    return bool(spelled(names, "qid") and spelled(names, "docid"))


def _write_csv(delimiter: str, table: pa.Table) -> list[pa.Buffer]:
    sink = pa.BufferOutputStream()
    pacsv.write_csv(table, sink, pacsv.WriteOptions(delimiter=delimiter, quoting_style="needed"))
    return [sink.getvalue()]


def json_lines(data: bytes, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line and object of each line that is not blank."""
    for line, text in filled_lines(data.removeprefix(BOM)):
        try:
            row = json.loads(text.decode())
            if isinstance(row, dict) and text.count(b":") > len(
                row
            ):  # the hook alone would take half as long again
                json.loads(text, object_pairs_hook=unique_keys)
        except InvalidInput as error:
            raise FileFormatError(f"{error}", where=f"{where}, line {line}") from error
        except (ValueError, RecursionError):  # of the text, its encoding, or thousands of brackets
            row = None
        if not isinstance(row, dict):
            raise FileFormatError(
                f"expected one JSON object, found {text[:80]!r}", where=f"{where}, line {line}"
            )
        yield line, row


def _read_jsonl(given: OpenFile) -> Columns:
    return _of_records(_lines_of(given), given, "jsonl")


def _lines_of(given: OpenFile) -> list[dict[str, Any]]:
    return [
        row for _, row in json_lines(checked_text(given.file, given.path, given.limits), given.path)
    ]


def _of_records(records: list[dict[str, Any]], given: OpenFile, format: str) -> Columns:  # noqa: A002
    known = list(dict.fromkeys(name for record in records for name in record))
    has_parts = any(
        isinstance(value, (list, dict)) for value in (records[0] if records else {}).values()
    )
    columns = _columns(
        known, partial(_fields_of, records), given, advice=_ONE_EACH if has_parts else _ADVICE
    )
    return replace(columns, source=Source(given.path, format, given.limits))


def _fields_of(records: list[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [record.get(name) for record in records] for name in names}


def _is_json(start: bytes) -> bool:
    # A query of TREC text may be called { too: then the first line is a row of cells.
    first = start.removeprefix(BOM).lstrip().split(b"\n", 1)[0].split()
    has_number = len(first) > 3 and NUMBER.fullmatch(first[3].decode(errors="replace"))
    is_row = has_number and not any(cell.endswith((b",", b":")) for cell in first)
    return _JSON.match(start) is not None and not is_row


def _json_in(given: OpenFile) -> Any:
    """Return what a text of JSON holds; None for JSON lines, unless the caller names JSON."""
    data = given.file.read()
    try:
        text = data.decode("utf-8-sig")
        begin = len(text) - len(text.lstrip())
        content, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        if not given.is_named and _RECORD.fullmatch(data, 0, data.find(b"\n") + 1 or len(data)):
            return None
        raise
    rest = text[end:].lstrip(" \t")
    if rest.startswith(("\n", "\r")) and rest.strip() and not given.is_named:
        return None
    if rest.strip():
        raise json.JSONDecodeError("Extra data", text, end)
    is_line = "\n" not in text[begin:end] and not given.is_named
    return None if is_line and _is_record(content) else content


def _is_record(content: Any) -> bool:
    return isinstance(content, dict) and bool(spelled(content, "docid"))


def _read_json(given: OpenFile) -> Columns:
    """Read an object of queries, an array of records, or JSON lines."""
    content = _json_in(given)
    if content is None:
        return _read_jsonl(given)
    if isinstance(content, dict) and all(
        isinstance(value, (dict, list)) for value in content.values()
    ):
        return from_dict(content, given.value)
    records = [content] if _is_record(content) else content
    if isinstance(records, list) and all(isinstance(record, dict) for record in records):
        return _of_records(records, given, "json_records") if records else Columns([], [], [])
    found = f"an object with the keys {few([*content])}"
    if isinstance(content, list):
        found = f"an array with items such as {shown(content[0])}"
    expected = f"{{qid: {{docid: {given.value}}}}} or records with qid, docid and {given.value}"
    kind = "Qrels" if given.value == "relevance" else "Run"
    remedy = f"load it with json, and give its documents to rk.{kind}.from_dict"
    raise FileFormatError(f"expected {expected}, found {found}", where=given.path, remedy=remedy)


def _beside_records(
    load: Callable[[OpenFile], list[dict[str, Any]]], given: OpenFile, rows: Sequence[int]
) -> dict[str, list[Any]]:
    records = load(given)
    names = others(list(dict.fromkeys(name for record in records for name in record)), given.value)
    return _fields_of([records[row] for row in rows], names)


def _write_jsonl(table: pa.Table) -> Iterator[bytes]:
    return (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in table.to_pylist())


def _read_table(
    open_one: Callable[[pa.NativeFile, str, Limits], TableSource], given: OpenFile
) -> Columns:
    source = open_one(given.file, given.path, given.limits)
    columns = _columns(source.names, source.columns, given, "line 1: " if source.delimiter else "")
    return replace(columns, value=as_list(columns.value)) if source.delimiter else columns


def _beside(
    open_one: Callable[[pa.NativeFile, str, Limits], TableSource],
    given: OpenFile,
    rows: Sequence[int],
) -> Any:
    source = open_one(given.file, given.path, given.limits)
    names = others(source.names, given.value)
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
    """Read a Parquet file."""
    import pyarrow.parquet as pq

    source.seek(0)
    with whole_parquet(where):
        metadata = pq.read_metadata(source)
        most = max(ALWAYS, limits.expansion * source.size())
        # Only from the schema: pyarrow 25 ends the process if the metadata of a column's chunk are
        # damaged.
        leaves = [metadata.schema.column(place) for place in range(metadata.num_columns)]
        wanted = [
            leaf for leaf in leaves if columns is None or leaf.path.partition(".")[0] in columns
        ]
        if nested := [leaf.path.partition(".")[0] for leaf in wanted if leaf.max_repetition_level]:
            raise FileFormatError(
                f"{where}: the column {nested[0]!r} holds lists: give one value a row"
            )
        if metadata.num_rows * _VALUE > most:
            raise limits.exceeded(
                "expansion", where, f"{metadata.num_rows:,} rows in {source.size():,} bytes"
            )
        n_bytes = _most_bytes(
            source, [leaf.path for leaf in wanted if leaf.physical_type == "BYTE_ARRAY"]
        )
        if n_bytes > most:
            raise limits.exceeded(
                "expansion", where, f"up to {n_bytes:,} bytes of text in {source.size():,} bytes"
            )
        source.seek(0)
        table = pq.read_table(source, columns=columns)
        table.validate(full=True)  # Parquet does not check that text is UTF-8
        return table


def _most_bytes(source: pa.NativeFile, names: list[str]) -> int:
    # Each row might have the longest text of its dictionary.
    import pyarrow.parquet as pq

    source.seek(0)
    file = pq.ParquetFile(source, read_dictionary=names)
    total = 0
    for group in range(file.num_row_groups if names else 0):
        n_rows = file.metadata.row_group(group).num_rows
        first = next(
            file.iter_batches(batch_size=1, row_groups=[group], columns=names, use_threads=False),
            None,
        )
        dictionaries = [one.dictionary for one in first or () if pa.types.is_dictionary(one.type)]
        total += sum(
            n_rows * (pc.max(pc.binary_length(texts)).as_py() or 0) for texts in dictionaries
        )
    return total


def _separated(name: str, delimiter: str) -> Format:
    return Format(
        name,
        f"{name.upper()} with a header",
        read=partial(_read_table, partial(_open_text, delimiter=delimiter)),
        write=partial(_write_csv, delimiter),
        suffixes=(f".{name}",),
        sniff=partial(_is_csv, delimiter),
        row_lines=partial(csv_lines, delimiter),
        beside=partial(_beside, partial(_open_text, delimiter=delimiter)),
        unfit=rf"{swallowed(delimiter)}|\r",
        unread=swallowed(delimiter),
        is_told_by_suffix=name
        == "csv",  # TREC files with tabs are called .tsv too: only a header tells
    )


for _format in (
    *(_separated(name, delimiter) for name, delimiter in _DELIMITERS.items()),
    Format(
        "jsonl",
        "JSON lines",
        read=_read_jsonl,
        write=_write_jsonl,
        suffixes=(".jsonl", ".ndjson"),
        row_lines=text_lines,
        beside=partial(_beside_records, _lines_of),
    ),
    Format(
        "json",
        "JSON (an object of queries, or records)",
        read=_read_json,
        suffixes=(".json",),
        sniff=_is_json,
        is_told_by_suffix=False,  # TREC text is written to any other name
        is_keyed=True,
    ),
    Format(
        "json_records",
        "a JSON array of records",
        read=_read_json,
        beside=partial(_beside_records, _json_in),
        is_keyed=True,
    ),
    Format(
        "parquet",
        "Parquet",
        read=partial(_read_table, _open_parquet),
        write=_write_parquet,
        beside=partial(_beside, _open_parquet),
        suffixes=(".parquet",),
        sniff=lambda start: start.startswith(MAGIC),
    ),
):
    add_format(_format)
