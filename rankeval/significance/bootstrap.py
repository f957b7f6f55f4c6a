"""Bootstraps over queries.

A resample draws as many queries as there are, with replacement. It is a row of weights: how often
each query was drawn, divided by their number. A chunk of such rows times the matrix of differences
gives the resampled means of all pairs at once (BLAS). Each test here names a statistic of a
resample, and reads p-value and interval from the statistics drawn.

The symmetric studentised bootstrap comes nearest to its level on few queries, and "bootstrap" means
this one. The others are offered because papers use them; below 50 queries they carry a note that
says how liberal they are.

The trap: a resample that ties with the observed value must count as reaching it. Means of tenths
differ from each other in their last bits, so comparisons leave a slack of 1e-12 of the mean
absolute difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import special

from rankeval._threads import one_blas_thread
from rankeval.significance.columns import TIE_TOLERANCE, standard_error
from rankeval.significance.declarations import (
    TESTS,
    Floats,
    PairedResult,
    Settings,
    SignificanceTest,
    joined,
    most_reaching,
    one_resample,
)
from rankeval.significance.randomization import chunk_rows
from rankeval.significance.weighted import relative, weighted_error, weighted_mean

Statistic = Callable[[Floats, Floats], Floats]
"""``(weights, d)`` -> a row per resample, a column per pair."""

Reading = Callable[[Floats, Floats], PairedResult]
"""``(d, drawn)`` -> p-values and intervals; drawn as `Statistic` returns it, for all resamples."""

_DRAWS_AT_ONCE = 2**23
"""Statistics kept in memory (64 MB); more pairs are worked off in blocks, which share their resamples."""


def bootstrap_t(d: Floats, settings: Settings, weights: Floats | None = None) -> PairedResult:
    """Test the mean difference by the symmetric studentised bootstrap over queries.

    Conservative on 10 queries, two-sided, and at its level beyond where differences are symmetric
    or mildly skewed.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences 3.4-4.5 % at 10
    queries, 4.7-5.0 % at 25, 4.9-5.5 % at 50, 5.0-5.3 % at 100; sparse scores 0.2 % at 10 queries, 0.7-1.6 % at 25,
    2.8-3.4 % at 50, 4.5-4.9 % at 100; exponential differences 7.0 % at 10 queries, 5.9 % at 25, 5.5 % at 50, 4.9 % at
    100. One-sided, the worse side: symmetric to mildly skewed differences 4.5-6.8 % at 10 queries, 5.2-6.3 % at 25,
    5.2-6.0 % at 50, 5.2 % at 100; sparse scores 0.4-0.9 % at 10 queries, 2.4-2.8 % at 25, 4.2-4.7 % at 50, 4.9-5.1 % at
    100; exponential differences 10.8 % at 10 queries, 9.0 % at 25, 8.1 % at 50, 7.2 % at 100.

    A one-sided p-value is half the two-sided one, or 1 less that half. The interval is ``mean +- q
    * standard error``, q from the resampled ``|t|``: it excludes 0 exactly if p is at most alpha. A
    resample without variance counts as extreme, so with very few queries the interval can be
    infinite.

    Weighted queries are drawn with their weights; mean and standard error of each resample are
    those of its ratio.
    """
    statistic = _absolute_t if weights is None else partial(_absolute_t_of_ratio, weights)

    def read(d: Floats, drawn: Floats) -> PairedResult:
        mean, error = d.mean(axis=0), standard_error(d)
        if weights is not None:
            mean, error = weighted_mean(d, weights), weighted_error(d, weights)
        mean[np.abs(mean) <= _slack(d)] = 0.0  # a mean that is 0 but for rounding has no direction
        p_value = _share_reaching(drawn, np.abs(mean) / error * (1 - TIE_TOLERANCE))
        if settings.sides == 1:
            p_value = np.where(settings.evidence(mean) > 0, p_value / 2, 1 - p_value / 2)

        def ends(settings: Settings) -> tuple[Floats, Floats]:
            reach = _critical(drawn, 2 * settings.tail) * error
            return mean - reach, mean + reach

        return PairedResult.with_ends(p_value, ends, settings)

    return _bootstrap(d, settings, statistic, read)


TESTS["bootstrap"] = SignificanceTest(
    function=bootstrap_t,
    weighted=bootstrap_t,
    words="symmetric studentised bootstrap",
    random_beyond=0,
    floor=lambda n, settings: one_resample(n, settings) * settings.sides / 2,
    needs_variance=True,
    power_of_t=True,
)


def bootstrap_shift(d: Floats, settings: Settings) -> PairedResult:
    """Test the mean difference by the bootstrap shifted to the null, not studentised.

    Liberal on few queries; the more, the more skewed the differences are.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences 9.6-10.3 % at 10
    queries, 6.9-7.3 % at 25, 6.0-6.4 % at 50, 5.4-5.6 % at 100; sparse scores 0.7-3.2 % at 10 queries, 3.1-5.7 % at 25,
    3.7-6.1 % at 50, 4.1-5.3 % at 100; exponential differences 14.4 % at 10 queries, 9.5 % at 25, 7.5 % at 50, 5.9 % at
    100. One-sided, the worse side: symmetric to mildly skewed differences 7.7-10.5 % at 10 queries, 6.3-7.8 % at 25,
    5.7-6.8 % at 50, 5.3-5.7 % at 100; sparse scores 1.5-3.2 % at 10 queries, 2.6-4.5 % at 25, 3.6-5.4 % at 50,
    4.0-5.0 % at 100; exponential differences 17.3 % at 10 queries, 12.4 % at 25, 10.1 % at 50, 8.5 % at 100.

    The interval is ``mean +- q``, q from the resampled distances to the mean.
    """

    def read(d: Floats, drawn: Floats) -> PairedResult:
        mean = d.mean(axis=0)
        moved = drawn - mean
        p_value = _share_reaching(settings.evidence(moved), settings.evidence(mean) - _slack(d))

        def ends(settings: Settings) -> tuple[Floats, Floats]:
            if settings.sides == 1:
                least, most = np.quantile(moved, [settings.tail, 1 - settings.tail], axis=0)
                return mean - most, mean - least
            reach = _critical(np.abs(moved), 2 * settings.tail)
            return mean - reach, mean + reach

        return PairedResult.with_ends(p_value, ends, settings)

    return _bootstrap(d, settings, np.matmul, read)


TESTS["bootstrap_shift"] = SignificanceTest(
    function=bootstrap_shift,
    words="shift bootstrap",
    random_beyond=0,
    floor=one_resample,
    needs_variance=True,
    liberal="up to 14.4 % at 10 {units}, 9.5 % at 25",
)


def bootstrap_percentile(d: Floats, settings: Settings) -> PairedResult:
    """Test the mean difference by the percentile bootstrap: is 0 among the resampled means.

    Liberal on few queries; the more, the more skewed the differences are.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences 9.6-10.4 % at 10
    queries, 6.9-7.3 % at 25, 5.9-6.5 % at 50, 5.3-5.6 % at 100; sparse scores 1.5-6.7 % at 10 queries, 4.6-9.6 % at 25,
    4.8-7.6 % at 50, 4.3-6.1 % at 100; exponential differences 13.4 % at 10 queries, 8.6 % at 25, 7.1 % at 50, 5.7 % at
    100. One-sided, the worse side: symmetric to mildly skewed differences 8.0-10.0 % at 10 queries, 6.1-7.3 % at 25,
    5.6-6.3 % at 50, 5.4 % at 100; sparse scores 1.9-6.8 % at 10 queries, 5.3-7.9 % at 25, 4.2-6.8 % at 50, 4.3-5.7 % at
    100; exponential differences 15.2 % at 10 queries, 10.5 % at 25, 8.6 % at 50, 7.3 % at 100.

    The interval lies between the percentiles of the resampled means.
    """

    def read(d: Floats, drawn: Floats) -> PairedResult:
        greater, less = _share_reaching(-drawn, -_slack(d)), _share_reaching(drawn, -_slack(d))

        def ends(settings: Settings) -> tuple[Floats, Floats]:
            low, high = np.quantile(drawn, [settings.tail, 1 - settings.tail], axis=0)
            return low, high

        return PairedResult.with_ends(settings.p_of_tails(greater, less), ends, settings)

    return _bootstrap(d, settings, np.matmul, read)


TESTS["bootstrap_percentile"] = SignificanceTest(
    function=bootstrap_percentile,
    words="percentile bootstrap",
    random_beyond=0,
    floor=lambda n, settings: one_resample(n, settings) * settings.sides,
    needs_variance=True,
    liberal="up to 13.4 % at 10 {units}, 9.6 % at 25",
)


def bootstrap_bca(d: Floats, settings: Settings) -> PairedResult:
    """Test the mean difference by the bias-corrected and accelerated bootstrap, its interval inverted.

    Liberal on few queries; the more, the more skewed or sparse the differences are.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences
    9.9-11.3 % at 10 queries, 7.1-7.8 % at 25, 6.0-7.0 % at 50, 5.5-5.9 % at 100; sparse scores
    3.8-15.1 % at 10 queries, 10.4-16.8 % at 25, 7.0-11.1 % at 50, 5.3-7.7 % at 100; exponential
    differences 11.9 % at 10 queries, 8.2 % at 25, 6.6 % at 50, 5.8 % at 100. One-sided, the worse
    side: symmetric to mildly skewed differences 7.8-9.6 % at 10 queries, 6.3-6.9 % at 25, 5.8-6.0 %
    at 50, 5.5-5.6 % at 100; sparse scores 2.6-12.5 % at 10 queries, 6.2-11.3 % at 25, 5.4-8.8 % at
    50, 4.8-6.6 % at 100; exponential differences 12.6 % at 10 queries, 8.2 % at 25, 6.8 % at 50,
    5.6 % at 100.

    Interval of Efron (1987), doi:10.1080/01621459.1987.10478410: its ends are the percentiles of
    the resampled means at ``Phi(b + (b + z) / (1 - a (b + z)))``, b the bias, a the acceleration, z
    the normal quantile of the tail.
    """

    def read(d: Floats, drawn: Floats) -> PairedResult:
        mean, edge, slack = d.mean(axis=0), 1 / (settings.n_resamples + 1), _slack(d)

        def quantile(share: Floats) -> Floats:
            return np.asarray(special.ndtri(np.clip(share, edge, 1 - edge)))

        not_above, below = _share_up_to(drawn, mean + slack), _share_up_to(drawn, mean - slack)
        bias = quantile((not_above + below) / 2)  # draws that equal the mean count half
        centred = d - mean
        # Of a mean, the jackknife's acceleration is this ratio of moments.
        acceleration = np.nan_to_num(
            (centred**3).sum(axis=0) / (6 * (centred**2).sum(axis=0) ** 1.5)
        )

        def level_of(share: Floats) -> Floats:
            """Solve Efron's formula for the level at which the interval ends at 0."""
            z = quantile(share) - bias
            return np.asarray(special.ndtr(z / (1 + acceleration * z) - bias))

        # A draw of 0 reaches 0 from either side, as in the interval, which holds the draw at its
        # end.
        greater = level_of(_share_up_to(drawn, slack))
        less = 1 - level_of(_share_up_to(drawn, -slack))

        def limit(z: float) -> Floats:
            levels = special.ndtr(bias + (bias + z) / (1 - acceleration * (bias + z)))
            return np.array(
                [np.quantile(column, level) for column, level in zip(drawn.T, levels, strict=True)]
            )

        def ends(settings: Settings) -> tuple[Floats, Floats]:
            z = float(special.ndtri(settings.tail))
            return limit(z), limit(-z)

        return PairedResult.with_ends(settings.p_of_tails(greater, less), ends, settings)

    return _bootstrap(d, settings, np.matmul, read)


