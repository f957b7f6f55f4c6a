"""Query ids that a scorer carries, matched to the rows that it is called with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from rankeval.collection.rows import check_rows, index_of, same_rows
from rankeval.errors import QueryIdError, UnusableQueryIdsError
from rankeval.model_selection.query_ids import id_array, n_rows


@dataclass(frozen=True, eq=False)
class BoundIds:
    """Query ids of all rows, looked up by the index labels of the rows in a call.

    Index labels prove little: after ``reset_index`` they still resolve, to the wrong queries. So the relevance that was
    bound beside the ids must equal y. Without it, rows in another order cannot be detected if they have no index, or
    the index 0, 1, 2, ... of ``reset_index``: such calls are refused.

    Parameters
    ----------
    ids : Series or array-like
        The query of each row of the whole data.
    y : array-like, optional
        The relevance of the same rows.
    """

    ids: Any
    y: Any | None = None

    def __post_init__(self) -> None:
        if self.y is not None and len(self.y) != len(self.ids):
            raise QueryIdError(f"bound are {len(self.ids)} query ids and {len(self.y)} labels: give one of each a row")
        check_rows(qid=self.ids, y=self.y)

    def at(self, X: Any, y: Any) -> NDArray[Any]:
        """Return the ids of the rows of X and y.

        Raises
        ------
        UnusableQueryIdsError
            If it is not certain which of the bound rows these are.
        """
        positions = self._positions(X, y)
        ids = id_array(self.ids, len(self.ids), "bound qid")[positions]
        if self.y is not None and not np.array_equal(column_or_1d(self.y)[positions], column_or_1d(y)):
            raise UnusableQueryIdsError(
                "the bound qid does not belong to these rows: their y is not the y bound with it (was the index reset, "
                "or were the rows put in another order?); pass qid with the call"
            )
        return ids

    def _positions(self, X: Any, y: Any) -> NDArray[np.intp]:
        rows = n_rows(X)
        labels = _labels(X, y)
        known = index_of(self.ids)
        doubt = ""
        if known is None or labels is None:
            if rows != len(self.ids):
                raise UnusableQueryIdsError(
                    f"{len(self.ids)} ids are bound, which cannot be matched to {rows} rows without an index: bind a "
                    "pandas Series on the index of X, and give X or y with that index"
                )
            doubt = "there is no index"
        elif _looks_reset(labels) and known.inferred_type == "integer":
            doubt = f"the labels 0 to {rows - 1} may come from reset_index"
        if doubt and self.y is None:
            raise UnusableQueryIdsError(
                f"{doubt}, so that the bound qid may be that of other rows: bind y with the ids to have that checked, "
                "make_scorer(..., qid=qid, y=y), or pass qid with the call"
            )
        if known is None or labels is None or same_rows(known, labels):
            return np.arange(rows)
        if not known.is_unique:
            raise UnusableQueryIdsError("the index of the bound qid has duplicates, so that rows cannot be found in it")
        positions: NDArray[np.intp] = known.get_indexer(labels)
        if (positions < 0).any():
            lost = labels.tolist()[int(np.argmin(positions))]
            raise UnusableQueryIdsError(f"the bound qid has no row {lost!r}, which is in the index of the data")
        return positions


def _labels(X: Any, y: Any) -> Any | None:
    """Return the pandas index of the rows, or None where there is none."""
    return next((index for index in map(index_of, (y, X)) if index is not None), None)


def _looks_reset(labels: Any) -> bool:
    return labels.inferred_type == "integer" and np.array_equal(labels, np.arange(len(labels)))


def same_bound(left: BoundIds | None, right: BoundIds | None) -> bool:
    """Say whether two scorers carry the same ids, labels and indexes."""
    if left is None or right is None:
        return left is right
    indexes = (getattr(left.ids, "index", None), getattr(right.ids, "index", None))
    pairs = ((left.ids, right.ids), (left.y, right.y), indexes)
    return all(np.array_equal(np.asarray(one), np.asarray(other)) for one, other in pairs)
