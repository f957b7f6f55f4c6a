"""A ledger on a PostgreSQL server: what is its own; the tests of all stores take it too."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
import sqlalchemy as sa

import rankeval as rk
from rankeval.errors import LedgerError
from rankeval.ledger.ledger import Ledger

pytestmark = pytest.mark.postgres


def append_some(url, writer):
    for number in range(5):
        Ledger(url, who=f"writer {writer}").append("p", ("note", {"n": number}))


def test_a_team_shares_a_ledger_on_a_server(postgres, tmp_path, monkeypatch):
    """Three make it at once; then it registers, refuses, opens and is exported, as any ledger."""
    ledger = Ledger(url := postgres.database())
    assert not ledger.exists()
    assert ledger.read().entries == ()
    writers = [multiprocessing.get_context("fork").Process(target=append_some, args=(url, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 3
    entries = ledger.read().entries
    assert len({(entry.who, entry.body["n"]) for entry in entries}) == len(entries) == 15
    assert len(ledger.read().heads) == 1
    monkeypatch.setenv("RANKEVAL_LEDGER", url)
    data = rk.datasets.make_ranking(40, 8, 3, rng=0)
    guard = rk.Guard("p")
    test = guard.register("t", data)
    with pytest.raises(rk.errors.GuardRefusal):
        rk.evaluate(data.y, data.X[:, 0], qid=data.qid, measures="AP")
    guard.open(guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}, baseline="a"))
    assert len(guard.looks(test)) == 1
    assert guard.verify()
    copy = tmp_path / "copy"
    ledger.export(copy)
    assert Ledger(f"file://{copy}").read() == ledger.read()


@pytest.fixture
def url(postgres):
    return postgres.database()


def test_who_may_only_read_reads_and_is_told_before_anything_is_done(postgres, url):
    ledger = Ledger(url)
    name = ledger.keep("signatures", {"x": np.arange(3)})
    entry = ledger.append("p", ("note", {"signatures": name}))
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        role = f"reader_{sa.engine.make_url(url).database}"
        for statement in (f"CREATE ROLE {role} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"):
            connection.exec_driver_sql(statement)
    reader = Ledger(url.replace("owner@", f"{role}@"))
    assert reader.read().entries == (entry,)
    assert reader.load(name)["x"].tolist() == [0, 1, 2]
    assert reader.stamp() == ledger.stamp()
    assert reader.problems(entry.hash) == []
    for act in (reader.check_writable, lambda: reader.append("p", ("note", {}))):
        with pytest.raises(LedgerError, match=r"cannot be written: permission denied for table"):
            act()
    elsewhere = Ledger(postgres.database().replace("owner@", f"{role}@"))
    assert elsewhere.read().entries == ()
    with pytest.raises(LedgerError, match=r"cannot be written: permission denied for schema public"):
        elsewhere.check_writable()


def test_a_server_that_is_not_there_is_said_without_the_password(postgres):
    ledger = Ledger(f"postgresql+psycopg://owner:hunter2@/base?host={postgres.folder}/nowhere")
    for act in (ledger.read, ledger.check_writable, lambda: ledger.append("p", ("note", {}))):
        with pytest.raises(LedgerError, match=r"cannot be (read|written): .*(failed|No such file)") as said:
            act()
        assert "hunter2" not in str(said.value)
        assert "\n" not in str(said.value)


def test_a_row_of_the_lock_that_somebody_took_away_is_made_again(url):
    ledger = Ledger(url)
    ledger.append("p", ("note", {}))
    with sa.create_engine(url, poolclass=sa.pool.NullPool).begin() as connection:
        connection.exec_driver_sql("DELETE FROM rankeval_ledger_lock")
    ledger.append("p", ("note", {}))
    assert len(ledger.read().entries) == 2


def test_a_server_that_repeats_its_reads_by_default_still_shows_the_newest_heads(url):
    """A transaction that was set to see one state throughout would read the heads from before it had the lock."""
    database = sa.engine.make_url(url).database
    with sa.create_engine(url, poolclass=sa.pool.NullPool).begin() as connection:
        setting = f"ALTER DATABASE {database} SET default_transaction_isolation = 'repeatable read'"
        connection.exec_driver_sql(setting)
    writers = [multiprocessing.get_context("fork").Process(target=append_some, args=(url, n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    snapshot = Ledger(url).read()
    assert len(snapshot.entries) == 20
    assert len(snapshot.heads) == 1
    assert all(len(entry.parents) <= 1 for entry in snapshot.entries)
