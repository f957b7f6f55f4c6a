"""The interval of the randomisation test holds delta exactly if the test of d - delta does not reject."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tables import each_row

from rankeval.significance import paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.randomization import flip_test

DRAW = {
    "normal": lambda rng, n: rng.normal(0.3, 1, n),
    "tenths": lambda rng, n: rng.integers(-3, 5, n) / 10,
    "reciprocal ranks": lambda rng, n: rng.choice([1, 1 / 2, 1 / 3, 0], n) - rng.choice([1, 1 / 2, 1 / 3, 0], n),
    "wins and losses": lambda rng, n: rng.integers(-1, 2, n) * 1.0,
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "constant": lambda _, n: np.full(n, 0.1),
}
SIZES = (2, 3, 5, 6, 7, 8, 10, 12, 17, 20, 30, 50)


def deltas_of(d, low, high, rng):
    """Return both ends, points next to them, and points where sums tie."""
    ends = [end for end in (low, high) if np.isfinite(end)]
    beside = [end + step for end in ends for step in (-1e-6, -1e-9, 1e-9, 1e-6)]
    return [*ends, *beside, 0.0, 0.1, -0.1, d.mean(), np.median(d), rng.choice(d)]


@pytest.mark.world
@pytest.mark.parametrize("kind", DRAW)
def test_the_interval_holds_delta_exactly_if_its_p_value_is_above_alpha(kind):
    """With the same seed: over 4,000 checks in all, ties and the ends among them, without one exception."""
    rng, checks = np.random.default_rng(7), 0
    for seed in range(70):
        d = DRAW[kind](rng, int(rng.choice(SIZES)))
        level = float(rng.choice([0.8, 0.9, 0.95, 0.99]))
        options = {
            "alternative": str(rng.choice(["two-sided", "greater", "less"])),
            "alpha": 1 - level,
            "n_resamples": int(rng.choice([19, 39, 99, 200, 499])),
            "rng": seed,
        }
        found = paired_test("randomization", d, **options)
        if np.ptp(d) <= 1e-12:  # nothing tells how wide it is
            assert (found.ci_low, found.ci_high) == (-np.inf, np.inf)
            continue
        for delta in deltas_of(d, found.ci_low, found.ci_high, rng):
            p = paired_test("randomization", d - delta, **options).p_value
            assert (found.ci_low <= delta <= found.ci_high) == (p > round(1 - level, 12)), (d, delta, options)
            checks += 1
    assert checks * len(DRAW) > 4000 or (kind == "constant") == (checks == 0)


@each_row("shift", [1, -100])
@each_row("n", [10, 30])
def test_the_interval_moves_with_the_differences(n, shift):
    """By as much as they do, up to the rounding of the sums: its width is that of their spread, far from zero too."""
    d = np.random.default_rng(0).normal(0, 1e-3, n)
    here, there = (paired_test("randomization", each, n_resamples=999, rng=0) for each in (d, d + shift))
    moved = np.subtract([there.ci_low, there.ci_high], shift)
    np.testing.assert_allclose(moved, [here.ci_low, here.ci_high], rtol=0, atol=1e-14 * abs(shift))


def test_few_queries_leave_an_infinite_interval():
    """Two patterns of sixteen reach any mean, which is more than 5 %; of six queries, 2 of 64 is less."""
    found = paired_test("randomization", [0.1, 0.11, 0.09, 0.12])
    assert (found.ci_low, found.ci_high) == (-np.inf, np.inf)
    one_sided = paired_test("randomization", [0.1, 0.11, 0.09, 0.12, 0.1], alternative="greater")
    assert (np.isfinite(one_sided.ci_low), one_sided.ci_high) == (True, np.inf)
    six = paired_test("randomization", [0.1, 0.11, 0.09, 0.12, 0.1, 0.1])
    assert np.isfinite([six.ci_low, six.ci_high]).all()


@each_row("weights", [np.ones(8), np.array([1.0, 2, 1, 2, 0.5, 1, 3, 1])])
@each_row("alternative", ["two-sided", "greater", "less"])
def test_the_ends_are_order_statistics_of_the_means_of_kept_and_flipped(weights, alternative):
    """By a plain loop over all patterns, weighted too."""
    d, alpha = np.random.default_rng(3).normal(0.3, 1, 8), 0.1
    highs, lows = [], []
    for signs in itertools.product((True, False), repeat=8):
        kept = np.array(signs)
        means = [np.average(d[part], weights=weights[part]) if part.any() else None for part in (kept, ~kept)]
        if alternative == "two-sided":
            highs.append(np.inf if None in means else max(means))
            lows.append(-np.inf if None in means else min(means))
        else:
            highs.append(np.inf if means[1] is None else means[1])
            lows.append(-np.inf if means[1] is None else means[1])
    place = int(alpha * 2**8)  # so many patterns may count outside
    found = flip_test(d[:, None], Settings(alternative, alpha), weights)
    if alternative != "less":
        assert found.ci_low[0] == pytest.approx(sorted(lows)[place], rel=1e-9)
    if alternative != "greater":
        assert found.ci_high[0] == pytest.approx(sorted(highs)[-1 - place], rel=1e-9)


def test_equal_weights_change_nothing():
    d = np.random.default_rng(0).normal(0.2, 1, (30, 3))
    plain, weighed = (flip_test(d, Settings(rng=1), weights) for weights in (None, np.full(30, 0.25)))
    assert plain.p_value.tolist() == weighed.p_value.tolist()
    np.testing.assert_allclose([weighed.ci_low, weighed.ci_high], [plain.ci_low, plain.ci_high], rtol=1e-9)


def test_ends_that_cannot_matter_are_dropped_without_a_trace():
    """Of 30,000 resamples only the largest ends are kept; the order statistics are those of all."""
    d = np.random.default_rng(5).normal(0.2, 1, (20, 2))
    found = flip_test(d, Settings(n_resamples=30_000, rng=3))
    for column, low, high in zip(d.T, found.ci_low, found.ci_high, strict=True):
        for end, step in ((low, -1e-6), (high, 1e-6)):
            inside, outside = (
                paired_test("randomization", column - delta, n_resamples=30_000, rng=3).p_value
                for delta in (end - step, end + step)
            )
            assert inside > 0.05 >= outside
