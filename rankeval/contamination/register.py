"""The registered collections of a ledger, as one snapshot in memory, and what of some data is among them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.evidence import REFUSAL_CHANCE, chance_of_labels
from rankeval.contamination.fingerprint import IDENTIFIABLE_BITS, Fingerprint, evidence_bits
from rankeval.contamination.hashing import Hashes
from rankeval.ledger.chain import Entry, Ledger, pack, unpack

KINDS = ("register", "retire", "open")
"""The entries that a snapshot is made of."""


@dataclass(frozen=True, eq=False)
class Sealed:
    """One registered collection, as the ledger knows it.

    Attributes
    ----------
    project, name, digest : str
        Who registered it, under which name, and its content.
    signatures : mapping of str to ndarray of uint64 of shape (n_queries,)
        Kind of content -> signature of each query.
    identifiable : mapping of str to ndarray of bool of shape (n_queries,)
        Kind of content -> whether the query can be told from others by it.
    opened : tuple of mappings of str to ndarray of uint64
        The ranking outputs that were opened: kind of row -> hash of each query.
    retired : str, optional
        The reason why it was released, if it was.
    """

    project: str
    name: str
    digest: str
    signatures: Mapping[str, Hashes]
    identifiable: Mapping[str, NDArray[np.bool_]]
    opened: tuple[Mapping[str, Hashes], ...] = ()
    retired: str | None = None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(next(iter(self.signatures.values())))

    @cached_property
    def n_identifiable(self) -> int:
        """Number of queries that can be told from others by at least one kind of content."""
        return int(np.logical_or.reduce([np.zeros(self.n_queries, dtype=bool), *self.identifiable.values()]).sum())

    @property
    def n_to_refuse(self) -> int:
        """How many identifiable queries must match: 5 % of them and at least three, or all if there are fewer."""
        return min(self.n_identifiable, max(3, math.ceil(0.05 * self.n_identifiable)))

    @cached_property
    def telling(self) -> dict[str, Hashes]:
        """Kind of content -> the sorted signatures of the queries that it identifies."""
        return {
            kind: np.unique(hashes[self.identifiable[kind]])
            for kind, hashes in self.signatures.items()
            if kind in self.identifiable and self.identifiable[kind].any()
        }


@dataclass(frozen=True, eq=False)
class Match:
    """What of some data is in one registered collection.

    Attributes
    ----------
    sealed : Sealed
        The collection.
    n_matched : int
        How many of its identifiable queries are in the data.
    chance : float
        The chance that other data has these labels; 1 if they say nothing.
    same_labels : bool
        Whether the data has the labels of the whole collection, query for query.
    queries : ndarray of bool
        Which queries of the data are in the collection.
    """

    sealed: Sealed
    n_matched: int
    chance: float
    same_labels: bool
    queries: NDArray[np.bool_]

    @property
    def by_content(self) -> bool:
        """Whether enough identifiable queries match."""
        return self.n_matched > 0 and self.n_matched >= self.sealed.n_to_refuse

    @property
    def by_labels(self) -> bool:
        """Whether the labels match beyond chance."""
        return self.chance < REFUSAL_CHANCE

    @property
    def why(self) -> str:
        """The evidence, in words."""
        sealed = self.sealed
        if self.n_matched:
            return f"{self.n_matched} of its {sealed.n_identifiable} identifiable queries are in the data"
        if self.by_labels:
            chance = f"{self.chance:.0e}" if self.chance >= 1e-12 else "under 1e-12"
            return f"the labels are those of {len(self.queries)} of its {sealed.n_queries} queries (chance {chance})"
        if self.same_labels:
            return f"the labels look like those of its {sealed.n_queries} queries, as chance might have it"
        return "nothing of it is in the data"


def registration(known: Fingerprint, X: Any | None) -> dict[str, Any]:
    """Return what the ledger keeps of a collection: signatures and which of them identify a query.

    Parameters
    ----------
    known : Fingerprint
        The content.
    X : array, sparse matrix or DataFrame, optional
        The features themselves, from which their evidence is judged.
    """
    order = np.argsort(known.content, kind="stable")
    bits = evidence_bits(known, X)
    return {
        "digest": known.digest,
        "n_queries": known.n_queries,
        "n_rows": len(known.codes),
        "signatures": {kind: pack(hashes[order]) for kind, hashes in known.queries.items()},
        "identifiable": {kind: pack((bits[kind] >= IDENTIFIABLE_BITS)[order]) for kind in bits},
    }


def sealed_from(body: Mapping[str, Any], project: str, **found: Any) -> Sealed:
    """Return a collection from the body of its entry.

    Parameters
    ----------
    body : mapping
        What `registration` returned, with a name.
    project : str
        Who registered it.
    **found
        What later entries say: ``opened``, ``retired``.
    """
    return Sealed(
        project,
        body["name"],
        body["digest"],
        {kind: unpack(packed) for kind, packed in body["signatures"].items()},
        {kind: unpack(packed) for kind, packed in body["identifiable"].items()},
        **found,
    )


def read_register(ledger: Ledger) -> tuple[Sealed, ...]:
    """Return all registered collections of a ledger, retired ones too.

    Parameters
    ----------
    ledger : Ledger
        Where to look.
    """
    return register_of(ledger.entries(kinds=KINDS))


def register_of(entries: list[Entry]) -> tuple[Sealed, ...]:
    """Return all registered collections in some entries.

    Parameters
    ----------
    entries : list of Entry
        Entries of the kinds in `KINDS`, oldest first.
    """
    registered: dict[tuple[str, str], Mapping[str, Any]] = {}
    retired: dict[tuple[str, str], str] = {}
    opened: dict[str, list[dict[str, Hashes]]] = {}
    for entry in entries:
        body = entry.body
        if entry.kind == "register":
            registered[entry.project, body["digest"]] = body
        elif entry.kind == "retire":
            retired[entry.project, body["digest"]] = body["reason"]
        elif entry.kind == "open":
            for system in body["systems"].values():
                outputs = {kind: unpack(packed) for kind, packed in system["outputs"].items()}
                opened.setdefault(body["digest"], []).append(outputs)
    return tuple(
        sealed_from(body, project, opened=tuple(opened.get(digest, ())), retired=retired.get((project, digest)))
        for (project, digest), body in registered.items()
    )


def match(sealed: Sealed, known: Fingerprint) -> Match:
    """Return what of some data is in a registered collection.

    Parameters
    ----------
    sealed : Sealed
        The collection.
    known : Fingerprint
        The data.
    """
    data_queries = np.zeros(known.n_queries, dtype=bool)
    collection_queries = np.zeros(sealed.n_queries, dtype=bool)
    for kind, telling in sealed.telling.items():
        if kind in known.queries:
            here = np.isin(known.queries[kind], telling)
            if here.any():
                data_queries |= here
                there = np.isin(sealed.signatures[kind], known.queries[kind][here])
                collection_queries |= there & sealed.identifiable[kind]
    chance, same_labels = 1.0, False
    if "labels" in known.queries and "labels" in sealed.signatures:
        chance = chance_of_labels(sealed.signatures["labels"], known.queries["labels"])
        same_labels = known.n_queries == sealed.n_queries and bool(
            (np.sort(known.queries["labels"]) == np.sort(sealed.signatures["labels"])).all()
        )
        if chance < REFUSAL_CHANCE:
            data_queries[:] = True
    return Match(sealed, int(collection_queries.sum()), chance, same_labels, data_queries)


def was_opened(found: Match, outputs: Mapping[str, Hashes]) -> bool:
    """Whether all matched queries are ranked as one opened output has them.

    Parameters
    ----------
    found : Match
        The queries of the data that are in the collection.
    outputs : mapping of str to ndarray of uint64
        Kind of row -> output hash of each query of the data.
    """
    return any(
        bool(np.isin(hashes[found.queries], opened[kind]).all())
        for opened in found.sealed.opened
        for kind, hashes in outputs.items()
        if kind in opened
    )
