"""A host is one declaration: this file's `HOST` is found by help, doctor, errors and experiment files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rankeval import cli
from rankeval.errors import ConfigError, RankevalWarning
from rankeval.experiment import load_config, run_experiment
from rankeval.tracking import TrackedRun

PACKAGE = """
from rankeval.tracking import Host, TrackedRun

class Diary:
    def log(self, record, *, experiment, uri=None):
        import json, pathlib
        pathlib.Path(uri).write_text(json.dumps([experiment, record.name, [child.name for child in record.children]]))
        return TrackedRun("1", (), f"cat {uri}")

class Broken:
    def log(self, record, *, experiment, uri=None):
        raise OSError("no server")

def commands():
    import typer

    app = typer.Typer()
    app.command()(lambda: print("Dear diary"))
    return app

HOST = Host("Runs in a text file", tracker=Diary, commands=commands, default_uri="diary.txt")
FAILS = Host("Fails in a way of its own", tracker=Broken)
MUTE = Host("Nothing but a title")
"""
ENTRY_POINTS = """
[rankeval.hosts]
diary = diary_host:HOST
mute = diary_host:MUTE
fails = diary_host:FAILS
broken = no_such_package:HOST
"""
SMALL = [
    "data.arguments={n_queries: 40, n_candidates: 10}",
    "rankers.boosted-trees.params={max_iter: 3}",
    "rankers.boosted-trees.grid={}",
    "cv.n_splits=2",
]


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    """Install a package of 20 lines that offers hosts."""
    site = tmp_path / "site"
    (site / "diary-1.0.dist-info").mkdir(parents=True)
    (site / "diary-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1.0\n")
    (site / "diary-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "diary_host.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("diary_host", None)


def said(capsys, monkeypatch, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["rankeval", *arguments])
    with pytest.raises(SystemExit):
        cli.main()
    return capsys.readouterr().out


def test_help_and_doctor_show_it_and_live_through_a_broken_one(capsys, monkeypatch):
    helped = said(capsys, monkeypatch, "--help")
    assert "Runs in a text file" in helped
    assert "cannot be loaded: ModuleNotFoundError" in " ".join(helped.replace("\u2502", " ").split())
    doctor = said(capsys, monkeypatch, "doctor")
    assert "host diary       Runs in a text file" in doctor
    assert "host broken      cannot be loaded: ModuleNotFoundError" in doctor


def test_only_hosts_with_commands_are_listed_under_commands(capsys, monkeypatch):
    """A host that only logs has nothing to run, and says so if it is called all the same."""
    helped = said(capsys, monkeypatch, "--help")
    assert "Nothing but a title" not in helped
    assert "Fails in a way of its own" not in helped
    assert said(capsys, monkeypatch, "diary") == "Dear diary\n"
    assert "host mute        Nothing but a title" in said(capsys, monkeypatch, "doctor")
    monkeypatch.setattr(sys, "argv", ["rankeval", "mute"])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err == "error: the host 'mute' has no commands\n"


def test_an_experiment_logs_to_it_at_its_own_default_address():
    result = run_experiment(load_config("quickstart", [*SMALL, "tracking={host: diary}"]))
    assert result.config.tracking.uri == "diary.txt"
    assert json.loads(Path("diary.txt").read_text()) == ["quickstart", "quickstart", ["ridge", "boosted-trees"]]
    assert result.tracked == TrackedRun("1", (), "cat diary.txt")


@pytest.mark.parametrize(
    ("host", "message"),
    [("dairy", "tracking: unknown host 'dairy'; did you mean 'diary'"), ("mute", "the host 'mute' logs no runs")],
)
def test_a_host_that_cannot_log_is_refused_before_data_is_loaded(host, message, monkeypatch):
    monkeypatch.setattr("rankeval.experiment.checks.find_loader", None)
    with pytest.raises(ConfigError, match=message):
        run_experiment({**load_config("quickstart").model_dump(mode="json"), "tracking": {"host": host}})


def test_a_host_that_fails_in_its_own_way_does_not_hide_the_result():
    with pytest.warns(RankevalWarning, match="the host 'fails' failed: OSError: no server"):
        result = run_experiment(load_config("quickstart", [*SMALL, "tracking={host: fails}"]))
    assert result.tracked is None
    assert result.report.is_file()
