"""Print text for people: control characters are escaped, and every terminal can show it."""

from __future__ import annotations

import re
import sys
from typing import TextIO

import typer

# C0 and C1 (escape sequences begin with one), separators of lines and paragraphs, marks and overrides of the writing
# direction, which let a name look like another one, and halves of characters, which no encoding can print.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with characters that steer a terminal written as Python writes them.

    Parameters
    ----------
    text : str
        May hold names and ids that came from files.
    keep : str
        Characters to leave alone, such as line ends of our own.

    Examples
    --------
    >>> print(visible("a\x1b]0;b"))
    a\x1b]0;b
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


def tell(text: str, *, to_stderr: bool = False) -> None:
    """Print lines for people.

    Parameters
    ----------
    text : str
        The lines.
    to_stderr : bool
        Whether they go to stderr, as all messages do that are no results.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    typer.echo(encodable(visible(text, keep="\n"), stream), err=to_stderr)


def encodable(text: str, stream: TextIO | None) -> str:
    """Return a text with what the encoding of a stream lacks written as Python writes it.

    Parameters
    ----------
    text : str
        To be printed.
    stream : text stream, optional
        Where to.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
