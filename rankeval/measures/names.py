"""One grammar for the names of measures, the spellings of other tools, and keys for MLflow.

The grammar is ``Family(parameter=value, ...)@cutoff``: ``nDCG@10``, ``P(rel=2)@5``, ``nDCG(gain='exp')@10``. A
measure prints in one canonical way, and what it prints parses back to it.

MLflow refuses ``@ ( ) = ,`` in names. A key writes ``__name.value`` for each parameter and ``_at_k`` for the cut-off,
with anything but letters, digits and dots in a value as ``-`` and two hex digits of each byte.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rankeval._registry import unknown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import AmbiguousName, InvalidInput, RankevalError
from rankeval.measures import ir_measures_names
from rankeval.measures.family import FAMILIES, Family, Measure
from rankeval.measures.grammar import arguments, taken_apart
from rankeval.measures.spellings import Readings, foreign, plain_spellings
from rankeval.measures.trec_names import PRINTED, ROOTS, names_behind


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
    lowered = {known.lower() for known in FAMILIES}  # our own form is what is offered
    raise unknown("measure", name, [*FAMILIES, *(one for one in plain_spellings() if one.lower() not in lowered)])


def measure(spec: str | Measure, convention: str | Convention | None = None) -> Measure:
    """Return the measure of a name, in our grammar or in another tool's spelling.

    Parameters
    ----------
    spec : str or Measure
        Such as ``"nDCG@10"``, ``"P(rel=2)@5"``, ``"ndcg_cut_10"``, ``"MAP"``; a measure is returned as it is, and one
        of ir_measures is read by what it prints.
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
    if ir_measures_names.is_one(spec):
        readings = ir_measures_names.read(str(spec), len(FAMILIES), ours_too=True)
        return _chosen(str(spec), readings or _readings(str(spec), len(FAMILIES)), None, ir_measures_names.TOOL)
    if not isinstance(spec, str):
        raise InvalidInput(f"a measure is named by a string, such as 'nDCG@10'; found {spec!r}")
    name, rules = spec.strip(), None if convention is None else get_convention(convention)
    several = _several(name, rules)
    if several:
        found = ", ".join(several[:2]) + (" ..." if len(several) > 2 else "")
        raise AmbiguousName(f"{name!r} stands for several measures ({found}): name one; measures= takes it as it is")
    return _chosen(name, _readings(name, len(FAMILIES)), rules)


def greater_is_better(name: str) -> bool:
    """Say whether the greater value of a column is the better one: of all but some measures, and of other columns.

    Parameters
    ----------
    name : str
        A measure in any spelling, or the name of a column that is none.
    """
    try:
        return measure(name).family.greater_is_better
    except RankevalError:
        return True


def _chosen(name: str, readings: Readings, rules: Convention | None, tool: str = "") -> Measure:
    """Return what a name stands for: the one reading that there is, or that of the tool or convention."""
    of_tool = {one for whose, one in readings if whose == tool or (rules is not None and rules.name.startswith(whose))}
    bound = {one for _, one in readings if rules is not None and _is_bound(one, rules.bind)}
    head = re.split(r"[(@]", name)[0]
    needed = (
        [p for p, one in FAMILIES[head].defaults.items() if one is inspect.Parameter.empty] if head in FAMILIES else []
    )
    ours = bool(needed) and all(one.family.name != head for _, one in readings)
    for decided in (set() if ours else {one for _, one in readings}, of_tool, bound):
        if len(decided) == 1:
            return decided.pop()
    choices = "; ".join(f"{one} ({whose})" for whose, one in readings)
    if ours:
        raise AmbiguousName(
            f"{head} needs {needed[0]}: write '{head}({needed[0]}=...)'; or {choices}, if that is meant"
        )
    raise AmbiguousName(f"{name!r} means different things: write {choices}; or give a convention that decides")


def _several(name: str, rules: Convention | None) -> list[str]:
    """Return the names that a name of trec_eval stands for, none where it stands for a single measure."""
    convention = "" if rules is None else rules.name
    several = names_behind(name, version_10=convention.startswith("trec_eval-10"))
    if name not in ROOTS or not several:
        return several
    if name in FAMILIES:  # what prints so must not be read as something else: plans and reports keep names
        if not convention.startswith("trec_eval"):
            return []
        listed = ",".join(ROOTS[name].parameters)
        raise AmbiguousName(f"{name!r} means different things: write set_{name} (all retrieved); or {name}_{listed}")
    if convention.startswith("trec_eval"):
        return several
    singles = foreign(name, len(FAMILIES))
    if not singles:
        return several
    if any(convention.startswith(tool) for tool, _ in singles):
        return []
    choices = "; ".join(f"{one} ({tool})" for tool, one in singles)
    raise AmbiguousName(
        f"{name!r} means different things: write {choices}; {', '.join(several[:2])} ... (trec_eval); or give a "
        "convention that decides"
    )


