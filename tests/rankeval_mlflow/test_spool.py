"""Nothing is lost: what breaks off is kept, goes on in the same run, and is not doubled."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import forking
import mlflow
import pytest
from circles import choose
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval.evaluation import to_bytes
from rankeval.tracking import RunRecord, host
from rankeval_mlflow.delivery.payload import (
    DatasetUse,
    Node,
    Payload,
    Rendering,
    SavedModel,
    Scores,
    Target,
    manifest,
    pieces_of,
    roles_of,
    walk,
)
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import locked_upload, put, read_payload, spool_directory, waiting
from rankeval_mlflow.packing.record import record_node
from rankeval_mlflow.run_names import COMPLETE

WRITES = ("create_experiment", "create_run", "log_inputs", "log_artifacts", "log_batch", "set_tag", "set_terminated")


class Cut:
    """Breaks the connection at the n-th call that writes: before it, or after it with the answer lost.

    It stays broken for calls that write until it is mended: a creation is tried twice.
    """

    def __init__(self, monkeypatch, *, at, answer_lost):
        self.calls, self.at, self.answer_lost, self.on = 0, at, answer_lost, True
        for name in WRITES:
            monkeypatch.setattr(mlflow.MlflowClient, name, self._cut(getattr(mlflow.MlflowClient, name)))

    def _cut(self, original):
        def call(client, *arguments, **options):
            self.calls += 1
            breaks = self.on and 0 < self.at <= self.calls
            if breaks and not (self.answer_lost and self.calls == self.at):
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


@pytest.mark.parametrize("every", [choose(default=8, full=4), pytest.param(1, marks=pytest.mark.kill)])
@pytest.mark.parametrize("answer_lost", [False, True], ids=["refused", "answer lost"])
def test_wherever_it_breaks_off_resending_gives_the_same_runs_once(
    small, client, monkeypatch, answer_lost, every, empty_database, tmp_path
):
    """The connection is cut at every writing call in turn, in a store of its own each time.

    Of the calls that are not tried for refusals, the answers are lost.
    """
    node = record_node(tree(small))
    monkeypatch.setattr("rankeval_mlflow.recording.record_node", lambda _: node)
    log = host("mlflow").tracker().log
    whole = Cut(monkeypatch, at=0, answer_lost=False)
    log(RunRecord("packed"), experiment="letor")
    expected = stored(client)
    assert whole.calls > 15
    assert len(expected) == 3
    for at in range(1 + answer_lost * every // 2, whole.calls + 1, every):
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
        rkm.log(small())
    (record,) = waiting()
    run_id = record.sent()["runs"]["0"]
    message = str(caught.value)
    assert f"after run {run_id} was begun: connection refused" in message
    assert f"kept in {spool / record.id}" in message
    assert f"rankeval mlflow resend {record.id}" in message


def test_the_record_is_on_disk_before_the_store_is_asked(small, monkeypatch):
    seen = []

    def asked(*_, **__):
        seen.extend(waiting())
        raise MlflowException("down")

    monkeypatch.setattr(mlflow.MlflowClient, "search_experiments", asked)
    with pytest.raises(TrackingError):
        rkm.log(small())
    (record,) = seen
    assert (record.folder / "files" / "0" / "rankeval" / "dev" / "evaluation.parquet").read_bytes() == to_bytes(small())


def _payload(uri="http://127.0.0.1:9"):
    return Payload(Target(uri, experiment_name="letor"), Node("run", "record", files={"a.txt": b"abc"}), 0)


def test_a_record_that_was_altered_is_not_sent():
    record = put(_payload())
    (record.files("0") / "a.txt").write_bytes(b"abd")
    with pytest.raises(TrackingError, match="was altered; it is not sent"):
        send(record)


def test_a_record_of_another_format_is_named():
    record = put(_payload())
    path = record.folder / "record.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(TrackingError, match="has format 99, this version of rankeval reads 2"):
        send(record)


HOLD = """
import sys, time
from pathlib import Path
from rankeval_mlflow.delivery.spool import PendingUpload, locked_upload
with locked_upload(PendingUpload(Path(sys.argv[1]))) as ours:
    print(ours, flush=True)
    time.sleep(600)
"""


KILLED = """
import os, signal, sys
import mlflow, rankeval, rankeval_mlflow
real = mlflow.MlflowClient.log_batch

def killed(*arguments, **options):
    real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

