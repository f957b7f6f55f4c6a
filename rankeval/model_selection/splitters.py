"""Splitters that never cut a query: any scikit-learn splitter, applied to the queries instead of to the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.utils.metadata_routing import MetadataRequest

from rankeval._registry import unknown
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.model_selection.query_ids import encode, find, n_rows, per_query, require

Rows = NDArray[np.intp]
Stratum = Callable[[NDArray[Any]], Any]


def n_relevant(y: NDArray[Any]) -> int:
    """Return the number of relevant rows of one query: the stratum of `StratifiedQueryKFold`."""
    return int((y > 0).sum())


class QuerySplit:
    """Applies a scikit-learn splitter to the distinct queries, so that none has rows on two sides.

    Queries come from ``qid=`` or ``groups=`` (routed, where metadata routing is on), from a pandas index level or a
    column of X named "qid". Where both ``qid`` and ``groups`` are given, whole groups are split: by author, say, while
    the ranking is by query; every query must then lie in one group.

    Parameters
    ----------
    splitter : object
        Any scikit-learn splitter. It sees one row per query, in the order of `order`: the query's id as X.
    order : {"id", "row"}, default="id"
        Queries in ascending order of their ids, so that folds do not depend on the order of rows; or in the order of
        their first rows.
    stratum : callable, optional
        Makes the label of a query, for stratified splitters, from the relevance of its rows.

    Examples
    --------
    >>> from sklearn.model_selection import LeaveOneOut
    >>> cv = QuerySplit(LeaveOneOut())
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[1], [0, 2]]
    """

    def __init__(self, splitter: Any, *, order: str = "id", stratum: Stratum | None = None) -> None:
        if not hasattr(splitter, "split"):
            raise InvalidInput(f"splitter is {splitter!r}, which has no split method: give a scikit-learn splitter")
        if order not in {"id", "row"}:
            raise unknown("order of queries", str(order), ("id", "row"))
        self.splitter = splitter
        self.order = order
        self.stratum = stratum
        self._requests: dict[str, bool | str | None] = {"qid": True, "groups": True}

    def split(
        self, X: Any, y: Any = None, groups: Any = None, *, qid: Any = None, group: Any = None
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield the training and the test rows of each split.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows, in any order.
        y : array-like of shape (n_rows,), optional
            Their relevance; only `stratum` reads it.
        groups : array-like of shape (n_rows,), optional
            The query of each row, as scikit-learn's group splitters call it; or, beside `qid`, a coarser unit.
        qid : array-like of shape (n_rows,), optional
            The query of each row.
        group : array-like of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of `qid`.

        Raises
        ------
        QueryIdError
            When the query of each row is not known, or when `groups` would cut a query.
        """
        codes, units = encode(self._units(X, y, groups, qid, group))
        rank = _ascending(units) if self.order == "id" else np.arange(len(units))
        place = np.empty_like(rank)
        place[rank] = np.arange(len(rank))
        codes = place[codes]
        for train, test in self._split_units(units[rank], None if y is None else self._strata(y, codes)):
            yield _rows_of(train, codes, len(units)), _rows_of(test, codes, len(units))

    def _units(self, X: Any, y: Any, groups: Any, qid: Any, group: Any) -> NDArray[Any]:
        """Return what must stay whole: the group of each row, or else its query."""
        if groups is None:
            return require(X, y, who=type(self).__name__, qid=qid, group=group)
        units = require(np.empty((n_rows(X), 0)), who=type(self).__name__, qid=groups)
        ids = find(X, y, qid=qid, group=group)
        if ids is not None:
            try:
                per_query(encode(units)[0], encode(ids)[0], "groups")
            except InvalidInput as error:
                raise QueryIdError("groups puts rows of one query into two groups, and would cut the query") from error
        return units

    def _strata(self, y: Any, codes: NDArray[np.int64]) -> NDArray[Any] | None:
        if self.stratum is None:
            return None
        labels = np.asarray(y)
        order = np.argsort(codes, kind="stable")
        parts = np.split(labels[order], np.flatnonzero(np.diff(codes[order])) + 1)
        return np.asarray([self.stratum(part) for part in parts])

    def _split_units(self, units: NDArray[Any], strata: NDArray[Any] | None) -> Iterator[tuple[Rows, Rows]]:
        table = units.reshape(-1, 1)
        if _wants_groups(self.splitter):
            yield from self.splitter.split(table, strata, np.arange(len(units)))
        else:
            yield from self.splitter.split(table, strata)

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, *, qid: Any = None, group: Any = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups, qid, group : optional
            As in `split`; read only by splitters that count the queries, such as ``LeaveOneOut``.
        """
        if X is None:
            return int(self.splitter.get_n_splits())
        if groups is None and find(X, y, qid=qid, group=group) is None:
            return int(self.splitter.get_n_splits(X))
        units = encode(self._units(X, y, groups, qid, group))[1]
        return int(self.splitter.get_n_splits(units.reshape(-1, 1), None, np.arange(len(units))))

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what scikit-learn shall route here: ``qid`` and ``groups``, under their own names."""
        request = MetadataRequest(owner=self)
        for param, alias in self._requests.items():
            request.split.add_request(param=param, alias=alias)
        return request

    def set_split_request(self, **requests: bool | str | None) -> QuerySplit:
        """Change under which name metadata is routed here, as scikit-learn's splitters do.

        Parameters
        ----------
        **requests : bool, str or None
            For ``qid`` and ``groups``: whether it is asked for, or the name it has in ``params=``.

        Returns
        -------
        QuerySplit
            This splitter.

        Raises
        ------
        UnknownName
            For any other name.
        """
        for param in requests:
            if param not in self._requests:
                raise unknown("metadata of a splitter", param, self._requests)
        self._requests.update(requests)
        return self

    def __repr__(self) -> str:
        inner = repr(self.splitter)
        if type(self) is not QuerySplit:
            return f"{type(self).__name__}{inner[len(type(self.splitter).__name__) :]}"
        order = "" if self.order == "id" else f", order={self.order!r}"
        stratum = "" if self.stratum is None else f", stratum={self.stratum.__name__}"
        return f"QuerySplit({inner}{order}{stratum})"


