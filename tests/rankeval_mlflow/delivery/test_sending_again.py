"""What waits is sent once: by a rerun of the same work, by two resends at once, to a store that moved."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import forking
import mlflow
import pytest
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import RankevalWarning, TrackingError
from rankeval.tracking import RunRecord, host
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver, send
from rankeval_mlflow.delivery.spool import identity, locked_upload, put, read_payload, tidy, waiting


@pytest.fixture
def cut_off(monkeypatch):
    """Return what calls something while the store is down half-way."""

    def call(what, *arguments, **options):
        def down(*_, **__):
            raise MlflowException("down")

        with monkeypatch.context() as patched:
            patched.setattr(mlflow.MlflowClient, "log_batch", down)
            with pytest.raises(TrackingError):
                what(*arguments, **options)

    return call


def test_a_rerun_sends_the_waiting_upload_and_no_second_one(small, client, cut_off, assert_same):
    cut_off(rkm.log, small())
    (upload,) = waiting()
    with pytest.warns(RankevalWarning, match=f"the upload {upload.id} of the same work waited"):
        run = rkm.log(small())
    assert run.run_id == client.search_runs(["0"])[0].info.run_id
    assert len(client.search_runs(["0"])) == 1
    assert waiting() == []
    assert_same(small(), rkm.load_evaluation(run))


def test_equal_evaluations_of_which_none_waits_are_logged_once_each(small, client):
    runs = {rkm.log(small()).run_id for _ in range(3)}
    assert len(runs) == len(client.search_runs(["0"])) == 3


def test_other_work_is_no_twin(small, client, cut_off):
    cut_off(rkm.log, small())
    rkm.log(small(seed=1))
    rkm.log(small(), role="test")
    with mlflow.start_run():
        rkm.log(small())
    assert len(waiting()) == 1
    assert len(client.search_runs(["0"])) == 4


def test_a_key_stands_for_the_content(client, cut_off):
    """A second run of a plan measures other seconds: it is the same work nevertheless."""
    log = host("mlflow").tracker().log
    record = RunRecord("run", metrics={"seconds": 1.0}, key="plan 1")
    cut_off(log, record, experiment="letor")
    with pytest.warns(RankevalWarning, match="same work"):
        run = log(replace(record, metrics={"seconds": 2.0}), experiment="letor")
    assert client.get_run(run.run_id).data.metrics == {"seconds": 1.0}
    cut_off(log, record, experiment="letor")
    log(replace(record, key="plan 2"), experiment="letor")
    log(record, experiment="elsewhere")
    assert len(waiting()) == 1


def test_what_another_process_sends_is_no_twin(small, client, cut_off):
    cut_off(rkm.log, small())
    (upload,) = waiting()
    with locked_upload(upload):
        other = rkm.log(small()).run_id
    assert send(upload).run_id != other
    assert len(client.search_runs(["0"])) == 2


def test_what_a_store_refused_for_good_is_no_twin(small, client, cut_off):
    cut_off(rkm.log, small())
    (upload,) = waiting()
    upload.remember({**upload.sent(), "refused": "no rights"})
    rkm.log(small())
    assert waiting() == [upload]
    assert len(client.search_runs(["0"])) == 2


@pytest.mark.further
def test_two_resends_at_once_end_well_both(small, client, cut_off, tmp_path, store):
    for seed in range(3):
        cut_off(rkm.log, small(seed=seed))
    program = ["from rankeval.cli import main; main()", "mlflow", "resend"]
    settings = {**os.environ, "MLFLOW_TRACKING_URI": store, "TMPDIR": str(tmp_path)}
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda _: forking.run(*program, env=settings), range(2)))
    assert [run.returncode for run in said] == [0, 0], said
    assert waiting() == []
    assert len(client.search_runs(["0"])) == 3
    assert all(run.info.status == "FINISHED" for run in client.search_runs(["0"]))


def test_of_two_runs_of_one_creation_the_empty_one_is_ended_and_deleted(small, client, cut_off, monkeypatch):
    """As a server makes them that was still at the first when it was asked again."""
    create = mlflow.MlflowClient.create_run

    def twice(*arguments, **options):
        create(*arguments, **options)
        return create(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "create_run", twice)
        cut_off(rkm.log, small())
    assert [run.info.status for run in client.search_runs(["0"])] == ["RUNNING", "RUNNING"]
    (upload,) = waiting()
    run_id = upload.sent()["runs"]["0"]
    assert send(upload).run_id == run_id
    states = {run.info.run_id: (run.info.status, run.info.lifecycle_stage) for run in client.search_runs(["0"], "", 3)}
    assert states.pop(run_id) == ("FINISHED", "active")
    assert list(states.values()) == [("KILLED", "deleted")]


def test_mlflow_repeats_no_creation_whatever_the_user_set(small, monkeypatch):
    """It would make a second run; other requests have the user's patience."""
    create, name, seen = mlflow.MlflowClient.create_run, "MLFLOW_HTTP_REQUEST_MAX_RETRIES", []
    monkeypatch.setenv(name, "5")

    def watched(*arguments, **options):
        seen.append(os.environ[name])
        return create(*arguments, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "create_run", watched)
    rkm.log(small())
    assert (seen, os.environ[name]) == (["0"], "5")


