"""Places where a ledger cannot be written, or is none: one line that says so, before anything is done."""

from __future__ import annotations

import errno
import importlib.util
import os
import resource
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from ledger.conftest import lock_up
from shown import whole
from tables import each_row

import rankeval as rk
from rankeval.errors import ConfigError, LedgerError, RankevalWarning
from rankeval.experiment.config import check_config
from rankeval.ledger import discovery, folder
from rankeval.ledger.discovery import VARIABLE, ledger_url
from rankeval.ledger.ledger import Ledger


@pytest.mark.parametrize("name", ["ledger", "ledger.db"])
def test_where_nothing_can_be_written_reading_works_and_trying_fails(read_only, name):
    """As a user without rights: a checkout that CI mounts for reading."""
    ledger = Ledger(ledger_url(read_only / name))
    file = ledger.keep("signatures", {"x": np.arange(3)})
    entry = ledger.append("p", ("note", {"signatures": file}))
    with pytest.raises(LedgerError, match=r"cannot be written"):
        Ledger(ledger_url("/proc/nothing/ledger")).append("p", ("note", {}))  # loads what the rest needs
    before = sorted(read_only.rglob("*"))
    lock_up(read_only)
    assert ledger.read().entries == (entry,)
    assert ledger.load(file)["x"].tolist() == [0, 1, 2]
    assert ledger.problems(entry.hash) == []
    assert ledger.stamp() is not None
    for act in (ledger.check_writable, lambda: ledger.append("p", ("note", {}))):
        with pytest.raises(LedgerError, match=rf"the ledger {read_only / name} cannot be written: [^\n]+$"):
            act()
    for other in ("new", "new.db", "deep/new"):
        with pytest.raises(LedgerError, match=rf"the ledger {read_only / other} cannot be written: Permission denied"):
            Ledger(ledger_url(read_only / other)).check_writable()
    assert sorted(read_only.rglob("*")) == before


@pytest.mark.parametrize("name", ["ledger", "ledger.db"])
def test_a_registered_collection_is_refused_where_nothing_can_be_written(read_only, name, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(read_only / name))
    data = rk.datasets.make_ranking(40, 8, 3, rng=0)
    guard = rk.Guard("p", ledger=read_only / name)
    guard.register("t", data)
    with pytest.raises(rk.errors.GuardRefusal):
        rk.evaluate(data.y, data.X[:, 0], qid=data.qid, measures="AP")
    lock_up(read_only)
    with pytest.raises(rk.errors.GuardRefusal):
        rk.evaluate(data.y, data.X[:, 1], qid=data.qid, measures="AP")
    assert guard.status(data).refused


@pytest.mark.parametrize("name", ["/proc/ledger", "/proc/deep/ledger"])
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that nobody can write to")
def test_not_even_root_can_write_everywhere(name):
    with pytest.raises(LedgerError, match=rf"the ledger {name} cannot be written: "):
        Ledger(ledger_url(name)).check_writable()


