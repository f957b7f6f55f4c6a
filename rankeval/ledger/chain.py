"""The chain of entries, whatever store keeps them.

Each entry carries the hash of the entry before it::

    000...0  <--  entry 1  <--  entry 2  <--  entry 3
    GENESIS       previous      previous      previous
                  hash          hash          hash  = the head of the ledger

A hash is SHA-256 over ``[previous, seq, kind, project, time, who, body]`` as JSON, where the body is its canonical text
(sorted keys, no spaces). So a store may format a body as it likes, and an edit of any field is found: it changes the
hash of its entry. A deletion inside the chain is found too: it breaks the link of the next entry.

The trap: if the last entries are deleted, the chain that is left is whole. Only a head that was noted elsewhere shows
the loss. Every report therefore names the head of the ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rankeval.errors import LedgerError

GENESIS = "0" * 64
"""The head of an empty ledger."""


@dataclass(frozen=True)
class Entry:
    """One entry of a ledger."""

    seq: int
    kind: str
    project: str
    time: str
    who: str
    body: Mapping[str, Any]
    previous: str
    hash: str = ""

    def hashed(self) -> Entry:
        """Return the entry with its hash."""
        parts = [self.previous, str(self.seq), self.kind, self.project, self.time, self.who, canonical(self.body)]
        return replace(self, hash=hashlib.sha256(json.dumps(parts).encode()).hexdigest())


class HeadMovedError(LedgerError):
    """Another writer appended to the ledger between reading and appending: read again and decide again."""


@dataclass(frozen=True)
class Snapshot:
    """Some entries of a ledger, and the hashes of all its entries, oldest first."""

    entries: tuple[Entry, ...] = ()
    hashes: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.hashes[-1] if self.hashes else GENESIS

    def holds(self, entry_hash: str) -> bool:
        """Return whether an entry has this hash; every ledger holds the head of an empty one."""
        return entry_hash == GENESIS or entry_hash in self.hashes


def canonical(body: Mapping[str, Any]) -> str:
    """Return the text of a body that is hashed; raises ValueError for NaN and infinity, which JSON cannot hold."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def restored(row: Any) -> Entry | None:
    """Return the entry of a stored row, or None if the row is not as it was written.

    Parameters
    ----------
    row : object
        The fields of an entry as attributes, the body as text.
    """
    try:
        body = json.loads(row.body, object_hook=_Body)
        entry = Entry(row.seq, row.kind, row.project, row.time, row.who, body, row.previous, row.hash)
        whole = isinstance(body, _Body) and entry.hashed().hash == row.hash
    except (TypeError, ValueError, RecursionError):  # not JSON, or nested deeper than Python reads
        return None
    return entry if whole else None


def problems(rows: Iterable[Any], *heads: str) -> list[str]:
    """Return the faults of a chain in words; an empty list if it is whole.

    Parameters
    ----------
    rows : iterable of object
        All stored rows, by ascending number.
    *heads : str
        Heads noted earlier, which the chain must still hold.
    """
    found, seen, previous, expected = [], {GENESIS}, GENESIS, 1
    for row in rows:
        if row.seq != expected:
            found.append(f"entries {expected} to {row.seq - 1} are missing")
        if row.previous != previous:
            found.append(f"entry {row.seq} does not follow the one before it")
        if restored(row) is None:
            found.append(f"entry {row.seq} was altered")
        seen.add(row.hash)
        previous, expected = row.hash, row.seq + 1
    gone = [head for head in dict.fromkeys(heads) if head not in seen]
    found += [f"the head {head[:12]} that was noted before is gone: entries were deleted at the end" for head in gone]
    return found


class _Body(dict[str, Any]):
    """A body, or a part of one, that says so when it lacks a key."""

    def __missing__(self, key: str) -> Any:
        raise LedgerError(
            f"an entry of the ledger has no {key!r}: another version of rankeval or another program wrote it"
        )
