"""The cost of one pair beside SciPy's, and of the intervals beside the test that they belong to.

    python tests/benchmarks/bench_significance.py [--queries 200] [--resamples 9999] [--repeats 5]

Promised: one pair is at least as fast as SciPy's permutation_test at its best batch; the adjusted intervals of 20
systems against one baseline take at most 3 times the adjusted p-values, by the same signs; the exact interval of one
pair takes at most 6 times its p-value. CPU seconds of one thread, the least of the repeats.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from scipy import stats

from rankeval.significance import paired_test
from rankeval.significance import randomization as patterns
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t, max_t_limits

BATCHES = (10, 32, 100, 320, 1000, 3200, 10_000)


def cpu(call, repeats: int) -> float:
    """Return the least CPU seconds of several calls; the first one, which loads, does not count."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds[1:])


def of_scipy(d, n_resamples: int, repeats: int) -> tuple[float, int]:
    """Return the seconds of SciPy's paired permutation test at its best batch, and that batch."""

    def mean(x, axis):
        return x.mean(axis=axis)

    def call(batch):
        stats.permutation_test(
            (d,), mean, permutation_type="samples", n_resamples=n_resamples, batch=batch, vectorized=True, rng=0
        )

    return min((cpu(lambda batch=batch: call(batch), repeats), batch) for batch in BATCHES)


def p_alone(d, settings: Settings):
    """Return the p-values of sign flips without their intervals: the least that a test by flips must do."""
    least = np.abs(d.sum(axis=0)) - TIE_TOLERANCE * np.abs(d).sum(axis=0)
    count = np.zeros(d.shape[1], dtype=np.int64)
    for sums in patterns.sums_by_pattern(d.T, settings, at_once=2**16):
        count += (np.abs(sums) >= least[:, None]).sum(axis=1)
    return patterns.share_of_patterns(count, len(d), settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=9999)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(20261122)
    d = np.round(rng.normal(0.02, 0.2, size=(given.queries, given.systems)), 3)
    settings = Settings(n_resamples=given.resamples, rng=0)
    print(f"{given.queries} queries, {given.resamples:,} resamples")
    scipy, batch = of_scipy(d[:, 0], given.resamples, given.repeats)
    whole = cpu(lambda: paired_test("randomization", d[:, 0], n_resamples=given.resamples, rng=0), given.repeats)
    alone = cpu(lambda: p_alone(d[:, :1], settings), given.repeats)
    assert (
        p_alone(d, settings).tolist()
        == paired_test("randomization", d, n_resamples=given.resamples, rng=0).p_value.tolist()
    )
    faster, by_p = scipy / whole, whole / alone
    print(f"SciPy's permutation_test at its best batch, {batch:5} {scipy:8.4f} s")
    print(f"one pair, p-value alone                           {alone:8.4f} s")
    print(f"one pair, with its interval                       {whole:8.4f} s  {by_p:.1f} times the p-value alone")
    print(f"one pair is {faster:.1f} times as fast as SciPy, interval and all")
    joint = cpu(lambda: max_t(d, settings), given.repeats)
    limits = cpu(lambda: max_t_limits(d, settings), given.repeats)
    print(f"{given.systems:3} systems, adjusted p-values                   {joint:8.4f} s")
    ratio = limits / joint
    print(f"{given.systems:3} systems, adjusted intervals                  {limits:8.4f} s  {ratio:.1f} times the test")


if __name__ == "__main__":
    main()
