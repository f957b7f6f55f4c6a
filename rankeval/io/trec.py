"""TREC text: ``qid iter docid relevance`` and ``qid Q0 docid rank score tag``, a row per line.

Lines end in LF or CRLF. A line that begins with # is a comment. There are no more columns than these, but for one
leniency that trec_eval 10 has too: the tag may hold blanks, up to 16 words that do not look like a row of their own.

Two ways to read it that agree. The regular file (one blank or one tab between columns) goes through Arrow's CSV
reader, straight from disk; irregular spacing is made regular first. Whatever Arrow then refuses is read again line by
line from the bytes as they came, which either succeeds (comments, run tags with blanks) or says which line and column
is wrong. That way the fast path never has to explain itself, and never guesses: no quotes, no nulls, no hexadecimal
labels.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from rankeval.errors import FileFormatError, InvalidInput
from rankeval.io.columns import numbers_of
from rankeval.io.frames import Columns, combined, whole
from rankeval.io.limits import DEFAULT, Limits
from rankeval.io.text import BLOCK, BOM, TextCheck

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BLANKS = b"\t\x0b\x0c"
_SPACE = " \t\n\r\v\f"  # what bytes.split takes for blanks; str.split takes more
_TAG_WORDS = 16


@dataclass(frozen=True)
class Layout:
    """The columns of one kind of TREC file, and which of them hold the value and the tag."""

    kind: str
    fields: tuple[str, ...]
    value: str
    tag: str | None = None

    def __str__(self) -> str:
        return f"{len(self.fields)} columns ({' '.join(self.fields)})"


QRELS = Layout("qrels", ("qid", "iter", "docid", "relevance"), "relevance")
NDEVAL = Layout("qrels", ("qid", "aspect", "docid", "relevance"), "relevance")
_ASPECTS = Layout("qrels", ("qid", "docid", "document", "relevance"), "relevance")  # the second column as an id
PREFS = Layout("prefs", ("qid", "group", "subgroup", "docid", "relevance"), "relevance")
RUN = Layout("run", ("qid", "Q0", "docid", "rank", "score", "tag"), "score", "tag")


def read_trec(source: pa.NativeFile | bytes, layout: Layout, where: str, limits: Limits = DEFAULT) -> Columns:
    """Read the text of a TREC file.

    Parameters
    ----------
    source : Arrow file that can be read from its start again, or bytes
        The text, uncompressed.
    layout : Layout
        Which columns to expect.
    where : str
        What messages call the file.
    limits : Limits
        The longest line.

    Raises
    ------
    FileFormatError
        For an empty file, a wrong number of columns, values that are no finite numbers, NUL bytes, a CR within a line
        and text that is not UTF-8; with the line and what was found.
    """
    source = pa.BufferReader(source) if isinstance(source, bytes) else source
    if (columns := _fast(source, layout, TextCheck(where, limits, source))) is not None:
        return columns
    source.seek(0)
    data = source.read().removeprefix(BOM)
    columns = _fast(pa.BufferReader(_made_regular(data)), layout)
    return columns if columns is not None else _line_by_line(data, layout, where)


def read_ndeval(source: pa.NativeFile | bytes, where: str, limits: Limits = DEFAULT) -> tuple[Columns, pa.Array]:
    """Read judgments by subtopic, ``qid subtopic docid relevance``, and the subtopic of each.

    Parameters
    ----------
    source : Arrow file that can be read from its start again, or bytes
        The text, uncompressed.
    where : str
        What messages call the file.
    limits : Limits
        The longest line.

    Raises
    ------
    FileFormatError
        As `read_trec`.
    """
    return read_trec(source, NDEVAL, where, limits), read_trec(source, _ASPECTS, where, limits).docid


def read_prefs(source: pa.NativeFile | bytes, where: str, limits: Limits = DEFAULT) -> Columns:
    """Read preferences, ``qid group subgroup docid grade``, with the group of judges as the aspect.

    Parameters
    ----------
    source : Arrow file that can be read from its start again, or bytes
        The text, uncompressed.
    where : str
        What messages call the file.
    limits : Limits
        The longest line.

    Raises
    ------
    FileFormatError
        As `read_trec`.
    """
    columns = read_trec(source, PREFS, where, limits)
    # Once more for each of the other two columns, in the place of the document's.
    group, subgroup = (
        read_trec(source, Layout("prefs", fields, "relevance"), where, limits).docid
        for fields in (("qid", "docid", "subgroup", "document", "relevance"),
                       ("qid", "group", "docid", "document", "relevance"))
    )  # fmt: skip
    return Columns(columns.qid, columns.docid, columns.value, aspect=group, subgroup=subgroup)


@dataclass(frozen=True)
class _Spacing:
    """What separates the columns of a text: its delimiter, its first line, how many separating bytes there are."""

    delimiter: str
    first: bytes
    separators: int
    terminated: bool

    def is_of(self, n_rows: int, n_columns: int) -> bool:
        """Whether that many rows of that many columns have just these separators: one behind each cell."""
        return self.separators == n_rows * n_columns - (not self.terminated)


def _spacing(source: pa.NativeFile, check: TextCheck | None) -> _Spacing | None:
    """Return what separates the columns, or None where two separators stand together, at the start, or one is CR."""
    regular = True
    # A block at a time in the same memory, behind the last byte of the block before.
    block = bytearray(BLOCK + 1)
    block[0] = ord("\n")
    text, into = np.frombuffer(block, np.uint8), memoryview(block)[1:]
    first, separators, terminated = b"", 0, True
    source.seek(0)
    while read := source.readinto(into):
        has_return = check is not None and check.see(block, 1, read + 1)
        if not regular:  # the rest is looked at only for what no text has
            continue
        blank = text[: read + 1] <= ord(" ")
        if (blank[1:] & blank[:-1]).any() or has_return:
            regular = False
            continue
        first = first or bytes(block[1 : read + 1]).split(b"\n", 1)[0]
        separators += int(np.count_nonzero(blank[1:]))
        block[0] = block[read]
        terminated = block[0] == ord("\n")
    if check is not None:
        check.end()
    if not regular or (not terminated and block[0] <= ord(" ")):  # the last line may have lost its last column
        return None
    return _Spacing("\t" if b"\t" in first else " ", first, separators, terminated)


def _made_regular(data: bytes) -> bytes:
    """Put one blank wherever there is white space, and none at the ends of lines."""
    data = data.replace(b"\r\n", b"\n").translate(bytes.maketrans(_BLANKS, b" " * len(_BLANKS)))
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")


def _fast(source: pa.NativeFile, layout: Layout, check: TextCheck | None = None) -> Columns | None:
    """Read a regular file, or return None where anything is out of the ordinary."""
    spacing = _spacing(source, check)
    if spacing is None:
        return None
    value_type = pa.float64() if layout.kind == "run" else pa.dictionary(pa.int32(), pa.string())
    source.seek(0)
    try:
        table = pacsv.read_csv(
            source,
            read_options=pacsv.ReadOptions(column_names=layout.fields, use_threads=False, block_size=BLOCK),
            parse_options=pacsv.ParseOptions(delimiter=spacing.delimiter, quote_char=False, escape_char=False),
            convert_options=pacsv.ConvertOptions(
                include_columns=["qid", "docid", layout.value],
                column_types={"qid": pa.string(), "docid": pa.string(), layout.value: value_type},
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows == 0 or not spacing.is_of(table.num_rows, len(layout.fields)):
        return None
    qid, docid = combined(table.column("qid")), combined(table.column("docid"))
    numbers = table.column(layout.value).unify_dictionaries().combine_chunks()
    if pa.types.is_dictionary(numbers.type):
        levels = _labels(numbers.dictionary)
        values = None if levels is None else whole(levels[numbers_of(numbers.indices)])
    else:
        values = numbers_of(numbers)
    if values is None or not np.isfinite(values).all() or pc.any(pc.starts_with(qid, "#")).as_py():
        return None
    # The tag is that of the first line; those of later lines are not looked at.
    tag = spacing.first.split(None, len(layout.fields) - 1)[-1] if layout.tag else b""
    try:
        return Columns(qid, docid, values, tag.decode() if layout.tag else None)
    except UnicodeDecodeError:
        return None


def _labels(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
    """Return the distinct labels as numbers: Arrow itself would take 0x10 for 16."""
    labels = texts.to_pylist()
    return np.array([float(label) for label in labels]) if all(map(_NUMBER.fullmatch, labels)) else None


def _line_by_line(data: bytes, layout: Layout, where: str) -> Columns:
    """Read exactly, and say what is wrong where something is."""
    qids: list[str] = []
    docids: list[str] = []
    values: list[float] = []
    name = None
    docid_at, value_at = layout.fields.index("docid"), layout.fields.index(layout.value)
    for number, fields in _rows(data, layout, where):
        if not qids and layout.tag:
            name = fields[-1]
        qids.append(fields[0])
        docids.append(fields[docid_at])
        values.append(number_of(fields[value_at], f"{where}, line {number}, column {layout.value}"))
    if not qids:
        raise FileFormatError(f"{where} is empty: expected lines of {layout}")
    numbers = np.array(values)
    return Columns(
        pa.array(qids, pa.string()),
        pa.array(docids, pa.string()),
        numbers if layout.kind == "run" else whole(numbers),
        name,
    )


def _rows(data: bytes, layout: Layout, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and fields of every line that is neither blank nor a comment."""
    width = len(layout.fields)
    # What the fast way does not read need not be UTF-8 here either, such as the tags after the first.
    read = {0, layout.fields.index("docid"), layout.fields.index(layout.value)}
    tags = {width - 1} if layout.tag else set()
    for number, line in enumerate(io.BytesIO(data), start=1):
        cells = line.split(None, width - 1) if layout.tag else line.split()
        if not cells:
            continue
        if cells[0].startswith(b"#"):
            _check_comment(line.split(), layout, f"{where}, line {number}")
            continue
        try:
            fields = [
                cell.decode(errors="strict" if place in read | tags else "replace") for place, cell in enumerate(cells)
            ]
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{where}, line {number}: expected UTF-8 text, found {line[:80]!r}") from error
        if len(fields) != width:
            shown = " ".join(fields)[:80]
            raise FileFormatError(
                f"{where}, line {number}: expected {layout}, found {len(line.split())}: {shown!r}{_hint(cells)}"
            )
        if layout.tag:
            _check_tag(fields, f"{where}, line {number}", layout)
        tags = set()
        yield number, fields


