"""Paired tests that need no resampling, and what all paired tests share: one column of differences per pair.

A difference is one query's score of a system minus its score of the baseline. Every test takes them as an array of
shape ``(n_queries,)`` or, for many pairs over the same queries, ``(n_queries, n_pairs)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rankeval._registry import chosen
from rankeval.errors import InvalidInput

Floats = NDArray[np.float64]

TIE_TOLERANCE = 1e-12
"""Two scores closer than this share of the larger one are a tie: float noise is neither a win nor a loss."""

EXACT_WILCOXON = 25
"""Up to this many non-zero differences Wilcoxon's distribution is counted out."""

FOLD = "fold"
"""Name of an index of folds: its values are known not to be a sample."""

FOLD_COLUMNS = ({"fit_time", "score_time"}, {"fit_seconds", "score_seconds"})
"""By which tables of folds are told that have lost their index: scikit-learn's, and ``CrossValidation.folds``."""

NO_SAMPLE = (
    "these are scores of folds, which overlap and are no sample: a t test over them claims a difference in half of the "
    'cases without one. Use CrossValidation.compare(other, question="algorithms"), or the scores per query, '
    "CrossValidation.evaluation"
)

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES = ("two-sided", "greater", "less")


@dataclass(frozen=True)
class PairedTest:
    """The outcome of a paired test: numbers for one column, arrays of shape ``(n_pairs,)`` for a matrix.

    Attributes
    ----------
    p_value : float or ndarray of shape (n_pairs,)
        In (0, 1], never 0.
    ci_low, ci_high : float or ndarray of shape (n_pairs,)
        Confidence interval of the mean difference; one-sided alternatives leave one end infinite.
    notes : tuple of str
        What a reader of the numbers must know.
    """

    p_value: Any
    ci_low: Any
    ci_high: Any
    notes: tuple[str, ...] = ()


def differences(system: ArrayLike, baseline: ArrayLike) -> Floats:
    """Subtract the baseline's scores from the system's, ties being exactly 0.

    Parameters
    ----------
    system, baseline : array_like
        Scores of equal shape, a row per query.

    Returns
    -------
    ndarray
        The differences; 0 where the two are within `TIE_TOLERANCE` of each other, relative to the larger.
    """
    high, low = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    difference = high - low
    difference[np.abs(difference) <= TIE_TOLERANCE * np.maximum(np.abs(high), np.abs(low))] = 0.0
    return difference


def as_columns(d: ArrayLike) -> Floats:
    """Check differences and return them as a matrix of shape ``(n_queries, n_pairs)``.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a value that is not finite, more than two dimensions, or scores of folds.
    """
    refuse_fold_scores(d)
    columns = np.asarray(d, dtype=np.float64)
    if columns.ndim not in (1, 2):
        raise InvalidInput(f"differences have shape (n_queries,) or (n_queries, n_pairs), found {columns.shape}")
    if len(columns) < 2:
        raise InvalidInput(f"a paired test needs at least 2 queries, found {len(columns)}")
    if broken := int(np.count_nonzero(~np.isfinite(columns))):
        raise InvalidInput(
            f"differences must be finite, found {broken} that are NaN or infinite; decide what such a query counts"
        )
    return columns.reshape(len(columns), -1)


def refuse_fold_scores(table: Any) -> None:
    """Raise `InvalidInput` for a frame of fold scores: folds overlap, so that tests of queries do not hold on them.

    Parameters
    ----------
    table : object
        Told by an index level "fold", as in ``CrossValidation.folds``, or by its columns of seconds or those of
        scikit-learn's ``cross_validate``. Anything else passes.
    """
    levels = getattr(getattr(table, "index", None), "names", ())
    columns = set(getattr(table, "columns", ()))
    if FOLD in levels or any(theirs <= columns for theirs in FOLD_COLUMNS):
        raise InvalidInput(NO_SAMPLE)


def check_alternative(alternative: str) -> Alternative:
    """Return the alternative, or raise `UnknownName` unless it is one of `ALTERNATIVES`."""
    return cast("Alternative", chosen("alternative", alternative, ALTERNATIVES))


def without_variance(columns: Floats) -> NDArray[np.bool_]:
    """Find the columns whose differences are all the same number, up to rounding."""
    spread: NDArray[np.bool_] = np.ptp(columns, axis=0) <= TIE_TOLERANCE * np.abs(columns).max(axis=0)
    return spread


def wrap(d: ArrayLike, p_value: Floats, low: Floats, high: Floats, notes: tuple[str, ...] = ()) -> PairedTest:
    """Put the columns' outcomes into a result shaped like the input, p-values kept above 0 where they underflow."""
    shape = np.shape(d)[1:]
    p_value = np.clip(p_value, np.finfo(np.float64).tiny, 1.0)
    p_value, low, high = (np.reshape(part, shape)[()] for part in (p_value, low, high))
    return PairedTest(p_value, low, high, notes)


def flat_outcome(columns: Floats, alternative: str) -> tuple[Floats, tuple[str, ...]]:
    """Return the p-values that columns without variance get, and what to say about it.

    Equal systems get 1. For a constant difference the t statistic is infinite and a bootstrap sees one value only:
    either would print a p of 0. The sign flips still have a distribution there, in which the observed order is the
    most extreme one: 2 in 2^n, or 1 in 2^n for a one-sided test.
    """
    mean, n = columns.mean(axis=0), len(columns)
    sides = np.ones(columns.shape[1]) if alternative == "two-sided" else np.sign(mean)
    tail = 2.0 if alternative == "two-sided" else 1.0
    agrees = sides > 0 if alternative != "less" else sides < 0
    p_value = np.where((mean != 0) & agrees, tail * 0.5**n, 1.0)
    flat = without_variance(columns) & (mean != 0)
    if not flat.any():
        return p_value, ()
    note = (
        f"{int(flat.sum())} of the differences tested: the same number on every query. Without variance neither t nor "
        "a bootstrap is defined: the p-value is that of the sign flips, and the interval has no width"
    )
    return p_value, (note,)


