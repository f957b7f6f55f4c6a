"""One estimator for all rankers."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest
from lightgbm import LGBMRanker, LGBMRegressor
from model_selection.libraries import CatBoostRanker, CatBoostRegressor, XGBRanker, XGBRegressor, each, installed
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator
from tables import each_row

import rankeval as rk
from rankeval.errors import AmbiguousName, InvalidInput, MissingQueryIdsRefusal, QueryIdError
from rankeval.model_selection.query_ids import encode
from rankeval.model_selection.splitters import QueryKFold

TREES = 12
BOOSTERS = {
    "lightgbm": LGBMRanker(n_estimators=TREES, min_child_samples=5, n_jobs=1, verbose=-1),
    "xgboost": XGBRanker(n_estimators=TREES, n_jobs=1),
    "catboost": CatBoostRanker(
        iterations=TREES, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
    ),
}
CATBOOST = {"iterations": 60, "thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False}
MANY_TREES = {"lightgbm": "n_estimators", "xgboost": "n_estimators", "catboost": "iterations"}


@pytest.fixture(params=each(BOOSTERS))
def booster(request):
    return clone(BOOSTERS[request.param])


def by_hand(estimator, data):
    """Fit as each library's own manual says, on rows brought into blocks by hand."""
    order = np.argsort(data.qid, kind="stable")
    X, y, codes = data.X[order], data.y[order], np.unique(data.qid[order], return_inverse=True)[1]
    told = {
        "LGBMRanker": {"group": np.unique(codes, return_counts=True)[1]},
        "XGBRanker": {"qid": codes},
        "CatBoostRanker": {"group_id": codes},
    }[type(estimator).__name__]
    return estimator.fit(X, y, **told).predict(data.X)


def test_a_booster_learns_what_it_learns_when_told_by_hand(booster, ltr):
    """Unsorted rows, string ids; predictions in the caller's row order."""
    ranker = rk.QueryRanker(booster).fit(ltr.X, ltr.y, qid=ltr.qid)
    np.testing.assert_array_equal(ranker.predict(ltr.X), by_hand(clone(booster), ltr))
    assert not hasattr(booster, "best_iteration_") or booster is not ranker.estimator_


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "texts"])
@pytest.mark.parametrize(
    ("ranker", "told"),
    each(
        [
            (BOOSTERS["catboost"], "group_id"),
            (
                LGBMRanker(n_estimators=TREES, subsample=0.5, subsample_freq=1, n_jobs=1, random_state=0, verbose=-1),
                "group",
            ),
            (XGBRanker(n_estimators=TREES, subsample=0.5, n_jobs=1, random_state=0), "qid"),
        ]
    ),
    ids=["catboost", "lightgbm", "xgboost"],
)
def test_what_depends_on_the_order_of_queries_is_fitted_by_ascending_id(ranker, told, numbers, ltr):
    """As in the obvious loop by hand; so whole queries may come in any order."""
    qid = np.array([-int(query[1:]) for query in ltr.qid]) if numbers else ltr.qid
    order = np.argsort(qid, kind="stable")
    codes, sizes = np.unique(qid[order], return_inverse=True, return_counts=True)[1:]
    by_hand = {"group_id": qid[order], "group": sizes, "qid": codes}[told]
    expected = clone(ranker).fit(ltr.X[order], ltr.y[order], **{told: by_hand}).predict(ltr.X)
    np.testing.assert_array_equal(rk.QueryRanker(ranker).fit(ltr.X, ltr.y, qid=qid).predict(ltr.X), expected)
    moved = np.argsort(-np.unique(qid, return_inverse=True)[1], kind="stable")
    again = rk.QueryRanker(ranker).fit(ltr.X[moved], ltr.y[moved], qid=qid[moved])
    np.testing.assert_array_equal(again.predict(ltr.X), expected)


def test_every_carrier_of_ids_gives_the_same_model(booster, ltr):
    expected = rk.QueryRanker(booster).fit(ltr.X, ltr.y, qid=ltr.qid).predict(ltr.X)
    with_column = ltr.frame.assign(qid=ltr.qid)
    for X, y, told in (
        (ltr.frame, ltr.y, {"qid": list(ltr.qid)}),
        (ltr.indexed, ltr.y, {}),
        (ltr.X, ltr.y_indexed, {}),
        (with_column, ltr.y, {}),
        (pl.from_pandas(with_column), ltr.y, {}),
    ):
        ranker = rk.QueryRanker(booster).fit(X, y, **told)
        np.testing.assert_array_equal(ranker.predict(X), expected)
        assert ranker.n_features_in_ == 5
    assert ranker.feature_names_in_.tolist() == list("abcde")