def _hint(cells: list[bytes]) -> str:
    for other in (QRELS, RUN):
        if len(cells) == len(other.fields):
            return f"; this looks like a {other.kind} file"
    return ""


def _check_comment(cells: list[bytes], layout: Layout, where: str) -> None:
    """Refuse a comment that is a row whose query begins with #: trec_eval would count it."""
    value = layout.fields.index(layout.value)
    if len(cells) != len(layout.fields) or len(cells[0]) == 1 or not re.fullmatch(rb"[Qq]?\d+", cells[1]):
        return
    if _NUMBER.fullmatch(cells[value].decode(errors="replace")):
        raise FileFormatError(
            f"{where}: found a row whose query begins with #, where # starts a comment: rename the query, or put a "
            f"blank after # if the row should not count; found {b' '.join(cells)[:80]!r}"
        )


def _check_tag(fields: list[str], where: str, layout: Layout) -> None:
    """Take more columns than six only for a tag with blanks: a docid with a blank would shift rank into score."""
    fields[-1] = fields[-1].rstrip(_SPACE)
    words = [word for word in re.split(f"[{_SPACE}]", fields[-1]) if word]
    if len(words) < 2:
        return
    found = f"{where}: expected {layout}, found {len(fields) - 1 + len(words)}: {' '.join(fields)[:80]!r}"
    if _holds_row(words):
        raise FileFormatError(f"{found}; the tag holds another row: is a line end missing?")
    if len(words) > _TAG_WORDS:
        raise FileFormatError(f"{found}; a tag has {_TAG_WORDS} words at most")
    if not fields[3].isdigit() or _NUMBER.fullmatch(words[0]):
        raise FileFormatError(f"{found}; ids must not hold blanks")


