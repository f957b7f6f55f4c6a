"""Group rows by query id, queries ascending.

    qid       b  a  b  a  a           rows as they were given
    order     1  3  4  0  2           a row number for each grouped place: a's rows, then b's, each in their own order
    queries   a        b
    offsets   0        3     5

`order` is None if the rows already stand that way: most data do, and nothing is copied then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import count
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.io.columns import as_typed, comparable, refuse_masked
from rankeval.join.flat import Ints, rows_of

if TYPE_CHECKING:
    from rankeval.io.formats import Source

_HEAD = 1024
"""Rows in which it shows, if they are in any order."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows grouped by query.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        The distinct ids, ascending.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins among the grouped rows.
    order : ndarray of shape (n_rows,) or None
        Row of the input at each grouped place; None if the input is already grouped.
    """

    queries: NDArray[Any]
    offsets: Ints
    order: Ints | None


def sizes_to_ids(group: ArrayLike, n_rows: int) -> Ints:
    """Turn group sizes, as LightGBM takes them, into one query id a row: 0, 1, 2 ...

    Parameters
    ----------
    group : array of int of shape (n_queries,)
        Number of rows of each query, in row order; whole numbers of any type.
    n_rows : int
        Number of rows in the data.

    Raises
    ------
    QueryIdError
        If a size is no count or is 0 (such a query would count in no mean), or the sizes do not add up to the rows.
    """
    refuse_masked(group, "group", QueryIdError)
    try:
        sizes = np.asarray(group)
        with np.errstate(invalid="ignore"):  # nan becomes some integer, and the comparison below refuses it
            counts = sizes.astype(np.int64) if sizes.ndim == 1 and sizes.dtype.kind in "iufO" else None
    except (TypeError, ValueError):
        counts = None
    if counts is None or (counts != sizes).any():
        found = " ".join(repr(group).split())[:60]
        raise QueryIdError(f"group is {found}: expected the sizes of consecutive queries; ids of rows go to qid=")
    if (counts < 1).any():
        place = int(np.argmax(counts < 1))
        raise QueryIdError(
            f"group has the size {counts[place]} at {place}: sizes are positive", remedy="leave empty queries out"
        )
    total = sum(counts.tolist())  # Python's integers do not wrap
    if total != n_rows:
        hint = "; these look like ids of rows, which go to qid=" if len(counts) == n_rows else ""
        raise QueryIdError(f"the sizes in group add up to {total}, but the data has {count(n_rows, 'row')}{hint}")
    return np.repeat(np.arange(len(counts)), counts)


def ids_of_rows(qid: ArrayLike | None, group: ArrayLike, n_rows: int) -> Any:
    """Return the query of each row: the ids if they are given, else the numbers of the queries.

    Parameters
    ----------
    qid : array of shape (n_rows,), optional
        The ids.
    group : array of int of shape (n_queries,)
        As in `sizes_to_ids`.
    n_rows : int
        Number of rows in the data.

    Raises
    ------
    QueryIdError
        If the sizes are none of these rows, or disagree with the ids.
    """
    sizes = sizes_to_ids(group, n_rows)
    if qid is None:
        return sizes
    ids = as_typed(qid)
    differ = len(ids) != n_rows or ((ids[1:] != ids[:-1]) != (sizes[1:] != sizes[:-1])).any()
    if differ or len(np.unique(ids)) != len(np.unique(sizes)):
        raise QueryIdError("qid= and group= cut the rows into different queries", remedy="give one of them")
    return qid


def group_rows(qid: ArrayLike) -> Grouping:
    """Group rows by query id.

    Parameters
    ----------
    qid : array of shape (n_rows,)
        The query of each row, ids of any one sortable type, in any order: a query's rows may stand apart.

    Returns
    -------
    Grouping

    Raises
    ------
    QueryIdError
        If an id is missing, or ids of several types are mixed.
    """
    ids, names = comparable(qid, "qid")
    # Rows in any order show it at once. To look up where each of their runs begins is dear (bench_streaming).
    starts, order = _starts(ids) if _ascend(ids[:_HEAD]) else None, None
    if starts is None or not _ascend(ids[starts]):
        order = order_of(ids)
        ids = ids.take(order)
        starts = _starts(ids)
    queries = ids[starts]
    return Grouping(queries if names is None else names[queries], np.append(starts, len(ids)), order)


def _ascend(ids: NDArray[Any]) -> bool:
    return bool((ids[1:] >= ids[:-1]).all())


def _starts(ids: NDArray[Any]) -> Ints:
    """Return where each run of equal ids begins."""
    return _behind(ids[1:] != ids[:-1])[: len(ids)]


def _behind(changes: NDArray[np.bool_]) -> Ints:
    return np.append(0, np.flatnonzero(changes) + 1)


def order_of(ids: NDArray[Any]) -> Ints:
    """Return a stable order of the rows by id.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Ids that NumPy can compare.
    """
    changes = ids[1:] != ids[:-1]
    if (np.count_nonzero(changes) + 1) * 8 < len(ids):  # whole blocks change places (bench_files: topics by number)
        starts = _behind(changes)[: len(ids)]
        blocks = order_of(ids[starts])
        return rows_of(starts[blocks], np.diff(starts, append=len(ids))[blocks])
    bits = len(ids).bit_length()
    if ids.dtype.kind not in "iu" or not len(ids) or (int(ids.max()) - int(ids.min())).bit_length() + bits > 63:
        return np.argsort(ids, kind="stable")
    # The id above, the row below: NumPy sorts such keys eight times faster than it argsorts, and the row below makes
    # the order stable (bench_scorer, shuffled integers).
    key: Ints = np.subtract(ids, ids.min(), dtype=np.int64, casting="unsafe")
    key <<= bits
    key |= np.arange(len(ids))
    key.sort()
    key &= (1 << bits) - 1
    return key


def refuse_repeats(
    query: Ints, ids: NDArray[Any], rows: Ints, says: Callable[[int], str], source: Source | None = None
) -> None:
    """Raise if an id stands twice in a query.

    Parameters
    ----------
    query, ids : ndarray of shape (n,)
        The query and the id of each row that takes part, a query's rows in their own order.
    rows : ndarray of shape (n,)
        Their rows of the input.
    says : callable
        Turns a place in these arrays into words: "document 'd' stands twice in query 'q'".
    source : Source, optional
        The file that the rows were read from.

    Raises
    ------
    InvalidInput
        With the first two rows of the first such id, and the number of such rows.
    """
    # Two stable sorts, the last by query: rows by query, then id, then their order in the input.
    order = order_of(ids)
    order = order[order_of(query[order])]
    query, ids = query[order], ids[order]
    twice = np.flatnonzero((query[1:] == query[:-1]) & (ids[1:] == ids[:-1]))
    if len(twice):
        repeat = order[twice[0] : twice[0] + 2]
        pair = rows[repeat].tolist()
        place = f"rows {pair[0]} and {pair[1]}, counting from 0" if source is None else source.place(pair)
        raise InvalidInput(f"{says(int(repeat[0]))} ({place}; {len(twice)} such rows in all); keep one of them")
