"""How much of some data is in a registered collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.evidence import REFUSAL_CHANCE, chance_of_labels
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.register import RegisteredContent
from rankeval.join.matching import Hashes


@dataclass(frozen=True, eq=False)
class Match:
    """The part of a registered collection that some data holds, and how sure that is.

    Attributes
    ----------
    registered : RegisteredContent
        The collection.
    n_matched : int
        Number of its identifiable queries in the data.
    chance : float
        Chance that other data has these labels; 1 if they are no evidence.
    same_labels : bool
        Whether the data has the labels of the whole collection, query for query.
    queries : ndarray of bool
        For each query of the data, whether it is in the collection.
    """

    registered: RegisteredContent
    n_matched: int
    chance: float
    same_labels: bool
    queries: NDArray[np.bool_]

    @property
    def by_content(self) -> bool:
        """Whether enough identifiable queries match to refuse the data."""
        return self.n_matched > 0 and self.n_matched >= self.registered.n_to_refuse

    @property
    def by_labels(self) -> bool:
        """Whether the labels agree far beyond chance."""
        return self.chance < REFUSAL_CHANCE

    @property
    def refused(self) -> bool:
        """Whether the evidence is enough to refuse the data."""
        return self.by_content or self.by_labels

    @property
    def why(self) -> str:
        """The evidence in words."""
        n_queries = self.registered.n_queries
        if self.n_matched:
            return (
                f"{self.n_matched} of its {count(self.registered.n_identifiable, 'identifiable query')} are in the data"
            )
        if self.by_labels:
            chance = f"{self.chance:.0e}" if self.chance >= 1e-12 else "under 1e-12"
            return f"the labels are those of {len(self.queries)} of its {count(n_queries, 'query')} (chance {chance})"
        if self.same_labels:
            return f"the labels equal those of its {count(n_queries, 'query')}, which may be chance"
        return "none of its queries are in the data"


def match(registered: RegisteredContent, data: Fingerprint) -> Match:
    """Look for the queries of a registered collection in some data.

    Parameters
    ----------
    registered : RegisteredContent
        The collection.
    data : Fingerprint
        The data.
    """
    in_data = np.zeros(data.n_queries, dtype=bool)
    in_collection = np.zeros(registered.n_queries, dtype=bool)
    for kind, identifying in registered.identifying.items():
        if kind in data.queries:
            here = np.isin(data.queries[kind], identifying)
            in_data |= here
            # Counted in the collection: a query that stands twice in the data is one of its queries.
            there = np.isin(registered.signatures[kind], data.queries[kind][here])
            in_collection |= there & registered.identifiable[kind]
    chance, same_labels = 1.0, False
    if "labels" in data.queries and "labels" in registered.signatures:
        ours, theirs = registered.signatures["labels"], data.queries["labels"]
        chance = chance_of_labels(ours, theirs)
        same_labels = np.array_equal(np.sort(ours), np.sort(theirs))
        in_data |= chance < REFUSAL_CHANCE  # the labels identify all queries together
    return Match(registered, int(in_collection.sum()), chance, same_labels, in_data)


def was_opened(found: Match, outputs: Mapping[str, Hashes]) -> bool:
    """Return whether one opened output ranks all matched queries as this ranking does.

    Parameters
    ----------
    found : Match
        The queries of the data that are in the collection.
    outputs : mapping of str to ndarray of uint64
        Kind of row -> hash of the ranking of each query of the data.
    """
    return any(
        bool(np.isin(hashes[found.queries], opened[kind]).all())
        for opened in found.registered.opened
        for kind, hashes in outputs.items()
        if kind in opened
    )
