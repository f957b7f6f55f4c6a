"""Looks at a test: the bounds of plans, p-values over looks, and confidence sequences."""

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName

N_LOOKS = 20


def walks(n_tests, drift=0.0, seed=0):
    """z-values of tests at 20 equal looks."""
    steps = np.random.default_rng(seed).normal(drift / N_LOOKS, N_LOOKS**-0.5, (n_tests, N_LOOKS))
    return np.cumsum(steps, axis=1) / np.sqrt(np.arange(1, N_LOOKS + 1) / N_LOOKS)


def test_five_equal_looks():
    """Five looks at two-sided .05 have the bounds that tables of Lan-DeMets' spending give."""
    bounds = rk.online.looks_plan(5).bounds
    assert bounds == pytest.approx([4.8769, 3.3570, 2.6803, 2.2898, 2.0310], abs=5e-5)


@each_row("spending", ["obrien_fleming", "pocock"])
def test_bounds_spend_alpha(spending):
    """The chance to stay within the bounds, integrated in three dimensions by SciPy, is 1 - alpha."""
    shares = np.array([0.3, 0.55, 1.0])
    ends = rk.online.looks_plan(shares, spending=spending, alpha=0.1).bounds * np.sqrt(shares)
    scores = multivariate_normal(np.zeros(3), np.minimum.outer(shares, shares))
    assert scores.cdf(ends, lower_limit=-ends, rng=0) == pytest.approx(0.9, abs=1e-4)


def test_one_look_is_the_usual_test():
    """A plan with one look has the bound 1.96."""
    assert rk.online.looks_plan(1).bounds == pytest.approx([norm.isf(0.025)])


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.floats(0.01, 0.99), min_size=2, max_size=6, unique_by=lambda share: round(share, 2)))
def test_past_bounds_do_not_depend_on_later_looks(shares):
    """If later looks move, the bounds of those before stay."""
    *past, moved = sorted(shares)
    one, other = (rk.online.looks_plan([*past, *later, 1]).bounds for later in ([moved], []))
    assert one[: len(past)] == pytest.approx(other[: len(past)], abs=1e-9)


def test_error_and_power_of_twenty_looks():
    """Twenty looks claim .05 of equal arms with a plan and a third of that in a sequence; naive looks claim .25."""
    plan, aa = rk.online.looks_plan(N_LOOKS), walks(20_000)
    assert (np.abs(aa) > plan.bounds).any(axis=1).mean() == pytest.approx(0.05, abs=0.005)
    assert (np.abs(aa) > norm.isf(0.025)).any(axis=1).mean() > 0.2
    n = np.tile(np.arange(1, N_LOOKS + 1) * 100, len(aa))
    p = rk.online.confidence_sequence(aa.ravel(), np.ones(aa.size), n, best_at=2000)["p_value"].to_numpy()
    assert (p.reshape(aa.shape) <= 0.05).any(axis=1).mean() <= 0.03
    found = walks(20_000, drift=norm.isf(0.025) + norm.isf(0.2), seed=1)
    assert (np.abs(found) > plan.bounds).any(axis=1).mean() >= 0.75


@each_row("spending", ["obrien_fleming", "pocock"])
@each_row("alpha", [0.001, 0.05, 0.4])
def test_p_value_is_the_level_whose_bound_is_reached(spending, alpha):
    """At its bound a plan's p-value is its alpha, at each look."""
    plan = rk.online.looks_plan(4, spending=spending, alpha=alpha)
    found = [plan.p_value(-bound, look) for look, bound in enumerate(plan.bounds, 1)]
    assert found == pytest.approx([alpha] * 4, rel=1e-4)


def test_p_values_beyond_the_range():
    """No difference has p 1, and a huge one the least p that is followed."""
    plan = rk.online.looks_plan(3)
    assert plan.p_value(0.0, 2) == 1
    assert plan.p_value(30.0, 3) == 1e-12


def test_looks_that_are_close():
    """Bounds of close looks are those of another quadrature, with twice the nodes."""
    assert rk.online.looks_plan([0.5, 1 - 1e-5, 1]).bounds == pytest.approx(
        [2.96258804, 1.96860826, 1.97576587], abs=1e-8
    )


@each_row(
    "shares",
    [
        *(0, [0.5], [0.5, 0.5, 1], [0, 1], [], [0.5, 1, 1.2], [float("nan"), 1]),
        *(10**400, 1001, -1, True, None, "x", "0.5", b"x", 5.0, {}, [[1]], [None, 1], ["a", "b"], [10**400], object()),
        *([i / 2000 for i in range(1, 2001)], [0.5, 0.5 + 1e-15, 1], [0.5, 0.5 + 1e-9, 0.5 + 2e-9, 1]),
    ],
)
def test_shares_that_are_no_plan(shares):
    """Shares ascend from above 0 to 1; so many or so close looks that the recursion would not end are refused."""
    with pytest.raises(InvalidInput) as error:
        rk.online.looks_plan(shares)
    assert error.value.argument == "shares"


def test_refused_plans_and_looks():
    """An unknown spending, a level above one half and a look that was not planned are refused."""
    with pytest.raises(UnknownName):
        rk.online.looks_plan(5, spending="obrien")
    with pytest.raises(InvalidInput):
        rk.online.looks_plan(5, alpha=0.6)
    with pytest.raises(InvalidInput, match="no more were planned"):
        rk.online.looks_plan(5).p_value(2.0, 6)


def test_confidence_sequence_by_its_formula():
    """Half width and p follow the formula; at p = alpha the interval ends at 0."""
    found = rk.online.confidence_sequence([0.3], [0.1], [500], best_at=1000).iloc[0]
    surprise = np.log(1 / 0.05**2)
    m = 500 * (surprise + np.log(1 + surprise)) / 1000
    half = 0.1 * np.sqrt((1 + 1 / m) * np.log((m + 1) / 0.05**2))
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([0.3 - half, 0.3 + half])
    at_the_end = rk.online.confidence_sequence([half], [0.1], [500], best_at=1000)
    assert at_the_end["p_value"].iloc[0] == pytest.approx(0.05)


def test_confidence_sequence_is_narrowest_near_best_at():
    """Relative to the standard error, no other tuning is narrower by more than 1 % at best_at."""

    def half(best_at):
        return rk.online.confidence_sequence([0], [1], [1000], best_at=best_at)["ci_high"].iloc[0]

    assert half(1000) < 1.01 * min(half(best_at) for best_at in np.geomspace(100, 10_000, 50))


@each_row("wrong", [{"standard_error": [0]}, {"n": [0]}, {"best_at": -1}, {"n": [np.nan]}])
def test_refused_sequences(wrong):
    """A sequence needs errors and numbers of users above 0."""
    given = {"estimate": [1], "standard_error": [1], "n": [10], "best_at": 10} | wrong
    with pytest.raises(InvalidInput) as error:
        rk.online.confidence_sequence(**given)
    assert error.value.argument == next(iter(wrong))
