"""Power: the queries that a difference needs, and the difference that a number of queries can show.

Student's paired t under an alternative has a noncentral t distribution with noncentrality ``sqrt(n)
* difference / sd``, sd being the standard deviation of the per-query differences (.15 to .20 for
pairs of TREC runs in AP and nDCG: 50 queries then show a difference of .06 to .08, not one of .03).
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, require
from rankeval.errors import InvalidInput
from rankeval.io.columns import labels
from rankeval.significance.declarations import CLAIMS, Floats, Unseen, check_claim

_LEGENDRE = np.polynomial.legendre.leggauss(200)

_AT_ONCE = 2**9
"""Columns whose margins are looked for together (800 KB of nodes)."""

_LEAST_EFFECT, _GREATEST_EFFECT = 1e-4, 1e4
"""Differences in standard deviations: no number of queries is looked for below the least; 2 suffice above the other."""


@explained
def topics_needed(
    difference: float,
    sd: float,
    alpha: float = 0.05,
    power: float = 0.8,
    *,
    alternative: str = "two-sided",
    claim: str = "difference",
    margin: float = 0.0,
    unseen: int = 1,
    greatest_loss: float = 1.0,
    group_size: float = 1.0,
    intraclass: float = 0.0,
) -> int:
    """Return the number of queries, or of groups of them, at which a paired t test shows a difference with some power.

    Parameters
    ----------
    difference : float
        The true mean difference worth finding; its sign does not matter. For other claims than
        "difference" the true gain, positive if the system is better; 0 for systems that are equal.
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
    unseen : int, default 1
        Number of queries that the claims "not_worse" and "equivalent" add to those seen, as in
        `rankeval.compare`.
    greatest_loss : float, default 1
        The loss of such a query. 1 is right for measures in [0, 1].
    group_size : float, default 1
        Number of queries in a group, such as the turns of a conversation. Above 1 the result is a
        number of groups, for `rankeval.compare` with ``groups``. If sizes differ, take their
        harmonic mean.
    intraclass : float, default 0
        Intraclass correlation of the differences within groups, from 0 (queries of a group are
        independent) to 1 (they are alike). A note of `rankeval.compare` has it. It counts only with
        ``group_size`` above 1.

    Returns
    -------
    int
        Number of queries, or of groups if ``group_size`` is above 1. At least 2. For "not_worse"
        and "equivalent" at least ``ln(alpha) / ln(1 - margin / greatest_loss)``, however small sd
        is: fewer queries can all miss a breakage as large as the margin.

    Raises
    ------
    InvalidInput
        If no number of queries shows the claim, because it is not true of the difference, or a
        parameter is out of range.

    Examples
    --------
    >>> topics_needed(0.05, 0.15), topics_needed(0.03, 0.15)
    (73, 199)
    >>> topics_needed(0.0, 0.15, claim="not_worse", margin=0.03)  # that an equal system is not worse by .03
    235
    >>> topics_needed(0.0, 0.15, claim="not_worse", margin=0.03, unseen=0)  # by the plain t test
    156
    >>> topics_needed(0.0, 0.001, claim="not_worse", margin=0.03)  # ln(.05) / ln(.97) is 98.4
    99
    >>> topics_needed(0.05, 0.15, group_size=5, intraclass=0.3)  # conversations of 5 turns: 34 * 5 = 170 turns
    34

    Notes
    -----
    The variance of a group's mean is ``sd^2 (intraclass + (1 - intraclass) / group_size)``.
    """
    check_number("group_size", group_size, least=1.0)
    check_number("intraclass", intraclass, least=0.0)
    require(intraclass <= 1, "intraclass", intraclass, "a correlation, from 0 to 1")
    check_number("greatest_loss", greatest_loss)
    greatest_loss = float(greatest_loss)  # SciPy takes no Fraction
    _check(alpha, power, alternative, claim, margin, unseen, greatest_loss)
    declared = CLAIMS[claim]
    check_number("difference", difference)
    check_number("sd", sd, least=0.0)
    sd *= math.sqrt(intraclass + (1 - intraclass) / group_size)
    distance = _distance(difference, claim, margin)
    effect = distance / sd if sd else math.inf
    counted = unseen if declared.harmless else 0
    if effect < _LEAST_EFFECT:
        place = " from the margin" if margin else ""
        raise InvalidInput(
            f"difference is {difference}, {effect:.3g} of the standard deviation {sd}{place}: hundreds of millions of "
            "queries would be needed to show it"
        )
    if sd == 0 and not counted:  # the p-value is that of the sign flips
        sides = 2 if alternative == "two-sided" and not declared.hypotheses else 1
        return max(2, math.ceil(math.log2(sides / alpha)))
    if effect > _GREATEST_EFFECT and not counted:
        return 2

    def reached(n: int) -> float:
        if declared.harmless:
            return power_of_no_harm(
                claim,
                difference,
                sd,
                n,
                alpha,
                margin=margin,
                unseen=unseen,
                greatest_loss=greatest_loss,
            )
        return _power(effect, n, alpha, "greater" if declared.sides else alternative)

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
    unseen: int = 1,
    greatest_loss: ArrayLike = 1.0,
) -> Floats:
    """Return the smallest true difference that a paired t test over n queries shows with the power asked for.

    The power of the randomisation test and of the symmetric bootstrap is that of t within .01 from
    25 queries on, so the value holds for them too.

    Examples
    --------
    >>> round(float(detectable_difference(50, 0.15)), 3)
    0.061
    >>> round(float(detectable_difference(50, 0.15, claim="equivalent", margin=0.05)), 3)  # more than .05: too few
    0.094
    """
    _check(alpha, power, alternative, claim, margin, unseen, greatest_loss)
    check_count("n", n, least=2)
    spread = np.asarray(labels(np.ravel(sd), "sd"), dtype=np.float64).reshape(np.shape(sd))
    declared = CLAIMS[claim]
    if declared.harmless:
        losses = np.broadcast_to(np.asarray(greatest_loss, dtype=np.float64), spread.shape).ravel()
        flat = spread.ravel()
        margins = np.empty(len(flat))
        for start in range(0, len(flat), _AT_ONCE):
            own = slice(start, start + _AT_ONCE)
            harmless = _Harmless(n, alpha, declared.sides, unseen, losses[own])
            margins[own] = harmless.least_margin(flat[own], power)
        found = np.asarray(margins.reshape(spread.shape))
    else:
        side = "greater" if declared.sides else alternative
        found = np.asarray(margin + spread * _detectable_effect(n, alpha, power, side))
    counts_unseen = declared.harmless and unseen > 0
    return np.where((spread == 0) & (not counts_unseen), np.nan, found)[()]


def _distance(difference: float, claim: str, margin: float) -> float:
    """Return how far a true difference is from where the claim is no longer true; raise if it is not true."""
    hypotheses = CLAIMS[claim].hypotheses
    if not hypotheses:
        if difference == 0:
            raise InvalidInput(
                f"difference is {difference}; no number of queries shows a difference of 0"
            )
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


def power_of_no_harm(
    claim: str,
    gain: float,
    sd: float,
    n: int,
    alpha: float,
    *,
    margin: float,
    unseen: int,
    greatest_loss: float,
) -> float:
    """Return the chance that "not_worse" or "equivalent" is shown over n queries by Student's t."""
    harmless = _Harmless(n, alpha, CLAIMS[claim].sides, unseen, np.array([greatest_loss]))
    return float(harmless.power(gain, np.array([sd]), np.array([margin]))[0])


