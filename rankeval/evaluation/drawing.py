"""What is left in doubt where orders of tied rows were drawn, there being too many to go through them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankeval.measures.orders import DRAWS

if TYPE_CHECKING:
    from rankeval.evaluation.result import Evaluation

KINDS = {"mean": "mean", "sum": "sum", "gmean": "geometric mean"}
"""Aggregates in words."""


def aggregate_errors(evaluation: Evaluation) -> dict[str, float]:
    """Return the standard error of every measure's aggregate, 0 where all scores are exact.

    Parameters
    ----------
    evaluation : Evaluation
        Scores, and their errors. Queries are drawn apart, so the squares of their errors add up.
    """
    if evaluation.errors is None:
        return dict.fromkeys(evaluation.measure_names, 0.0)
    weights = np.ones(evaluation.n_queries) if evaluation.weights is None else evaluation.weights
    of_sums = np.sqrt((weights[:, None] ** 2 * evaluation.errors**2).sum(axis=0))
    values = evaluation.aggregates()
    errors = {}
    for (label, one), error in zip(evaluation.by_name.items(), of_sums.tolist(), strict=True):
        if one.family.aggregate == "sum":
            errors[label] = error
        elif one.family.aggregate == "mean":
            errors[label] = error / float(weights.sum())
        else:  # exp of a mean: as many times as sensitive as it is large
            errors[label] = error / float(weights.sum()) * values[label]
    return errors


def note_on_draws(evaluation: Evaluation, drawn: NDArray[np.bool_]) -> dict[str, str]:
    """Say which values are means over drawn orders, and how far that leaves the aggregate in doubt.

    Parameters
    ----------
    evaluation : Evaluation
        The scores.
    drawn : ndarray of bool of shape (n_queries, n_measures)
        Which of them are such means.
    """
    errors = aggregate_errors(evaluation)
    said = [
        f"{label} in {number} {'query' if number == 1 else 'queries'} (standard error of the "
        f"{KINDS[one.family.aggregate]} {errors[label]:.2g})"
        for (label, one), number in zip(evaluation.by_name.items(), drawn.sum(axis=0).tolist(), strict=True)
        if number
    ]
    text = f"mean over {DRAWS} drawn orders of tied rows, where there were too many: {', '.join(said)}"
    return {"ties": text} if said else {}
