"""MLflow's store in PostgreSQL, created by several processes at once, and behind a server.

The tables take a minute, so this module is of the full circle.
"""

from __future__ import annotations

import os
import subprocess
import sys

import mlflow
import pytest
from servers.tracking import running

import rankeval_mlflow as rkm

pytestmark = [pytest.mark.postgres, pytest.mark.kill, pytest.mark.timeout(900)]

LOG = """
import sys
import rankeval as rk
import rankeval_mlflow as rkm
ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="RR", name=sys.argv[1])
print(rkm.log(ev).run_id)
"""


def test_processes_that_create_the_tables_at_once_all_log(postgres, store, tmp_path, spool):  # noqa: ARG001
    uri = postgres.database()
    settings = {**os.environ, "MLFLOW_TRACKING_URI": uri, "RANKEVAL_SPOOL": str(spool)}
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", LOG, f"system {number}"],
            env=settings,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    said = [process.communicate(timeout=600) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    mlflow.set_tracking_uri(uri)
    runs = mlflow.MlflowClient().search_runs(["0"])
    assert sorted(run.info.run_name for run in runs) == ["system 0", "system 1"]


@pytest.mark.server
def test_a_server_on_postgres_gives_the_same_bits(postgres, small, store, tmp_path, assert_same):  # noqa: ARG001
    """Unlike SQLite, PostgreSQL holds columns to their lengths: long names too are whole or cut, never refused."""
    with running(tmp_path, postgres.database()) as server:
        mlflow.set_tracking_uri(server.uri)
        for evaluation in (small(), small("x" * 10_000), small("näme \U0001f600")):
            run = rkm.log(evaluation, role="test", data="d" * 10_000)
            assert_same(evaluation, rkm.load_evaluation(run))
            assert mlflow.get_run(run.run_id).info.status == "FINISHED"
