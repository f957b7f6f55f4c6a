"""evaluate -> Evaluation: refuse, join, score, wrap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import Convention

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.measures.family import Measure


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of one ranking, query by query, with the convention that made them.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids in ascending order.
    labels : tuple of str
        The measures under the names asked for.
    measures : tuple of Measure
        The same, with the parameters that the convention bound.
    scores : ndarray of shape (n_queries, n_measures)
        One value per query and measure.
    convention : Convention
        The resolved card.
    facts : mapping of str to ndarray of shape (n_queries,)
        ``relevant``, ``retrieved``, ``tied``, ``judged``: counts per query.
    touched : mapping of str to int
        How many rows or queries each rule of the convention had a say in.
    excluded : mapping of str to tuple
        Reason -> the ids of the queries that were left out.
    undefined : mapping of str to int
        Measure -> number of queries whose value was 0/0 and counts as the convention says.
    judgments_digest, ranking_digest : str
        SHA-256 of what was judged, and of what the measures saw of the ranking.
    weights : ndarray of shape (n_queries,), optional
        Query weights.
    name : str, optional
        Name of the system.
    """

    queries: NDArray[Any]
    labels: tuple[str, ...]
    measures: tuple[Measure, ...]
    scores: NDArray[np.float64]
    convention: Convention
    facts: Mapping[str, NDArray[np.int64]]
    touched: Mapping[str, int]
    excluded: Mapping[str, tuple[Any, ...]]
    undefined: Mapping[str, int]
    judgments_digest: str
    ranking_digest: str
    weights: NDArray[np.float64] | None = None
    name: str | None = None
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_queries(self) -> int:
        """Number of queries that count."""
        return len(self.queries)

    @property
    def per_query(self) -> pd.DataFrame:
        """One row per query (index ``qid``), one column per measure under the name asked for."""
        raise NotImplementedError

    def aggregate(self) -> pd.Series[float]:
        """Return every measure by its declared aggregate (mean, sum, geometric mean)."""
        raise NotImplementedError

    def mean(self) -> pd.Series[float]:
        """Return the measures that are means."""
        raise NotImplementedError

    def ci(self, confidence_level: float = 0.95) -> pd.DataFrame:
        """Return mean, ci_low and ci_high of the measures that are means, by Student's t over queries."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the evaluation to one Parquet file, replaced atomically."""
        raise NotImplementedError

    @classmethod
    def load(cls, path: str | Path) -> Evaluation:
        """Read what `save` wrote."""
        raise NotImplementedError
