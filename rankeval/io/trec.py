"""TREC text: ``qid iter docid relevance`` and ``qid Q0 docid rank score tag``, a row per line.

Lines end in LF or CRLF. A line that begins with # is a comment. There are no more columns than
these, with one leniency that trec_eval 10 has too: the tag may hold blanks, up to 16 words that do
not look like a row of their own.

Three steps, each for the files that the one before gives up; a million lines of the usual form need
only the first::

    bytes -> _read_regular: one blank or tab after each cell -----> Arrow's CSV reader, from disk
          -> _made_regular: white space to one blank, then again -> Arrow's CSV reader, from memory
          -> _read_lines:   line by line ------------------------> comments, tags with blanks, errors

The regular reader counts separators while it checks the bytes: a file is regular if no two stand
together and their number is rows times columns, which means one behind each cell. So it never has
to explain an error, and never guesses. The trap is Arrow's own leniency: without this count it
takes two cells for one where a blank is doubled, reads 0x10 as 16, and drops a last line that ends
behind a blank.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval._checks import refuse, shown
from rankeval.errors import FileFormatError
from rankeval.io import opening
from rankeval.io.columns import IDS, Columns, combined, numbers_of, row_numbers, runs_against, whole
from rankeval.io.formats import Format, OpenFile, add_format, check_fit, text_lines
from rankeval.io.frames import spelled
from rankeval.io.letor import ROW as LETOR_ROW
from rankeval.io.opening import BLOCK, BOM, NUMBER, WHOLE, text_blocks
from rankeval.io.plausibility import (
    Reading,
    is_doubtful,
    may_be_swapped,
    ranks_in_order,
    reading_of_four,
    reading_of_six,
)
from rankeval.io.tables import csv_cells

_BLANKS = b"\t\x0b\x0c"
_SPACE = " \t\n\r\v\f"  # the blanks of bytes.split; str.split knows more
_TAG_WORDS = 16
_LOOKS = "this looks like a {} file"
_LETOR = (
    "this is a learning-to-rank file, rows of 'label qid:id index:value'",
    "rk.datasets.load_letor reads it, and `rankeval init` begins an experiment with it",
)
_YANDEX = re.compile(rb"\d+\t\d+\t(Q\t\d+\t\d+|C)\t\d+")
_HEADER = (
    "make it a table, and name its columns by columns= (--column qid=NAME) if they have names of "
    "their own: "
)
_CLICKS = (
    "this is a log of queries (Q) and clicks (C), as Yandex published it, and has no judgments",
    "rk.online.ClickLog.read takes a table with the columns impression, docid, position, clicked",
)
_MILLION = (
    "these seem to be prels of the Million Query track (query, document, grade, method, "
    "probability): awk '{print $1, 0, $2, $3}' takes the grades, without the probabilities"
)
_DOMAIN = (
    "these seem to be judgments of the Dynamic Domain track (query, subtopic, document, passage, "
    "grade): format='ndeval' (-R ndeval) reads the best grade of each document, awk "
    '\'{row = $1 " " $2 " " $3; if (!(row in best) || best[row] < $5) best[row] = $5} '
    "END {for (row in best) print row, best[row]}'"
)
_SAMPLE = 1 << 14  # bytes that tell whether a file needs a second look
_HEAD = 2**16


@dataclass(frozen=True)
class TrecColumns:
    """The columns of one kind of TREC file; the others than ids, value and tag are not read."""

    kind: str
    fields: tuple[str, ...]
    value: str
    tag: str | None = None

    @property
    def ids(self) -> list[str]:
        """The columns with ids."""
        return [field for field in self.fields if field in IDS]

    def __str__(self) -> str:
        return f"{len(self.fields)} columns ({' '.join(self.fields)})"


QRELS = TrecColumns("qrels", ("qid", "iter", "docid", "relevance"), "relevance")
NDEVAL = TrecColumns("qrels", ("qid", "aspect", "docid", "relevance"), "relevance")
PREFS = TrecColumns("prefs", ("qid", "aspect", "subgroup", "docid", "relevance"), "relevance")
IR_DATASETS = TrecColumns("qrels", ("qid", "docid", "relevance", "iter"), "relevance")
RUN = TrecColumns("run", ("qid", "Q0", "docid", "rank", "score", "tag"), "score", "tag")
_UNTAGGED = TrecColumns("run", ("qid", "Q0", "docid", "rank", "score"), "score")
_TRIPLES = TrecColumns("run", ("qid", "docid", "score"), "score")

_NAMED = {
    "relevance": (
        *("qid docid relevance", "qid iter docid relevance"),
        "qid aspect subgroup docid relevance",
    ),
    "score": (
        *("qid docid score", "qid docid rank score", "qid Q0 docid rank score"),
        "qid Q0 docid rank score tag",
    ),
}
"""Names of the columns of cells between tabs, for three cells in a row, for four and so on."""
_OPEN = (
    "column 2 differs between the rows of each query: give format='ir_datasets' (-R ir_datasets) if it "
    "is the document, or format='ndeval' (-R ndeval) if it is a judge or a subtopic"
)


def read_trec(judgments: TrecColumns, opened: OpenFile) -> Columns:
    """Read the text of a TREC file."""
    layout = judgments if opened.value == "relevance" else RUN
    if opened.is_named:
        return _read(opened, layout)
    opened.file.seek(0)
    start = _whole_lines(opened.file.read(_SAMPLE), _SAMPLE).removeprefix(BOM)
    _refuse_other_kind(start, opened.path)
    _refuse_blanks(start, opened)
    layout = _narrower(start) if layout is RUN else layout
    is_open = _refuse_other_order(opened, start, layout)
    columns = _read(opened, layout)
    if is_open:
        columns = columns.noting(f"{opened.path}: {_OPEN}")
    if layout is _UNTAGGED:
        return columns.noting(f"{opened.path}: five columns, a run without tags")
    return _ranked_or_scored(columns, opened.path) if layout is _TRIPLES else columns


def _read(opened: OpenFile, layout: TrecColumns) -> Columns:
    blocks = text_blocks(opened.file, opened.path, opened.limits)
    if (columns := _read_regular(opened.file, blocks, layout)) is not None:
        return columns
    opened.file.seek(0)
    data = opened.file.read().removeprefix(BOM)
    regular = _made_regular(data)
    columns = _read_regular(pa.BufferReader(regular), [regular], layout)
    return columns if columns is not None else _read_lines(data, layout, opened.path)


def _whole_lines(data: bytes, size: int) -> bytes:
    """Return what was read of a file, without the line that the size cuts."""
    return data if len(data) < size else data[: data.rfind(b"\n") + 1]


def _narrower(start: bytes) -> TrecColumns:
    """Return the columns of a run by its first rows: six, five without a tag, or three."""
    if rows := _rows_of(start, _UNTAGGED):
        _, marks, _, ranks, scores = zip(*rows, strict=True)
        is_run = len({*marks}) == 1 and all(map(NUMBER.fullmatch, (*ranks, *scores)))
        return _UNTAGGED if is_run else RUN
    rows = _rows_of(start, _TRIPLES)
    return _TRIPLES if rows and all(NUMBER.fullmatch(row[2]) for row in rows) else RUN


def _ranked_or_scored(columns: Columns, path: str) -> Columns:
    """Return rows of query, document and a number with their scores; of ranks, -1, -2, ..."""
    query = numbers_of(combined(columns.qid).dictionary_encode().indices)
    numbers = np.asarray(columns.value, dtype=np.float64)
    are_ranks = ranks_in_order(query, numbers)
    if are_ranks is None:
        write = 'awk \'{{print $1, "Q0", $2, 0, {}, "run"}}\''
        problem = "three columns, and the third may be a rank, a score or a grade"
        remedy = f"if it is a score, write {write.format('$3')}; if a rank, {write.format('-$3')}"
        raise FileFormatError(problem, where=path, remedy=remedy)
    if not are_ranks:
        return columns.noting(f"{path}: three columns, read as query, document and score")
    note = f"{path}: three columns, read as query, document and rank; the score is -rank"
    return replace(columns, value=-numbers).noting(note)


def _copy_of(path: str) -> str:
    """Return the name of a table that is made of a file, which is not the file's own."""
    return Path(path).with_suffix(".tabs.tsv" if path.endswith(".tsv") else ".tsv").name


