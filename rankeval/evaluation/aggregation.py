"""Scores of queries as one number a measure: aggregates, their errors, intervals, and a note on drawn orders."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.join.flat import Floats
from rankeval.measures import Measure
from rankeval.measures.family import AGGREGATES
from rankeval.measures.tie_enumeration import DRAWS

_WORDS = {"mean": "mean", "sum": "sum", "gmean": "geometric mean"}


def aggregated(measures: Mapping[str, Measure], scores: Floats, weights: Floats | None) -> dict[str, float]:
    """Return the declared aggregate of each measure; nan if there are no queries.

    Parameters
    ----------
    measures : mapping of str to Measure
        The measures by the names asked for.
    scores : ndarray of shape (n_queries, n_measures)
        The scores.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    """
    if not len(scores):
        return dict.fromkeys(measures, float("nan"))
    return {
        name: float(AGGREGATES[one.family.aggregate](values, weights))
        for (name, one), values in zip(measures.items(), scores.T, strict=True)
    }


def aggregated_errors(
    measures: Mapping[str, Measure], scores: Floats, errors: Floats | None, weights: Floats | None
) -> dict[str, float]:
    """Return the standard error that drawn orders of tied rows leave in each aggregate.

    Parameters
    ----------
    measures, scores, weights
        As in `aggregated`.
    errors : ndarray of shape (n_queries, n_measures), optional
        Standard errors of the scores; None if all are exact.
    """
    if errors is None or not len(scores):
        return dict.fromkeys(measures, 0.0)
    weights = np.ones(len(scores)) if weights is None else weights
    total, values = float(weights.sum()), aggregated(measures, scores, weights)
    # Each query is drawn on its own, so the squares of the errors add up.
    of_sums = np.sqrt((weights[:, None] ** 2 * errors**2).sum(axis=0))
    found = dict(zip(measures, of_sums.tolist(), strict=True))
    for name, one in measures.items():
        if one.family.aggregate != "sum":
            found[name] /= total
        if one.family.aggregate == "gmean":
            found[name] *= values[name]  # the slope of exp is its value
    return found


def half_widths(scores: Floats, level: float) -> Floats:
    """Return half the width of the interval of each column's mean by Student's t; nan if all rows are the same.

    Parameters
    ----------
    scores : ndarray of shape (n_queries, n_means)
        The scores.
    level : float
        Between 0 and 1.
    """
    from scipy import stats

    n_queries = len(scores)
    if n_queries < 2:
        return np.full(scores.shape[1], np.nan)
    spread = np.where((scores != scores[0]).any(axis=0), scores.std(axis=0, ddof=1), np.nan)
    return np.asarray(spread * stats.t.ppf((1 + level) / 2, n_queries - 1) / np.sqrt(n_queries))


def draws_note(measures: Mapping[str, Measure], drawn: NDArray[np.bool_], errors: Mapping[str, float]) -> str:
    """Say which values are means over drawn orders, and how uncertain that leaves the aggregate.

    Parameters
    ----------
    measures : mapping of str to Measure
        The measures by the names asked for.
    drawn : ndarray of bool of shape (n_queries, n_measures)
        Which values are such means.
    errors : mapping of str to float
        Measure -> standard error of the aggregate.
    """
    said = [
        f"{label} in {count(number, 'query')} (standard error of the "
        f"{_WORDS[one.family.aggregate]} {errors[label]:.2g})"
        for (label, one), number in zip(measures.items(), drawn.sum(axis=0).tolist(), strict=True)
        if number
    ]
    return f"mean over {DRAWS} drawn orders of tied rows, where there were too many: {', '.join(said)}"
