"""What the guard costs on a large test collection: each step of its protocol, and checks of other data against it.

    python tests/benchmarks/bench_guard_large.py [--queries 1000000] [--rows 10] [--kind labels|docid|features]
                                                 [--store folder|sqlite] [--no-opening] [--profile STEP]

Each step prints wall seconds, CPU seconds, and by how much the memory of the process grew at its peak above what it
held before. ``--no-opening`` leaves freezing and opening out, whose resamples take longest. ``--profile`` prints where
one step spends its time.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import cProfile
import pstats
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import rankeval as rk
from rankeval.contamination import StreamedCheck, forget
from rankeval.contamination.refusal import MEMORY
from rankeval.errors import GuardRefusal

GRADES = [0.5, 0.3, 0.1, 0.06, 0.04]
N_FEATURES = 20
N_PARTS = 20


def made(n_queries: int, n_rows: int, kind: str, seed: int, first: int = 0) -> dict:
    """Return the columns of a collection; queries from ``first`` on."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_rows
    return {
        "X": rng.normal(size=(n, N_FEATURES)).astype(np.float32) if kind == "features" else None,
        "y": rng.choice(5, n, p=GRADES),
        "qid": np.repeat(np.arange(first, first + n_queries), n_rows),
        "docid": rng.integers(0, 10**9, n) if kind == "docid" else None,
        "score": rng.normal(size=n),
    }


def resident(field: str) -> float:
    """Return the memory of this process in MB, from Linux: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


class Steps:
    """Run steps, and print what each takes."""

    def __init__(self, profile: str | None) -> None:
        self._profile = profile
        print(f"{'step':44s} {'wall s':>8s} {'CPU s':>8s} {'MB more':>8s}")

    def __call__(self, name: str, call):
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew
        before, wall, cpu = resident("VmRSS"), time.perf_counter(), time.process_time()
        profiler = cProfile.Profile()
        if self._profile and self._profile in name.split(", ", maxsplit=1)[0]:
            profiler.enable()
        found = call()
        profiler.disable()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{name:44s} {wall:8.2f} {cpu:8.2f} {resident('VmHWM') - before:8.0f}", flush=True)
        if self._profile and self._profile in name.split(", ", maxsplit=1)[0]:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(35)
        return found


def refused(call) -> bool:
    """Return whether a call is refused."""
    try:
        call()
    except GuardRefusal:
        return True
    return False


def evaluated(data: dict):
    """Return a call that evaluates some data."""
    return lambda: rk.evaluate(data["y"], data["score"], qid=data["qid"], docid=data["docid"], measures=["nDCG@10"])


def streamed(data: dict) -> None:
    """Check some data part by part."""
    check = StreamedCheck.current()
    for rows in np.array_split(np.arange(len(data["y"])).reshape(-1, data["n_rows"]), N_PARTS):
        part = slice(rows[0, 0], rows[-1, -1] + 1)
        docid = None if data["docid"] is None else data["docid"][part]
        check.add(check.evidence(data["y"][part], data["qid"][part], docid=docid, score=data["score"][part]))
    check.refuse(action="evaluate")


def protocol(steps: Steps, given: argparse.Namespace, ledger: str) -> None:
    """Register, freeze, open and look."""
    guard = rk.Guard("bench")
    test = made(given.queries, given.rows, given.kind, 1)
    held = {"X": test["X"], "y": test["y"], "qid": test["qid"], "docid": test["docid"]}
    collection = steps("register", lambda: guard.register("test", **held))
    systems = {"one": test["score"], "two": -test["score"]}
    if given.no_opening:
        return
    plan = steps("freeze, two systems", lambda: guard.freeze(collection, systems=systems, baseline="one"))
    steps("open", lambda: guard.open(plan))
    forget()
    guard = rk.Guard("bench")
    steps("register again, in a new process", lambda: guard.register("test", **held))
    steps("open again", lambda: guard.open(plan))
    steps("looks", lambda: guard.looks("test"))
    steps("verify", guard.verify)
    forget()
    steps("status", lambda: guard.status(**held))
    files = [file for file in Path(ledger).parent.rglob("*") if file.is_file()]
    print(f"  the ledger on disk: {sum(file.stat().st_size for file in files) / 1e6:.1f} MB in {len(files)} files")


def checks(steps: Steps, given: argparse.Namespace) -> None:
    """Evaluate registered and other data, in memory, in parts, and by a scorer in a worker."""
    os.environ["RANKEVAL_LEDGER"], ledger = "off", os.environ["RANKEVAL_LEDGER"]
    forget()
    for words, first in (("other data", 10**8), ("other data under the same ids", 0)):
        other = made(given.queries, given.rows, given.kind, 2, first=first)
        other["n_rows"] = given.rows
        os.environ["RANKEVAL_LEDGER"] = "off"
        forget()
        steps(f"evaluate {words}, no guard", evaluated(other))
        os.environ["RANKEVAL_LEDGER"] = ledger
        forget()
        steps(f"evaluate {words}, ledger read", evaluated(other))
        steps(f"evaluate {words}", evaluated(other))
        steps(f"check {words} in {N_PARTS} parts", lambda one=other: streamed(one))
        small = {
            name: None if column is None else column[: 1000 * given.rows]
            for name, column in other.items()
            if name != "n_rows"
        }
        steps(f"evaluate 1,000 queries of {words}", evaluated(small))
    test = made(given.queries, given.rows, given.kind, 1)
    test["n_rows"], test["score"] = given.rows, np.random.default_rng(3).normal(size=len(test["y"]))
    MEMORY.clear()
    assert steps("evaluate the test, refused", lambda: refused(evaluated(test)))
    assert steps(f"check the test in {N_PARTS} parts, refused", lambda: refused(lambda: streamed(test)))
    if given.kind == "features":
        small = made(1000, given.rows, given.kind, 5, first=2 * 10**8)
        scorer, fitted = rk.make_scorer("nDCG@10"), Predicted(small["score"])
        from joblib import Parallel, delayed

        with Parallel(n_jobs=1) as _:
            score = delayed(scorer)(fitted, small["X"], small["y"], qid=small["qid"])
            with Parallel(n_jobs=2, max_nbytes=None) as pool:
                steps("two scores of 1,000 queries in new workers", lambda: pool([score, score]))
                steps("two more in the same workers", lambda: pool([score, score]))


class Predicted:
    """An estimator that has predicted already."""

    def __init__(self, score) -> None:
        self.score = score

    def predict(self, _X):
        return self.score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--kind", choices=("labels", "docid", "features"))
    parser.add_argument("--store", choices=("folder", "sqlite"), default="folder")
    parser.add_argument("--no-opening", action="store_true")
    parser.add_argument("--profile")
    given = parser.parse_args()
    if given.kind is None:
        for kind in ("labels", "docid", "features"):
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--kind", kind], check=True)
        return
    print(f"\n{given.queries:,} queries of {given.rows} rows, {given.kind}, ledger in a {given.store}")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        ledger = str(Path(folder) / "kept" / ("ledger" if given.store == "folder" else "ledger.db"))
        Path(ledger).parent.mkdir()
        os.environ["RANKEVAL_LEDGER"] = ledger
        forget()
        steps = Steps(given.profile)
        protocol(steps, given, ledger)
        checks(steps, given)


if __name__ == "__main__":
    main()
