"""Measures of one's own, by name, where the work is done by other processes."""

from __future__ import annotations

import pickle

import forking
import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from tables import each_row

import rankeval as rk
from rankeval.measures import family
from rankeval.measures.family import FAMILIES

CV = rk.QueryKFold(3)


@family("TopHits", title="relevant in the first two", formula="hits(2)", source="a test", linear=True, bounds=(0, 2))
def top_hits(judged, *, rel: float = 1):
    """Return the number of relevant documents at ranks 1 and 2: 0 to 2, higher is better; 0 without any."""
    return judged.hits(rel, 2).astype(float)


OWN = FAMILIES.pop("TopHits")  # until a test of this module runs: other tests walk over all measures


@pytest.fixture(autouse=True)
def _declared(monkeypatch):
    monkeypatch.setitem(FAMILIES, "TopHits", OWN)


@pytest.fixture
def expected(ltr):
    """Return the value of each fold, computed in this process from the predictions."""
    found = []
    for train, test in CV.split(ltr.X, ltr.y, qid=ltr.qid):
        score = Ridge().fit(ltr.X[train], ltr.y[train]).predict(ltr.X[test])
        top = [np.argsort(-score[ltr.qid[test] == query])[:2] for query in np.unique(ltr.qid[test])]
        rows = [np.flatnonzero(ltr.qid[test] == query) for query in np.unique(ltr.qid[test])]
        found.append(np.mean([(ltr.y[test][row[best]] > 0).sum() for row, best in zip(rows, top, strict=True)]))
    return found


def test_a_scorer_by_name_gives_in_workers_what_it_gives_here(expected, ltr):
    scorer = rk.make_scorer("TopHits")
    found = cross_val_score(Ridge(), ltr.X, ltr.y_indexed, cv=CV, scoring=scorer, n_jobs=2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_parallel_search_has_finite_scores(expected, ltr):
    grid = {"estimator__alpha": [1.0, 1e6]}
    for scoring, refit, name in (("TopHits", True, "score"), (["TopHits", "AP"], "TopHits", "TopHits")):
        search = GridSearchCV(
            rk.QueryRanker(Ridge()), grid, cv=CV, scoring=rk.make_scorer(scoring), refit=refit, n_jobs=2
        ).fit(ltr.X, ltr.y_indexed)
        means = search.cv_results_[f"mean_test_{name}"]
        assert means[0] == pytest.approx(np.mean(expected), rel=1e-12)
        assert np.isfinite(means).all()


def test_our_cross_validation_in_workers(expected, ltr):
    found = rk.cross_validate(Ridge(), ltr.X, ltr.y, qid=ltr.qid, measures="TopHits", cv=CV, n_jobs=2)
    np.testing.assert_allclose(found.folds["TopHits"], expected, rtol=1e-12)


def test_a_ranker_stops_by_it_in_workers(ltr):
    """The measure travels with the ranker, which keeps its parameter as it was given."""
    ranker = rk.QueryRanker(
        LGBMRanker(n_estimators=20, n_jobs=1, verbose=-1), early_stopping_rounds=3, eval_measure="TopHits"
    )
    told = {"cv": CV, "scoring": rk.make_scorer("TopHits"), "error_score": "raise"}
    found = [cross_val_score(ranker, ltr.X, ltr.y_indexed, n_jobs=n_jobs, **told) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*found)
    assert ranker.eval_measure == "TopHits"


@each_row("make", [rk.make_scorer, rk.lightgbm_feval, rk.xgboost_metric])
def test_whatever_holds_it_pickles(make):
    one = make("TopHits")
    assert repr(pickle.loads(pickle.dumps(one))) == repr(one)


@pytest.mark.further
def test_a_measure_of_a_script_travels_by_its_function(tmp_path):
    """As in a notebook: the workers cannot import the module of the caller."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = forking.run(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [float(value) for value in done.stdout.split()] == pytest.approx([0.0] * 5, abs=1e-12)


LOAD = """
import joblib, numpy as np, pickle
rows, expected = np.load("rows.npy"), np.load("expected.npy")
for again in (joblib.load("ranker.joblib"), pickle.load(open("ranker.pickle", "rb")), joblib.load("pipeline.joblib")):
    assert (again.predict(rows) == expected).all()
again = joblib.load("ranker.joblib")
assert again.eval_measure == "TopHits"
try:
    again.fit(rows, np.arange(len(rows)) % 3, qid=np.arange(len(rows)) // 10)
except ValueError as error:
    print(error)
"""


def test_a_fitted_ranker_predicts_where_the_measure_is_unknown(tmp_path):
    """The measure of a script is needed for fitting again alone, and the error there names it."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "load.py").write_text(LOAD)
    for script in ([tmp_path / "script.py", "save"], [tmp_path / "load.py"]):
        done = forking.run(*script, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "unknown measure 'TopHits'" in done.stdout


def test_a_fitted_ranker_is_fitted_again_by_workers(ltr):
    """They get an unfitted copy, with the measure."""
    booster = LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1)
    ranker = rk.QueryRanker(booster, early_stopping_rounds=3, eval_measure="TopHits").fit(ltr.X, ltr.y, qid=ltr.qid)
    told = {"qid": ltr.qid, "measures": "TopHits", "cv": CV}
    one, two = (rk.cross_validate(ranker, ltr.X, ltr.y, **told, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predictions, two.predictions)


SCRIPT = """
import pathlib
import pickle
import sys

import joblib
import numpy as np
import pandas as pd
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import rankeval as rk
from rankeval.measures import family


@family("TopHits", title="relevant in the first two", formula="hits(2)", source="a test", linear=True, bounds=(0, 2))
def top_hits(judged, *, rel: float = 1):
    '''Return the number of relevant documents at ranks 1 and 2.'''
    return judged.hits(rel, 2).astype(float)


data, cv = rk.datasets.make_ranking(30, 10, rng=0), rk.QueryKFold(2)
y = pd.Series(np.asarray(data.y), pd.Index(data.qid, name="qid"))
booster = LGBMRanker(n_estimators=9, n_jobs=1, verbose=-1)
stopping = rk.QueryRanker(booster, early_stopping_rounds=2, eval_measure="TopHits")


def values(n_jobs):
    scorer = rk.make_scorer("TopHits")
    grid = {"estimator__alpha": [1.0, 1e6]}
    search = GridSearchCV(rk.QueryRanker(Ridge()), grid, cv=cv, scoring=scorer, n_jobs=n_jobs).fit(data.X, y)
    fold = cross_val_score(stopping, data.X, y, cv=cv, scoring=scorer, n_jobs=n_jobs)
    own = rk.cross_validate(Ridge(), data, measures="TopHits", cv=cv, n_jobs=n_jobs)
    return np.array([*search.cv_results_["mean_test_score"], *fold, own.evaluation.mean()["TopHits"]])


if __name__ == "__main__" and sys.argv[1:] == ["save"]:
    ranker = stopping.fit(data.X, data.y, qid=data.qid)
    joblib.dump(ranker, "ranker.joblib")
    joblib.dump(make_pipeline(ranker), "pipeline.joblib")
    pathlib.Path("ranker.pickle").write_bytes(pickle.dumps(ranker))
    np.save("rows.npy", data.X)
    np.save("expected.npy", ranker.predict(data.X))
elif __name__ == "__main__":
    print(*(values(2) - values(1)))
"""
