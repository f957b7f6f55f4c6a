"""Sign flips equal brute force; bootstraps equal SciPy within their noise; properties hold on any data."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.significance import TESTS, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.randomization import EXACT_UP_TO, sums_by_pattern

RESAMPLING = [name for name, test in TESTS.items() if test.resamples]
ALTERNATIVES = ["two-sided", "greater", "less"]
EIGHTHS = st.integers(-8, 8).map(lambda k: k / 8)
TENTHS = st.integers(-10, 10).map(lambda k: k / 10)


def columns(elements=TENTHS, min_size=2, max_size=30):
    return st.integers(min_size, max_size).flatmap(lambda n: hnp.arrays(np.float64, n, elements=elements))


def brute_force(d, alternative):
    """Count all sign patterns in exact arithmetic."""
    exact = [Fraction(value).limit_denominator(10**6) for value in d]
    observed = sum(exact)
    flipped = [
        sum(s * x for s, x in zip(signs, exact, strict=True)) for signs in itertools.product((1, -1), repeat=len(d))
    ]
    reached = {
        "two-sided": [abs(t) >= abs(observed) for t in flipped],
        "greater": [t >= observed for t in flipped],
        "less": [t <= observed for t in flipped],
    }[alternative]
    return sum(reached) / len(flipped)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@settings(max_examples=examples(40), deadline=None)
@given(d=columns(max_size=9))
def test_exact_sign_flip_equals_brute_force(d, alternative):
    """Tenths add up with rounding errors: ties are counted all the same."""
    assert paired_test("randomization", d, alternative=alternative).p_value == pytest.approx(
        brute_force(d, alternative), abs=1e-12
    )


def test_exact_sign_flip_equals_scipy_at_sixteen_queries():
    """All 65,536 patterns, and several pairs at once."""
    d = np.random.default_rng(3).normal(0.2, 1, size=(16, 3))
    for alternative in ALTERNATIVES:
        ours = paired_test("randomization", d, alternative=alternative).p_value
        for j in range(3):
            theirs = stats.permutation_test(
                (d[:, j],), np.mean, permutation_type="samples", n_resamples=np.inf, alternative=alternative
            )
            assert ours[j] == pytest.approx(theirs.pvalue, abs=1e-12)


def signs(n, settings):
    """Return all patterns, one per row: the sums of the rows of a unit matrix are its signs."""
    return np.concatenate([sums.T.copy() for sums in sums_by_pattern(np.eye(n), settings, at_once=2**20)])


def test_patterns_are_all_or_random_and_fair():
    """2^n different rows up to 16 queries; beyond, every sign is fair and each row has n of them."""
    patterns = signs(10, Settings(n_resamples=1))
    assert len(np.unique(patterns, axis=0)) == 2**10
    drawn = signs(70, Settings(n_resamples=5000, rng=1))
    assert drawn.shape == (5000, 70)
    assert set(np.unique(drawn)) == {-1.0, 1.0}
    assert np.abs(drawn.mean(axis=0)).max() < 5 / np.sqrt(5000)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(70)).max() < 5.5 / np.sqrt(5000)


def test_random_sign_flip_counts_the_observed_pattern():
    """Beyond 16 queries p is (b + 1) / (B + 1): overwhelming evidence gives 1 / (B + 1), never 0."""
    assert EXACT_UP_TO == 16
    assert paired_test("randomization", np.linspace(1, 2, 40), n_resamples=999, rng=0).p_value == 1 / 1000


@each_row("name", RESAMPLING)
def test_pairs_do_not_know_of_each_other(name):
    """The p-value of a pair is the same alone and beside 300 other pairs."""
    d = np.random.default_rng(5).normal(0.1, 1, size=(31, 301))
    together = paired_test(name, d, n_resamples=501, rng=11)
    alone = paired_test(name, d[:, 300], n_resamples=501, rng=11)
    assert alone.p_value == pytest.approx(together.p_value[300], rel=1e-12)
    assert alone.ci_low == pytest.approx(together.ci_low[300], rel=1e-9)


@pytest.mark.rest
@pytest.mark.parametrize("name", RESAMPLING)
def test_blocks_of_columns_change_nothing(name):
    """Wide input is worked off in blocks that share their resamples."""
    d = np.random.default_rng(5).normal(0.1, 1, size=(20, 5))
    wide = paired_test(name, np.tile(d, 900), n_resamples=2500, rng=2).p_value
    np.testing.assert_allclose(wide.reshape(900, 5), np.tile(wide[:5], (900, 1)), rtol=1e-12)


@each_row("name", ["bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"])
@each_row("alternative", ALTERNATIVES)
def test_bootstrap_interval_and_p_value_agree(name, alternative):
    """Zero is outside the interval exactly where p is at most alpha (up to interpolation between draws)."""
    d = np.random.default_rng(8).normal(-0.3 if alternative == "less" else 0.3, 1, size=(30, 400))
    result = paired_test(name, d, alternative=alternative, n_resamples=1999, rng=1)
    outside = (result.ci_low > 0) | (result.ci_high < 0)
    clear = np.abs(result.p_value - 0.05) > (0 if name == "bootstrap" else 0.003)
    assert 50 < outside.sum() < 350
    assert (outside == (result.p_value <= 0.05))[clear].all()


@each_row(("name", "method"), [("bootstrap_percentile", "percentile"), ("bootstrap_bca", "BCa")])
@each_row("alternative", ALTERNATIVES)
def test_percentile_and_bca_intervals_equal_scipy(name, method, alternative):
    """Within the noise of 9,999 resamples, on skewed data where the two differ."""
    d = np.random.default_rng(4).exponential(size=60) - 0.8
    ours = paired_test(name, d, alternative=alternative, rng=0)
    # SciPy names the side of the interval, not of the hypothesis: "greater" has the lower end too.
    theirs = stats.bootstrap((d,), np.mean, method=method, alternative=alternative, rng=1).confidence_interval
    noise = 0.1 * d.std() / np.sqrt(len(d)) * 2
    for our_end, their_end in ((ours.ci_low, theirs.low), (ours.ci_high, theirs.high)):
        assert our_end == their_end or our_end == pytest.approx(their_end, abs=noise)


def test_studentised_bootstrap_equals_a_loop():
    """The matrix form against one resample at a time, with SciPy's t statistic."""
    d = np.random.default_rng(9).exponential(size=25) - 0.7
    generator = np.random.default_rng(1)
    n, statistic = len(d), lambda x: abs(x.mean()) / (x.std(ddof=1) / np.sqrt(len(x)))
    drawn = np.array([statistic((d - d.mean())[generator.integers(0, n, n)]) for _ in range(4000)])
    result = paired_test("bootstrap", d, n_resamples=20_000, rng=0)
    expected = np.mean(drawn >= statistic(d))
    assert result.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 4000))
    reach = np.quantile(drawn, 0.95) * d.std(ddof=1) / np.sqrt(n)
    assert result.ci_high - d.mean() == pytest.approx(reach, rel=0.06)


