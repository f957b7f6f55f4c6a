"""Arithmetic on flat arrays: queries lie one after another, and offsets say where each begins.

    lists     7 4 2 | 9 | 5 1          offsets   0 3 4 6          sizes   3 1 2

Row `r` of query `q` is at ``offsets[q] + r``. There is no padding, and a list of any length costs
what it holds. Rows in any other order are grouped by query id, queries ascending:

    qid       b  a  b  a  a           rows as they were given
    order     1  3  4  0  2           the row at each grouped place: a's rows, then b's, in order
    queries   a        b
    offsets   0        3     5

`order` is None if the rows already stand that way: most data do, and nothing is copied then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import count, shown
from rankeval.errors import InvalidInput, QueryIdError, UnusableQueryIdsError
from rankeval.io.columns import as_typed, comparable, labels, refuse_masked, whole

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BLOCK = 2**15

NO_ROWS: Ints = np.empty(0, dtype=np.int64)
"""No row numbers."""


def ratio(part: ArrayLike, whole: ArrayLike, *, otherwise: ArrayLike = np.nan) -> Floats:
    """Return ``part / whole``, and ``otherwise`` where the whole is not above zero."""
    shape = np.broadcast_shapes(np.shape(part), np.shape(whole))
    quotient = np.full(shape, otherwise, dtype=np.float64)
    np.divide(part, whole, out=quotient, where=np.greater(whole, 0))
    return quotient


def offsets_of(sizes: NDArray[Any]) -> Ints:
    """Return where each of several consecutive runs begins, with the total behind."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def spread(start: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return the rows of several runs one after another, and the number of each row's run.

    ``spread([4, 9], [2, 3])`` gives the rows ``4 5 9 10 11`` of the runs ``0 0 1 1 1``.
    """
    return rows_of(start, size), np.repeat(np.arange(len(size)), size)


def rows_of(start: Ints, size: Ints) -> Ints:
    """Return the rows of several runs one after another."""
    rows = np.repeat(start - offsets_of(size)[:-1], size)
    # Counted block by block: no second array of that length (bench_files).
    place = np.arange(min(_BLOCK, len(rows)))
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        block += place[: len(block)]
        place += _BLOCK
    return rows


def cells_of(lengths: Ints, longest: int) -> NDArray[np.bool_]:
    """Return which cells of a table, (n_lists, longest), are not beyond the end of their list."""
    small = np.min_scalar_type(longest)  # an eighth of the bytes to compare, or a quarter
    return np.arange(longest, dtype=small) < lengths.astype(small)[:, None]


def query_blocks(offsets: Ints, n_rows: int) -> Iterator[slice]:
    """Yield consecutive queries with at most ``n_rows`` rows together, or one query with more."""
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1
        last = min(max(last, first + 1), first + n_rows)  # queries without rows count as rows
        yield slice(first, last)
        first = last


_HEAD = 1024
"""Rows in which it shows, if they are in any order."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Rows grouped by query."""

    queries: NDArray[Any]  # (n_queries,): The distinct ids, ascending
    offsets: Ints  # (n_queries + 1,): Where each query begins among the grouped rows
    # (n_rows,): Row of the input at each grouped place; None if the input is already grouped.
    order: Ints | None


def sizes_to_ids(group: ArrayLike, n_rows: int) -> Ints:
    """Turn group sizes, as LightGBM takes them, into one query id a row: 0, 1, 2 ..."""
    refuse_masked(group, "group", UnusableQueryIdsError)
    try:
        counts = whole(labels(group, "group"))
    except InvalidInput:
        counts = np.array([np.nan])
    if counts.dtype.kind not in "iu":
        raise UnusableQueryIdsError(
            f"group is {shown(group)}: give sizes of consecutive queries; ids of rows go to qid="
        )
    if (counts < 1).any():
        place = int(np.argmax(counts < 1))
        problem = f"group has the size {counts[place]} at {place}: sizes are positive"
        raise UnusableQueryIdsError(problem, remedy="leave empty queries out")
    total = sum(counts.tolist())  # Python's integers do not wrap
    if total != n_rows:
        hint = "; these look like ids of rows, which go to qid=" if len(counts) == n_rows else ""
        raise UnusableQueryIdsError(
            f"sizes in group add up to {total}, but the data has {count(n_rows, 'row')}{hint}"
        )
    return np.repeat(np.arange(len(counts)), counts)


def ids_of_rows(qid: ArrayLike | None, group: ArrayLike, n_rows: int) -> Any:
    """Return the query of each row: the ids if they are given, else the numbers of the queries."""
    sizes = sizes_to_ids(group, n_rows)
    if qid is None:
        return sizes
    ids = as_typed(qid)
    differ = len(ids) != n_rows or ((ids[1:] != ids[:-1]) != (sizes[1:] != sizes[:-1])).any()
    if differ or len(np.unique(ids)) != len(np.unique(sizes)):
        raise QueryIdError(
            "qid= and group= cut the rows into different queries", remedy="give one of them"
        )
    return qid


def group_rows(qid: ArrayLike) -> Grouping:
    """Group rows by query id."""
    ids, names = comparable(qid, "qid")
    # Rows in any order show it at once. To look up where each of their runs begins is dear
    # (bench_streaming).
    starts, order = _starts(ids) if ascend(ids[:_HEAD]) else None, None
    if starts is None or not ascend(ids[starts]):
        order = order_of(ids)
        ids = ids.take(order)
        starts = _starts(ids)
    queries = ids[starts]
    offsets = np.append(starts, len(ids))
    return Grouping(queries if names is None else names[queries], offsets, order)


def ascend(ids: NDArray[Any]) -> bool:
    """Say whether no value is lower than the one before."""
    return bool((ids[1:] >= ids[:-1]).all())


def _starts(ids: NDArray[Any]) -> Ints:
    return np.append(0, np.flatnonzero(ids[1:] != ids[:-1]) + 1)[: len(ids)]


def order_of(ids: NDArray[Any]) -> Ints:
    """Return a stable order of the rows by id."""
    n_blocks = np.count_nonzero(ids[1:] != ids[:-1]) + 1
    if n_blocks * 8 < len(ids):  # whole blocks change places (bench_files)
        starts = _starts(ids)
        blocks = order_of(ids[starts])
        return rows_of(starts[blocks], np.diff(starts, append=len(ids))[blocks])
    bits = len(ids).bit_length()
    is_whole = ids.dtype.kind in "iu" and len(ids) > 0
    if not is_whole or (int(ids.max()) - int(ids.min())).bit_length() + bits > 63:
        return np.argsort(ids, kind="stable")
    # The id above, the row below: NumPy sorts such keys eight times faster than it argsorts, and
    # the row below makes the order stable (bench_scorer, shuffled integers).
    key: Ints = np.subtract(ids, ids.min(), dtype=np.int64, casting="unsafe")
    key <<= bits
    key |= np.arange(len(ids))
    key.sort()
    key &= (1 << bits) - 1
    return key
