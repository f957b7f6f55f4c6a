"""Formats of files with judgments or rankings: one declaration each, and reading and writing by it.

::

    file -> opening.reading -> plain bytes -> Format.sniff -> Format.read -> Columns -> Qrels or Run
                                                                                |  a cell is refused:
                                                   "run.csv, line 5, column score" <- Format.row_lines

`add_format` adds a declaration to `FORMATS`; readers, writers, suffixes, errors and help are looked
up there and nowhere else. A package declares its formats in modules that it names as entry points
of the group ``rankeval.formats``. A file is told by ``format=``, else by its content, else by its
suffix, else it is TREC text. The trap is the suffix: a ``.tsv`` may be a table with a header (BEIR)
or a TREC file with tabs (MS MARCO), and many judgments are in a file ``qrels`` without one.

Readers keep no line numbers and do not check single cells, because both cost more than the reading.
If a column is refused as a whole, the file is read once more here, cell by cell, for a message such
as "run.csv, line 5, column score: expected a finite number, found 'x'".
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankeval._checks import said, shown
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.io import opening
from rankeval.io.columns import IDS, Columns, as_list, id_column, unfit_row, value_column
from rankeval.io.opening import DEFAULT, Limits

_SNIFFED = 1 << 14
_ID = (
    "an id",
    "an id is text in UTF-8 or a whole number of 64 bits, and those of a column are of one type",
)
_NUMBER = (
    "a finite number",
    "a 64-bit number must hold it without rounding; numbers of a column are of one type",
)
NUL = r"\x00"
"""A pattern for ids that no file of TREC can hold."""
_UNFIT_NAME = rf"{NUL}|\r"  # no format with lines reads such a name of a system


@dataclass(frozen=True)
class OpenFile:
    """A file that a reader is given.

    ``file`` is an Arrow file, uncompressed, that can be read from its start again; ``value`` is
    "relevance" or "score"; ``path`` is for messages; ``is_named`` says that the caller named the
    format, which then nobody doubts.
    """

    file: pa.NativeFile
    value: str
    path: str
    limits: Limits
    is_named: bool = False


@dataclass(frozen=True)
class Format:
    r"""A format of files, declared once."""

    name: str  # The value of ``format=``
    words: str  # The format in a few words, for help and errors: "CSV with a header"
    # Takes an `OpenFile` and returns ``Columns``. These may be lists, with numbers as text; they
    # are checked afterwards.
    read: Callable[[OpenFile], Columns]
    # Takes an Arrow table and returns the pieces of the file. The columns are qid, docid and
    # relevance, perhaps aspect and subgroup; or qid, docid and score, perhaps run.
    write: Callable[[pa.Table], Iterable[bytes | pa.Buffer]] | None = None
    suffixes: tuple[str, ...] = ()  # Such as ``(".csv",)``
    # Takes the first bytes of a file and says whether they are of this format.
    sniff: Callable[[bytes], bool] | None = None
    # Takes all bytes and returns the line of each row, from 1. Messages of a format without it
    # count rows.
    row_lines: Callable[[bytes], Sequence[int]] | None = None
    unfit: str = NUL  # Regular expression (RE2) for ids that the format cannot hold. By default ids with NUL.
    # Regular expression for ids that are refused if they are read: a fault of the file. By default
    # ids with NUL; empty if the reader refuses them itself.
    unread: str = NUL
    values: tuple[str, ...] = (
        "relevance",
        "score",
    )  # ``("relevance",)`` if the format is for judgments only
    # Takes an `OpenFile` and rows, from 0, and returns their cells in the columns that ``read``
    # leaves out, by name.
    beside: Callable[[OpenFile, Sequence[int]], Mapping[str, Sequence[Any]]] | None = None
    # Whether a file with this suffix is read as this format if no format claims its content.
    is_told_by_suffix: bool = True
    # Whether messages name a row by its query and document, because the format has no rows.
    is_keyed: bool = False


FORMATS: dict[str, Format] = {}
"""All formats by name. The format declared last is asked first whether it knows a file."""


def add_format(declared: Format) -> Format:
    """Add a format, or replace the one of this name.

    Examples
    --------
    >>> def read(given):
    ...     rows = [line.split("|") for line in given.file.read().decode().splitlines()]
    ...     return Columns(*map(list, zip(*rows)))
    >>> add_format(Format("bars", "rows with bars", read, suffixes=(".bars",))).name
    'bars'
    >>> del FORMATS["bars"]
    """
    FORMATS[declared.name] = declared
    return declared


@cache
def load_installed() -> None:
    """Import the modules in which installed packages declare formats."""
    # Not before a file needs it: looking through all packages takes longer than reading 100,000
    # lines.
    from importlib.metadata import entry_points

    for point in entry_points(group="rankeval.formats"):
        point.load()


def _named(name: str, known: Callable[[Format], object]) -> Format:
    """Return a format by its name, or raise the error that lists the formats for this use."""
    if isinstance(name, str) and name not in FORMATS:
        load_installed()
    return FORMATS[chosen("format", name, [one.name for one in FORMATS.values() if known(one)])]


def format_list(value: str) -> str:
    """Return the formats that hold relevance or score, as help and guides list them."""
    load_installed()
    known = sorted(FORMATS.items())
    return ", ".join(f"{name} ({one.words})" for name, one in known if value in one.values)


@dataclass(frozen=True)
class Source:
    """The file that rows were read from, for messages."""

    path: str
    format: str
    limits: Limits = DEFAULT

    def place(self, rows: Sequence[int]) -> str:
        """Return the file and the lines of rows that are counted from 0; rows, if the format or a pipe has no lines."""
        row_lines, numbers, unit = FORMATS[self.format].row_lines, [row + 1 for row in rows], "row"
        if row_lines and Path(self.path).is_file():
            lines = row_lines(opening.read_bytes(self.path, self.limits))
            if max(numbers) <= len(lines):
                numbers, unit = [lines[number - 1] for number in numbers], "line"
        return f"{self.path}, {unit}{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"

    def beside(self, rows: Sequence[int], value: str) -> Mapping[str, Sequence[Any]]:
        """Return the cells of rows in the columns that were not read, by name; none of a pipe or a changed file."""
        look_up = FORMATS[self.format].beside
        with suppress(RankevalError, LookupError):
            if look_up and Path(self.path).is_file():
                with opening.reading(self.path, self.limits) as file:
                    return look_up(
                        OpenFile(file, value, self.path, self.limits, is_named=True), rows
                    )
        return {}

    def way_on(self, name: str, value: str) -> str:
        """Say how to read rows that a column tells apart."""
        if value == "score":
            return "write a file for each system"
        if self.format == "trec":
            return "if it is the subtopic or the judge, say format='ndeval' (-R ndeval)"
        return f"if it is the subtopic or the judge, call the column aspect and not {name}"


@contextmanager
def reading_rows(
    path: str | os.PathLike[str],
    value: str,
    format: str | None,  # noqa: A002 - as in `Qrels.read`
    limits: Limits,
) -> Iterator[Columns]:
    """Read a file of judgments or a ranking; if its columns are refused within the block, name the line of the cell."""
    where = opening.as_path(path)
    named = None if format is None else _named(format, lambda one: value in one.values)
    with opening.reading(where, limits) as file:
        how = named or _told(file.read(_SNIFFED), where, value)
        file.seek(0)
        try:
            with naming(str(where)):
                columns = how.read(
                    OpenFile(file, value, str(where), limits, is_named=named is not None)
                )
        except RankevalError:
            raise
        except (
            ValueError,
            TypeError,
            RecursionError,
        ) as error:  # thousands of brackets recur too deeply
            why = f"{type(error).__name__}: {said(error)}"
            raise FileFormatError(f"{where} is not as {how.words} must be: {why}") from error
        if not len(columns.value):
            raise FileFormatError(f"{where} is empty: expected rows with qid, docid and {value}")
        source = columns.source or Source(str(where), how.name, limits)
        try:
            ids = {
                part: id_column(getattr(columns, part), part)
                for part in IDS
                if getattr(columns, part) is not None
            }
            for part in ids if how.unread else ():
                refuse_read(ids[part], how.unread, part, partial(_place, source, columns))
            yield replace(
                columns, value=opening.parsed_numbers(columns.value), source=source, **ids
            )
        except FileFormatError:
            raise
        except (InvalidInput, TypeError) as error:
            if (wrong := _wrong_cell(columns, value)) is None:
                raise FileFormatError(said(error), where=str(where)) from error
            row, column, cell = wrong
            place = f"{_place(source, columns, row)}, column {column}"
            if column == value and isinstance(cell, str):
                opening.number_of(cell, place)
            expected, remedy = _NUMBER if column == value else _ID
            if column == value and (cell is None or cell in (math.inf, -math.inf) or cell != cell):  # noqa: PLR0124 - nan
                remedy = "mend it, or drop the row"
            raise FileFormatError(
                f"expected {expected}, found {shown(cell)}", where=place, remedy=remedy
            ) from error


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in errors about its columns, which know no file."""
    try:
        yield
    except InvalidInput as error:
        if type(error) is not InvalidInput:
            raise
        raise FileFormatError(**error.fields | {"where": path}) from error


