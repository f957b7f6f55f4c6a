"""The command line: what is asked for is printed, what is wrong is one line on stderr, and the exit code says which."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import inspect
import json
import os
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

import forking
import pandas as pd
import pytest
import typer
from tables import each_row

import rankeval as rk
from rankeval import cli
from rankeval.cli.options import COLLECTION, OPTIONS
from rankeval.collection.convention import CHOICES
from rankeval.evaluation import standard_errors
from rankeval.significance import CLAIMS

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\nq2 0 c 0\n"
GOOD = "q1 Q0 a 1 9 good\nq1 Q0 b 2 8 good\nq2 Q0 a 1 9 good\nq2 Q0 c 2 8 good\n"
BAD = "q1 Q0 b 1 9 bad\nq1 Q0 a 2 8 bad\nq2 Q0 a 1 9 bad\nq2 Q0 c 2 8 bad\n"


@pytest.fixture
def files() -> None:
    """Put a small collection into the working directory."""
    for name, text in {"qrels": QRELS, "good.run": GOOD, "bad.run": BAD}.items():
        Path(name).write_text(text)


@pytest.mark.usefixtures("files")
def test_evaluate_prints_what_evaluate_returns(rankeval):
    code, out, _ = rankeval("evaluate", "qrels", "good.run", "bad.run", "-m", "nDCG@10", "-m", "AP", "--format", "json")
    expected = [
        {"run": name, **rk.evaluate("qrels", name, measures=["nDCG@10", "AP"]).aggregate().to_dict()}
        for name in ("good.run", "bad.run")
    ]
    assert (code, json.loads(out)) == (0, expected)
    code, out, _ = rankeval("evaluate", "qrels", "bad.run", "-m", "RR", "-q", "--format", "csv")
    frame = pd.read_csv(StringIO(out))
    assert code == 0
    assert frame.to_numpy().tolist() == [["bad.run", "q1", 0.5], ["bad.run", "q2", 1.0], ["bad.run", "all", 0.75]]
    code, out, _ = rankeval("evaluate", "qrels", "bad.run", "-m", "RR")
    assert code == 0
    assert out.split()[:2] == ["run", "RR"]
    assert "0.7500" in out


def test_a_data_set_is_evaluated_where_it_lies(rankeval, tmp_path):
    rows = {"query": ["a", "a", "b", "b"], "label": [1, 0, 0, 1], "value": [0.9, 0.2, 0.3, 0.1], "weight": [1, 1, 3, 3]}
    pd.DataFrame(rows).to_parquet("log.parquet")
    columns = ("--qid", "query", "--relevance", "label", "--score", "value")
    code, out, err = rankeval("evaluate-dataset", "log.parquet", *columns, "-m", "RR", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"run": "log.parquet", "RR": 0.75}]), err
    more = ("--query-weight", "weight", "--memory", "1GB", "--n-jobs", "1", "--folder", "scores", "--ties", "worst")
    code, out, _ = rankeval("evaluate-dataset", "log.parquet", *columns, *more, "-m", "RR", "-q", "--format", "csv")
    assert (code, out.splitlines()[1:]) == (0, ["log.parquet,a,1.0", "log.parquet,b,0.5", "log.parquet,all,0.625"])
    assert (tmp_path / "scores" / "part-00000.parquet").exists()
    for arguments, said in (
        (("log.parquet", *columns, "--score", "sore"), "--score 'sore' is not in the data set"),
        (
            ("log.parquet", *columns, "--folder", "s3://bucket/x"),
            "expected a folder here (a URL of s3",
        ),
    ):
        code, _, err = rankeval("evaluate-dataset", *arguments)
        assert (code, said in err, err.count("\n")) == (2, True, 1), err
    gain = (*columns, "-m", "Gain@1(column='value')")
    code, out, _ = rankeval("evaluate-dataset", "log.parquet", *gain, "--column", "value", "--format", "json")
    assert (code, json.loads(out)[0]["Gain@1(column='value')"]) == (0, pytest.approx(0.6))
    code, _, err = rankeval("evaluate-dataset", "log.parquet", *gain)
    assert (code, "name it by --column" in err) == (2, True)
    code, _, err = rankeval("evaluate-dataset", "log.parquet", "--qid", "query")
    assert (code, "--relevance" in err) == (2, True)


@pytest.mark.usefixtures("files")
def test_the_convention_and_missing_queries_are_said_with_the_numbers(rankeval):
    """Below a table; on stderr where stdout is for programs."""
    Path("half.run").write_text(GOOD[: GOOD.index("q2")])
    card = (
        "convention rankeval: documents with equal scores: mean over all orders; judgments: every judgment counts; "
        "judged queries without a ranking: scored as an empty ranking; "
        "queries without a relevant document: count as 0"
    )
    missing = "1 query missing from the run: scored as an empty ranking"
    code, out, err = rankeval("evaluate", "qrels", "half.run", "-m", "RR")
    assert (code, out.splitlines()[-2:], err) == (0, [card, missing], "")
    code, out, err = rankeval("evaluate", "qrels", "good.run", "half.run", "-m", "RR")
    assert out.splitlines()[-2:] == [card, f"half.run: {missing}"]
    code, out, err = rankeval("evaluate", "qrels", "half.run", "-m", "RR", "--format", "csv")
    assert (code, out) == (0, "run,RR\nhalf.run,0.5\n")
    assert err.splitlines() == [f"note: {card}", f"note: {missing}"]
    code, out, err = rankeval("evaluate", "qrels", "half.run", "-m", "recip_rank", "--format", "trec")
    assert (code, err) == (0, "")


def test_a_run_may_be_given_a_name(rankeval):
    """A file whose own name has the sign of equality is that file."""
    qrels = {f"q{n}": {"a": 1, "b": 0} for n in range(3)}
    rk.Qrels.from_dict(qrels).write("qrels")
    for name in ("one.run", "k1=2.run"):
        rk.Run.from_dict({q: ["a", "b"] for q in qrels}).write(name)
    for command in ("evaluate", "compare"):
        code, out, _ = rankeval(command, "qrels", "ours=one.run", "k1=2.run", "theirs=k1=2.run", "-m", "AP")
        assert code == 0
        assert all(name in out for name in ("ours", "k1=2.run", "theirs"))
        assert "one.run" not in out
    trec = rankeval("evaluate", "qrels", "ours=one.run", "--format", "trec")
    assert trec == rankeval("evaluate", "qrels", "one.run", "--format", "trec")
    assert "there is no file 'two.run'" in rankeval("evaluate", "qrels", "ours=two.run")[2]


@pytest.mark.usefixtures("files")
def test_runs_of_one_name_in_two_folders_are_told_apart(rankeval):
    Path("other").mkdir()
    Path("other/good.run").write_text(BAD)
    code, out, _ = rankeval("evaluate", "qrels", "good.run", "other/good.run", "-m", "RR", "--format", "csv")
    assert (code, out.splitlines()[1:]) == (0, ["good.run,1.0", "other/good.run,0.75"])


@pytest.mark.usefixtures("files")
def test_compare_holds_runs_against_a_baseline(rankeval):
    arguments = ("compare", "qrels", "good.run", "bad.run", "-m", "RR", "--baseline", "bad.run")
    code, out, _ = rankeval(*arguments, "--format", "json")
    row = rk.Comparison.from_json(out).table.iloc[0]
    assert code == 0
    assert (row["baseline"], row["system"], row["difference"], row["wins"]) == ("bad.run", "good.run", 0.25, 1)
    code, out, _ = rankeval(*arguments)
    assert code == 0
    assert out.startswith("No difference was shown: good.run against bad.run: +0.2500 RR [95% interval ")
    assert "paired t test over 2 queries" in out.lower()
    Path("third.run").write_text(BAD)
    code, out, _ = rankeval(*arguments, "third.run")
    assert code == 0
    assert "Choosing the largest mean of 2 candidates, here good.run, gains about" in out.splitlines()[1]


@pytest.mark.usefixtures("files")
def test_compare_has_a_second_table_without_unjudged_documents(rankeval):
    Path("new.run").write_text(GOOD.replace("q1 Q0 a", "q1 Q0 new 0 10 new\nq1 Q0 a"))
    arguments = ("compare", "qrels", "good.run", "new.run", "-m", "RR", "--baseline", "good.run", "--unjudged", "skip")
    found = rk.Comparison.from_json(rankeval(*arguments, "--format", "json")[1])
    assert (found.table["difference"].item(), found.condensed["difference"].item()) == (-0.25, 0)
    assert found.bounds[["judged_system", "upper", "lower"]].iloc[0].tolist() == pytest.approx([5 / 6, 0, -0.25])
    code, out, _ = rankeval(*arguments)
    assert code == 0
    assert "Without unjudged documents: Paired t test over 2 queries" in out
    assert rankeval(*arguments[:-1], "zero")[0] == 2


@pytest.mark.usefixtures("files")
def test_compare_hands_its_settings_to_rk_compare(rankeval):
    """Claim, margin, level, family, resamples and seed: the numbers are those of the call in Python."""
    Path("qrels").write_text("".join(f"q{q} 0 d{d} {(q + d) % 3}\n" for q in range(30) for d in range(5)))
    runs = {"one": 1, "two": 3, "three": 7}
    for run, step in runs.items():
        lines = (f"q{q} Q0 d{d} 1 {(d * step + q * q) % 5} {run}\n" for q in range(30) for d in range(5))
        Path(run).write_text("".join(lines))
    systems = {run: rk.evaluate("qrels", run, measures=["RR", "AP"]) for run in runs}
    asked = {"test": "randomization", "alpha": 0.1, "family": "measure", "n_resamples": 199, "rng": 7}
    asked |= {"baseline": "one", "claim": "not_worse", "margin": 0.05}
    flags = ("--test", "--alpha", "--family", "--resamples", "--seed", "--baseline", "--claim", "--margin")
    options = [str(part) for pair in zip(flags, asked.values(), strict=True) for part in pair]
    given = ("compare", "qrels", *runs, "-m", "RR", "-m", "AP", *options)
    code, out, _ = rankeval(*given, "--format", "csv")
    assert code == 0
    found = pd.read_csv(StringIO(out), float_precision="round_trip")
    pd.testing.assert_frame_equal(found, rk.compare(systems, **asked).table, check_dtype=False)
    out = rankeval(*given)[1]
    assert "2 comparisons per measure; 90 % intervals" in out
    assert "to show that no loss reaches 0.05" in out
    assert "199 resamples, seed 7" in out


@pytest.mark.usefixtures("files")
def test_compare_takes_the_groups_of_a_file(rankeval):
    """By query ids that are numbers or texts; what cannot be groups is an error about the option."""
    Path("qrels").write_text("".join(f"{q} 0 d{d} {(q + d) % 3}\n" for q in range(30) for d in range(5)))
    for run, step in {"one": 1, "two": 3}.items():
        lines = (f"{q} Q0 d{d} 1 {(d * step + q * q) % 5} {run}\n" for q in range(30) for d in range(5))
        Path(run).write_text("".join(lines))
    turns = pd.DataFrame({"qid": range(30), "conversation_id": [f"c{q // 3}" for q in range(30)]})
    turns.to_csv("turns.csv", index=False)
    turns.to_parquet("turns.parquet")
    groups = turns.set_index(turns["qid"].astype(str))["conversation_id"]
    systems = {run: rk.evaluate("qrels", run, measures=["AP"]) for run in ("one", "two")}
    given = ("compare", "qrels", "one", "two", "-m", "AP", "--groups")
    for file in ("turns.csv", "turns.parquet"):
        code, out, _ = rankeval(*given, file, "--format", "json")
        found, expected = rk.Comparison.from_json(out), rk.compare(systems, groups=groups)
        assert (code, found.headline, found.notes) == (0, expected.headline, expected.notes)
        assert "10 conversations of 30 queries" in found.caption
        pd.testing.assert_frame_equal(found.table, expected.table)
    turns.assign(conversation_id=range(30)).to_csv("ids.csv", index=False)
    turns[:29].to_csv("short.csv", index=False)
    pd.concat([turns, turns[:1].assign(conversation_id="c9")]).to_csv("twice.csv", index=False)
    turns.assign(more=1).to_csv("wide.csv", index=False)
    for file, said in {
        "ids.csv": "each of the 30 queries has a group of its own, so there is nothing to group; its file has a column",
        "short.csv": "1 of 30 queries have no group: '29'; its file has a column qid, and a column with the group of",
        "twice.csv": "--groups: query '0' has several values; its file has a column qid",
        "wide.csv": "--groups wide.csv: expected a column qid and one more, the attribute; found qid, conversation_id",
        "gone.csv": "--groups gone.csv: ",
    }.items():
        code, out, err = rankeval(*given, file)
        assert (code, out, said in err) == (2, "", True), err


@pytest.mark.usefixtures("files")
def test_compare_prints_json_that_reads_back_whole(rankeval):
    """With what a table says beside its numbers; one-sided ends are infinite, and not unknown."""
    systems = {run: rk.evaluate("qrels", run, measures=["RR"]) for run in ("bad.run", "good.run")}
    asked = {"baseline": "bad.run", "claim": "better", "test": "randomization"}
    expected = rk.compare(systems, **asked)
    options = [text for name, value in asked.items() for text in (f"--{name}", value)]
    code, out, err = rankeval("compare", "qrels", *systems, "-m", "RR", *options, "--format", "json")
    found = rk.Comparison.from_json(out)
    assert (code, err) == (0, "")
    assert json.loads(out)["headline"] == expected.headline == found.headline
    assert (found.notes, str(found), found.findings) == (expected.notes, str(expected), expected.findings)
    assert found.notes
    pd.testing.assert_frame_equal(found.table, expected.table, check_exact=True)
    assert found.table["ci_high"].tolist() == [float("inf")]


@pytest.mark.usefixtures("files")
def test_compare_prints_csv_with_infinite_ends_and_says_the_rest_on_stderr(rankeval):
    given = ("compare", "qrels", "good.run", "bad.run", "-m", "RR", "--baseline", "bad.run", "--claim", "better")
    code, out, err = rankeval(*given, "--format", "csv")
    systems = {run: rk.evaluate("qrels", run, measures=["RR"]) for run in ("good.run", "bad.run")}
    expected = rk.compare(systems, baseline="bad.run", claim="better")
    header, row = (line.split(",") for line in out.splitlines())
    assert (code, header) == (0, list(expected.table))
    assert dict(zip(header, row, strict=True))["ci_high"] == "inf"
    assert err.splitlines() == [f"note: {each}" for each in (*expected.findings, expected.caption, *expected.notes)]
    unadjusted = rankeval(*given, "--correction", "bh", "--format", "csv")[1].splitlines()[1].split(",")
    assert dict(zip(header, unadjusted, strict=True))["ci_high_adjusted"] == ""


CALLS = {
    "evaluate": rk.evaluate,
    "evaluate-dataset": rk.evaluate_dataset,
    "compare": rk.compare,
    "guard register": rk.Guard.register,
    "guard freeze": rk.Guard.freeze,
    "guard gate": rk.Guard.gate,
    "guard verify": rk.Guard.verify,
    "guard status": rk.Guard.status,
}
FILES = {*COLLECTION.split(), "systems", "ledger", "project", "output", "wide"}
RULES = {
    "exclude_self",
    "ties",
    "missing",
    "no_relevant",
    "score_dtype",
    "depth",
    "convention",
    "collection_size",
    "level",
}
OWN = {
    "evaluate": {"complete", "judged_only", "no_summary", "zscores", "qrels_format", "per_query", "qrels", "runs"},
    "evaluate-dataset": {"per_query"},
    "compare": {"qrels", "runs"},
    "guard freeze": {"fresh"},
    "guard gate": {"candidate"},
    "guard verify": {"report"},
}


def command_of(path: str):
    """Return a command as Typer made it."""
    found = typer.main.get_command(cli.app)
    for name in path.split():
        found = found.commands[name]
    return found


@each_row("path", CALLS)
def test_an_option_has_the_name_and_the_default_of_the_argument(path):
    """So a command hands its options on, and an error about an argument is one about the option."""
    known = inspect.signature(CALLS[path]).parameters
    for option in command_of(path).params:
        if option.name not in known:
            assert option.name in FILES | RULES | OWN.get(path, set()), option.name
        elif option.default is not None and option.name not in {"measures", "secondary"}:
            assert option.default == known[option.name].default, option.name


def test_the_help_of_an_option_names_all_that_may_be_chosen():
    for rule in ("ties", "missing", "no_relevant", "score_dtype"):
        assert all(choice in OPTIONS[rule][2] for choice in CHOICES[rule]), rule
    assert all(claim in OPTIONS["claim"][2] for claim in CLAIMS)


@pytest.mark.usefixtures("files")
def test_hints_of_compare_name_its_options(rankeval):
    given = ("compare", "qrels", "good.run", "bad.run", "-m", "RR", "--test", "bootstrap")
    baseline = ("--baseline", "bad.run", "--claim", "not_worse")
    assert "margin above 0" in rankeval(*given[:-2], *baseline)[2]
    assert "--resamples is 0; expected a whole number" in rankeval(*given, "--resamples", "0")[2]
    assert "--alpha" in rankeval(*given, "--alpha", "1.5")[2]
    assert "--seed is -1" in rankeval(*given, "--seed", "-1")[2]
    assert "unknown family 'each'" in rankeval(*given, "--family", "each")[2]


@pytest.mark.usefixtures("without_formula")
def test_drawn_orders_of_ties_are_said_with_their_error(rankeval):
    """Below a table; on stderr where stdout is for programs; values that are exact have no such line."""
    Path("qrels").write_text("".join(f"q 0 d{number} {int(number < 5)}\n" for number in range(40)))
    Path("tied.run").write_text("".join(f"q Q0 d{number} 1 1 tied\n" for number in range(40)))
    ev = rk.evaluate("qrels", "tied.run", measures=["SquaredAP", "AP"])
    error = standard_errors(ev)["SquaredAP"].iloc[0]
    note = "mean over 400 drawn orders of tied rows, where there were too many: SquaredAP in 1 query "
    note += f"(standard error of the mean {error:.2g})"
    code, out, err = rankeval("evaluate", "qrels", "tied.run", "-m", "SquaredAP", "-m", "AP")
    assert (code, out.splitlines()[-1], err) == (0, note, "")
    code, out, err = rankeval("evaluate", "qrels", "tied.run", "-m", "SquaredAP", "-m", "AP", "--format", "json")
    assert json.loads(out)[0]["SquaredAP"] == ev.scores[0, 0]
    assert f"note: {note}" in err.splitlines()
    assert "drawn" not in rankeval("evaluate", "qrels", "tied.run", "-m", "AP")[1]


@pytest.mark.usefixtures("without_formula")
def test_measures_are_listed_by_name(rankeval):
    code, out, _ = rankeval("measures", "--format", "json")
    assert code == 0
    assert {"nDCG", "AP", "RR"} <= {row["name"] for row in json.loads(out)}
    listed = {row["name"]: row["ties"] for row in json.loads(out)}
    assert listed["AP"] == "exact"
    assert listed["SquaredAP"] == (
        "exact up to 8 tied rows or 1,000 distinct orders of them, else drawn with its standard error"
    )
    lines = rankeval("measures", "--wide")[1].splitlines()
    assert next(line for line in lines if line.startswith("nDCG ")).endswith(" exact")
    assert next(line for line in lines if line.startswith("SquaredAP ")).endswith(" exact or drawn")


def test_measures_are_searched_by_name_title_and_alias(rankeval):
    """A name that nothing contains is answered with the nearest one."""
    for words, expected in (("Reciprocal rank", {"RR", "ERR"}), ("map_cut", {"AP"}), ("nDCG@10", {"nDCG"})):
        assert expected <= {row["name"] for row in json.loads(rankeval("measures", words, "--format", "json")[1])}
    code, out, err = rankeval("measures", "nDGC")
    assert (code, out) == (2, "")
    assert "unknown measure 'nDGC'; did you mean 'nDCG'" in err
    assert "leave out the name" in rankeval("measures", "DCG", "--format", "markdown")[2]


def test_the_version_is_printed(rankeval):
    assert rankeval("--version") == (0, f"rankeval-mlflow {rk.__version__}\n", "")


def test_doctor_names_versions_hosts_and_ledger(rankeval):
    code, out, _ = rankeval("doctor")
    assert code == 0
    said = {line[:16].rstrip(): line[17:] for line in out.splitlines()}
    assert said["rankeval-mlflow"] == rk.__version__
    assert said["host mlflow"].startswith("MLflow: ")
    assert said["ledger"] == "switched off"


def test_doctor_finds_the_other_package_of_the_name(rankeval, tmp_path, monkeypatch):
    info = tmp_path / "site" / "rankeval-0.8.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rankeval\nVersion: 0.8.2\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    code, _, err = rankeval("doctor")
    assert code == 2
    assert "rankeval 0.8.2, another project" in err
    assert "pip uninstall rankeval" in err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "qrels", "no.run"], "no.run"),
        (["evaluate", "no.qrels", "good.run"], "no.qrels"),
        (["evaluate", "qrels", "nan.run"], "nan"),
        (["evaluate", "qrels", "good.run", "-m", "nDGC@10"], "did you mean 'nDCG@10'"),
        (["evaluate", "qrels", "good.run", "--convention", "trec_eval"], "trec_eval-10"),
        (["compare", "qrels", "good.run"], "two runs or more"),
        (["compare", "qrels", "good.run", "bad.run", "--test", "tt"], "unknown test 'tt'"),
        (["run", "quickstart", "--set", "cv.n_split=3"], "did you mean 'n_splits'"),
        (["run", "quikstart"], "did you mean 'quickstart'"),
        (["run", "quickstart", "--set", "measures=[nDGC@10]"], "did you mean 'nDCG@10'"),
        pytest.param(["run", "letor"], "set data.path", marks=pytest.mark.needs("xgboost", "catboost")),
        (["guard", "looks", "nobody", "nothing", "--ledger", "sqlite:///there-is.db"], "no collection 'nothing'"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_code_2(rankeval, arguments, said):
    Path("nan.run").write_text(GOOD.replace("q2 Q0 a 1 9", "q2 Q0 a 1 nan"))
    code, out, err = rankeval(*arguments)
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("error: ")
    assert said in err


@each_row("arguments", [["evaluate"], ["no-such-command"], ["measures", "--format", "xml"]])
def test_bad_use_is_exit_code_2(rankeval, arguments):
    assert rankeval(*arguments)[0] == 2


def test_a_server_that_is_down_still_prints_the_result_and_is_exit_code_2(rankeval, tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    small = ["data.arguments={n_queries: 40, n_candidates: 10}", "rankers.boosted-trees.params={max_iter: 3}"]
    settings = [*small, "rankers.boosted-trees.grid={}", "tracking.uri=http://127.0.0.1:9"]
    code, out, err = rankeval("run", "quickstart", *(part for one in settings for part in ("--set", one)))
    assert code == 2
    assert "boosted-trees" in out
    assert "Report:  rankeval-out/quickstart/report.html" in out
    assert "rankeval mlflow resend" in err
    assert str(tmp_path) in err


def test_the_commands_of_a_host_are_its_own(rankeval):
    assert "mlflow" in rankeval("--help")[1]
    assert "resend" in rankeval("mlflow", "--help")[1]


def alone(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return forking.run("from rankeval.cli import main; main()", *arguments, **options)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['rankeval', '--help']\n"
        "from rankeval import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('mlflow', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


MORE_OPTIONS = [pytest.param(options, marks=pytest.mark.rest) for options in ([], ["--format=csv", "-q"])]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("options", [["--format=trec", "-q", "-m", "all_trec"], *MORE_OPTIONS])
def test_evaluating_files_does_without_pandas(options):
    """Its import would take as long as reading a million lines."""
    code = (
        f"import sys; sys.argv = ['rankeval', 'evaluate', 'qrels', 'good.run', *{options}]\n"
        "from rankeval import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('pyarrow', 'pandas', 'scipy', 'pyarrow.parquet') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['pyarrow']", done.stderr


def in_a_terminal(*arguments: str, cwd: Path, env: dict[str, str]) -> str:
    """Return what a command prints to a terminal of 80 columns, as its driver got it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-c", "from rankeval.cli import main; main()", *arguments]
    environment = {**env, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, cwd=cwd, env=environment) as run:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # how Linux says that the last writer is gone
            while part := os.read(ours, 4096):
                said += part
        os.close(ours)
        assert run.wait() == 0, run.stderr.read()
    return said.decode().replace("\r\n", "\n")


