"""A column of the rows reaches a measure in scorers, searches and cross-validation: from X, bound or routed."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, UnknownName, UnusableColumnsRefusal

REVENUE = "Revenue@5(column='price')"
MEASURES = ["nDCG@10", REVENUE]
GRID = {"estimator__alpha": [1.0, 1e4]}


def data(n=300):
    """Return features with and without a price, labels and query ids, on one index that is not 0, 1, 2, ..."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n // 10), 10)
    index = pd.MultiIndex.from_arrays([qid, [f"row {row}" for row in range(n)]], names=["qid", "row"])
    X = pd.DataFrame({"a": np.round(rng.normal(size=n), 1), "price": rng.lognormal(2, 1, n)}, index=index)
    y = pd.Series(np.clip(np.round(X.a + rng.normal(size=n)), 0, 3).astype(int), index=index)
    return X, y, qid


def search(scorer, X, y, **routed):
    ranker = rk.QueryRanker(Ridge())
    found = GridSearchCV(ranker, GRID, scoring=scorer, refit=REVENUE, cv=rk.QueryKFold(3), error_score="raise")
    return found.fit(X, y, **routed).cv_results_


def by_hand(X, y, qid, price):
    """Return the mean Revenue@5 of each fold and alpha, by loops: tied rows take their group's mean."""
    means = []
    for alpha in GRID["estimator__alpha"]:
        of_folds = []
        for train, test in rk.QueryKFold(3).split(X, y, groups=qid):
            score = Ridge(alpha=alpha).fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
            sums = []
            for query in np.unique(qid[test]):
                mine = qid[test] == query
                level, paid = score[mine], price[test][mine]
                sums.append(sum(paid[level == one].mean() for one in np.sort(level)[::-1][:5]))
            of_folds.append(np.mean(sums))
        means.append(of_folds)
    return np.transpose(means)


def test_a_search_reads_the_column_of_x_one_that_is_bound_and_one_that_is_routed():
    """Revenue@5 of each fold is that of a loop by hand, to 1e-12, wherever the prices come from."""
    X, y, qid = data()
    price = X["price"].to_numpy()
    plain = X[["a"]]
    bound = search(rk.make_scorer(MEASURES, columns={"price": X["price"]}), plain, y)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = search(rk.make_scorer(MEASURES), plain, y.to_numpy(), qid=qid, price=price)
        alias = rk.make_scorer(MEASURES).set_score_request(price="usd")
        renamed = search(alias, plain, y.to_numpy(), qid=qid, usd=price)
    for found in (bound, routed, renamed):
        for fold, expected in enumerate(by_hand(plain, y, qid, price)):
            np.testing.assert_allclose(found[f"split{fold}_test_{REVENUE}"], expected, rtol=1e-12)
    with_it = by_hand(X, y, qid, price)
    named = rk.make_scorer(MEASURES, columns={"price": "usd"})
    for found in (search(rk.make_scorer(MEASURES), X, y), search(named, X.rename(columns={"price": "usd"}), y)):
        for fold, expected in enumerate(with_it):
            np.testing.assert_allclose(found[f"split{fold}_test_{REVENUE}"], expected, rtol=1e-12)


def test_a_scorer_takes_the_argument_before_what_is_bound_before_x():
    """price= of the call wins over a bound column, and that over a column of X."""
    X, y, _ = data()
    model = Ridge().fit(X[["a"]], y)
    zeros = np.zeros(len(X))
    scorer = rk.make_scorer(REVENUE, columns={"price": X["price"] * 0 + 1.0})
    assert scorer(Ridge().fit(X, y), X, y) == pytest.approx(5.0)
    assert scorer(model, X[["a"]], y, price=zeros) == 0.0
    assert pickle.loads(pickle.dumps(scorer))(model, X[["a"]], y) == pytest.approx(5.0)
    assert repr(scorer).endswith("columns=['price'])")


def test_a_search_without_the_column_or_with_gaps_stops():
    """scikit-learn's error_score would turn every fold into nan, so a refusal ends the search."""
    X, y, _ = data()
    scorer = rk.make_scorer(MEASURES)
    with pytest.raises(UnusableColumnsRefusal) as stopped:
        search(scorer, X[["a"]], y)
    assert stopped.value.expected == "the column 'price'"
    gaps = rk.make_scorer(MEASURES, columns={"price": X["price"].mask(X["price"] > 20)})
    with pytest.raises(UnusableColumnsRefusal, match="missing"):
        search(gaps, X[["a"]], y)
    model = Ridge().fit(X[["a"]], y)
    with pytest.raises(InvalidInput, match="expected the column 'price'"):
        scorer(model, X[["a"]], y)
    with pytest.raises(UnknownName, match="metadata of a scorer 'prize'"):
        scorer(model, X[["a"]], y, prize=X["price"])
    lost = rk.make_scorer(MEASURES, columns={"price": X["price"].iloc[:100]})
    with pytest.raises(QueryIdError, match="has no row"):
        lost(model, X[["a"]], y)


def test_cross_validate_reads_a_column_as_evaluate_does():
    """Out-of-fold revenue is that of evaluate by the same predictions, and the two can be compared."""
    X, y, qid = data()
    price, plain = X["price"].to_numpy(), X[["a"]]
    cv = rk.cross_validate(Ridge(), plain, y, measures=MEASURES, columns={"price": X["price"]}, cv=3)
    again = rk.evaluate(y.to_numpy(), cv.predictions, qid=qid, columns={"price": price}, measures=MEASURES)
    np.testing.assert_array_equal(cv.evaluation.scores, again.scores)
    assert rk.compare({"a": cv.evaluation, "b": again}).table["difference"].tolist() == [0, 0]
    arrays = rk.cross_validate(
        Ridge(), plain.to_numpy(), y.to_numpy(), qid=qid, measures=MEASURES, columns={"price": price}, cv=3
    )
    np.testing.assert_array_equal(arrays.evaluation.scores, again.scores)
    ours, named = X, X.rename(columns={"price": "usd"})
    one = rk.cross_validate(Ridge(), ours, y, measures=MEASURES, cv=3)
    other = rk.cross_validate(Ridge(), named, y, measures=MEASURES, columns={"price": "usd"}, cv=3)
    np.testing.assert_array_equal(one.evaluation.scores, other.evaluation.scores)
    with pytest.raises(InvalidInput, match="expected the column 'price'"):
        rk.cross_validate(Ridge(), plain, y, measures=MEASURES, cv=3)
    with pytest.raises(QueryIdError, match="different indexes"):
        rk.cross_validate(Ridge(), plain, y, measures=MEASURES, columns={"price": X["price"].iloc[::-1]}, cv=3)
    curve = rk.learning_curve(Ridge(), plain, y, measures=MEASURES, columns={"price": X["price"]}, cv=3, sizes=[1.0])
    assert curve.table[REVENUE].mean() == pytest.approx(cv.folds[REVENUE].mean())


def test_early_stopping_watches_the_revenue_of_held_out_rows():
    """eval_measure= may read a column of X."""
    X, y, _ = data()
    booster = LGBMRanker(n_estimators=10, n_jobs=1, verbose=-1)
    ranker = rk.QueryRanker(booster, eval_measure=REVENUE, early_stopping_rounds=3)
    assert ranker.fit(X, y).predict(X).shape == (len(X),)
    with pytest.raises(InvalidInput, match="expected the column 'price'"):
        ranker.fit(X[["a"]], y)
