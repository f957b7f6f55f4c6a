"""The graph of entries, whatever store keeps them.

Each entry carries the hashes of the newest entries that its writer saw::

    GENESIS  <--  entry a  <--  entry b  <--  entry d   <--  entry f      f has two parents: d and e were written
                                   ^                            |         in two clones, and met in a merge
                                   +------    entry e   <-------+

The entries without a child are the heads. Of two entries, one is an ancestor of the other, or they
are apart: neither writer had seen the other entry. Nothing is decided by clocks.

A snapshot has one order of all entries: parents first, and the smallest hash among the entries
whose parents all have their place. New entries have no children among the old ones, so they move
none of them: two entries keep their order for good, whichever ledger is merged into the other.

An altered entry no longer has the hash by which it is kept, and a missing one is missed by its
children. The trap: if the newest entries are deleted, the graph that is left is whole. Only a head
that was noted elsewhere shows the loss. Every report therefore has the head of the ledger, as JSON
that `heads_in` reads; the sentences that name it are for people.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path

from rankeval._checks import require
from rankeval.errors import InvalidInput, LedgerError
from rankeval.ledger.entry import GENESIS, Entry, parsed

_AND = "+"
"""Joins the heads of a ledger that has several."""

SHORTEST = 12
"""Hexadecimal digits of a head that suffice, since reports abbreviate it so."""

_HASH = re.compile("[0-9a-f]{64}")
_HEAD = re.compile(f"[0-9a-f]{{{SHORTEST},64}}")
_HEADS = re.compile(rf"{_HEAD.pattern}(?:\+{_HEAD.pattern})*")
# The macro `opening_facts` of ``report/templates/parts.html.jinja`` writes it.
_OPENING = re.compile('<script type="application/json" class="rankeval-opening">(.*?)</script>')


class HeadMovedError(LedgerError):
    """Another writer appended to the ledger between reading and appending: read again and decide again."""


@dataclass(frozen=True)
class Snapshot:
    """The entries of a ledger, parents before children. Entries that are apart stand in the order of hashes."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Snapshot:
        """Order entries, parents before children; an entry that lacks a parent is left out, as all that follow it."""
        known = {entry.hash: entry for entry in entries}
        sorter = TopologicalSorter({name: entry.parents for name, entry in known.items()})
        sorter.prepare()
        ready: list[str] = []
        ordered = []
        while sorter.is_active():
            for name in sorter.get_ready():
                if name in known:  # else it is a missing parent, which is never done
                    heappush(ready, name)
            if not ready:
                break
            name = heappop(ready)
            ordered.append(known[name])
            sorter.done(name)
        return cls(tuple(ordered))

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """The hashes of the entries without a child, sorted; of an empty ledger, `GENESIS`."""
        parents = {parent for entry in self.entries for parent in entry.parents}
        return tuple(sorted(entry.hash for entry in self.entries if entry.hash not in parents)) or (
            GENESIS,
        )

    @property
    def head(self) -> str:
        """The heads as one text, joined by a plus sign if clones were merged and nothing was written since."""
        return _AND.join(self.heads)

    def holds(self, head: str) -> bool:
        """Return whether all entries that a head names are here; every ledger holds the head of an empty one."""
        return all(_held(part, self.places) for part in head.split(_AND))

    def precedes(self, earlier: str, later: str) -> bool:
        """Return whether the writer of the later entry had seen the earlier one."""
        return bool(self._seen[self.places[later]] >> self.places[earlier] & 1)

    def apart(self, first: str, second: str) -> bool:
        """Return whether the writer of neither entry had seen the other."""
        return (
            first != second
            and not self.precedes(first, second)
            and not self.precedes(second, first)
        )

    @cached_property
    def places(self) -> dict[str, int]:
        """The hash of each entry -> its place in the order."""
        return {entry.hash: place for place, entry in enumerate(self.entries)}

    @cached_property
    def _seen(self) -> list[int]:
        # The ancestors of each entry as one whole number, whose bit i stands for the entry at place
        # i: a set of ten thousand entries takes a kilobyte, and a union is one operation.
        seen: list[int] = []
        for entry in self.entries:
            bits = 0
            for parent in entry.parents:
                place = self.places[parent]
                bits |= seen[place] | 1 << place
            seen.append(bits)
        return seen


