"""Automatic logging: watch calls of searches and cross-validations, and log each when it ends.

Nothing is sent before a call ends: then the whole is one upload, and a call that is killed leaves
no run that seems to go on for ever. What a call fits inside is a part of it: searches within are
not logged, and MLflow's other automatic logging is off while it works.

MLflow's own autologging of scikit-learn replaces ``fit`` of ``GridSearchCV``; ours replaces ``fit``
of the class below, in which scikit-learn declares it. So there is one order, whoever was switched
on first::

    GridSearchCV.fit     MLflow's, if it is on: makes a run if none is active, then asks whether to log this estimator.
                         For a search with our scorers it is told no
    BaseSearchCV.fit     ours: fits, and logs to the active run, or to a new one
    scikit-learn's own

``optimize`` of Optuna's ``Study`` is replaced if Optuna is installed, and logs a study whose
objective is ours. Its trials hold all that is logged, so a study that raises is logged as one that
does not.

scikit-learn's results have no word of why a fit failed. It hands the errors of all fits to a
function that warns of them, and ours listens there.

The trap: MLflow remembers what it replaced. So its autologging is switched off while ours is put in
place or taken out, and on again afterwards, with the settings that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from typing import Any

import mlflow
import mlflow.sklearn
import sklearn.model_selection
from mlflow.utils.autologging_utils import AUTOLOGGING_INTEGRATIONS, disable_autologging
from sklearn.model_selection import _search, _search_successive_halving, _validation
from sklearn.model_selection._search import BaseSearchCV

import rankeval.tracking
from rankeval._arguments import explained
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput, RankevalError, warn
from rankeval.model_selection.trials import OptunaObjective
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.payload import Node, SavedModel
from rankeval_mlflow.packing.nodes import beside_others
from rankeval_mlflow.packing.searches import (
    AutologSettings,
    Scored,
    failed_node,
    search_node,
    validation_node,
)
from rankeval_mlflow.recording import log, send_node
from rankeval_mlflow.saving import saved

# MLflow's tag of the runs that its automatic logging made, and will end.
_AUTOLOGGING = "mlflow.autologging"

# MLflow's tag with the name of a run.
_NAME = "mlflow.runName"

_SKLEARN = "sklearn"
# What was replaced: the owner, the name, what was there, and what is there now.
_REPLACED: list[tuple[Any, str, Any, Any]] = []


_within: ContextVar[_Call | None] = ContextVar("within", default=None)
# The error of each fit of the watched call, or None.
_failures: ContextVar[list[str | None] | None] = ContextVar("failures", default=None)
_WARNS_OF_FAILURES = "_warn_or_raise_about_fit_failures"


@dataclass
class State:
    """What is switched on, and how often an active run was written to."""

    settings: AutologSettings | None = None
    times: dict[tuple[str, str], int] = field(default_factory=dict)


STATE = State()


def _scored(search: Any) -> Scored | None:
    """Return the measures of a search that is logged here; None if it is none, or if nothing is switched on."""
    is_ours = STATE.settings is not None and isinstance(search, BaseSearchCV)
    return Scored.of(search.scoring, search.estimator) if is_ours else None


def left_to_us(should_log: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return MLflow's question whether to log an estimator, answered with no for searches that are logged here."""

    @wraps(should_log)
    def is_logged(session: Any) -> bool:
        return _scored(session.estimator) is None and should_log(session)

    return is_logged


def watched_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fit`` of a search that logs."""

    @wraps(fit)
    def logged(search: Any, X: Any, y: Any = None, **params: Any) -> Any:
        scored = None if _within.get() else _scored(search)
        if scored is None:
            with _apart(search):
                return fit(search, X, y, **params)
        with _watched(f"{type(search).__name__}.fit", "search", search) as call:
            fit(search, X, y, **params)
            call.log(
                lambda settings: replace(
                    search_node(
                        search, scored, settings, call.label, call.started_ms, call.failures
                    ),
                    datasets=scored.data(X, y, params),
                    models=_best_models(search, X, settings, call),
                )
            )
        return search

    return logged


def watched_validation(cross_validate: Callable[..., Any]) -> Callable[..., Any]:
    """Return scikit-learn's ``cross_validate`` that logs."""
    spec = signature(cross_validate)

    @wraps(cross_validate)
    def logged(*args: Any, **kwargs: Any) -> Any:
        arguments = (
            {}
            if _within.get() or STATE.settings is None
            else spec.bind_partial(*args, **kwargs).arguments
        )
        scored = Scored.of(arguments.get("scoring"), arguments.get("estimator"))
        if scored is None:
            with _apart(None):
                return cross_validate(*args, **kwargs)
        with _watched("cross_validate", "cross-validation", arguments["estimator"]) as call:
            result = cross_validate(*args, **kwargs)
            call.log(
                lambda settings: replace(
                    validation_node(
                        result,
                        arguments["estimator"],
                        scored,
                        settings,
                        call.label,
                        call.started_ms,
                        call.failures,
                    ),
                    datasets=scored.data(
                        arguments["X"], arguments.get("y"), arguments.get("params") or {}
                    ),
                )
            )
        return result

    return logged


