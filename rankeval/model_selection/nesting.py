"""Fit estimators that hold estimators: a Pipeline down to its last step, a search by metadata routing."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from numbers import Integral
from typing import Any

from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from rankeval.errors import InvalidInput
from rankeval.model_selection import boosters
from rankeval.model_selection.query_split import QuerySplit
from rankeval.model_selection.rows import EarlyStopping, TrainingRows, differing
from rankeval.model_selection.splitters import QueryKFold


def last_of(estimator: Any) -> Any:
    """Return the last step of a Pipeline, nested ones included, or any other estimator itself.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def check_estimator(estimator: Any) -> None:
    """Raise before anything is fitted if an estimator cannot be fitted to queries.

    Parameters
    ----------
    estimator : object
        The argument of `QueryRanker`.

    Raises
    ------
    InvalidInput
        If it is no estimator, or a search that cannot pass the queries on or keeps no estimator to predict with.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        found = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise InvalidInput(f"estimator is {found}; give an estimator, such as LGBMRanker() or Ridge()")
    outer = last_of(estimator)
    if not hasattr(outer, "get_params") or "qid" in signature(outer.fit).parameters:
        return
    params = outer.get_params(deep=False)
    inner = last_of(params.get("estimator"))
    name = type(outer).__name__
    if boosters.is_ranker(inner) and not _consumes(inner, "qid"):
        kind = type(inner).__name__
        raise InvalidInput(
            f"{name} cannot tell {kind} the queries: wrap the ranker, {name}(QueryRanker({kind}(...)), "
            "{'estimator__...': ...})"
        )
    if params.get("refit", True) is False:
        raise InvalidInput(f"{name}(refit=False) keeps no estimator to predict with: leave refit out or name a measure")


def fitted(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None) -> tuple[Any, int | None]:
    """Fit an estimator of any kind; return it with the number of iterations that `predict` uses.

    Parameters
    ----------
    estimator : object
        Any estimator that the caller owns.
    rows : TrainingRows
        The rows.
    watch : EarlyStopping, optional
        If given, stops the training early.
    """
    if isinstance(estimator, Pipeline):
        return _fitted_pipeline(estimator, rows, watch)
    if asks_for_qid(estimator):
        return _fitted_by_routing(estimator, rows, watch), None
    return estimator, boosters.fit(estimator, rows, watch)


def _fitted_pipeline(
    pipeline: Pipeline, rows: TrainingRows, watch: EarlyStopping | None
) -> tuple[Pipeline, int | None]:
    """Fit the steps to the training rows only; held-out and validation rows are only transformed."""
    name, last = pipeline.steps[-1]
    steps: list[Any] = []
    if len(pipeline.steps) > 1:
        head = pipeline[:-1]
        rows = replace(rows, X=head.fit_transform(rows.X, rows.y))
        if rows.validation is not None:
            rows = replace(rows, validation=replace(rows.validation, X=head.transform(rows.validation.X)))
        if watch is not None:
            watch.held_out = replace(watch.held_out, X=head.transform(watch.held_out.X))
        steps = list(head.steps)
    done, n_iterations = fitted(last, rows, watch)
    pipeline.steps = [*steps, (name, done)]
    return pipeline, n_iterations


def asks_for_qid(estimator: Any) -> bool:
    """Return whether only routing can pass ``qid`` on, as in a search over a QueryRanker.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    if boosters.library(estimator) or "qid" in signature(estimator.fit).parameters:
        return False
    return _consumes(estimator, "qid")


def stops_by_itself(estimator: Any) -> bool:
    """Return whether the last step takes a validation part as a QueryRanker does, or is a search over such a step.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    last = last_of(estimator)
    if asks_for_qid(last):
        return _consumes(last, "eval_set")
    return {"eval_set", "eval_qid"} <= set(signature(last.fit).parameters) and not boosters.library(last)


def _consumes(estimator: Any, param: str) -> bool:
    if not hasattr(estimator, "get_metadata_routing"):
        return False
    with config_context(enable_metadata_routing=True):
        return param in get_routing_for_object(estimator).consumes("fit", [param])


def _fitted_by_routing(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None) -> Any:
    if watch is not None:
        raise InvalidInput(
            f"early stopping belongs inside {type(estimator).__name__}: leave it out of the QueryRanker around it"
        )
    params = estimator.get_params(deep=False)
    if "cv" in params:
        # The inner folds must not split a query either.
        estimator.set_params(cv=_by_query(params["cv"]))
    told: dict[str, Any] = {"qid": rows.ids}
    if rows.weight is not None:
        by_query = not len(differing(rows.weight, rows.codes))
        _ask_for_weights(params.get("estimator"), score=by_query)
        told["sample_weight"] = rows.weight
    if rows.groups is not None and _consumes(estimator, "groups"):
        told["groups"] = rows.groups
    told |= boosters.told_validation(rows)
    with config_context(enable_metadata_routing=True):
        return estimator.fit(rows.X, rows.y, **told)


def _ask_for_weights(estimator: Any, *, score: bool) -> None:
    """If weights are unrequested, route them to the last step, as outside of a search; to `score` too if asked."""
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    with config_context(enable_metadata_routing=True):
        for step in steps:
            requests = step.get_metadata_routing() if hasattr(step, "get_metadata_routing") else None
            for method in ("fit", "score"):
                asked = getattr(getattr(requests, method, None), "requests", {})
                if asked.get("sample_weight", False) is None:
                    getattr(step, f"set_{method}_request")(
                        sample_weight=step is steps[-1] and (score or method == "fit")
                    )


def _by_query(cv: Any) -> Any:
    if cv is None or isinstance(cv, Integral):
        return QueryKFold(5 if cv is None else int(cv))
    return QuerySplit(cv) if hasattr(cv, "split") and not isinstance(cv, QuerySplit) else cv


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise unless X is a table with rows and columns, in scikit-learn's words.

    Parameters
    ----------
    shape : tuple of int
        The shape of X.

    Raises
    ------
    InvalidInput
        If X has another number of dimensions, or no row or column.
    """
    if len(shape) != 2:
        raise InvalidInput(
            f"Expected 2D array, got X of shape {shape}. Reshape your data with X.reshape(-1, 1) if it has a single "
            "feature, or X.reshape(1, -1) if it is a single row"
        )
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InvalidInput(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
