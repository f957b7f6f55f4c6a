"""The query of each row, from whatever carried it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.model_selection.query_ids import encode, find, per_query, required_ids, same_queries, without_ids

X = np.zeros((4, 2))
IDS = ["a", "b", "a", "b"]


@each_row(
    "ids",
    [IDS, np.array(IDS), pd.Series(IDS), pd.Categorical(IDS), pl.Series(IDS), [1, 2, 1, 2], [(1,), (2,), (1,), (2,)]],
)
def test_ids_of_any_type_tell_the_same_queries_apart(ids):
    assert encode(find(X, qid=ids))[0].tolist() == [0, 1, 0, 1]


def test_mixed_types_can_be_ids():
    codes, queries = encode(np.array(["a", 1, "a", 2.5], dtype=object))
    assert codes.tolist() == [0, 1, 0, 2]
    assert queries.tolist() == ["a", 1, 2.5]


def test_the_strongest_source_names_the_queries():
    """Argument before index before column, where all agree on what belongs together."""
    frame = pd.DataFrame({"f": range(4), "qid": [1, 2, 1, 2]}, index=pd.Index(IDS, name="qid"))
    assert find(frame, qid=["x", "y", "x", "y"]).tolist() == ["x", "y", "x", "y"]
    assert find(frame).tolist() == IDS
    assert find(frame.reset_index(drop=True)).tolist() == [1, 2, 1, 2]


def test_a_level_of_a_multi_index_or_of_y_will_do():
    index = pd.MultiIndex.from_arrays([IDS, range(4)], names=["qid", "docid"])
    assert find(pd.DataFrame(X, index=index)).tolist() == IDS
    assert find(X, pd.Series([0, 1, 0, 1], index=index)).tolist() == IDS


def test_a_polars_column_is_found_and_is_no_feature():
    frame = pl.DataFrame({"qid": IDS, "f": [1, 2, 3, 4]})
    assert find(frame).tolist() == IDS
    assert without_ids(frame).columns == ["f"]


def test_group_sizes_stand_for_ids():
    assert find(X, group=[1, 3]).tolist() == [0, 1, 1, 1]


@each_row(
    ("given", "message"),
    [
        ({"qid": [1, 2, 3]}, "shape"),
        ({"qid": [1.0, np.nan, 1.0, 1.0]}, "missing in row 1"),
        ({"qid": ["a", None, "a", "a"]}, "missing in row 1"),
        ({"qid": [1, 1, 1, 1], "group": [2, 2]}, "different queries"),
        ({"group": [2, 3]}, "add up to 5"),
        ({"group": IDS}, "sizes"),
        ({"group": [7, 7, 8, 8]}, "qid="),
        ({"group": [4, 0]}, "positive"),
        ({}, "index level"),
    ],
)
def test_ids_that_cannot_be_used_are_an_error_of_one_line(given, message):
    with pytest.raises(QueryIdError, match=message) as caught:
        required_ids(X, who="the test", **given)
    assert "\n" not in str(caught.value)


def test_sources_that_disagree_are_an_error():
    frame = pd.DataFrame({"f": range(4), "qid": [1, 1, 2, 2]})
    with pytest.raises(QueryIdError, match="argument qid and the column"):
        find(frame, qid=IDS)
    with pytest.raises(QueryIdError, match="X and y have different indexes: row 0 is"):
        find(frame[["f"]].set_axis(pd.Index(IDS, name="qid")), pd.Series(0, pd.Index([1, 1, 2, 2], name="qid")))


def test_queries_are_the_same_under_other_names():
    assert same_queries(np.array([5, 5, 7]), np.array(["x", "x", "y"]))
    assert not same_queries(np.array([5, 5, 7]), np.array(["x", "y", "y"]))


def test_a_weight_belongs_to_the_query():
    codes = np.array([0, 1, 0])
    assert per_query([2.0, 3.0, 2.0], codes, "sample_weight").tolist() == [2.0, 3.0]
    with pytest.raises(InvalidInput, match="differs within the query of row 2"):
        per_query([2.0, 3.0, 4.0], codes, "sample_weight")


def test_a_number_and_its_text_are_two_ids():
    """NumPy makes texts of both where they stand in one list."""
    assert encode(find(X, qid=["1", 1, "1", 1]))[0].tolist() == [0, 1, 0, 1]


@each_row("columns", [(pd.DataFrame(X), pd.Series(range(4))), (X, pd.Series(range(4))), (X, range(4))])
def test_the_way_that_the_message_shows_keeps_every_row_in_its_place(columns):
    """Whole numbers as ids are labels of rows as well: a Series that is given them as its index is reordered."""
    features, labels = columns
    with pytest.raises(QueryIdError, match="needs the query id") as caught:
        required_ids(features, labels, who="a scorer")
    y = pd.Series(np.asarray(labels), index=pd.Index([3, 3, 0, 0], name="qid"))
    features = features.set_axis(y.index) if isinstance(features, pd.DataFrame) else features
    assert "y = pd.Series(np.asarray(y), index=pd.Index(qid, name='qid')) and X = X.set_axis(y.index)" in str(
        caught.value
    )
    assert y.tolist() == list(labels)
    assert required_ids(features, y, who="a scorer").tolist() == [3, 3, 0, 0]


def test_the_name_of_a_column_is_answered_with_the_column():
    frame = pd.DataFrame({"a": range(4), "query_id": IDS})
    with pytest.raises(QueryIdError, match=r"qid is the text 'query_id'.*qid=X\['query_id'\], and X without it"):
        find(frame, qid="query_id")


def test_a_step_that_drops_the_column_of_ids_is_named():
    """A ColumnTransformer leaves out the columns that it does not name."""
    frame = pd.DataFrame({"a": range(4), "qid": IDS})
    only_a = ColumnTransformer([("numbers", StandardScaler(), ["a"])])
    with pytest.raises(QueryIdError, match=r"column 'qid' of X, unless a step of a Pipeline drops it"):
        make_pipeline(only_a, rk.QueryRanker(Ridge())).fit(frame, range(4))


def test_the_message_names_the_levels_of_an_index_that_has_others():
    """Its line runs, and gives the ids."""
    levels = pd.MultiIndex.from_arrays([[7, 7, 8, 8], range(4)], names=["search_id", "day"])
    features = pd.DataFrame(X, index=levels)
    with pytest.raises(QueryIdError) as caught:
        required_ids(features, None, who="a split")
    line = "X.rename_axis(index={'search_id': 'qid'})"
    assert line in str(caught.value)
    named = features.rename_axis(index={"search_id": "qid"})
    assert required_ids(named, None, who="a split").tolist() == [7, 7, 8, 8]
