"""Estimators around estimators: a Pipeline is fitted to its last step, a search is told the queries by routing."""

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
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.splitters import QueryKFold, QuerySplit


def last_of(estimator: Any) -> Any:
    """Return the last step of a Pipeline, however deep; any other estimator itself.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be fitted to queries, before anything is fitted.

    Parameters
    ----------
    estimator : object
        What `QueryRanker` was given.

    Raises
    ------
    InvalidInput
        When it is no estimator, or a search that could not tell its ranker the queries or would keep none.
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
    """Fit an unfitted copy, whatever it is; return it with the number of iterations that predict uses.

    Parameters
    ----------
    estimator : object
        Any estimator that the caller owns.
    rows : TrainingRows
        What to fit on.
    watch : EarlyStopping, optional
        Stops the training early.
    """
    if isinstance(estimator, Pipeline):
        return _fitted_pipeline(estimator, rows, watch)
    if asks_for_qid(estimator):
        return _fitted_by_routing(estimator, rows, watch), None
    return estimator, boosters.fit(estimator, rows, watch)


def _fitted_pipeline(
    pipeline: Pipeline, rows: TrainingRows, watch: EarlyStopping | None
) -> tuple[Pipeline, int | None]:
    """Fit the steps to the rows that are fitted only: held-out rows are transformed by them, not learnt from."""
    name, last = pipeline.steps[-1]
    steps: list[Any] = []
    if len(pipeline.steps) > 1:
        head = pipeline[:-1]
        rows = replace(rows, X=head.fit_transform(rows.X, rows.y))
        if watch is not None and watch.held_out is not None:
            watch.held_out = replace(watch.held_out, X=head.transform(watch.held_out.X))
        steps = list(head.steps)
    done, n_iterations = fitted(last, rows, watch)
    pipeline.steps = [*steps, (name, done)]
    return pipeline, n_iterations


def asks_for_qid(estimator: Any) -> bool:
    """Say whether routing alone takes ``qid`` to where it is needed, as in a search over a QueryRanker.

    Parameters
    ----------
    estimator : object
        Any estimator.
    """
    if boosters.library(estimator) or "qid" in signature(estimator.fit).parameters:
        return False
    return _consumes(estimator, "qid")


def _consumes(estimator: Any, param: str) -> bool:
    if not hasattr(estimator, "get_metadata_routing"):
        return False
    with config_context(enable_metadata_routing=True):
        return param in get_routing_for_object(estimator).consumes("fit", [param])


def _fitted_by_routing(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None) -> Any:
    if watch is not None:
        raise InvalidInput(f"early stopping is set inside of {type(estimator).__name__}: leave it out around it")
    params = estimator.get_params(deep=False)
    if "cv" in params:
        # Rows of one query must not stand on both sides of the inner folds either.
        estimator.set_params(cv=_by_query(params["cv"]))
    told: dict[str, Any] = {"qid": rows.ids}
    if rows.weight is not None:
        _ask_for_weights(params.get("estimator"))
        told["sample_weight"] = rows.weight
    if rows.groups is not None and _consumes(estimator, "groups"):
        told["groups"] = rows.groups
    with config_context(enable_metadata_routing=True):
        return estimator.fit(rows.X, rows.y, **told)


def _ask_for_weights(estimator: Any) -> None:
    """Where nothing was said about weights, let the last step of a Pipeline have them, as outside of a search."""
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    with config_context(enable_metadata_routing=True):
        for step in steps:
            requests = step.get_metadata_routing() if hasattr(step, "get_metadata_routing") else None
            for method in ("fit", "score"):
                asked = getattr(getattr(requests, method, None), "requests", {})
                if asked.get("sample_weight", False) is None:
                    getattr(step, f"set_{method}_request")(sample_weight=step is steps[-1])


def _by_query(cv: Any) -> Any:
    if cv is None or isinstance(cv, Integral):
        return QueryKFold(5 if cv is None else int(cv))
    return QuerySplit(cv) if hasattr(cv, "split") and not isinstance(cv, QuerySplit) else cv