@lru_cache(maxsize=256)
def _detectable_effect(n: int, alpha: float, power: float, alternative: str) -> float:
    # Kept, because all pairs over the same queries share it.
    def excess(effect: float) -> float:
        return _power(effect, n, alpha, alternative) - power

    high = 1.0
    while excess(high) < 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high))


@dataclass(frozen=True)
class _Harmless:
    """The power of "not_worse" (one side) and "equivalent" (two) by Student's t, with queries that nobody saw.

    The sample is the n differences, of mean x and deviation s, and k more that lost L. Its mean
    less the margin, over its standard error, reaches the quantile t exactly if ``x + L`` is at
    least the larger root of a quadratic. Given s, that is a normal probability; its mean over the
    distribution of s is taken by Gauss and Legendre's rule. The other side of "equivalent" is its
    mirror image.
    """

    n: int
    alpha: float
    sides: int
    unseen: int
    losses: Floats

    def power(self, gain: float, sd: Floats, margin: Floats) -> Floats:
        """Return the power at a true gain, for columns of this deviation and margin."""
        nodes, weights = _LEGENDRE
        n, whole = self.n, self.n + self.unseen
        t, share = stats.t.isf(self.alpha, whole - 1), n / whole
        deviation = sd[:, None] * np.sqrt(stats.chi2.ppf((nodes + 1) / 2, n - 1) / (n - 1))
        of_seen = (n - 1) * deviation**2 / (whole * (whole - 1))
        of_unseen = n * self.unseen / (whole**2 * (whole - 1))
        steep, short = share**2 - t**2 * of_unseen, (self.losses - margin)[:, None]
        if steep <= 0:  # so few queries show nothing
            return np.zeros(len(sd))
        root = np.sqrt(t**2 * (of_unseen * short**2 + steep * of_seen))
        least = (short * share + root) / steep - self.losses[:, None]
        error = np.maximum(sd[:, None], np.finfo(np.float64).tiny) / math.sqrt(n)
        with np.errstate(over="ignore"):  # without variance the probability is 0 or 1
            reached = special.ndtr((gain - least) / error)
            if self.sides == 2:
                reached -= special.ndtr((gain + least) / error)
        if self.unseen:
            beside = Unseen(self.unseen, self.losses, np.full(len(sd), float(n)))
            reached[beside.least_p(margin) > self.alpha * (1 + 1e-12)] = 0.0
        # The weights add up to 2 but for rounding.
        return np.asarray(np.round(np.maximum(reached, 0.0) @ weights / 2, 12))

    def least_margin(self, sd: Floats, power: float) -> Floats:
        """Return the smallest margin for which the claim is shown of equal systems with this power."""
        low, high = np.zeros_like(sd), np.maximum(self.losses, sd)
        while (short := self.power(0.0, sd, high) < power).any():
            if high.max() > _GREATEST_EFFECT * max(
                self.losses.max(initial=1.0), sd.max(initial=0.0)
            ):
                return np.where(short, np.inf, high)
            high = np.where(short, 2 * high, high)
        for _ in range(40):
            middle = (low + high) / 2
            enough = self.power(0.0, sd, middle) >= power
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high


