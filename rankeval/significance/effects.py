"""Sizes of differences: effects with their interval, overlap of two lists of scores, wins and losses.

Two of the effects are of the paired differences: Cohen's d (in standard deviations of a difference) and the probability
of superiority (on how many queries). Cliff's delta is of the two lists of scores, as if they were not paired. It says
how far the lists overlap, and is small if queries differ much more than systems do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rankeval._checks import check_share
from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE, as_columns, deviation, without_variance
from rankeval.significance.declarations import Floats


@dataclass(frozen=True)
class Interval:
    """Ends of a confidence interval; arrays for many pairs."""

    low: Any
    high: Any


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
    mean, spread = columns.mean(axis=0), deviation(columns)
    constant = np.where(mean == 0, 0.0, np.copysign(np.inf, mean))
    effect = np.divide(mean, spread, out=constant, where=spread > 0)
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


def effect_interval(d: ArrayLike, *, confidence_level: float = 0.95, ratio: float = 0.0) -> Interval:
    """Return the confidence interval of Cohen's d_z, exact for normal differences.

    Parameters
    ----------
    d : array_like of shape (n,) or (n, n_pairs)
        Differences by query, or by fold.
    confidence_level : float, default 0.95
        Of the interval, half of the rest at either end.
    ratio : float, default 0.0
        Test by training queries of a fold, if the differences are those of overlapping folds; 0 for queries.

    Returns
    -------
    Interval
        The effects at which a noncentral t of ``n - 1`` degrees of freedom has the observed ``t = d_z / u`` at its
        upper and at its lower tail, with ``u = sqrt(1 / n + ratio)``: noncentralities times u. It excludes 0 exactly if
        Student's interval of the mean does. Nan if all differences are the same number, for which t is not defined.
        On scores that are not normal (three worlds of Beta distributed scores, n = 10, 25, 50; 8,000 draws each), 95 %
        intervals covered the true effect in 95.0 to 96.6 %.

    Raises
    ------
    InvalidInput
        Fewer than two differences, one that is not finite, or a level that is none.

    References
    ----------
    Steiger and Fouladi (1997), Noncentrality interval estimation and the evaluation of statistical models;
    Goulet-Pelletier and Cousineau, TQMP 14 (2018), doi:10.20982/tqmp.14.4.p242.

    Examples
    --------
    >>> interval = effect_interval([0.0, 0.5, 1.0])  # d_z is 1
    >>> print(f"[{interval.low:.2f}, {interval.high:.2f}]")
    [-0.51, 2.39]
    """
    check_share("confidence_level", confidence_level, least=0.5)
    columns = as_columns(d)
    n, unit = len(columns), np.sqrt(1 / len(columns) + ratio)
    flat = without_variance(columns)
    t = np.where(flat, 0.0, standardised_effect(columns)) / unit
    tail = (1 - confidence_level) / 2
    ends = (np.where(flat, np.nan, special.nctdtrinc(n - 1, p, t) * unit) for p in (1 - tail, tail))
    low, high = (end.reshape(np.shape(d)[1:])[()] for end in ends)
    return Interval(low, high)


def hedges_g(d: ArrayLike) -> Floats:
    """Return Hedges' g of paired differences: Cohen's d_z without its bias on few queries.

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.

    Returns
    -------
    float or ndarray of shape (n_pairs,)
        ``d_z * gamma(m / 2) / (sqrt(m / 2) * gamma((m - 1) / 2))`` with ``m = n - 1``, unbiased for normal differences:
        .92 of d_z on 10 queries, .98 on 50. Nan on two queries, where d_z has no mean.

    Raises
    ------
    InvalidInput
        Fewer than two differences, or one that is not finite.

    References
    ----------
    Hedges, Journal of Educational Statistics 6 (1981), doi:10.3102/10769986006002107.

    Examples
    --------
    >>> round(float(hedges_g([0.0, 0.5, 1.0])), 4)  # d_z is 1, gamma(1) / gamma(1 / 2) is 1 / sqrt(pi)
    0.5642
    """
    effect = standardised_effect(d)
    degrees = len(np.asarray(d)) - 1
    if degrees < 2:
        return np.asarray(np.full_like(effect, np.nan))[()]
    logarithm = special.gammaln(degrees / 2) - special.gammaln((degrees - 1) / 2) - np.log(degrees / 2) / 2
    return np.asarray(effect * np.exp(logarithm))[()]


def cliffs_delta(system: ArrayLike, baseline: ArrayLike) -> float:
    """Return Cliff's delta of two lists of scores: the share of pairs in which the system's is greater, less the rest.

    Parameters
    ----------
    system, baseline : array_like of shape (n_system,), (n_baseline,)
        The scores. Every one of the system is compared with every one of the baseline, also those of other queries;
        scores within a relative 1e-12 of each other tie.

    Returns
    -------
    float
        ``(#(x > y) - #(x < y)) / (n_system * n_baseline)``: from -1 (all of the baseline's are greater) to 1, and 0 for
        equal lists.

    Raises
    ------
    InvalidInput
        No scores, or one that is not finite.

    References
    ----------
    Cliff, Psychological Bulletin 114 (1993), doi:10.1037/0033-2909.114.3.494.

    Examples
    --------
    >>> cliffs_delta([0.4, 0.6], [0.4, 0.5])  # greater in 2 of the 4 pairs, less in 1
    0.25
    """
    high, low = (np.asarray(scores, dtype=np.float64) for scores in (system, baseline))
    for name, scores in (("system", high), ("baseline", low)):
        if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
            raise InvalidInput(f"{name} is a list of finite scores, one or more; found shape {scores.shape}")
    places = _places(np.concatenate([high, low]))
    own, theirs = places[: len(high)], np.sort(places[len(high) :])
    below = np.searchsorted(theirs, own, side="left").sum()
    not_above = np.searchsorted(theirs, own, side="right").sum()
    return float((below + not_above - len(high) * len(low)) / (len(high) * len(low)))


def superiority(d: ArrayLike) -> Floats:
    """Return the probability of superiority: the share of queries that the system won, and half of the ties.

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Differences as `columns.differences` returns them, positive if the system is better.

    Returns
    -------
    float or ndarray of shape (n_pairs,)
        In [0, 1]; .5 if it wins as often as it loses.

    References
    ----------
    Grissom and Kim, Effect sizes for research (2012), on dependent groups.

    Examples
    --------
    >>> float(superiority([0.1, 0.2, 0.0, -0.1]))
    0.625
    """
    counts = outcomes(d)
    return np.asarray((counts.wins + counts.ties / 2) / len(np.asarray(d)))[()]


def _places(values: Floats) -> Floats:
    """Return the place of each value among the distinct ones; values within `TIE_TOLERANCE` of the next are not."""
    order = np.argsort(values)
    ascending = values[order]
    largest = np.maximum(np.abs(ascending[1:]), np.abs(ascending[:-1]))
    places = np.empty(len(values))
    places[order] = np.concatenate([[0], np.cumsum(np.diff(ascending) > TIE_TOLERANCE * largest)])
    return places
