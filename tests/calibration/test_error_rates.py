"""What the tests promise, measured: how often they see a difference where there is none, and where there is one.

4,000 replications stand side by side as columns, so a whole world is one matrix product. The allowed ranges are
nominal rate, known bias and three standard errors of the simulation (.0034).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from calibration.worlds import WORLDS, equal_systems, exponential_differences, null_differences, shifted_differences

from rankeval.significance import Settings, paired_test
from rankeval.significance.multiple import bonferroni, holm, max_t, tukey

REPLICATIONS = 4000
SIZES = (10, 25, 50, 100)


def rate(test, d, *, n_resamples=999, alternative="two-sided"):
    """Return the share of columns in which the test claims a difference at 5 %."""
    result = paired_test(test, d, alternative=alternative, n_resamples=n_resamples, rng=1)
    return float((result.p_value <= 0.05).mean())


def nothing_there(world, n):
    return null_differences(world, n, REPLICATIONS, rng=[n, list(WORLDS).index(world)])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("world", ["sym", "beta", "skew"])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_t_and_randomisation_hold_their_level_two_sided(test, world, n):
    """Between 4 and 6 % false positives where 5 % are asked, from 10 queries on, up to mild skew."""
    assert 0.040 <= rate(test, nothing_there(world, n)) <= 0.060


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("world", WORLDS)
def test_the_default_bootstrap_holds_its_level_two_sided(world, n):
    """Conservative on 10 queries, at its level beyond, up to mild skew."""
    assert (0.025 if n == 10 else 0.040) <= rate("bootstrap", nothing_there(world, n)) <= (0.05 if n == 10 else 0.06)


@pytest.mark.parametrize(
    ("test", "two_sided", "against_the_tail"),
    [
        ("t", (0.10, 0.08, 0.065), (0.14, 0.10, 0.09)),
        ("randomization", (0.095, 0.08, 0.065), (0.14, 0.11, 0.085)),
        ("bootstrap", (0.07, 0.065, 0.05), (0.12, 0.09, 0.08)),
        ("bootstrap_shift", (0.155, 0.097, 0.075), (0.19, 0.13, 0.10)),
        ("bootstrap_percentile", (0.14, 0.09, 0.07), (0.165, 0.11, 0.085)),
        ("bootstrap_bca", (0.125, 0.09, 0.067), (0.13, 0.085, 0.07)),
    ],
)
def test_strong_skew_makes_every_test_of_the_mean_liberal(test, two_sided, against_the_tail):
    """On exponential differences no test holds its level at 10, 25 or 50 queries; docstrings have these figures."""
    for n, both, one in zip((10, 25, 50), two_sided, against_the_tail, strict=True):
        d = exponential_differences(n, REPLICATIONS, rng=[n, 9])
        assert rate(test, d) == pytest.approx(both, abs=0.012)
        assert rate(test, d, alternative="less") == pytest.approx(one, abs=0.012)
        assert rate(test, d, alternative="greater") <= 0.070  # towards the tail


@pytest.mark.parametrize("test", ["t", "randomization", "bootstrap"])
def test_one_sided_tests_are_off_from_mild_skew_on(test):
    """Up to 8 % on the one side, 3 % on the other, at 10 queries; symmetric differences do them no harm."""
    d = nothing_there("skew", 10)
    assert rate(test, d, alternative="less") == pytest.approx(0.075, abs=0.01)
    assert rate(test, d, alternative="greater") == pytest.approx(0.031, abs=0.01)
    for alternative in ("less", "greater"):
        assert 0.035 <= rate(test, nothing_there("sym", 10), alternative=alternative) <= 0.06


@pytest.mark.parametrize(
    ("test", "few", "more", "many"),
    [
        ("bootstrap_shift", (0.09, 0.16), (0.06, 0.10), (0.05, 0.08)),
        ("bootstrap_percentile", (0.09, 0.15), (0.06, 0.10), (0.05, 0.075)),
        ("bootstrap_bca", (0.09, 0.17), (0.06, 0.11), (0.05, 0.08)),
    ],
)
def test_the_liberal_bootstraps_are_as_liberal_as_their_notes_say(test, few, more, many):
    """At 10, 25 and 50 queries, in all worlds; the note printed has the first two ranges."""
    for n, (low, high) in zip((10, 25, 50), (few, more, many), strict=True):
        worlds = [nothing_there(world, n) for world in WORLDS]
        for d in (*worlds, exponential_differences(n, REPLICATIONS, rng=[n, 9])):
            assert low <= rate(test, d) <= high
    note = paired_test(test, nothing_there("sym", 10)[:, 0], n_resamples=99, rng=1).notes[-1]
    percent = [f"{100 * low:g}-{100 * high:g} %" for low, high in (few, more)]
    assert f"{percent[0]} at 10 queries, {percent[1]} at 25" in note


def test_wilcoxon_and_sign_get_worse_with_more_queries():
    """On skewed differences of equal means: 9.9 and 26.6 % at 100 queries; they do not test the mean."""
    rates = {test: [rate(test, nothing_there("skew", n)) for n in (25, 100)] for test in ("wilcoxon", "sign")}
    assert rates["wilcoxon"][1] == pytest.approx(0.099, abs=0.02)
    assert rates["sign"][1] == pytest.approx(0.266, abs=0.02)
    assert all(few < many for few, many in rates.values())


@pytest.mark.parametrize(("n", "power"), [(10, 0.123), (25, 0.267), (50, 0.478), (100, 0.778)])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_power_is_as_known(test, n, power):
    """At a true difference of .05 and a standard deviation of .183."""
    d = shifted_differences(0.05, 0.183, n, REPLICATIONS, rng=[n, 7])
    assert rate(test, d) == pytest.approx(power, abs=0.02)


def test_family_wise_errors_over_all_pairs_of_ten_equal_systems():
    """Holm, max-T and randomised Tukey keep false claims near 5 % of the experiments; uncorrected t makes 66 %."""
    pairs = list(combinations(range(10), 2))
    first, second = (list(side) for side in zip(*pairs, strict=True))
    claims = {"naive": 0, "bonferroni": 0, "holm": 0, "max_t": 0, "tukey": 0}
    experiments = 600
    for experiment in range(experiments):
        scores = equal_systems(50, 10, rng=[experiment, 1])
        d = scores[:, second] - scores[:, first]
        p = paired_test("t", d).p_value
        smallest = {
            "naive": p.min(),
            "bonferroni": bonferroni(p).min(),
            "holm": holm(p).min(),
            "max_t": max_t(d, Settings(n_resamples=199, rng=experiment)).min(),
            "tukey": tukey(scores, pairs, Settings(n_resamples=199, rng=experiment)).min(),
        }
        for name, p_value in smallest.items():
            claims[name] += p_value <= 0.05
    rates = {name: count / experiments for name, count in claims.items()}
    assert rates["naive"] > 0.55
    assert rates["holm"] <= 0.060
    assert rates["bonferroni"] == rates["holm"]  # the first claim is made by the same p-value
    assert 0.030 <= rates["max_t"] <= 0.070
    assert 0.030 <= rates["tukey"] <= 0.070


def test_step_down_keeps_its_level_among_the_equal_systems():
    """With half the systems truly better, false claims about the others stay under 5 %, true ones are found."""
    false_claims, found = 0, []
    experiments = 400
    for experiment in range(experiments):
        scores = equal_systems(50, 10, rng=[experiment, 2], better=4, gain=0.12)
        p = max_t(scores[:, 1:] - scores[:, :1], Settings(n_resamples=399, rng=experiment))
        false_claims += p[:5].min() <= 0.05
        found.append((p[5:] <= 0.05).mean())
    assert false_claims / experiments <= 0.08
    assert np.mean(found) > 0.5
