"""Rows to fit on, and the watch that early stopping keeps on held-out ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.evaluation import score_arrays
from rankeval.model_selection.query_ids import encode, take_rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit on: features, labels, the query of each, perhaps its query's weight."""

    X: Any
    y: NDArray[Any]
    ids: NDArray[Any]
    codes: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], ids: NDArray[Any], weight: NDArray[np.float64] | None = None) -> Rows:
        """Return the rows with their queries numbered in the order in which they first appear."""
        return cls(X, y, ids, encode(ids)[0], weight)

    def take(self, rows: NDArray[Any]) -> Rows:
        """Return these rows, in this order."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(take_rows(self.X, rows), self.y[rows], self.ids[rows], self.codes[rows], weight)

    def in_blocks(self) -> Rows:
        """Return the rows with those of one query together, otherwise in their order; as they are if they are so."""
        if (np.diff(self.codes) >= 0).all():
            return self
        return self.take(np.argsort(self.codes, kind="stable"))

    @property
    def starts(self) -> NDArray[np.intp]:
        """First row of each query; rows must be in blocks."""
        return np.flatnonzero(np.diff(self.codes, prepend=-1))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Rows per query; rows must be in blocks."""
        return np.diff(self.starts, append=len(self.codes))


@dataclass
class Watch:
    """Watches a measure on held-out queries while a booster trains, and says when to stop.

    Parameters
    ----------
    measure : str or Measure
        What to watch; higher is better.
    rounds : int
        After how many iterations without a better value to stop.
    held_out : Rows
        Rows of the held-out queries, in blocks.
    """

    measure: Any
    rounds: int
    held_out: Rows | None
    best: float = field(default=-np.inf)
    best_iteration: int = 0

    def value(self, score: Any) -> float:
        """Return the measure of these scores of the held-out rows."""
        rows = self.held_out
        if rows is None:
            raise InvalidInput("this fit has ended; its held-out rows are gone")
        values = np.asarray(score, dtype=np.float64).reshape(len(rows.y))
        return float(score_arrays(rows.y, values, rows.codes, measures=[self.measure]).aggregate().iloc[0])

    def after(self, iteration: int, score: Any) -> bool:
        """Take note of an iteration; return whether to stop."""
        value = self.value(score)
        if value > self.best:
            self.best, self.best_iteration = value, iteration
        return iteration - self.best_iteration >= self.rounds
