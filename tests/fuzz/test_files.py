"""Damaged files of every kind: the rows that a plain reader finds, or one line that names the file; never more."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from circles import choose
from fuzz import kinds
from fuzz.budget import n_inputs
from fuzz.mutations import mutated

HERE = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)]), "RANKEVAL_LEDGER": "off"}


PARTS = choose(default=1, full=4)
"""Of each kind of input, so that the processes of a run share them and none comes near the limit of time."""


@pytest.mark.random
@pytest.mark.worth("the process starts with all readers and their libraries, which takes 3 s")
@pytest.mark.skipif(os.name != "posix", reason="needs limits of resources")
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_give_the_right_rows_or_one_named_error(tmp_path: Path, part):
    """No traceback, no hang of 10 s, no 2 GB, no row lost; a wrong input is ``python -m fuzz.worker N N+1``."""
    first, last = (n_inputs("files") * each // PARTS for each in (part, part + 1))
    complaints = []
    while first < last:
        done = subprocess.run(
            [sys.executable, "-m", "fuzz.worker", str(first), str(last), "at"],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=ENVIRONMENT,
        )
        complaints += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode == 0:
            break
        # It died of the input that it was trying: of the alarm, of memory, or of a crash of a library.
        at = int((tmp_path / "at").read_text())
        complaints.append([at, "", f"ended with {done.returncode}: {done.stderr[-500:]}"])
        first = at + 1
    assert complaints == []


COMMANDS = [
    ("qrels", kinds.QRELS, ["evaluate", "{}", "whole.run"]),
    ("run", kinds.RUN, ["evaluate", "whole.qrels", "{}", "-q"]),
    ("run.csv", kinds.CSV_RUN, ["evaluate", "whole.qrels", "{}", "--format", "json"]),
    ("run.jsonl", kinds.JSONL, ["compare", "whole.qrels", "{}", "whole.run"]),
    ("zscores", kinds.ZSCORES, ["evaluate", "whole.qrels", "whole.run", "--format", "trec", "-Z", "{}"]),
    ("config.yaml", kinds.CONFIG, ["run", "{}", "--set", "data.loader=no_such_module:load"]),
]


@pytest.mark.random
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_on_the_command_line(tmp_path: Path, part, capfd, monkeypatch):
    """Exit code 0 with a result, or 2 with one line that begins with "error: "; no control character on the way."""
    from rankeval import cli
    from rankeval._visible import visible

    monkeypatch.chdir(tmp_path)
    Path("whole.qrels").write_bytes(kinds.QRELS)
    Path("whole.run").write_bytes(kinds.RUN)
    for number in range(part, n_inputs("commands"), PARTS):
        name, example, command = COMMANDS[number % len(COMMANDS)]
        content = mutated(example, random.Random(f"command-{number}"))  # noqa: S311 - no secret
        Path(name).write_bytes(content)
        monkeypatch.setattr(sys, "argv", ["rankeval", *(name if word == "{}" else word for word in command)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capfd.readouterr()
        said = [line for line in err.splitlines() if not line.startswith(("note: ", "warning: ", "next: ", " "))]
        assert stop.value.code in {0, 2, None}, (number, content)
        assert visible(err, keep="\n") == err, (number, content)
        if stop.value.code == 2:
            assert (len(said), said[0].startswith("error: "), out) == (1, True, ""), (number, content)
            assert "RANKEVAL_TRACEBACK" not in said[0], (number, content)
        else:
            assert said == [], (number, content)
