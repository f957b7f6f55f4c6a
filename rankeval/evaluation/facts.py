"""The share of each query in the numbers that speak of all queries, so that a subset gets numbers of its own.

    query    0/0 by measure    rows affected by rule    hash of its judgments
    q1       no   yes          ties 4, unjudged 7       9f3a...
    q2       no   no           ties 0, unjudged 2       11c0...
    all      0    1            ties 4, unjudged 9       digest of the ids and of these hashes

The digest of the judgments is made of the ids and the hashes, so a subset has the digest that its queries would have
if they were evaluated alone. The digest of the ranking is not: it is fed with whole chunks. A subset derives one from
that of the whole evaluation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Ints
from rankeval.join.joined import digest_of_queries
from rankeval.join.matching import Hashes

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """The share of each query in the counts and the digest of an evaluation.

    Attributes
    ----------
    rule_counts : mapping of str to ndarray of int64 of shape (n_queries,)
        How many rows of the query each rule of the convention affected, or 1 if the query itself was affected.
    undefined : ndarray of bool of shape (n_queries, n_measures)
        Which values were 0/0.
    drawn : ndarray of bool of shape (n_queries, n_measures)
        Which values are means over drawn orders of tied rows.
    judgments : ndarray of uint64 of shape (n_queries,)
        A hash of the query's judgments.
    """

    rule_counts: Mapping[str, Ints]
    undefined: Mask
    drawn: Mask
    judgments: Hashes

    def part(self, places: Ints | Mask | slice) -> QueryFacts:
        """Return the facts of some of the queries."""
        return QueryFacts(
            {rule: numbers[places] for rule, numbers in self.rule_counts.items()},
            self.undefined[places],
            self.drawn[places],
            self.judgments[places],
        )

    def totals(self) -> dict[str, int]:
        """Return how many rows or queries each rule affected."""
        return {rule: int(numbers.sum()) for rule, numbers in self.rule_counts.items()}


@dataclass(frozen=True)
class Whole:
    """The evaluation that a subset was taken from.

    Attributes
    ----------
    n_queries : int
        Its number of queries.
    judgments_digest, ranking_digest : str
        Its digests.
    """

    n_queries: int
    judgments_digest: str
    ranking_digest: str

    def ranking_of(self, queries: NDArray[Any]) -> str:
        """Return the digest of the ranking of some of its queries."""
        of_ids = digest_of_queries(queries).hexdigest()
        return hashlib.sha256(f"subset\0{self.ranking_digest}\0{of_ids}".encode()).hexdigest()


def judgments_digest(queries: NDArray[Any], judgments: Hashes) -> str:
    """Return the SHA-256 of judgments: of the query ids, and of a hash of each query's judgments.

    Parameters
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids, ascending.
    judgments : ndarray of uint64 of shape (n_queries,)
        Their hashes.
    """
    digest = digest_of_queries(queries)
    digest.update(judgments)
    return str(digest.hexdigest())
