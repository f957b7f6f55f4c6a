"""The value of the best of several: never above the largest mean, unmoved by copies, Student's for one candidate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tables import each_row

from rankeval.errors import InvalidInput
from rankeval.significance import paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import held_out_mean, largest_quantile, value_of_choice


def drawn(n, k, seed=0):
    return np.random.default_rng([n, k, seed]).normal(0.02, 0.15, (n, k))


def values(gains, **settings):
    found = value_of_choice(gains, Settings(rng=1, n_resamples=999, **settings))
    return found.estimate, found.ci_low, found.ci_high


def test_one_candidate_has_its_mean_and_students_interval():
    gains = drawn(30, 1)
    t = paired_test("t", gains[:, 0])
    assert values(gains) == pytest.approx((gains.mean(), t.ci_low, t.ci_high), rel=1e-12)
    one_sided = values(gains, alternative="greater")
    assert one_sided == values(gains)


@each_row("n", [2, 3, 4, 5, 6, 17, 50])
def test_copies_change_nothing(n):
    gains = drawn(n, 4)
    copied = np.hstack([gains, gains[:, :2], gains[:, 1:2]])
    assert values(copied) == pytest.approx(values(gains), rel=1e-9)
    alone = np.repeat(gains[:, :1], 5, axis=1)
    assert values(alone) == values(gains[:, :1])


def test_the_order_of_the_candidates_changes_nothing():
    """Of columns that lead together the first is named; their order does not change the estimate."""
    tied = np.array([[0.0, 0.2, -1.0], [0.4, 0.2, -1.0], [0.0, 0.2, -1.0], [0.4, 0.2, -1.0]])
    gains = drawn(20, 3)
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        assert values(gains[:, order]) == pytest.approx(values(gains), rel=1e-9)
        assert values(tied[:, order])[0] == pytest.approx(0.1, rel=1e-9)
        assert value_of_choice(tied[:, order], Settings(rng=1)).leader == min(order.index(0), order.index(1))


@given(st.integers(2, 12), st.integers(2, 6), st.integers(0, 1000))
def test_the_estimate_lies_within_its_interval_and_below_the_largest_mean(n, k, seed):
    gains = np.round(drawn(n, k, seed), 1)  # with ties
    estimate, low, high = values(gains)
    mean = gains.mean(axis=0).max()
    assert low <= estimate <= mean + 1e-12
    assert high >= mean - 1e-12


def test_the_estimate_is_the_mean_over_leaving_each_query_out_for_few_queries():
    """With 5 queries or fewer every split is the same: each query goes to the leader on the others."""
    gains = drawn(5, 3)
    others = [np.delete(gains, query, axis=0).mean(axis=0).argmax() for query in range(5)]
    expected = np.mean([gains[query, leader] for query, leader in enumerate(others)])
    assert values(gains)[0] == pytest.approx(expected, rel=1e-12)


def test_the_estimate_is_that_of_a_plain_loop():
    gains = drawn(23, 4)
    generator = np.random.default_rng(7)
    folds = generator.permuted(np.tile(np.arange(23) % 5, (50, 1)), axis=1)
    credited = 0.0
    for fold_of in folds:
        for fold in range(5):
            leader = gains[fold_of != fold].mean(axis=0).argmax()
            credited += gains[fold_of == fold, leader].sum()
    assert held_out_mean(gains, np.random.default_rng(7)) == pytest.approx(credited / (50 * 23), rel=1e-12)


def test_the_quantile_is_that_of_all_patterns():
    """Studentised anew for every pattern of signs, by brute force on 8 queries."""
    gains = drawn(8, 3)
    centred = gains - gains.mean(axis=0)
    largest = []
    for signs in product([-1, 1], repeat=8):
        flipped = centred * np.array(signs)[:, None]
        largest.append((flipped.mean(axis=0) / flipped.std(axis=0, ddof=1) * np.sqrt(8)).max())
    # 6 of the 256 are at most a share of .025, and may exceed it; 7 are more.
    assert largest_quantile(gains, Settings()) == pytest.approx(sorted(largest)[-7], rel=1e-9)


def test_the_quantile_lies_between_students_and_bonferronis_for_normal_gains():
    gains = drawn(200, 10)
    student, bonferroni = stats.t.isf([0.025, 0.0025], 199)
    assert student < largest_quantile(gains, Settings(rng=0)) < bonferroni * 1.03


def test_up_to_five_queries_the_lower_end_is_bonferronis():
    """32 patterns of signs are too few for a quantile at .975."""
    gains = drawn(5, 4)
    leader = gains[:, gains.mean(axis=0).argmax()]
    below = stats.t.isf(0.025 / 4, 4) * leader.std(ddof=1) / np.sqrt(5)
    assert values(gains)[1] == pytest.approx(leader.mean() - below, rel=1e-12)


def test_gains_without_variance_have_their_value_and_no_width():
    steady = np.column_stack([np.full(10, 0.5), drawn(10, 1)[:, 0]])
    for gains, mean in ((np.full((6, 3), 0.1), 0.1), (np.zeros((6, 3)), 0.0), (steady, 0.5)):
        assert values(gains) == pytest.approx((mean, -np.inf, np.inf), rel=1e-12)


def test_gains_of_equal_size_leave_no_infinite_end():
    """A pattern of signs may leave no variance; then t is infinite, and Bonferroni bounds it."""
    gains = np.array([[1.0, -1.0], [-1.0, 1.0]] * 3 + [[0.0, 0.0]] * 2)
    assert np.isfinite(values(gains)).all()
    assert np.isfinite(values(gains[:6])).all()


def test_the_seed_determines_the_result():
    gains = drawn(40, 5)
    assert values(gains) == values(gains)
    other = value_of_choice(gains, Settings(rng=2, n_resamples=999))
    assert other.estimate != values(gains)[0]
    assert other.estimate == pytest.approx(values(gains)[0], abs=0.01)


def test_a_shift_of_all_gains_shifts_the_value():
    gains = drawn(30, 4)
    assert np.subtract(values(gains + 0.5), values(gains)) == pytest.approx([0.5] * 3, abs=1e-9)


def test_too_few_queries_and_missing_gains_are_refused():
    with pytest.raises(InvalidInput, match="at least 2 queries"):
        values(np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="finite"):
        values([[0.1, np.nan], [0.2, 0.1]])


def test_the_lower_end_is_never_nearer_than_students():
    """One query with most of the spread: under flips its sign is all of t, which is then about 1."""
    gains = drawn(20, 2) / 1000
    gains[0] += [3.0, 2.9]
    settings = Settings(n_resamples=999, rng=1)
    student = stats.t.isf(0.025, 19)
    assert largest_quantile(gains, settings) < student
    mean, error = gains[:, 0].mean(), gains[:, 0].std(ddof=1) / np.sqrt(20)
    assert value_of_choice(gains, settings).ci_low == pytest.approx(mean - student * error, rel=1e-12)
