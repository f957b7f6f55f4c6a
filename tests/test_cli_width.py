"""Everything that the command line prints fits 80 columns, and each command ends with the next one to type.

Names in these tests are long, since those of files often are.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from rich.cells import cell_len
from tables import each_row
from test_cli_help import commands

import rankeval as rk
from rankeval import cli
from rankeval.cli.options import OPTIONS, PANELS
from rankeval.cli.output import suggest
from rankeval.render.tables import rows_to_text

SPARSE = "learned-sparse-retriever-of-the-second-generation-k1=0.9-b=0.4.run"
CROSS = "cross-encoder-ms-marco-MiniLM-L-12-v2-reranked-top-100.run"
RUNS = f"bm25.run {SPARSE} {CROSS}"
FEW = f"bm25.run {CROSS}"
FILES = "--qrels qrels --texts queries.tsv"
MANY = "-m nDCG@10 -m AP -m RR -m P@5 -m R@10 -m Success@1 -m bpref -m Rprec -m infAP -m \"nDCG(gain='exp')@10\""

# Command -> arguments of a real call, in an order in which they can run.
CALLS = {
    "evaluate": f"qrels {RUNS}",
    "compare": f"qrels {RUNS}",
    "evaluate-dataset": "rows.parquet --qid q --relevance y --score s",
    "fuse": f"{FEW} --out fused.run",
    "search": "docs.tsv queries.tsv --scheme BM25 --out found.run",
    "page": f"qrels {FEW} --documents docs.tsv --topics queries.tsv --out queries.html",
    "measures": "",
    "tests": "holm",
    "doctor": "",
    "init": f"qrels {CROSS}",
    "run": "small.yaml",
    "push": "saved/bm25 --host files --uri pushed",
    "site": "saved --out public",
    "guard checks": "",
    "guard register": f"shop a-test-collection-with-a-long-name {FILES}",
    "guard freeze": f"shop a-test-collection-with-a-long-name old=bm25.run new={CROSS} --baseline old {FILES}",
    "guard open": f"shop PLAN {FILES}",
    "guard looks": "shop",
    "guard status": "web --qrels other.qrels --ledger other",
    "guard gate": f"shop a-test-collection-with-a-long-name --baseline bm25.run {FILES}",
    "guard verify": "shop",
    "guard export": "shop copy",
    "guard merge": "shop copy",
    "guard exempt": "shop a-test-collection-with-a-long-name 'many users type it' --query query-0001",
    "guard retire": "shop a-test-collection-with-a-long-name 'replaced by another one'",
    "judging pool": FEW,
    "judging sheets": f"sheets {FEW} --judge ann --judge a-judge-with-a-rather-long-name",
    "judging agreement": "qrels people.qrels",
    "judging calibrate": f"{FEW} --human people.qrels --machine qrels",
    "online checks": "log.csv",
    "online rates": "log.csv --by docid --by position --by arm",
    "online interleave": "--credits shown.jsonl --clicks clicks.csv",
    "online ab": "users.csv -m clicks -m ctr=clicks/views",
}
FREE_FORM = {"online interleave": "A.run B.run"}
"""Prints records for programs, one a line."""
NEITHER = {"init"}
"""Says itself what comes next, among the files that it wrote."""
ON_A_SERVER = {"list", "compare", "leaderboard", "resend", "discard", "verify-guard", "promote", "rollback", "why"}


def write_files() -> None:
    """Put a collection, its texts, a table of rows, a click log and a table of users into the working directory."""
    draw = np.random.default_rng(0)
    pairs = [(f"query-{query:04d}", f"document-{query:04d}-{place:02d}") for query in range(12) for place in range(8)]
    grades = draw.integers(0, 3, len(pairs))
    truth = zip(pairs, grades, strict=True)
    lines = [f"{query} 0 {document} {grade}\n" for (query, document), grade in truth]
    Path("qrels").write_text("".join(lines))
    Path("other.qrels").write_text("".join(line.replace("query", "other") for line in lines))
    Path("people.qrels").write_text("".join(lines[: len(lines) * 3 // 4]))
    for name, skill in (("bm25.run", 0.1), (SPARSE, 0.5), (CROSS, 2.0)):
        scores = skill * grades + draw.random(len(pairs))
        rows = zip(pairs, scores, strict=True)
        Path(name).write_text("".join(f"{query} Q0 {doc} 1 {score} s\n" for (query, doc), score in rows))
    Path("docs.tsv").write_text("".join(f"{document}\tred fox of {query}\n" for query, document in pairs))
    Path("queries.tsv").write_text("".join(f"{query}\tred fox {query}\n" for query in dict(pairs)))
    rows = {"q": [query for query, _ in pairs], "y": grades, "s": draw.random(len(pairs))}
    pd.DataFrame(rows).to_parquet("rows.parquet")
    users = pd.DataFrame({"user": range(80), "arm": ["control", "an-arm-with-a-long-name"] * 40})
    users.assign(clicks=draw.integers(0, 5, 80), views=9).to_csv("users.csv", index=False)
    shown = [(f"i{at // 4}", f"q{at // 4 % 3}", f"document-{at % 5}", at % 4 + 1) for at in range(80)]
    log = pd.DataFrame(shown, columns=["impression", "qid", "docid", "position"])
    log.assign(clicked=draw.integers(0, 2, 80), user=log["impression"], arm="an-arm").to_csv("log.csv", index=False)
    rk.save(rk.evaluate("qrels", "bm25.run", name="bm25"), "saved/bm25")
    interleaver = rk.online.Interleaver("team_draft", depth=3)
    records = [
        interleaver.show(
            {"bm25": ["a", "b"], "cross-encoder-of-a-long-name": ["b", "c"]},
            impression=f"i{at}",
            qid="q",
            user=f"u{at}",
        )
        for at in range(9)
    ]
    Path("shown.jsonl").write_text("".join(f"{record.to_json()}\n" for record in records))
    Path("clicks.csv").write_text("impression,docid\n" + "".join(f"i{at},b\n" for at in range(9)))


def write_experiment() -> None:
    """Put a small experiment and its rows into the working directory."""
    rows = {"qid": np.repeat(range(30), 4), "label": [0, 1, 2, 0] * 30, "x": np.arange(120) % 7}
    pd.DataFrame(rows).to_parquet("small.parquet")
    Path("small.yaml").write_text(
        "name: small\ndata: {loader: parquet, path: small.parquet, qid: qid, label: label}\n"
        "rankers: {plain: {estimator: sklearn.linear_model.Ridge}}\nguard: 'off'\ntracking: 'off'\n"
    )


@pytest.fixture
def shell(rankeval, capsys, monkeypatch) -> Callable[[str], tuple[int, str, str]]:
    """Return a function that runs a line of a shell whose output is read by a program."""
    assert rankeval  # which forgets the ledger before and after
    monkeypatch.delenv("COLUMNS")

    def run(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rankeval", *shlex.split(line)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return run


def assert_fits(text: str, columns: int = 80) -> None:
    """Assert that no line is longer, unless it is one word to be copied, such as a path."""
    for line in text.splitlines():
        assert cell_len(line.rstrip()) <= columns or (len(line.split()) <= 2 and "/" in line) or ".run" in line, line


@cache
def tree() -> dict[str, Any]:
    """Return all commands by the words that call them, with those of hosts."""
    return {" ".join(path): command for path, command in commands(typer.main.get_command(cli.app)) if path}


def leaves() -> dict[str, Any]:
    """Return the commands that have no further ones."""
    groups = {path.rpartition(" ")[0] for path in tree()}
    return {path: command for path, command in tree().items() if path not in groups}


@pytest.mark.worth("runs every command once")
def test_every_command_is_tried_at_80_columns(shell, monkeypatch):
    """Each prints its help, a result that fits, and the next command."""
    write_files()
    write_experiment()
    monkeypatch.setenv("RANKEVAL_LEDGER", str(Path("ledger").absolute()))
    hosted = {f"mlflow {name}" for name in ON_A_SERVER}
    named = leaves()
    assert named.keys() == CALLS.keys() | hosted
    plan = ""
    for path in ["", "guard", "judging", "online", "mlflow", *named]:
        code, out, err = shell(f"{path} --help")
        assert (code, err) == (0, ""), path
        assert_fits(out)
        assert re.search(r"<(bool|str|int|float|path|list\[.*)>", out) is None, path
    for path, arguments in CALLS.items():
        code, out, err = shell(f"{path} {arguments.replace('PLAN', plan)}")
        assert code == 0, (path, err)
        plan = out.strip() if path == "guard freeze" else plan
        for text in (out, err):
            assert_fits(text)
        assert (re.search(r"^next: (rankeval|python -m) ", err, re.MULTILINE) is None) == (path in NEITHER), (path, err)
        if path not in NEITHER:
            assert err.rpartition("next: ")[0].endswith(("\n", "")), err


def words_of(text: str) -> list[list[str]]:
    """Return the commands in a text, each as its words; a line may go on in the next one."""
    joined = re.sub(r" *\\\n *", " ", text)
    found = re.findall(r"^(?:next: )?(rankeval .*)$", joined, re.MULTILINE)
    return [shlex.split(line.partition("rankeval ")[2]) for line in found]


def assert_is_understood(words: list[str]) -> None:
    """Assert that the command line has such a command with such arguments."""
    path = " ".join(words[:2]) if " ".join(words[:2]) in tree() else words[0]
    command = tree()[path]
    with command.make_context(path, words[len(path.split()) :]) as context:
        assert context.params


def test_every_command_ends_with_two_examples_that_it_understands():
    for path, command in leaves().items():
        examples = words_of(re.sub(r"^ *(RANKEVAL_LEDGER=\S+ )?", "", command.epilog or "", flags=re.MULTILINE))
        assert len(examples) >= 2, path
        for words in examples:
            assert " ".join(words).startswith(path), (path, words)
            assert_is_understood(words)
        assert max(map(len, command.epilog.splitlines())) <= 82, path  # help indents them less


@each_row("line", ["evaluate qrels bm25.run", f"evaluate qrels {RUNS}", f"compare qrels {RUNS}", f"judging pool {FEW}"])
def test_the_next_command_is_understood(line, shell):
    write_files()
    err = shell(line)[2]
    (words,) = words_of(err)
    assert_is_understood(words)
    assert {*line.split()} & {*words}


def test_the_next_command_is_quoted_and_shows_no_password(capsys):
    """A name may have spaces and line breaks, and a long command goes on in the next line."""
    suggest(
        "rankeval compare {qrels} {runs} --ledger {ledger} {other}",
        {
            "qrels": "a folder/my qrels.txt",
            "runs": ["x" * 60, "two\nlines"],
            "ledger": "postgresql://me:secret@host/db",
        },
    )
    err = capsys.readouterr().err
    assert "secret" not in err
    words = shlex.split(err.replace("\\\n", ""))
    assert words[1:5] == ["rankeval", "compare", "a folder/my qrels.txt", "x" * 60]
    assert words[-1] == "OTHER"
    assert all(line.endswith(" \\") for line in err.splitlines()[:-1])


def test_programs_get_no_next_command(shell):
    write_files()
    for form in ("json", "csv", "trec"):
        assert "next:" not in "".join(shell(f"evaluate qrels bm25.run -m map --format {form}")[1:]), form


def test_every_option_has_a_panel_or_belongs_to_few_commands():
    """The panels name options of the table, each once."""
    named = " ".join(PANELS.values()).split()
    assert len(named) == len({*named})
    assert {*named} <= OPTIONS.keys()


def test_many_measures_are_read_below_each_other(shell):
    write_files()
    code, out, _ = shell(f"evaluate qrels {FEW} {MANY}")
    assert code == 0
    assert_fits(out)
    assert re.search(r"^measure ", out, re.MULTILINE)
    assert re.search(r"^infAP  +\d\.\d{4}  +\d\.\d{4}$", out, re.MULTILINE), out


def test_wide_prints_all(shell):
    """At full width: each name in one piece, the measures side by side, the columns that are left out else."""
    write_files()
    _, narrow, _ = shell(f"compare qrels {RUNS}")
    _, wide, _ = shell(f"compare qrels {RUNS} --wide")
    assert "not shown: won/tied/lost" in narrow
    assert wide.count(SPARSE) >= 6
    assert re.search("^measure .* won/tied/lost$", wide, re.MULTILINE)
    assert "ties" in shell("measures --wide")[1].splitlines()[0].split()
    assert "--wide shows more columns: aggregate, ties" in shell("measures")[1]


def test_a_terminal_of_any_width_is_filled(shell, monkeypatch):
    write_files()
    for columns in (60, 100, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for line in (f"compare qrels {RUNS}", f"evaluate qrels {RUNS}"):
            assert_fits(shell(line)[1], columns)
    assert os.environ["COLUMNS"] == "120"


def test_a_table_that_cannot_be_narrow_goes_on_below():
    """Every value is there, and the first columns begin each block; wide characters count twice."""
    header = ["run", "qid", *(f"measure{at}" for at in range(12))]
    rows = [["検索システム", f"q{at}", *(at + place / 10 for place in range(12))] for at in range(3)]
    text = rows_to_text(header, rows, width=50)
    assert_fits(text, 50)
    assert text.count("\n\n") >= 2
    blocks = text.split("\n\n")
    assert all(block.lstrip().startswith("run") for block in blocks)
    values = [float(value) for value in re.findall(r"\d+\.\d{4}", text)]
    assert sorted(values) == sorted(value for row in rows for value in row[2:])
    assert rows_to_text(header, rows).count("\n") == 4


def test_two_long_names_that_differ_in_the_middle_stay_apart():
    names = [f"{'a' * 60}{at}{'b' * 60}" for at in range(2)]
    assert "…" not in rows_to_text(["run", "AP"], [[name, 0.5] for name in names], width=30)
    assert "…" in rows_to_text(["run", "AP"], [[names[0], 0.5], ["c", 0.5]], width=30)


def test_run_without_a_file_lists_the_shipped_ones(shell):
    code, out, err = shell("run")
    assert (code, err) == (2, "next: rankeval run quickstart\n")
    assert re.findall(r"^  (\w+) ", out, re.MULTILINE) == ["letor", "quickstart"]


def test_a_stage_is_a_line_where_there_is_no_terminal(shell):
    write_experiment()
    code, out, err = shell("run small.yaml")
    assert code == 0, err
    stages = re.findall(r"^\[(\d)/5\] (.*)$", err, re.MULTILINE)
    expected = ["loading data", "tuning plain", "opening the test part", "writing the report", "logging"]
    assert stages == [(str(place), name) for place, name in enumerate(expected, start=1)]
    assert "[1/5]" not in out
    assert "next: python -m webbrowser" in err
