"""Laws of the ledger: nothing is lost, and what was altered shows."""

import contextlib
import getpass
import json
import multiprocessing
import platform
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from rankeval.ledger.chain import GENESIS, Entry, HeadMovedError

from rankeval.errors import LedgerError
from rankeval.ledger.arrays import decode_array, encode_array
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.sql import Ledger


@pytest.fixture
def ledger(tmp_path):
    return Ledger(ledger_url(tmp_path / "ledger.db"))


def file_of(ledger):
    return ledger.url.removeprefix("sqlite:///")


def edit(ledger, statement, *values):
    with sqlite3.connect(file_of(ledger)) as connection:
        connection.execute(statement, values)
    connection.close()


def filled(ledger, n=8):
    return [ledger.append("p", ("note", {"n": n})) for n in range(n)]


def append_some(url, worker, n):
    for number in range(n):
        Ledger(url).append(f"worker {worker}", ("note", {"n": number}))


def test_entries_come_back_in_order_each_linked_to_the_one_before(ledger):
    written = filled(ledger, 3)
    read = list(ledger.read().entries)
    assert read == written
    assert [entry.seq for entry in read] == [1, 2, 3]
    assert [entry.previous for entry in read] == [GENESIS, read[0].hash, read[1].hash]
    assert ledger.read([]).head == read[-1].hash
    assert ledger.problems() == []


def test_reading_creates_nothing(ledger, tmp_path):
    assert ledger.read().entries == ()
    assert ledger.read([]).head == GENESIS
    assert list(tmp_path.iterdir()) == []


def test_entries_are_chosen_by_kind_and_project(ledger):
    ledger.append("a", ("register", {}))
    ledger.append("a", ("open", {}))
    ledger.append("b", ("open", {}))
    assert [entry.project for entry in ledger.read(kinds=["open"]).entries] == ["a", "b"]
    assert [entry.kind for entry in ledger.read(project="a").entries] == ["register", "open"]


def test_eight_processes_of_twenty_five_appends_lose_none(ledger):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append_some, args=(ledger.url, number, 25)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    entries = ledger.read().entries
    assert [writer.exitcode for writer in writers] == [0] * 8
    assert len({(entry.project, entry.body["n"]) for entry in entries}) == len(entries) == 200
    assert ledger.problems() == []


def test_every_edit_and_every_deletion_inside_is_found(ledger):
    entries = filled(ledger)
    columns = {"kind": "x", "project": "x", "time": "x", "who": "x", "body": "{}", "previous": "x", "hash": "x"}
    for entry in entries:
        for column, value in columns.items():
            statement = f"UPDATE rankeval_ledger SET {column} = ? WHERE seq = ?"  # noqa: S608 - our own columns
            edit(ledger, statement, value, entry.seq)
            assert ledger.problems(), (entry.seq, column)
            kept = json.dumps(entry.body, separators=(",", ":")) if column == "body" else getattr(entry, column)
            edit(ledger, statement, kept, entry.seq)
    assert ledger.problems() == []


@pytest.mark.parametrize("gone", range(1, 8))
def test_a_deletion_inside_is_named(ledger, gone):
    filled(ledger)
    edit(ledger, "DELETE FROM rankeval_ledger WHERE seq = ?", gone)
    assert f"entries {gone} to {gone} are missing" in ledger.problems()


def test_a_deletion_inside_shows_when_the_rest_is_renumbered(ledger):
    filled(ledger)
    edit(ledger, "DELETE FROM rankeval_ledger WHERE seq = 3")
    edit(ledger, "UPDATE rankeval_ledger SET seq = -seq + 1 WHERE seq > 3")
    edit(ledger, "UPDATE rankeval_ledger SET seq = -seq WHERE seq < 0")
    assert ledger.problems()


def test_a_deletion_at_the_end_shows_only_against_a_head_that_was_noted(ledger):
    head = filled(ledger)[-1].hash
    edit(ledger, "DELETE FROM rankeval_ledger WHERE seq >= 6")
    assert ledger.problems() == []
    assert "deleted at the end" in ledger.problems(head)[0]
    assert not ledger.read().holds(head)


def test_an_entry_made_for_another_head_is_not_written(ledger):
    first, second = filled(ledger, 2)
    with pytest.raises(HeadMovedError, match="grew"):
        ledger.append("p", ("note", {}), expected=first.hash)
    ledger.append("p", ("note", {}), expected=second.hash)
    assert len(ledger.read().entries) == 3


def test_what_is_no_database_is_an_error_of_the_ledger(tmp_path):
    (tmp_path / "notes.txt").write_text("some words, and enough of them to fill a page header" * 100)
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(ledger_url(tmp_path / "notes.txt")).read()
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(ledger_url(tmp_path / "nowhere" / "x.db")).append("p", ("note", {}))
    with pytest.raises(LedgerError, match="nosuchdb"):
        Ledger("nosuchdb://somewhere/x").read()


@pytest.mark.parametrize("array", [np.arange(5, dtype=np.uint64) << np.uint64(60), np.array([True, False]), np.ones(0)])
def test_arrays_survive_packing(array):
    back = decode_array(encode_array(array))
    assert back.dtype == array.dtype
    assert (back == array).all()


