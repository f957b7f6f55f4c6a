"""What an experiment logs is what it computed, to the last bit; what cannot be logged is kept."""

from __future__ import annotations

import html
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import RankevalWarning
from rankeval.experiment import load_config, run_experiment

SHORT = [
    "rankers.lambdarank.params.n_estimators=10",
    "rankers.xgboost.params.n_estimators=10",
    "rankers.catboost.params.iterations=10",
    "cv.n_splits=2",
]
DIGITS = [
    "data.arguments={n_queries: 50, n_candidates: 12}",
    "rankers.boosted-trees.params={max_iter: 5}",
    "rankers.boosted-trees.grid={}",
    "cv.n_splits=2",
]


def logged(result):
    """Return the store's client and the runs of a result: the parent, then its children."""
    import mlflow

    client = mlflow.MlflowClient(result.config.tracking.uri)
    return client, [client.get_run(run.run_id) for run in (result.tracked, *result.tracked.children)]


@pytest.fixture(autouse=True)
def _own_store(tmp_path, empty_database):
    """Give the test a store whose tables exist, and put MLflow's own setting back, which is one for the process."""
    import mlflow

    shutil.copy(empty_database, tmp_path / "mlflow.db")
    yield
    mlflow.set_tracking_uri(None)


def assert_logged_as_computed(result):
    """Hold MLflow's per-query scores against `rk.evaluate` on the saved predictions."""
    import mlflow

    import rankeval_mlflow

    mlflow.set_tracking_uri(result.config.tracking.uri)
    _, (_, *children) = logged(result)
    assert [run.info.run_name for run in children] == list(result.config.rankers)
    for run in children:
        frame = pd.read_parquet(result.predictions(run.info.run_name))
        computed = rk.evaluate(
            frame["relevance"], frame["score"], qid=frame["qid"], measures=result.config.all_measures
        )
        kept = rankeval_mlflow.load_evaluation(run.info.run_id, role="test")
        pd.testing.assert_frame_equal(kept.per_query, computed.per_query, check_exact=True)
        assert run.data.metrics["test/nDCG_at_10"] == computed.aggregate()["nDCG@10"]


def test_a_run_has_a_parent_with_the_comparison_and_a_child_per_ranker(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///elsewhere.db")
    result = run_experiment(load_config("quickstart", [*DIGITS, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db"]))
    client, (parent, *children) = logged(result)
    assert parent.data.tags["rankeval.standing"] == "confirmatory"
    for run in (parent, *children):
        assert run.data.tags["rankeval.guard.head"] == result.guard.head
    for role, is_said in (("test", True), ("dev", False)):
        path = client.download_artifacts(children[0].info.run_id, f"rankeval/{role}/report.html", str(tmp_path))
        assert (result.guard.line in html.unescape(Path(path).read_text())) is is_said
    assert parent.data.tags["rankeval.headline"] == result.comparison.headline
    assert "comparison/boosted-trees/nDCG_at_10/difference" in parent.data.metrics
    artifacts = {entry.path for entry in client.list_artifacts(parent.info.run_id)}
    assert artifacts >= {"rankeval", "experiment.yaml", "comparison.csv"}
    reports = {file.path for file in client.list_artifacts(result.tracked.run_id, "rankeval/record")}
    assert "rankeval/record/report.html" in reports
    assert parent.data.metrics["test/nDCG_at_10"] == max(
        one.test.aggregate()["nDCG@10"] for one in result.facts.candidates
    )
    roles = {(tag.key, tag.value) for entry in parent.inputs.dataset_inputs for tag in entry.tags}
    assert {("mlflow.data.context", "dev"), ("mlflow.data.context", "test")} <= roles
    for run in children:
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert "rankeval.complete" in run.data.tags
        assert run.data.params["estimator"] == result.config.rankers[run.info.run_name].estimator
    assert_logged_as_computed(result)
    assert not (tmp_path / "elsewhere.db").exists()


def test_the_validation_part_and_the_iterations_are_logged(tmp_path):
    for place, part in enumerate(("train", "vali", "test")):
        rows = [f"{row % 2} qid:{place}{row // 4} 1:{row % 3} 2:{row + place}" for row in range(40)]
        (tmp_path / f"{part}.txt").write_text("\n".join(rows))
    booster = {"estimator": "lightgbm.LGBMRanker", "params": {"n_estimators": 5, "n_jobs": 1, "verbose": -1}}
    config = {
        "name": "early",
        "data": {"loader": "letor", "path": str(tmp_path)},
        "rankers": {
            "ridge": {"estimator": "sklearn.linear_model.Ridge"},
            "boosted": {**booster, "early_stopping_rounds": 2},
        },
        "cv": {"n_splits": 2},
        "tracking": {"uri": f"sqlite:///{tmp_path}/mlflow.db"},
    }
    result = run_experiment(config)
    _, runs = logged(result)
    digests = {one.role: one.digest for one in result.facts.data}
    assert set(digests) == {"dev", "validation", "test"}
    for run in runs:
        tags = [{tag.key: tag.value for tag in entry.tags} for entry in run.inputs.dataset_inputs]
        assert {tag["rankeval.role"]: tag["rankeval.digest"] for tag in tags} == digests
    _, ridge, boosted = runs
    assert boosted.data.metrics["n_iterations"] == result.facts.candidates[1].n_iterations
    assert "n_iterations" not in ridge.data.metrics


def test_a_server_that_is_down_leaves_all_else_done_and_says_how_to_send_what_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.warns(RankevalWarning, match="127.0.0.1:9 cannot be reached now"),
        pytest.warns(RankevalWarning, match="was not logged: .*127.0.0.1:9"),
    ):
        result = run_experiment(load_config("quickstart", [*DIGITS, "tracking.uri=http://127.0.0.1:9"]))
    assert result.tracked is None
    assert "rankeval mlflow resend" in result.tracking_error
    assert str(tmp_path) in result.tracking_error
    assert result.report.is_file()
    assert len(result.comparison.table) == 1


@pytest.mark.shared
@pytest.mark.parametrize("folder", ["letor_cranfield/Fold1", "ltr_lightgbm"])
def test_letor_folders_run_with_all_four_rankers_and_again_for_nothing(folder, shared: Path, tmp_path):
    settings = [
        f"data.path={shared / folder}",
        f"guard.ledger=sqlite:///{tmp_path}/ledger.db",
        f"tracking.uri=sqlite:///{tmp_path}/mlflow.db",
        *SHORT,
    ]
    first = run_experiment(load_config("letor", settings))
    assert (first.n_trained, first.looks_added, first.guard.standing) == (4, 3, "confirmatory")
    assert_logged_as_computed(first)
    second = run_experiment(load_config("letor", [*settings, "tracking=off"]))
    assert (second.n_trained, second.looks_added) == (0, 0)
    np.testing.assert_array_equal(
        [each.test.scores for each in first.facts.candidates], [each.test.scores for each in second.facts.candidates]
    )