def _refuse_other_kind(start: bytes, path: str) -> None:
    """Refuse text with a header, learning-to-rank rows and logs of clicks."""
    first, _, rest = start.partition(b"\n")
    names = first.decode(errors="replace").split()
    is_known = any(spelled(names, part) for part in ("qid", "docid", "relevance", "score"))
    is_header = is_known and rest.strip() and not any(map(NUMBER.fullmatch, names))
    command = f"tr -s ' ' '\\t' < {shlex.quote(path)} > {shlex.quote(_copy_of(path))}"
    refuse(
        (is_header, f"line 1 looks like a header: {' '.join(names)[:80]!r}", _HEADER + command),
        (LETOR_ROW.match(start), *_LETOR),
        (_YANDEX.match(start), *_CLICKS),
        kind=FileFormatError,
        where=path,
    )


def _refuse_blanks(start: bytes, opened: OpenFile) -> None:
    """Refuse rows of cells between tabs whose ids would be split at their blanks."""
    lines = start.decode(errors="replace").split("\n")
    rows = [line.strip().split("\t") for line in lines if line.strip() and line[0] != "#"]
    widths = {*map(len, rows)}
    # The sixth cell is a tag, which may have blanks.
    split = [row for row in rows if " " in "".join(map(str.strip, row[:5]))]
    if split and len(widths) == 1 and 0 <= max(widths) - 3 < len(_NAMED[opened.value]):
        problem = f"an id has a blank, in a row of cells between tabs: {shown(split[0])}"
        remedy = _names_remedy(rows, opened.value, opened.path)
        raise FileFormatError(problem, where=opened.path, remedy=remedy)


