"""What each library wants to be told about queries, and our measures inside their training loops.

LightGBM takes the sizes of consecutive queries, XGBoost ids in non-decreasing order and one weight a query, CatBoost
ids in blocks; everything else needs no queries to be fitted. A library is told apart by the module of its class, so
that none is imported which the caller has not imported.

Early stopping watches our measure on held-out queries in all three: as an evaluation function in LightGBM, in a
callback in XGBoost (its own ranking metrics call back once per query, a thousand times slower), as a metric object in
CatBoost, which shows such objects no groups: they are known here, since the held-out rows keep their order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.evaluation import score_arrays
from rankeval.measures import measures as find_measures
from rankeval.model_selection.query_ids import from_sizes, per_query
from rankeval.model_selection.rows import Rows, Watch

if TYPE_CHECKING:
    from rankeval.measures import Measure


def library(estimator: Any) -> str:
    """Return the library that an estimator comes from, of those that are treated apart; else an empty string.

    Parameters
    ----------
    estimator : object
        Any estimator, or one derived from a library's.
    """
    roots = (cls.__module__.partition(".")[0] for cls in type(estimator).__mro__)
    return next((root for root in roots if root in _FITS), "")


def fit(estimator: Any, rows: Rows, watch: Watch | None = None) -> int | None:
    """Fit an estimator in place, telling it the queries in its library's way.

    Parameters
    ----------
    estimator : object
        A ranker, regressor or classifier.
    rows : Rows
        What to fit on.
    watch : Watch, optional
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
    told = takes & {"group", "qid", "group_id"}
    return _FITS.get(name, _fit_plainly)(estimator, rows.in_blocks() if told else rows, watch, takes)


def _row_weight(rows: Rows, takes: set[str], estimator: Any) -> dict[str, Any]:
    if rows.weight is None:
        return {}
    if "sample_weight" not in takes:
        raise InvalidInput(f"{type(estimator).__name__} takes no sample_weight: leave it out")
    return {"sample_weight": rows.weight}


def _fit_plainly(estimator: Any, rows: Rows, _watch: Watch | None, takes: set[str]) -> None:
    told: dict[str, Any] = {"qid": rows.ids} if "qid" in takes else {}
    if "group" in takes and not told:
        told = {"group": rows.sizes}
    estimator.fit(rows.X, rows.y, **told, **_row_weight(rows, takes, estimator))


def _fit_lightgbm(estimator: Any, rows: Rows, watch: Watch | None, takes: set[str]) -> int | None:
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
    # Else its own metric on the held-out rows could stop the training before ours does.
    estimator.set_params(metric="None")
    estimator.fit(
        rows.X,
        rows.y,
        eval_metric=lambda _, score: (str(watch.measure), watch.value(score), True),
        callbacks=[lightgbm.early_stopping(watch.rounds, verbose=False)],
        **told,
    )
    watch.best = float(estimator.best_score_["valid_0"][str(watch.measure)])
    return int(estimator.best_iteration_)


def _fit_xgboost(estimator: Any, rows: Rows, watch: Watch | None, takes: set[str]) -> int | None:
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

        def __init__(self, watch: Watch) -> None:
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

    def __init__(self, watch: Watch) -> None:
        self.watch = watch

    def is_max_optimal(self) -> bool:
        """Higher is better."""
        return True

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:  # noqa: ARG002 - their signature
        """Return the measure on the held-out rows, 0 on others, and the weight 1."""
        rows = self.watch.held_out
        if rows is None or len(target) != len(rows.y) or not np.array_equal(np.asarray(target, rows.y.dtype), rows.y):
            return 0.0, 1.0
        return self.watch.value(approxes[0]), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value over the weight."""
        return error / weight


def _fit_catboost(estimator: Any, rows: Rows, watch: Watch | None, takes: set[str]) -> int | None:
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
    watch.held_out = None
    return int(estimator.tree_count_)


_FITS: dict[str, Callable[[Any, Rows, Watch | None, set[str]], int | None]] = {
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
    from sklearn.base import clone

    if library(estimator) == "catboost":
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    return clone(estimator, safe=False)


@dataclass(frozen=True)
class TrainingMetric:
    """Measures for a training loop; see `lightgbm_feval` and `xgboost_metric`."""

    measures: tuple[Any, ...]
    convention: str | Convention

    def values(self, y: Any, score: Any, ids: NDArray[np.int64]) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        evaluation = score_arrays(
            y, np.asarray(score, np.float64), ids, measures=self.measures, convention=self.convention
        )
        return [(str(name), float(value)) for name, value in evaluation.aggregate().items()]


class LightGBMFeval(TrainingMetric):
    """Called by LightGBM as ``feval(scores, dataset)``."""

    def __call__(self, score: Any, dataset: Any) -> list[tuple[str, float, bool]]:
        """Return (name, value, higher is better) of each measure."""
        sizes = dataset.get_group()
        if sizes is None:
            raise QueryIdError("this lightgbm.Dataset has no queries: make it with group=, the sizes of the queries")
        ids = from_sizes(np.asarray(sizes, dtype=np.int64), len(score))
        return [(name, value, True) for name, value in self.values(dataset.get_label(), score, ids)]


class XGBoostMetric(TrainingMetric):
    """Called by XGBoost as ``custom_metric(scores, matrix)``."""

    def __call__(self, score: Any, matrix: Any) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        bounds = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if len(bounds) < 2:
            raise QueryIdError("this xgboost.DMatrix has no queries: make it with qid= (sorted) or group= (sizes)")
        return self.values(matrix.get_label(), score, from_sizes(np.diff(bounds), len(score)))


def _training_metric(kind: type[Any], measures: Any, convention: str | Convention) -> Any:
    return kind(tuple(one for _, one in find_measures(measures, convention)), convention)


def lightgbm_feval(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> LightGBMFeval:
    """Make an evaluation function of ranking measures for ``lightgbm.train`` and ``lightgbm.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        What to compute on each evaluation set; higher is better.
    convention : str or Convention, default="rankeval"
        How rankings are held against labels.

    Returns
    -------
    LightGBMFeval
        For ``feval=``; set ``params["metric"] = "None"`` to see no other measure.

    Raises
    ------
    UnknownName
        When a measure does not exist.
    """
    metric: LightGBMFeval = _training_metric(LightGBMFeval, measures, convention)
    return metric


def xgboost_metric(
    measures: str | Measure | Sequence[str | Measure], *, convention: str | Convention = "rankeval"
) -> XGBoostMetric:
    """Make an evaluation function of ranking measures for ``xgboost.train`` and ``xgboost.cv``.

    Parameters
    ----------
    measures : str, Measure, or list of them
        What to compute on each evaluation set; higher is better, which XGBoost is told by ``maximize=True``.
    convention : str or Convention, default="rankeval"
        How rankings are held against labels.

    Returns
    -------
    XGBoostMetric
        For ``custom_metric=``.

    Raises
    ------
    UnknownName
        When a measure does not exist.
    """
    metric: XGBoostMetric = _training_metric(XGBoostMetric, measures, convention)
    return metric
