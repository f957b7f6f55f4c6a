"""The cost of reading many runs, beside MLflow's own search in the same process.

    python tests/benchmarks/bench_mlflow_reading.py [--runs 1000] [--queries 200] [--server] [--repeats 3]

Promised: leaderboard over 1,000 runs at most 1.5 times mlflow.search_runs, compare_runs of two evaluations of 10,000
queries by 6 measures under 3 s. Seconds by the clock on the wall, the least of the repeats. Making the runs takes about
0.1 s each. With --server, a tracking server on loopback is asked, else the sqlite file.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import mlflow
import numpy as np

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval_mlflow.reading.listing import logged_runs

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "R@5", "ERR(max_rel=2)"]


def wall(call, repeats: int) -> float:
    """Return the least seconds of several calls; the first one, which loads, does not count."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def evaluated(n: int, seed: int) -> rk.Evaluation:
    """Evaluate n queries of 8 rows, with the same labels for every seed."""
    labels = np.random.default_rng(0).integers(0, 3, 8 * n)
    scores = labels + np.random.default_rng(seed).normal(size=8 * n)
    return rk.evaluate(labels, scores, qid=np.repeat(np.arange(n), 8), measures=MEASURES, name=f"s{seed}")


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Yield the address of a server of a folder's store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/health", timeout=2).close()  # noqa: S310 - our own address
                break
            except OSError:
                time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        process.wait()


def measured(runs: int, queries: int, repeats: int) -> None:
    """Log the runs, and print the seconds of reading them."""
    mlflow.set_experiment("many")
    for seed in range(runs):
        rkm.log(evaluated(queries, seed), report=False)
    calls = {
        "mlflow.search_runs": partial(mlflow.search_runs, experiment_names=["many"]),
        "logged_runs": partial(logged_runs, "many"),
        "leaderboard, untested": partial(rkm.leaderboard, "many", significance=False),
        "leaderboard": partial(rkm.leaderboard, "many"),
    }
    seconds = {name: wall(call, repeats) for name, call in calls.items()}
    for name, value in seconds.items():
        print(f"{name:22} {value:7.2f} s  {value / seconds['mlflow.search_runs']:5.2f} x")
    pair = [rkm.log(evaluated(10_000, seed), report=False) for seed in range(2)]
    print(f"compare_runs, 10,000 x 6 {wall(partial(rkm.compare_runs, pair), repeats):5.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--server", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RANKEVAL_SPOOL"] = str(folder / "spool")
        if given.server:
            with serving(folder) as address:
                mlflow.set_tracking_uri(address)
                measured(given.runs, given.queries, given.repeats)
        else:
            os.chdir(folder)
            mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
            measured(given.runs, given.queries, given.repeats)


if __name__ == "__main__":
    main()
