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
from scipy import optimize, special, stats

from rankeval._checks import check_count, check_number, check_share
from rankeval.errors import InvalidInput
from rankeval.io.columns import labels
from rankeval.significance.claims import CLAIMS
from rankeval.significance.declarations import Floats, check_alternative, check_claim

_LEGENDRE = np.polynomial.legendre.leggauss(200)

_LEAST_EFFECT, _GREATEST_EFFECT = 1e-4, 1e4
"""Differences in standard deviations: no number of queries is looked for below the least; 2 suffice above the other."""


def topics_needed(
    difference: float,
    sd: float,
    alpha: float = 0.05,
    power: float = 0.8,
    *,
    alternative: str = "two-sided",
    claim: str = "difference",
    margin: float = 0.0,
) -> int:
    """Return the number of queries at which a paired t test shows a difference with the power asked for.

    Parameters
    ----------
    difference : float
        The true mean difference worth finding; its sign does not matter. For other claims than "difference" the true
        gain, positive if the system is better; 0 for systems that are equal.
    sd : float
        Standard deviation of the per-query differences.
    alpha : float, default 0.05
        Level of the test.
    power : float, default 0.8
        Chance of a significant result if the difference is true.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        One-sided tests need fewer queries.
    claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
        What is to be shown, as in `rankeval.compare`.
    margin : float, default 0
        Of the claim.

    Returns
    -------
    int
        At least 2.

    Raises
    ------
    InvalidInput
        If no number of queries shows the claim, because it is not true of the difference, or a parameter is out of
        range.

    Examples
    --------
    >>> topics_needed(0.05, 0.15), topics_needed(0.03, 0.15)
    (73, 199)
    >>> topics_needed(0.0, 0.15, claim="not_worse", margin=0.03)  # that an equal system is not worse by .03
    156
    """
    _check(alpha, power, alternative, claim, margin)
    check_number("difference", difference)
    check_number("sd", sd)
    if sd < 0:
        raise InvalidInput(f"sd is {sd}; expected the standard deviation of per-query differences, 0 or more")
    distance = _distance(difference, claim, margin)
    effect = distance / sd if sd else math.inf
    if effect < _LEAST_EFFECT:
        place = " from the margin" if margin else ""
        raise InvalidInput(
            f"difference is {difference}, {effect:.3g} of the standard deviation {sd}{place}: hundreds of millions of "
            "queries would be needed to show it"
        )
    if effect > _GREATEST_EFFECT:
        return 2
    other = (abs(margin) + abs(difference)) / sd

    def reached(n: int) -> float:
        return _power_of_claim(effect, n, alpha, alternative, claim, other)

    enough = 2
    while reached(enough) < power:
        enough *= 2
    least = max(2, enough // 2)
    # The power grows with the number of queries, so bisect between the last two tried.
    return least + bisect_left(range(least, enough), power, key=reached)


def detectable_difference(
    n: int,
    sd: ArrayLike,
    alpha: float = 0.05,
    power: float = 0.8,
    *,
    alternative: str = "two-sided",
    claim: str = "difference",
    margin: float = 0.0,
) -> Floats:
    """Return the smallest true difference that a paired t test over n queries shows with the power asked for.

    The power of the randomisation test and of the symmetric bootstrap is that of t within .01 from 25 queries on, so
    the value holds for them too.

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
    claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
        For "better" the value is the smallest true gain that is shown to be above the margin; for "not_worse" and
        "equivalent" the smallest margin for which the claim is shown of two systems that are equal.
    margin : float, default 0
        Of the claim.

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
    >>> round(float(detectable_difference(50, 0.15, claim="equivalent", margin=0.05)), 3)  # more than .05: too few
    0.063
    """
    _check(alpha, power, alternative, claim, margin)
    _check_queries(n)
    spread = np.asarray(labels(np.ravel(sd), "sd"), dtype=np.float64).reshape(np.shape(sd))
    beyond = margin if claim == "better" else 0.0
    return np.asarray(beyond + spread * _detectable_effect(n, alpha, power, alternative, claim))[()]


def _distance(difference: float, claim: str, margin: float) -> float:
    """Return how far a true difference is from where the claim is no longer true; raise if it is not true."""
    hypotheses = CLAIMS[claim].hypotheses
    if not hypotheses:
        if difference == 0:
            raise InvalidInput(f"difference is {difference}; no number of queries shows a difference of 0")
        return abs(difference)
    distance = min(
        difference - factor * margin if side == "greater" else factor * margin - difference
        for side, factor in hypotheses
    )
    if distance <= 0:
        raise InvalidInput(
            f'difference is {difference}: the claim "{claim}" with margin {margin} is not true of such a gain, so no '
            "number of queries shows it"
        )
    return distance


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
def _detectable_effect(n: int, alpha: float, power: float, alternative: str, claim: str) -> float:
    """Return the smallest standardised effect. Kept, because all pairs over the same queries share it."""

    def excess(effect: float) -> float:
        return _power_of_claim(effect, n, alpha, alternative, claim, effect) - power

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high))


def _power_of_claim(effect: float, n: int, alpha: float, alternative: str, claim: str, other: float) -> float:
    """Return the power at a standardised distance from the margin; for "equivalent", `other` from the other margin."""
    sides = CLAIMS[claim].sides
    if sides == 2:
        return _power_of_two(effect, other, n, alpha)
    return _power(effect, n, alpha, "greater" if sides else alternative)


def _power_of_two(near: float, far: float, n: int, alpha: float) -> float:
    """Return the power of two one-sided t tests, the true gain lying between margins at these distances from it.

    Given the deviation found, s, both tests reject if the mean is at least ``t s / sqrt(n)`` inside both margins, which
    is a normal probability; its mean over the distribution of s is taken by Gauss and Legendre's rule.
    """
    nodes, weights = _LEGENDRE
    spread = np.sqrt(stats.chi2.ppf((nodes + 1) / 2, n - 1) / (n - 1))
    reach = stats.t.isf(alpha, n - 1) * spread
    root = math.sqrt(n)
    inside = special.ndtr(root * near - reach) - special.ndtr(reach - root * far)
    return float(weights @ np.maximum(inside, 0.0) / 2)


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


def _check(alpha: float, power: float, alternative: str, claim: str, margin: float) -> None:
    check_alternative(alternative)
    check_claim(claim, margin, alternative)
    check_number("alpha", alpha)
    check_number("power", power)
    if not 0 < alpha < power < 1:
        raise InvalidInput(f"expected 0 < alpha < power < 1, found alpha {alpha} and power {power}")
