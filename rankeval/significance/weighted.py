"""Queries that weigh more: the mean of weighted queries, its standard error and its degrees of freedom.

A weighted mean is a ratio of two means over queries, that of ``w x`` and that of ``w``. Both vary
with the queries drawn. Linearised, the ratio is a plain mean again, that of these values::

    query            q1    q2    q3              the weighted mean m is .6
    weight           1     1     2
    score            .2    .6    .8
    share w n / W    .75   .75   1.5
    linearised       .3    .6    .9              m + share (score - m): their mean is m

The standard deviation of linearised values over the root of n is the linearised standard error
(Cochran 1977, Sampling Techniques, chapter 6). It equals that of a weighted least squares fit of a
constant with HC1 errors.

The trap is the degrees of freedom. Squares of few heavy queries make up most of the variance, so
Student's t with n - 1 covers too rarely. Satterthwaite's approximation counts the squares: ``(1 - 1
/ n) (sum w^2)^2 / sum w^4``, which is n - 1 for equal weights. `tests/calibration` has the coverage
of both.
"""

from __future__ import annotations

import numpy as np

from rankeval.significance.columns import standard_error, without_variance
from rankeval.significance.declarations import Floats

MOST_SHARE = 0.5
"""If a query carries more than this share of the weight, the others are too light for an interval."""

NOTED_SHARE = 0.1
"""A query that carries more than this share of the weight is named in a note."""


def effective_number(weights: Floats) -> float:
    """Return the number of equally weighted queries that tell as much, if weights do not follow the scores.

    ``(sum w)^2 / sum w^2``; Kish (1965), Survey Sampling.

    Examples
    --------
    >>> round(effective_number(np.array([1.0, 1.0, 2.0])), 2)
    2.67
    """
    return float(weights.sum() ** 2 / (weights @ weights))


def degrees_of_freedom(weights: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of `weighted_error`; n - 1 for equal weights.

    Satterthwaite (1946), doi:10.2307/3002019.

    Examples
    --------
    >>> round(degrees_of_freedom(np.array([1.0, 1.0, 2.0])), 2)
    1.33
    """
    squares = weights**2
    return float((1 - 1 / len(weights)) * squares.sum() ** 2 / (squares @ squares))


def size_by_degrees(weights: Floats) -> int:
    """Return the number of equal queries whose mean has as many degrees of freedom: power depends on them."""
    return max(2, 1 + round(degrees_of_freedom(weights)))


def largest_share(weights: Floats) -> float:
    """Return the share of the weight that the heaviest query carries."""
    return float(weights.max() / weights.sum())


def relative(weights: Floats) -> Floats:
    """Return weights of mean 1."""
    return np.asarray(weights / weights.mean())


def weighted_mean(columns: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of each column."""
    return np.asarray(weights @ columns / weights.sum())


def linearised(values: Floats, weights: Floats) -> Floats:
    """Return values whose plain mean is the weighted one, and whose standard error is the linearised one.

    Examples
    --------
    >>> linearised(np.array([0.2, 0.6, 0.8]), np.array([1.0, 1.0, 2.0])).round(2).tolist()
    [0.3, 0.6, 0.9]
    """
    flat = values.reshape(len(values), -1)
    mean = weighted_mean(flat, weights)
    moved = mean + relative(weights)[:, None] * (flat - mean)
    return np.asarray(moved.reshape(values.shape))


def weighted_error(columns: Floats, weights: Floats) -> Floats:
    """Return the linearised standard error of each weighted mean; infinite if the queries tell none."""
    error = standard_error(linearised(columns, weights))
    are_light = (error == 0) & ~without_variance(columns)
    return np.where(are_light | (largest_share(weights) > MOST_SHARE), np.inf, error)
