"""Scorers inside and outside of scikit-learn, routing on and off."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from model_selection.libraries import CatBoostRegressor
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import ndcg_score
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from tables import each_row

import rankeval as rk
from rankeval.collection.convention import Convention
from rankeval.errors import (
    ConflictingQueryIdsRefusal,
    InvalidInput,
    MissingQueryIdsRefusal,
    RankevalWarning,
    Refusal,
    UnknownName,
)
from rankeval.model_selection.splitters import QueryKFold

MANY = ["nDCG@10", "AP", "RR"]


class Counting(RegressorMixin, BaseEstimator):
    """The first feature, and how often it was asked for."""

    calls = 0

    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, X, y):
        self.n_features_in_ = np.asarray(X).shape[1]
        return self

    def predict(self, X):
        type(self).calls += 1
        return self.sign * np.asarray(X)[:, 0]


@pytest.fixture
def ridge(ltr):
    return Ridge().fit(ltr.X, ltr.y)


def by_hand(y, score, qid):
    """nDCG@10 by a loop over queries; the scores have no ties."""
    return np.mean([ndcg_score([y[qid == query]], [score[qid == query]], k=10) for query in np.unique(qid)])


def test_ids_come_by_every_way_to_the_same_value(ltr, ridge):
    scorer = rk.make_scorer("AP")
    expected = scorer(ridge, ltr.X, ltr.y, qid=ltr.qid)
    assert scorer(ridge, ltr.indexed.to_numpy(), ltr.y_indexed) == expected
    named = Ridge().fit(ltr.frame, ltr.y)
    assert scorer(named, ltr.indexed, ltr.y) == expected
    assert scorer(named, ltr.frame.assign(qid=ltr.qid), ltr.y) == expected
    assert rk.make_scorer("AP", qid=pd.Series(ltr.qid), y=ltr.y)(named, ltr.frame, ltr.y) == expected
    own = ltr.frame.set_axis(np.arange(len(ltr.y))[::-1])
    assert rk.make_scorer("AP", qid=pd.Series(ltr.qid, own.index))(named, own, ltr.y) == expected
    assert rk.make_scorer("AP", qid=ltr.qid, y=ltr.y)(ridge, ltr.X, ltr.y) == expected
    order = np.argsort(ltr.qid, kind="stable")
    sizes = np.unique(ltr.qid, return_counts=True)[1]
    assert scorer(ridge, ltr.X[order], ltr.y[order], group=sizes) == pytest.approx(expected, abs=1e-15)


def test_many_measures_are_a_dict_from_one_predict(ltr):
    Counting.calls = 0
    results = cross_validate(
        Counting(), ltr.indexed, ltr.y, groups=ltr.qid, cv=QueryKFold(4), scoring=rk.make_scorer(MANY)
    )
    assert Counting.calls == 4
    assert {f"test_{name}" for name in MANY} <= set(results)
    one = cross_val_score(
        Counting(), ltr.indexed, ltr.y, groups=ltr.qid, cv=QueryKFold(4), scoring=rk.make_scorer("AP")
    )
    assert results["test_AP"].tolist() == one.tolist()


def test_less_is_better_is_turned_round(ltr, ridge):
    """As scikit-learn's greater_is_better=False, so that a search keeps the better ranker."""
    told = {"qid": ltr.qid, "measures": ["ARP", "nDCG@10"]}
    found = rk.evaluate(ltr.y, ridge.predict(ltr.X), **told).aggregate()
    assert rk.make_scorer("ARP")(ridge, ltr.X, ltr.y, qid=ltr.qid) == -found["ARP"]
    many = rk.make_scorer(["ARP", "nDCG@10"])
    assert many(ridge, ltr.X, ltr.y, qid=ltr.qid) == {"ARP": -found["ARP"], "nDCG@10": found["nDCG@10"]}
    assert many.evaluate(ridge, ltr.X, ltr.y, qid=ltr.qid).aggregate().equals(found)
    for scoring in ("ARP", ["ARP", "nDCG@10"]):
        search = GridSearchCV(
            Counting(), {"sign": [-1, 1]}, scoring=rk.make_scorer(scoring), refit="ARP", cv=QueryKFold(3)
        )
        assert search.fit(ltr.X, ltr.y_indexed).best_params_ == {"sign": 1}


