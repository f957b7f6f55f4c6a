"""Nothing is lost: what breaks off is kept, goes on in the same run, and is not doubled."""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from pathlib import Path

import mlflow
import pytest
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval.hosts import RunRecord, host
from rankeval_mlflow.packing import record_node
from rankeval_mlflow.parcel import Node, Parcel, Target
from rankeval_mlflow.sending import COMPLETE, send
from rankeval_mlflow.spool import locked, put, read, spool_directory, waiting

WRITES = ("create_experiment", "create_run", "log_inputs", "log_artifacts", "log_batch", "set_tag", "set_terminated")


class Cut:
    """Breaks the connection at the n-th call that writes: before it, or after it with the answer lost."""

    def __init__(self, monkeypatch, *, at, answer_lost):
        self.calls, self.at, self.answer_lost, self.on = 0, at, answer_lost, True
        for name in WRITES:
            monkeypatch.setattr(mlflow.MlflowClient, name, self._cut(getattr(mlflow.MlflowClient, name)))

    def _cut(self, original):
        def call(client, *arguments, **options):
            self.calls += 1
            breaks = self.on and self.calls == self.at
            if breaks and not self.answer_lost:
                raise MlflowException("connection refused")
            answer = original(client, *arguments, **options)
            if breaks:
                raise MlflowException("connection reset, answer lost")
            return answer

        return call


def tree(small):
    return RunRecord(
        "parent",
        params={"seed": 0},
        metrics={"seconds": 1.0},
        artifacts={"report.html": b"<p>"},
        children=(
            RunRecord("ridge", evaluations={"dev": small(), "test": small(seed=1)}),
            RunRecord("trees", evaluations={"dev": small(seed=2)}),
        ),
    )


def stored(client):
    """Everything of every run, but for ids and times; and that no metric stands there twice."""
    experiment = client.get_experiment_by_name("letor")
    found = {}
    for run in client.search_runs([experiment.experiment_id]):
        for key in run.data.metrics:
            assert len(client.get_metric_history(run.info.run_id, key)) == 1
        ours = {key: value for key, value in run.data.tags.items() if key.startswith("rankeval.")}
        ours["rankeval.record"] = ours["rankeval.record"].partition("/")[2]
        files = sorted(file.path for file in client.list_artifacts(run.info.run_id, "rankeval/dev"))
        inputs = sorted(used.dataset.name for used in run.inputs.dataset_inputs)
        assert run.info.run_name not in found, "a run was made twice"
        found[run.info.run_name] = (run.data.metrics, run.data.params, ours, files, inputs, run.info.status)
    return found


@pytest.mark.parametrize("answer_lost", [False, True], ids=["refused", "answer lost"])
def test_wherever_it_breaks_off_resending_gives_the_same_runs_once(
    small, client, monkeypatch, answer_lost, empty_database, tmp_path
):
    """The connection is cut at every writing call in turn, in a store of its own each time."""
    node = record_node(tree(small))  # packed once: the reports are drawn, and that takes a while
    monkeypatch.setattr("rankeval_mlflow.tracker.record_node", lambda _: node)
    log = host("mlflow").tracker().log
    whole = Cut(monkeypatch, at=0, answer_lost=False)
    log(RunRecord("packed"), experiment="letor")
    expected = stored(client)
    assert whole.calls > 15
    assert len(expected) == 3
    for at in range(1, whole.calls + 1):
        database = tmp_path / f"{at}.db"
        database.write_bytes(empty_database.read_bytes())
        uri = f"sqlite:///{database}"
        with monkeypatch.context() as patched:
            cut = Cut(patched, at=at, answer_lost=answer_lost)
            with pytest.raises(TrackingError, match="rankeval mlflow resend"):
                log(RunRecord("packed"), experiment="letor", uri=uri)
            (record,) = waiting()
            cut.on = False
            send(record)
        assert waiting() == []
        assert stored(mlflow.MlflowClient(tracking_uri=uri)) == expected, f"cut at call {at}"


def test_the_message_says_what_happened_where_it_is_kept_and_how_to_send_it(small, monkeypatch, spool):
    Cut(monkeypatch, at=3, answer_lost=False)
    with pytest.raises(TrackingError) as caught:
        rkm.log_evaluation(small())
    (record,) = waiting()
    run_id = record.sent()["runs"]["0"]
    message = str(caught.value)
    assert f"after run {run_id} was begun: connection refused" in message
    assert f"kept in {spool / record.id}" in message
    assert f"rankeval mlflow resend {record.id}" in message


