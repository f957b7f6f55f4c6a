"""What a ledger asks of the place where it is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rankeval.ledger.discovery import folder_of
from rankeval.ledger.folder import FolderStore


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
        """Keep other writers out; what this thread reads and adds inside is one step."""
        ...

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Read several things over one connection, if there is one; nobody is kept out."""
        ...

    def entries(self) -> Mapping[str, str]:
        """Return hash -> text of all entries."""
        ...

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep new entries, in this order; called inside the lock."""
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


def store_at(url: str) -> Store:
    """Return the store of a URL, as `discovery.ledger_url` returns it."""
    folder = folder_of(url)
    if folder is not None:
        return FolderStore(folder)
    from rankeval.ledger.sql import SqlStore

    return SqlStore(url)
