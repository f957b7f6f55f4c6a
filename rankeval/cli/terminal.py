"""Print text for people: control characters are escaped, and so are letters that the terminal cannot show."""

from __future__ import annotations

import re
import sys
from typing import TextIO

import typer

# C0 and C1 controls (an escape sequence begins with one), separators of lines and paragraphs, marks of the writing
# direction (they can make one name look like another), and halves of characters, which no encoding can print.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with its control characters as Python escapes.

    Parameters
    ----------
    text : str
        Any text, with names and ids from files.
    keep : str
        Characters to keep, such as our own line ends.

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
        Whether to print on stderr, as for all messages that are no results.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    typer.echo(encodable(visible(text, keep="\n"), stream), err=to_stderr)


def encodable(text: str, stream: TextIO | None) -> str:
    """Return a text with the characters that a stream cannot encode as Python escapes.

    Parameters
    ----------
    text : str
        The text to print.
    stream : text stream, optional
        The stream.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
