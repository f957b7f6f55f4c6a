"""Put tied rows into the order of their document ids, as trec_eval does: by bytes.

Sorting texts one by one takes longer than reading the file that they come from. So rows are sorted
by numbers, each with some bytes of its id, and nearly all groups of ties are settled by the first::

    63                                              0
    [ group | next bytes of the id | how many it has ]

What all ids begin with is skipped. Rows whose keys agree are the groups of the next turn, in which
the bytes behind follow. The trap: an id may be the beginning of another and may have NULs, so the
number of its bytes in the key stands behind them.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.io.columns import bytes_of
from rankeval.join.flat import Ints
from rankeval.join.judged import TiedGroups

_WORD = 8
_KEY_BITS = 63
_COUNT_BITS = 3
# The first bytes of a word, by their number.
_HEADS = ~np.array([2 ** (64 - 8 * size) - 1 for size in range(_WORD)], dtype=np.uint64)


def order_tied_by_bytes(
    row: Ints, ties: TiedGroups, ids_of: Callable[[Ints], pa.Array], *, ascending: bool
) -> None:
    """Put the tied among ranked rows into the order of the bytes of their ids, in place."""
    place, group = ties.rows()
    tied = row[place]
    row[place] = tied[_byte_order(ids_of(tied), group, ascending=ascending)]


def _byte_order(ids: pa.Array, group: Ints, *, ascending: bool) -> Ints:
    """Return the stable order of ids by bytes within groups, whose numbers ascend."""
    bounds, text = bytes_of(ids)
    begin, size = bounds[:-1].astype(np.int64), np.diff(bounds).astype(np.int64)
    words = _words(text)
    known = _n_shared(ids)
    order = np.arange(len(ids))
    place = order.copy()
    while len(place):
        n_bytes = (_KEY_BITS - _COUNT_BITS - int(group[-1]).bit_length()) // 8
        width = np.int64(8 * n_bytes + _COUNT_BITS)
        of_turn = order[place]
        has = np.clip(size[of_turn] - known, 0, n_bytes)
        word = words.take(begin[of_turn] + known, mode="clip").astype(np.uint64) & _HEADS[has]
        key = (word >> np.uint64(64 - 8 * n_bytes)).view(np.int64) << np.int64(_COUNT_BITS) | has
        key = group << width | (key if ascending else (np.int64(1) << width) - 1 - key)
        by_key = np.argsort(key, kind="stable")
        order[place], key, has = of_turn[by_key], key[by_key], has[by_key]
        same = np.concatenate(([False], key[1:] == key[:-1], [False]))
        # Ids that agree to their end are equal.
        is_open = (same[1:] | same[:-1]) & (has == n_bytes)
        place, group = place[is_open], np.cumsum(~same[:-1])[is_open]
        known += n_bytes
    return order


def _words(text: NDArray[np.uint8]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the eight bytes that begin at each byte, the first of them the highest."""
    padded = np.append(text, np.zeros(_WORD, np.uint8))
    return np.ndarray(shape=(len(text) + 1,), dtype=">u8", buffer=padded.data, strides=(1,))


def _n_shared(ids: pa.Array) -> int:
    """Return how many bytes all ids begin with."""
    ends = pc.min_max(ids.cast(pa.large_binary())).values()
    return len(os.path.commonprefix([end.as_py() for end in ends]))  # noqa: RUF071 - of bytes, not of paths
