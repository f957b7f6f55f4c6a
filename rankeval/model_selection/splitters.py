"""The usual splitters, for whole queries: k folds, repeated or balanced, random test parts, by time, and predefined.

Each is a splitter of scikit-learn's arguments inside of a `QuerySplit`. `query_folds` gives the
rows of each fold for `cross_validate`, from a number of folds, a splitter or given splits.

Splits by time take the time of a query's latest row, so that no part is trained on the future.

::

    rows     qid   a      b      a      c        in any order
             day   1 May  2 May  4 May  3 May
    queries  day   a: 4 May      b: 2 May  c: 3 May
    parts          train on b, then test on c; train on b and c, then test on a
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, count, refuse, shown
from rankeval._registry import chosen
from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows, column_names
from rankeval.datasets import load_letor_parts
from rankeval.errors import InvalidInput, QueryIdError, warn
from rankeval.io.opening import as_path
from rankeval.model_selection.query_ids import encode, index_levels
from rankeval.model_selection.query_split import QuerySplit, Rows, Stratum, is_by_query, of_key


@explained
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
        If the number of folds is not a whole number of 2 or more.
    ValueError
        If ``random_state`` is given without ``shuffle``.

    Examples
    --------
    >>> cv = QueryKFold(2)
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[1], [0, 2]]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        check_count("n_splits", n_splits, least=2)
        super().__init__(KFold(n_splits, shuffle=shuffle, random_state=random_state))


@explained
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
        If the number of folds is not a whole number of 2 or more, or the number of repetitions not
        one of 1 or more.

    Examples
    --------
    >>> RepeatedQueryKFold(3, n_repeats=10).get_n_splits()
    30
    """

    def __init__(self, n_splits: int = 5, *, n_repeats: int = 10, random_state: Any = None) -> None:
        check_count("n_splits", n_splits, least=2)
        check_count("n_repeats", n_repeats)
        super().__init__(
            RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=random_state)
        )


@explained
class StratifiedQueryKFold(QuerySplit):
    """K folds of whole queries, balanced by a property of the queries.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratum : callable, optional
        The property, as a function of the relevance of a query's rows. By default the number of
        relevant rows.
    key : mapping, Series or array-like, optional
        The property, as values by query, or of shape (n_rows,) and constant within a query.
    shuffle : bool, default=False
        Shuffle the queries first.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.StratifiedKFold`.

    Raises
    ------
    InvalidInput
        If the number of folds is not a whole number of 2 or more, ``stratum`` is not a function or
        given beside ``key``, or ``key`` has no values.
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
        check_count("n_splits", n_splits, least=2)
        splitter = StratifiedKFold(n_splits, shuffle=shuffle, random_state=random_state)
        super().__init__(splitter, stratum=stratum, key=key)


@explained
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
        If the number of splits is not a whole number of 1 or more, or a size is not a number.

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
        splitter = ShuffleSplit(
            n_splits, test_size=test_size, train_size=train_size, random_state=random_state
        )
        super().__init__(splitter)


@explained
class QueryTimeSplit(QuerySplit):
    """Trains on earlier queries and tests on later ones.

    With ``times``, a query has the time of its latest row, and rows may be in any order. Training
    queries are strictly earlier than all test queries: those of the very time at which a test part
    begins are left out of training.

    Without ``times``, the order of rows must be that of time: a query has the place of its first
    row. Sort the rows by time before you split them. If rows of several queries are mixed, as after
    shuffling, the splitter warns; it cannot detect whole queries that were shuffled.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits.
    times : str, mapping, Series or array-like of shape (n_rows,), optional
        The name of a column of X or of a pandas index level; or the times by query, or by row.
        Times are numbers, dates or times of NumPy, pandas or Python, or text such as "2024-05-31".
        A time of each row of all data fits no part of the data: in a search inside of another, give
        a name or a mapping.
    gap : int, default=0
        Queries left out between the training and the test part.
    max_train_size, test_size : int, optional
        Numbers of queries in each part, as in `sklearn.model_selection.TimeSeriesSplit`.

    Raises
    ------
    InvalidInput
        If the number of splits is not a whole number of 2 or more. `split` raises it if a query has
        no time, such as NaT, or no query is earlier than a test part.

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
        check_count("n_splits", n_splits, least=2)
        kind, order = (TimeSeriesSplit, "row") if times is None else (_ByTime, "id")
        super().__init__(
            kind(n_splits, max_train_size=max_train_size, test_size=test_size, gap=gap), order=order
        )
        self.times = times

    def _targets(
        self, X: Any, y: Any, codes: NDArray[np.int64], units: NDArray[Any]
    ) -> NDArray[Any] | None:
        if self.times is None and np.count_nonzero(np.diff(codes)) >= len(units):
            warn(
                "QueryTimeSplit takes the order of rows for that of time, and rows of several queries are mixed, as "
                "after shuffling: give times=, such as the name of a column of X or of an index level"
            )
        return None if self.times is None else query_times(self.times, X, y, codes, units)[0]

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
                raise InvalidInput(
                    f"no query is earlier than {y[test].min()}: ask for fewer splits",
                    argument="times",
                )
            yield before, test


