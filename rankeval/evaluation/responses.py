"""The score of each row from a fitted estimator, for scorers, `QueryRanker` and the guard.

The trap: `predict` of a classifier gives labels, and a ranking by labels is almost all ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io import columns

RESPONSES = ("predict", "predict_proba", "decision_function")
"""scikit-learn's names of the methods that can give a score."""


def ranking_methods(estimator: Any) -> tuple[str, ...]:
    """Return the methods that rank rows, those with the most values first."""
    is_classifier = hasattr(estimator, "classes_")
    return ("predict_proba", "decision_function", "predict") if is_classifier else ("predict",)


def by_query(estimator: Any) -> Any:
    """Return an estimator that predicts alike and takes the query of each row; None if there is none.

    Searches do not hand queries on: their best estimators stand in for them, in Pipelines too.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "steps") and hasattr(estimator, "named_steps"):
        *head, (name, last) = estimator.steps
        inner = by_query(last)
        return None if inner is None else type(estimator)([*head, (name, inner)])
    try:
        takes_queries = "qid" in signature(estimator.predict).parameters
    except (AttributeError, TypeError, ValueError):  # a compiled method has no signature
        takes_queries = False
    return estimator if takes_queries else None


def responses(
    estimator: Any, X: Any, methods: Sequence[str] | None = None, *, qid: Any = None
) -> NDArray[np.float64]:
    """Return one score a row by the first of the methods that the estimator has.

    An estimator whose `predict` takes the query of each row gets it.
    """
    inner = None if qid is None else by_query(estimator)
    estimator = estimator if inner is None else inner
    methods = ranking_methods(estimator) if methods is None else methods
    known = [method for method in methods if hasattr(estimator, method)]
    if not known:
        absent = f"{type(estimator).__name__} has no {' or '.join(methods)}"
        raise InvalidInput(f"{absent}: choose another response_method")
    method = known[0]
    has_grades = len(getattr(estimator, "classes_", ())) > 2
    if method == "decision_function" and "predict" in known and has_grades:
        # It has a column for each grade, and these have no common scale.
        method = "predict"
    queries = {} if inner is None or method != "predict" else {"qid": qid}
    response = getattr(estimator, method)(X, **queries)
    columns.refuse_masked(response, method)
    values = np.asarray(response)
    if method == "predict_proba" and values.ndim == 2 and values.shape[1] == 2:
        values = values[:, 1]
    elif method == "predict_proba" and values.ndim == 2 and values.shape[1] > 2:
        # With several grades of relevance, the score of a row is its expected grade.
        values = values @ np.asarray(estimator.classes_, dtype=np.float64)
    values = columns.as_column(values)
    # A list is checked itself, because the array may have rounded its whole numbers.
    is_list = isinstance(response, list) and values.ndim == np.ndim(response)
    column = response if is_list else values
    return columns.scores(column, method).astype(np.float64, copy=False)
