"""What the libraries are told, and early stopping by our measures."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from lightgbm import LGBMRanker, LGBMRegressor
from model_selection.libraries import CatBoostRanker, XGBRanker, XGBRegressor, each
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.model_selection.rows import EarlyStopping, TrainingRows

LIGHTGBM = {"n_estimators": 50, "learning_rate": 0.5, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


def test_a_watch_stops_after_its_rounds_and_not_before():
    y = np.array([1, 0, 1, 0])
    watch = EarlyStopping(rk.measure("P@1"), 2, TrainingRows.of(np.zeros((4, 1)), y, np.array([1, 1, 2, 2])))
    good, bad = [1, 0, 1, 0], [0, 1, 0, 1]
    assert [watch.noted(number, watch.value(score)) for number, score in enumerate([bad, good, good, bad])] == [
        False
    ] * 3 + [True]
    assert (watch.best, watch.best_iteration) == (1.0, 1)


def test_a_watch_of_a_measure_of_which_less_is_better():
    watch = EarlyStopping(
        rk.measure("ARP"), 2, TrainingRows.of(np.zeros((4, 1)), np.array([1, 0, 1, 0]), np.array([1, 1, 2, 2]))
    )
    good, bad = [1, 0, 1, 0], [0, 1, 0, 1]
    assert [watch.noted(number, watch.value(score)) for number, score in enumerate([bad, good, bad, bad])] == [
        False
    ] * 3 + [True]
    assert (watch.best, watch.best_iteration) == (watch.value(good), 1)


def test_no_booster_is_imported_that_the_caller_did_not_import():
    code = (
        "import sys, rankeval as rk; from sklearn.linear_model import Ridge; "
        "rk.QueryRanker(Ridge()).fit([[1.0], [2.0]], [0, 1], qid=[1, 1]); "
        "print([name for name in ('lightgbm', 'xgboost', 'catboost', 'polars') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NO_EARLIER_MODEL = [
    (LGBMRanker(boosting_type="dart", **LIGHTGBM), "LGBMRanker.boosting_type='dart'.: .*boosting_type='gbdt'"),
    (LGBMRanker(boosting="dart", **LIGHTGBM), "LGBMRanker.boosting='dart'.: "),
    (LGBMRegressor(boost="dart", early_stopping_round=5, **LIGHTGBM), "LGBMRegressor.boost='dart'.: "),
    (XGBRanker(booster="dart", rate_drop=0.5, n_jobs=1), "XGBRanker.booster='dart'.: .*booster='gbtree'"),
    (XGBRanker(booster="gblinear", n_jobs=1), "XGBRanker.booster='gblinear'.: "),
    (make_pipeline(StandardScaler(), XGBRegressor(booster="gblinear", n_jobs=1)), "XGBRegressor.booster='gblinear'.: "),
]


@pytest.mark.parametrize(("estimator", "message"), each(NO_EARLIER_MODEL), ids=lambda value: type(value).__name__)
def test_a_booster_that_changes_its_earlier_iterations_cannot_stop_early(estimator, message, ltr):
    """Dart rescales trees and gblinear has one set of coefficients: `predict` cannot go back to the best iteration."""
    own = 5 if "early_stopping_round" in estimator.get_params() else None
    ranker = rk.QueryRanker(estimator, early_stopping_rounds=None if own else 5)
    with pytest.raises(InvalidInput, match=rf"cannot stop early with {message}"):
        ranker.fit(
            ltr.X, ltr.y, qid=ltr.qid, eval_set=(ltr.X[::2], ltr.y[::2]), eval_qid=np.char.add("v", ltr.qid[::2])
        )
    assert not hasattr(ranker, "estimator_")
    if own is None:
        rk.QueryRanker(estimator).fit(ltr.X, ltr.y, qid=ltr.qid)


@pytest.mark.parametrize(
    "estimator",
    each([
        LGBMRanker(boosting_type="rf", subsample=0.5, subsample_freq=1, **LIGHTGBM),
        LGBMRanker(data_sample_strategy="goss", **LIGHTGBM),
        XGBRanker(n_estimators=50, learning_rate=0.5, num_parallel_tree=2, subsample=0.7, n_jobs=1),
        CatBoostRanker(
            iterations=50, boosting_type="Ordered", learning_rate=0.5, thread_count=1, verbose=False,
            allow_writing_files=False,
        ),
    ]),
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_best_value_is_that_of_what_predict_uses(estimator, ltr):
    """For all other kinds of boosting."""
    ranker = rk.QueryRanker(estimator, early_stopping_rounds=5)
    half = slice(None, None, 2)
    other_ids = np.char.add("v", ltr.qid[half])
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid, eval_set=(ltr.X[half], ltr.y[half]), eval_qid=other_ids)
    again = rk.evaluate(ltr.y[half], ranker.predict(ltr.X[half]), qid=ltr.qid[half], measures="nDCG@10")
    assert again.aggregate()["nDCG@10"] == pytest.approx(ranker.validation_score_, abs=1e-12)
    assert 0 < ranker.n_iterations_ <= 50
