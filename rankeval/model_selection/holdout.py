"""Split data into a dev part and a test part, by a hash of the query ids or by time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import check_share, refuse, shown
from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.model_selection.query_ids import encode, require, without_ids
from rankeval.model_selection.splitters import moments, query_times


@dataclass(frozen=True)
class DevTestSplit:
    """A dev part to work with, and a test part to look at once.

    Attributes
    ----------
    dev, test : RankingData
        The two parts.
    salt : str
        The salt of the hash.
    test_size : float, optional
        The requested share of queries in the test part; None if it was split by time.
    registered : RegisteredCollection, optional
        The test part in the guard's ledger.
    test_from : object, optional
        The time from which on queries are in the test part; None if it was split by hash.
    """

    dev: RankingData
    test: RankingData
    salt: str = ""
    test_size: float | None = 0.2
    registered: Any = None
    test_from: Any = None

    def __repr__(self) -> str:
        return f"DevTestSplit(dev={self.dev!r}, test={self.test!r}, registered={self.registered is not None})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{name}</th><td>{part.n_queries}</td><td>{len(part)}</td></tr>"
            for name, part in (("dev", self.dev), ("test", self.test))
        )
        registered = f"registered as {escape(repr(self.registered))}" if self.registered else "not registered"
        return f"<table><tr><th></th><th>queries</th><th>rows</th></tr>{rows}</table><p>test part {registered}</p>"


def dev_test_split(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    test_size: float | None = None,
    salt: str = "",
    times: Any = None,
    test_from: Any = None,
    guard: Any = None,
    test_name: str | None = None,
    supersedes: Any = None,
) -> DevTestSplit:
    """Split off a test part by a salted hash of the query ids, or by time.

    By hash, the side of a query depends only on its id and the salt. It stays the same if queries are added, and if ids
    are numbers in one file and texts in another. So the share of test queries is ``test_size`` in expectation.

    By time, the test part has all queries with a row at ``test_from`` or later, with all of their rows. So no row of
    the dev part is of that time or later. If later rows are added, no query leaves the test part; a query of the dev
    part that comes again goes to the test part, unless it has another id then.

    Parameters
    ----------
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features)
        The data, or its features.
    y : array-like of shape (n_rows,), optional
        The relevance of each row; that of the RankingData if X is one.
    qid : array-like of shape (n_rows,), optional
        The query of each row. It may also be a pandas index level or a column of X named "qid".
    group : array-like of int of shape (n_queries,), optional
        Sizes of consecutive queries, instead of ``qid``.
    docid : array-like of shape (n_rows,), optional
        The document of each row.
    test_size : float, optional
        The share of queries to test on, 0.2 if not given; not for a split by time.
    salt : str, default=""
        Another salt gives another split by hash.
    times : str, mapping, Series or array-like of shape (n_rows,), optional
        The times of the rows or queries, as in `QueryTimeSplit`, for a split by time. A column of X that holds them
        stays in both parts; an index level is no feature.
    test_from : date, time, text or number, optional
        The time at which the test part begins, of the same kind as ``times``. Without a time zone it is UTC.
    guard : Guard, optional
        Registers the test part; from then on only frozen plans can use it.
    test_name : str, optional
        The name of the registered test part.
    supersedes : RegisteredCollection or str, optional
        The registered test part that this one takes the place of, as in `Guard.register`: if queries were added, the
        one before, also under the same name.

    Returns
    -------
    DevTestSplit
        The two parts, ``.dev`` and ``.test``, as `RankingData`.

    Raises
    ------
    InvalidInput
        If y is missing, the share is not between 0 and 1, or one part would be empty. Also if only one of ``times`` and
        ``test_from`` is given, they come with a share or a salt, or a time is missing or of another kind; or if
        ``supersedes`` is given without a guard.
    QueryIdError
        If the query of each row is not known.
    LedgerError
        If the guard cannot register the test part, for instance because its name stands for other content and
        ``supersedes`` does not say so.

    Examples
    --------
    >>> import rankeval as rk
    >>> split = dev_test_split(rk.datasets.make_ranking(30, rng=0), test_size=0.3)
    >>> split.dev.n_queries, split.test.n_queries
    (21, 9)
    """
    if not isinstance(salt, str | Integral):  # the text of another object may be another one in each process
        raise InvalidInput(argument="salt", found=shown(salt), expected="text")
    by_time = times is not None or test_from is not None
    is_mixed = by_time and (times is None or test_from is None or test_size is not None or salt != "")
    refuse(
        (is_mixed, "a split by time needs both times= and test_from=, and neither test_size= nor salt="),
        (supersedes is not None and guard is None, "supersedes= is for a registered test part: give guard= too"),
    )
    data = as_ranking_data(X, y, who="dev_test_split", qid=qid, group=group, docid=docid)
    codes, queries = encode(data.qid)
    if by_time:
        known, start = query_times(times, data.X, y, codes, queries), moments([test_from], "test_from")
        unlike = f"test_from is {shown(test_from)}, and times are such as {known[0]}: give both of one kind"
        refuse(((start.dtype.kind == "M") != (known.dtype.kind == "M"), unlike))
        is_test = known >= start[0]
    else:
        test_size = 0.2 if test_size is None else test_size
        check_share("test_size", test_size)
        is_test = hashed_share(queries, salt) < test_size
    in_test = is_test[codes]
    if is_test.all() or not is_test.any():
        side, other = "dev" if is_test.all() else "test", "test_from" if by_time else "test_size or salt"
        raise InvalidInput(f"no query of {len(queries)} fell into the {side} part: choose another {other}")
    label = test_name or (f"{data.name}-test" if data.name else "test")
    dev, test = data.take(~in_test, name=f"{data.name}-dev" if data.name else "dev"), data.take(in_test, name=label)
    registered = guard and guard.register(label, test.X, test.y, qid=test.qid, supersedes=supersedes)
    return DevTestSplit(dev, test, salt=salt, test_size=test_size, registered=registered, test_from=test_from)


def as_ranking_data(
    X: Any, y: Any = None, *, who: str, qid: Any = None, group: Any = None, docid: Any = None, **beside: Any
) -> RankingData:
    """Return rows, labels and query ids as `RankingData`.

    Parameters
    ----------
    X, y, qid, group, docid
        As in `dev_test_split`.
    who : str
        The caller, for messages.
    **beside : array-like of shape (n_rows,), optional
        Further columns of these rows, to check their lengths and indexes.

    Raises
    ------
    InvalidInput
        If y is missing, or given twice.
    QueryIdError
        If the query of each row is not known, or indexes differ.
    """
    if isinstance(X, RankingData):
        again = f"{who} got a RankingData, which has labels and ids, and also y, qid, group or docid: leave those out"
        refuse((any(one is not None for one in (y, qid, group, docid)), again))
        check_rows(X=X.X, **beside)
        return X
    refuse((y is None, f"{who} needs y, the relevance of each row"))
    check_rows(X=X, y=y, qid=qid, docid=docid, **beside)
    ids = require(X, y, who=who, qid=qid, group=group)
    labels = columns.labels(columns.as_column(y), "y")
    features = without_ids(X)
    names = tuple(map(str, features.columns)) if hasattr(features, "columns") else None
    return RankingData(features if hasattr(features, "shape") else np.asarray(features), labels, ids, docid, names)


def hashed_share(queries: NDArray[Any], salt: str) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each query, a hash of its id and the salt.

    Parameters
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids.
    salt : str
        Another salt gives other numbers.
    """
    heads = [hashlib.sha256(f"{salt}\0{query}".encode()).digest()[:8] for query in queries.tolist()]
    return np.array([int.from_bytes(head, "big") >> 11 for head in heads], dtype=np.float64) / 2.0**53