def _names_remedy(rows: Sequence[Sequence[str]], value: str, path: str) -> str:
    """Write the command that names the columns of rows of cells between tabs."""
    width = len(rows[0])
    reading = reading_of_four(rows) if width == 4 else None
    if value == "score" and width > 4:
        reading = reading_of_six(rows) or _of_five(rows[0])
    names = (reading.columns if reading else _NAMED[value][width - 3]).split()[:width]
    header, copy = "\\t".join(names), shlex.quote(_copy_of(path))
    return f"name the columns: {{ printf '{header}\\n'; cat {shlex.quote(path)}; }} > {copy}"


def _of_five(row: Sequence[str]) -> Reading | None:
    """Return the columns of a row of a run that lacks the second column or the rank."""
    if len(row) != 5 or NUMBER.fullmatch(row[4]) or not NUMBER.fullmatch(row[3]):
        return None
    has_rank = NUMBER.fullmatch(row[2])
    return Reading("qid docid rank score tag" if has_rank else "qid Q0 docid score tag", "")


def _refuse_other_order(opened: OpenFile, start: bytes, layout: TrecColumns) -> bool:
    """Refuse a file whose columns cannot be those of the layout; say whether that stays open."""
    reading_of = reading_of_four if layout is QRELS else reading_of_six
    is_suspect = is_doubtful if layout is QRELS else reading_of_six
    rows = _rows_of(start, layout) if layout is not _TRIPLES else []
    if not rows or not is_suspect(rows):
        return False
    opened.file.seek(0)
    rows = _rows_of(opened.file.read(), layout)
    if rows and (reading := reading_of(rows)):
        expected = " ".join(layout.fields)
        found = " ".join(reading.columns.split()[: len(layout.fields)])
        problem = f"the columns are read as {expected}, but they seem to be {found}: {reading.why}"
        order = reading.reordered(layout.fields)
        if layout is not _UNTAGGED:  # a caller who names the format has six columns
            order = f"{order}, or say format='trec' (-R trec) if they are right"
        raise FileFormatError(
            problem,
            where=opened.path,
            found=found,
            expected=expected,
            remedy=order,
        )
    return layout is QRELS and bool(rows) and may_be_swapped(rows)


def _rows_of(data: bytes, layout: TrecColumns) -> list[list[str]]:
    """Return the cells of each row; no rows if one of them has too few cells or too many."""
    width = len(layout.fields)
    most = width - 1 if layout.tag else -1
    lines = (line.strip() for line in data.removeprefix(BOM).split(b"\n"))
    rows = [line.split(None, most) for line in lines if line and not line.startswith(b"#")]
    if not {*map(len, rows)} <= {width}:
        return []
    # Cells are decoded one by one: text would be split at more blanks than bytes.
    return [[cell.decode(errors="replace") for cell in row] for row in rows]


