"""The reference of keys is the model: nothing is missing, nothing is made up, and the guide shows it as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from rankeval.experiment import shipped_configs
from rankeval.experiment.config import keys_markdown, keys_text, list_keys
from rankeval.experiment.schema import ExperimentConfig

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guides" / "experiment_files.md"


def paths_of(value, prefix=""):
    """Yield the path of each key of a file, NAME for a ranker and [] for items of a list."""
    if isinstance(value, list):
        for one in value:
            yield from paths_of(one, f"{prefix.removesuffix('.')}[].")
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        path = f"{prefix}{'NAME' if prefix == 'rankers.' else key}"
        if path != "rankers.NAME":
            yield path
        if not path.endswith((".params", ".grid", ".arguments", ".limits")):
            yield from paths_of(inner, f"{path}.")


def test_the_guide_shows_the_keys_as_they_are():
    """Put the output of `rankeval run --keys --format markdown` between its marks if this fails."""
    shown = re.search(r"<!-- keys -->\n(.*)<!-- end of keys -->", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown[1].strip() == keys_markdown().strip()


def test_the_keys_of_the_shipped_experiments_are_listed():
    known = {key.path for key in list_keys()}
    for path in shipped_configs().values():
        found = set(paths_of(yaml.safe_load(path.read_text())))
        assert found
        assert found <= known


def test_every_key_is_listed_once_with_a_meaning():
    keys = list_keys()
    assert len({key.path for key in keys}) == len(keys)
    assert all(key.meaning for key in keys)
    assert {key.path for key in keys} >= set(ExperimentConfig.model_fields)
    by_path = {key.path: key for key in keys}
    assert (by_path["cv.n_splits"].kind, by_path["cv.n_splits"].default) == ("whole number at least 2", "5")
    assert by_path["split.test_size"].kind == "number above 0 and below 1"
    assert by_path["rankers.NAME.early_stopping_rounds"].kind == "whole number at least 1"
    assert by_path["data.loader"].default == "required"
    assert by_path["split.others"].kind == "error or drop"
    assert by_path["rankers.NAME.steps[].estimator"].default == "required"
    assert by_path["data.features"].kind == "list of text"


def test_the_command_prints_them_without_an_experiment(rankeval):
    text = rankeval("run", "--keys")[1]
    assert text == f"{keys_text()}\n"
    assert max(map(len, text.splitlines())) <= 80
    assert rankeval("run", "--keys", "--format", "markdown")[1] == keys_markdown()
    code, out, _ = rankeval("run")
    assert (code, "quickstart" in out, "letor" in out) == (2, True, True)


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "rankeval", "-h"], check=True, capture_output=True, text=True)
    assert re.search(r"Usage: rankeval \[OPTIONS\]", done.stdout)
