"""Read, check and print names, ``Family(parameter=value, ...)@cutoff``, and their keys.

The cut-off may also stand before the parentheses: ``Family@cutoff(parameter=value, ...)``. A
measure has one canonical name, which parses back to it. MLflow refuses ``@ ( ) = ,`` in names, so a
measure also has a key::

    name    nDCG(gain='exp')@10       P(rel=2)@5        nDCG(gain={1: 3})
    key     nDCG__gain.exp_at_10      P__rel.2_at_5     nDCG__gain.-7b1-3a-203-7d

A key writes ``__parameter.value`` for each parameter and ``_at_k`` for the cut-off. In a value,
letters, digits and dots stay, and every other byte is ``-`` and its two hex digits.

The trap: text must not be read back as a number or a word of Python. So ``exp`` is ``'exp'``
without its quotes only because letters alone are no number; ``'True'`` and text with digits keep
their quotes, as ``-27`` on either side.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.join.judged import Column

Parameters = tuple[tuple[str, Any], ...]

# Annotations that say which numbers a parameter may be: see `_KINDS`.
Count = int
Depth = int
Chance = float
Share = float
Inner = float
Positive = float
Base = float
Weight = float
Levels = tuple[float, ...]

DEEPEST = 10_000_000
"""The deepest cut-off: deeper than any list, and the weights of that many ranks fit into memory."""

_AT = r"\s*(?:@(?P<{}>-?[0-9]*\.?[0-9]+))?\s*"
_NAME = rf"(?P<head>[^\s()@]+){_AT.format('before')}(?:\((?P<inside>.*)\))?{_AT.format('behind')}"
_KEY = r"(?P<head>.+?)(?P<inside>(?:__[A-Za-z_]+\.[A-Za-z0-9.\-]+)*?)(?:_at_(?P<at>[0-9]+))?"


class Spelling(NamedTuple):
    """Another tool's name for a measure: a template, and the parameters that the name implies.

    In the text, ``{parameter}`` stands for a value, ``{parameter:squared}`` for its square and
    ``{parameter:decimals}`` for the digits behind its decimal point.
    """

    text: str
    fixed: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.text


def fixing(parameters: Mapping[str, Any], *texts: str) -> tuple[Spelling, ...]:
    """Return names of a tool that imply the same parameters."""
    return tuple(Spelling(text, parameters) for text in texts)


class Written(NamedTuple):
    """A name in its parts: ``P(rel=2)@5`` is ``("P", {"rel": 2}, "5")``, and "" if no ``@``."""

    head: str
    parameters: dict[str, Any]
    at: str


def taken_apart(name: str) -> Written | None:
    """Return the parts of a name, None if it has another form; raise for parameters in disorder."""
    match = re.fullmatch(_NAME, name, re.DOTALL)
    if match is None:
        return None
    before, behind = match["before"] or "", match["behind"] or ""
    if before and behind:
        raise InvalidInput(
            f"{name!r}: the cut-off is given twice", remedy=f"write '@{behind}' only"
        )
    return Written(match["head"], _arguments(name, match["inside"] or ""), before or behind)


def _arguments(name: str, inside: str) -> dict[str, Any]:
    if not inside.strip():
        return {}
    outside = re.sub(r"'[^']*'|\"[^\"]*\"", "", inside)  # a column may have any name
    if not outside.isascii():  # Python reads full-width letters in names as plain ones
        raise InvalidInput(f"{name!r}: parameters are written in ASCII")
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            named = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
            values = {parameter: ast.literal_eval(value) for parameter, value in named}
            if len(values) == len(call.keywords):
                return values
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass  # refused below, as it was written
    raise InvalidInput(
        f"{name!r}: expected parameters as name=value, each once, with plain values, text in "
        f"quotes; found {inside}"
    )


def spell(family: str, parameters: Parameters) -> str:
    """Return the canonical name of a measure."""
    return _name(family, _literals(parameters), dict(parameters).get("cutoff"))


def _name(family: str, values: Iterable[tuple[str, str]], cutoff: Any) -> str:
    inside = ", ".join(f"{name}={value}" for name, value in values)
    parameters = f"({inside})" if inside else ""
    return family + parameters + (f"@{cutoff}" if cutoff else "")


def key(family: str, parameters: Parameters) -> str:
    """Return a name of a measure that MLflow takes."""
    inside = "".join(f"__{name}.{_escaped(value)}" for name, value in _literals(parameters))
    cutoff = dict(parameters).get("cutoff")
    return f"{family}{inside}{f'_at_{cutoff}' if cutoff else ''}"


def name_of_key(text: str) -> str:
    """Return the name that a key stands for."""
    match = re.fullmatch(_KEY, text)
    if match is None:
        raise InvalidInput(f"{text!r} is not the key of a measure")
    parts = [part.partition(".") for part in match["inside"].split("__")[1:]]
    values = [(name, _unescaped(value)) for name, _, value in parts]
    return _name(match["head"], values, match["at"])


def _literals(parameters: Parameters) -> list[tuple[str, str]]:
    return [(name, _literal(value)) for name, value in parameters if name != "cutoff"]


def _literal(value: Any) -> str:
    is_map = isinstance(value, tuple) and value and all(isinstance(part, tuple) for part in value)
    return repr(dict(value)) if is_map else repr(value)


def _escaped(text: str) -> str:
    if _is_word(text[1:-1]) and text[0] == "'":
        return text[1:-1]
    return re.sub(r"[^A-Za-z0-9.]", _hex, text)


def _hex(character: re.Match[str]) -> str:
    return "".join(f"-{byte:02x}" for byte in character[0].encode())


def _unescaped(text: str) -> str:
    if _is_word(text):
        return repr(text)
    raw = re.sub(r"-([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return raw.encode("latin-1").decode(errors="replace")


def _is_word(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z]+", text) is not None and text not in ("True", "False", "None")


class _Kind(NamedTuple):
    expected: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    # nan and infinite values are not literals of Python.
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


def _is_chance(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return _is_text(value) and value != ""


def _is_levels(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(map(_is_chance, value))


def _is_gain(pair: Any) -> bool:
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    grade, gain = pair
    return _is_number(grade) and _is_number(gain) and gain >= 0


def _is_text_or_gains(value: Any) -> bool:
    return _is_text(value) or (
        isinstance(value, tuple) and bool(value) and all(map(_is_gain, value))
    )


def _number(
    expected: str, low: float, high: float = math.inf, is_kind: Callable[[Any], bool] = _is_number
) -> _Kind:
    return _Kind(expected, lambda value: is_kind(value) and low <= value <= high)


_RANK = f"a rank, 1 or greater and up to {DEEPEST:,}"
_ABOVE_0, _ABOVE_1 = math.nextafter(0, 1), math.nextafter(1, 2)
_BELOW_1 = math.nextafter(1, 0)

_COUNTS = {
    "cutoff": _number(f"{_RANK}; leave it out to count all rows", 1, DEEPEST, _is_whole),
    "Depth": _number(_RANK, 1, DEEPEST, _is_whole),
    "Count": _number("a whole number, 1 or greater", 1, math.inf, _is_whole),
}
_NUMBERS = {
    "Share": _number("a number from 0 to below 1", 0, _BELOW_1),
    "Inner": _number("a number above 0 and below 1", _ABOVE_0, _BELOW_1),
    "Positive": _number("a number above 0", _ABOVE_0),
    "Base": _number("a number above 1", _ABOVE_1),
    "Weight": _number("a number from 0 to 1e100", 0, 1e100),  # its square is a float
}
_VALUES = {
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "Chance": ("a number from 0 to 1", _is_chance),
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "str": ("text in quotes", _is_text),
    "Column": ("the name of a column, in quotes", _is_name),
}
_LISTS = {
    "Levels": ("numbers from 0 to 1 in parentheses, such as (0.25, 0.5)", _is_levels),
    "str | GainMap": (
        "text in quotes, or gains of 0 or more by grade, such as {1: 1, 2: 3}",
        _is_text_or_gains,
    ),
}
_KINDS = _COUNTS | _NUMBERS | {name: _Kind(*kind) for name, kind in (_VALUES | _LISTS).items()}
"""By a kernel's annotation; parameters with another annotation are not validated."""

