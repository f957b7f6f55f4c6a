"""A cross-validation in MLflow: mean over queries, folds as steps and as nested runs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput


@pytest.fixture(scope="module")
def data():
    """Return 60 queries of 8 rows."""
    return rk.datasets.make_ranking(60, 8, rng=3)


@pytest.fixture(scope="module")
def cv(data):
    """Return a cross-validation of 4 folds."""
    return rk.cross_validate(Ridge(), data, measures=["nDCG@10", "AP"], cv=4, name="ridge")


def _history(client, run_id, key):
    return [(metric.step, metric.value) for metric in client.get_metric_history(run_id, key)]


def test_the_mean_is_that_of_the_queries_and_the_folds_are_steps(cv, client):
    """The bare key is the pooled mean; steps and spread are those of the table of folds."""
    run = client.get_run(rkm.log_cross_validation(cv).run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "ridge"
    metrics = run.data.metrics
    for measure, key in {"nDCG@10": "nDCG_at_10", "AP": "AP"}.items():
        assert metrics[key] == cv.evaluation.aggregate()[measure]
        assert metrics[f"{key}_sd"] == pytest.approx(np.std(cv.folds[measure], ddof=1))
        assert _history(client, run.info.run_id, f"{key}_fold") == list(enumerate(cv.folds[measure]))
    assert [size for _, size in _history(client, run.info.run_id, "fold_queries")] == cv.folds["n_queries"].tolist()
    assert run.data.params["n_folds"] == "4"
    assert run.data.tags["rankeval.kind"] == "cross-validation"
    assert "Folds; metrics are over all queries." in run.data.tags["mlflow.note.content"]


def test_the_run_takes_as_long_as_its_folds(cv, client):
    """The page shows the time of the work, not that of logging it."""
    run = client.get_run(rkm.log_cross_validation(cv).run_id)
    seconds = cv.folds[["fit_seconds", "score_seconds"]].to_numpy().sum()
    assert run.info.end_time - run.info.start_time == round(1000 * seconds)


def test_each_fold_is_a_nested_run(cv, client):
    """With its measures, its size and its seconds, and without a file of its own."""
    parent = rkm.log_cross_validation(cv)
    assert len(parent.children) == 4
    for place, child in enumerate(parent.children):
        run = client.get_run(child.run_id)
        assert run.data.tags["mlflow.parentRunId"] == parent.run_id
        assert run.info.run_name == f"fold {place}"
        assert run.info.status == "FINISHED"
        assert run.data.metrics["nDCG_at_10"] == cv.folds["nDCG@10"].iloc[place]
        assert run.data.params == {"fold": str(place), "train_queries": "45", "test_queries": "15"}


def test_the_choices_of_a_search_are_params_of_its_folds(data, client):
    """Nested cross-validation: each fold may have chosen something else."""
    scorer = rk.make_scorer("AP")
    search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1.0, 1e4]}, cv=2, scoring=scorer)
    result = rk.cross_validate(search, data, measures="AP", cv=3)
    children = rkm.log_cross_validation(result).children
    chosen = [client.get_run(child.run_id).data.params["estimator__alpha"] for child in children]
    assert chosen == [str(alpha) for alpha in result.best_params["estimator__alpha"]]


def test_several_rankers_are_runs_below_one(data, client):
    """Each has its evaluation, so that they can be compared later."""
    both = rk.cross_validate({"weak": Ridge(1e6), "strong": Ridge()}, data, measures="AP", cv=3)
    parent = rkm.log_cross_validation(both, fold_runs=False)
    names = [client.get_run(child.run_id).info.run_name for child in parent.children]
    assert names == ["weak", "strong"]
    assert not parent.children[0].children
    compared = rkm.compare_runs([child.run_id for child in parent.children])
    assert compared.table["n_queries"].tolist() == [60]
    assert client.get_run(parent.run_id).data.tags["rankeval.kind"] == "cross-validation"


def test_what_is_no_cross_validation_is_refused(cv):
    """The message names the argument and what was found."""
    with pytest.raises(InvalidInput, match="cv is of type Evaluation; expected the result of"):
        rkm.log_cross_validation(cv.evaluation)
