"""The values that parameters of measures may have, by the type that a kernel declares for them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rankeval.errors import InvalidInput

Count = int
"""Annotation of a parameter that is a whole number, 1 or greater."""


GREATEST = 1000
"""The greatest grade of which 2^grade, added up over a list, is no more than a float holds."""


DEEPEST = 10_000_000
"""The deepest cut-off: beyond any list, and weights by rank are still made in a moment."""


class _Kind(NamedTuple):
    expected: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # neither nan nor infinite, which no name could spell


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_gain_map(value: Any) -> bool:
    pairs = isinstance(value, tuple) and value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    return bool(pairs) and all(_is_number(grade) and _is_number(gain) and gain >= 0 for grade, gain in value)


_KINDS = {
    "float": _Kind("a number", _is_number),
    "int": _Kind("a whole number", _is_whole),
    "Count": _Kind("a whole number, 1 or greater", lambda value: _is_whole(value) and value >= 1),
    "bool": _Kind("True or False", lambda value: isinstance(value, bool)),
    "str": _Kind("text in quotes", lambda value: isinstance(value, str)),
    "tuple[float, ...]": _Kind(
        "numbers in parentheses, such as (0.25, 0.5)",
        lambda value: isinstance(value, tuple) and bool(value) and all(map(_is_number, value)),
    ),
    "str | GainMap": _Kind(
        "text in quotes, or gains of 0 or more by grade, such as {1: 1, 2: 3}",
        lambda value: isinstance(value, str) or _is_gain_map(value),
    ),
}
"""By annotation; what is annotated otherwise is not looked at."""


def kinds(kernel: Callable[..., Any]) -> dict[str, str]:
    """Return the kind of each parameter of a kernel; where none is declared, that of a default number or bool.

    Parameters
    ----------
    kernel : callable
        Its first parameter is the chunk.
    """
    return {one.name: _kind(one) for one in list(inspect.signature(kernel).parameters.values())[1:]}


def _kind(one: inspect.Parameter) -> str:
    if one.annotation is not inspect.Parameter.empty:
        return one.annotation if isinstance(one.annotation, str) else inspect.formatannotation(one.annotation)
    if isinstance(one.default, bool):
        return "bool"
    return "float" if isinstance(one.default, (int, float)) else ""


def checked(family: str, name: str, kind: str, value: Any) -> Any:
    """Return a parameter in its canonical form: whole floats as integers, mappings as sorted tuples.

    Parameters
    ----------
    family, name : str
        Whose parameter it is, for messages.
    kind : str
        As of `kinds`.
    value : object
        What was given.

    Raises
    ------
    InvalidInput
        When the parameter cannot have the value.
    """
    form = _canonical(value)
    if name == "cutoff" and (form is not None or (kind and "None" not in kind)):
        if not _is_whole(form) or form < 1:
            raise InvalidInput(f"{family}@{value}: a cut-off is a rank, 1 or greater")
        if form > DEEPEST:
            raise InvalidInput(f"{family}@{value}: a cut-off is a rank, up to {DEEPEST:,}; leave it out to count all")
        return form
    wanted = _KINDS.get(kind.removesuffix(" | None"))
    if wanted is None or (form is None and kind.endswith(" | None")) or wanted.fits(form):
        return form
    raise InvalidInput(f"{family}: {name} is {value!r}; expected {wanted.expected}")


def _canonical(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, Mapping):
        pairs = [(_canonical(grade), _canonical(gain)) for grade, gain in value.items()]
        return tuple(sorted(pairs, key=lambda pair: (isinstance(pair[0], str), pair[0])))
    if isinstance(value, (list, tuple)):
        return tuple(map(_canonical, value))
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value
