"""Effect sizes, counts, and how many queries a difference takes."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats
from statsmodels.stats.power import TTestPower
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.significance import FOLD_TESTS
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Settings
from rankeval.significance.effects import (
    cliffs_delta,
    effect_interval,
    hedges_g,
    outcomes,
    standardised_effect,
    superiority,
)
from rankeval.significance.paired import widened
from rankeval.significance.power import _power, detectable_difference, topics_needed
from rankeval.significance.running import run

CASES = [(0.05, 0.15, 73), (0.05, 0.20, 128), (0.03, 0.15, 199), (0.02, 0.15, 444), (0.10, 0.20, 34)]


@each_row(("difference", "sd", "n"), CASES)
def test_topics_needed_for_known_cases(difference, sd, n):
    """The five cases of the noncentral t, each checked by simulation beforehand."""
    assert topics_needed(difference, sd) == n
    assert topics_needed(-difference, sd) == n


@each_row(("n", "low", "high"), [(10, 0.150, 0.200), (25, 0.088, 0.117), (50, 0.061, 0.081), (100, 0.043, 0.057)])
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


@given(
    effect=st.floats(-2, 2),
    n=st.integers(2, 400),
    alpha=st.sampled_from([0.001, 0.01, 0.05]),
    sides=st.sampled_from([("two-sided", "two-sided"), ("greater", "larger"), ("less", "smaller")]),
)
def test_the_power_of_t_equals_statsmodels(effect, n, alpha, sides):
    """In each direction, effects against the alternative too."""
    with warnings.catch_warnings(action="ignore"):
        expected = TTestPower().power(effect, n, alpha, alternative=sides[1])
    found = _power({"two-sided": abs(effect), "greater": effect, "less": -effect}[sides[0]], n, alpha, sides[0])
    assert np.isnan(found) or 0 <= found <= 1
    assert np.isnan(expected) or np.isnan(found) or abs(found - expected) < 1e-6


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
    with pytest.raises(InvalidInput, match="2 or greater"):
        detectable_difference(1, 0.1)
    assert topics_needed(0.1, 0.0) == 6  # the sign flips of five queries have a p-value of 2 in 32
    assert topics_needed(0.1, 0.0, alternative="greater") == 5
    assert np.isnan(detectable_difference(10, 0.0))
    with pytest.raises(InvalidInput, match="unseen"):
        topics_needed(0.0, 0.1, claim="not_worse", margin=0.1, unseen=-1)
    with pytest.raises(InvalidInput, match="greatest_loss"):
        detectable_difference(10, 0.1, claim="not_worse", margin=0.1, greatest_loss=0.0)


@each_row("asked", [partial(topics_needed, 0.0), partial(detectable_difference, 10)])
@each_row("claim", ["difference", "not_worse"])
@each_row("wrong", [np.inf, np.nan, -1.0, "1", None, True])
def test_a_loss_without_an_end_is_refused(asked, claim, wrong):
    """No number of queries rules out a breakage that costs infinitely much."""
    with pytest.raises(InvalidInput) as refused:
        asked(0.1, claim=claim, margin=0.1 if claim == "not_worse" else 0.0, greatest_loss=wrong)
    assert refused.value.argument == "greatest_loss"


@each_row("alternative", ["two-sided", "greater", "less"])
@each_row("n", [2, 3, 10, 60])
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


def cdf_of_noncentral_t(t, degrees, noncentrality):
    """Integrate over the deviation, which no library's noncentral t does: P(Z + nc <= t * s), s a scaled chi."""
    chi = stats.chi(degrees, scale=1 / np.sqrt(degrees))
    low, high = chi.ppf([1e-14, 1 - 1e-14])
    area = integrate.quad(
        lambda s: special.ndtr(t * s - noncentrality) * chi.pdf(s), low, high, epsabs=1e-11, limit=400, points=[1.0]
    )
    return area[0]


@each_row("n", [2, 3, 5, 10, 50, 1000])
@each_row("effect", [-2.0, -0.1, 0.0, 0.3, 1.0, 4.0])
def test_the_interval_of_d_leaves_the_tails_of_the_noncentral_t(n, effect):
    """At the lower end the observed t has the tail above it, at the upper end the tail below it."""
    shape = np.linspace(-1, 1, n)
    d = effect + shape / shape.std(ddof=1)
    found = effect_interval(d, confidence_level=0.9)
    t = effect * np.sqrt(n)
    assert 1 - cdf_of_noncentral_t(t, n - 1, found.low * np.sqrt(n)) == pytest.approx(0.05, abs=1e-5)
    assert cdf_of_noncentral_t(t, n - 1, found.high * np.sqrt(n)) == pytest.approx(0.05, abs=1e-5)
    assert found.low < standardised_effect(d) + 1e-12 < found.high + 2e-12


