"""All tests and corrections, declared; and the functions that run one by its name.

To add a test or a correction, add one entry here. `rankeval.compare`, its errors and notes, the captions of tables and
figures, the help of ``rankeval compare`` and the laws that the tests of this package check read it from here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankeval._registry import chosen, unknown
from rankeval.significance.bootstrap import bootstrap_bca, bootstrap_percentile, bootstrap_shift, bootstrap_t
from rankeval.significance.columns import as_columns, without_variance
from rankeval.significance.declarations import (
    Alternative,
    Correction,
    Floats,
    PairedResult,
    Rng,
    Settings,
    SignificanceTest,
    one_pattern,
    one_resample,
)
from rankeval.significance.multiple import bh, bonferroni, holm, max_t, none, tukey
from rankeval.significance.paired import paired_t, sign, wilcoxon
from rankeval.significance.resampling import EXACT_UP_TO, randomization

FEW_QUERIES = 50
"""Below this the liberal tests carry a note with their measured error rates."""


def _one_flip(n: int, settings: Settings) -> float:
    """Return the floor of tests by sign flips, which are counted out for few queries."""
    return one_pattern(n, settings) if n <= EXACT_UP_TO else one_resample(n, settings)


TESTS: dict[str, SignificanceTest] = {
    "t": SignificanceTest(function=paired_t, words="paired t test", needs_variance=True),
    "randomization": SignificanceTest(
        function=randomization,
        words="randomisation test (sign flips)",
        random_beyond=EXACT_UP_TO,
        floor=_one_flip,
    ),
    "bootstrap": SignificanceTest(
        function=bootstrap_t,
        words="symmetric studentised bootstrap",
        random_beyond=0,
        floor=lambda n, settings: one_resample(n, settings) * settings.sides / 2,
        needs_variance=True,
    ),
    "wilcoxon": SignificanceTest(
        function=wilcoxon,
        words="Wilcoxon signed-rank test",
        floor=one_pattern,
        note="the Wilcoxon test is one of symmetry about zero, not of the mean; the interval is Student's, of the mean",
    ),
    "sign": SignificanceTest(
        function=sign,
        words="sign test",
        floor=one_pattern,
        note="the sign test is one of the median (wins against losses), not of the mean; the interval is Student's",
    ),
    "bootstrap_shift": SignificanceTest(
        function=bootstrap_shift,
        words="shift bootstrap",
        random_beyond=0,
        floor=one_resample,
        needs_variance=True,
        liberal="9-16 % at 10 queries, 6-10 % at 25",
    ),
    "bootstrap_percentile": SignificanceTest(
        function=bootstrap_percentile,
        words="percentile bootstrap",
        random_beyond=0,
        floor=lambda n, settings: one_resample(n, settings) * settings.sides,
        needs_variance=True,
        liberal="9-15 % at 10 queries, 6-10 % at 25",
    ),
    "bootstrap_bca": SignificanceTest(
        function=bootstrap_bca,
        words="BCa bootstrap",
        random_beyond=0,
        needs_variance=True,
        liberal="9-17 % at 10 queries, 6-11 % at 25",
    ),
}
"""Name -> paired test over queries."""

FOLD_TESTS: dict[str, SignificanceTest] = {
    "corrected_resampled_t": SignificanceTest(
        function=paired_t, words="corrected resampled t test of fold means", needs_variance=True
    ),
}
"""Name -> test over folds, run on the differences that `folds.widened` returns."""

CORRECTIONS: dict[str, Correction] = {
    "holm": Correction(function=holm, words="Holm"),
    "bonferroni": Correction(function=bonferroni, words="Bonferroni"),
    "bh": Correction(
        function=bh,
        words="Benjamini-Hochberg",
        familywise=False,
        note="Benjamini-Hochberg controls the expected share of false claims, not the chance of any false claim",
    ),
    "none": Correction(
        function=none,
        words="no correction",
        familywise=False,
        note="p-values are not corrected for the {size} comparisons",
    ),
    "max_t": Correction(
        function=max_t,
        words="max-T",
        needs="differences",
        random_beyond=EXACT_UP_TO,
        floor=_one_flip,
        own_test="randomization",
    ),
    "tukey": Correction(
        function=tukey,
        words="randomised Tukey HSD",
        needs="scores",
        random_beyond=0,
        floor=one_resample,
        all_pairs_only=True,
        note="randomised Tukey takes all systems as exchangeable: with near-identical systems beside unlike ones it is "
        "liberal (16 % family-wise errors measured where 5 % were asked)",
    ),
}
"""Name -> correction for many comparisons."""


def paired_test(
    name: str,
    d: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    rng: Rng = None,
) -> PairedResult:
    """Run a test by its name.

    Parameters
    ----------
    name : str
        A key of `TESTS`.
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences, system minus baseline.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the system is better than the baseline.
    confidence_level : float, default 0.95
        Of the interval.
    n_resamples : int, default 9999
        For tests that resample.
    rng : int, Generator or None
        Source of the resamples.

    Returns
    -------
    PairedResult
        P-values and intervals, in the shape of `d` without its first axis.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a difference that is not finite, or no resample.
    UnknownName
        There is no such test or alternative.

    Examples
    --------
    >>> round(float(paired_test("t", [0.1, 0.3, 0.2]).p_value), 4)
    0.0742
    >>> float(paired_test("randomization", [1, 2, 3]).p_value)  # 2 of the 8 patterns of signs reach |6|
    0.25
    """
    settings = Settings(alternative, confidence_level, n_resamples, rng)
    return run(TESTS[chosen("test", name, TESTS)], d, settings)


def run(test: SignificanceTest, d: ArrayLike, settings: Settings) -> PairedResult:
    """Check the differences, run a test on them, and add what holds for all tests.

    Parameters
    ----------
    test : SignificanceTest
        Its declaration.
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.
    settings : Settings
        Alternative, level and resamples.

    Returns
    -------
    PairedResult
        As `paired_test` returns it.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    columns = as_columns(d)
    n, mean, flat = len(columns), columns.mean(axis=0), without_variance(columns) & test.needs_variance
    # Columns that the function is not defined for are replaced, not left out: how BLAS rounds depends on the number
    # of columns, and no p-value may depend on another pair's.
    found = test.function(np.where(flat, np.arange(n)[:, None], columns), settings)
    p_value = np.where(flat, _p_of_constants(mean, n, settings), found.p_value)
    p_value = np.clip(p_value, np.finfo(np.float64).tiny, 1.0)  # 2 in 2^2000 underflows, and is no 0
    low, high = (np.where(flat, mean, limit) for limit in (found.ci_low, found.ci_high))
    if settings.alternative == "greater":
        high = np.full_like(high, np.inf)
    elif settings.alternative == "less":
        low = np.full_like(low, -np.inf)
    p_value, low, high = (part.reshape(np.shape(d)[1:])[()] for part in (p_value, low, high))
    notes = _notes(test, n, int((flat & (mean != 0)).sum()))
    return PairedResult(p_value, low, high, (*found.notes, *notes))


