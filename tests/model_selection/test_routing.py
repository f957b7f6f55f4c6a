"""Metadata routing on or off: ids that travel with the data give the same numbers everywhere."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk

CV = rk.QueryKFold(3)
MANY = rk.make_scorer(["nDCG@10", "AP"])
RANKERS = {
    "lightgbm": rk.QueryRanker(LGBMRanker(n_estimators=4, min_child_samples=5, n_jobs=1, verbose=-1)),
    "xgboost": rk.QueryRanker(XGBRanker(n_estimators=4, n_jobs=1)),
    "catboost": rk.QueryRanker(
        CatBoostRanker(iterations=4, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False)
    ),
    "regressor": Ridge(),
}


def parameter(ranker):
    """Return what is searched over."""
    return "alpha" if isinstance(ranker, Ridge) else "estimator__learning_rate"


def searched(ltr, ranker, kind=GridSearchCV, **options):
    search = kind(ranker, {parameter(ranker): [0.1, 0.3]}, scoring=MANY, refit="AP", cv=CV, **options)
    return search.fit(ltr.X, ltr.y_indexed).cv_results_["mean_test_nDCG@10"]


def nested(ltr, ranker):
    search = GridSearchCV(ranker, {parameter(ranker): [0.1, 0.3]}, scoring=rk.make_scorer("AP"))
    return rk.cross_validate(search, ltr.X, ltr.y_indexed, cv=CV).predictions


def on_a_curve(ltr, ranker):
    told = {"param_name": parameter(ranker), "param_range": [0.1], "scoring": rk.make_scorer("AP")}
    return validation_curve(ranker, ltr.X, ltr.y_indexed, cv=CV, **told)[1]


CALLS = {
    "cross_val_score": lambda ltr, one: cross_val_score(one, ltr.X, ltr.y_indexed, cv=CV, scoring=rk.make_scorer("AP")),
    "cross_val_predict": lambda ltr, one: cross_val_predict(one, ltr.X, ltr.y_indexed, cv=CV),
    "GridSearchCV": searched,
    "RandomizedSearchCV": lambda ltr, one: searched(ltr, one, RandomizedSearchCV, n_iter=2, random_state=0),
    "learning_curve": lambda ltr, one: learning_curve(
        one, ltr.X, ltr.y_indexed, cv=CV, scoring=rk.make_scorer("AP"), train_sizes=[0.5, 1.0]
    )[2],
    "validation_curve": on_a_curve,
    "rk.cross_validate": lambda ltr, one: rk.cross_validate(one, ltr.X, ltr.y_indexed, cv=CV).predictions,
    "rk.cross_validate nested": nested,
    "rk.learning_curve": lambda ltr, one: rk.learning_curve(one, ltr.X, ltr.y_indexed, cv=CV, sizes=[5]).table["AP"],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("ranker", each(RANKERS))
def test_routing_changes_no_number(ranker, call, ltr):
    found = []
    for on in (False, True):
        with sklearn.config_context(enable_metadata_routing=on):
            found.append(np.asarray(CALLS[call](ltr, RANKERS[ranker])))
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(found[0], found[1])


@each_row("on", [False, True], ids=["routing off", "routing on"])
def test_a_pipeline_around_a_ranker_is_told_by_our_cross_validation_either_way(on, ltr):
    """Though scikit-learn's Pipeline hands nothing on where routing is off."""
    last = make_pipeline(StandardScaler(), RANKERS["lightgbm"])
    around = rk.QueryRanker(make_pipeline(StandardScaler(), RANKERS["lightgbm"].estimator))
    with sklearn.config_context(enable_metadata_routing=on):
        both = rk.cross_validate({"last": last, "around": around}, ltr.X, ltr.y, qid=ltr.qid, cv=CV)
    assert both["last"].predictions.tolist() == both["around"].predictions.tolist()


@each_row("asked", [False, True])
def test_a_search_hands_groups_to_a_ranker_that_asks_for_them(asked, ltr):
    """Its splitter gets them in any case."""
    seen = []

    class Ranker(rk.QueryRanker):
        def fit(self, X, y, *, groups=None, **told):
            seen.append(groups)
            return super().fit(X, y, groups=groups, **told)

    author = np.array([int(query[1:]) // 3 for query in ltr.qid])
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = Ranker(Ridge()).set_fit_request(groups=asked)
        search = GridSearchCV(ranker, {"estimator__alpha": [1.0]}, cv=rk.QueryKFold(2), scoring=rk.make_scorer("AP"))
        search.fit(ltr.X, ltr.y, qid=ltr.qid, groups=author)
    assert all((groups is not None) == asked for groups in seen)
    if asked:
        assert not set(seen[0]) & set(seen[1])  # the two parts of two folds
