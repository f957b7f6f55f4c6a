"""Every text format once more, written as plainly as can be: what each says, row by row, or that it is wrong.

Nothing here is fast and nothing is shared with the library, whose readers are held against these.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa

BOM = b"\xef\xbb\xbf"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LINE, FEATURE = 1 << 20, 1 << 20
csv.field_size_limit(1 << 24)
NAMES = {
    "qid": ("qid", "query_id", "query-id", "q_id", "topic", "topic_id", "query"),
    "docid": ("docid", "doc_id", "docno", "corpus-id", "corpus_id", "document_id", "did", "pid"),
    "relevance": ("relevance", "rel", "label", "grade", "judgment", "judgement"),
    "score": ("score", "similarity", "prediction", "sim"),
}
Row = tuple[Any, ...]


class Wrong(Exception):
    """The file is not of this format."""


class Open(Wrong):
    """The input may be read or refused: it is wrong where no row is."""


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a text, without their ends."""
    if b"\0" in data or b"\n" + BOM in data or data.startswith(BOM + BOM):
        raise Wrong("NUL, or a mark within")
    lines = data.removeprefix(BOM).split(b"\n")
    if any(len(line) > LINE for line in lines):
        raise Wrong("a line is too long")
    lines = [line.removesuffix(b"\r") for line in lines[:-1]] + lines[-1:]
    if any(b"\r" in line for line in lines):
        raise Wrong("CR within a line")
    return lines


