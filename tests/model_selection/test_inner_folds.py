"""Estimators that hold estimators, inside our cross-validation: whole queries in their folds, weights in their members.

The loops by hand use scikit-learn alone, with the splits given.
"""

from __future__ import annotations

import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

TREE, RIDGE, LAST = DecisionTreeRegressor(max_depth=3, random_state=0), Ridge(), LinearRegression()
OUTER = rk.QueryKFold(3)
STACKS = {
    "bare": ([TREE, RIDGE], LAST),
    "mixed": ([TREE, rk.QueryRanker(RIDGE)], rk.QueryRanker(LAST)),
    "wrapped": ([rk.QueryRanker(TREE), rk.QueryRanker(RIDGE)], rk.QueryRanker(LAST)),
}


def members(estimators):
    return [(f"m{place}", one) for place, one in enumerate(estimators)]


def scores(estimator, ltr, **told):
    return rk.cross_validate(estimator, ltr.X, ltr.y, qid=ltr.qid, cv=OUTER, measures="nDCG@10", **told).predictions


def by_hand(make, ltr):
    """Return out-of-fold scores; ``make`` gets the inner splits of each fold."""
    found = np.empty(len(ltr.y))
    for train, test in OUTER.split(ltr.X, ltr.y, qid=ltr.qid):
        inner = list(rk.QueryKFold(2).split(ltr.X[train], ltr.y[train], qid=ltr.qid[train]))
        found[test] = make(inner).fit(ltr.X[train], ltr.y[train]).predict(ltr.X[test])
    return found


@pytest.mark.parametrize("cv", [2, KFold(2), rk.QueryKFold(2)], ids=repr)
@pytest.mark.parametrize("kind", STACKS)
def test_a_stack_learns_its_last_step_from_whole_queries(kind, cv, ltr):
    """scikit-learn tells the ids to the splitter beside those members only that ask for them."""
    bare, last = STACKS["bare"]
    expected = by_hand(lambda inner: StackingRegressor(members(clone(bare)), clone(last), cv=inner), ltr)
    estimators, last = STACKS[kind]
    stack = StackingRegressor(members(estimators), last, cv=cv)
    np.testing.assert_allclose(scores(stack, ltr), expected, rtol=1e-9)
    np.testing.assert_allclose(scores(make_pipeline("passthrough", stack), ltr), expected, rtol=1e-9)


@each_row(
    "make",
    [
        lambda cv: LassoCV(alphas=[0.001, 0.1, 0.5], cv=cv),
        lambda cv: GridSearchCV(TREE, {"max_depth": [1, 2, 8]}, cv=cv),
        lambda cv: RidgeCV(alphas=[0.1, 1000.0], cv=cv),
    ],
    ids=["LassoCV", "GridSearchCV", "RidgeCV"],
)
def test_every_estimator_with_folds_of_its_own_keeps_queries_whole(make, ltr):
    expected = by_hand(make, ltr)
    for cv in (2, KFold(2)):
        np.testing.assert_array_equal(scores(make(cv), ltr), expected)


def test_the_fitted_estimator_holds_the_splitter_and_no_row_numbers(ltr):
    ranker = rk.QueryRanker(LassoCV(cv=3)).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert repr(ranker.estimator_.cv) == repr(rk.QueryKFold(3))
    calibrated = rk.QueryRanker(CalibratedClassifierCV(LogisticRegression(), cv=3))
    calibrated.fit(ltr.X, (ltr.y > 0).astype(int), qid=ltr.qid)
    assert repr(calibrated.estimator_.cv) == repr(rk.QueryKFold(3))


def test_leave_one_out_by_a_formula_and_a_single_query_are_left_alone(ltr):
    ranker = rk.QueryRanker(RidgeCV()).fit(ltr.X, ltr.y, qid=ltr.qid)
    np.testing.assert_array_equal(ranker.predict(ltr.X), RidgeCV().fit(ltr.X, ltr.y).predict(ltr.X))
    one = rk.QueryRanker(LassoCV(cv=3), single_query=True).fit(ltr.X, ltr.y)
    np.testing.assert_array_equal(one.predict(ltr.X), LassoCV(cv=3).fit(ltr.X, ltr.y).predict(ltr.X))


def test_a_stack_of_fitted_members_is_not_split(ltr):
    fitted = [FrozenEstimator(clone(one).fit(ltr.X, ltr.y)) for one in (TREE, RIDGE)]
    stack = rk.QueryRanker(StackingRegressor(members(fitted), LAST, cv="prefit")).fit(ltr.X, ltr.y, qid=ltr.qid)
    expected = StackingRegressor(members(fitted), LAST, cv="prefit").fit(ltr.X, ltr.y)
    np.testing.assert_array_equal(stack.predict(ltr.X), expected.predict(ltr.X))


