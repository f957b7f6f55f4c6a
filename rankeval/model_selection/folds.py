"""The folds of a cross-validation as numbers of rows: from a number, a splitter or given splits; queries stay whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, shown
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.model_selection.query_ids import encode, partly_in
from rankeval.model_selection.query_split import QuerySplit, Rows
from rankeval.model_selection.splitters import QueryKFold

Folds = list[tuple[Rows, Rows]]
"""The training and the test rows of each fold."""


def by_query(cv: Any) -> QuerySplit | None:
    """Return a splitter of queries, or None for splits by row number and words such as "prefit".

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
        As in `cross_validate`, or of an estimator of scikit-learn; None is 5.
    """
    if cv is None or isinstance(cv, Integral):
        return QueryKFold(5 if cv is None else int(cv))
    if isinstance(cv, (QuerySplit, str)):
        return cv if isinstance(cv, QuerySplit) else None
    return QuerySplit(cv) if hasattr(cv, "split") else None


def query_folds(cv: Any, data: RankingData, groups: NDArray[Any] | None, *, name: str = "cv") -> Folds:
    """Return the rows of each split. No split cuts a query.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As in `cross_validate`.
    data : RankingData
        The rows to split.
    groups : ndarray of shape (n_rows,), optional
        Units coarser than queries, which no split cuts.
    name : str, default "cv"
        The argument that errors speak of.

    Raises
    ------
    InvalidInput
        If there is no split, one has an empty side, or given splits cut a query.
    """
    known = cv is None or isinstance(cv, (Integral, Iterable)) or hasattr(cv, "split")
    if isinstance(cv, (str, bytes)) or not known:
        raise InvalidInput(f"{name} is {cv!r}; give a number of folds, a splitter, or pairs of training and test rows")
    splitter = by_query(cv)
    n_queries = len(np.unique(data.qid))
    if isinstance(cv, Integral) and int(cv) > n_queries:
        raise InvalidInput(f"{name} is {cv}, and there are {count(n_queries, 'query')}: a fold holds out at least one")
    if splitter is not None:
        folds = list(splitter.split(data.X, data.y, groups, qid=data.qid))
    elif groups is not None:
        raise InvalidInput(
            f"groups are split by a splitter, and {name} gives the rows of each split: leave one of them out"
        )
    else:
        folds = [
            (_positions(train, len(data)), _positions(test, len(data)))
            for train, test in (_pair(one, name) for one in cv)
        ]
        _refuse_cuts(folds, data, name)
    if not folds:
        raise InvalidInput(
            f"{name} has no splits; an iterator that was used up gives none again: pass a list or a splitter"
        )
    for number, sides in enumerate(folds):
        for side, rows in zip(("trains on", "holds out"), sides, strict=True):
            if not len(rows):
                raise InvalidInput(f"split {number} of {name} {side} no rows: give both sides at least one query")
    return folds


def _refuse_cuts(folds: Folds, data: RankingData, name: str) -> None:
    codes, queries = encode(data.qid)
    for number, (train, test) in enumerate(folds):
        on_both_sides = np.intersect1d(codes[train], codes[test])
        cut = partly_in(codes, test)
        cut[on_both_sides] = True
        if cut.any():
            raise InvalidInput(
                f"split {number} of {name} cuts query {queries.tolist()[np.argmax(cut)]!r}: hold out all of its rows, "
                f"or none; a splitter given as {name} is applied to queries"
            )


def _pair(split: Any, name: str) -> Any:
    if not isinstance(split, Sequence) or isinstance(split, (str, bytes)) or len(split) != 2:
        raise InvalidInput(f"each split is a pair of training and test rows, found {shown(split)}", argument=name)
    return split


def _positions(rows: Any, n_rows: int) -> Rows:
    chosen = np.asarray(rows)
    # NumPy makes floats of an empty list, and floats are no positions.
    return np.flatnonzero(chosen) if chosen.dtype == bool or not len(chosen) else np.arange(n_rows)[chosen]