_OF_DEFAULT = {bool: "bool", int: "float", float: "float"}
"""Kinds of parameters without an annotation, by the type of their default."""


def kinds(kernel: Callable[..., Any]) -> dict[str, str]:
    """Return the kind of each parameter of a kernel, from its annotation or its default."""
    _, *parameters = inspect.signature(kernel).parameters.values()
    return {parameter.name: _kind(parameter) for parameter in parameters}


def _kind(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        kind = _OF_DEFAULT.get(type(parameter.default), "")
    elif annotation is Column:
        kind = "Column"
    elif isinstance(annotation, str):
        kind = annotation
    else:
        kind = inspect.formatannotation(annotation)
    if parameter.name != "cutoff":
        return kind
    return "cutoff | None" if parameter.default is None or "None" in kind else "cutoff"


def canonical_value(family: str, name: str, kind: str, value: Any) -> Any:
    """Return a value in its canonical form: whole floats as integers, mappings as sorted tuples."""
    try:
        form = _canonical(value)
    except RecursionError:
        form = value  # which is of no kind
    wanted = _KINDS.get(kind.removesuffix(" | None"))
    if wanted is None or (form is None and kind.endswith(" | None")) or wanted.fits(form):
        return form
    raise InvalidInput(where=family, argument=name, found=shown(value), expected=wanted.expected)


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
