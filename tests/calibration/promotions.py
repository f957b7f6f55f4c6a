"""Experiments with the decision of a promotion: pairs of versions of which the truth is known, and how often one moves.

Pairs are single releases, at .025. Histories are of 20 candidates, none of them better than the champion, that ask one
after the other, by the budget that `promote` has by default: the streams of candidates are those of the guard's gate.
The rule without a budget, which tested each at .025, stands beside: its answer follows from the same p-value.

Every pair goes through the function that `rankeval_mlflow.promote` decides by. No store is asked: 20 pairs through
MLflow are in tests/rankeval_mlflow/promotion/test_promotion_agrees.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from calibration.guard_experiments import BUDGET, STREAMS
from calibration.worlds import World, beta, scores_in

import rankeval as rk
from rankeval_mlflow.promotion.deciding import Rule, decide

N = 200
SD = 0.2
GAIN = 0.05
SEEDS = (1, 2, 3)
TAIL = np.arange(N) % 4 == 0
"""A quarter of the queries is the tail."""


WITHOUT_BUDGET = 0.025
"""The level of each decision of the rule that counted none."""


def single(**options):
    """Return the rule of a single release at .025."""
    return Rule("nDCG@10", alpha=WITHOUT_BUDGET, budget=1, **options)


def evaluations(scores):
    """Yield an evaluation for each row of scores by query."""
    n = scores.shape[1]
    empty = rk.evaluate(np.tile([1, 0], n), np.zeros(2 * n), qid=np.repeat(np.arange(n), 2), measures="nDCG@10")
    yield from (replace(empty, scores=row[:, None]) for row in scores)


def frames(scores):
    """Yield a frame for each row of scores: the same verdicts as of evaluations, in half of the time."""
    queries = pd.Index(np.arange(scores.shape[1]), name="qid")
    yield from (pd.DataFrame({"nDCG@10": row}, index=queries) for row in scores)


def verdicts(candidates, holders, rule, form=frames):
    """Yield the verdict on each pair of versions, a row of scores by query each."""
    yield from (decide(*pair, rule) for pair in zip(form(candidates), form(holders), strict=True))


def shares_of(verdicts_):
    """Return what moved by the rule, and what would have by the rule without a budget."""
    found = [(one.accepted, one.comparison.table["p_value"][0] <= WITHOUT_BUDGET) for one in verdicts_]
    return np.array(found, dtype=bool)


HISTORIES = {"sym": 5.5, "tweaks": 5.5, "skew, tail below": 9.2, "skewed tweaks": 9.2}
"""Streams of the gate -> the most histories with a false promotion, in percent; of skewed ones what its table has."""

IN_HISTORIES = 100
"""Queries of each history."""


def histories(stream, n_histories, seed):
    """Return for each history whether a candidate moved the alias, by the rule and by that without a budget."""
    d = STREAMS[stream].draw(IN_HISTORIES, BUDGET, n_histories, [seed, IN_HISTORIES, 26])
    candidates = 0.5 + d.transpose(1, 2, 0).reshape(-1, IN_HISTORIES)
    rule = Rule("nDCG@10")
    assert (rule.budget, rule.alpha) == (BUDGET, 0.05)
    moved = shares_of(verdicts(candidates, np.full_like(candidates, 0.5), rule))
    return moved.reshape(n_histories, BUDGET, 2).any(axis=1)


POWERS = tuple((n, gain) for n in (200, 1000) for gain in (0.02, 0.05))
"""Queries and true gains; differences have a standard deviation of .2."""


def power(n, gain, n_pairs, seed):
    """Return for each better candidate whether it moves, with a budget of 20, with one of 1, and without."""
    generator = np.random.default_rng([seed, n, round(100 * gain)])
    holders = generator.uniform(0.3, 0.7, (n_pairs, n))
    candidates = holders + generator.normal(gain, SD, (n_pairs, n))
    of_many, alone = (
        shares_of(verdicts(candidates, holders, Rule("nDCG@10", budget=budget))) for budget in (BUDGET, 1)
    )
    return np.column_stack([of_many[:, 0], alone])


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
    rule: Rule = field(default_factory=single)
    most: float = 1.0
    least: float = 0.0
    seeds: tuple[int, ...] = (1,)

    def moved(self, n_pairs, seed):
        """Return for each pair whether the alias would move, and the standard deviation of the differences."""
        holders, candidates = self.draw(n_pairs, np.random.default_rng([seed, *self.name.encode()]))
        moved = np.array([one.accepted for one in verdicts(candidates, holders, self.rule, evaluations)])
        return moved, float((candidates - holders).std(axis=1, ddof=1).mean())


_NOT_WORSE = single(claim="not_worse", margin=GAIN)
FLOOR = 0.10
"""Above what 50 queries can all miss: 1 - .025 ** (1 / 50) is .071, so a floor of .05 would let nobody pass."""

_FLOOR = single(slices=pd.Series(np.where(TAIL, "tail", "head"), name="kind"), floors={"tail": FLOOR})
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
