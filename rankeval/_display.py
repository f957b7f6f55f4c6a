"""Results in a session: text for a terminal, HTML for a notebook, both drawn from one view.

A class of results derives from `Displayed` and returns from ``_view`` its sentences, tables and
notes. Nothing is computed for a view that takes seconds, and the text fits a terminal::

    Paired t test over 50 queries ...      sentences
    measure   system   mean   ...          tables, each with the rows that there is room for
    * on fewer than 50 queries ...         notes, as many as there is room for

A dataclass needs ``repr=False``, because ``dataclass`` would otherwise write a ``__repr__``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Protocol

from rankeval._visible import visible

WIDTH = 80
LINES = 30
_SENTENCES = 9
_NOTES = 7
_LEAST_TABLE = 5
"""Lines of sentences and notes at most, and of a table at least."""


class Drawn(Protocol):
    """A table that can be drawn within a width and a number of lines."""

    @property
    def notes(self) -> Sequence[str]: ...

    def to_text(self, *, width: int | None = None, lines: int | None = None) -> str: ...

    def to_html(self) -> str: ...

    def without_notes(self) -> Drawn: ...


@dataclass(frozen=True)
class View:
    """The parts of a result that people read."""

    sentences: Sequence[str] = ()
    tables: Sequence[Drawn] = ()
    notes: Sequence[str] = ()  # beside the notes of the tables

    def to_text(self, *, width: int | None = WIDTH, lines: int | None = LINES) -> str:
        """Return lines of at most ``width`` columns, and at most so many; None: all as they are."""
        most = _SENTENCES if lines is not None and self.tables else lines
        sentences = cut(_wrapped(self.sentences, width), most)
        notes = [note for table in self.tables for note in table.notes]
        room = None if lines is None else _NOTES if self.tables else lines - len(sentences)
        foot = _foot([*notes, *self.notes], width, room)
        room = None if lines is None else lines - len(sentences) - len(foot)
        blocks = ["\n".join(sentences), *self._drawn(width, room)]
        text = "\n\n".join(filter(None, blocks))
        return "\n".join([*([text] if text else []), *foot])

    def to_html(self) -> str:
        """Return sentences, tables and notes as HTML, with all text escaped."""
        sentences = [f"<p>{escape(sentence)}</p>" for sentence in self.sentences]
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        tables = [table.to_html() for table in self.tables]
        return "".join([*sentences, *tables, f"<ul>{notes}</ul>" if notes else ""])

    def _drawn(self, width: int | None, room: int | None) -> list[str]:
        """Draw the tables one after the other; each leaves room for those that follow."""
        texts: list[str] = []
        for table in self.tables:
            own = None
            if room is not None:
                others = len(self.tables) - len(texts) - 1
                own = max(_LEAST_TABLE, room - 1 - others * (_LEAST_TABLE + 1))
            texts.append(table.without_notes().to_text(width=width, lines=own))
            room = None if room is None else room - texts[-1].count("\n") - 2
        return texts


class Displayed(ABC):
    """Base of results that a session displays."""

    __slots__ = ()

    @abstractmethod
    def _view(self) -> View: ...

    def __repr__(self) -> str:
        try:
            return visible(self._view().to_text(), keep="\n")
        except Exception as error:  # noqa: BLE001 - a debugger shows what is half made
            return f"<{type(self).__name__} that cannot be shown: {type(error).__name__}>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return visible(self._view().to_html(), keep="\n")


class Page(str):
    """A page of HTML: a text that a session names by its size, and a notebook displays in a frame."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<HTML page of {len(self) / 1000:,.0f} kB: write it to a file>"

    def _repr_html_(self) -> str:
        frame = '<iframe srcdoc="{}" width="100%" height="600" sandbox="allow-scripts"></iframe>'
        return frame.format(escape(str(self)))


def lines_of(text: str, width: int | None, *, hanging: str = "") -> list[str]:
    """Wrap a text, each of its own lines apart; a line that continues begins with ``hanging``."""
    if width is None:
        return text.split("\n")
    lines = []
    for line in text.split("\n"):
        parts = wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False)
        lines += parts if line.isascii() else _narrow(parts, width)
    return lines


def _narrow(lines: Iterable[str], width: int) -> list[str]:
    """Break lines of wide characters, such as Chinese ones, which take two columns each."""
    from rich.cells import chop_cells

    return [part for line in lines for part in chop_cells(line, width)]


def _wrapped(sentences: Iterable[str], width: int | None) -> list[str]:
    return [
        line for sentence in sentences for line in lines_of(visible(sentence, keep="\n"), width)
    ]


def _foot(notes: Sequence[str], width: int | None, most: int | None) -> list[str]:
    """Return the first notes as lines, and the number of those for which there is no room."""
    lines: list[str] = []
    for place, note in enumerate(notes):
        own = lines_of(f"* {visible(note)}", width, hanging="  ")
        rest = len(notes) - place
        if most is not None and len(lines) + len(own) > most - (rest > 1):
            return [*lines, f"* {rest} more note{'s' * (rest > 1)}: .notes"]
        lines += own
    return lines


def cut(lines: list[str], most: int | None) -> list[str]:
    """Return the first lines, with a mark if there are more."""
    return lines if most is None or len(lines) <= most else [*lines[: most - 1], "..."]


def view_of(result: Displayed) -> View:
    """Return the view of a result, to draw it in another size."""
    return result._view()  # noqa: SLF001 - of the class above
