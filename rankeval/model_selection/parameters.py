"""The parameters of an estimator as records show them: by names that say where each stands, with values as text.

A QueryRanker stands in no name. So a ranker has the same columns if it is validated bare, in a
QueryRanker or in a search, and if it is logged as a model::

    QueryRanker(LGBMRanker())                             estimator=LGBMRanker  num_leaves=31 ...
    Pipeline([..., ("ranker", QueryRanker(Ridge()))])     estimator=Pipeline  ranker=Ridge  ranker__alpha=1.0 ...
    QueryRanker(..., early_stopping_rounds=5)             QueryRanker__early_stopping_rounds=5, if it is no default

The trap: everybody may read a record. So passwords and tokens become ``***``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankeval._secrets import hidden
from rankeval.model_selection.ranker import QueryRanker

_SECRET = re.compile(
    r"(?:^|_)(?:password|passwd|secret|token|credentials?|(?:api|access|secret)_?key)$",
    re.IGNORECASE,
)
_PLACE = re.compile(r" at 0x[0-9A-Fa-f]+")  # of an object in memory: another one in every process


def kind_of(estimator: Any) -> str:
    """Return the class of an estimator; of a QueryRanker, that of its estimator."""
    return (
        kind_of(estimator.estimator)
        if isinstance(estimator, QueryRanker)
        else type(estimator).__name__
    )


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
    given = _given(estimator)
    return {
        name: "__".join(_steps(name, {"": estimator, **given})) or "estimator" for name in given
    }


def _given(estimator: Any) -> dict[str, Any]:
    return dict(estimator.get_params()) if hasattr(estimator, "get_params") else {}


def _steps(name: str, owners: Mapping[str, Any]) -> Iterator[str]:
    before = ""
    for step in name.split("__"):
        if not isinstance(owners.get(before), QueryRanker):
            yield step
        elif step != "estimator":
            yield from ("QueryRanker", step)
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
    for name, shown in shown_names(estimator).items():
        value, (owner, _, own) = given[name], name.rpartition("__")
        holder = given.get(owner, estimator)
        text = shown_text(own, value)
        changed = text != shown_text(own, _default(type(holder), own))
        # A QueryRanker stands in no name, and shows of itself only what is no default.
        bare = isinstance(holder, QueryRanker) and (
            not owner if own == "estimator" else not changed
        )
        if not bare and not isinstance(value, QueryRanker):
            taken = shown == "estimator"  # by the class
            label = "estimator__estimator" if taken else shown
            found[label] = (text, changed and not _holds_estimators(value))
    return found


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