def _read_regular(
    source: pa.NativeFile, blocks: Iterable[bytes], layout: TrecColumns
) -> Columns | None:
    if (spacing := _spacing(blocks)) is None:
        return None
    first_line, n_separators, has_mark = spacing
    # Labels are read as text and parsed once for each level: Arrow itself would take 0x10 for 16.
    labels = pa.dictionary(pa.int32(), pa.string())
    kinds = dict.fromkeys(layout.ids, pa.string())
    kinds[layout.value] = labels if layout.value == "relevance" else pa.float64()
    width = len(layout.fields)
    delimiter = "\t" if b"\t" in first_line else " "
    source.seek(0)
    try:
        table = csv_cells(source, layout.fields, kinds, delimiter, quoted=False, block=BLOCK)
        # Only the tag of the first line counts.
        tag = first_line.split(None, width - 1)[-1].decode() if layout.tag else None
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    # One separator behind each cell: else Arrow took two cells for one, or skipped a line.
    if table.num_rows == 0 or n_separators != table.num_rows * width:
        return None
    ids = {name: combined(table.column(name)) for name in layout.ids}
    values = _values(table.column(layout.value))
    has_comment = has_mark and pc.any(pc.starts_with(ids["qid"], "#")).as_py()
    # Arrow rounds whole numbers beyond 2**53; nan and infinity fail too.
    if has_comment or values is None or not (np.abs(values) < WHOLE).all():
        return None
    ranks = _ranks(source, delimiter) if layout is RUN else None
    return Columns(value=values, name=tag, rank=ranks, **ids)


def _ranks(source: pa.NativeFile, delimiter: str) -> pa.ChunkedArray | None:
    """Return the ranks of a run; None if its first rows show that they follow the scores."""
    cells = partial(csv_cells, names=RUN.fields, delimiter=delimiter, quoted=False, block=BLOCK)
    kinds = dict.fromkeys(("rank", "score"), pa.float64())
    source.seek(0)
    head = source.read(_HEAD)
    with suppress(pa.ArrowInvalid):  # nobody needs this column, so it may hold anything
        if len(head) == _HEAD:  # to read it all takes time, and nearly all ranks follow the scores
            lines = pa.BufferReader(_whole_lines(head, _HEAD))
            first = cells(lines, kinds={"qid": pa.string(), **kinds})
            query = numbers_of(combined(first["qid"]).dictionary_encode().indices)
            if not runs_against(first["rank"], query, numbers_of(first["score"])):
                return None
        source.seek(0)
        return cells(source, kinds={"rank": pa.float64()})["rank"]
    return None


def _spacing(blocks: Iterable[bytes]) -> tuple[bytes, int, bool] | None:
    """Return the first line, the number of blanks, tabs and line ends, and whether there is a #.

    None if two of those separators follow each other. All blocks are read, since that checks them.
    """
    is_regular, has_mark = True, False
    first_line, n_separators, last = b"", 0, b"\n"
    for block in blocks:
        if not is_regular:
            continue
        blank = np.frombuffer(block, np.uint8) <= ord(" ")
        is_regular = not (blank[:1].any() or (blank[1:] & blank[:-1]).any())
        first_line = first_line or block.split(b"\n", 1)[0]
        n_separators += int(np.count_nonzero(blank))
        has_mark = has_mark or b"#" in block
        last = block[-1:]
    if last != b"\n":
        # The last line lacks its end; behind a blank it may have lost its last column too.
        is_regular = is_regular and last > b" "
        n_separators += 1
    return (first_line, n_separators, has_mark) if is_regular else None


def _values(column: pa.ChunkedArray) -> NDArray[Any] | None:
    numbers = column.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(numbers.type):
        return numbers_of(numbers)
    labels = numbers.dictionary.to_pylist()
    if not all(map(NUMBER.fullmatch, labels)):
        return None
    return whole(np.array([float(label) for label in labels])[numbers_of(numbers.indices)])


def _made_regular(data: bytes) -> bytes:
    """Put one blank wherever there is white space, and none at the ends of lines."""
    # Methods of bytes run in C; a regular expression takes seven times as long.
    data = data.replace(b"\r\n", b"\n").translate(bytes.maketrans(_BLANKS, b" " * len(_BLANKS)))
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \n")


def _read_lines(data: bytes, layout: TrecColumns, where: str) -> Columns:
    ids: dict[str, list[str]] = {name: [] for name in layout.ids}
    values: list[str] = []
    ranks: list[str] = []
    tag = None
    value_at = layout.fields.index(layout.value)
    for number, fields in _lines(data, layout, where):
        if not values and layout.tag:
            tag = fields[-1]
        for name, column in ids.items():
            column.append(fields[layout.fields.index(name)])
        values.append(fields[value_at])
        if layout is RUN:
            ranks.append(fields[layout.fields.index("rank")])
        # Words may be grades, by which the whole column is read.
        if layout.value == "score" or NUMBER.fullmatch(values[-1]):
            opening.number_of(values[-1], f"{where}, line {number}, column {layout.value}")
    if not values:
        raise FileFormatError(f"{where} is empty: expected lines of {layout}")
    columns = {name: pa.array(column, pa.string()) for name, column in ids.items()}
    numbers = opening.parsed_numbers(values)
    return Columns(value=numbers, name=tag, rank=ranks or None, **columns)


