"""The cost of a search in MLflow: numbers as metrics with their intervals, and the latency of each query."""

from __future__ import annotations

import io
from pathlib import Path

import mlflow
import pandas as pd
from pandas.testing import assert_frame_equal

import rankeval as rk
import rankeval_mlflow as rkm


def test_the_numbers_of_a_profile_are_metrics_of_the_run_of_the_system(client, tmp_path):
    """Without an interval there are no ends: MLflow would make 0 of nan."""
    queries = {f"q{i}": i for i in range(40)}
    found = rk.profile(range, queries, repeats=1, name="bm25", index_seconds=2, cost=dict.fromkeys(queries, 0.5))
    evaluated = rkm.log(rk.evaluate([1, 0], [2, 1], qid=["q1", "q1"], measures="RR"))
    run_id = rkm.log(found, evaluated.run_id).run_id
    assert run_id == evaluated.run_id
    logged = client.get_run(run_id).data
    table = found.table.set_index("quantity")
    metrics = {key.removeprefix("profile/bm25/"): value for key, value in logged.metrics.items() if "profile/" in key}
    expected = {f"{name}{end}": row[of] for name, row in table.iterrows() for of, end in
                (("value", ""), ("ci_low", "_ci_low"), ("ci_high", "_ci_high"))}  # fmt: skip
    assert metrics == {key: value for key, value in expected.items() if pd.notna(value)}
    assert "latency_p50_ms_ci_low" in metrics
    assert "latency_p99_ms_ci_low" not in metrics
    assert logged.tags["rankeval.bm25.headline"] == found.caption
    path = mlflow.artifacts.download_artifacts(
        run_id=run_id, artifact_path="rankeval/bm25/per_query.csv", dst_path=tmp_path
    )
    again = pd.read_csv(io.BytesIO(Path(path).read_bytes()), index_col="qid", float_precision="round_trip")
    assert_frame_equal(again, found.per_query)
    compared = rk.compare({"a": again, "b": found.per_query}, measures="cost")
    assert "better" not in compared.headline


def test_profiles_of_several_systems_are_in_one_run_by_their_names(client):
    """A name that MLflow or a path would not take is spelled as a word; the parameter has it as it is."""
    systems = {"bm25": str, "tuned (dense)": str, "": str}
    with mlflow.start_run() as run:
        for name, search in systems.items():
            rkm.log(rk.profile(search, {"q1": "a", "q2": "b"}, repeats=1, name=name))
    logged = client.get_run(run.info.run_id).data
    assert {key for key in logged.metrics if key.endswith("p50_ms")} == {
        "profile/bm25/latency_p50_ms", "profile/tuned_dense/latency_p50_ms", "profile/latency_p50_ms",
    }  # fmt: skip
    assert logged.params == {"profile/bm25/system": "bm25", "profile/tuned_dense/system": "tuned (dense)"}


def test_the_latency_of_a_comparison_is_a_metric_by_the_name_of_its_column(client):
    found = rk.profile({"a": str, "b": str}, {f"q{i}": i for i in range(10)}, repeats=1)
    compared = rk.compare({name: one.per_query for name, one in found.items()}, baseline="a")
    metrics = client.get_run(rkm.log(compared).run_id).data.metrics
    assert "difference/latency_ms" in metrics