FORMS = "numbers, dates, times of NumPy, pandas or Python, or text such as '2024-05-31'; without a time zone, UTC"


def query_times(
    times: Any, X: Any, y: Any, codes: NDArray[np.int64], queries: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the time of each query, that of its latest row, and of each row: numbers, or UTC as datetime64."""
    column = times
    if isinstance(times, str):
        levels = (level for _, level in index_levels(X, y, times))
        column = X[times] if times in column_names(X) else next(levels, None)
        refuse(
            (
                column is None,
                f"times is {times!r}, neither a column of X nor a level of the index of X or y",
            )
        )
    if is_by_query(column, len(codes)):
        known = moments(of_key(column, queries, codes, "times"), "times")
        return known, known[codes]
    check_rows(X=X, y=y, times=column)
    found = moments(column, "times")
    unlike = f"times has {len(found)} values, but there are {len(codes)} rows: a search splits its training part again"
    way = (
        "so give the name of a column of X or of an index level, or a mapping of query ids to times"
    )
    refuse((len(found) != len(codes), f"{unlike}, {way}"))
    order = np.argsort(found, kind="stable")
    latest = np.empty(len(queries), dtype=found.dtype)
    latest[codes[order]] = found[order]  # the last one written is the latest
    return latest, found


def moments(values: Any, name: str) -> NDArray[Any]:
    """Return times as an array that can be sorted: numbers, or UTC as datetime64."""
    import pandas as pd

    column = pd.Series(
        values if isinstance(values, (list, pd.Series, pd.Index)) else np.asarray(values)
    )
    kind = pd.api.types.infer_dtype(column)
    # pandas takes numbers among texts for years.
    if column.dtype == object and kind not in ("string", "datetime", "date"):
        raise InvalidInput(f"{name} has {kind} values: give {FORMS}")
    if column.dtype.kind not in "iuf":
        try:
            column = pd.to_datetime(column, format="ISO8601", utc=True).dt.tz_localize(None)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{str(error).partition('. ')[0]}", argument=name, remedy=f"give {FORMS}"
            ) from error
    missing = column.isna().to_numpy()
    if missing.any():
        raise InvalidInput(
            f"{name} has none (NaT or nan) at place {int(np.argmax(missing))}: give every query a time"
        )
    found: NDArray[Any] = column.to_numpy()
    return found


PARTS = ("train", "vali", "test")


@explained
class PredefinedFolds(QuerySplit):
    """Splits given by the ids of queries.

    Ids are compared as text, so 7 equals "7". A query of the data that a fold does not name is left
    out of the fold.

    Parameters
    ----------
    folds : iterable of (train, test)
        The ids of the queries of each part.

    Raises
    ------
    InvalidInput
        If there are no folds, a part is empty, or a query is in both parts of a fold.

    Examples
    --------
    >>> cv = PredefinedFolds([(["a"], ["b"]), (["b"], ["a"])])
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[0, 2], [1]]
    """

    def __init__(self, folds: Iterable[tuple[Iterable[Any], Iterable[Any]]]) -> None:
        folds = list(folds)
        fits = all(
            isinstance(fold, Sequence) and not isinstance(fold, str) and len(fold) == 2
            for fold in folds
        )
        refuse(
            (
                not fits,
                f"folds is {shown(folds)}; give a pair (train, test) of ids of queries for each",
            )
        )
        super().__init__(_ByIds([(_spelled(train), _spelled(test)) for train, test in folds]))

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        train: Sequence[str] = ("train", "vali"),
        test: Sequence[str] = ("test",),
    ) -> Self:
        """Read the folds of a folder with Fold1, Fold2, ..., such as LETOR, MSLR-WEB and MQ2008.

        Parameters
        ----------
        path : path
            The folder; each fold is a folder that `rankeval.datasets.load_letor_parts` reads.
        train, test : sequence of {"train", "vali", "test"}
            The files of each side. LETOR's part for validation, ``vali``, belongs to the training
            side by default: early stopping holds out queries of its own, and searches have inner
            folds.

        Raises
        ------
        InvalidInput
            If the folder has no fold.
        UnknownName
            If a part is none of these.
        """
        for part in (*train, *test):
            chosen("part of a fold", part, PARTS)
        root = as_path(path)
        inside = root.glob("*") if os.path.isdir(root) else ()  # noqa: PTH112 - Path raises for a name that is too long
        folders = {}
        for folder in inside:
            if folder.is_dir() and (match := re.fullmatch(r"(?i)fold[_-]?(\d+)", folder.name)):
                folders[folder] = int(match[1])
        if not folders:
            raise InvalidInput(f"there are no folders Fold1, Fold2, ... in {str(root)!r}")
        folds = []
        for folder in sorted(folders, key=folders.__getitem__):
            rows = load_letor_parts(folder)
            queries = {name: np.unique(part.qid).tolist() for name, part in rows.items()}
            sides = ([*chain(*(queries.get(name, ()) for name in side))] for side in (train, test))
            folds.append(tuple(sides))
        return cls(folds)  # type: ignore[arg-type]


class _ByIds:
    """Finds queries by their ids, compared as text."""

    def __init__(self, folds: list[tuple[frozenset[str], frozenset[str]]]) -> None:
        refuse(
            (
                not folds,
                "folds is empty: give the ids of training and test queries of at least one fold",
            )
        )
        for number, (train, test) in enumerate(folds):
            both = train & test
            refuse(
                (not train, f"fold {number} has no training queries"),
                (not test, f"fold {number} has no test queries"),
                (bool(both), f"fold {number} trains and tests on query {min(both, default='')!r}"),
            )
        self.folds = folds

    def split(self, X: Any, _y: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the positions of the queries of each side; X holds their ids."""
        spelled = [str(query) for query in np.asarray(X)[:, 0].tolist()]
        known = set(spelled)
        for number, fold in enumerate(self.folds):
            for side in fold:
                if absent := side - known:
                    lacking = f"{count(len(absent), 'query')} that the data lacks, such as {min(absent)!r}"
                    way = "give all of the data, such as train, vali and test of one fold together"
                    raise QueryIdError(f"fold {number} has {lacking}: {way}")
            train, test = (np.flatnonzero([query in side for query in spelled]) for side in fold)
            yield train, test

    def get_n_splits(self, _X: Any = None, _y: Any = None, _groups: Any = None) -> int:
        """Return the number of folds."""
        return len(self.folds)

    def __repr__(self) -> str:
        return f"_ByIds({[(sorted(train), sorted(test)) for train, test in self.folds]})"


