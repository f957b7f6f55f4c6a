"""One entry of a ledger: what was done, by whom, after which entries. Its name is the hash of its content.

An entry is kept as JSON::

    {"kind": "open", "project": "...", "time": "...", "who": "...", "parents": ["<hash>"], "body": {...}}

Its hash is SHA-256 over the canonical text of that content (sorted keys, no spaces, 1.0 and 1e20
written as whole numbers), never over the bytes of a file. So a file may be indented, or have its
line ends changed by git, and still holds the same entry; and an edit of any field is found, since
the name no longer fits the content.

The trap: JSON readers take the last of two equal keys without a word. Such a text is refused here,
else a reader of the file and this module could see different entries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from rankeval._checks import unique_keys
from rankeval.errors import LedgerError

GENESIS = "0" * 64
"""The head of an empty ledger."""


@dataclass(frozen=True)
class Entry:
    """One entry of a ledger."""

    # What was done: ``register`` (guard.registering), ``freeze`` (guard.freezing), ``open``
    # (guard.opening), ``gate`` and ``decide`` (guard.gate), ``exempt`` and ``retire``
    # (guard.releasing).
    kind: str
    project: str  # The project that did it
    time: str  # UTC, for readers; nothing is decided by it
    who: str  # The person or machine
    parents: tuple[str, ...]  # Hashes of the newest entries when it was written, sorted
    body: Mapping[str, Any]  # The rest, as JSON can hold it

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the canonical content."""
        return hashlib.sha256(canonical(self.content()).encode()).hexdigest()

    def content(self) -> dict[str, Any]:
        """Return the entry as JSON can hold it."""
        # In the order of the fields: it is the order in the files.
        return {part.name: getattr(self, part.name) for part in fields(self)} | {
            "parents": sorted(self.parents)
        }

    def text(self) -> str:
        """Return the text of its file: indented, so that it can be read and reviewed."""
        canonical(self.content())  # refuses what has no canonical text
        return json.dumps(self.content(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def canonical(content: Any) -> str:
    """Return the text that is hashed; raises ValueError for NaN and infinity, which JSON cannot hold."""
    return json.dumps(_plain(content), sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=1 << 16)
def parsed(text: str, name: str) -> Entry | None:
    """Return the entry of a text, or None if it is not the entry of that name.

    A text that was parsed before is not parsed again. It is read again each time, so that no edit
    stays unseen.
    """
    try:
        content = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
        if set(content) != _FIELDS or not all(isinstance(content[key], str) for key in _TEXTS):
            return None
        parents = tuple(content["parents"])
        entry = Entry(**{**content, "parents": parents, "body": _Body(content["body"])})
        whole = all(isinstance(parent, str) for parent in parents) and entry.hash == name
    except (
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
    ):  # no JSON, or nested deeper than Python reads
        return None
    return entry if whole else None


_TEXTS = ("kind", "project", "time", "who")
_FIELDS = {*_TEXTS, "parents", "body"}


class _Body(dict[str, Any]):
    """A body, or a part of one, that says so when it lacks a key."""

    def __missing__(self, key: str) -> Any:
        raise LedgerError(
            f"an entry of the ledger has no {key!r}: another version of rankeval or another program wrote it"
        )


def _unique(pairs: list[tuple[str, Any]]) -> _Body:
    return _Body(unique_keys(pairs))


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _plain(content: Any) -> Any:
    # Programs that format JSON write 1.0 as 1, and 1e17 in full: the hash must not change with
    # that.
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    if isinstance(content, float) and content.is_integer():
        return int(content)
    return content
