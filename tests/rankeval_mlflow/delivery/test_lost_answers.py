"""The answers to the requests of a log are lost, one at a time: each run is there once, whole and ended.

A proxy stands before a real server. It forwards a request and drops the answer, so that only the server knows what was
done: for a moment, in which MLflow repeats the request, or until somebody resends.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter

import mlflow
import numpy as np
import pytest
from servers import proxy
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import TrackingError
from rankeval_mlflow.delivery.sending import send
from rankeval_mlflow.delivery.spool import waiting

pytestmark = pytest.mark.server

X = np.random.default_rng(0).normal(size=(120, 3))
QID = np.repeat(np.arange(15), 8)
Y = np.random.default_rng(1).integers(0, 3, 120)


@pytest.fixture
def lossy(server, store, monkeypatch):  # noqa: ARG001 - the test's own store is set first
    """Set MLflow to a proxy before the server of the test run; MLflow repeats requests without waiting."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    with proxy.before(server.port) as running:
        mlflow.set_tracking_uri(running.uri)
        yield running


def logs(small):
    """Return what logs, by name; each anew, so that equal work is known by its content."""
    ranker = rk.QueryRanker(Ridge()).fit(X, Y, qid=QID)
    cv = rk.cross_validate(Ridge(), X, Y, qid=QID, measures=["nDCG@10"], cv=2)
    compared = rk.compare({"a": small("a"), "b": small("b", seed=1)}, baseline="a")
    return {
        "evaluation": lambda: rkm.log(small()),
        "ranker": lambda: rkm.log_ranker(ranker, "ridge", X=X),
        "cross-validation": lambda: rkm.log(cv),
        "comparison": lambda: rkm.log(compared),
    }


def test_a_model_is_registered_once_whichever_answer_is_lost(server, lossy):
    """MLflow would repeat the request, and so make a second version."""
    ranker, client = rk.QueryRanker(Ridge()).fit(X, Y, qid=QID), mlflow.MlflowClient(server.uri)
    mlflow.set_experiment(f"registered {time.time_ns()}")
    for _ in range(2):  # the first one asks more
        lossy.lose(0, stays_down=False)
        assert rkm.log_ranker(ranker, X=X, registered_model_name=f"once {time.time_ns()}").version == "1"
    asked = [one.split("?")[0] for one in lossy.asked]
    for call in ("registered-models/create", "model-versions/create"):
        name, number = f"once {time.time_ns()}", 1 + next(n for n, one in enumerate(asked) if one.endswith(call))
        lossy.lose(number, stays_down=False)
        logged = rkm.log_ranker(ranker, X=X, registered_model_name=name)
        assert lossy.asked[number - 1].endswith(call)
        found = client.search_model_versions(f"name = '{name}'")
        assert [(one.version, one.source) for one in found] == [(logged.version, f"models:/{logged.model_id}")], call


def stored(client, experiment_id):
    """Return everything of every run and model but ids and times; what is deleted must have ended."""
    found = []
    for run in client.search_runs([experiment_id]):
        run_id = run.info.run_id
        for key in run.data.metrics:
            points = [(point.value, point.step) for point in client.get_metric_history(run_id, key)]
            assert len(points) == len(set(points)), f"{key} stands there twice"
        tags = {key: value for key, value in run.data.tags.items() if key.startswith("rankeval.")}
        tags["rankeval.record"] = tags["rankeval.record"].partition("/")[2]
        tags["rankeval.complete"] = tags["rankeval.complete"].rpartition(":")[0]  # equal models differ in their bytes
        given = sorted((used.dataset.name, used.dataset.digest) for used in run.inputs.dataset_inputs)
        models = [client.get_logged_model(output.model_id) for output in run.outputs.model_outputs]
        files = sorted(_files(client, run_id, None))
        models = [(model.name, str(model.status), model.params) for model in models]
        found.append(
            (run.info.run_name, run.info.status, run.data.metrics, run.data.params, tags, given, models, files)
        )
    made = client.search_logged_models([experiment_id])
    assert len(made) == sum(len(one[-2]) for one in found), "a model was made twice"
    assert all(run.info.status != "RUNNING" for run in client.search_runs([experiment_id], run_view_type=3))
    return sorted(found, key=str)


def _files(client, run_id, folder):
    for file in client.list_artifacts(run_id, folder):
        if file.is_dir:
            yield from _files(client, run_id, file.path)
        else:
            yield file.path


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.kill)])
@pytest.mark.parametrize("what", ["evaluation", "ranker", "cross-validation", "comparison"])
@pytest.mark.parametrize(
    "stays_down",
    [pytest.param(False, id="for a moment"), pytest.param(True, id="until a resend", marks=pytest.mark.rest)],
)
@pytest.mark.timeout(1800)
def test_wherever_an_answer_is_lost_each_run_is_there_once(small, server, lossy, what, stays_down, every):
    """A twelfth of the answers is lost, or all of them, and those to every creation."""
    log, client = logs(small)[what], mlflow.MlflowClient(server.uri)

    def tried(number):
        experiment_id = client.create_experiment(f"lost answers {what} {stays_down} {number} {time.time_ns()}")
        mlflow.set_experiment(experiment_id=experiment_id)
        lossy.lose(number, stays_down=stays_down)
        outcome = "sent again"
        with contextlib.suppress(TrackingError):
            log()
            outcome = "whole at once"
        asked = lossy.asked
        lossy.lose(0, stays_down=False)
        for upload in waiting():
            send(upload)
        assert waiting() == []
        return asked, outcome, stored(client, experiment_id)

    asked, outcome, expected = tried(0)
    assert outcome == "whole at once"
    creations = ("runs/create", "logged-models")
    chosen = [n for n, one in enumerate(asked, 1) if not (n + len(what)) % every or one.endswith(creations)]
    outcomes = Counter()
    for number in chosen:
        _, outcome, found = tried(number)
        outcomes[outcome] += 1
        assert found == expected, f"answer {number} was lost, to {asked[number - 1]}"
    sys.stdout.write(f"{what}: {len(asked)} requests, {len(chosen)} answers lost: {dict(outcomes)}\n")
