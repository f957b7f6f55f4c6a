"""Print text for people: control characters are escaped, and so are letters that the terminal cannot show."""

from __future__ import annotations

import sys
from typing import TextIO

import typer

from rankeval.render.markup import visible


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
