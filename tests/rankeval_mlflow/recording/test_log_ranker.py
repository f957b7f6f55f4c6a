"""A fitted ranker in MLflow: logged, registered, linked to its evaluations."""

from __future__ import annotations

import contextlib
import importlib

import mlflow
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import TrackingError

RANKERS = {
    "lightgbm": LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1, min_child_samples=2),
    "xgboost": ("XGBRanker", {"n_estimators": 5, "n_jobs": 1}),
    "catboost": ("CatBoostRanker", {"iterations": 5, "verbose": False, "allow_writing_files": False}),
    "sklearn": Ridge(),
}
"""By library; those that '.[test]' does not install by the name and the options."""


@pytest.fixture(scope="module")
def table():
    """Return 30 queries of 8 rows with their ids as a column, and the labels."""
    made = rk.datasets.make_ranking(30, 8, rng=3)
    names = [f"f{place}" for place in range(made.X.shape[1])]
    return pd.DataFrame(made.X, columns=names).assign(qid=made.qid), made.y


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(name, marks=pytest.mark.needs(name)) if isinstance(made, tuple) else name
        for name, made in RANKERS.items()
    ],
)
def test_it_is_logged_and_loads_and_predicts_the_same(library, table, client):
    """By its id, with its parameters, in a run of its own that has ended."""
    X, y = table
    estimator = RANKERS[library]
    if isinstance(estimator, tuple):
        name, options = estimator
        estimator = getattr(importlib.import_module(library), name)(**options)
    ranker = rk.QueryRanker(estimator).fit(X, y)
    logged = rkm.log_ranker(ranker, X=X)
    loaded = mlflow.pyfunc.load_model(logged.model_uri)
    np.testing.assert_array_equal(np.asarray(loaded.predict(X), float), ranker.predict(X))
    assert loaded.model_id == logged.model_id
    model = client.get_logged_model(logged.model_id)
    assert (model.name, model.model_type, str(model.status)) == ("ranker", "ranker", "READY")
    assert model.params["estimator"] == type(estimator).__name__
    run = client.get_run(logged.run.run_id)
    assert run.info.status == "FINISHED"
    assert [output.model_id for output in run.outputs.model_outputs] == [logged.model_id]


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array, pl.from_pandas])
def test_the_input_example_is_three_rows(kind, table):
    """Of any kind of X, as a request may have them."""
    X, y = table
    rows = kind(X.drop(columns="qid"))
    logged = rkm.log_ranker(rk.QueryRanker(Ridge()).fit(rows, y, qid=X["qid"]), X=rows)
    example = mlflow.pyfunc.load_model(logged.model_uri).input_example
    plain = example.toarray() if scipy.sparse.issparse(example) else np.asarray(example)
    np.testing.assert_array_equal(plain, X.drop(columns="qid").to_numpy()[:3])


@pytest.mark.parametrize("in_run", [pytest.param(False, marks=pytest.mark.rest), True])
def test_a_model_says_who_logged_it(in_run, table, client):
    """User and source, as of a model that MLflow logs itself, in a run of its own and in an active one."""
    X, y = table
    with mlflow.start_run() if in_run else contextlib.nullcontext():
        logged = rkm.log_ranker(rk.QueryRanker(Ridge()).fit(X, y))
        own = mlflow.sklearn.log_model(
            Ridge(), name="own", serialization_format="cloudpickle", pip_requirements=["scikit-learn"]
        )
    tags, theirs = (client.get_logged_model(one.model_id).tags for one in (logged, own))
    assert {"mlflow.user", "mlflow.source.name", "mlflow.source.type"} <= theirs.keys()
    assert theirs.items() <= tags.items()


def test_evaluations_are_linked_by_the_id(table, client):
    """So that the page of the model shows them, and `load_evaluation` finds them by the model."""
    X, y = table
    ranker = rk.QueryRanker(Ridge()).fit(X, y)
    logged = rkm.log_ranker(ranker, X=X)
    ev = rk.evaluate(y, ranker.predict(X), qid=X["qid"], measures=["nDCG@10", "AP"])
    rkm.log(ev, model_id=logged.model_id)
    metrics = {metric.key: metric.value for metric in client.get_logged_model(logged.model_id).metrics}
    assert metrics["nDCG_at_10"] == ev.aggregate()["nDCG@10"]


def test_it_is_registered_in_the_same_call(table, client):
    """Each call makes a version, which loads by name."""
    X, y = table
    for version, alpha in (("1", 1.0), ("2", 9.0)):
        ranker = rk.QueryRanker(Ridge(alpha)).fit(X, y)
        logged = rkm.log_ranker(ranker, X=X, registered_model_name="winner")
        assert (logged.registered_model_name, logged.version) == ("winner", version)
        loaded = mlflow.pyfunc.load_model(f"models:/winner/{version}")
        np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert client.get_model_version("winner", "2").source == logged.model_uri


def test_a_name_that_cannot_be_registered(table):
    """The model is logged; the message says which, and how to go on."""
    X, y = table
    with pytest.raises(TrackingError, match=r"is logged as models:/m-.*mlflow\.register_model"):
        rkm.log_ranker(rk.QueryRanker(Ridge()).fit(X, y), registered_model_name="a/b")


def test_two_models_in_the_active_run(table, client):
    """It stays open; a second model of another name is beside the first."""
    X, y = table
    with mlflow.start_run() as active:
        ids = [rkm.log_ranker(rk.QueryRanker(Ridge()).fit(X, y), name, X=X).model_id for name in ("first", "second")]
        assert mlflow.active_run().info.run_id == active.info.run_id
    assert [client.get_logged_model(one).name for one in ids] == ["first", "second"]
    assert {client.get_logged_model(one).source_run_id for one in ids} == {active.info.run_id}


def test_it_waits_in_the_spool_for_a_store_that_is_away(table, store, monkeypatch):
    """And is sent whole by a resend."""
    from rankeval_mlflow.delivery.sending import send
    from rankeval_mlflow.delivery.spool import waiting

    X, y = table
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    ranker = rk.QueryRanker(RANKERS["lightgbm"]).fit(X, y)
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    with pytest.raises(TrackingError, match="resend"):
        rkm.log_ranker(ranker, X=X)
    mlflow.set_tracking_uri(store)
    (upload,) = waiting()
    run = send(upload, uri=store)
    loaded = mlflow.pyfunc.load_model(f"models:/{run.models[0]}")
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("estimator", [LGBMRanker(n_estimators=3, verbose=-1), Ridge()])
def test_whole_numbers_are_served_in_any_width(estimator):
    """A column that was trained as int32, such as pandas' hour, arrives as int64."""
    hours = np.tile(np.arange(12), 5)
    rows = pd.DataFrame({"hour": hours.astype("int32"), "stars": hours.astype("uint8")})
    ranker = rk.QueryRanker(estimator).fit(rows, hours % 3, qid=np.repeat(np.arange(6), 10))
    served = mlflow.pyfunc.load_model(rkm.log_ranker(ranker, X=rows).model_uri)
    for width in ("int64", "int32"):
        np.testing.assert_array_equal(served.predict(rows.astype(width)), ranker.predict(rows))
