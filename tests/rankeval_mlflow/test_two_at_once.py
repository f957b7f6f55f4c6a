"""Two runs of one experiment in a fresh directory: both are done, and each says the looks that it added itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import forking
import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.store.tracking.dbmodels.models import SqlDataset
from sqlalchemy import event

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import TrackingError
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.payload import Node, Payload, Target, roles_of
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import held, put, waiting
from rankeval_mlflow.run_names import NOTE, ROLE, TABLES, evaluated_runs

CONFIG = """
name: twice
data: {loader: digits, arguments: {n_queries: 40, n_candidates: 12}}
rankers:
  ridge: {estimator: sklearn.linear_model.Ridge}
  tree: {estimator: sklearn.tree.DecisionTreeRegressor, params: {max_depth: 3}}
cv: {n_splits: 2}
guard: {ledger: ledger.db}
"""
HOLDER = """
import sys, time
from pathlib import Path
from rankeval_mlflow.delivery.spool import held
with held(Path(sys.argv[1]), 1):
    print('held', flush=True)
    time.sleep(60)
"""


@pytest.mark.rest
def test_two_runs_at_once_are_both_done(tmp_path: Path):
    """MLflow makes the tables of its store once; the ledger has the looks once."""
    (tmp_path / "mlflow.db").unlink()  # the copy that every test gets
    (tmp_path / "twice.yaml").write_text(CONFIG)
    settings = {**os.environ, "RANKEVAL_LEDGER": str(tmp_path / "ledger.db"), "RANKEVAL_SPOOL": str(tmp_path / "spool")}
    program = "from rankeval.cli import main; main()"
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda _: forking.run(program, "run", "twice.yaml", env=settings), range(2)))
    assert [run.returncode for run in said] == [0, 0], said
    added = [int(number) for run in said for number in re.findall(r"(\d+) looks? added", run.stdout)]
    assert len(added) == 2, said
    in_ledger = len(rk.Guard("twice", ledger=f"sqlite:///{tmp_path}/ledger.db").looks("digits-test"))
    assert sum(added) == in_ledger
    with connected(f"sqlite:///{tmp_path}/mlflow.db") as client:
        experiment = client.get_experiment_by_name("twice")
        assert len(client.search_runs([experiment.experiment_id])) == 6  # two runs with two candidates each


def test_two_that_bring_the_same_new_data_set_are_both_done(client, small):
    """MLflow asks whether it has a data set and then adds it: whoever adds it in between takes the other's row."""
    faster = []
    event.listen(SqlDataset, "init", lambda *_: faster.append(rkm.log(small(seed=1))), once=True)
    slower = rkm.log(small())
    runs = {run.info.run_id: run for run in client.search_runs(["0"])}
    assert set(runs) == {slower.run_id, faster[0].run_id}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert len({run.inputs.dataset_inputs[0].dataset.digest for run in runs.values()}) == 1


ROLES = [f"role{number}" for number in range(6)]


def assert_all_roles(client, run_id, evaluations):
    """Assert that a run has each evaluation whole, with its own metrics, parameters, data and description."""
    run = client.get_run(run_id)
    first = run.data.tags[ROLE]
    assert set(roles_of(run.data.tags)) == set(evaluations)
    for role, ev in evaluations.items():
        start = "" if role == first else f"{role}/"
        assert run.data.metrics[f"{start}AP"] == ev.aggregate()["AP"]
        assert run.data.params[f"{start}system"] == ev.name
        assert run.data.params[f"{start}role"] == role
        assert rkm.load_evaluation(run_id, role=role).name == ev.name
        assert f"{ev.name}" in run.data.tags[NOTE]
    assert len(json.loads(run.data.tags[TABLES])) == len(evaluations)
    contexts = [tag.value for one in run.inputs.dataset_inputs for tag in one.tags if tag.key == "rankeval.role"]
    assert sorted(contexts) == sorted(evaluations)
    assert waiting() == []


@pytest.mark.worth("six evaluations are logged in each of several rounds")
@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.rest)], ids=["once", "several rounds"])
def test_threads_that_log_their_roles_to_one_run_are_all_done(rounds, client, small):
    """The first has the plain names, the others their prefixes; nothing is mixed, and nothing is lost."""
    evaluations = {role: small(f"f{number}", seed=number) for number, role in enumerate(ROLES)}
    for _ in range(rounds):
        with mlflow.start_run() as run, ThreadPoolExecutor(4) as pool:
            logged = [
                pool.submit(rkm.log, ev, run.info.run_id, role=role, report=False) for role, ev in evaluations.items()
            ]
            assert {one.result().run_id for one in logged} == {run.info.run_id}
        assert_all_roles(client, run.info.run_id, evaluations)
        assert client.get_run(run.info.run_id).info.status == "FINISHED"


@pytest.mark.server
def test_threads_are_all_done_on_a_server(server, small):
    mlflow.set_tracking_uri(server.uri)
    test_threads_that_log_their_roles_to_one_run_are_all_done(3, mlflow.MlflowClient(server.uri), small)


