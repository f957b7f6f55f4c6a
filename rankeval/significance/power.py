"""Power: the queries that a difference needs, and the difference that a number of queries can show.

Student's paired t under an alternative has a noncentral t distribution with noncentrality
``sqrt(n) * difference / sd``, sd being the standard deviation of the per-query differences (.15 to .20 for pairs of
TREC runs in AP and nDCG: 50 queries then show a difference of .06 to .08, not one of .03).
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from rankeval._checks import check_count, check_number, check_share
from rankeval.errors import InvalidInput
from rankeval.io.columns import labels
from rankeval.significance.declarations import Floats, check_alternative

_LEAST_EFFECT, _GREATEST_EFFECT = 1e-4, 1e4
"""Differences in standard deviations: no number of queries is looked for below the least; 2 suffice above the other."""


def topics_needed(
    difference: float, sd: float, alpha: float = 0.05, power: float = 0.8, *, alternative: str = "two-sided"
) -> int:
    """Return the number of queries at which a paired t test shows a difference with the power asked for.

    Parameters
    ----------
    difference : float
        The true mean difference worth finding; its sign does not matter.
    sd : float
        Standard deviation of the per-query differences.
    alpha : float, default 0.05
        Level of the test.
    power : float, default 0.8
        Chance of a significant result if the difference is true.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        One-sided tests need fewer queries.

    Returns
    -------
    int
        At least 2.

    Raises
    ------
    InvalidInput
        If the difference is 0, which no number of queries shows, or a parameter is out of range.

    Examples
    --------
    >>> topics_needed(0.05, 0.15), topics_needed(0.03, 0.15)
    (73, 199)
    """
    _check(alpha, power, alternative)
    check_number("difference", difference)
    check_number("sd", sd)
    if difference == 0:
        raise InvalidInput(f"difference is {difference}; no number of queries shows a difference of 0")
    if sd < 0:
        raise InvalidInput(f"sd is {sd}; expected the standard deviation of per-query differences, 0 or more")
    effect = abs(difference) / sd if sd else math.inf
    if effect < _LEAST_EFFECT:
        raise InvalidInput(
            f"difference is {difference}, {effect:.3g} of the standard deviation {sd}: hundreds of millions of "
            "queries would be needed to show it"
        )
    if effect > _GREATEST_EFFECT:
        return 2
    enough = 2
    while _power(effect, enough, alpha, alternative) < power:
        enough *= 2
    least = max(2, enough // 2)
    # The power grows with the number of queries, so bisect between the last two tried.
    return least + bisect_left(range(least, enough), power, key=lambda n: _power(effect, n, alpha, alternative))


def detectable_difference(
    n: int, sd: ArrayLike, alpha: float = 0.05, power: float = 0.8, *, alternative: str = "two-sided"
) -> Floats:
    """Return the smallest true difference that a paired t test over n queries shows with the power asked for.

    Parameters
    ----------
    n : int
        Number of queries, at least 2.
    sd : float or array_like
        Standard deviation of the per-query differences.
    alpha : float, default 0.05
        Level of the test; the level of a family divided by its size for Bonferroni.
    power : float, default 0.8
        Chance of a significant result if the difference is true.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        As in the test.

    Returns
    -------
    float or ndarray
        In the units of the measure, shaped like `sd`.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a parameter out of range.

    Examples
    --------
    >>> round(float(detectable_difference(50, 0.15)), 3)
    0.061
    """
    _check(alpha, power, alternative)
    _check_queries(n)
    spread = np.asarray(labels(np.ravel(sd), "sd"), dtype=np.float64).reshape(np.shape(sd))
    return np.asarray(spread * _detectable_effect(n, alpha, power, alternative))[()]


def paired_power(difference: float, sd: float, n: int, alpha: float = 0.05, *, alternative: str = "two-sided") -> float:
    """Return the chance that a paired t test over n queries is significant, given the true mean difference.

    Parameters
    ----------
    difference : float
        The true mean difference, less the difference under the null hypothesis: for the test of non-inferiority of two
        equal systems, the margin.
    sd : float
        Standard deviation of the per-query differences, 0 or more.
    n : int
        Number of queries, at least 2.
    alpha : float, default 0.05
        Level of the test.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        As in the test.

    Returns
    -------
    float
        In [0, 1]: the tail of the noncentral t distribution with n - 1 degrees of freedom and noncentrality
        ``sqrt(n) * difference / sd``. If sd is 0, all queries have the same difference: the tests then give the p-value
        of the sign flips, so that the power is 0 or 1.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a parameter out of range.

    Examples
    --------
    >>> round(paired_power(0.05, 0.15, 73), 3), round(paired_power(0.0, 0.15, 73), 3)
    (0.802, 0.05)
    """
    check_alternative(alternative)
    check_number("difference", difference)
    check_number("sd", sd)
    check_share("alpha", alpha)
    _check_queries(n)
    if sd < 0:
        raise InvalidInput(f"sd is {sd}; expected the standard deviation of per-query differences, 0 or more")
    towards = -difference if alternative == "less" else abs(difference) if alternative == "two-sided" else difference
    if sd == 0 or abs(towards) / sd > _GREATEST_EFFECT:
        sides = 2 if alternative == "two-sided" else 1
        return float(towards > 0 and sides * 0.5**n <= alpha)
    # nan where the tail against the effect is below 1e-9: see _power.
    return float(np.nan_to_num(_power(towards / sd, n, alpha, alternative)))


@lru_cache(maxsize=256)
def _detectable_effect(n: int, alpha: float, power: float, alternative: str) -> float:
    """Return the smallest standardised effect. Kept, because all pairs over the same queries share it."""
    high = 1.0
    while _power(high, n, alpha, alternative) < power:
        high *= 2
    return float(optimize.brentq(lambda effect: _power(effect, n, alpha, alternative) - power, 0.0, high))


def _power(effect: float, n: int, alpha: float, alternative: str) -> float:
    """Return the power of the paired t at a standardised effect in the direction of the alternative."""
    noncentrality, degrees = effect * np.sqrt(n), n - 1
    tail = alpha / 2 if alternative == "two-sided" else alpha
    limit = stats.t.isf(tail, degrees)
    # SciPy's tails give up far out, the wrong one with nan where it is below 1e-9: there both are 0 or 1 anyway.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        right = stats.nct.sf(limit, degrees, noncentrality)
        wrong = stats.nct.cdf(-limit, degrees, noncentrality) if alternative == "two-sided" else 0.0
    return float(right + np.nan_to_num(wrong))


def _check_queries(n: int) -> None:
    check_count("n", n)
    if n < 2:
        raise InvalidInput(f"n is {n}; a paired test needs at least 2 queries")


def _check(alpha: float, power: float, alternative: str) -> None:
    check_alternative(alternative)
    check_number("alpha", alpha)
    check_number("power", power)
    if not 0 < alpha < power < 1:
        raise InvalidInput(f"expected 0 < alpha < power < 1, found alpha {alpha} and power {power}")
