"""Full sizes of the claims on propensities, counterfactual values and learning from clicks; prints, asserts nothing.

    python tests/benchmarks/bench_online_weights.py [propensities] [values] [policies] [learning]

Users are position-based: P(click) = examination(position) * relevance(query, document).
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

import rankeval as rk

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import position_users

from rankeval.online import counterfactual, policy_value, propensities

PLACES = np.arange(1, 11)


def simulated(n, shown, examination, *, world, rng):
    """Return a log of 100 queries and lists of 10, shuffled, swapped or of three rankers; relevance; the rankings."""
    fixed, generator = np.random.default_rng(world), np.random.default_rng([world, rng])
    relevance = np.clip(fixed.beta(1, 2, (100, 20)), 0.02, 0.95)
    log, rankers = position_users.simulated(relevance, n, shown, examination, rankers_rng=fixed, rng=generator)
    return log, relevance, rankers


def bench_propensities():
    """Print the mean error of each way on 100,000 impressions, over five worlds."""
    ways = [("shuffled", "randomized"), ("swapped", "swap"), ("rankers", "all_pairs"), ("rankers", "em")]
    for name, examination in {"1/k": 1 / PLACES, "1/sqrt k": PLACES**-0.5}.items():
        for shown, how in ways:
            errors, begin = [], time.process_time()
            for world in range(5):
                log, _, _ = simulated(100_000, shown, examination, world=world, rng=0)
                found = propensities(log, how=how, n_resamples=0).table["propensity"]
                errors.append(100 * np.abs(found / examination - 1).mean())
            spent = (time.process_time() - begin) / 5
            listed = ", ".join(f"{error:.2f}" for error in errors)
            print(f"{how:<10} {name:<8} mean error in %, 5 worlds: {listed}; {spent:.1f} CPU s with the simulation")


def bench_values():
    """Print bias and coverage with true, wrong and clipped propensities.

    Coverage is of 400 runs of 4,000 impressions. The bias is of 480 runs of 40,000: one impression has a standard
    deviation of 2.2, so that the Monte Carlo error is 2.2 / sqrt(19,200,000) = .0005.
    """
    score = np.random.default_rng(9).normal(size=(100, 20))
    given = {"true": 1 / PLACES, "1/sqrt k": PLACES**-0.5, "clipped at .3": np.maximum(1 / PLACES, 0.3)}
    for n, n_runs in ((4000, 400), (40_000, 480)):
        found = {name: [] for name in given}
        for run in range(n_runs):
            log, relevance, rankers = simulated(n, "rankers", 1 / PLACES, world=0, rng=run)
            query = np.arange(100)[None, :, None]
            order = np.take_along_axis(rankers, np.argsort(-score[query, rankers], axis=2), axis=2)
            truth = (relevance[query, order] / np.log2(PLACES + 1)).sum(axis=2).mean()
            for name, chance in given.items():
                ev = counterfactual(log, dict(np.ndenumerate(score)), dict(zip(PLACES, chance, strict=True)))
                low, high = ev.ci().loc["DCG@10", ["ci_low", "ci_high"]]
                found[name].append((ev.aggregate()["DCG@10"] - truth, low <= truth <= high))
        print(f"counterfactual, {n_runs} runs of {n:,} impressions, truth {truth:.3f}")
        for name, values in found.items():
            (off, held), error = np.mean(values, axis=0), np.std([one for one, _ in values]) / np.sqrt(n_runs)
            print(f"  {name:<13} bias {off:+.5f}, its Monte Carlo error {error:.5f}, coverage {held:.3f}")


def bench_policies():
    """Print bias and coverage of 400 logs of single items, by how unlike the two policies are."""
    rate = np.random.default_rng(0).uniform(0.01, 0.2, 34)
    for skew in (0.3, 0.6, 1.0, 1.6):
        shown = np.random.default_rng(1).dirichlet(np.full(34, 1 / skew**2))
        found = {"ips": [], "snips": [], "dr": []}
        for run in range(400):
            generator = np.random.default_rng([2, run])
            item = generator.choice(34, 5000, p=shown)
            click = generator.random(5000) < rate[item]
            for how, values in found.items():
                model = {"baseline": (rate[item] * 0.7, np.full(5000, 0.7 * rate.mean()))} if how == "dr" else {}
                row = policy_value(click, shown[item], 1 / 34, how=how, **model).table.iloc[0]
                values.append(
                    (row["value"] - rate.mean(), row["ci_low"] <= rate.mean() <= row["ci_high"], row["effective_share"])
                )
        for how, values in found.items():
            off, held, share = np.mean(values, axis=0)
            print(f"policy_value {how:<6} effective share {share:.2f}: bias {off:+.5f}, coverage {held:.3f}")


def bench_learning():
    """Print nDCG@10 on new queries of rankers from the clicks on a weak ranker, without and with weights."""
    for seed in (0, 1):
        data = rk.datasets.load_digits_retrieval(rng=seed)
        split = rk.dev_test_split(data, test_size=0.3)
        dev, generator = split.dev, np.random.default_rng(seed)
        alone = [rk.evaluate(dev.y, one, qid=dev.qid, measures="nDCG@10").aggregate()["nDCG@10"] for one in dev.X.T]
        weak = int(np.argsort(alone)[2])
        rows = np.lexsort((-dev.X[:, weak], dev.qid)).reshape(-1, 40)
        lists = rows[generator.integers(len(rows), size=2000)].ravel()
        chance = np.tile(1 / np.arange(1, 41), 2000) * np.where(dev.y[lists] > 0, 1.0, 0.1)
        clicked, impression = generator.random(len(lists)) < chance, np.repeat(np.arange(2000), 40)
        weights = np.where(clicked, np.tile(np.arange(1, 41), 2000), 1.0)
        for estimator in (Ridge(), LGBMRanker(n_estimators=40, num_leaves=7, verbose=-1)):
            values = []
            for weight in (None, weights):
                ranker = rk.QueryRanker(estimator)
                ranker.fit(dev.X[lists], clicked.astype(int), qid=impression, sample_weight=weight)
                values.append(ranker.score(split.test.X, split.test.y, qid=split.test.qid))
            shown = rk.evaluate(split.test.y, split.test.X[:, weak], qid=split.test.qid, measures="nDCG@10").aggregate()
            what = f"learning, seed {seed}, {type(estimator).__name__}: shown {shown['nDCG@10']:.3f}"
            print(f"{what}, unweighted {values[0]:.3f}, weighted {values[1]:.3f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or ["propensities", "values", "policies", "learning"]:
        globals()[f"bench_{name}"]()
