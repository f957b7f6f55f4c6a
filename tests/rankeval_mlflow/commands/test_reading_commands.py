"""rankeval mlflow list, compare, leaderboard: the numbers of the calls, in three forms, and exit codes."""

from __future__ import annotations

import csv
import io
import json

import forking
import mlflow
import pytest
from typer.testing import CliRunner

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.tracking import host


def run(*arguments):
    """Call a command as the program does."""
    return CliRunner().invoke(host("mlflow").commands(), list(arguments))


@pytest.fixture
def runs(small):
    """Log two evaluations; return the ids of their runs by name."""
    names = ("bm25", "ltr")
    return {name: rkm.log(small(name, seed=seed), report=False).run_id for seed, name in enumerate(names)}


def test_a_leaderboard_is_printed_in_three_forms(runs):
    board = rkm.leaderboard("Default", measure="AP")
    told = run("leaderboard", "Default", "-m", "AP")
    assert told.exit_code == 0
    assert board.caption in told.stdout
    parsed = json.loads(run("leaderboard", "Default", "-m", "AP", "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run("leaderboard", "Default", "-m", "AP", "--format", "csv").stdout)))
    for form in (parsed, rows):
        assert [row["run_id"] for row in form] == board.table["run_id"].tolist()
        assert {row["run_id"] for row in form} == set(runs.values())
        assert [float(row["value"]) for row in form] == board.table["value"].tolist()
    assert len(json.loads(run("leaderboard", "Default", "--limit", "1", "--format", "json").stdout)) == 1
    quick = json.loads(run("leaderboard", "Default", "--no-significance", "--format", "json").stdout)
    assert [row["group"] for row in quick] == ["", ""]


@pytest.mark.usefixtures("runs")
def test_what_is_not_ranked_is_told_beside_the_numbers(small):
    other = rkm.log(small("<cut>").subset(range(9)), report=False).run_id
    told = run("leaderboard", "Default", "--format", "csv")
    assert f"not ranked: {other} <cut>: other data" in told.stderr
    assert other not in told.stdout


def test_runs_are_compared_by_id_and_by_the_name_of_an_evaluation(runs, small):
    printed = run("compare", *runs.values(), "--baseline", "bm25", "-m", "AP", "--format", "json")
    back = rk.Comparison.from_json(printed.stdout)
    expected = rk.compare({name: small(name, seed=k) for k, name in enumerate(runs)}, baseline="bm25", measures=["AP"])
    assert back.table.equals(expected.table)
    assert expected.headline in run("compare", *runs.values(), "--baseline", "bm25", "-m", "AP").stdout
    short = [run_id[:8] for run_id in runs.values()]
    assert run("compare", *short, "-m", "AP").stdout == run("compare", *runs.values(), "-m", "AP").stdout


def test_tables_fit_a_terminal_and_show_ids_that_compare_takes(runs, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    listed = run("list", "Default")
    ids = [line.split()[0] for line in listed.stdout.splitlines()[2:4]]
    assert {*ids} == {run_id[:8] for run_id in runs.values()}
    board = run("leaderboard", "Default", "-m", "AP")
    for printed in (listed, board, run("compare", *ids), run("list", "--waiting"), run("resend")):
        assert printed.exit_code == 0
        assert max(map(len, printed.output.splitlines())) <= 80, printed.output
        assert "next: rankeval mlflow " in printed.stderr
    assert all(run_id[:8] in board.stdout and run_id not in board.stdout for run_id in runs.values())
    assert all(run_id in run("leaderboard", "Default", "--wide").stdout for run_id in runs.values())


def test_the_metrics_of_folds_are_not_listed(small):
    """A fold's last value is none of the run."""
    folds = {"nDCG_at_10_fold": 0.1, "fold_queries": 3.0, "fold_fit_seconds": 2.0}
    tracked = rkm.log(small(), report=False)
    for key, value in folds.items():
        mlflow.MlflowClient().log_metric(tracked.run_id, key, value, step=1)
    (row,) = json.loads(run("list", "--format", "json").stdout)
    assert "nDCG_at_10 " in row["metrics"]
    assert "fold" not in row["metrics"]


def test_the_role_of_the_listed_metrics_is_said_if_there_are_several(small):
    """The bare names are those of one role."""
    alone = rkm.log(small("alone"), role="test", report=False).run_id
    both = rkm.log(small("both"), role="test", report=False).run_id
    rkm.log(small("both", seed=1), role="dev", run_id=both, report=False)
    found = {row["run"]: row for row in json.loads(run("list", "--format", "json").stdout)}
    assert found[both]["role"] == "test, dev"
    assert found[both]["metrics"].startswith("test: ")
    assert ":" not in found[alone]["metrics"]
    first = mlflow.get_run(both).data.metrics["AP"]
    assert f"AP {first:.4f}" in found[both]["metrics"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["leaderboard", "Defualt"],
        pytest.param(["compare", "0" * 32], marks=pytest.mark.rest),
        pytest.param(["compare"], marks=pytest.mark.rest),
    ],
)
def test_bad_use_exits_with_2_and_says_why(arguments, store, tmp_path):
    """As the program that a shell calls."""
    program = "from rankeval.cli import main; main()"
    done = forking.run(program, "mlflow", *arguments, "--uri", store, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith(("error: ", "Usage: "))
