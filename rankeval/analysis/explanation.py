"""Why two tools report different numbers for one ranking: the rules that turn one into the other.

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
from inspect import Parameter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rankeval._arguments import explained
from rankeval._checks import check_number, require
from rankeval._display import Displayed, View
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
from rankeval.render.tables import Table

RULES: dict[str, tuple[str, ...]] = {
    "ties": ("expected", "docid", "stable", "best", "worst"),
    "judgments": ("qrels", "rows"),
    "no_relevant": ("zero", "one", "skip"),
    "missing": ("empty", "zero", "skip"),
    "unjudged": ("zero", "skip"),
    "score_dtype": ("float64", "float32"),
}
"""The choices that are tried of each rule, if the rule affects something in the data."""

_NUMBERS: dict[str, tuple[float, ...]] = {
    "base": (2, math.e, 10),
    "rel": (1, 2),
    "p": (0.5, 0.8, 0.9, 0.95),
    "beta": (0.5, 1, 2),
    "max_rel": (1, 2, 3, 4, 5),
    "alpha": (0.2, 0.5),
}
PARAMETERS: dict[str, tuple[Any, ...]] = {
    **_NUMBERS,
    "gain": ("linear", "exp", "scaled"),
    "discount": ("log2", "log_rank"),
    "normalizer": ("R", "min", "k", "hits"),
    "rule": ("exact", "trec_eval-9", "trec_eval-10"),
}
"""The values that are tried, beside the default, of parameters that the name of a measure leaves
open."""


_SHOWN, _NEAREST = 4, 300
_VAGUE = 0.01
"""If a number is less precise than this, presets do not go first: too many agree with it."""


@explained
@escaping
@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Displayed):
    """The rules that give the first value, and those that give the second.

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
        Other sets of the same size that also turn the first number into the second.

    Examples
    --------
    >>> import rankeval as rk
    >>> labels, scores = [3, 2, 3, 0], [4, 3, 2, 1]
    >>> why = rk.explain_difference(
    ...     labels, scores, qid=[0] * 4, measure="nDCG", values=("0.9778", "0.9595")
    ... )
    >>> why.differences
    ("gain='linear' in one and 'exp' in the other",)
    """

    measure: str
    values: tuple[float, float]
    table: pd.DataFrame
    differences: tuple[str, ...]
    sentence: str
    alternatives: tuple[tuple[str, ...], ...] = ()

    def _view(self) -> View:
        matching = self.table[self.table["matches"] != ""]
        return View([self.sentence], [Table(matching)] if len(matching) else [])


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
    >>> labels, scores = [3, 2, 3, 0], [4, 3, 2, 1]
    >>> why = explain_difference(
    ...     labels, scores, qid=[0] * 4, measure="nDCG", values=(0.9778, 0.9595)
    ... )
    >>> why.differences
    ("gain='linear' in one and 'exp' in the other",)
    """
    wanted, digits = _numbers(values)
    if tolerance is not None:
        check_number("tolerance", tolerance)
    question = _question(measure)
    rules = get_convention(convention)
    data = Given.of(truth, ranking, qid=qid, group=group, docid=docid)
    data.refuse_or_join(rules, action="explain_difference")
    variants = [pair for pair in _variants(question) if _can_be(pair[1], data, rules)]
    if not variants:
        _scored(data, [next(_variants(question))[1]], rules)  # raises the reason
    tried = []
    for changed in _settings(data, rules, variants[0][1]):
        able = variants
        if changed.get("ties") in ("best", "worst"):  # known for monotone measures only
            able = [pair for pair in variants if pair[1].monotone]
        if not able:
            continue
        measures = [variant for _, variant in able]
        scores = _values(data, measures, rules.with_rules(**changed))
        for (parameters, _), value in zip(able, scores, strict=True):
            presets = _presets(question, parameters, changed)
            tried.append(_Tried({**parameters, **changed}, value, presets))
    start = {**dict(variants[0][0]), **{rule: getattr(rules, rule) for rule in RULES}}
    matching = []
    for value, places in zip(wanted, digits, strict=True):
        # A float may have dropped zeros, so it may have four digits: the smallest distance is tried
        # first.
        usual = [0.5001 * 10.0 ** -max(least, places) for least in (4, 1)]
        matching.append(_matching(tried, value, usual if tolerance is None else [tolerance]))
    return _explained(question.name, wanted, matching, tried, start)


@dataclass(frozen=True)
class _Question:
    """The measure of both numbers."""

    name: str
    family: Family
    fixed: Mapping[str, Any]  # the parameters that its name gives
    choices: Mapping[str, tuple[Any, ...]]  # the values to try of those that it leaves open