def _spelled(queries: Iterable[Any]) -> frozenset[str]:
    return frozenset(map(str, queries.tolist() if hasattr(queries, "tolist") else queries))


Folds = list[tuple[Rows, Rows]]
"""The training and the test rows of each fold."""


def by_query(cv: Any) -> QuerySplit | None:
    """Return a splitter of queries, or None for splits by row number and words such as "prefit"."""
    if cv is None or isinstance(cv, Integral):
        check_count("cv", 5 if cv is None else cv, least=2)
        return QueryKFold(5 if cv is None else int(cv))
    if isinstance(cv, (QuerySplit, str, bytes)):
        return cv if isinstance(cv, QuerySplit) else None
    return QuerySplit(cv) if hasattr(cv, "split") else None


def query_folds(
    cv: Any, data: RankingData, groups: NDArray[Any] | None, *, name: str = "cv"
) -> Folds:
    """Return the rows of each split. No split cuts a query."""
    splitter, n_queries = by_query(cv), len(np.unique(data.qid))
    is_iterable = (
        isinstance(cv, Iterable) and not isinstance(cv, (str, bytes)) and getattr(cv, "ndim", 1) > 0
    )
    if splitter is None and not is_iterable:
        raise InvalidInput(
            f"{name} is {shown(cv)}; give a number of folds, a splitter, or pairs of training and test rows"
        )
    n_folds = int(cv) if isinstance(cv, Integral) else 0
    both = f"groups are split by a splitter, and {name} gives the rows of each split: leave one of them out"
    refuse(
        (
            n_folds > n_queries,
            f"{name} is {n_folds}, and there are {count(n_queries, 'query')}: a fold holds out one",
        ),
        (splitter is None and groups is not None, both),
    )
    if splitter is None:
        folds = _given_folds(cv, data, name)
    else:
        folds = list(splitter.split(data.X, data.y, groups, qid=data.qid))
    used_up = f"{name} has no splits; an iterator that was used up gives none again: pass a list or a splitter"
    refuse((not folds, used_up))
    for number, sides in enumerate(folds):
        for side, verb in zip(sides, ("trains on", "holds out"), strict=True):
            empty = f"split {number} of {name} {verb} no rows: give both sides at least one query"
            refuse((not len(side), empty))
    return folds


def _given_folds(cv: Any, data: RankingData, name: str) -> Folds:
    """Return splits that are given by row numbers or masks, if they cut no query."""
    codes, queries = encode(data.qid)
    sizes, folds = np.bincount(codes), []
    for number, split in enumerate(cv):
        if not isinstance(split, Sequence) or isinstance(split, (str, bytes)) or len(split) != 2:
            raise InvalidInput(
                f"each split is a pair of training and test rows, found {shown(split)}",
                argument=name,
            )
        for side in split:
            refuse(
                (
                    np.ndim(side) != 1,
                    f"a side of a split is {shown(side)}; give rows by number or mask",
                ),
                argument=name,
            )
        # NumPy makes floats of an empty list, and floats are no positions.
        train, test = (
            np.flatnonzero(side)
            if side.dtype == bool or not len(side)
            else np.arange(len(data))[side]
            for side in map(np.asarray, split)
        )
        n_train, n_test = (np.bincount(codes[side], minlength=len(sizes)) for side in (train, test))
        cut = (n_test > 0) & ((n_test < sizes) | (n_train > 0))
        if cut.any():
            raise InvalidInput(
                f"split {number} of {name} cuts query {queries.tolist()[np.argmax(cut)]!r}: hold out all of its rows, "
                f"or none; a splitter given as {name} is applied to queries"
            )
        folds.append((train, test))
    return folds
