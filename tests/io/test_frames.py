"""Frames and dicts: every make gives the same columns, and what cannot be an id or a number is refused by row."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tables import each_row

import rankeval as rk
from rankeval.collection.qrels import Qrels, as_qrels
from rankeval.collection.run import Run, as_run
from rankeval.errors import InvalidInput
from rankeval.io.columns import combined, id_column

ROWS = {"qid": ["q1", "q1", "q2"], "docid": ["a", "b", "a"], "relevance": [2, 0, 1]}
FRAME = pd.DataFrame(ROWS)


class Stream:
    """An object that offers nothing but the Arrow C stream."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


MAKES = {
    "pandas": FRAME,
    "pandas, object ids": FRAME.astype({"qid": object, "docid": object}),
    "pandas, Arrow types": FRAME.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, nullable types": FRAME.convert_dtypes(),
    "pandas, categories": FRAME.astype({"qid": "category"}),
    "pandas, qid as index": FRAME.set_index("qid"),
    "pandas, both ids as index": FRAME.set_index(["qid", "docid"]),
    "pandas, float labels": FRAME.astype({"relevance": float}),
    "pandas, other order and more columns": FRAME.assign(note=None)[["note", "relevance", "docid", "qid"]],
    "pandas, sliced": pd.concat([FRAME.iloc[:1], FRAME]).iloc[1:],
    "polars": pl.DataFrame(ROWS),
    "polars, lazy": pl.LazyFrame(ROWS),
    "polars, categories": pl.DataFrame(ROWS, schema_overrides={"qid": pl.Categorical}),
    "Arrow": pa.table(ROWS),
    "Arrow, chunked": pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1)]),
    "Arrow batch": pa.RecordBatch.from_pydict(ROWS),
    "Arrow, views": pa.table({**ROWS, "qid": pa.array(ROWS["qid"], pa.string_view())}),
    "Arrow, decimals": pa.table({**ROWS, "relevance": [decimal.Decimal(value) for value in ROWS["relevance"]]}),
    "Arrow C stream": Stream(pa.table(ROWS)),
}


@each_row("make", MAKES)
def test_every_make_of_frame_gives_the_same_judgments(make):
    """Ids are text, labels integers, rows in their order."""
    qrels = as_qrels(MAKES[make])
    assert qrels.qid.equals(pa.array(ROWS["qid"]))
    assert qrels.docid.equals(pa.array(ROWS["docid"]))
    assert qrels.relevance.tolist() == ROWS["relevance"]
    assert qrels.relevance.dtype == np.int64


@each_row("names", [("query_id", "docno", "label"), ("query-id", "corpus-id", "score")])
def test_usual_spellings_stand_in_for_our_names(names):
    """What PyTerrier and BEIR call the columns is found."""
    qrels = Qrels.from_frame(FRAME.set_axis(names, axis=1))
    assert qrels.relevance.tolist() == ROWS["relevance"]


def test_a_ranking_is_not_taken_for_judgments():
    """A score is no relevance, but in BEIR's judgments; a relevance is no score."""
    with pytest.raises(InvalidInput, match="no column 'relevance'"):
        as_qrels(FRAME.rename(columns={"relevance": "score"}))
    with pytest.raises(InvalidInput, match="no column 'score'"):
        as_run(FRAME)


def test_names_given_are_taken_to_the_letter():
    """A column named by the caller is that column, or an error that lists the columns."""
    frame = FRAME.assign(other=[0, 0, 3])
    assert Qrels.from_frame(frame, relevance="other").relevance.tolist() == [0, 0, 3]
    with pytest.raises(InvalidInput, match=r"no column 'grades': its columns are \['qid', 'docid', 'relevance'\]"):
        Qrels.from_frame(FRAME, relevance="grades")


def test_two_spellings_of_one_column_are_refused():
    """Which of them is meant is not guessed."""
    with pytest.raises(InvalidInput, match=r"columns 'rel', 'label' could be it; say which by relevance="):
        Qrels.from_frame(FRAME.rename(columns={"relevance": "rel"}).assign(label=1))
    with pytest.raises(InvalidInput, match="has 2 columns 'qid'"):
        Qrels.from_frame(pd.concat([FRAME, FRAME[["qid"]]], axis=1))


@each_row(
    ("ids", "message"),
    [
        (["a", None, "b"], "column qid has no id in row 1"),
        (["a", float("nan"), "b"], "column qid has no id in row 1"),
        ([1, 2, None], "column qid has no id in row 2"),
        (["a", "", "b"], "column qid has an empty id in row 1"),
        ([1, "1", 2], "column qid holds int and str"),
        ([1.0, 2.0, 3.0], "column qid is of type double: ids are text or integers"),
        ([True, False, True], "column qid is of type bool: ids are text or integers"),
        ([2**63, 1, 2], r"column qid: row 0 is 9223372036854775808, and whole ids go from -2\^63 to 2\^63 - 1"),
        ([[1], [2], [3]], "column qid is of type list"),
    ],
)
def test_what_cannot_be_an_id_is_refused(ids, message):
    """Column, row and what was found are named."""
    with pytest.raises(InvalidInput, match=message):
        Qrels.from_frame(FRAME.assign(qid=pd.Series(ids)))