@each_row(
    "call",
    [
        {},
        {"qid": ["a", "b"]},
        {"qid": [np.nan] * 360},
        {"group": [1, 2]},
    ],
)
def test_a_forgotten_or_unusable_qid_is_not_swallowed(call, ltr, ridge):
    """A `BaseException` of one line that lists the ways."""
    with pytest.raises(MissingQueryIdsRefusal) as caught:
        rk.make_scorer("AP")(ridge, ltr.X, ltr.y, **call)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, Exception)


def test_a_forgotten_qid_gets_through_error_score_nan(ltr):
    with pytest.raises(Refusal, match=r"needs the query id of each row.*index level.*make_scorer.*cross_validate"):
        cross_val_score(Ridge(), ltr.X, ltr.y, cv=3, scoring=rk.make_scorer("AP"), error_score=np.nan)


@pytest.mark.usefixtures("routing")
@pytest.mark.worth("the one refusal by default that comes through workers of joblib")
def test_a_forgotten_qid_gets_through_workers_and_routing(ltr):
    with pytest.raises(Refusal):
        cross_val_score(Ridge(), ltr.X, ltr.y, cv=3, n_jobs=2, scoring=rk.make_scorer("AP"), error_score=np.nan)


def test_sources_that_disagree_are_an_error(ltr, ridge):
    with pytest.raises(ConflictingQueryIdsRefusal, match="different queries"):
        rk.make_scorer("AP")(ridge, ltr.indexed.to_numpy(), ltr.y_indexed, qid=ltr.qid[::-1])


def test_bound_ids_work_in_folds_and_are_refused_after_a_reset(ltr):
    X = ltr.frame.set_axis([f"row {number}" for number in range(len(ltr.y))])
    y = pd.Series(ltr.y, X.index)
    scorer = rk.make_scorer("AP", qid=pd.Series(ltr.qid, X.index))
    bound = cross_val_score(Ridge(), X, y, groups=ltr.qid, cv=QueryKFold(3), scoring=scorer)
    told = cross_val_score(Ridge(), ltr.indexed, ltr.y, groups=ltr.qid, cv=QueryKFold(3), scoring=rk.make_scorer("AP"))
    assert bound.tolist() == told.tolist()
    part = ltr.qid == "q3"
    with pytest.raises(MissingQueryIdsRefusal, match="reset_index"):
        rk.make_scorer("AP", qid=pd.Series(ltr.qid))(
            Ridge().fit(ltr.frame, y), ltr.frame[part].reset_index(drop=True), y[part].reset_index(drop=True)
        )


