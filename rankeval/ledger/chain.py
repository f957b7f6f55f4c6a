"""The ledger: an append-only list of entries, each of which carries the hash of the one before.

An edit of an entry changes its hash, and a deletion inside breaks the link of the next one: `Ledger.problems` finds
both. A deletion at the end leaves a shorter, whole chain: that is found only against a head remembered elsewhere, so
every report names the head. The links are unique in the table, so two writers cannot both append after one entry,
whatever the database; on SQLite a writer also takes the lock before it reads the head. The rollback journal stays as
it is: SQLite's write-ahead log does not work on network drives.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import LedgerError
from rankeval.ledger.discovery import sqlite_path

if TYPE_CHECKING:
    import sqlalchemy as sa

GENESIS = "0" * 64
"""The head of an empty ledger."""

_LARGEST_BODY = 1 << 30
"""Asked for, so that MySQL takes its longest text; the others know no limit."""
_PATIENCE = 60.0
"""Seconds to wait for other writers."""


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger."""

    seq: int
    kind: str
    project: str
    time: str
    who: str
    body: Mapping[str, Any]
    previous: str
    hash: str


class HeadMovedError(LedgerError):
    """The ledger grew between reading and appending: read again."""


class Ledger:
    """An append-only, hash-linked ledger in any database that SQLAlchemy knows.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL. Nothing is created before the first entry.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def __repr__(self) -> str:
        return f"Ledger({self.shown!r})"

    @property
    def shown(self) -> str:
        """The URL without its password."""
        import sqlalchemy as sa

        try:
            return sa.engine.make_url(self.url).render_as_string(hide_password=True)
        except (sa.exc.ArgumentError, ValueError):
            return re.sub(r"://[^@/]*@", "://***@", self.url)

    def append(self, kind: str, project: str, body: Mapping[str, Any], *, expected: str | None = None) -> Entry:
        """Append an entry after the present head.

        Parameters
        ----------
        kind, project : str
            What it records, and for whom.
        body : mapping
            What JSON can hold.
        expected : str, optional
            The head that the entry was made for.

        Raises
        ------
        HeadMovedError
            When the head is another one than expected.
        LedgerError
            When the ledger cannot be written.
        """
        import sqlalchemy as sa

        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._append_once(kind, project, text, expected)
            except sa.exc.IntegrityError as error:  # another writer was faster, where the database has no lock for us
                if time.monotonic() > deadline:
                    raise LedgerError(f"{self.shown}: gave up appending after {_PATIENCE:.0f} s") from error
                time.sleep(0.01)

    def entries(self, *, kinds: Sequence[str] | None = None, project: str | None = None) -> list[Entry]:
        """Return the entries, oldest first; those of some kinds or of one project.

        Parameters
        ----------
        kinds : sequence of str, optional
            Kinds of entry.
        project : str, optional
            Name of a project.

        Raises
        ------
        LedgerError
            When the ledger cannot be read.
        """
        import sqlalchemy as sa

        table = _table()
        query = sa.select(table).order_by(table.c.seq)
        if kinds is not None:
            query = query.where(table.c.kind.in_(kinds))
        if project is not None:
            query = query.where(table.c.project == project)
        return [self._whole(row) for row in self._rows(query)]

    def head(self) -> str:
        """Return the hash of the last entry."""
        import sqlalchemy as sa

        table = _table()
        rows = self._rows(sa.select(table.c.hash).order_by(table.c.seq.desc()).limit(1))
        return str(rows[0][0]) if rows else GENESIS

    def holds(self, entry_hash: str) -> bool:
        """Whether an entry with this hash is there; the head of an empty ledger always is.

        Parameters
        ----------
        entry_hash : str
            A hash, such as a head remembered.
        """
        import sqlalchemy as sa

        table = _table()
        return entry_hash == GENESIS or bool(self._rows(sa.select(table.c.seq).where(table.c.hash == entry_hash)))

    def problems(self, head: str | None = None) -> list[str]:
        """Return what is wrong with the chain, in words; nothing if it holds.

        Parameters
        ----------
        head : str, optional
            A head remembered from before, which must still be in the chain.
        """
        import sqlalchemy as sa

        found, seen, previous, expected = [], {GENESIS}, GENESIS, 1
        for row in self._rows(sa.select(_table()).order_by(_table().c.seq)):
            if row.seq != expected:
                found.append(f"entries {expected} to {row.seq - 1} are missing")
            if row.previous != previous:
                found.append(f"entry {row.seq} does not follow the one before it")
            if row.hash != _hash(row):
                found.append(f"entry {row.seq} was altered")
            seen.add(row.hash)
            previous, expected = row.hash, row.seq + 1
        if head is not None and head not in seen:
            found.append(f"the head {head[:12]} that was noted before is gone: entries were deleted at the end")
        return found

    def _whole(self, row: Any) -> Entry:
        """Return an entry as it was written, or say that it was altered: nothing is decided on such a one."""
        if row.hash == _hash(row):
            try:
                return _entry(row)
            except (ValueError, RecursionError):  # hashed by something else than this class
                pass
        raise LedgerError(
            f"entry {row.seq} of the ledger {self.shown} was altered, or is none of ours: restore the ledger, or see "
            "rankeval guard verify"
        )

    def _append_once(self, kind: str, project: str, text: str, expected: str | None) -> Entry:
        import sqlalchemy as sa

        table = _table()
        with self._connection(write=True) as connection:
            last = connection.execute(sa.select(table.c.seq, table.c.hash).order_by(table.c.seq.desc()).limit(1))
            seq, head = last.one_or_none() or (0, GENESIS)
            if expected is not None and head != expected:
                raise HeadMovedError(f"{self.shown} grew from {expected[:12]} to {head[:12]} meanwhile")
            row = _Row(seq + 1, kind, project, _now(), _who(), text, head)
            row = replace(row, hash=_hash(row))
            connection.execute(table.insert().values(**asdict(row)))
        return _entry(row)

    def _rows(self, query: Any) -> Sequence[Any]:
        path = sqlite_path(self.url)
        if path is not None and not Path(path).exists():
            return []
        with self._connection(write=False) as connection:
            if not _has_table(connection):
                return []
            return connection.execute(query).all()

    @contextmanager
    def _connection(self, *, write: bool) -> Iterator[sa.Connection]:
        import sqlalchemy as sa

        try:
            engine = _engine(self.url)
            with engine.connect().execution_options(rankeval_write=write) as connection, connection.begin():
                if write and not _has_table(connection):
                    _table().create(connection)
                yield connection
        except sa.exc.IntegrityError:
            raise
        except (sa.exc.SQLAlchemyError, OSError, ImportError, ValueError) as error:
            what = "written" if write else "read"
            raise LedgerError(f"the ledger {self.shown} cannot be {what}: {self._reason(error)}") from error

    def _reason(self, error: BaseException) -> str:
        """Return in one line what the database said, without our SQL and without the password."""
        import sqlalchemy as sa

        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        try:
            password = sa.engine.make_url(self.url).password
        except (sa.exc.ArgumentError, ValueError):
            password = None
        return said.replace(str(password), "***") if password else said


@dataclass(frozen=True)
class _Row:
    """A row of the table, with the body as the text that is hashed."""

    seq: int
    kind: str
    project: str
    time: str
    who: str
    body: str
    previous: str
    hash: str = ""


def pack(array: NDArray[Any]) -> dict[str, str]:
    """Return an array as something that JSON can hold.

    Parameters
    ----------
    array : ndarray of shape (n,)
        Numbers or bools.
    """
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"))
    return {"dtype": plain.dtype.str, "zlib": base64.b64encode(zlib.compress(plain.tobytes(), 1)).decode()}


def unpack(packed: Mapping[str, str]) -> NDArray[Any]:
    """Return the array that was packed.

    Parameters
    ----------
    packed : mapping
        What `pack` returned.
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), dtype=np.dtype(packed["dtype"])).copy()


