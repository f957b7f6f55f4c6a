"""The expected inflation of the best of many looks, held against simulation."""

import numpy as np
import pytest

from rankeval.guard.history import expected_inflation, inflation_of

# 50 topics, nDCG of mean .45 and sd .28, K equally good systems correlated by rho: measured before the library was
# written (20,000 simulations each).
MEASURED = {(10, 0.9): 0.0206, (50, 0.9): 0.0291, (100, 0.9): 0.0332, (200, 0.9): 0.0368, (10, 0.7): 0.0347}


@pytest.mark.parametrize(("looks", "rho"), MEASURED)
def test_the_formula_is_within_five_thousandths_of_simulation(looks, rho):
    assert expected_inflation(looks, 50, sd=0.28, correlation=rho) == pytest.approx(MEASURED[looks, rho], abs=0.005)


@pytest.mark.parametrize("looks", [5, 20, 80])
def test_the_formula_fits_a_simulation_made_here(looks):
    rng, n, rho = np.random.default_rng(1), 50, 0.9
    best = []
    for _ in range(400):
        shared = rng.normal(size=(n, 1))
        scores = 0.28 * (np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.normal(size=(n, looks)))
        best.append(scores.mean(axis=0).max() - scores.mean())
    assert expected_inflation(looks, n, sd=0.28, correlation=rho) == pytest.approx(np.mean(best), abs=0.005)


def test_one_look_is_not_inflated():
    assert expected_inflation(1, 50, sd=0.3, correlation=0.5) == 0


def test_spread_and_correlation_come_from_the_scores():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=4000)
    scores = [0.5 + 0.1 * (0.8 * shared + 0.6 * rng.normal(size=4000)) for _ in range(4)]
    assert inflation_of(scores, 9) == pytest.approx(expected_inflation(9, 4000, sd=0.1, correlation=0.64), rel=0.1)
    assert inflation_of([np.full(10, 0.5)], 9) == 0
