"""Rankers inside of scikit-learn's ensembles of regressors: a QueryRanker predicts a number a row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from lightgbm import LGBMClassifier, LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each, installed
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, check_cv, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import QueryIdError

INNER = {
    "ridge": Ridge(),
    "lightgbm": LGBMRanker(n_estimators=6, min_child_samples=5, n_jobs=1, verbose=-1),
    "xgboost": XGBRanker(n_estimators=6, n_jobs=1),
    "catboost": CatBoostRanker(
        iterations=6, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
    ),
    "pipeline": make_pipeline(StandardScaler(), LGBMRanker(n_estimators=6, n_jobs=1, verbose=-1)),
    "search": GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1.0, 2.0]}),
}  # fmt: skip


@pytest.mark.parametrize("inner", each(INNER))
def test_a_ranker_of_anything_but_classes_is_a_regressor(inner):
    assert is_regressor(rk.QueryRanker(INNER[inner]))
    assert not is_classifier(rk.QueryRanker(INNER[inner]))


@each_row("inner", [LogisticRegression(), LGBMClassifier()], ids=repr)
def test_a_ranker_of_classes_is_none_of_both(inner):
    """It has probabilities of classes, and predicts expected grades."""
    assert not is_regressor(rk.QueryRanker(inner))
    assert not is_classifier(rk.QueryRanker(inner))


def mean_of(members, ltr):
    return np.mean([clone(one).fit(ltr.X, ltr.y, qid=ltr.qid).predict(ltr.X) for _, one in members], axis=0)


def test_voting_is_the_mean_of_the_rankers_from_every_source_of_ids(ltr):
    members = [(name, rk.QueryRanker(INNER[name])) for name in installed(INNER)]
    expected = mean_of(members, ltr)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = VotingRegressor(members).fit(ltr.X, ltr.y, qid=ltr.qid)
    np.testing.assert_allclose(routed.predict(ltr.X), expected, rtol=1e-12)
    few = members[:2]
    for X in (ltr.indexed, ltr.frame.assign(qid=ltr.qid)):
        found = VotingRegressor(few).fit(X, ltr.y).predict(X)
        np.testing.assert_allclose(found, mean_of(few, ltr), rtol=1e-12)


def test_voting_takes_the_index_from_y_and_says_so(ltr):
    """scikit-learn makes an array of y; ids in its index are lost, not ignored."""
    members = [("ridge", rk.QueryRanker(Ridge()))]
    with pytest.raises(QueryIdError, match=r"VotingRegressor, StackingRegressor and RFECV.*metadata routing"):
        VotingRegressor(members).fit(ltr.X, ltr.y_indexed)


@pytest.mark.usefixtures("routing")
def test_voting_in_a_search_and_in_our_cross_validation(ltr):
    voting = VotingRegressor([("ridge", rk.QueryRanker(Ridge())), ("lightgbm", rk.QueryRanker(INNER["lightgbm"]))])
    told = {"cv": rk.QueryKFold(3), "scoring": rk.make_scorer("AP")}
    search = GridSearchCV(voting, {"ridge__estimator__alpha": [1.0, 2.0]}, **told).fit(ltr.X, ltr.y, qid=ltr.qid)
    own = rk.cross_validate(voting, ltr.X, ltr.y, qid=ltr.qid, cv=rk.QueryKFold(3), measures="AP").folds["AP"].mean()
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(own, abs=1e-12)


@pytest.mark.usefixtures("routing")
def test_stacking_trains_its_last_step_on_rankings_of_unseen_queries(ltr):
    """The last step is a QueryRanker too: scikit-learn passes it qid, whatever it requests."""
    members = [("ridge", rk.QueryRanker(Ridge())), ("lightgbm", rk.QueryRanker(INNER["lightgbm"]))]
    stack = StackingRegressor(members, final_estimator=rk.QueryRanker(Ridge()), cv=rk.QueryKFold(3))
    stack.fit(ltr.X, ltr.y, qid=ltr.qid)
    told = {"cv": rk.QueryKFold(3), "params": {"qid": ltr.qid}}
    unseen = np.column_stack([cross_val_predict(one, ltr.X, ltr.y, **told) for _, one in members])
    np.testing.assert_allclose(stack.final_estimator_.coef_, Ridge().fit(unseen, ltr.y).coef_, rtol=1e-9)


@pytest.mark.usefixtures("routing")
def test_a_stack_of_bare_regressors_says_how_its_splitter_gets_the_ids(ltr):
    told = {"cv": rk.QueryKFold(3), "scoring": rk.make_scorer("AP"), "params": {"qid": ltr.qid}, "error_score": "raise"}
    bare = StackingRegressor([("ridge", Ridge())], final_estimator=Ridge(), cv=rk.QueryKFold(2))
    with pytest.raises(QueryIdError, match=r"StackingRegressor then passes .*wrap each of them"):
        cross_val_score(bare, ltr.X, ltr.y, **told)
    own = [("ridge", rk.QueryRanker(Ridge()))]
    wrapped = StackingRegressor(own, final_estimator=rk.QueryRanker(Ridge()), cv=rk.QueryKFold(2))
    assert (cross_val_score(wrapped, ltr.X, ltr.y, **told) > 0.5).all()


def test_stacking_without_routing_takes_ids_from_x(ltr):
    frame = ltr.frame.assign(qid=ltr.qid)
    stack = StackingRegressor([("ridge", rk.QueryRanker(Ridge()))], final_estimator=Ridge(), cv=rk.QueryKFold(3))
    assert rk.make_scorer("AP")(stack.fit(frame, ltr.y), frame, ltr.y) > 0.5


def test_default_folds_are_those_of_rows_and_not_by_class(ltr):
    """Labels are grades, which scikit-learn would balance for a classifier."""
    ranker = rk.QueryRanker(Ridge())
    assert type(check_cv(3, ltr.y, classifier=is_classifier(ranker))) is KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.errors.QueryCutWarning)
        found = [cross_val_score(ranker, ltr.X, ltr.y_indexed, cv=cv) for cv in (3, KFold(3))]
    np.testing.assert_array_equal(*found)


def test_partial_dependence_takes_a_ranker(ltr):
    """scikit-learn draws it for classifiers and regressors only."""
    ranker = rk.QueryRanker(INNER["lightgbm"]).fit(ltr.X, ltr.y, qid=ltr.qid)
    curve = partial_dependence(ranker, ltr.X, [0], grid_resolution=5)["average"][0]
    assert curve[-1] > curve[0]


def test_feature_selection_of_a_frame_needs_routing_and_says_so(ltr):
    """RFECV makes arrays of X and y before it splits; SequentialFeatureSelector leaves y as it is."""
    from sklearn.feature_selection import RFECV, SequentialFeatureSelector

    told = {"cv": rk.QueryKFold(3), "scoring": rk.make_scorer("AP")}
    with pytest.raises(QueryIdError, match=r"VotingRegressor, StackingRegressor and RFECV.*metadata routing"):
        RFECV(rk.QueryRanker(Ridge()), **told).fit(ltr.indexed, ltr.y_indexed)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = RFECV(rk.QueryRanker(Ridge()), **told).fit(ltr.indexed, ltr.y_indexed, qid=ltr.qid)
    assert routed.support_[0]
    forward = SequentialFeatureSelector(rk.QueryRanker(Ridge()), n_features_to_select=1, **told)
    assert forward.fit(ltr.X, ltr.y_indexed).support_.tolist() == [True, False, False, False, False]
