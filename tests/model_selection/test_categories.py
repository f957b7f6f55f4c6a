"""Columns of categories pass through a QueryRanker as through the library itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightgbm import LGBMRanker
from model_selection.libraries import CatBoostRanker, XGBRanker, each
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import rankeval as rk
from rankeval.model_selection.category_columns import categories_of, coded

BOOSTED = {"n_estimators": 15, "random_state": 0, "n_jobs": 1}
LIGHT = {**BOOSTED, "verbose": -1, "min_child_samples": 2, "min_data_per_group": 2, "cat_smooth": 1.0}
CAT = {"iterations": 15, "random_seed": 0, "verbose": False, "thread_count": 1, "allow_writing_files": False}
RNG = np.random.default_rng(5)
ROWS = 480
QID = np.repeat(np.arange(60), 8)
# No category comes first in the alphabet, one is never seen, and whole numbers are of 8 bits.
X = pd.DataFrame(
    {
        "number": RNG.normal(size=ROWS),
        "kind": pd.Categorical(RNG.choice(["wiki", "news", "shop"], ROWS), ["wiki", "news", "shop", "never"]),
        "size": pd.Categorical(RNG.choice(np.array([7, 1, 2], dtype="int8"), ROWS)),
    }
)
Y = (2 * (X["kind"] == "shop") + (X["size"] == 2) + (X["number"] > 0.5)).to_numpy()


def by_name(last):
    """Return a Pipeline that finds the columns of categories by their names."""
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((encode, ["kind", "size"]), remainder="passthrough"), last)


def sizes(qid):
    """Return rows per query, of rows in blocks."""
    return np.unique(qid, return_counts=True)[1]


# Each: the estimator, and how its library is fitted without rankeval.
LIBRARIES = {
    "lightgbm": (LGBMRanker(**LIGHT), lambda X, y, qid: LGBMRanker(**LIGHT).fit(X, y, group=sizes(qid))),
    "xgboost": (
        XGBRanker(**BOOSTED),
        lambda X, y, qid: XGBRanker(enable_categorical=True, **BOOSTED).fit(X, y, qid=qid),
    ),
    "catboost": (
        CatBoostRanker(**CAT),
        lambda X, y, qid: CatBoostRanker(cat_features=["kind", "size"], **CAT).fit(X, y, group_id=qid),
    ),
    "histograms": (
        HistGradientBoostingRegressor(random_state=0, max_iter=15),
        lambda X, y, qid: HistGradientBoostingRegressor(random_state=0, max_iter=15).fit(X, y),  # noqa: ARG005
    ),
    "pipeline": (by_name(Ridge()), lambda X, y, qid: by_name(Ridge()).fit(X, y)),  # noqa: ARG005
    "search": (
        GridSearchCV(rk.QueryRanker(LGBMRanker(**LIGHT)), {"estimator__num_leaves": [31]}, cv=rk.QueryKFold(2)),
        lambda X, y, qid: LGBMRanker(**LIGHT).fit(X, y, group=sizes(qid)),
    ),
}


@pytest.fixture(scope="module")
def fitted():
    """Return a function: a name -> its ranker, and the same fitted by its library alone."""

    @cache
    def both(name):
        estimator, alone = LIBRARIES[name]
        return rk.QueryRanker(estimator).fit(X, Y, qid=QID), alone(X, Y, QID)

    return both


FORMS = {
    "as they were": X,
    "texts": X.astype({"kind": object, "size": object}),
    "numbers as texts": X.astype({"kind": object, "size": str}),
    "numbers with a gap before": X.astype({"kind": object, "size": float}),
    "categories of the rows": X.astype({"kind": str, "size": "int64"}).astype({"kind": "category", "size": "category"}),
    "other categories": X.assign(
        kind=pd.Categorical(X["kind"].astype(str), ["new", "shop", "news", "wiki"]),
        size=pd.Categorical(X["size"].astype("int64"), [9, 7, 2, 1]),
    ),
    "polars": pl.DataFrame(
        {
            "number": X["number"].to_numpy(),
            "kind": pl.Series(X["kind"].astype(str).tolist(), dtype=pl.Categorical),
            "size": X["size"].astype("int64").to_numpy(),
        }
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", each(LIBRARIES))
def test_predictions_are_those_of_the_library(name, form, fitted):
    """To the last bit, in whatever form the same categories come."""
    ranker, alone = fitted(name)
    expected = np.asarray(alone.predict(X), dtype=float)
    assert len(np.unique(expected)) > 10
    np.testing.assert_array_equal(ranker.predict(FORMS[form]), expected)


@pytest.mark.parametrize("name", each(LIBRARIES))
def test_an_unknown_category_is_as_the_library_has_it(name, fitted):
    """LightGBM and scikit-learn's histograms take it for missing; CatBoost and OneHotEncoder have other rules."""
    ranker, alone = fitted(name)
    texts = X.astype({"kind": object})
    texts.loc[::3, "kind"] = "new"
    if name == "xgboost":  # it takes "new" for the next known category in its order
        theirs = X.assign(kind=X["kind"].where(np.arange(ROWS) % 3 > 0))
    else:
        theirs = X.assign(kind=pd.Categorical(texts["kind"], [*X["kind"].cat.categories, "new"]))
    expected = np.asarray(alone.predict(theirs), dtype=float)
    assert (expected != alone.predict(X)).any()
    np.testing.assert_array_equal(ranker.predict(texts), expected)


