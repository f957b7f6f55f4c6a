"""Checks of measures and of the names of parameters, before anything is fitted.

Inside a search an error comes late, and as a column of nan. So a scorer, an objective or a metric
checks its measures when it is made: what they need of the judgments, the parameters that a
convention must bind, the bounds that it asks for, and the ranges of parameters. Each kernel checks
its own ranges; so it is called on one query of two rows.

The rankers of LightGBM and XGBoost take any parameter in silence, because their libraries know one
by several names. So a bare name that they do not list may be right, and only a name that is nearly
one of theirs is warned of. A name with ``__`` is no name of a library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, UnknownName, warn
from rankeval.evaluation.scoring import bound_measures
from rankeval.join.judged import NO_GROUPS, Column, Judged
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as parse_measures
from rankeval.model_selection.boosters import booster_of


def check_measures(
    measures: str | Measure | Sequence[str | Measure],
    convention: str | Convention = "rankeval",
    *,
    takes_columns: bool = True,
) -> list[LabelledMeasure]:
    """Return (name asked for, measure) for each measure, if rows with labels can be scored by all of them."""
    rules = get_convention(convention)
    found = parse_measures(measures, rules)
    for _, measure in found:
        if measure.family.needs == "aspects":
            raise InvalidInput(
                f"{measure} needs judgments by aspect (subtopic), and y has one grade per row",
                remedy="choose another measure, or compute it by rankeval.evaluate(qrels, run)",
            )
        if not takes_columns:
            measure.refuse_lacking(())
    # A query of two rows that are not relevant: the least that a kernel can be called with.
    zeros, ends, queries = np.zeros(2, dtype=np.int64), np.array([0, 2]), np.array([0])
    with np.errstate(all="ignore"):  # they give 0/0
        for measure in bound_measures([measure for _, measure in found], rules):
            columns = {name: Column.of(np.zeros(2), ends) for name in measure.columns.values()}
            measure.values(
                Judged(
                    ends,
                    queries,
                    zeros,
                    np.array([[2]]),
                    NO_GROUPS,
                    queries=queries,
                    columns=columns,
                )
            )
    return found


def for_other_processes(measure: Any, convention: str | Convention) -> Any:
    """Return a measure in the form in which another process can read it.

    A worker does not know the name of a measure that a notebook declared. So a name is replaced by
    the measure itself, which travels with its function.
    """
    if not isinstance(measure, str):
        return measure
    try:
        found = parse_measures(measure, get_convention(convention))
    except InvalidInput:
        return measure
    return (
        measure if all(measure.family.is_known_everywhere for _, measure in found) else found[0][1]
    )


def signs(found: Iterable[tuple[str, Measure]]) -> dict[str, int]:
    """Return 1 for the name of each measure whose greater values are better, -1 for the others."""
    return {name: 1 if measure.family.greater_is_better else -1 for name, measure in found}


def check_names(estimator: Any, params: Mapping[str, Any], *, where: str) -> None:
    """Raise if an estimator has no parameter of a name, warn if a booster would take the name in silence.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> check_names(Ridge(), {"estimator__alpha": 1}, where="space")
    Traceback (most recent call last):
        ...
    rankeval.errors.UnknownName: space: Ridge has no parameter 'estimator__alpha'; write 'alpha'
    """
    _check(estimator, params, "", estimator, where)


def _check(estimator: Any, params: Mapping[str, Any], prefix: str, whole: Any, where: str) -> None:
    """Check the parameters of one part of the whole, whose names begin with the prefix."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return
    parts = _parts(estimator) | {name: value for name, value in params.items() if "__" not in name}
    known, nested = set(_own_names(estimator)), dict[str, dict[str, Any]]()
    booster = booster_of(estimator)
    for name, value in params.items():
        head, inside, rest = name.partition("__")
        if name in known:
            continue
        if inside and head in parts:
            nested.setdefault(head, {})[rest] = value
        elif booster.takes_any_parameter and not inside:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.83)
            if near:
                warn(
                    f"{where}: {type(estimator).__name__} has no parameter {prefix + name!r} of its own; did you mean "
                    f"{prefix + near[0]!r}? Its library gets it as it is"
                )
        # An estimator whose library has a set_params of its own may take more than it lists, as
        # skorch does.
        elif booster or type(estimator).set_params.__module__.partition(".")[0] == "sklearn":
            kind = type(whole).__name__
            raise UnknownName(
                f"{where}: {kind} has no parameter {prefix + name!r}{_hint(estimator, name, prefix)}"
            )
    for head, inner in nested.items():
        _check(parts[head], inner, f"{prefix}{head}__", whole, where)


def _parts(estimator: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if "__" not in name and hasattr(value, "get_params") and not isinstance(value, type)
    }


def _own_names(estimator: Any) -> Iterator[str]:
    """Yield the names of an estimator's own parameters; what a booster was given under other names is left out."""
    if not booster_of(estimator):
        yield from (name for name in estimator.get_params(deep=True) if "__" not in name)
        return
    for cls in type(estimator).__mro__:
        if "__init__" in vars(cls):
            own = list(signature(vars(cls)["__init__"]).parameters.values())[1:]
            yield from (param.name for param in own if param.kind not in _ANY_NAME)


def _all_names(estimator: Any) -> Iterator[str]:
    yield from _own_names(estimator)
    for head, part in _parts(estimator).items():
        yield from (f"{head}__{name}" for name in _all_names(part))


def _hint(estimator: Any, name: str, prefix: str) -> str:
    full = {prefix + known: known.rpartition("__")[2] for known in _all_names(estimator)}
    own = name.rpartition("__")[2]
    meant = [known for known, short in full.items() if short == own]
    if meant:
        return f"; write {' or '.join(map(repr, meant))}"
    near = difflib.get_close_matches(own, set(full.values()), n=1, cutoff=0.75)
    if near:
        return f"; did you mean {' or '.join(repr(known) for known, short in full.items() if short in near)}?"
    return "; a parameter of a part is written part__parameter" if _parts(estimator) else ""


_ANY_NAME = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
