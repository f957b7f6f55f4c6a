"""A refusal for good is told from a passing one, in one plain line."""

from __future__ import annotations

import errno
import http.server
import socket
import threading
import time
from http.client import responses

import mlflow
import pytest
from mlflow.exceptions import MlflowException, RestException
from mlflow.protos.databricks_pb2 import NOT_FOUND

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.connection import is_permanent, reason
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import put, waiting


def rest(code, message="no"):
    return RestException({"error_code": code, "message": message})


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (rest("INVALID_PARAMETER_VALUE"), True),
        (rest("PERMISSION_DENIED"), True),
        (rest("RESOURCE_DOES_NOT_EXIST"), True),
        (rest("REQUEST_LIMIT_EXCEEDED"), False),
        (rest("TEMPORARILY_UNAVAILABLE"), False),
        (rest("INTERNAL_ERROR"), False),
        (rest("BAD_REQUEST"), True),
        (rest("BAD_REQUEST", "(sqlite3.IntegrityError) FOREIGN KEY constraint failed"), True),
        (rest("BAD_REQUEST", "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.name\n[SQL: INSERT"), False),
        (
            rest("BAD_REQUEST", '(psycopg2.errors.UniqueViolation) duplicate key value violates unique constraint "d"'),
            False,
        ),
        (rest("BAD_REQUEST", "(pymysql.err.IntegrityError) (1062, \"Duplicate entry 'a' for key 'd'\")"), False),
        (MlflowException("down for repair"), False),
        (MlflowException("API request to endpoint /x failed with error code 413 != 200. Response body: 'big'"), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), False),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (OSError(errno.ENAMETOOLONG, "File name too long"), True),
        (PermissionError(errno.EACCES, "Permission denied"), True),
        (ValueError("?"), False),
    ],
    ids=repr,
)
def test_what_the_store_understood_and_declined_is_for_good(error, permanent):
    assert is_permanent(error) is permanent


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status."""

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(b"<html>a long page of a proxy</html>")

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - names of the library

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def answering(monkeypatch):
    """Return what starts a server that answers with a status, and gives its address."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    started = []

    def start(status):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        server.status = status
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "for_good"), [(429, False), (500, False), (503, False), (401, True), (403, True), (413, True)]
)
def test_an_answer_of_a_server_is_one_short_line(answering, status, for_good, small):
    says = f"{responses[status]} (HTTP {status})"
    uri = answering(status)
    mlflow.set_tracking_uri(uri)
    with pytest.raises(TrackingError) as caught:
        rkm.log(small())
    assert str(caught.value).splitlines()[0] == f"the tracking store {uri} refused: {says}"
    assert ("would refuse it again" in str(caught.value)) is for_good
    (upload,) = waiting()
    assert upload.refusal() == (says if for_good else None)


def test_an_answer_is_for_good_unless_it_may_be_another_one_a_moment_later():
    """All of 4xx but time-outs, conflicts, locks, too early, too many, and a client that hung up; none of 5xx."""
    answers = {
        status: MlflowException(f"API request failed with error code {status} != 200") for status in range(400, 600)
    }
    passing = [status for status, answer in answers.items() if not is_permanent(answer)]
    assert passing == [408, 409, 423, 425, 429, *range(499, 600)]


def test_a_refusal_for_good_ends_the_run_failed_and_is_sent_again_only_by_name(small, client, monkeypatch, assert_same):
    with monkeypatch.context() as patched:

        def forbidden(*_, **__):
            raise rest("PERMISSION_DENIED", "you may not write artifacts")

        patched.setattr(mlflow.MlflowClient, "log_artifacts", forbidden)
        with pytest.raises(TrackingError, match=r"you may not write artifacts\n.*\n.*refuse it again as it is.*resend"):
            rkm.log(small())
    (upload,) = waiting()
    run_id = upload.sent()["runs"]["0"]
    assert client.get_run(run_id).info.status == "FAILED"
    assert upload.refusal() == "you may not write artifacts"
    assert send(upload).run_id == run_id
    assert client.get_run(run_id).info.status == "FINISHED"
    assert_same(small(), rkm.load_evaluation(run_id))
    assert waiting() == []


