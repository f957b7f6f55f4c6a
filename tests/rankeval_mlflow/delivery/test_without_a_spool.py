"""If the spool cannot be written, an upload is kept among the temporary files, or else sent from memory."""

from __future__ import annotations

import errno

import mlflow
import pytest
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow.delivery import spool as spool_room
from rankeval_mlflow.delivery.payload import Node, Payload, SavedModel, Target
from rankeval_mlflow.delivery.sending import deliver, send
from rankeval_mlflow.delivery.spool import waiting


@pytest.fixture
def no_spool(monkeypatch, tmp_path):
    """Put a file in the way of the spool."""
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "file" / "spool"))
    return tmp_path / "file"


@pytest.fixture
def nowhere(no_spool, monkeypatch):  # noqa: ARG001 - for its effect
    """Leave no directory that can be written."""
    monkeypatch.setattr("rankeval_mlflow.delivery.spool.spare_directory", lambda: None)


@pytest.mark.usefixtures("no_spool")
def test_without_a_spool_an_upload_is_kept_among_the_temporary_files(small, assert_same, monkeypatch, tmp_path):
    with pytest.warns(
        RankevalWarning, match=r"cannot be written \(Not a directory\); until it is sent.*RANKEVAL_SPOOL"
    ):
        run = rkm.log_evaluation(small())
    assert_same(small(), rkm.load_evaluation(run))
    assert list((tmp_path / "spare").iterdir()) == []

    def down(*_, **__):
        raise MlflowException("down")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.warns(RankevalWarning), pytest.raises(TrackingError, match="resend"):
            rkm.log_evaluation(small())
    (upload,) = waiting()
    assert upload.folder.parent == tmp_path / "spare"
    send(upload)
    assert waiting() == []


@pytest.mark.usefixtures("nowhere")
def test_without_any_directory_a_store_of_files_is_refused_with_what_to_do(small):
    with (
        pytest.warns(RankevalWarning, match="nothing is kept on disk: an upload is sent from memory"),
        pytest.raises(TrackingError, match="set TMPDIR or RANKEVAL_SPOOL"),
    ):
        rkm.log_evaluation(small())


@pytest.mark.server
@pytest.mark.usefixtures("nowhere")
def test_without_any_directory_a_server_gets_everything_from_memory(small, server, store, assert_same):  # noqa: ARG001
    mlflow.set_tracking_uri(server.uri)
    mlflow.set_experiment("from memory")
    with pytest.warns(RankevalWarning, match="sent from memory, and is lost if that fails"):
        run = rkm.log_evaluation(small())
    assert_same(small(), rkm.load_evaluation(run))
    client = mlflow.MlflowClient()
    assert {file.path for file in client.list_artifacts(run.run_id, "rankeval/dev")} >= {
        "rankeval/dev/evaluation.parquet",
        "rankeval/dev/manifest.json",
        "rankeval/dev/report.html",
    }
    model = SavedModel("ranker", {"MLmodel": b"flavors: {}\n", "deep/er.bin": b"\x00\xff"})
    with pytest.warns(RankevalWarning):
        tracked = deliver(
            Payload(Target(server.uri, experiment_name="from memory"), Node("m", "record", models=(model,)), 1)
        )
    (model_id,) = tracked.models
    folder = mlflow.artifacts.download_artifacts(f"models:/{model_id}")
    from pathlib import Path

    assert (Path(folder) / "deep" / "er.bin").read_bytes() == b"\x00\xff"


@pytest.mark.usefixtures("nowhere")
def test_what_is_lost_from_memory_is_told(small, monkeypatch):
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.warns(RankevalWarning),
        pytest.raises(TrackingError, match="Connection refused\nNothing could be kept on disk: log it again"),
    ):
        rkm.log_evaluation(small())


def test_a_spool_that_is_full_after_the_record_was_written_costs_nothing(small, assert_same, monkeypatch):
    """Manifest, progress and drawings are written while an upload is sent: they have another way."""
    real = spool_room._write

    def full(path, content):
        if "files" in path.parts and "manifest" not in path.name:
            return real(path, content)
        if path.name == "record.json" or ("rankeval-" in str(path.parent) and "spool" not in path.parts):
            return real(path, content)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool_room, "_write", full)
    with pytest.warns(RankevalWarning, match="No space left on device.*a resend may make a second run"):
        run = rkm.log_evaluation(small())
    assert_same(small(), rkm.load_evaluation(run))
    found = mlflow.MlflowClient().list_artifacts(run.run_id, "rankeval/dev")
    assert "rankeval/dev/manifest.json" in [one.path for one in found]
    assert len(found) > 2, "the drawings too"
    assert waiting() == []


def test_no_draft_of_a_file_stays_that_could_not_be_written(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        spool_room._write(tmp_path / "a", b"1")
    assert list(tmp_path.glob(".a*")) == []
