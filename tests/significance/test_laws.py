"""Laws of every test and every correction that is declared."""

from __future__ import annotations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.significance import CORRECTIONS, TESTS, adjust, paired_test
from rankeval.significance.declarations import ALTERNATIVES, FOLD_TESTS, Settings, corrections_of_p_values

TENTHS = st.integers(-10, 10).map(lambda k: k / 10)
COLUMNS = st.integers(2, 30).flatmap(lambda n: hnp.arrays(np.float64, n, elements=TENTHS))
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)
DECLARED = {**TESTS, **FOLD_TESTS, **CORRECTIONS}


@each_row("name", TESTS)
def test_equal_systems_have_p_one(name):
    """All differences zero: p is 1, and there is no interval, by every test."""
    result = paired_test(name, np.zeros((20, 2)), n_resamples=99, rng=0)
    assert result.p_value.tolist() == [1.0, 1.0]
    assert (result.ci_low.tolist(), result.ci_high.tolist()) == ([-np.inf] * 2, [np.inf] * 2)


@each_row("name", TESTS)
@each_row(
    ("d", "message"),
    [
        ([0.5], "at least 2 queries"),
        ([], "at least 2 queries"),
        ([0.1, np.nan, 0.2], "found 1 that are NaN"),
        ([0.1, np.inf], "finite"),
        (np.zeros((2, 2, 2)), "shape"),
    ],
)
def test_bad_differences_are_refused(name, d, message):
    with pytest.raises(InvalidInput, match=message):
        paired_test(name, d)


@pytest.mark.parametrize("name", TESTS)
@settings(max_examples=examples(25), deadline=None)
@given(d=COLUMNS, seed=st.integers(0, 5))
def test_p_values_are_probabilities_and_sides_mirror(name, d, seed):
    """P in (0, 1]; swapping the systems leaves the two-sided p and exchanges the one-sided ones."""
    options = {"n_resamples": 99, "rng": seed}
    for alternative, mirrored in zip(ALTERNATIVES, ["two-sided", "less", "greater"], strict=True):
        ours = paired_test(name, d, alternative=alternative, **options)
        swapped = paired_test(name, -d, alternative=mirrored, **options)
        assert 0 < ours.p_value <= 1
        assert swapped.p_value == pytest.approx(ours.p_value, rel=1e-9)
        assert swapped.ci_low == pytest.approx(-ours.ci_high, rel=1e-9, abs=1e-12)


@each_row("name", TESTS)
@each_row("n", [14, 40])
def test_the_order_of_queries_matters_only_as_far_as_chance_does(name, n):
    """The same p for every order if nothing is drawn, else the same within the noise of the resamples."""
    generator = np.random.default_rng(n)
    d = generator.normal(0.25, 1, size=n).round(1)
    shuffled = d[generator.permutation(n)]
    p, again = (paired_test(name, each, n_resamples=4999, rng=1).p_value for each in (d, shuffled))
    noise = 5 * np.sqrt(2 * p * (1 - p) / 4999) if TESTS[name].is_random(n) else 1e-9
    assert again == pytest.approx(p, abs=2 * noise)


@each_row("name", TESTS)
@each_row("alternative", ALTERNATIVES)
def test_no_p_value_is_below_its_floor(name, alternative):
    """Overwhelming evidence does not lead below it."""
    for n in (2, 8, 17, 30):
        d = (1 + np.random.default_rng(n).random(n) * 1e-3) * (-1 if alternative == "less" else 1)
        options = {"alternative": alternative, "n_resamples": 99, "rng": 0}
        assert paired_test(name, d, **options).p_value >= TESTS[name].floor(n, Settings(**options)) * (1 - 1e-12)


@each_row("alternative", ALTERNATIVES)
@each_row("name", TESTS)
def test_one_sided_intervals_are_open_on_the_other_side(name, alternative):
    result = paired_test(
        name, np.random.default_rng(7).normal(size=(20, 2)), alternative=alternative, n_resamples=199, rng=0
    )
    assert np.isneginf(result.ci_low).tolist() == [alternative == "less"] * 2
    assert np.isposinf(result.ci_high).tolist() == [alternative == "greater"] * 2


@each_row("name", TESTS)
def test_a_seed_matters_where_it_is_said_to(name):
    """And only there."""
    for n in (10, 40):
        d = np.random.default_rng(n).normal(0.3, 1, size=(n, 20))
        one, other = (paired_test(name, d, n_resamples=99, rng=seed).p_value for seed in (1, 2))
        assert (one != other).any() == TESTS[name].is_random(n)


@pytest.mark.parametrize("method", corrections_of_p_values())
@given(p=P_VALUES, data=st.data())
def test_adjusted_p_values_keep_order_and_never_fall(method, p, data):
    """Adjusted >= raw, at most 1, monotone in the raw p, and indifferent to the order of the family."""
    adjusted = adjust(p, method)
    assert (adjusted >= np.array(p) - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-15).all()
    order = data.draw(st.permutations(range(len(p))))
    np.testing.assert_allclose(adjust(np.array(p)[order], method), adjusted[order], rtol=1e-12)


@each_row("name", DECLARED)
def test_declarations_speak_to_people(name):
    """Words for captions that do not end like a sentence, and documentation of the function."""
    declared = DECLARED[name]
    assert declared.words
    assert not declared.words.endswith(".")
    assert declared.function.__doc__
