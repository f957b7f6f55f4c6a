"""All tests and corrections: the declarations.

To add a test or a correction, add one entry here. `rankeval.compare`, its errors and notes, the captions of tables and
figures, the help of ``rankeval compare`` and the laws that all tests are held to read it from here.
"""

from __future__ import annotations

from rankeval.significance.bootstrap import bootstrap_bca, bootstrap_percentile, bootstrap_shift, bootstrap_t
from rankeval.significance.declarations import (
    Correction,
    Settings,
    SignificanceTest,
    one_pattern,
    one_resample,
)
from rankeval.significance.multiple import (
    bh,
    bonferroni,
    by,
    holm,
    max_t,
    max_t_limits,
    none,
    tukey,
    tukey_limits,
    tukey_ranges,
)
from rankeval.significance.paired import paired_t, sign, wilcoxon, wilcoxon_pratt
from rankeval.significance.resampling import randomization
from rankeval.significance.signs import EXACT_UP_TO


def _one_flip(n: int, settings: Settings) -> float:
    """Return the floor of tests by sign flips, which are counted out for few queries."""
    return one_pattern(n, settings) if n <= EXACT_UP_TO else one_resample(n, settings)


def _divided(alpha: float, size: int) -> float:
    """Return the level of each interval by which all of them hold together, by Bonferroni's inequality."""
    return alpha / size


TESTS: dict[str, SignificanceTest] = {
    "t": SignificanceTest(function=paired_t, words="paired t test", needs_variance=True, power_of_t=True),
    "randomization": SignificanceTest(
        function=randomization,
        words="randomisation test (sign flips)",
        random_beyond=EXACT_UP_TO,
        floor=_one_flip,
        power_of_t=True,
        takes_pairs=True,
    ),
    "bootstrap": SignificanceTest(
        function=bootstrap_t,
        words="symmetric studentised bootstrap",
        random_beyond=0,
        floor=lambda n, settings: one_resample(n, settings) * settings.sides / 2,
        needs_variance=True,
        power_of_t=True,
    ),
    "wilcoxon": SignificanceTest(
        function=wilcoxon,
        words="Wilcoxon signed-rank test",
        floor=one_pattern,
        note="the Wilcoxon test is one of symmetry about zero, not of the mean; the interval is Student's, of the mean",
    ),
    "wilcoxon_pratt": SignificanceTest(
        function=wilcoxon_pratt,
        words="Wilcoxon signed-rank test with Pratt's zeros",
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
        liberal="up to 14.4 % at 10 queries, 9.5 % at 25",
    ),
    "bootstrap_percentile": SignificanceTest(
        function=bootstrap_percentile,
        words="percentile bootstrap",
        random_beyond=0,
        floor=lambda n, settings: one_resample(n, settings) * settings.sides,
        needs_variance=True,
        liberal="up to 13.4 % at 10 queries, 9.6 % at 25",
    ),
    "bootstrap_bca": SignificanceTest(
        function=bootstrap_bca,
        words="BCa bootstrap",
        random_beyond=0,
        needs_variance=True,
        liberal="up to 15.1 % at 10 queries, 16.8 % at 25",
    ),
}
"""Name -> paired test over queries."""

FOLD_TESTS: dict[str, SignificanceTest] = {
    "corrected_resampled_t": SignificanceTest(
        function=paired_t, words="corrected resampled t test of fold means", needs_variance=True, power_of_t=True
    ),
}
"""Name -> test over folds, run on the differences that `folds.widened` returns."""

CORRECTIONS: dict[str, Correction] = {
    "holm": Correction(function=holm, words="Holm", interval_level=_divided),
    "bonferroni": Correction(function=bonferroni, words="Bonferroni", interval_level=_divided),
    "bh": Correction(
        function=bh,
        words="Benjamini-Hochberg",
        familywise=False,
        note="Benjamini-Hochberg controls the expected share of false claims, not the chance of any false claim",
    ),
    "by": Correction(
        function=by,
        words="Benjamini-Yekutieli",
        familywise=False,
        note="Benjamini-Yekutieli controls the expected share of false claims, not the chance of any false claim",
    ),
    "none": Correction(
        function=none,
        words="no correction",
        familywise=False,
        note="p-values are not corrected for the {size} comparisons",
        interval_level=lambda alpha, _: alpha,
    ),
    "max_t": Correction(
        function=max_t,
        words="max-T",
        needs="differences",
        random_beyond=EXACT_UP_TO,
        floor=_one_flip,
        own_test="randomization",
        limits=max_t_limits,
        takes_pairs=True,
    ),
    "tukey": Correction(
        function=tukey,
        words="randomised Tukey HSD",
        needs="scores",
        random_beyond=0,
        floor=one_resample,
        all_pairs_only=True,
        limits=tukey_limits,
        draw=tukey_ranges,
        note="randomised Tukey takes all systems as exchangeable: with near-identical systems beside unlike ones it is "
        "liberal (17 % family-wise errors measured where 5 % were asked)",
    ),
}
"""Name -> correction for many comparisons."""


def corrections_of_p_values() -> dict[str, Correction]:
    """Return the corrections that need nothing but p-values."""
    return {name: one for name, one in CORRECTIONS.items() if not one.is_joint}


def all_tests() -> dict[str, SignificanceTest]:
    """Return the tests over queries and those over folds."""
    return TESTS | FOLD_TESTS
