"""Sizes of differences: effects, wins and losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankeval.significance.columns import as_columns, without_variance
from rankeval.significance.declarations import Floats


@dataclass(frozen=True)
class Outcomes:
    """Numbers of queries that the system won, tied and lost; arrays for many pairs."""

    wins: Any
    ties: Any
    losses: Any


def standardised_effect(d: ArrayLike) -> Floats:
    """Return Cohen's d_z of paired differences: their mean over their standard deviation.

    The standard deviation is that of the *differences* (n - 1 in the denominator), not of the scores. Power depends on
    d_z. It is larger than Cohen's d of unpaired groups if both systems find the same queries hard.

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.

    Returns
    -------
    float or ndarray of shape (n_pairs,)
        0 for equal systems, infinite for a constant difference.

    Examples
    --------
    >>> float(standardised_effect([0.0, 0.5, 1.0]))
    1.0
    """
    columns = as_columns(d)
    mean, flat = columns.mean(axis=0), without_variance(columns)
    # Rounding leaves a constant difference a deviation of about 1e-17, which would give effects of 1e16.
    deviation = np.where(flat, 1.0, columns.std(axis=0, ddof=1))
    effect = np.where(flat & (mean != 0), np.copysign(np.inf, mean), mean / deviation)
    return np.asarray(effect.reshape(np.shape(d)[1:])[()])


def outcomes(d: ArrayLike) -> Outcomes:
    """Count the queries that the system won, tied and lost.

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Differences as `columns.differences` returns them: scores within a relative 1e-12 of each other tie.

    Returns
    -------
    Outcomes
        Three counts per pair, which add up to the number of queries.
    """
    values = np.asarray(d, dtype=np.float64)
    return Outcomes((values > 0).sum(axis=0), (values == 0).sum(axis=0), (values < 0).sum(axis=0))
