"""Splits by time: training queries are earlier than test queries, whatever the order of rows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from shown import whole
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from tables import each_row

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput, LedgerError, QueryIdError, RankevalWarning

DAYS, PER_DAY, ROWS = 30, 4, 6
RNG = np.random.default_rng(5)


def log(seed=0):
    """Return a month of queries, four a day with six rows each, rows shuffled, day by row."""
    day = np.repeat(np.datetime64("2024-05-01") + np.arange(DAYS), PER_DAY * ROWS)
    qid = np.repeat([f"q{number:03}" for number in np.random.default_rng(1).permutation(DAYS * PER_DAY)], ROWS)
    order = np.random.default_rng(seed).permutation(len(day))
    X = RNG.normal(size=(len(day), 3))
    return X, (X[:, 0] > 0.5).astype(int), qid[order], day[order]


X, Y, QID, DAY = log()
FORMS = {
    "datetime64": DAY,
    "Series": pd.Series(DAY),
    "Timestamps": [pd.Timestamp(day) for day in DAY],
    "with a time zone": pd.Series(DAY).dt.tz_localize("Europe/Berlin"),
    "dates": DAY.astype(object),
    "text": DAY.astype(str),
    "numbers": DAY.astype("M8[D]").astype(np.int64),
    "floats": DAY.astype("M8[s]").astype(np.int64) / 86400,
    "nullable": pd.array(DAY.astype("M8[D]").astype(np.int64), dtype="Int64"),
    "polars": pl.Series(DAY),
    "polars with a time zone": pl.Series(DAY.astype("M8[us]")).dt.replace_time_zone("UTC"),
    "Arrow": pa.array(DAY),
    "Arrow with a time zone": pa.array(DAY.astype("M8[us]"), pa.timestamp("us", "UTC")),
    "Arrow in pandas": pd.Series(pa.array(DAY.astype("M8[us]")), dtype=pd.ArrowDtype(pa.timestamp("us", "UTC"))),
    "text in pandas": pd.Series(DAY.astype(str), dtype="string"),
    "Python with a time zone": [dt.datetime.combine(day, dt.time(), dt.UTC) for day in DAY.tolist()],
    "Arrow chunks": pa.chunked_array([pa.array(DAY.astype("M8[us]")[:300]), pa.array(DAY.astype("M8[us]")[300:])]),
    "by query": dict(zip(QID.tolist(), DAY.tolist(), strict=True)),
    "Series by query": pd.Series(DAY, index=QID).groupby(level=0).first(),
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Return a guard, and a function that splits the first days of a log from a day on."""
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    guard = rk.Guard("shop")

    def split(last, test_from, **options):
        known = np.datetime64(last) >= DAY
        given = {"qid": QID[known], "times": DAY[known], "test_from": test_from, "guard": guard}
        return rk.dev_test_split(X[known], Y[known], **given | options)

    yield guard, split
    forget()


def sides(cv, X=X, y=Y, qid=QID):
    """Return the ids of both sides of each split."""
    return [(sorted(set(qid[train])), sorted(set(qid[test]))) for train, test in cv.split(X, y, qid=qid)]


@each_row("form", FORMS)
def test_training_is_strictly_earlier_than_the_test_part(form):
    """On shuffled rows the order of rows is not that of time."""
    splits = list(rk.QueryTimeSplit(4, times=FORMS[form]).split(X, Y, qid=QID))
    assert len(splits) == 4
    for train, test in splits:
        assert DAY[train].max() < DAY[test].min()
        assert not set(QID[train]) & set(QID[test])
        assert np.isin(QID, QID[test]).sum() == len(test)


def test_the_order_of_rows_changes_nothing():
    again = log(seed=9)
    assert sides(rk.QueryTimeSplit(4, times=DAY)) == sides(rk.QueryTimeSplit(4, times=again[3]), *again[:3])


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=6, max_size=30).filter(
        lambda rows: len({query for query, _ in rows}) > 3
    )
)
def test_no_training_row_is_later_than_the_latest_row_of_a_test_query(rows):
    """A query whose rows lie on both sides of the border is whole on one."""
    qid, times = map(np.array, zip(*rows, strict=True))
    latest = {query: times[qid == query].max() for query in set(qid.tolist())}
    try:
        splits = list(rk.QueryTimeSplit(2, times=times).split(np.zeros((len(qid), 1)), qid=qid))
    except InvalidInput as error:
        assert "no query is earlier" in str(error)  # noqa: PT017 - either is right
        assert len(set(latest.values())) < len(latest)
        return
    for train, test in splits:
        assert not set(qid[train]) & set(qid[test])
        assert times[train].max() < min(latest[query] for query in qid[test].tolist())


