"""Server and client are killed at random points of a whole call: every evaluation is there once, or in the spool.

The points are spread over the time that a call takes once everything is imported. The seeds are printed, and how many
kills struck before, while and after the upload was sent: most strike while it is sent, or the test proves little, and
fails. The circle `complete` kills once, half way; `full` forty times more.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import mlflow
import pytest

import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.payload import roles_of
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting
from rankeval_mlflow.run_names import COMPLETE

pytestmark = pytest.mark.server

OFTEN = pytest.mark.parametrize("kills", [pytest.param(20, marks=pytest.mark.kill)])
FIRST = int(os.environ.get("RANKEVAL_KILL_SEED", "0"))

# The evaluation is made before the call begins; its imports too, so that the kills fall into the call.
CLIENT = """
import sys
import mlflow
import rankeval
import rankeval_mlflow
import rankeval_mlflow.recording, rankeval_mlflow.views, pyarrow.parquet
evaluation = rankeval.Evaluation.load(sys.argv[1])
mlflow.set_experiment(experiment_id=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
rankeval_mlflow.log(evaluation)
print("done", flush=True)
"""


@pytest.fixture
def experiment(own_server, store):  # noqa: ARG001 - the test's own store is set first
    """Make an experiment of the test's own on the server that may be killed, and set it."""
    mlflow.set_tracking_uri(own_server.uri)
    return mlflow.set_experiment(f"kills {time.time_ns()}").experiment_id


def said(line):
    """Print how it went: pytest shows it if the test fails."""
    sys.stdout.write(f"{line}\n")


def whole(client, experiment_id):
    """Return the runs of the experiment that hold a whole evaluation."""
    return [run for run in client.search_runs([experiment_id]) if roles_of(run.data.tags)]


def struck(line, *, begun, ended):
    """Say when a kill struck, of the sending of the upload."""
    when = "after" if ended else "during" if begun else "before"
    said(f"{line}: {when} the sending")
    return when


def checked(when, kills):
    """Print how many kills struck when; of many, half must strike while something is sent."""
    said(dict(when))
    assert kills < 20 or when["during"] >= kills / 2


def settled(experiment_id, evaluation, assert_same, *, spooled):
    """Send what waits, and check that the evaluation is there once and bit for bit, if it was spooled."""
    for upload in waiting():
        send(upload)
    assert waiting() == []
    client = mlflow.MlflowClient()
    runs = client.search_runs([experiment_id])
    assert len(runs) == len(whole(client, experiment_id)) <= 1, "no run is doubled or left half"
    assert runs or not spooled
    for run in runs:
        assert run.info.status == "FINISHED"
        assert len(client.get_metric_history(run.info.run_id, "AP")) == 1
        assert_same(evaluation, rkm.load_evaluation(run.info.run_id))
    return len(runs)


def test_a_server_that_is_killed_half_way_and_comes_back_gets_the_rest(
    small, assert_same, own_server, experiment, monkeypatch
):
    """The same, at a known point: the error names the run, and a resend that fails keeps the record."""
    remote = mlflow.MlflowClient()
    with monkeypatch.context() as patched:
        original = mlflow.MlflowClient.log_batch

        def killed_after(*arguments, **options):
            original(*arguments, **options)
            own_server.kill()

        patched.setattr(mlflow.MlflowClient, "log_batch", killed_after)
        with pytest.raises(TrackingError, match="was begun: Connection refused"):
            rkm.log(small())
    (record,) = waiting()
    run_id = record.sent()["runs"]["0"]
    with pytest.raises(TrackingError, match="refused"):
        send(record)
    own_server.start()
    before = remote.get_run(run_id)
    assert before.info.status == "RUNNING"
    assert COMPLETE not in before.data.tags
    with pytest.raises(InvalidInput, match="no tag"):
        rkm.load_evaluation(run_id)
    assert send(record).run_id == run_id
    assert settled(experiment, small(), assert_same, spooled=True) == 1


@OFTEN
@pytest.mark.timeout(1800)
def test_a_server_killed_at_any_point_loses_nothing(kills, small, assert_same, own_server, experiment):
    evaluation = small()
    usual = min(_timed(evaluation) for _ in range(2))
    when = Counter()
    for seed in range(FIRST, FIRST + kills):
        point = usual * random.Random(seed).random()  # noqa: S311 - no secret
        experiment = mlflow.set_experiment(f"server {time.time_ns()}").experiment_id
        timer = threading.Timer(point, own_server.kill)
        timer.start()
        ended = True
        try:
            rkm.log(evaluation)
        except TrackingError:
            ended = False
            assert len(waiting()) == 1, "an error names an upload that waits"
        begun = any(upload.sent()["runs"] for upload in waiting())
        timer.join()
        own_server.start()
        line = f"server: seed {seed}, killed after {point:.3f} s of {usual:.3f} s"
        when[struck(line, begun=begun, ended=ended)] += 1
        assert settled(experiment, evaluation, assert_same, spooled=True) == 1
    checked(when, kills)


def _timed(evaluation):
    started = time.monotonic()
    rkm.log(evaluation)
    return time.monotonic() - started


@OFTEN
@pytest.mark.timeout(1800)
def test_a_client_killed_at_any_point_loses_nothing_that_it_began_to_send(
    kills, small, assert_same, own_server, experiment, tmp_path, spool
):
    evaluation = small()
    evaluation.save(tmp_path / "evaluation.parquet")
    usual = min(_client(tmp_path, own_server.uri, experiment, spool, None) for _ in range(2))
    when = Counter()
    for seed in range(FIRST, FIRST + kills):
        point = usual * random.Random(1000 + seed).random()  # noqa: S311 - no secret
        experiment = mlflow.set_experiment(f"client {time.time_ns()}").experiment_id
        _client(tmp_path, own_server.uri, experiment, spool, point)
        spooled = bool(waiting())
        begun = any(upload.sent()["runs"] for upload in waiting())
        sent = bool(mlflow.MlflowClient().search_runs([experiment]))
        line = f"client: seed {seed}, killed after {point:.3f} s of {usual:.3f} s, spooled {spooled}"
        when[struck(line, begun=begun, ended=sent and not spooled)] += 1
        settled(experiment, evaluation, assert_same, spooled=spooled or sent)
    checked(when, kills)


def _client(folder: Path, uri: str, experiment: str, spool: Path, point: float | None) -> float:
    """Log in another process, and kill it at a point of the call; return how long the call took."""
    settings = {**os.environ, "MLFLOW_TRACKING_URI": uri, "RANKEVAL_SPOOL": str(spool)}
    command = [sys.executable, "-W", "ignore", "-c", CLIENT, str(folder / "evaluation.parquet"), experiment]
    with subprocess.Popen(
        command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        started = time.monotonic()
        process.stdin.write("\n")
        process.stdin.flush()
        if point is None:
            assert process.stdout.readline() == "done\n"
        else:
            time.sleep(point)
            process.kill()
        return time.monotonic() - started
