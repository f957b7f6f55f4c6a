"""Tests of click logs: reading both forms, refusals, checks, sessions and rates."""

from __future__ import annotations

import gzip
import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from tables import each_row

from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.online import ClickLog
from rankeval.online.logs import wilson

ROWS = pd.DataFrame(
    {
        "impression": ["i1", "i1", "i2", "i2", "i2"],
        "qid": ["q2", "q2", "q1", "q1", "q1"],
        "user": ["u1", "u1", "u2", "u2", "u2"],
        "time": pd.to_datetime(["2024-05-01 12:00+02:00"] * 2 + ["2024-05-01 13:00+02:00"] * 3),
        "arm": ["A", "A", "B", "B", "B"],
        "position": [1, 2, 1, 2, 3],
        "docid": ["d4", "d9", "d9", "d1", "d4"],
        "clicked": [0, 1, 1, 0, 1],
    }
)
LISTS = pd.DataFrame(
    {
        "impression": ["i1", "i2"],
        "qid": ["q2", "q1"],
        "user": ["u1", "u2"],
        "time": pd.to_datetime(["2024-05-01 12:00+02:00", "2024-05-01 13:00+02:00"]),
        "arm": ["A", "B"],
        "shown": [["d4", "d9"], ["d9", "d1", "d4"]],
        "clicked": [["d9"], ["d4", "d9"]],
    }
)


def same(one: ClickLog, other: ClickLog) -> None:
    pd.testing.assert_frame_equal(one.items, other.items)
    pd.testing.assert_frame_equal(one.impressions, other.impressions)
    assert one.complete == other.complete


def test_both_forms_and_all_makes_of_frames_give_one_log() -> None:
    """Rows of items, lists of clicked ids, and lists of flags are the same log, in pandas, polars and Arrow."""
    log = ClickLog.from_frame(ROWS)
    flags = LISTS.assign(clicked=[[0, 1], [1, 0, 1]])
    truths = LISTS.assign(clicked=[[False, True], [True, False, True]])
    for frame in (ROWS.sample(frac=1, random_state=3).sort_values("user", kind="stable"), LISTS, flags, truths):
        for made in (frame, frame.set_index("impression"), pl.from_pandas(frame), pa.table(frame)):
            same(ClickLog.from_frame(made), log)
    assert log.items["clicked"].tolist() == [False, True, True, False, True]
    assert log.items["position"].tolist() == [1, 2, 1, 2, 3]
    assert log.impressions.loc["i1", "time"] == pd.Timestamp("2024-05-01 10:00", tz="UTC")
    assert str(log.impressions["time"].dt.tz) == "UTC"
    assert (log.complete, log.excluded) == (True, {})


@each_row("name", ["log.csv", "log.csv.gz", "log.tsv", "log.parquet", "log.jsonl", "log.ndjson.gz"])
def test_a_file_gives_the_log_of_its_frame(tmp_path: Path, name: str) -> None:
    """Each format that is read gives the log that the frame gives."""
    path, frame = tmp_path / name, LISTS if "json" in name else ROWS
    if "json" in name:
        rows = LISTS.assign(time=LISTS["time"].astype(str)).to_dict("records")
        text = "\n".join(map(json.dumps, rows)).encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    elif name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
    same(ClickLog.read(path), ClickLog.from_frame(ROWS))


def test_columns_are_known_whatever_their_case_and_blanks(tmp_path: Path) -> None:
    """As those of judgments and rankings are; a text file is a table too."""
    names = {"impression": "Impression ID", "position": "Rank", "docid": "Item-ID", "clicked": "Click"}
    ROWS.rename(columns=names).to_csv(tmp_path / "log.txt", index=False)
    same(ClickLog.read(tmp_path / "log.txt"), ClickLog.from_frame(ROWS))


def test_a_file_that_is_not_there_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    """The error says that there is no file, which suffixes are read, and which file holds a bad cell."""
    with pytest.raises(InvalidInput, match="there is no file"):
        ClickLog.read(tmp_path / "log.csv")
    with pytest.raises(UnknownName, match="jsonl"):
        ClickLog.read(tmp_path / "log.xlsx")
    path = tmp_path / "bad.csv"
    ROWS.assign(clicked=["0", "1", "x", "0", "1"]).to_csv(path, index=False)
    with pytest.raises(FileFormatError, match=r"bad\.csv.*line 4 has 'x'"):
        ClickLog.read(path)
    LISTS.to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(FileFormatError, match="has lists"):
        ClickLog.read(tmp_path / "lists.parquet")
    same(ClickLog.from_frame(pd.read_parquet(tmp_path / "lists.parquet")), ClickLog.from_frame(ROWS))


