"""Paired tests without resampling: Student's t, Wilcoxon's signed ranks, the sign test, and a t test over folds.

Training parts of different folds share most of their queries, and repeats test the same queries
again, so fold scores are not a sample: a plain t test over ten times ten folds claims a difference
in over half of the cases without one. The correction adds the ratio of test to training queries to
the variance of the mean.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rankeval._checks import require
from rankeval.errors import InvalidInput
from rankeval.significance.columns import standard_error
from rankeval.significance.declarations import (
    FOLD_TESTS,
    TESTS,
    Floats,
    PairedResult,
    Settings,
    SignificanceTest,
    one_pattern,
)
from rankeval.significance.weighted import degrees_of_freedom, weighted_error, weighted_mean

EXACT_WILCOXON = 25
"""Up to this many non-zero differences the distribution of Wilcoxon's statistic is counted out."""


def paired_t(d: Floats, settings: Settings) -> PairedResult:
    """Test whether the mean difference is zero by Student's paired t.

    Two-sided, and where differences are symmetric or mildly skewed, it holds its level from 10
    queries on. Strong skew makes it liberal, most of all one-sided against the tail.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences
    4.8-5.8 % at 10 queries, 4.9-5.2 % at 25, 5.1 % at 50, 5.1 % at 100; sparse scores 0.7 % at 10
    queries, 3.4-4.4 % at 25, 4.4-4.7 % at 50, 4.8-5.0 % at 100; exponential differences 9.9 % at 10
    queries, 7.6 % at 25, 6.5 % at 50, 5.9 % at 100. One-sided, the worse side: symmetric to mildly
    skewed differences 5.0-7.5 % at 10 queries, 5.1-6.3 % at 25, 5.2-6.0 % at 50, 5.1-5.7 % at 100;
    sparse scores 2.0-2.2 % at 10 queries, 4.8-5.3 % at 25, 5.1-5.2 % at 50, 5.1-5.2 % at 100;
    exponential differences 13.4 % at 10 queries, 10.3 % at 25, 8.7 % at 50, 7.6 % at 100.

    Equal to `scipy.stats.ttest_rel`.
    """
    result = stats.ttest_1samp(d, 0.0, axis=0, alternative=settings.alternative)
    return _with_student(np.asarray(result.pvalue), d, settings)


def weighted_t(d: Floats, settings: Settings, weights: Floats) -> PairedResult:
    """Test whether the weighted mean difference is zero by its linearised standard error."""
    mean, error = weighted_mean(d, weights), weighted_error(d, weights)
    degrees = degrees_of_freedom(weights)
    greater, less = (stats.t.sf(sign * mean / error, degrees) for sign in (1, -1))

    def ends(asked: Settings) -> tuple[Floats, Floats]:
        return _student_ends(mean, error, degrees + 1, asked)

    return PairedResult.with_ends(settings.p_of_tails(greater, less), ends, settings)


TESTS["t"] = SignificanceTest(
    function=paired_t,
    weighted=weighted_t,
    words="paired t test",
    needs_variance=True,
    power_of_t=True,
)


def t_interval(d: Floats, settings: Settings) -> tuple[Floats, Floats]:
    """Return the limits of Student's interval of the mean."""
    return _student_ends(d.mean(axis=0), standard_error(d), len(d), settings)


def _student_ends(
    mean: Floats, error: Floats, n: float, settings: Settings
) -> tuple[Floats, Floats]:
    reach = stats.t.isf(settings.tail, n - 1) * error
    return mean - reach, mean + reach


def _with_student(p_value: Floats, d: Floats, settings: Settings) -> PairedResult:
    mean, error = d.mean(axis=0), standard_error(d)
    return PairedResult.with_ends(
        p_value, lambda settings: _student_ends(mean, error, len(d), settings), settings
    )


_OF_SYMMETRY = (
    "the Wilcoxon test is one of symmetry about zero, not of the mean; the interval is Student's, "
    "of the mean"
)


