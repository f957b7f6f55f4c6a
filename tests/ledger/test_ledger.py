"""Laws of a ledger in each store: what was appended is there, in order, and nothing else is."""

from __future__ import annotations

import getpass
import pickle
import platform
import re
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from rankeval.errors import InvalidInput, LedgerError
from rankeval.ledger.arrays import pack, unpack
from rankeval.ledger.entry import GENESIS
from rankeval.ledger.graph import HeadMovedError
from rankeval.ledger.ledger import Ledger


def filled(ledger, n=5):
    return [ledger.append("p", ("note", {"n": n})) for n in range(n)]


def test_entries_come_back_in_order_each_after_the_one_before(ledger):
    written = filled(ledger)
    snapshot = ledger.read()
    assert list(snapshot.entries) == written
    assert [entry.parents for entry in written] == [(), *((entry.hash,) for entry in written[:-1])]
    assert snapshot.head == written[-1].hash
    assert snapshot.heads == (written[-1].hash,)
    assert ledger.problems() == []
    assert ledger.exists()


def test_reading_and_trying_create_nothing(ledger, tmp_path):
    assert ledger.read().entries == ()
    assert ledger.read().head == GENESIS
    assert ledger.problems(GENESIS) == []
    assert not ledger.exists()
    assert list(tmp_path.iterdir()) == []
    ledger.check_writable()
    assert list(tmp_path.iterdir()) == []


def test_trying_adds_nothing_to_a_ledger_that_is_there(ledger, hands, tmp_path):
    filled(ledger, 2)
    files, before = sorted(tmp_path.rglob("*")), hands.texts()
    for _ in range(2):
        ledger.check_writable()
    assert sorted(tmp_path.rglob("*")) == files
    assert hands.texts() == before
    assert ledger._files() == set()


def test_several_notes_follow_each_other(ledger):
    last = ledger.append("p", ("one", {}), ("two", {}), ("three", {}))
    entries = ledger.read().entries
    assert [entry.kind for entry in entries] == ["one", "two", "three"]
    assert entries[2] == last
    assert entries[2].parents == (entries[1].hash,)


def test_an_entry_made_for_another_head_is_not_written(ledger):
    first, second = filled(ledger, 2)
    for stale in (first.hash, GENESIS):
        with pytest.raises(HeadMovedError, match="grew beyond"):
            ledger.append("p", ("note", {}), expected=stale)
    ledger.append("p", ("note", {}), expected=second.hash)
    assert len(ledger.read().entries) == 3


def test_what_is_read_in_the_lock_holds_until_its_end(ledger):
    """Another thread, with a ledger of its own or with the same one, waits; this one may append in between."""
    order, inside = [], threading.Event()

    def other(mine):
        inside.wait(10)
        mine.append("other", ("note", {}))
        order.append("other")

    threads = [threading.Thread(target=other, args=(one,)) for one in (ledger, Ledger(ledger.url))]
    for thread in threads:
        thread.start()
    with ledger.locked():
        head = ledger.read().head
        inside.set()
        for thread in threads:
            thread.join(0.2)
        first = ledger.append("mine", ("note", {}), expected=head)
        with ledger.locked():
            ledger.append("mine", ("note", {}), expected=first.hash)
        order.append("mine")
    for thread in threads:
        thread.join(10)
    assert order == ["mine", "other", "other"]
    assert [entry.project for entry in ledger.read().entries] == ["mine", "mine", "other", "other"]


