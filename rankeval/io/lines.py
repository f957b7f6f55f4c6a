"""Which line of a file a row is, and which cell of it is wrong: worked out only where it must be said.

Readers keep no line numbers and do not look at single cells, which would cost more than the reading. When something
is wrong, the file is gone through once more, cell by cell.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

import numpy as np

from rankeval.errors import FileFormatError
from rankeval.io.trec import number_of

DELIMITERS = {"csv": ",", "tsv": "\t"}
_BOM = b"\xef\xbb\xbf"


def line_numbers(data: bytes, kind: str) -> list[int]:
    """Return the line at which each row begins, counting from 1.

    Parameters
    ----------
    data : bytes
        The uncompressed text.
    kind : {"trec", "csv", "tsv", "jsonl"}
        Whether there is a header, quotes or comments.

    Returns
    -------
    list of int
        Empty where Python reads the file otherwise than Arrow did.
    """
    if kind in DELIMITERS:
        try:
            return [number for number, _ in records(data, DELIMITERS[kind])][1:]
        except csv.Error:
            return []
    lines = enumerate(data.removeprefix(_BOM).split(b"\n"), start=1)
    comment = b"#" if kind == "trec" else None
    return [number for number, line in lines if (said := line.strip()) and said[:1] != comment]


def records(data: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and fields of each record of a delimited file; values may hold line breaks.

    Parameters
    ----------
    data : bytes
        The uncompressed text.
    delimiter : str
        What separates fields.
    """
    reader = csv.reader(StringIO(data.removeprefix(_BOM).decode(errors="replace"), newline=""), delimiter=delimiter)
    begin = 1
    for fields in reader:
        if fields:
            yield begin, fields
        begin = reader.line_num + 1


def wrong_quotes(data: bytes, delimiter: str, where: str) -> FileFormatError | None:
    """Make the error for a quote that does not end its value: Arrow would read on, through other rows.

    Parameters
    ----------
    data : bytes
        The uncompressed text.
    delimiter : str
        What separates fields.
    where : str
        What to call the file.
    """
    if b'"' not in data or _quotes_in_pairs(data, delimiter):
        return None
    reader = csv.reader(
        StringIO(data.removeprefix(_BOM).decode(errors="replace"), newline=""), delimiter=delimiter, strict=True
    )
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        return FileFormatError(f"{where}, line {reader.line_num}: a quote stands where none can: {error}")
    return None


def _quotes_in_pairs(data: bytes, delimiter: str) -> bool:
    """Whether each odd quote opens a value, and each even one ends it, or both are one quote within a value."""
    text = np.frombuffer(b"\n" + data.removeprefix(_BOM) + b"\n", np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    outside = np.isin(np.arange(256), [ord(delimiter), *b'\n\r"'])
    return bool(outside[text[quotes[::2] - 1]].all() and outside[text[quotes[1::2] + 1]].all())


def wrong_record(data: bytes, delimiter: str, where: str) -> FileFormatError | None:
    """Make the error for the first record that is not as wide as the header, or not UTF-8.

    Parameters
    ----------
    data : bytes
        The uncompressed text.
    delimiter : str
        What separates fields.
    where : str
        What to call the file.
    """
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return FileFormatError(f"{where}, line {number}: expected UTF-8 text, found {line[:80]!r}")
    try:
        (_, header), *rest = records(data, delimiter)
    except (csv.Error, ValueError):
        return None
    for number, fields in rest:
        if len(fields) != len(header):
            return FileFormatError(
                f"{where}, line {number}: expected {len(header)} columns ({', '.join(header)[:80]}), "
                f"found {len(fields)}: {delimiter.join(fields)[:80]!r}"
            )
    return None


def wrong_cell(
    ids: Mapping[str, Sequence[Any]], numbers: Mapping[str, Sequence[Any]], rows: Sequence[str], where: str
) -> FileFormatError | None:
    """Make the error for the first cell that cannot be an id, or a number, or is unlike those above it.

    Parameters
    ----------
    ids, numbers : mapping of str to sequence
        The cells of each column.
    rows : sequence of str
        What to call each row, such as ``"line 2"``.
    where : str
        What to call the file.
    """
    found = []
    for is_id, columns in ((True, ids), (False, numbers)):
        for name, cells in columns.items():
            for row, cell in enumerate(cells):
                problem = (_no_id if is_id else _no_number)(cell)
                if not problem and isinstance(cell, str) != isinstance(cells[0], str):
                    problem = f"found {cell!r}, but {cells[0]!r} above: give all values of a column the same type"
                if problem:
                    place = rows[row] if row < len(rows) else f"row {row + 1}"
                    found.append((row, f"{where}, {place}, column {name}: {problem}"))
                    break
    return FileFormatError(min(found)[1]) if found else None


def _no_id(cell: Any) -> str:
    if cell is None or cell == "":
        return f"expected an id, found {'nothing' if cell is None else repr(cell)}"
    if isinstance(cell, bool) or not isinstance(cell, (str, int)):
        return f"ids are text or integers, found {cell!r}"
    if isinstance(cell, str) and any("\ud800" <= letter <= "\udfff" for letter in cell):
        return f"expected text, found {cell!r}, which holds half a character"
    if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
        return f"found {cell}, an integer beyond 64 bits: give it as text"
    return ""


def _no_number(cell: Any) -> str:
    if isinstance(cell, str):
        try:
            number_of(cell, "")
        except FileFormatError as error:
            return str(error).removeprefix(": ")
        return ""
    if cell is None:
        return "expected a finite number, found nothing"
    try:
        return "" if math.isfinite(cell) else f"expected a finite number, found {cell}"
    except (TypeError, OverflowError):
        return f"expected a finite number, found {str(cell)[:80]}"