PROCESS = """
import sys
import mlflow, numpy as np
import rankeval as rk, rankeval_mlflow as rkm
uri, run_id, number = sys.argv[1:]
mlflow.set_tracking_uri(uri)
labels = np.random.default_rng(7).integers(0, 3, 160)
scores = labels + np.random.default_rng(int(number)).normal(size=160).round(1)
ev = rk.evaluate(labels, scores, qid=np.repeat(np.arange(20), 8), measures=["nDCG@10", "AP"], name=f"f{number}")
rkm.log(ev, run_id, role=f"role{number}", report=False)
"""


@pytest.mark.rest
def test_processes_that_log_their_roles_to_one_run_are_all_done(client, store, small, spool):
    """They wait for each other at one lock among their uploads."""
    run_id = client.create_run("0").info.run_id
    settings = {**os.environ, "RANKEVAL_SPOOL": str(spool)}
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda one: forking.run(PROCESS, store, run_id, str(one), env=settings), range(3)))
    assert [one.returncode for one in said] == [0, 0, 0], said
    evaluations = {f"role{number}": small(f"f{number}", seed=number, measures=["nDCG@10", "AP"]) for number in range(3)}
    assert_all_roles(client, run_id, evaluations)


def test_another_machine_that_is_faster_with_the_first_role_is_no_refusal(client, small, monkeypatch, tmp_path):
    """It shares no lock: the store refuses our parameters, and they get the prefix when the run is read again."""
    run_id = client.create_run("0").info.run_id
    evaluations = {"dev": small("ours"), "test": small("theirs", seed=1)}
    send_batch = mlflow.MlflowClient.log_batch

    def overtaken(self, *args, **options):
        monkeypatch.setattr(mlflow.MlflowClient, "log_batch", send_batch)
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("RANKEVAL_SPOOL", str(tmp_path / "elsewhere"))
            rkm.log(evaluations["test"], role="test", run_id=run_id)
        return send_batch(self, *args, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", overtaken)
    rkm.log(evaluations["dev"], role="dev", run_id=run_id)
    assert client.get_run(run_id).data.tags[ROLE] == "test"
    assert_all_roles(client, run_id, evaluations)


def test_an_upload_goes_on_if_another_one_does_not_end(client, small, monkeypatch):
    """Both saw an empty run; the second is refused and reads it again."""
    evaluations = {"dev": small("one"), "test": small("other", seed=1)}
    monkeypatch.setattr("rankeval_mlflow.delivery.sending._LONGEST_TURN", 0.2)
    send_batch, both = mlflow.MlflowClient.log_batch, threading.Barrier(2)

    def together(self, *args, **options):
        with suppress(threading.BrokenBarrierError):
            both.wait(2)
        both.abort()
        return send_batch(self, *args, **options)

    run_id = client.create_run("0").info.run_id
    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", together)
    with ThreadPoolExecutor(2) as pool:
        for role, ev in evaluations.items():
            pool.submit(rkm.log, ev, run_id, role=role, report=False)
    assert set(roles_of(client.get_run(run_id).data.tags)) == set(evaluations)
    assert waiting() == []


def test_who_is_always_overtaken_may_send_again(client, small, monkeypatch):
    """The refusal of a parameter is none for good: the upload waits for any resend."""
    words = "Changing param values is not allowed. Params were already logged='[...]' for run ID='...'."

    def refused(*_, **__):
        raise MlflowException(words, error_code=INVALID_PARAMETER_VALUE)

    monkeypatch.setattr("rankeval_mlflow.delivery.sending._REST_OF_A_BATCH", 0)
    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "log_batch", refused)
        with pytest.raises(TrackingError) as caught:
            rkm.log(small())
    assert "refuse it again" not in str(caught.value)
    (upload,) = waiting()
    assert upload.refusal() is None
    assert client.get_run(send(upload).run_id).info.status == "FINISHED"


def test_threads_that_log_evaluations_of_one_version_are_all_said_of_it(client, small):
    """Each in a run of its own: the tag of the version is read and written."""
    client.create_registered_model("ranker")
    client.create_model_version("ranker", "s3://models/ranker")
    with ThreadPoolExecutor(4) as pool:
        for role in ROLES:
            pool.submit(rkm.log, small(), role=role, model_version="ranker/1", report=False)
    assert set(evaluated_runs(client.get_model_version("ranker", "1").tags)) == set(ROLES)


def test_a_lock_is_waited_for_and_goes_with_its_holder(tmp_path: Path):
    order = []

    def wait() -> None:
        with held(tmp_path / "sub" / "lock", 30):
            order.append("second")

    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HOLDER,
            str(tmp_path / "sub" / "lock"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(TimeoutError, match="another process has held"), held(tmp_path / "sub" / "lock", 0.1):
        pass
    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.2)
    order.append("first")
    holder.kill()
    holder.wait()
    waiter.join(timeout=30)
    assert order == ["first", "second"]


def test_an_upload_stays_in_the_spool_although_another_process_tries_its_lock(store, spool, monkeypatch):
    """`tidy` of another process may lock the file between its making and its locking."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "upload")
    trying = ExitStack()
    trying.enter_context(held(spool / ".19700101T000000-upload.lock", 0))
    threading.Timer(0.3, trying.close).start()
    with ExitStack() as stack:
        upload = put(Payload(Target(store, experiment_id="0"), Node("run", "record"), 1), stack)
    assert upload.folder.parent == spool
