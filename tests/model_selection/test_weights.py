"""Weights by row: used in fitting by the libraries that take them, refused by the others, never by a mean."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor
from model_selection.libraries import CatBoostRanker, CatBoostRegressor, XGBRanker, XGBRegressor, each
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.cli.options import OPTIONS
from rankeval.errors import InvalidInput
from rankeval.model_selection.with_catboost import WEIGHS_ROWS
from rankeval_mlflow.evaluator.evaluating import EvaluatorSettings

CATBOOST = {"iterations": 12, "thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False}
LGBM = {"n_estimators": 12, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


@pytest.fixture
def weight(ltr):
    """Return a weight per row, and one per query, repeated on its rows."""
    rng = np.random.default_rng(2)
    return rng.uniform(0.1, 9.0, len(ltr.y))


def of_queries(ltr):
    return 1.0 + np.array([int(query[1:]) % 3 for query in ltr.qid])


def blocks(ltr):
    order = np.argsort(ltr.qid, kind="stable")
    return order, *np.unique(ltr.qid[order], return_inverse=True, return_counts=True)[1:]


@each_row("objective", ["lambdarank", "rank_xendcg"])
def test_lightgbm_learns_from_weights_by_row_what_it_learns_by_hand(objective, ltr, weight):
    own = LGBMRanker(objective=objective, random_state=0, **LGBM)
    order, _, sizes = blocks(ltr)
    by_hand = LGBMRanker(objective=objective, random_state=0, **LGBM)
    by_hand.fit(ltr.X[order], ltr.y[order], group=sizes, sample_weight=weight[order])
    found = rk.QueryRanker(own).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    np.testing.assert_array_equal(found.predict(ltr.X), by_hand.predict(ltr.X))
    mean = np.array([weight[ltr.qid == query].mean() for query in ltr.qid])
    by_mean = rk.QueryRanker(own).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=mean)
    assert (found.predict(ltr.X) != by_mean.predict(ltr.X)).any()


@pytest.mark.needs("catboost")
@each_row("loss", ["QueryRMSE", "QuerySoftMax"])
@each_row("by_row", [True, False])
def test_catboost_learns_by_row_with_the_losses_that_weigh_rows(loss, by_row, ltr, weight):
    from catboost import Pool

    weight = weight if by_row else of_queries(ltr)
    order, codes, _ = blocks(ltr)
    pool = Pool(ltr.X[order], ltr.y[order], group_id=codes)
    (pool.set_weight if by_row else pool.set_group_weight)(weight[order])
    by_hand = CatBoostRanker(loss_function=loss, **CATBOOST).fit(pool)
    found = rk.QueryRanker(CatBoostRanker(loss_function=loss, **CATBOOST))
    found.fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    np.testing.assert_array_equal(found.predict(ltr.X), by_hand.predict(ltr.X))


@pytest.mark.needs("catboost")
@each_row("loss", sorted(WEIGHS_ROWS))
@pytest.mark.filterwarnings("ignore:Regression loss:RuntimeWarning")
def test_with_these_losses_of_catboost_a_row_of_weight_three_is_three_rows(loss, ltr):
    """That is how they are listed. Repeated rows have the same borders, as features have few values."""
    weight = np.random.default_rng(3).integers(1, 4, len(ltr.y))
    parameter = {"Lq": ":q=3", "Huber": ":delta=1", "Expectile": ":alpha=0.3", "Tweedie": ":variance_power=1.5"}
    plain = {"bootstrap_type": "No", "random_strength": 0, "l2_leaf_reg": 1e-9, "learning_rate": 0.1, "depth": 3}
    plain |= {"boost_from_average": False, "boosting_type": "Plain", "score_function": "L2"}
    plain |= {"leaf_estimation_method": "Gradient"} if loss == "Huber" else {}  # its second derivative may be 0
    ranker = CatBoostRanker(loss_function=loss + parameter.get(loss, ""), **plain, **CATBOOST)
    X, repeated = np.round(ltr.X * 8) / 8, np.repeat(np.arange(len(ltr.y)), weight)
    found = rk.QueryRanker(ranker).fit(X, ltr.y, qid=ltr.qid, sample_weight=weight).predict(X)
    thrice = rk.QueryRanker(ranker).fit(X[repeated], ltr.y[repeated], qid=ltr.qid[repeated]).predict(X)
    unweighted = rk.QueryRanker(ranker).fit(X, ltr.y, qid=ltr.qid).predict(X)
    # Medians of whole-number labels jump at half of the weight, so a few leaves differ.
    assert np.abs(found - thrice).mean() < 0.1 * np.abs(unweighted - thrice).mean()


@pytest.mark.parametrize(
    ("ranker", "message"),
    each(
        [
            (XGBRanker(n_estimators=5, n_jobs=1), "XGBRanker takes one weight per query: .* XGBRegressor, LGBMRanker"),
            (CatBoostRanker(**CATBOOST), "CatBoostRanker takes one weight per query: .* QueryRMSE"),
            (CatBoostRanker(loss_function="LambdaMart:metric=NDCG", **CATBOOST), "CatBoostRanker takes one weight"),
        ]
    ),
    ids=["xgboost", "catboost", "lambdamart"],
)
def test_a_library_without_weights_by_row_says_what_to_use(ranker, message, ltr, weight):
    with pytest.raises(InvalidInput, match=f"sample_weight differs within query 'q[0-9]+', .*{message}"):
        rk.QueryRanker(ranker).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    rk.QueryRanker(ranker).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=of_queries(ltr))


@pytest.mark.needs("xgboost")
@each_row("stopping", [None, 3])
def test_xgboost_weighs_queries_as_by_hand(stopping, ltr):
    """Also if queries are held out, so that their numbers have gaps."""
    weight = of_queries(ltr)
    ranker = rk.QueryRanker(XGBRanker(n_estimators=12, n_jobs=1), early_stopping_rounds=stopping)
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    order, codes, _ = blocks(ltr)
    if stopping is None:
        by_hand = XGBRanker(n_estimators=12, n_jobs=1)
        first = np.flatnonzero(np.diff(codes, prepend=-1))
        by_hand.fit(ltr.X[order], ltr.y[order], qid=codes, sample_weight=weight[order][first])
        np.testing.assert_array_equal(ranker.predict(ltr.X), by_hand.predict(ltr.X))


@pytest.mark.parametrize(
    "estimator",
    each(
        [
            LGBMRegressor(**LGBM),
            XGBRegressor(n_estimators=12, n_jobs=1),
            CatBoostRegressor(**CATBOOST),
            Ridge(),
            LGBMClassifier(**LGBM),
            make_pipeline(StandardScaler(), LGBMRegressor(**LGBM)),
        ]
    ),
    ids=lambda estimator: type(estimator).__name__,
)
def test_pointwise_models_take_weights_by_row(estimator, ltr, weight):
    found = rk.QueryRanker(estimator).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    last = {"lgbmregressor__sample_weight": weight} if hasattr(estimator, "steps") else {"sample_weight": weight}
    by_hand = estimator.fit(ltr.X, ltr.y, **last)
    predicted = by_hand.predict_proba(ltr.X) @ by_hand.classes_ if hasattr(by_hand, "predict_proba") else None
    np.testing.assert_array_equal(found.predict(ltr.X), by_hand.predict(ltr.X) if predicted is None else predicted)


def test_cross_validation_fits_rows_by_sample_weight_and_averages_queries_by_query_weight(ltr, weight):
    """One is no reason for the other, and weights of queries may be given by query."""
    by_query, told = of_queries(ltr), {"cv": rk.QueryKFold(3), "qid": ltr.qid, "measures": "nDCG@10"}
    plain = rk.cross_validate(LGBMRanker(**LGBM), ltr.X, ltr.y, **told)
    fitted = rk.cross_validate(LGBMRanker(**LGBM), ltr.X, ltr.y, sample_weight=weight, **told)
    assert (fitted.predictions != plain.predictions).any()
    assert fitted.evaluation.weights is None
    expected = rk.evaluate(ltr.y, plain.predictions, qid=ltr.qid, query_weight=by_query, measures="nDCG@10")
    for given in (by_query, dict(zip(ltr.qid, by_query, strict=True)), pd.Series(by_query)):
        found = rk.cross_validate(LGBMRanker(**LGBM), ltr.X, ltr.y, query_weight=given, **told)
        np.testing.assert_array_equal(found.predictions, plain.predictions)
        assert found.evaluation.aggregate().tolist() == expected.aggregate().tolist()
    with pytest.raises(InvalidInput) as caught:
        rk.cross_validate(LGBMRanker(**LGBM), ltr.X, ltr.y, query_weight=weight, **told)
    assert caught.value.argument == "query_weight"
    with pytest.raises(InvalidInput, match="takes no sample_weight"):
        rk.cross_validate(KNeighborsRegressor(), ltr.X, ltr.y, sample_weight=weight, **told)


def test_a_search_inside_is_fitted_by_rows_and_chooses_by_queries(ltr, weight):
    """With a scorer and without, whatever was said to scikit-learn's routing: nothing."""
    grid, told = {"estimator__num_leaves": [4, 31]}, {"qid": ltr.qid, "sample_weight": weight}
    for scoring in (None, rk.make_scorer("nDCG@10")):
        inner = GridSearchCV(rk.QueryRanker(LGBMRanker(**LGBM)), grid, scoring=scoring, cv=3, error_score="raise")
        search = rk.QueryRanker(inner).fit(ltr.X, ltr.y, query_weight=of_queries(ltr), **told)
        best = search.estimator_.best_params_["estimator__num_leaves"]
        again = rk.QueryRanker(LGBMRanker(num_leaves=best, **LGBM)).fit(ltr.X, ltr.y, **told)
        np.testing.assert_array_equal(search.predict(ltr.X), again.predict(ltr.X))
        tried = [rk.QueryRanker(LGBMRanker(num_leaves=leaves, **LGBM)) for leaves in (4, 31)]
        means = [
            rk.cross_validate(one, ltr.X, ltr.y, cv=3, query_weight=of_queries(ltr), measures="nDCG@10", **told)
            for one in tried
        ]
        expected = [found.folds["nDCG@10"].mean() for found in means]
        assert search.estimator_.cv_results_["mean_test_score"] == pytest.approx(expected)