@pytest.mark.parametrize("column", ["previous", "hash", "seq"])
def test_the_database_itself_refuses_a_second_entry_after_one(ledger, column):
    """Whatever wrote it: no two entries have one number, one hash, or one entry before them."""
    entries = filled(ledger, 2)
    row = {
        "seq": 3,
        "kind": "note",
        "project": "p",
        "time": "t",
        "who": "w",
        "body": "{}",
        "previous": "x",
        "hash": "y",
    }
    row[column] = getattr(entries[1], column)
    with pytest.raises(sqlite3.IntegrityError, match=f"UNIQUE.*{column}"):
        edit(ledger, "INSERT INTO rankeval_ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row.values())


def test_a_writer_who_was_overtaken_is_told_that_the_head_moved(ledger, monkeypatch):
    """On a database without a lock for us, the unique links refuse the slower of two entries."""
    first, _ = filled(ledger, 2)
    with monkeypatch.context() as patched:
        patched.setattr(Entry, "hashed", lambda entry: replace(entry, hash=first.hash))
        with pytest.raises(HeadMovedError, match=r"another writer appended to the ledger .* at the same time"):
            ledger.append("p", ("note", {}))
    assert len(ledger.read().entries) == 2
    assert ledger.problems() == []


def test_entries_are_appended_together_or_not_at_all(ledger, monkeypatch):
    last = ledger.append("p", ("rankings", {"n": 1}), ("freeze", {"n": 2}))
    assert [entry.kind for entry in ledger.read().entries] == ["rankings", "freeze"]
    assert ledger.read([]).head == last.hash
    hashes = iter(["f" * 64, last.hash])
    monkeypatch.setattr(Entry, "hashed", lambda entry: replace(entry, hash=next(hashes)))
    with pytest.raises(HeadMovedError):
        ledger.append("p", ("rankings", {"n": 3}), ("freeze", {"n": 4}))
    assert len(ledger.read(kinds=()).hashes) == 2


def test_no_password_is_shown():
    """Not in the name of a ledger, nor in what is said when it cannot be reached."""
    ledger = Ledger("nosuchdb://me:secret@somewhere/x")
    assert ledger.where == "nosuchdb://me:***@somewhere/x"
    assert repr(ledger) == "Ledger('nosuchdb://me:***@somewhere/x')"
    for use in (ledger.read, ledger.problems, lambda: ledger.append("p", ("note", {}))):
        with pytest.raises(LedgerError) as caught:
            use()
        assert "me:***@somewhere" in str(caught.value)
        assert "secret" not in str(caught.value)


def test_an_entry_says_who_made_it_and_when(ledger, monkeypatch):
    """The time in UTC to the second; a user without a name is unknown, and no reason to lose the entry."""
    first = ledger.append("p", ("note", {}))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first.time)
    assert abs(datetime.fromisoformat(first.time) - datetime.now(UTC)) < timedelta(minutes=5)
    assert first.who == f"{getpass.getuser()}@{platform.node()}"

    def nameless():
        raise KeyError("uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert ledger.append("p", ("note", {})).who == f"unknown@{platform.node()}"


def test_a_head_is_held_if_its_entry_is_there(ledger):
    """The head of an empty ledger always is."""
    assert ledger.read().holds(GENESIS)
    first, second = filled(ledger, 2)
    assert ledger.read().holds(GENESIS)
    assert ledger.read().holds(first.hash)
    assert ledger.problems(first.hash) == ledger.problems(second.hash) == ledger.problems(GENESIS) == []
    assert not ledger.read().holds("f" * 64)


def test_nothing_that_json_does_not_know_is_written(ledger):
    with pytest.raises(ValueError, match="JSON"):
        ledger.append("p", ("note", {"n": float("nan")}))
    assert ledger.read().entries == ()


def test_a_database_of_something_else_holds_no_entries(ledger):
    """And takes the first one beside what is there."""
    edit(ledger, "CREATE TABLE other (x INTEGER)")
    assert ledger.read().entries == ()
    assert ledger.read([]).head == GENESIS
    assert ledger.append("p", ("note", {})).seq == 1


def test_reading_waits_for_no_writer(tmp_path, monkeypatch):
    """A long opening elsewhere holds the lock of writers: scores go on being refused meanwhile."""
    monkeypatch.setattr("rankeval.ledger.sql._PATIENCE", 0.2)
    ledger = Ledger(ledger_url(tmp_path / "ledger.db"))
    filled(ledger, 2)
    with contextlib.closing(sqlite3.connect(file_of(ledger), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(ledger.read().entries) == 2
        with pytest.raises(LedgerError, match=r"cannot be written: .*locked"):
            ledger.append("p", ("note", {}))
        other.execute("ROLLBACK")
    assert ledger.append("p", ("note", {})).seq == 3


def test_the_table_stands_as_other_versions_know_it(ledger):
    """Two versions may share a ledger: its columns change only knowingly (until issue 9 is done)."""
    filled(ledger, 1)
    with contextlib.closing(sqlite3.connect(file_of(ledger))) as connection:
        columns = connection.execute("PRAGMA table_info(rankeval_ledger)").fetchall()
    assert [(name, kind, must, key) for _, name, kind, must, _, key in columns] == [
        ("seq", "INTEGER", 1, 1),
        ("kind", "VARCHAR(32)", 1, 0),
        ("project", "VARCHAR(255)", 1, 0),
        ("time", "VARCHAR(32)", 1, 0),
        ("who", "VARCHAR(255)", 1, 0),
        ("body", "TEXT(1073741824)", 1, 0),
        ("previous", "VARCHAR(64)", 1, 0),
        ("hash", "VARCHAR(64)", 1, 0),
    ]
    assert GENESIS == "0" * 64
