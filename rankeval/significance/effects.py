"""Sizes of differences: effects with their interval, overlap of two lists of scores, wins and losses.

Two of the effects are of the paired differences: Cohen's d (in standard deviations of a difference)
and the probability of superiority (on how many queries). Cliff's delta is of the two lists of
scores, as if they were not paired. It says how far the lists overlap, and is small if queries
differ much more than systems do.

Bayesian comparisons: how probable it is that a system is better, about equal, or worse.

These are no p-values and no error rates: they are probabilities under an assumed prior, given the
differences seen. The region of practical equivalence (rope) is the largest difference that does not
matter, in the units of the measure. Choose it before you see the data. All differences here are
gains: positive if the system is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from rankeval._checks import check_count, check_number, check_share
from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE, as_columns, deviation, without_variance
from rankeval.significance.declarations import Floats, Rng, seed_of


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

    The standard deviation is that of the *differences* (n - 1 in the denominator), not of the
    scores. Power depends on d_z. It is larger than Cohen's d of unpaired groups if both systems
    find the same queries hard.

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
    """Count the queries that the system won, tied and lost."""
    values = np.asarray(d, dtype=np.float64)
    return Outcomes((values > 0).sum(axis=0), (values == 0).sum(axis=0), (values < 0).sum(axis=0))


def effect_interval(
    d: ArrayLike, *, confidence_level: float = 0.95, ratio: float = 0.0
) -> Interval:
    """Return the confidence interval of Cohen's d_z, exact for normal differences.

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
    half = degrees / 2
    logarithm = special.gammaln(half) - special.gammaln((degrees - 1) / 2) - np.log(half) / 2
    return np.asarray(effect * np.exp(logarithm))[()]


def cliffs_delta(system: ArrayLike, baseline: ArrayLike) -> float:
    """Return Cliff's delta of two lists of scores: the share of pairs in which the system's is greater, less the rest.

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
            raise InvalidInput(
                f"{name} is a list of finite scores, one or more; found shape {scores.shape}"
            )
    places = _places(np.concatenate([high, low]))
    own, theirs = places[: len(high)], np.sort(places[len(high) :])
    below = np.searchsorted(theirs, own, side="left").sum()
    not_above = np.searchsorted(theirs, own, side="right").sum()
    n_pairs = len(high) * len(low)
    return float((below + not_above - n_pairs) / n_pairs)


def superiority(d: ArrayLike) -> Floats:
    """Return the probability of superiority: the share of queries that the system won, and half of the ties.

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


PRIOR_STRENGTH = 0.5
"""Weight of the pseudo-observation 0 in the signed rank test, an observed difference having weight 1."""

_CELLS = 2**21
"""Weights drawn at a time: 16 MB, which stay in the cache better than all of them."""


@dataclass(frozen=True)
class Posterior:
    """Probabilities that add up to 1: numbers for one column of gains, arrays of shape ``(n_pairs,)`` for a matrix."""

    worse: Any  # (n_pairs,): In [0, 1]. If the rope is 0, ``equivalent`` is 0.
    equivalent: Any
    better: Any


def correlated_t(gains: ArrayLike, rope: float, *, ratio: float = 0.0) -> Posterior:
    """Return the probabilities that the true mean gain is below, within or above the rope.

    References
    ----------
    Corani and Benavoli, Machine Learning 100 (2015), doi:10.1007/s10994-015-5486-z.

    Examples
    --------
    >>> found = correlated_t([0.1, 0.3, 0.2], 0.05)
    >>> print(f"{found.worse:.3f} {found.equivalent:.3f} {found.better:.3f}")
    0.025 0.036 0.939
    """
    check_number("rope", rope, least=0.0)
    check_number("ratio", ratio, least=0.0)
    columns = as_columns(gains)
    n, mean, spread = len(columns), columns.mean(axis=0), deviation(columns)
    scale = np.where(spread > 0, spread, np.nan) * np.sqrt(1 / n + ratio)
    below = stats.t.cdf((-rope - mean) / scale, n - 1)
    above = stats.t.sf((rope - mean) / scale, n - 1)
    return _posterior(below, above, rope, np.shape(gains)[1:])


