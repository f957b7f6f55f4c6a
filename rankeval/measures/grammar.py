"""The grammar of names, ``Family(parameter=value, ...)@cutoff``, taken apart."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from rankeval.errors import InvalidInput

_NAME = re.compile(r"(?P<head>[^\s()@]+)\s*(?:\((?P<inside>.*)\))?\s*(?:@(?P<at>-?[0-9]*\.?[0-9]+))?", re.DOTALL)


class Written(NamedTuple):
    """A name in its parts.

    Attributes
    ----------
    head : str
        What stands before parentheses and ``@``.
    inside : str
        What stands in the parentheses, "" without.
    at : str
        The number behind ``@``, "" without.
    """

    head: str
    inside: str
    at: str


def taken_apart(name: str) -> Written | None:
    """Return the parts of a name, None where it has another form.

    Parameters
    ----------
    name : str
        Such as ``"P(rel=2)@5"``.
    """
    match = _NAME.fullmatch(name)
    return match and Written(match["head"], match["inside"] or "", match["at"] or "")


def arguments(name: str, inside: str) -> dict[str, Any]:
    """Read ``parameter=value, ...`` with Python literals as values.

    Parameters
    ----------
    name : str
        The whole name, for messages.
    inside : str
        What stands in the parentheses.

    Raises
    ------
    InvalidInput
        For anything else, and for a parameter that is given twice.
    """
    if not inside.strip():
        return {}
    if not inside.isascii():  # Python reads full-width letters in names as plain ones
        raise InvalidInput(f"{name!r}: parameters are written in ASCII")
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        if isinstance(call, ast.Call) and not call.args and all(keyword.arg for keyword in call.keywords):
            read = [(str(keyword.arg), ast.literal_eval(keyword.value)) for keyword in call.keywords]
            found = _twice([parameter for parameter, _ in read])
            if not found:
                return dict(read)
        else:
            found = "a value without a name"
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        found = inside
    raise InvalidInput(f"{name!r}: expected parameters as name=value with plain values, text in quotes; found {found}")


def _twice(names: list[str]) -> str:
    return next((f"{name} twice" for name in names if names.count(name) > 1), "")
