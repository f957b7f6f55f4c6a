"""Rankers by columns of scores, which learn nothing: the ranking in production.

They are stateless, so they may be used unfitted wherever a fitted ranker is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from rankeval._arguments import explained
from rankeval._checks import require, whole_number
from rankeval._registry import chosen
from rankeval.collection.rows import column_names
from rankeval.io import columns
from rankeval.model_selection.query_ids import without_ids


def score_column(
    X: Any, column: str | int, names: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Return a column of finite scores by its name, or by its number if X has no names."""
    known = column_names(X)
    if known:
        place = column if column in known else chosen("column", column, [*map(str, known)])
        values = X[place]
    else:
        rows = X if hasattr(X, "shape") else np.asarray(X)
        place, n_columns = place_of(column, names), rows.shape[1]
        require(place < n_columns, "column", column, f"one of the {n_columns} columns of X")
        values = rows[:, place]
        values = values.toarray().ravel() if hasattr(values, "toarray") else values
    name = f"column {column}"
    scores = columns.scores(values, name)
    columns.refuse_unbounded(scores, name)
    return scores.astype(np.float64)


def place_of(column: str | int, names: Sequence[str] | None) -> int:
    """Return the number of a column, given by number or by a name among those of all columns."""
    if not isinstance(column, str):
        return column
    known = [*(names or ())]
    return known.index(chosen("column", column, known))


@explained
class ColumnRanker(BaseEstimator):  # type: ignore[misc]
    """Ranks by a column of the rows, such as the score of the ranker in production.

    It learns nothing: `fit` remembers the names of the features, and `predict` works without it.
    So the present ranking can stand as the baseline wherever a ranker is taken: in
    ``cross_validate``, in ``Guard.freeze``, in ``log_ranker``.

    Parameters
    ----------
    column : str or int
        The name of the column in a frame, or its number in an array or a sparse matrix.
    ascending : bool, default=False
        Whether the lowest value ranks first, as for ranks and prices.
    feature_names : sequence of str, optional
        The names of the columns of an array, such as those of a RankingData, so that ``column`` may
        be a name.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn, after `fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"price": [9.0, 5.0], "first_stage_score": [0.2, 0.7]})
    >>> ColumnRanker("first_stage_score").predict(rows).tolist()
    [0.2, 0.7]
    >>> ColumnRanker("price", ascending=True).predict(rows).tolist()
    [-9.0, -5.0]
    """

    def __init__(
        self,
        column: str | int,
        *,
        ascending: bool = False,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.column = column
        self.ascending = ascending
        self.feature_names = feature_names

    def fit(self, X: Any, y: Any = None) -> ColumnRanker:  # noqa: ARG002 - scikit-learn's signature
        """Remember the names of the features; nothing is learnt.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            Not used.

        Returns
        -------
        ColumnRanker
            This estimator.

        Raises
        ------
        UnknownName
            If X has no such column.
        InvalidInput
            If a value of the column is missing or is no number.
        """
        features = without_ids(X)
        score_column(features, self._checked_column(), self.feature_names)
        validate_data(self, features, reset=True, skip_check_array=True)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the column, or its negative if the lowest value ranks first.

        Parameters
        ----------
        X : array, sparse matrix, frame or Arrow table of shape (n_rows, n_features)
            The rows; other columns are not read.

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores, in the order of the rows; higher ranks first.

        Raises
        ------
        UnknownName
            If X has no such column.
        InvalidInput
            If a value of the column is missing or is no number; the message has the row.
        """
        scores = score_column(X, self._checked_column(), self.feature_names)
        return -scores if self.ascending else scores

    def settings(self) -> dict[str, Any]:
        """Return what ranks the rows, as plain values."""
        column = self._checked_column()
        is_named = isinstance(column, str) and self.feature_names is None
        place = None if is_named else place_of(column, self.feature_names)
        return {"column": column, "place": place, "ascending": self.ascending}

    def columns_of(self, X: Any) -> Any:
        """Return the columns of a frame that the ranker reads; other rows as they are."""
        return X[[self.column]] if hasattr(X, "columns") and hasattr(X, "iloc") else X

    def _checked_column(self) -> str | int:
        number = whole_number(self.column)
        is_column = isinstance(self.column, str) or (number is not None and number >= 0)
        require(is_column, "column", self.column, "the name of a column, or its number")
        require(isinstance(self.ascending, bool), "ascending", self.ascending, "True or False")
        return self.column if number is None else number

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags
