"""The example of five minutes ends as it says, on its own server: a gate moves the alias, and nobody sees a score."""

from __future__ import annotations

import re
from pathlib import Path

import forking
import mlflow
import pytest

from rankeval.ledger.discovery import FOLDER, ledger_url
from rankeval.ledger.ledger import Ledger

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "09_five_minutes_mlflow.py"


@pytest.mark.rest
@pytest.mark.server
def test_the_gate_moves_the_alias_once_and_a_second_run_costs_no_decision(tmp_path):
    """Both in what it prints and in what server and ledger stored. `.ci/run` runs it too, from the wheel."""
    (tmp_path / "pyproject.toml").touch()
    outputs = []
    runs = [["moved from no version to version 1", "stays with version 1", "stays with version 1"], ["stays"] * 3]
    for moves in runs:
        done = forking.run(EXAMPLE)
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
        said = re.findall(r"^digits@champion: (.*?)[.;]", done.stdout, re.MULTILINE)
        assert [line.startswith(move) for line, move in zip(said, moves, strict=True)] == [True] * 3, said
        outputs.append(done.stdout)
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80
    assert not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"
    assert re.findall(r"^ +(\d)   (.*?)   .* (first|tied|below) ", outputs[0], re.MULTILINE) == [
        ("1", "trees", "first"),
        ("2", "trees, fewer bins", "tied"),
        ("3", "ridge", "below"),
    ]
    assert re.search(r"moved from no version to version 1\..*decision 1 of 20\.", outputs[0])
    assert "?workflowType=machine_learning" in outputs[0]
    entries = Ledger(ledger_url(tmp_path / "five-minutes-ledger")).read().entries
    assert [one.kind for one in entries].count("decide") == 3
    assert "open" not in [one.kind for one in entries]
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert int(client.get_model_version_by_alias("digits", "champion").version) == 1
    versions = client.search_model_versions("name = 'digits'")
    assert len(versions) == 3 * len(outputs)
    assert max(len(version.tags) for version in versions) <= 3
    experiment = client.get_experiment_by_name("digits")
    runs = client.search_runs([experiment.experiment_id])
    assert "promotion" not in {run.data.tags.get("rankeval.kind") for run in runs}
    apart = client.search_runs([client.get_experiment_by_name("digits promotions").experiment_id])
    assert [run.data.tags["rankeval.kind"] for run in apart] == ["promotion"] * len(versions)
    scored = {name for run in runs for name in run.data.metrics}
    assert "nDCG_at_10" in scored
    assert not [name for name in scored if name.startswith("test/")]
    assert "test" not in {run.data.params.get("role") for run in runs if run.data.metrics}