def test_columns_are_found_by_usual_names_or_named() -> None:
    """Usual names are found, own ones are named, and of two that could be meant the caller chooses."""
    usual = ROWS.rename(columns={"impression": "search_id", "docid": "item_id", "clicked": "click", "position": "rank"})
    same(ClickLog.from_frame(usual), ClickLog.from_frame(ROWS))
    same(ClickLog.from_frame(usual.rename(columns={"item_id": "sku"}), docid="sku"), ClickLog.from_frame(ROWS))
    two = usual.assign(click=1, is_click=0)
    with pytest.raises(InvalidInput) as caught:
        ClickLog.from_frame(two)
    assert caught.value.argument == "clicked"
    assert ClickLog.from_frame(two, clicked="is_click").items["clicked"].sum() == 0
    with pytest.raises(UnknownName, match="docid"):
        ClickLog.from_frame(ROWS, dokid="sku")
    with pytest.raises(InvalidInput, match=r"no column docid in .*name each"):
        ClickLog.from_frame(ROWS.drop(columns="docid"))


REFUSED = {
    "gap": ({"position": [1, 3, 1, 2, 3]}, r"'i1' has the positions \[1, 3\]"),
    "position 0": ({"position": [0, 1, 1, 2, 3]}, r"row 0 .*\[0\].*from 1"),
    "repeated position": ({"position": [1, 1, 1, 2, 3]}, "'i1' occurs several times"),
    "document twice": ({"docid": ["d4", "d9", "d9", "d1", "d1"]}, "'i2' shows 'd1' twice"),
    "several users": ({"user": ["u1", "u1", "u2", "u2", "u1"]}, "'i2' .* several values of user"),
    "several times": ({"time": pd.date_range("2024-05-01", periods=5, tz="UTC")}, "'i1' .* several values of time"),
    "nan click": ({"clicked": [0, 1, np.nan, 0, 1]}, "row 2 is nan"),
    "click of 2": ({"clicked": [0, 1, 1, 2, 1]}, r"row 3 .*\[2\]"),
    "half a click": ({"clicked": [0, 1, 1, 0.5, 1]}, r"row 3 .*\[0\.5\]"),
    "missing document": ({"docid": ["d4", None, "d9", "d1", "d4"]}, "docid has no id in row 1"),
    "missing impression": ({"impression": ["i1", "i1", None, "i2", "i2"]}, "impression has no id in row 2"),
    "missing user": ({"user": ["u1", "u1", "u2", None, "u2"]}, "user has no id in row 3"),
    "missing time": ({"time": [None, *ROWS["time"][1:]]}, "row 0"),
    "no zone": ({"time": ROWS["time"].dt.tz_localize(None)}, "tz="),
    "text without zone": ({"time": ["2024-05-01 12:00"] * 5}, "tz="),
    "mixed zones": (
        {"time": [*ROWS["time"][:4].dt.to_pydatetime(), pd.Timestamp("2024-05-01").to_pydatetime()]},
        "zone",
    ),
    "number of seconds": ({"time": [1714557600] * 5}, "to_datetime"),
    "propensity 0": ({"propensity": [0.5, 0.5, 0, 0.5, 0.5]}, "row 2"),
    "count 0": ({"count": [0, 0, 1, 1, 1]}, "row 0"),
}


@each_row("name", REFUSED)
def test_bad_rows_are_refused_by_row_or_impression(name: str) -> None:
    """Rows that make no sense are refused, and the error names the row or the impression."""
    columns, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        ClickLog.from_frame(ROWS.drop(columns=[*columns], errors="ignore").assign(**columns))