def test_gap_and_sizes_count_queries():
    cv = rk.QueryTimeSplit(3, times=np.arange(20) // 2, gap=2, test_size=1, max_train_size=3)
    found = sides(cv, np.zeros((20, 1)), None, np.arange(20) // 2)
    assert found == [([2, 3, 4], [7]), ([3, 4, 5], [8]), ([4, 5, 6], [9])]


@each_row("where", ["column", "level", "level of y", "polars"])
def test_a_name_goes_through_searches_in_searches(where):
    """The times of the rows are where the rows are."""
    frame, y = pd.DataFrame(X, columns=list("abc")), pd.Series(Y)
    day = pd.MultiIndex.from_arrays([QID, DAY], names=["qid", "day"])
    X_, y_ = {
        "column": (frame.assign(day=DAY.astype("M8[D]").astype(int)), y),
        "level": (frame.set_axis(day), Y),
        "level of y": (X, y.set_axis(day)),
        "polars": (pl.DataFrame(frame).with_columns(day=pl.Series(DAY.astype("M8[D]").astype(int))), Y),
    }[where]
    cv, inner = rk.QueryTimeSplit(2, times="day"), rk.QueryTimeSplit(3, times="day")
    assert sides(cv, X_, y_) == sides(rk.QueryTimeSplit(2, times=DAY))
    if where == "level of y":
        return  # a QueryRanker keeps y as an array
    search = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [1.0]}, cv=inner, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        assert rk.cross_validate(search, X_, y_, qid=QID, cv=cv, measures="AP").evaluation.n_queries == 80


def test_times_by_row_do_not_fit_a_part_of_the_rows():
    """The folds of an inner search have fewer rows than were given times."""
    cv = rk.QueryTimeSplit(2, times=DAY)
    with pytest.raises(InvalidInput, match=r"times has 720 values, but there are 100 rows: .* mapping"):
        sides(cv, X[:100], Y[:100], QID[:100])
    with pytest.raises(QueryIdError, match="times have different indexes"):
        sides(rk.QueryTimeSplit(2, times=pd.Series(DAY).iloc[::-1]), pd.DataFrame(X))


@each_row(
    ("times", "message"),
    [
        (np.where(np.arange(720) == 7, np.datetime64("NaT"), DAY), "none .* at place 7"),
        (np.where(np.arange(720) == 7, np.nan, 1.0), "none .* at place 7"),
        (["1/5/2024"] * 720, "ISO8601"),
        ([True] * 720, "bool"),
        ([2024, "2024"] * 360, "mixed"),
        (np.full(720, 1j), "give numbers"),
        (object(), "give numbers"),
        ("when", "'when', neither a column of X nor a level"),
        ({"q000": "2024-05-01"}, "times has no value for query"),
        (dict.fromkeys(QID.tolist(), pd.NaT), "times has no value"),
        ([1] * 720, "no query is earlier than 1"),
    ],
    ids=range(11),
)
def test_a_time_that_is_none_is_refused(times, message):
    with pytest.raises(InvalidInput, match=message):
        sides(rk.QueryTimeSplit(2, times=times))


def test_without_times_mixed_rows_are_told():
    """Shuffled rows are in no order of time; rows of a query that stand together may be."""
    together = np.argsort(DAY, kind="stable")
    together = together[np.argsort(QID[together], kind="stable")]
    assert len(sides(rk.QueryTimeSplit(2), X[together], Y[together], QID[together])) == 2
    with pytest.warns(RankevalWarning, match="rows of several queries are mixed, .* give times="):
        sides(rk.QueryTimeSplit(2))


def test_a_time_split_prints_its_times():
    assert repr(rk.QueryTimeSplit(2, times="day")).endswith("times='day')")
    assert len(repr(rk.QueryTimeSplit(2, times=pd.Series(DAY)))) < 500


@each_row("form", FORMS)
def test_a_test_part_begins_on_a_day(form):
    """All queries with a row on that day or later, whole, whatever the order of rows."""
    start = {"numbers": 19858, "floats": 19858.0, "nullable": 19858}
    start |= {"with a time zone": pd.Timestamp("2024-05-15", tz="Europe/Berlin")}
    start = start.get(form, "2024-05-15")
    split = rk.dev_test_split(X, Y, qid=QID, times=FORMS[form], test_from=start)
    is_test = np.isin(QID, split.test.qid)
    assert DAY[~is_test].max() == np.datetime64("2024-05-14")
    assert DAY[is_test].min() == np.datetime64("2024-05-15")
    assert (split.test_from, split.test_size) == (start, None)


def test_a_query_across_the_border_is_whole_in_the_test_part():
    """So no row of the dev part is of the day from which on is tested."""
    qid, day = np.array([1, 2, 3, 2]), np.array(["2024-05-01", "2024-05-02", "2024-05-09", "2024-05-08"], "M8[D]")
    for start in ("2024-05-05", dt.date(2024, 5, 5), pd.Timestamp("2024-05-05", tz="UTC"), np.datetime64("2024-05-05")):
        with pytest.warns(RankevalWarning, match="1 of the 3 test rows are earlier"):
            split = rk.dev_test_split(np.zeros((4, 1)), [0, 1, 0, 1], qid=qid, times=day, test_from=start)
        assert (split.dev.qid.tolist(), split.test.qid.tolist()) == ([1], [2, 3, 2])


@pytest.mark.parametrize("kind", ["column", "index level", "row by row"])
def test_older_rows_of_the_test_part_are_said_with_both_numbers(kind):
    """Texts as ids: four searches of January come along with those of March."""
    frame = pd.DataFrame({"x": range(8), "qid": ["shoes", "shoes", "sofa", "sofa", "shoes", "shoes", "lamp", "lamp"]})
    frame = frame.assign(day=[*["2026-01-05"] * 4, "2026-03-02", "2026-03-04", *["2026-01-05"] * 2])
    times = {"column": "day", "index level": "day"}.get(kind, pd.to_datetime(frame["day"]))
    frame = frame.set_index(["qid", "day"]) if kind == "index level" else frame.set_index("qid", append=True)
    times = times if isinstance(times, str) else times.set_axis(frame.index)
    with pytest.warns(RankevalWarning) as said:
        split = rk.dev_test_split(frame, [0, 1] * 4, times=times, test_from="2026-03-02")
    words = "2 of the 4 test rows are earlier than 2026-03-02, since a query is kept whole, at the time of its "
    words += "latest row"
    assert [str(one.message) for one in said] == [f"{words}: give each search an id of its own, such as text + day"]
    assert (split.n_earlier, words in whole(split), words in split._repr_html_()) == (2, True, True)


def test_a_split_without_older_rows_says_nothing():
    """By row and by query, whose rows have one time then."""
    for times in (DAY, dict(zip(QID.tolist(), DAY.tolist(), strict=True))):
        split = rk.dev_test_split(X, Y, qid=QID, times=times, test_from="2024-05-15")
        assert (split.n_earlier, "earlier" in repr(split), "earlier" in split._repr_html_()) == (0, False, False)


def test_the_part_from_a_day_on_is_registered(shop):
    guard, _ = shop
    frame = pd.DataFrame(X, pd.MultiIndex.from_arrays([QID, DAY], names=["qid", "day"]), columns=list("abc"))
    split = rk.dev_test_split(frame, Y, times="day", test_from="2024-05-15", guard=guard, test_name="late May")
    assert split.registered.name == "late May"
    assert split.test.n_queries == 16 * PER_DAY
    with pytest.raises(GuardRefusal):
        rk.QueryRanker(Ridge()).fit(frame, Y)
    rk.QueryRanker(Ridge()).fit(split.dev.X, split.dev.y)


ROWS_BY_TIME = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15)


