"""A host is one declaration: this file's `HOST` is found by help, doctor, errors and experiment files."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest
from tables import each_row

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

class Journal:
    def log(self, record, *, experiment, uri=None):
        return TrackedRun("7", (), "7")

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
JOURNAL = Host("Runs in a journal", tracker=Journal, label="Journal")
MUTE = Host("Nothing but a title")
"""
ENTRY_POINTS = """
[rankeval.hosts]
diary = diary_host:HOST
mute = diary_host:MUTE
fails = diary_host:FAILS
journal = diary_host:JOURNAL
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


@pytest.mark.further
@each_row(
    ("host", "code", "line"), [("diary", 0, "diary:   cat diary.txt"), ("fails", 2, ""), ("journal", 0, "Journal: 7")]
)
def test_the_command_calls_a_tracker_by_its_name(host, code, line, capsys, monkeypatch):
    """Nothing that a run prints or writes names a tracker other than the one that logged it."""
    settings = [part for one in SMALL for part in ("--set", one)]
    monkeypatch.setattr(
        sys, "argv", ["rankeval", "run", "quickstart", *settings, "--set", f"tracking={{host: {host}}}"]
    )
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    assert stop.value.code == code
    assert line in out.splitlines() or not line
    assert host in err or not code
    report = Path("rankeval-out/quickstart/report.html").read_text()
    assert not any("MLflow" in text for text in (out, err, report))
