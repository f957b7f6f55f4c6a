"""Files of other programs that are neither TREC text, JSON nor tables with a header.

``.lz4`` of ranx is CBOR, which lz4 packs twice (`opening` unpacks it). OpenSearch's Search
Relevance Workbench imports CSV of query, document and rating without a header.
"""

from __future__ import annotations

import re

from rankeval._checks import said
from rankeval._source import install
from rankeval.errors import InvalidInput
from rankeval.io.columns import Columns
from rankeval.io.formats import Format, OpenFile, add_format, text_lines
from rankeval.io.frames import from_dict
from rankeval.io.opening import BOM, checked_text
from rankeval.io.tables import records, swallowed

_CELL = rb'("([^"]|"")*"|[^",]*),'
_ROW = re.compile(_CELL + _CELL + rb"\s*[-+]?[\d.]+\s*|")


def _read_cbor(opened: OpenFile) -> Columns:
    try:
        import cbor2
    except ImportError as error:
        problem = "the file is CBOR, as ranx writes it, and cbor2 is not installed"
        raise InvalidInput(problem, remedy=install("ranx")) from error
    try:
        content = cbor2.loads(opened.file.read())
    except (cbor2.CBORDecodeError, RecursionError) as error:
        raise InvalidInput(f"the CBOR is damaged: {said(error)}") from error
    return from_dict(content, opened.value)


def _is_cbor(start: bytes) -> bool:
    """Say whether an object of CBOR begins here: no text in UTF-8 begins with such a byte."""
    return b"\xa0" <= start[:1] <= b"\xbf"


def _read_csv(opened: OpenFile) -> Columns:
    data = checked_text(opened.file, opened.path, opened.limits)
    rows = [[cell.strip() for cell in fields] for _, fields in records(data, ",", opened.path)]
    queries, documents, ratings = map(list, zip(*rows, strict=True))
    return Columns(queries, documents, ratings)


def _is_csv(start: bytes) -> bool:
    """Say whether the first rows have three cells, and the third cells are numbers."""
    lines = start.removeprefix(BOM).splitlines()
    return bool(lines) and all(map(_ROW.fullmatch, lines[:-1] or lines))


add_format(
    Format("cbor", "CBOR, as .lz4 of ranx has it", _read_cbor, sniff=_is_cbor, is_keyed=True)
)
add_format(
    Format(
        "csv_ratings",
        "CSV of query, document and rating without a header",
        _read_csv,
        sniff=_is_csv,
        row_lines=text_lines,
        unread=swallowed(","),
        values=("relevance",),
    )
)
