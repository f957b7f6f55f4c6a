"""The time of each query, for splits by time: that of its latest row, so that no part is trained on the future.

::

    rows     qid   a      b      a      c        in any order
             day   1 May  2 May  4 May  3 May
    queries  day   a: 4 May      b: 2 May  c: 3 May
    parts          train on b, then test on c; train on b and c, then test on a
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.model_selection.query_ids import index_levels
from rankeval.model_selection.stratification import is_by_query, of_key

FORMS = "numbers, dates, times of NumPy, pandas or Python, or text such as '2024-05-31'; without a time zone, UTC"


def query_times(times: Any, X: Any, y: Any, codes: NDArray[np.int64], queries: NDArray[Any]) -> NDArray[Any]:
    """Return the time of each query: numbers, or UTC as datetime64.

    Parameters
    ----------
    times : str, mapping, Series or array-like
        A column of X or a pandas index level by name; or times by query, or by row.
    X, y : array, frame or Series
        The rows, which may have the column or the level.
    codes : ndarray of shape (n_rows,)
        Queries by number.
    queries : ndarray of shape (n_queries,)
        Their ids.

    Raises
    ------
    InvalidInput
        If there is no such column, a row or query has no time, or times are of no kind that has an order.
    QueryIdError
        If the times have another index than the rows.
    """
    column = times
    if isinstance(times, str):
        levels = (level for _, level in index_levels(X, y, times))
        column = X[times] if times in list(getattr(X, "columns", ())) else next(levels, None)
        if column is None:
            raise InvalidInput(f"times is {times!r}, neither a column of X nor a level of the index of X or y")
    if is_by_query(column, len(codes)):
        return moments(of_key(column, queries, codes, "times"), "times")
    check_rows(X=X, y=y, times=column)
    found = moments(column, "times")
    if len(found) != len(codes):
        raise InvalidInput(
            f"times has {len(found)} values, but there are {len(codes)} rows: a search splits its training part again, "
            "so give the name of a column of X or of an index level, or a mapping of query ids to times"
        )
    order = np.argsort(found, kind="stable")
    latest = np.empty(len(queries), dtype=found.dtype)
    latest[codes[order]] = found[order]  # the last one written is the latest
    return latest


def moments(values: Any, name: str) -> NDArray[Any]:
    """Return times as an array that can be sorted: numbers, or UTC as datetime64.

    Parameters
    ----------
    values : array-like of shape (n,)
        The times.
    name : str
        The name of the argument, for messages.

    Raises
    ------
    InvalidInput
        If one is missing, or they are of another kind.
    """
    import pandas as pd

    column = pd.Series(values if isinstance(values, (list, pd.Series, pd.Index)) else np.asarray(values))
    kind = pd.api.types.infer_dtype(column)
    # pandas takes numbers among texts for years.
    if column.dtype == object and kind not in ("string", "datetime", "date"):
        raise InvalidInput(f"{name} has {kind} values: give {FORMS}")
    if column.dtype.kind not in "iuf":
        try:
            column = pd.to_datetime(column, format="ISO8601", utc=True).dt.tz_localize(None)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{str(error).partition('. ')[0]}", argument=name, remedy=f"give {FORMS}") from error
    missing = column.isna().to_numpy()
    if missing.any():
        raise InvalidInput(f"{name} has none (NaT or nan) at place {int(np.argmax(missing))}: give every query a time")
    found: NDArray[Any] = column.to_numpy()
    return found
