"""Cross-validation that keeps every query's out-of-fold score."""

from __future__ import annotations

import pickle
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version
from tables import each_row

import rankeval as rk
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection.splitters import QueryKFold, RepeatedQueryKFold
from rankeval.model_selection.validation import _Options

LGBM = LGBMRanker(n_estimators=8, min_child_samples=5, n_jobs=1, verbose=-1)
CATBOOST = CatBoostRanker(iterations=5, thread_count=1, verbose=False, allow_writing_files=False)


class Counting(RegressorMixin, BaseEstimator):
    """The first feature, and how often it was asked for."""

    calls = 0

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        type(self).calls += 1
        return X[:, 0]


def test_the_evaluation_is_that_of_the_out_of_fold_predictions(ltr):
    result = rk.cross_validate(LGBM, ltr.X, ltr.y, qid=ltr.qid, cv=QueryKFold(4))
    score = np.empty(len(ltr.y))
    for train, test in QueryKFold(4).split(ltr.X, qid=ltr.qid):
        score[test] = rk.QueryRanker(LGBM).fit(ltr.X[train], ltr.y[train], qid=ltr.qid[train]).predict(ltr.X[test])
    np.testing.assert_array_equal(result.predictions, score)
    expected = rk.evaluate(ltr.y, score, qid=ltr.qid)
    pd.testing.assert_frame_equal(result.evaluation.per_query, expected.per_query)
    assert result.evaluation.n_queries == 30


def test_folds_tell_queries_means_and_seconds(ltr):
    result = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures=["AP", "NumQ"], name="ridge")
    assert result.folds.columns.tolist() == ["n_queries", "AP", "NumQ", "fit_seconds", "score_seconds"]
    assert result.folds["n_queries"].tolist() == [10, 10, 10]
    assert result.folds["AP"].mean() == pytest.approx(result.evaluation.aggregate()["AP"], abs=1e-12)
    assert result.fit_seconds == pytest.approx(result.folds["fit_seconds"].sum())
    assert (result.folds[["fit_seconds", "score_seconds"]] > 0).all(axis=None)
    assert result.evaluation.name == "ridge"
    assert "3 folds; over all 30 queries" in repr(result)
    assert "fit_seconds" in result._repr_html_()
    assert pickle.loads(pickle.dumps(result)).folds.equals(result.folds)


@each_row("on", [True, False], ids=["routing", "no routing"])
def test_routing_changes_nothing(on, ltr):
    import sklearn

    expected = rk.cross_validate(LGBM, ltr.X, ltr.y, qid=ltr.qid, cv=3).predictions
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), rk.QueryRanker(LGBM))
    with sklearn.config_context(enable_metadata_routing=on):
        for estimator in (rk.QueryRanker(LGBM), pipeline, make_pipeline("passthrough", LGBM)):
            result = rk.cross_validate(estimator, ltr.X, ltr.y, qid=ltr.qid, cv=3)
            np.testing.assert_array_equal(result.predictions, expected)


def test_a_search_makes_it_nested(ltr):
    """Inner folds keep queries whole too, though the search was made with a plain number of folds."""
    search = GridSearchCV(
        rk.QueryRanker(LGBM), {"estimator__num_leaves": [2, 9]}, scoring=rk.make_scorer("AP"), cv=2, error_score="raise"
    )
    result = rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=3, return_estimators=True)
    chosen = [ranker.estimator_.best_params_["estimator__num_leaves"] for ranker in result.estimators]
    assert set(chosen) <= {2, 9}
    assert all(isinstance(ranker.estimator_.cv, QueryKFold) for ranker in result.estimators)
    assert result.evaluation.n_queries == 30
    plain = GridSearchCV(rk.QueryRanker(LGBM), {"estimator__num_leaves": [2]}, cv=KFold(2), error_score="raise")
    assert rk.cross_validate(plain, ltr.X, ltr.y, qid=ltr.qid, cv=2).evaluation.n_queries == 30


