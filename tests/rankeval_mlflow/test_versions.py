"""Any MLflow below 4 may be installed: a known break is named, and one that nobody tested is noted."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import mlflow
import pytest

from rankeval.errors import RankevalWarning
from rankeval_mlflow import versions
from rankeval_mlflow.delivery import connection


@pytest.mark.parametrize(
    ("start", "installed", "is_warned"),
    [
        ("3.19", "3.19.0", True),
        ("3.19", "3.19", True),
        ("3.19.1", "3.19.1", True),
        ("3.19.1", "3.19.0", False),
        ("3.1", "3.19.0", False),
    ],
)
def test_a_known_break_is_named_when_mlflow_is_imported_for_us(monkeypatch, recwarn, start, installed, is_warned):
    monkeypatch.setattr(versions, "BREAKS", {start: "runs are lost; install 3.18."})
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)
    importlib.reload(connection)
    said = [str(one.message) for one in recwarn if issubclass(one.category, RankevalWarning)]
    assert said == [f"MLflow {installed}: runs are lost; install 3.18."] * is_warned


@pytest.mark.parametrize(("installed", "is_noted"), [("3.9.0", False), ("4.0rc1", True), ("3.999.0", True)])
def test_a_version_that_nobody_tested_is_noted_and_no_warning(monkeypatch, installed, is_noted):
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)
    assert ("newer than the newest version tested" in versions.note_on_newer()) == is_noted


def test_the_versions_agree_with_those_that_pip_may_install():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    (pin,) = (one for one in project["dependencies"] if re.match(r"mlflow\b", one))
    assert pin == "mlflow>=3.9,<4"
    assert all(start.startswith("3.") for start in [versions.NEWEST_TESTED, *versions.BREAKS])
    assert not any(f"{mlflow.__version__}.".startswith(f"{start}.") for start in versions.BREAKS), (
        "tests run without it"
    )
