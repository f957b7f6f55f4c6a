"""Searches and validations on a cluster of Dask: what they give here, with the data sent once, and refusals come back.

The cluster has a real scheduler and two worker processes on loopback.
"""

from __future__ import annotations

import dask.distributed
import joblib
import lightgbm
import numpy as np
import optuna
import pandas as pd
import pytest
import sklearn
from distributed.comm.tcp import TCP
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, GuardRefusalError, MissingQueryIdsRefusal
from rankeval.measures import family
from rankeval.measures.family import FAMILIES

pytestmark = [pytest.mark.further, pytest.mark.needs("dask", "distributed")]

CV = rk.QueryKFold(3)
LIGHTGBM = lightgbm.LGBMRanker(n_estimators=10, min_child_samples=5, subsample=0.7, subsample_freq=1, verbose=-1)
EIGHT = {
    "estimator__num_leaves": [3, 7],
    "estimator__learning_rate": [0.05, 0.3],
    "estimator__min_child_samples": [2, 9],
}
BACKENDS = ["dask", "threading"]  # loky: guard_cases/test_every_way_in_refuses.py; processes: test_forked_workers.py


@family("FirstHit", title="relevant at rank 1", formula="hits(1)", source="a test", linear=True, bounds=(0, 1))
def first_hit(judged, *, rel: float = 1):
    """Return whether rank 1 is relevant: 0 or 1, higher is better; 0 without any."""
    return judged.hits(rel, 1).astype(float)


OWN = FAMILIES.pop("FirstHit")  # until the tests of this module run: other tests walk over all measures


@pytest.fixture(autouse=True, scope="module")
def _declared():
    FAMILIES["FirstHit"] = OWN
    yield
    FAMILIES.pop("FirstHit", None)


@pytest.fixture(scope="module")
def client():
    """Start a scheduler and two workers, each a process with one thread."""
    with (
        dask.distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        dask.distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def on(client):
    """Return what puts work on a backend of joblib, with two workers."""
    assert len(client.ncores()) == 2
    return lambda backend, **told: joblib.parallel_config(backend, n_jobs=2, **told)


# The same numbers ----------------------------------------------------------------------------------------------------


def search_over_eight(ltr):
    scorer = rk.make_scorer(["nDCG@10", "AP", "RR"])
    search = GridSearchCV(rk.QueryRanker(LIGHTGBM), EIGHT, cv=CV, scoring=scorer, refit="nDCG@10", error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        return search.fit(ltr.X, ltr.y, qid=ltr.qid)


@pytest.mark.usefixtures("client")
def test_a_search_over_eight_settings_gives_what_loky_gives(ltr, on):
    found = {}
    for backend in ("loky", "dask"):
        with on(backend):
            found[backend] = search_over_eight(ltr)
    loky, dask_ = found["loky"], found["dask"]
    assert len(loky.cv_results_["params"]) == 8
    assert dask_.best_index_ == loky.best_index_
    assert dask_.best_params_ == loky.best_params_
    scores = [name for name in loky.cv_results_ if "test_" in name]
    assert len(scores) == 3 * (3 + 3)  # measures; folds, and their mean, deviation and rank
    for name in scores:
        np.testing.assert_array_equal(dask_.cv_results_[name], loky.cv_results_[name])
    assert len(set(loky.cv_results_["mean_test_nDCG@10"])) > 4, "settings that are all alike would show nothing"
    np.testing.assert_array_equal(dask_.predict(ltr.X), loky.predict(ltr.X))


def validated(X, y, qid=None, **told):
    return rk.cross_validate({"lightgbm": LIGHTGBM, "ridge": Ridge()}, X, y, qid=qid, cv=CV, **told)


def as_array(ltr):
    return validated(ltr.X, ltr.y, ltr.qid)


def as_frame_with_column(ltr):
    return validated(ltr.frame.assign(qid=ltr.qid), ltr.y)


def with_groups_and_weights(ltr):
    number = np.array([int(query[1:]) for query in ltr.qid])
    return validated(
        ltr.X, ltr.y, ltr.qid, groups=number // 2, sample_weight=1.0 + number % 3, query_weight=1.0 + number % 3
    )


def with_a_validation_part(ltr):
    other = rk.datasets.make_ranking(20, 10, 5, rng=5)
    ranker = rk.QueryRanker(LIGHTGBM, early_stopping_rounds=2, eval_measure="FirstHit")
    return {"": rk.cross_validate(ranker, ltr.X, ltr.y, qid=ltr.qid, eval_set=other, measures="FirstHit", cv=CV)}


VALIDATIONS = [
    as_array,
    as_frame_with_column,
    with_groups_and_weights,
    with_a_validation_part,
]


@pytest.mark.parametrize("validate", VALIDATIONS)
def test_our_cross_validation_gives_what_one_process_gives(validate, ltr, on):
    here = validate(ltr)
    with on("dask"):
        there = validate(ltr)
    for name, result in here.items():
        pd.testing.assert_frame_equal(there[name].evaluation.per_query, result.evaluation.per_query, check_exact=True)
        np.testing.assert_array_equal(there[name].predictions, result.predictions)


@pytest.mark.parametrize("backend", ["threading"])
def test_any_backend_of_joblib_gives_what_one_process_gives(backend, ltr, on):
    """Not all of them give results one by one."""
    done = []
    with on(backend):
        there = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=CV, progress=lambda *of: done.append(of))
    assert done == [(1, 3), (2, 3), (3, 3)]
    here = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=CV)
    pd.testing.assert_frame_equal(there.evaluation.per_query, here.evaluation.per_query, check_exact=True)


