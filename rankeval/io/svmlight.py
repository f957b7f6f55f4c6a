"""Svmlight text as learning-to-rank files have it: ``label qid:1 1:0.5 7:2.0 #docid = D``.

As with TREC text there are two readers that agree. The fast one takes the text apart into numbers all at once, in
pieces of some megabytes; it gives up on anything but the plain form. The other goes line by line and takes query ids
that are no integers, indices out of order and odd spacing, or says which line is wrong.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from rankeval.errors import FileFormatError
from rankeval.io.limits import DEFAULT, Limits
from rankeval.io.trec import number_of

_PIECE = 1 << 24
_DIGIT_0, _DIGIT_9 = b"09"
# Behind a row, where a line end is missing: what would be taken for a comment is the next row.
_SWALLOWED = re.compile(rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*[ \t]qid:[^\s:]+[ \t]+[0-9]+:", re.MULTILINE)
_LEADING_ZERO = re.compile(rb" qid:(-0|0[0-9])")
_DOCID = re.compile(rb"^[^\S\n]*[^#\s][^#\n]*#[^\n]*?\bdocid[^\S\n]*[=:][^\S\n]*(\S+)", re.MULTILINE)
_SPACE, _COLON, _NEWLINE, _MINUS = b" :\n-"
_LONGEST = 40  # digits of an index
_EXACT = 2**53  # integers beyond are not exact as float64


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of one file, compressed by row; ``index`` is as in the file, so from 0 or from 1.

    Attributes
    ----------
    label : ndarray of shape (n_rows,)
        Relevance.
    qid : ndarray of shape (n_rows,), or None
        Query ids, int64 or str, if the rows have them.
    docid : ndarray of shape (n_rows,), or None
        Document ids, if every row has a comment with one.
    start : ndarray of shape (n_rows + 1,)
        Where the cells of each row begin.
    index, value : ndarray of shape (n_cells,)
        Feature and value of each cell.
    """

    label: NDArray[np.float64]
    qid: NDArray[Any] | None
    docid: NDArray[Any] | None
    start: NDArray[np.int64]
    index: NDArray[np.int64]
    value: NDArray[np.float64]


def read_svmlight(data: bytes, where: str, limits: Limits = DEFAULT) -> SparseRows:
    """Read the text of a learning-to-rank file.

    Parameters
    ----------
    data : bytes
        The text, as `opening.read_text` returns it.
    where : str
        What messages call the file.
    limits : Limits
        The largest feature index.

    Raises
    ------
    FileFormatError
        For an empty file, a line that is not ``label [qid:id] index:value ...``, values that are no finite numbers,
        an index given twice, a row within a comment, and a query or document id that some rows have and others lack.
    LimitExceeded
        For a larger feature index.
    """
    data = data.replace(b"\r\n", b"\n")
    if b"#" in data and (found := _SWALLOWED.search(data)):
        line = data.count(b"\n", 0, found.start()) + 1
        raise FileFormatError(f"{where}, line {line}: the comment holds another row: is a line end missing?")
    pieces = [_fast(piece, limits) for piece in _pieces(data)]
    plain = [piece for piece in pieces if piece is not None]
    if len(plain) < len(pieces) or len({piece.qid is None for piece in plain}) != 1:
        plain = [_line_by_line(data, where, limits)]
    return SparseRows(
        np.concatenate([piece.label for piece in plain]),
        None if plain[0].qid is None else np.concatenate([piece.qid for piece in plain if piece.qid is not None]),
        _docids(data, sum(len(piece.label) for piece in plain), where),
        np.concatenate([[0], np.cumsum(np.concatenate([np.diff(piece.start) for piece in plain]))]),
        np.concatenate([piece.index for piece in plain]),
        np.concatenate([piece.value for piece in plain]),
    )


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut the text between lines, so that the numbers of a large file never stand in memory all at once."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        yield data[start:end]
        start = end


