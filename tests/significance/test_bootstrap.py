"""The bootstraps equal their definitions, draw by draw and in fractions: no tolerance, no noise."""

from __future__ import annotations

from fractions import Fraction
from math import floor, inf

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

from rankeval.significance import paired_test
from rankeval.significance.bootstrap import weight_chunks

ALTERNATIVES = ["two-sided", "greater", "less"]
NAMES = ["bootstrap", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"]
TENTHS = st.lists(st.integers(-9, 9), min_size=3, max_size=7).filter(lambda d: len(set(d)) > 1)
B = 119


def drawn_counts(n, n_resamples, seed):
    """Return how often each query was drawn in each resample: the generator of the tests, seeded as they do."""
    inner = int(np.random.default_rng(seed).integers(2**63))
    weights = np.concatenate(list(weight_chunks(n, n_resamples, inner, n_columns=1)))
    return np.rint(weights * n).astype(int).tolist()


def means_of(d, counts):
    return [sum(c * x for c, x in zip(row, d, strict=True)) / len(d) for row in counts]


def square_of_t(values):
    """Return Student's t, squared, so that it is a fraction; infinite without variance."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((x - mean) ** 2 for x in values) / (n - 1)
    return mean**2 * n / variance if variance else inf


def one_sided(p, mean, alternative):
    if alternative == "two-sided":
        return p
    return p / 2 if (mean > 0) == (alternative == "greater") and mean != 0 else 1 - p / 2


def expected_p(name, d, counts, alternative):
    n, mean, b = len(d), sum(d) / len(d), len(counts)
    means = means_of(d, counts)
    if name == "bootstrap":
        centred = [x - mean for x in d]
        drawn = [square_of_t([x for x, c in zip(centred, row, strict=True) for _ in range(c)]) for row in counts]
        return one_sided((1 + sum(t >= square_of_t(d) for t in drawn)) / Fraction(b + 1), mean, alternative)
    if name == "bootstrap_shift":
        moved = [m - mean for m in means]
        reached = {
            "two-sided": sum(abs(m) >= abs(mean) for m in moved),
            "greater": sum(m >= mean for m in moved),
            "less": sum(m <= mean for m in moved),
        }[alternative]
        return (1 + reached) / Fraction(b + 1)
    if name == "bootstrap_bca":
        return bca_p(d, means, alternative)
    assert name == "bootstrap_percentile"
    assert n == len(counts[0])
    below, above = ((1 + sum(s * m <= 0 for m in means)) / Fraction(b + 1) for s in (1, -1))
    return min(Fraction(1), {"two-sided": 2 * min(below, above), "greater": below, "less": above}[alternative])


def bca_p(d, means, alternative):
    """Return the least level at which an interval of Efron excludes 0; draws of 0 are on neither side."""
    mean, b = sum(d) / len(d), len(means)
    centred = [x - mean for x in d]
    acceleration = float(sum(x**3 for x in centred)) / (6 * float(sum(x**2 for x in centred)) ** 1.5)

    def quantile(n_draws):
        return stats.norm.ppf(np.clip(float(n_draws) / b, 1 / (b + 1), b / (b + 1)))

    def level(n_draws):
        z = quantile(n_draws) - bias
        return stats.norm.cdf(z / (1 + acceleration * z) - bias)

    bias = quantile(Fraction(sum(m < mean for m in means) + sum(m <= mean for m in means), 2))
    greater, less = level(sum(m <= 0 for m in means)), 1 - level(sum(m < 0 for m in means))
    return min(1, {"two-sided": 2 * min(greater, less), "greater": greater, "less": less}[alternative])


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(25), deadline=None)
@given(tenths=TENTHS, seed=st.integers(0, 1000))
def test_p_values_are_counts_in_exact_arithmetic(name, alternative, tenths, seed):
    """Tenths add up with rounding errors: a resample that reaches the observed value counts all the same.

    Few queries make resamples of one query only, which have no variance and count as extreme.
    """
    exact = [Fraction(k, 10) for k in tenths]
    found = paired_test(name, [k / 10 for k in tenths], alternative=alternative, n_resamples=B, rng=seed).p_value
    assert found == pytest.approx(
        float(expected_p(name, exact, drawn_counts(len(exact), B, seed), alternative)), abs=1e-12
    )


@each_row("name", NAMES)
def test_the_unit_of_the_scores_changes_no_p_value(name):
    """Hits among ten as a count, as tenths, as thirds: the same resamples tie, whatever rounding makes of them."""
    hits = np.random.default_rng(1).integers(-3, 4, (25, 40)).astype(float)
    as_counts, *others = (
        paired_test(name, hits * unit, n_resamples=999, rng=0).p_value for unit in (1.0, 0.1, 1 / 3, 0.125)
    )
    for p_value in others:
        np.testing.assert_allclose(p_value, as_counts, rtol=1e-9)


def critical(drawn, level):
    """Return the k-th largest draw, k of the B + 1 being what the level leaves: p is at most that beyond it."""
    k = floor((1 - Fraction(str(level))) * (len(drawn) + 1))
    return sorted(drawn, reverse=True)[k - 1] if k else inf


@each_row("alternative", ALTERNATIVES)
@each_row("level", [0.9, 0.95, 0.995])
def test_intervals_of_the_inverted_bootstraps_are_their_order_statistics(level, alternative):
    """One-sided, the studentised one has the end of the two-sided interval at 1 - 2 alpha; too few draws leave none."""
    d = np.random.default_rng(3).exponential(size=9) - 0.6
    mean, error = d.mean(), d.std(ddof=1) / 3
    counts = drawn_counts(9, B, 5)
    roots = [
        np.sqrt(float(square_of_t([x for x, c in zip(d - mean, row, strict=True) for _ in range(c)]))) for row in counts
    ]
    two_sided = level if alternative == "two-sided" else 1 - 2 * (1 - Fraction(str(level)))
    studentised = critical(roots, float(two_sided)) * error
    ours = paired_test("bootstrap", d, alternative=alternative, alpha=1 - level, n_resamples=B, rng=5)
    low = -inf if alternative == "less" else mean - studentised
    high = inf if alternative == "greater" else mean + studentised
    assert (ours.ci_low, ours.ci_high) == pytest.approx((low, high), rel=1e-9)

    moved = np.array(means_of(d.tolist(), counts)) - mean
    reach = critical(np.abs(moved).tolist(), level)
    low, high = {
        "two-sided": (mean - reach, mean + reach),
        "greater": (mean - np.quantile(moved, level), inf),
        "less": (-inf, mean - np.quantile(moved, 1 - level)),
    }[alternative]
    ours = paired_test("bootstrap_shift", d, alternative=alternative, alpha=1 - level, n_resamples=B, rng=5)
    assert (ours.ci_low, ours.ci_high) == pytest.approx((low, high), rel=1e-9)


def share_below(draws, value):
    return (np.sum(draws < value) + np.sum(draws <= value)) / (2 * len(draws))


@each_row("alternative", ALTERNATIVES)
@each_row("level", [0.9, 0.95])
def test_percentile_and_bca_are_their_formulas(level, alternative):
    """Efron's interval with the acceleration of the jackknife; its p is the level at which an end of it is 0."""
    d = np.random.default_rng(4).exponential(size=12) - 0.7
    draws = np.array(means_of(d.tolist(), drawn_counts(12, 499, 5)))
    tail = (1 - level) / (2 if alternative == "two-sided" else 1)
    options = {"alternative": alternative, "alpha": 1 - level, "n_resamples": 499, "rng": 5}

    def sided(low, high):
        return (-inf if alternative == "less" else low, inf if alternative == "greater" else high)

    ours = paired_test("bootstrap_percentile", d, **options)
    assert (ours.ci_low, ours.ci_high) == pytest.approx(sided(*np.quantile(draws, [tail, 1 - tail])), rel=1e-9)

    left_out = np.array([np.delete(d, i).mean() for i in range(len(d))])
    moved = left_out.mean() - left_out
    acceleration = (moved**3).sum() / (6 * (moved**2).sum() ** 1.5)
    bias = stats.norm.ppf(share_below(draws, d.mean()))

    def end(probability):
        z = bias + stats.norm.ppf(probability)
        return np.quantile(draws, stats.norm.cdf(bias + z / (1 - acceleration * z)))

    ours = paired_test("bootstrap_bca", d, **options)
    assert (ours.ci_low, ours.ci_high) == pytest.approx(sided(end(tail), end(1 - tail)), rel=1e-9)
    percentile = paired_test("bootstrap_percentile", d, **options)
    assert ours.ci_low == -inf or abs(ours.ci_low - percentile.ci_low) > 1e-3
    assert ours.ci_high == inf or abs(ours.ci_high - percentile.ci_high) > 1e-3
    at = stats.norm.ppf(share_below(draws, 0.0)) - bias
    below = stats.norm.cdf(at / (1 + acceleration * at) - bias)
    p = {"two-sided": 2 * min(below, 1 - below), "greater": below, "less": 1 - below}[alternative]
    assert ours.p_value == pytest.approx(p, rel=1e-9)


@each_row("sign", [1, -1])
def test_bca_of_draws_on_one_side_is_bounded_by_their_number(sign):
    """Where no draw is on the other side of 0, its share is taken as one in B + 1: neither 0 nor an error."""
    d = sign * np.array([1.0, 1.1, 1.2, 1.4, 1.9])
    result = paired_test("bootstrap_bca", d, n_resamples=99, rng=0)
    assert 0 < result.p_value < 0.1
    assert np.isfinite([result.ci_low, result.ci_high]).all()
    draws = np.array(means_of(d.tolist(), drawn_counts(5, 99, 0)))
    bias = stats.norm.ppf(share_below(draws, d.mean()))
    acceleration = ((d - d.mean()) ** 3).sum() / (6 * ((d - d.mean()) ** 2).sum() ** 1.5)
    at = stats.norm.ppf(1 / 100 if sign > 0 else 99 / 100) - bias
    below = stats.norm.cdf(at / (1 + acceleration * at) - bias)
    assert result.p_value == pytest.approx(2 * min(below, 1 - below), rel=1e-9)


@each_row("level", [0.9, 0.95, 0.99])
@each_row("n_resamples", [99, 199, 999])
def test_zero_is_outside_exactly_where_p_is_at_most_alpha(level, n_resamples):
    """(1 - .9) * 1000 is 99.99999999999997 in floating point, and means 100."""
    d = np.random.default_rng(8).normal(0.4, 1, size=(15, 300))
    result = paired_test("bootstrap", d, alpha=1 - level, n_resamples=n_resamples, rng=1)
    rejected = np.rint(result.p_value * (n_resamples + 1)) <= float((1 - Fraction(str(level))) * (n_resamples + 1))
    assert (((result.ci_low > 0) | (result.ci_high < 0)) == rejected).all()
    assert rejected.any()
    assert not rejected.all()


@each_row("name", ["bootstrap", "bootstrap_shift", "bootstrap_percentile"])
def test_as_many_resamples_are_drawn_as_were_asked_for(name):
    """Of a mean of 0 every resample is at least as extreme: p is 1, and would be less with a draw missing."""
    d = np.array([1.0, -1.0] * 10)
    for n_resamples in (1, 2, 31, 32, 33, 1000, 5000):
        assert paired_test(name, d, n_resamples=n_resamples, rng=3).p_value == (
            1 if name != "bootstrap_percentile" else pytest.approx(1, abs=2 / np.sqrt(n_resamples))
        )


@each_row("n_resamples", [1, 33, 4097])
@each_row("n", [2, 5, 3000])
def test_resamples_are_multinomial_whatever_the_size_of_chunks(n, n_resamples):
    """As many rows as asked for, each of n draws; the stream is the same for every number of columns."""
    if n * n_resamples > 10**6:
        n_resamples %= 100
    few, many = (np.concatenate(list(weight_chunks(n, n_resamples, 7, n_columns=m))) for m in (1, 2000))
    assert few.shape == (n_resamples, n)
    assert (few == many).all()
    np.testing.assert_allclose(few.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(np.rint(few * n) / n, few)
    assert abs(few.mean(axis=0) - 1 / n).max() < 6 * np.sqrt(1 / n / n / n_resamples) + 1e-12 or n_resamples < 30


def test_one_draw_of_one_query_has_no_variance():
    """Of two queries half of the resamples hold one query twice: they are infinite, so p is at least a half."""
    result = paired_test("bootstrap", [0.1, 0.3], n_resamples=9999, rng=0)
    assert result.p_value == pytest.approx(0.5, abs=0.02)
    assert (result.ci_low, result.ci_high) == (-inf, inf)
    assert paired_test("bootstrap", [0.1, 0.3], n_resamples=1, rng=0).ci_low == -inf


def test_resamples_of_one_value_have_no_variance_whatever_rounding_leaves():
    """Of seven queries six agree: a third of the resamples hold that one value, so no interval at 70 % is finite."""
    d = np.random.default_rng(0).normal(size=(2, 400))[[0] * 6 + [1]]
    result = paired_test("bootstrap", d, alpha=0.3, n_resamples=999, rng=0)
    assert np.isneginf(result.ci_low).all()
    assert np.isposinf(result.ci_high).all()
