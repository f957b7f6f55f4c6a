"""Rows are grouped by query, whatever the ids are and however the rows stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

from rankeval.errors import InvalidInput, QueryIdError, UnusableQueryIdsError
from rankeval.io.columns import as_typed
from rankeval.join.flat import group_rows, order_of, sizes_to_ids

ids = st.one_of(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=40),
    st.lists(st.integers(0, 6), min_size=1, max_size=40),
    st.lists(st.text(max_size=3), min_size=1, max_size=40),
    st.lists(st.sampled_from([0.5, 1.5, -2.0]), min_size=1, max_size=40),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=40),
)


@given(ids)
@settings(max_examples=examples(200))
def test_grouping_is_a_stable_sort_by_id(column):
    """Queries ascend; the rows of each stand in their own order."""
    grouping = group_rows(column)
    assert grouping.queries.tolist() == sorted(set(column))
    order = np.arange(len(column)) if grouping.order is None else grouping.order
    assert order.tolist() == sorted(range(len(column)), key=lambda row: (column[row], row))
    for place, query in enumerate(grouping.queries.tolist()):
        rows = order[grouping.offsets[place] : grouping.offsets[place + 1]]
        assert all(column[row] == query for row in rows)


@each_row("place", [0, 1, 1022, 1023, 1024, 1025, 2998])
def test_rows_out_of_order_are_found_wherever_they_stand(place):
    """Also behind the head of the rows, by which rows in any order are known."""
    ids = np.arange(3000) // 2
    ids[place] += 5000
    grouping = group_rows(ids)
    assert grouping.queries.tolist() == np.unique(ids).tolist()
    assert (ids[grouping.order] == np.sort(ids)).all()
    assert grouping.order.tolist() == np.argsort(ids, kind="stable").tolist()


@given(st.lists(st.text(max_size=3), min_size=1, max_size=40), st.sampled_from([1, -1]))
def test_numpys_texts_are_grouped_as_they_are_sorted(names, step):
    """Of any characters, and in views that are not contiguous."""
    column = np.array(names)[::step]
    grouping = group_rows(column)
    assert grouping.queries.tolist() == sorted(set(column.tolist()))
    order = np.arange(len(column)) if grouping.order is None else grouping.order
    assert order.tolist() == np.argsort(column, kind="stable").tolist()


def test_ids_that_are_far_apart_are_ordered():
    column = np.random.default_rng(0).permutation(np.repeat([3, 70_000, 5_000_000_000, -2], 3))
    for ids in (column, column[column < 1e6]):
        assert group_rows(ids).order.tolist() == np.argsort(ids, kind="stable").tolist()


@each_row("spread", [1, 2**16 - 1, 2**16, 2**16 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**62])
@each_row("lowest", [0, -5, 1_000_000])
@each_row("repeats", [1, 3, 20])
def test_whole_ids_are_ordered_however_far_apart_they_are(spread, lowest, repeats):
    """By packed keys, by comparing, or whole blocks at once: the order is the stable one."""
    rng = np.random.default_rng(0)
    ids = np.concatenate([rng.integers(0, spread, 50, endpoint=True), [0, spread, spread - 1, spread // 2]]) + lowest
    ids = np.repeat(rng.permutation(np.append(ids, ids)), repeats)
    assert order_of(ids).tolist() == np.argsort(ids, kind="stable").tolist()
    queries, counts = np.unique(ids, return_counts=True)
    grouping = group_rows(ids)
    assert grouping.queries.tolist() == queries.tolist()
    assert np.diff(grouping.offsets).tolist() == counts.tolist()


@each_row("repeats", [1, 7, 8, 9, 10])
@each_row(
    "ids",
    [
        np.array([0.75, 0.5, 0.25, 0.5, 1e300, -1e-300]),
        np.array([2**63 + 1, 2**64 - 1, 3, 2**63], dtype=np.uint64),
        np.array([5, -128, 127, 5], dtype=np.int8),
        np.array([9, 3, 9, 65535], dtype=np.uint16),
        np.array(["2026-01-02", "2026-01-01", "2026-01-02"], dtype="datetime64[D]"),
        np.array([True, False, True]),
    ],
    ids=lambda ids: ids.dtype.name,
)
def test_ids_of_any_kind_of_number_are_ordered_in_blocks_or_row_by_row(ids, repeats):
    column = np.repeat(ids, repeats)
    assert order_of(column).tolist() == np.argsort(column, kind="stable").tolist()
    assert group_rows(column).queries.tolist() == np.unique(ids).tolist()


@each_row("n_names", [2**16 - 1, 2**16, 2**16 + 1])
def test_many_names_are_numbered_in_their_order(n_names):
    """As many names as two bytes hold, and one more or less."""
    names = np.array([f"{number:05d}" for number in range(n_names)])
    order = np.random.default_rng(0).permutation(n_names)
    for column in (names[order], pa.array(names[order].tolist())):
        grouping = group_rows(column)
        assert grouping.queries.tolist() == names.tolist()
        np.testing.assert_array_equal(order[grouping.order], np.arange(n_names))


def test_no_rows_are_no_queries():
    for column in (
        [],
        np.array([], dtype="U3"),
        np.array([], dtype=object),
        pd.Series([], dtype="category"),
        pa.array([]),
    ):
        grouping = group_rows(column)
        assert (len(grouping.queries), grouping.offsets.tolist(), grouping.order) == (0, [0], None)


@each_row("n_rows", [4095, 4096, 4097, 9000])
def test_ids_of_rows_are_read_alike_whether_they_share_their_strings_or_not(n_rows):
    """In columns of any length, equal texts are one query, whether they are one object or many."""
    rng = np.random.default_rng(1)
    names = np.array([f"q{number}" for number in range(50)], dtype=object)
    for column in (
        names[rng.integers(0, 50, n_rows)],
        np.array([f"q{number}" for number in rng.integers(0, 50, n_rows)], dtype=object),
        np.array([f"q{number}" for number in rng.permutation(n_rows)], dtype=object),
    ):
        mixed = column.copy()
        mixed[n_rows // 2 + 1 :: 3] = np.array([f"q{number}" for number in range(len(mixed[n_rows // 2 + 1 :: 3]))])
        for ids in (column, mixed):
            grouping = group_rows(ids)
            assert grouping.queries.tolist() == sorted(set(ids.tolist()))
            order = np.arange(n_rows) if grouping.order is None else grouping.order
            assert order.tolist() == np.argsort(ids.astype(str), kind="stable").tolist()


def test_great_whole_numbers_and_texts_with_zeros_stay_what_they_are():
    """NumPy would make one id of two."""
    assert group_rows([2**53 + 1, 2**53]).queries.tolist() == [2**53, 2**53 + 1]
    assert group_rows(["a\0", "a"]).queries.tolist() == ["a", "a\0"]
    with pytest.raises(QueryIdError, match="several types are mixed"):
        group_rows([2**53 + 1, 0.5])
    assert group_rows([2**53 - 1, 0.5]).queries.tolist() == [0.5, 2**53 - 1]


@each_row(
    "make",
    [
        list,
        np.array,
        lambda names: np.array(names, dtype=object),
        pd.Series,
        lambda names: pd.Series(names).astype("category"),
        lambda names: pd.Series(names, dtype="string"),
        pa.array,
        lambda names: pa.chunked_array([names[:2], names[2:]]),
    ],
)
def test_strings_in_any_container(make):
    """The same names give the same groups from every kind of column."""
    grouping = group_rows(make(["q2", "q10", "q2", "q1"]))
    assert [str(query) for query in grouping.queries] == ["q1", "q10", "q2"]
    assert grouping.order.tolist() == [3, 1, 0, 2]


@each_row("column", [["a", None, "b"], [1, None, 2], pd.Series(["a", None]), np.array([1.0, np.nan]), [None, None]])
def test_a_missing_id_is_refused(column):
    """None and NaN are no query."""
    with pytest.raises(QueryIdError, match="has no query id"):
        group_rows(column)


@each_row("ids", [["1", 1], [1, "1"], ("q1", float("nan")), ["q1", 2.5]])
def test_a_list_of_mixed_ids_is_refused(ids):
    """NumPy would write them all as text: 1 and "1" would be one query, and nan the query "nan"."""
    with pytest.raises(QueryIdError, match=r"several types are mixed|row 1 has no query id"):
        group_rows(ids)


@each_row("sizes", [[2, 1], (2.0, 1.0), pd.Series([2, 1]), np.array([2, 1], dtype=np.uint8), pa.array([2, 1])])
def test_sizes_are_whole_numbers_of_any_type(sizes):
    assert sizes_to_ids(sizes, 3).tolist() == [0, 0, 1]


@each_row(
    ("sizes", "message"),
    [
        ([3, 0], "size 0 at 1: sizes are positive"),
        ([4, -1], "size -1 at 1"),
        ([1.5, 1.5], "sizes of consecutive queries"),
        ([np.nan, 3], "sizes of consecutive queries"),
        (["a", "b", "b"], "ids of rows go to qid="),
        ([True, True, True], "sizes of consecutive queries"),
        ([[3]], "sizes of consecutive queries"),
        (3, "sizes of consecutive queries"),
        ([None, 3], "sizes of consecutive queries"),
        ([7, 7, 8], "add up to 22, but the data has 3 rows; these look like ids"),
        ([2, 2], "add up to 4, but the data has 3 rows$"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_is_no_size_is_refused_in_one_line(sizes, message):
    """By one rule, wherever group= is taken."""
    with pytest.raises(UnusableQueryIdsError, match=message) as caught:
        sizes_to_ids(sizes, 3)
    assert "\n" not in str(caught.value)


@each_row(
    "make",
    [
        lambda names, of_row: names[of_row],
        lambda names, of_row: pd.Series(names[of_row], dtype=object),
        lambda names, of_row: pd.Series(names[of_row]).astype("category"),
        lambda names, of_row: pd.Categorical(names[of_row], categories=["unused", *np.unique(names)[::-1]]),
        lambda names, of_row: np.repeat(names[of_row], 2)[::2],
        lambda names, of_row: names[np.sort(of_row)],
    ],
    ids=["objects", "series", "category", "unused category", "not contiguous", "sorted"],
)
def test_rows_that_share_their_strings_are_grouped_by_what_these_say(make):
    """Names that are equal, but other objects, are one query."""
    rng = np.random.default_rng(3)
    names = np.array([f"q{number % 300}" for number in range(400)], dtype=object)
    column = make(names, rng.integers(0, 400, 6000))
    shared, plain = group_rows(column), group_rows(np.asarray(column).astype(str))
    assert shared.queries.tolist() == plain.queries.tolist() == sorted(set(column))
    assert shared.offsets.tolist() == plain.offsets.tolist()
    assert (shared.order is None) == (plain.order is None)
    assert shared.order is None or shared.order.tolist() == plain.order.tolist()


def test_objects_that_rows_share_may_be_no_strings():
    numbers = np.array(list(range(1000, 1400)), dtype=object)[np.random.default_rng(3).integers(0, 400, 6000)]
    assert group_rows(numbers).queries.tolist() == list(range(1000, 1400))
    numbers[5000] = None
    with pytest.raises(QueryIdError, match="row 5000 has no query id"):
        group_rows(numbers)
    texts = numbers.copy()
    texts[:] = "a"
    texts[4999] = None
    with pytest.raises(QueryIdError, match="row 4999 has no query id"):
        group_rows(texts)


@each_row("letters", ["ab", "aé", "az\x7f", "a\u20ac", "\U0001f600b"])
@each_row("n_rows", [1, 63, 64, 65, 200])
def test_texts_of_any_letters_are_numbered_as_numpy_sorts_them(letters, n_rows):
    """NumPy's texts are hashed as they lie, four bytes a letter; the result does not show it."""
    rng = np.random.default_rng(n_rows)
    ids = np.array(["".join(rng.choice(list(letters), rng.integers(1, 5))) for _ in range(n_rows)], dtype="U9")
    grouping = group_rows(ids)
    queries, sizes = np.unique(ids, return_counts=True)
    assert grouping.queries.tolist() == queries.tolist()
    assert grouping.queries.dtype.kind == "U"
    assert np.diff(grouping.offsets).tolist() == sizes.tolist()
    order = np.arange(n_rows) if grouping.order is None else grouping.order
    assert ids[order].tolist() == sorted(ids.tolist())