def test_a_column_of_ids_is_no_feature(ltr):
    """But a Pipeline that was fitted with it, and drops it itself, gets it."""
    from sklearn.compose import make_column_transformer

    frame = ltr.frame.assign(qid=ltr.qid)
    expected = rk.make_scorer("AP")(Ridge().fit(ltr.frame, ltr.y), frame, ltr.y)
    dropping = make_pipeline(make_column_transformer(("drop", ["qid"]), remainder="passthrough"), Ridge())
    assert rk.make_scorer("AP")(dropping.fit(frame, ltr.y), frame, ltr.y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.needs("catboost")
@each_row("around", [lambda one: one, make_pipeline, lambda one: GridSearchCV(one, {"depth": [2]}, cv=2)])
def test_catboost_gets_the_columns_that_it_was_fitted_with(around, ltr):
    number = np.array([int(query[1:]) for query in ltr.qid])
    frame = ltr.frame.assign(qid=number)
    catboost = CatBoostRegressor(iterations=5, thread_count=1, verbose=False, allow_writing_files=False)
    for X in (frame, ltr.frame):
        fitted = around(catboost).fit(X, ltr.y)
        expected = rk.evaluate(ltr.y, fitted.predict(X), qid=number, measures="AP").aggregate()["AP"]
        assert rk.make_scorer("AP")(fitted, frame, ltr.y) == expected


CLASSIFIERS = [LogisticRegression(max_iter=1000), LinearSVC(), make_pipeline(StandardScaler(), GaussianNB()), Ridge()]
CLASSIFIERS.append(RidgeClassifier())


@each_row("grades", [2, 4])
@each_row("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_a_bare_classifier_is_scored_as_in_a_ranker_and_not_by_its_labels(model, grades, ltr):
    """By probabilities, or by the expected grade; by a decision of one column; else by what it predicts."""
    y = np.minimum(ltr.y, grades - 1)
    scorer, cv = rk.make_scorer("nDCG@10"), QueryKFold(3)
    indexed = pd.Series(y, ltr.y_indexed.index)
    bare = cross_val_score(model, ltr.X, indexed, cv=cv, scoring=scorer, error_score="raise")
    own = rk.cross_validate(model, ltr.X, y, qid=ltr.qid, cv=cv, measures="nDCG@10").folds["nDCG@10"]
    inside = cross_val_score(rk.QueryRanker(model), ltr.X, indexed, cv=cv, scoring=scorer, error_score="raise")
    np.testing.assert_allclose(bare, own, rtol=1e-12)
    np.testing.assert_allclose(inside, own, rtol=1e-12)
    if not isinstance(model, Ridge | LinearSVC | RidgeClassifier):
        labels = rk.make_scorer("nDCG@10", response_method="predict")
        assert (bare != cross_val_score(model, ltr.X, indexed, cv=cv, scoring=labels)).any()
    assert repr(scorer) == "make_scorer('nDCG@10')"
    assert "response_method='predict'" in repr(rk.make_scorer("AP", response_method="predict"))


def test_scores_come_by_the_response_method(ltr):
    relevant = (ltr.y > 0).astype(int)
    logistic = LogisticRegression().fit(ltr.X, relevant)
    proba = rk.make_scorer("AP", response_method="predict_proba")(logistic, ltr.X, relevant, qid=ltr.qid)
    decision = rk.make_scorer("AP", response_method=("decision_function", "predict"))
    assert decision(logistic, ltr.X, relevant, qid=ltr.qid) == pytest.approx(proba, abs=1e-12)
    assert decision(Ridge().fit(ltr.X, relevant), ltr.X, relevant, qid=ltr.qid) > 0
    graded = LogisticRegression(max_iter=1000).fit(ltr.X, ltr.y)
    expected = by_hand(ltr.y, graded.predict_proba(ltr.X) @ graded.classes_, ltr.qid)
    by_grade = rk.make_scorer("nDCG@10", response_method="predict_proba")
    assert by_grade(graded, ltr.X, ltr.y, qid=ltr.qid) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InvalidInput, match="has no predict_proba"):
        by_grade(Ridge().fit(ltr.X, ltr.y), ltr.X, ltr.y, qid=ltr.qid)
    svc = LinearSVC().fit(ltr.X, ltr.y)
    with pytest.raises(InvalidInput, match="expected one number a row, found an array of shape"):
        rk.make_scorer("AP", response_method="decision_function")(svc, ltr.X, ltr.y, qid=ltr.qid)
    assert decision(svc, ltr.X, ltr.y, qid=ltr.qid) == rk.make_scorer("AP")(svc, ltr.X, ltr.y, qid=ltr.qid)


@each_row("make", [pd.DataFrame, lambda y: np.array([y]).T], ids=["frame", "array"])
def test_labels_may_be_one_column(make, ltr, ridge):
    y, scorer = make(ltr.y), rk.make_scorer("AP")
    expected = scorer(ridge, ltr.X, ltr.y, qid=ltr.qid)
    assert scorer(ridge, ltr.X, y, qid=ltr.qid) == expected
    assert rk.make_scorer("AP", qid=ltr.qid, y=y)(ridge, ltr.X, y) == expected
    with pytest.raises(ValueError, match="y: expected one number a row"):
        scorer(ridge, ltr.X, np.zeros((len(ltr.y), 2)), qid=ltr.qid)


def test_query_weight_is_the_weight_of_a_query(ltr, ridge):
    scorer = rk.make_scorer("AP")
    per_query = scorer.evaluate(ridge, ltr.X, ltr.y, qid=ltr.qid).per_query["AP"]
    weight = pd.Series(np.arange(1.0, 31.0), per_query.index)
    value = scorer(ridge, ltr.X, ltr.y, qid=ltr.qid, query_weight=weight[ltr.qid].to_numpy())
    assert value == pytest.approx(np.average(per_query, weights=weight), abs=1e-12)
    with pytest.raises(InvalidInput, match="within one query"):
        scorer(ridge, ltr.X, ltr.y, qid=ltr.qid, query_weight=np.arange(len(ltr.y)))


@pytest.mark.usefixtures("routing")
def test_document_ids_break_ties_where_the_convention_asks_for_them(ltr):
    """By argument, by routing, by an index level."""
    constant = DummyRegressor().fit(ltr.X, ltr.y)
    docid = np.array([f"d{number:03}" for number in range(len(ltr.y))])
    scorer = rk.make_scorer("AP", convention="trec_eval-9.0.8")
    expected = rk.evaluate(
        ltr.y, np.zeros(len(ltr.y)), qid=ltr.qid, docid=docid, measures="AP", convention="trec_eval-9.0.8"
    ).aggregate()["AP"]
    assert scorer(constant, ltr.X, ltr.y, qid=ltr.qid, docid=docid) == expected
    both = pd.MultiIndex.from_arrays([ltr.qid, docid], names=["qid", "docid"])
    assert scorer(constant, ltr.X, pd.Series(ltr.y, both)) == expected
    told = {"qid": ltr.qid, "docid": docid}
    assert np.isfinite(
        cross_val_score(DummyRegressor(), ltr.X, ltr.y, cv=QueryKFold(3), scoring=scorer, params=told)
    ).all()
    with pytest.raises(InvalidInput, match="docid"):
        scorer(constant, ltr.X, ltr.y, qid=ltr.qid)


@each_row(
    "measures, grades, said",
    [
        (["AP", "nDCG@10"], 0.9, "AP: no document has a grade of 1 or more; the greatest is 0.9: give rel="),
        ("RR(rel=2)", 1, r"RR\(rel=2\): no document has a grade of 2 or more; the greatest is 1: give rel="),
        ("AP", 0, "queries without a relevant document: 0/0 counted as 0"),
    ],
)
def test_a_search_over_labels_that_nothing_counts_says_so(ltr, measures, grades, said):
    y = grades * (ltr.y == ltr.y.max())
    scorer, cv = rk.make_scorer(measures, qid=pd.Series(ltr.qid)), QueryKFold(3).split(ltr.X, y, qid=ltr.qid)
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scorer, cv=list(cv), refit=False)
    with pytest.warns(RankevalWarning, match=said):
        search.fit(pd.DataFrame(ltr.X), pd.Series(y))