LISTS_REFUSED = {
    "two forms": ({"position": [1, 1]}, "one of the two forms"),
    "no list": ({"shown": ["d4", "d9"]}, "a list in each row"),
    "missing list": ({"clicked": [["d9"], None]}, "row 1"),
    "click not shown": ({"clicked": [["d9"], ["d4", "d7"]]}, "row 1 .*'d7'.*1 such in all"),
    "flags of another length": ({"clicked": [[0, 1], [1, 0]]}, "0 or 1 for each id shown"),
    "flag of 2": ({"clicked": [[0, 1], [1, 0, 2]]}, r"row 4 .*\[2\]"),
    "ids of another type": ({"shown": [[4, 9], [9, 1, 4]]}, "type of those shown"),
    "document twice": ({"shown": [["d4", "d9"], ["d9", "d4", "d4"]]}, "'i2' shows 'd4' twice"),
    "same id, other list": ({"impression": ["i1", "i1"]}, "'i1' (occurs|has)"),
    "same id, longer list": (
        {"impression": "i", "qid": "q", "user": "u", "time": ROWS["time"][:2], "arm": "A", "clicked": [["d4"]] * 2}
        | {"shown": [["d4", "d9"], ["d4", "d9", "d1"]]},
        "'i' occurs several times",
    ),
}


@each_row("name", LISTS_REFUSED)
def test_bad_lists_are_refused(name: str) -> None:
    """Lists that contradict themselves, or clicks that may be read in two ways, are refused."""
    columns, message = LISTS_REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        ClickLog.from_frame(LISTS.assign(**columns))


def test_integers_may_be_marked_by_0_or_1() -> None:
    """Of integers, 0 or 1 for each id shown says which were clicked; fewer numbers are ids that were clicked."""
    lists = {"shown": [[7, 1], [1, 0, 2]]}
    for clicked in ([[0, 1], [1, 0, 0]], [[False, True], [True, False, False]], [[1], [1]]):
        log = ClickLog.from_frame(LISTS.assign(**lists, clicked=clicked))
        assert log.items["clicked"].tolist() == [False, True, True, False, False]


def test_clicks_not_shown_are_skipped_and_counted_if_asked() -> None:
    """With clicks="skip" a click on what was not shown is left out, counted, and in the checks."""
    log = ClickLog.from_frame(LISTS.assign(clicked=[["d9"], ["d4", "d7", "d8"]]), clicks="skip")
    assert log.items["clicked"].sum() == 2
    assert log.excluded == {"clicks on what was not shown": 2}
    found = log.checks().table.set_index("check")["found"]
    assert found["clicks on what was not shown, left out"] == 2


def test_naive_times_take_the_zone_given() -> None:
    """Times without a zone are of tz=, and held in UTC; tz= beside times with a zone is refused."""
    naive = LISTS.assign(time=LISTS["time"].dt.tz_localize(None))
    texts = LISTS.assign(time=["2024-05-01 12:00", "2024-05-01 13:00"])
    for frame in (naive, texts):
        same(ClickLog.from_frame(frame, tz="Europe/Berlin"), ClickLog.from_frame(ROWS))
    with pytest.raises(InvalidInput, match="time"):
        ClickLog.from_frame(LISTS, tz="Europe/Berlin")
    with pytest.raises(InvalidInput, match="Atlantis"):
        ClickLog.from_frame(naive, tz="Europe/Atlantis")


def test_the_hour_that_comes_twice_is_taken_as_the_earlier_and_counted() -> None:
    """A log of the night in which clocks go back is read: the times of the hour are counted, in the checks as well."""
    for texts in (["2026-10-25 01:30", "2026-10-25 02:30"], ["2026-10-25 02:00", "2026-10-25 03:00"]):
        log = ClickLog.from_frame(LISTS.assign(time=texts), tz="Europe/Berlin")
        assert log.excluded == {"later readings of times that come twice": 1}
        assert "left out: 1 later readings of times that come twice" in str(log)
        checks = log.checks().table.set_index("check")["found"]
        assert checks["later readings of times that come twice, left out"] == 1
        hours = pd.to_datetime(texts).hour.to_numpy()
        assert log.impressions["time"].dt.hour.tolist() == [{1: 23, 2: 0, 3: 2}[hour] for hour in hours]
    assert ClickLog.from_frame(LISTS.assign(time=["2026-10-24 12:00"] * 2), tz="Europe/Berlin").excluded == {}