def test_the_interval_of_d_covers_the_true_effect():
    """Of 4,000 samples of 8 with a true effect of .7, 90 % cover it; the standard error is .5 %."""
    d = np.random.default_rng(0).normal(0.7, 1, (8, 4000))
    found = effect_interval(d, confidence_level=0.9)
    assert np.mean((found.low <= 0.7) & (found.high >= 0.7)) == pytest.approx(0.9, abs=0.015)


@each_row("ratio", [0.0, 0.25])
def test_the_interval_of_d_belongs_to_the_p_value(ratio):
    """It has an end at 0 where p is alpha, for queries and for folds that overlap."""
    generator = np.random.default_rng(1)
    d = generator.normal(0, 1, (12, 400)) + generator.uniform(-1.5, 1.5, 400)
    p = (
        run(FOLD_TESTS["corrected_resampled_t"], widened(d, ratio), Settings()).p_value
        if ratio
        else stats.ttest_1samp(d, 0).pvalue
    )
    found = effect_interval(d, ratio=ratio)
    excludes = (found.low > 0) | (found.high < 0)
    clear = np.abs(p - 0.05) > 1e-6
    assert (excludes == (p < 0.05))[clear].all()
    assert 50 < excludes.sum() < 350


def test_hedges_g_is_unbiased():
    """The mean of d_z is the true effect over the factor: integrated for the noncentral t, and on 200,000 samples."""
    for n in (3, 4, 10, 50):
        factor = float(hedges_g(np.linspace(-1, 2, n)) / standardised_effect(np.linspace(-1, 2, n)))
        assert factor * stats.nct(n - 1, 0.4 * np.sqrt(n)).mean() / np.sqrt(n) == pytest.approx(0.4, rel=1e-10)
        assert factor == pytest.approx(1 - 3 / (4 * (n - 1) - 1), abs=0.012)  # Hedges' own approximation
    d = np.random.default_rng(0).normal(0.5, 1, (5, 200_000))
    assert hedges_g(d).mean() == pytest.approx(0.5, abs=0.005)
    assert standardised_effect(d).mean() > 0.6
    assert hedges_g([0.1] * 3) == np.inf
    assert np.isnan(hedges_g([0.1, 0.3]))
    assert hedges_g(np.zeros((4, 2))).tolist() == [0, 0]


scores = st.lists(st.integers(-3, 3).map(lambda value: value / 10), min_size=1, max_size=25)


@given(scores, scores)
def test_cliffs_delta_equals_a_count_of_all_pairs(system, baseline):
    """Lists of any lengths; change them, and the sign changes."""
    signs = [np.sign(x - y) for x in system for y in baseline]
    assert cliffs_delta(system, baseline) == pytest.approx(np.mean(signs), abs=1e-15)
    assert cliffs_delta(baseline, system) == -cliffs_delta(system, baseline)
    assert -1 <= cliffs_delta(system, baseline) <= 1
    u = stats.mannwhitneyu(system, baseline).statistic
    assert cliffs_delta(system, baseline) == pytest.approx(2 * u / (len(system) * len(baseline)) - 1, abs=1e-12)


def test_cliffs_delta_takes_float_noise_for_a_tie():
    """.1 + .2 is no win over .3, and no chain of scores is one tie."""
    assert cliffs_delta([0.1 + 0.2], [0.3]) == 0
    assert cliffs_delta([0.3], [0.1 + 0.2]) == 0
    assert cliffs_delta([0.3 + 1e-9], [0.3]) == 1
    assert cliffs_delta([-0.3], [-0.1 - 0.2]) == 0
    for wrong in ([], [np.nan], [[0.1]]):
        with pytest.raises(InvalidInput, match="list of finite scores"):
            cliffs_delta(wrong, [0.1])


@given(st.lists(st.integers(-2, 2), min_size=2, max_size=30))
def test_superiority_is_the_share_of_wins_and_half_the_ties(d):
    expected = sum(1.0 if value > 0 else 0.5 if value == 0 else 0.0 for value in d) / len(d)
    assert superiority(d) == pytest.approx(expected)
    assert superiority(np.negative(d)) == pytest.approx(1 - expected)


