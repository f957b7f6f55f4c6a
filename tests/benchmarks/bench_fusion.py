"""Fusions of five runs: CPU seconds beside those of ranx, in the same process and with its functions compiled.

    python tests/benchmarks/bench_fusion.py [QUERIES]

Each run retrieved 1,000 of 3,000 documents in each of QUERIES queries, 1,000 if not given. Both programs begin with
runs in their own form, and end with such a run. ranx is timed on a twentieth of the queries, and its time is
multiplied: it needs minutes for all. CPU seconds are those of all threads.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import rankeval as rk

DOCUMENTS, RETRIEVED, SYSTEMS, SHARE = 3000, 1000, 5, 20
METHODS = {"rrf": "rrf", "combsum": "sum", "combmnz": "mnz", "bordafuse": "bordafuse"}


def drawn(n_queries: int, seed: int) -> rk.Run:
    """Return a run in rank order, with texts as ids."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), RETRIEVED)
    documents = [rng.choice(DOCUMENTS, RETRIEVED, replace=False) for _ in range(n_queries)]
    scores = -np.sort(-rng.random((n_queries, RETRIEVED)), axis=1)
    qid = [f"q{number}" for number in query]
    return rk.Run(qid, [f"d{number}" for number in np.concatenate(documents)], scores.ravel())


def seconds(call: Any, *arguments: Any) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def main(n_queries: int) -> None:
    """Print a row for each method."""
    from ranx import Run, fuse

    runs = [drawn(n_queries, seed) for seed in range(SYSTEMS)]
    few = [
        drawn(max(1, n_queries // SHARE), seed).to_frame().astype({"qid": object, "docid": object})
        for seed in range(SYSTEMS)
    ]
    theirs = [Run.from_df(frame, q_id_col="qid", doc_id_col="docid", score_col="score") for frame in few]
    tiny = [Run({"q": {"a": 1.0, "b": 0.5}}) for _ in range(SYSTEMS)]
    print(f"{'method':10} {'rankeval':>9} {'ranx':>9} {'ratio':>6}   CPU seconds, {n_queries} queries")
    for ours, name in METHODS.items():
        norm = None if name in ("rrf", "bordafuse") else "min-max"
        fuse(tiny, norm=norm, method=name)
        own = seconds(rk.fuse, runs, ours)
        other = seconds(lambda norm=norm, name=name: fuse(theirs, norm=norm, method=name))
        other *= n_queries / max(1, n_queries // SHARE)
        print(f"{ours:10} {own:9.2f} {other:9.2f} {other / own:5.1f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
