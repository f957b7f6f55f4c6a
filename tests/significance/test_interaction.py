"""The test of interaction: Welch's statistic, all deals of small samples, its level and its power."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from tables import each_row

from rankeval.significance.declarations import Settings
from rankeval.significance.strata import interaction

QUICK = Settings(n_resamples=299, rng=0)


def parts_of(sizes):
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


@each_row("sizes", [(10, 15), (10, 15, 20), (5, 6, 7, 30)])
def test_the_statistic_is_welchs(sizes):
    """Equal to SciPy's, for several columns at once."""
    parts = parts_of(sizes)
    d = np.random.default_rng(0).normal(size=(sum(sizes), 4)) * np.repeat(np.arange(1, len(sizes) + 1), sizes)[:, None]
    expected = stats.f_oneway(*[d[part] for part in parts], equal_var=False, axis=0).statistic
    np.testing.assert_allclose(interaction(d, parts, QUICK).statistic, expected, rtol=1e-10)


def test_p_is_the_share_of_deals():
    """Four and three queries: the 35 deals counted out, within Monte Carlo error of 20,000 drawn ones."""
    d = np.array([0.1, 0.3, 0.2, 0.5, 0.4, 0.9, 0.6])

    def statistic(first):
        other = [i for i in range(7) if i not in first]
        return stats.f_oneway(d[list(first)], d[other], equal_var=False).statistic

    deals = [statistic(first) for first in itertools.combinations(range(7), 4)]
    share = np.mean(np.array(deals) >= statistic((0, 1, 2, 3)) * (1 - 1e-9))
    found = interaction(d[:, None], [np.arange(4), np.arange(4, 7)], Settings(n_resamples=20_000, rng=1))
    assert found.p_value[0] == pytest.approx(share, abs=4 * np.sqrt(share / 20_000))


def test_parts_may_stand_anywhere_and_leave_queries_out():
    """Only the values of the parts count, and another column changes nothing."""
    generator = np.random.default_rng(2)
    d = generator.normal(size=(40, 2))
    parts = np.split(generator.permutation(40)[:30], [12])
    found = interaction(d, parts, QUICK)
    moved = interaction(d[np.concatenate(parts)][:, :1], [np.arange(12), np.arange(12, 30)], QUICK)
    np.testing.assert_allclose(found.statistic[:1], moved.statistic, rtol=1e-9)
    assert found.p_value[0] == moved.p_value[0]


@each_row(
    ("sizes", "deviations"),
    [((10, 20, 60), (0.5, 1, 2)), ((10, 20, 60), (2, 1, 0.5)), ((15, 60), (3, 1)), ((20,) * 5, (1,) * 5)],
)
def test_it_holds_its_level_where_variances_differ(sizes, deviations):
    """600 null data sets: at most 9 % rejected, where the ordinary F rejects a third of the second world."""
    spread = np.repeat(deviations, sizes)[:, None]
    d = np.random.default_rng(3).normal(size=(sum(sizes), 600)) * spread
    assert 0.02 <= (interaction(d, parts_of(sizes), QUICK).p_value <= 0.05).mean() <= 0.09


def test_it_holds_its_level_on_sparse_differences():
    """Wins, ties and losses as P@1 has them, in slices of which some have no variance."""
    d = np.random.default_rng(4).choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(75, 600))
    assert (interaction(d, parts_of((5, 10, 30, 30)), QUICK).p_value <= 0.05).mean() <= 0.075


def test_it_finds_what_is_there():
    """Mean differences of 0 and .8 standard deviations on 40 queries each: found as often as by Welch's t."""
    d = np.random.default_rng(5).normal(size=(80, 300)) + np.repeat([0.0, 0.8], 40)[:, None]
    expected = (stats.ttest_ind(d[:40], d[40:], equal_var=False).pvalue <= 0.05).mean()
    assert expected > 0.85
    assert (interaction(d, parts_of((40, 40)), QUICK).p_value <= 0.05).mean() == pytest.approx(expected, abs=0.02)


def test_differences_without_variance_show_nothing():
    """A constant column has statistic 0 and p 1; slices that are constant, and different, are told apart."""
    d = np.stack([np.full(30, 0.25), np.repeat([0.0, 1.0], 15)], axis=1)
    found = interaction(d, parts_of((15, 15)), QUICK)
    assert (found.statistic[0], found.p_value[0]) == (0, 1)
    assert found.p_value[1] == pytest.approx(1 / 300)
