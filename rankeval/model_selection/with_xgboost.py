"""XGBoost: ids of queries in non-decreasing order, one weight per query, a callback for early stopping.

Its own ranking metrics call back once per query, a thousand times slower than a callback.
"""

from __future__ import annotations

import math
import sys
from traceback import walk_stack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput, QueryIdError
from rankeval.model_selection.libraries import COUNTS, SHARES, Booster, Labels, add_booster
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.training_metrics import TrainingMetric

_BY_OBJECTIVE = {
    "rank:map": Labels(
        "the labels 0 and 1", 0, 1, slack=0, remedy="give y > 0, or objective='rank:ndcg'"
    ),
    **dict.fromkeys(("binary:logistic", "binary:logitraw", "reg:logistic"), SHARES),
    **dict.fromkeys(("count:poisson", "reg:tweedie"), COUNTS),
}


def _stopped_fit(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, arguments: dict[str, Any]
) -> int:
    import xgboost

    read = {
        name: getattr(estimator, name)
        for name in ("missing", "enable_categorical", "feature_types")
    }
    matrix = xgboost.DMatrix(watch.held_out.X, nthread=estimator.n_jobs, **read)

    class Stop(xgboost.callback.TrainingCallback):  # type: ignore[misc]
        """Checks after each iteration. XGBoost caches predictions of a matrix, so only the new tree is evaluated."""

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - their signature
            stop = watch.noted(epoch, watch.value(model.predict(matrix, output_margin=True)))
            model.set_attr(best_iteration=str(watch.best_iteration), best_score=str(watch.best))
            return stop

    theirs = estimator.callbacks, estimator.early_stopping_rounds
    estimator.callbacks, estimator.early_stopping_rounds = [*(theirs[0] or ()), Stop()], None
    estimator.fit(rows.X, rows.y, **arguments)
    # The callback holds the held-out rows, which must not stay in a fitted model.
    estimator.callbacks, estimator.early_stopping_rounds = theirs
    return watch.best_iteration + 1


def _labels(
    estimator: Any, objective: Any, _held: NDArray[np.float32], is_watched: bool
) -> Labels | None:
    if is_watched:
        return None
    gain = str(estimator.get_params().get("ndcg_exp_gain")).lower()
    if objective == "rank:ndcg" and gain not in ("false", "0"):
        remedy = "give ndcg_exp_gain=False, by which XGBoost takes all labels, or grade them"
        return Labels("whole labels from 0 to 31", 0, 31, slack=1e-6, remedy=remedy)
    return _BY_OBJECTIVE.get(str(objective))


def _set_threads(estimator: Any, threads: int | None) -> None:
    estimator.n_jobs = threads
    if estimator.__sklearn_is_fitted__():
        # Its trees keep the number that they were grown with, and predict with it.
        estimator.get_booster().set_param({"nthread": threads or 0})


def _saved(estimator: Any) -> Any:
    """Return the estimator, unless it has a ``missing`` of its own: the file lacks it."""
    missing = estimator.get_params(deep=False).get("missing")
    own = type(estimator).__module__.partition(".")[0] == "xgboost"
    is_plain = missing is None or (isinstance(missing, float) and math.isnan(missing))
    return estimator if own and is_plain else None


class XGBoostMetric(TrainingMetric):
    """Called by XGBoost as ``custom_metric(scores, matrix)``."""

    _maker = __name__ = "xgboost_metric"
    """XGBoost's scikit-learn classes ask for it before they call."""

    def __call__(self, score: Any, matrix: Any, **_arguments: Any) -> list[tuple[str, float]]:
        """Return (name, value) of each measure."""
        if not hasattr(matrix, "get_uint_info"):
            raise InvalidInput(
                "xgboost_metric is for xgboost.train and xgboost.cv: XGBRanker gives its eval_metric no queries; use "
                "QueryRanker(XGBRanker(...), early_stopping_rounds=..., eval_measure=...)"
            )
        bounds = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if len(bounds) < 2:
            raise QueryIdError(
                "this xgboost.DMatrix has no queries: make it with qid= (sorted) or group= (sizes)"
            )
        self._refuse_wrong_direction()
        return self.values(matrix.get_label(), score, np.diff(bounds), matrix.get_weight())

    def _refuse_wrong_direction(self) -> None:
        """Raise if the training around this call stops early by one of these measures in the wrong direction.

        XGBoost tells a metric nothing of it, so the callbacks are read from the frame that calls
        the metric.
        """
        named = {str(measure): measure for measure in self.measures}
        callbacks: list[Any] = []
        for frame, _ in walk_stack(sys._getframe()):  # noqa: SLF001 - as it does itself
            if frame.f_globals.get("__name__") == "xgboost.callback":
                callbacks += getattr(frame.f_locals.get("self"), "callbacks", ())
        for early in (callback for callback in callbacks if hasattr(callback, "maximize")):
            watched = early.metric_name or [*named][-1]  # XGBoost watches the last one
            # Without maximize= it maximises names that begin so, and minimises all others.
            by_name = watched.startswith(("auc", "pre", "map", "ndcg"))
            maximize = by_name if early.maximize is None else bool(early.maximize)
            if watched in named and maximize != named[watched].family.greater_is_better:
                verb = "maximises" if maximize else "minimises"
                found = f"{early.maximize}: early stopping {verb} {watched}"
                remedy = f"give maximize={not maximize}"
                raise InvalidInput(argument="maximize", found=found, remedy=remedy)


add_booster(
    Booster(
        name="xgboost",
        words="XGBoost",
        queries={"qid": "codes", "group": "sizes"},
        stopped_fit=_stopped_fit,
        own_rounds=lambda estimator: estimator.early_stopping_rounds,
        # Dart rescales earlier trees, gblinear has one set of coefficients.
        changes_earlier=(("booster",), ("dart", "gblinear"), "gbtree"),
        query_weight=lambda weight, rows: {"sample_weight": weight[rows.starts]},
        row_weighers="XGBRegressor",
        take_categories=lambda estimator, _: estimator.set_params(enable_categorical=True),
        # XGBoost 3 takes the known category that is next in its order.
        mistakes_unknown=lambda fitted: "c" in (fitted.get_booster().feature_types or ()),
        objective=("objective",),
        labels=_labels,
        decides=("ndcg_exp_gain",),
        unfit_name=r"[][<]",
        unfit_words="[ ] <",
        takes_any_parameter=True,
        threads=("n_jobs", "nthread"),
        set_threads=_set_threads,
        saved=_saved,
        feval=XGBoostMetric,
    )
)
