"""``rankeval online``: checks and rates of a click log, lists with credit records, their comparison, A/B tests."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import each_row, in_full

import rankeval as rk


@pytest.fixture
def log() -> rk.online.ClickLog:
    """Write a log with a repeated event and a click on what was not shown, and return it as Python reads it."""
    rows = ["i1,1,a,0,u1,A", "i1,2,b,1,u1,A", "i2,1,a,1,u2,B", "i2,2,b,0,u2,B", "i1,1,a,0,u1,A", "i1,2,b,1,u1,A"]
    Path("log.csv").write_text("\n".join(["impression,position,docid,clicked,user,arm", *rows]) + "\n")
    Path("lists.jsonl").write_text('{"impression": "i1", "qid": "q", "shown": ["a", "b"], "clicked": ["c"]}\n')
    return rk.online.ClickLog.read("log.csv")


@pytest.fixture
def runs() -> dict[str, dict[str, list[str]]]:
    """Write two runs, a table of impressions and one of clicks."""
    ranked = {"A.run": {"q1": ["a", "b"], "q2": ["c", "d"]}, "B.run": {"q1": ["b", "a"], "q2": ["d", "c"]}}
    for name, lists in ranked.items():
        rk.Run.from_dict({q: {d: -float(place) for place, d in enumerate(ids)} for q, ids in lists.items()}).write(name)
    rows = [f"i{n},q{n % 2 + 1},u{n % 5}" for n in range(20)]
    Path("impressions.csv").write_text("\n".join(["impression,qid,user", *rows]) + "\n")
    clicks = [f"i{n},{'c' if n % 2 else 'a'}" for n in range(20) if n % 3]
    Path("clicks.csv").write_text("\n".join(["impression,docid", *clicks]) + "\n")
    return ranked


def test_checks_print_all_that_was_found_and_left_out(rankeval, log):
    code, out, _ = rankeval("online", "checks", "log.csv")
    assert (code, out) == (0, in_full(log.checks()))
    code, out, err = rankeval("online", "checks", "lists.jsonl", "--format", "json")
    found = {row["check"]: row["found"] for row in json.loads(out)}
    assert code == 0
    assert found["clicks on what was not shown, left out"] == 1
    assert "note: Checks of the click log" in err


def test_rates_are_those_of_python_by_one_column_or_several(rankeval, log):
    code, out, err = rankeval("online", "rates", "log.csv", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    table = log.click_rates(by="position").table
    assert code == 0
    assert [float(row["ci_low"]) for row in rows] == table["ci_low"].tolist()
    assert "note: Click rate by position" in err
    assert rankeval("online", "rates", "log.csv", "--by", "arm", "--by", "docid")[:2] == (
        0,
        in_full(log.click_rates(by=["arm", "docid"])),
    )


@pytest.mark.usefixtures("log")
def test_a_click_on_what_was_not_shown_stops_rates(rankeval):
    code, out, err = rankeval("online", "rates", "lists.jsonl")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1


def test_a_query_is_an_impression_and_its_record_is_that_of_python(rankeval, runs):
    code, out, _ = rankeval("online", "interleave", "A.run", "B.run", "--scheme", "balanced", "--salt", "s")
    il = rk.online.Interleaver("balanced", salt="s")
    expected = [
        il.show({name[0]: lists[query] for name, lists in runs.items()}, impression=query, qid=query).to_json()
        for query in ("q1", "q2")
    ]
    assert (code, out.splitlines()) == (0, expected)


@pytest.mark.usefixtures("runs")
def test_records_of_impressions_are_compared_by_users(rankeval):
    code, records, _ = rankeval(
        "online", "interleave", "A=A.run", "B=B.run", "--salt", "s", "--impressions", "impressions.csv"
    )
    assert code == 0
    lists = [rk.online.Interleaved.from_json(line, salt="s") for line in records.splitlines()]
    assert [(one.impression, one.user) for one in lists] == [(f"i{n}", f"u{n % 5}") for n in range(20)]
    Path("records.jsonl").write_text(records)
    call = ("online", "interleave", "--credits", "records.jsonl", "--clicks", "clicks.csv", "--salt", "s")
    compared = rk.online.compare_interleaved(lists, pd.read_csv("clicks.csv"))
    code, out, _ = rankeval(*call)
    assert (code, out.splitlines()[0]) == (0, compared.findings[0])
    assert "on 5 users" in out
    code, out, _ = rankeval(*call, "--format", "json")
    assert (code, out.strip()) == (0, compared.to_json())
    assert "20 impressions" in rankeval(*call, "--unit", "impression")[1]
    total = rk.online.compare_interleaved(lists, pd.read_csv("clicks.csv"), credit="sum")
    assert rankeval(*call, "--credit", "sum", "--format", "json")[1].strip() == total.to_json()
    code, out, err = rankeval(*call[:-1], "another")
    assert (code, out) == (2, "")
    assert "another salt" in err


@pytest.mark.usefixtures("runs")
def test_nothing_is_printed_if_a_run_lacks_a_query(rankeval):
    rk.Run.from_dict({"q1": {"a": 1.0}}).write("short.run")
    code, out, err = rankeval("online", "interleave", "A.run", "short.run")
    assert (code, out) == (2, "")
    assert "1 ranking without a document: 'short: q2'" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give runs to interleave, or --credits and --clicks to compare"),
        (("A.run", "B.run", "--clicks", "clicks.csv"), "give runs to interleave"),
        (("A.run", "B.run", "--credits", "clicks.csv", "--clicks", "clicks.csv"), "give runs to interleave"),
        (("--credits", "clicks.csv"), "give runs to interleave"),
        (("A.run", "B.run", "--scheme", "ballanced"), "did you mean 'balanced'"),
        (("A.run", "B.run", "--depth", "0"), "--depth is 0"),
        (("--credits", "clicks.csv", "--clicks", "clicks.csv"), "clicks.csv, line 1"),
        (("--credits", "none.jsonl", "--clicks", "clicks.csv"), "none.jsonl"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_wrong_use_is_answered_in_one_line(rankeval, arguments, said):
    code, out, err = rankeval("online", "interleave", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@each_row("suffix", ["csv", "parquet"])
def test_an_ab_test_is_that_of_python(rankeval, suffix):
    """A metric is a column, has a name of its own, or divides two columns; ids like 007 stay what they are."""
    rng = np.random.default_rng(5)
    users = {"who": [f"{n:03}" for n in range(200)], "arm": ["A", "B"] * 100, "views": 10}
    frame = pd.DataFrame({**users, "clicks": rng.poisson(3, 200), "orders": rng.poisson(1, 200)})
    frame.to_csv("users.csv", index=False)
    frame.to_parquet("users.parquet")
    metrics = {"ctr": ("clicks", "views"), "bought": "orders", "orders": "orders"}
    test = rk.online.ab_test(frame, unit="who", metrics=metrics, control="B", alpha=0.1)
    call = ["online", "ab", f"users.{suffix}", "--unit", "who", "--metric", "ctr=clicks/views", "-m", "bought=orders"]
    call += ["-m", "orders", "--control", "B", "--alpha", "0.1"]
    code, out, _ = rankeval(*call)
    assert (code, out) == (0, in_full(test))
    code, out, err = rankeval(*call, "--format", "json")
    assert [row["estimate"] for row in json.loads(out)] == test.table["estimate"].tolist()
    assert f"note: {test.headline}" in err


def test_a_missing_number_or_column_of_an_ab_test_is_one_line(rankeval):
    Path("users.csv").write_text("user,arm,orders\nu1,A,1\nu2,B,\nu3,A,2\nu4,B,1\n")
    code, out, err = rankeval("online", "ab", "users.csv", "--metric", "orders")
    assert (code, out) == (2, "")
    assert "column orders: row 1 is nan" in err
    assert "clicks" in rankeval("online", "ab", "users.csv", "--metric", "ctr=clicks/views")[2]
    assert rankeval("online", "ab", "users.csv")[0] == 2


def test_shares_covariates_and_looks_of_an_ab_test_are_those_of_python(rankeval):
    rng = np.random.default_rng(6)
    views = rng.poisson(10, 300) + 1
    users = {"user": range(300), "arm": ["A"] * 30 + ["B"] * 270, "views": views, "orders": rng.poisson(views / 5)}
    frame = pd.DataFrame({**users, "before": rng.poisson(views), "views_before": 10})
    frame.to_csv("users.csv", index=False)
    call = ["online", "ab", "users.csv", "--metric", "orders", "-m", "opv=orders/views", "--share", "A=.1"]
    call += ["--share", "B=0.9", "--covariate", "orders=before", "--covariate", "opv=before/views_before"]
    metrics = {"orders": "orders", "opv": ("orders", "views")}
    before = {"orders": "before", "opv": ("before", "views_before")}
    how = {"metrics": metrics, "covariates": before, "shares": {"A": 0.1, "B": 0.9}}
    frame = frame.astype({"user": str})
    assert rankeval(*call)[:2] == (0, in_full(rk.online.ab_test(frame, **how)))
    looked = rk.online.ab_test(frame, **how, looks=rk.online.looks_plan(4), look=2)
    code, out, err = rankeval(*call, "--looks", "4", "--look", "2")
    assert (code, out, err) == (0, in_full(looked), "")
    assert "This is look 2 of 4" in out


@each_row(
    ("arguments", "said"),
    [
        (("--share", "A=.1"), "--share is {'A': 0.1}; expected a share above 0 of each arm"),
        (("--share", "A=.1", "--share", "B"), "--share B"),
        (("--share", "A=.1", "--share", "A=.9"), "--share is ['A=.1', 'A=.9']; expected names that differ"),
        (("--looks", "4"), "--look is None"),
        (("--looks", "4", "--look", "5"), "--look is 5; expected a look from 1 to 4"),
        (("--looks", "0", "--look", "1"), "--looks is 0"),
        (("--covariate", "clicks=orders"), "a covariate is from before the test"),
    ],
)
def test_a_wrong_option_of_an_ab_test_is_named(rankeval, arguments, said):
    Path("users.csv").write_text("user,arm,orders\nu1,A,1\nu2,B,3\nu3,A,2\nu4,B,1\n")
    code, out, err = rankeval("online", "ab", "users.csv", "--metric", "orders", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_columns_of_a_log_are_named_and_wrong_names_refused(rankeval, log):
    own = Path("log.csv").read_text().replace("docid", "sku").replace("clicked", "bought")
    Path("own.csv").write_text(own)
    named = ("--column", "docid=sku", "--column", "clicked=bought")
    assert rankeval("online", "checks", "own.csv", *named)[:2] == (0, in_full(log.checks()))
    assert rankeval("online", "rates", "own.csv", *named)[:2] == (0, in_full(log.click_rates()))
    for wrong in ("tz=sku", "clicks=sku", "docids=sku"):
        code, _, err = rankeval("online", "checks", "own.csv", "--column", wrong)
        assert (code, len(err.splitlines())) == (2, 1)
        assert f"unknown part of a click log {wrong[:-4]!r}" in err


def test_times_without_a_zone_are_answered_by_the_option(rankeval):
    Path("times.csv").write_text("impression,position,docid,clicked,time\ni1,1,a,0,2026-01-01 10:00\n")
    code, _, err = rankeval("online", "checks", "times.csv")
    assert code == 2
    assert " --tz " in err
    assert " tz= " not in err
    assert rankeval("online", "checks", "times.csv", "--tz", "UTC")[0] == 0


@pytest.mark.usefixtures("runs")
def test_interleaved_rankings_have_the_names_of_their_files_without_suffix(rankeval):
    Path("C.run").write_bytes(Path("A.run").read_bytes())
    _, out, _ = rankeval("online", "interleave", "A.run", "B.run", "v1.2=C.run", "--scheme", "team_draft")
    assert all(sorted(json.loads(line)["credits"]) == ["A", "B", "v1.2"] for line in out.splitlines())


@pytest.mark.usefixtures("runs")
def test_a_comparison_by_clicks_has_a_baseline_and_leaves_clicks_out_if_asked(rankeval):
    Path("C.run").write_bytes(Path("B.run").read_bytes())
    call = ("online", "interleave", "A.run", "B.run", "C.run", "--impressions", "impressions.csv")
    Path("records.jsonl").write_text(rankeval(*call)[1])
    Path("more.csv").write_text(Path("clicks.csv").read_text() + "i99,a\n")
    call = ("online", "interleave", "--credits", "records.jsonl", "--clicks", "more.csv")
    code, _, err = rankeval(*call)
    assert code == 2
    assert "--unshown" in err
    compared = rk.online.compare_interleaved(
        "records.jsonl", pd.read_csv("more.csv"), unshown="skip", baseline="B", test="wilcoxon"
    )
    call += ("--unshown", "skip", "--baseline", "B", "--test", "wilcoxon", "--format", "json")
    assert rankeval(*call)[:2] == (0, f"{compared.to_json()}\n")


def test_the_help_names_all_four_commands(rankeval):
    code, out, _ = rankeval("online", "--help")
    assert code == 0
    assert all(name in out for name in ("checks", "rates", "interleave", "ab"))
    told = rankeval("online", "interleave", "--help")[1]
    assert "team_draft" in told
    assert "below" not in told
