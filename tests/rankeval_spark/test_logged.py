"""The evaluation of a Spark result goes to MLflow, comes back, and is compared as any other."""

from __future__ import annotations

import mlflow
import numpy as np
import pyarrow as pa
import pytest

import rankeval as rk
import rankeval_mlflow as rkm
import rankeval_spark
from rankeval.contamination.refusal import forget
from rankeval.errors import GuardRefusal
from rankeval.evaluation import to_bytes

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("store")]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Log to an SQLite store of this test's own, and look into a ledger of its own."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr("rankeval.report.html._image", lambda _: "data:,")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.create_experiment("spark", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("spark")
    forget()
    rk.Guard("spark").register("other", y=[1, 0, 2], qid=["x", "x", "z"], docid=["x1", "x2", "z1"])
    yield
    monkeypatch.undo()
    forget()
    mlflow.set_tracking_uri(before)


def rows(seed):
    rng = np.random.default_rng(7)
    qid, y = np.repeat(np.arange(30), 10), rng.integers(0, 3, 300)
    score = np.random.default_rng(seed).normal(size=300) + seed * y
    return pa.table({"q": [f"q{one}" for one in qid], "y": y, "s": score, "d": [f"d{row}" for row in range(300)]})


def evaluated(spark, table, name):
    columns = {"qid": "q", "relevance": "y", "score": "s", "docid": "d"}
    with rankeval_spark.evaluate(spark.createDataFrame(table), **columns, name=name, partitions=2) as result:
        return result.evaluation


def test_results_are_logged_and_compared_and_registered_rows_are_refused(spark):
    ours = {name: evaluated(spark, rows(seed), name) for seed, name in enumerate(("a", "b"))}
    runs = {name: rkm.log(one, role="dev").run_id for name, one in ours.items()}
    for name, run_id in runs.items():
        assert to_bytes(rkm.load_evaluation(run_id)) == to_bytes(ours[name])
    tables = {name: rows(seed) for seed, name in enumerate(("a", "b"))}
    memory = {
        name: rk.evaluate(one["y"], one["s"], qid=one["q"], docid=one["d"], name=name) for name, one in tables.items()
    }
    expected = rk.compare(memory, baseline="a")
    assert rk.compare(ours, baseline="a").to_json() == expected.to_json()
    assert rkm.compare_runs(list(runs.values())).table["difference"].tolist() == expected.table["difference"].tolist()
    known = rows(0)
    rk.Guard("spark").register("test", y=known["y"], qid=known["q"], docid=known["d"])
    with pytest.raises(GuardRefusal, match="test"):
        evaluated(spark, rows(1), "c")