def wilcoxon(d: Floats, settings: Settings) -> PairedResult:
    """Test whether the differences are symmetric about zero by Wilcoxon's signed ranks.

    Not a test of the mean: on skewed differences of equal means it rejects too often, and more with
    more queries. Zero differences are dropped; exact, with ties too, up to 25 others.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences
    4.5-5.6 % at 10 queries, 4.9-6.5 % at 25, 5.3-7.8 % at 50, 4.7-9.7 % at 100; sparse scores
    0.0-0.2 % at 10 queries, 0.4-3.3 % at 25, 1.8-4.8 % at 50, 2.8-5.0 % at 100; exponential
    differences 8.8 % at 10 queries, 14.4 % at 25, 22.6 % at 50, 38.6 % at 100. One-sided, the worse
    side: symmetric to mildly skewed differences 4.2-7.6 % at 10 queries, 5.0-9.7 % at 25, 5.4-12.4
    % at 50, 5.2-15.6 % at 100; sparse scores 0.1-0.7 % at 10 queries, 0.8-4.0 % at 25, 1.9-5.3 % at
    50, 3.1-5.2 % at 100; exponential differences 13.2 % at 10 queries, 21.5 % at 25, 33.0 % at 50,
    50.9 % at 100.

    Equal to `scipy.stats.wilcoxon` (exact without ties, else its approximation without continuity
    correction). The interval is Student's, of the mean.
    """
    return _with_student(_p_of_signed_ranks(d, settings), d, settings)


TESTS["wilcoxon"] = SignificanceTest(
    function=wilcoxon, words="Wilcoxon signed-rank test", floor=one_pattern, note=_OF_SYMMETRY
)


def wilcoxon_pratt(d: Floats, settings: Settings) -> PairedResult:
    """Test whether the differences are symmetric about zero by signed ranks, zero differences ranked too.

    Pratt's (1959, doi:10.1080/01621459.1959.10501526) variant of `wilcoxon`: zero differences take
    the lowest ranks before they are dropped. With many ties between systems, as for P@1 and RR, the
    other differences then weigh more alike. Its limits are those of `wilcoxon`: it is not a test of
    the mean.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences
    4.5-5.6 % at 10 queries, 4.9-6.5 % at 25, 5.3-7.8 % at 50, 4.7-9.7 % at 100; sparse scores
    0.0-0.2 % at 10 queries, 0.4-3.4 % at 25, 1.8-5.1 % at 50, 2.8-4.9 % at 100; exponential
    differences 8.8 % at 10 queries, 14.4 % at 25, 22.6 % at 50, 38.6 % at 100. One-sided, the worse
    side: symmetric to mildly skewed differences 4.2-7.6 % at 10 queries, 5.0-9.7 % at 25, 5.4-12.4
    % at 50, 5.2-15.6 % at 100; sparse scores 0.1-0.7 % at 10 queries, 0.8-4.0 % at 25, 1.9-5.2 % at
    50, 3.1-5.3 % at 100; exponential differences 13.2 % at 10 queries, 21.5 % at 25, 33.0 % at 50,
    50.9 % at 100.

    Equal to `scipy.stats.wilcoxon` with ``zero_method="pratt"`` (exact, with zeros and ties too, up
    to 25 differences that are not 0; else its approximation without continuity correction). The
    interval is Student's, of the mean.
    """
    return _with_student(_p_of_signed_ranks(d, settings, "pratt"), d, settings)


TESTS["wilcoxon_pratt"] = SignificanceTest(
    function=wilcoxon_pratt,
    words="Wilcoxon signed-rank test with Pratt's zeros",
    floor=one_pattern,
    note=_OF_SYMMETRY,
)


def _p_of_signed_ranks(
    d: Floats, settings: Settings, zero_method: Literal["wilcox", "pratt"] = "wilcox"
) -> Floats:
    """Return the p-value of each column's signed ranks; zeros are dropped before ("wilcox") or after ("pratt") ranking.

    Columns with as many differences go into one matrix: a call for each column takes fifty times as
    long.
    """
    p_value, changed = np.ones(d.shape[1]), (d != 0).sum(axis=0)
    for number in np.unique(changed[changed > 0]):
        alike = np.flatnonzero(changed == number)
        rows = d.T[alike]
        if zero_method == "wilcox":
            rows = rows[rows != 0].reshape(len(alike), number)
        if number <= EXACT_WILCOXON:
            p_value[alike] = _exact_signed_ranks(rows, settings)
        else:
            p_value[alike] = stats.wilcoxon(
                rows,
                axis=1,
                zero_method=zero_method,
                method="approx",
                alternative=settings.alternative,
            ).pvalue
    return p_value


def _exact_signed_ranks(rows: Floats, settings: Settings) -> Floats:
    # Rounded, since 0.3 - 0.2 and 0.2 - 0.1 differ in their last bit and would not tie. Doubled, so
    # that the mean ranks of ties are whole numbers too and can be places in an array.
    ranks = np.round(2 * stats.rankdata(np.round(np.abs(rows), 12), axis=1)).astype(np.int64)
    observed = np.where(rows > 0, ranks, 0).sum(axis=1)
    signed = np.sort(ranks[rows != 0].reshape(len(rows), -1), axis=1)
    ways, patterns = [_ways(tuple(row)) for row in signed.tolist()], 2.0 ** signed.shape[1]
    greater = [
        of_row[least:].sum() / patterns for least, of_row in zip(observed, ways, strict=True)
    ]
    less = [
        of_row[: most + 1].sum() / patterns for most, of_row in zip(observed, ways, strict=True)
    ]
    return settings.p_of_tails(greater, less)


