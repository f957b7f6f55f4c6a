"""Two runs of one experiment in a fresh directory: both are done, and each says the looks that it added itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rankeval as rk
from rankeval_mlflow.delivery.connection import connected
from rankeval_mlflow.delivery.locks import held

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
from rankeval_mlflow.delivery.locks import held
with held(Path(sys.argv[1]), 1):
    print('held', flush=True)
    time.sleep(60)
"""


def test_two_runs_at_once_are_both_done(tmp_path: Path):
    """MLflow makes the tables of its store once; the ledger has the looks once."""
    (tmp_path / "twice.yaml").write_text(CONFIG)
    program = [sys.executable, "-c", "from rankeval.cli import main; main()", "run", "twice.yaml"]
    settings = {**os.environ, "RANKEVAL_LEDGER": str(tmp_path / "ledger.db"), "RANKEVAL_SPOOL": str(tmp_path / "spool")}
    runs = [
        subprocess.Popen(program, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    added = [int(number) for out, _ in said for number in re.findall(r"(\d+) looks? added", out)]
    assert len(added) == 2, said
    in_ledger = len(rk.Guard("twice", ledger=f"sqlite:///{tmp_path}/ledger.db").looks("digits-test"))
    assert sum(added) == in_ledger
    with connected(f"sqlite:///{tmp_path}/mlflow.db") as client:
        experiment = client.get_experiment_by_name("twice")
        assert len(client.search_runs([experiment.experiment_id])) == 6  # two runs with two candidates each


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
