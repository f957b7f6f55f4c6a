"""Drawings come after the numbers and never cost them; models arrive once; parameters keep the user's values."""

from __future__ import annotations

import contextlib
import json
import time

import mlflow
import pytest
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow import views
from rankeval_mlflow.delivery.payload import Node, Payload, Rendering, SavedModel, Scores, Target
from rankeval_mlflow.delivery.sending import deliver, send
from rankeval_mlflow.delivery.spool import waiting

CSV = b"ranker,AP\nridge,0.5\n"
TABLE = Rendering("rankers", "rankeval/record/rankers.csv", "rankeval/record", tables=("rankers.json",))
MODEL = SavedModel("ranker", {"MLmodel": b"flavors: {}\n", "model.bin": b"\x00\xff"}, {"alpha": "1"}, {"t": "x"})


def drawn_node(**changes):
    return Node("run", "record", files={"rankeval/record/rankers.csv": CSV}, renderings=(TABLE,), **changes)


def files(client, run_id):
    return sorted(file.path for file in client.list_artifacts(run_id, "rankeval/record"))


def test_a_table_is_drawn_from_its_file_and_mlflow_finds_it(client, store):
    run_id = deliver(Payload(Target(store, experiment_id="0"), drawn_node(), 1)).run_id
    tags = client.get_run(run_id).data.tags
    assert json.loads(tags["mlflow.loggedArtifacts"]) == [{"path": "rankeval/record/rankers.json", "type": "table"}]
    assert files(client, run_id)[-2:] == ["rankeval/record/rankers.csv", "rankeval/record/rankers.json"]


def test_a_table_of_the_users_own_stays_listed(client, store):
    run_id = client.create_run("0").info.run_id
    client.set_tag(run_id, "mlflow.loggedArtifacts", json.dumps([{"path": "mine.json", "type": "table"}]))
    deliver(Payload(Target(store, run_id=run_id), drawn_node(), 1))
    listed = json.loads(client.get_run(run_id).data.tags["mlflow.loggedArtifacts"])
    assert [one["path"] for one in listed] == ["mine.json", "rankeval/record/rankers.json"]


def test_a_drawing_that_fails_is_a_warning_and_a_line_in_the_description(client, store, monkeypatch):
    def broken(*_):
        raise ValueError("no font")

    monkeypatch.setitem(views.KINDS, "rankers", broken)
    with pytest.warns(RankevalWarning, match=r"Not drawn from rankeval/record/rankers.csv: ValueError: no font\."):
        run_id = deliver(Payload(Target(store, experiment_id="0"), drawn_node(sections={"dev": "scores"}), 1)).run_id
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.tags["rankeval.complete"].startswith("record:")
    assert "scores" in run.data.tags["mlflow.note.content"]
    assert "ValueError: no font" in run.data.tags["mlflow.note.content"]
    assert waiting() == []


def test_a_drawing_that_ends_the_process_is_tried_twice_and_then_left_out(client, store, monkeypatch):
    """The numbers are in the store by then; a resend draws what is missing."""

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(views.KINDS, "rankers", killed)
        with pytest.raises(KeyboardInterrupt):
            deliver(Payload(Target(store, experiment_id="0"), drawn_node(metrics={"AP": 0.5}), 1))
        (upload,) = waiting()
        run_id = upload.sent()["runs"]["0"]
        assert client.get_run(run_id).data.metrics == {"AP": 0.5}
        with pytest.raises(KeyboardInterrupt):
            send(upload)
    send(upload)
    assert "ended 2 processes" in client.get_run(run_id).data.tags["mlflow.note.content"]
    assert "rankeval/record/rankers.json" not in files(client, run_id)


