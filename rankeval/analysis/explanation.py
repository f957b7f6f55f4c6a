"""Why two tools report different numbers for the same ranking: the rules that turn one value into the other.

Every choice of the open parameters is scored under every choice of the rules that affect something
in the data. Each choice is a `_Tried`: its setting, its value, and the presets that have this
setting. Those whose value agrees with a number are candidates for it; the answer is the pair of
candidates that differ in the fewest settings.

The trap: a float drops trailing zeros, so the digits of ``0.35`` may be two or four. Four are tried
first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from inspect import Parameter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rankeval._arguments import explained
from rankeval._checks import check_number, require
from rankeval._visible import escaping
from rankeval.collection.convention import PRESETS, Convention, get_convention
from rankeval.errors import AmbiguousName, InvalidInput
from rankeval.evaluation import Evaluation, Given, score
from rankeval.evaluation.result import aggregates
from rankeval.evaluation.scoring import score_part
from rankeval.measures import Measure
from rankeval.measures import measure as find_measure
from rankeval.measures.family import Family
from rankeval.measures.names import aliased

RULES: dict[str, tuple[str, ...]] = {
    "ties": ("expected", "docid", "stable", "best", "worst"),
    "judgments": ("qrels", "rows"),
    "no_relevant": ("zero", "one", "skip"),
    "missing": ("empty", "zero", "skip"),
    "unjudged": ("zero", "skip"),
    "score_dtype": ("float64", "float32"),
}
"""The choices that are tried of each rule, if the rule affects something in the data."""

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "gain": ("linear", "exp", "scaled"),
    "discount": ("log2", "log_rank"),
    "base": (2, math.e, 10),
    "normalizer": ("R", "min", "k", "hits"),
    "rel": (1, 2),
    "p": (0.5, 0.8, 0.9, 0.95),
    "beta": (0.5, 1, 2),
    "max_rel": (1, 2, 3, 4, 5),
    "rule": ("exact", "trec_eval-9", "trec_eval-10"),
    "alpha": (0.2, 0.5),
}
"""The values that are tried, beside the default, of each parameter that the name of a measure leaves open."""


_SHOWN, _NEAREST = 4, 300
_VAGUE = 0.01
"""If a number is less precise than this, presets do not go first: too many agree with it."""


@explained
@escaping
@dataclass(frozen=True, eq=False)
class Explanation:
    """The rules that give the one value, and those that give the other.

    Attributes
    ----------
    measure : str
        The measure asked about.
    values : tuple of float
        The two numbers.
    table : DataFrame of shape (n_tried, n_settings + 3)
        All settings that were tried: parameters, rules, the value, and the numbers that it agrees
        with ("a", "b").
    differences : tuple of str
        The smallest differing set; empty if either value was not reproduced.
    sentence : str
        The same in words, with the presets that give each number.
    alternatives : tuple of tuple of str
        Other sets of the same size that turn the one number into the other as well.

    Examples
    --------
    >>> import rankeval as rk
    >>> labels, scores = [3, 2, 3, 0], [4, 3, 2, 1]
    >>> why = rk.explain_difference(labels, scores, qid=[0] * 4, measure="nDCG", values=("0.9778", "0.9595"))
    >>> why.differences
    ("gain='linear' in one and 'exp' in the other",)
    """

    measure: str
    values: tuple[float, float]
    table: pd.DataFrame
    differences: tuple[str, ...]
    sentence: str
    alternatives: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        found = self.table[self.table["matches"] != ""]
        return f"<p>{escape(self.sentence)}</p>{found.to_html(index=False)}"


@explained
def explain_difference(
    truth: Any,
    ranking: Any,
    *,
    measure: str | Measure,
    values: tuple[float, float],
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    convention: str | Convention = "rankeval",
    tolerance: float | None = None,
) -> Explanation:
    """Search the rules and parameters that turn one reported number into the other.

    Parameters
    ----------
    truth, ranking, qid, group, docid
        As in `rankeval.evaluate`.
    measure : str or Measure
        The name of both numbers. Parameters that it gives are not varied. If tools mean different
        things by it, as by ``"RBP"``, all meanings are tried.
    values : tuple of float or str
        The two numbers, as printed.
    convention : str or Convention
        The start of the search. Rules that are not varied keep its values.
    tolerance : float, optional
        The greatest distance between a value and a number; by default half a unit of the last digit
        given. A float drops trailing zeros, so values that agree to four digits go before those
        that agree to fewer.

    Returns
    -------
    Explanation

    Raises
    ------
    InvalidInput
        If there are not two finite numbers, or the data cannot be joined.
    GuardRefusal
        If the content is registered with a guard and this ranking was not opened.

    Examples
    --------
    >>> why = explain_difference([3, 2, 3, 0], [4, 3, 2, 1], qid=[0] * 4, measure="nDCG", values=(0.9778, 0.9595))
    >>> why.differences
    ("gain='linear' in one and 'exp' in the other",)
    """
    wanted, digits = _numbers(values)
    if tolerance is not None:
        check_number("tolerance", tolerance)
    asked = _asked(measure)
    rules = get_convention(convention)
    given = Given.of(truth, ranking, qid=qid, group=group, docid=docid)
    given.refuse_or_join(rules, action="explain_difference")
    variants = [pair for pair in _variants(asked) if _can_be(pair[1], given, rules)]
    if not variants:
        _scored(given, [next(_variants(asked))[1]], rules)  # raises the reason
    tried = []
    for changed in _settings(given, rules, variants[0][1]):
        # The best and the worst order are known for monotone measures only.
        able = [
            pair
            for pair in variants
            if changed.get("ties") not in ("best", "worst") or pair[1].monotone
        ]
        if not able:
            continue
        found = _values(given, [one for _, one in able], rules.with_rules(**changed))
        for (parameters, _), value in zip(able, found, strict=True):
            tried.append(
                _Tried({**parameters, **changed}, value, _presets(asked, parameters, changed))
            )
    start = {**dict(variants[0][0]), **{rule: getattr(rules, rule) for rule in RULES}}
    matching = []
    for value, places in zip(wanted, digits, strict=True):
        # A float may have dropped zeros, so it may have four digits: the smallest distance is tried
        # first.
        usual = [0.5001 * 10.0 ** -max(least, places) for least in (4, 1)]
        matching.append(_matching(tried, value, usual if tolerance is None else [tolerance]))
    return _explained(asked.name, wanted, matching, tried, start)


@dataclass(frozen=True)
class _Asked:
    """The measure asked about: the parameters that its name gives, and the choices for those that it leaves open."""

    name: str
    family: Family
    given: Mapping[str, Any]
    choices: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class _Tried:
    """A choice of parameters and rules, the value that it gives, and the presets that have it."""

    setting: Mapping[str, Any]
    value: float
    presets: tuple[str, ...]


def _asked(spec: str | Measure) -> _Asked:
    """Read the measure; a name by which tools mean different parameters leaves these open."""
    try:
        readings = [find_measure(spec)]
    except AmbiguousName:
        readings = list(dict.fromkeys(one for _, one in aliased(str(spec).strip())))
        if len({one.family.name for one in readings}) != 1:
            raise
    family = readings[0].family
    parameters = [dict(one.parameters) for one in readings]
    given = {
        name: value
        for name, value in parameters[0].items()
        if all(one.get(name) == value for one in parameters)
    }
    choices = {}
    for name, default in family.defaults.items():
        if name in given:
            continue
        said = [
            one.get(name, default)
            for one in parameters
            if name in one or default is not Parameter.empty
        ]
        if name in PARAMETERS or len(set(map(repr, said))) > 1:
            choices[name] = tuple(dict.fromkeys((*said, *PARAMETERS.get(name, ()))))
    return _Asked(str(spec if len(readings) > 1 else readings[0]), family, given, choices)


def _numbers(values: Any) -> tuple[tuple[float, float], tuple[int, int]]:
    """Return the two numbers, and how many digits each has behind the point."""
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        found = ()
    require(
        len(found) == 2 and np.isfinite(found).all(), "values", values, "the two numbers to explain"
    )
    texts = [
        value if isinstance(value, str) else f"{float(value):.12f}".rstrip("0") for value in values
    ]
    places = [0 if "e" in text.lower() else len(text.partition(".")[2]) for text in texts]
    return (found[0], found[1]), (places[0], places[1])


def _matching(tried: list[_Tried], wanted: float, tolerances: list[float]) -> list[_Tried]:
    """Return the settings that give the number most closely, and presets that agree with it in the digits given."""
    widest = tolerances[-1] if tolerances[-1] < _VAGUE else 0.0
    for near in tolerances:
        reach = {False: near, True: max(near, widest)}
        if found := [one for one in tried if abs(one.value - wanted) <= reach[bool(one.presets)]]:
            return found
    return []


def _scored(given: Given, measures: list[Measure], rules: Convention) -> Evaluation:
    return score(given.join(rules), [(str(one), one) for one in measures])


def _values(given: Given, measures: list[Measure], rules: Convention) -> list[float]:
    """Return the aggregates of measures; each one alone if it leaves out queries of its own."""
    joined, is_alone = given.join(rules), rules.no_relevant == "skip"
    parts = [[one] for one in measures] if is_alone else [measures]
    scored = [score_part(joined, [(str(one), one) for one in part]) for part in parts]
    return [value for ev in scored for value in aggregates(ev).values()]


def _variants(asked: _Asked) -> Iterator[tuple[dict[str, Any], Measure]]:
    """Yield the measure with each choice of its open parameters, defaults first; impossible choices are left out."""
    seen = set()
    cutoff = asked.given.get("cutoff", asked.family.defaults.get("cutoff"))
    for chosen in product(*asked.choices.values()):
        parameters = dict(zip(asked.choices, chosen, strict=True))
        if parameters.get("normalizer") == "k" and cutoff is None:
            continue
        one = asked.family.with_parameters(**{**asked.given, **parameters})
        if one not in seen:
            seen.add(one)
            yield parameters, one


def _can_be(one: Measure, given: Given, rules: Convention) -> bool:
    """Say whether the data allow the measure: its greatest grade, say, must not be below a grade in the data."""
    try:
        _scored(given, [one], rules)
    except InvalidInput:
        return False
    return True


def _settings(given: Given, rules: Convention, one: Measure) -> list[dict[str, str]]:
    collection = given.qid is None
    start = rules.with_rules(missing="empty", ties="stable", no_relevant="zero")
    ev = _scored(given, [one], start)
    affected = {rule for rule, number in ev.facts.totals().items() if number}
    choices: dict[str, tuple[str, ...]] = {}
    # One rule on ties needs documents.
    ties = tuple(
        rule for rule in RULES["ties"] if rule != "docid" or collection or given.docid is not None
    )
    if "ties" in affected or ev.tied_share:
        choices["ties"] = ties
    choices |= {
        rule: RULES[rule]
        for rule in ("judgments", "missing", "unjudged")
        if collection and rule in affected
    }
    if "missing" in choices:  # for most measures an empty ranking is worth 0
        filled = _scored(given, [one], start.with_rules(missing="zero"))
        if np.array_equal(filled.scores, ev.scores):
            choices["missing"] = tuple(rule for rule in RULES["missing"] if rule != "zero")
    if "no_relevant" in affected or "judgments" in choices:
        choices["no_relevant"] = RULES["no_relevant"]
    narrow = _scored(given, [one], start.with_rules(score_dtype="float32"))
    if narrow.tied_share != ev.tied_share or narrow.ranking_digest != ev.ranking_digest:
        choices["score_dtype"] = RULES["score_dtype"]
        choices.setdefault("ties", ties)
    return [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]


def _presets(
    asked: _Asked, parameters: Mapping[str, Any], rules: Mapping[str, Any]
) -> tuple[str, ...]:
    fitting, family = [], asked.family
    for name, preset in PRESETS.items():
        own = {rule: getattr(preset, rule) for rule in rules}
        own = {rule: "qrels" if value == "given" else value for rule, value in own.items()}
        bound = preset.bind.get(family.name, {})
        if {**own, **{one: bound.get(one, family.defaults[one]) for one in parameters}} == {
            **rules,
            **parameters,
        }:
            fitting.append(name)
    return tuple(fitting)


def _explained(
    measure: str,
    values: tuple[float, float],
    matching: list[list[_Tried]],
    tried: list[_Tried],
    start: Mapping[str, Any],
) -> Explanation:
    found = [{id(one) for one in fitting} for fitting in matching]
    rows = []
    for one in tried:
        matches = "".join(letter for letter, ids in zip("ab", found, strict=True) if id(one) in ids)
        rows.append(
            {
                **one.setting,
                "convention": ", ".join(one.presets),
                "value": one.value,
                "matches": matches,
            }
        )
    table = pd.DataFrame(rows)
    if not all(matching):
        return Explanation(measure, values, table, (), _not_found(measure, values, matching, tried))
    (first, second), *rest = _fewest(matching, start)
    differences = _differences(first, second)
    others = tuple(
        dict.fromkeys(other for way in rest if (other := _differences(*way)) != differences)
    )
    what = ["; ".join(differences) or "nothing: one setting gives both, as far as the digits go"]
    what += [f"or as well: {'; '.join(other)}" for other in others[:_SHOWN]]
    what += [f"and {len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
    parts = [f"{values[0]} and {values[1]} are both {measure}; what differs: {', '.join(what)}"]
    for value, fitting in zip(values, matching, strict=True):
        if presets := list(dict.fromkeys(name for match in fitting for name in match.presets)):
            parts.append(
                f"{value} is what {', '.join(presets)} {'gives' if len(presets) == 1 else 'give'}"
            )
    alike = ", ".join(
        f"{name}={value!r}"
        for name, value in first.setting.items()
        if value == second.setting[name]
    )
    if alike:
        parts.append(f"Alike: {alike}")
    return Explanation(measure, values, table, differences, f"{'. '.join(parts)}.", others)


def _fewest(matching: list[list[_Tried]], start: Mapping[str, Any]) -> list[tuple[_Tried, _Tried]]:
    """Return the pairs of presets, or else of other settings, that differ in the fewest rules, the best pair first."""

    def distance(one: Mapping[str, Any], two: Mapping[str, Any]) -> int:
        return sum(one[name] != two.get(name, one[name]) for name in one)

    near = [
        sorted(found, key=lambda one: (not one.presets, distance(one.setting, start)))[:_NEAREST]
        for found in matching
    ]
    pairs = [
        (distance(one.setting, two.setting), distance(one.setting, start), (one, two))
        for one, two in product(*near)
    ]
    of_presets = [pair for pair in pairs if all(one.presets for one in pair[2])]
    first = min(of_presets or pairs, key=lambda pair: pair[:2])
    others = (
        pair for pair in pairs if pair[:2] == first[:2] or (pair[0] < first[0] and pair[1] == 0)
    )
    return [first[2], *(pair[2] for pair in others)]


def _differences(one: _Tried, two: _Tried) -> tuple[str, ...]:
    return tuple(
        f"{name}={value!r} in one and {two.setting[name]!r} in the other"
        for name, value in one.setting.items()
        if value != two.setting[name]
    )


def _not_found(
    measure: str, values: tuple[float, float], matching: list[list[_Tried]], tried: list[_Tried]
) -> str:
    parts = []
    for wanted, found in zip(values, matching, strict=True):
        nearest = found[0] if found else min(tried, key=lambda one: abs(one.value - wanted))
        rules = ", ".join(f"{name}={rule!r}" for name, rule in nearest.setting.items())
        if found:
            parts.append(f"{wanted} is {measure} with {rules}")
        else:
            parts.append(
                f"nothing that was tried gives {wanted} (nearest: {nearest.value:.6f} with {rules})"
            )
    return "; ".join(parts) + "."
