"""One grammar for the names of measures, the spellings of other tools, and keys for MLflow.

The grammar is ``Family(parameter=value, ...)@cutoff``: ``nDCG@10``, ``P(rel=2)@5``, ``nDCG(gain='exp')@10``. A
measure prints in one canonical way, and what it prints parses back to it.

MLflow refuses ``@ ( ) = ,`` in names. A key writes ``__name.value`` for each parameter and ``_at_k`` for the cut-off,
with anything but letters, digits and dots in a value as ``-`` and two hex digits of each byte.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rankeval._registry import unknown
from rankeval.collection.convention import Convention
from rankeval.collection.convention import convention as find_convention
from rankeval.errors import AmbiguousName, InvalidInput
from rankeval.measures.family import FAMILIES, Family, Measure, Spelling
from rankeval.measures.trec_names import NICKNAMES, names_behind

_NAME = re.compile(r"(?P<family>[^\s()@]+)\s*(?:\((?P<parameters>.*)\))?\s*(?:@(?P<cutoff>-?\d+))?", re.DOTALL)

_NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"


class _Placeholder(NamedTuple):
    """How the values of a kind of parameter stand in another tool's name, and how they are read."""

    pattern: str
    read: Callable[[str], Any]


_PLACEHOLDERS = {
    "int": _Placeholder(r"\d+", int),
    "float": _Placeholder(_NUMBER, float),
    "tuple[float, ...]": _Placeholder(rf"{_NUMBER}(?:,{_NUMBER})*", lambda text: tuple(map(float, text.split(",")))),
    "str | GainMap": _Placeholder(
        rf"\d+={_NUMBER}(?:,\d+={_NUMBER})*",
        lambda text: {int(level): float(gain) for level, gain in (pair.split("=") for pair in text.split(","))},
    ),
}
"""By the type that a kernel declares for the parameter."""

_FORMS = {
    "squared": _Placeholder(_NUMBER, lambda text: math.sqrt(float(text))),
    "decimals": _Placeholder(r"\d+", lambda text: float(f"0.{text}")),
}
"""As above, for what follows the colon of a placeholder: what stands there is not the value itself."""


def family(name: str) -> Family:
    """Return the family of this name; case does not matter where it leaves no doubt.

    Raises
    ------
    UnknownName
        When there is none.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    alike = [known for known in FAMILIES if known.lower() == name.lower()]
    if len(alike) == 1:
        return FAMILIES[alike[0]]
    raise unknown("measure", name, [*FAMILIES, *_plain_spellings()])


def measure(spec: str | Measure, convention: str | Convention | None = None) -> Measure:
    """Return the measure of a name, in our grammar or in another tool's spelling.

    Parameters
    ----------
    spec : str or Measure
        Such as ``"nDCG@10"``, ``"P(rel=2)@5"``, ``"ndcg_cut_10"``, ``"MAP"``; a measure is returned as it is.
    convention : str or Convention, optional
        Decides names by which tools mean different things, such as ``"iprec_at_recall_0.10"``.

    Returns
    -------
    Measure
        A frozen value: hashable, picklable, equal by value.

    Raises
    ------
    UnknownName
        When nothing has that name; near misses are named.
    AmbiguousName
        When it stands for several measures, and no convention is given that decides; the choices are named.
    InvalidInput
        When a parameter is missing or cannot have its value.

    Examples
    --------
    >>> measure("ndcg_cut_10") == measure("NDCG@10") == measure("nDCG@10")
    True
    >>> str(measure("p( rel=2 )@5"))
    'P(rel=2)@5'
    """
    if isinstance(spec, Measure):
        return spec
    if not isinstance(spec, str):
        raise InvalidInput(f"a measure is named by a string, such as 'nDCG@10'; found {spec!r}")
    readings = _readings(spec.strip(), len(FAMILIES))
    rules = None if convention is None else find_convention(convention)
    return _chosen(spec.strip(), readings, rules)


def _chosen(name: str, readings: tuple[tuple[str, Measure], ...], rules: Convention | None) -> Measure:
    """Return what a name stands for: the one reading that there is, or the one of the convention."""
    if len({one for _, one in readings}) == 1:
        return readings[0][1]
    of_tool = {one for tool, one in readings if rules is not None and rules.name.startswith(tool)}
    bound = {one for _, one in readings if rules is not None and _is_bound(one, rules.bind)}
    for decided in (of_tool, bound):
        if len(decided) == 1:
            return decided.pop()
    choices = "; ".join(f"{one} ({tool})" for tool, one in readings)
    raise AmbiguousName(f"{name!r} means different things: write {choices}; or give a convention that decides")


def _is_bound(one: Measure, bind: Mapping[str, Mapping[str, Any]]) -> bool:
    bound = bind.get(one.family.name, {})
    return bool(bound) and one == one.family.with_parameters(**{**dict(one.parameters), **bound})


@lru_cache(maxsize=4096)
def _readings(name: str, n_families: int) -> tuple[tuple[str, Measure], ...]:
    """Return tool and measure for each way to read a name; a new declaration, which changes the number, is seen."""
    found = _foreign(name, n_families)
    if not found and (name in NICKNAMES or re.fullmatch(r"\w+\.[\d.]+(,[\d.]+)+", name)):
        raise AmbiguousName(f"{name!r} stands for several measures: name one of them here; measures= takes it")
    return found or (("rankeval", _parse(name)),)


def _parse(name: str) -> Measure:
    """Read a name in our own grammar."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidInput(f"{name!r} is no measure: write Family(parameter=value)@cutoff, such as 'P(rel=2)@5'")
    try:
        found = family(match["family"])
    except InvalidInput as error:
        suffix = f"@{match['cutoff']}" if match["cutoff"] else ""
        raise type(error)(re.sub(r"'([^']+)'", lambda quoted: _with_cutoff(quoted[1], suffix), str(error))) from None
    parameters = _arguments(name, match["parameters"] or "")
    if match["cutoff"]:
        if "cutoff" not in found.defaults:
            raise InvalidInput(f"{name!r}: {found.name} has no cut-off; write {found.name!r}")
        parameters["cutoff"] = int(match["cutoff"])
    return found.with_parameters(**parameters)


