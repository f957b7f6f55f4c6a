"""The cost of a scorer beside the predict that it needs: LightGBM, 100 trees, 1M rows.

At most 5 % is promised for integer ids, 10 % for shuffled strings.

    python tests/benchmarks/bench_scorer.py [--rows 1000000] [--repeats 3]

Ids sorted and shuffled; strings of NumPy, and as Python objects, one a query (as a category or a reader has them) or
one a row; one measure and six. CPU seconds of one thread, the least of the repeats, in
this process. The scorer's share is what a call takes besides predict, by what predict takes.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from lightgbm import LGBMRegressor

import rankeval as rk

MEASURES = {"one measure": "nDCG@10", "six measures": ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]}
DOCS, FEATURES, TREES = 100, 50, 100


class Predicted:
    """An estimator that has predicted already, so that a scorer's call takes only what it takes itself."""

    def __init__(self, score) -> None:
        self.score = score

    def predict(self, _X):
        return self.score


def cpu(call, repeats: int) -> float:
    """Return the least CPU seconds of several calls; the first one, which loads, does not count."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    os.environ["RANKEVAL_LEDGER"] = "off"  # what is registered here is no concern of a benchmark
    rng = np.random.default_rng(20261120)
    n_queries = max(1, given.rows // DOCS)
    X = rng.normal(size=(n_queries * DOCS, FEATURES))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X))), 0, 4).astype(np.int64)
    model = LGBMRegressor(n_estimators=TREES, n_jobs=1, verbose=-1).fit(X[:50_000], y[:50_000])
    of_predict = cpu(lambda: model.predict(X), given.repeats)
    print(f"{len(X):,} rows, {n_queries:,} queries, {FEATURES} features; predict of {TREES} trees {of_predict:.2f} s")
    fitted = Predicted(model.predict(X))
    ordered = np.repeat(np.arange(n_queries), DOCS)
    shuffled = rng.permutation(ordered)
    for words, qid in (
        ("sorted integers", ordered),
        ("shuffled integers", shuffled),
        ("shuffled strings", np.char.add("query-", shuffled.astype(str))),
        ("shared objects", np.array([f"query-{query}" for query in range(n_queries)], dtype=object)[shuffled]),
        ("distinct objects", np.char.add("query-", shuffled.astype(str)).astype(object)),
    ):
        for count, measures in MEASURES.items():
            scorer = rk.make_scorer(measures)
            seconds = cpu(lambda scorer=scorer, qid=qid: scorer(fitted, X, y, qid=qid), given.repeats)
            print(f"{words:18} {count:13} {seconds:7.3f} s  {seconds / of_predict:6.1%} of predict")


if __name__ == "__main__":
    main()