def test_sparse_features_will_do(booster, ltr):
    dense = np.where(np.abs(ltr.X) > 0.3, ltr.X, 0)
    ranker = rk.QueryRanker(booster).fit(csr_array(dense), ltr.y, qid=ltr.qid)
    assert ranker.score(csr_array(dense), ltr.y, qid=ltr.qid) > 0.7


def test_sizes_stand_for_ids(booster, ltr):
    order = np.argsort(ltr.qid, kind="stable")
    X, y, qid = ltr.X[order], ltr.y[order], ltr.qid[order]
    sized = rk.QueryRanker(booster).fit(X, y, group=np.unique(qid, return_counts=True)[1])
    np.testing.assert_array_equal(sized.predict(X), rk.QueryRanker(booster).fit(X, y, qid=qid).predict(X))


@each_row("measure", ["AP", "ARP"])
def test_early_stopping_watches_the_measure_on_held_out_queries(measure, booster, ltr):
    """The kept trees are those whose measure on the held-out queries is best, within the rounds waited for.

    Of ARP, the mean rank, less is better.
    """
    name = MANY_TREES[type(booster).__module__.partition(".")[0]]
    booster.set_params(**{name: 60})
    ranker = rk.QueryRanker(booster, early_stopping_rounds=4, validation_fraction=0.3, eval_measure=measure)
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid)
    assert 0 < ranker.n_iterations_ < 60
    X, y, qid, rest = held_out(ranker, ltr)
    value = rk.evaluate(y, ranker.predict(X), qid=qid, measures=measure).aggregate()[measure]
    assert value == pytest.approx(ranker.validation_score_, abs=1e-12)
    sign = 1 if measure == "AP" else -1
    for n_trees in range(1, ranker.n_iterations_):
        fewer = clone(booster).set_params(**{name: n_trees})
        refit = rk.QueryRanker(fewer).fit(ltr.X[rest], ltr.y[rest], qid=ltr.qid[rest])
        found = rk.evaluate(y, refit.predict(X), qid=qid, measures=measure).aggregate()[measure]
        assert sign * found < sign * value + 1e-12
    assert pickle.loads(pickle.dumps(ranker)).predict(X).tolist() == ranker.predict(X).tolist()
    assert len(pickle.dumps(ranker)) < 200_000


def held_out(ranker, data):
    """Return the rows that the ranker holds out of these, and which are left."""
    from rankeval.model_selection.holdout import hold_out
    from rankeval.model_selection.rows import TrainingRows

    _, watch = hold_out(ranker, TrainingRows.of(data.X, data.y, data.qid))
    rows = watch.held_out
    return rows.X, rows.y, rows.qid, ~np.isin(data.qid, rows.qid)


def test_held_out_queries_do_not_depend_on_the_order_of_rows(ltr):
    ranker = rk.QueryRanker(BOOSTERS["lightgbm"], early_stopping_rounds=3, validation_fraction=0.2)
    first = set(held_out(ranker, ltr)[2])
    ltr.X, ltr.y, ltr.qid = ltr.X[::-1], ltr.y[::-1], ltr.qid[::-1]
    assert set(held_out(ranker, ltr)[2]) == first
    assert len(first) == 6


def test_a_pipeline_holds_out_before_its_first_step(ltr):
    """The scaler has not seen the held-out queries."""
    ranker = rk.QueryRanker(make_pipeline(StandardScaler(), BOOSTERS["lightgbm"]), early_stopping_rounds=3)
    ranker.fit(ltr.X, ltr.y, qid=ltr.qid)
    rest = held_out(ranker, ltr)[3]
    np.testing.assert_array_equal(ranker.estimator_[0].mean_, ltr.X[rest].mean(axis=0))
    assert ranker.n_iterations_ is not None