@each_row("cv", [KFold(3), GroupKFold(3), KFold(3, shuffle=True, random_state=0), LeaveOneOut()], ids=repr)
def test_any_splitter_is_applied_to_queries(cv, ltr):
    result = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=cv, measures="AP")
    assert result.folds["n_queries"].sum() == 30
    assert not np.isnan(result.predictions).any()


def test_rows_given_as_splits_must_not_cut_a_query(ltr):
    folds = list(QueryKFold(3).split(ltr.X, qid=ltr.qid))
    masks = [(np.isin(np.arange(360), train), np.isin(np.arange(360), test)) for train, test in folds]
    by_rows, by_masks = (rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=cv) for cv in (folds, masks))
    assert by_rows.predictions.tolist() == by_masks.predictions.tolist()
    with pytest.raises(InvalidInput, match="split 0 of cv cuts query"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=KFold(3).split(ltr.X))
    with pytest.raises(InvalidInput, match="cv is 'five'"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv="five")


def test_of_repeats_the_first_counts_and_all_stand_in_the_folds(ltr):
    cv = RepeatedQueryKFold(3, n_repeats=2, random_state=0)
    result = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=cv, measures="AP")
    assert len(result.folds) == 6
    assert result.evaluation.n_queries == 30
    assert result.folds["AP"][:3].mean() == pytest.approx(result.evaluation.aggregate()["AP"], abs=1e-12)


def test_a_query_that_was_never_held_out_does_not_count(ltr):
    train, test = next(iter(QueryKFold(3).split(ltr.X, qid=ltr.qid)))
    result = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=[(train, test)], measures="AP")
    assert result.evaluation.n_queries == 10
    assert np.isnan(result.predictions[train]).all()
    assert not np.isnan(result.predictions[test]).any()


@pytest.mark.parametrize(
    "estimator",
    [LGBM, pytest.param(CATBOOST, marks=[pytest.mark.rest, pytest.mark.needs("catboost")])],
    ids=lambda estimator: type(estimator).__name__,
)
def test_two_processes_give_what_one_gives(estimator, ltr):
    one, two = (rk.cross_validate(estimator, ltr.X, ltr.y, qid=ltr.qid, cv=3, n_jobs=jobs) for jobs in (1, 2))
    assert one.predictions.tolist() == two.predictions.tolist()


def test_progress_is_told_fold_by_fold(ltr):
    seen = []
    rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_bad_use_is_an_error_of_one_line(ltr):
    with pytest.raises(QueryIdError, match="cross_validate needs the query id"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y)
    with pytest.raises(QueryIdError, match="shape"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid[:5])
    with pytest.raises(UnknownName, match="nDCG@10"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, measures=["nDGC@10"])
    with pytest.raises(InvalidInput, match="needs y"):
        rk.cross_validate(Ridge(), ltr.X, qid=ltr.qid)


@pytest.fixture
def asked(monkeypatch):
    """Replace the check by one that refuses everything and notes the question; tests/guard_cases has the real one."""
    asked = []

    class Refusing:
        def refuse(self, X, y, qid, *, docid=None, score=None, action):
            asked.append((action, len(y), score is not None))
            raise GuardRefusal(action)

    monkeypatch.setattr(ContaminationCheck, "current", Refusing)
    return asked


