"""Fit estimators that hold estimators: a Pipeline down to its last step, searches and ensembles by metadata routing.

`features_for` brings the features of the rows into a form that the last step takes, without the
column of query ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from rankeval._checks import refuse, shown
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.io.columns import refuse_ragged
from rankeval.model_selection import boosters
from rankeval.model_selection.query_ids import without_ids
from rankeval.model_selection.rows import EarlyStopping, TrainingRows, as_arguments
from rankeval.model_selection.splitters import by_query


def last_of(estimator: Any) -> Any:
    """Return the last step of a Pipeline, nested ones included, or any other estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def keeps_unknown(estimator: Any) -> bool:
    """Return whether an estimator may see categories that training had not. With XGBoost inside they must be missing.

    XGBoost 3 takes an unknown category for the known one that is next in its order, and raises only
    if there is none. The other libraries, and the steps of a Pipeline before an XGBoost without
    categories, have rules of their own.
    """
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    parts = (estimator, *params.values())
    if not any(boosters.booster_of(part).mistakes_unknown for part in parts):
        return True
    last = last_of(estimator)
    mistakes = boosters.booster_of(last).mistakes_unknown
    if last is estimator or mistakes is None or not last.__sklearn_is_fitted__():
        return False
    return not mistakes(last)


def check_estimator(estimator: Any) -> None:
    """Raise before anything is fitted if an estimator cannot be fitted to queries."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        found = (
            f"the class {estimator.__name__}" if isinstance(estimator, type) else shown(estimator)
        )
        raise InvalidInput(
            f"estimator is {found}; give an estimator, such as LGBMRanker() or Ridge()"
        )
    outer = last_of(estimator)
    if not hasattr(outer, "get_params") or "qid" in signature(outer.fit).parameters:
        return
    params = outer.get_params(deep=False)
    inner = last_of(params.get("estimator"))
    name = type(outer).__name__
    kind = type(inner).__name__
    way = f"wrap the ranker, {name}(QueryRanker({kind}(...)), {{'estimator__...': ...}})"
    is_untold = boosters.is_ranker(inner) and not _consumes(inner, "qid")
    refuse((is_untold, f"{name} cannot pass the queries to {kind}: {way}"))
    no_model = (
        f"{name}(refit=False) keeps no estimator to predict with: leave refit out or name a measure"
    )
    refuse((params.get("refit", True) is False, no_model))
    for search in (outer, inner):
        _check_final(search)


def _check_final(stack: Any) -> None:
    params = _own_params(stack)
    if "final_estimator" not in params or not asks_for_qid(stack):
        return
    last = params["final_estimator"]
    if not _takes_qid(last):
        name = type(stack).__name__
        kind = "RidgeCV" if last is None else type(last).__name__
        raise InvalidInput(
            f"{name} passes qid on to its final_estimator, and {kind} takes none: give "
            f"final_estimator=QueryRanker({kind}(...))"
        )


def _own_params(estimator: Any) -> dict[str, Any]:
    return dict(estimator.get_params(deep=False)) if hasattr(estimator, "get_params") else {}


def _takes_qid(estimator: Any) -> bool:
    if estimator is None or boosters.booster_of(estimator):
        return False
    return "qid" in signature(estimator.fit).parameters or _consumes(estimator, "qid")


def fitted(
    estimator: Any, rows: TrainingRows, watch: EarlyStopping | None
) -> tuple[Any, int | None]:
    """Fit an estimator of any kind; return it with the number of iterations that `predict` uses."""
    if isinstance(estimator, Pipeline):
        return _fitted_pipeline(estimator, rows, watch)
    with _whole_queries(estimator, rows):
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
            rows = replace(
                rows, validation=replace(rows.validation, X=head.transform(rows.validation.X))
            )
        if watch is not None:
            watch.held_out = replace(watch.held_out, X=head.transform(watch.held_out.X))
        steps = list(head.steps)
    done, n_iterations = fitted(last, rows, watch)
    pipeline.steps = [*steps, (name, done)]
    return pipeline, n_iterations


def asks_for_qid(estimator: Any) -> bool:
    """Return whether only routing can pass ``qid`` on, as in a search over a QueryRanker."""
    if boosters.booster_of(estimator) or "qid" in signature(estimator.fit).parameters:
        return False
    return _consumes(estimator, "qid")


def stops_by_itself(estimator: Any) -> bool:
    """Return whether the last step takes a validation part as a QueryRanker does, or is a search over such a step."""
    last = last_of(estimator)
    if asks_for_qid(last):
        return _consumes(last, "eval_set")
    return {"eval_set", "eval_qid"} <= set(
        signature(last.fit).parameters
    ) and not boosters.booster_of(last)


def _consumes(estimator: Any, param: str) -> bool:
    if not hasattr(estimator, "get_metadata_routing"):
        return False
    with config_context(enable_metadata_routing=True):
        return param in get_routing_for_object(estimator).consumes("fit", [param])


def _fitted_by_routing(estimator: Any, rows: TrainingRows, watch: EarlyStopping | None) -> Any:
    kind = type(estimator).__name__
    refuse(
        (
            watch is not None,
            f"early stopping belongs inside {kind}: leave it out of the QueryRanker around it",
        )
    )
    arguments: dict[str, Any] = {"qid": rows.qid}
    if rows.sample_weight is not None:
        _ask_for_weights(estimator)
        arguments["sample_weight"] = rows.sample_weight
    # Groups go to the splitter of a search, and to a QueryRanker inside that asks for them.
    for name in ("groups", "query_weight", "position"):
        column = getattr(rows, name)
        if column is not None and _consumes(estimator, name):
            arguments[name] = column
    boosters.refuse_position(rows, estimator, taken="position" in arguments)
    arguments |= as_arguments(rows.validation)
    with config_context(enable_metadata_routing=True):
        return estimator.fit(rows.X, rows.y, **arguments)


def _ask_for_weights(estimator: Any, *, fit: bool = True) -> None:
    """Request weights of rows for `fit` if nobody requested or declined them; decline them for `score`.

    Of a Pipeline the last step gets them, as outside of a search. All inner estimators of any other
    estimator do.
    """
    if isinstance(estimator, Pipeline):
        *head, last = [step for _, step in estimator.steps]
        for step in head:
            _ask_for_weights(step, fit=False)
        _ask_for_weights(last, fit=fit)
        return
    requests = (
        estimator.get_metadata_routing() if hasattr(estimator, "get_metadata_routing") else None
    )
    if not isinstance(requests, MetadataRequest):
        for inner in _inside(estimator):
            _ask_for_weights(inner, fit=fit)
        return
    with config_context(enable_metadata_routing=True):
        for method, wanted in (("fit", fit), ("score", False)):
            if getattr(requests, method).requests.get("sample_weight", False) is None:
                getattr(estimator, f"set_{method}_request")(sample_weight=wanted)


def _inside(estimator: Any) -> Iterator[Any]:
    for value in _own_params(estimator).values():
        named = isinstance(value, list) and all(
            isinstance(pair, tuple) and len(pair) > 1 for pair in value
        )
        for part in [pair[1] for pair in value] if named else [value]:
            if hasattr(part, "fit") and not isinstance(part, type):
                yield part


@contextmanager
def _whole_queries(estimator: Any, rows: TrainingRows) -> Iterator[None]:
    """Let an estimator with folds of its own keep queries whole in them.

    It gets the row numbers of each split, because scikit-learn does not pass ids to every splitter:
    a stack passes them only beside members that ask for them. One query alone is left to the
    estimator.
    """
    params = _own_params(estimator)
    by_formula = params.get("cv") is None and type(estimator).__name__ in _LEAVES_ONE_OUT
    cv = None if "cv" not in params or by_formula else by_query(params["cv"])
    if cv is None or (rows.codes == rows.codes[0]).all():
        yield
        return
    estimator.set_params(cv=list(cv.split(rows.X, rows.y, rows.groups, qid=rows.qid)))
    try:
        yield
    finally:
        estimator.set_params(cv=cv)


_LEAVES_ONE_OUT = ("RidgeCV", "RidgeClassifierCV")
"""Estimators of scikit-learn for which cv=None is a formula without folds."""


def _with_numbers(frame: Any) -> Any:
    """Return a frame in which columns of Arrow's numbers, and of booleans or decimals with gaps, are floats.

    LightGBM takes none of them, and CatBoost no boolean with gaps.
    """
    from pandas.api.types import infer_dtype

    def is_held_otherwise(name: Any, kind: Any) -> bool:
        if isinstance(kind, np.dtype):
            return kind.kind == "O" and infer_dtype(frame[name]) in ("boolean", "decimal")
        return kind.kind in ("biuf" if hasattr(kind, "pyarrow_dtype") else "b")

    names = [name for name, kind in frame.dtypes.items() if is_held_otherwise(name, kind)]
    return frame.astype(dict.fromkeys(names, "float64")) if names else frame


def features_for(estimator: Any, X: Any) -> Any:
    """Return features as a pandas frame, a sparse matrix or an array."""
    check_rows(X=X)
    features = without_ids(X)
    if hasattr(features, "to_pandas"):
        # The boosters accept pandas frames, but no polars frames, nor all that an Arrow table may
        # hold.
        features = features.to_pandas()
    elif hasattr(features, "tocsr") and boosters.booster_of(last_of(estimator)):
        # They accept SciPy's sparse matrices, but no sparse arrays. The matrix shares the memory.
        from scipy.sparse import csr_matrix

        features = csr_matrix(features)
    elif not hasattr(features, "iloc") and not hasattr(features, "tocsr"):
        refuse_ragged(features, "X")
        features = np.asarray(features)
    if hasattr(features, "columns") and not features.columns.is_unique:
        twice = features.columns[features.columns.duplicated()].tolist()
        raise InvalidInput(
            argument="X",
            found=f"a frame with two columns {twice[0]!r}",
            remedy="name each column once",
        )
    check_array(
        np.broadcast_to(np.int8(0), features.shape)
    )  # scikit-learn's words on a shape; the values are not read
    return (
        _with_numbers(features)
        if hasattr(features, "iloc") and boosters.booster_of(estimator)
        else features
    )
