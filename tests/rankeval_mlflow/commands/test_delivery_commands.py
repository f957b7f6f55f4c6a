"""rankeval mlflow: list, resend, discard."""

from __future__ import annotations

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from typer.testing import CliRunner

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError, UnknownName
from rankeval.tracking import host
from rankeval_mlflow.delivery.spool import waiting


def run(*arguments):
    """Call a command as the program does."""
    return CliRunner().invoke(host("mlflow").commands(), list(arguments))


@pytest.fixture
def held_up(small, monkeypatch):
    """Leave an evaluation in the spool, and the store in order."""
    with monkeypatch.context() as patched:

        def down(*_, **__):
            raise MlflowException("down for repair")

        patched.setattr(mlflow.MlflowClient, "log_batch", down)
        with pytest.raises(TrackingError):
            rkm.log(small("waits"))
    (record,) = waiting()
    return record


def test_resend_sends_all_that_waits(held_up, client):
    run_id = held_up.sent()["runs"]["0"]
    result = run("resend")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{held_up.id}: sent to run {run_id}\nmlflow ui --backend-store-uri sqlite:")
    assert client.get_run(run_id).info.status == "FINISHED"
    assert "no upload is pending" in run("resend").stdout


def test_resend_that_fails_again_keeps_the_record_and_exits_with_2(held_up, monkeypatch):
    def down(*_, **__):
        raise MlflowException("still down")

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", down)
    result = run("resend", held_up.id)
    assert result.exit_code == 2
    assert "still down" in result.stderr
    assert [record.id for record in waiting()] == [held_up.id]


def test_a_record_that_is_not_there_is_named(held_up):
    assert isinstance(run("resend", held_up.id[:-1] + "x").exception, UnknownName)
    assert run("discard", held_up.id).exit_code == 0
    assert waiting() == []
    assert isinstance(run("resend", held_up.id).exception, InvalidInput)


def test_list_shows_whole_evaluations_newest_first_and_tells_of_those_that_wait(small, held_up):
    first = rkm.log(small("first"))
    second = rkm.log(small("second"), role="test")
    result = run("list")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["run", "name", "role", "metrics"]
    assert [line.split()[:3] for line in lines[2:]] == [
        [second.run_id[:8], "second", "test"],
        [first.run_id[:8], "first", "dev"],
    ]
    assert second.run_id in run("list", "--wide").stdout
    assert run("list", "Default").stdout == run("list", "--experiment", "Default").stdout == result.stdout
    assert isinstance(run("list", "Default", "--experiment", "Default").exception, InvalidInput)
    assert f"nDCG_at_10 {small().aggregate()['nDCG@10']:.4f}" in lines[2]
    assert "1 pending" in result.stderr
    assert held_up.id in run("list", "--waiting").stdout


def test_list_shows_the_role_of_the_metrics_first(small):
    run_id = rkm.log(small(), role="test").run_id
    rkm.log(small(seed=1), role="dev", run_id=run_id)
    (line,) = run("list").stdout.splitlines()[2:]
    assert "test, dev" in line
    assert f"AP {small().aggregate()['AP']:.4f}" in line
