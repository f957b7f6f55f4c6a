"""The registered test collections of a ledger, as its entries describe them.

Entries of four kinds matter here: ``register`` holds the signatures of a collection, ``open`` the
ranking outputs that were opened, ``exempt`` the queries that may be used elsewhere, and ``retire``
says that a collection is no test any more. A collection belongs to the project that registered it,
and that project alone retires it. An opened output counts for every project that registered the
same content, and for all versions of a collection.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.signature import Signature
from rankeval.errors import LedgerError, warn
from rankeval.join.matching import Hashes
from rankeval.ledger import discovery
from rankeval.ledger.arrays import part_of
from rankeval.ledger.entry import GENESIS, Entry
from rankeval.ledger.graph import Snapshot
from rankeval.ledger.ledger import Ledger

_REMOTE_PATIENCE = 2.0
"""Seconds for which the state of a ledger on a server is taken as known."""


@dataclass(frozen=True, eq=False)
class RegisteredContent:
    """The content of one registered collection, as the ledger describes it."""

    project: str  # The project that registered it, its name there, and the digest of its content
    name: str
    digest: str
    id: str  # The hash of its entry in the ledger, and who registered it when
    who: str
    time: str
    signature: Signature  # The traces of its queries
    # The opened ranking outputs: kind of row -> hash of each query.
    opened: tuple[Mapping[str, Hashes], ...] = ()
    retired: str | None = None  # The reason for which it was retired
    # (n_queries,): The queries that may be used elsewhere: they count for nothing.
    exempt: NDArray[np.bool_] | None = None
    revises: str | None = None  # The id of the registration that this one revises or supersedes

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.signature.n_queries

    @cached_property
    def protected(self) -> Signature:
        """The traces of the queries that are not exempt."""
        return self.signature if self.exempt is None else self.signature.without(self.exempt)

    @cached_property
    def n_identifiable(self) -> int:
        """Number of queries that can be told from others."""
        return int(self.protected.identifiable.sum())

    @property
    def n_to_refuse(self) -> int:
        """Queries that must be found before data is refused: 5 % of those that are identifiable, but at least three.

        All of them if there are fewer. If no query is identifiable, 5 % of all queries.
        """
        n_exempt = 0 if self.exempt is None else int(self.exempt.sum())
        n = self.n_identifiable or self.n_queries - n_exempt
        return min(n, max(3, math.ceil(0.05 * n)))


@dataclass(frozen=True)
class Register:
    """All registered collections of a ledger, as this process last read it."""

    stamp: Any
    snapshot: Snapshot
    contents: tuple[RegisteredContent, ...]


REGISTERS: dict[str, Register] = {}
"""URL -> the last register read. A scorer asks for every fold, so a ledger is read once per change."""


def registered_contents(ledger: Ledger, snapshot: Snapshot) -> tuple[RegisteredContent, ...]:
    """Return all collections that a ledger describes, retired ones too."""
    registered = {entry.hash: entry for entry in snapshot.entries if entry.kind == "register"}
    opened: dict[str, list[dict[str, Hashes]]] = {}
    for entry in snapshot.entries:
        if entry.kind == "open":
            arrays = ledger.load(entry.body["outputs"])
            outputs = [
                part_of(arrays, f"{place}.outputs.") for place in range(len(entry.body["systems"]))
            ]
            opened.setdefault(entry.body["digest"], []).extend(outputs)
    retired = {
        entry.body["registration"]: entry.body["reason"]
        for entry in snapshot.entries
        if entry.kind == "retire"
    }
    exempt, versions = _exempt(ledger, snapshot, registered), _versions(registered)
    contents = []
    for name, entry in registered.items():
        body = entry.body
        known_outputs = tuple(
            output for digest in versions[name] for output in opened.get(digest, ())
        )
        reason = retired.get(name)
        signature = Signature.from_arrays(ledger.load(body["signatures"]))
        known = RegisteredContent(
            signature=signature,
            project=entry.project,
            name=body["name"],
            digest=body["digest"],
            id=name,
            who=entry.who,
            time=entry.time,
            opened=known_outputs,
            retired=reason,
            exempt=exempt.get(name),
            revises=body["revises"],
        )
        contents.append(known)
    return tuple(contents)


def _exempt(
    ledger: Ledger, snapshot: Snapshot, registered: Mapping[str, Entry]
) -> dict[str, NDArray[np.bool_]]:
    """Return id of a registration -> the mask of its exempted queries; none for registrations without any.

    An exemption lists the places of its queries in every collection that holds them. Later
    registrations list those of their queries that had been exempted before.
    """
    places = [
        (name, ledger.load(entry.body["released"])["places"])
        for name, entry in registered.items()
        if entry.body["released"] is not None
    ]
    for entry in snapshot.entries:
        if entry.kind == "exempt":
            places += ledger.load(entry.body["everywhere"]).items()
    exempt: dict[str, NDArray[np.bool_]] = {}
    for name, released in places:
        if len(released):
            none = np.zeros(registered[name].body["n_queries"], dtype=bool)
            exempt.setdefault(name, none)[released] = True
    return exempt


def _versions(registered: Mapping[str, Entry]) -> dict[str, tuple[str, ...]]:
    """Return id of a registration -> the digests of all versions of the collection, older and newer ones."""
    first: dict[str, str] = {}
    digests: dict[str, dict[str, None]] = {}
    # Parents first, so a registration follows those that it revises.
    for name, entry in registered.items():
        first[name] = first.get(entry.body["revises"], name)
        digests.setdefault(first[name], {})[entry.body["digest"]] = None
    return {name: tuple(digests[first[name]]) for name in registered}


def read_register(url: str, head: str = GENESIS) -> Register:
    """Return the register of a ledger as it is now, or, with a warning, as it last was if it cannot be read.

    The ledger must still hold the head that the work began with.
    """
    stamp, known = _stamp(url), REGISTERS.get(url)
    if known is not None and known.stamp == stamp and known.snapshot.holds(head):
        return known
    try:
        register = _read(url, stamp)
    except LedgerError as error:
        if known is None:
            raise
        warn(f"{error}; using its last known state, head {known.snapshot.head[:12]}")
        register = replace(known, stamp=stamp)
    else:
        if not register.snapshot.holds(head):
            raise LedgerError(
                f"the ledger {Ledger(url).where} no longer has the entry {head[:12]} that this work began with: it was "
                "replaced or shortened. List its faults with Guard(...).verify(strict=True), and restore it from a copy"
            )
        discovery.watch(
            url
        )  # in a worker, a plain evaluate respects the ledgers that its scorer brought along
    REGISTERS[url] = register
    return register


def _read(url: str, stamp: Any) -> Register:
    if not discovery.may_exist(url):
        raise LedgerError(f"the ledger {Ledger(url).where} is gone: restore it from a copy")
    ledger = Ledger(url)
    snapshot = ledger.read()
    return Register(stamp, snapshot, registered_contents(ledger, snapshot))


def _stamp(url: str) -> Any:
    # A server is asked every few seconds only: each answer takes as long as a scorer.
    if discovery.place_of(url).kind == "server":
        return int(time.monotonic() / _REMOTE_PATIENCE)
    return Ledger(url).stamp()