def test_registered_content_is_refused_before_anything_is_fitted(asked, ltr):
    class Unfittable(Ridge):
        def fit(self, X, y):
            raise AssertionError("was fitted")

    with pytest.raises(GuardRefusal, match="cross_validate"):
        rk.cross_validate(Unfittable(), ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(GuardRefusal, match="fit"):
        rk.QueryRanker(Unfittable()).fit(ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(GuardRefusal, match="score"):
        rk.make_scorer("AP")(Ridge().fit(ltr.X, ltr.y), ltr.X, ltr.y, qid=ltr.qid)
    assert asked == [("cross_validate", 360, False), ("fit", 360, False), ("score", 360, True)]


def test_groups_are_split_whole_at_every_level(ltr):
    """By author, say, while the ranking is by query: outer folds, the folds of a search, early stopping."""
    author = np.array([int(query[1:]) % 7 for query in ltr.qid])
    X = np.column_stack([ltr.X, author])
    seen = []

    class Authors(Ridge):
        def fit(self, X, y):
            seen.append(set(X[:, -1]))
            return super().fit(X, y)

        def predict(self, X):
            assert not set(X[:, -1]) & seen[-1]
            return super().predict(X)

    told = {"qid": ltr.qid, "groups": author, "measures": "AP"}
    result = rk.cross_validate(Authors(), X, ltr.y, cv=3, **told)
    for cv in (GroupKFold(3), LeaveOneOut(), QueryKFold(3, shuffle=True, random_state=0)):
        rk.cross_validate(Authors(), X, ltr.y, cv=cv, **told)
    assert result.evaluation.n_queries == 30
    search = GridSearchCV(
        rk.QueryRanker(Authors()), {"estimator__alpha": [1, 2]}, scoring=rk.make_scorer("AP"), cv=2, refit=True
    )
    rk.cross_validate(search.set_params(error_score="raise"), X, ltr.y, cv=3, **told)
    rk.learning_curve(Authors(), X, ltr.y, cv=3, sizes=[3, 1.0], **told)
    ranker = rk.QueryRanker(LGBM, early_stopping_rounds=3, validation_fraction=0.3).fit(
        X, ltr.y, qid=ltr.qid, groups=author
    )
    assert ranker.n_iterations_ > 0
    with pytest.raises(InvalidInput, match="groups differs within the query"):
        rk.cross_validate(Ridge(), X, ltr.y, qid=ltr.qid, groups=np.arange(len(ltr.y)))
    with pytest.raises(InvalidInput, match="are split by a splitter"):
        rk.cross_validate(Ridge(), X, ltr.y, qid=ltr.qid, groups=author, cv=[([0], [1])])


def query_weights(ltr):
    return np.array([1.0 + int(query[1:]) % 5 for query in ltr.qid])


def test_weights_count_in_fitting_and_in_every_mean(ltr):
    weight = query_weights(ltr)
    result = rk.cross_validate(
        LGBM, ltr.X, ltr.y, qid=ltr.qid, cv=3, sample_weight=weight, query_weight=weight, measures=["AP", "RR"]
    )
    for fold, (train, test) in enumerate(QueryKFold(3).split(ltr.X, qid=ltr.qid)):
        ranker = rk.QueryRanker(LGBM).fit(ltr.X[train], ltr.y[train], qid=ltr.qid[train], sample_weight=weight[train])
        score = ranker.predict(ltr.X[test])
        np.testing.assert_array_equal(result.predictions[test], score)
        expected = rk.evaluate(ltr.y[test], score, qid=ltr.qid[test], query_weight=weight[test], measures="AP")
        assert result.folds["AP"][fold] == pytest.approx(expected.aggregate()["AP"], abs=1e-12)
    whole = rk.evaluate(ltr.y, result.predictions, qid=ltr.qid, query_weight=weight, measures="AP")
    assert result.evaluation.aggregate()["AP"] == pytest.approx(whole.aggregate()["AP"], abs=1e-12)
    curve = rk.learning_curve(
        LGBM,
        ltr.X,
        ltr.y,
        qid=ltr.qid,
        cv=3,
        sizes=[1.0],
        sample_weight=weight,
        query_weight=weight,
        measures=["AP", "RR"],
    )
    assert curve.table["AP"].tolist() == pytest.approx(result.folds["AP"].tolist(), abs=1e-12)


def test_weights_of_queries_count_in_means_only(ltr):
    weight = query_weights(ltr)
    result = rk.cross_validate(
        make_pipeline(StandardScaler(), KNeighborsRegressor()), ltr.X, ltr.y, qid=ltr.qid, cv=3, query_weight=weight
    )
    plain = rk.cross_validate(make_pipeline(StandardScaler(), KNeighborsRegressor()), ltr.X, ltr.y, qid=ltr.qid, cv=3)
    np.testing.assert_array_equal(result.predictions, plain.predictions)
    assert (result.evaluation.aggregate() != plain.evaluation.aggregate()).all()


@each_row("inner", [Ridge(), make_pipeline(StandardScaler(), rk.QueryRanker(Ridge()))], ids=["Ridge", "Pipeline"])
@each_row("scoring", ["AP", None])
def test_weights_reach_through_a_search(inner, scoring, ltr):
    """Nested cross-validation, whatever was said to scikit-learn's routing: nothing."""
    if scoring is None and isinstance(inner, Ridge):
        inner = rk.QueryRanker(inner)
    scorer = None if scoring is None else rk.make_scorer(scoring)
    search = GridSearchCV(inner, {}, scoring=scorer, cv=2, error_score="raise")
    weight = query_weights(ltr)
    if scoring is None and isinstance(inner, Pipeline) and parse_version(sklearn.__version__) < parse_version("1.8"):
        # There a search asks a Pipeline's own score for nothing that its steps need: it is given scoring=.
        with pytest.raises(UnsetMetadataPassedError, match=r"Pipeline\.score"):
            rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=3, sample_weight=weight)
        return
    found = rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=3, sample_weight=weight)
    plain = make_pipeline(StandardScaler(), Ridge()) if isinstance(inner, Pipeline) else Ridge()
    expected = rk.cross_validate(plain, ltr.X, ltr.y, qid=ltr.qid, cv=3, sample_weight=weight)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=0, atol=1e-12)