@pytest.mark.parametrize(
    ("kind", "plain", "own", "rounds"),
    each(
        [
            (XGBRanker, {"n_estimators": 60, "n_jobs": 1}, {"early_stopping_rounds": 4}, 4),
            (LGBMRanker, {"n_estimators": 60, "n_jobs": 1, "verbose": -1}, {"early_stopping_round": 4}, 4),
            (LGBMRanker, {"n_estimators": 60, "n_jobs": 1, "verbose": -1}, {"n_iter_no_change": 4}, 4),
            (CatBoostRanker, CATBOOST, {"early_stopping_rounds": 4}, 4),
            (CatBoostRanker, CATBOOST, {"od_type": "Iter", "od_wait": 4}, 4),
            (CatBoostRanker, CATBOOST, {"od_wait": 4}, 4),
            (CatBoostRanker, CATBOOST, {"od_type": "Iter"}, 20),
        ]
    ),
    ids=str,
)
def test_the_boosters_own_early_stopping_is_given_rows_to_stop_on(kind, plain, own, rounds, ltr):
    """By themselves they would ask for an eval_set, which a search cannot give, or not stop."""
    theirs = rk.QueryRanker(kind(**plain, **own)).fit(ltr.X, ltr.y, qid=ltr.qid)
    ours = rk.QueryRanker(kind(**plain), early_stopping_rounds=rounds).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert theirs.n_iterations_ == ours.n_iterations_ < 60
    assert theirs.predict(ltr.X).tolist() == ours.predict(ltr.X).tolist()
    assert own.items() <= theirs.estimator_.get_params().items()


@each_row("own", [{"early_stopping_round": 0}, {"early_stopping_round": -1}])
def test_lightgbms_patience_of_none_is_no_early_stopping(own, ltr):
    ranker = rk.QueryRanker(LGBMRanker(n_estimators=5, n_jobs=1, verbose=-1, **own)).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert ranker.n_iterations_ is None


def test_the_rankers_patience_comes_before_the_boosters(ltr):
    own = LGBMRanker(n_estimators=60, n_jobs=1, verbose=-1, early_stopping_round=1)
    patient = rk.QueryRanker(own, early_stopping_rounds=8).fit(ltr.X, ltr.y, qid=ltr.qid)
    plain = LGBMRanker(n_estimators=60, n_jobs=1, verbose=-1)
    expected = rk.QueryRanker(plain, early_stopping_rounds=8).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert patient.n_iterations_ == expected.n_iterations_


@pytest.mark.needs("catboost")
def test_a_detector_of_catboosts_own_cannot_be_honoured(ltr):
    with pytest.raises(InvalidInput, match="od_pval cannot be honoured"):
        rk.QueryRanker(CatBoostRanker(**CATBOOST, od_pval=0.01)).fit(ltr.X, ltr.y, qid=ltr.qid)


def test_the_eval_measure_is_read_under_its_convention(ltr):
    """11pt_avg means two things, of which trec_eval 9 means one."""
    told = {"early_stopping_rounds": 3, "eval_measure": "11pt_avg"}
    ranker = rk.QueryRanker(BOOSTERS["lightgbm"], **told, eval_convention="trec_eval-9.0.8")
    assert 0 < ranker.fit(ltr.X, ltr.y, qid=ltr.qid).validation_score_ <= 1
    with pytest.raises(AmbiguousName):
        rk.QueryRanker(BOOSTERS["lightgbm"], **told).fit(ltr.X, ltr.y, qid=ltr.qid)
    with pytest.raises(InvalidInput, match="give one measure"):
        rk.QueryRanker(BOOSTERS["lightgbm"], early_stopping_rounds=3, eval_measure="P.5,10").fit(
            ltr.X, ltr.y, qid=ltr.qid
        )


@pytest.mark.parametrize(
    "regressor",
    each(
        [
            LGBMRegressor(n_estimators=40, n_jobs=1, verbose=-1),
            XGBRegressor(n_estimators=40, n_jobs=1),
            CatBoostRegressor(iterations=40, thread_count=1, verbose=False, allow_writing_files=False),
        ]
    ),
)
def test_boosted_regressors_stop_by_a_ranking_measure_too(regressor, ltr):
    ranker = rk.QueryRanker(regressor, early_stopping_rounds=3).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert 0 < ranker.n_iterations_ < 40
    assert 0 < ranker.validation_score_ <= 1