def _power(effect: float, n: int, alpha: float, alternative: str) -> float:
    noncentrality, degrees = effect * np.sqrt(n), n - 1
    tail = alpha / 2 if alternative == "two-sided" else alpha
    limit = stats.t.isf(tail, degrees)
    # SciPy's tails give up far out, the wrong one with nan where it is below 1e-9: there both are 0
    # or 1 anyway.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        right = stats.nct.sf(limit, degrees, noncentrality)
        wrong = stats.nct.cdf(-limit, degrees, noncentrality) if alternative == "two-sided" else 0.0
    return float(right + np.nan_to_num(wrong))


def _check(
    alpha: float,
    power: float,
    alternative: str,
    claim: str,
    margin: float,
    unseen: int,
    greatest_loss: ArrayLike,
) -> None:
    check_count("unseen", unseen, least=0)
    losses = np.asarray(greatest_loss)
    fits = losses.dtype.kind in "iuf" and ((losses > 0) & (losses < math.inf)).all()
    require(fits, "greatest_loss", greatest_loss, "a finite loss above 0")
    check_claim(claim, margin, alternative)
    check_number("alpha", alpha)
    check_number("power", power)
    if not 0 < alpha < power < 1:
        raise InvalidInput(f"expected 0 < alpha < power < 1, found alpha {alpha} and power {power}")
