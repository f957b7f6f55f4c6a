"""Names, near misses: what every registry of the library says when asked for something it does not hold."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from rankeval.errors import UnknownName


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Make the error for an unknown name, with the nearest known ones.

    Parameters
    ----------
    kind : str
        What was looked for, such as ``"measure"``.
    name : str
        What was asked for.
    known : iterable of str
        All names that would have been found.

    Returns
    -------
    UnknownName
        To be raised by the caller.
    """
    names = sorted(set(known))
    lowered = {candidate.lower(): candidate for candidate in names}
    near = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are: {', '.join(names)}"
    return UnknownName(f"unknown {kind} {name!r}; {hint}")