def test_names_are_checked_when_the_scorer_is_made():
    for options in (
        {"measures": "nDGC@10"},
        {"measures": "AP", "convention": "trec"},
        {"measures": "AP", "response_method": "predicts"},
    ):
        with pytest.raises(UnknownName):
            rk.make_scorer(**options)
    with pytest.raises(UnknownName, match="metadata of a scorer"):
        rk.make_scorer("AP").set_score_request(qids="q")
    with pytest.raises(InvalidInput, match="none are bound"):
        rk.make_scorer("AP", y=[1, 2])


@each_row(
    "scorer",
    [
        rk.make_scorer("nDCG@10"),
        rk.make_scorer(MANY, convention="trec_eval-10", name="mine"),
        rk.make_scorer(rk.measure("P(rel=2)@5"), response_method=("predict_proba", "predict")),
        rk.make_scorer("AP", convention=Convention("own", ties="stable")),
        rk.make_scorer("AP").set_score_request(qid="query", query_weight=False),
        rk.make_scorer("AP", qid=pd.Series([1, 1]), y=[0, 1]),
    ],
    ids=repr,
)
def test_a_scorer_pickles_clones_and_prints_as_it_is_made(scorer):
    again = pickle.loads(pickle.dumps(scorer))
    assert repr(again) == repr(clone(scorer)) == repr(scorer)
    assert again.get_metadata_routing().score.requests == scorer.get_metadata_routing().score.requests
    if "bound" not in repr(scorer):
        names = {"make_scorer": rk.make_scorer, "Convention": Convention}
        assert repr(eval(repr(scorer), names)) == repr(scorer)  # noqa: S307 - our own text


