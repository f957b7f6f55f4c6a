"""The cost of the value of the best of several, beside that of the comparison that it belongs to.

    python tests/benchmarks/bench_best.py [--queries 1000] [--systems 50] [--resamples 9999] [--repeats 3]

Promised: under 1 s for 50 systems on 1,000 queries. The peer is the bootstrap of the whole choice (Tsamardinos et al.
2018) with 1,000 resamples, in plain NumPy. CPU seconds of one thread, the least of the repeats.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
import pandas as pd

import rankeval as rk
from rankeval.comparison.derived import best_system


def cpu(call, repeats: int) -> float:
    """Return the least CPU seconds of several calls; the first one, which loads, does not count."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds[1:])


def of_bootstrap(gains, n_resamples: int = 1000) -> float:
    """Return the mean gain, on the queries left out, of the system that leads on those drawn."""
    generator, n = np.random.default_rng(0), len(gains)
    values = []
    for _ in range(n_resamples):
        times = np.bincount(generator.integers(n, size=n), minlength=n)
        values.append(gains[times == 0, (times @ gains).argmax()].mean())
    return float(np.mean(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=50)
    parser.add_argument("--resamples", type=int, default=9999)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(20261122)
    scores = rng.normal(0.5, 0.2, size=(given.queries, 1)) + rng.normal(0, 0.1, (given.queries, given.systems + 1))
    systems = {f"s{place}": pd.DataFrame({"AP": column}) for place, column in enumerate(scores.T)}
    print(f"{given.queries:,} queries, {given.systems} systems against one, {given.resamples:,} resamples")
    for correction in ("holm", "max_t"):
        options = {"baseline": "s0", "correction": correction, "n_resamples": given.resamples}
        seconds = cpu(partial(rk.compare, systems, **options), given.repeats)
        print(f"compare, {correction:6} {seconds:8.3f} s")
    compared = rk.compare(systems, baseline="s0", n_resamples=given.resamples)
    print(f"best            {cpu(lambda: best_system(compared, 'AP'), given.repeats):8.3f} s")
    gains = scores[:, 1:] - scores[:, :1]
    print(f"bootstrap       {cpu(lambda: of_bootstrap(gains), given.repeats):8.3f} s")


if __name__ == "__main__":
    main()
