"""A ledger in any database that SQLAlchemy knows: one table of entries, one of files.

A writer locks before it reads the heads: SQLite by ``BEGIN IMMEDIATE``, PostgreSQL by a lock on the table, and others
by the row that every writer updates. A lock that is taken later can be refused half-way, when two transactions have
both read and then both want to write.

The trap: SQLite's rollback journal stays as it is. Its write-ahead log does not work on network drives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from rankeval.errors import LedgerError
from rankeval.ledger.discovery import may_exist, sqlite_path

if TYPE_CHECKING:
    import sqlalchemy as sa

_LARGEST_BODY = 1 << 30
"""Asked for, so that MySQL takes its longest text; other databases have no limit."""
_PATIENCE = 60.0
"""Seconds to wait for the lock of another writer."""


class SqlStore:
    """Keeps entries and files in two tables.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL. Nothing is created before the first entry.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._open: sa.Connection | None = None

    @property
    def where(self) -> str:
        """The path of the file, or the URL of the server without its password."""
        import sqlalchemy as sa

        path = sqlite_path(self.url)
        if path is not None:
            return path
        try:
            return sa.engine.make_url(self.url).render_as_string(hide_password=True)
        except (sa.exc.ArgumentError, ValueError):
            return re.sub(r"://[^@/]*@", "://***@", self.url)

    def exists(self) -> bool:
        """Return whether the tables exist."""
        if not may_exist(self.url):
            return False
        with self._connection() as connection:
            return _has_tables(connection)

    def stamp(self) -> Any:
        """Return the number of entries."""
        return len(self.entries())

    def check_writable(self) -> None:
        """Raise an error if nothing can be kept; makes the tables."""
        with self.lock():
            pass

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers out until the end of one transaction."""
        with self._connection(write=True) as connection:
            self._open = connection
            try:
                yield
            finally:
                self._open = None

    def entries(self) -> dict[str, str]:
        """Return hash -> text of all entries."""
        import sqlalchemy as sa

        entries, _ = _tables()
        return {row.hash: row.text for row in self._select(sa.select(entries))}

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep entries."""
        with self._connection(write=True) as connection:
            for name, text in entries.items():
                connection.execute(_tables()[0].insert().values(hash=name, text=text))

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file, unless it is there."""
        if self.load(name) is None:
            with self._connection(write=True) as connection:
                connection.execute(_tables()[1].insert().values(name=name, data=data))

    def load(self, name: str) -> bytes | None:
        """Return a file; None if it is missing."""
        import sqlalchemy as sa

        _, files = _tables()
        return next((row.data for row in self._select(sa.select(files).where(files.c.name == name))), None)

    def files(self) -> list[str]:
        """Return the names of all files."""
        import sqlalchemy as sa

        return [row.name for row in self._select(sa.select(_tables()[1].c.name).order_by("name"))]

    def _select(self, query: Any) -> Any:
        if not may_exist(self.url):
            return ()
        with self._connection() as connection:
            return connection.execute(query).all() if _has_tables(connection) else ()

    @contextmanager
    def _connection(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Yield the connection of the lock, or a new one."""
        import sqlalchemy as sa

        if self._open is not None:
            yield self._open
            return
        try:
            options = {"rankeval_write": write}
            with _engine(self.url).connect().execution_options(**options) as connection, connection.begin():
                if write and not _has_tables(connection):
                    _tables()[0].metadata.create_all(connection)
                yield connection
        except sa.exc.SQLAlchemyError as error:
            done = "written" if write else "read"
            raise LedgerError(f"the ledger {self.where} cannot be {done}: {self._reason(error)}") from error

    def _reason(self, error: BaseException) -> str:
        """Return the database's own message in one line, without our SQL and without the password."""
        import sqlalchemy as sa

        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        try:
            password = sa.engine.make_url(self.url).password
        except (sa.exc.ArgumentError, ValueError):
            password = None
        return said.replace(str(password), "***") if password else said


@cache
def _engine(url: str) -> sa.Engine:
    """Return the engine of a URL. It opens a connection for each transaction, so that forked workers share none."""
    import sqlalchemy as sa

    if sqlite_path(url) is None:
        return sa.create_engine(url, poolclass=sa.pool.NullPool)
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args={"timeout": _PATIENCE})
    sa.event.listen(engine, "connect", _leave_transactions_to_us)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    # sqlite3 would begin a transaction only before the first write, after the head was read.
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("rankeval_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@cache
def _tables() -> tuple[sa.Table, sa.Table]:
    import sqlalchemy as sa

    both = sa.MetaData()
    entries = sa.Table(
        "rankeval_ledger_entries",
        both,
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column("text", sa.Text(_LARGEST_BODY), nullable=False),
    )
    files = sa.Table(
        "rankeval_ledger_files",
        both,
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("data", sa.LargeBinary(_LARGEST_BODY), nullable=False),
    )
    return entries, files


def _has_tables(connection: sa.Connection) -> bool:
    return bool(connection.dialect.has_table(connection, "rankeval_ledger_files"))