def without_ledger() -> dict[str, str]:
    """Return the environment of a user whose project keeps the ledger that its file names."""
    return {name: value for name, value in os.environ.items() if name not in {"RANKEVAL_LEDGER", "COLUMNS"}}


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> tuple[Path, str]:
    """Run the shipped file as it is in a new project, in a pipe; return the folder and what was printed.

    MLflow's tables are there, since the migrations that make them take a third of the time.
    """
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").touch()
    shutil.copy(empty_database, folder / "mlflow.db")
    first = alone("run", "quickstart", cwd=folder, env=without_ledger())
    assert first.returncode == 0, first.stderr
    return folder, first.stdout


def assert_fits_15_lines_of_80_columns(said: str) -> None:
    lines = said.rstrip("\n").split("\n")
    assert len(lines) <= 15, said
    assert max(map(len, lines)) <= 80, said
    header = next(line for line in lines if line.startswith("ranker"))
    assert re.split(" {3,}", header) == ["ranker", "dev nDCG@10", "test nDCG@10", "difference", "p adjusted"]
    assert [line.partition(":")[0] for line in lines[-3:]] == ["Report", "MLflow", "Ledger"]
    assert lines[-1].endswith("rankeval-out/quickstart/ledger")
    assert not re.search("[0-9a-f]{20}|\x1b", said)