@lru_cache(maxsize=256)
def _ways(ranks: tuple[int, ...]) -> Floats:
    # Rank by rank. Kept, because rows without ties have the same ranks.
    ways = np.ones(1)
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    return ways


def sign(d: Floats, settings: Settings) -> PairedResult:
    """Test whether wins and losses are equally likely, by the exact binomial; ties are dropped.

    Not a test of the mean: on skewed differences of equal means it rejects too often, and more with
    more queries.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences
    2.0-3.4 % at 10 queries, 4.5-10.1 % at 25, 3.3-13.5 % at 50, 3.4-24.9 % at 100; sparse scores
    0.0-0.1 % at 10 queries, 0.4-1.8 % at 25, 1.8-3.0 % at 50, 2.8-3.0 % at 100; exponential
    differences 7.0 % at 10 queries, 25.0 % at 25, 40.4 % at 50, 71.5 % at 100. One-sided, the worse
    side: symmetric to mildly skewed differences 1.0-3.2 % at 10 queries, 2.3-9.8 % at 25, 3.3-20.3
    % at 50, 4.5-39.3 % at 100; sparse scores 0.1-0.6 % at 10 queries, 0.8-2.1 % at 25, 1.9-3.3 % at
    50, 3.1-3.8 % at 100; exponential differences 6.9 % at 10 queries, 25.0 % at 25, 51.9 % at 50,
    83.7 % at 100.

    Equal to `scipy.stats.binomtest` on wins and losses. The interval is Student's, of the mean.
    """
    wins, losses = (d > 0).sum(axis=0), (d < 0).sum(axis=0)
    greater, less = (stats.binom.cdf(fewer, wins + losses, 0.5) for fewer in (losses, wins))
    return _with_student(settings.p_of_tails(greater, less), d, settings)


TESTS["sign"] = SignificanceTest(
    function=sign,
    words="sign test",
    floor=one_pattern,
    note="the sign test is one of the median (wins against losses), not of the mean; the interval is Student's",
)


REPEATS_RECOMMENDED = 10
"""One run of ten folds finds half of the differences that ten runs find (power .38 against .74 where both were
measured), and is too timid besides: .015 false positives where .05 are asked."""


def corrected_resampled_t(d: Floats, settings: Settings) -> PairedResult:
    """Test whether two algorithms differ, by their differences on folds that overlap.

    Holds its level on ten repeats of ten folds, where the plain t makes over 40 % false claims.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: 10 x 10 folds
    4.2 %; one run of 10 folds 1.1 %.

    The differences, a value per fold of all repeats, come from `widened`: their plain t is
    ``t = mean(d) / sqrt(var(d) * (1 / n_folds + ratio))`` on ``n_folds - 1`` degrees of freedom.

    References
    ----------
    Nadeau and Bengio, Machine Learning 52 (2003), doi:10.1023/A:1024068626366; Bouckaert and Frank (2004),
    doi:10.1007/978-3-540-24775-3_3.
    """
    return paired_t(d, settings)


FOLD_TESTS["corrected_resampled_t"] = SignificanceTest(
    function=corrected_resampled_t,
    words="corrected resampled t test of fold means",
    needs_variance=True,
    power_of_t=True,
)


def widened(d: ArrayLike, ratio: float) -> Floats:
    """Return differences of the same mean whose plain t is the corrected one.

    So the plain interval of these is the corrected one too, and so is the detectable difference at
    their deviation.
    """
    expected = "test queries by training queries, such as 1 / 4 for 5 folds"
    require(np.isfinite(ratio) and ratio > 0, "ratio", ratio, expected)
    folds = np.asarray(d, dtype=np.float64)
    if folds.ndim not in (1, 2) or len(folds) < 2:
        raise InvalidInput(
            f"the differences of at least 2 folds are needed, found shape {folds.shape}"
        )
    mean = folds.mean(axis=0)
    # var * (1 / J + ratio) is the plain variance of the mean, var / J, times 1 + J * ratio.
    return np.asarray(mean + (folds - mean) * np.sqrt(1 + len(folds) * ratio))
