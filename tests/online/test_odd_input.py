"""Laws of interleaving, click logs and A/B tests for odd but legal input, and for input that is none."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput

N = 400


def users_of(n=N, seed=0):
    """Return a row per user, in two equal arms."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"user": np.arange(n), "arm": ["A", "B"] * (n // 2), "x": rng.normal(1, 1, n)})


def test_a_series_of_clicked_documents_is_credited_as_a_list_of_them_is():
    """A pandas Series is a collection: its values are the documents, not its index."""
    shown = rk.online.Interleaver("team_draft").show({"A": ["d1", "d2"], "B": ["d3", "d4"]}, impression="i1")
    first = shown.ids[:1]
    assert shown.credited(pd.Series(first)) == shown.credited([*first])


def test_rankings_from_an_array_of_text_and_from_a_list_of_text_have_ids_of_one_type():
    """Text of NumPy is text: an array beside a list is no mixture of text and integers."""
    il = rk.online.Interleaver("team_draft")
    expected = il.show({"A": ["x", "y"], "B": ["y", "z"]}, impression="i1")
    assert il.show({"A": np.array(["x", "y"]), "B": ["y", "z"]}, impression="i1") == expected


def test_an_aggregated_log_is_no_log_of_the_clicks_on_interleaved_lists():
    """A row that stands for 50 impressions does not count as one: 49 of them have no record."""
    il = rk.online.Interleaver("team_draft")
    shown = [il.show({"A": ["a", "b"], "B": ["c", "d"]}, impression=i, user=i) for i in range(20)]
    rows = {"impression": [0, 1], "shown": [["a", "c"]] * 2, "clicked": [["a"], ["c"]], "count": [50, 1]}
    with pytest.raises(InvalidInput, match="count"):
        rk.online.compare_interleaved(shown, rk.online.ClickLog.from_frame(pd.DataFrame(rows)))


@each_row("bad", [np.nan, np.inf])
def test_planned_shares_are_numbers_so_that_the_sample_ratio_is_tested(bad):
    """A share that is no finite number is refused: else the check for lost users is nan and is switched off."""
    with pytest.raises(InvalidInput, match="shares"):
        rk.online.ab_test(users_of(), metrics={"x": "x"}, shares={"A": bad, "B": 0.5})


def test_a_metric_with_a_great_mean_is_tested():
    """A metric that varies by 1 around 10 million varies: its p is that of Welch's test."""
    frame = users_of()
    frame["x"] += np.where(frame["arm"] == "B", 1e7 + 1, 1e7)
    row = rk.online.ab_test(frame, metrics={"x": "x"}).table.iloc[0]
    one, other = (frame["x"][frame["arm"] == arm] for arm in "AB")
    assert row["p_value"] == pytest.approx(stats.ttest_ind(other, one, equal_var=False).pvalue, rel=1e-6)


@each_row("user", [None, np.nan, 7.0, b"u7"])
def test_only_ids_are_assigned_to_arms(user):
    """A user is text or an integer: 7.0 of a column with gaps is not another user than 7, and None is none."""
    with pytest.raises(InvalidInput, match="user"):
        rk.online.assign(user, "exp7", {"A": 0.5, "B": 0.5})


def test_an_empty_frame_is_refused_by_an_ab_test():
    """A frame without rows gets an error of the package."""
    with pytest.raises(InvalidInput):
        rk.online.ab_test(users_of().iloc[:0], metrics={"x": "x"})


@each_row(
    "values", [["abc"] * N, pd.to_datetime(np.arange(N), unit="s"), np.arange(N) + 1j], ids=["text", "times", "complex"]
)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_a_metric_that_is_no_number_is_refused_by_its_name(values):
    """Text, times and complex numbers are no metrics, and the error names the column."""
    with pytest.raises(InvalidInput, match="seconds"):
        rk.online.ab_test(users_of().assign(seconds=values), metrics={"s": "seconds"})


@each_row("metrics", ["x", ["x"], {"x": ("x", "user", "arm")}], ids=["text", "list", "triple"])
def test_metrics_of_another_form_are_refused_by_their_argument(metrics):
    """Metrics are a mapping to a column or two; anything else gets an error that says so."""
    with pytest.raises(InvalidInput, match="metric"):
        rk.online.ab_test(users_of(), metrics=metrics)


def test_units_that_are_text_and_integers_are_refused():
    """For assign 7 and "7" are the same user, so a column with both would count the user twice."""
    frame = pd.DataFrame({"user": [1, 2, 3, 4, "1", "2", "3", "4"], "arm": list("AABB") * 2, "x": range(8)})
    with pytest.raises(InvalidInput, match="user"):
        rk.online.ab_test(frame, metrics={"x": "x"})


@each_row("relative", [0, np.nan, 100, [], "5%"])
def test_a_change_that_cannot_be_planned_for_is_refused_by_its_argument(relative):
    """Changes of 0, nan, none at all, or beyond the solver get an error that names ``relative``."""
    with pytest.raises(InvalidInput, match="relative"):
        rk.online.ab_power(users_of(), metric="x", relative=relative, shares={"A": 0.5, "B": 0.5})


