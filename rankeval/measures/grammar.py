"""The grammar of names, ``Family(parameter=value, ...)@cutoff``: read, checked, printed, and written as a key.

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
import re
import sys
from collections.abc import Callable, Mapping
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
"""The deepest cut-off. It is deeper than any list, and the weights of that many ranks still fit into memory."""

_AT = r"\s*(?:@(?P<{}>-?[0-9]*\.?[0-9]+))?\s*"
_NAME = rf"(?P<head>[^\s()@]+){_AT.format('before')}(?:\((?P<inside>.*)\))?{_AT.format('behind')}"
_KEY = r"(?P<head>.+?)(?P<inside>(?:__[A-Za-z_]+\.[A-Za-z0-9.\-]+)*?)(?:_at_(?P<at>[0-9]+))?"


class Spelling(NamedTuple):
    """Another tool's name for a measure: a template, and the parameters that the tool sets without saying so.

    In the text, ``{parameter}`` stands for a value, ``{parameter:squared}`` for its square and
    ``{parameter:decimals}`` for the digits behind its decimal point.
    """

    text: str
    fixed: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.text


def fixing(parameters: Mapping[str, Any], *texts: str) -> tuple[Spelling, ...]:
    """Return names of a tool that set the same parameters without saying so."""
    return tuple(Spelling(text, parameters) for text in texts)


class Written(NamedTuple):
    """A name in its parts: ``P(rel=2)@5`` is ``("P", {"rel": 2}, "5")``; ``at`` is "" without a number behind ``@``."""

    head: str
    given: dict[str, Any]
    at: str


def taken_apart(name: str) -> Written | None:
    """Return the parts of a name, None if it has another form."""
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
            given = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords if one.arg}
            if len(given) == len(call.keywords):
                return given
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass  # refused below, as it was written
    raise InvalidInput(
        f"{name!r}: expected parameters as name=value, each once, with plain values, text in quotes; found {inside}"
    )


def spell(family: str, parameters: Parameters) -> str:
    """Return the canonical name of a measure."""
    inside = ", ".join(
        f"{name}={_literal(value)}" for name, value in parameters if name != "cutoff"
    )
    cutoff = dict(parameters).get("cutoff")
    return f"{family}{f'({inside})' if inside else ''}{f'@{cutoff}' if cutoff else ''}"


def key(family: str, parameters: Parameters) -> str:
    """Return a name of a measure that MLflow takes."""
    inside = "".join(
        f"__{name}.{_escaped(_literal(value))}" for name, value in parameters if name != "cutoff"
    )
    cutoff = dict(parameters).get("cutoff")
    return f"{family}{inside}{f'_at_{cutoff}' if cutoff else ''}"


def name_of_key(text: str) -> str:
    """Return the name that a key stands for."""
    match = re.fullmatch(_KEY, text)
    if match is None:
        raise InvalidInput(f"{text!r} is no key of a measure")
    pairs = [part.partition(".") for part in match["inside"].split("__")[1:]]
    inside = ", ".join(f"{name}={_unescaped(value)}" for name, _, value in pairs)
    return f"{match['head']}{f'({inside})' if inside else ''}{'@' + match['at'] if match['at'] else ''}"


def _literal(value: Any) -> str:
    is_map = isinstance(value, tuple) and value and all(isinstance(part, tuple) for part in value)
    return repr(dict(value)) if is_map else repr(value)


def _escaped(text: str) -> str:
    if _is_word(text[1:-1]) and text[0] == "'":
        return text[1:-1]
    return re.sub(
        r"[^A-Za-z0-9.]", lambda found: "".join(f"-{byte:02x}" for byte in found[0].encode()), text
    )


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
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (
        number and abs(value) <= sys.float_info.max
    )  # neither nan nor infinite, which are no literals of Python


def _is_chance(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_gain_map(value: Any) -> bool:
    pairs = (
        isinstance(value, tuple)
        and value
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    )
    return bool(pairs) and all(
        _is_number(grade) and _is_number(gain) and gain >= 0 for grade, gain in value
    )


def _number(expected: str, fits: Callable[[Any], bool], *, whole: bool = False) -> _Kind:
    is_kind = _is_whole if whole else _is_number
    return _Kind(expected, lambda value: is_kind(value) and fits(value))


_RANK = f"a rank, 1 or greater and up to {DEEPEST:,}"
_KINDS = {
    "cutoff": _number(
        f"{_RANK}; leave it out to count all rows", lambda k: 1 <= k <= DEEPEST, whole=True
    ),
    "Depth": _number(_RANK, lambda depth: 1 <= depth <= DEEPEST, whole=True),
    "Count": _number("a whole number, 1 or greater", lambda count: count >= 1, whole=True),
    "int": _Kind("a whole number", _is_whole),
    "float": _Kind("a number", _is_number),
    "Chance": _Kind("a number from 0 to 1", _is_chance),
    "Share": _number("a number from 0 to below 1", lambda p: 0 <= p < 1),
    "Inner": _number("a number above 0 and below 1", lambda p: 0 < p < 1),
    "Positive": _number("a number above 0", lambda number: number > 0),
    "Base": _number("a number above 1", lambda base: base > 1),
    "Weight": _number(
        "a number from 0 to 1e100", lambda weight: 0 <= weight <= 1e100
    ),  # whose square is a float
    "bool": _Kind("True or False", lambda value: isinstance(value, bool)),
    "str": _Kind("text in quotes", lambda value: isinstance(value, str)),
    "Column": _Kind(
        "the name of a column, in quotes", lambda value: isinstance(value, str) and value != ""
    ),
    "Levels": _Kind(
        "numbers from 0 to 1 in parentheses, such as (0.25, 0.5)",
        lambda levels: isinstance(levels, tuple) and bool(levels) and all(map(_is_chance, levels)),
    ),
    "str | GainMap": _Kind(
        "text in quotes, or gains of 0 or more by grade, such as {1: 1, 2: 3}",
        lambda value: isinstance(value, str) or _is_gain_map(value),
    ),
}
"""By a kernel's annotation; parameters with another annotation are not validated."""


def kinds(kernel: Callable[..., Any]) -> dict[str, str]:
    """Return the kind of each parameter of a kernel: its annotation, or else the type of its default."""
    return {one.name: _kind(one) for one in list(inspect.signature(kernel).parameters.values())[1:]}


def _kind(one: inspect.Parameter) -> str:
    if one.annotation is inspect.Parameter.empty:
        kind = {bool: "bool", int: "float", float: "float"}.get(type(one.default), "")
    else:
        kind = (
            one.annotation
            if isinstance(one.annotation, str)
            else inspect.formatannotation(one.annotation)
        )
        kind = "Column" if one.annotation is Column else kind
    if one.name != "cutoff":
        return kind
    return "cutoff | None" if one.default is None or "None" in kind else "cutoff"


def canonical_value(family: str, name: str, kind: str, value: Any) -> Any:
    """Return a parameter in its canonical form: whole floats as integers, mappings as sorted tuples."""
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
