"""How often does a relevance test stop a ranker? Two checks of a release, on rankers whose true gain is known.

A gate that stops good releases is switched off, and one that lets bad ones pass is no gate. So measure both before you
rely on it: here on 50 data sets of 200 queries, with differences of standard deviation .20, as between two good runs.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

import rankeval as rk

N_QUERIES, SD, MARGIN = 200, 0.2, 0.06
CORRELATION = 0.595  # gives differences of this standard deviation


def scores(mean: float, normal: np.ndarray) -> np.ndarray:
    """Turn normal numbers into scores in [0, 1], of this mean and a standard deviation of .22."""
    size = mean * (1 - mean) / 0.22**2 - 1
    return stats.beta.ppf(stats.norm.cdf(normal), mean * size, (1 - mean) * size)


def two_rankers(gain: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate the nDCG@10 of a candidate and a baseline by query, the candidate's true gain being known."""
    normal = np.random.default_rng(seed).multivariate_normal([0, 0], [[1, CORRELATION], [CORRELATION, 1]], N_QUERIES)
    new, old = scores(0.6 + gain, normal[:, 0]), scores(0.6, normal[:, 1])
    return pd.DataFrame({"nDCG@10": new}), pd.DataFrame({"nDCG@10": old})


def passes(check: Callable[..., rk.testing.Check], gain: float, seed: int) -> bool:
    """Say whether a check passes; a failing one is an AssertionError, as pytest expects."""
    try:
        check(*two_rankers(gain, seed))
    except rk.errors.CheckFailed:
        return False
    return True


# The message of a failing test: the numbers, and the queries to look at first.
try:
    rk.testing.assert_no_regression(*two_rankers(-0.1, seed=0))
except AssertionError as failed:
    print(failed, end="\n\n")

checks = {
    "assert_no_regression()": rk.testing.assert_no_regression,
    f"assert_not_worse(margin={MARGIN})": partial(rk.testing.assert_not_worse, margin=MARGIN),
    f"assert_no_regression(margin={MARGIN})": partial(rk.testing.assert_no_regression, margin=MARGIN),
}
truths = {"equal": 0.0, "worse by .10": -0.1}
rates = {}
for truth, gain in truths.items():
    found = {name: np.array([passes(check, gain, seed) for seed in range(50)]) for name, check in checks.items()}
    first, second, _ = found.values()
    rates[truth] = {name: passed.sum() for name, passed in found.items()} | {
        "both of the first two": (first & second).sum(),
        "neither of the first two": (~first & ~second).sum(),
    }
print(f"of 50 data sets of {N_QUERIES} queries, how many pass:")
print(pd.DataFrame(rates).to_string())

# The third row: to show that a loss of .10 is one beyond .06 takes more queries than to show that it is a loss.
needed = rk.topics_needed(0.1 - MARGIN, SD, power=0.95, alternative="less")
print(f"to stop the worse ranker in 95 of 100 with the margin {MARGIN}, assert_no_regression needs {needed} queries")
