"""Early stopping watches no query that is trained on or scored: by its id, and by its rows under another id."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from scipy.sparse import csr_matrix
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, RankevalWarning, Refusal, SharedQueriesError, SharedQueriesRefusal

RANKER = rk.QueryRanker(LGBMRanker(n_estimators=20, min_child_samples=5, n_jobs=1, verbose=-1), early_stopping_rounds=3)
FORMS = {"array": np.asarray, "frame": pd.DataFrame, "sparse": csr_matrix, "float32": np.float32}


def made(n_queries=40, seed=11, first=0):
    """Return made queries with ids from a number on, rows in no order."""
    data = rk.datasets.make_ranking(n_queries, rng=seed, n_features=5)
    rows = np.random.default_rng(seed).permutation(len(data))
    return rk.RankingData(data.X[rows], data.y[rows], np.array([f"q{first + number}" for number in data.qid[rows]]))


TRAIN, OTHER = made(), made(25, seed=5, first=1000)


def part_of(data, n_queries, prefix=""):
    """Return the first queries by id, rows in another order, under ids with a prefix."""
    rows = np.flatnonzero(np.isin(data.qid, np.unique(data.qid)[:n_queries]))[::-1]
    return rk.RankingData(data.X[rows], data.y[rows], np.char.add(prefix, data.qid[rows]))


def joined(*parts):
    """Return the rows of several parts."""
    return rk.RankingData(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid")))


def fit(vali, data=TRAIN, form=np.asarray):
    return RANKER.fit(form(data.X), data.y, qid=data.qid, eval_set=(form(vali.X), vali.y), eval_qid=vali.qid)


@each_row("form", FORMS)
@each_row("n_queries", [1, 3, 40])
@each_row("prefix", ["", "copy of "], ids=["same ids", "other ids"])
def test_queries_of_the_training_data_are_refused_by_name(form, n_queries, prefix):
    """Training would hardly stop: the measure on rows that are learnt goes up and up."""
    part = part_of(TRAIN, n_queries, prefix)
    with pytest.raises(SharedQueriesError) as found:
        fit(joined(part, OTHER), form=FORMS[form])
    assert set(found.value.queries) == set(part.qid)
    assert set(found.value.renamed) == (set(part.qid) if prefix else set())
    again = pickle.loads(pickle.dumps(found.value))
    assert (again.queries, str(again)) == (found.value.queries, str(found.value))
    left = joined(part, OTHER)
    fit(left.take(~np.isin(left.qid, found.value.queries)), form=FORMS[form])


def test_an_id_is_enough_whatever_its_rows_and_its_type():
    vali = rk.RankingData(OTHER.X, OTHER.y, np.unique(OTHER.qid, return_inverse=True)[1])
    train = rk.RankingData(TRAIN.X, TRAIN.y, np.char.lstrip(TRAIN.qid, "q"))
    with pytest.raises(SharedQueriesError, match="24 queries in common") as found:
        fit(vali, train)
    assert found.value.renamed == ()


def test_other_queries_with_equal_rows_by_accident_are_taken():
    """Of short lists of flags many queries are alike; that is no evidence."""
    rng = np.random.default_rng(2)

    def flags(n_queries, prefix):
        qid = np.repeat(np.char.add(prefix, np.arange(n_queries).astype(str)), 2)
        return rk.RankingData(rng.integers(0, 2, (len(qid), 2)).astype(float), np.tile([1, 0], n_queries), qid)

    for _ in range(5):
        fit(flags(20, "v"), flags(60, "t"))
    for seed in range(5):
        fit(made(25, seed=100 + seed, first=1000))


def test_one_query_without_an_id_is_told_by_its_rows():
    ranker = rk.QueryRanker(RANKER.estimator, early_stopping_rounds=3, single_query=True)
    ranker.fit(TRAIN.X, TRAIN.y, eval_set=(OTHER.X, OTHER.y))
    with pytest.raises(SharedQueriesError):
        ranker.fit(TRAIN.X, TRAIN.y, eval_set=(TRAIN.X[::-1], TRAIN.y[::-1]))


@each_row("prefix", ["", "copy of "], ids=["same ids", "other ids"])
def test_no_way_to_cross_validate_watches_its_test_folds(prefix):
    """On noise it gave more than chance, in silence. A query that no fold uses may be watched."""
    rng = np.random.default_rng(0)
    noise = rk.RankingData(rng.normal(size=(400, 5)), rng.integers(0, 2, 400), np.repeat(np.arange(40).astype(str), 10))
    vali = part_of(noise, 40, prefix)
    folds = [(np.arange(0, 200), np.arange(200, 300))]
    ways = {
        "cross_validate": lambda vali, **cv: rk.cross_validate({"one": RANKER}, noise, eval_set=vali, **cv),
        "learning_curve": lambda vali, **cv: rk.learning_curve(RANKER, noise, eval_set=vali, sizes=[1.0], **cv),
        "optuna_objective": lambda vali, **cv: rk.optuna_objective(RANKER, {}, noise, eval_set=vali, **cv),
    }
    for way in ways.values():
        with pytest.raises(SharedQueriesError) as found:
            way(vali)
        assert set(found.value.queries) == set(vali.qid)
        held_out = vali.take(np.isin(np.char.replace(vali.qid, prefix, ""), np.arange(20, 30).astype(str)))
        with pytest.raises(SharedQueriesError):
            way(held_out, cv=folds)
        way(vali.take(np.isin(np.char.replace(vali.qid, prefix, ""), np.arange(30, 40).astype(str))), cv=folds)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("prefix", ["", "copy of "], ids=["same ids", "other ids"])
def test_searches_of_scikit_learn_are_stopped(prefix):
    """Past error_score: in a fit, and by a scorer where the test fold alone is watched."""
    cv = rk.QueryTimeSplit(2, times={query: int(query[1:]) for query in np.unique(TRAIN.qid).tolist()})
    *_, (_, last) = cv.split(TRAIN.X, qid=TRAIN.qid)
    last = TRAIN.take(last)  # no fold trains on them
    last = rk.RankingData(last.X, last.y, np.char.add(prefix, last.qid))
    pipeline = make_pipeline(StandardScaler(), RANKER)
    inner = GridSearchCV(RANKER, {"estimator__num_leaves": [7]}, cv=cv, scoring=rk.make_scorer("AP"), refit=True)
    scorer = rk.make_scorer("nDCG@10")

    def told(vali):
        return {"qid": TRAIN.qid, "eval_set": (vali.X, vali.y), "eval_qid": [vali.qid]}

    for vali in (part_of(TRAIN, 40, prefix), last):
        for model, scoring in ((RANKER, scorer), (RANKER, None), (pipeline, scorer)):
            with pytest.raises(SharedQueriesRefusal) as found:
                cross_val_score(model, TRAIN.X, TRAIN.y, cv=cv, scoring=scoring, params=told(vali))
            assert set(found.value.queries) <= set(vali.qid)
        with pytest.raises(SharedQueriesRefusal):
            inner.fit(TRAIN.X, TRAIN.y, **told(vali))
    assert issubclass(SharedQueriesRefusal, Refusal)
    assert issubclass(SharedQueriesError, InvalidInput)
    options = {"cv": cv, "scoring": scorer, "params": told(OTHER), "return_train_score": True}
    done = sklearn_cross_validate(RANKER, TRAIN.X, TRAIN.y, **options)
    assert np.isfinite(done["test_score"]).all()
    inner.fit(TRAIN.X, TRAIN.y, **told(OTHER))
    assert inner.score(OTHER.X, OTHER.y, qid=OTHER.qid) > 0  # the owner asks for the score of the validation part


@each_row("y", [0, 2], ids=["none relevant", "all equally relevant"])
def test_a_validation_part_that_no_ranking_changes_is_told(y):
    """Every iteration is as good as the first."""
    vali = rk.RankingData(OTHER.X, np.full(len(OTHER), y), OTHER.qid)
    with pytest.warns(RankevalWarning, match=r"eval_set has 25 queries, and no ranking changes nDCG@10 of any"):
        assert fit(vali).n_iterations_ == 1


def test_a_held_out_part_that_no_ranking_changes_is_told():
    relevant = np.where(TRAIN.qid == "q1", TRAIN.y, 0)
    with pytest.warns(RankevalWarning, match="the part held out for early stopping has 4 queries"):
        RANKER.fit(TRAIN.X, relevant, qid=TRAIN.qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RANKER.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
