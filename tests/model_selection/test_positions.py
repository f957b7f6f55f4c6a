"""The position at which each row was shown: LightGBM learns its bias, and no other library takes it in silence."""

from __future__ import annotations

import lightgbm
import numpy as np
import optuna
import pytest
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

LGBM = {"n_estimators": 12, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
SETTINGS = [
    {},
    {"subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.6, "random_state": 3},
    {"lambdarank_position_bias_regularization": 1.5, "boosting_type": "dart"},
]
TRAIN = {
    "objective": "lambdarank",
    "min_data_in_leaf": 5,
    "num_threads": 1,
    "verbosity": -1,
}
NAMES = {
    "subsample": "bagging_fraction",
    "subsample_freq": "bagging_freq",
    "colsample_bytree": "feature_fraction",
    "random_state": "seed",
    "boosting_type": "boosting",
}


@pytest.fixture
def position(ltr):
    """Return ranks of a log: each query was shown from 1 on, in an order of its own."""
    rng, found = np.random.default_rng(4), np.empty(len(ltr.y), dtype=int)
    for query in np.unique(ltr.qid):
        rows = np.flatnonzero(ltr.qid == query)
        found[rows] = rng.permutation(len(rows)) + 1
    return found


def by_hand(ltr, position, rows=None, weight=None, **settings):
    """Return the booster of `lightgbm.train`, the way to give positions that LightGBM documents."""
    rows = np.arange(len(ltr.y)) if rows is None else rows
    order = rows[np.argsort(ltr.qid[rows], kind="stable")]
    sizes = np.unique(ltr.qid[order], return_counts=True)[1]
    told = {"group": sizes, "position": position[order], "weight": None if weight is None else weight[order]}
    params = TRAIN | {NAMES.get(name, name): value for name, value in settings.items()}
    return lightgbm.train(params, lightgbm.Dataset(ltr.X[order], ltr.y[order], **told), num_boost_round=12)


@each_row("settings", SETTINGS, ids=["plain", "sampled", "dart"])
def test_lightgbm_learns_from_positions_what_it_learns_by_hand(settings, ltr, position):
    """To the bit, with rows in any order, with weights, and with its random numbers where they were."""
    weight = np.random.default_rng(2).uniform(0.1, 9.0, len(ltr.y))
    ranker = rk.QueryRanker(LGBMRanker(**LGBM, **settings))
    found = ranker.fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight, position=position)
    expected = by_hand(ltr, position, weight=weight, **settings)
    np.testing.assert_array_equal(found.predict(ltr.X), expected.predict(ltr.X))
    plain = ranker.fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    assert (plain.predict(ltr.X) != expected.predict(ltr.X)).any()


def test_early_stopping_watches_the_held_out_queries_of_a_ranker_with_positions(ltr, position):
    """Positions of training rows alone are needed, and the best iteration is the one that predicts."""
    own = np.char.add("v", ltr.qid)
    told = {"eval_set": (ltr.X[::-1] + 0.5, ltr.y[::-1]), "eval_qid": [own[::-1]]}
    ranker = rk.QueryRanker(LGBMRanker(**LGBM), early_stopping_rounds=3)
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid, position=position, **told)
    booster = by_hand(ltr, position)
    scores = [
        rk.evaluate(ltr.y, booster.predict(ltr.X + 0.5, num_iteration=n), qid=own, measures="nDCG@10").scores.mean()
        for n in range(1, ranker.n_iterations_ + 1)
    ]
    assert ranker.n_iterations_ == 1 + int(np.argmax(scores))
    assert ranker.validation_score_ == pytest.approx(max(scores), abs=1e-12)
    expected = booster.predict(ltr.X, num_iteration=ranker.n_iterations_)
    np.testing.assert_array_equal(ranker.predict(ltr.X), expected)


@pytest.mark.usefixtures("routing")
def test_folds_pipelines_searches_and_trials_hand_positions_on(ltr, position):
    """Each fold is fitted with the positions of its own rows."""
    cv = rk.QueryKFold(3)
    folds = [(train, test) for train, test in cv.split(ltr.X, ltr.y, qid=ltr.qid)]
    expected = np.empty(len(ltr.y))
    for train, test in folds:
        expected[test] = by_hand(ltr, position, train).predict(ltr.X[test])
    told = {"qid": ltr.qid, "position": position}
    result = rk.cross_validate(LGBMRanker(**LGBM), ltr.X, ltr.y, cv=cv, measures="nDCG@10", **told)
    np.testing.assert_array_equal(result.predictions, expected)
    search = GridSearchCV(rk.QueryRanker(LGBMRanker(**LGBM)), {}, cv=cv, scoring=rk.make_scorer("nDCG@10"))
    search.fit(ltr.X, ltr.y, **told)
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(result.folds["nDCG@10"].mean(), abs=1e-12)
    whole = by_hand(ltr, position).predict(ltr.X)
    np.testing.assert_array_equal(search.predict(ltr.X), whole)
    np.testing.assert_array_equal(rk.QueryRanker(search).fit(ltr.X, ltr.y, **told).predict(ltr.X), whole)
    objective = rk.optuna_objective(
        LGBMRanker(**LGBM), {"num_leaves": [31]}, ltr.X, ltr.y, measure="nDCG@10", cv=cv, **told
    )
    value = objective(optuna.trial.FixedTrial({"num_leaves": 31}))
    assert value == pytest.approx(result.folds["nDCG@10"].mean(), abs=1e-12)
    steps = rk.QueryRanker(make_pipeline(StandardScaler(with_mean=False, with_std=False), LGBMRanker(**LGBM)))
    np.testing.assert_array_equal(steps.fit(ltr.X, ltr.y, **told).predict(ltr.X), whole)
    curve = rk.learning_curve(LGBMRanker(**LGBM), ltr.X, ltr.y, cv=cv, sizes=[1.0], measures="nDCG@10", **told)
    assert curve.table["nDCG@10"].tolist() == result.folds["nDCG@10"].tolist()


@pytest.mark.parametrize(
    "estimator",
    each(
        [
            XGBRanker(n_estimators=5),
            CatBoostRanker(iterations=5, verbose=False),
            Ridge(),
            LGBMRanker(objective="rank_xendcg", **LGBM),
            GridSearchCV(Ridge(), {}),
        ]
    ),
    ids=["xgboost", "catboost", "regressor", "xendcg", "search"],
)
def test_an_estimator_that_learns_nothing_from_positions_refuses_them(estimator, ltr, position):
    with pytest.raises(InvalidInput) as caught:
        rk.QueryRanker(estimator).fit(ltr.X, ltr.y, qid=ltr.qid, position=position)
    assert caught.value.argument == "position"


@each_row(
    ("wrong", "found"),
    [([1, 2], "is 2 values"), (0.5, "is 0.5 in row 3"), (np.nan, "is nan in row 3")],
    ids=["short", "half", "missing"],
)
def test_a_position_is_a_whole_number_for_each_row(wrong, found, ltr, position):
    wrong = wrong if isinstance(wrong, list) else np.where(np.arange(len(position)) == 3, wrong, position)
    with pytest.raises(InvalidInput) as caught:
        rk.QueryRanker(LGBMRanker(**LGBM)).fit(ltr.X, ltr.y, qid=ltr.qid, position=wrong)
    assert caught.value.argument == "position"
    assert found in str(caught.value)
