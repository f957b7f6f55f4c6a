"""CatBoost: ids of queries in blocks, weights by row or by query, a metric object for early stopping.

It gives such an object no groups, but the held-out rows keep their order, so the groups are known.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import refuse
from rankeval.model_selection.libraries import COUNTS, Booster, Labels, add_booster
from rankeval.model_selection.rows import EarlyStopping, TrainingRows

_OF_ROWS = ("RMSE", "MAE", "Poisson", "Lq", "Huber", "Expectile", "Tweedie", "LogLinQuantile")
WEIGHS_ROWS = frozenset(("QueryRMSE", "QuerySoftMax", *_OF_ROWS))
"""Losses of CatBoostRanker by which a row of weight 2 is learnt as two rows, which the tests check. MAPE ignores
weights, and losses of pairs or of sampled orders take them for the leaves only."""


def _own_rounds(estimator: Any) -> int | None:
    params = estimator.get_params()
    remedy = "give QueryRanker early_stopping_rounds, or CatBoost od_wait"
    refuse((bool(params.get("od_pval")), f"CatBoost's od_pval cannot be honoured: {remedy}"))
    if params.get("od_type") == "IncToDec":
        return None  # without od_pval this never stops
    default = 20 if params.get("od_type") == "Iter" else None  # of od_wait
    patiences = (params.get("early_stopping_rounds"), params.get("od_wait"), default)
    return next((rounds for rounds in patiences if rounds is not None), None)


class CatBoostMetric:
    """An `EarlyStopping` as a metric of CatBoost, which calls it on training rows too: they get 0."""

    no_jit = True
    """Without this CatBoost tries to compile the methods with numba, fails and warns."""

    def __init__(self, watch: EarlyStopping) -> None:
        self.watch = watch

    def is_max_optimal(self) -> bool:
        """Return whether higher is better."""
        return self.watch.greater_is_better

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:  # noqa: ARG002 - their signature
        """Return the measure on the held-out rows, 0 on others, and the weight 1."""
        rows = self.watch.held_out
        if len(target) != len(rows.y) or not np.array_equal(
            np.asarray(target, rows.y.dtype), rows.y
        ):
            return 0.0, 1.0
        return self.watch.value(approxes[0]), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value over the weight."""
        return error / weight


def _stopped_fit(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, arguments: dict[str, Any]
) -> int:
    import catboost

    held_out, params = watch.held_out, estimator.get_params()
    features = {name: params[name] for name in ("cat_features", "text_features") if name in params}
    groups = {"group_id": held_out.codes} if "group_id" in arguments else {}
    pool = catboost.Pool(held_out.X, held_out.y, **groups, **features)
    estimator.set_params(eval_metric=CatBoostMetric(watch))
    estimator.fit(
        rows.X,
        rows.y,
        eval_set=pool,
        early_stopping_rounds=watch.rounds,
        use_best_model=True,
        **arguments,
    )
    # The metric, and the held-out rows with it, must not stay in a fitted model; set_params refuses
    # fitted ones.
    estimator._init_params, estimator._canonized_params = params, None  # noqa: SLF001 - as above
    watch.best = watch.value(estimator.predict(held_out.X))
    return int(estimator.tree_count_)


def _loss(name: Any) -> str:
    return str(name).partition(":")[0]


def _take_categories(estimator: Any, categories: list[Any]) -> None:
    if estimator.get_params().get("cat_features") is None:
        estimator.set_params(cat_features=categories)


def _labels(
    estimator: Any, objective: Any, _held: NDArray[np.float32], is_watched: bool
) -> Labels | None:
    if is_watched:
        return None
    taken = COUNTS if _loss(objective) == "QuerySoftMax" else None
    if estimator.get_params().get("allow_const_label"):
        return taken
    return (taken or Labels("all labels", -np.inf))._replace(must_differ=True)


def _importances(estimator: Any) -> Any:
    # Its own attribute needs the training data for rankers, and is None without.
    return np.asarray(estimator.get_feature_importance(type="PredictionValuesChange"))


add_booster(
    Booster(
        name="catboost",
        words="CatBoost",
        queries={"group_id": "codes"},
        stopped_fit=_stopped_fit,
        own_rounds=_own_rounds,
        query_weight=lambda weight, _: {"group_weight": weight},
        weighs_rows=lambda fitted: _loss(fitted.get_params().get("loss_function")) in WEIGHS_ROWS,
        row_weighers="Its losses RMSE, QueryRMSE and QuerySoftMax",
        take_categories=_take_categories,
        objective=("loss_function", "objective"),
        labels=_labels,
        decides=("allow_const_label",),
        takes_objects=True,
        seed="random_seed",
        takes_missing_categories=False,
        importances=_importances,
        copied=lambda estimator: type(estimator)(**copy.deepcopy(estimator.get_params())),
    )
)
