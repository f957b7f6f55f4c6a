"""Worlds in which the truth is known: pairs of systems with equal mean scores, or a known difference.

`sym`: exchangeable systems; `beta`: equal means, unlike spreads; `skew`: the same for low scores, as AP has them,
whose differences are skewed. Scores are Beta distributed, tied together within a query by a Gaussian copula.
"""

from __future__ import annotations

import numpy as np
from scipy import special

# mean, standard deviation of either system, correlation of the copula
WORLDS = {
    "sym": (0.45, (0.28, 0.28), 0.7),
    "beta": (0.45, (0.28, 0.22), 0.7),
    "skew": (0.25, (0.22, 0.14), 0.5),
}


def null_differences(world, n, n_replications, rng):
    """Return per-query differences of two equally good systems, `(n, n_replications)`."""
    mean, spreads, correlation = WORLDS[world]
    generator = np.random.default_rng(rng)
    common = generator.standard_normal((n, n_replications))
    scores = []
    for spread in spreads:
        own = generator.standard_normal((n, n_replications))
        normal = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        scores.append(_beta_quantile(special.ndtr(normal), mean, spread))
    return scores[0] - scores[1]


def shifted_differences(difference, sd, n, n_replications, rng):
    """Return normal differences with a true mean, `(n, n_replications)`."""
    return np.random.default_rng(rng).normal(difference, sd, size=(n, n_replications))


def equal_systems(n, n_systems, rng, *, better=0, gain=0.0):
    """Return scores of exchangeable systems on common queries, `(n, n_systems)`; the last `better` ones gain `gain`."""
    generator = np.random.default_rng(rng)
    common = generator.standard_normal((n, 1))
    normal = np.sqrt(0.7) * common + np.sqrt(0.3) * generator.standard_normal((n, n_systems))
    scores = _beta_quantile(special.ndtr(normal), 0.45, 0.28)
    if better:
        scores[:, -better:] += gain
    return scores


def _beta_quantile(share, mean, spread):
    # Read from a table: the exact inverse is a hundred times slower.
    size = mean * (1 - mean) / spread**2 - 1
    grid = np.linspace(0, 1, 4001)
    return np.interp(share, grid, special.betaincinv(mean * size, (1 - mean) * size, grid))