def test_an_error_inside_the_lock_stays_what_it_is_and_frees_the_lock(ledger):
    for error in (ValueError("of a model"), OSError("of a disk"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, ledger.locked():
            raise error
        assert caught.value is error
    filled(ledger, 1)
    assert len(ledger.read().entries) == 1


def test_the_state_changes_with_each_entry_and_not_without(ledger):
    states = [ledger.stamp()]
    for number in range(4):
        ledger.append("p", ("note", {"n": number}))
        states.append(ledger.stamp())
        assert ledger.stamp() == states[-1]
        ledger.read()
        assert ledger.stamp() == states[-1]
    assert len(set(states)) == 5


ARRAYS = {
    "hashes": np.arange(5, dtype=np.uint64) << np.uint64(60),
    "mask": np.array([True, False, True]),
    "scores": np.array([0.1, -1e300, 5e-324]),
    "none": np.ones(0),
    "swapped": np.arange(3, dtype=">i4"),
}


def test_files_come_back_and_are_named_by_their_content(ledger):
    names = {ledger.keep("signatures", ARRAYS) for _ in range(2)} | {Ledger(ledger.url).keep("signatures", ARRAYS)}
    (name,) = names
    assert re.fullmatch(r"signatures/[0-9a-f]{64}\.bin", name)
    back = ledger.load(name)
    assert {key: array.tolist() for key, array in back.items()} == {key: a.tolist() for key, a in ARRAYS.items()}
    assert all(back[key].dtype == array.dtype.newbyteorder("=") for key, array in ARRAYS.items())
    back["scores"][0] = 1  # a copy, which may be changed
    other = ledger.keep("rankings", {"x": np.ones(2)})
    assert ledger._files() == {name, other}
    assert [ledger.has(one) for one in (name, other, name.replace("signatures", "rankings"))] == [True, True, False]


@pytest.mark.parametrize("key", ARRAYS)
def test_equal_arrays_have_equal_bytes(key):
    array = ARRAYS[key]
    again = np.array(array.tolist(), dtype=array.dtype.newbyteorder())
    assert pack({key: array}) == pack({key: again})
    assert unpack(pack({key: array}))[key].tolist() == array.tolist()


def test_only_numbers_are_unpacked():
    """Not objects, which could run code."""
    with pytest.raises(ValueError, match="not numeric"):
        unpack(b'[["x", "O", 1]]\n12345678')
    with pytest.raises(LedgerError, match="lacks its file signatures/x"):
        Ledger("file:///nowhere").load("signatures/x")


def test_an_entry_says_who_made_it_and_when(ledger, monkeypatch):
    """The time in UTC to the second; a user without a name is unknown, and no reason to lose the entry."""
    monkeypatch.delenv("RANKEVAL_WHO", raising=False)
    first = ledger.append("p", ("note", {}))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first.time)
    assert abs(datetime.fromisoformat(first.time) - datetime.now(UTC)) < timedelta(minutes=5)
    assert first.who == ledger.who == f"{getpass.getuser()}@{platform.node()}"

    def nameless():
        raise KeyError("uid not found: 1234")

    with monkeypatch.context() as patched:
        patched.setattr("getpass.getuser", nameless)
        assert ledger.append("p", ("note", {})).who == f"unknown@{platform.node()}"
    monkeypatch.setenv("RANKEVAL_WHO", " the\nteam ")
    assert ledger.append("p", ("note", {})).who == "the team"
    assert Ledger(ledger.url, who="Ada").append("p", ("note", {})).who == "Ada"
    monkeypatch.setenv("RANKEVAL_WHO", "caf\udce9")
    assert ledger.append("p", ("note", {})).who == "caf?"
    assert len(ledger.read().entries) == 5


@pytest.mark.parametrize("who", ["", " ", 3, "two\nlines", b"x"])
def test_who_must_be_a_name(url, who):
    with pytest.raises(InvalidInput, match=r"^who is [^\n]*; expected a name in one line$"):
        Ledger(url, who=who)


@pytest.mark.parametrize("body", [{"n": float("nan")}, {"n": [float("inf")]}, {"n": "\ud800"}])
def test_nothing_that_json_does_not_know_is_written(ledger, body):
    with pytest.raises(LedgerError, match=r"the ledger .* cannot be written"):
        ledger.append("p", ("note", body))
    assert ledger.read().entries == ()


def test_odd_names_and_numbers_come_back(ledger):
    body = {"é": "日本\x00\u2028", "tiny": 5e-324, "big": 2**200, "deep": [[[{"x": None}]]], "1e20": 1e20, "-0": -0.0}
    entry = ledger.append("p\n", ("note", body))
    assert ledger.read().entries == (entry,)
    assert ledger.read().entries[0].body == body


def test_a_ledger_travels_to_another_process_with_its_name(ledger):
    named = Ledger(ledger.url, who="Ada")
    back = pickle.loads(pickle.dumps(named))
    assert (back.url, back.who) == (ledger.url, "Ada")
    with ledger.locked():
        assert pickle.loads(pickle.dumps(ledger)).url == ledger.url