@dataclass(frozen=True, eq=False)
class _Tried:
    """A choice of parameters and rules, the value that it gives, and the presets that have it."""

    setting: Mapping[str, Any]
    value: float
    presets: tuple[str, ...]


def _question(spec: str | Measure) -> _Question:
    """Read the measure; a name by which tools mean different parameters leaves these open."""
    try:
        readings = [find_measure(spec)]
    except AmbiguousName:
        readings = list(dict.fromkeys(reading for _, reading in aliased(str(spec).strip())))
        if len({reading.family.name for reading in readings}) != 1:
            raise
    family = readings[0].family
    parameters = [dict(reading.parameters) for reading in readings]
    fixed = {
        name: value
        for name, value in parameters[0].items()
        if all(others.get(name) == value for others in parameters)
    }
    choices = {}
    for name, default in family.defaults.items():
        if name in fixed:
            continue
        values = [named.get(name, default) for named in parameters]
        values = [value for value in values if value is not Parameter.empty]
        if name in PARAMETERS or len(set(map(repr, values))) > 1:
            choices[name] = tuple(dict.fromkeys((*values, *PARAMETERS.get(name, ()))))
    return _Question(str(spec if len(readings) > 1 else readings[0]), family, fixed, choices)


def _numbers(values: Any) -> tuple[tuple[float, float], tuple[int, int]]:
    """Return the two numbers, and how many digits each has behind the point."""
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    are_two = len(numbers) == 2 and np.isfinite(numbers).all()
    require(are_two, "values", values, "the two numbers to explain")
    texts = [
        value if isinstance(value, str) else f"{float(value):.12f}".rstrip("0") for value in values
    ]
    places = [0 if "e" in text.lower() else len(text.partition(".")[2]) for text in texts]
    return (numbers[0], numbers[1]), (places[0], places[1])


def _matching(tried: list[_Tried], wanted: float, tolerances: list[float]) -> list[_Tried]:
    """Return the settings that give a number most closely, and presets that agree in its digits."""
    widest = tolerances[-1] if tolerances[-1] < _VAGUE else 0.0
    for near in tolerances:
        of_preset = max(near, widest)
        matching = [
            setting
            for setting in tried
            if abs(setting.value - wanted) <= (of_preset if setting.presets else near)
        ]
        if matching:
            return matching
    return []


def _scored(data: Given, measures: list[Measure], rules: Convention) -> Evaluation:
    return score(data.join(rules), [(str(measure), measure) for measure in measures])


def _values(data: Given, measures: list[Measure], rules: Convention) -> list[float]:
    """Return the aggregates of measures, each alone if it leaves out queries of its own."""
    joined, is_alone = data.join(rules), rules.no_relevant == "skip"
    named = [(str(measure), measure) for measure in measures]
    parts = [[pair] for pair in named] if is_alone else [named]
    scored = [score_part(joined, part) for part in parts]
    return [value for evaluation in scored for value in aggregates(evaluation).values()]


def _variants(question: _Question) -> Iterator[tuple[dict[str, Any], Measure]]:
    """Yield the measure with each possible choice of its open parameters, defaults first."""
    seen = set()
    cutoff = question.fixed.get("cutoff", question.family.defaults.get("cutoff"))
    for chosen in product(*question.choices.values()):
        parameters = dict(zip(question.choices, chosen, strict=True))
        if parameters.get("normalizer") == "k" and cutoff is None:
            continue
        variant = question.family.with_parameters(**{**question.fixed, **parameters})
        if variant not in seen:
            seen.add(variant)
            yield parameters, variant


def _can_be(measure: Measure, data: Given, rules: Convention) -> bool:
    """Say whether the data allow a measure: for example, no grade is above its greatest one."""
    try:
        _scored(data, [measure], rules)
    except InvalidInput:
        return False
    return True


def _settings(data: Given, rules: Convention, measure: Measure) -> list[dict[str, str]]:
    collection = data.qid is None
    start = rules.with_rules(missing="empty", ties="stable", no_relevant="zero")
    ev = _scored(data, [measure], start)
    affected = {rule for rule, number in ev.facts.totals().items() if number}
    choices: dict[str, tuple[str, ...]] = {}
    ties = RULES["ties"]
    if not collection and data.docid is None:
        ties = tuple(rule for rule in ties if rule != "docid")  # it needs documents
    if "ties" in affected or ev.tied_share:
        choices["ties"] = ties
    for rule in ("judgments", "missing", "unjudged"):
        if collection and rule in affected:
            choices[rule] = RULES[rule]
    if "missing" in choices:  # for most measures an empty ranking is worth 0
        filled = _scored(data, [measure], start.with_rules(missing="zero"))
        if np.array_equal(filled.scores, ev.scores):
            choices["missing"] = tuple(rule for rule in RULES["missing"] if rule != "zero")
    if "no_relevant" in affected or "judgments" in choices:
        choices["no_relevant"] = RULES["no_relevant"]
    narrow = _scored(data, [measure], start.with_rules(score_dtype="float32"))
    if narrow.tied_share != ev.tied_share or narrow.ranking_digest != ev.ranking_digest:
        choices["score_dtype"] = RULES["score_dtype"]
        choices.setdefault("ties", ties)
    return [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]


