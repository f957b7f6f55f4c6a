"""A ledger that is none, or that somebody altered, is a named error in one line: no SQL, no password, no traceback."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rankeval.ledger.chain import Entry

import rankeval as rk
from rankeval.errors import LedgerError
from rankeval.ledger.sql import Ledger


@pytest.fixture
def guard(tmp_path: Path) -> rk.Guard:
    """Return a guard with a test part, frozen and opened."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(200, 5)), rng.integers(0, 3, 200), np.repeat(np.arange(20), 10)
    guard = rk.Guard("p", ledger=f"sqlite:///{tmp_path}/ledger.db")
    test = guard.register("t", X, y, qid=qid)
    guard.open(guard.freeze(test, systems={"a": X[:, 0], "b": X[:, 1]}, measure="nDCG@10"))
    return guard


def alter(path: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(path) as database:
        database.execute(statement, values)


@pytest.mark.parametrize("body", ["no JSON", "[]", "{}", "3", "[" * 100_000, '{"digest": 3}', '{"looks": 1}'])
@pytest.mark.parametrize("seq", [1, 4])
@pytest.mark.parametrize("hashed", [False, True])
def test_a_body_that_is_none_is_named(guard, tmp_path: Path, body, seq, hashed):
    """Whether or not somebody took the pains to hash it."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    kind = ["register", "rankings", "freeze", "open"][seq - 1]
    alter(tmp_path / "ledger.db", "update rankeval_ledger set body = ? where seq = ?", body, seq)
    if hashed:
        row = sqlite3.connect(tmp_path / "ledger.db").execute("select * from rankeval_ledger where seq = ?", (seq,))
        entry = Entry(*row.fetchone())
        with contextlib.suppress(ValueError, RecursionError):
            entry = replace(entry, body=json.loads(body))
        altered = entry.hashed().hash
        alter(tmp_path / "ledger.db", "update rankeval_ledger set hash = ? where seq = ?", altered, seq)
    with pytest.raises(LedgerError) as said:
        [entry.body["key of another version"] for entry in Ledger(url).read([kind]).entries]
    assert "\n" not in str(said.value)
    if not hashed or not body.startswith("{"):
        assert f"entry {seq} of the ledger {tmp_path}/ledger.db was altered" in str(said.value)
        with pytest.raises(LedgerError, match="was altered"):
            guard.looks("t")


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_file_that_is_no_database_is_named_without_sql(tmp_path: Path, content):
    (tmp_path / "ledger.db").write_bytes(content)
    for ask in (lambda ledger: ledger.read(), lambda ledger: ledger.append("p", ("k", {}))):
        with pytest.raises(LedgerError, match=r"the ledger /.*ledger.db cannot be (read|written): ") as said:
            ask(Ledger(f"sqlite:///{tmp_path}/ledger.db"))
        for word in ("SELECT", "SQL:", "sqlalche.me", "\n"):
            assert word not in str(said.value)


@pytest.mark.parametrize(
    "url", ["postgresql+nothing://me:hunter2@host/db", "no-such://me:hunter2@host/db", "x://me:hunter2@host:port/db"]
)
def test_passwords_stay_out_of_messages(url):
    with pytest.raises(LedgerError) as said:
        Ledger(url).read()
    assert "hunter2" not in str(said.value)
    assert "\n" not in str(said.value)
