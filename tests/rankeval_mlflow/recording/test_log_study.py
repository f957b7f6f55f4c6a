"""A study of Optuna in MLflow: a run of the study, and a nested run for each trial."""

from __future__ import annotations

import json

import mlflow
import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput, TrackingError
from rankeval.model_selection import Study

SPACE = {"alpha": FloatDistribution(0.01, 1e4, log=True)}


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
    rkm.autolog(disable=True)


@pytest.fixture(scope="module")
def data():
    return rk.datasets.make_ranking(30, 6, rng=0)


def objective(data, **options):
    return rk.optuna_objective(Ridge(), SPACE, data, **{"cv": 3, **options})


def new_study(**options):
    options = {"direction": "maximize", "sampler": optuna.samplers.RandomSampler(seed=0), **options}
    return optuna.create_study(**options)


class AfterTheFirst(optuna.pruners.BasePruner):
    def prune(self, study, trial):
        return trial.number > 0


def trials_of(client, run_id):
    """Return the runs of the trials by number."""
    run = client.get_run(run_id)
    query = f"tags.`mlflow.parentRunId` = '{run_id}'"
    children = client.search_runs([run.info.experiment_id], query)
    return {int(child.info.run_name.removeprefix("trial ")): child for child in children}


def test_each_trial_is_a_run_with_its_parameters_its_value_and_its_folds(client, data):
    study = new_study(study_name="ridge")
    study.optimize(objective(data), n_trials=3)
    tracked = rkm.log(study)
    children = trials_of(client, tracked.run_id)
    assert [*sorted(children)] == [0, 1, 2]
    assert {child.run_id for child in tracked.children} == {run.info.run_id for run in children.values()}
    for trial in study.trials:
        logged = children[trial.number]
        assert logged.info.status == "FINISHED"
        assert logged.data.params == {"alpha": str(trial.params["alpha"])}
        assert logged.data.metrics["nDCG_at_10"] == trial.value
        folds = rk.cross_validate(Ridge(**trial.params), data, cv=3, measures="nDCG@10").folds["nDCG@10"]
        history = client.get_metric_history(logged.info.run_id, "nDCG_at_10_fold")
        assert [point.step for point in history] == [0, 1, 2]
        np.testing.assert_allclose([point.value for point in history], folds, atol=1e-12)
        assert logged.info.start_time == round(1000 * trial.datetime_start.timestamp())
        is_best = trial.number == study.best_trial.number
        assert logged.data.tags.get("rankeval.best") == ("yes" if is_best else None)
    parent = client.get_run(tracked.run_id)
    best = children[study.best_trial.number].info.run_id
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["nDCG_at_10"] == study.best_value
    assert parent.data.metrics["trials"] == 3
    assert parent.data.tags["rankeval.ridge.best"] == best
    assert f"/runs/{best})" in parent.data.tags["mlflow.note.content"]
    assert str(study.best_params["alpha"]) in parent.data.tags["rankeval.ridge.headline"]
    assert rkm.load(tracked.run_id) == Study.of(study)


def test_pruned_and_failed_trials_are_runs_too_and_say_so(client, data):
    study = new_study(pruner=AfterTheFirst())
    asked = objective(data)
    study.optimize(asked, n_trials=2)
    study.enqueue_trial({"alpha": -1.0}, skip_if_exists=False)

    def negative(trial):
        return rk.optuna_objective(Ridge(), lambda _: {"alpha": -1.0}, data, cv=3)(trial)

    study.optimize(negative, n_trials=1, catch=(Exception,))
    children = trials_of(client, rkm.log(study).run_id)
    states = {number: run.data.tags["rankeval.trial"] for number, run in children.items()}
    assert states == {0: "complete", 1: "pruned", 2: "fail"}
    assert {number: run.info.status for number, run in children.items()} == {0: "FINISHED", 1: "FINISHED", 2: "FAILED"}
    assert "nDCG_at_10" not in children[1].data.metrics, "a mean of one fold is none of three"
    assert children[1].data.metrics["nDCG_at_10_fold"] == study.trials[1].intermediate_values[0]
    assert "alpha" in children[2].data.tags["mlflow.note.content"]