@pytest.mark.filterwarnings("ignore:.* test rows are earlier")
@given(ROWS_BY_TIME, ROWS_BY_TIME)
def test_later_rows_only_move_queries_into_the_test_part(first, added):
    """No query ever goes back to the dev part, and queries without new rows stay where they are."""

    def side(rows):
        qid, times = map(np.array, zip(*rows, (100, 0), (101, 9), strict=True))
        split = rk.dev_test_split(np.zeros((len(qid), 1)), np.zeros(len(qid)), qid=qid, times=times, test_from=5)
        return {query: query in split.test.qid for query in qid.tolist()}

    before, after = side(first), side(first + added)
    assert all(after[query] >= was for query, was in before.items())
    assert all(after[query] == was for query, was in before.items() if query not in dict(added))


def test_a_test_part_that_grows_supersedes_the_one_before(shop):
    """The same first day with later data: looks carry over, and the new queries are fresh."""
    guard, split = shop
    first = split("2024-05-20", "2024-05-11", test_name="late")
    guard.open(guard.freeze(first.registered, systems={"one": first.test.X[:, 0]}))
    with pytest.raises(LedgerError, match="pass supersedes='late', and looks carry over"):
        split("2024-05-25", "2024-05-11", test_name="late")
    for last, n_days in (("2024-05-25", 15), ("2024-05-30", 20)):
        grown = split(last, "2024-05-11", test_name="late", supersedes="late")
        assert set(grown.dev.qid) == set(first.dev.qid)
        assert grown.registered.n_queries == n_days * PER_DAY
        assert len(guard.looks(grown.registered)) == 1
        assert grown.registered.id == split(last, "2024-05-11", test_name="late", supersedes="late").registered.id
    plan = guard.freeze(grown.registered, systems={"two": grown.test.X[:, 1]}, fresh=True)
    assert guard.open(plan).means.n_queries.tolist() == [10 * PER_DAY]