def test_our_learning_curve_gives_what_one_process_gives(ltr, on):
    def curve():
        table = rk.learning_curve(Ridge(), ltr.X, ltr.y, qid=ltr.qid, sizes=[5, 0.5], cv=CV).table
        return table.drop(columns=["fit_seconds", "score_seconds"])

    here = curve()
    with on("dask"):
        pd.testing.assert_frame_equal(curve(), here, check_exact=True)


def test_a_measure_of_ones_own_travels(ltr, on):
    found = []
    for backend in ("sequential", "dask"):
        with joblib.parallel_config("sequential") if backend == "sequential" else on(backend):
            told = {"cv": CV, "scoring": rk.make_scorer("FirstHit"), "error_score": "raise"}
            found.append(cross_val_score(Ridge(), ltr.X, ltr.y_indexed, **told))
    np.testing.assert_array_equal(*found)
    assert found[0].mean() > 0.3


def test_an_objective_of_optuna_travels(ltr, client):
    objective = rk.optuna_objective(Ridge(), {"alpha": [1.0, 1e3]}, ltr.X, ltr.y, qid=ltr.qid, cv=CV)
    trials = [optuna.trial.FixedTrial({"alpha": alpha}) for alpha in (1.0, 1e3)]
    assert client.gather(client.map(objective, trials)) == [objective(trial) for trial in trials]


@each_row("backend", ["loky", "dask"])
def test_the_configuration_of_scikit_learn_travels(backend, ltr, on):
    """The columns are chosen by names, which a scaler keeps only if it is configured to return frames."""
    named = ColumnTransformer([("some", "passthrough", ["a", "b"])])
    pipeline = make_pipeline(StandardScaler(), named, Ridge())
    with sklearn.config_context(transform_output="pandas"), on(backend):
        result = rk.cross_validate(pipeline, ltr.frame, ltr.y, qid=ltr.qid, cv=CV)
    assert result.evaluation.n_queries == 30


def test_lightgbm_takes_the_threads_of_its_worker(ltr, on):
    """Dask gives each worker one thread by OMP_NUM_THREADS, which LightGBM does not read."""
    with on("dask"):
        result = rk.cross_validate(LIGHTGBM, ltr.X, ltr.y, qid=ltr.qid, cv=CV, return_estimators=True)
    assert [one.estimator_.booster_.params["num_threads"] for one in result.estimators] == [1, 1, 1]
    assert [one.estimator_.n_jobs for one in result.estimators] == [None] * 3


