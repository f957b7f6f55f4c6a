"""Two algorithms that are equal in truth and differ by their seeds: how often each p claims a difference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor
from tables import each_row

import rankeval as rk
from rankeval.significance.seeds import over_queries_and_seeds

pytestmark = pytest.mark.world

N_WORLDS = 4000
# Queries, seeds of each system, the standard deviations of differences over queries, of seeds, and of single queries
# with a seed; and how often a test over queries alone claims a difference, at least.
WORLDS = [
    (100, (5, 5), 0.1, 0.02, 0.05, 0.15),
    (300, (3, 3), 0.1, 0.02, 0.05, 0.4),
    (300, (3, 3), 0.2, 0.02, 0.05, 0.2),
    (1000, (2, 2), 0.1, 0.02, 0.05, 0.6),
    (300, (8, 4), 0.1, 0.02, 0.05, 0.3),
]


def claimed(world, rng):
    """Return whether each test claims a difference: over queries alone, and over queries and seeds."""
    n, sizes, sd_query, sd_seed, sd_rest, _ = world
    seeds = [rng.normal(0, sd_seed, (size, 1)) + rng.normal(0, sd_rest, (size, n)) for size in sizes]
    d = rng.normal(0, sd_query, n) + seeds[1].mean(axis=0) - seeds[0].mean(axis=0)
    tested = over_queries_and_seeds(d, [own.mean(axis=1) for own in seeds], 0.05)
    return stats.ttest_1samp(d, 0).pvalue <= 0.05, tested.p_value <= 0.05


@each_row("world", WORLDS)
def test_a_p_over_queries_and_seeds_holds_its_level(world):
    """One over queries alone does not."""
    rng = np.random.default_rng(0)
    alone, both = np.mean([claimed(world, rng) for _ in range(N_WORLDS)], axis=0)
    assert alone > world[-1]
    assert 0.03 <= both <= 0.07


def test_seeds_that_move_single_queries_only_make_it_timid():
    """Their noise is part of both variances; the claim of the docstring."""
    rng = np.random.default_rng(0)
    world = (100, (5, 5), 0.1, 0.0, 0.2, 0.0)
    alone, both = np.mean([claimed(world, rng) for _ in range(N_WORLDS)], axis=0)
    assert 0.03 <= alone <= 0.07
    assert both < 0.04


def test_the_same_ranker_with_other_seeds_is_seldom_claimed_to_differ():
    """Cross-validated and compared as users do it."""
    tree = DecisionTreeRegressor(max_depth=3, max_features=1)
    found = []
    for world in range(200):
        data = rk.datasets.make_ranking(60, 8, rng=world)
        draws = np.random.default_rng(world).permutation(1000)[:10].tolist()
        options = {"measures": "AP", "cv": 3}
        systems = {
            name: rk.cross_validate(tree, data, seeds=seeds, **options).evaluation
            for name, seeds in {"one": draws[:5], "other": draws[5:]}.items()
        }
        compared = rk.compare(systems)
        found.append([compared.table["p_value"][0] <= 0.05, compared.seeds["p_value"][0] <= 0.05])
    alone, both = np.mean(found, axis=0)
    assert alone > 2 * both
    assert both <= 0.08