def signed_rank(
    gains: ArrayLike, rope: float, *, n_samples: int = 50_000, rng: Rng = None
) -> Posterior:
    """Return the probabilities that a typical gain is below, within or above the rope.

    References
    ----------
    Benavoli, Mangili, Corani, Zaffalon and Ruggeri, ICML 2014, https://proceedings.mlr.press/v32/benavoli14.html;
    Benavoli, Corani, Demsar and Zaffalon, JMLR 18 (2017), https://jmlr.org/papers/v18/16-305.html.

    Examples
    --------
    >>> found = signed_rank([0.2, 0.3, 0.2, 0.3], 0.01, rng=0)  # "equivalent" is left with the pseudo-observation
    >>> print(f"{found.worse:.1f} {found.better:.1f}")
    0.0 1.0
    """
    check_number("rope", rope, least=0.0)
    check_count("n_samples", n_samples)
    columns, seed = as_columns(gains), seed_of(rng)
    # Each column has the same seed, so that no probability depends on which other pairs are asked
    # for.
    shares = np.array([_shares(column, float(rope), n_samples, seed) for column in columns.T])
    shares[without_variance(columns)] = np.nan
    return _posterior(shares[:, 0], shares[:, 1], rope, np.shape(gains)[1:])


def _posterior(below: Floats, above: Floats, rope: float, shape: tuple[int, ...]) -> Posterior:
    within = np.clip(1 - below - above, 0.0, 1.0) if rope > 0 else 0.0 * below
    worse, equivalent, better = (part.reshape(shape)[()] for part in (below, within, above))
    return Posterior(worse, equivalent, better)


def _shares(gains: Floats, rope: float, n_samples: int, seed: int) -> tuple[float, float]:
    """Return the shares of draws for worse and for better; equally probable ones share a draw."""
    z = np.append(gains, 0.0)
    order = np.argsort(z, kind="stable")
    prior = int(np.flatnonzero(order == len(gains))[0])  # the place of the pseudo-observation
    worse = better = 0.0
    for weights in _weights(len(z), prior, n_samples, np.random.default_rng(seed)):
        above = _mass_above(z[order], weights, rope)
        below = _mass_above(-z[order][::-1], weights[:, ::-1], rope)
        within = 1 - above - below if rope > 0 else np.full_like(above, -1.0)
        masses = np.stack([below, within, above])
        most = masses >= masses.max(axis=0) - TIE_TOLERANCE
        share = most / most.sum(axis=0)
        worse, better = worse + share[0].sum(), better + share[2].sum()
    return worse / n_samples, better / n_samples


def _weights(
    n: int, prior: int, n_samples: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """Draw Dirichlet weights, all parameters being 1 but that of the prior, in chunks of shape (n_draws, n)."""
    chunk = max(1, _CELLS // n)
    for start in range(0, n_samples, chunk):
        weights = generator.standard_exponential((min(chunk, n_samples - start), n))
        weights[:, prior] = generator.standard_gamma(PRIOR_STRENGTH, len(weights))
        yield weights / weights.sum(axis=1, keepdims=True)


def _mass_above(z: Floats, weights: Floats, rope: float) -> Floats:
    """Return for each draw the mass of pairs whose mean is above the rope, half of those on its edge.

    ``z`` ascends, so the partners that lift ``z_i`` above the rope are a tail of z: sums of tails
    give all pairs.
    """
    slack = TIE_TOLERANCE * (2 * rope + np.abs(z).max())
    tails = np.zeros((len(weights), len(z) + 1))
    tails[:, :-1] = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    beyond = np.searchsorted(z, 2 * rope + slack - z, side="right")
    reached = np.searchsorted(z, 2 * rope - slack - z, side="left")
    partners = tails[:, beyond]
    if (edge := beyond != reached).any():
        partners[:, edge] = (partners[:, edge] + tails[:, reached[edge]]) / 2
    return np.asarray(np.einsum("si,si->s", weights, partners))
