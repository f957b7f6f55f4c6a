"""Checks of single numbers that arguments hold, and how messages show a value."""

from __future__ import annotations

from numbers import Integral, Real
from sys import float_info
from typing import Any

from rankeval.errors import InvalidInput


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of 1 or greater, as a rank or the size of a collection is.

    Parameters
    ----------
    name : str
        The argument.
    value : object
        What it was given.

    Raises
    ------
    InvalidInput
        With both.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InvalidInput(f"{name} is {shown(value)}; expected a whole number, 1 or greater")
    if int(value) > 2**63 - 1:
        raise InvalidInput(f"{name} is {shown(value)}; expected a whole number within 64 bits")


def check_number(name: str, value: Any) -> None:
    """Refuse what is no finite number.

    Parameters
    ----------
    name : str
        The argument.
    value : object
        What it was given.

    Raises
    ------
    InvalidInput
        With both.
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not -float_info.max <= value <= float_info.max:
        raise InvalidInput(f"{name} is {shown(value)}; expected a number")


def check_share(name: str, value: Any, *, least: float = 0.0) -> None:
    """Refuse what is no number between 0 and 1, both excluded.

    Parameters
    ----------
    name : str
        The argument.
    value : object
        What it was given.
    least : float
        Another lower end, which is included.

    Raises
    ------
    InvalidInput
        With both.
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not least <= value < 1 or value == 0:
        ends = "between 0 and 1" if least == 0 else f"from {least:g} to below 1"
        raise InvalidInput(f"{name} is {shown(value)}; expected a number {ends}")


def shown(value: Any) -> str:
    """Return a value as messages show it: in one line, cut where it is long.

    Parameters
    ----------
    value : object
        What was given.
    """
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # a whole number with more digits than Python writes
        text = f"a {type(value).__name__} of very many digits"
    return text if len(text) <= 80 else f"{text[:77]}..."