@pytest.mark.parametrize(("room", "found"), [(1 << 15, "LedgerError {}: File too large\n"), (1004 << 10, "")])
def test_a_full_disk_is_found_before_anything_is_done(tmp_path, room, found):
    """A limit of the size of files stands for it. A disk of 1 MB was full, where an opening takes 5 kB."""
    program = (
        "import resource, sys; from rankeval.ledger.ledger import Ledger; ledger = Ledger(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: ledger.check_writable()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"file://{tmp_path}/ledger", str(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == found.format(f"the ledger {tmp_path}/ledger cannot be written")
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != room


def test_a_database_in_a_folder_that_is_not_there_is_said(tmp_path):
    ledger = Ledger(ledger_url(tmp_path / "nowhere" / "x.db"))
    with pytest.raises(LedgerError, match=rf"the folder {tmp_path}/nowhere does not exist"):
        ledger.check_writable()
    with pytest.raises(LedgerError, match="cannot be written: unable to open database file"):
        ledger.append("p", ("note", {}))


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_file_that_is_no_database_is_named_without_sql(tmp_path, content):
    (tmp_path / "ledger.db").write_bytes(content)
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    acts = (ledger.read, ledger.problems, ledger.check_writable, lambda: ledger.append("p", ("k", {})))
    for act in acts:
        with pytest.raises(LedgerError, match=r"the ledger /.*ledger.db cannot be (read|written): ") as said:
            act()
        for word in ("SELECT", "SQL:", "sqlalche.me", "\n"):
            assert word not in str(said.value)


def test_a_database_of_something_else_holds_no_entries_and_takes_the_first_beside_what_is_there(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE other (x INTEGER)")
        database.execute("INSERT INTO other VALUES (7)")
    ledger = Ledger(ledger_url(tmp_path / "x.db"))
    assert ledger.read().entries == ()
    assert not ledger.exists()
    entry = ledger.append("p", ("note", {}))
    assert ledger.read().entries == (entry,)
    assert sqlite3.connect(tmp_path / "x.db").execute("SELECT * FROM other").fetchall() == [(7,)]


@pytest.mark.parametrize(
    "url", ["postgresql+nothing://me:hunter2@host/db", "no-such://me:hunter2@host/db", "x://me:hunter2@host:port/db"]
)
def test_passwords_stay_out_of_names_and_messages(url):
    ledger = Ledger(url)
    assert "hunter2" not in ledger.where + repr(ledger)
    for act in (ledger.read, ledger.problems, ledger.check_writable, lambda: ledger.append("p", ("note", {}))):
        with pytest.raises(LedgerError) as said:
            act()
        assert "me:***@host" in str(said.value) or "://***@host" in str(said.value)
        assert "hunter2" not in str(said.value)
        assert "\n" not in str(said.value)


_SERVER = "postgresql+psycopg://{login}127.0.0.1:9/db{query}"  # nobody answers at this port


@each_row(
    ("login", "query"),
    [
        *(("me@", f"?{name}=hunter2") for name in ("password", "PASSWD", "p%61ssword", "sslpassword", "token", "own")),
        ("me@", "?options=-c%20a%3Dhunter2&sslmode=require"),
        ("me@", "?dbname=host%3D127.0.0.1%20password%3Dhunter2"),
        (":hunter2@", ""),
        ("me:h@hunter2@", ""),
        ("me:h/hunter2@", ""),
        ("me:hunter2%2F@", "?sslkey=hunter2"),
        ("me:hunter2@[::1/", ""),
    ],
)
def test_no_form_of_a_url_shows_its_password(rankeval, monkeypatch, login, query):
    """Neither in the message, nor in the error of the driver that is its cause."""
    url = _SERVER.format(login=login, query=query)
    guard = rk.Guard("p", ledger=url)
    with pytest.raises(LedgerError) as raised:
        guard.looks()
    lines = [line for line in traceback.format_exception(raised.value) if not line.startswith("  ")]
    code, out, err = rankeval("guard", "looks", "p", "--ledger", url)
    assert (code, out) == (2, "")
    monkeypatch.setenv(VARIABLE, url)
    doctor = "".join(map(str, rankeval("doctor")))
    with pytest.raises(LedgerError) as unread:
        rk.evaluate({"q": {"d": 1}}, {"q": {"d": 1.0}}, measures="RR")
    monkeypatch.undo()
    discovery.reset()
    assert "the ledger postgresql+psycopg://" in err
    assert "hunter2" not in "".join((guard.ledger, whole(guard), *lines, err, doctor, str(unread.value)))


@each_row(
    "spec",
    [
        "postgresql:/me:hunter2@h/db",
        "mysql:me:hunter2@h",
        "host=h password=hunter2",
        "sqlite+pysqlcipher://:hunter2@/a",
    ],
)
def test_a_password_is_not_taken_for_the_name_of_a_folder(tmp_path, spec):
    for given in (spec, Path(spec)):
        with pytest.raises(LedgerError, match="neither a path nor a URL") as raised:
            ledger_url(given)
        assert "hunter2" not in str(raised.value)
    assert not [*tmp_path.iterdir()]


def test_reports_and_artifacts_of_an_experiment_show_no_password():
    places = {"guard": {"ledger": "postgresql://me:hunter2@h/db"}, "tracking": {"uri": "http://h/?token=hunter2"}}
    rankers = {"plain": {"estimator": "sklearn.linear_model.Ridge"}}
    plain = {"name": "example", "data": {"loader": "digits"}, "rankers": rankers}
    config = check_config({**plain, **places})
    assert "hunter2" not in config.to_yaml() + repr(config)
    assert config.guard.ledger == places["guard"]["ledger"]
    with pytest.raises(ConfigError) as raised:
        check_config({**plain, "guard": {"ledger": ["postgresql://me:hunter2@h/db"]}})
    assert "hunter2" not in str(raised.value)


def test_a_file_system_without_locks_is_said_once_for_each_ledger(tmp_path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(folder, "_WITHOUT_LOCKS", set())
    for name in ("one", "other"):
        ledger = Ledger(f"file://{tmp_path}/{name}")
        with pytest.warns(
            RankevalWarning, match=rf"the file system of the ledger {tmp_path}/{name} has no locks"
        ) as said:
            ledger.append("p", ("note", {}))
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ledger.append("p", ("note", {}))
            Ledger(ledger.url).append("p", ("note", {}))
        assert len(ledger.read().entries) == 3


def test_windows_locks_a_byte_and_synchronises_no_folders(tmp_path, monkeypatch):
    """Its branch of the module, run here with a stand-in for its library."""
    held = []

    def locking(descriptor, mode, length):
        if mode == "lock" and held:
            raise PermissionError(errno.EACCES, "Permission denied")
        held.append((descriptor, length)) if mode == "lock" else held.clear()

    library = types.SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="unlock")
    monkeypatch.setitem(sys.modules, "msvcrt", library)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("windows_disk", folder.__file__)
    windows = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(windows)
    monkeypatch.setattr(windows, "PATIENCE", 0.05)
    plain = os.open

    def no_folder(path, *given):
        assert not Path(path).is_dir()
        return plain(path, *given)

    monkeypatch.setattr(windows.os, "open", no_folder)
    with windows.locked(tmp_path / "lock"):
        assert [length for _, length in held] == [1]
        with pytest.raises(TimeoutError, match="another process"), windows.locked(tmp_path / "lock"):
            pass
    assert held == []
    windows.write_whole(tmp_path / "x", b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_a_file_that_cannot_be_written_whole_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"before")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folder.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write_whole(tmp_path / "x", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"before"
