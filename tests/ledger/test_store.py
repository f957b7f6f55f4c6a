"""The contract of a store: ours follow it, and a ledger needs no more than it."""

from __future__ import annotations

import contextlib
import inspect

import pytest

from rankeval.errors import LedgerError
from rankeval.ledger import ledger as ledger_module
from rankeval.ledger.folder import FolderStore
from rankeval.ledger.ledger import Ledger
from rankeval.ledger.sql import SqlStore
from rankeval.ledger.store import Store

CONTRACT = [name for name in vars(Store) if not name.startswith("_")]  # but for `where`, which is no method


@pytest.mark.parametrize("store", [FolderStore, SqlStore])
def test_our_stores_have_what_the_contract_lists_and_no_more(store):
    assert {name for name in vars(store) if not name.startswith("_")} == set(CONTRACT)
    for name in CONTRACT:
        ours, asked = (list(inspect.signature(getattr(one, name)).parameters) for one in (store, Store))
        assert ours == asked, name


def test_each_method_of_the_contract_says_in_one_line_what_it_does():
    for name in CONTRACT:
        assert len(getattr(Store, name).__doc__.splitlines()) == 1, name


class InMemory:
    """A third store, written by the contract alone."""

    where = "memory"

    def __init__(self):
        self.texts, self.kept = {}, {}

    def exists(self):
        return bool(self.texts)

    def stamp(self):
        return len(self.texts)

    def check_writable(self):
        pass

    lock = reading = contextlib.nullcontext

    def entries(self):
        return dict(self.texts)

    def add(self, entries):
        self.texts |= entries

    def keep(self, name, data):
        self.kept.setdefault(name, data)

    def load(self, name):
        return self.kept.get(name)

    def files(self):
        return list(self.kept)


def test_a_ledger_needs_no_more_than_the_contract(ledger, monkeypatch):
    store = InMemory()
    monkeypatch.setattr(ledger_module, "store_at", lambda _: store)
    third = Ledger("memory://")
    third.append("p", ("note", {"n": 1}))
    with pytest.raises(LedgerError):
        third.merge(ledger)  # which does not exist
    ledger.append("p", ("note", {"n": 2}))
    assert third.merge(ledger) == 1
    assert third.problems(other=ledger) == []
    assert ledger.merge(third) == 1
    assert ledger.read().heads == third.read().heads
