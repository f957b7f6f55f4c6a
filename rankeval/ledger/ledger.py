"""A ledger, in whatever store: read it whole, append to it, keep files beside it.

Every read verifies every entry, so nothing is decided on a ledger that was altered. A writer locks
the store, reads the heads, checks that they are those that its entries were decided on, and
appends. A writer that came too late gets a `HeadMovedError`, reads again and decides again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rankeval._checks import require
from rankeval._secrets import hidden, shareable
from rankeval.errors import LedgerError, RankevalError
from rankeval.ledger import discovery
from rankeval.ledger.arrays import as_file, from_file, named_files, unaltered
from rankeval.ledger.discovery import place_of
from rankeval.ledger.entry import GENESIS, Entry
from rankeval.ledger.folder import FolderStore
from rankeval.ledger.graph import HeadMovedError, Snapshot, graph_of
from rankeval.ledger.store import Store

WHO = "RANKEVAL_WHO"
"""The variable that names the person or machine in new entries."""


def store_at(url: str) -> Store:
    """Return the store of a URL, as `discovery.ledger_url` returns it."""
    kind, path = place_of(url)
    if kind == "folder":
        return FolderStore(Path(path))
    from rankeval.ledger.sql import SqlStore

    return SqlStore(url)


Note = tuple[str, Mapping[str, Any]]
"""Kind and body of an entry to be appended."""


class Ledger:
    """An append-only graph of entries that are linked by hashes."""

    def __init__(self, url: str, who: str | None = None) -> None:
        fits = who is None or (isinstance(who, str) and who.strip() and who.isprintable())
        require(fits, "who", who, "a name in one line")
        self.url = url
        self._named = who
        self._store = store_at(url)
        self._held = threading.local()

    def __reduce__(self) -> tuple[type[Ledger], tuple[str, str | None]]:
        return Ledger, (
            self.url,
            self._named,
        )  # without the lock and the connection of this process

    def __repr__(self) -> str:
        return f"Ledger({self.where!r})"

    @property
    def where(self) -> str:
        """The path, or the URL of the server without its password."""
        return self._store.where

    @property
    def who(self) -> str:
        """The person or machine in new entries."""
        name = self._named or " ".join(os.environ.get(WHO, "").split()) or _user_and_host()
        return name.encode(
            errors="replace"
        ).decode()  # an environment may hold bytes that are no text

    def exists(self) -> bool:
        """Return whether there is a ledger already."""
        with self._errors("read"):
            return self._store.exists()

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does."""
        with self._errors("read"):
            return self._store.stamp()

    def check_writable(self) -> None:
        """Find out whether entries can be appended, before something is done that must go on record."""
        with self._errors("written"):
            self._store.check_writable()

    def read(self) -> Snapshot:
        """Read and verify all entries. No lock is needed."""
        snapshot, faults = self._verified()
        if faults:
            raise LedgerError(
                f"the ledger {self.where} is not whole: {faults[0]}"
                + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
                + ". Restore it from a copy, or list all faults with rankeval guard verify"
            )
        return snapshot

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers of this machine out while something is read, decided and appended.

        A thread that holds the lock may take it again, as `append` does.
        """
        if getattr(self._held, "lock", False):
            yield
            return
        with contextlib.ExitStack() as stack:
            # Only our own errors are turned into those of the ledger, not those of the work inside.
            with self._errors("written"):
                stack.enter_context(self._store.lock())
            self._held.lock = True
            try:
                yield
            finally:
                self._held.lock = False
            with self._errors("written"):
                stack.close()

    def append(self, project: str, *notes: Note, expected: str | None = None) -> Entry:
        """Append entries after the present heads, unless another writer moved them."""
        discovery.announce(self.url, self.where)
        with self.locked():
            snapshot = self.read()
            if expected not in {None, snapshot.head}:
                raise HeadMovedError(f"the ledger {self.where} grew beyond {expected} meanwhile")
            with self._errors("written"):
                added = list(_chain(snapshot.heads, project, self.who, notes))
                self._store.add({entry.hash: entry.text() for entry in added})
        return added[-1]

    def keep(self, kind: str, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Keep arrays in a file that is named by its content, and return the name, for the body of an entry."""
        discovery.announce(self.url, self.where)
        name, content = as_file(kind, arrays)
        with self._errors("written"):
            self._store.keep(name, content)
        return name

    def has(self, name: str) -> bool:
        """Return whether a file is here."""
        with self._errors("read"):
            return self._store.load(name) is not None

    def load(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a file."""
        kept = self._kept(name)
        try:
            return from_file(name, kept)
        except (ValueError, TypeError) as error:
            raise self._altered(name, error) from error

    def merge(self, other: Ledger) -> int:
        """Add all entries and files of another ledger; the other one stays as it is.

        Nothing is lost, and merging again adds nothing. What the two ledgers wrote apart from each
        other stays so: the next entry follows the heads of both.
        """
        other._check_exists()
        theirs, their_files = other.read(), other._files()
        with self.locked():
            mine, files = self.read(), self._files()
            new = [entry for entry in theirs.entries if not mine.holds(entry.hash)]
            if missing := sorted(_signatures_of(new) - their_files - files):
                raise LedgerError(
                    f"the ledger {other.where} lacks its file {missing[0]}: nothing was merged"
                )
            for name in sorted(their_files - files):
                self._copy(name, other)
            with self._errors("written"):
                self._store.add({entry.hash: entry.text() for entry in new})
        return len(new)

    def export(self, target: str | os.PathLike[str]) -> int:
        """Add all entries and files to another ledger, which is made if it does not exist."""
        return Ledger(discovery.ledger_url(target), self._named).merge(self)

    def problems(self, *heads: str, other: Ledger | None = None) -> list[str]:
        """Return the faults of the ledger in words; an empty list if it is whole."""
        with self._errors("read"), self._store.reading():
            return self._faults(heads) + ([] if other is None else self._missing_from(other))

    def _faults(self, heads: Iterable[str]) -> list[str]:
        snapshot, faults = self._verified(*heads)
        files = self._files()
        named = {name for entry in snapshot.entries for name in named_files(entry.body)}
        missing = sorted(_signatures_of(snapshot.entries) - files)
        faults += [f"the file {name} is missing" for name in missing]
        return faults + [
            f"the file {name} was altered"
            for name in sorted(named & files)
            if not self._is_whole(name)
        ]

    def _missing_from(self, other: Ledger) -> list[str]:
        """Return in words what another ledger holds and this one does not, and its own faults."""
        other._check_exists()
        (snapshot, _), (theirs, faults) = self._verified(), other._verified()
        return [f"{other.where}: {fault}" for fault in faults] + [
            f"the entry {entry.hash[:12]} of {other.where} is not here: it was deleted, or never merged"
            for entry in theirs.entries
            if not snapshot.holds(entry.hash)
        ]

    def _verified(self, *heads: str) -> tuple[Snapshot, list[str]]:
        with self._errors("read"):
            texts = self._store.entries()
            snapshot, faults = graph_of(texts, *heads)
            # A folder that is read while somebody writes may show an entry without its parent.
            # Faults stay.
            while faults and (again := self._store.entries()) != texts:
                texts = again
                snapshot, faults = graph_of(texts, *heads)
        return snapshot, faults

    def _files(self) -> set[str]:
        with self._errors("read"):
            return set(self._store.files())

    def _is_whole(self, name: str) -> bool:
        try:
            self.load(name)
        except LedgerError:
            return False
        return True

    def _copy(self, name: str, other: Ledger) -> None:
        content = other._kept(name)
        try:
            unaltered(name, content)
        except ValueError as error:
            raise other._altered(name, error) from error
        with self._errors("written"):
            self._store.keep(name, content)

    def _kept(self, name: str) -> bytes:
        with self._errors("read"):
            kept = self._store.load(name)
        if kept is None:
            raise LedgerError(
                f"the ledger {self.where} lacks its file {name}: restore it, or commit it in the clone that has it"
            )
        return kept

    def _altered(self, name: str, error: Exception) -> LedgerError:
        return LedgerError(
            f"the file {name} of the ledger {self.where} was altered ({error}): restore it from a copy"
        )

    def _check_exists(self) -> None:
        if not self.exists():
            raise LedgerError(f"there is no ledger {self.where}")

    @contextlib.contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        # A store raises OSError, ValueError or ImportError with a message for readers, or an error
        # of ours.
        try:
            yield
        except RankevalError:
            raise
        except (OSError, ValueError, ImportError) as error:
            reason = hidden(str(getattr(error, "strerror", None) or error), [self.url])
            cause = shareable(error, self.url)
            raise LedgerError(f"the ledger {self.where} cannot be {done}: {reason}") from cause


def _chain(
    parents: tuple[str, ...], project: str, who: str, notes: Iterable[Note]
) -> Iterator[Entry]:
    """Yield an entry for each note, the first after the parents and each other one after the one before."""
    parents = tuple(parent for parent in parents if parent != GENESIS)
    for kind, body in notes:
        entry = Entry(kind, project, _now(), who, parents, body)
        yield entry
        parents = (entry.hash,)


def _signatures_of(entries: Iterable[Entry]) -> set[str]:
    return {
        name
        for entry in entries
        for name in named_files(entry.body)
        if name.startswith("signatures/")
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _user_and_host() -> str:
    import getpass
    import platform

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "unknown"
    return f"{user}@{platform.node()}"