def _lines(data: bytes, layout: TrecColumns, where: str) -> Iterator[tuple[int, list[str]]]:
    width = len(layout.fields)
    # As in the regular reader, other cells need not be UTF-8; nor must a tag but the first.
    read = {layout.fields.index(name) for name in [*layout.ids, layout.value]}
    checked = read | {width - 1} if layout.tag else read
    for number, line in opening.filled_lines(data):
        cells = line.split(None, width - 1) if layout.tag else line.split()
        at = f"{where}, line {number}"
        if cells[0].startswith(b"#"):
            _check_comment(line.split(), layout, at)
            continue
        try:
            fields = [
                cell.decode(errors="strict" if place in checked else "replace")
                for place, cell in enumerate(cells)
            ]
        except UnicodeDecodeError as error:
            raise opening.not_utf8(line, at, where, data) from error
        if len(fields) != width:
            problem = f"expected {layout}, found {len(line.split())}: {' '.join(fields)[:80]!r}"
            is_cut = number > 1 and len(fields) < width and not line.endswith(b"\n")
            remedy = opening.CUT if is_cut else _remedy_for(data, line, layout, where)
            raise FileFormatError(problem, where=at, remedy=remedy)
        if layout.tag:
            _check_tag(fields, at, layout)
        checked = read
        yield number, fields


def _remedy_for(data: bytes, line: bytes, layout: TrecColumns, path: str) -> str | None:
    """Say what a line with too few or too many columns may be, if it may be anything."""
    cells = [cell.decode(errors="replace") for cell in line.split()]
    is_number = [NUMBER.fullmatch(cell) is not None for cell in cells]
    n_cells = len(cells)
    tabbed = line.decode(errors="replace").rstrip("\r\n").split("\t")
    if len(tabbed) == len(layout.fields):
        return f"an id contains a blank: {_names_remedy([tabbed], layout.value, path)}"
    if layout is RUN and n_cells == 4 and is_number[3]:
        reading = reading_of_four(_rows_of(data, QRELS) or [cells])
        if reading is None or "score" not in reading.columns:
            return _LOOKS.format("qrels")
        return f"these seem to be {reading.columns}: {reading.reordered(RUN.fields)}"
    if layout is RUN and n_cells == 5 and (five := _of_five(cells)):
        return f"these seem to be {five.columns}: {five.reordered(RUN.fields)}"
    if n_cells >= 6 and is_number[3] and is_number[4] and (n_cells == 6 or cells[1] == "Q0"):
        return _LOOKS.format("run")
    if layout is QRELS and n_cells == 3 and is_number[2]:
        awk = "awk '{print $1, 0, $2, $3}'"
        return f"if these are query, document and grade, write {awk}; a rank belongs to a run"
    if layout is PREFS and n_cells == 4:
        return _LOOKS.format("qrels")
    if layout.value == "relevance" and n_cells == 5 and is_number[4]:
        if all(is_number[2:]) and 0 <= float(cells[4]) <= 1:
            return _MILLION
        if cells[1].startswith(f"{cells[0]}."):
            return _DOMAIN
        if cells[1] == "Q0":
            return f"{_LOOKS.format('run')} without tags"
        if cells[2] == "0" or (cells[1] == "0" and not is_number[2]):
            return "an id has a blank: write another character for it"
        columns = "five columns (query, judge, sub-group, document, grade)"
        return f"{columns} are read by format='prefs' (-R prefs)"
    return None


def _check_comment(cells: list[bytes], layout: TrecColumns, where: str) -> None:
    """Refuse a comment that may be a row: trec_eval would count one whose query begins with #."""
    if len(cells) != len(layout.fields) or len(cells[0]) == 1:
        return
    value = cells[layout.fields.index(layout.value)].decode(errors="replace")
    if re.fullmatch(rb"[Qq]?\d+", cells[1]) and NUMBER.fullmatch(value):
        row = b" ".join(cells)[:80]
        problem = f"found a row whose query begins with #, where # starts a comment: {row!r}"
        remedy = "rename the query, or put a blank after # if the row should not count"
        raise FileFormatError(problem, where=where, remedy=remedy)


