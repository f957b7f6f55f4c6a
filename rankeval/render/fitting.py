"""Fit a table into a width: the names of its columns and its texts wrap within their own cells.

The widest column gives way first, down to a width that can be read. If that is not enough, the
columns that are named as spare are left out. At last the table goes on below, in blocks that all
begin with the first columns of text. A number is never broken, nor is an interval.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

BETWEEN = "  "
"""Between the columns of a table that was fitted."""

READABLE, POSSIBLE = 14, 8
"""The widths to which texts are wrapped, and to which they are rather than in a second block."""

MOST_LINES = 4
"""A long name takes no more lines: its middle is left out, unless two names would be alike."""

LONGEST_NUMBERS = 24
"""An interval, or a cell of several numbers, is not longer; it stays whole."""

_LETTERS = re.compile(r"[^\W\d_]{2}")
_WORDS = re.compile(r"(?<=\s)(?=\S)")
_NAMES = re.compile(r"(?<=[\s/])")
_PARTS = re.compile(r"(?<=[\s/_,;:=])|(?<=\w-)|(?<=\.)(?=\D)")
"""A place where a word may break without a loss: between the parts of a name."""


@dataclass(frozen=True)
class Column:
    """A column of a plain table: its name, whether it is aligned to the right, and its texts."""

    name: str
    numeric: bool
    cells: Sequence[str]

    @property
    def natural(self) -> int:
        """The width that it has if nothing wraps."""
        return max(map(wide, (self.name, *self.cells)))

    def least(self, readable: int) -> int:
        """Return the width that it needs: texts may wrap to a width, numbers may not."""
        name = min(max(map(wide, _NAMES.split(self.name))), READABLE)
        needs = [
            min(wide(cell), readable) if self._wraps(cell) else wide(cell) for cell in self.cells
        ]
        return max(name, *needs, 1)

    def wrapped(self, width: int) -> Column:
        """Return it with name and texts wrapped."""
        most = MOST_LINES * width
        short = [_shortened(cell, most) for cell in self.cells]
        shown = short if len({*short}) == len({*self.cells}) else self.cells
        name = _broken(_shortened(self.name, most), width)
        return Column(name, self.numeric, [_broken(cell, width) for cell in shown])

    def _wraps(self, cell: str) -> bool:
        is_text = _LETTERS.search(cell) is not None or len(cell) > LONGEST_NUMBERS
        return not self.numeric and is_text


def fitted(
    columns: Sequence[Column], width: int, spare: Sequence[str] = ()
) -> tuple[list[list[Column]], list[str]]:
    """Return blocks of columns that fit, one below the other, and the names of those left out."""
    known = {column.name for column in columns}
    spared = [name for name in spare if name in known]
    attempts = [(READABLE, spared[:n]) for n in range(len(spared) + 1)]
    for readable, without in (*attempts, (POSSIBLE, spared), (READABLE, [])):
        kept = [column for column in columns if column.name not in without]
        widths = _narrowed(kept, readable, width)
        if _total(widths) <= width:
            break
    wrapped = [column.wrapped(own) for column, own in zip(kept, widths, strict=True)]
    blocks = _blocks(kept, widths, width)
    return [[wrapped[place] for place in places] for places in blocks], without


def wide(text: str) -> int:
    """Return how many columns of a terminal a text takes, by its longest line."""
    return max(cell_len(line.rstrip()) for line in text.split("\n"))


def _narrowed(columns: Sequence[Column], readable: int, width: int) -> list[int]:
    """Return widths that fit if they can: the widest column gives way first."""
    least = [column.least(readable) for column in columns]
    widths = [
        max(floor, *map(wide, column.cells), 1)
        for column, floor in zip(columns, least, strict=True)
    ]
    while _total(widths) > width:
        slack = [place for place, floor in enumerate(least) if widths[place] > floor]
        if not slack:
            break
        widths[max(slack, key=widths.__getitem__)] -= 1
    return widths


def _blocks(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[list[int]]:
    """Return the places of the columns in each block; the first columns of text begin them all."""
    numeric = [place for place, column in enumerate(columns) if column.numeric]
    keys = [*range(min(numeric[0], 3))] if numeric and numeric[0] else [0]
    blocks = [keys]
    for place in range(len(keys), len(columns)):
        longer = [*blocks[-1], place]
        if blocks[-1] is not keys and _total([widths[at] for at in longer]) > width:
            longer = [*keys, place]
            blocks.append(longer)
        blocks[-1] = longer
    return blocks


def _broken(text: str, width: int) -> str:
    """Break a text into lines, between words and parts of names where they fit."""
    lines = []
    for line in text.split("\n"):
        lines.append("")
        for part in _parts(line, width):
            if wide(lines[-1] + part) > width and lines[-1].strip():
                lines.append("")
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _parts(line: str, width: int) -> Iterator[str]:
    """Yield words, of longer words the parts between their signs, and of longer ones characters."""
    for word in _WORDS.split(line):
        for piece in [word] if wide(word) <= width else _PARTS.split(word):
            yield from [piece] if wide(piece) <= width else piece


def _shortened(name: str, most: int) -> str:
    """Cut a long name in its middle; sentences have spaces and stay whole."""
    if len(name) <= most or " " in name:
        return name
    half = (most - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(BETWEEN) * (len(widths) - 1)
