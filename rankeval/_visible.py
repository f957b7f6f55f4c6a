"""Text that steers nothing: control characters as escapes.

Names of systems, ids, paths, answers of servers and damaged bytes come from strangers. A terminal
obeys an escape sequence in them, and a mark of the writing direction makes one name look like
another. So each edge at which text leaves for people passes it through `visible`: messages of
errors and warnings, tables, pages, and by `escaping` the reprs and sentences of results. Data stays
as it is: ids in frames, JSON and CSV, and the fields of an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

# C0 and C1 controls (an escape sequence begins with one), separators of lines and paragraphs, marks
# of the writing direction, marks and tags that no screen shows, and halves of characters, which no
# encoding can print.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with its control characters as Python escapes.

    Examples
    --------
    >>> print(visible("a\x1b]0;b"))
    a\x1b]0;b
    """
    return _STEERING.sub(
        lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text
    )


def markdown(text: str) -> str:
    """Escape text for Markdown of GitHub's flavour; control characters become Python escapes."""
    return visible(text, keep="\n").translate(_MARKDOWN)


T = TypeVar("T")
_MARKDOWN = str.maketrans(
    {character: f"\\{character}" for character in r"\`*_[]<>|#"} | {"\n": " "}
)
_TEXTS = ("__repr__", "__str__", "_repr_html_")
_SENTENCES = ("headline", "findings", "caption", "words", "notes")


# Code asks a note for its class, and never reads its words. Notes of a comparison that was read from
# JSON are plain texts.
class LimitNote(str):
    """A note that says why the numbers can be trusted less."""

    __slots__ = ()


class LooksNote(str):
    """The note that counts the looks, and names the plan and the ledger."""

    __slots__ = ()


class PowerlessNote(str):
    """A note that says that no data could have led to a rejection."""

    __slots__ = ()


def escaping(of_results: type[T]) -> type[T]:
    """Let a class of results pass its reprs, sentences and notes through `visible`; it stands above ``dataclass``."""
    own: dict[str, Any] = dict(vars(of_results))
    for name in own.keys() & {*_TEXTS}:
        setattr(of_results, name, _escaped(own[name], keep="\n"))
    for name in own.keys() & {*_SENTENCES}:
        if isinstance(own[name], property):
            setattr(of_results, name, property(_escaped(own[name].fget)))
    if "notes" in own.get("__dataclass_fields__", ()):
        of_results.__init__ = _with_visible_notes(own["__init__"])  # type: ignore[method-assign]
    return of_results


def _escaped(write: Callable[..., Any], *, keep: str = "") -> Callable[..., Any]:
    @wraps(write)
    def escaped(result: Any) -> Any:
        text = write(result)
        return visible(text, keep=keep) if isinstance(text, str) else tuple(map(visible, text))

    return escaped


def _with_visible_notes(make: Callable[..., None]) -> Callable[..., None]:
    @wraps(make)
    def made(result: Any, *values: Any, **fields: Any) -> None:
        make(result, *values, **fields)
        vars(result)["notes"] = tuple(type(note)(visible(note)) for note in result.notes)

    return made