@each_row(
    ("options", "message"),
    [
        ({"validation_fraction": 0.2}, "early_stopping_rounds too"),
        ({"early_stopping_rounds": 3, "validation_fraction": 1.5}, "between 0 and 1"),
        ({"early_stopping_rounds": 3, "validation_fraction": 0.99}, "too few"),
        ({"early_stopping_rounds": 3}, "found Ridge"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0"),
        ({"early_stopping_rounds": 2.5}, "early_stopping_rounds is 2.5"),
    ],
)
def test_early_stopping_that_cannot_be_is_an_error(options, message, ltr):
    with pytest.raises(InvalidInput, match=message):
        rk.QueryRanker(Ridge(), **options).fit(ltr.X, ltr.y, qid=ltr.qid)


@each_row("bad", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused(bad, ltr):
    weight = np.where(ltr.qid == ltr.qid[3], bad, 1.0)
    row = int(np.flatnonzero(ltr.qid == ltr.qid[3])[0])
    with pytest.raises(InvalidInput, match=f"sample_weight is {bad} in row {row}"):
        rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y, qid=ltr.qid, sample_weight=weight)


def test_what_a_classifier_has_is_passed_on(ltr):
    """In the caller's row order, so that scorers with another response method work; others have none of it."""
    y = (ltr.y > 0).astype(int)
    ranker, plain = rk.QueryRanker(LogisticRegression()).fit(ltr.X, y, qid=ltr.qid), LogisticRegression().fit(ltr.X, y)
    np.testing.assert_array_equal(ranker.classes_, plain.classes_)
    for method in ("predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(ranker, method)(ltr.X), getattr(plain, method)(ltr.X))
        score = cross_val_score(
            rk.QueryRanker(LogisticRegression()),
            ltr.X,
            (ltr.y_indexed > 0).astype(int),
            scoring=rk.make_scorer("AP", response_method=method),
            cv=QueryKFold(3),
            error_score="raise",
        )
        assert (score > 0.5).all()
    assert rk.make_scorer("AP")(ranker, ltr.X, y, qid=ltr.qid) == rk.make_scorer("AP", response_method="predict_proba")(
        ranker, ltr.X, y, qid=ltr.qid
    )
    several = rk.QueryRanker(LogisticRegression()).fit(ltr.X, ltr.y, qid=ltr.qid)
    scorer = rk.make_scorer("AP", response_method="predict_proba")
    assert scorer(several, ltr.X, ltr.y, qid=ltr.qid) == rk.make_scorer("AP")(several, ltr.X, ltr.y, qid=ltr.qid)
    for other in (Ridge(), BOOSTERS["lightgbm"], rk.QueryRanker(Ridge())):
        assert not any(
            hasattr(rk.QueryRanker(other), name) for name in ("predict_proba", "decision_function", "classes_")
        )


def test_an_estimator_of_ones_own_is_told_qid_if_it_asks(ltr):
    class Own(RegressorMixin, BaseEstimator):
        def fit(self, X, y, qid):
            self.qid_, self.n_features_in_ = qid, X.shape[1]
            return self

        def predict(self, X):
            return X[:, 0]

    blocks = rk.QueryRanker(Own()).fit(ltr.X, ltr.y, qid=ltr.qid).estimator_.qid_
    assert (np.diff(encode(blocks)[0]) >= 0).all()
    nested = rk.QueryRanker(make_pipeline(StandardScaler(), rk.QueryRanker(BOOSTERS["lightgbm"])))
    assert nested.fit(ltr.X, ltr.y, qid=ltr.qid).score(ltr.X, ltr.y, qid=ltr.qid) > 0.7


def test_the_score_is_our_ndcg_at_10(ltr):
    ranker = rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y, qid=ltr.qid)
    expected = rk.evaluate(ltr.y, ranker.predict(ltr.X), qid=ltr.qid, measures="nDCG@10").aggregate()["nDCG@10"]
    assert ranker.score(ltr.X, ltr.y, qid=ltr.qid) == expected
    with pytest.raises(MissingQueryIdsRefusal):
        ranker.score(ltr.X, ltr.y)


def test_a_forgotten_qid_is_an_error_and_a_single_query_is_said_to_be_one(ltr):
    with pytest.raises(QueryIdError, match=r"QueryRanker.fit needs the query id"):
        rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y)
    one = rk.QueryRanker(Ridge(), single_query=True).fit(ltr.X, ltr.y)
    assert one.score(ltr.X, ltr.y) == one.score(ltr.X, ltr.y, qid=np.zeros(len(ltr.y)))
    assert one.score(ltr.X, ltr.y, qid=ltr.qid) != one.score(ltr.X, ltr.y)


@pytest.mark.usefixtures("routing")
def test_parameters_reach_through_and_copies_are_unfitted(booster, ltr):
    """CatBoost copies lists among its parameters, over which scikit-learn's clone stumbles."""
    ranker = rk.QueryRanker(booster, early_stopping_rounds=3).set_fit_request(sample_weight=True)
    ranker.set_params(estimator__learning_rate=0.3)
    assert clone(ranker).get_params()["estimator__learning_rate"] == 0.3
    assert clone(ranker).estimator is not ranker.estimator
    assert clone(ranker).get_metadata_routing().fit.requests == ranker.get_metadata_routing().fit.requests
    assert not hasattr(clone(ranker.fit(ltr.X, ltr.y, qid=ltr.qid)), "estimator_")


