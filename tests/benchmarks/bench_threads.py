"""One thread against all of them, in fitting and predicting, by the size of the data.

    python tests/benchmarks/bench_threads.py [--cells 10000 100000 ...] [--features 20] [--repeats 3] [--neighbours 0]

Prints, for each estimator and number of cells (rows x features), seconds of wall and CPU with one thread, and the
ratios of all threads to one: above 1 is worse than one thread. `--neighbours` starts so many processes that keep a
core busy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import numpy as np
from catboost import CatBoostRanker
from lightgbm import LGBMRanker
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits
from xgboost import XGBRanker

import rankeval as rk

QUERY = 20
TREES = 50


def estimators(threads):
    """Return estimators that are told to use so many threads."""
    return {
        "LGBMRanker": LGBMRanker(n_estimators=TREES, n_jobs=threads, verbose=-1),
        "XGBRanker": XGBRanker(n_estimators=TREES, n_jobs=threads),
        "CatBoostRanker": CatBoostRanker(
            iterations=TREES, thread_count=threads, verbose=False, allow_writing_files=False
        ),
        "HistGradientBoosting": HistGradientBoostingRegressor(max_iter=TREES),
        "Ridge": Ridge(),
    }


def seconds(estimator, data, threads):
    """Return wall and CPU seconds of one fit and one prediction."""
    wall, cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(threads):
        rk.QueryRanker(estimator).fit(data.X, data.y, qid=data.qid).predict(data.X)
    return time.perf_counter() - wall, time.process_time() - cpu


def busy():
    """Keep a core busy."""
    while True:
        pass


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 4_000_000])
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--neighbours", type=int, default=0)
    told = parser.parse_args()
    everything = os.cpu_count()
    neighbours = [multiprocessing.Process(target=busy, daemon=True) for _ in range(told.neighbours)]
    for neighbour in neighbours:
        neighbour.start()
    print(f"{everything} cores, {told.neighbours} busy neighbours, {TREES} trees, the best of {told.repeats}")
    print(f"{'':22}{'cells':>10}{'1: wall':>9}{'cpu':>8}{f'{everything}/1: wall':>12}{'cpu':>7}")
    for cells in told.cells:
        data = rk.datasets.make_ranking(cells // told.features // QUERY, QUERY, told.features, rng=0)
        for name in estimators(1):
            best = {}
            for threads in (1, everything):
                tries = [seconds(estimators(threads)[name], data, threads) for _ in range(told.repeats)]
                best[threads] = np.min(tries, axis=0)
            one, ratio = best[1], best[everything] / best[1]
            print(f"{name:22}{cells:>10,}{one[0]:>9.3f}{one[1]:>8.3f}{ratio[0]:>12.2f}{ratio[1]:>7.2f}", flush=True)
    for neighbour in neighbours:
        neighbour.terminate()


if __name__ == "__main__":
    main()