def test_the_quickstart_runs_whole_in_15_lines_of_80_columns(quickstart):
    """Guard with its own ledger, MLflow on sqlite, report."""
    folder, printed = quickstart
    assert_fits_15_lines_of_80_columns(printed)
    assert "This run: 2 rankers trained, 1 look added." in printed
    assert "mlflow ui --backend-store-uri sqlite:///mlflow.db\n" in printed
    assert "beats ridge by" in printed
    with contextlib.closing(sqlite3.connect(folder / "mlflow.db")) as store:
        assert store.execute("SELECT status, count(*) FROM runs GROUP BY 1").fetchall() == [("FINISHED", 3)]


@pytest.mark.rest
def test_the_quickstart_runs_again_for_nothing_in_a_terminal_and_with_its_digests(quickstart):
    """The second run trains nothing and adds no look; the digests are for those who ask."""
    folder, _ = quickstart
    again = in_a_terminal("run", "quickstart", cwd=folder, env=without_ledger())
    assert_fits_15_lines_of_80_columns(again)
    assert "This run: 0 rankers trained, 0 looks added." in again
    digests = alone("run", "quickstart", "--verbose", cwd=folder, env=without_ledger()).stdout
    assert re.search("as of head [0-9a-f]{64}; plan [0-9a-f]{20};", digests)
    assert "won/tied/lost" in digests