def test_a_search_inside_may_have_a_list_of_grids(ltr, weight):
    """A list among the parameters of an estimator holds named steps only if its items are tuples."""
    grid = [{"estimator__alpha": [0.1, 10.0], "estimator__fit_intercept": [True, False]}]
    inner = GridSearchCV(rk.QueryRanker(Ridge()), grid, cv=2, error_score="raise")
    search = rk.QueryRanker(inner).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    best = {name.removeprefix("estimator__"): value for name, value in search.estimator_.best_params_.items()}
    again = Ridge(**best).fit(ltr.X, ltr.y, sample_weight=weight)
    np.testing.assert_allclose(search.predict(ltr.X), again.predict(ltr.X), rtol=1e-9)


def test_a_score_refuses_weights_by_row(ltr, weight):
    ranker = rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)
    with pytest.raises(InvalidInput, match="several within one query") as caught:
        ranker.score(ltr.X, ltr.y, qid=ltr.qid, query_weight=weight)
    assert caught.value.argument == "query_weight"


@each_row("by", ["row", "index", "query"])
def test_a_scorer_takes_weights_of_queries_by_row_or_by_query(by, ltr):
    """A Series by row is read by the index of the rows, although whole numbers may be ids of queries too."""
    qid = np.array([int(query[1:]) for query in ltr.qid])
    weight, frame = 1.0 + qid % 5, pd.DataFrame(ltr.X)
    given = {"row": weight, "index": pd.Series(weight, frame.index), "query": dict(zip(qid, weight, strict=True))}[by]
    ranker = rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y, qid=qid)
    expected = rk.evaluate(ltr.y, ranker.predict(ltr.X), qid=qid, query_weight=weight, measures="AP").aggregate()["AP"]
    assert rk.make_scorer("AP")(ranker, frame, ltr.y, qid=qid, query_weight=given) == pytest.approx(expected)


