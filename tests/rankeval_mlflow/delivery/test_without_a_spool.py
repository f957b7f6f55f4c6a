"""If the spool cannot be written, an upload is kept among the temporary files, or else refused."""

from __future__ import annotations

import errno

import mlflow
import pytest
from mlflow.exceptions import MlflowException

import rankeval_mlflow as rkm
from rankeval.errors import RankevalWarning, TrackingError
from rankeval_mlflow.delivery import spool as spool_room
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting


@pytest.fixture
def no_spool(monkeypatch, tmp_path):
    """Put a file in the way of the spool."""
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "file" / "spool"))
    return tmp_path / "file"


@pytest.mark.usefixtures("no_spool")
def test_without_a_spool_an_upload_is_kept_among_the_temporary_files(small, assert_same, monkeypatch, tmp_path):
    with pytest.warns(
        RankevalWarning, match=r"cannot be written \(Not a directory\); until it is sent.*RANKEVAL_SPOOL"
    ):
        run = rkm.log(small())
    assert_same(small(), rkm.load_evaluation(run))
    assert list((tmp_path / "spare").iterdir()) == []

    def down(*_, **__):
        raise MlflowException("down")

    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.warns(RankevalWarning), pytest.raises(TrackingError, match="resend"):
            rkm.log(small())
    (upload,) = waiting()
    assert upload.folder.parent == tmp_path / "spare"
    send(upload)
    assert waiting() == []


@pytest.mark.usefixtures("no_spool")
def test_without_any_directory_nothing_is_sent_and_it_is_said_what_to_set(small, client, monkeypatch):
    monkeypatch.setattr("rankeval_mlflow.delivery.spool.spare_directory", lambda: None)
    with pytest.raises(TrackingError, match=r"cannot be written \(Not a directory\).*set RANKEVAL_SPOOL"):
        rkm.log(small())
    assert client.search_runs(["0"]) == []


def test_a_spool_that_is_full_after_the_record_was_written_costs_nothing(small, assert_same, monkeypatch):
    """Manifest, progress and drawings are written while an upload is sent: they have another way."""
    real = spool_room._write

    def full(path, content):
        if "files" in path.parts and "manifest" not in path.name:
            return real(path, content)
        if path.name == "record.json":
            return real(path, content)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool_room, "_write", full)
    run = rkm.log(small())
    assert_same(small(), rkm.load_evaluation(run))
    found = mlflow.MlflowClient().list_artifacts(run.run_id, "rankeval/dev")
    assert "rankeval/dev/manifest.json" in [one.path for one in found]
    assert len(found) > 2, "the drawings too"
    assert waiting() == []


def test_a_spool_that_is_too_full_to_note_a_run_finds_it_again(small, client, monkeypatch):
    real = spool_room._write

    def full(path, content):
        if path.name == "sent.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, content)

    def down(*_, **__):
        raise MlflowException("down")

    monkeypatch.setattr(spool_room, "_write", full)
    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.raises(TrackingError):
            rkm.log(small())
    (upload,) = waiting()
    assert upload.sent()["runs"] == {}
    run_id = send(upload).run_id
    assert [run.info.run_id for run in client.search_runs(["0"])] == [run_id]