def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """Adjust the p-values of a family.

    Parameters
    ----------
    p : array_like of shape (n_comparisons,)
        P-values in [0, 1].
    method : str, default "holm"
        A key of `CORRECTIONS` that needs p-values only: "holm", "bonferroni", "bh" or "none".

    Returns
    -------
    ndarray of shape (n_comparisons,)
        Adjusted p-values in the order given, never below the given ones.

    Raises
    ------
    InvalidInput
        P-values outside [0, 1] or NaN.
    UnknownName
        No such correction, or one that needs scores (`max_t`, `tukey`).
    """
    known = corrections_of_p_values()
    if method not in known:
        raise unknown("correction of p-values", method, known)
    return known[method].function(p)


def corrections_of_p_values() -> dict[str, Correction]:
    """Return the corrections that need nothing but p-values."""
    return {name: one for name, one in CORRECTIONS.items() if not one.is_joint}


def is_liberal(test: SignificanceTest, n_queries: int) -> bool:
    """Return whether so many queries are too few for a test to hold its level."""
    return bool(test.liberal) and n_queries < FEW_QUERIES


def declared_test(name: str) -> SignificanceTest | None:
    """Return the declaration of a test over queries or folds; None for a saved result of a test not declared here."""
    return (TESTS | FOLD_TESTS).get(name)


def _p_of_constants(mean: Floats, n: int, settings: Settings) -> Floats:
    """Return the p-values of differences that are the same number on every query.

    Equal systems get 1. For a constant difference the t statistic is infinite and a bootstrap sees one value only:
    either would print a p of 0. The sign flips still have a distribution there, in which the observed order is the
    most extreme one: 2 in 2^n, or 1 in 2^n for a one-sided test.
    """
    return np.where(settings.evidence(mean) > 0, one_pattern(n, settings), 1.0)


def _notes(test: SignificanceTest, n: int, n_constant: int) -> list[str]:
    """Return the warnings that apply to so many queries and so many constant differences."""
    notes = [test.note] if test.note else []
    if n_constant:
        notes.append(
            f"{n_constant} of the differences tested: the same number on every query. Without variance neither t nor "
            "a bootstrap is defined: the p-value is that of the sign flips, and the interval has no width"
        )
    if is_liberal(test, n):
        notes.append(
            f"the {test.words} is liberal on fewer than {FEW_QUERIES} queries (here {n}): two-sided false positives "
            f'measured where 5 % were asked are {test.liberal}, more on skewed differences; prefer test="t", '
            '"randomization" or "bootstrap"'
        )
    return notes