def test_an_array_of_great_numbers_stays_an_array():
    """Its owner chose floats; a list is read more closely, since NumPy would make one id of two."""
    assert group_rows(np.array([2.0**60, 1.0])).queries.dtype == np.float64
    assert group_rows([2.0**60, 1.0]).queries.tolist() == [1.0, 2.0**60]


def test_masked_ids_are_named_for_what_they_are():
    masked = np.ma.masked_array([1, 2], mask=[True, False])
    with pytest.raises(QueryIdError, match="qid"):
        as_typed(masked)
    with pytest.raises(InvalidInput, match="docid") as caught:
        as_typed(masked, "docid")
    assert not isinstance(caught.value, QueryIdError)


@each_row("names", [["a", "b", "c"], ["c", "a", "b"], ["b", "a", "b"]], ids=["sorted", "not", "twice"])
def test_texts_that_are_numbered_already_are_grouped_as_texts(names):
    """Of a dictionary, some texts may be used by no row, and one may stand in it twice."""
    places = np.array([2, 0, 2, 2, 0, 1, 2], dtype=np.int8)
    for rows in (places, places[:5]):
        coded = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(names))
        pieces = pa.chunked_array([coded[:2], pa.array(coded[2:].to_pylist()).dictionary_encode()])
        texts = group_rows(np.array(names)[rows].astype(object))
        for column in (coded, pieces, coded.cast(pa.string())):
            found = group_rows(column)
            assert found.queries.tolist() == texts.queries.tolist()
            assert found.offsets.tolist() == texts.offsets.tolist()
            assert (found.order is None) == (texts.order is None)
            assert found.order is None or np.array_equal(found.order, texts.order)
