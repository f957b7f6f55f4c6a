"""Weighted means of queries: linearised errors, degrees of freedom, and the tests that take weights."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from tables import each_row

from rankeval.significance import CORRECTIONS, TESTS
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import value_of_choice
from rankeval.significance.strata import Strata, stratified
from rankeval.significance.weighted import (
    degrees_of_freedom,
    effective_number,
    linearised,
    weighted_error,
    weighted_mean,
)

ABLE = [name for name, declared in TESTS.items() if declared.weighted is not None]


def sample(n=40, n_columns=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.1, 0.3, (n, n_columns)), np.exp(rng.standard_normal(n))


def test_the_error_is_that_of_weighted_least_squares():
    """A constant fitted by WLS with HC1 errors is an independent program for mean and standard error."""
    d, weights = sample()
    for place, column in enumerate(d.T):
        fitted = sm.WLS(column, np.ones(len(d)), weights=weights).fit(cov_type="HC1")
        assert weighted_mean(d, weights)[place] == pytest.approx(fitted.params[0], rel=1e-12)
        assert weighted_error(d, weights)[place] == pytest.approx(fitted.bse[0], rel=1e-12)


def test_the_error_is_that_of_a_survey():
    """Cochran (1977), chapter 6: sum of w^2 (x - m)^2 over (sum w)^2, times n / (n - 1)."""
    d, weights = sample()
    m = (weights[:, None] * d).sum(axis=0) / weights.sum()
    variance = (weights[:, None] ** 2 * (d - m) ** 2).sum(axis=0) / weights.sum() ** 2 * 40 / 39
    np.testing.assert_allclose(weighted_error(d, weights) ** 2, variance, rtol=1e-12)


def test_linearised_values_are_linear_in_the_systems():
    """The difference of two systems' values is the value of their difference."""
    d, weights = sample()
    of_each = linearised(d, weights)
    of_difference = linearised(d[:, :1] - d[:, 1:2], weights)
    np.testing.assert_allclose(of_each[:, :1] - of_each[:, 1:2], of_difference, atol=1e-12)
    np.testing.assert_allclose(of_each.mean(axis=0), weighted_mean(d, weights), rtol=1e-12)


def test_degrees_of_freedom_and_effective_number_of_equal_and_of_few_weights():
    """Equal weights: n - 1 and n. Two heavy queries among many light ones count about as two."""
    assert degrees_of_freedom(np.full(30, 0.7)) == pytest.approx(29)
    assert effective_number(np.full(30, 0.7)) == pytest.approx(30)
    few = np.append([1.0, 1.0], np.full(100, 1e-9))
    assert degrees_of_freedom(few) == pytest.approx(2, rel=0.02)
    assert effective_number(few) == pytest.approx(2, rel=1e-6)


@each_row("name", ABLE)
@each_row("alternative", ["two-sided", "greater", "less"])
def test_equal_weights_change_nothing(name, alternative):
    d, _ = sample()
    settings = Settings(alternative, n_resamples=499, rng=0, family_alpha=0.01)
    plain = TESTS[name].function(d, settings)
    weighted = TESTS[name].weighted(d, settings, np.full(len(d), 3.0))
    for field in ("p_value", "ci_low", "ci_high"):
        np.testing.assert_allclose(getattr(weighted, field), getattr(plain, field), rtol=1e-9)


@each_row("name", ABLE)
def test_the_scale_of_weights_changes_nothing(name):
    d, weights = sample()
    settings = Settings(n_resamples=499, rng=0)
    one, other = (TESTS[name].weighted(d, settings, scale * weights) for scale in (1.0, 1e-6))
    for field in ("p_value", "ci_low", "ci_high"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-7)


def test_t_by_hand():
    d, weights = sample()
    found = TESTS["t"].weighted(d, Settings(), weights)
    squares = weights**2
    degrees = 39 / 40 * squares.sum() ** 2 / (squares**2).sum()
    t = weighted_mean(d, weights) / weighted_error(d, weights)
    np.testing.assert_allclose(found.p_value, 2 * stats.t.sf(np.abs(t), degrees), rtol=1e-9)
    reach = stats.t.ppf(0.975, degrees) * weighted_error(d, weights)
    np.testing.assert_allclose(found.ci_high - found.ci_low, 2 * reach, rtol=1e-9)