def test_an_incomplete_run_is_refused_until_it_is_sent(small, assert_same, monkeypatch):
    cut = Cut(monkeypatch, at=5, answer_lost=False)
    with pytest.raises(TrackingError):
        rkm.log_evaluation(small())
    (record,) = waiting()
    run_id = record.sent()["runs"]["0"]
    with pytest.raises(InvalidInput, match=re.escape(COMPLETE)):
        rkm.load_evaluation(run_id)
    cut.on = False
    assert send(record).run_id == run_id
    assert_same(small(), rkm.load_evaluation(run_id))


def test_the_record_is_on_disk_before_the_store_is_asked(small, monkeypatch):
    seen = []

    def asked(*_, **__):
        seen.extend(waiting())
        raise MlflowException("down")

    monkeypatch.setattr(mlflow.MlflowClient, "search_experiments", asked)
    with pytest.raises(TrackingError):
        rkm.log_evaluation(small())
    (record,) = seen
    assert (
        record.folder / "files" / "0" / "rankeval" / "dev" / "evaluation.parquet"
    ).read_bytes() == small().to_bytes()


def test_a_parcel_is_read_back_as_it_was_written(small):
    parcel = Parcel(
        Target("http://localhost:1", None, None, None, "letor"),
        record_node(tree(small)),
        1_700_000_000_000,
        {"mlflow.user": "me"},
        "m-1",
        ("ranker", "7"),
    )
    assert read(put(parcel)) == parcel


def _parcel(uri="http://127.0.0.1:9"):
    return Parcel(Target(uri, experiment_name="letor"), Node("run", "record", files={"a.txt": b"abc"}), 0)


def test_a_half_written_folder_is_not_seen(spool):
    spool.mkdir()
    (spool / ".20260101T000000-00000000.draft").mkdir()
    (spool / ".20260101T000000-00000000.draft" / "record.json").write_text("{")
    (spool / "20260101T000000-00000000").mkdir()
    assert waiting() == []


def test_a_record_that_was_altered_is_not_sent():
    record = put(_parcel())
    (record.files("0") / "a.txt").write_bytes(b"abd")
    with pytest.raises(TrackingError, match="is not what was written there"):
        send(record)


def test_a_record_of_another_format_is_named():
    record = put(_parcel())
    path = record.folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(TrackingError, match="has format 99, this version of rankeval reads 1"):
        send(record)


def _hold(folder, ready, done):
    """Hold the lock of a record, in another process."""
    from rankeval_mlflow.spool import Record

    with locked(Record(Path(folder))) as ours:
        ready.put(ours)
        done.get()


def test_two_processes_do_not_send_the_same_record():
    record = put(_parcel())
    context = multiprocessing.get_context("spawn")
    ready, done = context.Queue(), context.Queue()
    other = context.Process(target=_hold, args=(str(record.folder), ready, done))
    other.start()
    assert ready.get(timeout=60) is True
    with pytest.raises(TrackingError, match="being sent by another process"):
        send(record)
    other.kill()
    other.join()
    with locked(record) as ours:
        assert ours, "the lock went with its process"


def test_a_spool_that_cannot_be_written_is_named(small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "file"))
    with pytest.raises(TrackingError, match="set RANKEVAL_SPOOL"):
        rkm.log_evaluation(small())


def test_without_a_setting_the_spool_is_in_the_users_data_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("RANKEVAL_SPOOL")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert spool_directory() == tmp_path / "data" / "rankeval" / "spool"


def test_only_its_owner_reads_the_spool(spool):
    record = put(_parcel("postgresql://me:secret@host/db"))
    assert (spool.stat().st_mode & 0o077, record.folder.stat().st_mode & 0o077) == (0, 0)


def test_a_dead_server_is_reported_in_seconds_and_without_its_password(small, capfd):
    mlflow.set_tracking_uri("http://me:secret@127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(TrackingError) as caught:
        rkm.log_evaluation(small())
    assert time.monotonic() - started < 10
    assert "http://me:***@127.0.0.1:9 did not take it: Connection refused\n" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert len(waiting()) == 1
    assert capfd.readouterr() == ("", "")


def test_settings_of_the_user_stand(small, monkeypatch):
    from os import environ

    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    seen = {}
    original = mlflow.MlflowClient.create_run

    def traced(*arguments, **options):
        seen.update(environ)
        return original(*arguments, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "create_run", traced)
    rkm.log_evaluation(small())
    assert seen["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"
    assert seen["MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR"] == "1"
    assert "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR" not in environ