def test_a_clone_keeps_its_own_requests():
    scorer = rk.make_scorer("AP")
    clone(scorer).set_score_request(qid="query")
    assert repr(scorer) == repr(rk.make_scorer("AP"))


class TestInScikitLearn:
    """One qid by routing, or an index level without it, gives the same numbers."""

    def grid(self, **options):
        return GridSearchCV(
            Ridge(), {"alpha": [0.1, 1e4]}, scoring=rk.make_scorer(MANY), refit="nDCG@10", cv=QueryKFold(3), **options
        )

    @pytest.mark.usefixtures("routing")
    def test_grid_search_with_and_without_routing(self, ltr):
        import sklearn

        routed = self.grid().fit(ltr.X, ltr.y, qid=ltr.qid)
        with sklearn.config_context(enable_metadata_routing=False):
            indexed = self.grid().fit(ltr.X, ltr.y_indexed)
        assert routed.cv_results_["mean_test_AP"].tolist() == indexed.cv_results_["mean_test_AP"].tolist()
        assert routed.score(ltr.X, ltr.y, qid=ltr.qid) == rk.make_scorer("nDCG@10")(routed, ltr.X, ltr.y, qid=ltr.qid)

    @pytest.mark.usefixtures("routing")
    def test_curves_and_permutation_test(self, ltr):
        told = {"cv": QueryKFold(3), "scoring": rk.make_scorer("AP"), "params": {"qid": ltr.qid}}
        sizes, _, scores = learning_curve(Ridge(), ltr.X, ltr.y, train_sizes=[0.5, 1.0], **told)
        assert scores.shape == (2, 3)
        assert len(sizes) == 2
        assert validation_curve(Ridge(), ltr.X, ltr.y, param_name="alpha", param_range=[1, 2], **told)[1].shape == (
            2,
            3,
        )
        value, shuffled, _ = permutation_test_score(Ridge(), ltr.X, ltr.y, n_permutations=2, **told)
        assert value > shuffled.max()

    @pytest.mark.usefixtures("routing")
    def test_feature_selection(self, ltr):
        told = {"cv": QueryKFold(3), "scoring": rk.make_scorer("nDCG@10")}
        assert RFECV(LinearRegression(), **told).fit(ltr.X, ltr.y, qid=ltr.qid).support_[0]
        forward = SequentialFeatureSelector(LinearRegression(), n_features_to_select=1, **told)
        assert forward.fit(ltr.X, ltr.y, qid=ltr.qid).support_.tolist() == [True, False, False, False, False]

    def test_permutation_importance_by_bound_ids_or_an_index(self, ltr, ridge):
        """Which routes nothing."""
        bound = permutation_importance(
            ridge, ltr.X, ltr.y, scoring=rk.make_scorer(["AP"], qid=ltr.qid, y=ltr.y), n_repeats=2, random_state=0
        )
        indexed = permutation_importance(
            ridge, ltr.X, ltr.y_indexed, scoring=rk.make_scorer(["AP"]), n_repeats=2, random_state=0
        )
        assert bound["AP"].importances.tolist() == indexed["AP"].importances.tolist()
        assert bound["AP"].importances_mean.argmax() == 0


def test_names_are_read_under_the_convention(ltr, ridge):
    """What a name means by tool is decided by the convention, in scorers and cross-validation as in evaluate."""
    rules = Convention("mine", bind={"IPrec": {"rule": "trec_eval-9"}})
    name = "iprec_at_recall_0.10"
    scorer = rk.make_scorer(name, convention=rules)
    plain = rk.make_scorer("IPrec(recall=0.1, rule='trec_eval-9')")
    assert scorer(ridge, ltr.X, ltr.y, qid=ltr.qid) == plain(ridge, ltr.X, ltr.y, qid=ltr.qid)
    result = rk.cross_validate(ridge, ltr.X, ltr.y, qid=ltr.qid, measures=name, convention=rules, cv=2)
    assert result.evaluation.measure_names == (name,)
    assert set(rk.make_scorer("P.5,10")(ridge, ltr.X, ltr.y, qid=ltr.qid)) == {"P_5", "P_10"}
