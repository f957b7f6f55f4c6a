"""Worlds in which the truth is known: systems with equal mean scores, or a known difference.

Scores of the systems are tied together within a query by a Gaussian copula. A world names the quantile function of the
baseline's scores and that of every other system's; both have the same mean. `WORLDS` says what each one is like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import special


@cache
def beta(mean, spread):
    """Return the quantile function of a Beta distribution, read from a table: the exact one is 100 times slower."""
    size = mean * (1 - mean) / spread**2 - 1
    grid = np.linspace(0, 1, 4001)
    values = special.betaincinv(mean * size, (1 - mean) * size, grid)
    return lambda share: np.interp(share, grid, values)


@cache
def steps(*chances):
    """Return the quantile function of values that are 0 except with the chances given, as (value, chance)."""
    value, chance = (np.array(side) for side in zip(*sorted(chances), strict=True))
    edges = 1 - np.cumsum(chance[::-1])[::-1]
    held = np.concatenate([[0.0], value])
    return lambda share: held[np.searchsorted(edges, share, side="right")]


def tail_above(share):
    """Return quantiles of an exponential distribution of mean 0 and sd .2."""
    return -0.2 - 0.2 * np.log1p(-np.minimum(share, 1 - 1e-16))


def tail_below(share):
    """Return quantiles of the same distribution with its tail on the other side."""
    return -tail_above(1 - share)


@dataclass(frozen=True)
class World:
    """The scores of a baseline and of systems that are as good as it.

    Attributes
    ----------
    words : str
        What it is like, for the guide.
    baseline, system : callable
        Quantile functions.
    correlation : float
        Of the normal variables behind the scores of two systems on a query.
    in_turn : bool
        Whether every second system is like the baseline.
    """

    words: str
    baseline: Callable
    system: Callable
    correlation: float = 0.7
    in_turn: bool = False


_RARELY_FOUND = steps((1.0, 0.05), (1 / 2, 0.03), (1 / 3, 0.02), (1 / 4, 0.02), (1 / 5, 0.02), (1 / 10, 0.06))

WORLDS = {
    "sym": World("exchangeable systems: Beta scores, mean .45, sd .28", beta(0.45, 0.28), beta(0.45, 0.28)),
    "beta": World("equal means, unlike spreads: mean .45, sd .22 and .28", beta(0.45, 0.22), beta(0.45, 0.28)),
    "skew": World(
        "low scores, like those of AP: mean .25, sd .14 and .22; differences are skewed",
        beta(0.25, 0.14),
        beta(0.25, 0.22),
        0.5,
    ),
    "RR": World(
        "exchangeable systems, sparse RR: 1 on 5 % of the queries, 0 on 80 %", _RARELY_FOUND, _RARELY_FOUND, 0.3
    ),
    "P@1": World(
        "exchangeable systems, sparse P@1: 1 on 10 % of the queries, else 0", steps((1.0, 0.1)), steps((1.0, 0.1)), 0.3
    ),
    "best": World("variants of one system: Beta scores, mean .45, sd .28", beta(0.45, 0.28), beta(0.45, 0.28), 0.9),
    "exponential": World("exponential differences from the baseline, sd .2, tail above", np.zeros_like, tail_above),
    "exponential, tail below": World("the same, tail below", np.zeros_like, tail_below),
    "mixed exponential": World(
        "exponential scores, sd .2, with their tails above and below in turn", tail_above, tail_below, in_turn=True
    ),
}


def scores_in(world, n, n_systems, n_replications, rng):
    """Return scores of equally good systems, the baseline first, `(n_replications, n, n_systems)`.

    `world` is one of `WORLDS` or its name.
    """
    is_like = world if isinstance(world, World) else WORLDS[world]
    generator = np.random.default_rng(rng)
    normal = np.sqrt(1 - is_like.correlation) * generator.standard_normal((n_replications, n, n_systems))
    normal += np.sqrt(is_like.correlation) * generator.standard_normal((n_replications, n, 1))
    share = special.ndtr(normal)
    scores, like_baseline = is_like.system(share), slice(0, None, 2) if is_like.in_turn else slice(0, 1)
    scores[..., like_baseline] = is_like.baseline(share[..., like_baseline])
    return scores


def null_differences(world, n, n_replications, rng):
    """Return per-query differences of two equally good systems, `(n, n_replications)`; "exponential" has skewness 2.

    Skewed ones have their tail above.
    """
    if world == "exponential":  # as the world of that name, in other units
        return np.random.default_rng(rng).exponential(size=(n, n_replications)) - 1
    scores = scores_in(world, n, 2, n_replications, rng)
    return (scores[..., 1] - scores[..., 0]).T


@dataclass(frozen=True)
class Breakage:
    """A change that breaks few queries: the share of queries that lose, what they lose, and noise on the others.

    Attributes
    ----------
    words : str
        What it is like, for the guide.
    margin : float
        The true mean loss.
    draw : callable
        Takes a generator and a shape; returns gains of that mean.
    """

    words: str
    margin: float
    draw: Callable

    @classmethod
    def of(cls, share, loss, noise=0.0):
        rest = f"the rest noise of sd {noise:g}" if noise else "the rest unchanged"

        def draw(generator, shape):
            return generator.normal(0, noise, shape) - loss * (generator.random(shape) < share)

        return cls(f"{100 * share:g} % lose {loss:g}, {rest}, margin {share * loss:g}", share * loss, draw)


BREAKAGES = [
    Breakage.of(0.02, 1.0),
    Breakage.of(0.05, 1.0),
    Breakage.of(0.05, 0.4),
    Breakage.of(0.05, 0.4, 0.05),
    Breakage.of(0.10, 0.3, 0.02),
    Breakage("normal, sd .2, margin .05", 0.05, lambda generator, shape: generator.normal(-0.05, 0.2, shape)),
    Breakage(
        "exponential, sd .2, tail below, margin .05",
        0.05,
        lambda generator, shape: 0.15 - generator.exponential(0.2, shape),
    ),
]
"""Changes that do harm, each as much as its margin."""


def shifted_differences(difference, sd, n, n_replications, rng):
    """Return normal differences with a true mean, `(n, n_replications)`."""
    return np.random.default_rng(rng).normal(difference, sd, size=(n, n_replications))


def variants_beside_unlike_systems(n, n_replications, rng, *, n_variants=12, n_unlike=3):
    """Return near-identical variants, then unlike systems, all equally good: `(n_replications, n, n_systems)`."""
    generator = np.random.default_rng(rng)
    normal = np.sqrt(0.01) * generator.standard_normal((n_replications, n, n_variants))
    normal += np.sqrt(0.99) * generator.standard_normal((n_replications, n, 1))
    unlike = generator.standard_normal((n_replications, n, n_unlike))
    return beta(0.45, 0.28)(special.ndtr(np.concatenate([normal, unlike], axis=2)))


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
