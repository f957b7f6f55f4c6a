"""On real learning-to-rank data, rows shuffled: the same values as a loop over queries written by hand."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Ridge
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV
from xgboost import XGBRanker

import rankeval as rk
from rankeval.model_selection.splitters import QueryKFold

pytestmark = pytest.mark.shared


def shuffled(X, y, qid):
    order = np.random.default_rng(3).permutation(len(y))
    return SimpleNamespace(X=X[order], y=y[order], qid=qid[order])


@pytest.fixture(params=["ltr_lightgbm", "letor_cranfield"])
def real(request, shared, tmp_path):
    if request.param == "ltr_lightgbm":
        X, y = load_svmlight_file(str(shared / "ltr_lightgbm" / "rank.train.gz"))
        sizes = np.loadtxt(shared / "ltr_lightgbm" / "rank.train.query", dtype=int)
        qid = np.repeat([f"q{number}" for number in range(len(sizes))], sizes)
        return shuffled(X.toarray(), y, qid)
    # scikit-learn's reader takes no document ids behind the features.
    plain = tmp_path / "vali.txt"
    with gzip.open(shared / "letor_cranfield" / "Fold1" / "vali.txt.gz", "rt") as packed:
        plain.write_text("".join(line.partition("#")[0].rstrip() + "\n" for line in packed))
    X, y, qid = load_svmlight_file(str(plain), query_id=True)
    return shuffled(X.toarray(), y, qid)


def without_ties(score):
    """Return the same ranking without ties, in which scikit-learn's nDCG and ours have no choice."""
    return score + 1e-9 * np.arange(len(score))


class Untied(Ridge):
    """Predicts as Ridge, without ties."""

    def predict(self, X):
        return without_ties(super().predict(X))


def by_hand(y, score, qid):
    values = []
    for query in np.unique(qid):
        rows = qid == query
        single = rows.sum() == 1
        values.append(float(y[rows][0] > 0) if single else ndcg_score([y[rows]], [score[rows]], k=10))
    return float(np.mean(values))


def test_cross_validation_equals_a_loop_by_hand(real):
    cv = QueryKFold(3, shuffle=True, random_state=0)
    result = rk.cross_validate(Untied(), real.X, real.y, qid=real.qid, cv=cv, measures="nDCG@10")
    for (train, test), value in zip(cv.split(real.X, qid=real.qid), result.folds["nDCG@10"], strict=True):
        score = Untied().fit(real.X[train], real.y[train]).predict(real.X[test])
        assert value == pytest.approx(by_hand(real.y[test], score, real.qid[test]), abs=1e-12)
    whole = by_hand(real.y, result.predictions, real.qid)
    assert result.evaluation.aggregate()["nDCG@10"] == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize(
    "ranker",
    [LGBMRanker(n_estimators=10, n_jobs=1, verbose=-1), XGBRanker(n_estimators=10, n_jobs=1)],
    ids=lambda ranker: type(ranker).__name__,
)
def test_a_booster_scores_as_a_loop_by_hand(ranker, real):
    fitted = rk.QueryRanker(ranker).fit(real.X, real.y, qid=real.qid)
    untied = without_ties(fitted.predict(real.X))
    value = rk.evaluate(real.y, untied, qid=real.qid, measures="nDCG@10").aggregate()["nDCG@10"]
    assert value == pytest.approx(by_hand(real.y, untied, real.qid), abs=1e-12)
    assert fitted.score(real.X, real.y, qid=real.qid) > 0.5


@pytest.mark.usefixtures("routing")
def test_a_search_chooses_as_a_loop_by_hand(real):
    grid = [2, 8]
    search = GridSearchCV(
        rk.QueryRanker(LGBMRanker(n_estimators=8, n_jobs=1, verbose=-1)),
        {"estimator__num_leaves": grid},
        scoring=rk.make_scorer(["nDCG@10", "AP"]),
        refit="nDCG@10",
        cv=QueryKFold(2),
        n_jobs=2,
        error_score="raise",
    ).fit(real.X, real.y, qid=real.qid)
    means = []
    for leaves in grid:
        values = []
        for train, test in QueryKFold(2).split(real.X, qid=real.qid):
            codes = pd.factorize(real.qid[train])[0]
            order = train[np.argsort(codes, kind="stable")]
            model = LGBMRanker(n_estimators=8, num_leaves=leaves, n_jobs=1, verbose=-1)
            model.fit(real.X[order], real.y[order], group=np.bincount(codes))
            score = model.predict(real.X[test])
            values.append(rk.evaluate(real.y[test], score, qid=real.qid[test], measures="nDCG@10").aggregate().iloc[0])
        means.append(np.mean(values))
    assert search.best_index_ == int(np.argmax(means))
    np.testing.assert_allclose(search.cv_results_["mean_test_nDCG@10"], means, rtol=0, atol=1e-12)
