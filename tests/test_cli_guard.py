"""``rankeval guard``: each step of the protocol from files, its exit code, and nothing but the answer on stdout."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rankeval as rk

TABLE = ("--data", "rows.csv", "--qid", "query", "--label", "grade", "--docid", "doc")


@pytest.fixture(autouse=True)
def _ledger(monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", "ledger")


@pytest.fixture
def collection() -> None:
    """Write judgments of 20 queries, the texts of the queries, and two runs."""
    rng = np.random.default_rng(0)
    grades = {f"q{n}": {f"doc-{n:04d}-{m:05d}": int(rng.random() < 0.3) for m in range(30)} for n in range(20)}
    rk.Qrels.from_dict(grades).write("qrels.txt")
    for name, weight in (("bm25", 0.5), ("v2", 2.0)):
        scores = {
            q: {d: weight * grade + rng.normal() for d, grade in documents.items()} for q, documents in grades.items()
        }
        rk.Run.from_dict(scores).write(f"{name}.run")
    Path("texts.tsv").write_text("".join(f"{q}\thow to find {q}\n" for q in grades))
    Path("no.jsonl").write_text('{"_id": "q1", "metadata": "without a text"}\n')


@pytest.fixture
def rows() -> pd.DataFrame:
    """Write a table with a column of parts, and the scores of two systems for the rows of its test part."""
    data = rk.datasets.make_ranking(60, 10, 4, rng=0)
    table = pd.DataFrame(data.X, columns=[f"f{i}" for i in range(4)])
    part = np.where(np.isin(data.qid, np.unique(data.qid)[:40]), "train", "test")
    docid = [f"d{i}" for i in range(len(data))]
    table = table.assign(query=[f"q{one}" for one in data.qid], grade=data.y, doc=docid, part=part)
    table.to_csv("rows.csv", index=False)
    test = table[table["part"] == "test"]
    Path("one.txt").write_text("".join(f"{value!r}\n" for value in test["f0"].tolist()))
    pd.DataFrame({"doc": test["doc"], "score": test["f1"]}).to_parquet("other.parquet")
    return test


@pytest.mark.usefixtures("collection")
def test_the_protocol_runs_from_files_and_the_plan_id_stands_alone_on_stdout(rankeval):
    code, out, err = rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt", "--texts", "texts.tsv")
    assert (code, err) == (0, "")
    assert out.startswith("held-out: 20 queries, 600 rows; 20 of the queries can be recognised")
    assert "RG004: 20 queries can show large differences only" in out
    systems = ("bm25=bm25.run", "v2=v2.run")
    options = ("--baseline", "bm25", "-m", "AP", "--qrels", "qrels.txt", "--texts", "texts.tsv")
    code, out, err = rankeval("guard", "freeze", "web", "held-out", *systems, *options)
    assert code == 0
    plan = rk.Guard("web").plan(out.strip())
    assert (out, plan.baseline, plan.measure) == (f"{plan.id}\n", "bm25", "AP")
    assert f"Plan {plan.id}: bm25, v2 against" in err
    texts = [line.split("\t") for line in Path("texts.tsv").read_text().splitlines()]
    beir = [json.dumps({"_id": query, "text": text, "metadata": {}}) + "\n" for query, text in texts]
    Path("queries.jsonl").write_text("".join(beir))  # the same texts, so the same collection
    files = ("--qrels", "qrels.txt", "--texts", "queries.jsonl")
    code, out, _ = rankeval("guard", "open", "web", plan.id[:8], *files, "--format", "json")
    opened = rk.Comparison.from_json(out)
    assert code == 0
    expected = {name: rk.evaluate("qrels.txt", f"{name}.run", measures="AP").mean()["AP"] for name in ("bm25", "v2")}
    row = opened.table.iloc[0]
    assert (row["mean_baseline"], row["mean_system"]) == pytest.approx((expected["bm25"], expected["v2"]))
    code, out, _ = rankeval("guard", "looks", "web", "held-out", "--format", "json")
    assert [(one["system"], one["status"], one["plan"]) for one in json.loads(out)] == [("v2", "confirmatory", plan.id)]


def test_rows_of_a_table_and_their_scores_are_taken_from_its_test_part(rankeval, rows):
    part = (*TABLE, "--part", "part")
    assert rankeval("guard", "register", "p", "test", *part)[0] == 0
    code, out, _ = rankeval("guard", "freeze", "p", "test", "one=one.txt", "other=other.parquet", *part)
    assert code == 0
    code, out, _ = rankeval("guard", "open", "p", out.strip(), *part, "--format", "json")
    assert code == 0
    means = rk.Comparison.from_json(out).table.iloc[0][["mean_baseline", "mean_system"]]
    own = [
        rk.evaluate(rows["grade"], rows[name], qid=rows["query"], docid=rows["doc"]).mean()["nDCG@10"]
        for name in ("f0", "f1")
    ]
    assert sorted(means) == pytest.approx(sorted(own))
    # A value of one's own for the test part, and the same rows by another name of the part.
    table = pd.read_csv("rows.csv").replace({"part": {"test": "held out"}})
    table.to_csv("rows.csv", index=False)
    code, out, _ = rankeval("guard", "status", "p", *TABLE, "--part", "part=held out")
    assert (code, "would be refused" in out) == (1, True)


@pytest.mark.usefixtures("rows")
def test_a_learning_to_rank_file_and_a_folder_of_them_are_read_too(rankeval):
    folder = Path("Fold1")
    folder.mkdir()
    for part, shift in (("train", 0), ("vali", 50), ("test", 70)):
        lines = [f"{n % 3} qid:{shift + n // 4} 1:{shift + n / 7:.4f} 2:{(shift + n) ** 0.5:.4f}" for n in range(80)]
        (folder / f"{part}.txt").write_text("\n".join(lines))
    assert rankeval("guard", "register", "p", "test", "--data", folder)[0] == 0
    assert rankeval("guard", "status", "p", "--data", folder / "test.txt")[0] == 1
    assert rankeval("guard", "status", "p", "--data", folder / "train.txt")[0] == 0


@pytest.mark.usefixtures("collection")
@pytest.mark.parametrize("ledger", [(), ("--ledger", "other ledger")])
def test_a_refusal_says_the_commands_that_go_on(rankeval, ledger):
    """As they stand there, with the reason, the query and the files put in."""
    guard = rk.Guard("web shop", ledger=ledger[1] if ledger else None)
    guard.register("held-out", qrels="qrels.txt")
    evaluate = ("evaluate", "qrels.txt", "v2.run")
    for command in (evaluate, ("guard", "status", "web shop", "--qrels", "qrels.txt", *ledger)):
        code, out, err = rankeval(*command)
        said = out + err
        assert (code, "20 queries" in said) == (1, True)
        for python in ("Guard(", "guard.", "mask", "rows]", "to_frame"):
            assert python not in said
        for step in ("freeze", "open", "exempt", "retire"):
            assert f"rankeval guard {step} 'web shop' " in err
        assert ("--ledger" in err) == bool(ledger)
    assert "rankeval guard status 'web shop'" in rankeval(*evaluate)[2]
    (line,) = re.findall("rankeval (guard exempt [^:;,]*)", err)
    first = Path("qrels.txt").read_text().split()[0]
    code, out, _ = rankeval(*shlex.split(line.replace("REASON", "'in dev of old'").replace("ID", first)))
    assert (code, out.startswith("1 query of held-out exempted")) == (0, True)
    (line,) = re.findall("rankeval (guard retire [^:;,]*)", err)
    assert rankeval(*shlex.split(line.replace("REASON", "old")))[0] == 0
    assert rankeval(*evaluate)[0] == 0


@pytest.mark.usefixtures("collection")
def test_verify_asks_the_heads_of_options_and_reports(rankeval):
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    head = rk.Guard("web").head
    opening = json.dumps({"opening": {"ledger": "l", "head": head}})
    Path("report.html").write_text(f'<script type="application/json" class="rankeval-opening">{opening}</script>')
    code, out, _ = rankeval("guard", "verify", "web", "--report", "report.html", "--head", head)
    assert (code, "is whole" in out, head in out) == (0, True, True)
    rankeval("guard", "retire", "web", "held-out", "replaced by a larger one")
    assert rankeval("guard", "verify", "web", "--report", "report.html")[0] == 0
    next(Path("ledger").glob(f"{rk.Guard('web').head}.json")).unlink()
    assert rankeval("guard", "verify", "web")[0] == 1  # nothing that was left tells, but this process saw the head
    next(Path("ledger").glob("*.json")).unlink()
    code, _, err = rankeval("guard", "verify", "web", "--report", "report.html")
    assert (code, err.startswith("refused: "), head[:12] in err) == (1, True, True)
    Path("head.txt").write_text(f"{head}\n")
    code, _, err = rankeval("guard", "verify", "web", "--report", "head.txt")
    assert (code, f"the head {head[:12]} that was noted before is gone" in err) == (1, True)
    assert rankeval("guard", "verify", "web", "--head", "f" * 64)[0] == 1
    Path("other.html").write_text(f"<p>as of head {head}</p>")
    code, _, err = rankeval("guard", "verify", "web", "--report", "other.html")
    assert (code, "names no head of a ledger" in err) == (2, True)


@pytest.mark.usefixtures("collection")
def test_verify_says_that_a_project_has_no_entry_in_a_whole_ledger(rankeval):
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    assert rankeval("guard", "verify", "web")[2] == ""
    code, out, err = rankeval("guard", "verify", "wbe")
    assert (code, "is whole; head" in out) == (0, True)
    assert err == "project 'wbe' has no entry in it; its entries are of other projects: 'web'\n"
    assert rankeval("guard", "verify", "web", "--ledger", "nowhere")[0] == 2


@pytest.mark.usefixtures("collection")
def test_ledgers_are_exported_and_merged_and_one_copy_verifies_the_other(rankeval):
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    code, out, _ = rankeval("guard", "export", "web", "copy.db")
    assert (code, out) == (0, f"1 entry added to copy.db; head {rk.Guard('web').head}\n")
    rankeval("guard", "retire", "web", "held-out", "too small")
    head = rk.Guard("web").head
    code, _, err = rankeval("guard", "verify", "web", "--ledger", "copy.db", "--other", "ledger")
    assert (code, err.startswith("refused: "), "copy.db" in err) == (1, True, True)
    code, out, _ = rankeval("guard", "merge", "web", "ledger", "--ledger", "copy.db")
    assert (code, out.startswith("1 entry added to "), head in out) == (0, True, True)
    assert rankeval("guard", "verify", "web", "--ledger", "copy.db", "--other", "ledger")[0] == 0


@pytest.mark.usefixtures("rows")
def test_queries_are_exempted_by_id_or_by_the_data_that_holds_them(rankeval):
    rankeval("guard", "register", "p", "test", *TABLE, "--part", "part")
    code, out, _ = rankeval("guard", "status", "p", *TABLE, "--format", "json")
    (found,) = json.loads(out)
    assert (code, found["refused"], found["collection"], found["project"]) == (1, True, "test", "p")
    assert len(found["queries"]) == 20
    assert rankeval("guard", "status", "q", *TABLE, "--part", "part=train")[0] == 0
    code, out, _ = rankeval("guard", "exempt", "p", "test", "in dev of old", "--query", found["queries"][0])
    assert (code, out.startswith("1 query of test exempted")) == (0, True)
    code, out, _ = rankeval("guard", "exempt", "q", "p/test", "another split of the same data", *TABLE)
    assert (code, out.startswith("19 queries of p/test exempted")) == (0, True)
    assert rankeval("guard", "status", "p", *TABLE)[0] == 0
    code, _, err = rankeval("guard", "exempt", "p", "test", "no reason", "--query", "nobody")
    assert (code, "nobody" in err) == (2, True)


@pytest.mark.usefixtures("collection")
def test_a_gate_exits_with_0_if_it_accepts_and_with_1_if_it_rejects(rankeval):
    """And prints no score."""
    files = ("--qrels", "qrels.txt", "-m", "AP", "--budget", "5")
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    now = ("--baseline", "bm25.run", "--baseline-name", "bm25")
    code, out, _ = rankeval("guard", "gate", "web", "held-out", *now, *files)
    assert (code, "5" in out) == (0, True)
    code, out, _ = rankeval("guard", "gate", "web", "held-out", "v2=v2.run", *files)
    assert (code, out) == (0, "v2: accepted against bm25 by gate 'gate'; decision 1 of 5\n")
    code, out, _ = rankeval("guard", "gate", "web", "held-out", "old=bm25.run", *files)
    assert (code, out) == (1, "old: rejected against v2 by gate 'gate'; decision 2 of 5\n")
    assert rankeval("guard", "looks", "web", "--format", "json")[1] == "[]\n"


@pytest.mark.usefixtures("collection")
def test_a_plan_and_a_gate_take_the_groups_of_a_file(rankeval):
    """A gate keeps them: later calls may name the file again, or leave it out."""
    turns = pd.DataFrame({"qid": [f"q{n}" for n in range(20)], "conversation": np.repeat(range(10), 2)})
    turns.to_csv("turns.csv", index=False)
    turns.assign(conversation=range(20)).to_csv("ids.csv", index=False)
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    files, grouped = ("--qrels", "qrels.txt", "-m", "AP"), ("--groups", "turns.csv")
    systems = ("bm25=bm25.run", "v2=v2.run", "--baseline", "bm25")
    code, out, _ = rankeval("guard", "freeze", "web", "held-out", *systems, *files, *grouped)
    plan = rk.Guard("web").plan(out.strip())
    assert (code, plan.grouped_by) == (0, "conversation")
    now = ("--baseline", "bm25.run", "--budget", "5")
    code, out, _ = rankeval("guard", "gate", "web", "held-out", *now, *files, *grouped)
    assert (code, "by AP, tested by conversation, at 0.01" in out) == (0, True)
    for again in (grouped, ()):
        assert rankeval("guard", "gate", "web", "held-out", "--budget", "5", *files, *again)[1] == out
    code, _, err = rankeval("guard", "gate", "web", "held-out", *now, *files, "--groups", "ids.csv")
    assert code == 2
    assert "each of the 20 queries has a group of its own" in err
    assert "its file has a column qid, and a column with the group of each query" in err


@pytest.mark.usefixtures("collection")
def test_the_looks_of_others_are_counted_and_listed_on_request(rankeval):
    for project in ("web", "shop"):
        guard = rk.Guard(project)
        test = guard.register("held-out", qrels="qrels.txt")
        runs = {name: rk.Run.read(f"{name}.run") for name in ("bm25", "v2")}
        guard.open(guard.freeze(test, systems=runs, baseline="bm25", measure="AP"))
    code, out, err = rankeval("guard", "looks", "web", "held-out")
    assert (code, "shop" in out, err) == (0, False, "1 look more by other projects: --all-projects lists them\n")
    code, out, err = rankeval("guard", "looks", "web", "--all-projects", "--format", "json")
    assert ([one["project"] for one in json.loads(out)], err) == (["web", "shop"], "")


@pytest.mark.usefixtures("collection")
def test_the_doctor_names_the_ledger_its_head_and_its_faults(rankeval, monkeypatch):
    monkeypatch.setenv("RANKEVAL_WHO", "the-ci")
    out = rankeval("doctor")[1]
    assert f"{Path('ledger').resolve()} (not there yet)" in out
    assert "the-ci" in out
    rankeval("guard", "register", "web", "held-out", "--qrels", "qrels.txt")
    out = rankeval("doctor")[1]
    assert "whole, 1 entry" in out
    assert rk.Guard("web").head in out
    (entry,) = Path("ledger").glob("*.json")
    entry.write_text(entry.read_text().replace("the-ci", "nobody"))
    code, out, _ = rankeval("doctor")
    assert (code, "was altered" in out) == (0, True)


@pytest.mark.usefixtures("collection", "rows")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["register", "p", "x"], "name the test collection: judgments (--qrels) or rows (--data)"),
        (["register", "p", "x", "--qrels", "qrels.txt", "--data", "rows.csv"], "name the test collection"),
        (["register", "p", "x", "--qrels", "qrels.txt", "--qid", "query"], "--qid name columns of --data"),
        (["register", "p", "x", "--data", "rows.csv", "--qid", "query"], "a table needs --qid and --label"),
        (["register", "p", "x", "--data", "rows.csv", "--part", "part"], "--part need --qid and --label"),
        (["register", "p", "x", *TABLE, "--part", "part=nowhere"], "no row has the value 'nowhere'"),
        (["register", "p", "x", *TABLE, "--texts", "texts.tsv"], "--texts goes with --qrels"),
        (["register", "p", "x", "--qrels", "qrels.txt", "--texts", "qrels.txt"], "line 1: expected an id, a tab"),
        (["register", "p", "x", "--qrels", "qrels.txt", "--texts", "no.jsonl"], "no.jsonl 'text'; known are: metadata"),
        (["freeze", "p", "x", "a=bm25.run", "--qrels", "qrels.txt"], "has no collection 'x', it has: 'held-out'"),
        (["freeze", "p", "held-out", "bm25.run", "--qrels", "qrels.txt"], "is not NAME=PATH"),
        (["freeze", "p", "held-out", "a=bm25.run", "a=v2.run", "--qrels", "qrels.txt"], "two systems are called 'a'"),
        (
            ["freeze", "p", "held-out", "a=one.txt", *TABLE, "--part", "part"],
            "the content of the files is not that of 'held-out'",
        ),
        (["open", "p", "abc", "--qrels", "qrels.txt"], "plans of project 'p' begin with 'abc'"),
        (["looks", "p", "nothing"], "no collection 'nothing'"),
        (["status", "p", "--qrels", "nowhere.txt"], "there is no file 'nowhere.txt'"),
    ],
)
def test_bad_use_is_one_line_on_stderr_and_exit_code_2(rankeval, arguments, said):
    rk.Guard("p").register("held-out", qrels="qrels.txt")
    code, out, err = rankeval("guard", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1.0\nx\n", "scores.txt, line 2: expected a finite number, found 'x'"),
        ("1.0\n2.0\n", "'a': has 2 scores for 200 rows"),
        ("doc,value\nd1,1\n", "expected one score a line, or a table with a column 'score'; found the columns"),
        ("doc,score\nd1,x\n", "line 2: expected a finite number, found 'x'"),
    ],
)
def test_a_file_of_scores_that_is_none_is_refused_with_its_place(rankeval, text, said):
    part = (*TABLE, "--part", "part")
    rankeval("guard", "register", "p", "test", *part)
    Path("scores.txt").write_text(text)
    code, out, err = rankeval("guard", "freeze", "p", "test", "a=scores.txt", "b=one.txt", *part)
    assert (code, out) == (2, "")
    assert said in err