def t_interval(columns: Floats, alternative: str, confidence_level: float) -> tuple[Floats, Floats]:
    """Return Student's interval of the mean, one-sided where the alternative is."""
    n = len(columns)
    mean, error = columns.mean(axis=0), columns.std(axis=0, ddof=1) / np.sqrt(n)
    tail = (1 - confidence_level) / (2 if alternative == "two-sided" else 1)
    reach = stats.t.isf(tail, n - 1) * error
    low = mean - reach if alternative != "less" else np.full_like(mean, -np.inf)
    high = mean + reach if alternative != "greater" else np.full_like(mean, np.inf)
    return low, high


def paired_t(d: ArrayLike, *, alternative: str = "two-sided", confidence_level: float = 0.95) -> PairedTest:
    """Test whether the mean difference is zero by Student's paired t.

    Two-sided, and where differences are symmetric or mildly skewed, it holds its level from 10 queries on: 4-6 % false
    positives where 5 % were asked. Strong skew makes it liberal: exponential differences gave 10 % at 10 queries, 8 %
    at 25, 6.5 % at 50; one-sided against their tail 14, 10 and 9 % (after mild skew 8 % at 10 queries).

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the system is better than the baseline.
    confidence_level : float, default 0.95
        Of the interval.

    Returns
    -------
    PairedTest
        Equal to `scipy.stats.ttest_rel`, but for differences without variance, which get the p-value of the exact
        sign flips and a note.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.

    Examples
    --------
    >>> round(float(paired_t([0.1, 0.3, 0.2]).p_value), 4)
    0.0742
    """
    side, columns = check_alternative(alternative), as_columns(d)
    p_value, notes = flat_outcome(columns, alternative)
    varied = ~without_variance(columns)
    if varied.any():
        p_value[varied] = stats.ttest_1samp(columns[:, varied], 0.0, axis=0, alternative=side).pvalue
    return wrap(d, p_value, *t_interval(columns, alternative, confidence_level), notes)


def wilcoxon(d: ArrayLike, *, alternative: str = "two-sided", confidence_level: float = 0.95) -> PairedTest:
    """Test whether the differences are symmetric about zero by Wilcoxon's signed ranks.

    Not a test of the mean: on skewed differences of equal means it rejects in 5-10 % at 50 queries and 10-17 % at
    100, and more with more queries. Zero differences are dropped; exact, with ties too, up to 25 others.

    Parameters
    ----------
    d, alternative, confidence_level
        As in `paired_t`; the interval is Student's, of the mean.

    Returns
    -------
    PairedTest
        Equal to `scipy.stats.wilcoxon` (exact without ties, else its approximation without continuity correction),
        with the note on what is tested.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    side, columns = check_alternative(alternative), as_columns(d)
    p_value = np.ones(columns.shape[1])
    for j, column in enumerate(columns.T):
        changed = column[column != 0]
        if len(changed) > EXACT_WILCOXON:
            p_value[j] = stats.wilcoxon(changed, method="approx", alternative=side).pvalue
        elif len(changed):
            p_value[j] = _exact_signed_ranks(changed, alternative)
    note = "the Wilcoxon test is one of symmetry about zero, not of the mean; the interval is Student's, of the mean"
    return wrap(d, p_value, *t_interval(columns, alternative, confidence_level), (note,))


def _exact_signed_ranks(changed: Floats, alternative: str) -> float:
    """Count the sign patterns whose rank sum is as extreme, from the distribution built up rank by rank."""
    # Doubled, so that the mean ranks of ties are whole numbers too.
    # Rounded, since 0.3 - 0.2 and 0.2 - 0.1 differ in their last bit and would not tie.
    ranks = np.round(2 * stats.rankdata(np.round(np.abs(changed), 12))).astype(np.int64)
    ways = np.ones(1)
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    observed = int(ranks[changed > 0].sum())
    greater, less = ways[observed:].sum() / 2.0 ** len(ranks), ways[: observed + 1].sum() / 2.0 ** len(ranks)
    return float({"two-sided": min(1.0, 2 * min(greater, less)), "greater": greater, "less": less}[alternative])


def sign(d: ArrayLike, *, alternative: str = "two-sided", confidence_level: float = 0.95) -> PairedTest:
    """Test whether wins and losses are equally likely, by the exact binomial; ties are dropped.

    Not a test of the mean: on skewed differences of equal means it rejects in 4-14 % at 50 queries and 5-27 % at
    100, and more with more queries.

    Parameters
    ----------
    d, alternative, confidence_level
        As in `paired_t`; the interval is Student's, of the mean.

    Returns
    -------
    PairedTest
        Equal to `scipy.stats.binomtest` on wins and losses, with the note on what is tested.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    check_alternative(alternative)
    columns = as_columns(d)
    wins, losses = (columns > 0).sum(axis=0), (columns < 0).sum(axis=0)
    if alternative == "two-sided":
        p_value = 2 * stats.binom.cdf(np.minimum(wins, losses), wins + losses, 0.5)
    else:
        p_value = stats.binom.cdf(losses if alternative == "greater" else wins, wins + losses, 0.5)
    note = "the sign test is one of the median (wins against losses), not of the mean; the interval is Student's"
    return wrap(d, np.asarray(p_value), *t_interval(columns, alternative, confidence_level), (note,))