def _place(source: Source, columns: Columns, row: int) -> str:
    """Return the place of a row in words: the file and the line or row, or the query and document."""
    if not FORMATS[source.format].is_keyed:
        return source.place([row])
    query, document = (
        shown(as_list(ids[row : row + 1])[0]) for ids in (columns.qid, columns.docid)
    )
    return f"{source.path}, query {query}, document {document}"


def refuse_read(ids: pa.Array, unread: str, column: str, place: Callable[[int], str]) -> None:
    """Refuse ids that match a pattern, as of `Format.unread`; ``place`` gives a row's place."""
    if (row := unfit_row(ids, unread)) >= 0:
        remedy = "an id holds no NUL, and no rows between two quotes: is a quote too many?"
        found = ids[row].as_py()[:80]
        raise FileFormatError(
            f"found {found!r}", where=f"{place(row)}, column {column}", remedy=remedy
        )


def _told(start: bytes, where: Path, value: str) -> Format:
    """Return the format of a file by its first bytes, then by its suffix, TREC text by default."""
    if suffix_of(where) not in {
        "",
        *(suffix for one in FORMATS.values() for suffix in one.suffixes),
    }:
        load_installed()
    known = [one for one in reversed(FORMATS.values()) if value in one.values]
    by_content = [one for one in known if one.sniff and one.sniff(start)]
    by_suffix = [one for one in known if one.is_told_by_suffix and suffix_of(where) in one.suffixes]
    return [*by_content, *by_suffix, FORMATS["trec"]][0]


