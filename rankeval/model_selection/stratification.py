"""Give stratified splitters a stratum for each query: a label, or a range of numbers.

scikit-learn balances labels, and raises if every label is rarer than the number of folds. The number of relevant
documents is a number with many rare values, so neighbouring numbers are joined until each stratum has a query for
every fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.model_selection.query_ids import per_query

Stratum = Callable[[NDArray[Any]], Any]


def n_relevant(y: NDArray[Any]) -> int:
    """Return the number of relevant rows of one query, the default for stratified splitters."""
    return int((y > 0).sum())


def stratifies(splitter: Any) -> bool:
    """Return whether a splitter balances labels: by its name, since scikit-learn has no base class for them."""
    return any("Stratified" in cls.__name__ for cls in type(splitter).__mro__)


def of_labels(y: NDArray[Any], stratum: Stratum, codes: NDArray[np.int64]) -> list[Any]:
    """Apply `stratum` to the relevance of each query.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Relevance.
    stratum : callable
        Function from the relevance of the rows of a query to a value.
    codes : ndarray of shape (n_rows,)
        Queries by number.
    """
    order = np.argsort(codes, kind="stable")
    return [stratum(part) for part in np.split(y[order], np.flatnonzero(np.diff(codes[order])) + 1)]


def is_by_query(key: Any, n_rows: int) -> bool:
    """Say whether values are by query: in a mapping, or in a Series that is not as long as the rows.

    Parameters
    ----------
    key : mapping, Series or array-like
        Values by query, or by row.
    n_rows : int
        The number of rows.
    """
    return isinstance(key, Mapping) or (hasattr(getattr(key, "index", None), "get_indexer") and len(key) != n_rows)


def of_key(key: Any, queries: NDArray[Any], codes: NDArray[np.int64], name: str = "key") -> list[Any]:
    """Return the value of a key for each query.

    Parameters
    ----------
    key : mapping, Series or array-like
        Values by query, or by row; a Series that is as long as the rows is by row.
    queries : ndarray of shape (n_queries,)
        Ids of the queries.
    codes : ndarray of shape (n_rows,)
        Queries by number.
    name : str, default="key"
        The argument that errors speak of.

    Raises
    ------
    InvalidInput
        If a query has no value, or several.
    """
    if is_by_query(key, len(codes)):
        known = dict(key.items())
        lacking = [query for query in queries.tolist() if query not in known]
        if lacking:
            raise InvalidInput(
                f"{name} has no value for query {lacking[0]!r} ({len(lacking)} such of {len(queries)}): give one for "
                f"each query, or one for each of the {len(codes)} rows"
            )
        values = [known[query] for query in queries.tolist()]
    else:
        values = list(per_query(key, codes, name))
    if any(value is None or value != value for value in values):  # noqa: PLR0124 - nan, of whatever type
        raise InvalidInput(f"{name} has no value (None or nan) for some query: give one for each, such as 'unknown'")
    return values


def strata(values: list[Any], splitter: Any) -> NDArray[np.int64]:
    """Return the stratum of each query, by number.

    Parameters
    ----------
    values : list
        A number or a label of each query. Neighbouring numbers may share a stratum.
    splitter : object
        A stratified splitter; it decides how many queries a stratum needs.

    Raises
    ------
    InvalidInput
        If there are too few queries for the folds.
    """
    try:
        names = sorted(set(values))
    except TypeError:  # several types have no common order
        names = list(dict.fromkeys(values))
    number = {name: place for place, name in enumerate(names)}
    codes = np.array([number[value] for value in values], dtype=np.int64)
    if not all(isinstance(name, (int, float, np.number)) and not isinstance(name, bool) for name in names):
        return codes
    n_folds = _n_folds(splitter)
    least = n_folds or _least_of_draws(splitter, len(values))
    if len(values) < least:
        raise InvalidInput(f"{type(splitter).__name__} needs {least} queries or more, and there are {len(values)}")
    sizes = np.bincount(codes)
    joined = _joined(sizes, least)
    # One stratum would balance nothing. Folds can share rare numbers, if not with one query for every fold.
    return codes if n_folds and not joined.any() and sizes.max() >= least else joined[codes]


def _joined(sizes: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Join ascending numbers into as many strata as possible with at least this many queries each."""
    strata = np.zeros(len(sizes), dtype=np.int64)
    now, filled = 0, 0
    for place, size in enumerate(sizes.tolist()):
        if filled >= least:
            now, filled = now + 1, 0
        strata[place] = now
        filled += size
    if filled < least and now:
        strata[strata == now] = now - 1
    return strata


def _n_folds(splitter: Any) -> int:
    """Return the number of folds, 0 for a splitter that draws its parts."""
    if hasattr(splitter, "test_size"):
        return 0
    # A repeated splitter keeps the options of its inner splitter in cvargs.
    return int(getattr(splitter, "cvargs", {}).get("n_splits", 0) or getattr(splitter, "n_splits", 2))


def _least_of_draws(splitter: Any, n_queries: int) -> int:
    """Return the size of a stratum that has a query in both parts."""
    test, train = splitter.test_size, splitter.train_size
    if test is None and train is None:
        test = 0.1
    n_test = None if test is None else ceil(test * n_queries) if isinstance(test, float) else int(test)
    n_train = None if train is None else floor(train * n_queries) if isinstance(train, float) else int(train)
    n_test = n_queries - (n_train or 0) if n_test is None else n_test
    n_train = n_queries - n_test if n_train is None else n_train
    return max(2, ceil(n_queries / max(1, min(n_test, n_train))))
