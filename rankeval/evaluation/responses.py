"""The score of each row from a fitted estimator, in one way for scorers, `QueryRanker` and the guard.

The trap: `predict` of a classifier gives labels, and a ranking by labels is almost all ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import refuse
from rankeval.io import columns

RESPONSES = ("predict", "predict_proba", "decision_function")
"""scikit-learn's names of the methods that can give a score."""


def ranking_methods(estimator: Any) -> tuple[str, ...]:
    """Return the methods that rank rows, the best first: for a classifier, those with more values than its labels."""
    return (
        ("predict_proba", "decision_function", "predict")
        if hasattr(estimator, "classes_")
        else ("predict",)
    )


def responses(estimator: Any, X: Any, methods: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Return one score a row by the first of these methods that the estimator has; higher ranks first."""
    methods = ranking_methods(estimator) if methods is None else methods
    known = [method for method in methods if hasattr(estimator, method)]
    refuse(
        (
            not known,
            f"{type(estimator).__name__} has no {' or '.join(methods)}: choose another response_method",
        )
    )
    method = known[0]
    if (
        method == "decision_function"
        and "predict" in known
        and len(getattr(estimator, "classes_", ())) > 2
    ):
        # It has a column for each grade, and these have no common scale.
        method = "predict"
    found = getattr(estimator, method)(X)
    columns.refuse_masked(found, method)
    values = np.asarray(found)
    if method == "predict_proba" and values.ndim == 2 and values.shape[1] > 1:
        # With several grades of relevance, the score of a row is its expected grade.
        several = values.shape[1] > 2
        values = (
            values @ np.asarray(estimator.classes_, dtype=np.float64) if several else values[:, 1]
        )
    values = columns.as_column(values)
    # A list is checked as it was given, because the array may have rounded its whole numbers.
    column = found if isinstance(found, list) and values.ndim == np.ndim(found) else values
    return columns.scores(column, method).astype(np.float64, copy=False)
