"""The corrected resampled t, and fold scores that the tests of queries refuse."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.significance import FOLD_TESTS, TESTS, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.paired import widened
from rankeval.significance.power import detectable_difference
from rankeval.significance.running import run

D = np.array([0.02, 0.05, -0.01, 0.04, 0.03, 0.01, 0.06, 0.02, 0.0, 0.03])


def corrected_resampled_t(d, ratio, **options):
    """Test folds as a comparison of learners does."""
    return run(FOLD_TESTS["corrected_resampled_t"], widened(d, ratio), Settings(**options))


@each_row("alternative", ["two-sided", "greater", "less"])
def test_it_is_the_formula(alternative):
    """The mean over the root of var (1/J + n_test/n_train), Student's t on J - 1 degrees of freedom."""
    error = np.sqrt(D.var(ddof=1) * (1 / len(D) + 1 / 9))
    t = D.mean() / error
    right = stats.t.sf(t, len(D) - 1)
    p = {"two-sided": 2 * min(right, 1 - right), "greater": right, "less": 1 - right}[alternative]
    result = corrected_resampled_t(D, 1 / 9, alternative=alternative)
    assert result.p_value == pytest.approx(p, abs=1e-12)
    if alternative == "two-sided":
        reach = stats.t.isf(0.025, len(D) - 1) * error
        assert (result.ci_low, result.ci_high) == pytest.approx((D.mean() - reach, D.mean() + reach), abs=1e-12)


def test_a_column_per_pair_and_larger_than_the_plain_p():
    both = corrected_resampled_t(np.column_stack([D, -D]), 1 / 4)
    assert both.p_value[0] == pytest.approx(both.p_value[1], abs=1e-12)
    assert both.p_value[0] > paired_test("t", D).p_value


def test_equal_learners_are_equal():
    assert corrected_resampled_t(np.zeros(10), 1 / 9).p_value == 1.0


def test_the_detectable_difference_is_found_with_the_power_asked_for():
    """Simulated with correlated folds, whose mean has the variance that the correction assumes."""
    ratio, n, sd = 1 / 9, 100, 0.1
    generator = np.random.default_rng(0)
    own = generator.normal(0, sd, (n, 4000))
    common = generator.normal(0, sd * np.sqrt(ratio), 4000)
    found = float(detectable_difference(n, widened(own[:, 0] / own[:, 0].std(ddof=1) * sd, ratio).std(ddof=1)))
    power = (corrected_resampled_t(own + common + found, ratio).p_value <= 0.05).mean()
    assert power == pytest.approx(0.8, abs=0.03)


@each_row(
    ("d", "ratio", "words"), [(D, 0, "ratio is 0"), (D[:1], 0.1, "at least 2 folds"), ([np.nan, 1], 0.1, "finite")]
)
def test_bad_use(d, ratio, words):
    with pytest.raises(InvalidInput, match=words):
        corrected_resampled_t(d, ratio)


SCORES = pd.DataFrame({"AP": D, "fit_seconds": 1.0}, index=pd.RangeIndex(len(D), name="fold"))


@each_row("name", TESTS)
def test_no_test_of_queries_takes_fold_scores(name):
    with pytest.raises(InvalidInput, match=r"scores of folds.*question=\"algorithms\""):
        paired_test(name, SCORES["AP"])


def test_compare_takes_no_fold_scores():
    """Neither ours, nor a frame of what scikit-learn's cross_validate returns."""
    theirs = pd.DataFrame({"fit_time": D, "score_time": D, "test_AP": D})
    many = pd.concat({"a": SCORES, "b": SCORES}, names=["system"])
    arrow = [pa.Table.from_pandas(one) for one in (SCORES, theirs)]
    for one in (SCORES, SCORES[["AP"]], theirs, theirs[["fit_time", "score_time"]], many, *arrow):
        with pytest.raises(InvalidInput, match="scores of folds"):
            rk.compare({"a": one, "b": one})
    with pytest.raises(InvalidInput, match="scores of folds"):
        paired_test("t", arrow[1])
