"""The twelve attempts of examples/guides/refused_groups.md, on real data with rows shuffled.

Each way gives what a loop over folds and queries written by hand gives, in which every library is told its queries as
its own manual says.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn
from circles import choose
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import rankeval as rk

pytestmark = pytest.mark.shared

LGBM = LGBMRanker(n_estimators=8, n_jobs=1, verbose=-1)
XGB = XGBRanker(n_estimators=8, n_jobs=1)
CAT = CatBoostRanker(iterations=8, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False)
BY_NAME = {type(one).__name__: one for one in (LGBM, XGB, CAT, Ridge())}
CV = rk.QueryKFold(2)
NDCG = rk.make_scorer("nDCG@10")


@pytest.fixture(scope="module", params=["letor_cranfield", pytest.param("ltr_lightgbm", marks=pytest.mark.rest)])
def real(request, shared):
    """Return X, y, qid of a collection, rows shuffled, and the same rows in blocks of queries with their sizes."""
    if request.param == "ltr_lightgbm":
        data = rk.datasets.load_letor(shared / "ltr_lightgbm" / "rank.train.gz", sparse=False)
        parts = [data]
    else:
        parts = list(rk.datasets.load_letor_parts(shared / "letor_cranfield" / "Fold1").values())
    X, y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))
    order = np.random.default_rng(3).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    blocks = np.argsort(qid, kind="stable")
    sizes = np.unique(qid, return_counts=True)[1]
    index = pd.Index(qid, name="qid")
    frame = pd.DataFrame(X, columns=[f"x{number}" for number in range(X.shape[1])])
    return SimpleNamespace(
        X=X, y=y, qid=qid, y_indexed=pd.Series(y, index), frame=frame.assign(qid=qid), blocks=blocks, sizes=sizes
    )


def ndcg_by_hand(y, score, k=10):
    """NDCG of one query: linear gain, log2 discount, tied rows sharing their gains; 0 without relevant rows."""
    ideal = sum(gain / np.log2(rank + 2) for rank, gain in enumerate(sorted(y, reverse=True)[:k]))
    total, rank = 0.0, 0
    for value in sorted(set(score), reverse=True):
        tied = y[score == value]
        total += tied.mean() * sum(1 / np.log2(place + 2) for place in range(rank, min(rank + len(tied), k)))
        rank += len(tied)
    return total / ideal if ideal > 0 else 0.0


def mean_by_hand(y, score, qid):
    return float(np.mean([ndcg_by_hand(y[qid == query], score[qid == query]) for query in np.unique(qid)]))


def fitted_by_hand(estimator, X, y, qid):
    """Fit as the library's manual says: rows brought into blocks of queries, sorted by their ids."""
    order = np.argsort(qid, kind="stable")
    X, y, codes = X[order], y[order], np.unique(qid[order], return_inverse=True)[1]
    told = {
        "LGBMRanker": {"group": np.bincount(codes)},
        "XGBRanker": {"qid": codes},
        "CatBoostRanker": {"group_id": codes},
    }.get(type(estimator).__name__, {})
    fresh = type(estimator)(**estimator.get_params())
    return fresh.fit(X, y, **told)


def folds_by_hand(estimator, data):
    """Return the mean nDCG@10 of each fold."""
    values = []
    for train, test in CV.split(data.X, qid=data.qid):
        model = fitted_by_hand(estimator, data.X[train], data.y[train], data.qid[train])
        values.append(mean_by_hand(data.y[test], np.asarray(model.predict(data.X[test])), data.qid[test]))
    return values


@pytest.fixture(scope="module")
def expected(real):
    """Return a function: an estimator of the table -> the mean of each of its folds, computed once."""
    return cache(lambda name: folds_by_hand(BY_NAME[name], real))