# The data crosses once -----------------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch, client):
    """Return a function that counts the bytes that a call makes client and scheduler send, in multiples of X."""
    written = [0]
    write = TCP.write

    async def counting(self, *args, **kwargs):
        size = await write(self, *args, **kwargs)
        written[0] += size
        return size

    monkeypatch.setattr(TCP, "write", counting)
    client.run(lambda: None)

    def count(call, X):
        written[0] = 0
        call()
        return written[0] / X.nbytes

    return count


@pytest.fixture(scope="module")
def wide():
    """Return rows whose features are nearly all of their bytes: 3 MB."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 200))
    qid = np.repeat(np.arange(100), 20)
    return X, (X[:, 0] + rng.normal(size=2000) > 1).astype(int), qid


CALLS = {
    "cross_validate": lambda X, y, qid: rk.cross_validate(
        {"a": Ridge(), "b": Ridge(2.0)}, X, y, qid=qid, cv=8, measures="AP"
    ),
    "learning_curve": lambda X, y, qid: rk.learning_curve(
        Ridge(), X, y, qid=qid, cv=4, sizes=[5, 20, 50, 70], measures="AP"
    ),
    "search": lambda X, y, qid: GridSearchCV(
        Ridge(), {"alpha": np.logspace(-1, 3, 8)}, cv=CV, scoring=rk.make_scorer("AP"), refit=False
    ).fit(X, pd.Series(y, pd.Index(qid, name="qid"))),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_features_cross_once(name, wide, sent, on):
    """From the client to the scheduler and from there to one worker, which gives them to the other: twice in all."""
    X, y, qid = wide
    with on("dask"):
        assert 1.9 < sent(lambda: CALLS[name](X, y, qid), X) < 2.9


@pytest.mark.parametrize("name", list(CALLS))
def test_scattered_features_do_not_cross_again(name, wide, sent, on):
    X, y, qid = wide
    with on("dask", scatter=[X]):
        assert sent(lambda: CALLS[name](X, y, qid), X) < 0.9


# Refusals come back --------------------------------------------------------------------------------------------------


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Register data in a ledger. Workers of Dask, which began without one, can learn of it only from the scorer."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    data = rk.datasets.make_ranking(40, 12, 5, rng=11)
    rk.Guard("project").register("test", data)
    yield data
    forget()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_refusal_ends_a_search_that_takes_errors_for_nan(backend, registered, on):
    y = pd.Series(registered.y, pd.Index(registered.qid, name="qid"))
    with on(backend), pytest.raises(GuardRefusal, match="test collection 'test'"):
        cross_val_score(Ridge(), registered.X, y, cv=CV, scoring=rk.make_scorer("AP"), error_score=np.nan)


@pytest.mark.timeout(60)
@each_row("backend", BACKENDS)
def test_missing_ids_end_a_search_that_takes_errors_for_nan(backend, ltr, on):
    with on(backend), pytest.raises(MissingQueryIdsRefusal, match="needs the query id of each row"):
        cross_val_score(Ridge(), ltr.X, ltr.y, scoring=rk.make_scorer("AP"), error_score=np.nan)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("registered")
def test_the_workers_go_on_after_a_refusal(ltr, registered, on):
    with on("dask"):
        y = pd.Series(registered.y, pd.Index(registered.qid, name="qid"))
        with pytest.raises(GuardRefusal):
            cross_val_score(Ridge(), registered.X, y, cv=CV, scoring=rk.make_scorer("AP"))
        assert rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=CV).evaluation.n_queries == 30


@pytest.mark.timeout(60)
def test_a_client_gets_an_exception_because_it_would_wait_for_a_refusal(registered, client):
    scorer = rk.make_scorer("AP")

    def refused(data, scorer):  # in here, so that it travels by its code: a worker cannot import the tests
        return scorer(Ridge().fit(data.X, data.y), data.X, data.y, qid=data.qid)

    with pytest.raises(GuardRefusalError, match="test collection 'test'"):
        client.submit(refused, registered, scorer).result(timeout=30)