def test_the_same_study_again_adds_the_new_trials_and_marks_the_best_anew(client, data, tmp_path):
    """Also in another process, by its storage: names and attributes come from there."""
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = new_study(storage=storage, study_name="ridge")
    study.optimize(objective(data), n_trials=2)
    first = rkm.log(study)
    before = {number: run.info.run_id for number, run in trials_of(client, first.run_id).items()}
    assert rkm.log(study).run_id == first.run_id
    again = optuna.load_study(study_name="ridge", storage=storage)
    again.enqueue_trial({"alpha": 40.0})
    again.optimize(objective(data), n_trials=4)
    second = rkm.log(again)
    assert second.run_id == first.run_id
    children = trials_of(client, first.run_id)
    assert len(children) == len(again.trials) == 6
    assert {number: children[number].info.run_id for number in before} == before
    best = [number for number, run in children.items() if run.data.tags.get("rankeval.best")]
    assert best == [again.best_trial.number]
    parent = client.get_run(first.run_id).data
    assert parent.metrics["trials"] == 6
    points = client.get_metric_history(first.run_id, "nDCG_at_10")
    assert [(point.step, point.value) for point in points] == [
        (2, max(trial.value for trial in again.trials[:2])),
        (6, again.best_value),
    ]
    assert parent.metrics["nDCG_at_10"] == again.best_value
    assert rkm.load(first.run_id) == Study.of(again)
    assert len(client.search_runs(["0"], "tags.`rankeval.kind` = 'study'")) == 1


def test_uploads_that_waited_add_nothing_twice_in_either_order(client, data, store):
    """The older one of two is sent last, and the run stays as the newer one says."""
    from rankeval_mlflow.delivery.sending import send
    from rankeval_mlflow.delivery.spool import waiting

    study = new_study(study_name="ridge")
    study.optimize(objective(data), n_trials=2)
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    with pytest.raises(TrackingError):
        rkm.log(study)
    mlflow.set_tracking_uri(store)
    study.enqueue_trial({"alpha": 40.0})
    study.optimize(objective(data), n_trials=1)
    newer = rkm.log(study)
    (upload,) = waiting()
    tracked = send(upload, uri=store)
    assert tracked.run_id == newer.run_id
    assert len(trials_of(client, newer.run_id)) == 3
    assert client.get_run(newer.run_id).data.metrics["trials"] == 3
    assert waiting() == []


