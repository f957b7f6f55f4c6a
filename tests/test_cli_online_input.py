"""Laws of ``rankeval online`` for odd but legal input."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import rankeval as rk

USERS = "user,arm,clicks,views,orders\nu1,A,1,2,0\nu2,B,2,3,1\nu3,A,0,2,0\nu4,B,1,3,1\nu5,A,1,2,1\nu6,B,2,4,0\n"


@pytest.fixture
def runs() -> None:
    """Write two runs of one query."""
    for name, scores in {"A.run": {"a": 2.0, "b": 1.0}, "B.run": {"b": 2.0, "a": 1.0}}.items():
        rk.Run.from_dict({"q1": scores}).write(name)


def test_a_metric_named_twice_is_not_lost(rankeval):
    """Of two metrics with one name none may fall away in silence: it is refused, or both are shown."""
    Path("ab.csv").write_text(USERS)
    code, out, err = rankeval("online", "ab", "ab.csv", "-m", "ctr=clicks/views", "-m", "ctr=orders/views")
    assert (code != 0 and "ctr" in err) or out.count("ctr ") >= 2


def test_a_metric_without_a_name_is_refused(rankeval):
    """--metric =clicks gives no headline about nothing."""
    Path("ab.csv").write_text(USERS)
    code, _, err = rankeval("online", "ab", "ab.csv", "-m", "=clicks")
    assert code != 0
    assert "metric" in err


def test_text_in_a_metric_names_its_column(rankeval):
    """A cell that is no number gives a message with the column, and no ValueError."""
    Path("ab.csv").write_text(USERS.replace("u2,B,2", "u2,B,x"))
    code, _, err = rankeval("online", "ab", "ab.csv", "-m", "clicks")
    assert code != 0
    assert "clicks" in err
    assert "ValueError" not in err


@pytest.mark.usefixtures("runs")
def test_a_table_of_impressions_without_queries_is_refused_in_words(rankeval):
    """The message says which column lacks, and is no KeyError."""
    Path("shown.csv").write_text("impression,query\ni1,q1\n")
    code, _, err = rankeval("online", "interleave", "A.run", "B.run", "--impressions", "shown.csv")
    assert code != 0
    assert "KeyError" not in err
    assert "qid" in err


@pytest.mark.usefixtures("runs")
def test_a_table_of_impressions_may_have_other_columns(rankeval):
    """A column such as arm or time is not read."""
    Path("shown.csv").write_text("impression,qid,user,arm\ni1,q1,u1,A\n")
    code, out, err = rankeval("online", "interleave", "A.run", "B.run", "--impressions", "shown.csv")
    assert (code, err) == (0, "")
    assert '"impression": "i1"' in out


def test_checks_name_the_users_to_look_at(rankeval):
    """Who reads the output of the command sees the users that may be robots: `.users` is nothing on a command line."""
    rows = [*(f"r{n},1,a,1,crawler7" for n in range(30)), *(f"i{n},1,a,1,u{n}" for n in range(5))]
    Path("log.csv").write_text("\n".join(["impression,position,docid,clicked,user", *rows]) + "\n")
    code, out, err = rankeval("online", "checks", "log.csv")
    assert code == 0
    assert "crawler7" in out + err


def test_unknown_groups_list_all_groups_that_there_are(rankeval):
    """The message about an unknown --by lists position and docid too, which are accepted."""
    Path("log.csv").write_text("impression,position,docid,clicked\ni1,1,a,1\n")
    assert rankeval("online", "rates", "log.csv", "--by", "docid")[0] == 0
    code, _, err = rankeval("online", "rates", "log.csv", "--by", "country")
    assert code != 0
    assert "position" in err
    assert "docid" in err


def test_whole_numbers_of_parquet_are_the_ids_of_runs(rankeval):
    """A Parquet table of impressions with the query 101 finds the query 101 of the runs, as one of CSV does."""
    for name in ("A.run", "B.run"):
        rk.Run.from_dict({"101": {"a": 2.0, "b": 1.0}}).write(name)
    table = pd.DataFrame({"impression": [1, 2], "qid": [101, 101]})
    table.to_csv("shown.csv", index=False)
    table.to_parquet("shown.parquet")
    expected = rankeval("online", "interleave", "A.run", "B.run", "--impressions", "shown.csv")
    assert expected[0] == 0
    assert rankeval("online", "interleave", "A.run", "B.run", "--impressions", "shown.parquet") == expected
