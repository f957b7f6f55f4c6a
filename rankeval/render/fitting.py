"""Fit the columns of a plain table into a width.

A table that is too wide wraps the names of its columns first, then its texts within their cells.
Then it leaves out the columns that are named for that, and at last it shows the columns in several
blocks, which all begin with the first columns of text. A number is never broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_BETWEEN, _NARROW = "   ", "  "
"""Between the columns of a table as it is, and of one that was fitted."""

_READABLE, _POSSIBLE = 14, 8
"""The widths to which texts are wrapped, and to which they are rather than in a second block."""

_MOST_LINES = 4
"""The lines that a long name takes in a cell; more would hide the rows."""

_WORD = re.compile(r"[^\W\d_] ?[^\W\d_]")
_NAME = re.compile(r"(?<=[\s/])")
_WORDS = re.compile(r"(?<=\s)(?=\S)")
_BREAK = re.compile(r"(?<=[\s/_,;:=])|(?<=\w-)|(?<=\.)(?=\D)")
"""A place where a text may break without a loss: behind a word, or between the parts of a name."""


@dataclass(frozen=True)
class Strip:
    """A column of a plain table: its name, whether it is aligned to the right, and its texts."""

    name: str
    numeric: bool
    cells: Sequence[str]
    between: str = _BETWEEN

    @property
    def natural(self) -> int:
        """Its width without a break."""
        return max(map(wide, (self.name, *self.cells)))

    def least(self, readable: int) -> int:
        """Return the width that it needs at least: texts may wrap to a width, numbers may not."""
        name = min(max(map(wide, _NAME.split(self.name))), _READABLE)
        is_text = not self.numeric
        needs = (
            min(wide(cell), readable) if is_text and _WORD.search(cell) else wide(cell)
            for cell in self.cells
        )
        return max(name, *needs, 1)

    def broken(self, width: int) -> Strip:
        """Return it with name and texts wrapped; long names are shortened if they still differ."""
        most = _MOST_LINES * width
        short = [_shortened(cell, most) for cell in self.cells]
        shown = short if len({*short}) == len({*self.cells}) else self.cells
        cells = [_broken(cell, width) for cell in shown]
        return Strip(_broken(_shortened(self.name, most), width), self.numeric, cells, _NARROW)


def fitted(
    strips: Sequence[Strip], limit: int | None, spare: Sequence[str] = (), *, in_blocks: bool = True
) -> tuple[list[list[Strip]], list[str]]:
    """Return the columns in blocks that fit, and the names of the columns left out.

    Without ``in_blocks`` there is one block, and the columns of the others are left out.
    """
    if limit is None:
        return [list(strips)], []
    natural = sum(strip.natural for strip in strips)
    for between in (_BETWEEN, _NARROW):
        if natural + len(between) * (len(strips) - 1) <= limit:
            return [[replace(strip, between=between) for strip in strips]], []
    spared = [name for name in spare if name in [strip.name for strip in strips]]
    attempts = [(_READABLE, spared[:n]) for n in range(len(spared) + 1)]
    for least, without in (*attempts, (_POSSIBLE, spared), (_READABLE, [])):
        kept = [strip for strip in strips if strip.name not in without]
        widths = _narrowed(kept, least, limit)
        if _total(widths) <= limit:
            break
    broken = [strip.broken(width) for strip, width in zip(kept, widths, strict=True)]
    blocks = _blocks(kept, widths, limit)
    if not in_blocks:
        left = [place for block in blocks[1:] for place in block if place not in blocks[0]]
        without = [*without, *(kept[place].name for place in left)]
        blocks = blocks[:1]
    return [[broken[place] for place in places] for places in blocks], list(without)


def _narrowed(strips: Sequence[Strip], readable: int, limit: int) -> list[int]:
    """Return widths that fit the limit if they can: the widest column gives way first."""
    least = [strip.least(readable) for strip in strips]
    widths = [
        max(floor, *map(wide, strip.cells), 1) for strip, floor in zip(strips, least, strict=True)
    ]
    while _total(widths) > limit:
        slack = [place for place, floor in enumerate(least) if widths[place] > floor]
        if not slack:
            break
        widest = max(slack, key=widths.__getitem__)
        widths[widest] -= 1
    return widths


def _blocks(strips: Sequence[Strip], widths: Sequence[int], limit: int) -> list[list[int]]:
    """Return the places of the columns in each block; the first columns of text begin them all."""
    numeric = [place for place, strip in enumerate(strips) if strip.numeric]
    keys = [*range(min(numeric[0], 3))] if numeric and numeric[0] else [0]
    blocks = [keys]
    for place in range(len(keys), len(strips)):
        longer = [*blocks[-1], place]
        if blocks[-1] is not keys and _total([widths[at] for at in longer]) > limit:
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
        for piece in [word] if wide(word) <= width else _BREAK.split(word):
            yield from [piece] if wide(piece) <= width else piece


def _shortened(name: str, most: int) -> str:
    """Cut a long name in its middle; sentences have spaces and stay whole."""
    if len(name) <= most or " " in name:
        return name
    half = (most - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_NARROW) * (len(widths) - 1)


def wide(text: str) -> int:
    """Return how many columns of a terminal a text takes, by its longest line."""
    from rich.cells import cell_len

    return max(cell_len(line.rstrip()) for line in text.split("\n"))
