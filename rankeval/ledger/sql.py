"""A ledger in any database that SQLAlchemy knows: one table, one row per entry, two unique links.

Reading and appending never lose an entry, and no two writers append after the same one:

* A writer reads the head, checks that it is the head that its entries were made for, and appends, all in one
  transaction. SQLite takes the lock for writers before the head is read. A lock taken later can be refused half-way,
  when two transactions have both read and then both want to write.
* In every database, the columns ``previous`` and ``hash`` are unique: without a lock, the slower of two writers is
  refused.

A writer that came too late gets a `HeadMovedError`, reads again and decides again.

The trap: SQLite's rollback journal stays as it is. Its write-ahead log does not work on network drives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from rankeval.errors import LedgerError
from rankeval.ledger.chain import GENESIS, Entry, HeadMovedError, Snapshot, canonical, problems, restored
from rankeval.ledger.discovery import may_exist, sqlite_path

if TYPE_CHECKING:
    import sqlalchemy as sa

_TABLE = "rankeval_ledger"
_LARGEST_BODY = 1 << 30
"""Asked for, so that MySQL takes its longest text; other databases have no limit."""
_PATIENCE = 60.0
"""Seconds to wait for the lock of another writer."""

Note = tuple[str, Mapping[str, Any]]
"""Kind and body of an entry to be appended."""


class Ledger:
    """An append-only, hash-linked ledger in a database.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL. Nothing is created before the first entry.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def __repr__(self) -> str:
        return f"Ledger({self.where!r})"

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

    def append(self, project: str, *notes: Note, expected: str | None = None) -> Entry:
        """Append entries after the present head, all or none.

        Parameters
        ----------
        project : str
            The project that the entries belong to.
        *notes : (kind, body)
            The entries. A body is a mapping that JSON can hold.
        expected : str, optional
            The head that the entries were made for; any head by default.

        Returns
        -------
        Entry
            The last one.

        Raises
        ------
        HeadMovedError
            If another writer appended in between.
        LedgerError
            If the ledger cannot be written.
        """
        import sqlalchemy as sa

        for _, body in notes:
            canonical(body)  # a body with NaN is refused before the ledger is touched
        table = _table()
        with self._connection(write=True) as connection:
            last = connection.execute(sa.select(table.c.seq, table.c.hash).order_by(table.c.seq.desc()).limit(1))
            seq, head = last.one_or_none() or (0, GENESIS)
            if expected not in {None, head}:
                raise HeadMovedError(f"the ledger {self.where} grew from {expected[:12]} to {head[:12]} meanwhile")
            for kind, body in notes:
                entry = Entry(seq + 1, kind, project, _now(), _who(), body, head).hashed()
                connection.execute(table.insert().values({**vars(entry), "body": canonical(body)}))
                seq, head = entry.seq, entry.hash
        return entry

    def read(self, kinds: Sequence[str] | None = None, project: str | None = None) -> Snapshot:
        """Read the entries of some kinds or of one project, and the hashes of all entries, over one connection.

        Parameters
        ----------
        kinds : sequence of str, optional
            Kinds of entry; all by default.
        project : str, optional
            Name of a project; all by default.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, or one of these entries was altered.
        """
        import sqlalchemy as sa

        table = _table()
        query = sa.select(table).order_by(table.c.seq)
        if kinds is not None:
            query = query.where(table.c.kind.in_(kinds))
        if project is not None:
            query = query.where(table.c.project == project)
        # The hashes first: a database that shows each statement its newest state may then give entries beyond the
        # head, and appending finds that the head moved. The other way round, an entry could be missed for good.
        hashes, rows = self._select(sa.select(table.c.hash).order_by(table.c.seq), query)
        return Snapshot(tuple(map(self._whole, rows)), tuple(row.hash for row in hashes))

    def problems(self, *heads: str) -> list[str]:
        """Return the faults of the chain in words; see `rankeval.ledger.chain.problems`."""
        import sqlalchemy as sa

        (rows,) = self._select(sa.select(_table()).order_by(_table().c.seq))
        return problems(rows, *heads)

    def _select(self, *queries: Any) -> list[Sequence[Any]]:
        """Return the rows of each query in one transaction; no rows if there is no ledger yet."""
        if may_exist(self.url):
            with self._connection(write=False) as connection:
                if _has_table(connection):
                    return [connection.execute(query).all() for query in queries]
        return [()] * len(queries)

    def _whole(self, row: Any) -> Entry:
        """Return the entry of a row; nothing is decided on one that was altered."""
        entry = restored(row)
        if entry is None:
            raise LedgerError(
                f"entry {row.seq} of the ledger {self.where} was altered, or another program wrote it: restore the "
                "ledger from a copy, or list all faults with rankeval guard verify"
            )
        return entry

    @contextmanager
    def _connection(self, *, write: bool) -> Iterator[sa.Connection]:
        import sqlalchemy as sa

        try:
            options = {"rankeval_write": write}
            with _engine(self.url).connect().execution_options(**options) as connection, connection.begin():
                if write and not _has_table(connection):
                    _table().create(connection)
                yield connection
        except sa.exc.IntegrityError as error:  # a faster writer, in a database without a lock for us
            raise HeadMovedError(f"another writer appended to the ledger {self.where} at the same time") from error
        except (sa.exc.SQLAlchemyError, OSError, ImportError, ValueError) as error:
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
def _table() -> sa.Table:
    import sqlalchemy as sa

    return sa.Table(
        _TABLE,
        sa.MetaData(),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("project", sa.String(255), nullable=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("body", sa.Text(_LARGEST_BODY), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False, unique=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
    )


def _has_table(connection: sa.Connection) -> bool:
    return bool(connection.dialect.has_table(connection, _TABLE))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _who() -> str:
    import getpass
    import platform

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{platform.node()}"
