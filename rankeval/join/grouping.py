"""Rows into queries: which rows belong together, in ascending order of the query ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.errors import QueryIdError
from rankeval.io.columns import refuse_masked
from rankeval.io.ids import Ints, comparable


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows grouped by query.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        Distinct ids, ascending.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins among the grouped rows.
    order : ndarray of shape (n_rows,) or None
        Row of the input at each grouped place; None when the input stands grouped already.
    """

    queries: NDArray[Any]
    offsets: Ints
    order: Ints | None


def sizes_to_ids(group: ArrayLike, n_rows: int) -> Ints:
    """Turn group sizes, as LightGBM wants them, into one query id a row: 0, 1, 2 ...

    Parameters
    ----------
    group : array of int of shape (n_queries,)
        Number of rows of each query, in row order; whole numbers of any type. A query without rows is refused, since
        it would count in no mean though it was given.
    n_rows : int
        Number of rows there are.

    Raises
    ------
    QueryIdError
        When the sizes are not counts, or do not add up to the rows.
    """
    refuse_masked(group, "group", QueryIdError)
    try:
        sizes = np.asarray(group)
        with np.errstate(invalid="ignore"):  # nan becomes a number that it does not equal
            counts = sizes.astype(np.int64) if sizes.ndim == 1 and sizes.dtype.kind in "iufO" else None
    except (TypeError, ValueError):
        counts = None
    if counts is None or (counts != sizes).any():
        found = " ".join(repr(group).split())[:60]
        raise QueryIdError(f"group is {found}: expected the sizes of consecutive queries; ids of rows go to qid=")
    if (counts < 1).any():
        place = int(np.argmax(counts < 1))
        raise QueryIdError(
            f"group has the size {counts[place]} at {place}: sizes are positive; leave empty queries out"
        )
    total = sum(counts.tolist())  # of Python's numbers, which do not wrap
    if total != n_rows:
        hint = "; these look like ids of rows, which go to qid=" if len(counts) == n_rows else ""
        raise QueryIdError(f"the sizes in group add up to {total}, but there are {n_rows} rows{hint}")
    return np.repeat(np.arange(len(counts)), counts)


def group_rows(qid: ArrayLike) -> Grouping:
    """Group rows by query id.

    Parameters
    ----------
    qid : array of shape (n_rows,)
        The query of each row; ids of any one sortable type, in any order, a query's rows need not stand together.

    Returns
    -------
    Grouping

    Raises
    ------
    QueryIdError
        When an id is missing, or ids of several types are mixed.
    """
    ids, names = comparable(qid, "qid")
    if not len(ids):
        return Grouping(ids, np.zeros(1, dtype=np.int64), None)
    starts = _starts(ids)
    block = ids[starts]
    if bool((block[1:] > block[:-1]).all()):
        queries, order = block, None
    else:
        order = order_of(ids)
        if names is not None:  # numbers, of which each occurs
            return Grouping(names, np.append(0, np.cumsum(np.bincount(ids, minlength=len(names)))), order)
        ids = ids[order]
        starts = _starts(ids)
        queries = ids[starts]
    return Grouping(queries if names is None else names[queries], np.append(starts, len(ids)), order)


def _starts(ids: NDArray[Any]) -> Ints:
    """Return where each run of equal ids begins."""
    return np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))


def order_of(ids: NDArray[Any]) -> Ints:
    """Return a stable order of the rows by id.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Ids that NumPy can compare.
    """
    starts = _starts(ids)
    if len(starts) * 8 < len(ids):  # whole blocks change places
        sizes = np.diff(np.append(starts, len(ids)))
        blocks = np.argsort(ids[starts], kind="stable")
        size = sizes[blocks]
        moved: Ints = np.arange(len(ids)) + np.repeat(starts[blocks] - (np.cumsum(size) - size), size)
        return moved
    if ids.dtype == np.uint16:
        return np.argsort(ids, kind="stable")
    spread = int(ids.max()) - int(ids.min()) if ids.dtype.kind in "iu" and len(ids) else 2**32
    if spread < 2**32:
        # One or two passes over 16 bits each: NumPy sorts those by counting, not by comparing.
        low = (ids - ids.min()).astype(np.uint32)
        order = np.argsort((low & np.uint32(0xFFFF)).astype(np.uint16), kind="stable")
        if spread < 2**16:
            return order
        by_high: Ints = order[np.argsort((low >> np.uint32(16)).astype(np.uint16)[order], kind="stable")]
        return by_high
    return np.argsort(ids, kind="stable")