_ENGINES: dict[str, Any] = {}
_TABLES: list[Any] = []


def _engine(url: str) -> sa.Engine:
    """Return the engine for a URL: a connection for each transaction, so that forked workers share none."""
    import sqlalchemy as sa

    if url in _ENGINES:
        engine: sa.Engine = _ENGINES[url]
        return engine
    path = sqlite_path(url)
    if path is None:
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    else:
        engine = sa.create_engine(url, poolclass=sa.pool.NullPool, connect_args={"timeout": _PATIENCE})
        sa.event.listen(engine, "connect", _leave_transactions_to_us)
        sa.event.listen(engine, "begin", _begin)
    _ENGINES[url] = engine
    return engine


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    """Take the write lock before the head is read: a lock taken later could be refused half-way."""
    write = connection.get_execution_options().get("rankeval_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _table() -> sa.Table:
    import sqlalchemy as sa

    if not _TABLES:
        _TABLES.append(
            sa.Table(
                "rankeval_ledger",
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
        )
    table: sa.Table = _TABLES[0]
    return table


def _has_table(connection: sa.Connection) -> bool:
    return bool(connection.dialect.has_table(connection, "rankeval_ledger"))


def _hash(row: Any) -> str:
    parts = [row.previous, str(row.seq), row.kind, row.project, row.time, row.who, row.body]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class _Body(dict[str, Any]):
    """A body, or part of one, that answers for what it lacks."""

    def __missing__(self, key: str) -> Any:
        raise LedgerError(
            f"an entry of the ledger has no {key!r}: it was written by another version, or is none of ours"
        )


def _entry(row: Any) -> Entry:
    body = json.loads(row.body, object_hook=_Body)
    if not isinstance(body, _Body):
        raise ValueError("no JSON object")  # noqa: TRY004 - caught where entries are read
    return Entry(row.seq, row.kind, row.project, row.time, row.who, body, row.previous, row.hash)


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


def _who() -> str:
    import getpass
    import platform

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        user = "unknown"
    return f"{user}@{platform.node()}"
