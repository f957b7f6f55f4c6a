"""A Parquet log of up to 3 x 10^8 rows, evaluated where it lies: rows a second and core, and the peak of memory.

    python tests/benchmarks/bench_streaming.py --rows 1e7 1e8 --jobs 1 2 --plot streaming.png

A log has 100 rows a query, three columns (whole-number query, grade of a byte, score of 64 bits), files of 10^7 rows
and row groups of 2^20, compressed by Snappy. It is written in pieces into a temporary folder (9 bytes a row; the
shuffled one takes 17 more while it is evaluated) and deleted afterwards. Each call runs in a process of its own; CPU is
that of the call and of its workers, with that of the kernel for them ("kernel s"), and the peak is the sum over the
processes, sampled twenty times a second. The modules are compiled before, as those of an installed package are: a call
on a small log does that, and is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MEASURES = ["nDCG@10", "AP", "RR"]
FILE = 10_000_000
PIECE = 2_000_000
SHARES = [0.6, 0.2, 0.1, 0.06, 0.04]

CALL = """
import json, os, resource, sys, time
import rankeval as rk
import rankeval.streaming
data, jobs, memory, measures = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used), sum(one.ru_stime for one in used)
begin, wall = cpu(), time.perf_counter()
names = {"qid": "query", "relevance": "grade", "score": "score"}
ev = rk.evaluate_dataset(data, **names, measures=measures, memory=memory, n_jobs=jobs)
wall = time.perf_counter() - wall
if jobs > 1:
    from joblib.externals.loky import get_reusable_executor
    get_reusable_executor().shutdown(wait=True)
used, kernel = (after - before for after, before in zip(cpu(), begin))
print(json.dumps({"cpu": used, "kernel": kernel, "wall": wall, "queries": ev.n_queries, "digest": ev.ranking_digest,
                  "means": ev.aggregate().to_dict()}))
"""


def write(folder: Path, n_rows: int, *, is_sorted: bool, texts: bool) -> None:
    """Write a log in pieces."""
    rng = np.random.default_rng(n_rows)
    n_queries = n_rows // 100
    for number, first in enumerate(range(0, n_rows, FILE)):
        writer = None
        for begin in range(first, min(first + FILE, n_rows), PIECE):
            n = min(PIECE, n_rows - begin)
            query = np.arange(begin, begin + n) // 100 if is_sorted else rng.integers(0, n_queries, n)
            ids = pa.array(query)
            if texts:
                ids = pa.array(
                    [f"query-{one:09}" for one in range(n_queries)]
                    if not is_sorted
                    else [f"query-{one:09}" for one in range(query[0], query[-1] + 1)]
                ).take(pa.array(query - (query[0] if is_sorted else 0)))
            grade = rng.choice(5, n, p=SHARES).astype(np.int8)
            table = pa.table({"query": ids, "grade": grade, "score": rng.normal(size=n)})
            writer = writer or pq.ParquetWriter(folder / f"{number:04}.parquet", table.schema)
            writer.write_table(table, row_group_size=1 << 20)
        writer.close()


def resident(root: int) -> int:
    """Return the resident bytes of a process and of all that it started."""
    parents, sizes = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.name)], sizes[int(entry.name)] = int(fields[1]), int(fields[21]) * 4096
    tree, total = [root], 0
    while tree:
        one = tree.pop()
        total += sizes.get(one, 0)
        tree += [pid for pid, parent in parents.items() if parent == one]
    return total


def environment() -> dict[str, str]:
    """Return the environment of a call: one thread of each library, and compiled modules in a folder of their own."""
    compiled = Path(tempfile.gettempdir()) / f"rankeval-bench-{os.getuid()}"
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**others, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(compiled)}


def measured(data: Path, jobs: int, memory: str) -> dict:
    """Evaluate a log in a new process; return what it says, with the peak of memory and the bytes written."""
    command = [sys.executable, "-c", CALL, str(data), str(jobs), memory, json.dumps(MEASURES)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(process.returncode)
    return {**json.loads(process.stdout.read()), "peak": peak}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", type=float, default=[1e7], help="numbers of rows")
    parser.add_argument("--jobs", nargs="+", type=int, default=[1, 2], help="numbers of processes")
    parser.add_argument("--orders", nargs="+", default=["sorted", "shuffled"], help="sorted, shuffled")
    parser.add_argument("--texts", action="store_true", help="queries are texts")
    parser.add_argument("--memory", default="1GB", help="memory of the call")
    parser.add_argument("--folder", help="where logs are written; by default the folder of temporary files")
    parser.add_argument("--plot", help="draw CPU seconds against rows into this PNG")
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        write(Path(name), 1_000_000, is_sorted=False, texts=given.texts)
        measured(Path(name), 2, given.memory)
    print(f"{'rows':>12} {'order':9} jobs  CPU s  kernel s   wall s  ns/row  M rows/s/core  peak MB  bytes/row")
    for n_rows in map(int, given.rows):
        for order in given.orders:
            with tempfile.TemporaryDirectory(dir=given.folder) as name:
                folder = Path(name)
                write(folder, n_rows, is_sorted=order == "sorted", texts=given.texts)
                size = sum(one.stat().st_size for one in folder.iterdir()) / n_rows
                digests = set()
                for jobs in given.jobs:
                    one = measured(folder, jobs, given.memory)
                    digests.add((one["digest"], *one["means"].values()))
                    found.append((order, jobs, n_rows, one["cpu"], one["cpu"] - one["kernel"]))
                    print(
                        f"{n_rows:12,} {order:9} {jobs:4} {one['cpu']:6.1f} {one['kernel']:9.1f} "
                        f"{one['wall']:8.1f} "
                        f"{one['cpu'] / n_rows * 1e9:7.1f} {n_rows / one['cpu'] / 1e6:14.1f} {one['peak'] / 1e6:8.0f} "
                        f"{size:10.1f}",
                        flush=True,
                    )
                if len(digests) > 1:
                    raise SystemExit("the numbers of processes give different results")
    if given.plot:
        draw(found, Path(given.plot))


def draw(found: list[tuple[str, int, int, float, float]], path: Path) -> None:
    """Draw CPU seconds against rows, with and without the kernel's, and what each row of the smallest log costs."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    for axes, place, title in zip(both, (3, 4), ("Kernel included", "Without the kernel"), strict=True):
        for order, jobs in dict.fromkeys(one[:2] for one in found):
            points = sorted((one[2] / 1e6, one[place]) for one in found if one[:2] == (order, jobs))
            rows, cpu = map(np.array, zip(*points, strict=True))
            color = "tab:blue" if order == "sorted" else "tab:orange"
            costs = 1e3 * cpu / rows
            label = f"{order}, {jobs} process{'es' * (jobs > 1)}: {costs[0]:.0f} to {costs[-1]:.0f} ns a row"
            axes.plot(rows, cpu, "o", color=color, markerfacecolor=color if jobs == 1 else "white", zorder=3)
            axes.plot(
                [0, rows[-1]], [0, rows[-1] * costs[0] / 1e3], "-" if jobs == 1 else "--", color=color, label=label
            )
        axes.set(xlabel="million rows", xlim=0, ylim=0)
        axes.set_title(title, loc="left", fontsize=11)
        axes.legend(frameon=False, loc="upper left")
        axes.spines[["top", "right"]].set_visible(False)
    both[0].set_ylabel("CPU seconds")
    figure.suptitle("Three measures from Parquet. Lines: each row costs what it costs in the smallest log", fontsize=11)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
