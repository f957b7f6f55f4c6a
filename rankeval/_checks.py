"""Checks of numbers that arguments hold and of JSON objects, and values as messages show them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from sys import float_info
from typing import Any

from rankeval._secrets import without_secrets
from rankeval.errors import InvalidInput, RankevalError


def refuse(
    *cases: tuple[object, str, *tuple[str, ...]],
    kind: type[RankevalError] = InvalidInput,
    **fields: str | None,
) -> None:
    """Raise for the first case that holds: a table of what must not be, what to say of it, and perhaps the remedy.

    The error has further ``fields``, such as ``argument`` and ``where``.
    """
    for wrong, problem, *remedy in cases:
        if wrong:
            raise kind(problem, remedy=remedy[0] if remedy else None, **fields)


def require(
    holds: object, argument: str, value: Any, expected: str, where: str | None = None
) -> None:
    """Refuse the value of an argument that does not fit; ``expected`` says in words what would."""
    if not holds:
        raise InvalidInput(argument=argument, found=shown(value), expected=expected, where=where)


def check_count(name: str, value: Any, *, least: int = 1) -> None:
    """Refuse anything but a whole number from ``least`` to 2**63 - 1, such as a rank; ``name`` is the argument's."""
    number = whole_number(value)
    require(
        number is not None and number >= least, name, value, f"a whole number, {least} or greater"
    )
    require(number is not None and number < 2**63, name, value, "a whole number within 64 bits")


def whole_number(value: Any) -> int | None:
    """Return a whole number of any library as an int; None if it is none, as True."""
    return None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def check_jobs(value: Any) -> None:
    """Refuse anything but a number of processes at a time, as joblib takes it."""
    number = whole_number(value)
    require(
        number and abs(number) < 2**31,
        "n_jobs",
        value,
        "a number of processes, or -1 for all cores",
    )


def check_number(name: str, value: Any, *, least: float = -float_info.max) -> None:
    """Refuse anything but a finite number from ``least`` on; ``name`` is the argument's."""
    expected = "a number" if least < 0 else f"a number, {least:g} or greater"
    require(_is_real(value) and least <= value <= float_info.max, name, value, expected)


def check_share(name: str, value: Any, *, least: float = 0.0) -> None:
    """Refuse anything but a number between 0 and 1, both excluded, or from ``least`` to below 1."""
    ends = "between 0 and 1" if least == 0 else f"from {least:g} to below 1"
    require(_is_real(value) and least <= value < 1 and value != 0, name, value, f"a number {ends}")


def check_alpha(value: Any) -> None:
    """Refuse anything but the level of a test, above 0 and up to one half."""
    fits = _is_real(value) and 0 < value <= 0.5 and 1 - value != 1
    require(fits, "alpha", value, "a level above 0 and up to 0.5, such as 0.05")


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, as ``object_pairs_hook``; a key given twice is refused, where JSON keeps the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidInput(
            f"the key {shown(max(names, key=names.count))} occurs twice in one object"
        )
    return found


def is_text(value: Any) -> bool:
    """Say whether a value is text that can be written: in UTF-8, and without the NUL that ends a name in C."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character, as a file system or JSON may have it
        return False
    return True


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Return a value as messages show it: in one line of at most 80 characters."""
    if hasattr(type(value), "_view"):  # a result, whose repr is a table
        return type(value).__name__
    try:
        text = without_secrets(" ".join(repr(value).split()))
    except (ValueError, RecursionError):
        # Python writes no whole number of 4,300 digits, and no list 1,000 deep.
        text = f"a {type(value).__name__} that is too long to write"
    return text if len(text) <= 80 else f"{text[:77]}..."


def said(error: BaseException) -> str:
    """Return the message of another library's error in one line."""
    return " ".join(str(error).split())


def few(values: Sequence[Any]) -> str:
    """Show the first five values."""
    return ", ".join(map(shown, values[:5])) + (", ..." if len(values) > 5 else "")


def count(n: int, thing: str) -> str:
    """Write a number of things: ``1 query``, ``2 queries``."""
    return f"{n:,} {thing if n == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """Return the plural of a noun: ``queries`` for ``query``, ``days``, ``searches``."""
    if thing.endswith("y") and thing[-2:-1] not in "aeou":
        return f"{thing[:-1]}ies"
    return f"{thing}es" if thing.endswith(("s", "x", "z", "ch", "sh")) else f"{thing}s"