@each_row(
    ("time", "tz", "message"),
    [
        ("2024-05-01 12:00", None, "expected a zone offset"),
        ("2024-05-01 12:00Z", "Europe/Berlin", "expected no zone offset"),
        ("2026-03-29 02:30", "Europe/Berlin", "in a gap"),
    ],
)
def test_the_error_of_a_time_says_first_which_times_are_read(time: str, tz: str | None, message: str) -> None:
    """The words of Arrow stand last."""
    with pytest.raises(
        InvalidInput, match=rf"^time: a row cannot be read; give times with a zone, or tz=.*\(.*{message}"
    ):
        ClickLog.from_frame(LISTS.assign(time=time), tz=tz)


def test_empty_lists_are_left_out_and_counted() -> None:
    """An impression without results has no items: it is counted as left out."""
    log = ClickLog.from_frame(LISTS.assign(shown=[["d4", "d9"], []], clicked=[["d9"], []]))
    assert log.impressions.index.tolist() == ["i1"]
    assert log.excluded == {"impressions of an empty list": 1}
    last = ClickLog.from_frame(LISTS.assign(shown=[[], ["d9"]], clicked=[[], []]))
    assert (last.impressions.index.tolist(), last.items["impression"].tolist()) == (["i2"], [0])
    with pytest.raises(InvalidInput, match="no shown item"):
        ClickLog.from_frame(LISTS.assign(shown=[[], []], clicked=[[], []]))


@each_row("form", ["items", "lists"])
def test_repeated_events_are_dropped_and_counted(form: str) -> None:
    """The same impression again is no new evidence, in any order of the rows."""
    rows = ROWS if form == "items" else LISTS
    again = pd.concat([rows, rows[rows["impression"] == "i2"], rows[rows["impression"] == "i2"], rows.head(0)])
    for seed in range(3):
        log = ClickLog.from_frame(again.sample(frac=1, random_state=seed).sort_values("arm", kind="stable"))
        same(log, ClickLog.from_frame(rows))
        assert log.excluded == {"repeated events": 2}