def _fast(piece: bytes, limits: Limits = DEFAULT) -> SparseRows | None:
    """Take a piece apart, or return None where it is not ``label [qid:int] index:value ...`` throughout."""
    text = re.sub(rb"[ \t]*#[^\n]*", b"", piece) if b"#" in piece else piece
    text = text.replace(b"\t", b" ").replace(b" \n", b"\n").strip(b" \n") + b"\n"
    n_rows = text.count(b"\n")
    n_queries = text.count(b" qid:")
    if n_queries not in {0, n_rows} or _has_leading_zero(text):
        return None
    text = text.replace(b" qid:", b" 0:")
    cells = _cells_per_row(text, with_query=n_queries > 0)
    numbers = _numbers(text)
    if cells is None or numbers is None or len(numbers) != n_rows + 2 * cells.sum():
        return None
    label_at = np.concatenate([[0], np.cumsum(2 * cells + 1)[:-1]])
    label = numbers[label_at]
    pairs = np.delete(numbers, label_at).reshape(-1, 2)
    qid = None
    if n_queries:
        first = np.concatenate([[0], np.cumsum(cells)[:-1]])
        if not cells.all() or pairs[first, 0].any():
            return None
        qid = _integers(pairs[first, 1])
        pairs, cells = np.delete(pairs, first, axis=0), cells - 1
    index = _integers(pairs[:, 0])
    start = np.concatenate([[0], np.cumsum(cells)])
    if index is None or (n_queries and qid is None) or not _ascending(index, start):
        return None
    if index.max(initial=0) > limits.feature:
        return None
    return SparseRows(label, qid, None, start, index, np.ascontiguousarray(pairs[:, 1]))


def _has_leading_zero(text: bytes) -> bool:
    """Whether a query is called 007 or -0, which as a number would be another one's."""
    return (b" qid:0" in text or b" qid:-0" in text) and _LEADING_ZERO.search(text) is not None


def _cells_per_row(text: bytes, *, with_query: bool) -> NDArray[np.int64] | None:
    """Count ``index:value`` in each line, or return None if blanks and colons do not alternate, or an id is no id."""
    if b"\r" in text:
        return None
    marks = np.frombuffer(text, np.uint8)
    marks = marks[(marks < _DIGIT_0) | (marks > _DIGIT_9)]
    if not _whole_ids(marks, with_query=with_query):
        return None
    marks = marks[(marks == _SPACE) | (marks == _COLON) | (marks == _NEWLINE)]
    ends = np.flatnonzero(marks == _NEWLINE)
    lengths = np.diff(ends, prepend=-1)  # separators in each line, the newline included: always odd
    if (lengths % 2 == 0).any():
        return None
    place = np.arange(len(marks)) - np.repeat(ends - lengths + 1, lengths)
    expected = np.where(place % 2 == 1, _COLON, _SPACE)
    expected[ends] = _NEWLINE
    return lengths // 2 if (marks == expected).all() else None


def _whole_ids(marks: NDArray[np.uint8], *, with_query: bool) -> bool:
    """Whether only digits stand before colons, and behind the first one of each line: 1.0 and 1e3 are no ids."""
    colons = np.flatnonzero(marks == _COLON)
    if (marks[colons - 1] != _SPACE).any():
        return False
    if not with_query or not len(colons):
        return True
    lines = np.append(0, np.flatnonzero(marks == _NEWLINE)[:-1] + 1)
    behind = colons[np.minimum(np.searchsorted(colons, lines), len(colons) - 1)] + 1
    behind += marks[behind] == _MINUS  # never the last mark, which is a line end
    return bool(((marks[behind] == _SPACE) | (marks[behind] == _NEWLINE)).all())


