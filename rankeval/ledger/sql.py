"""A ledger in any database that SQLAlchemy knows: one table of entries, one of files, one with a row to lock.

A writer locks before it reads the heads: SQLite by ``BEGIN IMMEDIATE``, a server by the one row
that every writer updates first and holds to the end of its transaction. A lock that is taken later
can be refused half-way, when two transactions have both read and then both want to write. Readers
wait for nobody. Tested on SQLite and PostgreSQL.

The trap: SQLite's rollback journal stays as it is. Its write-ahead log does not work on network
drives.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from rankeval._secrets import hidden, masked, shareable
from rankeval.errors import LedgerError
from rankeval.ledger.discovery import may_exist, place_of
from rankeval.ledger.folder import PATIENCE, try_writing

_REACHED_WITHIN = 10
"""Seconds in which a PostgreSQL server must answer. Without a limit, scores would wait for minutes."""
_THE_ROW = 1

# MySQL's usual text and bytes end at 64 kB; other databases have no such limit.
_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_DATA = sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
_METADATA = sa.MetaData()
_ENTRIES = sa.Table(
    "rankeval_ledger_entries",
    _METADATA,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("text", _TEXT, nullable=False),
)
_FILES = sa.Table(
    "rankeval_ledger_files",
    _METADATA,
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("data", _DATA, nullable=False),
)
_LOCK = sa.Table(
    "rankeval_ledger_lock",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("writes", sa.BigInteger, nullable=False),
)


class _UndoneError(Exception):
    """Ends a transaction that was only tried."""


class SqlStore:
    """Keeps entries and files in tables."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.path: str = place_of(url).path  # empty for a server
        self.where: str = self.path or masked(url)
        self._held = threading.local()

    def exists(self) -> bool:
        """See `Store`; the tables tell it."""
        if not may_exist(self.url):
            return False
        with self._connected() as connection:
            return _has_tables(connection)

    def stamp(self) -> Any:
        """See `Store`; of a file by its state, of a server by counting rows."""
        if self.path:
            return _stamp_of(self.path)
        counts = [
            sa.select(sa.func.count()).select_from(table).scalar_subquery()
            for table in (_ENTRIES, _FILES)
        ]
        return tuple(tuple(row) for row in self._rows(sa.select(_LOCK.c.writes, *counts)))

    def check_writable(self) -> None:
        """See `Store`; tables on a server are made."""
        folder = Path(self.where).parent
        if not self.path or Path(self.path).exists():
            with suppress(_UndoneError), self.lock():
                self._insert(_FILES, name="writable", data=b"")
                raise _UndoneError
        elif not folder.is_dir():
            raise LedgerError(
                f"the ledger {self.where} cannot be written: the folder {folder} does not exist"
            )
        else:
            try_writing(folder)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """See `Store`; one transaction of this thread."""
        with ExitStack() as stack:
            with self._errors("written"):
                connection = stack.enter_context(
                    self._connect().execution_options(rankeval_write=True)
                )
                if connection.dialect.name != "sqlite":
                    _make_tables(connection)
                stack.enter_context(connection.begin())
                _take_row(connection)
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = None
            with self._errors("written"):
                stack.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See `Store`; a server is asked for each file."""
        if not may_exist(self.url) or self._connection is not None:
            yield
            return
        with self._connected() as connection:
            self._held.connection = connection
            try:
                yield
            finally:
                self._held.connection = None

    def _connect(self) -> sa.Connection:
        try:
            return _engine(self.url).connect()
        except (
            TypeError,
            LookupError,
            AttributeError,
        ) as error:  # a driver that does not know a setting of the URL
            raise sa.exc.ArgumentError(f"{type(error).__name__}: {error}") from error

    @property
    def _connection(self) -> sa.Connection | None:
        return getattr(self._held, "connection", None)

    def entries(self) -> dict[str, str]:
        """See `Store`."""
        # SQLite keeps whatever somebody puts there: numbers, bytes, nothing.
        return {
            str(row.hash): row.text if isinstance(row.text, str) else ""
            for row in self._rows(sa.select(_ENTRIES))
        }

    def add(self, entries: Mapping[str, str]) -> None:
        """See `Store`."""
        for name, text in entries.items():
            self._insert(_ENTRIES, hash=name, text=text)

    def keep(self, name: str, data: bytes) -> None:
        """See `Store`."""
        if self._connection is None:
            with self.lock():
                self.keep(name, data)
        elif self.load(name) is None:
            self._insert(_FILES, name=name, data=data)

    def load(self, name: str) -> bytes | None:
        """See `Store`."""
        try:
            rows = self._rows(sa.select(_FILES.c.data).where(_FILES.c.name == name))
            return rows[0].data if rows else None
        except TypeError:  # SQLite keeps a text there if somebody puts one
            return b""

    def files(self) -> list[str]:
        """See `Store`."""
        return [str(row.name) for row in self._rows(sa.select(_FILES.c.name))]

    def _rows(self, query: Any) -> Any:
        if not may_exist(self.url):
            return ()
        with self._connected() as connection:
            return connection.execute(query).all() if _has_tables(connection) else ()

    def _insert(self, table: sa.Table, **values: Any) -> None:
        with self._errors("written"):
            self._held.connection.execute(table.insert().values(**values))

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self._errors("read"):
            if self._connection is not None:
                yield self._connection
                return
            with self._connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            # The first line is the database's own; below stand our SQL and its parameters.
            text = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            reason = hidden(text, [self.url])
            cause = shareable(error, self.url)
            raise LedgerError(f"the ledger {self.where} cannot be {done}: {reason}") from cause


def _make_tables(connection: sa.Connection) -> None:
    # Each step in a transaction of its own: another process may make the same table or row at the
    # same time.
    with connection.begin():
        if _has_tables(connection) and connection.execute(sa.select(_LOCK)).first():
            return
    try:
        with connection.begin():
            _METADATA.create_all(connection)
    except sa.exc.DBAPIError:
        with connection.begin():
            if not _has_tables(connection):
                raise
    with suppress(sa.exc.IntegrityError), connection.begin():
        connection.execute(_LOCK.insert().values(id=_THE_ROW, writes=0))


def _take_row(connection: sa.Connection) -> None:
    """Wait for the one row that writers update; in SQLite the transaction itself is the lock."""
    if connection.dialect.name == "sqlite":
        _METADATA.create_all(connection)
        return
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE * 1000:.0f}ms'")
    updated = connection.execute(
        _LOCK.update().where(_LOCK.c.id == _THE_ROW).values(writes=_LOCK.c.writes + 1)
    )
    if updated.rowcount != 1:
        raise LedgerError(
            f"the table {_LOCK.name} has no row {_THE_ROW}, which writers lock: nothing was written"
        )


def _stamp_of(path: str) -> Any:
    """Return the state of a file of SQLite: what the file system says, and SQLite's own count of changes."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - asked for every score
            state, head = os.fstat(file.fileno()), file.read(28)
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size, head[24:]


@cache
def _engine(url: str) -> sa.Engine:
    # Without a pool: a connection is opened for each transaction, so that forked workers share
    # none.
    if not place_of(url).path:
        place = sa.engine.make_url(url)
        known = (
            place.get_driver_name() in {"psycopg", "psycopg2"}
            and "connect_timeout" not in place.query
        )
        limits = {"connect_timeout": _REACHED_WITHIN} if known else {}
        # Heads are read after the lock was taken, and must then be those of now.
        return sa.create_engine(
            url, poolclass=sa.pool.NullPool, isolation_level="READ COMMITTED", connect_args=limits
        )
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args={"timeout": PATIENCE})
    sa.event.listen(engine, "connect", _leave_transactions_to_us)
    sa.event.listen(engine, "begin", _begin)
    return engine


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    # sqlite3 would begin a transaction only before the first write, after the head was read.
    connection.isolation_level = None
    # Bytes that are no text make one altered entry: the other entries must still be read.
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("rankeval_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _has_tables(connection: sa.Connection) -> bool:
    return bool(connection.dialect.has_table(connection, _LOCK.name))
