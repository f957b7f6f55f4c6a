"""rankeval mlflow promote: exit codes, floors from files, and the job of a CI service that calls it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from circles import choose
from rich.cells import cell_len
from typer.testing import CliRunner

import rankeval.cli
from rankeval._source import PLACEHOLDER
from rankeval.cli.exits import caught
from rankeval.errors import InvalidInput, UnknownName
from rankeval.tracking import host


def run(*arguments):
    """Call a command as the program does."""
    return CliRunner().invoke(host("mlflow").commands(), ["promote", *map(str, arguments)])


@pytest.mark.further
def test_a_better_version_exits_with_0_and_an_equal_one_with_1(ranker, client):
    better, equal = ranker.add(0.1), ranker.add(scores=None)
    options = ("--alias", "champion", "--measure", "nDCG@10", "--claim", "better", "--margin", 0)
    result = run("ranker", "--version", better, *options)
    assert (result.exit_code, ranker.holder()) == (0, better), result.output
    first, second, *_ = result.stdout.splitlines()
    assert first.startswith("ranker@champion: moved from version 1 to version 2. ranker v2 beats ranker v1 by +0.")
    run_id = second.removeprefix("record: run ")[:32]
    assert client.get_run(run_id).data.params["decision"] == "accepted"
    result = run("ranker", "--version", equal, *options)
    assert (result.exit_code, ranker.holder()) == (1, better)
    assert "stays with version 2; version 3 is rejected" in result.stdout
    assert run("ranker", "--version", better, *options).exit_code == 0, "a job that is run again does no harm"


def test_one_that_was_overtaken_exits_with_1(ranker, meanwhile):
    better, other = ranker.add(0.1), ranker.add(0.1)
    meanwhile("set_model_version_tag", lambda: ranker.put(other))
    result = run("ranker", "--version", better, "-m", "nDCG@10")
    assert (result.exit_code, ranker.holder()) == (1, other)
    assert "Meanwhile the alias went to version 3" in result.stdout


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".parquet", marks=pytest.mark.rest)])
def test_floors_by_the_slices_of_a_file(ranker, tmp_path, suffix):
    better, path = ranker.add(0.1), tmp_path / f"kinds{suffix}"
    kinds = pd.DataFrame({"qid": np.arange(200), "kind": np.where(np.arange(200) % 2, "head", "tail")})
    kinds.to_csv(path, index=False) if suffix == ".csv" else kinds.to_parquet(path)
    asked = ("ranker", "--version", better, "-m", "nDCG@10", "--slices", path, "--alpha", 0.075, "--budget", 3)
    assert run(*asked, "--floor", "0.05", "--dry-run").exit_code == 0
    assert run(*asked, "--floor", "tail=0.001", "--floor", "head=0.2", "--margin", "0.2", "--dry-run").exit_code == 1
    result = run(*asked, "--floor", "tail=0.05")
    assert result.exit_code == 0
    assert "decision 3 of 3" in result.stdout
    assert "tail" in result.stdout


def test_the_groups_of_a_file(ranker, tmp_path):
    """The claim is tested over them."""
    path = tmp_path / "turns.csv"
    pd.DataFrame({"qid": np.arange(200), "conversation_id": np.arange(200) // 5}).to_csv(path, index=False)
    result = run("ranker", "--version", ranker.add(0.1), "-m", "nDCG@10", "--groups", path)
    assert result.exit_code == 0
    assert "on 40 conversations of 200 queries" in result.stdout


BAD_USE = [
    (("--groups", "gone.csv"), "--groups gone.csv: .*No such file"),
    (("--groups", "conversation"), "--groups conversation: .*No such file"),
    (("--floor", "x=y"), "--floor is x=y; expected a loss such as 0.05, or tail=0.05"),
    (("--floor", "0.1", "--floor", "a=0.1"), "--floor is 0.1 a=0.1; expected each slice once"),
    (("--floor", "a=0.2", "--floor", "a=0.1"), "--floor is a=0.2 a=0.1; expected each slice once"),
    (("--floor", "0.1", "--slices", "gone.csv"), "--slices gone.csv: .*No such file"),
    (
        ("--floor", "0.1", "--slices", "two.csv"),
        "expected a column qid and one more, the attribute; found qid, a, b",
    ),
    (("--floor", "0.1"), "--floor is 0.1; expected both or neither of slices and floors"),
    (("--claim", "best"), "--claim is 'best'"),
    (("--uri", "nowhere:/x"), "nowhere"),
]
"""Options of the command and what the error says."""


def test_bad_use_is_an_error(ranker, tmp_path, monkeypatch):
    """Each of a line of options."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("qid,a,b\n1,2,3\n")
    version, failures = ranker.add(0.1), {}
    for arguments, message in BAD_USE:
        error = run("ranker", "--version", version, "-m", "nDCG@10", *arguments).exception
        refused = isinstance(error, (InvalidInput, rankeval.errors.TrackingError))
        if not refused or not re.search(message, str(error)):
            failures[arguments] = repr(error)
    assert failures == {}


