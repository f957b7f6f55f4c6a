"""Find misspelt parameters before an hour of search: the rankers of LightGBM and XGBoost take any name in silence.

They do so because their libraries know a parameter by several names. So a bare name that they do not list may be right,
and only a name that is nearly one of theirs is warned of. A name with ``__`` is no name of a library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from inspect import Parameter, signature
from typing import Any

from rankeval.errors import UnknownName, warn
from rankeval.model_selection.boosters import library


def check_names(estimator: Any, params: Mapping[str, Any], *, where: str) -> None:
    """Raise if an estimator has no parameter of a name, warn if a booster would take the name in silence.

    Parameters
    ----------
    estimator : object
        Any estimator, such as a Pipeline or a QueryRanker.
    params : mapping
        Parameters as for ``set_params``. Of the values only those that replace a part of the estimator matter.
    where : str
        The place of the parameters, for messages.

    Raises
    ------
    UnknownName
        With the name that may be meant.

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
    for name, value in params.items():
        head, inside, rest = name.partition("__")
        if name in known:
            continue
        if inside and head in parts:
            nested.setdefault(head, {})[rest] = value
        elif library(estimator) in _TAKE_ANY and not inside:
            _warn_if_near(estimator, name, prefix, known, where)
        elif _is_strict(estimator):
            kind = type(whole).__name__
            raise UnknownName(f"{where}: {kind} has no parameter {prefix + name!r}{_hint(estimator, name, prefix)}")
    for head, inner in nested.items():
        _check(parts[head], inner, f"{prefix}{head}__", whole, where)


def _parts(estimator: Any) -> dict[str, Any]:
    """Return the estimators inside by name: the steps of a Pipeline, the estimator of a QueryRanker."""
    return {
        name: value
        for name, value in estimator.get_params(deep=True).items()
        if "__" not in name and hasattr(value, "get_params") and not isinstance(value, type)
    }


def _own_names(estimator: Any) -> Iterator[str]:
    """Yield the names of an estimator's own parameters; what a booster was given under other names is left out."""
    if not library(estimator):
        yield from (name for name in estimator.get_params(deep=True) if "__" not in name)
        return
    for cls in type(estimator).__mro__:
        if "__init__" in vars(cls):
            own = list(signature(vars(cls)["__init__"]).parameters.values())[1:]
            yield from (param.name for param in own if param.kind not in _ANY_NAME)


def _all_names(estimator: Any) -> Iterator[str]:
    """Yield the names of all parameters, those of the parts as ``part__name``."""
    yield from _own_names(estimator)
    for head, part in _parts(estimator).items():
        yield from (f"{head}__{name}" for name in _all_names(part))


def _is_strict(estimator: Any) -> bool:
    """Say whether an estimator has the parameters that it lists and no others.

    A library with a `set_params` of its own may take more, as skorch does.
    """
    return bool(library(estimator)) or type(estimator).set_params.__module__.partition(".")[0] == "sklearn"


def _hint(estimator: Any, name: str, prefix: str) -> str:
    """Return the full names that may be meant."""
    full = {prefix + known: known.rpartition("__")[2] for known in _all_names(estimator)}
    own = name.rpartition("__")[2]
    meant = [known for known, short in full.items() if short == own]
    if meant:
        return f"; write {' or '.join(map(repr, meant))}"
    near = difflib.get_close_matches(own, set(full.values()), n=1, cutoff=0.75)
    if near:
        return f"; did you mean {' or '.join(repr(known) for known, short in full.items() if short in near)}?"
    return "; a parameter of a part is written part__parameter" if _parts(estimator) else ""


def _warn_if_near(booster: Any, name: str, prefix: str, known: set[str], where: str) -> None:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.83)
    if near:
        warn(
            f"{where}: {type(booster).__name__} has no parameter {prefix + name!r} of its own; did you mean "
            f"{prefix + near[0]!r}? Its library gets it as it is"
        )


_TAKE_ANY = frozenset({"lightgbm", "xgboost"})
"""Libraries whose estimators take any parameter; CatBoost's raise TypeError when a copy is made."""

_ANY_NAME = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
