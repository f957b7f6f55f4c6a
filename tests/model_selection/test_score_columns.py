"""A column of scores is a ranker wherever a ranker is taken: it learns nothing and returns the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput, UnknownName


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_a_column_is_found_by_its_name_in_frames_of_every_library(table, ltr):
    """The scores are the column, to the last bit, and nothing need be fitted."""
    assert np.array_equal(rk.ColumnRanker("c").predict(table(ltr.frame)), ltr.X[:, 2])


@pytest.mark.parametrize("rows", [np.asarray, csr_matrix, np.ndarray.tolist])
def test_a_column_of_an_array_is_found_by_its_number_or_by_the_names_of_the_data(rows, ltr):
    """Arrays have no names, so those of the RankingData are given."""
    by_number, by_name = rk.ColumnRanker(2), rk.ColumnRanker("c", feature_names=tuple("abcde"))
    for ranker in (by_number, by_name):
        assert np.array_equal(clone(ranker).predict(rows(ltr.X)), ltr.X[:, 2])


def test_ranks_and_prices_rank_the_lowest_first(ltr):
    """The score is the negative of the value."""
    ranks = ltr.frame["a"].rank()
    scores = rk.ColumnRanker("place", ascending=True).predict(ranks.to_frame("place"))
    assert np.array_equal(np.argsort(-scores), np.argsort(ranks))


@pytest.mark.parametrize(
    ("values", "row"),
    [([1.0, np.nan], 1), ([None, 2], 0), (["x", "y"], 0), (pd.array([1, 2, None], "Int64"), 2), ([1.0, np.inf], 1)],
)
def test_a_missing_value_is_refused_with_its_row(values, row):
    """No order is invented for a row without a score."""
    with pytest.raises(InvalidInput, match=f"row {row}") as caught:
        rk.ColumnRanker("now").predict(pd.DataFrame({"now": values}))
    assert caught.value.argument == "column now"


@pytest.mark.parametrize("column", [None, -1, 1.5, True])
def test_what_is_no_column_is_refused(column, ltr):
    """A column has a name or a number."""
    with pytest.raises(InvalidInput) as caught:
        rk.ColumnRanker(column).fit(ltr.X)
    assert caught.value.argument == "column"


def test_an_unknown_column_is_refused_with_the_nearest_name(ltr):
    """In a frame by its columns, in an array by the names that were given or its width."""
    frame = ltr.frame.rename(columns={"a": "first_stage_score"})
    with pytest.raises(UnknownName, match="did you mean 'first_stage_score'"):
        rk.ColumnRanker("first_stage_scor").fit(frame)
    with pytest.raises(UnknownName):
        rk.ColumnRanker("a").predict(ltr.X)
    with pytest.raises(InvalidInput):
        rk.ColumnRanker(5).predict(ltr.X)


def test_it_is_compared_in_cross_validation_with_rankers_that_learn(ltr):
    """The out-of-fold scores are the column, so its measures are those of the whole data."""
    rankers = {"now": rk.ColumnRanker("b"), "ridge": Ridge()}
    found = rk.cross_validate(rankers, ltr.frame, ltr.y, qid=ltr.qid, measures="nDCG@10")
    assert np.array_equal(found["now"].predictions, ltr.frame["b"])
    expected = rk.evaluate(ltr.y, ltr.frame["b"].to_numpy(), qid=ltr.qid, measures="nDCG@10")
    assert found["now"].evaluation.mean().equals(expected.mean())
    assert found.compare(question="models", baseline="now").table["system"].tolist() == ["ridge"]


def test_a_search_can_choose_the_column(ltr):
    """The column is a parameter like any other: the relevance was made from column a."""
    search = GridSearchCV(
        rk.QueryRanker(rk.ColumnRanker("e")),
        {"estimator__column": list("edcba")},
        scoring=rk.make_scorer("nDCG@10"),
        cv=rk.QueryKFold(3),
    )
    search.fit(ltr.indexed, ltr.y_indexed)
    assert search.best_params_ == {"estimator__column": "a"}


@pytest.fixture
def guard(tmp_path, monkeypatch):
    """Return a guard with a ledger that the process finds by itself."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    yield rk.Guard("shop")
    forget()


def test_the_guard_freezes_and_opens_it_unfitted(ltr, guard):
    """The baseline of a plan needs no fit, and its look is that of its scores."""
    test = guard.register("weeks", ltr.frame, ltr.y, qid=ltr.qid)
    systems = {"now": rk.ColumnRanker("b"), "new": ltr.X[:, 0]}
    opened = guard.open(guard.freeze(test, systems=systems, baseline="now", measure="nDCG@10"))
    assert opened.table["baseline"].tolist() == ["now"]
    with pytest.raises(GuardRefusal):
        rk.cross_validate(rk.ColumnRanker("c"), ltr.frame, ltr.y, qid=ltr.qid)
