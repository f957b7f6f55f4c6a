"""Effect sizes, counts, and how many queries a difference takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance.effects import outcomes, standardised_effect
from rankeval.significance.power import detectable_difference, topics_needed

CASES = [(0.05, 0.15, 73), (0.05, 0.20, 128), (0.03, 0.15, 199), (0.02, 0.15, 444), (0.10, 0.20, 34)]


@pytest.mark.parametrize(("difference", "sd", "n"), CASES)
def test_topics_needed_for_known_cases(difference, sd, n):
    """The five cases of the noncentral t, each checked by simulation beforehand."""
    assert topics_needed(difference, sd) == n
    assert topics_needed(-difference, sd) == n


@pytest.mark.parametrize(
    ("n", "low", "high"), [(10, 0.150, 0.200), (25, 0.088, 0.117), (50, 0.061, 0.081), (100, 0.043, 0.057)]
)
def test_detectable_difference_for_known_cases(n, low, high):
    """At sd .15 and .20, two-sided 5 %, 80 % power."""
    np.testing.assert_allclose(detectable_difference(n, [0.15, 0.20]), [low, high], atol=0.001)


@given(effect=st.floats(0.05, 3), alpha=st.sampled_from([0.001, 0.01, 0.05]), power=st.sampled_from([0.5, 0.8, 0.95]))
def test_power_equals_statsmodels(effect, alpha, power):
    """The number found reaches the power asked for by statsmodels' reckoning, one query less does not."""
    for ours, theirs in (("two-sided", "two-sided"), ("greater", "larger")):
        n = topics_needed(effect, 1.0, alpha, power, alternative=ours)
        with np.errstate(all="ignore"):
            reached = [TTestPower().power(effect, size, alpha, alternative=theirs) for size in (n, max(n - 1, 2))]
        # statsmodels leaves out the wrong tail, and has nan far out.
        assert np.isnan(reached[0]) or reached[0] >= power - 1e-4
        assert n == 2 or np.isnan(reached[1]) or reached[1] < power + 1e-9
        assert detectable_difference(n, 1.0, alpha, power, alternative=ours) <= effect * (1 + 1e-9)


def test_detectable_difference_of_huge_families_on_two_queries():
    """The extremes of the noncentral t: 1,225 comparisons over two queries still give a number."""
    assert 1e3 < detectable_difference(2, 0.2, 0.05 / 1225) < 1e5


def test_impossible_questions_are_refused():
    with pytest.raises(InvalidInput, match="difference of 0"):
        topics_needed(0, 0.1)
    with pytest.raises(InvalidInput, match="alpha < power"):
        topics_needed(0.1, 0.1, power=1.0)
    for difference in (np.nan, np.inf, -np.inf):
        with pytest.raises(InvalidInput, match=r"difference is .*; expected a number"):
            topics_needed(difference, 0.1)
    for sd in (np.nan, np.inf, -0.1, "0.1", None):
        with pytest.raises(InvalidInput, match="sd is"):
            topics_needed(0.1, sd)
    for alpha, power in ((0.0, 0.8), (0.8, 0.8), (0.05, 1.0), (0.9, 0.8), (-0.1, 0.8)):
        with pytest.raises(InvalidInput, match="alpha < power"):
            topics_needed(0.1, 0.1, alpha, power)
        with pytest.raises(InvalidInput, match="alpha < power"):
            detectable_difference(10, 0.1, alpha, power)
    with pytest.raises(UnknownName, match="greater"):
        topics_needed(0.1, 0.1, alternative="larger")
    with pytest.raises(InvalidInput, match="at least 2"):
        detectable_difference(1, 0.1)
    assert topics_needed(0.1, 0.0) == 2


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [2, 3, 10, 60])
def test_what_is_detectable_has_just_the_power_asked_for(n, alternative):
    """By simulation-free reckoning of statsmodels, which leaves out the wrong tail."""
    found = float(detectable_difference(n, 2.0, 0.05, 0.7, alternative=alternative))
    side = "two-sided" if alternative == "two-sided" else "larger"
    assert TTestPower().power(found / 2.0, n, 0.05, alternative=side) == pytest.approx(0.7, abs=1e-3)
    assert detectable_difference(n, [1.0, 2.0], 0.05, 0.7, alternative=alternative)[1] == found


def test_a_huge_difference_needs_few_topics_and_a_tiny_one_many():
    """At two topics the search starts; the normal approximation says what many come to."""
    assert topics_needed(100.0, 1.0) == 2
    assert topics_needed(1.0, 1.0) == 10
    assert topics_needed(0.001, 1.0) == pytest.approx((1.959964 + 0.841621) ** 2 * 10**6, rel=1e-5)


def test_effect_is_the_mean_over_the_deviation_of_differences():
    """Zero for equal systems, infinite with the sign of a constant difference."""
    d = np.random.default_rng(0).normal(0.1, 1, size=(20, 3))
    np.testing.assert_allclose(standardised_effect(d), d.mean(axis=0) / d.std(axis=0, ddof=1))
    assert standardised_effect([0.0, 0.0]) == 0
    assert standardised_effect(np.array([[-0.25], [-0.25]])).tolist() == [-np.inf]


@given(st.lists(st.integers(-2, 2), min_size=2, max_size=30))
def test_outcomes_add_up(d):
    counts = outcomes(d)
    assert counts.wins + counts.ties + counts.losses == len(d)
    assert counts.ties == d.count(0)
