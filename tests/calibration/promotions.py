"""Experiments with the decision of a promotion: pairs of versions of which the truth is known, and how often one moves.

Every pair goes through the function that `rankeval_mlflow.promote` decides by. No store is asked: 20 pairs through
MLflow are in tests/rankeval_mlflow/promotion/test_promotion_agrees.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from calibration.worlds import World, beta, scores_in

import rankeval as rk
from rankeval_mlflow.promotion.deciding import Rule, decide

N = 200
SD = 0.2
GAIN = 0.05
SEEDS = (1, 2, 3)
TAIL = np.arange(N) % 4 == 0
"""A quarter of the queries is the tail."""


def normal(gain):
    """Return what draws pairs whose differences are normal."""

    def draw(n_pairs, generator):
        holder = generator.uniform(0.3, 0.7, (n_pairs, N))
        return holder, holder + generator.normal(0, SD, (n_pairs, N)) + gain

    return draw


def bounded(gain, *, mean, spread, correlation, own_spread=None):
    """Return what draws pairs of Beta scores, as measures have them: between 0 and 1."""
    world = World("", beta(mean, spread), beta(mean + gain, own_spread or spread), correlation)

    def draw(n_pairs, generator):
        scores = scores_in(world, N, 2, n_pairs, int(generator.integers(2**31)))
        return scores[..., 0], scores[..., 1]

    return draw


@dataclass(frozen=True)
class Experiment:
    """Pairs of a kind, and the rule that decides on them.

    Attributes
    ----------
    name, words : str
        Its key in the file of rates, and what it is like.
    draw : callable
        Takes the number of pairs and a generator; returns scores of the versions in use and of the candidates.
    rule : Rule
        The rule.
    most, least : float
        The shares of moved aliases that are promised.
    seeds : tuple of int
        Seeds of 2,000 pairs each.
    """

    name: str
    words: str
    draw: Callable[[int, np.random.Generator], Any]
    rule: Rule = field(default_factory=lambda: Rule("nDCG@10"))
    most: float = 1.0
    least: float = 0.0
    seeds: tuple[int, ...] = (1,)

    def moved(self, n_pairs, seed):
        """Return for each pair whether the alias would move, and the standard deviation of the differences."""
        holders, candidates = self.draw(n_pairs, np.random.default_rng([seed, *self.name.encode()]))
        empty = rk.evaluate(np.tile([1, 0], N), np.zeros(2 * N), qid=np.repeat(np.arange(N), 2), measures="nDCG@10")
        pairs = (
            [replace(empty, scores=scores[:, None]) for scores in pair]
            for pair in zip(candidates, holders, strict=True)
        )
        moved = np.array([decide(candidate, holder, self.rule).accepted for candidate, holder in pairs])
        return moved, float((candidates - holders).std(axis=1, ddof=1).mean())


_NOT_WORSE = Rule("nDCG@10", claim="not_worse", margin=GAIN)
FLOOR = 0.10
"""Above what 50 queries can all miss: 1 - .025 ** (1 / 50) is .071, so a floor of .05 would let nobody pass."""

_FLOOR = Rule("nDCG@10", slices=pd.Series(np.where(TAIL, "tail", "head"), name="kind"), floors={"tail": FLOOR})
_SYMMETRIC = {"mean": 0.45, "spread": 0.28, "correlation": 0.755}
_SKEWED = {"mean": 0.25, "spread": 0.14, "own_spread": 0.22, "correlation": 0.5}

# The promise is of normal differences: at most 3.6 % of the equal versions move, at least 92 % of those better by .05.
EXPERIMENTS = [
    Experiment("normal, equal", "normal differences, equal versions", normal(0.0), most=0.036, seeds=SEEDS),
    Experiment("normal, better", "normal differences, better by .05", normal(GAIN), least=0.92, seeds=SEEDS),
    Experiment("bounded, equal", "Beta scores, equal versions", bounded(0.0, **_SYMMETRIC), most=0.036, seeds=SEEDS),
    Experiment("bounded, better", "Beta scores, better by .05", bounded(GAIN, **_SYMMETRIC), least=0.92, seeds=SEEDS),
    Experiment(
        "skewed, equal", "low Beta scores, the candidate's more spread out, equal versions", bounded(0.0, **_SKEWED)
    ),
    Experiment(
        "skewed, better", "low Beta scores, the candidate's more spread out, better by .05", bounded(GAIN, **_SKEWED)
    ),
    Experiment(
        "not worse, at the margin", "claim not_worse by .05, worse by .05", normal(-GAIN), _NOT_WORSE, most=0.036
    ),
    Experiment("not worse, equal", "claim not_worse by .05, equal versions", normal(0.0), _NOT_WORSE, least=0.85),
    Experiment(
        "floor, lost in the tail",
        "better by .10, but worse by .10 on the 50 queries of the tail, which has a floor of .10",
        normal(np.where(TAIL, -FLOOR, 0.5 / 3)),
        _FLOOR,
        most=0.036,
    ),
    Experiment(
        "floor, equal in the tail",
        "better by .10, but equal on the 50 queries of the tail, which has a floor of .10",
        normal(np.where(TAIL, 0.0, 0.4 / 3)),
        _FLOOR,
        least=0.60,
    ),
    Experiment(
        "floor, better everywhere",
        "better by .10 everywhere, with a floor of .10 on the tail",
        normal(0.1),
        _FLOOR,
        least=0.92,
    ),
]
