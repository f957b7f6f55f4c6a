"""Unknown names and their near misses, as all registries of the library refuse them."""

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
        The kind of thing, such as ``"test"``.
    name : object
        The name asked for. A value that is not text is unknown.
    known : iterable of str
        All names.

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
        The kind of thing, such as ``"measure"``.
    name : object
        The name asked for.
    known : iterable of str
        All names.
    """
    names = sorted(set(map(str, known)))
    lowered = {candidate.lower(): candidate for candidate in names}
    near = [lowered[match] for match in difflib.get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known are: {', '.join(names)}"
    shown = " ".join(repr(name).split())
    return UnknownName(f"unknown {kind} {shown if len(shown) < 200 else f'{shown[:197]}...'}; {hint}")
