"""Laws of the ledger: nothing is lost, and what was altered shows."""

import json
import multiprocessing
import sqlite3

import numpy as np
import pytest

from rankeval.errors import LedgerError
from rankeval.seals.discovery import ledger_url
from rankeval.seals.ledger import GENESIS, HeadMovedError, Ledger, pack, unpack


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
    return [ledger.append("note", "p", {"n": n}) for n in range(n)]


def append_some(url, worker, n):
    for number in range(n):
        Ledger(url).append("note", f"worker {worker}", {"n": number})


def test_entries_come_back_in_order_each_linked_to_the_one_before(ledger):
    written = filled(ledger, 3)
    read = ledger.entries()
    assert read == written
    assert [entry.seq for entry in read] == [1, 2, 3]
    assert [entry.previous for entry in read] == [GENESIS, read[0].hash, read[1].hash]
    assert ledger.head() == read[-1].hash
    assert ledger.problems() == []


def test_reading_creates_nothing(ledger, tmp_path):
    assert ledger.entries() == []
    assert ledger.head() == GENESIS
    assert list(tmp_path.iterdir()) == []


def test_entries_are_chosen_by_kind_and_project(ledger):
    ledger.append("register", "a", {})
    ledger.append("open", "a", {})
    ledger.append("open", "b", {})
    assert [entry.project for entry in ledger.entries(kinds=["open"])] == ["a", "b"]
    assert [entry.kind for entry in ledger.entries(project="a")] == ["register", "open"]


def test_eight_processes_of_twenty_five_appends_lose_none(ledger):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=append_some, args=(ledger.url, number, 25)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    entries = ledger.entries()
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
    assert not ledger.holds(head)


def test_an_entry_made_for_another_head_is_not_written(ledger):
    first, second = filled(ledger, 2)
    with pytest.raises(HeadMovedError, match="grew"):
        ledger.append("note", "p", {}, expected=first.hash)
    ledger.append("note", "p", {}, expected=second.hash)
    assert len(ledger.entries()) == 3


def test_what_is_no_database_is_an_error_of_the_ledger(tmp_path):
    (tmp_path / "notes.txt").write_text("some words, and enough of them to fill a page header" * 100)
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(ledger_url(tmp_path / "notes.txt")).entries()
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(ledger_url(tmp_path / "nowhere" / "x.db")).append("note", "p", {})
    with pytest.raises(LedgerError, match="nosuchdb"):
        Ledger("nosuchdb://somewhere/x").head()


@pytest.mark.parametrize("array", [np.arange(5, dtype=np.uint64) << np.uint64(60), np.array([True, False]), np.ones(0)])
def test_arrays_survive_packing(array):
    back = unpack(pack(array))
    assert back.dtype == array.dtype
    assert (back == array).all()