@each_row("n_jobs", [np.array(3.0), 2.5, "2", True])
def test_a_number_of_jobs_is_whole(n_jobs, ltr):
    """Joblib waits for ever for an array of one number."""
    with pytest.raises(InvalidInput) as caught:
        rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=2, n_jobs=n_jobs)
    assert caught.value.argument == "n_jobs"


def test_documents_break_ties_where_the_convention_says_so(ltr):
    """docid= of the call, or those of a RankingData."""
    docid = np.array([f"d{number:04d}" for number in np.random.default_rng(0).permutation(len(ltr.y))])
    told = {"cv": 3, "measures": "AP", "convention": "trec_eval-9.0.8"}
    result = rk.cross_validate(DummyRegressor(), ltr.X, ltr.y, qid=ltr.qid, docid=docid, **told)
    data = rk.RankingData(ltr.X, ltr.y, ltr.qid, docid)
    assert rk.cross_validate(DummyRegressor(), data, **told).folds["AP"].equals(result.folds["AP"])
    expected = rk.evaluate(
        ltr.y, np.zeros(len(ltr.y)), qid=ltr.qid, docid=docid, measures="AP", convention=told["convention"]
    )
    assert result.evaluation.aggregate()["AP"] == pytest.approx(expected.aggregate()["AP"], abs=1e-12)


@each_row(
    "cv", [[], iter([]), [([], [0, 1])], [(np.arange(3), [])]], ids=["empty", "used up", "no training", "no test"]
)
def test_splits_that_split_nothing_are_refused(cv, ltr):
    told = {"qid": np.arange(len(ltr.y)), "cv": cv}
    with pytest.raises(InvalidInput, match=r"cv has no splits|split 0 of cv (trains on|holds out) no rows"):
        rk.cross_validate(Ridge(), ltr.X, ltr.y, **told)


def test_numbers_of_folds_are_read_as_in_scikit_learn(ltr):
    for cv, folds in ((None, 5), (np.int64(3), 3), (np.uint8(2), 2)):
        assert len(rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=cv).folds) == folds
        search = GridSearchCV(rk.QueryRanker(Ridge()), {}, cv=cv, error_score="raise")
        assert rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=2).evaluation.n_queries == 30


def test_labels_in_one_column_are_a_column(ltr):
    expected = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid).predictions
    for y in (ltr.y.reshape(-1, 1), pd.DataFrame({"y": ltr.y})):
        np.testing.assert_array_equal(rk.cross_validate(Ridge(), ltr.X, y, qid=ltr.qid).predictions, expected)
    by_index = pd.DataFrame({"y": ltr.y}, index=pd.Index(ltr.qid, name="qid"))
    np.testing.assert_array_equal(rk.cross_validate(Ridge(), ltr.X, by_index).predictions, expected)


