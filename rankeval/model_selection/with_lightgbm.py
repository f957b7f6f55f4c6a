"""LightGBM: sizes of consecutive queries, an evaluation function for early stopping, positions by a callback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import QueryIdError
from rankeval.model_selection.libraries import COUNTS, SHARES, Booster, Labels, add_booster
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.training_metrics import TrainingMetric

_PATIENCE = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")
_RANKING = {"lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart", "ndcg"}
"""Objectives and metrics that take a label as a place in ``label_gain``."""
_METRIC = ("metrics", "metric_types", "metric")
"""Names of a parameter: another name that is given wins over that of the classes."""
_BY_OBJECTIVE = {
    **dict.fromkeys(("poisson", "tweedie"), COUNTS),
    **dict.fromkeys(("cross_entropy", "xentropy", "cross_entropy_lambda", "xentlambda"), SHARES),
    "gamma": Labels("labels above 0", float(np.finfo(np.float32).smallest_subnormal)),
}
_MOST_ROWS = 10_000
"""The rows of a query that LightGBM takes where it ranks."""


def _own_rounds(estimator: Any) -> int | None:
    params = estimator.get_params()
    patiences = [params[name] for name in _PATIENCE if params.get(name) is not None]
    return next((rounds for rounds in patiences if rounds > 0), None)  # 0 and below switch it off


def _stopped_fit(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, arguments: dict[str, Any]
) -> int:
    import lightgbm

    held_out = watch.held_out
    # LightGBM 4.7 renamed eval_set.
    pair, renamed = (held_out.X, held_out.y), "eval_X" in signature(estimator.fit).parameters
    arguments |= (
        dict(zip(("eval_X", "eval_y"), pair, strict=True)) if renamed else {"eval_set": [pair]}
    )
    arguments |= {"eval_group": [held_out.sizes]} if "group" in arguments else {}
    name = str(watch.measure)

    def stop(env: Any) -> None:
        # lightgbm.early_stopping looks at all metrics, those of its own too.
        value = next(found[2] for found in env.evaluation_result_list if found[1] == name)
        if watch.noted(env.iteration, value) or env.iteration + 1 == env.end_iteration:
            raise lightgbm.EarlyStopException(watch.best_iteration, env.evaluation_result_list)

    arguments["callbacks"] = [*arguments.get("callbacks", ()), stop]
    arguments["eval_metric"] = lambda _, score: (name, watch.value(score), watch.greater_is_better)
    # Its own patience could stop the training before ours does.
    before = estimator.get_params()
    theirs = {rounds: before[rounds] for rounds in _PATIENCE if rounds in before}
    estimator.set_params(**dict.fromkeys(theirs)).fit(rows.X, rows.y, **arguments)
    estimator.set_params(**theirs)
    return int(estimator.best_iteration_)


def _positions(estimator: Any, position: NDArray[np.int32]) -> dict[str, Any] | None:
    if not _is_ranker(estimator) or estimator.objective not in (None, "lambdarank"):
        return None
    return {"callbacks": [_trained_on(position)]}


def _is_ranker(estimator: Any) -> bool:
    return "group" in signature(estimator.fit).parameters


def _trained_on(position: NDArray[np.int32]) -> Callable[[Any], None]:
    """Return a callback of LightGBM by which it trains on these positions, which its ``fit`` does not take.

    A data set takes them, but the booster has read it when the first callback is called. So the
    booster is made again. Its ``reset_parameter`` would read them too, but draw the columns of each
    tree from other random numbers.
    """

    def give(env: Any) -> None:
        booster = env.model
        if env.iteration > env.begin_iteration:
            return
        train = booster.train_set
        watched = list(zip(booster.valid_sets, booster.name_valid_sets, strict=True))
        train.set_position(position)
        booster.__del__()  # frees the memory of the first one
        booster.__init__(env.params, train)
        booster.best_iteration = 0  # as lightgbm.train sets it
        for held_out, name in watched:
            booster.add_valid(held_out, name)

    # LightGBM's protocol of callbacks.
    give.before_iteration = True  # type: ignore[attr-defined]
    return give


def _labels(
    estimator: Any, objective: Any, held: NDArray[np.float32], is_watched: bool
) -> Labels | None:
    """Return the labels that are taken: of rows that are only watched, its own metric reads them."""
    params = estimator.get_params()
    if _ranks(estimator, params, objective, is_watched=is_watched):
        return _of_gains(params, held)
    return None if is_watched else _BY_OBJECTIVE.get(str(objective))


def _ranks(estimator: Any, params: Mapping[str, Any], objective: Any, *, is_watched: bool) -> bool:
    """Return whether it takes labels as places in ``label_gain``, for its objective or a metric."""
    is_ranker = _is_ranker(estimator)
    objective = "lambdarank" if objective is None and is_ranker else objective
    default = "ndcg" if is_ranker and (callable(objective) or str(objective) in _RANKING) else ""
    metric = next((params[name] for name in _METRIC if name in params), default)
    metrics = metric.split(",") if isinstance(metric, str) else metric
    names = [
        *(metrics if isinstance(metrics, Collection) else ()),
        *(() if is_watched else (objective,)),
    ]
    return any(isinstance(name, str) and name.strip() in _RANKING for name in names)


def _of_gains(params: Mapping[str, Any], held: NDArray[np.float32]) -> Labels:
    """Return the labels that have a gain."""
    gains = params.get("label_gain")
    gains = gains.split(",") if isinstance(gains, str) else gains
    n_gains = 31 if gains is None or not len(gains) else len(gains)
    top, remedy = held.max(), "grade the labels"
    if (held == np.floor(held)).all() and held.min() >= 0 and top < 1000:
        remedy = f"give label_gain=, a gain for each grade, such as list(range({top + 1:.0f})), or grade the labels"
    words = f"whole labels from 0 to {n_gains - 1}"
    return Labels(words, 0, n_gains - 1, slack=0, remedy=remedy, most_rows=_MOST_ROWS)


class LightGBMFeval(TrainingMetric):
    """Called by LightGBM as ``feval(scores, dataset)``, or as scikit-learn's ``eval_metric(y, scores, weight, group)``.

    LightGBM counts the parameters: its scikit-learn classes give all four of them to a function of
    four.
    """

    _maker = "lightgbm_feval"

    def __call__(
        self, score: Any, dataset: Any, weight: Any = None, group: Any = None
    ) -> list[tuple[str, float, bool]]:
        """Return (name, value, higher is better) of each measure."""
        if hasattr(dataset, "get_group"):
            y, weight, group = dataset.get_label(), dataset.get_weight(), dataset.get_group()
        else:
            y, score = score, dataset
        if group is None:
            raise QueryIdError(
                "this lightgbm.Dataset has no queries: make it with group=, the sizes of the queries"
            )
        values = self.values(y, score, np.asarray(group, dtype=np.int64), weight)
        higher = [measure.family.greater_is_better for measure in self.measures]
        return [(*value, better) for value, better in zip(values, higher, strict=True)]


add_booster(
    Booster(
        name="lightgbm",
        words="LightGBM",
        queries={"group": "sizes"},
        stopped_fit=_stopped_fit,
        own_rounds=_own_rounds,
        # Dart rescales earlier trees.
        changes_earlier=(("boosting_type", "boosting", "boost"), ("dart",), "gbdt"),
        positions=_positions,
        objective=("objective_type", "app", "application", "loss", "objective"),
        labels=_labels,
        decides=(*_METRIC, "label_gain"),
        column_name=lambda name: name.replace(" ", "_"),
        unfit_name=r'[][{}",:\n\r]|\A\Z',
        unfit_words='[ ] { } " , : or ends of lines',
        takes_float_categories=True,
        takes_any_parameter=True,
        threads=("n_jobs", "num_threads", "num_thread", "nthread", "nthreads"),
        reads_omp=False,
        saved=lambda estimator: getattr(estimator, "booster_", estimator),
        feval=LightGBMFeval,
    )
)