def test_randomization_counts_all_flips_of_products():
    """By all 2^9 patterns of signs on w d."""
    d, weights = sample(n=9)
    signs = 1 - 2 * ((np.arange(512)[:, None] >> np.arange(9)) & 1)
    sums = np.abs(signs @ (weights[:, None] * d))
    expected = (sums >= sums[0] * (1 - 1e-12)).mean(axis=0)
    found = TESTS["randomization"].weighted(d, Settings(rng=0), weights)
    np.testing.assert_allclose(found.p_value, expected)


def test_bootstrap_resamples_queries_with_their_weights():
    """By a loop: each resample has its own ratio, and the error of that ratio."""
    d, weights = sample(n=12, n_columns=1)
    column, mean = d[:, 0], weighted_mean(d, weights)[0]
    observed = abs(mean) / weighted_error(d, weights)[0]
    rng, reaching, trials = np.random.default_rng(1), 0, 20000
    for drawn in rng.integers(0, 12, (trials, 12)):
        w, x = weights[drawn], column[drawn]
        m = (w @ x) / w.sum()
        error = np.sqrt((w**2) @ (x - m) ** 2 * 12 / 11) / w.sum()
        reaching += error == 0 or abs(m - mean) / error >= observed
    found = TESTS["bootstrap"].weighted(d, Settings(n_resamples=20000, rng=0), weights)
    assert found.p_value[0] == pytest.approx(reaching / trials, abs=0.02)


@each_row("name", ["t", "bootstrap"])
def test_one_query_with_most_of_the_weight_leaves_nothing_to_claim(name):
    """Its own score decides the mean, and the others say nothing of how it varies."""
    d, weights = sample()
    weights[0] = 10 * weights.sum()
    found = TESTS[name].weighted(d, Settings(n_resamples=499, rng=0), weights)
    assert (found.p_value == 1).all()
    assert np.isinf(found.ci_low).all()
    assert np.isinf(found.ci_high).all()


def test_two_alike_queries_with_all_of_the_weight_show_nothing():
    """Their scores are equal, so the linearised error is 0, though the column varies."""
    d, weights = np.append([0.3, 0.3], np.linspace(-1, 1, 20))[:, None], np.append([1.0, 1.0], np.full(20, 1e-30))
    found = TESTS["t"].weighted(d, Settings(), weights)
    assert found.p_value[0] == 1.0
    assert np.isinf(found.ci_low[0])


def test_max_t_is_joint_over_the_products():
    """Adjusted p: the correction itself, of w d. Its intervals: centred about weighted means."""
    d, weights = sample()
    strata, settings = Strata.side_by_side([40], weights), Settings(n_resamples=999, rng=0)
    joint = stratified(strata, CORRECTIONS["max_t"], 3)
    np.testing.assert_allclose(
        joint.function(d, settings), CORRECTIONS["max_t"].function(weights[:, None] * d, settings)
    )
    low, high = joint.limits(d, settings)
    plain_low, plain_high = CORRECTIONS["max_t"].limits(linearised(d, weights), settings)
    np.testing.assert_allclose([low, high], [plain_low, plain_high], rtol=1e-9)


def test_unseen_queries_weigh_as_much_as_the_others_on_average():
    _, weights = sample(n=20)
    strata = Strata.side_by_side([12, 8], weights).with_unseen(2)
    assert strata.weights.shape == (24, 2)
    np.testing.assert_allclose(strata.weights.mean(axis=0), 1.0)
    for place, part in enumerate(strata.parts):
        own = strata.weights[part, place]
        np.testing.assert_allclose(own[-2:], own[:-2].mean())
        np.testing.assert_allclose(own[:-2] / own[0], weights[part[:-2]] / weights[part[0]])


def test_the_value_of_a_choice_by_weighted_means():
    """One candidate: mean and interval of t. Several: the estimate is a weighted mean on queries held out."""
    d, weights = sample()
    single = value_of_choice(d[:, :1], Settings(rng=0), weights)
    t = TESTS["t"].weighted(d[:, :1], Settings(), weights)
    np.testing.assert_allclose([single.ci_low, single.ci_high], [t.ci_low[0], t.ci_high[0]], rtol=1e-9)
    assert single.estimate == pytest.approx(weighted_mean(d, weights)[0])
    several = value_of_choice(d, Settings(rng=0), weights)
    assert several.leader == int(weighted_mean(d, weights).argmax())
    assert several.ci_low <= several.estimate <= weighted_mean(d, weights).max() + 1e-12
