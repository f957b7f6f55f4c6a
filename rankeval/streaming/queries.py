"""Blocks of whole queries, from rows that are sorted by query.

    batches   q1 q1 q2 | q2 q2 q3 | q3 q4        blocks   q1 | q2 q2 q2 | q3 q3 | q4

The last query of a batch may go on in the next one, in the next row group or in the next file. So it is held back.

A data set that is sorted by query is cut into parts, intervals of query ids, each with the row groups that reach into
it:

    row groups by their least query   [1 .. 7] [7 .. 7] [7 .. 12] [13 .. 20] [20 .. 31]
    parts                             (  .. 7]                    (7 .. 20]             (20 .. ]

A query that is cut across row groups belongs to the part in which it begins: that part reads the heads of the row
groups behind it as far as the query goes. The statistics of the files are believed only until the rows are read: rows
out of order show then, and the data set is shuffled into buckets instead (`buckets`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.io.columns import comparable
from rankeval.streaming.rows import BATCH, Batch, Place, batches, located
from rankeval.streaming.source import Columns, File, Source

PART = 1 << 22
"""Rows in a part, of whole row groups: whatever memory and workers there are, so that a call can go on with others."""

_LEAST = BATCH // 2
"""Rows of a block, at least: each costs a few calls."""


@dataclass(frozen=True)
class Part:
    """Some of the data set, read by one worker.

    Attributes
    ----------
    number : int
        Its place among the parts.
    files : tuple of File
        The row groups to read, in order of their queries.
    n_rows : int
        About how many rows it has, for the progress.
    above, upto : object, optional
        The queries that belong to it: those beyond ``above``, up to and with ``upto``. None is no limit.
    """

    number: int
    files: tuple[File, ...]
    n_rows: int
    above: Any = None
    upto: Any = None


class _Piece(NamedTuple):
    """A row group: the queries at its ends, and its place in the data set."""

    begin: Any
    upto: Any
    place: int
    file: File


def sorted_parts(source: Source, *, keep_order: bool) -> list[Part] | None:
    """Return the parts of a data set that is sorted by query, by the statistics of its row groups.

    Parameters
    ----------
    source : Source
        The data set.
    keep_order : bool
        Whether rows of a query must be read in the order of the data set, as ``ties="stable"`` needs.

    Returns
    -------
    list of Part, or None
        None if the statistics are missing, or show that it is not sorted.
    """
    pieces = [
        _Piece(*group.ends, place, File(file.path, file.filesystem, file.keys, (group,)))
        for place, (file, group) in enumerate((file, group) for file in source.files for group in file.row_groups)
        if group.ends is not None
    ]
    if len(pieces) < sum(len(file.row_groups) for file in source.files):
        return None
    pieces.sort(key=lambda one: one[:3])
    for one, behind in pairwise(pieces):
        if one.upto > behind.begin or (keep_order and one.upto == behind.begin and one.place > behind.place):
            return None
    return _parts(pieces)


def _parts(pieces: list[_Piece]) -> list[Part]:
    """Cut row groups in order of their queries into parts."""
    parts: list[Part] = []
    first, above = 0, None
    while first < len(pieces):
        last, n_rows = first, 0
        # Row groups of the last query alone are read here; of the one behind them only its head.
        while last < len(pieces) and (n_rows < PART or pieces[last].upto == pieces[last - 1].upto):
            n_rows += pieces[last].file.n_rows
            last += 1
        upto = pieces[last - 1].upto
        more = last < len(pieces) and pieces[last].begin == upto
        files = tuple(piece.file for piece in pieces[first : last + more])
        parts.append(Part(len(parts), files, n_rows, above, None if last == len(pieces) else upto))
        first, above = last, upto
    return parts


def row_parts(source: Source) -> list[Part]:
    """Return parts of consecutive row groups, whatever queries they hold.

    Parameters
    ----------
    source : Source
        The data set.
    """
    parts: list[Part] = []
    held: list[File] = []
    n_rows = 0
    for file in source.files:
        for group in file.row_groups:
            held.append(File(file.path, file.filesystem, file.keys, (group,)))
            n_rows += group.n_rows
            if n_rows >= PART:
                parts.append(Part(len(parts), tuple(held), n_rows))
                held, n_rows = [], 0
    if held:
        parts.append(Part(len(parts), tuple(held), n_rows))
    return parts


class Unsorted(Exception):
    """The rows are not sorted by query, whatever the statistics of the files say."""


class Block(NamedTuple):
    """Rows of whole queries, and the row groups that they come from."""

    rows: pa.Table
    places: list[Place]


@dataclass(frozen=True, eq=False)
class _Ids:
    """The queries of a batch: numbers, and for texts the names that these stand for."""

    numbers: NDArray[Any]
    names: NDArray[Any] | None

    @classmethod
    def of(cls, batch: Batch, columns: Columns) -> _Ids:
        with located(batch.place, columns):
            return cls(*comparable(batch.rows["qid"], "qid"))

    def __getitem__(self, row: int) -> Any:
        number = self.numbers[row]
        return number if self.names is None else self.names[number]

    def beyond(self, ends: tuple[Any, Any] | None) -> bool:
        """Say whether rows are outside of what the file says of their row group: they would belong to another part."""
        return ends is not None and bool(self[0] < ends[0] or self[-1] > ends[1])

    @property
    def ascend(self) -> bool:
        return bool((self.numbers[1:] >= self.numbers[:-1]).all())

    def behind(self, query: Any) -> int:
        """Return the number of rows up to and with a query."""
        if self.names is not None:
            return int(np.searchsorted(self.numbers, np.searchsorted(self.names, query, side="right")))
        # NumPy compares unsigned numbers and Python's own as floats, which makes neighbours beyond 2**53 one.
        return int(np.searchsorted(self.numbers, np.asarray(query, dtype=self.numbers.dtype), side="right"))

    def start_of(self, row: int) -> int:
        """Return the first row with the query of a row."""
        return int(np.searchsorted(self.numbers, self.numbers[row]))


def whole_queries(part: Part, columns: Columns, most: int) -> Iterator[Block]:
    """Yield blocks of whole queries of a part that is sorted by query.

    Parameters
    ----------
    part : Part
        An interval of queries.
    columns : Columns
        The columns.
    most : int
        The rows of one query that fit into memory.

    Raises
    ------
    Unsorted
        If the rows are not sorted.
    InvalidInput
        If a query has more rows than fit.
    """
    held: list[Batch] = []
    before: Any
    last: Any
    before = last = None  # the last query that was read, and that which is held back
    n_held = n_last = 0
    for batch in batches(part.files, columns):
        ids = _Ids.of(batch, columns)
        if not ids.ascend or (before is not None and ids[0] < before) or ids.beyond(batch.place.group.ends):
            raise Unsorted
        before = ids[-1]
        begin = 0 if part.above is None else ids.behind(part.above)
        end = batch.rows.num_rows if part.upto is None else ids.behind(part.upto)
        if begin < end:
            cut = max(ids.start_of(end - 1), begin)
            goes_on = cut == begin and bool(held) and ids[begin] == last
            if not goes_on and n_held + cut - begin >= _LEAST:
                yield _block([*held, _part_of(batch, begin, cut)])
                held, n_held, begin = [], 0, cut
            held.append(_part_of(batch, begin, end))
            n_held += end - begin
            last, n_last = ids[end - 1], end - cut + (n_last if goes_on else 0)
            refuse_great(last, n_last, most)
        if end < batch.rows.num_rows:
            break
    if held:
        yield _block(held)


def refuse_great(query: Any, n_rows: int, most: int) -> None:
    """Refuse a query that has more rows than fit into memory.

    Parameters
    ----------
    query : object
        Its id.
    n_rows : int
        The rows that were found.
    most : int
        The rows that fit.

    Raises
    ------
    InvalidInput
        The message names the query.
    """
    if n_rows > most:
        query = query.item() if isinstance(query, np.generic) else query
        raise InvalidInput(
            f"memory: query {shown(query)} has more than {most:,} rows, which is what fits into the memory of one "
            "process; raise memory=, or lower n_jobs="
        )


def _part_of(batch: Batch, begin: int, end: int) -> Batch:
    return Batch(batch.rows.slice(begin, end - begin), batch.place)


def _block(held: list[Batch]) -> Block:
    rows = pa.Table.from_batches([batch.rows for batch in held if batch.rows.num_rows])
    return Block(rows, list(dict.fromkeys(batch.place for batch in held)))
