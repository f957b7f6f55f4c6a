"""Cross-validation that keeps every query's out-of-fold score."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostRanker
from lightgbm import LGBMRanker
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankeval as rk
from rankeval.errors import GuardRefusal, InvalidInput, QueryIdError, UnknownName
from rankeval.model_selection.splitters import QueryKFold, RepeatedQueryKFold
from rankeval.seals.refusal import Seals

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
    assert "3 folds, 30 queries" in repr(result)
    assert "fit_seconds" in result._repr_html_()
    assert pickle.loads(pickle.dumps(result)).folds.equals(result.folds)


def test_predict_is_called_once_a_fold_for_any_number_of_measures(ltr):
    Counting.calls = 0
    rk.cross_validate(Counting(), ltr.X, ltr.y, qid=ltr.qid, cv=4, measures=["AP", "RR", "P@5", "nDCG@10", "Rprec"])
    assert Counting.calls == 4


@pytest.mark.parametrize("carrier", ["index", "y", "column", "sizes", "data"])
def test_ids_come_by_every_way_to_the_same_value(carrier, ltr):
    order = np.argsort(ltr.qid, kind="stable")
    sizes = np.unique(ltr.qid, return_counts=True)[1]
    X, y, told = {
        "index": (ltr.indexed, ltr.y, {}),
        "y": (ltr.X, ltr.y_indexed, {}),
        "column": (ltr.frame.assign(qid=ltr.qid), ltr.y, {}),
        "sizes": (ltr.X[order], ltr.y[order], {"group": sizes}),
        "data": (rk.RankingData(ltr.X, ltr.y, ltr.qid), None, {}),
    }[carrier]
    value = rk.cross_validate(Ridge(), X, y, cv=3, measures="AP", **told).evaluation.aggregate()["AP"]
    expected = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, measures="AP").evaluation.aggregate()["AP"]
    # Sizes number the queries anew, so that they fall into other folds.
    assert value == pytest.approx(expected, abs=0.05 if carrier == "sizes" else 1e-15)


@pytest.mark.parametrize("on", [True, False], ids=["routing", "no routing"])
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


@pytest.mark.parametrize(
    "cv", [KFold(3), GroupKFold(3), KFold(3, shuffle=True, random_state=0), LeaveOneOut()], ids=repr
)
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


@pytest.mark.parametrize("estimator", [LGBM, CATBOOST], ids=lambda estimator: type(estimator).__name__)
def test_two_processes_give_what_one_gives(estimator, ltr):
    one, two = (rk.cross_validate(estimator, ltr.X, ltr.y, qid=ltr.qid, cv=3, n_jobs=jobs) for jobs in (1, 2))
    assert one.predictions.tolist() == two.predictions.tolist()


def test_progress_is_told_fold_by_fold(ltr):
    seen = []
    rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_progress_bar_leaves_nothing_behind(ltr, capsys):
    rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, cv=3, progress=True)
    assert "Traceback" not in capsys.readouterr().out


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
def sealed(monkeypatch):
    """Stand-in seals that refuse everything and note what was asked; tests/guard_cases has the real ones."""
    asked = []

    class Sealed:
        def refuse(self, X, y, qid, *, docid=None, score=None, action):
            asked.append((action, len(y), score is not None))
            raise GuardRefusal(action)

    monkeypatch.setattr(Seals, "current", Sealed)
    return asked


def test_registered_content_is_refused_before_anything_is_fitted(sealed, ltr):
    class Unfittable(Ridge):
        def fit(self, X, y):
            raise AssertionError("was fitted")

    with pytest.raises(GuardRefusal, match="cross_validate"):
        rk.cross_validate(Unfittable(), ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(GuardRefusal, match="fit"):
        rk.QueryRanker(Unfittable()).fit(ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(GuardRefusal, match="score"):
        rk.make_scorer("AP")(Ridge().fit(ltr.X, ltr.y), ltr.X, ltr.y, qid=ltr.qid)
    assert sealed == [("cross_validate", 360, False), ("fit", 360, False), ("score", 360, True)]
