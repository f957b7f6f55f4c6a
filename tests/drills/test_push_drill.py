"""A host that takes results is ten lines: `rankeval push` gives it records, and check_host says what it does wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
from rankeval import cli
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.shelf import files
from rankeval.shelf.folder import packed
from rankeval.testing import check_host
from rankeval.tracking import Host, TrackedRun, host

PACKAGE = """
import hashlib, pathlib
from rankeval.errors import InvalidInput
from rankeval.shelf.folder import packed
from rankeval.tracking import Host, TrackedRun

def push(record, *, name, experiment, uri=None):
    run = hashlib.sha256(f"{experiment}/{name}".encode()).hexdigest()
    for number, (path, content) in enumerate(sorted(packed(record).items())):
        file = pathlib.Path(uri, run, str(number))
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.read_bytes() != content:
            raise InvalidInput(f"{name} holds another record")
        file.write_bytes(content)
    return TrackedRun(run, (), f"ls {uri}/{run}")

HOST = Host("A box of files", push=push, default_uri="box")
MUTE = Host("Nothing but a title")
"""
ENTRY_POINTS = "[rankeval.hosts]\nbox = box_host:HOST\nmute = box_host:MUTE\n"


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    """Install a package of a host."""
    site = tmp_path / "site"
    (site / "box-1.0.dist-info").mkdir(parents=True)
    (site / "box-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: box\nVersion: 1.0\n")
    (site / "box-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "box_host.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("box_host", None)


def commanded(capsys, monkeypatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["rankeval", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code, *capsys.readouterr()


@pytest.fixture
def saved(tmp_path):
    """Save an evaluation and a comparison."""
    systems = {
        name: rk.evaluate([1, 0, 1], scores, qid=["a", "a", "b"], measures="RR", name=name)
        for name, scores in (("old", [1, 2, 3]), ("new", [2, 1, 3]))
    }
    rk.save(systems["new"], tmp_path / "new", role="test")
    rk.save(rk.compare(systems), tmp_path / "final")
    return [tmp_path / "new", tmp_path / "final"]


def test_the_command_gives_it_records(saved, tmp_path, capsys, monkeypatch):
    box = tmp_path / "box"
    given = ("--host", "box", "--experiment", "letor", "--uri", str(box))
    code, out, err = commanded(capsys, monkeypatch, "push", *map(str, saved), *given)
    assert (code, err) == (0, f"next: rankeval site --experiment letor --host box --uri {box}\n")
    assert [line.partition(": ")[0] for line in out.splitlines()] == [str(one) for one in saved]
    for folder in saved:
        record = rk.read_record(folder)
        kept = {file.read_bytes() for file in box.rglob("*") if file.is_file()}
        assert {*packed(record).values()} <= kept
    assert len([*box.iterdir()]) == 2
    assert commanded(capsys, monkeypatch, "push", *map(str, saved), *given)[0] == 0, "the same again is no error"


def test_another_result_under_a_name_that_is_taken_is_refused(saved, tmp_path, capsys, monkeypatch):
    given = ("--host", "box", "--experiment", "letor", "--uri", str(tmp_path / "box"))
    commanded(capsys, monkeypatch, "push", str(saved[0]), *given)
    rk.save(rk.evaluate([1, 0], [1, 2], qid=["a", "a"], measures="RR"), tmp_path / "other" / "new")
    code, _, err = commanded(capsys, monkeypatch, "push", str(tmp_path / "other" / "new"), *given)
    assert code == 2
    assert err == "error: new holds another record\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "--host", "mute"], "the host 'mute' takes no results"),
        (["new", "--host", "boxx"], "unknown host 'boxx'; did you mean 'box'"),
        (["new", "--host", "box", "--run", "17"], "the host 'box' writes to no run that is there already"),
        (["nothing", "--host", "box"], "has no record: there is no record.json"),
    ],
)
def test_what_cannot_be_pushed_is_said(arguments, says, saved, tmp_path, capsys, monkeypatch):
    assert saved
    monkeypatch.chdir(tmp_path)
    code, _, err = commanded(capsys, monkeypatch, "push", *arguments, "--experiment", "x", "--uri", "box")
    assert code == 2
    assert says in err
    assert not Path("box").exists()


def test_it_passes_the_check(tmp_path):
    check_host(host("box"), str(tmp_path / "box"))
    check_host(files.HOST, str(tmp_path / "files"))


def test_the_host_of_folders_writes_what_save_writes(saved, tmp_path, monkeypatch):
    """And says how it is loaded."""
    monkeypatch.chdir(tmp_path)
    run = files.HOST.push(rk.read_record(saved[1]), name="../final", experiment="a/b")
    (there,) = {path.parent for path in Path("results").rglob("record.json")}
    assert str(there).startswith("results/")
    assert len(there.parts) == 3
    assert (there / "record.json").read_bytes() == (saved[1] / "record.json").read_bytes()
    assert str(eval(run.where, {"rankeval": rk})) == str(rk.load(saved[1]))  # noqa: S307 - our own line


def _loses(record, *, name, experiment, uri=None):
    folder = Path(uri, experiment, name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps({key: repr(value) for key, value in record.metrics.items()}))
    return TrackedRun("1", (), str(folder))


def _mutates(record, *, name, experiment, uri=None):
    record.metrics.pop("seconds", None)
    return _loses(record, name=name, experiment=experiment, uri=uri)


def _fails_again(record, *, name, experiment, uri=None):
    if Path(uri, "x").exists():
        raise FileExistsError(name)
    Path(uri).mkdir()
    Path(uri, "x").touch()
    return TrackedRun("1", (), experiment or record.name)


@pytest.mark.parametrize(
    ("push", "says"),
    [
        (_loses, "another record replaced the first one"),
        (_mutates, "the record is not as it was before it was pushed"),
        (lambda record, **given: None, "push returns no TrackedRun with an id"),  # noqa: ARG005
        (lambda record, **given: TrackedRun("", (), "x"), "push returns no TrackedRun with an id"),  # noqa: ARG005
        (lambda record, **given: TrackedRun("1", (), " "), "a TrackedRun does not say how to look at it"),  # noqa: ARG005
    ],
)
def test_a_host_that_does_something_wrong_fails_the_check(push, says, tmp_path):
    with pytest.raises(CheckFailed, match=says):
        check_host(Host("Wrong", push=push), str(tmp_path / "store"))


def test_a_host_that_raises_or_has_no_push_fails_too(tmp_path):
    with pytest.raises((CheckFailed, FileExistsError)):
        check_host(Host("Once", push=_fails_again), str(tmp_path / "store"))
    with pytest.raises(InvalidInput, match="a host with a push"):
        check_host(Host("Mute"))


def test_a_record_of_every_number_is_pushed(tmp_path):
    record = rk.Record("x", metrics={"nan": np.nan, "inf": np.inf}, series={"s": {0: np.nan}})
    assert host("box").push(record, name="n", experiment="e", uri=str(tmp_path)).run_id
