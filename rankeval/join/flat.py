"""Arithmetic on flat arrays: queries lie one after another, and offsets say where each begins.

    lists     7 4 2 | 9 | 5 1          offsets   0 3 4 6          sizes   3 1 2

Row `r` of query `q` is at ``offsets[q] + r``. There is no padding, and a list of any length costs what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BLOCK = 2**15


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
    place = np.arange(min(_BLOCK, len(rows)))  # counted block by block: no second array of that length (bench_files)
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        block += place[: len(block)]
        place += _BLOCK
    return rows


def cells_of(lengths: Ints, longest: int) -> NDArray[np.bool_]:
    """Return which cells of a table of lists, (n_lists, longest), are not beyond the end of their list."""
    small = np.min_scalar_type(longest)  # an eighth of the bytes to compare, or a quarter
    cells: NDArray[np.bool_] = np.arange(longest, dtype=small) < lengths.astype(small)[:, None]
    return cells


def query_blocks(offsets: Ints, n_rows: int) -> Iterator[slice]:
    """Yield consecutive queries that have at most ``n_rows`` rows together, or one query that has more."""
    first = 0
    while first < len(offsets) - 1:
        last = int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1
        last = min(max(last, first + 1), first + n_rows)  # queries without rows count as rows
        yield slice(first, last)
        first = last
