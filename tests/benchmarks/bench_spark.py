"""`rankeval_spark.evaluate` on a local cluster of two workers, against the same shuffle without Python.

    python tests/benchmarks/bench_spark.py [--queries 50000] [--repeats 3]

The input is a folder of Parquet files: 100 rows a query, in no order. Each way reads it, sends the rows by query to the
executors, and ends there:

    noop        nothing is done with the rows, as many partitions as Spark takes
    noop_ours   the same with as many partitions as evaluate takes
    aggregate   Spark's own mean of the scores of each query, without Python
    evaluate    our three measures, and the evaluation at the driver

Required: evaluate takes at most twice the time of the same repartition without Python.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankeval.evaluation import to_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "rankeval_spark"))

from sessions import running

import rankeval as rk
import rankeval_spark
from rankeval_spark.evaluating import partitions_for

ROWS_A_QUERY = 100
COLUMNS = {"qid": "qid", "relevance": "label", "score": "score"}


def table(n_queries: int) -> pa.Table:
    """Return rows in no order, with grades from 0 to 4."""
    rng = np.random.default_rng(14)
    qid = np.repeat(np.arange(n_queries), ROWS_A_QUERY)[rng.permutation(n_queries * ROWS_A_QUERY)]
    label = rng.choice(5, len(qid), p=[0.55, 0.2, 0.15, 0.07, 0.03]).astype(np.int32)
    return pa.table({"qid": qid, "label": label, "score": rng.normal(size=len(qid)) + 0.3 * label})


def shuffled_bytes(session) -> int:
    executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(place).totalShuffleWrite() for place in range(executors.length()))


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all below it: the JVMs and their workers."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return sum(ticks[process] for process in parents if is_ours(process)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print seconds, ratios, the bytes of the shuffle, and whether all bits are equal."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--queries", type=int, default=50_000)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--master", default="local-cluster[2,1,1536]")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = table(given.queries)
        (folder / "rows").mkdir()
        for place in range(4):
            step = len(rows) // 4
            pq.write_table(rows.slice(place * step, step), folder / "rows" / f"{place}.parquet")
        started = time.perf_counter()
        settings = {"spark.driver.memory": "1500m", "spark.executor.memory": "1g"}
        with running(given.master, folder, settings) as session:
            versions = f"Spark {session.version}, Python {platform.python_version()}, NumPy {np.__version__}"
            print(f"{len(rows):,} rows, {given.queries:,} queries, {given.master}, {versions}, Arrow {pa.__version__}")
            print(f"start {time.perf_counter() - started:.1f} s")
            measure(session, str(folder / "rows"), rows, given.repeats)


def measure(session, path: str, rows: pa.Table, repeats: int) -> None:
    """Time the ways in turn, after one round that is not counted."""
    from pyspark.sql import functions

    def read():
        return session.read.parquet(path)

    def noop():
        read().repartition("qid").write.format("noop").mode("overwrite").save()

    def noop_ours():
        ours = partitions_for(read())
        read().repartition(ours, "qid").write.format("noop").mode("overwrite").save()

    def aggregate():
        read().groupBy("qid").agg(functions.mean("score"), functions.max("label")).write.format("noop").mode(
            "overwrite"
        ).save()

    def evaluate():
        with rankeval_spark.evaluate(read(), **COLUMNS) as result:
            return result.evaluation

    seconds: dict[str, list[tuple[float, float]]] = {}
    for number in range(repeats + 1):
        for way in (noop, noop_ours, aggregate, evaluate):
            before, started, cpu = shuffled_bytes(session), time.perf_counter(), cpu_seconds()
            found = way()
            spent = time.perf_counter() - started, cpu_seconds() - cpu
            if number:
                seconds.setdefault(way.__name__, []).append(spent)
            if number == 1:
                time.sleep(1)  # executors report with their next heartbeat at the latest
                print(f"{way.__name__:10} shuffle {(shuffled_bytes(session) - before) / len(rows):.1f} bytes a row")
    for place, what in enumerate(("wall s", "CPU s")):
        least = {name: min(one[place] for one in spent) for name, spent in seconds.items()}
        for name, spent in seconds.items():
            each = ", ".join(f"{one[place]:.1f}" for one in spent)
            ratios = ", ".join(f"{least[name] / least[way]:.2f} x {way}" for way in ("noop", "noop_ours"))
            print(f"{name:10} {least[name]:6.2f} {what}  ({each})  {ratios}")
    started = time.process_time()
    whole = rk.evaluate(rows["label"], rows["score"], qid=rows["qid"])
    print(f"in memory, one core: {time.process_time() - started:.2f} CPU s")
    print("equal bit for bit:", to_bytes(found) == to_bytes(whole))


if __name__ == "__main__":
    main()
