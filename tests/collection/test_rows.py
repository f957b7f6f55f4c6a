"""Nothing is reordered in silence: what is labelled has equal labels in the same order, or the call is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tables import each_row

import rankeval as rk
from rankeval.analysis.curves import roc
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput, QueryIdError

ROWS = pd.DataFrame(
    {
        "y": [0, 1, 2, 0, 1, 0, 2, 0],
        "score": [0.1, 0.9, 0.3, 0.8, 0.2, 0.7, 0.6, 0.4],
        "qid": [1, 1, 1, 1, 2, 2, 2, 2],
        "docid": list("abcdefgh"),
    },
    index=range(100, 108),
)
SHUFFLED = ROWS.sample(frac=1, random_state=0)
DOORS = {
    "evaluate": rk.evaluate,
    "contingency_table": rk.analysis.contingency_table,
    "roc": roc,
    "explain_difference": partial(rk.explain_difference, measure="AP", values=(0.5, 0.6)),
}


def given(**other):
    """Return the arguments of a front door, some of them replaced."""
    columns = {"y": ROWS.y, "score": ROWS.score, "qid": ROWS.qid, "docid": ROWS.docid} | other
    return [columns.pop("y"), columns.pop("score")], columns


@each_row("door", DOORS)
@each_row("name", ["y", "score", "qid", "docid"])
def test_one_column_in_another_order_is_refused(door, name):
    """Whether position or label was meant cannot be known: .305 instead of .363 was printed."""
    positional, ids = given(**{name: SHUFFLED[name]})
    if door in ("contingency_table", "roc"):  # which take no documents
        ids.pop("docid")
        ids = ids if name != "docid" else {"qid": SHUFFLED.qid}
    with pytest.raises(QueryIdError, match=r"have different indexes: row 0 is 10\d in \w+ and 10\d in \w+; give"):
        DOORS[door](*positional, **ids)


def test_the_message_names_both_the_place_and_the_remedy():
    """Each remedy gives a value, and they are those of the two readings."""
    turned = ROWS.qid.iloc[[0, 4, 2, 3, 1, 5, 6, 7]]
    with pytest.raises(QueryIdError) as caught:
        rk.evaluate(ROWS.y, ROWS.score, qid=turned)
    assert str(caught.value) == (
        "truth and qid have different indexes: row 1 is 101 in truth and 104 in qid; give qid.loc[truth.index] if "
        "the labels say which rows belong together, or give qid.to_numpy() if the rows are in the same order"
    )
    by_label = rk.evaluate(ROWS.y, ROWS.score, qid=turned.loc[ROWS.index], measures="AP").mean()["AP"]
    by_place = rk.evaluate(ROWS.y, ROWS.score, qid=turned.to_numpy(), measures="AP").mean()["AP"]
    assert by_label == rk.evaluate(ROWS.y, ROWS.score, qid=ROWS.qid, measures="AP").mean()["AP"]
    assert by_place != by_label


def test_labels_that_repeat_find_no_rows():
    """By `.loc` with ids as labels every row of a query is found again and again."""
    ids = pd.Index([2, 1, 1, 2], name="qid")
    with pytest.raises(QueryIdError) as caught:
        rk.evaluate(pd.Series([1, 0, 1, 0], ids), pd.Series([4.0, 3.0, 2.0, 1.0], ids[[1, 0, 2, 3]]), qid=[2, 1, 1, 2])
    assert caught.value.remedy == "give ranking.to_numpy() if the rows are in the same order"


def test_labels_that_are_not_there_are_no_way():
    """The rows of a log have numbers, and its table of features has query ids."""
    with pytest.raises(QueryIdError) as caught:
        rk.evaluate(pd.Series([1, 0], ["a", "b"]), pd.Series([2.0, 1.0]), qid=["q", "q"])
    assert caught.value.remedy == "give ranking.to_numpy() if the rows are in the same order"


def test_a_prediction_without_the_index_of_the_labels_is_refused():
    """`pd.Series(model.predict(X))` is numbered anew: right by position, wrong by label."""
    with pytest.raises(QueryIdError, match="row 0 is 100 in truth and 0 in ranking"):
        rk.evaluate(ROWS.y, pd.Series(ROWS.score.to_numpy()), qid=ROWS.qid)


@each_row("make", [np.asarray, list, pl.Series, memoryview], ids=["array", "list", "polars", "view"])
def test_what_has_no_index_goes_by_position(make):
    """There is nothing to contradict."""
    expected = rk.evaluate(ROWS.y, ROWS.score, qid=ROWS.qid, measures="AP").mean()["AP"]
    for name in ("y", "score", "qid"):
        plain = ROWS[name].to_numpy() if make is memoryview else ROWS[name].tolist()
        positional, ids = given(**{name: make(plain)})
        assert rk.evaluate(*positional, **ids, measures="AP").mean()["AP"] == expected


def test_equal_indexes_are_no_matter_of_type_or_object():
    """Ranges, copies, names, floats and duplicates are equal if their labels are."""
    index = pd.Index([3, 3, 1])
    kinds = (float, object, "Int64", "int64[pyarrow]")
    for other in (index.copy(), index.rename("row"), *map(index.astype, kinds)):
        check_rows(one=pd.Series([1, 2, 3], index=index), two=pd.Series([1, 2, 3], index=other))
    check_rows(one=pd.Series([1, 2]), two=pd.Series([1, 2], index=[0, 1]), three=None, four=[1, 2])
    check_rows(one=pd.Series([1.0], index=[np.nan]), two=pd.DataFrame({"x": [1]}, index=[np.nan]))
    with pytest.raises(QueryIdError, match=r"row 0 is \('a', 1\) in one and \('a', 2\) in two"):
        check_rows(
            one=pd.Series([1], index=pd.MultiIndex.from_tuples([("a", 1)])),
            two=pd.Series([1], index=pd.MultiIndex.from_tuples([("a", 2)])),
        )
    missing = pd.Index([1, None], dtype="Int64")
    check_rows(one=pd.Series([1, 2], index=missing), two=pd.Series([1, 2], index=missing.astype("int64[pyarrow]")))
    with pytest.raises(QueryIdError, match="row 0 is 1 in one and '1' in two"):
        check_rows(one=pd.Series([1], index=[1]), two=pd.Series([1], index=["1"]))


@each_row("part", ["qid", "docid", "relevance"])
def test_columns_of_a_collection_are_of_one_order(part):
    """`Qrels` and `Run` are made of columns as `evaluate` is."""
    columns = {"qid": ROWS.qid, "docid": ROWS.docid, "relevance": ROWS.y}
    rk.Qrels(**columns)
    with pytest.raises(QueryIdError, match="different indexes"):
        rk.Qrels(**columns | {part: columns[part].loc[SHUFFLED.index]})
    with pytest.raises(QueryIdError, match="qid and score have different indexes"):
        rk.Run(ROWS.qid, ROWS.docid, SHUFFLED.score)


class TestWeights:
    """A Series of weights is by row or by query, never by a guess."""

    def mean(self, weights, **other):
        """Return the weighted mean of AP."""
        positional, ids = given(**other)
        return float(rk.evaluate(*positional, **ids, measures="AP", query_weight=weights).mean()["AP"])

    def test_with_the_index_of_the_rows_are_by_row(self):
        by_query = self.mean({1: 3.0, 2: 1.0})
        rows = ROWS.qid.map({1: 3.0, 2: 1.0})
        assert self.mean(rows) == self.mean(rows.to_numpy()) == self.mean(pd.Series({1: 3.0, 2: 1.0})) == by_query
        plain = {name: column.reset_index(drop=True) for name, column in ROWS.items()}
        assert self.mean(rows.reset_index(drop=True), **plain) == by_query

    def test_in_another_order_are_refused(self):
        with pytest.raises(QueryIdError, match="truth and query_weight have different indexes"):
            self.mean(ROWS.qid.map({1: 3.0, 2: 1.0}).loc[SHUFFLED.index])

    def test_that_may_be_either_are_refused(self):
        either = pd.Series([3.0] * 4 + [1.0] * 4)
        plain = {name: column.to_numpy() for name, column in ROWS.items()}
        with pytest.raises(InvalidInput, match="may be by row or by query, and the two differ"):
            self.mean(either, **plain)
        assert self.mean(pd.Series(2.0, index=range(8)), **plain) == self.mean(None)

    def test_of_a_query_are_one(self):
        twice = pd.Series([3.0, 1.0, 2.0], index=[1, 2, 2])
        with pytest.raises(InvalidInput, match="query 2 has several"):
            self.mean(twice)


class TestGuard:
    """What is registered beside each other, and the scores that come later."""

    def test_register_and_status(self, tmp_path):
        guard = rk.Guard("p", ledger=f"sqlite:///{tmp_path}/l.db")
        X = pd.DataFrame({"f": np.arange(8.0)}, index=ROWS.index)
        for refuse in (
            lambda: guard.register("t", X, SHUFFLED.y, qid=ROWS.qid),
            lambda: guard.status(X, ROWS.y, qid=SHUFFLED.qid),
        ):
            with pytest.raises(QueryIdError, match=r"X and (y|qid) have different indexes"):
                refuse()

    def test_scores_of_a_plan(self, tmp_path):
        rng = np.random.default_rng(0)
        rows = pd.DataFrame({"y": rng.integers(0, 3, 80), "qid": np.repeat(np.arange(8), 10)}, index=range(500, 580))
        X = pd.DataFrame(rng.normal(size=(80, 4)), index=rows.index)
        guard = rk.Guard("p", ledger=f"sqlite:///{tmp_path}/l.db")
        test = guard.register("t", X, rows.y, qid=rows.qid)
        score = pd.Series(rng.normal(size=80), index=rows.index)
        with pytest.raises(QueryIdError, match="y and b have different indexes: row 0 is 500 in y and"):
            guard.freeze(
                test, systems={"a": score, "b": score.sample(frac=1, random_state=1)}, baseline="a", measure="AP"
            )
        guard.freeze(test, systems={"a": score, "b": -score.to_numpy()}, baseline="a", measure="AP")

    @pytest.mark.filterwarnings("ignore:RG001")
    @pytest.mark.parametrize("name", ["docid", "qid"])
    @pytest.mark.parametrize("odd", [np.zeros((2, 8)), [[1], [1, 2]], 3], ids=["matrix", "ragged", "number"])
    def test_what_it_reads_is_checked_before(self, tmp_path, name, odd):
        """With a ledger in force a matrix of ids was an error of the hashes."""
        rk.Guard("p", ledger=f"sqlite:///{tmp_path}/l.db").register(
            "t", np.arange(8.0).reshape(8, 1), ROWS.y, qid=ROWS.qid
        )
        positional, ids = given(**{name: odd})
        with pytest.raises(InvalidInput, match=rf"{name}"):
            rk.evaluate(*positional, **ids)
