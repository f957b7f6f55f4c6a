"""Fit a table into a width: its header and its texts wrap, and its last columns give way.

Numbers never break. A header breaks at its spaces and slashes, a text within its own cell, the
widest column first. If that is not enough, the last columns are left out, and their names are
returned for a line below the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from rankeval._display import lines_of

BETWEEN = "  "
"""Between the columns of a table that was too wide."""

NARROW = 12
"""A column of texts is not made narrower."""

MOST_LINES = 3
"""A text in a cell has no more lines: its middle is left out."""

Columns = list[tuple[str, bool]]
"""The name of each column, and whether it is one of numbers."""


def fitted(
    columns: Columns, rows: Sequence[Sequence[str]], width: int
) -> tuple[Columns, list[list[str]], list[str]]:
    """Return columns and rows that fit, with line breaks in their texts, and the columns left out."""
    names = [name for name, _ in columns]
    bodies = [_widest([row[at] for row in rows]) for at in range(len(columns))]
    widths = _widths(names, bodies)
    if _total(widths) > width:
        names = [_broken(name, max(body, 4)) for name, body in zip(names, bodies, strict=True)]
        widths = _widths(names, bodies)
    wraps = [not is_number for _, is_number in columns]
    shrunk = _shrunk(widths, wraps, width)
    while _total(shrunk) > width and len(shrunk) > 1:
        widths.pop()
        shrunk = _shrunk(widths, wraps, width)
    kept = range(len(shrunk))
    header = [(_filled(names[at], shrunk[at]), columns[at][1]) for at in kept]
    body = [[_filled(row[at], shrunk[at]) for at in kept] for row in rows]
    return header, body, [name for name, _ in columns[len(shrunk) :]]


def _widths(names: Sequence[str], bodies: Sequence[int]) -> list[int]:
    return [max(body, _widest([name])) for name, body in zip(names, bodies, strict=True)]


def _shrunk(widths: Sequence[int], wraps: Sequence[bool], width: int) -> list[int]:
    """Make the widest columns of texts narrower, one character at a time."""
    own = list(widths)
    while _total(own) > width:
        wide = [at for at in range(len(own)) if wraps[at] and own[at] > NARROW]
        if not wide:
            break
        own[max(wide, key=own.__getitem__)] -= 1
    return own


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(BETWEEN) * (len(widths) - 1)


def _widest(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _broken(name: str, width: int) -> str:
    """Break a name of a column at spaces and slashes where it is wider than its values."""
    if cell_len(name) <= width:
        return name
    lines = [""]
    for part in re.findall(r"[^ /]*/?", name):
        joined = f"{lines[-1]}{'' if lines[-1].endswith('/') else ' '}{part}".strip()
        if cell_len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        elif part:
            lines.append(part)
    return "\n".join(lines)


def _filled(text: str, width: int) -> str:
    """Break the lines of a text that are wider than its column; of many keep the first and the last."""
    if _widest([text]) <= width:
        return text
    lines = lines_of(text, width)
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], _end(text, width)]
    return "\n".join(lines)


def _end(text: str, width: int) -> str:
    """Return the end of a text behind an ellipsis."""
    text = text[-width:]
    while cell_len(text) > width - 1:
        text = text[1:]
    return f"…{text.lstrip()}"
