"""Workload A: 30,000 queries of about 120 rows from arrays, six measures, against the peers in one run.

    python tests/benchmarks/bench_arrays.py [--queries 30000] [--repeats 3] [--only rankeval,pytrec_eval]

Each contestant runs in a process of its own, one thread, on the same rows (fixed seed, 1 % of the rows tied), from
arrays to per-query values, and reports the least CPU seconds of its repeats and its peak memory. What counts are the
ratios. Peers: ``pip install pytrec_eval-terrier ranx``. The floor is NumPy's sort of the scores by rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def rows(n_queries: int):
    """Return labels, scores and query ids of the workload."""
    rng = np.random.default_rng(20261120)
    lengths = rng.poisson(120, n_queries).clip(1)
    qid = np.repeat(np.arange(n_queries), lengths)
    y = rng.choice(5, size=len(qid), p=[0.6, 0.2, 0.1, 0.06, 0.04])
    score = rng.normal(size=len(qid)) + 0.5 * y
    tied = np.flatnonzero(rng.random(len(qid)) < 0.01)
    score[tied] = score[np.maximum(tied - 1, 0)]
    return y, score, qid


def rankeval(y, score, qid) -> Callable[[], object]:
    os.environ["RANKEVAL_LEDGER"] = "off"
    import rankeval as rk

    return lambda: rk.evaluate(y, score, qid=qid, measures=MEASURES).per_query


def rankeval_stable(y, score, qid) -> Callable[[], object]:
    os.environ["RANKEVAL_LEDGER"] = "off"
    import rankeval as rk

    return lambda: rk.evaluate(y, score, qid=qid, measures=MEASURES, ties="stable").per_query


def _dicts(y, score, qid):
    starts = np.append(np.flatnonzero(np.diff(qid, prepend=-1)), len(qid))
    names = [f"d{place}" for place in range(int(np.diff(starts).max()))]
    qrels, run = {}, {}
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        topic = str(qid[begin])
        qrels[topic] = dict(zip(names, y[begin:end].tolist(), strict=False))
        run[topic] = dict(zip(names, score[begin:end].tolist(), strict=False))
    return qrels, run


def pytrec_eval(y, score, qid) -> Callable[[], object]:
    import pytrec_eval

    names = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100", "Rprec"}

    def evaluate():
        qrels, run = _dicts(y, score, qid)
        return pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)

    return evaluate


def ranx(y, score, qid) -> Callable[[], object]:
    import ranx as peer

    names = ["ndcg@10", "map", "mrr", "precision@10", "recall@100", "r-precision"]

    def evaluate():
        qrels, run = _dicts(y, score, qid)
        return peer.evaluate(peer.Qrels(qrels), peer.Run(run), names, return_mean=False)

    return evaluate


def sklearn_dense_ndcg_only(y, score, qid) -> Callable[[], object]:
    from sklearn.metrics import ndcg_score

    lengths = np.bincount(qid)
    filled = np.arange(lengths.max()) < lengths[:, None]
    labels, scores = np.zeros(filled.shape), np.full(filled.shape, score.min() - 1)
    labels[filled], scores[filled] = y, score
    return lambda: ndcg_score(labels, scores, k=10, ignore_ties=True)


def floor_sort_by_rows(_y, score, qid) -> Callable[[], object]:
    lengths = np.bincount(qid)
    filled = np.arange(lengths.max()) < lengths[:, None]
    dense = np.full(filled.shape, np.inf)
    dense[filled] = score
    return lambda: np.sort(dense, axis=1)


CONTESTANTS = (rankeval, rankeval_stable, pytrec_eval, ranx, sklearn_dense_ndcg_only, floor_sort_by_rows)


def measure(contestant: str, n_queries: int, repeats: int) -> dict[str, float]:
    """Time one contestant in this process; the first call, which loads and compiles, does not count."""
    y, score, qid = rows(n_queries)
    data = (y.nbytes + score.nbytes + qid.nbytes) / 2**20
    call = globals()[contestant](y, score, qid)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cpu": min(seconds[1:]), "peak": peak, "before": before, "data": data, "rows": len(y)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=30_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(one.__name__ for one in CONTESTANTS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.child, given.queries, given.repeats)))
        return
    ours = None
    for name in given.only.split(","):
        command = [sys.executable, __file__, "--child", name, "--queries", str(given.queries)]
        child = subprocess.run(
            [*command, "--repeats", str(given.repeats)],
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            check=False,
        )
        if child.returncode:
            print(f"{name:28} not run: {child.stderr.strip().splitlines()[-1]}")
            continue
        found = json.loads(child.stdout.splitlines()[-1])
        if ours is None:
            ours = found["cpu"]
            print(f"{found['rows']:,} rows, {found['data']:.0f} MB of arrays; CPU seconds, least of {given.repeats}")
        used = found["peak"] - found["before"]
        print(
            f"{name:28} {found['cpu']:8.3f} s {found['cpu'] / ours:8.1f} x   peak {found['peak']:6.0f} MB "
            f"({used:5.0f} MB above the loaded data and libraries, {used / found['data']:.2f} x the data)"
        )


if __name__ == "__main__":
    main()