def text(cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        raise Wrong("not UTF-8") from None


def number(cell: str) -> float:
    if not NUMBER.fullmatch(cell) or float(cell) in (float("inf"), float("-inf")):
        raise Wrong(f"no number: {cell}")
    return float(cell)


def looks_like_a_row(cells: list[bytes], n_columns: int, value: int) -> bool:
    if len(cells) != n_columns or cells[0] == b"#" or not re.fullmatch(rb"[Qq]?[0-9]+", cells[1]):
        return False
    return bool(NUMBER.fullmatch(cells[value].decode(errors="replace")))


def trec(data: bytes, n_columns: int, docid: int, value: int, *, tag: bool = False) -> list[Row]:
    rows: list[Row] = []
    for line in lines_of(data):
        cells = line.split()
        if not cells:
            continue
        if cells[0].startswith(b"#"):
            if looks_like_a_row(cells, n_columns, value):
                raise Wrong("a row in a comment")
            continue
        if len(cells) < n_columns or (len(cells) > n_columns and not tag):
            raise Wrong("columns")
        if len(cells) > n_columns:
            words = [cell.decode(errors="replace") for cell in cells[n_columns - 1 :]]
            hidden = any(one.isdigit() and NUMBER.fullmatch(two) for one, two in pairwise(words[3:]))
            if hidden or "Q0" in words or len(words) > 16 or not cells[3].isdigit() or NUMBER.fullmatch(words[0]):
                raise Wrong("columns beyond the format")
        if not rows and tag:
            text(line.split(None, n_columns - 1)[-1])
        rows.append((text(cells[0]), text(cells[docid]), number(text(cells[value]))))
    if not rows:
        raise Wrong("empty")
    return rows


def qrels(data: bytes) -> list[Row]:
    return trec(data, 4, 2, 3)


def run(data: bytes) -> list[Row]:
    return trec(data, 6, 2, 4, tag=True)


def ndeval(data: bytes) -> list[Row]:
    both = trec(data, 4, 1, 3)
    return [(*row, aspect[1]) for row, aspect in zip(trec(data, 4, 2, 3), both, strict=True)]


def prefs(data: bytes) -> list[Row]:
    columns = [trec(data, 5, column, 4) for column in (3, 1, 2)]
    return [(*row, group[1], sub[1]) for row, group, sub in zip(*columns, strict=True)]


def letor(data: bytes) -> list[Row]:
    rows: list[Row] = []
    docids = 0
    for line in lines_of(data):
        said, _, comment = line.partition(b"#")
        words = [text(word) for word in said.split()]
        if not words:
            continue
        if re.search(rb"[ \t]qid:[^\s:]+[ \t]+[0-9]+:", comment):
            raise Wrong("a row in a comment")
        if document := re.search(rb"\bdocid\s*[=:]\s*(\S+)", comment):
            text(document[1])
            docids += 1
        label, qid, cells = number(words.pop(0)), None, {}
        if words and words[0].startswith("qid:"):
            qid = words.pop(0)[4:]
            if not qid:
                raise Wrong("no qid")
        for word in words:
            index, _, value = word.partition(":")
            if not re.fullmatch("[0-9]{1,39}", index) or int(index) > FEATURE or int(index) in cells:
                raise Wrong("feature")
            cells[int(index)] = number(value)
        rows.append((label, qid, cells))
    if not rows or len({row[1] is None for row in rows}) > 1:
        raise Wrong("empty, or some rows without qid")
    if docids not in {0, len(rows)}:
        raise Wrong("some rows without docid")
    return rows


def sizes(data: bytes) -> list[Row]:
    words = [line.strip() for line in lines_of(data) if line.strip()]
    if not all(re.fullmatch(rb"[0-9]{1,9}", word) for word in words):
        raise Wrong("no size")
    return [(int(word),) for word in words]


def zscores(data: bytes) -> list[Row]:
    rows = {}
    lines = lines_of(data)
    for line in lines if lines[-1] else lines[:-1]:
        cells = [text(cell) for cell in line.split()]
        if len(cells) != 4 or (cells[0], cells[1]) in rows:
            raise Wrong("columns, or twice")
        rows[cells[0], cells[1]] = (number(cells[2]), number(cells[3]))
    return [(*key, *value) for key, value in rows.items()]


def column_of(names: list[str], part: str) -> str:
    found = [name for name in NAMES[part] if name in names]
    if part == "relevance" and {"corpus-id", "score"} <= set(names):
        found.append("score")
    if part in found:
        found = [part]
    if len(found) != 1 or names.count(found[0]) != 1:
        raise Wrong(f"no {part}")
    return found[0]


def identity(cell: Any) -> Any:
    if isinstance(cell, bytes):  # of Parquet, which Spark calls binary
        cell = text(cell)
    if isinstance(cell, bool) or not isinstance(cell, (str, int)) or cell == "":
        raise Wrong("no id")
    if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
        raise Wrong("beyond 64 bits")
    if isinstance(cell, str) and ("\0" in cell or any("\ud800" <= letter <= "\udfff" for letter in cell)):
        raise Wrong("NUL, or half a character")
    return cell


def table(data: bytes, delimiter: str, value: str) -> list[Row]:
    lines_of(data)  # or it is no text
    whole = data.removeprefix(BOM).decode("utf-8", "surrogateescape")
    try:
        records = [
            fields for fields in csv.reader(io.StringIO(whole, newline=""), delimiter=delimiter, strict=True) if fields
        ]
    except csv.Error:
        raise Wrong("quotes") from None
    if len(records) < 2 or len({len(fields) for fields in records}) > 1:
        raise Wrong("columns")
    names = records.pop(0)
    wanted = [names.index(column_of(names, part)) for part in ("qid", "docid", value)]
    rows = []
    for fields in records:
        qid, docid, said = (fields[place] for place in wanted)
        for cell in (identity(qid), identity(docid)):
            if "\n" in cell and delimiter in cell:
                raise Wrong("rows between quotes")
        rows.append((text(qid.encode("utf-8", "surrogateescape")), docid, number(said)))
        text(docid.encode("utf-8", "surrogateescape"))
    try:
        text(data)
    except Wrong:
        raise Open("not UTF-8 beside the rows") from None
    return rows


def jsonl(data: bytes, value: str) -> list[Row]:
    objects = []
    for line in lines_of(data):
        if line.strip():
            try:
                objects.append(json.loads(text(line), object_pairs_hook=once))
            except (ValueError, RecursionError):
                raise Wrong("no JSON") from None
    if not objects or not all(isinstance(one, dict) for one in objects):
        raise Wrong("no objects")
    names = list(dict.fromkeys(name for one in objects for name in one))
    wanted = [column_of(names, part) for part in ("qid", "docid", value)]
    rows = [tuple(one.get(name) for name in wanted) for one in objects]
    for column in (0, 1):
        if len({isinstance(identity(row[column]), str) for row in rows}) > 1:
            raise Wrong("text and integers")
    if len({isinstance(row[2], str) for row in rows}) > 1:
        raise Wrong("text and numbers")
    values = [number(row[2]) if isinstance(row[2], str) else plain_number(row[2]) for row in rows]
    return [(*row[:2], one) for row, one in zip(rows, values, strict=True)]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise Wrong("a key twice")
    return dict(pairs)


def plain_number(cell: Any) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        raise Wrong("no number") from None
    if not math.isfinite(value):
        raise Wrong("not finite")
    return value


def parquet(data: bytes, value: str) -> list[Row]:
    import pyarrow.parquet as pq

    try:
        content = pq.ParquetFile(io.BytesIO(data)).read()
        columns = {name: content.column(name).to_pylist() for name in dict.fromkeys(content.column_names)}
    except Exception:  # noqa: BLE001 - whatever a damaged file makes of it
        raise Wrong("no Parquet") from None
    wanted = [column_of(content.column_names, part) for part in ("qid", "docid", value)]
    rows = list(zip(*(columns[name] for name in wanted), strict=True))
    return [(identity(qid), identity(docid), plain_number(one)) for qid, docid, one in rows]


def packed(data: bytes, how: str, inner: Callable[[bytes], list[Row]]) -> list[Row]:
    """Read what is inside gzip or zstd; what no longer begins as such is a text like any other."""
    magic = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
    how = next((name for name, begins in magic.items() if data.startswith(begins)), "")
    if not how:
        return inner(data)
    try:
        content = _ungzip(data) if how == "gzip" else _unzstd(data)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes of it
        raise Wrong(str(error)) from None
    return inner(content)


def _ungzip(data: bytes) -> bytes:
    """Return what all members hold; nothing may stand behind the last."""
    content = b""
    while data:
        member = zlib.decompressobj(31)
        content += member.decompress(data) + member.flush()
        if not member.eof:
            raise Wrong("it breaks off")
        data = member.unused_data
    return content


def _unzstd(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read())


def without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON, in which no key stands twice."""
    if len(dict(pairs)) != len(pairs):
        raise Wrong("a key stands twice")
    return dict(pairs)


def is_same(one: object, other: object) -> bool:
    """Return whether two values of JSON are the same; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