@pytest.mark.usefixtures("ranker")
def test_bad_use_exits_with_2(monkeypatch, capsys):
    """As the program does: in one line."""
    asked = ["rankeval", "mlflow", "promote", "rankr", "--version", "1", "--measure", "nDCG@10"]
    monkeypatch.setattr(sys, "argv", asked)
    with pytest.raises(SystemExit) as stopped:
        caught(rankeval.cli.app)
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "error: unknown registered model 'rankr'; did you mean 'ranker'?\n"
    assert isinstance(run("rankr", "--version", 1, "-m", "AP").exception, UnknownName)


GUIDE = Path(__file__).parents[3] / "examples" / "guides" / "promoting.md"


def jobs():
    """Return the commands of the job in the guide, and check what lets one run at a time."""
    written = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    actions = yaml.safe_load(written["promote.yml"])
    job = actions["jobs"]["promote"]
    assert "version" in actions[True]["workflow_dispatch"]["inputs"]  # YAML reads the key `on` as true
    assert job["concurrency"] == {"group": "promote-ranker-champion", "cancel-in-progress": False}
    assert job["env"]["VERSION"] == "${{ inputs.version }}"
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.docs
@pytest.mark.random
def test_the_job_of_the_guide_runs(ranker, store, tmp_path):
    """Its commands are run by a shell: 0 for the better version, 1 for one that is not, 2 for one that is none."""
    install, *commands = jobs()
    assert install == f'pip install "rankeval-mlflow @ {PLACEHOLDER}"'
    better, worse = ranker.add(0.1), ranker.add(-0.1)
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "MLFLOW_TRACKING_URI": store}
    expected = [
        (0, "ranker@champion: moved from version 1 to version 2"),
        (1, "ranker@champion: stays with version 2; version 3 is rejected"),
        (2, "error: ranker has no version 9"),
    ]
    codes = []
    asked = (better, worse, "9")[: choose(default=1, full=3)]  # the other exit codes have cases of their own below
    for version in asked:
        done = subprocess.run(
            ["bash", "-e", "-c", "\n".join(commands)], env={**environment, "VERSION": version}, cwd=tmp_path,
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
        codes.append((done.returncode, done.stdout.partition(".")[0] or done.stderr.partition(",")[0]))
    assert codes == expected[: len(asked)]
    assert ranker.holder() == better


def test_a_spent_budget_exits_with_2_and_names_the_ways_on(ranker, monkeypatch, capsys):
    for version, code in ((ranker.add(0.0), 1), (ranker.add(0.1), 2)):
        asked = ["promote", "ranker", "--version", version, "-m", "nDCG@10", "--budget", "1"]
        monkeypatch.setattr(sys, "argv", ["rankeval", "mlflow", *asked])
        with pytest.raises(SystemExit) as stopped:
            caught(rankeval.cli.app)
        assert stopped.value.code == code
    said = capsys.readouterr()
    assert "decision 1 of 1, a single release" in said.out
    assert "budget: ranker@champion has made its 1 decision on these queries, and decides no more" in said.err
    assert "fresh queries" in said.err


def test_what_to_do_is_said_in_options(client):
    client.create_registered_model("fresh")
    client.create_model_version("fresh", "s3://models/fresh")
    refused = run("fresh", "--version", 1, "-m", "AP").exception
    assert isinstance(refused, InvalidInput)
    assert (refused.argument, refused.remedy) == ("--first", "to give it to this version without a comparison: --first")
    refused = run("fresh", "--version", 1, "-m", "AP", "--claim", "not_worse").exception
    assert refused.argument == "--margin"


@pytest.mark.further
@pytest.mark.parametrize(
    "command",
    [
        ("why", "--version", 2),
        ("promote", "--version", 2, "--measure", "nDCG@10", "--again"),
        ("rollback", "--reason", "it is slow in production since the new index of last week was built", "--who", "ann"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.usefixtures("champions")
def test_a_terminal_of_80_columns_has_room(command, monkeypatch):
    """A path or an address to copy has a line of its own, however long."""
    monkeypatch.setenv("COLUMNS", "80")
    name, *arguments = map(str, command)
    done = CliRunner().invoke(host("mlflow").commands(), [name, "ranker", *arguments])
    assert done.exit_code in (0, 1), done.output
    long = [line for line in done.output.splitlines() if cell_len(line) > 80]
    assert [line for line in long if len(line.split()) > 2 or "/" not in line] == []
