"""Make the rankers of an experiment: import classes, set parameters, and find all that is wrong with them.

Nothing is fitted here. A misspelt parameter is found before any data is loaded if the class lists its parameters.

What a file names is looked at before it is called: ``os:system`` as a loader would run the path,
``subprocess.Popen`` as an estimator would start a program. The checks catch mistakes and no malice, because importing a
module already runs its code.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from inspect import Parameter, isclass, isfunction, ismethod, signature
from typing import TYPE_CHECKING, Any

from rankeval._checks import said
from rankeval.errors import ConfigError, InvalidInput, UnknownName
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.sections import RankerConfig, StepConfig

if TYPE_CHECKING:
    from rankeval.model_selection.ranker import QueryRanker


EXTRAS = ("lightgbm", "xgboost", "catboost")
"""Packages that an extra of the same name installs."""


def import_object(path: str, *, key: str) -> Any:
    """Import ``package.module.Name`` or ``module:name``.

    Parameters
    ----------
    path : str
        The import path in the experiment file.
    key : str
        The key that holds it, for errors.

    Raises
    ------
    ConfigError
        If the module or the name does not exist; the message names the extra that installs the module.
    """
    module_path, _, name = path.rpartition(":") if ":" in path else path.rpartition(".")
    if not module_path:
        raise ConfigError(f"{path!r} is no import path; expected package.module.Name or module:name", argument=key)
    if "" not in sys.path and "." not in sys.path:
        sys.path.append("")  # a loader of the user's own stands in the current directory, as with python -m
    try:
        module = import_module(module_path)
    except ImportError as error:
        missing = (error.name or module_path).partition(".")[0]
        hint = f'; install it: pip install "rankeval-mlflow[{missing}]"' if missing in EXTRAS else ""
        raise ConfigError(f"cannot import {path!r}: {error}{hint}", argument=key) from error
    if not hasattr(module, name):
        raise ConfigError(f"the module {module_path!r} has no {name!r}", argument=key)
    return getattr(module, name)


def check_class(found: Any, path: str, key: str, methods: tuple[str, ...]) -> None:
    """Raise unless this is a class with these methods.

    Parameters
    ----------
    found : object
        What was imported.
    path, key : str
        Its import path, and the key that holds it.
    methods : tuple of str
        Names of methods.

    Raises
    ------
    ConfigError
        If it is no class, or a method is missing.
    """
    wanted = f"expected a class with {' and '.join(methods)}"
    if not isclass(found):
        raise ConfigError(f"{wanted}, found {path!r}, a {type(found).__name__}", argument=key)
    if lacking := [method for method in methods if not callable(getattr(found, method, None))]:
        raise ConfigError(f"{wanted}; {path!r} has no {' and no '.join(lacking)}", argument=key)


def check_loader(found: Any, path: str) -> None:
    """Raise unless this is a function written in Python, outside of the standard library.

    Parameters
    ----------
    found : object
        What was imported.
    path : str
        Its import path.

    Raises
    ------
    ConfigError
        If it can be no loader.
    """
    if not (isfunction(found) or ismethod(found)):
        raise ConfigError(f"data.loader: {path!r} is a {type(found).__name__}, expected a function of your own")
    if (found.__module__ or "").partition(".")[0] in sys.stdlib_module_names:
        raise ConfigError(
            f"data.loader: {path!r} belongs to Python's own library, where no function returns rankeval.RankingData"
        )
    kinds = [parameter.kind for parameter in signature(found).parameters.values()]
    if kinds and kinds[0] is Parameter.VAR_POSITIONAL:
        raise ConfigError(f"data.loader: {path!r} takes any arguments; name the one for data.path: def load(path)")


def make_estimator(config: RankerConfig, *, name: str, seed: int) -> Any:
    """Make the estimator or the Pipeline of a ranker, with the seed of the experiment unless the file sets one.

    Parameters
    ----------
    config : RankerConfig
        Its classes and parameters.
    name : str
        The ranker's name, for errors.
    seed : int
        The experiment's seed.

    Raises
    ------
    ConfigError
        If a class cannot be imported or refuses a parameter.
    """
    from rankeval.model_selection.checks import check_names

    key = f"rankers.{name}"
    if config.estimator is not None:
        step = StepConfig(estimator=config.estimator, params=config.params)
        estimator = _made(step, ("fit", "predict"), key, seed)
    else:
        estimator = _pipeline(config.steps or [], key, seed)
    searched = first_values(config)
    try:
        check_names(estimator, {**config.params, **searched}, where=key)
    except UnknownName as error:
        raise ConfigError(str(error)) from error
    if config.steps is not None:
        estimator = _with_params(estimator, config.params, key)
    _with_params(estimator, searched, key)  # a value that is refused is found before an hour of search
    return estimator


def first_values(config: RankerConfig) -> dict[str, Any]:
    """Return a value for each parameter that is searched.

    Parameters
    ----------
    config : RankerConfig
        A ranker with a grid, a search or none of them.
    """
    searched: Mapping[str, Any] = config.search.distributions if config.search is not None else config.grid
    return {
        name: values[0] if isinstance(values, list) else next(iter(values.values()))[0]
        for name, values in searched.items()
    }


def _made(step: StepConfig, methods: tuple[str, ...], key: str, seed: int) -> Any:
    cls = import_object(step.estimator, key=f"{key}.estimator")
    check_class(cls, step.estimator, f"{key}.estimator", methods)
    try:
        estimator = cls(**step.params)
        known = estimator.get_params()
        if "random_state" in known and "random_state" not in step.params:
            estimator.set_params(random_state=seed)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{step.estimator} cannot be made: {said(error)}", argument=key) from error
    return estimator


def _pipeline(steps: list[StepConfig], key: str, seed: int) -> Any:
    """Make a Pipeline; steps without a name are named as by `make_pipeline`."""
    from sklearn.pipeline import Pipeline, make_pipeline

    made = []
    for place, step in enumerate(steps):
        methods = ("fit", "predict") if place == len(steps) - 1 else ("fit", "transform")
        made.append(_made(step, methods, f"{key}.steps.{place}", seed))
    usual = [name for name, _ in make_pipeline(*made).steps]
    names = [step.name or name for step, name in zip(steps, usual, strict=True)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{key}.steps: two steps are called {name!r}: give them different names")
        if "__" in name or name in {"steps", "memory", "verbose", "transform_input"}:
            raise ConfigError(f"{key}.steps: scikit-learn takes no step called {name!r}: choose another name")
    return Pipeline(list(zip(names, made, strict=True)))


def _with_params(estimator: Any, params: Mapping[str, Any], key: str) -> Any:
    """Return a copy with these parameters; making the copy shows what CatBoost's `set_params` lets through."""
    from rankeval.model_selection.boosters import cloned

    try:
        return cloned(cloned(estimator).set_params(**params))
    except (TypeError, ValueError, AttributeError) as error:
        told = said(error)
        raise ConfigError(f"{type(estimator).__name__} cannot be made: {told}", argument=key) from error


