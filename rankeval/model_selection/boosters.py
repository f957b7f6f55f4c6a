"""What each library wants to be told about queries, and early stopping by our measures in each of them.

LightGBM takes the sizes of consecutive queries, XGBoost ids in non-decreasing order and one weight a query, CatBoost
ids in blocks; everything else needs no queries to be fitted. A library is told apart by the module of its class, so
that none is imported which the caller has not imported.

Early stopping watches our measure on held-out queries in all three: as an evaluation function in LightGBM, in a
callback in XGBoost (its own ranking metrics call back once per query, a thousand times slower), as a metric object in
CatBoost, which shows such objects no groups: they are known here, since the held-out rows keep their order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankeval.errors import InvalidInput
from rankeval.model_selection.query_ids import per_query
from rankeval.model_selection.rows import EarlyStopping, TrainingRows


def library(estimator: Any) -> str:
    """Return the library that an estimator comes from, of those that are treated apart; else an empty string.

    Parameters
    ----------
    estimator : object
        Any estimator, or one derived from a library's.
    """
    roots = (cls.__module__.partition(".")[0] for cls in type(estimator).__mro__)
    return next((root for root in roots if root in _FITS), "")


def is_ranker(estimator: Any) -> bool:
    """Say whether this is a library's ranker, which must be told the queries.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    return bool(library(estimator)) and bool(_TOLD & set(signature(estimator.fit).parameters))


def own_rounds(estimator: Any) -> int | None:
    """Return the early stopping asked of a booster itself, which could not do it without held-out rows.

    Parameters
    ----------
    estimator : object
        Any estimator.

    Raises
    ------
    InvalidInput
        When CatBoost is to stop by its own statistics of the metric, for which there is no equivalent.
    """
    name = library(estimator)
    params = estimator.get_params() if name else {}
    given = [params[param] for param in _OWN_ROUNDS.get(name, ()) if params.get(param) is not None]
    if name == "lightgbm":
        given = [rounds for rounds in given if rounds > 0]  # others switch it off
    if name == "catboost":
        if params.get("od_pval"):
            raise InvalidInput(
                "CatBoost's od_pval cannot be honoured: give QueryRanker early_stopping_rounds, or CatBoost od_wait"
            )
        if params.get("od_type") == "IncToDec":
            return None  # without od_pval this never stops
        if params.get("od_type") == "Iter":
            given.append(20)  # CatBoost's default of od_wait
    return next(iter(given), None)


def fit(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None = None) -> int | None:
    """Fit an estimator in place, telling it the queries in its library's way.

    Parameters
    ----------
    estimator : object
        A ranker, regressor or classifier.
    rows : TrainingRows
        What to fit on.
    watch : EarlyStopping, optional
        Stops the training early.

    Returns
    -------
    int or None
        The number of iterations that predict uses, where training was watched.

    Raises
    ------
    InvalidInput
        When early stopping is asked of something that cannot stop.
    """
    name = library(estimator)
    if watch is not None and not name:
        raise InvalidInput(
            f"early stopping is there for LightGBM, XGBoost and CatBoost, not for {type(estimator).__name__}: leave "
            "early_stopping_rounds out"
        )
    takes = set(signature(estimator.fit).parameters)
    return _FITS.get(name, _fit_plainly)(estimator, rows.in_blocks() if takes & _TOLD else rows, watch, takes)


def _row_weight(rows: TrainingRows, takes: set[str], estimator: Any) -> dict[str, Any]:
    if rows.weight is None:
        return {}
    if "sample_weight" not in takes:
        raise InvalidInput(f"{type(estimator).__name__} takes no sample_weight: leave it out")
    return {"sample_weight": rows.weight}


def _fit_plainly(estimator: Any, rows: TrainingRows, _watch: EarlyStopping | None, takes: set[str]) -> None:
    told: dict[str, Any] = {"qid": rows.ids} if "qid" in takes else {}
    if "group" in takes and not told:
        told = {"group": rows.sizes}
    estimator.fit(rows.X, rows.y, **told, **_row_weight(rows, takes, estimator))


def _fit_lightgbm(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None, takes: set[str]) -> int | None:
    ranks = "group" in takes
    told: dict[str, Any] = {"group": rows.sizes} if ranks else {}
    told |= _row_weight(rows, takes, estimator)
    if watch is None or watch.held_out is None:
        estimator.fit(rows.X, rows.y, **told)
        return None
    import lightgbm

    held_out = watch.held_out
    # LightGBM 4.7 renamed eval_set.
    told |= (
        {"eval_X": held_out.X, "eval_y": held_out.y} if "eval_X" in takes else {"eval_set": [(held_out.X, held_out.y)]}
    )
    told |= {"eval_group": [held_out.sizes]} if ranks else {}
    # Else its own metric or its own patience could stop the training before ours does.
    theirs = {name: value for name, value in estimator.get_params().items() if name in _OWN_ROUNDS["lightgbm"]}
    estimator.set_params(metric="None", **dict.fromkeys(theirs))
    try:
        estimator.fit(
            rows.X,
            rows.y,
            eval_metric=lambda _, score: (str(watch.measure), watch.value(score), watch.greater_is_better),
            callbacks=[lightgbm.early_stopping(watch.rounds, verbose=False)],
            **told,
        )
    finally:
        estimator.set_params(**theirs)
    watch.best = float(estimator.best_score_["valid_0"][str(watch.measure)])
    return int(estimator.best_iteration_)


