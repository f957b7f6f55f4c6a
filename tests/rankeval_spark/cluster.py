"""A program that evaluates on two executors while a worker and an executor are killed; it prints what came out.

    python cluster.py FOLDER N_QUERIES

The rows are 100 a query, and one query has a fifth of all rows. The measure ``Killing`` is reciprocal rank that, the
first time that it scores the first partition, kills its worker process; the first time on the second, its executor.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sessions import running

import rankeval as rk
import rankeval_spark
from rankeval.evaluation import to_bytes
from rankeval.measures import family
from rankeval.measures.ranked import reciprocal_rank


def killing(folder: str):
    """Return the kernel of the measure, which knows where to leave its traces."""

    def kernel(judged):
        """Reciprocal rank, in [0, 1]."""
        from pyspark import TaskContext

        task = TaskContext.get()
        if task is not None and task.partitionId() < 2:
            trace = f"{folder}/killed-{task.partitionId()}"
            try:
                os.close(os.open(trace, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return reciprocal_rank(judged)
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill((os.getpid(), executor)[task.partitionId()], signal.SIGKILL)
        return reciprocal_rank(judged)

    return kernel


def main(folder: Path, n_queries: int) -> None:
    """Evaluate in memory and on Spark, and print whether the bytes are the same."""
    kernel = killing(str(folder))
    family("Killing", title="reciprocal rank", formula="1 / rank", source="a test", expected="orders of hits")(kernel)
    rng = np.random.default_rng(3)
    n_rows = n_queries * 100
    qid = np.repeat(np.arange(n_queries), 100)
    qid[rng.random(n_rows) < 0.2] = 7
    label = rng.integers(0, 4, n_rows).astype(np.int32)
    table = pa.table({"q": qid, "y": label, "s": rng.normal(size=n_rows) + label})
    table = table.take(pa.array(rng.permutation(n_rows)))
    pq.write_table(table, folder / "rows.parquet")
    measures = ["nDCG@10", "AP", "Killing"]
    whole = rk.evaluate(table["y"], table["s"], qid=table["q"], measures=measures)
    settings = {"spark.driver.memory": "1g", "spark.executor.memory": "1g", "spark.network.timeout": "120s"}
    with running("local-cluster[2,1,1536]", folder, settings) as session:
        df = session.read.parquet(str(folder / "rows.parquet"))
        how = {"qid": "q", "relevance": "y", "score": "s", "measures": measures, "partitions": 4}
        with rankeval_spark.evaluate(df, **how) as result:
            found = {
                "same bytes": to_bytes(result.evaluation) == to_bytes(whole),
                "n_scores": result.scores.count(),
                "n_queries": whole.n_queries,
                "killed": sorted(path.name for path in folder.glob("killed-*")),
            }
    print(json.dumps(found))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