def test_liberal_bootstraps_say_so_on_few_queries():
    """Below 50 queries with their measured rates, from 50 on not; the default bootstrap never."""
    for name in ("bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"):
        few = paired_test(name, np.random.default_rng(0).normal(size=49), n_resamples=99, rng=0)
        assert "liberal on fewer than 50 queries (here 49)" in few.notes[0]
        assert paired_test(name, np.random.default_rng(0).normal(size=50), n_resamples=99, rng=0).notes == ()
    assert paired_test("bootstrap", np.random.default_rng(0).normal(size=10), n_resamples=99, rng=0).notes == ()


@each_row("name", RESAMPLING)
def test_no_resamples_are_refused(name):
    with pytest.raises(InvalidInput, match="n_resamples is 0"):
        paired_test(name, [0.1, 0.2], n_resamples=0)


@pytest.mark.shared
@each_row("collection", ["cranfield", "trec_covid_r5"])
def test_golden_exact_permutation_of_scipy(shared, collection):
    """Exact sign flips and Wilcoxon on twelve real topics equal SciPy's printed values to 1e-12."""
    golden = json.loads((shared / "golden" / "stats" / f"{collection}.json").read_text())
    for case in golden["exact_on_first_12_topics"].values():
        d = np.array(case["x"]) - np.array(case["y"])
        assert paired_test("randomization", d).p_value == pytest.approx(
            case["permutation_paired_exact"]["pvalue"], abs=1e-12
        )
