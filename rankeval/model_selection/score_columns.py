"""Rankers by columns of scores, which learn nothing: the ranking in production, and fusions.

They are stateless, so they may be used unfitted wherever a fitted ranker is expected.

The trap: a fusion scores the rows of a query together, and scikit-learn hands no query ids to
`predict`. Scorers, `QueryRanker` and the guard hand them on (`rankeval.evaluation.responses`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from rankeval._arguments import explained
from rankeval._checks import require
from rankeval._estimator import BaseEstimator
from rankeval._registry import unknown
from rankeval.collection.rows import column_names
from rankeval.errors import InvalidInput
from rankeval.fusion import Fuser
from rankeval.io import columns
from rankeval.model_selection.query_ids import encode, n_rows, required_ids, without_ids


def score_column(
    X: Any, column: str | int, names: Sequence[str] | None = None, *, gaps: bool = False
) -> NDArray[np.float64]:
    """Return a column of finite scores by its name, or by its number if X has no names.

    With ``gaps`` a score may be missing, and is nan.
    """
    known = column_names(X)
    rows = X if known or hasattr(X, "shape") else np.asarray(X)
    places = known or [*(names or range(rows.shape[1]))]
    if column not in places:
        raise unknown("column", column, places)
    values = rows[column] if known else rows[:, places.index(column)]
    values = values.toarray().ravel() if hasattr(values, "toarray") else values
    name = f"column {column}"
    missing = pd.isna(values) if gaps else None
    if missing is not None:
        values = pd.Series(values).mask(missing, 0.0)
    scores = columns.scores(values, name).astype(np.float64)
    columns.refuse_unbounded(scores, name)
    if missing is not None:
        scores[missing] = np.nan
    return scores


class _ByColumns(BaseEstimator):
    """Reads columns of scores, and learns nothing."""

    # A search need not ask for query ids on its behalf.
    __metadata_request__fit = {"qid": UNUSED}  # noqa: RUF012 - scikit-learn's form

    def fit(self, X: Any, y: Any = None, *, qid: Any = None) -> Self:  # noqa: ARG002 - as rankers
        """Check the parameters and the columns; nothing is learnt.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            Not used.
        qid : array-like of shape (n_rows,), optional
            Not used; rankers in a loop take it.

        Returns
        -------
        ColumnRanker or Fusion
            This estimator.

        Raises
        ------
        UnknownName
            If X has no such column, or a parameter names nothing that exists.
        InvalidInput
            If a parameter does not fit the others, or `predict` would refuse a score.
        """
        features = without_ids(X)
        self._read(features)
        validate_data(self, features, reset=True, skip_check_array=True)
        return self

    def _read(self, X: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True


@explained
class ColumnRanker(_ByColumns):
    """Ranks by a column of the rows, such as the score of the ranker in production.

    It learns nothing: `fit` remembers the names of the features, and `predict` works without it.
    So the present ranking can be the baseline wherever a ranker is accepted: in
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
            If a value of the column is missing or not a number; the message has the row.
        """
        scores = self._read(X)
        return -scores if self.ascending else scores

    def _read(self, X: Any) -> NDArray[np.float64]:
        return score_column(X, self.column, self.feature_names)


@explained
class Fusion(_ByColumns):
    """Fuses columns of scores into one ranking, by the methods of `rankeval.fuse`.

    It learns nothing; a search chooses its parameters. The scores of a query are fused together, so
    `predict` needs the query of each row and all rows of a query. Scorers, QueryRanker,
    ``cross_validate`` and the guard give it the queries.

    A missing value says that a system did not retrieve the row.

    Parameters
    ----------
    method : str, default="rrf"
        A method of `rankeval.fuse`.
    columns : sequence of str or int
        The names of the columns of scores in a frame, or their numbers in an array. Higher scores
        are better.
    weights : mapping of str to float, or sequence of float, optional
        The weight of each column, for "weighted".
    norm : str, optional
        The norm of the scores, as in `rankeval.fuse`.
    k : float, optional
        The constant of "rrf", 60 if not given.
    feature_names : sequence of str, optional
        The names of the columns of an array, such as those of a RankingData.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn, after `fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"bm25": [9.0, 7.0, None], "dense": [None, 0.8, 0.5]})
    >>> Fusion("rrf", columns=["bm25", "dense"], k=1).predict(rows, qid=["a", "a", "a"]).round(3).tolist()
    [0.5, 0.833, 0.333]
    """

    __metadata_request__predict: ClassVar = {"qid": True}

    def __init__(
        self,
        method: str = "rrf",
        *,
        columns: Sequence[str | int] = (),
        weights: Mapping[str, float] | Sequence[float] | None = None,
        norm: str | None = None,
        k: float | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.method = method
        self.columns = columns
        self.weights = weights
        self.norm = norm
        self.k = k
        self.feature_names = feature_names

    def predict(self, X: Any, *, qid: Any = None) -> NDArray[np.float64]:
        """Return the fused score of each row.

        Parameters
        ----------
        X : array, sparse matrix, frame or Arrow table of shape (n_rows, n_features)
            All rows of each query, in any order; other columns are not read.
        qid : array-like of shape (n_rows,), optional
            The query of each row. It may also be a pandas index level or a column of X named "qid".

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores, in the order of the rows; higher ranks first.

        Raises
        ------
        QueryIdError
            If the query of each row is not known. With ``norm="none"`` no query is needed.
        UnknownName, InvalidInput
            As in `fit`, or if a score is not a number, or a row has no score at all.
        """
        fuser = fuser_of(self)
        query = np.arange(n_rows(X))
        if fuser.reads_queries:
            query = encode(required_ids(X, None, who="Fusion.predict", qid=qid))[0]
        return fuser.scores(scores_of(self, X), query)

    def _read(self, X: Any) -> NDArray[np.float64]:
        fuser_of(self)
        return scores_of(self, X)


def fuser_of(fusion: Fusion) -> Fuser:
    """Return the method of a fusion with its settings, checked."""
    columns = fusion.columns
    is_list = isinstance(columns, (list, tuple, np.ndarray)) and len(columns) > 0
    require(is_list, "columns", columns, "a list of columns of scores")
    options = {name: getattr(fusion, name) for name in ("norm", "k", "weights")}
    return Fuser.of(fusion.method, [*map(str, columns)], **options)


def scores_of(fusion: Fusion, X: Any) -> NDArray[np.float64]:
    """Return the scores that a fusion reads, (n_columns, n_rows), nan where one is missing."""
    rows = X.to_pandas() if hasattr(X, "to_pandas") else X
    names = fusion.feature_names
    read = [score_column(rows, column, names, gaps=True) for column in fusion.columns]
    scores = np.stack(read)
    empty = np.flatnonzero(np.isnan(scores).all(axis=0))
    if len(empty):
        problem = f"row {empty[0]} has no score in any column ({len(empty)} such in all)"
        raise InvalidInput(problem, argument="X", remedy="drop such rows")
    return scores


def served_form(
    ranker: ColumnRanker | Fusion, X: Any, qid: Any
) -> tuple[Fusion, pd.DataFrame | None]:
    """Return a fusion of named columns with the scores of a ranker, and the table that it reads.

    The table has the scores, and the query of each row if the fusion reads it.
    """
    if isinstance(ranker, ColumnRanker):
        settings: dict[str, Any] = {"norm": "none", "feature_names": ranker.feature_names}
        weights = [-1.0 if ranker.ascending else 1.0]
        ranker = Fusion("weighted", columns=[ranker.column], weights=weights, **settings)
    names = [*map(str, ranker.columns)]
    named = clone(ranker).set_params(columns=names, feature_names=None)
    if X is None:
        return named, None
    table = pd.DataFrame(scores_of(ranker, X).T, columns=names)
    if fuser_of(ranker).reads_queries:
        table["qid"] = required_ids(X, None, who="a fusion", qid=qid)
    return named, table