def _check_tag(fields: list[str], where: str, layout: TrecColumns) -> None:
    """Refuse a tag that holds another row, or the rest of a row whose docid has a blank."""
    fields[-1] = fields[-1].rstrip(_SPACE)
    words = [word for word in re.split(f"[{_SPACE}]", fields[-1]) if word]
    if len(words) < 2:
        return
    # Another row is ``word Q0 word rank score``, whose first word may be glued to the tag before
    # it. Its rank is the fourth word or a later one: "a 1 2" is a tag.
    ranked = (word.isdigit() and NUMBER.fullmatch(score) for word, score in pairwise(words[3:]))
    faults = (
        ("Q0" in words or any(ranked), "the tag contains another row: is a line end missing?"),
        (len(words) > _TAG_WORDS, f"a tag has {_TAG_WORDS} words at most"),
        (not fields[3].isdigit() or NUMBER.fullmatch(words[0]), "ids must not contain blanks"),
    )
    for remedy in (remedy for wrong, remedy in faults if wrong):
        found = f"{len(fields) - 1 + len(words)}: {' '.join(fields)[:80]!r}"
        raise FileFormatError(f"expected {layout}, found {found}", where=where, remedy=remedy)


def _beside(opened: OpenFile, rows: Sequence[int]) -> dict[str, list[str]]:
    """Return the second column of judgments, or the tag of a run."""
    is_run = opened.value != "relevance"
    layout, name, at = (RUN, "tag", 5) if is_run else (QRELS, "column 2", 1)
    filled = _rows_of(opened.file.read(), layout)
    return {name: [filled[row][at] for row in rows]}


def _write(table: pa.Table) -> Iterator[pa.Buffer]:
    """Yield the text of judgments, in four columns or five, or of a run, some rows at a time."""
    check_fit(table.column("qid"), "qid", "^(#|\ufeff)", "TREC text, where # starts a comment")
    columns = _judgments(table) if "relevance" in table.column_names else _ranking(table)
    blank, nothing, newline = (pa.scalar(text, pa.large_string()) for text in (" ", "", "\n"))
    names = [str(place) for place in range(len(columns))]
    for batch in pa.table(columns, names).to_batches(1 << 18):
        cells = [column.cast(pa.large_string()) for column in batch.columns]
        rows = pc.binary_join_element_wise(*cells, blank)
        lines = pc.binary_join_element_wise(rows, nothing, newline)
        # Arrow keeps the lines one behind the other in memory: that is the text.
        _, offsets, text = lines.buffers()
        ends = np.frombuffer(offsets, np.int64)[lines.offset :]
        begin = int(ends[0])
        yield text.slice(begin, int(ends[len(lines)]) - begin)


def _judgments(table: pa.Table) -> list[Any]:
    qid, docid, relevance = (table.column(name) for name in ("qid", "docid", "relevance"))
    between = [table.column(name) for name in ("aspect", "subgroup") if name in table.column_names]
    return [qid, *(between or [pa.repeat("0", len(table))]), docid, relevance]


def _ranking(table: pa.Table) -> list[Any]:
    """Return the six columns of a run, whose rows are grouped by query, the best first."""
    qid, docid, score = (table.column(name) for name in ("qid", "docid", "score"))
    n_rows = len(table)
    query = numbers_of(combined(qid).dictionary_encode().indices)
    starts = np.flatnonzero(np.r_[True, np.diff(query) != 0])
    lengths = np.diff(np.r_[starts, n_rows])
    rank = row_numbers(np.arange(1, n_rows + 1) - np.repeat(starts, lengths))
    tag = "run"
    if "run" in table.column_names:
        tag = "_".join(table.column("run")[0].as_py().split())
    return [qid, pa.repeat("Q0", n_rows), docid, rank, score, pa.repeat(tag, n_rows)]


_row_lines = partial(text_lines, comment=b"#")
add_format(
    Format(
        "trec",
        "TREC text",
        read=partial(read_trec, QRELS),
        write=_write,
        suffixes=(".txt", ".trec", ".run", ".qrels"),
        row_lines=_row_lines,
        beside=_beside,
        unfit=r"[ \t\n\r\v\f\x00]",
        unread="",
    )
)
for _name, _words, _layout in (
    ("ndeval", "TREC judgments whose second column is the subtopic or the judge", NDEVAL),
    ("ir_datasets", "exported by ir_datasets: query, document, grade, iteration", IR_DATASETS),
    ("prefs", "trec_eval's preferences: query, group, sub-group, document, grade", PREFS),
):
    _judged = partial(read_trec, _layout)
    add_format(
        Format(_name, _words, _judged, row_lines=_row_lines, unread="", values=("relevance",))
    )
