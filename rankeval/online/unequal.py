"""Arms of unequal size: an exact test of a share, and a test by random arms of any other metric.

Welch's t is skewed if the metric is and one arm is much smaller: an arm without a buyer seems to
have no variance, and the t of equal arms is then far below 0. In arms of the same size the skewness
cancels::

    skewness of t = skewness of the metric x (1 / n_B^2 - 1 / n_A^2) / (1 / n_A + 1 / n_B)^1.5

To first order equal arms differ on either side at a rate of alpha / 2, more or less .085 times this
skewness at the level .05 (Hall and Martin, 1988). Where it is above `SKEWED`, the users of both
arms are divided anew: if the arms are equal, each division is as likely as the one that was seen.
Of a share all divisions are counted, which is Fisher's exact test. Of other metrics some thousands
are drawn, and the t of each is found (Janssen, 1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import logit

Floats = NDArray[np.float64]
Pair = tuple[int, int]
"""A number of the control and of the treatment."""

SKEWED = 0.05
"""Up to this skewness of t, equal arms differ on a side in .021 to .029 of tests at .05."""

N_DRAWS = 10_000
"""Divisions that are drawn. The error of a p-value of .05 is then .002."""


@dataclass(frozen=True)
class Unequal:
    """The result of a test of unequal arms."""

    # One-sided p-values, that the treatment is lower, and higher
    below: float
    above: float
    # The ends of the difference; nan beyond all draws
    low: float
    high: float


def skewness_of_t(values: Floats, sizes: Pair) -> float:
    """Return the skewness of Welch's t for equal arms of these sizes, by all users' values."""
    control, treatment = (1 / size for size in sizes)
    centred = values - values.mean()
    skewness = np.mean((centred / centred.std()) ** 3)
    return float(skewness * (treatment**2 - control**2) / (control + treatment) ** 1.5)


def by_random_arms(
    values: Floats, sizes: Pair, estimate: float, error: float, tail: float
) -> Unequal:
    """Compare t, the estimate by its error, with t of random arms; the interval is studentized."""
    seen, drawn = estimate / error, np.sort(_random_arms(values, sizes))
    slack, n_arms = 1e-9 * abs(seen), len(drawn) + 1
    below = np.searchsorted(drawn, seen + slack, "right") + 1
    above = n_arms - np.searchsorted(drawn, seen - slack)
    beyond = math.floor(tail * n_arms + 1e-9)
    least, most = (drawn[beyond - 1], drawn[-beyond]) if beyond else (math.nan, math.nan)
    low, high = estimate - most * error, estimate - least * error
    return Unequal(below / n_arms, above / n_arms, low, high)


def _random_arms(values: Floats, sizes: Pair) -> Floats:
    """Return Welch's t of random arms; one order of the users gives as many arms as fit into it."""
    rng = np.random.default_rng(0)
    small, large = min(sizes), max(sizes)
    centred = values - values.mean()
    per_order = len(values) // small
    sums, squares = np.empty((2, -(-N_DRAWS // per_order), per_order))
    for order in range(len(sums)):
        arms = rng.permutation(centred)[: per_order * small].reshape(per_order, small)
        sums[order], squares[order] = arms.sum(axis=1), np.square(arms).sum(axis=1)
    of_small = (squares - sums**2 / small).clip(0) / (small - 1) / small
    of_large = (centred @ centred - squares - sums**2 / large).clip(0) / (large - 1) / large
    difference = sums * (1 / small + 1 / large) * (1 if sizes[1] == small else -1)
    with np.errstate(divide="ignore"):
        return np.ravel(difference / np.sqrt(of_small + of_large))


def by_margins(events: Pair, sizes: Pair, tail: float) -> Unequal:
    """Test two shares exactly, by the users with the event and all users of each arm (Fisher, 1935).

    The interval holds the odds ratios that the same test does not refuse (Cornfield, 1956). Each is
    shown as the difference of two shares with as many events of both arms together as were seen.
    """
    total, seen = sum(events), events[1]
    support = np.arange(max(0, total - sizes[0]), min(total, sizes[1]) + 1)
    equal = stats.hypergeom(sum(sizes), total, sizes[1]).logpmf(support)

    def of_control(share: float) -> float:
        return (total - sizes[1] * share) / sizes[0]

    def tails(share: float) -> tuple[float, float]:
        weights = equal + support * (logit(share) - logit(of_control(share)))
        weights = np.exp(weights - weights.max())
        below, above = weights[support <= seen].sum(), weights[support >= seen].sum()
        return float(below / weights.sum()), float(above / weights.sum())

    least, most = support[[0, -1]] / sizes[1]
    room = 1e-9 * (most - least)

    def end(side: int, extreme: int) -> float:
        """Return the difference from which the test refuses, or the last if it never does."""
        share = extreme / sizes[1]
        if seen != extreme:
            share = brentq(lambda x: tails(x)[side] - tail, least + room, most - room, xtol=1e-15)
        return share - of_control(share)

    equal_share = total / sum(sizes)
    return Unequal(*tails(equal_share), end(1, support[0]), end(0, support[-1]))
