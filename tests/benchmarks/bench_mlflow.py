"""M: an evaluation of 10,000 queries and six measures logged to MLflow, loaded, and compared with another one.

    python tests/benchmarks/bench_mlflow.py [--queries 10000] [--repeats 3] [--report]

On a SQLite store, and on a tracking server on loopback with such a store. Printed are the best times of the repeats:
writing the spool (packing included: what a kill before it loses), logging as a whole with the number of requests,
loading, ``compare_runs`` of two runs, and the ``leaderboard`` of all runs; last the most memory that the process held
by then. The first call of a process takes longer: it imports MLflow and pyarrow.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import mlflow
import numpy as np
import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from servers.tracking import running

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval_mlflow.delivery.payload import Payload, Target
from rankeval_mlflow.delivery.spool import put
from rankeval_mlflow.packing.nodes import node_of

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "R@10", "Rprec"]


def made(n_queries: int, seed: int) -> rk.Evaluation:
    """Return an evaluation of queries with 20 documents each."""
    rng = np.random.default_rng(20261122)
    labels = rng.integers(0, 3, 20 * n_queries)
    scores = labels + np.random.default_rng(seed).normal(size=labels.size)
    return rk.evaluate(labels, scores, qid=np.repeat(np.arange(n_queries), 20), measures=MEASURES, name=f"seed {seed}")


def best(call: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of some calls, in seconds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def spooled(evaluation: rk.Evaluation) -> None:
    """Pack an evaluation and write it to the spool."""
    put(Payload(Target("http://127.0.0.1:9"), node_of(evaluation.record()), 1)).remove()


def measured(where: str, evaluations: list[rk.Evaluation], repeats: int, *, report: bool) -> None:
    """Print the times on the store that MLflow is set to."""
    sent: list[str] = []
    original = requests.Session.request

    def counted(session: requests.Session, method: str, url: str, **options: object) -> requests.Response:
        sent.append(url)
        return original(session, method, url, **options)

    mlflow.set_experiment("bench")
    runs = [rkm.log(one, report=report).run_id for one in evaluations]
    requests.Session.request = counted
    rkm.log(evaluations[0], report=report)
    requests.Session.request = original
    logging = best(lambda: rkm.log(evaluations[0], report=report), repeats)
    loading = best(lambda: rkm.load_evaluation(runs[0]), repeats)
    comparing = best(lambda: rkm.compare_runs(runs), repeats)
    ranking = best(lambda: rkm.leaderboard("bench", limit=2), repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{where:8}  log {logging:6.3f} s  requests {len(sent):2}  load {loading:6.3f} s  compare {comparing:6.3f} s",
        end="",
    )
    print(f"  leaderboard {ranking:6.3f} s  peak {peak:.0f} MB")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="draw the report too")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    evaluations = [made(given.queries, seed) for seed in range(2)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RANKEVAL_SPOOL"] = str(folder / "spool")
        os.chdir(folder)
        spooled(evaluations[0])
        print(f"spool     {1000 * best(lambda: spooled(evaluations[0]), max(5, given.repeats)):.0f} ms")
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        measured("sqlite", evaluations, given.repeats, report=given.report)
        with running(folder, f"sqlite:///{folder}/server.db") as server:
            mlflow.set_tracking_uri(server.uri)
            measured("server", evaluations, given.repeats, report=given.report)


if __name__ == "__main__":
    main()