def test_a_run_of_the_user_is_left_open_by_a_refusal(small, client, monkeypatch):
    def forbidden(*_, **__):
        raise rest("PERMISSION_DENIED", "no")

    with mlflow.start_run() as run:
        monkeypatch.setattr(mlflow.MlflowClient, "log_artifacts", forbidden)
        with pytest.raises(TrackingError):
            rkm.log(small())
        assert client.get_run(run.info.run_id).info.status == "RUNNING"


def test_a_deleted_run_is_named_and_nothing_waits(small, client):
    run_id = client.create_run("0").info.run_id
    client.delete_run(run_id)
    with pytest.raises(InvalidInput, match=f"run {run_id} was deleted; restore it"):
        rkm.log(small(), run_id=run_id)
    assert waiting() == []


def test_a_proxy_that_finds_nothing_costs_no_upload(small, monkeypatch):
    """Only the store itself says that a run is not there."""

    def lost(*_):
        raise MlflowException("404 page not found", error_code=NOT_FOUND)

    monkeypatch.setattr(mlflow.MlflowClient, "get_run", lost)
    with pytest.raises(TrackingError, match="404"):
        rkm.log(small(), run_id="a" * 32)
    assert len(waiting()) == 1


def test_at_a_resend_what_is_not_there_any_more_makes_the_upload_undeliverable(client, store):
    run_id = client.create_run("0").info.run_id
    upload = put(Payload(Target(store, run_id=run_id), Node("run", "record"), 1_700_000_000_000))
    client.delete_run(run_id)
    with pytest.raises(InvalidInput, match="was deleted"):
        send(upload)
    assert "was deleted" in upload.refusal()
    client.restore_run(run_id)
    assert send(upload).run_id == run_id


def test_a_run_of_ours_that_somebody_deleted_is_made_again(client, store, monkeypatch):
    upload = put(Payload(Target(store, experiment_id="0"), Node("run", "record"), 1_700_000_000_000))
    with monkeypatch.context() as patched:

        def down(*_, **__):
            raise MlflowException("down")

        patched.setattr(mlflow.MlflowClient, "set_tag", down)
        with pytest.raises(TrackingError):
            send(upload)
    first = upload.sent()["runs"]["0"]
    client.delete_run(first)
    again = send(upload).run_id
    assert again != first
    assert [run.info.run_id for run in client.search_runs(["0"])] == [again]


def test_a_name_of_any_length_is_refused_at_once_and_cut_in_the_message(small):
    began = time.monotonic()
    with pytest.raises(InvalidInput, match=r"run_id is .x+") as caught:
        rkm.log(small(), run_id="x" * 100_000)
    assert time.monotonic() - began < 20
    assert len(str(caught.value)) < 500
    assert waiting() == []


def test_a_reason_is_one_short_line():
    assert len(reason(ValueError("x" * 100_000))) < 600
    assert reason(MlflowException("first\nsecond")) == "first"
    assert reason(ValueError()) == "ValueError"


@pytest.mark.needs("psycopg")
@pytest.mark.parametrize("listens", [False, True], ids=["refuses", "never answers"])
def test_a_database_that_does_not_answer_is_told_within_seconds(small, capfd, monkeypatch, listens):
    """MLflow asks ten times, and prints three lines each time."""
    monkeypatch.setattr("rankeval_mlflow.delivery.connection._PATIENCE_OF_DRIVERS", 2)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()
        mlflow.set_tracking_uri(f"postgresql+psycopg://me:s3cret@127.0.0.1:{other.getsockname()[1]}/db")
        evaluation = small()
        began = time.monotonic()
        with pytest.raises(TrackingError, match=r"postgresql\+psycopg://me@.* refused: .*onnection") as caught:
            rkm.log(evaluation)
        assert time.monotonic() - began < 30
    assert "s3cret" not in str(caught.value)
    assert "retried" not in capfd.readouterr().err
    assert len(waiting()) == 1
