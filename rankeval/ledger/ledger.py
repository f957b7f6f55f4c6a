"""A ledger, in whatever store: read it whole, append to it, keep files beside it.

Every read verifies every entry, so nothing is decided on a ledger that was altered. A writer locks the store, reads the
heads, checks that they are those that its entries were decided on, and appends. A writer that came too late gets a
`HeadMovedError`, reads again and decides again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from numpy.typing import NDArray

from rankeval.errors import LedgerError
from rankeval.ledger.arrays import pack, unpack
from rankeval.ledger.discovery import folder_of
from rankeval.ledger.entry import GENESIS, Entry
from rankeval.ledger.folder import FolderStore
from rankeval.ledger.graph import HeadMovedError, Snapshot, graph_of

WHO = "RANKEVAL_WHO"
"""The variable that names the person or machine in new entries."""

Note = tuple[str, Mapping[str, Any]]
"""Kind and body of an entry to be appended."""


class Store(Protocol):
    """What keeps entries and files. Its errors are OSError, ValueError or ImportError, with a message for readers."""

    @property
    def where(self) -> str:
        """The place, for readers, without passwords."""
        ...

    def exists(self) -> bool:
        """Return whether anything was ever kept."""
        ...

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does."""
        ...

    def check_writable(self) -> None:
        """Raise an error if nothing can be kept."""
        ...

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Keep other writers out; what is read and added inside is one step."""
        ...

    def entries(self) -> Mapping[str, str]:
        """Return hash -> text of all entries."""
        ...

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep entries; those that are there stay as they are."""
        ...

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file, unless it is there."""
        ...

    def load(self, name: str) -> bytes | None:
        """Return a file; None if it is missing."""
        ...

    def files(self) -> Sequence[str]:
        """Return the names of all files."""
        ...


class Ledger:
    """An append-only graph of entries that are linked by hashes.

    Parameters
    ----------
    url : str
        As `discovery.ledger_url` returns it. Nothing is created before the first entry.
    who : str, optional
        The person or machine in new entries; by default ``RANKEVAL_WHO``, or user@host.
    """

    def __init__(self, url: str, who: str | None = None) -> None:
        self.url = url
        self.who = who
        self._store = _store(url)

    def __repr__(self) -> str:
        return f"Ledger({self.where!r})"

    @property
    def where(self) -> str:
        """The path, or the URL of the server without its password."""
        return self._store.where

    def exists(self) -> bool:
        """Return whether there is a ledger already."""
        with self._errors("read"):
            return self._store.exists()

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does."""
        with self._errors("read"):
            return self._store.stamp()

    def check_writable(self) -> None:
        """Find out whether entries can be appended, before something is done that must go on record.

        Raises
        ------
        LedgerError
            If not.
        """
        with self._errors("written"):
            self._store.check_writable()

    def read(self) -> Snapshot:
        """Read and verify all entries.

        Raises
        ------
        LedgerError
            If the ledger cannot be read, an entry was altered or one is missing.
        """
        with self._errors("read"):
            texts = self._store.entries()
        snapshot, faults = graph_of(texts)
        if faults:
            raise LedgerError(
                f"the ledger {self.where} is not whole: {faults[0]}"
                + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")
                + ". Restore it from a copy, or list all faults with rankeval guard verify"
            )
        return snapshot

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers of this machine out while something is read, decided and appended."""
        with self._errors("written"), self._store.lock():
            yield

    def append(self, project: str, *notes: Note, expected: str | None = None) -> Entry:
        """Append entries after the present heads, all or none of which another writer may have moved.

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
        with self.locked():
            snapshot = self.read()
            if expected not in {None, snapshot.head}:
                raise HeadMovedError(f"the ledger {self.where} grew beyond {expected} meanwhile")
            parents, added = snapshot.heads, []
            for kind, body in notes:
                entry = Entry(kind, project, _now(), self._who(), tuple(p for p in parents if p != GENESIS), body)
                added.append(entry)
                parents = (entry.hash,)
            self._store.add({entry.hash: entry.text() for entry in added})
        return added[-1]

    def keep(self, kind: str, arrays: Mapping[str, NDArray[Any]]) -> str:
        """Keep arrays in a file that is named by its content, and return the name, for the body of an entry.

        Parameters
        ----------
        kind : {"signatures", "rankings"}
            Rankings are large, and needed only until they are opened.
        arrays : mapping of str to ndarray
            One-dimensional arrays of numbers or booleans.
        """
        data = pack(arrays)
        name = f"{kind}/{hashlib.sha256(data).hexdigest()}.bin"
        with self._errors("written"):
            self._store.keep(name, zlib.compress(data, 6))
        return name

    def load(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a file.

        Parameters
        ----------
        name : str
            The result of `keep`.

        Raises
        ------
        LedgerError
            If the file is missing or was altered.
        """
        with self._errors("read"):
            kept = self._store.load(name)
        if kept is None:
            raise LedgerError(
                f"the ledger {self.where} lacks its file {name}: restore it, or commit it in the clone that has it"
            )
        try:
            data = zlib.decompress(kept)
            if f"{name.partition('/')[0]}/{hashlib.sha256(data).hexdigest()}.bin" == name:
                return unpack(data)
        except (zlib.error, ValueError, TypeError) as error:
            raise LedgerError(f"the file {name} of the ledger {self.where} was altered: {error}") from error
        raise LedgerError(f"the file {name} of the ledger {self.where} was altered: restore it from a copy")

    def problems(self, *heads: str) -> list[str]:
        """Return the faults of the ledger in words; an empty list if it is whole.

        Parameters
        ----------
        *heads : str
            Heads noted earlier, which it must still hold.
        """
        with self._errors("read"):
            texts = self._store.entries()
        return graph_of(texts, *heads)[1]

    def _who(self) -> str:
        return self.who or os.environ.get(WHO) or _user_and_host()

    @contextlib.contextmanager
    def _errors(self, done: str) -> Iterator[None]:
        """Turn the errors of a store into ours."""
        try:
            yield
        except LedgerError:
            raise
        except (OSError, ValueError, ImportError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LedgerError(f"the ledger {self.where} cannot be {done}: {reason}") from error


def _store(url: str) -> Store:
    folder = folder_of(url)
    if folder is not None:
        return FolderStore(folder)
    from rankeval.ledger.sql import SqlStore

    return SqlStore(url)


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