def test_a_store_that_moved_gets_the_rest_in_the_same_run(small, cut_off, store, tmp_path, assert_same):
    cut_off(rkm.log, small())
    (upload,) = waiting()
    run_id = upload.sent()["runs"]["0"]
    shutil.move(store.removeprefix("sqlite:///"), tmp_path / "moved.db")
    moved = f"sqlite:///{tmp_path}/moved.db"
    assert send(upload, uri=moved).run_id == run_id
    mlflow.set_tracking_uri(moved)
    assert_same(small(), rkm.load_evaluation(run_id))


@pytest.mark.parametrize("other", [None, "sqlite:////models.db"])
def test_a_registry_in_the_store_moves_with_it_and_another_one_stays(other, store, tmp_path, monkeypatch):
    seen = []

    def asked(*addresses):
        seen.append(addresses)
        raise MlflowException("down")

    upload = put(Payload(Target(store, registry_uri=other or store), Node("run", "record"), 0))
    monkeypatch.setattr("rankeval_mlflow.delivery.sending.connected", asked)
    moved = f"sqlite:///{tmp_path}/moved.db"
    with pytest.raises(TrackingError):
        send(upload, uri=moved)
    assert seen == [(moved, other or moved)]


def test_no_secret_is_kept_and_files_are_for_their_owner(spool):
    root = Node("run", "record", files={"a.txt": b"a"})
    for uri in ("http://me:s3cret@127.0.0.1:9", "http://127.0.0.1:9/?token=s3cret"):
        upload = put(Payload(Target(uri, registry_uri=uri, experiment_name="x"), root, 0))
        files = [path for path in spool.rglob("*") if path.is_file()]
        assert files
        assert all(path.stat().st_mode & 0o077 == 0 for path in [spool, upload.folder, *files])
        assert all(b"s3cret" not in path.read_bytes() for path in files)
        assert read_payload(upload).target.uri.rstrip("/") == "http://127.0.0.1:9"
        mlflow.set_tracking_uri(uri)
        with pytest.raises(TrackingError) as caught:
            send(upload)
        assert "s3cret" not in str(caught.value)
        upload.remove()


def test_the_secret_is_no_part_of_the_identity():
    one, other = (
        Payload(Target(f"http://me:{word}@host", experiment_name="x"), Node("run", "record"), 0)
        for word in ("before", "after")
    )
    assert identity(one) == identity(other)


def test_what_killed_processes_left_behind_is_removed(spool):
    upload = put(Payload(Target("http://127.0.0.1:9"), Node("run", "record"), 0))
    (spool / ".a.draft").mkdir()
    (spool / ".b.gone").mkdir()
    (spool / ".c.lock").touch()
    os.utime(spool / ".a.draft", (0, 0))
    tidy()
    assert {path.name for path in spool.iterdir()} == {upload.id, ".b.gone"}, "a young one may be at work"


def test_an_upload_is_locked_before_it_gets_its_name(monkeypatch, store):
    """Else another process with the same work could send it first."""
    seen = []

    def asked(*_):
        (upload,) = waiting()
        with locked_upload(upload) as ours:
            seen.append(ours)
        raise MlflowException("down")

    monkeypatch.setattr("rankeval_mlflow.delivery.sending.connected", asked)
    with pytest.raises(TrackingError):
        deliver(Payload(Target(store), Node("run", "record"), 0))
    assert seen == [False]
