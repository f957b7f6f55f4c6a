"""Fit LightGBM, XGBoost and CatBoost to queries, and stop them early by our measures.

Each library wants the queries in its own form::

    LightGBM    group      sizes of consecutive queries
    XGBoost     qid        ids in non-decreasing order; one weight per query
    CatBoost    group_id   ids in blocks; a weight per row for some of its losses, one per query for all
    others      -          no queries

The module of a class tells its library, so no library is imported that the caller has not imported.

Early stopping watches our measure on other queries: by an evaluation function in LightGBM, a
callback in XGBoost (its own ranking metrics call back once per query, a thousand times slower), and
a metric object in CatBoost. CatBoost gives such an object no groups, but the held-out rows keep
their order, so the groups are known here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankeval._checks import refuse
from rankeval.errors import InvalidInput
from rankeval.model_selection import limits
from rankeval.model_selection.category_columns import categories_of
from rankeval.model_selection.query_ids import differing
from rankeval.model_selection.rows import EarlyStopping, TrainingRows, as_arguments


def library(estimator: Any) -> str:
    """Return the library of an estimator, or an empty string for any other than the three."""
    roots = (cls.__module__.partition(".")[0] for cls in type(estimator).__mro__)
    return next((root for root in roots if root in _STOPPED_FITS), "")


def is_ranker(estimator: Any) -> bool:
    """Return whether this is a ranker of a library, which needs the queries."""
    return bool(library(estimator)) and bool(_TOLD & set(signature(estimator.fit).parameters))


def own_rounds(estimator: Any) -> int | None:
    """Return the rounds of early stopping that the parameters of a booster ask for, or None."""
    name = library(estimator)
    params = estimator.get_params() if name else {}
    given = [params[param] for param in _OWN_ROUNDS.get(name, ()) if params.get(param) is not None]
    if name == "lightgbm":
        given = [rounds for rounds in given if rounds > 0]  # 0 and below switch it off
    if name == "catboost":
        way = "give QueryRanker early_stopping_rounds, or CatBoost od_wait"
        refuse((bool(params.get("od_pval")), f"CatBoost's od_pval cannot be honoured: {way}"))
        if params.get("od_type") == "IncToDec":
            return None  # without od_pval this never stops
        if params.get("od_type") == "Iter":
            given.append(20)  # CatBoost's default of od_wait
    return next(iter(given), None)


def refuse_no_earlier_model(estimator: Any) -> None:
    """Raise if a booster changes its earlier iterations, so that `predict` cannot go back to the best one."""
    names, kinds, other = _NO_EARLIER_MODEL.get(library(estimator), ((), (), ""))
    params = estimator.get_params() if names else {}
    for name in names:
        if params.get(name) in kinds:
            raise InvalidInput(
                f"cannot stop early with {type(estimator).__name__}({name}={params[name]!r}): later iterations change "
                f"the model of earlier ones; leave early stopping out, or give {name}={other!r}"
            )


def fit(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None = None) -> int | None:
    """Fit an estimator in place, with the queries in the form of its library."""
    name = library(estimator)
    kind = type(estimator).__name__
    other = f"only LightGBM, XGBoost and CatBoost can stop early, found {kind}: leave early_stopping_rounds out"
    refuse((watch is not None and not name, other))
    takes = set(signature(estimator.fit).parameters)
    learns = name == "lightgbm" and "group" in takes and estimator.objective in (None, "lambdarank")
    refuse_position(rows, estimator, taken=learns or "position" in takes)
    if categories := [*categories_of(rows.X)]:  # LightGBM looks for them itself
        if name == "xgboost":
            estimator.set_params(enable_categorical=True)
        elif name == "catboost" and estimator.get_params().get("cat_features") is None:
            estimator.set_params(cat_features=categories)
    if name:
        limits.refuse_columns(name, estimator, rows.X)
    rows = rows.in_blocks() if takes & _TOLD else rows
    told = _queries(estimator, rows, takes) | _weights(estimator, rows, takes)
    if name == "lightgbm" and rows.position is not None:
        told["callbacks"] = [_positions(rows.position)]  # a class of somebody's own may not take it
    elif rows.position is not None:
        told["position"] = rows.position
    if watch is not None:
        return _STOPPED_FITS[name](estimator, rows, watch, told)
    estimator.fit(rows.X, rows.y, **told, **({} if name else as_arguments(rows.validation)))
    return None


def refuse_position(rows: TrainingRows, estimator: Any, *, taken: bool) -> None:
    """Refuse positions for an estimator that learns nothing from them."""
    if rows.position is not None and not taken:
        raise InvalidInput(
            argument="position",
            found=f"positions for {type(estimator).__name__}",
            expected='them for LGBMRanker with the objective "lambdarank" alone',
            remedy="leave them out; XGBRanker(lambdarank_unbiased=True) takes the order of rows in a query instead",
        )


def _queries(estimator: Any, rows: TrainingRows, takes: set[str]) -> dict[str, Any]:
    """Return the argument that tells ``fit`` the queries of these rows."""
    name = library(estimator)
    if name == "catboost":
        return {"group_id": rows.codes} if "group_id" in takes else {}
    if "qid" in takes and name != "lightgbm":
        return {"qid": rows.codes if name else rows.qid}
    return {"group": rows.sizes} if "group" in takes else {}


def _weights(estimator: Any, rows: TrainingRows, takes: set[str]) -> dict[str, Any]:
    """Return the argument that tells ``fit`` the weights, by row or by query."""
    if rows.sample_weight is None:
        return {}
    name, kind, odd = (
        library(estimator),
        type(estimator).__name__,
        differing(rows.sample_weight, rows.codes),
    )
    by_row = name != "xgboost" or "qid" not in takes
    if name == "catboost" and "group_id" in takes:
        loss = str(estimator.get_params().get("loss_function")).partition(":")[0]
        by_row = loss in _WEIGHS_ROWS and len(odd) > 0
    if by_row:
        refuse(("sample_weight" not in takes, f"{kind} takes no sample_weight: leave it out"))
        return {"sample_weight": rows.sample_weight}
    if len(odd):
        others = (
            "XGBRegressor" if name == "xgboost" else "Its losses RMSE, QueryRMSE and QuerySoftMax"
        )
        raise InvalidInput(
            f"sample_weight differs within query {rows.qid[odd].tolist()[0]!r}, and {kind} takes one weight per query: "
            f"repeat it on the query's rows. {others}, LGBMRanker and regressors take a weight per row"
        )
    return (
        {"sample_weight": rows.sample_weight[rows.starts]}
        if name == "xgboost"
        else {"group_weight": rows.sample_weight}
    )


def _stop_lightgbm(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, told: dict[str, Any]
) -> int:
    import lightgbm

    held_out = watch.held_out
    # LightGBM 4.7 renamed eval_set.
    pair, renamed = (held_out.X, held_out.y), "eval_X" in signature(estimator.fit).parameters
    told |= dict(zip(("eval_X", "eval_y"), pair, strict=True)) if renamed else {"eval_set": [pair]}
    told |= {"eval_group": [held_out.sizes]} if "group" in told else {}
    name = str(watch.measure)

    def stop(env: Any) -> None:
        # lightgbm.early_stopping looks at all metrics, those of its own too.
        value = next(found[2] for found in env.evaluation_result_list if found[1] == name)
        if watch.noted(env.iteration, value) or env.iteration + 1 == env.end_iteration:
            raise lightgbm.EarlyStopException(watch.best_iteration, env.evaluation_result_list)

    told["callbacks"] = [*told.get("callbacks", ()), stop]
    told["eval_metric"] = lambda _, score: (name, watch.value(score), watch.greater_is_better)
    # Its own patience could stop the training before ours does.
    before = estimator.get_params()
    theirs = {rounds: before[rounds] for rounds in _OWN_ROUNDS["lightgbm"] if rounds in before}
    estimator.set_params(**dict.fromkeys(theirs)).fit(rows.X, rows.y, **told)
    estimator.set_params(**theirs)
    return int(estimator.best_iteration_)


def _positions(position: NDArray[np.int32]) -> Callable[[Any], None]:
    """Return a callback of LightGBM by which it trains on these positions, which its ``fit`` does not take.

    A data set takes them, but the booster has read it when the first callback is called. So the
    booster is made again. Its ``reset_parameter`` would read them too, but draw the columns of each
    tree from other random numbers.
    """

    def give(env: Any) -> None:
        booster = env.model
        if env.iteration > env.begin_iteration:
            return
        train, watched = (
            booster.train_set,
            list(zip(booster.valid_sets, booster.name_valid_sets, strict=True)),
        )
        train.set_position(position)
        booster.__del__()  # frees the memory of the first one
        booster.__init__(env.params, train)
        booster.best_iteration = 0  # as lightgbm.train sets it
        for held_out, name in watched:
            booster.add_valid(held_out, name)

    # LightGBM's protocol of callbacks.
    give.before_iteration = True  # type: ignore[attr-defined]
    return give


def _stop_xgboost(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, told: dict[str, Any]
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
    estimator.fit(rows.X, rows.y, **told)
    # The callback holds the held-out rows, which must not stay in a fitted model.
    estimator.callbacks, estimator.early_stopping_rounds = theirs
    return watch.best_iteration + 1


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


def _stop_catboost(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping, told: dict[str, Any]
) -> int:
    import catboost

    held_out, params = watch.held_out, estimator.get_params()
    features = {name: params[name] for name in ("cat_features", "text_features") if name in params}
    groups = {"group_id": held_out.codes} if "group_id" in told else {}
    pool = catboost.Pool(held_out.X, held_out.y, **groups, **features)
    estimator.set_params(eval_metric=CatBoostMetric(watch))
    estimator.fit(
        rows.X,
        rows.y,
        eval_set=pool,
        early_stopping_rounds=watch.rounds,
        use_best_model=True,
        **told,
    )
    # The metric, and the held-out rows with it, must not stay in a fitted model; set_params refuses
    # fitted ones.
    estimator._init_params, estimator._canonized_params = params, None  # noqa: SLF001 - as above
    watch.best = watch.value(estimator.predict(held_out.X))
    return int(estimator.tree_count_)


_TOLD = frozenset({"group", "qid", "group_id"})
"""Parameters of ``fit`` that take the queries."""

_WEIGHS_ROWS = frozenset(
    (
        "QueryRMSE",
        "QuerySoftMax",
        "RMSE",
        "MAE",
        "Poisson",
        "Lq",
        "Huber",
        "Expectile",
        "Tweedie",
        "LogLinQuantile",
    )
)
"""Losses of CatBoostRanker by which a row of weight 2 is learnt as two rows, which the tests check. MAPE ignores
weights, and losses of pairs or of sampled orders take them for the leaves only."""

_OWN_ROUNDS = {
    "lightgbm": (
        "early_stopping_round",
        "early_stopping_rounds",
        "early_stopping",
        "n_iter_no_change",
    ),
    "xgboost": ("early_stopping_rounds",),
    "catboost": ("early_stopping_rounds", "od_wait"),
}
"""The libraries' parameters for the number of iterations to wait."""

_NO_EARLIER_MODEL = {
    "lightgbm": (("boosting_type", "boosting", "boost"), ("dart",), "gbdt"),
    "xgboost": (("booster",), ("dart", "gblinear"), "gbtree"),
}
"""Parameters by which earlier iterations change: names, values, and a value with which they do not. Dart rescales
earlier trees, gblinear has one set of coefficients."""

_STOPPED_FITS: dict[str, Callable[[Any, TrainingRows, EarlyStopping, dict[str, Any]], int]] = {
    "lightgbm": _stop_lightgbm,
    "xgboost": _stop_xgboost,
    "catboost": _stop_catboost,
}
"""How each library is fitted until our measure gets no better."""


def cloned(estimator: Any) -> Any:
    """Return an unfitted copy with the same parameters."""
    if library(estimator) == "catboost":
        return type(estimator)(**copy.deepcopy(estimator.get_params()))
    if isinstance(estimator, Pipeline):
        empty = copy.copy(estimator)
        empty.steps = []
        copied = clone(empty)
        copied.steps = [(name, cloned(step)) for name, step in estimator.steps]
        return copied
    return clone(estimator, safe=False)