def _with_cutoff(name: str, suffix: str) -> str:
    takes = name in FAMILIES and "cutoff" in FAMILIES[name].defaults
    return repr(name + suffix if takes or (name not in FAMILIES and name not in _plain_spellings()) else name)


def _arguments(name: str, text: str) -> dict[str, Any]:
    """Read ``name=value, ...`` with Python literals as values."""
    if not text.strip():
        return {}
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        named = isinstance(call, ast.Call) and not call.args and all(keyword.arg for keyword in call.keywords)
        if isinstance(call, ast.Call) and named:
            return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        found = "a value without a name"
    except (SyntaxError, ValueError):
        found = text
    raise InvalidInput(f"{name!r}: expected parameters as name=value with plain values, text in quotes; found {found}")


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
    )


def _compiled(tool: str, found: Family, spelling: str | Spelling) -> _Pattern:
    spelling = Spelling(spelling) if isinstance(spelling, str) else spelling
    kinds = {name: str(one.annotation) for name, one in inspect.signature(found.kernel).parameters.items()}
    expression, read = "", {}
    for place, part in enumerate(re.split(r"\{(\w+(?::\w+)?)\}", spelling.text)):
        if place % 2 == 0:
            expression += re.escape(part)
            continue
        parameter, _, form = part.partition(":")
        placeholder = _FORMS[form] if form else _PLACEHOLDERS[kinds[parameter].removesuffix(" | None")]
        expression += f"(?P<{parameter}>{placeholder.pattern})"
        read[parameter] = placeholder.read
    return _Pattern(tool, found, re.compile(expression), spelling.fixed, read)


def _foreign(name: str, n_families: int) -> tuple[tuple[str, Measure], ...]:
    """Return tool and measure for each tool that has such a name."""
    readings = []
    for tool, found, expression, fixed, read in _patterns(n_families):
        match = expression.fullmatch(name)
        if match:
            given = {parameter: how(match[parameter]) for parameter, how in read.items()}
            readings.append((tool, found.with_parameters(**fixed, **given)))
    return tuple(readings)


def _plain_spellings() -> list[str]:
    return [
        str(spelling)
        for found in FAMILIES.values()
        for spellings in found.spellings.values()
        for spelling in spellings
        if "{" not in str(spelling)
    ]


def _unescaped(text: str) -> str:
    if re.fullmatch(r"[A-Za-z]+", text) and text not in ("True", "False", "None", "inf", "nan"):
        return repr(text)
    raw = re.sub(r"-([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return raw.encode("latin-1").decode()


def measure_from_key(key: str) -> Measure:
    """Return the measure of an MLflow key, as `Measure.key` gives it.

    Raises
    ------
    InvalidInput
        When the key is none of ours.

    Examples
    --------
    >>> measure("nDCG(gain='exp')@10").key
    'nDCG__gain.exp_at_10'
    >>> measure_from_key("nDCG__gain.exp_at_10")
    measure("nDCG(gain='exp')@10")
    """
    match = re.fullmatch(
        r"(?P<family>.+?)(?P<parameters>(?:__[A-Za-z_]+\.[A-Za-z0-9.\-]+)*?)(?:_at_(?P<cutoff>\d+))?", key
    )
    if match is None:
        raise InvalidInput(f"{key!r} is no key of a measure")
    pairs = [part.partition(".")[::2] for part in match["parameters"].split("__")[1:]]
    inside = ", ".join(f"{name}={_unescaped(value)}" for name, value in pairs)
    name = f"{match['family']}{f'({inside})' if inside else ''}"
    return measure(f"{name}@{match['cutoff']}" if match["cutoff"] else name)


def measures(
    specs: str | Measure | Iterable[str | Measure], convention: str | Convention | None = None
) -> list[tuple[str, Measure]]:
    """Return (the name asked for, the measure) for one or several names, each once.

    Parameters
    ----------
    specs : str, Measure or iterable of them
        What to compute; also trec_eval's names for several, such as ``"official"`` and ``"P.5,10"``.
    convention : str or Convention, optional
        Decides names by which tools mean different things.

    Raises
    ------
    InvalidInput
        When there are none, or two are the same measure.
    """
    if not isinstance(specs, (str, Measure, Iterable)):
        raise InvalidInput(f"measures: expected at least one, such as 'nDCG@10'; found {specs!r}")
    asked: Sequence[str | Measure] = [specs] if isinstance(specs, (str, Measure)) else list(specs)
    if not asked:
        raise InvalidInput("measures: expected at least one, such as 'nDCG@10'; found none")
    version_10 = convention is not None and find_convention(convention).name.startswith("trec_eval-10")
    seen: dict[Measure, str] = {}
    for spec in asked:
        several: list[str] = names_behind(spec.strip(), version_10=version_10) if isinstance(spec, str) else []
        for name in several or (spec,):
            label, one = str(name).strip(), measure(name, convention)
            if one not in seen:
                seen[one] = label
            elif not several:
                raise InvalidInput(f"measures: {seen[one]!r} and {label!r} are the same measure; give it once")
    return [(label, one) for one, label in seen.items()]
