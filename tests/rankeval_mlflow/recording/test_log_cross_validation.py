"""A cross-validation in MLflow: mean over queries, parameters of the ranker, folds as steps and if asked as runs."""

from __future__ import annotations

import json
from pathlib import Path

import mlflow
import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval_mlflow.run_names import VIEW


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
    run = client.get_run(rkm.log(cv).run_id)
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


def test_findings_on_the_fit_are_notes_of_the_run_and_come_back(data, client):
    """A column that leaks the label: in the description, on the page, and in what `load` returns."""
    leaked = np.column_stack([data.X, data.y])
    found = rk.cross_validate(Ridge(), leaked, data.y, qid=data.qid, measures="AP", cv=4, name="leak")
    (finding,) = found.diagnose().findings
    run_id = rkm.log(found).run_id
    assert "the column 10 alone" in finding
    assert "the column 10 alone" in client.get_run(run_id).data.tags["mlflow.note.content"]
    page = Path(client.download_artifacts(run_id, "rankeval/dev/report.html")).read_text("utf-8")
    assert "the column 10 alone" in page
    assert rkm.load(run_id, "dev").diagnose().findings == (finding,)


def test_the_run_takes_as_long_as_its_folds(cv, client):
    """The page shows the time of the work, not that of logging it."""
    run = client.get_run(rkm.log(cv).run_id)
    seconds = cv.folds[["fit_seconds", "score_seconds"]].to_numpy().sum()
    assert run.info.end_time - run.info.start_time == round(1000 * seconds)


def test_each_fold_is_a_nested_run_if_asked(cv, client):
    """With its measures, its size and its seconds, and without a file of its own."""
    assert rkm.log(cv).children == ()
    parent = rkm.log(cv, folds=True)
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
    parent = rkm.log(result, folds=True)
    chosen = [client.get_run(child.run_id).data.params["alpha"] for child in parent.children]
    assert chosen == [str(alpha) for alpha in result.best_params["estimator__alpha"]]
    params, bare = (client.get_run(run.run_id).data.params for run in (parent, rkm.log(rk.cross_validate(
        Ridge(), data, measures="AP", cv=3
    ))))  # fmt: skip
    assert set(bare) <= set(params), "the names of the bare ranker"
    assert params["estimator"] == "Ridge"
    assert params["alpha"] == (chosen[0] if len({*chosen}) == 1 else f"[{', '.join(chosen)}]")


def test_several_rankers_are_runs_below_one(data, client):
    """Each has its evaluation, so that they can be compared later."""
    both = rk.cross_validate({"weak": Ridge(1e6), "strong": Ridge()}, data, measures="AP", cv=3)
    parent = rkm.log(both)
    names = [client.get_run(child.run_id).info.run_name for child in parent.children]
    assert names == ["weak", "strong"]
    assert not parent.children[0].children
    compared = rkm.compare_runs([child.run_id for child in parent.children])
    assert compared.table["n_queries"].tolist() == [60]
    assert client.get_run(parent.run_id).data.tags["rankeval.kind"] == "cross-validation"


def test_two_candidates_differ_in_columns_and_not_by_name_only(data, client):
    """By the same names, whether the ranker is bare, in a QueryRanker, a search or a model; the view shows them."""
    options = {"n_estimators": 3, "n_jobs": 1, "verbose": -1}
    few, many = LGBMRanker(num_leaves=3, **options), rk.QueryRanker(LGBMRanker(num_leaves=9, **options))
    runs = [rkm.log(rk.cross_validate(one, data, measures="AP", cv=2)) for one in (few, many)]
    with mlflow.start_run():
        for log in (
            lambda: rkm.log(rk.cross_validate(many, data, measures="AP", cv=2)),
            lambda: rkm.log_ranker(many.fit(data.X, data.y, qid=data.qid)),
        ):
            run = log()
        runs.append(run.run)
    params = [client.get_run(run.run_id).data.params for run in runs]
    assert [one["num_leaves"] for one in params] == ["3", "9", "9"]
    assert {one["estimator"] for one in params} == {"LGBMRanker"}
    assert not [name for one in params for name in one if "num_leaves" in name and name != "num_leaves"]
    view = json.loads(json.loads(client.get_experiment("0").tags[VIEW])["state"])["selectedColumns"]
    assert {"params.`num_leaves`", "params.`estimator`", "metrics.`AP`"} <= set(view)
    assert "params.`reg_alpha`" not in view, "it is the default of both"


class Shop(BaseEstimator):
    """A ranker with parameters of many kinds."""

    def __init__(self, words=(), api_key=None, address="", data=None):
        self.words, self.api_key, self.address, self.data = words, api_key, address, data

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]


def test_values_of_parameters_are_short_whole_elsewhere_and_without_secrets(data, client, tmp_path):
    """A function is its name; the parameter that has the name of one of ours stands beside it."""
    shop = Shop(["word"] * 2000, api_key="hidden-1", address="http://me:hidden-2@host/x", data="rows")
    ranker = make_pipeline(FunctionTransformer(np.tanh), shop)
    run = client.get_run(rkm.log(rk.cross_validate(ranker, data, measures="AP", cv=2)).run_id)
    params = run.data.params
    assert params["functiontransformer__func"] == "tanh"
    assert params["shop__api_key"] == "***"
    assert len(params["shop__words"]) <= 6000
    path = client.download_artifacts(run.info.run_id, "rankeval/dev/params.json", str(tmp_path))
    whole = json.loads(Path(path).read_text(encoding="utf-8"))
    assert whole == {"shop__words": f"[{', '.join(['word'] * 2000)}]"}
    assert "hidden-" not in f"{params}{whole}"
    bare = client.get_run(rkm.log(rk.cross_validate(shop, data, measures="AP", cv=2), data="mine").run_id)
    assert (bare.data.params["data"], bare.data.params["estimator__data"]) == ("mine", "rows")


def test_more_parameters_than_a_request_holds_are_logged(data, client):
    """MLflow takes 100 in a request."""
    ranker = make_pipeline(*(Ridge() if step == 19 else FunctionTransformer(np.abs) for step in range(20)))
    run = rkm.log(rk.cross_validate(ranker, data, measures="AP", cv=2))
    params = client.get_run(run.run_id).data.params
    assert len(params) > 150
    assert params["ridge__alpha"] == "1.0"


def test_every_run_says_who_logged_it_and_from_where(cv, client):
    """Nested runs in an active run too, as runs of MLflow's fluent API do."""
    with mlflow.start_run() as active:
        children = rkm.log(cv, folds=True).children
    told = {
        name: value for name, value in active.data.tags.items() if name.startswith(("mlflow.user", "mlflow.source"))
    }
    assert {"mlflow.user", "mlflow.source.name", "mlflow.source.type"} <= set(told)
    for child in children:
        assert told.items() <= client.get_run(child.run_id).data.tags.items()