def test_groups_are_kept_whole_in_them(ltr):
    """The folds of groups, not those of queries."""
    groups = np.array([int(query[1:]) // 5 for query in ltr.qid])
    ranker = rk.QueryRanker(GridSearchCV(TREE, {"max_depth": [1, 2, 8]}, cv=2))
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid, groups=groups)
    inner = list(rk.QueryKFold(2).split(ltr.X, ltr.y, groups))
    expected = GridSearchCV(TREE, {"max_depth": [1, 2, 8]}, cv=inner).fit(ltr.X, ltr.y)
    np.testing.assert_array_equal(
        ranker.estimator_.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


@each_row("last", [None, Ridge(), LGBMRanker(), make_pipeline(StandardScaler(), Ridge())], ids=repr)
def test_a_last_step_that_takes_no_ids_is_refused_before_fitting(last, ltr):
    """scikit-learn gives it all that the stack gets."""
    stack = StackingRegressor(members([rk.QueryRanker(TREE)]), last, cv=2)
    for call in (lambda: scores(stack, ltr), lambda: rk.QueryRanker(stack).fit(ltr.X, ltr.y, qid=ltr.qid)):
        with pytest.raises(InvalidInput, match=r"StackingRegressor .* final_estimator=QueryRanker\("):
            call()
    search = GridSearchCV(stack, {"m0__estimator__max_depth": [1, 2]}, cv=2)
    with pytest.raises(InvalidInput, match=r"final_estimator=QueryRanker\("):
        scores(search, ltr)
    wrapped = StackingRegressor(members([rk.QueryRanker(TREE)]), make_pipeline("passthrough", rk.QueryRanker(RIDGE)))
    assert np.isfinite(scores(wrapped, ltr)).all()


def of_queries(ltr):
    return 1.0 + np.array([int(query[1:]) % 3 for query in ltr.qid])


def weighted_by_hand(ltr, weight):
    found = np.empty(len(ltr.y))
    for train, test in OUTER.split(ltr.X, ltr.y, qid=ltr.qid):
        fits = [clone(one).fit(ltr.X[train], ltr.y[train], sample_weight=weight[train]) for one in (TREE, RIDGE)]
        found[test] = np.mean([one.predict(ltr.X[test]) for one in fits], axis=0)
    return found


@each_row("by_row", [False, True])
@each_row(
    "make",
    [
        lambda: VotingRegressor(members([rk.QueryRanker(TREE), rk.QueryRanker(RIDGE)])),
        lambda: VotingRegressor(members([TREE, rk.QueryRanker(RIDGE)])),
        lambda: VotingRegressor(members([make_pipeline(StandardScaler(with_std=False), rk.QueryRanker(TREE)), RIDGE])),
        lambda: TransformedTargetRegressor(
            VotingRegressor(members([TREE, rk.QueryRanker(RIDGE)])), func=np.array, inverse_func=np.array
        ),
        lambda: GridSearchCV(
            VotingRegressor(members([TREE, rk.QueryRanker(RIDGE)])),
            {"m1__estimator__alpha": [1.0]},
            scoring=rk.make_scorer("AP"),
        ),
    ],
    ids=["rankers", "mixed", "pipeline", "target", "search"],
)
def test_weights_reach_the_members_as_by_hand(make, by_row, ltr):
    """With metadata routing off, and without requests."""
    weight = np.random.default_rng(2).uniform(0.1, 9.0, len(ltr.y)) if by_row else of_queries(ltr)
    expected = weighted_by_hand(ltr, weight)
    np.testing.assert_allclose(scores(make(), ltr, sample_weight=weight), expected, rtol=1e-9)


def test_weights_reach_a_stack(ltr):
    weight = of_queries(ltr)
    stack = StackingRegressor(members([rk.QueryRanker(TREE), RIDGE]), rk.QueryRanker(LAST), cv=2)
    found = scores(stack, ltr, sample_weight=weight)
    assert (found != scores(stack, ltr)).any()
    for train, test in OUTER.split(ltr.X, ltr.y, qid=ltr.qid):
        X, y, told = ltr.X[train], ltr.y[train], {"sample_weight": weight[train]}
        unseen = np.empty((len(y), 2))
        for a, b in rk.QueryKFold(2).split(X, y, qid=ltr.qid[train]):
            for place, one in enumerate((TREE, RIDGE)):
                unseen[b, place] = clone(one).fit(X[a], y[a], sample_weight=weight[train][a]).predict(X[b])
        whole = [clone(one).fit(X, y, **told).predict(ltr.X[test]) for one in (TREE, RIDGE)]
        expected = clone(LAST).fit(unseen, y, **told).predict(np.column_stack(whole))
        np.testing.assert_allclose(found[test], expected, rtol=1e-9)
