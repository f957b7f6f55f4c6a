"""What the guard costs: fingerprints, a guarded scorer beside an unguarded one, a large registration, pickles.

    python tests/benchmarks/bench_guard.py [--repeats 3]

Promised: all traces of 100,000 rows of 136 features in 4 s; a guarded scorer call on 20,000 rows at most 50 ms dearer,
and nothing without a ledger; a registration of a million queries of five rows within 500 MB; a scorer of under 1 MB
pickled. CPU seconds of one thread, the least of the repeats.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

import rankeval as rk
from rankeval.contamination import forget
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.signature import Signature
from rankeval.errors import GuardRefusal
from rankeval.ledger.arrays import pack

N_FEATURES = 136
GRADES = [0.5, 0.3, 0.1, 0.06, 0.04]


class Predicted:
    """An estimator that has predicted already."""

    def __init__(self, score) -> None:
        self.score = score

    def predict(self, _X):
        return self.score


def made(n_queries: int, n_docs: int, n_features: int, seed: int, first: int = 0):
    """Return features, labels and query ids."""
    rng = np.random.default_rng(seed)
    n_rows = n_queries * n_docs
    return (
        rng.normal(size=(n_rows, n_features)),
        rng.choice(5, n_rows, p=GRADES),
        np.repeat(np.arange(first, first + n_queries), n_docs),
    )


def seconds(call, repeats: int) -> float:
    """Return the least CPU seconds of several calls; the first one, which loads, does not count."""
    found = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found[1:])


def fingerprints(repeats: int) -> None:
    X, y, qid = made(1000, 100, N_FEATURES, 1)

    def whole():
        prints = fingerprint(X, y, qid)
        return prints.digest, Signature.of(prints)

    print(f"100,000 x {N_FEATURES}, 1,000 queries: digest and signature {seconds(whole, repeats):.2f} s (4 s promised)")
    print(f"  digest alone {seconds(lambda: fingerprint(X, y, qid).digest, repeats):.2f} s")
    small = Signature.of(fingerprint(*made(10_000, 50, 20, 2)))
    print(f"10,000 queries x 50 rows: a signature of {len(zlib.compress(pack(small.arrays()), 6)) / 1e6:.2f} MB")


def scorers(repeats: int, folder: Path) -> None:
    X, y, qid = made(200, 100, N_FEATURES, 3)
    fitted = Predicted(X[:, 0])

    def calls():
        scorer = rk.make_scorer("nDCG@10")
        return seconds(lambda: scorer(fitted, X, y, qid=qid), repeats), scorer

    os.environ["RANKEVAL_LEDGER"] = "off"
    forget()
    off, _ = calls()
    os.environ["RANKEVAL_LEDGER"] = str(folder / "none")
    forget()
    without, _ = calls()
    print(f"scorer on 20,000 x {N_FEATURES}: off {1000 * off:.1f} ms, no ledger yet {1000 * without:.1f} ms")
    for words, shape in (
        ("1,000 queries of 100 rows registered", (1000, 100, 20)),
        ("100,000 queries of 20 rows registered", (100_000, 20, 5)),
        ("and the data in queries of 20 rows too, whose labels are met often", (5_000, 20, 20)),
    ):
        os.environ["RANKEVAL_LEDGER"] = str(folder / str(shape[0]))
        forget()
        rk.Guard("bench").register("test", *made(*shape, 4, first=10**6)[:2], qid=made(*shape, 4, first=10**6)[2])
        if shape[1] == 20 and shape[0] == 5_000:
            qid = np.repeat(np.arange(1000), 20)
        guarded, scorer = calls()
        more = 1000 * (guarded - off)
        print(f"  {words}: {1000 * guarded:.1f} ms, {more:.1f} ms dearer (50 promised); ", end="")
        print(f"pickled {len(pickle.dumps(scorer))} bytes")
    many_registrations(folder, off, lambda: scorer(fitted, X, y, qid=qid), repeats)
    qid = np.repeat(np.arange(200), 100)
    os.environ["RANKEVAL_LEDGER"] = str(folder / "recurring")
    forget()
    rng = np.random.default_rng(5)
    rk.Guard("bench").register("test", rng.normal(size=X.shape), rng.permutation(y), qid=qid)
    print(f"  the same ids with other labels registered: {1000 * (calls()[0] - off):.1f} ms dearer")
    rk.Guard("bench").register("same", np.column_stack([X[:, :1] + 7, X[:, 1:]]), y, qid=qid)
    scorer = rk.make_scorer("nDCG@10")

    def refused():
        try:
            scorer(fitted, X, y, qid=qid)
        except GuardRefusal:
            return
        raise AssertionError

    print(f"  the test with a column moved, refused: {1000 * seconds(refused, repeats):.1f} ms")


def many_registrations(folder: Path, off: float, score, repeats: int) -> None:
    """Print what 20 registrations cost, for new data and for data that was scored before, as folds of a search are."""
    os.environ["RANKEVAL_LEDGER"] = str(folder / "many")
    forget()
    guard = rk.Guard("bench")
    for seed in range(20):
        X, y, qid = made(500, 20, 20, 100 + seed, first=10**6 * (seed + 1))
        guard.register(f"test {seed}", X, y, qid=qid)
    start = time.process_time()
    score()
    first = time.process_time() - start
    print(f"  20 registrations of 500 queries: {1000 * (first - off):.1f} ms dearer for new data, ", end="")
    print(f"{1000 * (seconds(score, repeats) - off):.1f} ms once it was scored (50 promised)")


def resident(field: str) -> float:
    """Return the memory of this process in MB, from Linux: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def registration() -> None:
    """Register a million queries of five rows in this process, and print how its memory grew."""
    X, y, qid = made(1_000_000, 5, 4, 6)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RANKEVAL_LEDGER"] = str(Path(folder) / "ledger")
        guard = rk.Guard("bench")
        guard.register("warm", *made(10, 5, 4, 7)[:2], qid=made(10, 5, 4, 7)[2])
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew
        before, start = resident("VmRSS"), time.process_time()
        guard.register("test", X, y, qid=qid)
        grown = resident("VmHWM") - before
        took = time.process_time() - start
    print(f"a million queries of 5 rows x 4 registered in {took:.1f} s; memory grew by {grown:.0f} MB (500 promised)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--registration", action="store_true", help="the large registration alone, in this process")
    given = parser.parse_args()
    if given.registration:
        registration()
        return
    fingerprints(given.repeats)
    with tempfile.TemporaryDirectory() as folder:
        scorers(given.repeats, Path(folder))
    subprocess.run([sys.executable, __file__, "--registration"], check=True)


if __name__ == "__main__":
    main()
