"""A run that is killed while it logs, and run again, is one experiment on the server, whole."""

from __future__ import annotations

import json
import shutil
import signal

import forking
import mlflow
import pytest

from rankeval.errors import RankevalWarning
from rankeval.experiment import run_experiment
from rankeval_mlflow.delivery.payload import pieces_of
from rankeval_mlflow.delivery.spool import waiting

RIVALS = {
    "name": "killed",
    "data": {"loader": "digits", "arguments": {"n_queries": 40, "n_candidates": 12}},
    "rankers": {
        "ridge": {"estimator": "sklearn.linear_model.Ridge"},
        "tree": {"estimator": "sklearn.tree.DecisionTreeRegressor", "params": {"max_depth": 3}},
    },
    "measures": ["nDCG@10", "AP"],
    "cv": {"n_splits": 2},
}

# It kills itself, as the system would, in a call to the store that is named with its number.
CLIENT = """
import json, os, signal, sys
import mlflow
from rankeval.experiment import run_experiment
from rankeval.report import html
html._image = lambda _: "data:,"
config, name, number = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
original, calls = getattr(mlflow.MlflowClient, name), []
def counted(*arguments, **options):
    calls.append(name)
    if len(calls) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **options)
setattr(mlflow.MlflowClient, name, counted)
run_experiment(config)
print("not killed")
"""

BETWEEN, AT_THE_END = ("create_run", 1), ("set_terminated", 1)
"""Between the spool and the first byte; before a run is ended. The point of the default circle is amid the numbers."""
OTHERS = [("create_run", 3), ("log_artifacts", 1), ("create_logged_model", 2), ("log_model_artifacts", 1)]
POINTS = [
    pytest.param("log_batch", 2, marks=pytest.mark.worth("the one run of an experiment that is killed by default")),
    *(pytest.param(*point, marks=pytest.mark.kill) for point in (BETWEEN, AT_THE_END, *OTHERS)),
]


@pytest.mark.parametrize(("call", "number"), POINTS)
def test_a_killed_run_that_is_run_again_is_one_whole_experiment(call, number, tmp_path, empty_database, monkeypatch):
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr("rankeval_mlflow.delivery.spool.spare_directory", lambda: tmp_path / "spare")
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    config = {
        **RIVALS,
        "guard": {"ledger": str(tmp_path / "ledger.db")},
        "tracking": {"uri": f"sqlite:///{tmp_path}/mlflow.db"},
        "output": {"directory": str(tmp_path / "out")},
    }
    done = forking.run(CLIENT, json.dumps(config), call, str(number), cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    assert len(waiting()) == 1
    with pytest.warns(RankevalWarning, match="of the same work waited"):
        again = run_experiment(config)
    assert (again.n_trained, again.looks_added) == (0, 0)
    assert waiting() == []
    client = mlflow.MlflowClient(config["tracking"]["uri"])
    (experiment,) = [each for each in client.search_experiments() if each.name == "killed"]
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["killed", "ridge", "tree"]
    assert {run.info.run_id for run in runs} == {
        again.tracked.run_id,
        *(child.run_id for child in again.tracked.children),
    }
    for run in runs:
        assert run.info.status == "FINISHED"
        assert pieces_of(run.data.tags)
        assert len(client.get_metric_history(run.info.run_id, "nDCG_at_10")) == 1
        assert len(run.outputs.model_outputs) == (run.info.run_name != "killed")
    assert len(client.search_logged_models([experiment.experiment_id])) == 2