@pytest.mark.needs("catboost")
def test_catboost_with_lists_among_its_parameters_is_copied_wherever_it_stands(ltr):
    """By itself, in Pipelines, in searches over them."""
    listed = BOOSTERS["catboost"].copy().set_params(ignored_features=[0, 1])
    scaled = make_pipeline(StandardScaler(), listed)
    for estimator in (listed, scaled, make_pipeline("passthrough", scaled)):
        ranker = clone(rk.QueryRanker(estimator)).fit(ltr.X, ltr.y, qid=ltr.qid)
        assert (ranker.feature_importances_[:2] == 0).all()
        assert (ranker.feature_importances_[2:] > 0).any()
        cross_val_score(
            make_pipeline("passthrough", rk.QueryRanker(estimator)),
            ltr.X,
            ltr.y_indexed,
            cv=QueryKFold(2),
            error_score="raise",
        )
    search = GridSearchCV(rk.QueryRanker(scaled), {"estimator__catboostranker__depth": [2, 3]}, cv=2)
    search = search.set_params(scoring=rk.make_scorer("AP"), error_score="raise")
    assert rk.cross_validate(search, ltr.X, ltr.y, qid=ltr.qid, cv=2).evaluation.n_queries == 30
    assert scaled[-1].get_params()["ignored_features"] == [0, 1]


@pytest.mark.usefixtures("routing")
def test_importances_and_coefficients_are_those_of_the_estimator(ltr):
    for booster in installed(BOOSTERS).values():
        ranker = rk.QueryRanker(booster).fit(ltr.X, ltr.y, qid=ltr.qid)
        assert ranker.feature_importances_.argmax() == 0
        selector = RFECV(ranker, cv=QueryKFold(2), scoring=rk.make_scorer("AP")).fit(ltr.X, ltr.y, qid=ltr.qid)
        assert np.isfinite(selector.cv_results_["mean_test_score"]).all()
    ridge = rk.QueryRanker(make_pipeline(StandardScaler(), Ridge())).fit(ltr.X, ltr.y, qid=ltr.qid)
    assert ridge.coef_.argmax() == 0
    assert not hasattr(ridge, "feature_importances_")


def test_frames_with_other_columns_are_refused(ltr):
    ranker = rk.QueryRanker(Ridge()).fit(ltr.frame, ltr.y, qid=ltr.qid)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(ltr.frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="features"):
        rk.QueryRanker(Ridge()).fit(ltr.X, ltr.y, qid=ltr.qid).predict(ltr.X[:, :3])


BY_LIST = "{} weighs lists, so that a weight is not the same as a row written twice"
BY_GROUP = "{} takes one weight a query, and the check gives the rows of its single query different ones"
EQUIVALENCE = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
UNEQUAL = ("check_sample_weights_not_overwritten", *EQUIVALENCE)


@pytest.mark.parametrize(
    ("estimator", "known"),
    each(
        [
            (Ridge(), {}),
            (DecisionTreeRegressor(random_state=0), {}),
            (
                LGBMRanker(n_estimators=3, min_child_samples=1, n_jobs=1, verbose=-1),
                dict.fromkeys(EQUIVALENCE, BY_LIST.format("LightGBM")),
            ),
            (XGBRanker(n_estimators=3, n_jobs=1), dict.fromkeys(UNEQUAL, BY_GROUP.format("XGBoost"))),
            (
                CatBoostRanker(iterations=3, thread_count=1, verbose=False, allow_writing_files=False),
                {
                    **dict.fromkeys(UNEQUAL, BY_GROUP.format("CatBoost")),
                    "check_dtype_object": "CatBoost raises its own CatBoostError for a dict among the features",
                    "check_fit2d_1sample": "CatBoost: all features are either constant or ignored",
                    "check_estimator_sparse_array": "CatBoost refuses 64 bit indexes with an error of its own",
                    "check_estimator_sparse_matrix": "CatBoost refuses 64 bit indexes with an error of its own",
                },
            ),
        ]
    ),
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(estimator, known):
    """But for failures of the inner library, named with the reason."""
    results = check_estimator(rk.QueryRanker(estimator, single_query=True), on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed == set(known), [r for r in results if r["status"] == "failed"]
