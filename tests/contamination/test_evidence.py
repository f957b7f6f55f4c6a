"""Laws of the chance that labels match by accident."""

import math

import numpy as np
import pytest

from rankeval.contamination.evidence import (
    REFUSAL_CHANCE,
    _log_partial_exponential,
    chance_of_being_contained,
)


@pytest.mark.parametrize("n", [3, 12, 45])
def test_the_chance_of_a_whole_collection_of_different_queries_is_that_of_a_permutation(n):
    assert chance_of_being_contained(np.ones(n, dtype=int), n) == pytest.approx(math.factorial(n) / n**n, rel=1e-3)


def test_the_chance_of_a_whole_collection_is_the_multinomial():
    times = np.array([1, 1, 2, 4])
    exact = math.factorial(8) / math.prod(map(math.factorial, times.tolist()))
    exact *= math.prod((t / 8) ** t for t in times.tolist())
    assert chance_of_being_contained(times, 8) == pytest.approx(exact, rel=1e-3)


def test_queries_that_all_look_alike_are_no_evidence():
    assert chance_of_being_contained(np.array([50]), 50) == pytest.approx(1)


def test_few_queries_of_a_collection_are_no_evidence_and_most_are():
    times = np.ones(45, dtype=int)
    assert chance_of_being_contained(times, 9) > 0.1
    assert chance_of_being_contained(times, 40) < REFUSAL_CHANCE
    assert chance_of_being_contained(np.ones(100, dtype=int), 100) < 1e-30


def test_the_bound_is_never_under_the_true_chance():
    rng = np.random.default_rng(3)
    for _ in range(20):
        times = rng.integers(1, 4, rng.integers(2, 6))
        drawn = int(rng.integers(1, times.sum() + 1))
        draws = rng.multinomial(drawn, times / times.sum(), size=4000)
        share = (draws <= times).all(axis=1).mean()
        assert chance_of_being_contained(times, drawn) >= share - 4 * math.sqrt(max(share * (1 - share), 1e-3) / 4000)


@pytest.mark.parametrize("terms", [1, 2, 7, 300, 5000])
def test_the_partial_exponential_is_the_sum_of_its_terms(terms):
    """Against the sum itself, at arguments far below, at and far above the last term."""
    log_x = np.array([-9.0, -1.0, 0.0, math.log(terms), math.log(terms) + 0.5, 9.0, 48.0])
    k = np.arange(terms + 1)
    logs = k * log_x[:, None] - np.array([math.lgamma(each + 1) for each in k.tolist()])
    top = logs.max(axis=1)
    direct = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
    assert (_log_partial_exponential(terms, log_x) >= direct - 1e-9 * np.abs(direct) - 1e-12).all()  # never too small
    assert _log_partial_exponential(terms, log_x) == pytest.approx(direct, rel=1e-7, abs=1e-12)


def test_a_large_collection_of_alike_queries_is_weighed_at_once():
    """A million queries of a few patterns: a sum over the terms of each multiplicity would take minutes."""
    times = np.arange(1, 1400)
    assert chance_of_being_contained(times, 1000) == pytest.approx(1)
    assert chance_of_being_contained(times, int(times.sum())) < 1e-300