def _numbers(text: bytes) -> NDArray[np.float64] | None:
    """Return all numbers of the text in order, or None if something else stands among them."""
    column = text.translate(bytes.maketrans(b" :", b"\n\n"))
    try:
        table = pacsv.read_csv(
            pa.BufferReader(column),
            read_options=pacsv.ReadOptions(column_names=["number"], use_threads=False),
            parse_options=pacsv.ParseOptions(quote_char=False),
            convert_options=pacsv.ConvertOptions(column_types={"number": pa.float64()}, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    numbers: NDArray[np.float64] = table.column("number").to_numpy()
    return numbers if np.isfinite(numbers).all() else None


def _integers(numbers: NDArray[np.float64]) -> NDArray[np.int64] | None:
    exact = (np.abs(numbers) < _EXACT).all() and (numbers == np.floor(numbers)).all()
    return numbers.astype(np.int64) if exact else None


def _ascending(index: NDArray[np.int64], start: NDArray[np.int64]) -> bool:
    """Whether the indices of each row go up, none of them negative."""
    if len(index) == 0:
        return True
    up = np.diff(index) > 0
    firsts = start[(start > 0) & (start < len(index))]
    up[firsts - 1] = True
    return bool(up.all()) and int(index.min()) >= 0


def _line_by_line(data: bytes, where: str, limits: Limits = DEFAULT) -> SparseRows:
    """Read exactly, and say what is wrong where something is."""
    labels: list[float] = []
    qids: list[str] = []
    lengths: list[int] = []
    cells: list[tuple[int, float]] = []
    for number, line in enumerate(io.BytesIO(data), start=1):
        words = line.partition(b"#")[0].split()
        if not words:
            continue
        at = f"{where}, line {number}"
        try:
            fields = [word.decode() for word in words]
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{at}: expected UTF-8 text, found {line[:80]!r}") from error
        labels.append(number_of(fields[0], f"{at}, label"))
        rest = fields[1:]
        if rest and rest[0].startswith("qid:"):
            qids.append(rest.pop(0).removeprefix("qid:"))
        if len(qids) not in {0, len(labels)} or (qids and not qids[-1]):
            raise FileFormatError(f"{at}: expected 'label qid:id index:value ...' in all lines or no qid in any")
        row = dict(_cell(field, at, limits) for field in rest)
        if len(row) < len(rest):
            raise FileFormatError(f"{at}: a feature index is given twice")
        cells.extend(sorted(row.items()))
        lengths.append(len(row))
    if not labels:
        raise FileFormatError(f"{where} is empty: expected lines 'label qid:id index:value ...'")
    return SparseRows(
        np.array(labels),
        _query_ids(qids) if qids else None,
        None,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([index for index, _ in cells], np.int64),
        np.array([value for _, value in cells], np.float64),
    )


def _cell(field: str, at: str, limits: Limits) -> tuple[int, float]:
    index, colon, value = field.partition(":")
    if not (colon and index.isascii() and index.isdigit()):
        raise FileFormatError(f"{at}: expected 'index:value', found {field[:80]!r}")
    check_feature(index, at, limits)
    return int(index), number_of(value, f"{at}, feature {index}")


def check_feature(index: str, where: str, limits: Limits) -> None:
    """Refuse a feature that would make a matrix beyond all memory.

    Parameters
    ----------
    index : str
        Digits.
    where : str
        What messages call the place.
    limits : Limits
        The largest index.

    Raises
    ------
    LimitExceeded
        For a larger one.
    """
    # Python turns no more than 4,300 digits into a number.
    if len(index) >= _LONGEST or int(index) > limits.feature:
        raise limits.exceeded("feature", where, f"found feature {index[:40]}")


def _query_ids(qids: list[str]) -> NDArray[Any]:
    """Return int64 if all are integers that fit and would be written the same again, else str."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", qid) for qid in qids):
        return np.array([int(qid) for qid in qids], np.int64)
    return np.array(qids)


def _docids(data: bytes, n_rows: int, where: str) -> NDArray[Any] | None:
    """Return the ``#docid = D`` of each row."""
    if b"docid" not in data:
        return None
    try:
        found = [match.decode() for match in _DOCID.findall(data)]
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{where}: expected document ids in UTF-8, found {error.object!r}") from error
    if found and len(found) != n_rows:
        line = _first_without_docid(data)
        raise FileFormatError(
            f"{where}, line {line}: expected a '#docid = D' comment in all rows or in none, "
            f"found {len(found)} in {n_rows} rows"
        )
    return np.array(found) if found else None


def _first_without_docid(data: bytes) -> int:
    lines = enumerate(data.split(b"\n"), start=1)
    return next((number for number, line in lines if line.partition(b"#")[0].strip() and not _DOCID.search(line)), 1)
