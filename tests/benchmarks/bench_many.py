"""Comparisons of many systems, and of many queries: CPU seconds beside SciPy's, and the memory that they take.

    python tests/benchmarks/bench_many.py [fifty] [busy] [queries] [baseline] [t] [systems]

fifty     50 systems, all 1,225 pairs, 1,000 queries, 10,000 permutations: the whole call of `rankeval.compare`,
          p-values and both intervals of each pair. Promised: 1,000 times as fast as SciPy's permutation_test at its
          best batch, taken 1,225 times; under 300 MB.
busy      The same beside two processes that are busy: 500 times.
queries   10 systems, all pairs, 1,000,000 queries, 10,000 permutations. Promised: under 1 GB.
t         1,000 systems, all 499,500 pairs, 1,000 queries, by Student's t.
systems   The same by randomisation with 9,999 permutations.
baseline  One system against 999 others, randomisation, 1,000 queries.

CPU seconds are those of all threads of the process, and nothing limits the threads but the library itself: leave
OMP_NUM_THREADS unset. SciPy is timed on three pairs in the same run. Each case runs in a process of its own, so that
memory is its own: the largest resident size, the scores and the interpreter included.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from scipy import stats

import rankeval as rk

BATCHES = (32, 100, 320, 1000, 3200)


def systems_of(n_systems: int, n_queries: int) -> dict[str, pd.DataFrame]:
    """Return scores in ten-thousandths, each system a little better than the one before."""
    rng = np.random.default_rng(20261122)
    hard = rng.normal(0.4, 0.25, n_queries)
    return {
        f"s{k:03}": pd.DataFrame(
            {"AP": np.clip(np.round(hard + 0.1 * k / n_systems + rng.normal(0, 0.1, n_queries), 4), 0, 1)}
        )
        for k in range(n_systems)
    }


def of_scipy(systems: dict[str, pd.DataFrame], n_resamples: int) -> float:
    """Return the CPU seconds of SciPy's test of one pair at its best batch: the mean of three pairs."""
    pairs = [("s000", "s001"), ("s000", "s025"), ("s010", "s049")]
    d = [(systems[one]["AP"] - systems[other]["AP"]).to_numpy() for other, one in pairs]

    def seconds(values: np.ndarray, batch: int) -> float:
        start = time.process_time()
        stats.permutation_test(
            (values,), lambda x, axis: x.mean(axis=axis), permutation_type="samples", n_resamples=n_resamples,
            batch=batch, vectorized=True, rng=0,
        )  # fmt: skip
        return time.process_time() - start

    return float(np.mean([min(seconds(values, batch) for batch in BATCHES) for values in d]))


def spin() -> None:
    """Keep a core busy with products of matrices, as a neighbour would."""
    some = np.random.default_rng(0).random((300, 300))
    while True:
        some @ some


def measured(case: str) -> dict[str, float]:
    """Run a case and return its figures."""
    n_systems, n_queries = {"queries": (10, 10**6), "t": (1000, 1000), "systems": (1000, 1000)}.get(case, (50, 1000))
    if case == "baseline":
        n_systems = 1000
    systems = systems_of(n_systems, n_queries)
    options = {
        "test": "t" if case == "t" else "randomization",
        "n_resamples": 9999 if case == "systems" else 10_000,
        "baseline": "s000" if case == "baseline" else None,
    }
    few = {name: scores[:20] for name, scores in list(systems.items())[:3]}
    rk.compare(few, **(options | {"n_resamples": 99}))  # what is loaded at first use
    found, repeats = {"cpu": np.inf, "wall": np.inf}, 5 if case in ("fifty", "busy") else 1
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        compared = rk.compare(systems, **options)
        found = {
            "cpu": min(found["cpu"], time.process_time() - cpu), "wall": min(found["wall"], time.perf_counter() - wall)
        }  # fmt: skip
    found |= {"pairs": len(compared.table), "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if case in ("fifty", "busy"):
        found["scipy"] = of_scipy(systems, 10_000)
    return found


def beside_busy_processes(case: str) -> dict[str, float]:
    """Run a case beside two busy processes."""
    neighbours = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(2)]
    for one in neighbours:
        one.start()
    time.sleep(3)
    try:
        return alone(case)
    finally:
        for one in neighbours:
            one.terminate()


def alone(case: str) -> dict[str, float]:
    """Run a case in a process of its own."""
    told = subprocess.run([sys.executable, __file__, "--one", case], check=True, capture_output=True, text=True)
    return json.loads(told.stdout)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
        return
    asked = sys.argv[1:] or ["fifty", "busy", "queries", "baseline", "t", "systems"]
    print(f"load {os.getloadavg()[0]:.1f} before; {os.cpu_count()} cores")
    for case in asked:
        found = beside_busy_processes(case) if case == "busy" else alone(case)
        said = f"{case:9} {found['pairs']:7,.0f} pairs  CPU {found['cpu']:8.3f} s  wall {found['wall']:8.3f} s"
        said += f"  peak {found['mb']:6.0f} MB"
        if "scipy" in found:
            faster = found["scipy"] * found["pairs"] / found["cpu"]
            said += f"  SciPy {found['scipy']:.3f} s a pair: {faster:,.0f} times as fast"
        print(said, flush=True)


if __name__ == "__main__":
    main()