def _is_bound(one: Measure, bind: Mapping[str, Mapping[str, Any]]) -> bool:
    bound = bind.get(one.family.name, {})
    return bool(bound) and one == one.family.with_parameters(**{**dict(one.parameters), **bound})


@lru_cache(maxsize=4096)
def _readings(name: str, n_families: int) -> Readings:
    """Return tool and measure for each way to read a name; a new declaration, which changes the number, is seen."""
    return foreign(name, n_families) or (("rankeval", _parse(name)),)


def _parse(name: str) -> Measure:
    """Read a name in our own grammar."""
    written = taken_apart(name)
    if written is None or "." in written.at:
        raise InvalidInput(f"{name!r} is no measure: write Family(parameter=value)@cutoff, such as 'P(rel=2)@5'")
    if written.head.startswith(PRINTED):
        raise InvalidInput(f"{name!r} is printed by trec_eval (--format trec) and is no measure: leave it out")
    suffix = f"@{written.at}" if written.at else ""
    given = arguments(name, written.inside)
    try:
        found = family(written.head)
    except InvalidInput as error:
        if written.inside or written.at:
            _say_what_it_is(name, written.head, suffix)
        raise type(error)(re.sub(r"'([^']+)'", lambda quoted: _with_cutoff(quoted[1], suffix), str(error))) from None
    if written.at:
        if "cutoff" not in found.defaults:
            raise InvalidInput(f"{name!r}: {found.name} has no cut-off; write {found.name!r}")
        if "cutoff" in given:
            raise InvalidInput(f"{name!r}: the cut-off is given twice; write {suffix!r} only")
        given["cutoff"] = int(written.at)
    return found.with_parameters(**given)


def _say_what_it_is(name: str, head: str, suffix: str) -> None:
    """Say how another tool's name is written here, where it does not have the parameters or cut-off given."""
    for spelling in (head + suffix, head):
        for tool, one in foreign(spelling, len(FAMILIES)):
            raise InvalidInput(f"{name!r}: {head} is {str(one)!r} here ({tool}); give what else you need there")


def _with_cutoff(name: str, suffix: str) -> str:
    takes = name in FAMILIES and "cutoff" in FAMILIES[name].defaults
    return repr(name + suffix if takes or (name not in FAMILIES and name not in plain_spellings()) else name)


def _unescaped(text: str) -> str:
    if re.fullmatch(r"[A-Za-z]+", text) and text not in ("True", "False", "None", "inf", "nan"):
        return repr(text)
    raw = re.sub(r"-([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return raw.encode("latin-1").decode(errors="replace")


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
    if not isinstance(key, str):
        raise InvalidInput(f"a key is text, such as 'nDCG_at_10'; found {key!r}")
    match = re.fullmatch(
        r"(?P<family>.+?)(?P<parameters>(?:__[A-Za-z_]+\.[A-Za-z0-9.\-]+)*?)(?:_at_(?P<cutoff>[0-9]+))?", key
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
        What to compute; also trec_eval's names for several, such as ``"official"``, ``"ndcg_cut"`` and ``"P.5,10"``.
    convention : str or Convention, optional
        Decides names by which tools mean different things.

    Raises
    ------
    InvalidInput
        When there are none, or two are the same measure.
    """
    alone = isinstance(specs, (str, Measure)) or ir_measures_names.is_one(specs)
    if not alone and not isinstance(specs, Iterable):
        raise InvalidInput(f"measures: expected at least one, such as 'nDCG@10'; found {specs!r}")
    asked: Sequence[Any] = list(specs) if isinstance(specs, Iterable) and not alone else [specs]
    if not asked:
        raise InvalidInput("measures: expected at least one, such as 'nDCG@10'; found none")
    rules = None if convention is None else get_convention(convention)
    seen: dict[Measure, str] = {}
    for spec in asked:
        several = _several(spec.strip(), rules) if isinstance(spec, str) else []
        for name in several or (spec,):
            label, one = str(name).strip(), _one_of(spec, name, rules) if several else measure(name, rules)
            if one not in seen:
                seen[one] = label
            elif not several:
                raise InvalidInput(f"measures: {seen[one]!r} and {label!r} are the same measure; give it once")
    return [(label, one) for one, label in seen.items()]


def _one_of(spec: str, name: str, rules: Convention | None) -> Measure:
    """Return one of the measures that a name stands for."""
    try:
        return measure(name, rules)
    except AmbiguousName:
        raise AmbiguousName(
            f"{spec!r} holds {name!r}, which versions of trec_eval compute differently: give "
            "convention='trec_eval-9.0.8' or 'trec_eval-10' (--convention)"
        ) from None