def _holds_row(words: list[str]) -> bool:
    """Whether a tag holds ``word Q0 word rank score``; the first word may be glued to the tag before it."""
    ranked = (word.isdigit() and _NUMBER.fullmatch(score) for word, score in pairwise(words[3:]))
    return any(ranked) or "Q0" in words


def number_of(text: str, where: str) -> float:
    """Return a finite number written the usual way, or say where it is not one."""
    if not _NUMBER.fullmatch(text):
        hint = "; the decimal sign is a point" if re.fullmatch(r"[+-]?\d+,\d+", text) else ""
        raise FileFormatError(f"{where}: expected a finite number, found {text!r}{hint}")
    value = float(text)
    if not np.isfinite(value):
        raise FileFormatError(f"{where}: expected a finite number, found {text!r}, which is beyond 64-bit floats")
    return value


def trec_text(columns: list[pa.Array]) -> Iterator[pa.Buffer]:
    """Yield the text of rows, their columns joined by a blank, some rows at a time."""
    rows = 1 << 18
    for start in range(0, len(columns[0]), rows):
        cells = [column.slice(start, rows).cast(pa.large_string()) for column in columns]
        blank, nothing, newline = (pa.scalar(text, pa.large_string()) for text in (" ", "", "\n"))
        text = pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, blank), nothing, newline)
        offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
        yield text.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def check_writable(ids: pa.Array | None, name: str) -> None:
    """Refuse ids that TREC text would not give back: with white space or NUL, or a query that starts like a comment."""
    if ids is None or pa.types.is_integer(ids.type):
        return
    bad = pc.match_substring_regex(ids, r"[ \t\n\r\v\f\x00]")
    if name == "qid":
        bad = pc.or_(bad, pc.match_substring_regex(ids, "^(#|\ufeff)"))
    row = pc.index(bad, True).as_py()
    if row >= 0:
        raise InvalidInput(
            f"{name} {ids[row].as_py()!r} in row {row} (counting from 0) cannot stand in a TREC file, "
            "where blanks separate columns and # starts a comment: rename it, or save to_frame() as Parquet"
        )