def test_a_number_of_looks_may_be_an_integer_of_numpy():
    """The number of looks is any whole number."""
    assert rk.online.looks_plan(np.int64(5)).bounds.round(4).tolist() == [4.8769, 3.357, 2.6803, 2.2898, 2.031]


def test_ten_shares_of_a_tenth_add_up_to_all_users():
    """Shares that are sums end at 1 within rounding, as those of assign may."""
    bounds = rk.online.looks_plan(np.cumsum([0.1] * 10)).bounds
    assert bounds == pytest.approx(rk.online.looks_plan(10).bounds, abs=1e-9)


@each_row(
    ("estimate", "error", "n", "best_at"),
    [
        ([], [], [], 100),
        ([0.1, 0.2], [0.1, 0.1], [100, 200, 300], 100),
        ([0.1, np.nan], [0.1, 0.1], [100, 200], 100),
        ([0.1, 0.2], [0.1, 0.1], [100, 200], np.inf),
    ],
    ids=["empty", "lengths", "nan", "infinite"],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_confidence_sequence_takes_looks_that_are_known(estimate, error, n, best_at):
    """No look, looks of several lengths, an unknown estimate and an endless test get an error of the package."""
    with pytest.raises(InvalidInput):
        rk.online.confidence_sequence(estimate, error, n, best_at=best_at)


def log_of(**more):
    """Return a log of two impressions by two users, at two times."""
    times = pd.to_datetime(["2024-01-01 12:00", "2024-01-01 12:10"], utc=True)
    rows = {"user": ["u", "v"], "time": times, "shown": [["a", "b"]] * 2, "clicked": [["a"], []], **more}
    return rk.online.ClickLog.from_frame(pd.DataFrame(rows))


def test_the_checks_of_a_log_without_clicks_have_no_nan():
    """The notes of a log that nobody clicked in do not tell of nan clicks."""
    assert "nan" not in " ".join(log_of(clicked=[[], []]).checks().notes)


@each_row("gap", ["abc", "-5min", 30, None])
def test_the_gap_of_sessions_is_a_time_with_a_unit(gap):
    """A gap that is no time, is below 0 or has no unit (30 is 30 nanoseconds) is refused by its argument."""
    with pytest.raises(InvalidInput, match="gap"):
        log_of().sessions(gap)


def test_columns_of_rates_that_stand_twice_are_refused_or_counted_once():
    """A group by the same column twice is the group by this column."""
    once = log_of().click_rates("position").table
    pd.testing.assert_frame_equal(log_of().click_rates(["position", "position"]).table, once)


def test_who_leaves_out_all_users_reads_of_users():
    """The error of without() names its own argument, and not one of a method that it calls."""
    with pytest.raises(InvalidInput, match=r"^users"):
        log_of().without(users=["u", "v"])


def test_a_session_is_of_one_user():
    """Sessions that are counted anew for each user, 1 of u and 1 of v, are two sessions: one of them was abandoned."""
    table = log_of(session=["1", "1"]).abandonment(of="session").table
    assert table[["sessions", "abandoned"]].to_numpy().tolist() == [[2, 1]]


def test_lists_of_a_fixed_size_are_lists():
    """Polars' Array and Arrow's fixed-size list hold a list in each row."""
    import polars as pl

    columns = {"shown": [["a", "b"], ["b", "a"]], "clicked": [[0, 1], [0, 0]]}
    frame = pl.DataFrame(columns, schema={"shown": pl.Array(pl.String, 2), "clicked": pl.Array(pl.Int8, 2)})
    log = rk.online.ClickLog.from_frame(frame)
    assert log.items["clicked"].tolist() == [False, True, False, False]


@each_row("by", ["qid", "docid"])
def test_a_query_with_dollar_signs_is_drawn_as_it_is(by):
    r"""Queries and documents are data: ``$a$`` is no formula in a figure, and ``$\frac{$`` breaks none."""
    bad = ["$a$", r"$\frac{$"]
    rows = {"qid": bad, "shown": [[one] for one in bad], "clicked": [[bad[0]], []]}
    figure = rk.online.ClickLog.from_frame(pd.DataFrame(rows)).click_rates(by).plot()
    labels = figure.axes[0].get_xticklabels()
    assert [label.get_text() for label in labels if label.get_parse_math()] == []


def test_looks_that_are_close_take_no_great_memory():
    """A look at .99999 of the users and one at all of them are planned with less than 20 MB."""
    tracemalloc.start()
    try:
        rk.online.looks_plan([0.5, 1 - 1e-5, 1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20e6


@each_row("rankings", [{1: ["x"], "B": ["y"]}, [["x"], ["y"]], None], ids=["names", "list", "none"])
def test_rankings_of_another_form_are_refused_by_their_argument(rankings):
    """A name that is no text, and rankings without names, get an error of the package and no TypeError."""
    with pytest.raises(InvalidInput, match="ranking"):
        rk.online.Interleaver("team_draft").show(rankings, impression="i1")


def test_the_salt_of_an_assignment_is_text():
    """A salt that is a number is refused, as the interleaver refuses it."""
    with pytest.raises(InvalidInput, match="salt"):
        rk.online.assign("u1", 7, {"A": 0.5, "B": 0.5})


def record(scheme, credit, **more):
    """Return the JSON of a record of one document."""
    about = {"format": "rankeval.interleaved/1", "impression": 1, "scheme": scheme, "ids": ["a"], "seal": "0" * 32}
    return json.dumps(about | {"credits": {"A": [credit], "B": [0]}} | more)


@each_row(
    ("scheme", "credit", "salt"),
    [
        ("team_draft", 5, None),
        ("team_draft", "1e6", None),
        ("probabilistic", "7/3", None),
        ("team_draft", float("inf"), None),
        ("balanced", 0, None),
        ("team_draft", "1e5000", "secret"),
    ],
)
def test_a_record_whose_credits_are_none_is_refused(scheme, credit, salt):
    """Credits are from 0 to 1, ranks of a shown document are not all 0, and no number of a browser gets a traceback."""
    with pytest.raises(InvalidInput, match="record"):
        rk.online.Interleaved.from_json(record(scheme, credit), salt=salt)


def test_a_record_of_a_single_ranking_is_refused():
    """Lists are interleaved of two rankings or more."""
    with pytest.raises(InvalidInput, match="record"):
        rk.online.Interleaved.from_json(record("team_draft", 1, credits={"A": [1]}))


def test_the_salt_of_a_record_is_text():
    """A salt that is a number is refused when records are read, as it is when lists are shown."""
    shown = rk.online.Interleaver("team_draft").show({"A": ["a"], "B": ["b"]}, impression=1)
    with pytest.raises(InvalidInput, match="salt"):
        rk.online.Interleaved.from_json(shown.to_json(), salt=7)


def test_users_of_records_that_are_text_and_integers_are_refused():
    """User 1 of one server and "1" of another are not two users: click logs and frames refuse the mixture too."""
    il = rk.online.Interleaver("team_draft")
    users = [1, "1", 2, "2", 3, "3"]
    shown = [il.show({"A": ["a"], "B": ["b"]}, impression=i, user=user) for i, user in enumerate(users)]
    with pytest.raises(InvalidInput, match="user"):
        rk.online.compare_interleaved(shown, {0: ["a"]})


def test_a_relative_change_that_the_notes_deny_is_not_told():
    """If a mean is below 0 no relative change is given: neither in the table nor in the headline."""
    frame = users_of()
    frame.loc[frame["arm"] == "B", "x"] *= -1
    test = rk.online.ab_test(frame, metrics={"x": "x"})
    assert "x has no relative change of B" in " ".join(test.notes)
    assert test.table["relative"].isna().all()


def test_a_number_of_looks_is_no_plan():
    """looks= takes the result of looks_plan; a number of looks is refused by its argument."""
    with pytest.raises(InvalidInput, match="looks"):
        rk.online.ab_test(users_of(), metrics={"x": "x"}, looks=5, look=1)


def test_units_and_arms_are_two_columns():
    """The same column as unit and arm is refused."""
    with pytest.raises(InvalidInput, match="arm"):
        rk.online.ab_test(users_of(), unit="arm", metrics={"x": "x"})


def test_a_metric_without_a_relative_change_is_in_the_picture_or_named_there():
    """The picture drops no metric in silence."""
    frame = users_of().assign(loss=lambda rows: -(rows["x"] ** 2))
    figure = rk.online.ab_test(frame, metrics={"x": "x", "loss": "loss"}, primary="x").plot()
    assert "loss" in " ".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text")))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write two runs and a table of an A/B test, and work there."""
    monkeypatch.chdir(tmp_path)
    for name, ids in {"a.run": "xy", "b.run": "yx"}.items():
        rk.Run.from_dict({"q1": {one: -float(place) for place, one in enumerate(ids)}}).write(name)
    users_of().assign(y=1).to_csv("ab.csv", index=False)
    return tmp_path


@each_row("rows", ["impression,user\ni1,u1\n", "impression,qid,page\ni1,q1,3\n"], ids=["no qid", "one column more"])
def test_the_table_of_impressions_has_its_columns_checked(rankeval, files, rows):
    """A table of impressions without qid, or with a further column, gets no KeyError or TypeError."""
    (files / "impressions.csv").write_text(rows)
    _, _, error = rankeval("online", "interleave", "a.run", "b.run", "--impressions", "impressions.csv")
    assert "KeyError" not in error
    assert "TypeError" not in error


@pytest.mark.usefixtures("files")
def test_two_metrics_of_one_name_are_refused(rankeval):
    """The command drops no metric in silence if two have the same name."""
    code, _, error = rankeval("online", "ab", "ab.csv", "--metric", "m=x", "--metric", "m=x/y")
    assert code == 2, error