TESTS["bootstrap_bca"] = SignificanceTest(
    function=bootstrap_bca,
    words="BCa bootstrap",
    random_beyond=0,
    needs_variance=True,
    liberal="up to 15.1 % at 10 {units}, 16.8 % at 25",
)


@one_blas_thread()
def _bootstrap(d: Floats, settings: Settings, statistic: Statistic, read: Reading) -> PairedResult:
    seed = int(np.random.default_rng(settings.rng).integers(2**63))
    width = max(1, _DRAWS_AT_ONCE // settings.n_resamples)
    parts = []
    for start in range(0, d.shape[1], width):
        block = d[:, start : start + width]
        chunks = weight_chunks(len(block), settings.n_resamples, seed, n_columns=block.shape[1])
        parts.append(read(block, np.concatenate([statistic(weights, block) for weights in chunks])))
    return joined(parts)


def weight_chunks(n: int, n_resamples: int, seed: int, *, n_columns: int) -> Iterator[Floats]:
    """Yield matrices of how often each query was drawn, divided by n: a resample per row."""
    generator, rows = np.random.default_rng(seed), chunk_rows(n, n_columns)
    for start in range(0, n_resamples, rows):
        size = min(rows, n_resamples - start)
        # A range of n numbers for each row, so that one bincount serves the whole chunk.
        drawn = generator.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n) / n


