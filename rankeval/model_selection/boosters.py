"""Fit LightGBM, XGBoost and CatBoost to queries, and stop them early by our measures.

Each library wants the queries in its own form::

    LightGBM    group      sizes of consecutive queries
    XGBoost     qid        ids in non-decreasing order; one weight per query
    CatBoost    group_id   ids in blocks; a weight per row for some of its losses, one per query for all
    others      -          no queries

The forms are declared in `with_lightgbm`, `with_xgboost` and `with_catboost`. The module of a class
tells its library, so no library is imported that the caller has not imported. Early stopping
watches our measure on other queries.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from inspect import signature
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankeval._checks import refuse
from rankeval.errors import InvalidInput

# Each of these declares its library.
from rankeval.model_selection import with_lightgbm, with_xgboost, with_catboost  # isort: skip # noqa: F401
from rankeval.model_selection import limits
from rankeval.model_selection.category_columns import categories_of
from rankeval.model_selection.libraries import BOOSTERS as BOOSTERS  # noqa: PLC0414 - filled here
from rankeval.model_selection.libraries import OTHER, Booster
from rankeval.model_selection.query_ids import differing
from rankeval.model_selection.rows import EarlyStopping, TrainingRows, as_arguments


def booster_of(estimator: Any) -> Booster:
    """Return the library of an estimator, or `OTHER`, which is false."""
    roots = (cls.__module__.partition(".")[0] for cls in type(estimator).__mro__)
    return next((BOOSTERS[root] for root in roots if root in BOOSTERS), OTHER)


def is_ranker(estimator: Any) -> bool:
    """Return whether this is a ranker of a library, which needs the queries."""
    return bool(booster_of(estimator)) and _reads_queries(signature(estimator.fit).parameters)


def _reads_queries(parameters: Iterable[str]) -> bool:
    return any(name in parameters for booster in BOOSTERS.values() for name in booster.queries)


def refuse_no_earlier_model(estimator: Any) -> None:
    """Raise if a booster changes its earlier iterations, so that `predict` cannot go back to the best one."""
    names, kinds, other = booster_of(estimator).changes_earlier
    params = estimator.get_params() if names else {}
    for name in names:
        if params.get(name) in kinds:
            raise InvalidInput(
                f"cannot stop early with {type(estimator).__name__}({name}={params[name]!r}): later iterations change "
                f"the model of earlier ones; leave early stopping out, or give {name}={other!r}"
            )


def fit(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None = None) -> int | None:
    """Fit an estimator in place, with the queries in the form of its library."""
    booster = booster_of(estimator)
    takes = set(signature(estimator.fit).parameters)
    rows = rows.in_blocks() if _reads_queries(takes) else rows
    arguments = _positions(booster, estimator, rows, takes)
    if booster:
        if categories := [*categories_of(rows.X)]:
            booster.take_categories(estimator, categories)
        limits.refuse_columns(booster, estimator, rows.X)
    arguments |= _queries(booster, rows, takes) | _weights(booster, estimator, rows, takes)
    if watch is not None:
        return booster.stopped_fit(estimator, rows, watch, arguments)
    if not booster:
        arguments |= as_arguments(rows.validation)
    estimator.fit(rows.X, rows.y, **arguments)
    return None


def _positions(
    booster: Booster, estimator: Any, rows: TrainingRows, takes: set[str]
) -> dict[str, Any]:
    """Return the arguments that tell ``fit`` the positions of rows."""
    if rows.position is None:
        return {}
    arguments = booster.positions(estimator, rows.position)
    if arguments is None and "position" in takes:
        arguments = {"position": rows.position}
    refuse_position(rows, estimator, taken=arguments is not None)
    return arguments or {}


def refuse_position(rows: TrainingRows, estimator: Any, *, taken: bool) -> None:
    """Refuse positions for an estimator that learns nothing from them."""
    if rows.position is not None and not taken:
        raise InvalidInput(
            argument="position",
            found=f"positions for {type(estimator).__name__}",
            expected='them for LGBMRanker with the objective "lambdarank" alone',
            remedy="leave them out; XGBRanker(lambdarank_unbiased=True) takes the order of rows in a query instead",
        )


def _queries(booster: Booster, rows: TrainingRows, takes: set[str]) -> dict[str, Any]:
    """Return the argument that tells ``fit`` the queries of these rows."""
    columns = booster.queries.items()
    return next(({name: getattr(rows, column)} for name, column in columns if name in takes), {})


def _weights(
    booster: Booster, estimator: Any, rows: TrainingRows, takes: set[str]
) -> dict[str, Any]:
    """Return the argument that tells ``fit`` the weights, by row or by query."""
    if rows.sample_weight is None:
        return {}
    kind = type(estimator).__name__
    odd = differing(rows.sample_weight, rows.codes)
    query_weight = booster.query_weight if next(iter(booster.queries)) in takes else None
    if query_weight is None or (len(odd) and booster.weighs_rows(estimator)):
        refuse(("sample_weight" not in takes, f"{kind} takes no sample_weight: leave it out"))
        return {"sample_weight": rows.sample_weight}
    if not len(odd):
        return query_weight(rows.sample_weight, rows)
    raise InvalidInput(
        f"sample_weight differs within query {rows.qid[odd].tolist()[0]!r}, and {kind} takes one weight per query: "
        f"repeat it on the query's rows. {booster.row_weighers}, LGBMRanker and regressors take a weight per row"
    )


def cloned(estimator: Any) -> Any:
    """Return an unfitted copy with the same parameters."""
    if own := booster_of(estimator).copied:
        return own(estimator)
    if isinstance(estimator, Pipeline):
        empty = copy.copy(estimator)
        empty.steps = []
        copied = clone(empty)
        copied.steps = [(name, cloned(step)) for name, step in estimator.steps]
        return copied
    return clone(estimator, safe=False)