def test_a_resend_draws_what_is_missing(client, store, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(views.KINDS, "rankers", killed)
        with pytest.raises(KeyboardInterrupt):
            deliver(Payload(Target(store, experiment_id="0"), drawn_node(), 1))
    (upload,) = waiting()
    assert "rankeval/record/rankers.json" in files(client, send(upload).run_id)


def test_a_model_arrives_once_and_its_metrics_name_it(client, store, tmp_path):
    scores = Scores("dev", {"AP": 0.5}, "letor", "ab" * 32, "cd" * 32)
    tracked = deliver(
        Payload(Target(store, experiment_id="0"), Node("run", "dev", scores=(scores,), models=(MODEL,)), 1)
    )
    (model_id,) = tracked.models
    model = client.get_logged_model(model_id)
    assert (model.name, model.status.value, model.source_run_id) == ("ranker", "READY", tracked.run_id)
    assert model.params == {"alpha": "1"}
    assert {(one.key, one.value, one.dataset_name) for one in model.metrics} == {("AP", 0.5, "letor")}
    assert [one.model_id for one in client.get_run(tracked.run_id).outputs.model_outputs] == [model_id]
    from pathlib import Path

    folder = Path(mlflow.artifacts.download_artifacts(f"models:/{model_id}", dst_path=str(tmp_path)))
    assert (folder / "model.bin").read_bytes() == b"\x00\xff"
    assert f"model_id: {model_id}" in (folder / "MLmodel").read_text()


MODEL_CALLS = (
    "create_logged_model",
    "log_model_artifacts",
    "log_model_artifact",
    "finalize_logged_model",
    "log_outputs",
)


@pytest.mark.parametrize("answer_lost", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize("name", MODEL_CALLS)
def test_wherever_a_model_breaks_off_it_is_there_once(client, store, monkeypatch, name, answer_lost):
    """A creation whose answer was lost is found at once, and everything else when the upload is sent again."""
    original = getattr(mlflow.MlflowClient, name)

    def cut(*arguments, **options):
        if answer_lost:
            original(*arguments, **options)
        raise MlflowException("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, name, cut)
        with contextlib.suppress(TrackingError):
            tracked = deliver(Payload(Target(store, experiment_id="0"), Node("run", "record", models=(MODEL,)), 1))
    assert (waiting() == []) is (answer_lost and name == "create_logged_model")
    for upload in waiting():
        tracked = send(upload)
    (model,) = client.search_logged_models(["0"])
    assert tracked.models == (model.model_id,)
    assert model.status.value == "READY"
    assert [one.model_id for one in client.get_run(tracked.run_id).outputs.model_outputs] == [model.model_id]


def test_a_model_that_could_not_be_asked_for_is_not_made_again(client, store, monkeypatch):
    """The store is down twice: before the model is finished, and when the resend looks for it."""

    def down(*_):
        raise MlflowException("connection reset")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "finalize_logged_model", down)
        with pytest.raises(TrackingError):
            deliver(Payload(Target(store, experiment_id="0"), Node("run", "record", models=(MODEL,)), 1))
        (upload,) = waiting()
        patched.setattr(mlflow.MlflowClient, "get_logged_model", down)
        with pytest.raises(TrackingError):
            send(upload)
    assert send(upload).models == tuple(one.model_id for one in client.search_logged_models(["0"]))


def test_a_parameter_of_the_user_keeps_its_value(client, store):
    run_id = client.create_run("0").info.run_id
    client.log_param(run_id, "alpha", "1")
    client.log_param(run_id, "system", "bm25")
    deliver(Payload(Target(store, run_id=run_id), Node("run", "dev", params={"alpha": "2", "system": "bm25"}), 1))
    assert client.get_run(run_id).data.params == {"alpha": "1", "system": "bm25", "dev/alpha": "2"}
    node = Node("run", "dev", params={"alpha": "3"}, facts={"other": True})
    client.delete_tag(run_id, "rankeval.complete")
    deliver(Payload(Target(store, run_id=run_id), node, 1))
    assert client.get_run(run_id).data.params["dev/alpha-2"] == "3"


def test_a_run_has_the_times_and_the_status_that_its_node_says(client, store):
    node = Node("run", "record", started_ms=1_700_000_000_000, ended_ms=1_700_000_060_000, status="FAILED")
    info = client.get_run(deliver(Payload(Target(store, experiment_id="0"), node, 1)).run_id).info
    assert (info.start_time, info.end_time, info.status) == (1_700_000_000_000, 1_700_000_060_000, "FAILED")


def test_what_another_process_logged_to_the_run_meanwhile_stays_whole(client, store, monkeypatch):
    """The completeness tag is read again before it is written."""
    run_id = client.create_run("0").info.run_id
    original, calls = mlflow.MlflowClient.log_batch, []

    def beside(self, *arguments, **options):
        if not calls:
            calls.append(1)
            deliver(Payload(Target(store, run_id=run_id), Node("other", "other", params={"b": "1"}), 1))
        return original(self, *arguments, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", beside)
    deliver(Payload(Target(store, run_id=run_id), Node("first", "first", params={"a": "1"}), 1))
    assert client.get_run(run_id).data.tags["rankeval.complete"].count(":") == 2


@pytest.mark.parametrize("linked", [False, True])
def test_the_same_evaluation_logged_twice_to_a_run_is_one_point_of_each_metric(client, small, linked):
    run_id = client.create_run("0").info.run_id
    rkm.log(small(), run_id=run_id)
    time.sleep(0.01)
    model = mlflow.initialize_logged_model("ranker").model_id if linked else None
    rkm.log(small(), run_id=run_id, model_id=model)
    metrics = client.get_run(run_id).data.metrics
    assert {key: len(client.get_metric_history(run_id, key)) for key in metrics} == dict.fromkeys(metrics, 1)
    if linked:
        assert {one.key: one.value for one in client.get_logged_model(model).metrics} == metrics
