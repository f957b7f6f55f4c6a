"""Switch automatic logging on and off, beside MLflow's own.

MLflow's autologging of scikit-learn replaces ``fit`` of ``GridSearchCV``; ours replaces ``fit`` of the class below it,
in which scikit-learn declares it. So there is one order, whoever was switched on first::

    GridSearchCV.fit     MLflow's, if it is on: makes a run if none is active, then asks whether to log this estimator.
                         For a search with our scorers it is told no
    BaseSearchCV.fit     ours: fits, and logs to the active run, or to a new one
    scikit-learn's own

The trap: MLflow remembers what it replaced. So its autologging is switched off while ours is put in place or taken out,
and on again afterwards, with the settings that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import sklearn.model_selection
from sklearn.model_selection import _search, _search_successive_halving, _validation

import rankeval.tracking
from rankeval_mlflow.autologging import watching
from rankeval_mlflow.autologging.values import Settings

_SKLEARN = "sklearn"


def autolog(
    *,
    disable: bool = False,
    log_models: bool = True,
    log_folds: bool = True,
    max_tuning_runs: int | None = None,
    registered_model_name: str | None = None,
    silent: bool = False,
) -> None:
    """Log every search and cross-validation with our measures to MLflow, from now on.

    Logged are:

    * ``GridSearchCV``, ``RandomizedSearchCV`` and their halving forms of scikit-learn, if they score by
      `rankeval.make_scorer`, or by the score of a `rankeval.QueryRanker`: a run with the best parameters, the mean of
      each measure over the folds (``nDCG_at_10``), its standard deviation (``nDCG_at_10_sd``), and the best model once,
      as `log_ranker` logs it; and a nested run of every setting;
    * ``sklearn.model_selection.cross_validate`` with such scorers, called by its module;
    * `rankeval.cross_validate`, as `log_cross_validation` logs it.

    A search inside a cross-validation or inside another search is a part of it, and has no run of its own. Everything
    else is left alone. A call that fails or is refused by the guard leaves a FAILED run with the reason. If logging
    itself fails, the call returns its result all the same, with a warning.

    ``mlflow.sklearn.autolog`` may be on or off, switched before or after: it logs the estimators that are not logged
    here. An active run gets what is logged; otherwise there is a new run, which ends. In an active run the metrics of a
    search, and of scikit-learn's ``cross_validate``, have a name before them (``search/nDCG_at_10``, then
    ``search-2/nDCG_at_10``), so that they do not mix with those of an evaluation in that run.

    Parameters
    ----------
    disable : bool, default False
        Switch it off again, and put everything back.
    log_models : bool, default True
        Whether the best model of a search is logged. It needs no rankeval where it is loaded.
    log_folds : bool, default True
        Whether the folds are logged: as steps of a metric, and of a cross-validation as nested runs.
    max_tuning_runs : int, optional
        Log a nested run for this many settings, the best ones. By default for all.
    registered_model_name : str, optional
        Register the best model of each search under this name, as a new version.
    silent : bool, default False
        Say nothing, not even that something could not be logged.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> autolog()
    >>> data = rk.datasets.make_ranking(30, 10, rng=0)
    >>> _ = rk.cross_validate(Ridge(), data, cv=3)
    >>> mlflow.search_runs(filter_string="tags.`rankeval.kind` = 'cross-validation'")["status"].tolist()
    ['FINISHED']
    >>> autolog(disable=True)
    """
    settings = None if disable else Settings(log_models, log_folds, max_tuning_runs, registered_model_name, silent)
    with _mlflow_set_aside():
        _put_back()
        watching.STATE.settings = settings
        if settings is not None:
            _put_in_place()


_REPLACED: list[tuple[Any, str, Any, Any]] = []
"""What was replaced: the owner, the name, what was there, and what is there now."""


def _put_in_place() -> None:
    """Replace the functions of scikit-learn that are watched, and observe our own."""
    for owner in (_search.BaseSearchCV, _search_successive_halving.BaseSuccessiveHalving):
        _replace(owner, "fit", watching.watched_fit(vars(owner)["fit"]))
    validate = watching.watched_validation(_validation.cross_validate)
    for module in (sklearn.model_selection, _validation):
        _replace(module, "cross_validate", validate)
    sessions = _training_sessions()
    if sessions is not None:
        _replace(sessions, "should_log", watching.left_to_us(sessions.should_log))
    rankeval.tracking.OBSERVERS.append(watching.of_cross_validation)


def _put_back() -> None:
    """Put everything back that is still in place."""
    for owner, name, before, now in reversed(_REPLACED):
        if vars(owner).get(name) is now:
            setattr(owner, name, before)
    _REPLACED.clear()
    if watching.of_cross_validation in rankeval.tracking.OBSERVERS:
        rankeval.tracking.OBSERVERS.remove(watching.of_cross_validation)


def _replace(owner: Any, name: str, now: Callable[..., Any]) -> None:
    _REPLACED.append((owner, name, vars(owner)[name], now))
    setattr(owner, name, now)


def _training_sessions() -> Any | None:
    """Return the class by which MLflow's autologging decides whether to log a call of `fit`."""
    import mlflow.sklearn

    return getattr(mlflow.sklearn, "_SklearnTrainingSession", None)


@contextmanager
def _mlflow_set_aside() -> Iterator[None]:
    """Switch MLflow's autologging of scikit-learn off inside, and on again with the same settings."""
    import mlflow.sklearn
    from mlflow.utils.autologging_utils import AUTOLOGGING_INTEGRATIONS

    before = dict(AUTOLOGGING_INTEGRATIONS.get(_SKLEARN, {}))
    on = not before.get("disable", True)
    if on:
        mlflow.sklearn.autolog(disable=True, silent=True)
    try:
        yield
    finally:
        if on:
            known = signature(mlflow.sklearn.autolog).parameters
            mlflow.sklearn.autolog(**{name: value for name, value in before.items() if name in known})
            AUTOLOGGING_INTEGRATIONS[_SKLEARN] = before  # also what `mlflow.autolog` noted beside
