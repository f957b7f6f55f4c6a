"""The contract of a store: what a `Ledger` needs of the place that keeps its entries and files.

`FolderStore` and `SqlStore` follow it. Three functions know which kinds there are: `ledger_url`
makes the URL and `place_of` reads its kind, in `rankeval.ledger.discovery`, and
`rankeval.ledger.ledger.store_at` makes the store. `STORES` in tests/ledger/conftest.py has the
stores that all laws try. An
entry is a text under its hash, and a file is bytes under a name that has its hash, so a store never
changes what it keeps. A store raises OSError, ValueError or ImportError with a message for readers,
or an error of ours.

The trap: an entry names files, so `Ledger` keeps the files first. A store that reorders its writes
can lose a file whose entry is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Store(Protocol):
    """Keeps the entries and files of one ledger."""

    where: str
    """The place as messages name it, without passwords."""

    def exists(self) -> bool:
        """Return whether there is a ledger; raises OSError if something else is in its place."""

    def stamp(self) -> Any:
        """Return a value that changes when the ledger does, or None; cheap, for it is asked at every score."""

    def check_writable(self) -> None:
        """Raise an error if nothing can be kept here; no entry or file is left behind."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep other writers out until the context ends; makes the ledger if it is not there."""

    def reading(self) -> AbstractContextManager[None]:
        """Read several things over one connection until the context ends."""

    def entries(self) -> dict[str, str]:
        """Return hash -> text of all entries, in any order."""

    def add(self, entries: Mapping[str, str]) -> None:
        """Keep entries, hash -> text, in this order; the lock is held."""

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file, unless it is there; takes the lock if it needs one."""

    def load(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it is missing."""

    def files(self) -> list[str]:
        """Return the names of all files, in any order."""
