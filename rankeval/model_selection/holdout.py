"""A part to work with and a part to be looked at once, cut by a hash of each query's id."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import check_share
from rankeval.collection.alignment import check_rows
from rankeval.collection.data import RankingData
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.model_selection.query_ids import encode, require, without_ids


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
    check_share("test_size", test_size)
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
    X: Any, y: Any = None, *, who: str, qid: Any = None, group: Any = None, docid: Any = None, **beside: Any
) -> RankingData:
    """Return rows with labels and query ids, from whatever carries them.

    Parameters
    ----------
    X, y, qid, group, docid
        As in `dev_test_split`.
    who : str
        Who needs them, for messages.
    **beside : array-like of shape (n_rows,), optional
        What else stands beside these rows, by name.

    Raises
    ------
    InvalidInput
        When y is missing, or given twice.
    QueryIdError
        When the query of each row is not known, or indexes differ.
    """
    if isinstance(X, RankingData):
        if y is not None or qid is not None or group is not None or docid is not None:
            raise InvalidInput(f"{who} got a RankingData, which has labels and ids, and y, qid, group or docid too")
        check_rows(X=X.X, **beside)
        return X
    if y is None:
        raise InvalidInput(f"{who} needs y, the relevance of each row")
    check_rows(X=X, y=y, qid=qid, docid=docid, **beside)
    ids = require(X, y, who=who, qid=qid, group=group)
    labels = columns.labels(columns.as_column(y), "y")
    features = without_ids(X)
    names = tuple(map(str, features.columns)) if hasattr(features, "columns") else None
    return RankingData(features if hasattr(features, "shape") else np.asarray(features), labels, ids, docid, names)


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