mlflow.MlflowClient.log_batch = killed
rankeval_mlflow.log(rankeval.Evaluation.load(sys.argv[1]))
"""


def test_a_client_that_is_killed_while_it_sends_loses_nothing(small, client, assert_same, tmp_path, store):
    """The kill of the default circle; test_kills.py kills servers and clients at any point."""
    small().save(tmp_path / "evaluation.parquet")
    settings = {**os.environ, "MLFLOW_TRACKING_URI": store}
    killed = forking.run(KILLED, str(tmp_path / "evaluation.parquet"), env=settings)
    assert killed.returncode, killed
    (upload,) = waiting()
    (begun,) = client.search_runs(["0"])
    assert (begun.info.status, COMPLETE in begun.data.tags) == ("RUNNING", False)
    assert send(upload).run_id == begun.info.run_id
    assert (waiting(), [run.info.status for run in client.search_runs(["0"])]) == ([], ["FINISHED"])
    assert len(client.get_metric_history(begun.info.run_id, "AP")) == 1
    assert_same(small(), rkm.load_evaluation(begun.info.run_id))


@pytest.mark.further
def test_two_processes_do_not_send_the_same_record():
    record = put(_payload())
    command = [sys.executable, "-c", HOLD, str(record.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "True\n"
        with pytest.raises(TrackingError, match="another process is sending the upload"):
            send(record, patience=0.2)
        other.kill()
    with locked_upload(record) as ours:
        assert ours, "the lock went with its process"


def test_a_dead_server_is_reported_in_seconds_and_without_its_password(small, capfd):
    mlflow.set_tracking_uri("http://me:secret@127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(TrackingError) as caught:
        rkm.log(small())
    assert time.monotonic() - started < 60  # left alone, MLflow tries for about four minutes
    assert "store http://127.0.0.1:9 refused: Connection refused\n" in str(caught.value)
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
    rkm.log(small())
    assert seen["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "0"
    assert seen["MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR"] == "1"
    assert "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR" not in environ


def whole_tree():
    """Return a tree of runs in which every part stands once, built by hand."""
    scores = Scores("dev", {"AP": 0.25, "nDCG_at_10": 0.5}, "letor", "ab" * 32, "cd" * 32)
    held_out = Scores("test", {"AP": 0.125}, "letor-test", "ef" * 32, "01" * 32)
    child = Node("child", "record", metrics={"loss": 0.75}, scores=(held_out,), files={"b/c.txt": b"bc"})
    return Node(
        "root",
        "record",
        params={"depth": "3"},
        metrics={"seconds": 1.5},
        tags={"team": "search"},
        scores=(scores, held_out),
        datasets=(
            DatasetUse("letor", "ab" * 32, "dev", "/data/letor.txt", {"num_rows": 8, "num_queries": 2}),
            DatasetUse("letor-test", "ef" * 32, "test", None, {"num_rows": 4}),
        ),
        files={"a.txt": b"abc"},
        sections={"dev": "some *words*"},
        children=(child, Node("last", "record")),
        steps=(("loss", 0.5, 1), ("loss", 0.25, 2)),
        facts={"dev": {"judgments": "ab"}},
    )


RECORD = """
{"format": 2, "key": null, "created_ms": 1700000000000, "target": {"uri": "http://host:1", "registry_uri": null,
"run_id": "r", "experiment_id": null, "experiment_name": "letor"}, "context": {"user": "me"}, "model_id": "m-1",
"model_version": ["ranker", "7"], "nodes": {"0": {"name": "root", "label": "record", "params": {"depth": "3"},
"metrics": {"seconds": 1.5}, "tags": {"team": "search"}, "scores": [{"role": "dev", "metrics": {"AP": 0.25,
"nDCG_at_10": 0.5}, "dataset_name": "letor", "dataset_digest":
"abababababababababababababababababababababababababababababababab", "evaluation_sha256":
"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd", "step": 0}, {"role": "test", "metrics": {"AP":
0.125}, "dataset_name": "letor-test", "dataset_digest":
"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef", "evaluation_sha256":
"0101010101010101010101010101010101010101010101010101010101010101", "step": 0}], "datasets": [{"name": "letor",
"digest": "abababababababababababababababababababababababababababababababab", "role": "dev", "source":
"/data/letor.txt", "profile": {"num_rows": 8, "num_queries": 2}, "given": {}}, {"name": "letor-test", "digest":
"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef", "role": "test", "source": null, "profile":
{"num_rows": 4}, "given": {}}], "files": {"a.txt":
"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}, "sections": {"dev": "some *words*"},
"started_ms": null, "ended_ms": null, "status": "FINISHED", "steps": [["loss", 0.5, 1], ["loss", 0.25, 2]],
"renderings": [{"kind": "evaluation", "source": "a.txt", "into": "x", "options": {"n": 3}, "tables": ["t.json"]}],
"models": [{"name": "ranker", "params": {"k": "v"}, "tags": {}, "flavor": null, "model_type": "ranker", "files":
{"MLmodel": "62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a"}}], "facts": {"dev": {"judgments":
"ab"}}, "columns": [],
"mark": "", "revision": null, "best": []}, "0-0": {"params": {}, "metrics": {"loss": 0.75}, "tags": {}, "scores":
[{"role": "test",
"metrics": {"AP": 0.125}, "dataset_name": "letor-test", "dataset_digest":
"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef", "evaluation_sha256":
"0101010101010101010101010101010101010101010101010101010101010101", "step": 0}], "datasets": [], "files": {"b/c.txt":
"1e0bbd6c686ba050b8eb03ffeedc64fdc9d80947fce821abbe5d6dc8d252c5ac"}, "sections": {}, "started_ms": null, "ended_ms":
null, "status": "FINISHED", "steps": [], "renderings": [], "models": [], "facts": {}, "name": "child", "label":
"record", "columns": [],
"mark": "", "revision": null, "best": []}, "0-1": {"params": {}, "metrics": {}, "tags": {}, "scores": [],
"datasets": [], "files": {},
"sections": {}, "started_ms": null, "ended_ms": null, "status": "FINISHED", "steps": [], "renderings": [], "models":
[], "facts": {}, "name": "last", "label": "record", "columns": [],
"mark": "", "revision": null, "best": []}}}
"""


def test_a_record_is_written_so_that_the_next_version_reads_it():
    """The file, byte for byte in its content: what waits in a spool outlives an update."""
    root = replace(
        whole_tree(),
        renderings=(Rendering("evaluation", "a.txt", "x", {"n": 3}, ("t.json",)),),
        models=(SavedModel("ranker", {"MLmodel": b"m"}, {"k": "v"}, model_type="ranker"),),
    )
    payload = Payload(Target("http://host:1", None, "r", None, "letor"), root, 1_700_000_000_000, {"user": "me"})
    record = put(replace(payload, model_id="m-1", model_version=("ranker", "7")))
    assert re.fullmatch(r"20231114T221320-[0-9a-f]{8}", record.id)
    written = json.loads((record.folder / "record.json").read_text("utf-8"))
    assert re.fullmatch("[0-9a-f]{64}", written.pop("identity"))
    assert written == json.loads(RECORD)
    files = {str(path.relative_to(record.folder)) for path in record.folder.rglob("*") if path.is_file()}
    assert files == {"record.json", "files/0/a.txt", "files/0-0/b/c.txt", "models/0/0/MLmodel"}
    assert record.sent() == {"runs": {}, "models": {}}
    assert read_payload(record) == replace(payload, model_id="m-1", model_version=("ranker", "7"))
    for node in written["nodes"].values():  # as a version without runs that grow wrote it
        del node["mark"], node["revision"], node["best"]
    (record.folder / "record.json").write_text(json.dumps({**written, "identity": ""}))
    assert read_payload(record) == replace(payload, model_id="m-1", model_version=("ranker", "7"))


def test_the_manifest_says_what_was_written_but_for_times_and_drawn_files():
    root = whole_tree()
    said = json.loads(manifest(root))
    assert said["files"] == {"a.txt": hashlib.sha256(b"abc").hexdigest()}
    assert (said["metrics"], said["params"], said["tags"]) == (root.metrics, root.params, root.tags)
    assert said["facts"] == {"dev": {"judgments": "ab"}}
    drawn = Rendering("evaluation", "a.txt")
    for same in (
        replace(root, started_ms=1, ended_ms=2),
        replace(root, renderings=(drawn,)),
        replace(root, children=()),
    ):
        assert manifest(same) == manifest(root)
    for other in (replace(root, facts={}), replace(root, files={"a.txt": b"abd"}), replace(root, steps=())):
        assert manifest(other) != manifest(root)
    by_number = replace(root, facts={"dev": {10: "ten", 9: "nine"}})
    assert manifest(by_number) == manifest(replace(root, facts={"dev": {"10": "ten", "9": "nine"}}))
    assert list(json.loads(manifest(by_number))["facts"]["dev"]) == ["10", "9"], "facts keep their order"
    shuffled = replace(root, metrics={"seconds": 1.5, "a": 1.0}), replace(root, metrics={"a": 1.0, "seconds": 1.5})
    assert manifest(shuffled[0]) == manifest(shuffled[1])


def test_all_that_was_packed_is_in_the_store_where_and_when_it_belongs(client, store):
    """Runs begin and end at the time of the record, and metrics stand at step 0 of that time, with their data set."""
    payload = Payload(Target(store, None, None, None, "letor"), whole_tree(), 1_700_000_000_000, {"mlflow.user": "me"})
    record = put(payload)
    tracked = send(record)
    assert not record.folder.exists()
    assert list(spool_directory().iterdir()) == []
    root, first, last = (
        client.get_run(run_id) for run_id in (tracked.run_id, *(child.run_id for child in tracked.children))
    )
    experiment_id = client.get_experiment_by_name("letor").experiment_id
    for place, name, run in (("0", "root", root), ("0-0", "child", first), ("0-1", "last", last)):
        assert (run.info.run_name, run.info.status, run.info.experiment_id) == (name, "FINISHED", experiment_id)
        assert run.info.start_time == 1_700_000_000_000
        assert 0 < run.info.end_time - run.info.start_time < 60_000, "as long as the sending took"
        assert run.data.tags["rankeval.record"] == f"{record.id}/{place}"
        assert run.data.tags["mlflow.user"] == "me"
        assert run.data.tags.get("mlflow.parentRunId") == (None if place == "0" else root.info.run_id)
        node = dict(walk(payload.root))[place]
        assert pieces_of(run.data.tags) == {"record": hashlib.sha256(manifest(node)).hexdigest()[:16]}
        assert set(roles_of(run.data.tags)) == {scores.role for scores in node.scores}
    assert root.data.tags[COMPLETE].startswith("record(dev,test):")
    assert last.data.tags[COMPLETE].startswith("record:")
    assert root.data.params == {"depth": "3"}
    assert root.data.metrics == {"seconds": 1.5, "AP": 0.25, "nDCG_at_10": 0.5, "test/AP": 0.125, "loss": 0.25}
    assert [(one.value, one.step) for one in client.get_metric_history(root.info.run_id, "loss")] == [
        (0.5, 1),
        (0.25, 2),
    ]
    assert first.data.metrics == {"loss": 0.75, "AP": 0.125}
    assert (root.data.tags["team"], root.data.tags["rankeval.role"]) == ("search", "dev")
    assert "some *words*" in root.data.tags["mlflow.note.content"]
    assert first.data.tags["rankeval.role"] == "test"
    assert "mlflow.note.content" not in first.data.tags
    assert "rankeval.role" not in last.data.tags
    for run in (root, first):
        for key in {*run.data.metrics} - {"loss"}:
            (metric,) = client.get_metric_history(run.info.run_id, key)
            assert (metric.timestamp, metric.step) == (1_700_000_000_000, 0)
    used = {one.dataset.name: one for one in root.inputs.dataset_inputs}
    found = {
        name: (
            one.dataset.digest,
            one.dataset.source_type,
            json.loads(one.dataset.source),
            json.loads(one.dataset.profile),
        )
        for name, one in used.items()
    }
    assert found == {
        "letor": ("ab" * 8, "local", {"uri": "/data/letor.txt"}, {"num_rows": 8, "num_queries": 2}),
        "letor-test": ("ef" * 8, "code", {"tags": {}}, {"num_rows": 4}),
    }
    assert first.inputs.dataset_inputs == last.inputs.dataset_inputs == []
    assert [file.path for file in client.list_artifacts(root.info.run_id)] == ["a.txt", "rankeval"]
    assert [file.path for file in client.list_artifacts(first.info.run_id, "b")] == ["b/c.txt"]
    assert [file.path for file in client.list_artifacts(last.info.run_id)] == ["rankeval"]


def test_everything_is_flushed_to_the_disk_before_it_gets_its_name(monkeypatch):
    """A record that is seen is whole, after a power cut too: no file is renamed that was not synced."""
    synced, renamed = [], []
    sync, replace_file = os.fsync, Path.replace

    def synced_first(path, target):
        renamed.append(path.stat().st_ino)
        assert renamed == synced
        assert path.stat().st_size > 0
        return replace_file(path, target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_ino), sync(descriptor)))
    monkeypatch.setattr(Path, "replace", synced_first)
    record = put(_payload())
    record.remember({"runs": {"0": "x"}})
    files = [path.stat().st_ino for path in record.folder.rglob("*") if path.is_file()]
    assert sorted(files) == sorted(renamed)
    assert len(renamed) == 3
    assert record.sent() == {"runs": {"0": "x"}, "models": {}}


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../up", "a/../../up", "a\\b"])
def test_a_path_that_leads_out_of_its_folder_is_refused_and_nothing_is_left(spool, path):
    payload = Payload(Target("http://127.0.0.1:9"), Node("run", "record", files={"a.txt": b"a", path: b"x"}), 0)
    with pytest.raises(InvalidInput, match=r"expected a path such as 'plots/curve\.png'"):
        put(payload)
    assert list(spool.iterdir()) == []


def test_a_disk_that_fills_up_leaves_nothing_behind(spool, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        put(_payload())
    assert list(spool.iterdir()) == []


def test_records_wait_in_the_order_of_their_time(spool):
    """Whatever else lies there: drafts, locks, folders without a record, files."""
    assert waiting() == []
    made = [put(replace(_payload(), created_ms=1000 * second)) for second in (30, 10, 20)]
    (spool / "00000000T000000-notes").mkdir()
    (spool / ".hidden").mkdir()
    (spool / ".hidden" / "record.json").write_text("{}")
    (spool / "file").write_text("")
    assert waiting() == [made[1], made[2], made[0]]
    with locked_upload(made[1]) as ours:
        assert ours
        assert waiting() == [made[1], made[2], made[0]]
    made[1].remove()
    assert waiting() == [made[2], made[0]]
    assert made[1].id not in {path.name.strip(".") for path in spool.iterdir()}


def test_no_lock_file_stays(spool):
    record = put(_payload())
    for _ in range(2):
        with locked_upload(record) as ours:
            assert ours
            with locked_upload(record) as again:
                assert not again
        assert [path.name for path in spool.iterdir()] == [record.id]
    with locked_upload(record):
        record.remove()
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize("variable", [None, ""])
def test_the_users_data_directory_is_that_of_the_desktop_standard(monkeypatch, tmp_path, variable):
    monkeypatch.delenv("RANKEVAL_SPOOL")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", variable or "")
    assert spool_directory() == tmp_path / ".local" / "share" / "rankeval" / "spool"
    monkeypatch.setenv("RANKEVAL_SPOOL", "~/here")
    assert spool_directory() == tmp_path / "here"
    monkeypatch.setenv("RANKEVAL_SPOOL", "here")
    assert spool_directory() == tmp_path / "here"
    assert spool_directory().is_absolute()


def test_a_record_that_names_a_file_elsewhere_is_told_so():
    """The path itself is refused, as when it was packed; other alterations are told as such."""
    for path, kind, says in (
        ("../record.json", InvalidInput, "the path of a file is '../record.json'"),
        ("b", TrackingError, "altered"),
    ):
        record = put(_payload())
        file = record.folder / "record.json"
        plain = json.loads(file.read_text())
        plain["nodes"]["0"]["files"] = {path: "00"}
        file.write_text(json.dumps(plain))
        with pytest.raises(kind, match=says):
            read_payload(record)


def test_a_record_that_is_gone_is_not_sent():
    record = put(_payload())
    record.remove()
    assert send(record) is None, "another process sent or discarded it"


def test_an_experiment_that_another_process_makes_meanwhile_is_taken(client, store, monkeypatch):
    """Asked for, not there, and there when it is to be made; any other refusal is told."""
    by_name, asked = mlflow.MlflowClient.get_experiment_by_name, []

    def late(self, name):
        asked.append(name)
        if len(asked) == 1:
            mlflow.MlflowClient.create_experiment(client, name)
            return None
        return by_name(self, name)

    payload = Payload(Target(store, experiment_name="letor"), Node("run", "record"), 0)
    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "get_experiment_by_name", late)
        run_id = send(put(payload)).run_id
    assert client.get_run(run_id).info.experiment_id == client.get_experiment_by_name("letor").experiment_id
    refused = put(Payload(Target(store, experiment_name="x" * 501), Node("run", "record"), 0))
    with pytest.raises(TrackingError, match=r"refused: .*500[^$]*would refuse it again as it is"):
        send(refused)
    client.delete_experiment(client.get_experiment_by_name("letor").experiment_id)
    with pytest.raises(InvalidInput, match="'letor' was deleted; restore it"):
        send(put(payload))
