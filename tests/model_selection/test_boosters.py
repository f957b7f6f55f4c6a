"""Our measures inside the training loops of LightGBM and XGBoost."""

from __future__ import annotations

import pickle
import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import xgboost

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection.query_ids import encode
from rankeval.model_selection.rows import Rows, Watch


@pytest.fixture
def blocks(ltr):
    """X, y, sizes and codes, rows in blocks."""
    codes = encode(ltr.qid)[0]
    order = np.argsort(codes, kind="stable")
    return ltr.X[order], ltr.y[order], np.unique(codes, return_counts=True)[1], codes[order]


def test_lightgbm_reports_our_value(blocks):
    X, y, sizes, codes = blocks
    history = {}
    booster = lightgbm.train(
        {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1},
        data := lightgbm.Dataset(X, y, group=sizes),
        num_boost_round=3,
        valid_sets=[data],
        valid_names=["seen"],
        feval=rk.lightgbm_feval(["nDCG@10", "AP"]),
        callbacks=[lightgbm.record_evaluation(history)],
    )
    expected = rk.evaluate(y, booster.predict(X), qid=codes, measures=["nDCG@10", "AP"]).aggregate()
    assert history["seen"]["nDCG@10"][-1] == pytest.approx(expected["nDCG@10"], abs=1e-12)
    assert history["seen"]["AP"][-1] == pytest.approx(expected["AP"], abs=1e-12)


def test_lightgbm_cross_validates_by_our_measure(blocks):
    X, y, sizes, _ = blocks
    result = lightgbm.cv(
        {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1},
        lightgbm.Dataset(X, y, group=sizes),
        num_boost_round=2,
        nfold=3,
        stratified=False,
        feval=rk.lightgbm_feval("AP", convention="sklearn"),
    )
    assert all(0.3 < value < 1 for value in result["valid AP-mean"])


def test_xgboost_reports_our_value_and_stops_by_it(blocks):
    X, y, _, codes = blocks
    history = {}
    matrix = xgboost.DMatrix(X, y, qid=codes)
    booster = xgboost.train(
        {"objective": "rank:ndcg", "nthread": 1, "disable_default_eval_metric": True},
        matrix,
        num_boost_round=4,
        evals=[(matrix, "seen")],
        custom_metric=rk.xgboost_metric(["RR", "nDCG@10"]),
        early_stopping_rounds=3,
        maximize=True,
        evals_result=history,
        verbose_eval=False,
    )
    last = booster.predict(matrix, iteration_range=(0, len(history["seen"]["RR"])))
    expected = rk.evaluate(y, last, qid=codes, measures=["RR", "nDCG@10"]).aggregate()
    # XGBoost hands metrics on as text of six digits.
    assert history["seen"]["RR"][-1] == pytest.approx(expected["RR"], abs=1e-5)
    assert history["seen"]["nDCG@10"][-1] == pytest.approx(expected["nDCG@10"], abs=1e-5)


def test_data_without_queries_is_an_error(blocks):
    X, y, _, _ = blocks
    with pytest.raises(QueryIdError, match="group="):
        rk.lightgbm_feval("AP")(np.zeros(len(y)), lightgbm.Dataset(X, y).construct())
    with pytest.raises(QueryIdError, match="qid="):
        rk.xgboost_metric("AP")(np.zeros(len(y)), xgboost.DMatrix(X, y))
    with pytest.raises(UnknownName, match="nDCG@10"):
        rk.lightgbm_feval("nDGC@10")


def test_training_metrics_are_values():
    assert pickle.loads(pickle.dumps(rk.xgboost_metric("AP"))) == rk.xgboost_metric(rk.measure("AP"))


def test_a_watch_stops_after_its_rounds_and_not_before():
    y = np.array([1, 0, 1, 0])
    watch = Watch(rk.measure("P@1"), 2, Rows.of(np.zeros((4, 1)), y, np.array([1, 1, 2, 2])))
    good, bad = [1, 0, 1, 0], [0, 1, 0, 1]
    assert [watch.after(number, score) for number, score in enumerate([bad, good, good, bad])] == [False] * 3 + [True]
    assert (watch.best, watch.best_iteration) == (1.0, 1)
    watch.held_out = None
    with pytest.raises(InvalidInput, match="has ended"):
        watch.value(good)


def test_no_booster_is_imported_that_the_caller_did_not_import():
    code = (
        "import sys, rankeval as rk; from sklearn.linear_model import Ridge; "
        "rk.QueryRanker(Ridge()).fit([[1.0], [2.0]], [0, 1], qid=[1, 1]); "
        "print([name for name in ('lightgbm', 'xgboost', 'catboost', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
