"""The share of each query in the numbers that speak of all queries, so that a subset gets numbers of its own.

    query    0/0 by measure    rows affected by rule    hashes of its judgments and its ranking
    q1       no   yes          ties 4, unjudged 7       9f3a...  27d0...
    q2       no   no           ties 0, unjudged 2       11c0...  8e41...
    all      0    1            ties 4, unjudged 9       digests of the ids and of these hashes

A subset, and the union of parts, have the counts and the digests that their queries have when evaluated together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.evaluation.digests import digests_of
from rankeval.join.flat import Floats, Ints
from rankeval.join.matching import Hashes

Mask = NDArray[np.bool_]

READINGS = ("judged", "relevant", "skipped")
"""Per query and measure: the share of the documents within the cut-off that are judged; the score if the others were
judged and had the greatest grade of the collection; the score of the ranking without them."""


@dataclass(frozen=True, eq=False)
class QueryFacts:
    """The share of each query in the counts and the digests of an evaluation.

    Attributes
    ----------
    rule_counts : mapping of str to ndarray of int64 of shape (n_queries,)
        How many rows of the query each rule of the convention affected, or 1 if the query itself was affected.
    undefined : ndarray of bool of shape (n_queries, n_measures)
        Which values were 0/0.
    drawn : ndarray of bool of shape (n_queries, n_measures)
        Which values are means over drawn orders of tied rows.
    judgments, rankings : ndarray of uint64 of shape (n_queries,)
        A hash of the query's judgments, and of its ranking as the measures see it.
    readings : mapping of str to ndarray of shape (n_queries, n_measures)
        What unjudged documents mean for the scores, by the names of `READINGS`; empty if there are none.
    """

    rule_counts: Mapping[str, Ints]
    undefined: Mask
    drawn: Mask
    judgments: Hashes
    rankings: Hashes
    readings: Mapping[str, Floats] = field(default_factory=dict)

    def part(self, places: Ints | Mask | slice) -> QueryFacts:
        """Return the facts of some of the queries."""
        return QueryFacts(
            {rule: numbers[places] for rule, numbers in self.rule_counts.items()},
            self.undefined[places],
            self.drawn[places],
            self.judgments[places],
            self.rankings[places],
            {reading: values[places] for reading, values in self.readings.items()},
        )

    def totals(self) -> dict[str, int]:
        """Return how many rows or queries each rule affected."""
        return {rule: int(numbers.sum()) for rule, numbers in self.rule_counts.items()}

    def digests(self, queries: NDArray[Any]) -> tuple[str, str]:
        """Return the digest of the judgments and that of the rankings, given the ids of the queries."""
        judgments, rankings = digests_of(queries, self.judgments, self.rankings)
        return judgments, rankings


@dataclass(frozen=True)
class Whole:
    """The evaluation that a subset was taken from.

    Attributes
    ----------
    n_queries : int
        Its number of queries.
    judgments_digest : str
        The digest of its judgments.
    """

    n_queries: int
    judgments_digest: str
