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


def exponential_differences(n, n_replications, rng):
    """Return strongly skewed differences (skewness 2) of mean 0, their tail above, `(n, n_replications)`."""
    return np.random.default_rng(rng).exponential(size=(n, n_replications)) - 1


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


def equal_learners(rng, *, n_queries=100, n_docs=20, n_features=5, repeats=10, k=10, gain=1.0):
    """Return nDCG@10 differences of two ridge regressions by fold, `(repeats * k,)`, and by query out of fold.

    Each learner sees one of two exchangeable sets of features (the second one's signal times `gain`), so that at
    gain 1 neither is better. Fitted in closed form from Gram matrices per query, since thousands of fits are needed.
    """
    generator = np.random.default_rng(rng)
    X = generator.standard_normal((2, n_queries, n_docs, n_features))
    weight = np.array([1.0, gain]) / np.sqrt(n_features)
    utility = np.einsum("sqdf,s->qd", X, weight) + 2.0 * generator.standard_normal((n_queries, n_docs))
    y = np.digitize(utility, np.quantile(utility, [0.6, 0.8, 0.9, 0.97])).astype(float)
    grams, moments = np.einsum("sqdf,sqdg->sqfg", X, X), np.einsum("sqdf,qd->sqf", X, y - y.mean())
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = np.maximum(-np.sort(-y, axis=1)[:, :10] @ discount, 1e-9)  # a query without relevant rows counts 0
    fold_of = np.array([generator.permutation(np.arange(n_queries) % k) for _ in range(repeats)])
    test = (fold_of[:, None, :] == np.arange(k)[:, None]).reshape(repeats * k, n_queries)
    gram, moment = np.einsum("tq,sqfg->tsfg", ~test, grams), np.einsum("tq,sqf->tsf", ~test, moments)
    beta = np.linalg.solve(gram + np.eye(n_features), moment[..., None])[..., 0]
    # One row per repeat: the coefficients of the fold that holds each query out.
    own = beta.reshape(repeats, k, 2, n_features)[np.arange(repeats)[:, None], fold_of]
    score = np.einsum("rqsf,sqdf->rsqd", own, X)
    best = np.argsort(-score, axis=-1)[..., :10]
    gained = np.take_along_axis(np.broadcast_to(y, score.shape), best, axis=-1) @ discount / ideal
    by_query = gained[:, 1] - gained[:, 0]
    by_fold = np.einsum("tq,tq->t", test, np.repeat(by_query, k, axis=0)) / test.sum(axis=1)
    return by_fold, by_query[0]
