"""Names, near misses: what every registry of the library says when asked for something it does not hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from rankeval.errors import UnknownName


def chosen(kind: str, name: Any, known: Iterable[str]) -> str:
    """Return a name that is known, or raise the error for an unknown one.

    Parameters
    ----------
    kind : str
        What is looked for, such as ``"test"``.
    name : object
        What was asked for. A value that is not text is unknown.
    known : iterable of str
        All names that there are.

    Raises
    ------
    UnknownName
        With the nearest known names.
    """
    if not isinstance(name, str) or name not in known:
        raise unknown(kind, name, known)
    return name


def unknown(kind: str, name: Any, known: Iterable[str]) -> UnknownName:
    """Make the error for an unknown name, with the nearest known ones.

    Parameters
    ----------
    kind : str
        What was looked for, such as ``"measure"``.
    name : object
        What was asked for.
    known : iterable of str
        All names that would have been found.

    Returns
    -------
    UnknownName
        To be raised by the caller.
    """
    names = sorted(set(map(str, known)))
    lowered = {candidate.lower(): candidate for candidate in names}
    near = [lowered[match] for match in difflib.get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are: {', '.join(names)}"
    shown = " ".join(repr(name).split())
    return UnknownName(f"unknown {kind} {shown if len(shown) < 200 else f'{shown[:197]}...'}; {hint}")