def graph_of(texts: Mapping[str, str], *heads: str) -> tuple[Snapshot, list[str]]:
    """Return the whole entries of a store, and its faults in words."""
    found = {name: parsed(text, name) for name, text in texts.items()}
    whole = {name: entry for name, entry in found.items() if entry is not None}
    wanted = {
        parent: name for name in sorted(whole, reverse=True) for parent in whole[name].parents
    }
    faults = [_fault(name, texts[name]) for name in sorted(found) if found[name] is None]
    faults += [
        f"the entry {parent[:12]} is missing: the entry {wanted[parent][:12]} follows it"
        for parent in sorted(set(wanted) - set(found))
    ]
    faults += [
        f"the head {lost[:12]} that was noted before is gone: entries were deleted or rewritten, or it is of another "
        "ledger"
        for lost in dict.fromkeys(part for head in heads for part in parts_of(head))
        if not _held(lost, found)
    ]
    return Snapshot.of(whole.values()), faults


def parts_of(head: str) -> list[str]:
    """Return the heads that a text joins by a plus sign."""
    parts = head.strip().split(_AND)
    for part in parts:
        require(
            _HEAD.fullmatch(part),
            "head",
            head,
            f"{SHORTEST} to 64 hexadecimal digits, as a report has them",
        )
    return parts


def _held(head: str, names: Mapping[str, object]) -> bool:
    """Return whether a head, or the beginning of one, is among the names of entries."""
    if head in names:
        return True
    if len(head) < SHORTEST:
        return False
    return GENESIS.startswith(head) or sum(name.startswith(head) for name in names) == 1


def _fault(name: str, text: str) -> str:
    if not _HASH.fullmatch(name):
        return f"{name!r} is not the name of an entry: give it its old name, or move it out of the ledger"
    if "<<<<<<<" in text:
        return (
            f"the entry {name[:12]} has the marks of a conflict in git: restore it from either side"
        )
    return f"the entry {name[:12]} was altered"


def short(head: str) -> str:
    """Return a head as texts name it: 12 digits of each of its parts.

    Examples
    --------
    >>> short("0123456789abcdef+fedcba9876543210")
    '0123456789ab+fedcba987654'
    """
    return _AND.join(part[:SHORTEST] for part in head.split(_AND))


def mention(where: str, head: str) -> str:
    """Return the name of a ledger at a head as all our texts write it.

    Examples
    --------
    >>> mention("rankeval-ledger", "0123456789ab")
    'ledger rankeval-ledger as of head 0123456789ab'
    """
    return f"ledger {where} as of head {head}"


def heads_in(path: str | os.PathLike[str], *, ledger: str | None = None) -> list[str]:
    """Return the heads of ledgers in a report, a comparison as JSON, or a list of heads; in order, each once."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InvalidInput(
            f"cannot be read: {error.strerror or error}", where=os.fspath(path)
        ) from error
    heads = text.split()
    if not all(map(_HEADS.fullmatch, heads)):
        heads = [head for where, head in _openings(text) if ledger in (None, where)]
    return [head for head in dict.fromkeys(heads) if not GENESIS.startswith(head)]


def heads_named(path: str | os.PathLike[str]) -> list[str]:
    """Return the heads of ledgers in a file; raise InvalidInput if there are none."""
    heads = heads_in(path)
    if not heads:
        raise InvalidInput(
            f"{os.fspath(path)} names no head of a ledger",
            remedy="give the page of a guarded test part, the opened comparison as JSON (to_json), or the head itself",
        )
    return heads


def _openings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ledger and its head of each opening in the JSON of a page, or in a text that is JSON."""
    for facts in _OPENING.findall(text) or [text]:
        with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
            opening = json.loads(facts)["opening"]
            yield opening["ledger"], opening["head"]