def test_dropping_repeated_events_restores_the_level_of_an_ab_test() -> None:
    """If 10 % of the events come three times, equal arms differ too often; after reading they do not."""
    rng, runs, n = np.random.default_rng(0), 1000, 400
    frame = pd.DataFrame({"impression": np.arange(runs * n), "qid": np.repeat(np.arange(runs), n), "position": 1})
    frame = frame.assign(docid="d", arm=rng.choice(["A", "B"], runs * n), clicked=(rng.random(runs * n) < 0.3) * 1)
    sent = pd.concat([frame, *[frame[rng.permutation(runs * n) < runs * n // 10]] * 2])
    log = ClickLog.from_frame(sent)
    assert log.excluded == {"repeated events": 2 * runs * n // 10}
    raw = sent.groupby(["qid", "arm"])["clicked"].agg(["sum", "count"]).to_numpy()
    read = log.click_rates(("qid", "arm")).table[["clicked", "impressions"]].to_numpy()
    claims = []
    for table in (raw, read):
        clicks, shown = table.T.reshape(2, runs, 2)
        share = clicks.sum(axis=1) / shown.sum(axis=1)
        z = np.diff(clicks / shown)[:, 0] / np.sqrt(share * (1 - share) * (1 / shown).sum(axis=1))
        claims.append((2 * stats.norm.sf(np.abs(z)) < 0.05).mean())
    assert claims[0] > 0.09
    assert 0.03 < claims[1] < 0.07


def test_single_items_need_no_impression_and_no_whole_list() -> None:
    """complete=False takes positions with gaps; each row is an impression if none is named."""
    frame = ROWS[["position", "docid", "clicked"]].assign(propensity=0.5)
    log = ClickLog.from_frame(frame, complete=False)
    assert (len(log.impressions), log.complete, log.items["propensity"].tolist()) == (5, False, [0.5] * 5)
    gaps = ClickLog.from_frame(ROWS.assign(position=[1, 3, 1, 2, 3]), complete=False)
    assert gaps.items["position"].tolist() == [1, 3, 1, 2, 3]


@pytest.mark.shared
@each_row("policy", ["random_men", "bts_men"])
def test_open_bandit_gives_the_stored_figures(shared: Path, policy: str) -> None:
    """Rows, clicks, rates, Wilson intervals, times and items equal those of an independent program."""
    known = json.loads((shared / "golden/open_bandit_summary.json").read_text())["values"][policy]
    log = ClickLog.from_open_bandit(shared / f"open_bandit/{policy}.csv.gz")
    whole = log.click_rates(()).table.iloc[0]
    assert (len(log.items), log.items["clicked"].sum(), log.complete) == (known["rows"], known["clicks"], False)
    assert whole["click_rate"] == pytest.approx(known["ctr"], abs=1e-9)
    assert whole[["ci_low", "ci_high"]].tolist() == pytest.approx(known["wilson95"], abs=1e-9)
    times = log.impressions["time"]
    assert [times.min(), times.max()] == [pd.Timestamp(known["first"]), pd.Timestamp(known["last"])]
    assert log.items["docid"].nunique() == known["items"]
    assert (1 / log.items["propensity"]).mean() == pytest.approx(known["mean_inverse_propensity"], abs=1e-9)
    table = log.click_rates("position").table.set_index("position")
    for position, cell in known["by_position"].items():
        row = table.loc[int(position)]
        assert row[["impressions", "clicks"]].tolist() == [cell["rows"], cell["clicks"]]
        assert row["click_rate"] == pytest.approx(cell["ctr"], abs=1e-9)
    unclicked = (table["impressions"] - table["clicked"]).tolist()
    found = stats.chi2_contingency([table["clicked"].tolist(), unclicked])
    assert found.pvalue == pytest.approx(known["chi2_position_vs_click"]["pvalue"], abs=1e-9)
    frame = ClickLog.from_open_bandit(pd.read_csv(shared / f"open_bandit/{policy}.csv.gz", dtype={"item_id": str}))
    same(frame, log)


@pytest.mark.shared
def test_open_bandit_names_policies_by_arm(shared: Path) -> None:
    """Two policies are one log whose arms give the stored test of their rates."""
    known = json.loads((shared / "golden/open_bandit_summary.json").read_text())["values"][
        "compare_random_men_vs_bts_men"
    ]
    logs = {name: ClickLog.from_open_bandit(shared / f"open_bandit/{name}_men.csv.gz") for name in ("random", "bts")}
    parts = [log.to_frame().drop(columns="impression").assign(arm=name) for name, log in logs.items()]
    log = ClickLog.from_frame(pd.concat(parts), complete=False)
    table = log.click_rates("arm").table.set_index("arm").loc[["random", "bts"]]
    cells = np.array([table["clicked"], table["impressions"] - table["clicked"]]).T
    assert stats.fisher_exact(cells).pvalue == pytest.approx(known["fisher_exact_pvalue"], abs=1e-9)
    assert stats.chi2_contingency(cells, correction=False).pvalue == pytest.approx(known["chi2_pvalue"], abs=1e-9)


@settings(max_examples=examples(50))
@given(st.integers(1, 10**6), st.floats(0, 1))
def test_wilson_intervals_equal_those_of_statsmodels(n: int, share: float) -> None:
    """The interval is that of statsmodels, and lies within 0 and 1, with the share in it."""
    hits = round(share * n)
    low, high = wilson(np.array([hits]), np.array([n]))
    assert [low[0], high[0]] == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-12)
    assert 0 <= low[0] <= hits / n <= high[0] <= 1


def lists_of(n: int, rng: np.random.Generator, **columns: object) -> pd.DataFrame:
    shown = [rng.permutation(["a", "b", "c"]).tolist() for _ in range(n)]
    clicked = [[one for one in each if rng.random() < 0.4] for each in shown]
    return pd.DataFrame({"shown": shown, "clicked": clicked, **columns})


def test_counts_stand_for_as_many_impressions() -> None:
    """Rates, abandonment and checks of an aggregated log are those of the log written out."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 5, 40)
    short = lists_of(40, rng, user=rng.choice(["u1", "u2", "u3"], 40), arm=rng.choice(["A", "B"], 40), count=counts)
    long = short.loc[np.repeat(short.index, counts)].drop(columns="count")
    few, many = ClickLog.from_frame(short), ClickLog.from_frame(long)
    for by in ("position", "docid", "arm", "user", ("arm", "position"), ()):
        pd.testing.assert_frame_equal(few.click_rates(by).table, many.click_rates(by).table)
    pd.testing.assert_frame_equal(few.abandonment("arm").table, many.abandonment("arm").table)
    pd.testing.assert_frame_equal(few.checks().table, many.checks().table)


def test_rates_by_hand() -> None:
    """By position a rate is of items; by arm, or of all, of impressions with a click; abandonment is the rest."""
    log = ClickLog.from_frame(LISTS.assign(clicked=[[], ["d4", "d9"]]))
    assert log.click_rates().table["click_rate"].tolist() == [0.5, 0, 1]
    table = log.click_rates("arm").table
    assert table[["arm", "impressions", "clicked", "clicks"]].to_numpy().tolist() == [["A", 1, 0, 0], ["B", 1, 1, 2]]
    assert log.click_rates(("arm", "docid")).table["impressions"].tolist() == [1] * 5
    assert log.abandonment().table["abandonment"].tolist() == [0.5]
    assert log.abandonment("arm").table["abandoned"].tolist() == [1, 0]
    assert "one user are not" in log.click_rates("arm").notes[0]
    with pytest.raises(UnknownName, match="arm"):
        log.click_rates("arms")
    with pytest.raises(UnknownName, match="session"):
        log.abandonment(of="session")


def test_sessions_end_after_the_gap_and_with_the_user() -> None:
    """A gap of exactly 30 minutes belongs to the session, a longer one ends it; users never share one."""
    minutes = [0, 30, 61, 5, 400, 62]
    times = pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(minutes, unit="min")
    frame = pd.DataFrame({"user": list("uuuvvu"), "time": times, "shown": [["a"]] * 6})
    log = ClickLog.from_frame(frame.assign(clicked=[["a"], [], [], [], [], []])).sessions("30min")
    assert log.impressions["session"].tolist() == [1, 1, 2, 3, 4, 2]
    assert log.abandonment(of="session").table[["sessions", "abandoned"]].iloc[0].tolist() == [4, 3]
    assert log.sessions("1D").impressions["session"].nunique() == 2
    with pytest.raises(UnknownName, match="user"):
        ClickLog.from_frame(frame.drop(columns="user").assign(clicked=[[]] * 6)).sessions()


def test_robots_are_listed_and_dropped_only_on_request() -> None:
    """A user far above the usual is listed and kept; without() drops him, and counts his impressions."""
    rng = np.random.default_rng(2)
    users = [f"u{one}" for one in rng.integers(0, 100, 300)] + ["robot"] * 200
    log = ClickLog.from_frame(lists_of(500, rng, user=users))
    checked = log.checks()
    assert checked.users["user"].tolist() == ["robot"]
    assert checked.users.loc[0, ["impressions", "clicks"]].tolist() == [200, log.items["clicked"][900:].sum()]
    assert len(log.impressions) == 500
    rest = log.without(users=checked.users["user"])
    assert rest.excluded == {"impressions of users left out": 200}
    assert rest.checks().users.empty
    assert "robots" in checked.notes[0]
    assert log.without(users=["u1"]).without(users=["robot"]).excluded["impressions of users left out"] > 200
    with pytest.raises(InvalidInput, match="u999"):
        log.without(users=["u999"])


def test_a_robot_that_clicks_is_listed_by_its_clicks() -> None:
    """The usual number of clicks is that of users who click: many users without a click do not hide a robot."""
    shown = [[f"d{one}" for one in range(50)]]
    users = [*map(str, range(20)), "clicker"]
    clicked = [["d0"]] * 5 + [[]] * 15 + shown
    assert ClickLog.from_frame(pd.DataFrame({"user": users, "shown": shown * 21, "clicked": clicked})).checks().users[
        "user"
    ].tolist() == ["clicker"]


def test_users_of_rankers_in_turn_are_no_robots() -> None:
    """Users in several arms are listed apart, so that the call of the docstring drops the robot alone."""
    rng = np.random.default_rng(4)
    users = [*rng.permutation(np.repeat([f"u{one}" for one in range(30)], 10)), *["robot"] * 300]
    log = ClickLog.from_frame(lists_of(600, rng, user=users, arm=rng.choice(["A", "B", "C"], 600)))
    checked = log.checks()
    assert checked.users["user"].tolist() == ["robot"]
    assert len(checked.several_arms) == 31
    assert "not of rankers in turn" in checked.notes[1]
    assert log.without(users=log.checks().users["user"]).excluded == {"impressions of users left out": 300}


def test_a_log_of_clicked_impressions_alone_is_noted() -> None:
    """If each impression has a click, a note says that those without one may not have been logged."""
    assert "without one were not logged" in " ".join(ClickLog.from_frame(LISTS).checks().notes)
    some = ClickLog.from_frame(LISTS.assign(clicked=[[], ["d4"]]))
    assert "without one were not logged" not in " ".join(some.checks().notes)


@each_row(("by", "own"), [("query", "qid"), ("rank", "position"), (["variant", "item_id"], None)])
def test_rates_are_asked_for_by_usual_names_too(by: str | list[str], own: str | None) -> None:
    """The group "query" is qid, as a column of this name is when a log is read."""
    log = ClickLog.from_frame(LISTS)
    pd.testing.assert_frame_equal(log.click_rates(by).table, log.click_rates(own or ["arm", "docid"]).table)


def test_checks_find_what_is_wrong() -> None:
    """Users in both arms, times that go back or lie ahead, events under new ids, and dead positions are counted."""
    times = pd.to_datetime(["2024-05-02", "2024-05-01", "2024-05-01", "2224-05-01"], utc=True)
    frame = pd.DataFrame({"user": list("uvvu"), "time": times, "arm": list("AABB"), "shown": [["a", "b"]] * 4})
    log = ClickLog.from_frame(frame.assign(clicked=[["a"], [], [], ["a"]]))
    checked = log.checks()
    found = checked.table.set_index("check")["found"].to_dict()
    assert found["users in several arms"] == 2
    assert found["times before that of the row above"] == 1
    assert found["times in the future"] == 1
    assert found["same user, query and time again"] == 1
    assert found["positions never clicked"] == 1
    assert found["impressions without a click"] == 2
    assert checked.several_arms["arms"].tolist() == [2, 2]
    bare = ClickLog.from_frame(frame[["shown"]].assign(clicked=[["a"]] * 4)).checks()
    assert "no user and no time and no arm" in bare.notes[-1]


def test_subset_keeps_items_with_their_impressions() -> None:
    """Each impression of a subset has the items that it had; a mask of another shape or type is refused."""
    log = ClickLog.from_frame(ROWS)
    part = log.subset(log.impressions["arm"] == "B")
    same(part, ClickLog.from_frame(ROWS, complete=True).subset([False, True]))
    assert part.items["impression"].tolist() == [0, 0, 0]
    assert part.items["docid"].tolist() == ["d9", "d1", "d4"]
    for wrong in ([True], [0, 1], [False, False]):
        with pytest.raises(InvalidInput, match="keep"):
            log.subset(wrong)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_long_frame_gives_the_log_back(n: int, seed: int) -> None:
    """from_frame(log.to_frame()) is the log, with or without queries and propensities."""
    rng = np.random.default_rng(seed)
    frame = lists_of(n, rng, count=rng.integers(1, 4, n), qid=rng.choice(["q1", "q2"], n))
    for one in (frame, frame.drop(columns="qid")):
        log = ClickLog.from_frame(one)
        same(ClickLog.from_frame(log.to_frame()), log)


def test_results_are_shown_as_tables_and_pictures() -> None:
    """A log, its checks and rates have text and HTML; very many groups are cut, and it says so; rates are drawn."""
    log = ClickLog.from_frame(pd.concat([LISTS, LISTS]))
    assert "left out: 2 repeated events" in str(log)
    for one in (log, log.checks(), log.click_rates("arm")):
        assert "<table" in one._repr_html_()
    axes = log.click_rates().plot().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3"]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0}
    ids = np.arange(40)
    many = ClickLog.from_frame(
        pd.DataFrame({"impression": ids, "qid": ids, "position": 1, "docid": "d", "clicked": 0, "arm": "new"})
    )
    assert "10 more" in str(many.click_rates("qid"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = many.click_rates(["arm", "qid"]).plot()
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    assert "10 more" in " ".join(figure._suptitle.get_text().split())
