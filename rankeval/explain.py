"""Why two tools report different numbers for the same ranking: the rules that turn one value into the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rankeval.collection.convention import PRESETS, Convention
from rankeval.collection.convention import convention as find_convention
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.joining import join
from rankeval.evaluation.scoring import _ids, score_arrays, score_collection
from rankeval.measures import Measure
from rankeval.measures import measure as find_measure

if TYPE_CHECKING:
    import pandas as pd

RULES: dict[str, tuple[str, ...]] = {
    "ties": ("expected", "docid", "stable"),
    "judgments": ("qrels", "rows"),
    "no_relevant": ("zero", "one", "skip"),
    "missing": ("zero", "skip"),
    "unjudged": ("zero", "skip"),
    "score_dtype": ("float64", "float32"),
}
"""What is tried of each rule, where it touches something in the data."""

PARAMETERS: dict[str, tuple[Any, ...]] = {
    "gain": ("linear", "exp", "scaled"),
    "discount": ("log2", "log_rank"),
    "normalizer": ("R", "min", "k", "hits"),
    "rel": (1, 2),
    "p": (0.5, 0.8, 0.9, 0.95),
    "beta": (0.5, 1, 2),
    "max_rel": (1, 2, 3, 4, 5),
    "rule": ("exact", "trec_eval-9", "trec_eval-10"),
    "alpha": (0.2, 0.5),
}
"""What is tried, beside its default, of each parameter that a measure has and its name leaves open."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Which rules give the one value, and which the other.

    Attributes
    ----------
    measure : str
        The measure asked about.
    values : tuple of float
        The two numbers.
    table : DataFrame
        All that was tried: the parameters and rules that vary, the value, and which of the numbers it is ("a", "b").
    differences : tuple of str
        The rules in which the two differ, fewest found; empty when one was not found.
    sentence : str
        The same in words.
    """

    measure: str
    values: tuple[float, float]
    table: pd.DataFrame
    differences: tuple[str, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        from html import escape

        found = self.table[self.table["matches"] != ""]
        return f"<p>{escape(self.sentence)}</p>{found.to_html(index=False)}"


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
        As of `rankeval.evaluate`.
    measure : str or Measure
        What both numbers are said to be; parameters that its name gives are not varied.
    values : tuple of float
        The two numbers, as printed.
    convention : str or Convention
        Where the search starts; rules that it names beyond those varied stay.
    tolerance : float, optional
        How far a value may be from a number; by default half a unit of the last digit given, of four at least.

    Returns
    -------
    Explanation

    Raises
    ------
    InvalidInput
        When there are not two finite numbers, or the data cannot be joined.

    Examples
    --------
    >>> why = explain_difference([3, 2, 3, 0], [4, 3, 2, 1], qid=[0] * 4, measure="nDCG", values=(0.9778, 0.9595))
    >>> why.differences
    ("gain='linear' in one and 'exp' in the other",)
    """
    wanted = _numbers(values)
    near = _tolerance(wanted) if tolerance is None else tolerance
    asked = find_measure(measure)
    rules = find_convention(convention)
    join(truth, ranking, qid=qid, group=group, convention=rules, action="explain_difference")  # asks the guard
    score = _scorer(truth, ranking, qid, group, docid)
    variants = [pair for pair in _variants(asked) if _can_be(pair[1], score, rules)]
    if not variants:
        score([asked], rules)  # says why not
    tried = []
    for changed in _settings(
        score, rules, variants[0][1], collection=qid is None and group is None, documents=docid is not None
    ):
        ev = score([one for _, one in variants], rules.with_rules(**changed))
        for (parameters, _), value in zip(variants, ev.aggregate().tolist(), strict=True):
            tried.append(({**parameters, **changed}, value))
    start = {**dict(variants[0][0]), **{rule: getattr(rules, rule) for rule in RULES}}
    return _explained(str(asked), wanted, near, tried, start)


def _numbers(values: Any) -> tuple[float, float]:
    found = tuple(float(value) for value in values)
    if len(found) != 2 or not np.isfinite(found).all():
        raise InvalidInput(f"values: expected the two numbers to explain, found {values!r}")
    return found[0], found[1]


def _tolerance(values: tuple[float, float]) -> float:
    digits = max(4, *(len(f"{value:.12f}".rstrip("0").partition(".")[2]) for value in values))
    return 0.5001 * 10.0**-digits


def _scorer(truth: Any, ranking: Any, qid: Any, group: Any, docid: Any) -> Callable[[Any, Convention], Evaluation]:
    from rankeval.collection.qrels import as_qrels
    from rankeval.collection.run import as_run

    if qid is not None or group is not None:
        ids = _ids(qid, group, len(np.asarray(ranking)))
        return lambda measures, rules: score_arrays(
            truth, ranking, ids, measures=measures, convention=rules, docid=docid
        )
    qrels, run = as_qrels(truth), as_run(ranking)
    return lambda measures, rules: score_collection(qrels, run, measures=measures, convention=rules)


def _open(asked: Measure) -> list[str]:
    """Return the parameters that the measure has, its name leaves open, and we know values of."""
    given = dict(asked.parameters)
    return [name for name in asked.family.defaults if name in PARAMETERS and name not in given]