def same(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_1_lightgbm_with_sizes_of_queries(real):
    """Sizes speak of rows in blocks, whose queries they number."""
    X, y = real.X[real.blocks], real.y[real.blocks]
    found = rk.cross_validate(LGBM, X, y, group=real.sizes, cv=CV, measures="nDCG@10").folds["nDCG@10"]
    numbered = np.repeat(np.arange(len(real.sizes)), real.sizes)
    same(found, folds_by_hand(LGBM, SimpleNamespace(X=X, y=y, qid=numbered)))


ROUTED = {
    "2 lightgbm": (rk.QueryRanker(LGBM), 1),
    "3 xgboost": (rk.QueryRanker(XGB), 1),
    "9 catboost": (rk.QueryRanker(CAT), 1),
    "11 any regressor": (Ridge(), 2),
}


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", each(ROUTED))
def test_an_id_per_row_is_routed(name, real, expected):
    model, n_jobs = ROUTED[name]
    told = {"cv": CV, "scoring": NDCG, "params": {"qid": real.qid}, "n_jobs": n_jobs}
    # Rows stand in another order in the loop, in which Ridge's sums differ in their last bits.
    found = cross_val_score(model, real.X, real.y, **told)
    same(found, expected(type(getattr(model, "estimator", model)).__name__))


@pytest.mark.needs("xgboost")
def test_4_xgboost_without_routing(real, expected):
    """The ids travel in the index of y."""
    found = cross_val_score(rk.QueryRanker(XGB), real.X, real.y_indexed, cv=CV, scoring=NDCG)
    same(found, expected("XGBRanker"))


@pytest.mark.needs("xgboost")
def test_5_xgboost_with_a_column_of_ids_and_its_own_score(real, expected):
    """Which is nDCG@10 by our measures; the column is no feature."""
    same(cross_val_score(rk.QueryRanker(XGB), real.frame, real.y, cv=CV), expected("XGBRanker"))


@pytest.mark.needs("xgboost")
@pytest.mark.usefixtures("routing")
def test_6_xgboost_in_a_search_over_a_pipeline_for_many_measures(real, expected):
    pipeline = make_pipeline("passthrough", rk.QueryRanker(XGB))
    grid = {"queryranker__estimator__n_estimators": [8]}
    search = GridSearchCV(pipeline, grid, cv=CV, scoring=rk.make_scorer(["nDCG@10", "AP"]), refit="nDCG@10")
    search.fit(real.X, real.y, qid=real.qid)
    same([search.cv_results_[f"split{fold}_test_nDCG@10"][0] for fold in range(2)], expected("XGBRanker"))


@pytest.mark.needs("xgboost")
def test_7_xgboost_with_rows_in_no_order(real):
    score = rk.QueryRanker(XGB).fit(real.X, real.y, qid=real.qid).predict(real.X)
    by_hand = fitted_by_hand(XGB, real.X, real.y, real.qid).predict(real.X)
    np.testing.assert_array_equal(score, by_hand)
    found = rk.evaluate(real.y, score, qid=real.qid, measures="nDCG@10").aggregate()["nDCG@10"]
    same(found, mean_by_hand(real.y, by_hand, real.qid))


@pytest.mark.needs("catboost")
def test_8_catboost_without_routing(real, expected):
    found = rk.cross_validate(CAT, real.X, real.y, qid=real.qid, cv=CV, measures="nDCG@10")
    same(found.folds["nDCG@10"], expected("CatBoostRanker"))


def test_10_lightgbm_has_a_score(real):
    train, test = next(iter(CV.split(real.X, qid=real.qid)))
    ranker = rk.QueryRanker(LGBM).fit(real.X[train], real.y[train], qid=real.qid[train])
    by_hand = fitted_by_hand(LGBM, real.X[train], real.y[train], real.qid[train]).predict(real.X[test])
    found = ranker.score(real.X[test], real.y[test], qid=real.qid[test])
    same(found, mean_by_hand(real.y[test], by_hand, real.qid[test]))


def test_12_a_value_per_query_instead_of_one_ranking_of_all_rows(real):
    score = Ridge().fit(real.X, real.y).predict(real.X)
    found = rk.evaluate(real.y, score, qid=real.qid, measures="nDCG@10")
    queries = np.unique(real.qid)
    each = [ndcg_by_hand(real.y[real.qid == query], score[real.qid == query]) for query in queries]
    same(found.per_query["nDCG@10"].loc[queries], each)
    same(found.aggregate()["nDCG@10"], np.mean(each))
    assert abs(ndcg_by_hand(real.y, score) - np.mean(each)) > 0.005


@pytest.mark.random
def test_a_search_over_eight_settings_chooses_as_a_loop_by_hand(shared):
    """LightGBM, two processes, letor_cranfield; 3 folds by default and 5 in the complete circle."""
    parts = rk.datasets.load_letor_parts(shared / "letor_cranfield" / "Fold1").values()
    X, y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))
    order = np.random.default_rng(4).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    cv = rk.QueryKFold(choose(default=3, full=5), shuffle=True, random_state=0)
    grid = {
        "estimator__num_leaves": [4, 15],
        "estimator__learning_rate": [0.05, 0.3],
        "estimator__n_estimators": [5, 15],
    }
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(rk.QueryRanker(LGBM), grid, scoring=NDCG, cv=cv, n_jobs=2).fit(X, y, qid=qid)
    means = []
    for point in search.cv_results_["params"]:
        model = sklearn.clone(LGBM).set_params(**{name.removeprefix("estimator__"): to for name, to in point.items()})
        values = []
        for train, test in cv.split(X, qid=qid):
            score = fitted_by_hand(model, X[train], y[train], qid[train]).predict(X[test])
            values.append(mean_by_hand(y[test], score, qid[test]))
        means.append(np.mean(values))
    assert len(means) == 8
    assert search.best_index_ == int(np.argmax(means))
    same(search.cv_results_["mean_test_score"], means)