def make_ranker(config: ExperimentConfig, name: str) -> QueryRanker:
    """Make a ranker of an experiment as a QueryRanker, which stops early if the file says so.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.
    name : str
        The ranker.

    Raises
    ------
    ConfigError
        If it cannot be made, or an option of early stopping does not fit it.
    """
    from rankeval.model_selection.boosters import library
    from rankeval.model_selection.checks import check_measures
    from rankeval.model_selection.nesting import last_of
    from rankeval.model_selection.ranker import QueryRanker, stops_early

    own, key = config.rankers[name], f"rankers.{name}"
    estimator = make_estimator(own, name=name, seed=config.seed)
    if own.early_stopping_rounds is not None and not library(last_of(estimator)):
        raise ConfigError(
            f"{key}.early_stopping_rounds: only LightGBM, XGBoost and CatBoost can stop early, found {own.title}: "
            "leave it out"
        )
    watched = own.eval_measure or config.all_measures[0]
    ranker = QueryRanker(
        estimator,
        validation_fraction=own.validation_fraction,
        early_stopping_rounds=own.early_stopping_rounds,
        eval_measure=watched,
        eval_convention=config.convention,
    )
    try:
        check_measures(watched, config.convention)
        stops = stops_early(ranker)
    except InvalidInput as error:
        raise ConfigError(f"{error}", argument=key) from error
    for option in () if stops else ("validation_fraction", "eval_measure"):
        if getattr(own, option) is not None:
            raise ConfigError(f"{key}.{option} belongs to early stopping: give early_stopping_rounds too")
    return ranker
