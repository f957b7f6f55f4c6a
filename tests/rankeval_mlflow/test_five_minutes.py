"""The example of five minutes ends as it says, on its own server: the alias moves for a better ranker only."""

from __future__ import annotations

import re
from pathlib import Path

import forking
import mlflow
import pytest

from rankeval.ledger.discovery import FOLDER

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "09_five_minutes_mlflow.py"


@pytest.mark.server
def test_the_alias_moves_for_a_better_ranker_and_stays_for_an_equal_one(tmp_path):
    """Both in what it prints and in what its server stored, which is whole."""
    (tmp_path / "pyproject.toml").touch()
    done = forking.run(EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80
    assert not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"
    said = re.findall(r"^digits@champion: (.*?)[.;]", done.stdout, re.MULTILINE)
    assert said == [
        "moved from no version to version 1",
        "moved from version 1 to version 2",
        "stays with version 2",
    ]
    assert re.findall(r"^ +(\d)   (.*?)   .* (first|tied|below) ", done.stdout, re.MULTILINE) == [
        ("1", "trees, fewer bins", "first"),
        ("2", "trees", "tied"),
        ("3", "ridge", "below"),
    ]
    assert "?workflowType=machine_learning" in done.stdout
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert int(client.get_model_version_by_alias("digits", "champion").version) == 2
    assert len(client.search_model_versions("name = 'digits'")) == 3
    experiment = client.get_experiment_by_name("digits")
    means = {
        run.info.run_name: run.data.metrics
        for run in client.search_runs([experiment.experiment_id])
        if "nDCG_at_10" in run.data.metrics
    }
    assert means["trees, fewer bins"]["test/nDCG_at_10"] > means["trees"]["test/nDCG_at_10"], "by chance alone"
