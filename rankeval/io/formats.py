"""Formats of files with judgments or rankings: one declaration each, and reading and writing by it.

::

    file -> opening.reading -> bytes -> Format.sniff -> Format.read -> Columns -> Qrels or Run
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
import re
import shlex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from rankeval._checks import require, said, shown
from rankeval._registry import chosen
from rankeval.errors import FileFormatError, InvalidInput, RankevalError
from rankeval.io import opening
from rankeval.io.columns import IDS, Columns, as_list, id_column, unfit_row, value_column
from rankeval.io.frames import check_parts, refuse_columns
from rankeval.io.opening import DEFAULT, Limits
from rankeval.io.words import Grades, words_remedy

_SNIFFED = 1 << 14
_ID = (
    "an id",
    "an id is text in UTF-8 or a whole number of 64 bits, and those of a column are of one type",
)
_NUMBER = (
    "a finite number",
    "it must fit a 64-bit number without rounding; numbers of a column are of one type",
)
_COMMAS = "the frame of pandas.read_csv(..., sep=None, engine='python', decimal=',')"
NUL = r"\x00"
"""A pattern for ids that no file of TREC can contain."""
_SEEN = 1 << 13  # rows whose ids are searched for characters that hardly belong to them
_EDGE = r"""^[\s\p{Z}\p{Cf}]|[\s\p{Z}\p{Cf},;]$|^".*"$"""
_EDGES = "begins or ends with a blank, an unseen character, a comma or a quote, which is kept"
_UNFIT_NAME = rf"{NUL}|\r"  # no format with lines reads such a name of a system


@dataclass(frozen=True)
class OpenFile:
    """A file that a reader is given.

    ``file`` is an Arrow file, uncompressed, that can be read from its start again; ``value`` is
    "relevance" or "score"; ``path`` is for messages; ``is_named`` says that the caller named the
    format, which then nobody doubts; ``columns`` has the names of columns by part, as
    ``frames.columns_of`` takes them.
    """

    file: pa.NativeFile
    value: str
    path: str
    limits: Limits
    is_named: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """A format of files, declared once."""

    name: str  # The value of ``format=``
    words: str  # For help and errors, such as "CSV with a header"
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
    # Regular expressions (RE2), by default for NUL: ids that the format cannot hold, and ids that
    # are refused after the reading, as a fault of the file. ``unread`` is empty if the reader
    # refuses them itself.
    unfit: str = NUL
    unread: str = NUL
    values: tuple[str, ...] = ("relevance", "score")  # Only the first: for judgments alone
    # Takes an `OpenFile` and rows, from 0, and returns their cells in the columns that ``read``
    # leaves out, by name.
    beside: Callable[[OpenFile, Sequence[int]], Mapping[str, Sequence[Any]]] | None = None
    # Whether a file with this suffix is read as this format if no format claims its content.
    is_told_by_suffix: bool = True
    # Whether messages name a row by its query and document, because the format has no rows.
    is_keyed: bool = False
    # For formats of JSON: ``fits`` takes an object, and says whether it is of this format. ``take``
    # takes a list of such objects and "relevance" or "score", and returns the columns.
    fits: Callable[[Any], bool] | None = None
    take: Callable[[list[Any], str], Columns] | None = None


FORMATS: dict[str, Format] = {}
"""All formats by name. The format declared last is asked first whether it knows a file."""


def add_format(declared: Format) -> Format:
    """Add a format, or replace the one of this name.

    Examples
    --------
    >>> def read(opened):
    ...     rows = [line.split("|") for line in opened.file.read().decode().splitlines()]
    ...     return Columns(*map(list, zip(*rows)))
    >>> add_format(Format("bars", "rows with bars", read, suffixes=(".bars",))).name
    'bars'
    >>> del FORMATS["bars"]
    """
    # `suffix_of` takes the last part of a name, so a longer one would never be found.
    several = [suffix for suffix in declared.suffixes if suffix.count(".") != 1]
    require(not several, "suffixes", several, "suffixes with one dot, at the start")
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
    return FORMATS[chosen("format", name, [key for key, entry in FORMATS.items() if known(entry)])]


def format_list(value: str) -> str:
    """Return the formats that hold relevance or score, as help and guides list them."""
    load_installed()
    known = sorted(FORMATS.items())
    return ", ".join(f"{name} ({entry.words})" for name, entry in known if value in entry.values)


@dataclass(frozen=True)
class Source:
    """The file that rows were read from, for messages."""

    path: str
    format: str
    limits: Limits = DEFAULT
    columns: Mapping[str, Any] = field(default_factory=dict)
    kept: Sequence[int] | None = None  # The rows of the file, if some were left out

    def place(self, rows: Sequence[int]) -> str:
        """Return the file and the lines of rows, counted from 0; of a pipe, the numbers of rows."""
        row_lines, rows = FORMATS[self.format].row_lines, self._of_file(rows)
        numbers, unit = [row + 1 for row in rows], "row"
        if row_lines and Path(self.path).is_file():
            lines = row_lines(opening.read_bytes(self.path, self.limits))
            if max(numbers) <= len(lines):
                numbers, unit = [lines[number - 1] for number in numbers], "line"
        units = f"{unit}s" if len(numbers) > 1 else unit
        return f"{self.path}, {units} {' and '.join(map(str, numbers))}"

    def beside(self, rows: Sequence[int], value: str) -> Mapping[str, Sequence[Any]]:
        """Return, by name, cells of the columns that were not read; none of a pipe."""
        look_up = FORMATS[self.format].beside
        with suppress(RankevalError, LookupError):
            if look_up and Path(self.path).is_file():
                with opening.reading(self.path, self.limits) as file:
                    opened = OpenFile(
                        file, value, self.path, self.limits, is_named=True, columns=self.columns
                    )
                    return look_up(opened, self._of_file(rows))
        return {}

    def _of_file(self, rows: Sequence[int]) -> Sequence[int]:
        return rows if self.kept is None else [self.kept[row] for row in rows]

    def way_on(self, name: str, value: str) -> str:
        """Say how to read rows that a column tells apart."""
        if value == "score" and self.format == "trec":
            command = f"awk '{{print > ($6 \".run\")}}' {shlex.quote(self.path)}"
            return f"if it is the system, write a file of each: {command}"
        if value == "score":
            system = f"rk.Run.by_system({self.path!r}, system={name!r})"
            column = f"--column {shlex.quote(f'name={name}')}"
            return f"if it is the system, rankeval compare {column} compares them: {system}"
        if self.format == "trec":
            return "if it is the subtopic or the judge, say format='ndeval' (-R ndeval)"
        aspect = f"columns={{'aspect': {name!r}}} (--column {shlex.quote(f'aspect={name}')})"
        return f"if it is the subtopic or the judge, say {aspect}"


@contextmanager
def reading_rows(
    path: str | os.PathLike[str],
    value: str,
    format: str | None,  # noqa: A002 - as in `Qrels.read`
    limits: Limits,
    wanted: Mapping[str, Any] = MappingProxyType({}),
    grades: Grades = None,
) -> Iterator[Columns]:
    """Read a file; if the block refuses its columns, raise the error that names the line."""
    check_parts(wanted)
    where = opening.as_path(path)
    notes: tuple[str, ...] = ()
    if value == "relevance" and (where / "qrels").is_dir():
        where = judgments_file(where)
        notes = (f"{path}: the judgments of qrels/{where.name}",)
    named = None if format is None else _named(format, lambda entry: value in entry.values)
    with opening.reading(where, limits) as file:
        entry = named or _recognised(file.read(_SNIFFED), where, value, wanted)
        file.seek(0)
        is_named = entry in (named, FORMATS["ndeval"])
        opened = OpenFile(file, value, str(where), limits, is_named=is_named, columns=wanted)
        try:
            with naming(str(where)):
                columns = entry.read(opened).graded(grades)
        except RankevalError:
            raise
        except (ValueError, TypeError, RecursionError) as error:  # of thousands of brackets
            reason = f"{type(error).__name__}: {said(error)}"
            problem = f"{where} is not as {entry.words} must be: {reason}"
            data = getattr(error, "object", None)  # of a UnicodeDecodeError
            remedy = opening.in_utf8(str(where), data) if isinstance(data, bytes) else None
            raise FileFormatError(problem, remedy=remedy) from error
        if not len(columns.value):
            raise FileFormatError(f"{where} is empty: expected rows with qid, docid and {value}")
        if not columns.parts:
            refuse_columns(wanted, entry.words)
        found = columns.format or entry.name
        source = Source(str(where), found, limits, columns.parts, columns.kept)
        try:
            ids = _id_columns(columns)
            for part, labels in ids.items():
                if (row := unfit_row(labels[:_SEEN], _EDGE)) >= 0:
                    notes += (f"{where}: {part} {labels[row].as_py()!r} {_EDGES}",)
            for part in ids if entry.unread else ():
                refuse_read(ids[part], entry.unread, part, partial(_place, source, columns))
            yield replace(columns, source=source, notes=(*notes, *columns.notes), **ids)
        except FileFormatError:
            raise
        except (InvalidInput, TypeError) as error:
            wrong = _wrong_cell(columns, value)
            if wrong is None:
                fields = (
                    error.fields if isinstance(error, InvalidInput) else {"problem": said(error)}
                )
                raise FileFormatError(**fields | {"where": str(where)}) from error
            row, column, cell = wrong
            place = f"{_place(source, columns, row)}, column {column}"
            cells = columns.value if column == value else None
            raise _cell_error(cell, place, cells, value) from error


def judgments_file(folder: Path, split: str | None = None) -> Path:
    """Return the file of a split in a folder of BEIR, by default the only one, or of test."""
    files = {
        path.name.partition(".")[0]: path for path in sorted((folder / "qrels").glob("*.tsv*"))
    }
    require(files, "folder", str(folder), "a folder of BEIR, with qrels/*.tsv")
    default = next(iter(files)) if len(files) == 1 else "test"
    return files[chosen("split", split or default, files)]


def _id_columns(columns: Columns) -> dict[str, pa.Array]:
    """Return part -> checked ids, for the parts that the rows have."""
    cells = {part: getattr(columns, part) for part in IDS}
    return {part: id_column(ids, part) for part, ids in cells.items() if ids is not None}


def _cell_error(cell: Any, place: str, numbers: Any, value: str) -> FileFormatError:
    """Make the error for a cell that is refused; ``numbers`` is its column, None of ids."""
    expected, remedy = _ID if numbers is None else _NUMBER
    if numbers is not None and isinstance(cell, str):
        try:
            opening.number_of(cell, place)
        except FileFormatError as error:
            return error.having(remedy=error.remedy or _text_remedy(cell, numbers, value))
    is_missing = cell is None or cell != cell  # noqa: PLR0124 - nan
    if numbers is not None and (is_missing or cell in (math.inf, -math.inf)):
        remedy = opening.MASKED if cell == -math.inf else "mend it, or drop the row"
    return FileFormatError(f"expected {expected}, found {shown(cell)}", where=place, remedy=remedy)


def _text_remedy(cell: str, numbers: Any, value: str) -> str | None:
    """Say what to do about a text in a column of numbers."""
    if re.fullmatch(r"[+-]?\d+,\d+", cell):
        return f"write all with a point, or give from_frame {_COMMAS}"
    return words_remedy(as_list(numbers)) if value == "relevance" else None


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
    """Return the place of a row in words: the file, and the line, row, or query and document."""
    if not FORMATS[source.format].is_keyed:
        return source.place([row])
    query, document = (as_list(ids[row : row + 1])[0] for ids in (columns.qid, columns.docid))
    return f"{source.path}, query {shown(query)}, document {shown(document)}"


def refuse_read(ids: pa.Array, unread: str, column: str, place: Callable[[int], str]) -> None:
    """Refuse ids that match `Format.unread`; ``place`` takes a row and returns its place."""
    if (row := unfit_row(ids, unread)) >= 0:
        remedy = "an id contains no NUL, and no rows between two quotes: is there a quote too many?"
        problem = f"found {ids[row].as_py()[:80]!r}"
        raise FileFormatError(problem, where=f"{place(row)}, column {column}", remedy=remedy)


def _recognised(
    start: bytes, where: Path, value: str, wanted: Mapping[str, Any] = MappingProxyType({})
) -> Format:
    """Return the format of a file by its first bytes, then by its suffix, TREC text by default."""
    suffix = suffix_of(where)
    if suffix and not any(suffix in entry.suffixes for entry in FORMATS.values()):
        load_installed()
    known = [entry for entry in reversed(FORMATS.values()) if value in entry.values]
    by_content = [entry for entry in known if entry.sniff and entry.sniff(start)]
    by_suffix = [entry for entry in known if entry.is_told_by_suffix and suffix in entry.suffixes]
    cells = {cell.strip(' "\r') for cell in re.split(r"[,;\t|]", opening.first_line(start))}
    names = ([name] if isinstance(name, str) else name for name in wanted.values())
    by_header = [] if cells.isdisjoint(chain.from_iterable(names)) else [FORMATS["csv"]]
    found = [*by_content, *by_header, *by_suffix, FORMATS["trec"]][0]
    # In TREC text the aspect is the second column.
    return FORMATS["ndeval"] if found.name == "trec" and "aspect" in wanted else found


def suffix_of(where: Path) -> str:
    """Return the last suffix of a file that does not stand for a compression, or nothing."""
    suffixes = [suffix for suffix in where.suffixes if suffix not in opening.COMPRESSION]
    return suffixes[-1] if suffixes else ""


def write_rows(path: str | os.PathLike[str], table: pa.Table, format: str | None = None) -> None:  # noqa: A002
    """Write rows, replacing the file in one step."""
    where = opening.as_path(path)
    values = {"relevance", "score"} & {*table.column_names}

    def writes(entry: Format) -> bool:
        return entry.write is not None and values <= {*entry.values}

    if format is None:
        suffix = suffix_of(where)
        writers = filter(writes, FORMATS.values())
        format = next((entry.name for entry in writers if suffix in entry.suffixes), "trec")  # noqa: A001
    entry = _named(format, writes)
    for name in table.column_names:
        unfit = _UNFIT_NAME if name == "run" else entry.unfit
        check_fit(table.column(name), name, unfit, entry.words)
    opening.write_atomically(where, entry.write(table) if entry.write else ())


def check_fit(ids: pa.ChunkedArray, name: str, unfit: str, words: str) -> None:
    """Refuse ids that a format cannot hold: another id or another row would be read back."""
    if (row := unfit_row(ids, unfit)) >= 0:
        found = f"{name} {ids[row].as_py()!r} in row {row} (counting from 0)"
        remedy = "rename it, or write another format, such as a .parquet file"
        raise InvalidInput(f"{found} cannot be in {words}", remedy=remedy)


def text_lines(data: bytes, comment: bytes | None = None) -> list[int]:
    """Return the number of each line, from 1, that is neither blank nor a comment."""
    lines = opening.filled_lines(data.removeprefix(opening.BOM))
    return [number for number, line in lines if line.strip()[:1] != comment]


def _wrong_cell(columns: Columns, value: str) -> tuple[int, str, Any] | None:
    """Return row, column and content of the topmost cell that is refused."""
    # A shifted row is bad in several columns.
    refused = []
    for column in (*IDS, value):
        cells = columns.value if column == value else getattr(columns, column)
        # A column is refused from its first bad cell on, so halving finds it.
        n_rows = 0 if cells is None else len(cells)
        row = bisect_left(range(n_rows), True, key=partial(_is_refused, cells, column, value))
        if row < n_rows:
            refused.append((row, column, as_list(cells[row : row + 1])[0]))
    return min(refused, key=itemgetter(0), default=None)


def _is_refused(cells: Any, column: str, value: str, last: int) -> bool:
    cells = cells[: last + 1]
    try:
        if column == value:
            value_column(opening.parsed_numbers(cells), column, value)
        else:
            id_column(cells, column)
    except (InvalidInput, TypeError):
        return True
    return False
