"""Parts of a data set that is sorted by query: intervals of query ids, each with the row groups that reach into it.

    row groups by their least query   [1 .. 7] [7 .. 7] [7 .. 12] [13 .. 20] [20 .. 31]
    parts                             (  .. 7]                    (7 .. 20]             (20 .. ]

A query that is cut across row groups belongs to the part in which it begins: that part reads the heads of the row
groups behind it as far as the query goes. The statistics of the files are believed only until the rows are read: rows
out of order show then, and the data set is shuffled into buckets instead (`buckets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from rankeval.evaluation.streaming.source import File, Source

PART = 1 << 22
"""Rows in a part, of whole row groups: whatever memory and workers there are, so that a call can go on with others."""


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