def suffix_of(where: Path) -> str:
    """Return the last suffix of a file that does not stand for a compression, or nothing."""
    suffixes = [suffix for suffix in where.suffixes if suffix not in opening.COMPRESSION]
    return suffixes[-1] if suffixes else ""


def write_rows(path: str | os.PathLike[str], table: pa.Table, format: str | None = None) -> None:  # noqa: A002
    """Write rows, replacing the file in one step."""
    where, values = opening.as_path(path), {"relevance", "score"} & {*table.column_names}

    def writes(one: Format) -> bool:
        return one.write is not None and values <= {*one.values}

    if format is None:
        by_suffix = [
            one.name for one in FORMATS.values() if suffix_of(where) in one.suffixes and writes(one)
        ]
        format = [*by_suffix, "trec"][0]  # noqa: A001
    how = _named(format, writes)
    for name in table.column_names:
        check_fit(table.column(name), name, _UNFIT_NAME if name == "run" else how.unfit, how.words)
    opening.write_atomically(where, how.write(table) if how.write else ())


def check_fit(ids: pa.ChunkedArray, name: str, unfit: str, words: str) -> None:
    """Refuse ids that a format cannot hold, because another id or another row would be read back."""
    if (row := unfit_row(ids, unfit)) >= 0:
        problem = (
            f"{name} {ids[row].as_py()!r} in row {row} (counting from 0) cannot stand in {words}"
        )
        raise InvalidInput(
            problem, remedy="rename it, or write another format, such as a .parquet file"
        )


def text_lines(data: bytes, comment: bytes | None = None) -> list[int]:
    """Return the number of each line, from 1, that is neither blank nor a comment."""
    lines = opening.filled_lines(data.removeprefix(opening.BOM))
    return [number for number, line in lines if line.strip()[:1] != comment]


def _wrong_cell(columns: Columns, value: str) -> tuple[int, str, Any] | None:
    """Return row, column and content of the topmost cell that is refused: a shifted row is bad in several columns."""
    found = []
    for column in (*IDS, value):
        cells = columns.value if column == value else getattr(columns, column)
        # A column is refused from its first bad cell on, so halving finds it.
        n_rows = 0 if cells is None else len(cells)
        row = bisect_left(range(n_rows), True, key=partial(_is_refused, cells, column, value))
        if row < n_rows:
            found.append((row, column, as_list(cells[row : row + 1])[0]))
    return min(found, key=lambda one: one[0], default=None)


def _is_refused(cells: Any, column: str, value: str, last: int) -> bool:
    cells = cells[: last + 1]
    try:
        value_column(
            opening.parsed_numbers(cells), column, value
        ) if column == value else id_column(cells, column)
    except (InvalidInput, TypeError):
        return True
    return False