@pytest.mark.rest
def test_the_quickstart_makes_its_store(tmp_path):
    """With MLflow's tables, in a folder that has none."""
    small = ["data.arguments={n_queries: 40, n_candidates: 10}", "rankers.boosted-trees.params={max_iter: 3}"]
    done = alone("run", "quickstart", *(part for one in small for part in ("--set", one)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mlflow.db").is_file()


def test_the_readme_shows_the_headline_of_the_quickstart(quickstart):
    """As its command prints it, with the gains that the alternative text of the picture counts."""
    folder, printed = quickstart
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    headline = printed.partition("\n\n")[0]
    assert f"```text\n{headline}\n```" in text
    row = next(csv.DictReader((folder / "rankeval-out" / "quickstart" / "comparison.csv").open(encoding="utf-8")))
    counted = re.search(r"!\[The report of .*?: (\d+) queries won, (\d+) tied, (\d+) lost\]", text).groups()
    assert counted == (row["wins"], row["ties"], row["losses"])


@pytest.mark.shared
@each_row(
    ("expected", "run", "options"),
    [
        ("out.test", "results.test.gz", []),
        ("out.test.aq", "results.test.gz", ["-m", "all_trec", "-q"]),
        ("out.test.aqcM", "results.trunc", ["-m", "all_trec", "-q", "-c", "-M", "100"]),
        ("out.test.aqZ", "results.test.gz", ["-m", "all_trec", "-q", "-Z", "zscores_file"]),
    ],
)
def test_the_trec_format_is_what_trec_eval_prints(rankeval, shared, expected, run, options):
    """Options and names as trec_eval has them, the output to the byte."""
    folder = shared / "trec_eval_test"
    files = (folder / "qrels.test.gz", folder / run)
    options = [folder / option if option == "zscores_file" else option for option in options]
    code, out, _ = rankeval("evaluate", *files, "--format", "trec", "--convention", "trec_eval-10", *options)
    assert (code, out) == (0, (folder / expected).read_text())


@pytest.mark.usefixtures("files")
def test_the_options_of_trec_eval_go_with_every_format(rankeval):
    """-l raises the level of relevance, -c counts missing queries; -n makes sense in one format only."""
    Path("short.run").write_text("q2 Q0 a 1 9 short\n")
    code, out, _ = rankeval("evaluate", "qrels", "short.run", "-m", "P@1", "-l", "2", "-c", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"run": "short.run", "P@1": 0.5}])
    code, out, _ = rankeval("evaluate", "qrels", "short.run", "-n", "-q", "--format", "trec", "-m", "P.1")
    assert (code, out) == (0, "P_1                   \tq2\t1.0000\n")
    code, _, err = rankeval("evaluate", "qrels", "short.run", "-n")
    assert code == 2
    assert "--format trec" in err
    for ours, theirs in (("nDCG@10", "ndcg_cut.10"), ("P@5", "P.5"), ("map@100", "map_cut.100")):
        code, _, err = rankeval("evaluate", "qrels", "short.run", "--format", "trec", "-m", ours)
        assert code == 2
        assert f"unknown measure of trec_eval {ours!r}; did you mean {theirs!r}?" in err
        assert rankeval("evaluate", "qrels", "short.run", "--format", "trec", "-m", theirs)[0] == 0
    assert (
        "unknown measure of trec_eval"
        in rankeval("evaluate", "qrels", "short.run", "--format", "trec", "-m", "RR@5")[2]
    )


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("option", "value"), [("--score-dtype", "float32"), ("--convention", "trec_eval-9.0.8-float32")]
)
def test_scores_are_compared_as_in_either_release_of_trec_eval_9_0_8(rankeval, option, value):
    """The one of 2020 holds scores in 32 bits, where 16777217 is 16777216 and the greater id goes first."""
    Path("close.run").write_text("q1 Q0 a 1 16777216 t\nq1 Q0 A 2 16777217 t\n")
    arguments = ("evaluate", "qrels", "close.run", "-m", "map", "-q", "-n", "--format", "trec")
    assert rankeval(*arguments)[:2] == (0, "map                   \tq1\t0.5000\n")
    assert rankeval(*arguments, option, value)[:2] == (0, "map                   \tq1\t1.0000\n")
    code, out, _ = rankeval("evaluate", "qrels", "close.run", "-m", "AP", option, value)
    assert (code, "; precision of scores: 32 bits\n" in out) == (0, True)
    assert "constant scores: all rows are tied in 1 of 1 query" in out
    code, _, err = rankeval(*arguments, "--score-dtype", "float16")
    assert (code, err) == (
        2,
        "error: unknown value of the rule score_dtype 'float16'; did you mean 'float64' or 'float32'?\n",
    )