class Never(Ridge):
    """Fails the test when it is fitted."""

    def fit(self, X, y):
        pytest.fail("was fitted")


@each_row("measure", ["ERR@10", "alpha_nDCG@10"])
def test_what_cannot_be_computed_is_refused_before_anything_is_fitted(measure, ltr):
    told = {"qid": ltr.qid}
    for run in (
        lambda: rk.cross_validate(Never(), ltr.X, ltr.y, measures=["AP", measure], **told),
        lambda: rk.learning_curve(Never(), ltr.X, ltr.y, measures=measure, **told),
        lambda: rk.optuna_objective(Never(), {}, ltr.X, ltr.y, measure=measure, **told),
        lambda: rk.QueryRanker(LGBM, early_stopping_rounds=3, eval_measure=measure).fit(ltr.X, ltr.y, **told),
        lambda: rk.lightgbm_feval(measure),
        lambda: rk.xgboost_metric(measure),
    ):
        with pytest.raises(InvalidInput, match=measure[:3]):
            run()


def test_estimators_that_cannot_be_fitted_are_refused_at_once(ltr):
    grid = {"num_leaves": [2, 4]}
    for estimator, words in (
        ("lightgbm", "estimator is 'lightgbm'"),
        (LGBMRanker, "estimator is the class LGBMRanker"),
        (None, "estimator is None"),
        (GridSearchCV(LGBM, grid, scoring=rk.make_scorer("AP")), r"GridSearchCV\(QueryRanker\(LGBMRanker"),
        (make_pipeline(StandardScaler(), GridSearchCV(LGBM, grid)), r"GridSearchCV\(QueryRanker\(LGBMRanker"),
        (GridSearchCV(rk.QueryRanker(Ridge()), {}, refit=False), r"refit=False"),
    ):
        with pytest.raises(InvalidInput, match=words):
            rk.cross_validate({"good": Never(), "bad": estimator}, ltr.X, ltr.y, qid=ltr.qid)
        with pytest.raises(InvalidInput, match=words):
            rk.QueryRanker(estimator).fit(ltr.X, ltr.y, qid=ltr.qid)


def test_a_search_at_the_end_of_a_pipeline_tells_what_it_chose(ltr):
    search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [0.1, 1e5]}, scoring=rk.make_scorer("AP"), cv=2)
    expected = rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=3).best_params
    for around in (make_pipeline("passthrough", search), make_pipeline("passthrough", rk.QueryRanker(search))):
        found = rk.cross_validate(around, ltr.X, ltr.y, qid=ltr.qid, cv=3).best_params
        pd.testing.assert_frame_equal(found, expected)


def test_the_options_of_cross_validation_are_the_same_wherever_they_are_written():
    """In the types of `cross_validate`, and in the signatures of its siblings."""
    options = signature(rk.cross_validate).parameters
    assert [name for name, one in options.items() if one.kind is one.KEYWORD_ONLY] == list(_Options.__annotations__)
    for sibling in (rk.learning_curve, rk.optuna_objective):
        parameters = signature(sibling).parameters
        own = {"space", "sizes", "rng", "measure"}
        assert {name: one.default for name, one in parameters.items() if name not in own} == {
            name: options[name].default for name in parameters if name not in own
        }


def test_an_estimator_that_refuses_empty_cells_says_which_columns_have_them():
    """Its library does not know the names."""
    data = rk.datasets.make_ranking(20, 10, 3, rng=0)
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    frame["b"] = frame["b"].mask(np.arange(200) % 4 == 0)
    with pytest.raises(ValueError, match="contains NaN") as caught:
        rk.cross_validate(Ridge(), frame, data.y, qid=data.qid, measures="nDCG@10", cv=4)
    (note,) = caught.value.__notes__
    assert note.startswith("X has empty cells (b: 2")