def test_a_test_part_that_moves_on_is_retired_first(shop):
    """The old test part lies in the new dev part, and is refused there until somebody gives it up."""
    guard, split = shop
    split("2024-05-20", "2024-05-11", test_name="early")
    moved = split("2024-05-30", "2024-05-21", test_name="late")
    with pytest.raises(GuardRefusal, match="early"):
        rk.QueryRanker(Ridge()).fit(moved.dev.X, moved.dev.y, qid=moved.dev.qid)
    guard.retire("early", "the next month is the test part")
    rk.QueryRanker(Ridge()).fit(moved.dev.X, moved.dev.y, qid=moved.dev.qid)
    with pytest.raises(GuardRefusal, match="late"):
        rk.QueryRanker(Ridge()).fit(moved.test.X, moved.test.y, qid=moved.test.qid)


@each_row(
    ("options", "message"),
    [
        ({"times": DAY}, "needs both"),
        ({"times": DAY, "test_from": "2024-05-15", "supersedes": "late"}, "give guard= too"),
        ({"test_from": "2024-05-15"}, "needs both"),
        ({"times": DAY, "test_from": "2024-05-15", "test_size": 0.2}, "neither test_size"),
        ({"times": DAY, "test_from": "2024-05-15", "salt": "s"}, "neither test_size"),
        ({"times": DAY, "test_from": 15}, "give both of one kind"),
        ({"times": DAY, "test_from": pd.NaT}, "test_from has none"),
        ({"times": DAY, "test_from": "2025-01-01"}, "fell into the test part: choose another test_from"),
        ({"times": DAY, "test_from": "2020-01-01"}, "fell into the dev part: choose another test_from"),
        ({"times": DAY[:5], "test_from": "2024-05-15"}, "times has 5 values, but there are 720 rows"),
    ],
    ids=range(10),
)
def test_a_split_by_time_that_cannot_be_made_is_an_error(options, message):
    with pytest.raises(InvalidInput, match=message):
        rk.dev_test_split(X, Y, qid=QID, **options)
    with pytest.raises(QueryIdError, match="times have different indexes"):
        rk.dev_test_split(
            pd.DataFrame(X), Y, qid=QID, times=pd.Series(DAY, np.arange(720)[::-1]), test_from="2024-05-15"
        )
