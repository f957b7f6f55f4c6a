"""The steps of the protocol and the ledger: readings, other processes, judgments, retirement, verification."""

import contextlib
import multiprocessing
import sqlite3
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from guard.protocol.conftest import kinds, systems

import rankeval as rk
from rankeval.errors import InvalidInput, LedgerError
from rankeval.guard import Guard

QRELS = {f"q{q}": {f"d{q}-{d}": int((q * d) % 3 == 1) for d in range(12)} for q in range(10)}


def readings(guard, monkeypatch, act):
    """Return how often something reads all entries of the ledger."""
    store, done = guard._ledger._store, []
    entries = store.entries
    with monkeypatch.context() as patched:
        patched.setattr(store, "entries", lambda: done.append(1) or entries())
        act()
    return len(done)


def test_each_step_reads_the_ledger_once_and_once_more_in_the_lock_if_it_appends(guard, data, monkeypatch):
    count = partial(readings, guard, monkeypatch)
    register = partial(guard.register, "test", data)
    assert [count(register) for _ in range(2)] == [2, 1]
    test = register()
    freezes = [partial(guard.freeze, test, systems=systems(data, 0, weight), baseline="s0") for weight in (1, 2)]
    assert [count(freeze) for freeze in freezes] == [2, 2]
    for plan in [freeze() for freeze in freezes]:
        assert [count(partial(guard.open, plan)) for _ in range(2)] == [2, 1]
    assert count(partial(guard.looks, test)) == 1
    assert count(partial(guard.status, data)) == 1
    assert count(partial(guard.retire, test, "done")) == 2


def use(ledger, weight):
    data = rk.datasets.make_ranking(50, 10, 4, rng=3)
    guard = Guard("project", ledger=ledger)
    test = guard.register("test", data)
    guard.open(guard.freeze(test, systems=systems(data, 0, weight), baseline="s0"))
    guard.open(guard.freeze(test, systems=systems(data, 0, -1), baseline="s0"))


def test_processes_that_register_freeze_and_open_at_once_lose_no_look(guard):
    """One registration, each plan once, each new output once: as if they had come one after the other."""
    context = multiprocessing.get_context("fork")
    users = [context.Process(target=use, args=(guard.ledger, weight)) for weight in (1, 2, 3, 4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert [user.exitcode for user in users] == [0] * 4
    assert sorted(guard.looks("test")["system"]) == ["s-1", "s1", "s2", "s3", "s4"]
    assert sorted(guard.looks("test")["look"]) == [1, 2, 3, 4, 5]
    counts = {kind: kinds(guard).count(kind) for kind in ("register", "freeze", "open")}
    assert counts == {"register": 1, "freeze": 5, "open": 5}
    assert guard.verify()


class TestCollections:
    def run(self, seed):
        rng = np.random.default_rng(seed)
        return {q: {d: float(rng.random()) for d in [*docs, f"unjudged {q}"]} for q, docs in QRELS.items()}

    def test_runs_are_frozen_and_opened(self, guard):
        test = guard.register("topics", qrels=QRELS)
        plan = guard.freeze(test, systems={"a": self.run(1), "b": rk.Run.from_dict(self.run(2))}, measure="AP")
        result = guard.open(plan)
        expected = rk.evaluate(QRELS, self.run(2), measures="AP")
        assert result.evaluations["b"].scores.tolist() == expected.scores.tolist()
        assert len(guard.looks(test)) == 2

    def test_runs_follow_the_queries_under_other_names(self, guard):
        test = guard.register("topics", qrels=QRELS)
        plan = guard.freeze(test, systems={"a": self.run(1), "b": self.run(2)}, measure="AP")
        here = guard.open(plan)
        elsewhere = Guard("project", ledger=guard.ledger)
        elsewhere.register("topics", qrels={f"topic {q}": docs for q, docs in reversed(QRELS.items())})
        assert elsewhere.open(plan.id).table["difference"].tolist() == pytest.approx(here.table["difference"].tolist())


class TestStatusRetireVerify:
    @pytest.mark.usefixtures("test")
    def test_status_says_what_would_be_refused_and_why(self, guard, data):
        status = guard.status(data.X, data.y, qid=data.qid + 7)
        assert status.refused
        assert bool(status)
        assert status.collection == "test"
        assert (status.n_matched, status.n_to_refuse) == (50, 3)
        assert "would be refused: it contains queries of 'test' of project 'project': 50 of its 50" in status.words
        part = data.qid <= 2
        weak = guard.status(data.X[part], data.y[part], qid=data.qid[part])
        assert not weak
        weakly = "there is weak evidence that it contains queries of 'test' of project 'project': 2 of its 50"
        assert weakly in weak.words
        other = rk.datasets.make_ranking(50, 10, 4, rng=4)
        assert "nothing of it is registered" in guard.status(other).words

    def test_what_was_retired_is_no_test_any_more(self, guard, test, data):
        plan = guard.freeze(test, systems=systems(data, 0, 1))
        with pytest.raises(InvalidInput) as said:
            guard.retire(test, " ")
        assert said.value.argument == "reason"
        guard.retire(test, "published")
        assert not guard.status(data)
        for use in (
            lambda: guard.open(plan),
            lambda: guard.freeze(test, systems=systems(data, 0, 2)),
            lambda: guard.register("test", data),
            lambda: guard.register("under another name", data),
            lambda: guard.retire("test", "again"),
        ):
            with pytest.raises(LedgerError, match="published"):
                use()

    def test_verify_finds_edits_deletions_and_what_was_cut_off(self, guard, test, data):
        guard.open(guard.freeze(test, systems=systems(data, 0, 1)))
        head = guard.head
        assert guard.verify()
        assert guard.verify(head)
        fresh = Guard("project", ledger=guard.ledger)

        def spoilt(statement, *values):
            whole = (path := Path(guard.ledger)).read_bytes()
            with contextlib.closing(sqlite3.connect(path)) as database, database:
                database.execute(statement, values)
            verdicts = guard.verify(), fresh.verify(), fresh.verify(head)
            path.write_bytes(whole)
            return verdicts

        deletion = "DELETE FROM rankeval_ledger_entries WHERE hash = ?"
        freeze, opening = (entry.hash for entry in guard._ledger.read().entries[1:])
        edit = "UPDATE rankeval_ledger_entries SET text = replace(text, 's1', 's2') WHERE hash = ?"
        assert spoilt(edit, opening) == (False,) * 3
        assert spoilt(deletion, freeze) == (False,) * 3
        assert spoilt(deletion, opening) == (False,) * 3, "this process saw the head"
        whole = Path(guard.ledger).read_bytes()
        with contextlib.closing(sqlite3.connect(guard.ledger)) as cut, cut:
            cut.execute(deletion, [opening])
        for decide in (lambda: guard.looks(test), lambda: guard.freeze(test, systems=systems(data, 0, 2))):
            with pytest.raises(LedgerError, match="lost entries since this process last read it"):
                decide()
        assert not guard.verify()
        Path(guard.ledger).write_bytes(whole)
        assert guard.verify(head)
        with pytest.raises(LedgerError) as caught:
            guard.verify("0" * 63 + "1", strict=True)
        gone = caught.value.problem
        assert gone.startswith("the head 000000000000 that was noted before is gone: entries were deleted or rewritten")
        assert gone.endswith("or it is of another ledger")
        assert caught.value.where == guard.ledger

    def test_a_guard_needs_a_name_and_a_ledger(self):
        with pytest.raises(InvalidInput, match="project"):
            Guard(" ")
        with pytest.raises(LedgerError, match="RANKEVAL_LEDGER=off"):
            Guard("project")
