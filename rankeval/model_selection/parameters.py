"""The parameters of an estimator as records show them: by names that say where each stands, with values as text.

A QueryRanker stands in no name, and neither does a search. So a ranker has the same columns if it
is validated bare, in a QueryRanker or in a search, and if it is logged as a model::

    QueryRanker(LGBMRanker())                             estimator=LGBMRanker  num_leaves=31 ...
    Pipeline([..., ("ranker", QueryRanker(Ridge()))])     estimator=Pipeline  ranker=Ridge  ranker__alpha=1.0 ...
    QueryRanker(..., early_stopping_rounds=5)             QueryRanker__early_stopping_rounds=5, if it is no default
    GridSearchCV(Ridge(), {"alpha": [1, 9]})              estimator=Ridge  alpha=9  GridSearchCV__param_grid=...

The trap: everybody may read a record. So passwords and tokens become ``***``. And a parameter that is
searched has a start value in the estimator, which no model has: it is left out, and `choices_of`
has what was chosen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from rankeval._secrets import hidden
from rankeval.model_selection.nesting import last_of
from rankeval.model_selection.ranker import QueryRanker

if TYPE_CHECKING:
    import pandas as pd

_SECRET = re.compile(
    r"(?:^|_)(?:password|passwd|secret|token|credentials?|(?:api|access|secret)_?key)$",
    re.IGNORECASE,
)
SHOWN = "shown"
"""The attribute of a table of choices that has the shown names of its columns; it is stored too."""

_PLACE = re.compile(r" at 0x[0-9A-Fa-f]+")  # of an object in memory: another one in every process


def kind_of(estimator: Any) -> str:
    """Return the class of an estimator; of a QueryRanker or a search, that of its estimator."""
    return kind_of(estimator.estimator) if _is_around(estimator) else type(estimator).__name__


def _is_search(estimator: Any) -> bool:
    names = ("param_grid", "param_distributions")
    return any(hasattr(estimator, name) for name in names) and not isinstance(estimator, type)


def _is_around(estimator: Any) -> bool:
    """Return whether this stands in no name: a QueryRanker or a search."""
    return isinstance(estimator, QueryRanker) or _is_search(estimator)


def shown_names(estimator: Any) -> dict[str, str]:
    """Return the name that a run shows of each parameter, by the name that `get_params` gives.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> shown_names(QueryRanker(Ridge()))["estimator__alpha"]
    'alpha'
    >>> shown_names(make_pipeline(QueryRanker(Ridge())))["queryranker__estimator__alpha"]
    'queryranker__alpha'
    """
    return {name: path or "estimator" for name, path in _paths(estimator).items()}


def _paths(estimator: Any, *more: str) -> dict[str, str]:
    """Return the shown name of each parameter, and of more names; of the estimator itself ""."""
    owners = {"": estimator, **_given(estimator)}
    return {name: "__".join(_steps(name, owners)) for name in [*owners, *more] if name}


def _given(estimator: Any) -> dict[str, Any]:
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def _steps(name: str, owners: Mapping[str, Any]) -> Iterator[str]:
    before = ""
    for step in name.split("__"):
        owner = owners.get(before)
        if not _is_around(owner):
            yield step
        elif step != "estimator":
            yield from (type(owner).__name__, step)
        before = f"{before}__{step}" if before else step


def settings_of(estimator: Any) -> dict[str, tuple[str, bool]]:
    """Return the parameters of an estimator: by shown name the text of the value, and whether it is no default.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> found = settings_of(QueryRanker(Ridge(alpha=2.0)))
    >>> found["estimator"], found["alpha"], found["max_iter"]
    (('Ridge', False), ('2.0', True), ('None', False))
    """
    found, given = {"estimator": (kind_of(estimator), False)}, _given(estimator)
    searched = [*_searched(estimator)]
    parts = tuple(f"{name}__" for name in searched)
    for name, path in _paths(estimator).items():
        if name in searched or name.startswith(parts):
            continue
        value, (owner, _, own) = given[name], name.rpartition("__")
        holder = given.get(owner, estimator)
        text = shown_text(own, value)
        changed = text != shown_text(own, _default(type(holder), own))
        # What stands in no name shows of itself only what is no default.
        bare = _is_around(holder) and (not path if own == "estimator" else not changed)
        if not bare and not _is_around(value):
            taken = path == "estimator"  # by the class
            label = "estimator__estimator" if taken else path or "estimator"
            found[label] = (text, changed and not _holds_estimators(value))
    return found


def _searched(estimator: Any) -> Iterator[str]:
    """Yield the parameters that searches vary, by the names that `get_params` gives."""
    for place, search in {"": estimator, **_given(estimator)}.items():
        if _is_search(search):
            grid = getattr(search, "param_grid", None) or search.param_distributions
            for name in chain.from_iterable([grid] if isinstance(grid, Mapping) else grid):
                yield f"{place}__estimator__{name}".removeprefix("__")


def shown_choices(ranker: QueryRanker, names: Iterable[Any]) -> dict[Any, str]:
    """Return the name that a run shows of each parameter that a search inside chose."""
    last: Any = ranker
    while isinstance(last, QueryRanker):
        last = last_of(last.estimator)
    place = next(name for name, value in _given(ranker).items() if value is last)
    before = f"{place}__estimator__" if _is_search(last) else f"{place}__"
    full = {name: f"{before}{name}" for name in names}
    paths = _paths(ranker, *full.values())
    return {name: paths[parameter] or "estimator" for name, parameter in full.items()}


def choices_of(
    ranker: QueryRanker, chosen: pd.DataFrame, seeds: Iterable[Any]
) -> dict[str, tuple[str, bool]]:
    """Return what a search inside chose in the folds, as `settings_of`: the value, or a list if they differ."""
    texts: dict[str, list[str]] = {}
    for column, values in chosen.items():
        name = str(column)
        for seed in seeds:
            name = name.removeprefix(f"seed {seed} ")
        texts.setdefault(name, []).extend(shown_text(name, value) for value in values)
    settings = {}
    for name, shown in shown_choices(ranker, texts).items():
        agreed = len(set(texts[name])) == 1
        settings[shown] = (texts[name][0] if agreed else f"[{', '.join(texts[name])}]", True)
    return settings


def _holds_estimators(value: Any) -> bool:
    """Return whether a value is an estimator, or a list of named ones such as the steps of a Pipeline."""
    steps = value if isinstance(value, list) else ()
    return hasattr(value, "get_params") or any(isinstance(step, tuple) for step in steps)


def _default(kind: type, name: str) -> Any:
    # XGBoost's rankers hand on what their base class names.
    known = (vars(base).get("__init__") for base in kind.__mro__[:-1])
    named = (inspect.signature(init).parameters for init in known if callable(init))
    return next((params[name].default for params in named if name in params), None)


def shown_text(name: str, value: Any) -> str:
    """Return the value of a parameter as text: of an estimator its class, of a function its name, of a secret ``***``.

    Examples
    --------
    >>> import numpy as np
    >>> shown_text("func", np.log1p), shown_text("api_key", "abc"), shown_text("alpha", 0.5)
    ('log1p', '***', '0.5')
    """
    if _SECRET.search(name) and value:
        return "***"
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown_text(name, item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {shown_text(str(key), item)}' for key, item in value.items())}}}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        return kind_of(value)
    named = getattr(value, "__qualname__", None) or getattr(
        value, "__name__", None
    )  # of functions and classes
    return hidden(_PLACE.sub("", named if isinstance(named, str) else str(value)))
