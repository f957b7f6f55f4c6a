"""Writers at once and writers that are killed: no entry is lost, doubled or half written, in any store."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time

import numpy as np
import pytest

from rankeval.ledger.graph import HeadMovedError
from rankeval.ledger.ledger import Ledger

FORK = multiprocessing.get_context("fork")
SHARED = 5


def look(ledger: Ledger, output: str) -> None:
    """Record an output unless it is on record, as an opening does: read, decide, append, again if others came first."""
    while True:
        snapshot = ledger.read()
        if any(entry.body["output"] == output for entry in snapshot.entries):
            return
        name = ledger.keep("signatures", {"of": np.frombuffer(output.encode().ljust(32), dtype=np.uint64)})
        try:
            ledger.append("p", ("open", {"output": output, "signatures": name}), expected=snapshot.head)
        except HeadMovedError:
            continue
        return


def look_often(url: str, writer: int, looks: int) -> None:
    ledger = Ledger(url)
    for number in range(looks):
        look(ledger, f"{writer}-{number}")
        if number % (looks // SHARED) == 0:
            look(ledger, f"shared-{number}")  # the same output, of whoever comes first


@pytest.mark.parametrize(("n_writers", "looks"), [(3, 5), pytest.param(8, 25, marks=pytest.mark.kill)])
def test_processes_with_looks_each_lose_none_and_count_equal_ones_once(ledger, n_writers, looks):
    """Looks of their own and 5 that all of them want; the first entry makes the ledger, while the others wait."""
    writers = [FORK.Process(target=look_often, args=(ledger.url, number, looks)) for number in range(n_writers)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * n_writers
    entries = ledger.read().entries
    outputs = [entry.body["output"] for entry in entries]
    assert len(outputs) == len(set(outputs)) == n_writers * looks + SHARED
    assert ledger.problems() == []
    assert len(ledger._files()) == n_writers * looks + SHARED
    assert [len(entry.parents) for entry in entries] == [0] + [1] * (len(entries) - 1), "one chain, since they waited"


def append_until_killed(url: str, number: int, done: int) -> None:
    """Say each number after its entry was appended."""
    ledger = Ledger(url)
    while True:
        name = ledger.keep("signatures", {"of": np.full(2000, number)})
        ledger.append("p", ("note", {"n": number, "signatures": name}))
        os.write(done, number.to_bytes(4, "little"))
        number += 1


def kill_one(url: str, number: int, first: int, chance: random.Random) -> list[int]:
    """Let a process append from a number on, kill it at some moment, and return the numbers that it was done with.

    It lives until it is done with ``first`` entries, however slow a busy machine makes it, and a moment longer.
    """
    ours, theirs = os.pipe()
    writer = FORK.Process(target=append_until_killed, args=(url, number, theirs))
    writer.start()
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as read:
        said = b"".join(read.read(4) for _ in range(first))
        time.sleep(chance.uniform(0.005, 0.12))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        while more := read.read(4):
            said += more
    assert writer.exitcode == -signal.SIGKILL
    return np.frombuffer(said, dtype="<u4").tolist()


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.kill)])
def test_writers_that_are_killed_lose_no_entry_and_leave_none_half(ledger, kills):
    """What was appended before the kill is there, the entry of the moment is there whole or not at all."""
    chance, said = random.Random(0), []  # noqa: S311 - no secret
    ledger.append("p", ("note", {"n": -1}))
    for kill in range(kills):
        # Some are killed while they open the ledger, others while they write: at the first entry or a later one.
        done = kill_one(ledger.url, kill * 1000, kill % 3, chance)
        said += done
        snapshot = ledger.read()
        numbers = [entry.body["n"] for entry in snapshot.entries]
        assert set(said) <= set(numbers)
        assert len(numbers) == len(set(numbers))
        own = [number for number in numbers if kill * 1000 <= number < (kill + 1) * 1000]
        assert own == list(range(kill * 1000, kill * 1000 + len(own))), "each once, in their order"
        assert len(done) <= len(own) <= len(done) + 1, "no more than the entry of the moment was not said"
        ledger.append("p", ("note", {"n": -kill - 2}), expected=snapshot.head)
        said.append(-kill - 2)
    assert ledger.problems() == []


def test_a_lock_that_a_killed_or_a_forked_process_held_is_free(ledger):
    ledger.append("p", ("note", {}))

    def hold():
        with Ledger(ledger.url).locked():
            os.kill(os.getpid(), signal.SIGKILL)

    holder = FORK.Process(target=hold)
    holder.start()
    holder.join()
    ledger.append("p", ("note", {}))
    if not ledger.url.startswith("file"):
        return  # a connection to a database must not be used by two processes, and none of ours is
    with ledger.locked():
        idle = FORK.Process(target=time.sleep, args=(30,))
        idle.start()  # it has the file of the lock, too
    try:
        started = time.monotonic()
        Ledger(ledger.url).append("p", ("note", {}))
        assert time.monotonic() - started < 20
    finally:
        idle.kill()
        idle.join()


def test_a_writer_that_waits_too_long_says_why(ledger, monkeypatch):
    ledger.append("p", ("note", {}))
    from rankeval.errors import LedgerError
    from rankeval.ledger.sql import _engine  # first: else its patience would be read from the folder's for good

    monkeypatch.setattr("rankeval.ledger.folder.PATIENCE", 0.2)
    monkeypatch.setattr("rankeval.ledger.sql.PATIENCE", 0.2)
    _engine.cache_clear()
    waiting = Ledger(ledger.url)
    with ledger.locked():
        assert len(waiting.read().entries) == 1, "readers wait for nobody"
        with pytest.raises(LedgerError, match=r"cannot be written: .*(another process|locked|timeout)"):
            waiting.append("p", ("note", {}))
    _engine.cache_clear()
    monkeypatch.undo()
    waiting.append("p", ("note", {}))