@each_row(
    ("scores", "message"),
    [
        ([1.0, float("nan"), 2.0], "column score: row 1 is nan; expected finite numbers"),
        ([1.0, None, 2.0], "column score: row 1 is nan; expected finite numbers"),
        ([1.0, 2.0, float("-inf")], "column score: row 2 is -inf; expected finite numbers"),
        (["1", "2", "3"], "column score: expected numbers, found '1' in row 0"),
        ([1j, 2, 3], "column score"),
        ([1, "x", 2], "column score: expected numbers, found 'x' in row 1"),
    ],
)
def test_what_cannot_be_a_score_is_refused(scores, message):
    """Column, row and what was found are named."""
    with pytest.raises(InvalidInput, match=message):
        Run.from_frame(FRAME.assign(score=pd.Series(scores)))


def test_nan_in_a_plain_array_is_refused():
    """An array is checked as a frame is."""
    with pytest.raises(InvalidInput, match="column score: row 1 is nan"):
        Run(["q", "q"], ["a", "b"], np.array([1, np.nan]))


def test_dicts_are_flattened_in_order():
    """A row per inner entry; a query with none has no rows; NumPy keys and values do."""
    run = Run.from_dict({np.int64(7): {"b": np.float32(0.5), "a": 1}, 8: {}, 9: {"c": True}})
    assert run.qid.to_pylist() == [7, 7, 9]
    assert run.docid.to_pylist() == ["b", "a", "c"]
    assert run.score.tolist() == [0.5, 1.0, 1.0]
    assert len(Run.from_dict({})) == 0


@each_row(
    ("mapping", "message"),
    [
        ({"q": "ab"}, "but query 'q' has a str"),
        ({"q": 1}, "but query 'q' has a int"),
        ({"q": {"a": 1}, 2: {"a": 1}}, "column qid holds int and str"),
        ({None: {"a": 1}}, "column qid has no id in row 0"),
        ({"q": {"a": None}}, "column relevance: row 0 has no number"),
        ({"q": {"a": "high"}}, "column relevance: expected numbers, found 'high' in row 0"),
    ],
)
def test_dicts_of_another_shape_are_refused(mapping, message):
    """The query or row is named."""
    with pytest.raises(InvalidInput, match=message):
        Qrels.from_dict(mapping)


def test_something_that_is_no_frame_is_refused():
    """Its type is named, and what would do."""
    with pytest.raises(InvalidInput, match=r"expected a pandas or polars DataFrame.*found a int"):
        Qrels.from_frame(3)


def test_text_is_one_type_in_one_piece():
    """Large and chunked text becomes a plain array of string, so that a join meets one type only."""
    chunks = pa.chunked_array([["a"], ["b", "c"]], pa.large_string())
    assert combined(chunks).equals(pa.array(["a", "b", "c"], pa.string()))
    assert id_column(pa.array([b"a"], pa.binary()), "qid").equals(pa.array(["a"]))


def test_of_several_columns_the_first_argument_is_named():
    """Without chance: the order of the arguments decides, in frames and in files."""
    frame = pd.DataFrame({"subgroup": [None], "aspect": [None], "docid": [None], "qid": [None], "relevance": [1]})
    for gone in ("qid", "docid", "aspect"):
        with pytest.raises(InvalidInput, match=f"column {gone}"):
            Qrels.from_frame(frame)
        frame[gone] = "a"


WIDE = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]
of_128_bits = pytest.mark.skipif(not WIDE, reason="this polars, such as 1.3, has no integers of 128 bits")


@of_128_bits
@each_row("wide", WIDE or [None])
@each_row("column", ["qid", "docid", "relevance", "other"])
def test_integers_of_128_bits_are_taken_where_64_hold_them(wide, column):
    """Polars infers them from whole numbers beyond 64 bits; neither Arrow nor NumPy has them."""
    plain = pl.DataFrame({"qid": [1, 1, 2], "docid": [7, 8, 7], "relevance": [2, 0, 1], "other": [0, 1, 2]})
    frame = plain.with_columns(pl.col(column).cast(wide))
    wanted = as_qrels(plain).to_frame()
    for given in (frame, frame.lazy()):
        pd.testing.assert_frame_equal(as_qrels(given).to_frame(), wanted)
    pd.testing.assert_frame_equal(Qrels(frame["qid"], frame["docid"], frame["relevance"]).to_frame(), wanted)
    arrays = {"qid": frame["qid"], "docid": frame["docid"], "measures": "RR"}
    assert rk.evaluate(frame["relevance"], frame["other"], **arrays).n_queries == 2
    assert rk.evaluate(frame, qid="qid", relevance="relevance", score="other", docid="docid").n_queries == 2


@of_128_bits
@each_row("wide", WIDE or [None])
@each_row("column", ["qid", "docid", "relevance"])
def test_integers_beyond_64_bits_are_refused_by_column(wide, column):
    frame = pl.DataFrame({"qid": [1, 1], "docid": [7, 8], "relevance": [2, 0]}).with_columns(
        pl.Series(column, [1, 2**100 + 1], dtype=wide)
    )
    for given in (frame, frame.lazy()):
        with pytest.raises(InvalidInput, match=f"column {column}: row 1 is 1267650600228229401496703205377"):
            as_qrels(given)
    unread = frame.with_columns(pl.lit(1).alias("fine")).rename({column: "unread", "fine": column})
    assert len(as_qrels(unread)) == 2


@of_128_bits
def test_a_stream_with_a_type_that_arrow_lacks_is_refused_by_us():
    frame = pl.DataFrame({"qid": [1], "docid": ["a"], "relevance": pl.Series([1]).cast(WIDE[0])})
    with pytest.raises(InvalidInput, match=r"^Arrow cannot take a column of the frame \(.*128"):
        as_qrels(Stream(frame))
