"""Rows that a booster refuses are refused by us with the way out, and no others: the libraries themselves are asked."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMRanker, LGBMRegressor
from model_selection.libraries import CatBoostRanker, XGBRanker, XGBRegressor, each
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnusableRowsRefusal
from rankeval.model_selection import boosters

RNG = np.random.default_rng(3)
QID = np.repeat(np.arange(10), 6)
X = RNG.normal(size=(60, 2))
Y = RNG.integers(0, 3, 60)
QUICK = {
    "lightgbm": {"n_estimators": 1, "verbose": -1, "n_jobs": 1, "min_child_samples": 2},
    "xgboost": {"n_estimators": 1, "n_jobs": 1},
    "catboost": {"iterations": 1, "verbose": False, "thread_count": 1, "allow_writing_files": False},
}


def light(kind=LGBMRanker, **params):
    return kind(**QUICK["lightgbm"], **params)


def xg(kind=XGBRanker, **params):
    return kind(**QUICK["xgboost"], **params)


def cat(**params):
    return CatBoostRanker(**QUICK["catboost"], **params)


def by_library(booster, X, y, qid):
    """Fit a booster without rankeval; return whether its library refuses."""
    told = {"LGBMRanker": {"group": np.unique(qid, return_counts=True)[1]}, "XGBRanker": {"qid": qid}}
    told["CatBoostRanker"] = {"group_id": qid}
    if hasattr(X, "iloc") and (names := list(X.select_dtypes("category").columns)):
        if isinstance(booster, CatBoostRanker):
            booster.set_params(cat_features=names)
        elif isinstance(booster, XGBRanker):
            booster.set_params(enable_categorical=True)
    try:
        booster.fit(X, y, **told.get(type(booster).__name__, {}))
    except Exception:  # noqa: BLE001 - each library has its own
        return True
    return False


def copied(booster):
    """Return an unfitted booster with the same parameters."""
    return type(booster)(**booster.get_params())


def refusal(booster, X, y, qid):
    """Return our refusal, or None; any other error passes."""
    try:
        rk.QueryRanker(booster).fit(X, y, qid=qid)
    except InvalidInput as refused:
        return refused
    return None


LABELS = {
    "grades": Y,
    "hits": np.where(Y > 0, 1.0, 0.0),
    "no hit": Y * 0,
    "30": np.where(Y == 2, 30, Y),
    "31": np.where(Y == 2, 31, Y),
    "32": np.where(Y == 2, 32.0, Y),
    "one of 40": np.where(np.arange(60) == 17, 40, Y),
    "2**31": np.where(Y == 2, 2**31, Y),
    "shares": Y / 2,
    "one of 1.5": np.where(np.arange(60) == 59, 1.5, Y),
    "nearly whole": Y + 1e-12,
    "negative": Y - 1,
    "one of -.5": np.where(np.arange(60) == 0, -0.5, Y),
    "from 1": Y + 1,
}


def _own_objective(y, predicted):
    return predicted - y, np.ones_like(predicted)


BOOSTERS = [
    *(light(objective=name) for name in (None, "rank_xendcg", "xendcg", "regression", "poisson", "gamma")),
    *(light(objective=name) for name in ("tweedie", "cross_entropy")),
    *(light(label_gain=gains) for gains in (list(range(41)), "0,1,3", np.arange(32))),
    light(objective=_own_objective),
    *(light(objective=_own_objective, metric=metric) for metric in (None, "None")),
    *(light(objective="regression", metric=metric) for metric in ("ndcg", "map")),
    light(metric="map"),
    light(application="regression"),
    light(LGBMRegressor),
    *(xg(objective=name) for name in ("rank:ndcg", "rank:pairwise", "rank:map")),
    *(xg(ndcg_exp_gain=value) for value in (False, True, 0)),
    *(xg(XGBRegressor, objective=name) for name in ("reg:logistic", "count:poisson", "reg:tweedie", "rank:ndcg")),
    *(cat(loss_function=name) for name in ("YetiRank", "QuerySoftMax", "PairLogit")),
    *(cat(loss_function=name, allow_const_label=True) for name in ("YetiRank", "QuerySoftMax")),
]


@pytest.mark.parametrize("booster", each(BOOSTERS))
def test_labels_are_refused_if_and_only_if_the_library_refuses_them(booster):
    # These refuse a sum of 0 themselves; the last one does so in XGBoost 3.1.
    sums = str(booster.get_params().get("objective")) in ("poisson", "tweedie", "reg:logistic")
    for name in LABELS.keys() - ({"no hit"} if sums else {"2**31"} if isinstance(booster, CatBoostRanker) else set()):
        refused = refusal(booster, X, LABELS[name], QID)
        assert (refused is not None) == by_library(copied(booster), X, LABELS[name], QID), name
        if refused is not None:
            assert (refused.argument, bool(refused.remedy)) == ("y", True), name


@pytest.mark.parametrize("booster", each([light(), xg()]))
def test_labels_beyond_whole_numbers_of_32_bits_are_refused(booster):
    """XGBoost itself takes these, and learns from a gain that has wrapped."""
    assert refusal(booster, X, np.where(Y == 2, 1e30, Y), QID).argument == "y"
    assert refusal(booster, X, np.where(Y == 2, 1e300, Y), QID).argument == "y"


@pytest.mark.parametrize(
    ("booster", "labels", "remedy", "mended"),
    each(
        [
            (
                light(),
                "one of 40",
                "label_gain=, a gain for each grade, such as list(range(41))",
                light(label_gain=list(range(41))),
            ),
            (light(objective="rank_xendcg"), "31", "list(range(32))", light(label_gain=list(range(32)))),
            (xg(), "32", "ndcg_exp_gain=False", xg(ndcg_exp_gain=False)),
            (xg(), "shares", "ndcg_exp_gain=False", xg(ndcg_exp_gain=False)),
            (xg(objective="rank:map"), "grades", "objective='rank:ndcg'", xg(objective="rank:ndcg")),
            (cat(), "no hit", "allow_const_label=True", cat(allow_const_label=True)),
        ]
    ),
)
def test_the_remedy_helps(booster, labels, remedy, mended):
    refused = refusal(booster, X, LABELS[labels], QID)
    assert remedy in refused.remedy
    assert refusal(mended, X, LABELS[labels], QID) is None


def test_a_refusal_names_row_query_and_way_out():
    assert str(refusal(light(), X, LABELS["one of 40"], QID)) == (
        "y is 40 in row 17 (query 2); expected whole labels from 0 to 30 for LGBMRanker; give label_gain=, a gain for "
        "each grade, such as list(range(41)), or grade the labels"
    )


MANY = {"X": RNG.normal(size=(10_001, 1)), "y": RNG.integers(0, 3, 10_001), "qid": np.full(10_001, 7)}


@pytest.mark.parametrize(
    ("booster", "fits"),
    each(
        [
            (light(), False),
            (light(objective="regression"), True),
            (light(LGBMRegressor), True),
            (xg(), True),
            (cat(), True),
        ]
    ),
)
def test_a_query_of_more_than_10_000_rows_is_refused_by_lightgbm_alone(booster, fits):
    refused = refusal(booster, **MANY)
    assert (refused is None) == fits == (not by_library(copied(booster), **MANY))
    if refused is not None:
        assert (refused.argument, refused.found) == ("qid", "7 in 10,001 rows")
        assert refusal(booster, MANY["X"][1:], MANY["y"][1:], MANY["qid"][1:]) is None


NAMES = [
    *([f"a{one}b", "z"] for one in "[]<>\"',:{}\\/=;()|&%#@é\n\r\t ."),
    *(["", "z"], ["a b", "a_b"], ["a  b", "a b"], [0, 1], [1.5, 2.5], ["a", "A"]),
]


MAKERS = {"lightgbm": light, "xgboost": xg, "catboost": cat}


@pytest.mark.parametrize("library", each(MAKERS))
def test_names_are_refused_if_and_only_if_the_library_refuses_them(library):
    make = MAKERS[library]
    for names in NAMES:
        frame = pd.DataFrame(X, columns=names)
        refused = refusal(make(), frame, Y, QID)
        assert (refused is not None) == by_library(make(), frame, Y, QID), names
        if refused is not None:
            assert (refused.argument, "rename" in refused.remedy) == ("X", True), names


TEXTS = ["a", "b"] * 30
COLUMNS = {
    "texts": pd.Series(TEXTS, dtype="str"),
    "objects": pd.Series(TEXTS, dtype=object),
    "Arrow's texts": pd.Series(TEXTS, dtype="string[pyarrow]"),
    "digits": pd.Series(["1", "2"] * 30, dtype=object),
    "numbers as objects": pd.Series([1, 2.5] * 30, dtype=object),
    "times": pd.Series(pd.date_range("2020", periods=60)),
    "times with a zone": pd.Series(pd.date_range("2020", periods=60, tz="UTC")),
    "spans": pd.Series(pd.to_timedelta(np.arange(60), "s")),
    "days": pd.Series(pd.period_range("2020", periods=60)),
    "categories": pd.Series(TEXTS, dtype="category"),
    "whole categories": pd.Series([1, 2] * 30, dtype="category"),
    "categories of floats": pd.Series([1.5, 2.0] * 30, dtype="category"),
    "categories with gaps": pd.Series(["a", None] * 30, dtype="category"),
    "booleans": pd.Series([True, False] * 30),
    "Int64 with gaps": pd.Series([1, pd.NA] * 30, dtype="Int64"),
    "half floats": pd.Series([1, 2] * 30, dtype="float16"),
    "sparse": pd.Series([0.0, 2.0] * 30, dtype=pd.SparseDtype("float", 0.0)),
}
TAKEN_BY_US = ("boolean with gaps", "Arrow's booleans with gaps", "Arrow's integers", "objects of booleans")
MADE_NUMBERS = dict(
    zip(
        TAKEN_BY_US,
        (
            pd.Series([True, pd.NA] * 30, dtype="boolean"),
            pd.Series([True, None] * 30, dtype="bool[pyarrow]"),
            pd.Series([1, None] * 30, dtype="int64[pyarrow]"),
            pd.Series([True, None] * 30, dtype=object),
        ),
        strict=True,
    )
)


@pytest.mark.parametrize("library", each(MAKERS))
def test_columns_are_refused_if_and_only_if_the_library_refuses_them(library):
    make = MAKERS[library]
    for name, column in COLUMNS.items():
        if library == "catboost" and name in ("times", "spans") and pd.__version__.startswith("2."):
            continue  # of pandas 2 it reads these as numbers
        frame = pd.DataFrame({"a": X[:, 0], "z": column})
        refused = refusal(make(), frame, Y, QID)
        assert (refused is not None) == by_library(make(), frame, Y, QID), name
        if refused is not None:
            assert "'z'" in refused.found, name
            assert refused.remedy, name
    for name, column in MADE_NUMBERS.items():
        assert refusal(make(), pd.DataFrame({"a": X[:, 0], "z": column}), Y, QID) is None, name


@pytest.mark.needs("catboost")
def test_columns_that_catboost_was_told_of_are_not_judged():
    frame = pd.DataFrame({"a": X[:, 0], "z": TEXTS})
    assert refusal(cat(cat_features=["z"]), frame, Y, QID) is None
    assert refusal(cat(cat_features=[1]), frame, Y, QID) is None
    gaps = frame.assign(z=["a", None] * 30)
    refused = refusal(cat(cat_features=["z"]), gaps, Y, QID)
    assert refused.found == "a frame with missing categories in column 'z'"
    mended = gaps.assign(z=gaps["z"].astype(object).fillna("none").astype("category"))
    assert refusal(cat(), mended, Y, QID) is None


def _grid(estimator, name, **options):
    return GridSearchCV(estimator, {name: [3, 5]}, cv=rk.QueryKFold(3), scoring=rk.make_scorer("AP"), **options)


def _in_search(search, y):
    with sklearn.config_context(enable_metadata_routing=True):
        return search.fit(X, y, qid=QID)


def _study(y, space):
    objective = rk.optuna_objective(light(), space, X, y, qid=QID, cv=3)
    return objective(optuna.trial.FixedTrial({"num_leaves": 3}))


RANKER = rk.QueryRanker(light())
WAYS = {
    "QueryRanker": lambda y: RANKER.fit(X, y, qid=QID),
    "with early stopping": lambda y: rk.QueryRanker(light(), early_stopping_rounds=1).fit(X, y, qid=QID),
    "Pipeline outside": lambda y: make_pipeline(StandardScaler(), RANKER).fit(X, y, queryranker__qid=QID),
    "Pipeline inside": lambda y: rk.QueryRanker(make_pipeline(StandardScaler(), light())).fit(X, y, qid=QID),
    "cross_validate": lambda y: rk.cross_validate(light(), X, y, qid=QID, cv=3),
    "cross_validate by sizes": lambda y: rk.cross_validate(light(), X, y, group=[6] * 10, cv=3),
    "cross_validate of several": lambda y: rk.cross_validate({"a": Ridge(), "b": light()}, X, y, qid=QID, cv=3),
    "RankingData": lambda y: rk.cross_validate(light(), rk.RankingData(X, y, QID), cv=3),
    "learning_curve": lambda y: rk.learning_curve(light(), X, y, qid=QID, cv=3),
    "nested": lambda y: rk.cross_validate(_grid(RANKER, "estimator__num_leaves"), X, y, qid=QID, cv=2),
    "search": lambda y: _in_search(_grid(RANKER, "estimator__num_leaves"), y),
    "search over a Pipeline": lambda y: _in_search(
        _grid(make_pipeline(StandardScaler(), RANKER), "queryranker__estimator__num_leaves"), y
    ),
    "random search": lambda y: _in_search(
        RandomizedSearchCV(RANKER, {"estimator__num_leaves": [3, 5]}, n_iter=1, cv=rk.QueryKFold(3)), y
    ),
    "cross_val_score": lambda y: cross_val_score(
        RANKER,
        pd.DataFrame(X, index=pd.Index(QID, name="qid")),
        pd.Series(y, pd.Index(QID, name="qid")),
        cv=rk.QueryKFold(3),
    ),
    "optuna": lambda y: _study(y, {"num_leaves": [3, 5]}),
    "optuna by a function": lambda y: _study(y, lambda trial: {"num_leaves": trial.suggest_int("num_leaves", 2, 4)}),
}


@each_row("way", WAYS)
def test_one_label_is_refused_whichever_way_in(way, monkeypatch):
    """Before anything is fitted, and no search makes nan of it."""
    fitted, fit = [], boosters.fit
    monkeypatch.setattr(boosters, "fit", lambda *given: fitted.append(1) or fit(*given))
    with pytest.raises((InvalidInput, UnusableRowsRefusal)) as refused:
        WAYS[way](LABELS["one of 40"])
    assert refused.value.argument == "y"
    assert "label_gain=" in refused.value.remedy
    assert not fitted or "search" in way or "cross_val_score" in way


def test_a_search_that_varies_the_objective_gets_nan_for_the_settings_that_fail():
    grid = {"estimator__objective": ["lambdarank", "regression"]}
    search = GridSearchCV(RANKER, grid, cv=rk.QueryKFold(3), scoring=rk.make_scorer("AP"))
    with pytest.warns(sklearn.exceptions.FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        _in_search(search, LABELS["shares"])
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
    assert search.best_params_ == {"estimator__objective": "regression"}
    nested = rk.cross_validate(
        GridSearchCV(RANKER, {"estimator": [Ridge(), light(objective="regression")]}, cv=rk.QueryKFold(2)),
        X,
        LABELS["shares"],
        qid=QID,
        cv=2,
        measures="nDCG",
    )
    assert np.isfinite(nested.predictions).all()


@each_row(
    "space",
    [
        {"label_gain": [",".join(map(str, range(41)))]},
        {"objective": ["regression"]},
        lambda _: {"objective": "regression"},
    ],
)
def test_a_study_is_judged_by_what_its_trials_set(space):
    objective = rk.optuna_objective(light(), space, X, LABELS["one of 40"], qid=QID, cv=2)
    given = {} if callable(space) else {name: values[0] for name, values in space.items()}
    assert np.isfinite(objective(optuna.trial.FixedTrial(given)))


@pytest.mark.parametrize(
    ("booster", "fits"),
    each([(light(), False), (light(metric="None"), True), (light(metric="map"), True), (xg(), True), (cat(), True)]),
)
def test_labels_to_stop_on_are_refused_where_the_library_reads_them(booster, fits):
    told = {"eval_set": (X[:30], LABELS["one of 40"][:30]), "eval_qid": QID[:30]}
    ranker = rk.QueryRanker(booster, early_stopping_rounds=1)
    if fits:
        ranker.fit(X[30:], Y[30:], qid=QID[30:], **told)
        rk.cross_validate(ranker, X[30:], Y[30:], qid=QID[30:], cv=2, **told)
        return
    for fit in (
        lambda: ranker.fit(X[30:], Y[30:], qid=QID[30:], **told),
        lambda: rk.cross_validate(ranker, X[30:], Y[30:], qid=QID[30:], cv=2, **told),
    ):
        with pytest.raises(InvalidInput) as refused:
            fit()
        assert (refused.value.where, refused.value.argument) == ("eval_set", "y")
