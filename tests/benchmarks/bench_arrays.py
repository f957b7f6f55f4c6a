"""Arrays: six measures by the public rk.evaluate, against the peers in one run.

    python tests/benchmarks/bench_arrays.py [A] [equal] [C] [D] [expected] [growth] [--scale 1.0] [--repeats 3]

A: 30,000 queries of 1 to 1,251 rows, 115 in the mean, as in the public learning-to-rank sets. equal: 30,000 of about
120 rows. C: 100 of 100,000. D: 1,000,000 of 10. expected: A with ties at their expected value against ties in input
order. growth: 10^5 to 10^8 rows (the last needs 6 GB). Fixed seed, 1 % of the rows tied;
from arrays to per-query values. What counts are the ratios. Peers: ``pip install pytrec_eval-terrier ranx``. The floor
is NumPy's sort of the scores by rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import contest
import numpy as np

MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Rprec"]
SIZES = {"A": (30_000, 115), "equal": (30_000, 120), "C": (100, 100_000), "D": (1_000_000, 10)}
PEERS = {
    "A": ("rankeval", "pytrec_eval", "ranx", "sklearn_ndcg_only", "floor_sort_by_rows"),
    "equal": ("rankeval", "pytrec_eval", "ranx", "sklearn_ndcg_only", "floor_sort_by_rows"),
    "C": ("rankeval", "sklearn_ndcg_only", "floor_sort_by_rows"),
    "D": ("rankeval", "sklearn_ndcg_only", "floor_sort_by_rows"),
}


def rows(n_queries: int, n_rows: int):
    """Return labels, scores and query ids of a workload; lists of A have real lengths."""
    rng = np.random.default_rng(20261120)
    lengths = np.full(n_queries, n_rows)
    if n_rows == 115:
        lengths = np.rint(rng.lognormal(np.log(115) - 0.32, 0.8, n_queries)).astype(int).clip(1, 1251)
    elif n_rows == 120:
        lengths = rng.poisson(120, n_queries).clip(1)
    qid = np.repeat(np.arange(n_queries), lengths)
    y = rng.choice(5, size=len(qid), p=[0.6, 0.2, 0.1, 0.06, 0.04])
    score = rng.normal(size=len(qid)) + 0.5 * y
    tied = np.flatnonzero(rng.random(len(qid)) < 0.01)
    score[tied] = score[np.maximum(tied - 1, 0)]
    return y, score, qid


def rankeval(y, score, qid, ties: str | None = None) -> Callable[[], object]:
    import rankeval as rk

    return lambda: rk.evaluate(y, score, qid=qid, measures=MEASURES, ties=ties).per_query


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
    import pytrec_eval as peer

    names = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.100", "Rprec"}

    def evaluate():
        qrels, run = _dicts(y, score, qid)
        return peer.RelevanceEvaluator(qrels, names).evaluate(run)

    return evaluate


def ranx(y, score, qid) -> Callable[[], object]:
    import ranx as peer

    names = ["ndcg@10", "map", "mrr", "precision@10", "recall@100", "r-precision"]

    def evaluate():
        qrels, run = _dicts(y, score, qid)
        return peer.evaluate(peer.Qrels(qrels), peer.Run(run), names, return_mean=False)

    return evaluate


def _dense(qid, values, fill):
    lengths = np.bincount(qid)
    filled = np.arange(lengths.max()) < lengths[:, None]
    table = np.full(filled.shape, fill, dtype=np.float64)
    table[filled] = values
    return table


def sklearn_ndcg_only(y, score, qid) -> Callable[[], object]:
    from sklearn.metrics import ndcg_score

    labels, scores = _dense(qid, y, 0), _dense(qid, score, score.min() - 1)
    return lambda: ndcg_score(labels, scores, k=10, ignore_ties=True)


def floor_sort_by_rows(_y, score, qid) -> Callable[[], object]:
    table = _dense(qid, score, np.inf)
    return lambda: np.sort(table, axis=1)


CONTESTANTS = {
    "rankeval": rankeval,
    "ties=stable": partial(rankeval, ties="stable"),
    "ties=expected": rankeval,
    "pytrec_eval": pytrec_eval,
    "ranx": ranx,
    "sklearn_ndcg_only": sklearn_ndcg_only,
    "floor_sort_by_rows": floor_sort_by_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["A", "equal", "C", "D", "expected"])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the queries, for a quick look")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        y, score, qid = rows(*given.size)
        call = CONTESTANTS[given.child](y, score, qid)
        contest.take_part(call, given.repeats, data=(y.nbytes + score.nbytes + qid.nbytes) / 2**20)
        return
    options = ["--repeats", str(given.repeats)]
    for workload in given.workloads:
        if workload == "growth":
            for power in (5, 6, 7, 8):
                size = [str(10**power // 100), "100"]
                contest.hold(__file__, ["rankeval"], [*options, "--size", *size], f"10^{power} rows in lists of 100")
            continue
        names = PEERS.get(workload, ("ties=stable", "ties=expected"))
        n_queries, n_rows = SIZES.get(workload, SIZES["A"])
        size = [str(max(1, int(n_queries * given.scale))), str(n_rows)]
        title = f"{workload}: {int(size[0]):,} queries of {n_rows:,} rows"
        contest.hold(__file__, names, [*options, "--size", *size], title)


if __name__ == "__main__":
    main()