def _fit_xgboost(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None, takes: set[str]) -> int | None:
    told: dict[str, Any] = {}
    if "qid" in takes:
        told["qid"] = rows.codes
        if rows.weight is not None:
            told["sample_weight"] = per_query(rows.weight, rows.codes, "sample_weight")[rows.codes[rows.starts]]
    else:
        told |= _row_weight(rows, takes, estimator)
    if watch is None or watch.held_out is None:
        estimator.fit(rows.X, rows.y, **told)
        return None
    import xgboost

    matrix = xgboost.DMatrix(
        watch.held_out.X,
        missing=estimator.missing,
        nthread=estimator.n_jobs,
        enable_categorical=estimator.enable_categorical,
        feature_types=estimator.feature_types,
    )

    class Stop(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        """Asks the watch after each iteration; predictions of a matrix are cached, so only the new tree is walked."""

        def __init__(self, watch: EarlyStopping) -> None:
            self.watch = watch

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - their signature
            stop = self.watch.after(epoch, model.predict(matrix, output_margin=True))
            model.set_attr(best_iteration=str(self.watch.best_iteration), best_score=str(self.watch.best))
            return stop

    theirs = estimator.callbacks, estimator.early_stopping_rounds
    estimator.callbacks, estimator.early_stopping_rounds = [*(theirs[0] or ()), Stop(watch)], None
    try:
        estimator.fit(rows.X, rows.y, **told)
    finally:
        # The callback holds the held-out rows, which are no part of a fitted model.
        estimator.callbacks, estimator.early_stopping_rounds = theirs
    return watch.best_iteration + 1


class CatBoostMetric:
    """A watch as CatBoost wants its metrics; its other rows, those it trains on, are not measured."""

    no_jit = True
    """CatBoost would try to compile the methods with numba, fail and warn."""

    def __init__(self, watch: EarlyStopping) -> None:
        self.watch = watch

    def is_max_optimal(self) -> bool:
        """Say whether higher is better."""
        return self.watch.greater_is_better

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:  # noqa: ARG002 - their signature
        """Return the measure on the held-out rows, 0 on others, and the weight 1."""
        rows = self.watch.held_out
        if rows is None or len(target) != len(rows.y) or not np.array_equal(np.asarray(target, rows.y.dtype), rows.y):
            return 0.0, 1.0
        return self.watch.value(approxes[0]), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value over the weight."""
        return error / weight


def _fit_catboost(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None, takes: set[str]) -> int | None:
    told: dict[str, Any] = {}
    if "group_id" in takes:
        told["group_id"] = rows.codes
        if rows.weight is not None:
            per_query(rows.weight, rows.codes, "sample_weight")
            told["group_weight"] = rows.weight
    else:
        told |= _row_weight(rows, takes, estimator)
    if watch is None or watch.held_out is None:
        estimator.fit(rows.X, rows.y, **told)
        return None
    import catboost

    held_out, params = watch.held_out, estimator.get_params()
    features = {name: params[name] for name in ("cat_features", "text_features") if name in params}
    groups = {"group_id": held_out.codes} if "group_id" in takes else {}
    pool = catboost.Pool(held_out.X, held_out.y, **groups, **features)
    estimator.set_params(eval_metric=CatBoostMetric(watch))
    estimator.fit(rows.X, rows.y, eval_set=pool, early_stopping_rounds=watch.rounds, use_best_model=True, **told)
    watch.best = watch.value(estimator.predict(held_out.X))
    # The metric stays in the model's parameters and is pickled with it; the held-out rows need not be.
    watch.end()
    return int(estimator.tree_count_)


_TOLD = frozenset({"group", "qid", "group_id"})
"""Parameters of ``fit`` by which estimators are told the queries."""

_OWN_ROUNDS = {
    "lightgbm": ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change"),
    "xgboost": ("early_stopping_rounds",),
    "catboost": ("early_stopping_rounds", "od_wait"),
}
"""What the libraries call the number of iterations to wait."""

_FITS: dict[str, Callable[[Any, TrainingRows, EarlyStopping | None, set[str]], int | None]] = {
    "lightgbm": _fit_lightgbm,
    "xgboost": _fit_xgboost,
    "catboost": _fit_catboost,
}


def twin(estimator: Any) -> Any:
    """Return an unfitted copy with the same parameters.

    Parameters
    ----------
    estimator : object
        Anything that scikit-learn can clone, or CatBoost's, which copies lists among its parameters, so that
        scikit-learn holds it for broken.
    """
    if library(estimator) == "catboost":
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    if isinstance(estimator, Pipeline):
        empty = copy.copy(estimator)
        empty.steps = []
        copied = clone(empty)
        copied.steps = [(name, twin(step)) for name, step in estimator.steps]
        return copied
    return clone(estimator, safe=False)
