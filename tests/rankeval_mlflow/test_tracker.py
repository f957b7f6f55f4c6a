"""A run record arrives whole: the parent, its children, and everything they hold."""

from __future__ import annotations

import mlflow
import pytest

from rankeval.errors import TrackingError
from rankeval.tracking import LoggedData, RunRecord, host
from rankeval_mlflow.delivery.spool import waiting
from rankeval_mlflow.run_names import COMPLETE

DIGEST = "0123456789abcdef" * 4


def record(**changes) -> RunRecord:
    """Make a record with something of everything."""
    parts = {
        "name": "parent",
        "params": {"seed": 0, "grid(alpha)": "[1, 2]", "note": None},
        "metrics": {"seconds": 1.5, "nDCG@10": 0.5},
        "tags": {"plan": "abc"},
        "data": (LoggedData("letor", DIGEST, "dev", 100, 10, source="data/letor"),),
        "artifacts": {"report.html": b"<p>report</p>", "plots/curve.svg": b"<svg/>"},
        "children": (
            RunRecord("ridge", params={"alpha": 1.0}, artifacts={"model.txt": b"ridge"}),
            RunRecord("trees", metrics={"depth": 3.0}, children=(RunRecord("fold 1"),)),
        ),
    }
    return RunRecord(**{**parts, **changes})


@pytest.fixture
def tracker():
    return host("mlflow").tracker()


def test_the_completeness_tag_is_written_last_and_parents_after_their_children(tracker, monkeypatch):
    calls = []
    for name in ("log_batch", "log_artifacts", "log_inputs", "set_tag"):
        original = getattr(mlflow.MlflowClient, name)

        def traced(self, run_id, *rest, _name=name, _original=original, **options):
            calls.append((run_id, _name, rest))
            return _original(self, run_id, *rest, **options)

        monkeypatch.setattr(mlflow.MlflowClient, name, traced)
    tracked = tracker.log(record(), experiment="letor")
    completed = [run_id for run_id, name, rest in calls if name == "set_tag" and rest[0] == COMPLETE]
    ridge, trees = tracked.children
    assert completed == [ridge.run_id, trees.children[0].run_id, trees.run_id, tracked.run_id]
    for run_id in completed:
        assert [name for of, name, _ in calls if of == run_id][-1] == "set_tag"


def test_all_metrics_params_and_tags_of_a_run_go_out_in_one_batch(tracker, monkeypatch):
    batches = []
    original = mlflow.MlflowClient.log_batch

    def traced(self, run_id, **batch):
        assert batch["synchronous"] is True
        batches.append(run_id)
        return original(self, run_id, **batch)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", traced)
    monkeypatch.setenv("MLFLOW_ENABLE_ASYNC_LOGGING", "true")
    tracked = tracker.log(record(children=()), experiment="letor")
    assert batches == [tracked.run_id]


def test_nothing_is_printed(tracker, tmp_path, capfd):
    tracker.log(record(), experiment="letor", uri=f"sqlite:///{tmp_path / 'fresh.db'}")
    assert capfd.readouterr() == ("", "")


def test_the_active_run_of_the_user_is_left_alone(tracker, client):
    with mlflow.start_run() as active:
        tracked = tracker.log(record(), experiment="letor")
        assert mlflow.active_run().info.run_id == active.info.run_id
    assert tracked.run_id != active.info.run_id
    assert client.get_run(active.info.run_id).data.metrics == {}


def test_a_file_store_that_mlflow_refuses_keeps_the_record(tracker, tmp_path):
    with pytest.raises(TrackingError, match="rankeval mlflow resend"):
        tracker.log(record(), experiment="letor", uri=str(tmp_path / "mlruns"))
    assert len(waiting()) == 1