def test_effects_of_constant_differences():
    """No interval where t is not defined: equal systems, and one that is better by the same on every query."""
    for value, effect, share in ((0.0, 0.0, 0.5), (0.1, np.inf, 1.0), (-0.1, -np.inf, 0.0)):
        d = np.full((4, 2), value)
        assert standardised_effect(d).tolist() == [effect] * 2
        assert superiority(d).tolist() == [share] * 2
        interval = effect_interval(d)
        assert np.isnan([interval.low, interval.high]).all()


@pytest.fixture
def frames():
    generator = np.random.default_rng(4)
    base = generator.random((25, 2))
    return {
        name: pd.DataFrame(np.round(base + generator.normal(gain, 0.1, base.shape), 2), columns=["AP", "ARP"])
        for name, gain in (("weak", 0.0), ("strong", 0.08), ("odd", 0.02))
    }


def test_the_table_of_effects_is_oriented_by_the_measure(frames):
    """A greater ARP is worse, so its effects have the other sign; the table of differences keeps the sign it has."""
    compared = rk.compare(frames, alpha=0.1)
    found = compared.effects
    assert found.columns.tolist() == [
        "measure", "baseline", "system", "cohens_d", "d_low", "d_high", "hedges_g", "cliffs_delta", "superiority",
    ]  # fmt: skip
    assert len(found) == len(compared.table) == 6
    for row, shown in zip(found.itertuples(), compared.table.itertuples(), strict=True):
        assert (row.measure, row.baseline, row.system) == (shown.measure, shown.baseline, shown.system)
        sign = -1 if row.measure == "ARP" else 1
        one, other = (frames[name][row.measure].to_numpy() for name in (row.system, row.baseline))
        assert row.cohens_d == pytest.approx(sign * shown.effect_size)
        interval = effect_interval(sign * differences(one, other), confidence_level=0.9)
        assert (row.d_low, row.d_high) == (interval.low, interval.high)
        assert row.cliffs_delta == sign * cliffs_delta(one, other)
        assert row.superiority == superiority(sign * differences(one, other))
        assert row.superiority == pytest.approx((shown.wins + shown.ties / 2) / 25)
        assert abs(row.hedges_g) < abs(row.cohens_d)
    with pytest.raises(InvalidInput, match="compare the evaluations again"):
        _ = rk.Comparison.from_json(compared.to_json()).effects


def test_the_margin_of_not_worse_has_no_part_in_the_smallest_margin_for_which_it_is_shown():
    """The value is itself a margin: the gain that a one-sided t test finds, counted from an equal system."""
    one_sided = detectable_difference(50, 0.15, alternative="greater")
    plain = detectable_difference(50, 0.15, claim="not_worse", margin=0.05, unseen=0)
    assert plain == pytest.approx(one_sided, rel=1e-6)
    assert detectable_difference(50, 0.15, claim="not_worse", margin=0.05) > plain
    assert detectable_difference(50, 0.15, claim="better", margin=0.05) == pytest.approx(0.05 + one_sided, rel=1e-9)


GROUPED = [(1, 0.0, 73), (1, 0.3, 73), (5, 0.0, 17), (5, 0.3, 34), (5, 1.0, 73), (2.5, 0.3, 43)]


@each_row(("size", "share", "n"), GROUPED)
def test_groups_needed_are_those_of_the_means_of_groups(size, share, n):
    """A group of alike queries counts as a query, and one of independent queries as so many."""
    assert topics_needed(0.05, 0.15, group_size=size, intraclass=share) == n
    sd = 0.15 * np.sqrt(share + (1 - share) / size)
    assert topics_needed(0.05, sd) == n
    harmless = {"claim": "not_worse", "margin": 0.1}
    assert topics_needed(0.0, 0.15, group_size=size, intraclass=share, **harmless) == topics_needed(0.0, sd, **harmless)


def test_so_many_groups_show_the_difference():
    """In four of five data sets, if it is tested over groups."""
    n, rng = topics_needed(0.05, 0.15, group_size=5, intraclass=0.3), np.random.default_rng(0)
    of_groups = np.sqrt(0.3) * rng.normal(size=(n, 1, 4000)) + np.sqrt(0.7) * rng.normal(size=(n, 5, 4000))
    found = stats.ttest_1samp(0.05 + 0.15 * of_groups.mean(axis=1), 0).pvalue <= 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


@each_row(
    ("argument", "value"),
    [("group_size", 0.5), ("group_size", "5"), ("intraclass", -0.1), ("intraclass", 1.1), ("intraclass", None)],
)
def test_groups_that_cannot_be_are_refused(argument, value):
    with pytest.raises(InvalidInput) as caught:
        topics_needed(0.05, 0.15, **{argument: value})
    assert caught.value.argument == argument
