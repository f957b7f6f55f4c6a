"""A table of one's own is read by the names of its columns, and nothing of it is a feature or lost unsaid."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tables import each_row

from rankeval.datasets import load_table, load_table_parts
from rankeval.errors import FileFormatError, InvalidInput, LimitExceeded, RankevalWarning, UnknownName
from rankeval.io.opening import Limits

FRAME = pd.DataFrame(
    {
        "query_id": ["ä", "ä", "b", "b", "c", "c"],
        "doc_id": ["d1", "d2", "d1", "d3", "d1", "d9"],
        "clicks": [1, 0, 0, 2, 1, 0],
        "part": ["train", "train", "Vali", "Vali", "test", "test"],
        "bm25": [7.5, 2.5, np.nan, 4.0, 1.0, 0.5],
        "n_words": [3, 1, 4, 1, 5, 9],
        "is_new": [True, False, True, True, False, False],
    }
)
NAMES = {"qid": "query_id", "label": "clicks", "docid": "doc_id"}
FEATURES = ["bm25", "n_words", "is_new"]


def parquet(frame: pd.DataFrame, name: str = "clicks.parquet") -> str:
    frame.to_parquet(name)
    return name


def csv(frame: pd.DataFrame, name: str = "clicks.csv") -> str:
    frame.to_csv(name, index=False)
    return name


@each_row("write", [parquet, csv])
def test_parquet_and_csv_give_the_same_rows(write):
    """Ids, labels, names and numbers, with NaN where a cell is empty."""
    data = load_table(write(FRAME), features=FEATURES, **NAMES)
    assert data.qid.tolist() == FRAME["query_id"].tolist()
    assert data.docid.tolist() == FRAME["doc_id"].tolist()
    assert (data.y.tolist(), data.y.dtype) == ([1, 0, 0, 2, 1, 0], np.int64)
    assert data.feature_names == tuple(FEATURES) == tuple(data.X.columns)
    np.testing.assert_array_equal(data.X.to_numpy(dtype=float), FRAME[FEATURES].to_numpy(dtype=float))


@each_row("write", [parquet, csv])
def test_features_left_out_are_all_other_numbers_and_the_rest_is_named(write):
    frame = FRAME.assign(title=["x", "y", "z", "x", "y", "z"], rel=1, topic=3)
    with pytest.warns(
        RankevalWarning, match="'part' .*'title' .*'rel' .called like an id or a label., 'topic'"
    ) as said:
        data = load_table(write(frame), **NAMES)
    assert data.feature_names == tuple(FEATURES)
    assert len(said) == 1
    assert load_table(write(frame), features=["topic"], **NAMES).feature_names == ("topic",)


def test_no_row_number_of_pandas_becomes_a_feature():
    """A file sorted by label would otherwise teach it."""
    FRAME.set_index(FRAME.index * 7).to_parquet("a.parquet", index=True)
    FRAME.to_csv("a.csv")
    for path in ("a.parquet", "a.csv"):
        with pytest.warns(RankevalWarning, match="'part'"):
            assert load_table(path, **NAMES).feature_names == tuple(FEATURES)


def test_numbers_of_all_kinds_are_features():
    table = pa.table(
        {
            "q": [1, 1, 2],
            "y": pa.array([1.0, 0.0, 1.0]),
            "decimal": pa.array([Decimal("1.5"), None, Decimal(2)]),
            "half": pa.array(np.array([0.5, 1, 2], dtype=np.float16)),
            "holes": pa.array([1, None, 2**40]),
            "flags": pa.array([True, None, False]),
            "unsigned": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        }
    )
    pq.write_table(table, "t.parquet")
    data = load_table("t.parquet", qid="q", label="y")
    assert data.qid.dtype == data.y.dtype == np.int64
    assert data.X["decimal"].tolist()[::2] == [1.5, 2]
    assert data.X["holes"].tolist()[::2] == [1, 2**40]
    assert data.X["flags"].tolist()[::2] == [1, 0]
    assert data.X.isna().sum().tolist() == [1, 0, 1, 1, 0]


def test_a_csv_may_be_packed_separated_by_tabs_and_longer_than_one_block():
    rows = 40_000
    frame = pd.DataFrame({"q": np.arange(rows) // 4, "y": np.arange(rows) % 2, "x": np.arange(rows) / 8})
    Path("t.tsv.gz").write_bytes(gzip.compress(frame.to_csv(index=False, sep="\t").encode()))
    data = load_table("t.tsv.gz", qid="q", label="y")
    np.testing.assert_array_equal(data.X["x"], frame["x"])
    assert data.qid.tolist() == frame["q"].astype(str).tolist()


@each_row("end", ["\n", "\r\n"])
def test_a_csv_without_quotes_is_read_as_one_with_them(end):
    """Arrow reads the one and Python the other; blank lines, blanks and marks of the byte order count in neither."""
    rows = ["q,y,x,note", "a,1, 0.1,", "", "ä,0,1e-3,x y", "b,2,,z", "b,0,-4,"]
    Path("plain.csv").write_bytes(b"\xef\xbb\xbf" + end.join(rows).encode())
    Path("quoted.csv").write_bytes(end.join([*rows[:-1], 'b,0,-4,""']).encode())
    plain, quoted = (load_table(f"{name}.csv", qid="q", label="y", features=["x"]) for name in ("plain", "quoted"))
    assert plain.qid.tolist() == quoted.qid.tolist() == ["a", "ä", "b", "b"]
    assert plain.y.tolist() == quoted.y.tolist() == [1, 0, 2, 0]
    np.testing.assert_array_equal(plain.X["x"], quoted.X["x"])
    np.testing.assert_array_equal(plain.X["x"], [0.1, 1e-3, np.nan, -4])
    for path in ("plain.csv", "quoted.csv"):
        with pytest.raises(FileFormatError, match="line 4 has 'x y'"):
            load_table(path, qid="q", label="y", features=["note"])


@each_row("write", [parquet, csv])
@each_row(
    ("change", "names", "error", "said"),
    [
        ({}, {"qid": "qeury_id"}, UnknownName, "clicks.*, qid: unknown column 'qeury_id'; did you mean 'query_id'"),
        ({}, {"features": ["bm52"]}, UnknownName, "features: unknown column 'bm52'; did you mean 'bm25'"),
        (
            {},
            {"label": "query_id"},
            InvalidInput,
            "'query_id' is named for qid and again for label",
        ),
        ({}, {"features": ["clicks"]}, InvalidInput, "'clicks' is named for label and again for features"),
        ({}, {"features": ["bm25", "bm25"]}, InvalidInput, "'bm25' is named for features and again for features"),
        ({}, {"features": []}, InvalidInput, "features is empty"),
        ({}, {"features": "bm25"}, InvalidInput, "expected a list of columns"),
        ({}, {"features": ["part"]}, FileFormatError, "the feature 'part' is not a column of numbers"),
        ({"query_id": ["a", None, "b", "b", "c", "c"]}, {}, FileFormatError, "query_id has (no|an empty) id in row 1"),
        (
            {"clicks": [1, None, 0, 2, 1, 0]},
            {},
            FileFormatError,
            "(row 2|line 3), column clicks: expected a label, a finite number, found ('|None)",
        ),
        ({"clicks": list("abcdef")}, {}, FileFormatError, "'clicks' is not a column of numbers .(text|line 2 has 'a')"),
        (
            {"clicks": [1, float("inf"), 0, 2, 1, 0]},
            {},
            InvalidInput,
            "(row 2|line 3), column clicks: .* found '?inf",
        ),
    ],
)
def test_a_table_that_does_not_fit_says_which_column_and_what_to_do(write, change, names, error, said):
    path = write(FRAME.assign(**change))
    with pytest.raises(error, match=said):
        load_table(path, **{**NAMES, "features": FEATURES, **names})


@each_row("write", [parquet, csv])
def test_a_table_without_numbers_is_refused_with_the_reasons(write):
    with pytest.raises(InvalidInput, match=r"no column of numbers left for a feature \(doc_id: called .*; part: "):
        load_table(write(FRAME[["query_id", "clicks", "doc_id", "part"]]), qid="query_id", label="clicks")


@each_row("write", [parquet, csv])
def test_named_columns_are_read_as_the_categories_that_pandas_would_make(write):
    """Texts and whole numbers, ascending over the whole table; an empty cell is missing."""
    frame = FRAME.assign(shop=["y", "x", "y", None, "x", "y"], size=[10, 9, 10, 9, 2, 2])
    data = load_table(write(frame), features=["bm25", "shop"], categories=["size", "shop"], **NAMES)
    expected = frame[["bm25", "shop", "size"]].astype({"shop": "category", "size": "category"})
    assert data.X["size"].cat.categories.tolist() == [2, 9, 10]
    pd.testing.assert_frame_equal(data.X, expected)
    parts = load_table_parts("clicks." + write.__name__, part="part", features=["bm25"], categories=["shop"], **NAMES)
    assert parts["test"].X["shop"].cat.categories.tolist() == ["x", "y"]


def test_categories_of_parquet_stay_as_they_are():
    """In their order, also if the dictionary differs between row groups, and without a list of features."""
    shop = pd.Categorical(list("xyxyxy"), categories=["z", "y", "x"])
    data = load_table(parquet(FRAME.assign(shop=shop).drop(columns="part")), **NAMES)
    assert data.feature_names == (*FEATURES, "shop")
    assert data.X["shop"].cat.categories.tolist() == ["z", "y", "x"]
    groups = [pa.table({"q": ["a"] * 2, "y": [0, 1], "s": pa.array(s).dictionary_encode()}) for s in ("ba", "cb")]
    with pq.ParquetWriter("groups.parquet", groups[0].schema) as writer:
        for group in groups:
            writer.write_table(group)
    assert load_table("groups.parquet", qid="q", label="y").X["s"].tolist() == list("bacb")


def test_text_is_a_feature_only_as_categories():
    with pytest.raises(FileFormatError, match=r"'shop' is not a column of numbers \(text\)") as refused:
        load_table(parquet(FRAME.assign(shop="x")), features=["shop"], **NAMES)
    assert refused.value.remedy == "leave it out, or name it in categories too"
    with pytest.raises(InvalidInput, match="'clicks' is named for label and again for categories"):
        load_table("clicks.parquet", categories=["clicks"], **NAMES)
    with pytest.raises(UnknownName, match=r"clicks.parquet, categories: unknown column 'shpo'; did you mean 'shop'"):
        load_table("clicks.parquet", categories=["shpo"], **NAMES)


def test_damage_is_refused_and_not_read_around():
    Path("stray.csv").write_text('query,y,x\n"q1,1,2\nq2",0,3\n')
    with pytest.raises(FileFormatError, match=r"expected 3 columns|no rows between two quotes"):
        load_table("stray.csv", qid="query", label="y")
    Path("short.csv").write_text("query,y,x\nq1,1\n")
    with pytest.raises(FileFormatError, match=r"short.csv, line 2: expected 3 columns .* found 2"):
        load_table("short.csv", qid="query", label="y")
    whole = Path(parquet(FRAME)).read_bytes()
    Path("half.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileFormatError, match="not a whole Parquet file"):
        load_table("half.parquet", **NAMES)
    with pytest.raises(FileFormatError, match="expected csv, found Parquet"):
        load_table("clicks.parquet", format="csv", **NAMES)
    with pytest.raises(UnknownName, match="did you mean 'parquet'"):
        load_table("clicks.parquet", format="parkett", **NAMES)
    Path("empty.csv").write_text("")
    with pytest.raises(FileFormatError, match="is empty"):
        load_table("empty.csv", qid="query", label="y")
    Path("twice.csv").write_text("q,y,x,x\n1,1,1,1\n")
    with pytest.raises(FileFormatError, match=r"twice.csv: the column 'x' is there 2 times"):
        load_table("twice.csv", qid="q", label="y")
    with pytest.raises(InvalidInput, match=r"there is no file 'none\.csv'"):
        load_table("none.csv", qid="q", label="y")


def test_limits_hold_for_tables_too():
    ones = pa.array(np.ones(5_000_000, dtype=np.int64))
    pq.write_table(pa.table({"q": ones, "y": ones, "x": ones}), "bomb.parquet")
    with pytest.raises(LimitExceeded, match="5,000,000 rows"):
        load_table("bomb.parquet", qid="q", label="y", limits=Limits(expansion=1))


@each_row("write", [parquet, csv])
def test_a_column_splits_the_rows_into_parts(write):
    parts = load_table_parts(write(FRAME), part="part", features=FEATURES, **NAMES)
    assert {part: data.qid.tolist() for part, data in parts.items()} == {
        "train": ["ä", "ä"],
        "vali": ["b", "b"],
        "test": ["c", "c"],
    }
    assert parts["test"].name.endswith("/test")
    assert list(parts["vali"].X["n_words"]) == [4, 1]


@each_row("write", [parquet, csv])
def test_values_of_parts_are_named_and_a_usual_word_may_be_named_for_another_part(write):
    path = write(FRAME.assign(part=[2023, 2023, 2024, 2024, 2025, 2025]))
    parts = load_table_parts(path, part="part", features=FEATURES, train=[2023, 2024], test=2025, **NAMES)
    assert {part: len(data) for part, data in parts.items()} == {"train": 4, "test": 2}
    parts = load_table_parts(write(FRAME), part="part", features=FEATURES, train=["train", "vali"], **NAMES)
    assert {part: len(data) for part, data in parts.items()} == {"train": 4, "test": 2}


@each_row(
    ("values", "options", "said"),
    [
        (["train"] * 3 + ["test"] * 3, {}, "query 'b' is in train and in test.*put all rows of a query into one part"),
        (
            ["train", "train", "w1", None, "test", "test"],
            {},
            "2 rows in no part: 'w1', an empty cell; the known values",
        ),
        (["a"] * 6, {"train": "a", "test": "A"}, "the value 'A' means train and test"),
        (
            ["train"] * 4 + ["test"] * 2,
            {"validation": "w6", "others": "drop"},
            "no row has the value 'w6', which is named for validation; rows have 'train', 'test'",
        ),
        (["train"] * 6, {"others": "dorp"}, "unknown value of others 'dorp'; did you mean 'drop'"),
    ],
)
def test_rows_that_belong_to_no_part_or_to_two_are_refused(values, options, said):
    with pytest.raises(InvalidInput, match=said):
        load_table_parts(parquet(FRAME.assign(part=values)), part="part", features=FEATURES, **NAMES, **options)


def test_rows_of_no_part_are_left_out_with_a_word_if_that_is_asked_for():
    path = parquet(FRAME.assign(part=["train", "train", "w1", None, "test", "test"]))
    with pytest.warns(RankevalWarning, match="left out 2 rows in no part: 'w1', an empty cell"):
        parts = load_table_parts(path, part="part", features=FEATURES, others="drop", **NAMES)
    assert {part: len(data) for part, data in parts.items()} == {"train": 2, "test": 2}
