"""Splitters that never cut a query: any scikit-learn splitter, applied to the queries instead of to the rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.utils.metadata_routing import MetadataRequest

from rankeval._registry import unknown
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.model_selection.query_ids import encode, find, n_rows, per_query, require, without_ids

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


@dataclass(frozen=True)
class DevTestSplit:
    """Data cut into a part to work with and a part to be looked at once.

    Attributes
    ----------
    dev, test : RankingData
        The parts.
    salt : str
        What the cut was made with.
    test_size : float
        The share of queries that was asked for.
    registered : RegisteredCollection, optional
        The test part in the guard's ledger.
    """

    dev: RankingData
    test: RankingData
    salt: str = ""
    test_size: float = 0.2
    registered: Any = None

    def __repr__(self) -> str:
        return f"DevTestSplit(dev={self.dev!r}, test={self.test!r}, registered={self.registered is not None})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{part.n_queries}</td><td>{len(part)}</td></tr>"
            for name, part in (("dev", self.dev), ("test", self.test))
        )
        note = (
            f"test part registered as {escape(repr(self.registered))}"
            if self.registered
            else "test part not registered"
        )
        return f"<table><tr><th></th><th>queries</th><th>rows</th></tr>{rows}</table><p>{note}</p>"


def dev_test_split(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    test_size: float = 0.2,
    salt: str = "",
    guard: Any = None,
    test_name: str | None = None,
) -> DevTestSplit:
    """Cut off a test part by a salted hash of each query's id.

    A query's side depends on its id and the salt alone: it stays when queries are added, and when ids that were read
    as numbers are read as text. The share is therefore `test_size` in expectation.

    Parameters
    ----------
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features)
        The data, or its features.
    y : array-like of shape (n_rows,), optional
        The relevance of each row; that of the RankingData if X is one.
    qid, group : array-like, optional
        The query of each row, or sizes of consecutive queries; see the ways in `make_scorer`.
    docid : array-like of shape (n_rows,), optional
        The document of each row.
    test_size : float, default=0.2
        The share of queries to test on.
    salt : str, default=""
        Another salt makes another cut.
    guard : Guard, optional
        Registers the test part, which is refused from then on outside of frozen plans.
    test_name : str, optional
        The name under which it is registered.

    Returns
    -------
    DevTestSplit
        With ``.dev`` and ``.test``, `RankingData` both.

    Raises
    ------
    InvalidInput
        When y is missing, the share is not between 0 and 1, or one part would be empty.
    QueryIdError
        When the query of each row is not known.
    """
    data = as_ranking_data(X, y, who="dev_test_split", qid=qid, group=group, docid=docid)
    if not 0 < test_size < 1:
        raise InvalidInput(f"test_size is {test_size}; it is a share of the queries between 0 and 1")
    codes, queries = encode(data.qid)
    in_test = (hashed_share(queries, salt) < test_size)[codes]
    if in_test.all() or not in_test.any():
        side = "dev" if in_test.all() else "test"
        raise InvalidInput(f"no query of {len(queries)} fell into the {side} part: take another test_size or salt")
    label = test_name or (f"{data.name}-test" if data.name else "test")
    dev, test = data.take(~in_test, name=f"{data.name}-dev" if data.name else "dev"), data.take(in_test, name=label)
    registered = None if guard is None else guard.register(label, test.X, test.y, qid=test.qid)
    return DevTestSplit(dev, test, salt=salt, test_size=test_size, registered=registered)


def as_ranking_data(
    X: Any, y: Any = None, *, who: str, qid: Any = None, group: Any = None, docid: Any = None
) -> RankingData:
    """Return rows with labels and query ids, from whatever carries them.

    Parameters
    ----------
    X, y, qid, group, docid
        As in `dev_test_split`.
    who : str
        Who needs them, for messages.

    Raises
    ------
    InvalidInput
        When y is missing, or given twice.
    QueryIdError
        When the query of each row is not known.
    """
    if isinstance(X, RankingData):
        if y is not None or qid is not None or group is not None or docid is not None:
            raise InvalidInput(f"{who} got a RankingData, which has labels and ids, and y, qid, group or docid too")
        return X
    if y is None:
        raise InvalidInput(f"{who} needs y, the relevance of each row")
    ids = require(X, y, who=who, qid=qid, group=group)
    features = without_ids(X)
    names = tuple(map(str, features.columns)) if hasattr(features, "columns") else None
    return RankingData(features if hasattr(features, "shape") else np.asarray(features), y, ids, docid, names)


def hashed_share(queries: NDArray[Any], salt: str) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each query, which depends on its id and the salt alone.

    Parameters
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids.
    salt : str
        Another salt gives other numbers.
    """
    heads = [hashlib.sha256(f"{salt}\0{query}".encode()).digest()[:8] for query in queries.tolist()]
    return np.array([int.from_bytes(head, "big") >> 11 for head in heads], dtype=np.float64) / 2.0**53


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
