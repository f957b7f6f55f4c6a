"""The labels of a chunk by rank: the layout in which many lists of similar length are scored.

    lists    2 0 1 | 1 | 0 2            code    2  1  0     the first row of each query
                                                0  0  2     the second
                                                1  0  0     the third; 0 beyond the end of a list

A sum over ranks is then one addition of whole rows of the table a rank, in the order of the ranks:
the same additions as along the flat list, but for zeros, so the values are the same to the last
bit. The codes are bytes: a table of them fits the cache, and comparing and counting them takes a
sixteenth of the time of integers of 64 bits.

The trap: beyond the end of a list stands the lowest code. So a table may only be asked for labels
above the lowest, and for gains that are 0 for the lowest.

The best order of judged documents needs their number by label alone:

    labels 0 1 2 of a query    counts 7 3 2    ideal order 2 2 1 1 1, then no gain

With a cut-off, few numbers matter: 4 labels above zero and k = 10 leave 11^4 kinds of queries.
Their sums are computed once and looked up. Gains are added one after the other, as those of a
ranking are, so that a perfect ranking scores exactly the ideal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints, cells_of, spread

Table = NDArray[np.unsignedinteger]

MOST_PADDED = 3
"""Most cells of a table for each row in it. With more padding, flat rows are quicker (bench_arrays
A)."""


@dataclass(frozen=True, eq=False)
class ByRank:
    """Label codes by rank and query."""

    code: NDArray[np.uint8]  # (longest, n_queries): The codes, 0 beyond the end of a list
    # The same by query, 0 beyond the end: (n_queries, longest rounded up to words of 8 bytes)
    lists: NDArray[np.uint8]

    @classmethod
    def empty(cls, offsets: Ints) -> ByRank | None:
        """Return a table of zeros; None if it would be mostly empty."""
        n_queries, longest = len(offsets) - 1, int(np.diff(offsets).max(initial=0))
        if not 0 < longest * n_queries <= MOST_PADDED * offsets[-1]:
            return None
        width = -(-longest // 8) * 8
        return cls(
            np.zeros((longest, n_queries), dtype=np.uint8),
            np.zeros((n_queries, width), dtype=np.uint8),
        )

    @classmethod
    def of(cls, code: NDArray[np.uint8] | Ints, offsets: Ints) -> ByRank | None:
        """Return the table of a chunk, or None if it would be mostly empty or not of bytes."""
        table = cls.empty(offsets) if code.dtype == np.uint8 else None
        if table is not None:
            longest = len(table.code)
            table.lists[:, :longest][cells_of(np.diff(offsets), longest)] = code
            table.code[:] = table.lists[:, :longest].T
        return table

    def flat(self, lengths: Ints) -> NDArray[np.uint8]:
        """Return the codes in rank order, query by query, given the length of each list."""
        longest = len(self.code)
        return self.lists[:, :longest][cells_of(lengths, longest)]

    def fill(self, queries: slice, code: NDArray[np.uint8]) -> None:
        """Write the codes of consecutive queries, (n_queries, up to longest), 0 beyond the end."""
        self.lists[queries, : code.shape[1]] = code
        self.code[: code.shape[1], queries] = code.T

    def mend(self, rank: Ints, query: Ints, code: NDArray[np.uint8]) -> None:
        """Write single codes."""
        self.lists[query, rank] = self.code[rank, query] = code

    def counts(self, n_levels: int, lengths: Ints) -> Ints:
        """Return how many rows of each query have each label, shaped (n_queries, n_levels)."""
        counts = np.empty((n_levels, len(lengths)), dtype=np.int64)
        small = np.min_scalar_type(len(self.code))
        for level in range(1, n_levels):
            counts[level] = np.add.reduce((self.code == level).view(np.uint8), axis=0, dtype=small)
        counts[0] = lengths - counts[1:].sum(axis=0)
        return counts.T

    def hits(self, first: int) -> Table:
        """Return the rows with at least this code above each rank, (longest + 1, n_queries)."""
        flags = self.at_least(first)
        hits = np.zeros((len(flags) + 1, flags.shape[1]), dtype=np.min_scalar_type(len(flags)))
        for above, flag, upto in zip(hits[:-1], flags, hits[1:], strict=True):
            np.add(above, flag, out=upto)
        return hits

    def at_least(self, first: int) -> NDArray[np.uint8]:
        """Return 1 for each row with at least this code, else 0."""
        return (self.code >= first).view(np.uint8)


def before_first_hit(hits: Table) -> Table:
    """Return the number of rows above each query's first hit; all ranks if it has none."""
    number = np.zeros(hits.shape[1], dtype=hits.dtype)
    for row in hits[1:]:
        none_yet = row == 0
        if not none_yet.any():
            break
        number += none_yet
    return number


