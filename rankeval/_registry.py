"""Names: the late import of public ones, and unknown ones with their near misses, as all registries refuse them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

from rankeval._checks import shown
from rankeval.errors import UnknownName


def late(
    package: str,
    homes: Mapping[str, Sequence[str]],
    moved: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], Callable[[str], Any]]:
    """Return ``__all__`` and ``__getattr__`` of a package that imports a name when it is first asked for (PEP 562)."""
    home_of = {
        name: module
        for module, names in homes.items()
        for name in names or [module.rpartition(".")[2]]
    }

    def imported(name: str) -> Any:
        if name not in home_of:
            instead = f"; use {package}.{moved[name]} instead" if name in moved else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{instead}")
        home = import_module(f"{package}.{home_of[name]}")
        value = vars(import_module(package))[name] = (
            getattr(home, name) if homes[home_of[name]] else home
        )
        return value

    return list(home_of), imported


def chosen(kind: str, name: Any, known: Iterable[str]) -> str:
    """Return a name that is known, or raise the error for an unknown one."""
    if not isinstance(name, str) or name not in known:
        raise unknown(kind, name, known)
    return name


def unknown(
    kind: str,
    name: Any,
    known: Iterable[str],
    *,
    summary: str = "",
    write: Callable[[str], str] = str,
) -> UnknownName:
    """Make the error for an unknown name, with the nearest known ones."""
    names = sorted(set(map(str, known)))
    lowered = {candidate.lower(): candidate for candidate in names}
    # The text of a deep list takes more than the stack.
    spelling = name.lower() if isinstance(name, str) else ""
    near = [
        repr(write(lowered[candidate]))
        for candidate in difflib.get_close_matches(spelling, lowered)
        if _may_be_meant(spelling, candidate)
    ]
    listed = f"known are: {', '.join(names)}" if names else "none is known"
    hint = f"did you mean {' or '.join(near)}?" if near else summary or listed
    return UnknownName(
        f"unknown {kind} {shown(write(name) if isinstance(name, str) else name)}; {hint}"
    )


def _may_be_meant(name: str, known: str) -> bool:
    """Say whether one of two similar names may be a slip for the other.

    The similarity counts shared letters, so a short name is similar to many long ones: "OPA" to
    "TopGain".
    """
    short, long = sorted((name, known), key=len)
    return len(long) <= 2 * len(short) or long.startswith(short)
