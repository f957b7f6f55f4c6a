"""One thread for small data, unless told otherwise; the same model either way."""

from __future__ import annotations

import json
import pickle
import sys
import threading
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import joblib
import numpy as np
import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import XGBRanker, each
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row
from threadpoolctl import threadpool_info, threadpool_limits

import rankeval as rk
from rankeval._threads import VARIABLES, limited, pools
from rankeval.model_selection import threads

needs_cores = pytest.mark.skipif(joblib.cpu_count() < 2, reason="one core: there is nothing to limit")


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    """Remove the variables that whoever runs the tests may have set, and give all pools their threads."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with threadpool_limits(joblib.cpu_count()):
        yield


class Spy(RegressorMixin, BaseEstimator):
    """Notes the threads of OpenMP and BLAS."""

    def fit(self, X, y):
        self.in_fit_ = {pool["num_threads"] for pool in threadpool_info()}
        return self

    def predict(self, X):
        self.in_predict_ = {pool["num_threads"] for pool in threadpool_info()}
        return np.asarray(X)[:, 0]


class SpyingLGBM(LGBMRanker):
    """Notes its own threads."""

    def fit(self, X, y, group=None):
        self.in_fit_ = self._process_n_jobs(self.n_jobs)
        return super().fit(X, y, group=group)

    def predict(self, *args, **told):
        self.in_predict_ = self._process_n_jobs(self.n_jobs)
        return super().predict(*args, **told)


class SpyingXGB(XGBRanker):
    """Notes its own threads."""

    def fit(self, X, y, qid=None):
        self.in_fit_ = self.n_jobs
        return super().fit(X, y, qid=qid)

    def predict(self, *args, **told):
        self.in_predict_ = int(json.loads(self.get_booster().save_config())["learner"]["generic_param"]["nthread"])
        return super().predict(*args, **told)


SPIES = {
    "pools": Spy(),
    "lightgbm": SpyingLGBM(n_estimators=3, verbose=-1),
    "xgboost": SpyingXGB(n_estimators=3),
}


def used(spy, ltr, wrap=lambda spy: spy, found=lambda ranker: ranker.estimator_):
    ranker = rk.QueryRanker(wrap(clone(spy))).fit(ltr.X, ltr.y, qid=ltr.qid)
    ranker.predict(ltr.X)
    inner = found(ranker)
    assert getattr(inner, "n_jobs", None) == getattr(spy, "n_jobs", None)
    return inner.in_fit_, inner.in_predict_


@needs_cores
@pytest.mark.parametrize("name", each(SPIES))
def test_small_data_takes_one_thread(name, ltr):
    one = {1} if name == "pools" else 1
    assert used(SPIES[name], ltr) == (one, one)
    assert joblib.cpu_count() in {pool["num_threads"] for pool in threadpool_info()}


@needs_cores
def test_in_a_pipeline_and_in_a_search_too(ltr):
    spy = SPIES["lightgbm"]
    assert used(spy, ltr, lambda one: make_pipeline(StandardScaler(), one), lambda one: one.estimator_[-1]) == (1, 1)
    search = used(
        spy,
        ltr,
        lambda one: GridSearchCV(rk.QueryRanker(one), {"estimator__num_leaves": [7]}, cv=2),
        lambda one: one.estimator_.best_estimator_.estimator_,
    )
    assert search == (1, 1)


@needs_cores
@pytest.mark.parametrize("name", each(SPIES))
@pytest.mark.parametrize("way", ["variable", "limits", "size", "parameter"])
def test_whoever_says_otherwise_is_obeyed(name, way, ltr, monkeypatch):
    spy, around = clone(SPIES[name]), nullcontext()
    if way == "variable":
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
    elif way == "limits":
        around = threadpool_limits(limits=1, user_api="blas")
    elif way == "size":
        monkeypatch.setattr(threads, "SMALL", ltr.X.size - 1)
    elif name != "pools":
        spy.set_params(n_jobs=2)
    with around:
        in_fit, in_predict = used(spy, ltr)
    if name == "pools":
        assert (in_fit, in_predict) == (in_predict, in_fit)
        assert (joblib.cpu_count() in in_fit) == (way != "parameter")
    elif way == "parameter":
        assert (in_fit, in_predict) == (2, 2)
    else:
        assert in_fit != 1
        assert in_predict != 1


@needs_cores
@each_row(("variable", "number"), [("1", 1), (" 3,1", 3), ("0", joblib.cpu_count(only_physical_cores=True))])
def test_lightgbm_takes_the_number_of_the_variable_which_it_does_not_read(variable, number, ltr, monkeypatch):
    """Workers of joblib and Dask have it set, and LightGBM would take all cores in each of them; data of any size."""
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert used(SPIES["lightgbm"], ltr) == (number, number)
    monkeypatch.setattr(threads, "SMALL", 0)
    assert used(SPIES["lightgbm"], ltr) == (number, number)
    assert used(clone(SPIES["lightgbm"]).set_params(n_jobs=2), ltr) == (2, 2)


@pytest.mark.parametrize(
    "estimator",
    each(
        [
            LGBMRanker(n_estimators=30, min_child_samples=5, verbose=-1),
            XGBRanker(n_estimators=30),
            HistGradientBoostingRegressor(max_iter=30),
            Ridge(),
        ]
    ),
    ids=lambda one: type(one).__name__,
)
def test_the_model_is_the_same(estimator, ltr, monkeypatch):
    ranker = rk.QueryRanker(estimator)
    before = ranker.get_params()
    one = ranker.fit(ltr.X, ltr.y, qid=ltr.qid).predict(ltr.X)
    assert ranker.get_params() == before
    assert pickle.loads(pickle.dumps(ranker)).predict(ltr.X).tolist() == one.tolist()
    monkeypatch.setattr(threads, "SMALL", 0)
    np.testing.assert_array_equal(rk.QueryRanker(estimator).fit(ltr.X, ltr.y, qid=ltr.qid).predict(ltr.X), one)


def test_predictions_in_several_threads_of_python_leave_the_parameter_alone(ltr):
    ranker = rk.QueryRanker(LGBMRanker(n_estimators=3, verbose=-1)).fit(ltr.X, ltr.y, qid=ltr.qid)
    expected, wrong = ranker.predict(ltr.X).tolist(), []

    def predict():
        wrong.extend(1 for _ in range(20) if ranker.predict(ltr.X).tolist() != expected)

    workers = [threading.Thread(target=predict) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
    assert ranker.estimator_.n_jobs is None
    assert not threads._holders


def test_pools_of_64_threads_on_128_cores_were_not_limited_by_a_user(monkeypatch):
    """OpenBLAS is built for 64 threads."""
    monkeypatch.setattr(joblib, "cpu_count", lambda: 128)
    pool = {"blas": 64, "openmp": 128}
    assert not limited(pools_of(pool))
    assert limited(pools_of(pool | {"openmp": 64}))
    assert limited(pools_of(pool | {"blas": 32}))


def pools_of(sizes):
    return SimpleNamespace(
        lib_controllers=[SimpleNamespace(user_api=api, num_threads=size) for api, size in sizes.items()]
    )


def test_an_estimator_has_one_thread_until_the_last_of_its_calls_has_ended():
    """Calls in several threads of Python end in any order."""
    model = LGBMRanker()
    first, second = threads._threads(model, 1), threads._threads(model, 1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert model.n_jobs == 1
    second.__exit__(None, None, None)
    assert model.n_jobs is None


def test_pools_are_looked_for_again_only_if_modules_were_loaded(monkeypatch):
    before = pools()
    assert pools() is before
    monkeypatch.setitem(sys.modules, "a library with pools of its own", ModuleType("new"))
    assert pools() is not before


@pytest.mark.needs("xgboost")
def test_the_fitted_trees_of_xgboost_get_their_threads_back(ltr):
    """They keep the number that they were grown with, whatever `n_jobs` says."""
    fitted = rk.QueryRanker(XGBRanker(n_estimators=3)).fit(ltr.X, ltr.y, qid=ltr.qid).estimator_
    assert json.loads(fitted.get_booster().save_config())["learner"]["generic_param"]["nthread"] == "0"
