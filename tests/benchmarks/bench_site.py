"""The cost of a site of many runs: list and pages, then comparisons, then the same again from the cache.

    python tests/benchmarks/bench_site.py [--runs 1000] [--queries 100]

Promised for 1,000 runs: list and pages under 5 CPU seconds and 30 MB; comparisons among the first 50 and the champion
under 10 CPU seconds more; a second call from the cache. CPU seconds of this process. Saving the runs takes about 0.03 s
each.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np

import rankeval as rk
from rankeval.shelf import folder
from rankeval.shelf.record import Record
from rankeval.site import publishing, write_site
from rankeval.site.ranking import BoardFigures, figures_of

N_ROWS = 10


def save(home: Path, n_runs: int, n_queries: int) -> None:
    """Save runs on one test part, and the promotion of one of them."""
    labels = np.random.default_rng(0).integers(0, 3, n_queries * N_ROWS)
    qid = np.repeat([f"q{place}" for place in range(n_queries)], N_ROWS)
    for run in range(n_runs):
        scores = labels + np.random.default_rng(run).normal(size=labels.size) * (1 + run / n_runs)
        name = f"ranker-{run:04d}"
        measures = ["nDCG@10", "AP", "RR"]
        rk.save(rk.evaluate(labels, scores, qid=qid, measures=measures, name=name), home / name, role="test")
    params = {"model": "shop", "version": "1", "system": "ranker-0000", "decision": "accepted"}
    folder.write(Record("promotion", "shop v1", params=params, started=1.79e9), home / "promotion")


def cpu(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        home, public, bare = Path(place, "saved"), Path(place, "public"), Path(place, "bare")
        save(home, chosen.runs, chosen.queries)
        publishing.figures_of = lambda *_, **__: BoardFigures()
        print(f"list and pages of {chosen.runs:,} runs: {cpu(lambda: write_site(home, bare)):.1f} CPU s")
        publishing.figures_of = figures_of
        print(f"with comparisons: {cpu(lambda: write_site(home, public)):.1f} CPU s")
        print(f"again: {cpu(lambda: write_site(home, public)):.1f} CPU s")
        print(f"with queries: {cpu(lambda: write_site(home, public, queries=True)):.1f} CPU s")
        sizes = [path.stat().st_size for path in public.rglob("*") if path.is_file()]
        largest = max(path.stat().st_size for path in (public / "runs").iterdir())
        print(f"{len(sizes):,} files, {sum(sizes) / 1e6:.1f} MB, largest page of a run {largest / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