def _variants(asked: Measure) -> Iterator[tuple[dict[str, Any], Measure]]:
    """Yield the measure with each choice of its open parameters, defaults first; those that it cannot have are left."""
    names = _open(asked)
    defaults = asked.family.defaults
    default = [() if defaults[name] is Parameter.empty else (defaults[name],) for name in names]
    choices = [dict.fromkeys((*first, *PARAMETERS[name])) for first, name in zip(default, names, strict=True)]
    seen = set()
    for chosen in product(*choices):
        parameters = dict(zip(names, chosen, strict=True))
        if parameters.get("normalizer") == "k" and asked.cutoff is None:
            continue
        one = asked.family.with_parameters(**{**dict(asked.parameters), **parameters})
        if one not in seen:
            seen.add(one)
            yield parameters, one


def _can_be(one: Measure, score: Callable[[Any, Convention], Evaluation], rules: Convention) -> bool:
    """Say whether the data allow the measure: a greatest grade, say, must not be below one that was given."""
    try:
        score([one], rules)
    except InvalidInput:
        return False
    return True


def _settings(
    score: Callable[[Any, Convention], Evaluation],
    rules: Convention,
    one: Measure,
    *,
    collection: bool,
    documents: bool,
) -> list[dict[str, str]]:
    """Return the choices of those rules that touch something in this data."""
    ev = score([one], rules.with_rules(missing="zero", ties="stable", no_relevant="zero"))
    touched = dict(ev.touched)
    choices: dict[str, tuple[str, ...]] = {}
    if touched.get("ties", 0) or ev.tied_share:
        choices["ties"] = RULES["ties"] if collection or documents else ("expected", "stable")
    for rule in ("judgments", "missing", "unjudged") if collection else ():
        if touched.get(rule, 0):
            choices[rule] = RULES[rule]
    if touched.get("no_relevant", 0) or "judgments" in choices:
        choices["no_relevant"] = RULES["no_relevant"]
    narrow = score([one], rules.with_rules(missing="zero", ties="stable", no_relevant="zero", score_dtype="float32"))
    if narrow.tied_share != ev.tied_share or narrow.ranking_digest != ev.ranking_digest:
        choices["score_dtype"] = RULES["score_dtype"]
        choices.setdefault("ties", RULES["ties"] if collection or documents else ("expected", "stable"))
    return [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]


def _explained(
    measure: str,
    values: tuple[float, float],
    near: float,
    tried: list[tuple[dict[str, Any], float]],
    start: Mapping[str, Any],
) -> Explanation:
    import pandas as pd

    def distance(one: Mapping[str, Any], two: Mapping[str, Any]) -> int:
        return sum(one[name] != two.get(name, one[name]) for name in one)

    matching = [[setting for setting, value in tried if abs(value - wanted) <= near] for wanted in values]
    table = pd.DataFrame(
        [
            {
                **setting,
                "convention": _preset(setting),
                "value": value,
                "matches": "".join(
                    letter for letter, wanted in zip("ab", values, strict=True) if abs(value - wanted) <= near
                ),
            }
            for setting, value in tried
        ]
    )
    pairs = [
        (distance(one, two), distance(one, start), at, place)
        for at, one in enumerate(matching[0])
        for place, two in enumerate(matching[1])
    ]
    if not pairs:
        return Explanation(measure, values, table, (), _not_found(measure, values, matching, tried))
    _, _, at, place = min(pairs)
    one, two = matching[0][at], matching[1][place]
    differences = tuple(
        f"{name}={one[name]!r} in one and {two[name]!r} in the other" for name in one if one[name] != two[name]
    )
    alike = ", ".join(f"{name}={value!r}" for name, value in one.items() if value == two[name])
    what = "; ".join(differences) or "nothing: one setting gives both, as far as the digits go"
    sentence = f"{values[0]} and {values[1]} are both {measure}; what differs: {what}"
    return Explanation(measure, values, table, differences, f"{sentence}. Alike: {alike}." if alike else f"{sentence}.")


def _not_found(
    measure: str,
    values: tuple[float, float],
    matching: list[list[dict[str, Any]]],
    tried: list[tuple[dict[str, Any], float]],
) -> str:
    parts = []
    for wanted, settings in zip(values, matching, strict=True):
        setting, value = tried[int(np.argmin([abs(value - wanted) for _, value in tried]))]
        rules = ", ".join(f"{name}={rule!r}" for name, rule in (settings[0] if settings else setting).items())
        if settings:
            parts.append(f"{wanted} is {measure} with {rules}")
        else:
            parts.append(f"nothing that was tried gives {wanted} (nearest: {value:.6f} with {rules})")
    return "; ".join(parts) + "."


def _preset(setting: Mapping[str, Any]) -> str:
    """Return the presets that have these rules, as far as they were varied."""
    fitting = [
        name
        for name, preset in PRESETS.items()
        if all(getattr(preset, rule) in (value, "given") for rule, value in setting.items() if rule in RULES)
    ]
    return ", ".join(fitting)
