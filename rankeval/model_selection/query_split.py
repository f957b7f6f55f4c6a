"""Split whole queries: any scikit-learn splitter, applied to the queries instead of the rows.

::

    rows     b a b      ids by row
    queries  a b        the splitter sees one row per query, its id as X
    folds    {a} {b}    by the splitter
    rows     [1] [0 2]  every row goes with its query

Stratified splitters get a stratum for each query: a label, or a range of numbers. scikit-learn
balances labels, and raises if every label is rarer than the number of folds. The number of relevant
documents has many rare values, so neighbouring numbers are joined until each stratum has a query
for every fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ShuffleSplit
from sklearn.utils.metadata_routing import MetadataRequest

from rankeval._arguments import explained
from rankeval._checks import refuse, shown
from rankeval._registry import chosen
from rankeval.collection.rows import check_rows, index_of
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import as_column, labels
from rankeval.model_selection.query_ids import by_id, encode, find, n_rows, per_query, required_ids

Rows = NDArray[np.intp]


@explained
class QuerySplit:
    """Applies a scikit-learn splitter to the distinct queries, so that no query has rows on both sides.

    Queries come from ``qid=`` or ``groups=`` (routed if metadata routing is on), from a pandas
    index level or from a column of X named "qid". If both ``qid`` and ``groups`` are given, groups
    of whole queries are split, such as all queries of one author.

    Parameters
    ----------
    splitter : object
        Any scikit-learn splitter. It sees one row per query, the id as X, in the order of
        ``order``.
    order : {"id", "row"}, default="id"
        The order of the queries: by ascending id, so that folds do not depend on the order of rows,
        or by first row.
    stratum : callable, optional
        Function from the relevance of a query's rows to a number or a label, which stratified
        splitters balance. By default the number of relevant rows. Neighbouring numbers are joined
        until each stratum has enough queries.
    key : mapping, Series or array-like, optional
        Values to balance instead, such as the language: by query, or of shape (n_rows,) and
        constant within a query.

    Raises
    ------
    InvalidInput
        If the splitter has no ``split``, ``stratum`` is not a function or is given beside ``key``,
        or ``key`` has no values.
    UnknownName
        If there is no such order.

    Examples
    --------
    >>> from sklearn.model_selection import LeaveOneOut
    >>> cv = QuerySplit(LeaveOneOut())
    >>> [test.tolist() for _, test in cv.split([[0], [1], [2]], qid=["b", "a", "b"])]
    [[1], [0, 2]]
    """

    def __init__(
        self, splitter: Any, *, order: str = "id", stratum: Stratum | None = None, key: Any = None
    ) -> None:
        if isinstance(key, str) or not (key is None or hasattr(key, "__len__")):
            raise InvalidInput(
                f"key is {shown(key)}: give a mapping of query ids to values, or one value a row"
            )
        way = "give a function of a query's relevance, or key=, values by query"
        # A text has another method of this name.
        splits = hasattr(splitter, "split") and not isinstance(splitter, (str, bytes))
        is_odd = not (stratum is None or callable(stratum))
        both = stratum is not None and key is not None
        refuse(
            (not splits, f"splitter is a {type(splitter).__name__}, which has no split method"),
            (is_odd, f"stratum is a {type(stratum).__name__}: {way}"),
            (both, f"stratum and key are given both: {way}"),
        )
        chosen("order of queries", order, ("id", "row"))
        self.splitter = splitter
        self.order = order
        self.stratum = stratum
        self.key = key
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
            The relevance of each row, which stratified splitters need.
        groups : array-like of shape (n_rows,), optional
            The query of each row, as scikit-learn names it. If ``qid`` is given too, a coarser unit
            than the query, as in `rankeval.cross_validate`.
        qid : array-like of shape (n_rows,), optional
            The query of each row.
        group : array-like of int of shape (n_queries,), optional
            Sizes of consecutive queries, instead of ``qid``; not the ``groups`` of scikit-learn.

        Yields
        ------
        tuple of ndarray
            Row numbers, of shape (n_train_rows,) and (n_test_rows,), ascending.

        Raises
        ------
        QueryIdError
            If the query of each row is not known, ``groups`` would cut a query, or indexes differ.
        InvalidInput
            If y is needed for strata and missing, or the splitter was made for rows.
        ValueError
            If scikit-learn's splitter refuses the number of queries, such as 5 folds of 3 queries.
        """
        by_row = self.key if index_of(self.key) is not None and len(self.key) == n_rows(X) else None
        check_rows(X=X, y=y, groups=groups, qid=qid, key=by_row)
        codes, units = (by_id if self.order == "id" else encode)(
            self._units(X, y, groups, qid, group)
        )
        folds = getattr(self.splitter, "test_fold", None)  # of scikit-learn's PredefinedSplit
        if folds is not None and len(folds) != len(units):
            entries = f"test_fold has {len(folds)} entries, but there are {len(units)} queries"
            way = "give one per query, in the order of their ids; or rankeval.PredefinedFolds(ids by fold)"
            raise InvalidInput(f"{entries}: {way}")
        targets = self._targets(X, y, codes, units)
        wants_groups = hasattr(self.splitter, "get_metadata_routing") and (
            self.splitter.get_metadata_routing().split.requests.get("groups") is True
        )
        with warnings.catch_warnings():
            # A stratum with fewer queries than folds is spread over as many folds as it has
            # queries.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            groups = (np.arange(len(units)),) if wants_groups else ()
            sides = list(self.splitter.split(units.reshape(-1, 1), targets, *groups))
        numbers = np.arange(len(units))
        for side in sides:
            train, test = (np.flatnonzero(np.isin(codes, numbers[queries])) for queries in side)
            yield train, test

    def _units(self, X: Any, y: Any, groups: Any, qid: Any, group: Any) -> NDArray[Any]:
        """Return the unit of each row that must stay whole: its group, or else its query."""
        if groups is None:
            return required_ids(X, y, who=type(self).__name__, qid=qid, group=group)
        units = required_ids(np.empty((n_rows(X), 0)), who=type(self).__name__, qid=groups)
        ids = find(X, y, qid=qid, group=group)
        if ids is not None:
            try:
                per_query(encode(units)[0], encode(ids)[0], "groups")
            except InvalidInput as error:
                raise QueryIdError(**error.fields) from error
        return units

    def _targets(
        self, _X: Any, y: Any, codes: NDArray[np.int64], units: NDArray[Any]
    ) -> NDArray[Any] | None:
        """Return y for the splitter: strata if it balances them; for any other, the requested values or None."""
        balances = stratifies(self.splitter)
        stratum = n_relevant if self.stratum is None and balances else self.stratum
        if self.key is not None:
            values = of_key(self.key, units, codes)
        elif stratum is None:
            return None
        elif y is not None:
            values = of_labels(labels(as_column(y), "y"), stratum, codes)
        elif balances:
            raise InvalidInput(
                f"{type(self).__name__} balances the relevance of queries: give y to split(), or key="
            )
        else:
            return None
        return strata(values, self.splitter) if balances else np.asarray(values)

    def get_n_splits(
        self,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups, qid, group : optional
            As in `split`; only splitters that count the queries need them, such as ``LeaveOneOut``.

        Returns
        -------
        int

        Raises
        ------
        QueryIdError
            If ``groups`` would cut a query, or indexes differ.
        ValueError
            If the splitter counts the queries, and X is missing.
        """
        if X is None:
            return int(self.splitter.get_n_splits())
        if groups is None and find(X, y, qid=qid, group=group) is None:
            return int(self.splitter.get_n_splits(X))
        units = encode(self._units(X, y, groups, qid, group))[1]
        return int(self.splitter.get_n_splits(units.reshape(-1, 1), None, np.arange(len(units))))

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that scikit-learn routes to `split`: ``qid`` and ``groups``.

        Returns
        -------
        MetadataRequest
        """
        request = MetadataRequest(owner=self)
        for param, alias in self._requests.items():
            request.split.add_request(param=param, alias=alias)
        return request

    def set_split_request(self, **requests: bool | str | None) -> QuerySplit:
        """Change the routed names of the metadata, as in scikit-learn's splitters.

        Parameters
        ----------
        **requests : bool, str or None
            For ``qid`` and ``groups``: True to request it, False to ignore it, None to refuse it,
            or its name in ``params=``.

        Returns
        -------
        QuerySplit
            This splitter.

        Raises
        ------
        UnknownName
            For any other name.

        Examples
        --------
        >>> from sklearn.model_selection import KFold
        >>> QuerySplit(KFold(2)).set_split_request(qid="query").get_metadata_routing()
        {'split': {'qid': 'query', 'groups': True}}
        """
        for param in requests:
            chosen("metadata of a splitter", param, self._requests)
        self._requests.update(requests)
        return self

    def __repr__(self) -> str:
        inner = " ".join(repr(self.splitter).split())  # scikit-learn breaks long lines
        shown = [f"order={self.order!r}"] if self.order != "id" and type(self) is QuerySplit else []
        if self.stratum is not None:
            shown.append(f"stratum={getattr(self.stratum, '__name__', repr(self.stratum))}")
        if self.key is not None:
            shown.append(f"key={_spelled(self.key)}")
        options = (
            inner if type(self) is QuerySplit else inner[len(type(self.splitter).__name__) + 1 : -1]
        )
        return f"{type(self).__name__}({', '.join([options, *shown])})"


def _spelled(key: Any) -> str:
    if isinstance(key, Mapping):
        plain = (
            tuple(part.item() if isinstance(part, np.generic) else part for part in pair)
            for pair in key.items()
        )
        return repr(dict(plain))
    if hasattr(getattr(key, "index", None), "get_indexer"):
        return f"Series({key.tolist()!r}, index={key.index.tolist()!r})"
    return repr(np.asarray(key).tolist())


Stratum = Callable[[NDArray[Any]], Any]


def n_relevant(y: NDArray[Any]) -> int:
    """Return the number of relevant rows of one query, the default for stratified splitters."""
    return int((y > 0).sum())


def stratifies(splitter: Any) -> bool:
    """Return whether a splitter balances labels: by its name, since scikit-learn has no base class for them."""
    return any("Stratified" in cls.__name__ for cls in type(splitter).__mro__)


def of_labels(y: NDArray[Any], stratum: Stratum, codes: NDArray[np.int64]) -> list[Any]:
    """Apply `stratum` to the relevance of each query."""
    order = np.argsort(codes, kind="stable")
    return [stratum(part) for part in np.split(y[order], np.flatnonzero(np.diff(codes[order])) + 1)]


def is_by_query(key: Any, n_rows: int) -> bool:
    """Say whether values are by query: in a mapping, or in a Series that is not as long as the rows."""
    return isinstance(key, Mapping) or (
        hasattr(getattr(key, "index", None), "get_indexer") and len(key) != n_rows
    )


def of_key(
    key: Any, queries: NDArray[Any], codes: NDArray[np.int64], name: str = "key"
) -> list[Any]:
    """Return the value of a key for each query."""
    known = dict(key.items()) if is_by_query(key, len(codes)) else None
    values = (
        list(per_query(key, codes, name))
        if known is None
        else [known.get(query) for query in queries.tolist()]
    )
    pairs = zip(queries.tolist(), values, strict=True)
    lacking = [query for query, value in pairs if value is None or value != value]  # noqa: PLR0124 - nan, of any type
    if lacking:
        way = (
            f"give one for each query, such as 'unknown', or one for each of the {len(codes)} rows"
        )
        raise InvalidInput(
            f"{name} has no value for query {lacking[0]!r} ({len(lacking)} such): {way}"
        )
    return values


def strata(values: list[Any], splitter: Any) -> NDArray[np.int64]:
    """Return the stratum of each query, by number."""
    try:
        names = sorted(set(values))
    except TypeError:  # several types have no common order
        names = list(dict.fromkeys(values))
    number = {name: place for place, name in enumerate(names)}
    codes = np.array([number[value] for value in values], dtype=np.int64)
    if not all(
        isinstance(name, (int, float, np.number)) and not isinstance(name, bool) for name in names
    ):
        return codes
    is_drawn = hasattr(splitter, "test_size")
    if is_drawn:
        draws = ShuffleSplit(1, test_size=splitter.test_size, train_size=splitter.train_size)
        least = max(2, *(ceil(len(values) / len(side)) for side in next(draws.split(values))))
    else:  # a repeated splitter keeps the options of its inner splitter in cvargs
        least = int(
            getattr(splitter, "cvargs", {}).get("n_splits", 0) or getattr(splitter, "n_splits", 2)
        )
    few = f"{type(splitter).__name__} needs {least} queries or more, and there are {len(values)}"
    refuse((len(values) < least, few))
    sizes = np.bincount(codes)
    joined = _joined(sizes, least)
    # One stratum would balance nothing. Folds can share rare numbers, if not with one query for
    # every fold.
    return codes if not is_drawn and not joined.any() and sizes.max() >= least else joined[codes]


def _joined(sizes: NDArray[np.int64], least: int) -> NDArray[np.int64]:
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