@pytest.mark.parametrize("estimator", each([LGBMRanker(**LIGHT), XGBRanker(**BOOSTED), CatBoostRanker(**CAT)]))
def test_early_stopping_reads_categories_by_their_names(estimator):
    """A validation part whose categories have another order trains the same model."""
    train, valid = slice(0, 320), slice(320, None)
    turned = X[valid].assign(kind=pd.Categorical(X["kind"][valid].astype(str), ["shop", "news", "wiki"]))
    ranker = rk.QueryRanker(estimator, early_stopping_rounds=3)
    one, other = (
        rk.QueryRanker(estimator, early_stopping_rounds=3).fit(
            X[train], Y[train], qid=QID[train], eval_set=(part, Y[valid]), eval_qid=QID[valid]
        )
        for part in (X[valid], turned)
    )
    assert one.validation_score_ == other.validation_score_
    assert ranker.get_params()["estimator"].get_params() == estimator.get_params()
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("name", each(["lightgbm", "xgboost", "catboost", "histograms", "pipeline"]))
def test_cross_validation_is_the_loop_by_hand(name):
    """Of a polars table too, in which a slice has the categories of its own rows only, in their order."""
    kind, size = (pl.Series(X[column].astype(str).tolist(), dtype=pl.Categorical) for column in ("kind", "size"))
    table = pl.DataFrame({"number": X["number"].to_numpy(), "kind": kind, "size": size})
    estimator, alone = LIBRARIES[name]
    folds = list(rk.QueryKFold(3).split(table, Y, qid=QID))
    scores = np.empty(ROWS)
    for train, test in folds:
        rows, others = table[train].to_pandas(), table[test].to_pandas()
        for column in ("kind", "size"):
            others[column] = others[column].cat.set_categories(rows[column].cat.categories)
        scores[test] = alone(rows, Y[train], QID[train]).predict(others)
    by_hand = rk.evaluate(Y, scores, qid=QID, measures=["nDCG@10"])
    result = rk.cross_validate(estimator, table, Y, qid=QID, cv=folds, measures=["nDCG@10"])
    np.testing.assert_array_equal(result.evaluation.scores, by_hand.scores)


@pytest.mark.needs("xgboost", "catboost")
def test_arguments_of_the_libraries_are_kept():
    """What the user says of categories is not replaced, and the estimator that was given stays as it is."""
    given_one, unsaid = CatBoostRanker(cat_features=[2, 1], **CAT), XGBRanker(**BOOSTED)
    ranker = rk.QueryRanker(given_one).fit(X, Y, qid=QID)
    assert ranker.estimator_.get_params()["cat_features"] == [2, 1]
    assert rk.QueryRanker(unsaid).fit(X, Y, qid=QID).estimator_.enable_categorical
    assert not unsaid.enable_categorical


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=12), st.permutations(["a", "b", "c"]))
def test_codes_depend_on_the_texts_alone(values, order):
    """Whatever categories a later column has, its codes are those of training, and unknown ones stand behind."""
    trained = pd.DataFrame({"k": pd.Categorical(["b", "a"], ["b", "a"])})
    known = categories_of(trained)
    forms = [pd.Series(values, dtype=object), pd.Series(pd.Categorical(values, order))]
    for form in forms:
        column = coded(pd.DataFrame({"k": form}), known, keep_unknown=True)["k"]
        assert column.cat.categories.tolist() == ["b", "a", *(["c"] if "c" in values else [])]
        assert [None if text != text else text for text in column.tolist()] == values  # noqa: PLR0124 - nan
        bounded = coded(pd.DataFrame({"k": form}), known, keep_unknown=False)["k"]
        assert bounded.cat.codes.tolist() == [{"b": 0, "a": 1}.get(text, -1) for text in values]
