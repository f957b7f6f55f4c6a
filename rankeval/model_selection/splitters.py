"""The usual splitters, for whole queries: k folds, repeated or balanced, random test parts, and by time.

Each is scikit-learn's splitter of the same arguments inside of a `QuerySplit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

from rankeval._checks import check_count, check_number
from rankeval.errors import InvalidInput, warn
from rankeval.model_selection.query_split import QuerySplit, Rows
from rankeval.model_selection.stratification import Stratum
from rankeval.model_selection.times import query_times


class QueryKFold(QuerySplit):
    """K folds of whole queries, in the order of their ids: other ids of the same queries give other folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Shuffle the queries first.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.KFold`.

    Raises
    ------
    InvalidInput
        If the number of folds is no whole number of 2 or more.
    ValueError
        If ``random_state`` is given without ``shuffle``.

    Examples
    --------
    >>> cv = QueryKFold(2)
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[1], [0, 2]]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        check_folds(n_splits)
        super().__init__(KFold(n_splits, shuffle=shuffle, random_state=random_state))


class RepeatedQueryKFold(QuerySplit):
    """K folds of whole queries, several times.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    n_repeats : int, default=10
        Number of repetitions.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.RepeatedKFold`.

    Raises
    ------
    InvalidInput
        If the number of folds is no whole number of 2 or more, or that of repetitions none of 1 or more.

    Examples
    --------
    >>> RepeatedQueryKFold(3, n_repeats=10).get_n_splits()
    30
    """

    def __init__(self, n_splits: int = 5, *, n_repeats: int = 10, random_state: Any = None) -> None:
        check_folds(n_splits)
        check_count("n_repeats", n_repeats)
        super().__init__(RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=random_state))


class StratifiedQueryKFold(QuerySplit):
    """K folds of whole queries, balanced by a property of the queries.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratum : callable, optional
        The property, as a function of the relevance of a query's rows. By default the number of relevant rows.
    key : mapping, Series or array-like, optional
        The property, as values by query, or of shape (n_rows,) and constant within a query.
    shuffle : bool, default=False
        Shuffle the queries first.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.StratifiedKFold`.

    Raises
    ------
    InvalidInput
        If the number of folds is no whole number of 2 or more, ``stratum`` is no function or given beside ``key``, or
        ``key`` holds no values.
    ValueError
        If ``random_state`` is given without ``shuffle``.

    Examples
    --------
    >>> cv = StratifiedQueryKFold(2, key={"a": "en", "b": "en", "c": "de", "d": "de"})
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2], [3]], qid=["a", "b", "c", "d"])]
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        stratum: Stratum | None = None,
        key: Any = None,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        check_folds(n_splits)
        splitter = StratifiedKFold(n_splits, shuffle=shuffle, random_state=random_state)
        super().__init__(splitter, stratum=stratum, key=key)


class QueryShuffleSplit(QuerySplit):
    """Random test parts of whole queries.

    Parameters
    ----------
    n_splits : int, default=10
        Number of random splits.
    test_size, train_size : float or int, optional
        Share or number of queries.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.ShuffleSplit`.

    Raises
    ------
    InvalidInput
        If the number of splits is no whole number of 1 or more, or a size is no number.

    Examples
    --------
    >>> cv = QueryShuffleSplit(1, test_size=1, random_state=0)
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2], [3]], qid=["b", "a", "b", "c"])]
    [[3]]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        random_state: Any = None,
    ) -> None:
        check_count("n_splits", n_splits)
        for name, size in (("test_size", test_size), ("train_size", train_size)):
            if size is not None:
                check_number(name, size)
        splitter = ShuffleSplit(n_splits, test_size=test_size, train_size=train_size, random_state=random_state)
        super().__init__(splitter)


class QueryTimeSplit(QuerySplit):
    """Trains on earlier queries and tests on later ones.

    With ``times``, a query has the time of its latest row, and rows may be in any order. Training queries are strictly
    earlier than all test queries: those of the very time at which a test part begins are left out of training.

    Without ``times``, the order of rows must be that of time: a query has the place of its first row. Sort the rows by
    time before you split them. If rows of several queries are mixed, as after shuffling, the splitter warns; it cannot
    tell if whole queries were shuffled.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits.
    times : str, mapping, Series or array-like of shape (n_rows,), optional
        The name of a column of X or of a pandas index level; or the times by query, or by row. Times are numbers, dates
        or times of NumPy, pandas or Python, or text such as "2024-05-31". A time of each row of all data fits no part
        of the data: in a search inside of another, give a name or a mapping.
    gap : int, default=0
        Queries left out between the training and the test part.
    max_train_size, test_size : int, optional
        Numbers of queries in each part, as in `sklearn.model_selection.TimeSeriesSplit`.

    Raises
    ------
    InvalidInput
        If the number of splits is no whole number of 2 or more. `split` raises it if a query has no time, such as NaT,
        or no query is earlier than a test part.

    Examples
    --------
    >>> cv = QueryTimeSplit(2, times={"a": "2024-05-02", "b": "2024-05-03", "c": "2024-05-01"})
    >>> [(train.tolist(), test.tolist()) for train, test in cv.split([[0], [1], [2], [3]], qid=["b", "a", "b", "c"])]
    [([3], [1]), ([1, 3], [0, 2])]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        times: Any = None,
        gap: int = 0,
        max_train_size: int | None = None,
        test_size: int | None = None,
    ) -> None:
        check_folds(n_splits)
        kind, order = (TimeSeriesSplit, "row") if times is None else (_ByTime, "id")
        super().__init__(kind(n_splits, max_train_size=max_train_size, test_size=test_size, gap=gap), order=order)
        self.times = times

    def _targets(self, X: Any, y: Any, codes: NDArray[np.int64], units: NDArray[Any]) -> NDArray[Any] | None:
        if self.times is None and np.count_nonzero(np.diff(codes)) >= len(units):
            warn(
                "QueryTimeSplit takes the order of rows for that of time, and rows of several queries are mixed, as "
                "after shuffling: give times=, such as the name of a column of X or of an index level"
            )
        return None if self.times is None else query_times(self.times, X, y, codes, units)

    def __repr__(self) -> str:
        times = "" if self.times is None else f", times={' '.join(repr(self.times).split())}"
        return f"{super().__repr__()[:-1]}{times})"


class _ByTime(TimeSeriesSplit):  # type: ignore[misc]
    """Splits queries in the order of y, their times."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Rows, Rows]]:
        order = np.argsort(y, kind="stable")
        for earlier, later in super().split(X, y, groups):
            train, test = order[earlier], order[later]
            before = train[y[train] < y[test].min()]
            if not len(before):
                raise InvalidInput(f"no query is earlier than {y[test].min()}: ask for fewer splits", argument="times")
            yield before, test


def check_folds(n_splits: Any) -> None:
    """Check a number of folds.

    Parameters
    ----------
    n_splits : object
        The argument.

    Raises
    ------
    InvalidInput
        If it is no whole number of 2 or more.
    """
    check_count("n_splits", n_splits)
    if n_splits < 2:
        raise InvalidInput(f"n_splits is {n_splits}; expected 2 or more, since one part is held out at a time")
