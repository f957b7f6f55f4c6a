"""Options that say how files are read: columns of other names, grades of words, systems of one table."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from tables import each_row

import rankeval as rk

GRADES = {"Exact": 2, "Partial": 1, "Irrelevant": 0}
WORDS = ("--grade", "Exact=2", "--grade", "Partial=1", "--grade", "Irrelevant=0")
COLUMNS = ("--column", "docid=sku", "--column", "relevance=stars", "--column", "aspect=who")
QUERIES = [f"q{number}" for number in range(8)]


@pytest.fixture(autouse=True)
def files() -> None:
    """Write judgments with names of their own, runs with usual names, and a table of two systems."""
    judged = [(query, f"d{place}", word, who) for query in QUERIES for place, word in enumerate(GRADES) for who in "ab"]
    frame = pd.DataFrame(judged, columns=["query", "sku", "stars", "who"])
    frame.to_csv("judged.csv", index=False)
    frame[frame["who"] == "a"].drop(columns="who").to_csv("one.csv", index=False, sep=";")
    ranked = [
        (system, query, f"d{place}", 3.5 - (place if system == "up" else -place))
        for system in ("up", "down")
        for query in QUERIES
        for place in range(3)
    ]
    table = pd.DataFrame(ranked, columns=["Algorithm", "qid", "docid", "score"])
    table.to_csv("table.csv", index=False)
    for system, part in table.groupby("Algorithm"):
        rk.Run.from_frame(part.drop(columns="Algorithm")).write(f"{system}.run")


def judgments() -> rk.Qrels:
    frame = pd.read_csv("one.csv", sep=";")
    return rk.Qrels.from_dict(
        {
            query: dict(zip(part["sku"], part["stars"].map(GRADES), strict=True))
            for query, part in frame.groupby("query")
        }
    )


def test_columns_and_words_of_the_shell_are_those_of_python(rankeval):
    """The run has the usual names, and another file without them would be refused."""
    expected = rk.evaluate(judgments(), "up.run", measures="nDCG@10").mean()["nDCG@10"]
    code, out, _ = rankeval("evaluate", "one.csv", "up.run", *COLUMNS[:4], *WORDS, "-m", "nDCG@10", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"run": "up.run", "nDCG@10": expected}])
    code, out, err = rankeval("evaluate", "one.csv", "up.run", *COLUMNS[:4], *WORDS)
    assert code == 0
    assert "separated by semicolons" in out
    assert err == ""


def test_the_options_that_an_error_writes_are_the_remedy(rankeval):
    call = ["evaluate", "one.csv", "up.run"]
    code, _, err = rankeval(*call)
    assert code == 2
    options = re.search(r"\((--column .*)\)", err)[1]
    for part, column in (("docid", "sku"), ("relevance", "stars")):
        options = options.replace(f"{part}=...", f"{part}={column}")
    code, _, err = rankeval(*call, *shlex.split(options))
    assert code == 2
    words = re.search(r"\((--grade .*)\)", err)[1]
    assert rankeval(*call, *shlex.split(options), *shlex.split(words))[0] == 0


@each_row(
    ("options", "said"),
    [
        (("--column", "docid=skuu"), "--column"),
        (("--column", "document=sku"), "unknown part of a table 'document'"),
        ((*COLUMNS[:4], "--grade", "Exact=2"), "'Partial', 'Irrelevant'"),
        ((*COLUMNS[:4], "--grade", "Exact=two"), "--grade Exact"),
        ((*COLUMNS[:4], *WORDS, "--column", "name=nobody"), "name=nobody"),
    ],
)
def test_wrong_options_are_one_line(rankeval, monkeypatch, options, said):
    monkeypatch.chdir(Path.cwd().parent)
    code, _, err = rankeval("evaluate", "one.csv", "up.run", *options)
    assert (code, len(err.splitlines())) == (2, 1)
    assert said in err


def test_the_systems_of_a_table_are_compared_and_chosen(rankeval):
    rest = (*COLUMNS[:4], *WORDS, "-m", "nDCG@10")
    by_files = rankeval("compare", "one.csv", "up=up.run", "down=down.run", *rest, "--format", "csv")
    by_table = rankeval("compare", "one.csv", "table.csv", *rest, "--format", "csv")
    assert by_table[:2] == by_files[:2]
    code, _, err = rankeval("evaluate", "one.csv", "table.csv", *rest)
    assert code == 2
    assert all(word in err for word in ("'up', 'down'", "--system", "rankeval compare"))
    chosen = rankeval("evaluate", "one.csv", "table.csv", *rest, "--system", "down", "--format", "json")
    alone = rankeval("evaluate", "one.csv", "down=down.run", *rest, "--format", "json")
    assert chosen[:2] == alone[:2]
    code, _, err = rankeval("evaluate", "one.csv", "table.csv", *rest, "--system", "dwn")
    assert code == 2
    assert "did you mean 'down'" in err
    code, out, _ = rankeval("fuse", "table.csv")
    assert code == 0
    assert len(out.splitlines()) == 3 * len(QUERIES)


def test_every_command_that_reads_judgments_takes_both(rankeval):
    """And says what it took for something else."""
    rest = (*COLUMNS, *WORDS)
    code, out, err = rankeval("judging", "agreement", "judged.csv", *rest, "--format", "json")
    assert code == 0, err
    frame = pd.read_csv("judged.csv").replace({"stars": GRADES}).rename(columns={"query": "qid", "sku": "docid"})
    qrels = rk.Qrels.from_frame(frame.astype({"stars": int}), relevance="stars", aspect="who")
    expected = rk.judging.agreement(qrels).table.set_index("coefficient")["value"]
    assert code == 0
    printed = {row["coefficient"]: row["value"] for row in json.loads(out)}
    assert printed["observed"] == expected["observed"] == 1
    code, out, err = rankeval("page", "one.csv", "up.run", *COLUMNS[:4], *WORDS)
    assert code == 0
    assert "note: one.csv: the columns are separated by semicolons" in err
    register = ("guard", "register", "p", "c", "--qrels", "one.csv", "--ledger", "ledger")
    code, _, err = rankeval(*register, *COLUMNS[:4], *WORDS)
    assert (code, "note: one.csv" in err) == (0, True)


def test_a_folder_of_beir_is_evaluated(rankeval):
    Path("scifact/qrels").mkdir(parents=True)
    Path("scifact/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td0\t1\n")
    code, out, _ = rankeval("evaluate", "scifact", "up.run", "-m", "RR")
    assert code == 0
    assert "the judgments of qrels/test.tsv" in out
    assert "1.0000" in out


def test_a_table_of_systems_has_names_of_its_own_too(rankeval):
    """A column that only this table has was read, so --column names it rightly; an error has the line of the file."""
    table = pd.read_csv("table.csv").rename(columns={"score": "points"})
    table.to_csv("table.csv", index=False)
    call = ("fuse", "table.csv", "--column", "score=points")
    code, out, err = rankeval(*call)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 3 * len(QUERIES)
    twice = pd.concat([table, table.iloc[[-1]]])
    twice.to_csv("table.csv", index=False)
    code, _, err = rankeval("compare", "one.csv", *call[1:], *COLUMNS[:4], *WORDS)
    assert code == 2
    assert f"table.csv, lines {len(table) + 1} and {len(table) + 2}" in err


def test_the_word_of_a_grade_may_have_a_sign_of_equality(rankeval):
    Path("words.csv").write_text("qid,docid,label\nq1,d1,Bad=worst\nq1,d2,Good\n")
    Path("words.run").write_text("q1 Q0 d2 1 2 t\nq1 Q0 d1 2 1 t\n")
    call = ["evaluate", "words.csv", "words.run", "-m", "RR", "--grade", "Good=1", "--grade", "Bad=worst=0"]
    assert rankeval(*call)[0] == 0


def test_a_column_that_tells_rows_apart_is_named_as_the_system_in_the_shell(rankeval):
    Path("made.csv").write_text("Made by,qid,docid,score\na,q1,d1,2\nb,q1,d1,1\n")
    Path("made.qrels").write_text("q1 0 d1 1\n")
    code, _, err = rankeval("evaluate", "made.qrels", "made.csv")
    assert code == 2
    options = re.search(r"--column ('.*?'|\S+)", err)[0]
    assert rankeval("evaluate", "made.qrels", "made.csv", *shlex.split(options), "--system", "b")[0] == 0