def test_a_study_of_several_measures_has_a_value_for_each_and_its_front(client, data):
    asked = objective(data, measure=["nDCG@10", "ARP"])
    study = optuna.create_study(directions=asked.directions, sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(asked, n_trials=4)
    tracked = rkm.log(study)
    children = trials_of(client, tracked.run_id)
    for trial in study.trials:
        metrics = children[trial.number].data.metrics
        assert [metrics["nDCG_at_10"], metrics["ARP"]] == trial.values
        history = client.get_metric_history(children[trial.number].info.run_id, "ARP_fold")
        assert np.mean([point.value for point in history]) == pytest.approx(trial.values[1], abs=1e-12)
    front = {number for number, run in children.items() if run.data.tags.get("rankeval.best")}
    assert front == {trial.number for trial in study.best_trials}
    parent = client.get_run(tracked.run_id).data
    assert "nDCG_at_10" not in parent.metrics, "no single trial has the best of both"


def test_a_study_of_another_objective_is_logged_with_what_it_has(client):
    def squared(trial):
        x = trial.suggest_float("x", -2, 2)
        trial.suggest_categorical("long", ["y" * 7000])
        trial.set_user_attr("who", {"name": "ann"})
        trial.report(x, 5)
        return x**2

    study = optuna.create_study()
    study.optimize(squared, n_trials=2)
    tracked = rkm.log(study)
    child = trials_of(client, tracked.run_id)[1]
    assert child.data.metrics["value_0"] == study.trials[1].value
    assert client.get_metric_history(child.info.run_id, "reported")[0].step == 5
    assert child.data.tags["optuna.who"] == "{name: ann}"
    assert child.data.params["long"].endswith("(cut, 7000 characters)")
    whole = mlflow.artifacts.load_text(f"runs:/{child.info.run_id}/rankeval/trial/params.json")
    assert json.loads(whole) == {"long": "y" * 7000}


def test_studies_without_a_trial_or_with_two_measures_are_refused(data):
    study = new_study()
    with pytest.raises(InvalidInput) as caught:
        rkm.log(study)
    assert caught.value.remedy == "run study.optimize first"
    study.optimize(objective(data), n_trials=1)
    study.optimize(objective(data, measure="AP"), n_trials=1)
    with pytest.raises(InvalidInput) as caught:
        rkm.log(study)
    assert caught.value.remedy == "tune each in a study of its own"


def test_two_studies_in_a_run_of_the_caller_stand_beside_an_evaluation(client, data):
    """And its metrics keep their names."""
    studies = [new_study(study_name=name) for name in ("one", "two")]
    for study in studies:
        study.optimize(objective(data), n_trials=1)
    with mlflow.start_run() as run:
        rkm.log(rk.evaluate(data.y, data.X[:, 0], qid=data.qid))
        tracked = [rkm.log(study) for study in studies]
    assert {one.run_id for one in tracked} == {run.info.run_id}
    logged = client.get_run(run.info.run_id).data
    assert logged.metrics["one/nDCG_at_10"] == logged.metrics["two/nDCG_at_10"] == studies[0].best_value
    query = f"tags.`mlflow.parentRunId` = '{run.info.run_id}'"
    children = client.search_runs(["0"], query)
    assert len(children) == 2
    assert all(child.data.tags["rankeval.best"] == "yes" for child in children)
    assert rkm.load(run.info.run_id, "two") == Study.of(studies[1])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_autolog_logs_a_study_when_a_call_of_optimize_ends(n_jobs, client, data):
    """A search inside of the estimator is a part of it, in the threads of Optuna too."""
    rkm.autolog()
    grid = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__fit_intercept": [True, False]}, cv=rk.QueryKFold(2))
    asked = rk.optuna_objective(grid, {"estimator__estimator__alpha": [0.1, 9.0]}, data, cv=2)
    study = new_study(study_name="nested")
    study.optimize(asked, n_trials=2, n_jobs=n_jobs)
    study.optimize(asked, n_trials=1)
    runs = client.search_runs(["0"])
    assert sorted(run.data.tags["rankeval.kind"] for run in runs) == ["study", "trial", "trial", "trial"]
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert len(client.search_runs(["0"])) == 4, "an objective of the caller is left alone"
    rkm.autolog(disable=True)
    study.optimize(asked, n_trials=1)
    assert len(client.search_runs(["0"])) == 4


def test_autolog_logs_the_trials_of_a_study_that_raises(client, data):
    """The error goes on, and the failed trial has it."""
    rkm.autolog()
    asked = rk.optuna_objective(Ridge(), lambda trial: {"alpha": [1.0, -1.0][trial.number]}, data, cv=2)
    with pytest.raises(ValueError, match="alpha"):
        new_study().optimize(asked, n_trials=3)
    runs = client.search_runs(["0"])
    states = sorted(run.data.tags.get("rankeval.trial", "") for run in runs)
    assert states == ["", "complete", "fail"]


def test_autolog_puts_the_study_of_optuna_back():
    before = optuna.Study.optimize
    rkm.autolog()
    assert optuna.Study.optimize is not before
    rkm.autolog(disable=True)
    assert optuna.Study.optimize is before
