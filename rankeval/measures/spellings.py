"""What other tools call measures: the spellings that families declare, matched against a name.

A spelling in ranx may end in ``@0``, which is no cut-off, and in ``-l2``, the lowest relevant grade. ir_measures names
parameters of its own: see `rankeval.measures.ir_measures_names`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from rankeval.errors import InvalidInput
from rankeval.measures import ir_measures_names
from rankeval.measures.family import FAMILIES, Family, Measure, Spelling

_LEVELS = 100
"""The greatest level of ranx that is read: gains below it are written out one by one."""

Readings = tuple[tuple[str, Measure], ...]

_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"


class _Placeholder(NamedTuple):
    """How the values of a kind of parameter stand in another tool's name, and how they are read."""

    pattern: str
    read: Callable[[str], Any]


_PLACEHOLDERS = {
    "int": _Placeholder(r"[0-9]+", int),
    "float": _Placeholder(_NUMBER, float),
    "tuple[float, ...]": _Placeholder(rf"{_NUMBER}(?:,{_NUMBER})*", lambda text: tuple(map(float, text.split(",")))),
    "str | GainMap": _Placeholder(
        rf"[0-9]+={_NUMBER}(?:,[0-9]+={_NUMBER})*",
        lambda text: {int(level): float(gain) for level, gain in (pair.split("=") for pair in text.split(","))},
    ),
}
"""By the type that a kernel declares for the parameter."""


def _root(text: str) -> float:
    if float(text) < 0:
        raise InvalidInput(f"beta squared is {text}; expected 0 or greater")
    return math.sqrt(float(text))


_FORMS = {
    "squared": _Placeholder(_NUMBER, _root),
    "decimals": _Placeholder(r"[0-9]+", lambda text: float(f"0.{text}")),
}
"""As above, for what follows the colon of a placeholder: what stands there is not the value itself."""


class _Pattern(NamedTuple):
    """A spelling, ready to be matched; ``read`` has for each parameter how its text is read."""

    tool: str
    family: Family
    expression: re.Pattern[str]
    fixed: Mapping[str, Any]
    read: Mapping[str, Callable[[str], Any]]


@lru_cache(maxsize=4)
def _patterns(_n_families: int) -> tuple[_Pattern, ...]:
    return tuple(
        _compiled(tool, found, spelling)
        for found in FAMILIES.values()
        for tool, spellings in found.spellings.items()
        for spelling in spellings
        if not _is_ours(found, spelling)
    )


def _is_ours(found: Family, spelling: str | Spelling) -> bool:
    """Say whether a spelling is that of our own grammar, which reads it."""
    fixed = isinstance(spelling, Spelling) and spelling.fixed
    return not fixed and str(spelling) in (found.name, f"{found.name}@{{cutoff}}")


def _compiled(tool: str, found: Family, spelling: str | Spelling) -> _Pattern:
    spelling = Spelling(spelling) if isinstance(spelling, str) else spelling
    expression, read = "", {}
    for place, part in enumerate(re.split(r"\{(\w+(?::\w+)?)\}", spelling.text)):
        if place % 2 == 0:
            expression += re.escape(part)
            continue
        parameter, _, form = part.partition(":")
        placeholder = _FORMS[form] if form else _PLACEHOLDERS[found.kinds[parameter].removesuffix(" | None")]
        expression += f"(?P<{parameter}>{placeholder.pattern})"
        read[parameter] = placeholder.read
    return _Pattern(tool, found, re.compile(expression), spelling.fixed, read)


def foreign(name: str, n_families: int) -> Readings:
    """Return tool and measure for each tool that has such a name.

    Parameters
    ----------
    name : str
        What was asked for.
    n_families : int
        How many families are declared: a new one is seen.

    Raises
    ------
    InvalidInput
        When a tool has such a name with a value that it cannot have here.
    """
    readings: list[tuple[str, Measure]] = []
    without, level = _ranx(name)
    for tool, found, expression, fixed, read in _patterns(n_families):
        match = expression.fullmatch(without if tool == "ranx" else name)
        if not match:
            continue
        given = {parameter: how(match[parameter]) for parameter, how in read.items()}
        one = found.with_parameters(**fixed, **given)
        readings.append((tool, _at_level(name, one, level) if tool == "ranx" else one))
    return tuple(readings) or ir_measures_names.read(name, n_families)


def _ranx(name: str) -> tuple[str, int]:
    """Return a name without what ranx lets it end in, and the lowest relevant grade."""
    match = re.fullmatch(r"(?P<name>.+?)(?:@0)?(?:-l(?P<level>[0-9]+))?", name, re.DOTALL)
    return (match["name"], int(match["level"] or 1)) if match else (name, 1)


def _at_level(name: str, one: Measure, level: int) -> Measure:
    """Return a measure for which grades below a level are not relevant."""
    given = dict(one.parameters)
    if level == 1:
        return one
    if not 1 <= level <= _LEVELS:
        raise InvalidInput(f"{name!r}: the lowest relevant grade is {level}; expected one from 1 to {_LEVELS}")
    if "rel" in one.family.defaults:
        return one.family.with_parameters(**{**given, "rel": level})
    if given.get("gain") == "exp":
        raise InvalidInput(
            f"{name!r}: gains of 2^rel - 1 from grade {level} on are written out: "
            f"'{one.family.name}(gain={{1: 0, 2: 3, 3: 7, 4: 15}})', say"
        )
    return one.family.with_parameters(**{**given, "gain": dict.fromkeys(range(1, level), 0)})


def plain_spellings() -> list[str]:
    """Return the spellings without a value in them."""
    return [
        str(spelling)
        for found in FAMILIES.values()
        for spellings in found.spellings.values()
        for spelling in spellings
        if "{" not in str(spelling)
    ]