def sum_of_precisions(hits: Table, counting: NDArray[np.uint8]) -> Floats:
    """Return the sum of hits / rank over the rows that count, added in rank order."""
    rank = np.arange(1.0, len(counting) + 1)[:, None]

    def precisions(ranks: slice, out: Floats) -> None:
        np.divide(hits[1:][ranks] * counting[ranks], rank[ranks], out=out)

    return _added(precisions, len(counting), hits.shape[1])


def discounted_gains(code: NDArray[np.uint8] | Ints, gain: Floats, discount: Floats) -> Floats:
    """Return the sum of gain * discount, added in rank order."""
    factor = discount[: len(code), None]
    is_code = (gain == np.arange(len(gain))).all()  # no look-up then (bench_arrays D)

    def gains(ranks: slice, out: Floats) -> None:
        if is_code:
            np.multiply(code[ranks], factor[ranks], out=out)
        else:
            gain.take(code[ranks], out=out, mode="clip")
            out *= factor[ranks]

    return _added(gains, *code.shape)


def _added(part: Callable[[slice, Floats], None], n_ranks: int, n_queries: int) -> Floats:
    # NumPy's own sum may take another order, and the values would differ in the last bit.
    total, parts = np.zeros(n_queries), np.empty((1, n_queries))
    for rank in range(n_ranks):
        part(slice(rank, rank + 1), parts)
        total += parts[0]
    return total


FEW_RANKS = 64
"""Up to here a table of rank by query is quicker than a list of rows."""

_MOST_KINDS = 2**16
"""More kinds of queries are not kept: a table of sums takes at most half a megabyte."""


def ideal_sums(counts: Ints, gain: Floats, discount: Floats, cutoff: int | None) -> Floats:
    """Return the discounted gain of the best order of each query's judged documents."""
    best_first = np.argsort(-gain, kind="stable")
    best_first = best_first[gain[best_first] > 0]
    counts, gains = counts[:, best_first], gain[best_first]
    if not len(gains):
        return np.zeros(len(counts))
    if cutoff is None or cutoff > FEW_RANKS:
        return _row_by_row(counts, gains, discount, cutoff)
    n_kinds = (cutoff + 1) ** len(gains)
    if n_kinds > min(_MOST_KINDS, 4 * len(counts)):
        return _rank_by_rank(counts, gains, discount[:cutoff])
    kind = np.zeros(
        len(counts), dtype=np.int64
    )  # the numbers of documents are its digits (bench_arrays A, D)
    for number in counts.T:
        kind *= cutoff + 1
        kind += np.minimum(number, cutoff)
    return _sums_of_kinds(gains.tobytes(), discount[:cutoff].tobytes()).take(kind)


@lru_cache(maxsize=16)
def _sums_of_kinds(gains: bytes, discount: bytes) -> Floats:
    gain, factor = np.frombuffer(gains), np.frombuffer(discount)
    digits = np.indices((len(factor) + 1,) * len(gain)).reshape(len(gain), -1)
    return _rank_by_rank(digits.T, gain, factor)


def _rank_by_rank(counts: Ints, gains: Floats, discount: Floats) -> Floats:
    """Add the gains of a table of rank by query; counts and gains stand best first."""
    # upto: the rank of the last document of each label in the ideal order.
    upto = np.minimum(np.cumsum(counts, axis=1), len(discount)).astype(np.int16)
    # The label at each rank of the ideal order: as many places down the gains as are used up before
    # it.
    place = np.zeros((len(discount), len(counts)), dtype=np.uint8 if len(gains) < 256 else np.int64)
    for used_up in upto.T:
        place += used_up <= np.arange(len(discount), dtype=np.int16)[:, None]
    return discounted_gains(place, np.append(gains, 0.0), discount)


def _row_by_row(counts: Ints, gains: Floats, discount: Floats, cutoff: int | None) -> Floats:
    """Add the gains of the documents one after another; counts and gains stand best first."""
    upto = np.minimum(np.cumsum(counts, axis=1), len(discount) if cutoff is None else cutoff)
    size = np.diff(upto, axis=1, prepend=0)
    terms = np.repeat(np.broadcast_to(gains, size.shape).ravel(), size.ravel())
    rank, query = spread(np.zeros_like(upto[:, -1]), upto[:, -1])
    # Without any values bincount returns integers.
    sums = np.bincount(query, weights=terms * discount[rank], minlength=len(counts))
    return sums.astype(np.float64, copy=False)