def _absolute_t(weights: Floats, d: Floats) -> Floats:
    """Return ``|t|`` of each resample, about the observed mean; infinite if it has no variance."""
    centred = d - d.mean(axis=0)
    mean, square = weights @ centred, weights @ centred**2
    return _studentised(mean, square - mean**2, square, len(d))


def _absolute_t_of_ratio(weights: Floats, drawn: Floats, d: Floats) -> Floats:
    """Return `_absolute_t` of weighted means: both sums of the ratio are those of the resample."""
    share = relative(weights)[:, None]
    centred = share * (d - weighted_mean(d, weights))
    mean, square = drawn @ centred, drawn @ centred**2
    # The weighted mean of the resample, about the observed one.
    ratio = mean / (drawn @ share)
    variance = square - 2 * ratio * (drawn @ (share * centred)) + ratio**2 * (drawn @ share**2)
    return _studentised(mean, variance, square, len(d))


def _studentised(mean: Floats, variance: Floats, square: Floats, n: int) -> Floats:
    # One query drawn n times over has no variance, whatever rounding leaves of it.
    variance[variance <= TIE_TOLERANCE * square] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / np.sqrt(variance / (n - 1))
    return np.where(variance > 0, t, np.inf)


def _slack(d: Floats) -> Floats:
    """Return how far two resampled means may be apart and still be equal but for rounding."""
    return np.asarray(TIE_TOLERANCE * np.abs(d).mean(axis=0))


def _share_reaching(drawn: Floats, least: Floats) -> Floats:
    # The observed value counts among them, so a p-value is never 0.
    return np.asarray((1 + (drawn >= least).sum(axis=0)) / (len(drawn) + 1))


def _share_up_to(drawn: Floats, value: Floats) -> Floats:
    return np.asarray((drawn <= value).mean(axis=0))


def _critical(drawn: Floats, alpha: float) -> Floats:
    """Return the value that is exceeded exactly where p is at most alpha; infinite if nothing can be."""
    # p = (1 + b) / (B + 1) <= alpha means that fewer than k = alpha (B + 1) draws reach the
    # observed value.
    k = most_reaching(alpha, len(drawn) + 1)
    if k < 1:
        return np.full(drawn.shape[1], np.inf)
    place = len(drawn) - min(k, len(drawn))
    return np.asarray(np.partition(drawn, place, axis=0)[place])
