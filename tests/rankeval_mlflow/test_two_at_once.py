"""Two runs of one experiment in a fresh directory: both are done, and each says the looks that it added itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import forking
import pytest
from mlflow.store.tracking.dbmodels.models import SqlDataset
from sqlalchemy import event

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.spool import held, put

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


@pytest.mark.further
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
    event.listen(SqlDataset, "init", lambda *_: faster.append(rkm.log_evaluation(small(seed=1))), once=True)
    slower = rkm.log_evaluation(small())
    runs = {run.info.run_id: run for run in client.search_runs(["0"])}
    assert set(runs) == {slower.run_id, faster[0].run_id}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert len({run.inputs.dataset_inputs[0].dataset.digest for run in runs.values()}) == 1


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