def watched_study(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``optimize`` of a study that logs."""

    @wraps(optimize)
    def logged(study: Any, func: Any, *args: Any, **kwargs: Any) -> None:
        is_ours = isinstance(func, OptunaObjective) and STATE.settings is not None
        if _within.get() or not is_ours:
            optimize(study, func, *args, **kwargs)
            return
        with _watched("Study.optimize", "study", study) as call:
            watching = copy_context()

            def objective(trial: Any) -> Any:
                # Optuna's threads start without this context, and one cannot be entered twice.
                return watching.copy().run(func, trial)

            optimize(study, objective, *args, **kwargs)
        call.guarded(lambda: log(study))

    return logged


@contextmanager
def of_cross_validation(arguments: Mapping[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Watch a call of `rankeval.cross_validate`."""
    if _within.get() or STATE.settings is None:
        yield lambda _: None
        return
    X = arguments.get("X")
    data = X if isinstance(X, RankingData) else None
    folds = STATE.settings.log_folds
    with _watched("rankeval.cross_validate", "cross-validation", X) as call:
        yield lambda result: call.guarded(lambda: log(result, data=data, folds=folds))


def noting_failures(warn_of: Callable[..., None]) -> Callable[..., None]:
    """Return the function that scikit-learn hands the results of fits to, which keeps their errors."""

    @wraps(warn_of)
    def noted(results: Any, error_score: Any) -> None:
        if (kept := _failures.get()) is not None:
            kept += [fit["fit_error"] for fit in results]
        warn_of(results, error_score)

    return noted


@contextmanager
def _apart(search: Any) -> Iterator[None]:
    """Keep no errors of fits of a call within the watched one; a halving search calls the `fit` of its base class."""
    call = _within.get()
    token = _failures.set(call.failures if call is not None and call.of is search else None)
    try:
        yield
    finally:
        _failures.reset(token)


@contextmanager
def _watched(name: str, kind: str, of: Any) -> Iterator[_Call]:
    """Watch one call: what it leads to is a part of it, and what it raises is logged."""
    call = _Call(name, kind, of)
    token = _within.set(call)
    noting = _failures.set(call.failures)
    # MLflow's, which switches everything on at its end: a caller's own one ends here too.
    with disable_autologging():
        try:
            yield call
        except BaseException as error:
            call.guarded(partial(call.failed, error))
            raise
        finally:
            _within.reset(token)
            _failures.reset(noting)


@dataclass(frozen=True)
class _Call:
    """One watched call."""

    name: str
    kind: str
    of: Any
    started_ms: int = field(default_factory=now_ms)
    failures: list[str | None] = field(default_factory=list)

    def log(self, pack: Callable[[AutologSettings], Node]) -> None:
        """Pack what the call found, and send it."""
        settings = STATE.settings
        ended = now_ms()
        if settings is not None:
            self.guarded(lambda: self._registered(self._sent(pack(settings), ended), settings))

    def guarded(self, log: Callable[[], Any]) -> None:
        """Log; an error becomes a warning, because nobody wants to lose a search to its log."""
        try:
            log()
        except Exception as error:  # noqa: BLE001 - stores raise whatever their own clients raise
            if STATE.settings is None or not STATE.settings.silent:
                is_ours = isinstance(error, RankevalError)
                problem = str(error) if is_ours else f"{type(error).__name__}: {error}"
                warn(f"{self.name} was not logged: {problem}")

    @property
    def label(self) -> str:
        """The name of this content in its run; a run that the caller keeps open may get several."""
        active = mlflow.active_run()
        if active is None:
            return self.kind
        run = (active.info.run_id, self.kind)
        STATE.times[run] = STATE.times.get(run, 0) + 1
        return self.kind if STATE.times[run] == 1 else f"{self.kind}-{STATE.times[run]}"

    def _sent(self, node: Node, ended_ms: int) -> TrackedRun:
        node = replace(node, started_ms=self.started_ms, ended_ms=ended_ms)
        # A run that MLflow made for this call gets our name.
        if _made_by_mlflow():
            node = replace(node, tags={**node.tags, _NAME: node.name})
        elif mlflow.active_run() is not None:
            node = beside_others(node)
        return send_node(node, None)

    def failed(self, error: BaseException) -> None:
        """Log what the call raised; the trials of a study say it themselves."""
        if self.kind == "study":
            log(self.of)
            return
        reason = f"{type(error).__name__}: {error}"
        try:
            self._sent(failed_node(self.name, reason, self.label), now_ms())
        finally:
            if _made_by_mlflow() and not isinstance(error, Exception):
                # MLflow ends its runs after an Exception, and leaves them open after a refusal.
                mlflow.end_run("FAILED")

    def _registered(self, run: Any, settings: AutologSettings) -> None:
        if settings.registered_model_name is not None and run.models:
            mlflow.register_model(f"models:/{run.models[0]}", settings.registered_model_name)


def _made_by_mlflow() -> bool:
    active = mlflow.active_run()
    return active is not None and _AUTOLOGGING in active.data.tags


def _best_models(
    search: Any, X: Any, settings: AutologSettings, call: _Call
) -> tuple[SavedModel, ...]:
    if not (settings.log_models and hasattr(search, "best_estimator_")):
        return ()
    try:
        return (saved(search, X=X),)
    except InvalidInput as error:
        if not settings.silent:
            warn(f"the best model of {call.name} was not logged: {error}")
        return ()


@explained
def autolog(
    *,
    disable: bool = False,
    log_models: bool = True,
    log_folds: bool = False,
    max_tuning_runs: int | None = None,
    registered_model_name: str | None = None,
    silent: bool = False,
) -> None:
    """Log every search, study and cross-validation with our measures to MLflow, from now on.

    Logged are:

    * ``GridSearchCV``, ``RandomizedSearchCV`` and their halving forms of scikit-learn, if they score by
      `rankeval.make_scorer`, or by the score of a `rankeval.QueryRanker`: a run with the best
      parameters, the mean of each measure over the folds (``nDCG_at_10``), its standard deviation
      (``nDCG_at_10_sd``), and the best model once, as `log_ranker` logs it; and a nested run of
      every setting;
    * ``sklearn.model_selection.cross_validate`` with such scorers, called by its module;
    * `rankeval.cross_validate`, as `log` logs it;
    * ``optimize`` of a study of Optuna with a `rankeval.optuna_objective`: all trials of the study,
      as `log` logs them. A later call adds to the same run.

    A search inside a cross-validation or inside another search is a part of it, and has no run of
    its own. Everything else is left alone. A call that fails or is refused by the guard leaves a
    FAILED run with the reason, and so does a setting whose fits all failed; if only some failed,
    the description of its run says why. If logging itself fails, the call returns its result all
    the same, with a warning.

    ``mlflow.sklearn.autolog`` may be on or off, switched before or after: it logs the estimators
    that are not logged here. An active run gets what is logged; otherwise there is a new run, which
    ends. In an active run the metrics of a search, and of scikit-learn's ``cross_validate``, have a
    name before them (``search/nDCG_at_10``, then ``search-2/nDCG_at_10``), so that they do not mix
    with those of an evaluation in that run.

    Parameters
    ----------
    disable : bool, default False
        Switch it off again, and put everything back.
    log_models : bool, default True
        Whether the best model of a search is logged. It needs no rankeval where it is loaded.
    log_folds : bool, default False
        Whether each fold of a cross-validation is a nested run too. Folds are steps of a metric in
        any case.
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
    settings = (
        None
        if disable
        else AutologSettings(log_models, log_folds, max_tuning_runs, registered_model_name, silent)
    )
    with _mlflow_set_aside():
        _put_back()
        STATE.settings = settings
        if settings is not None:
            _put_in_place()


def _put_in_place() -> None:
    for owner in (_search.BaseSearchCV, _search_successive_halving.BaseSuccessiveHalving):
        _replace(owner, "fit", watched_fit(vars(owner)["fit"]))
    validate = watched_validation(_validation.cross_validate)
    for module in (sklearn.model_selection, _validation):
        _replace(module, "cross_validate", validate)
    for module in (_search, _validation):
        _replace(module, _WARNS_OF_FAILURES, noting_failures(vars(module)[_WARNS_OF_FAILURES]))
    # The class by which MLflow's autologging decides whether to log a call of `fit`.
    if (sessions := getattr(mlflow.sklearn, "_SklearnTrainingSession", None)) is not None:
        _replace(sessions, "should_log", left_to_us(sessions.should_log))
    if find_spec("optuna") is not None:
        from optuna.study import Study

        _replace(Study, "optimize", watched_study(Study.optimize))
    rankeval.tracking.OBSERVERS.append(of_cross_validation)


def _put_back() -> None:
    for owner, name, before, now in reversed(_REPLACED):
        if vars(owner).get(name) is now:
            setattr(owner, name, before)
    _REPLACED.clear()
    if of_cross_validation in rankeval.tracking.OBSERVERS:
        rankeval.tracking.OBSERVERS.remove(of_cross_validation)


def _replace(owner: Any, name: str, now: Callable[..., Any]) -> None:
    _REPLACED.append((owner, name, vars(owner)[name], now))
    setattr(owner, name, now)


@contextmanager
def _mlflow_set_aside() -> Iterator[None]:
    before = dict(AUTOLOGGING_INTEGRATIONS.get(_SKLEARN, {}))
    on = not before.get("disable", True)
    if on:
        mlflow.sklearn.autolog(disable=True, silent=True)
    try:
        yield
    finally:
        if on:
            known = signature(mlflow.sklearn.autolog).parameters
            mlflow.sklearn.autolog(
                **{name: value for name, value in before.items() if name in known}
            )
            AUTOLOGGING_INTEGRATIONS[_SKLEARN] = before  # also what `mlflow.autolog` noted beside