class QueryKFold(QuerySplit):
    """K folds of whole queries.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Shuffle the queries first.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.KFold`.
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        super().__init__(KFold(n_splits, shuffle=shuffle, random_state=random_state))


class RepeatedQueryKFold(QuerySplit):
    """K folds of whole queries, drawn several times.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    n_repeats : int, default=10
        How often they are drawn.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.RepeatedKFold`.
    """

    def __init__(self, n_splits: int = 5, *, n_repeats: int = 10, random_state: Any = None) -> None:
        super().__init__(RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=random_state))


class StratifiedQueryKFold(QuerySplit):
    """K folds of whole queries that share a property of queries evenly.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    stratum : callable, optional
        Makes a query's label from the relevance of its rows; by default the number of relevant rows.
    shuffle : bool, default=False
        Shuffle the queries first.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.StratifiedKFold`.
    """

    def __init__(
        self, n_splits: int = 5, *, stratum: Stratum = n_relevant, shuffle: bool = False, random_state: Any = None
    ) -> None:
        splitter = StratifiedKFold(n_splits, shuffle=shuffle, random_state=random_state)
        super().__init__(splitter, stratum=stratum)


class QueryShuffleSplit(QuerySplit):
    """Random test parts of whole queries.

    Parameters
    ----------
    n_splits : int, default=10
        How often a part is drawn.
    test_size, train_size : float or int, optional
        Share or number of queries.
    random_state : int, RandomState or None
        As in `sklearn.model_selection.ShuffleSplit`.
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        random_state: Any = None,
    ) -> None:
        splitter = ShuffleSplit(n_splits, test_size=test_size, train_size=train_size, random_state=random_state)
        super().__init__(splitter)


class QueryTimeSplit(QuerySplit):
    """Trains on earlier queries, tests on later ones; time runs with the rows.

    Parameters
    ----------
    n_splits : int, default=5
        Number of splits.
    gap : int, default=0
        Queries left out between the training and the test part.
    max_train_size, test_size : int, optional
        Numbers of queries, as in `sklearn.model_selection.TimeSeriesSplit`.
    """

    def __init__(
        self, n_splits: int = 5, *, gap: int = 0, max_train_size: int | None = None, test_size: int | None = None
    ) -> None:
        splitter = TimeSeriesSplit(n_splits, max_train_size=max_train_size, test_size=test_size, gap=gap)
        super().__init__(splitter, order="row")


def _ascending(units: NDArray[Any]) -> NDArray[np.intp]:
    try:
        return np.argsort(units, kind="stable")
    except TypeError:
        # Ids of several types have no order of their own; their spelling has.
        return np.argsort(np.array([f"{type(unit).__name__} {unit}" for unit in units.tolist()]), kind="stable")


def _rows_of(chosen: Rows, codes: NDArray[np.int64], n_units: int) -> Rows:
    mask = np.zeros(n_units, dtype=bool)
    mask[chosen] = True
    return np.flatnonzero(mask[codes])


def _wants_groups(splitter: Any) -> bool:
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return splitter.get_metadata_routing().split.requests.get("groups") is True