def named_weights(function):
    """Return the parameters of a function, or of the public methods of a class, that weigh something."""
    methods = [value for name, value in vars(function).items() if not name.startswith("_") and inspect.isroutine(value)]
    parts = [part for part in (methods if inspect.isclass(function) else [function]) if inspect.isfunction(part)]
    return {name for part in parts for name in inspect.signature(part).parameters if "weight" in name}


def test_weights_have_two_names_everywhere():
    """Rows that are fitted have `sample_weight`, queries that are averaged `query_weight`, in the shell too."""
    homes = [(home, name) for home in (rk, rkm) for name in dir(home)]
    callables = {name: value for home, name in homes if callable(value := getattr(home, name))}
    found = {name: names for name, value in callables.items() if (names := named_weights(value))}
    assert found.pop("compare") == {"collection_weights"}  # its values are "queries" and "collections"
    assert found.pop("fuse") == {"weights"}  # of systems
    assert found["QueryRanker"] == found["cross_validate"] == {"sample_weight", "query_weight"}
    assert found["evaluate"] == found["evaluate_dataset"] == {"query_weight"}
    assert set().union(*found.values()) == {"sample_weight", "query_weight"}
    assert named_weights(type(rk.make_scorer("AP"))) == {"query_weight"}
    assert {name for name in OPTIONS if "weight" in name} == {"query_weight", "weights"}
    assert {name for name in EvaluatorSettings.model_fields if "weight" in name} == {"query_weight"}
