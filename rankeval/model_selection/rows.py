"""Rows to fit on, and early stopping on rows that are not fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import refuse
from rankeval.collection.convention import Convention, get_convention
from rankeval.collection.data import RankingData, take_rows
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation, Given, query_weights, score
from rankeval.evaluation.result import aggregates
from rankeval.io.columns import labels
from rankeval.join.joined import Joined
from rankeval.measures import Measure
from rankeval.model_selection.query_ids import by_id, encode, id_array, per_query, read_columns


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Features, labels and query of each row, perhaps its document, weights, group and position too.

    ``validation`` has the rows of a validation part, for an estimator inside that stops early by
    itself.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any]
    codes: NDArray[np.int64]
    sample_weight: NDArray[np.float64] | None = None
    query_weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None
    position: NDArray[np.int32] | None = None
    docid: Any | None = None
    validation: TrainingRows | None = None

    @classmethod
    def of(cls, X: Any, y: NDArray[Any], qid: NDArray[Any], **beside: Any) -> TrainingRows:
        """Return the rows with their queries numbered in ascending order of their ids.

        CatBoost, and every estimator that samples, learns another model from another order of
        queries. This order is that of the usual loop by hand, and does not depend on the order in
        which queries come.
        """
        return cls(X, y, qid, by_id(qid)[0], **beside)

    def take(self, rows: NDArray[Any]) -> TrainingRows:
        """Return these rows, in this order."""
        taken: dict[str, Any] = {
            name: column[rows]
            for name, column in vars(self).items()
            if column is not None and name not in ("X", "validation")
        }
        return replace(self, X=take_rows(self.X, rows), **taken)

    def in_blocks(self) -> TrainingRows:
        """Return the rows by ascending query, in their own order within each; itself if they are."""
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


def as_arguments(part: TrainingRows | RankingData | None) -> dict[str, Any]:
    """Return a validation part as arguments of `QueryRanker.fit`, in a form that no search of scikit-learn cuts.

    A search cuts every array that is as long as its X. So the ids stand in a list, beside the pair
    of features and labels.
    """
    return {} if part is None else {"eval_set": (part.X, part.y), "eval_qid": [part.qid]}


def query_weight_of_rows(
    query_weight: Any, ids: NDArray[Any], **beside: Any
) -> NDArray[np.float64] | None:
    """Check weights of queries, and return that of each row's query."""
    if query_weight is None:
        return None
    nothing = np.zeros(len(ids))
    joined = Given(nothing, nothing, ids).join(get_convention("rankeval"))
    weights: Any = query_weights(query_weight, joined, beside)
    of_rows = np.empty(len(ids))
    of_rows[slice(None) if joined.order is None else joined.order] = np.repeat(
        weights, np.diff(joined.offsets)
    )
    return of_rows


def row_columns(
    ids: NDArray[Any], *, sample_weight: Any = None, groups: Any = None, position: Any = None
) -> dict[str, NDArray[Any]]:
    """Check what is given for each row, and return it as arrays by argument."""
    rows, found = len(ids), dict[str, NDArray[Any]]()
    if sample_weight is not None:
        weights = found["sample_weight"] = labels(sample_weight, "sample_weight").astype(np.float64)
        unlike = (
            f"sample_weight has shape {weights.shape}, but there are {rows} rows: give one per row"
        )
        refuse((weights.shape != (rows,), unlike))
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(bad):
            raise InvalidInput(
                f"sample_weight is {weights[bad[0]]} in row {bad[0]}: give finite weights, none below 0"
            )
        refuse((not weights.any(), "sample_weight is zero in every row: nothing would be learnt"))
    if groups is not None:
        found["groups"] = id_array(groups, rows, "groups")
        per_query(encode(found["groups"])[0], encode(ids)[0], "groups")
    if position is not None:
        values = labels(position, "position")
        with np.errstate(invalid="ignore"):  # nan becomes some number, and differs from it
            whole = found["position"] = values.astype(np.int32)
        odd = np.flatnonzero(whole != values)
        if len(values) != rows or len(odd):
            wrong = f"{values[odd[0]]} in row {odd[0]}" if len(odd) else f"{len(values)} values"
            raise InvalidInput(
                argument="position", found=wrong, expected=f"a whole number for each of {rows} rows"
            )
    return found


@dataclass
class EarlyStopping:
    """Watch a measure on other queries while a booster trains, and say when to stop."""

    measure: Measure  # The measure
    rounds: int  # Stop after this many iterations without a better value
    held_out: TrainingRows  # Rows of queries held out of X, or of a validation part, in blocks
    convention: str | Convention = "rankeval"  # The rules by which rankings are scored
    best: float | None = None
    best_iteration: int = 0
    _joined: Joined | None = field(default=None, repr=False)

    @property
    def greater_is_better(self) -> bool:
        """Whether a better ranking has the greater value."""
        return self.measure.family.greater_is_better

    def evaluation(self, predicted: Any) -> Evaluation:
        """Return the measure of each query for these scores of the held-out rows."""
        rows = self.held_out
        values = np.asarray(predicted, dtype=np.float64).reshape(len(rows.y))
        if self._joined is None:  # rows are grouped once, not in every iteration
            read = read_columns(rows.X, rows.y, [self.measure], {})
            self._joined = Given(rows.y, values, rows.codes, read=read).join(
                get_convention(self.convention)
            )
        return score(replace(self._joined, score=values), [(str(self.measure), self.measure)])

    def value(self, predicted: Any) -> float:
        """Return the aggregate of the measure for these scores of the held-out rows."""
        return aggregates(self.evaluation(predicted))[str(self.measure)]

    def noted(self, iteration: int, value: float) -> bool:
        """Take note of the value after an iteration; return whether to stop."""
        if self.best is None or (
            value > self.best if self.greater_is_better else value < self.best
        ):
            self.best, self.best_iteration = value, iteration
        return iteration - self.best_iteration >= self.rounds