@pytest.mark.usefixtures("files")
def test_the_size_of_the_collection_reaches_what_needs_it(rankeval):
    """-N is what Accuracy and FallOut need; without it the message names the option."""
    measures = ("-m", "Accuracy@1", "-m", "FallOut(rel=2)", "-m", "AP")
    arguments = ("evaluate", "qrels", "good.run", *measures, "--format", "json")
    names = ["Accuracy(collection_size=1000)@1", "FallOut(rel=2, collection_size=1000)", "AP"]
    expected = rk.evaluate("qrels", "good.run", measures=names).aggregate().to_dict()
    code, out, _ = rankeval(*arguments, "-N", "1000")
    assert (code, json.loads(out)) == (0, [{"run": "good.run", **expected}])
    code, _, err = rankeval(*arguments)
    assert code == 2
    assert "--collection-size: Accuracy needs collection_size; give the size by -N" in err


@pytest.mark.usefixtures("files")
def test_single_rules_are_options_and_hints_name_them(rankeval):
    """What Python says as ties='docid' is --ties docid here."""
    Path("tied.run").write_text("q1 Q0 a 1 9 t\nq1 Q0 b 2 9 t\n")
    code, out, err = rankeval("evaluate", "qrels", "tied.run", "-m", "RR", "-M", "1")
    assert (code, out) == (2, "")
    assert "choose --ties docid or" in err
    code, out, err = rankeval("evaluate", "qrels", "tied.run", "-m", "RR", "--convention", "sklearn")
    assert code == 2
    assert "--missing empty scores empty rankings there, --missing skip leaves them out" in err
    arguments = ("evaluate", "qrels", "tied.run", "-m", "RR", "-M", "1", "--missing", "skip", "--format", "csv")
    assert rankeval(*arguments, "--ties", "docid")[:2] == (0, "run,RR\ntied.run,0.0\n")
    assert rankeval(*arguments, "--ties", "stable")[:2] == (0, "run,RR\ntied.run,1.0\n")
    assert "unknown value of the rule ties" in rankeval(*arguments, "--ties", "by chance")[2]
    assert "-c is --missing empty with rankeval" in rankeval(*arguments, "-c", "--ties", "docid")[2]
    given = ("compare", "qrels", "good.run", "tied.run", "-m", "RR", "--format", "csv")
    code, out, _ = rankeval(*given, "--missing", "zero", "--ties", "worst")
    assert code == 0
    assert pd.read_csv(StringIO(out))[["mean_baseline", "mean_system"]].to_numpy().tolist() == [[1.0, 0.25]]
