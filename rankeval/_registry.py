"""Unknown names and their near misses, as all registries of the library refuse them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
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


def unknown(
    kind: str, name: Any, known: Iterable[str], *, summary: str = "", write: Callable[[str], str] = str
) -> UnknownName:
    """Make the error for an unknown name, with the nearest known ones.

    Parameters
    ----------
    kind : str
        The kind of thing, such as ``"measure"``.
    name : object
        The name asked for.
    known : iterable of str
        All names.
    summary : str
        Said instead of all names if none is near and they are too many to read.
    write : callable
        Gives the name asked for and each near one as they are written, such as with the cut-off that was given.
    """
    names = sorted(set(map(str, known)))
    lowered = {candidate.lower(): candidate for candidate in names}
    asked = str(name).lower()
    alike = difflib.get_close_matches(asked, lowered, n=3, cutoff=0.6)
    near = [lowered[match] for match in alike if _may_be_meant(asked, match)]
    listed = f"known are: {', '.join(names)}" if names else "there is none"
    hint = f"did you mean {' or '.join(repr(write(one)) for one in near)}?" if near else summary or listed
    shown = " ".join(repr(write(name) if isinstance(name, str) else name).split())
    return UnknownName(f"unknown {kind} {shown if len(shown) < 200 else f'{shown[:197]}...'}; {hint}")


def _may_be_meant(asked: str, known: str) -> bool:
    """Say whether one of two similar names may be a slip for the other.

    The similarity counts shared letters, so a short name is similar to many long ones: "OPA" to "TopGain".
    """
    short, long = sorted((asked, known), key=len)
    return len(long) <= 2 * len(short) or long.startswith(short)