def _presets(
    question: _Question, parameters: Mapping[str, Any], rules: Mapping[str, Any]
) -> tuple[str, ...]:
    fitting, family = [], question.family
    for name, preset in PRESETS.items():
        own = {rule: getattr(preset, rule) for rule in rules}
        own = {rule: "qrels" if value == "given" else value for rule, value in own.items()}
        bound = {**family.defaults, **preset.bind.get(family.name, {})}
        if own == rules and all(bound[key] == value for key, value in parameters.items()):
            fitting.append(name)
    return tuple(fitting)


def _explained(
    measure: str,
    values: tuple[float, float],
    matching: list[list[_Tried]],
    tried: list[_Tried],
    start: Mapping[str, Any],
) -> Explanation:
    of_first, of_second = ({id(setting) for setting in settings} for settings in matching)
    rows = []
    for setting in tried:
        matches = "a" * (id(setting) in of_first) + "b" * (id(setting) in of_second)
        presets = ", ".join(setting.presets)
        row = {"convention": presets, "value": setting.value, "matches": matches}
        rows.append({**setting.setting, **row})
    table = pd.DataFrame(rows)
    if not all(matching):
        return Explanation(measure, values, table, (), _not_found(measure, values, matching, tried))
    (first, second), *rest = _fewest(matching, start)
    differences = _differences(first, second)
    alternatives = dict.fromkeys(_differences(*pair) for pair in rest)
    alternatives.pop(differences, None)
    others = tuple(alternatives)
    clauses = ["; ".join(differences) or "nothing: one setting gives both, as far as the digits go"]
    clauses += [f"or as well: {'; '.join(other)}" for other in others[:_SHOWN]]
    clauses += [f"and {len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
    parts = [f"{values[0]} and {values[1]} are both {measure}; what differs: {', '.join(clauses)}"]
    for value, settings in zip(values, matching, strict=True):
        presets_of = list(dict.fromkeys(name for setting in settings for name in setting.presets))
        if presets_of:
            verb = "gives" if len(presets_of) == 1 else "give"
            parts.append(f"{value} is what {', '.join(presets_of)} {verb}")
    alike = [
        f"{name}={value!r}"
        for name, value in first.setting.items()
        if value == second.setting[name]
    ]
    if alike:
        parts.append(f"Alike: {', '.join(alike)}")
    return Explanation(measure, values, table, differences, f"{'. '.join(parts)}.", others)


def _distance(setting: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    return sum(value != other.get(name, value) for name, value in setting.items())


def _fewest(matching: list[list[_Tried]], start: Mapping[str, Any]) -> list[tuple[_Tried, _Tried]]:
    """Return the pairs of presets, or else of settings, that differ least, the best pair first."""

    def from_start(tried: _Tried) -> tuple[bool, int]:
        return not tried.presets, _distance(tried.setting, start)

    near = [sorted(settings, key=from_start)[:_NEAREST] for settings in matching]
    pairs = [
        (_distance(first.setting, second.setting), from_start(first)[1], (first, second))
        for first, second in product(*near)
    ]
    of_presets = [pair for pair in pairs if all(tried.presets for tried in pair[2])]
    best = min(of_presets or pairs, key=lambda pair: pair[:2])
    others = (
        pair for pair in pairs if pair[:2] == best[:2] or (pair[0] < best[0] and pair[1] == 0)
    )
    return [best[2], *(pair[2] for pair in others)]


def _differences(first: _Tried, second: _Tried) -> tuple[str, ...]:
    return tuple(
        f"{name}={value!r} in one and {second.setting[name]!r} in the other"
        for name, value in first.setting.items()
        if value != second.setting[name]
    )


def _not_found(
    measure: str, values: tuple[float, float], matching: list[list[_Tried]], tried: list[_Tried]
) -> str:
    parts = []
    for wanted, settings in zip(values, matching, strict=True):
        by_distance = sorted(tried, key=lambda setting: abs(setting.value - wanted))
        nearest = (settings or by_distance)[0]
        rules = ", ".join(f"{name}={rule!r}" for name, rule in nearest.setting.items())
        if settings:
            parts.append(f"{wanted} is {measure} with {rules}")
        else:
            parts.append(
                f"nothing that was tried gives {wanted} (nearest: {nearest.value:.6f} with {rules})"
            )
    return "; ".join(parts) + "."
