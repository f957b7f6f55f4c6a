"""Differences between systems as columns, checked: one row per query, one column per pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.errors import InvalidInput
from rankeval.significance.declarations import Floats

TIE_TOLERANCE = 1e-12
"""Two scores closer than this share of the larger one are a tie: float noise is neither a win nor a loss."""

FOLD = "fold"
"""Name of an index of folds: a frame with such an index is known to hold fold scores."""

FOLD_COLUMNS = ({"fit_time", "score_time"}, {"fit_seconds", "score_seconds"})
"""Columns by which a table of folds is known without its index: scikit-learn's, and ``CrossValidation.folds``'."""

NOT_A_SAMPLE = (
    "these are scores of folds, which overlap and are not a sample: a t test over them claims a difference in half of "
    'the cases without one. Use CrossValidation.compare(other, question="algorithms"), or the scores per query, '
    "CrossValidation.evaluation"
)


def differences(system: ArrayLike, baseline: ArrayLike) -> Floats:
    """Subtract the baseline's scores from the system's; ties give exactly 0.

    Parameters
    ----------
    system, baseline : array_like
        Scores of equal shape, a row per query.

    Returns
    -------
    ndarray
        The differences; 0 where the two are within `TIE_TOLERANCE` of each other, relative to the larger.
    """
    high, low = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    difference = high - low
    difference[are_ties(difference, high, low)] = 0.0
    return difference


def are_ties(difference: Floats, one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Tell which differences of two lists of numbers are ties, within `TIE_TOLERANCE` of the larger number."""
    reach = np.maximum(np.abs(one), np.abs(other))
    return np.asarray(np.abs(difference) <= TIE_TOLERANCE * reach)


def as_columns(d: ArrayLike) -> Floats:
    """Check differences and return them as a matrix of shape ``(n_queries, n_pairs)``.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a value that is not finite, more than two dimensions, or scores of folds.
    """
    refuse_fold_scores(d)
    columns = np.asarray(d, dtype=np.float64)
    if columns.ndim not in (1, 2):
        raise InvalidInput(f"differences have shape (n_queries,) or (n_queries, n_pairs), found {columns.shape}")
    if len(columns) < 2:
        raise InvalidInput(f"a paired test needs at least 2 queries, found {len(columns)}")
    if broken := int(np.count_nonzero(~np.isfinite(columns))):
        raise InvalidInput(
            f"differences must be finite, found {broken} that are NaN or infinite; decide which value such a query "
            "counts with"
        )
    return columns.reshape(len(columns), -1)


def refuse_fold_scores(table: Any) -> None:
    """Raise `InvalidInput` for a frame of fold scores: folds overlap, so tests over queries do not hold on them.

    Parameters
    ----------
    table : object
        A frame is taken for one of folds if it has an index level "fold", as ``CrossValidation.folds`` has, or the
        columns of seconds that our `cross_validate` or scikit-learn's adds. Anything else passes.
    """
    levels = getattr(getattr(table, "index", None), "names", ())
    columns = set(getattr(table, "column_names", getattr(table, "columns", ())))  # the first of Arrow
    if FOLD in levels or any(theirs <= columns for theirs in FOLD_COLUMNS):
        raise InvalidInput(NOT_A_SAMPLE)


def without_variance(columns: Floats) -> NDArray[np.bool_]:
    """Find the columns whose differences are all the same number, up to rounding."""
    return np.asarray(np.ptp(columns, axis=0) <= TIE_TOLERANCE * np.abs(columns).max(axis=0))


def deviation(columns: Floats) -> Floats:
    """Return the standard deviation of each column: exactly 0 without variance, where rounding leaves about 1e-17."""
    return np.where(without_variance(columns), 0.0, columns.std(axis=0, ddof=1))


def standard_error(columns: Floats) -> Floats:
    """Return the standard error of each column's mean."""
    return np.asarray(deviation(columns) / np.sqrt(len(columns)))
