"""Put the rows of many queries into rank order, and find the tied ones: the packed-key sort.

Rows that already stand in order, as in most files, are left as they are; all others are sorted.
What measures ask of a ranking is the label at each rank; which row stands there is found only where
somebody asks.

Each row becomes one float of 64 bits, and the floats of a query are sorted in place, as values.
That is several times faster than an argsort, and the label comes out of the sorted key without a
look-up.

    63                                       0
    [ score, greatest first | position | code ]

The score is negated, so that keys ascend as scores descend. Position and label code take the place
of its lowest bits: 20 bits for lists of 100,000 documents and 8 grades.

A block of about 33,000 rows stays in the cache from the first step to the last. Its lists lie in a
table, the shorter ones padded: one sort of a table is far quicker than thousands of small sorts.

The trap: scores that agree in all but those lowest bits *collide*, as equal scores do, and negative
keys ascend as these bits descend. So rows whose keys collide are compared by their full scores, and
those that are tied by label or position (`mended`): the order is exact, and two rows are tied only
if their scores are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.by_rank import FEW_RANKS, MOST_PADDED, ByRank
from rankeval.join.flat import NO_ROWS, Floats, Ints, cells_of, offsets_of
from rankeval.join.judged import NO_GROUPS, TiedGroups

_LAST = np.finfo(np.float64).max.view(np.int64)
"""The bits of the largest float: ones where keys have position and label, so it comes last."""

_SMALLEST = 5e-324
"""Not above zero where a library has set the processor to take subnormal numbers for zeros."""

_BLOCK_BITS = 15
_BLOCK = 2**_BLOCK_BITS
"""Rows sorted at a time: all that is made of them stays in the cache (bench_arrays A, C)."""

_NO_BLOCK = -(2**60)
"""In place of the block before the first, and behind the last."""

Collisions = tuple[Ints, Ints, Ints]
"""Rows whose keys agree in their scores with the key above: row, key, and the key above."""


class KeyLayout(NamedTuple):
    """The numbers of a key's lowest bits for its row's position in the query, and for its code."""

    position_bits: int
    code_bits: int

    @property
    def low_bits(self) -> int:
        """How many of the lowest bits hold no score."""
        return self.position_bits + self.code_bits

    @classmethod
    def of(cls, longest: int, n_levels: int) -> KeyLayout:
        """Return the layout for the longest list and the number of levels, one taking no bits."""
        return cls(max(longest - 1, 0).bit_length(), (n_levels - 1).bit_length())

    def exchanged(self, key: Ints) -> Ints:
        """Return the low bits of keys with position and code in each other's place."""
        turned: Ints = key & np.int64((1 << self.code_bits) - 1)
        turned <<= np.int64(
            self.position_bits
        )  # in place: a new page of memory costs more (bench_columns)
        turned |= self.position(key)
        return turned

    def position(self, key: Ints) -> Ints:
        """Return the position in its query of each key's row."""
        position: Ints = key >> np.int64(self.code_bits)
        position &= np.int64((1 << self.position_bits) - 1)
        return position

    def code(self, key: Ints) -> NDArray[np.uint8]:
        """Return the label code of each key's row."""
        code = key.astype(np.uint8)
        code &= np.uint8((1 << self.code_bits) - 1)
        return code


class KeyBlock(NamedTuple):
    """Consecutive queries and their sorted keys, (n_queries, longest).

    All arrays are overwritten by the next block. ``filled`` marks the keys that are no padding, and
    is None if no list is shorter than the longest. ``same`` marks the keys that collide with the
    one above, if they are no list's first.
    """

    queries: slice
    key: Ints
    filled: NDArray[np.bool_] | None
    same: NDArray[np.bool_]

    def flat(self, table: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return what a table of the block's shape holds, query by query, without its padding."""
        return table.reshape(-1) if self.filled is None else table[self.filled]

    def collisions(self, offsets: Ints) -> Collisions:
        """Return the keys that collide; ``offsets`` say where each of all queries begins."""
        place = np.flatnonzero(self.same)
        query, rank = np.divmod(place, max(self.key.shape[1], 1))
        key = self.key.reshape(-1)
        return offsets[self.queries][query] + rank, key[place], key[place - 1]


def cuts(offsets: Ints) -> Ints:
    """Return where to cut queries into blocks of at most some 33,000 rows, or of one query."""
    lengths = np.diff(offsets)
    block = (offsets[1:] - 1) >> _BLOCK_BITS
    cut = np.flatnonzero(np.diff(block, prepend=_NO_BLOCK, append=_NO_BLOCK))
    # Blocks are also cut where the length of the lists doubles, if they would be mostly padding.
    padded = np.maximum.reduceat(lengths, cut[:-1]) @ np.diff(cut) if len(lengths) else 0
    if padded > MOST_PADDED * offsets[-1]:
        block = block * 64 + np.frexp(lengths.astype(np.float64))[1]
        cut = np.flatnonzero(np.diff(block, prepend=_NO_BLOCK, append=_NO_BLOCK))
    return cut


def sorted_blocks(
    score: Floats, code: Ints | None, offsets: Ints, layout: KeyLayout
) -> Iterator[KeyBlock]:
    """Yield the sorted keys of each block of queries."""
    lengths, cut = np.diff(offsets), cuts(offsets)
    most = int((np.maximum.reduceat(lengths, cut[:-1]) * np.diff(cut)).max(initial=0))
    flat_keys, tables = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    spare, flags = np.empty(_BLOCK, dtype=np.int64), np.empty(most + 1, dtype=np.bool_)
    position = np.arange(lengths.max(initial=0)) << np.int64(layout.code_bits)
    for first, last in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True):
        rows, size = slice(offsets[first], offsets[last]), lengths[first:last]
        longest = int(size.max())
        flat = _keys(score[rows], None if code is None else code[rows], layout, flat_keys)
        key, filled = flat, None  # lists of one length are a table as they stand (bench_arrays D)
        if longest * len(size) == len(flat):
            key = flat.reshape(len(size), longest)
        else:
            filled = cells_of(size, longest)
            key = tables[: filled.size].reshape(filled.shape)
            key.fill(_LAST)
            key[filled] = flat
        key |= position[:longest]
        _sort(key)
        collides = _same(key, layout.low_bits, spare, flags)
        if filled is not None:
            collides &= filled
        collides[:, :1] = False
        yield KeyBlock(slice(first, last), key, filled, collides)


def _keys(score: Floats, code: Ints | None, layout: KeyLayout, out: Ints) -> Ints:
    for begin in range(0, len(score), _BLOCK):  # longer lists come alone
        rows = slice(begin, min(begin + _BLOCK, len(score)))
        key = out[rows]
        np.subtract(0.0, score[rows], out=key.view(np.float64))  # never -0.0
        key &= np.int64(-1 << layout.low_bits)
        if code is not None:
            key |= code[rows]
    return out[: len(score)]


def _same(key: Ints, low_bits: int, spare: Ints, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether each key agrees with the last in all but the lowest bits, in ``flags``.

    The keys are gone through as if they were one list, which takes little more than half the time
    (bench_arrays A).
    """
    flat = key.reshape(-1)
    flags[:1] = False
    for begin in range(1, len(flat), _BLOCK):
        upto = min(begin + _BLOCK, len(flat))
        before, apart = flat[begin - 1 : upto - 1], spare[: upto - begin]
        np.bitwise_xor(flat[begin:upto], before, out=apart)
        np.less(apart.view(np.uint64), np.uint64(1 << low_bits), out=flags[begin:upto])
    return flags[: len(flat)].reshape(key.shape)


def _sort(key: Ints) -> None:
    # As the floats that the keys are: a third quicker than as integers.
    if _SMALLEST > 0.0:
        key.view(np.float64).sort()
    else:  # the keys of the score 0 are subnormal
        but_sign = np.int64(0x7FFF_FFFF_FFFF_FFFF)
        key ^= key >> 63 & but_sign  # as integers, negative floats ascend the wrong way round
        key.sort()
        key ^= key >> 63 & but_sign


def mended(
    collisions: list[Collisions],
    score: Floats,
    offsets: Ints,
    layout: KeyLayout,
    *,
    by_position: bool,
    with_rows: bool,
) -> tuple[Ints, Ints, Ints, TiedGroups]:
    """Put keys that collide into exact order; return their rows, queries, keys and ties.

    Of a key the low bits are returned, those of the code alone if no positions are asked for.
    """
    if not sum(len(part) for part, _, _ in collisions):
        return NO_ROWS, NO_ROWS, NO_ROWS, NO_GROUPS
    colliding, upper, above = (np.concatenate(parts) for parts in zip(*collisions, strict=True))
    runs = runs_of(colliding, offsets)
    row, run = runs.rows()
    heads = np.zeros(len(row), dtype=np.bool_)
    heads[offsets_of(runs.end - runs.start)[:-1]] = True
    key = np.empty(len(row), dtype=np.int64)
    key[heads], key[~heads] = above[np.diff(colliding, prepend=-1) != 1], upper
    query = runs.query[run]
    exact = score[layout.position(key) + offsets[query]] + 0.0  # makes -0.0 and 0.0 one number
    apart = (exact[1:] != exact[:-1]) & ~heads[1:]
    if with_rows and not by_position:  # the code goes before the position
        key = layout.exchanged(key)
        _put_in_order(key, exact, run, apart, layout.low_bits)
        key = KeyLayout(layout.code_bits, layout.position_bits).exchanged(key)
    else:
        bits = layout.low_bits if by_position else layout.code_bits
        key &= np.int64((1 << bits) - 1)
        _put_in_order(key, exact, run, apart, bits)
    if apart.any():
        tied = (exact[1:] == exact[:-1]) & ~heads[1:]
        runs = runs_of(row[1:][tied], offsets)
    return row, query, key, runs


def _put_in_order(low: Ints, exact: Floats, run: Ints, apart: NDArray[np.bool_], bits: int) -> None:
    """Put the low bits of keys into order within each run, by score, and the scores likewise.

    ``apart`` marks the rows, from the second, whose score differs from that of the row before in
    the run.
    """
    low |= run << np.int64(bits)
    if apart.any():
        order = np.lexsort((low, -exact, run))
        exact[:], low[:] = exact[order], low[order]
    else:  # ties alone: a quicker sort
        low.sort()
    low &= np.int64((1 << bits) - 1)


def runs_of(same: Ints, offsets: Ints) -> TiedGroups:
    """Return the runs of rows in which each, by its number in ``same``, belongs to the last."""
    start = same[np.diff(same, prepend=-1) != 1] - 1
    end = same[np.diff(same, append=-1) != 1] + 1
    return TiedGroups(start, end, np.searchsorted(offsets, start, side="right") - 1)


_FEW_LEVELS = 128
"""With more labels the key would keep too little of the score. Codes of fewer labels fit a byte."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """The label code at each rank, its row in the input if asked for, and all groups of tied rows.

    If the sort has made a table of codes on its way, ``by_rank`` holds them and ``code`` is None.
    ``head``, of shape (n_ranks, n_queries), holds the rows of the first ranks; then ``row`` holds
    those of blocks with ties only.
    """

    code: NDArray[np.uint8] | Ints | None
    row: Ints | None
    ties: TiedGroups
    by_rank: ByRank | None = None
    head: Ints | None = None

    def rows_at(self, query: Ints, rank: Ints, offsets: Ints) -> Ints:
        """Return the rows of the input at ranks (from 0) of queries; a table is of all queries."""
        if self.head is not None and rank.ndim == 2:
            return self.head[: len(rank)]
        if self.head is not None and rank.max(initial=0) < len(self.head):
            return self.head[rank, query]
        assert self.row is not None
        row: Ints = self.row[offsets[query] + rank]
        return row


def rank_rows(
    score: Floats,
    code: Ints,
    offsets: Ints,
    *,
    n_levels: int,
    by_position: bool,
    highest_first: bool = False,
    with_rows: bool = False,
    with_head: int = 0,
    with_table: bool = False,
) -> Ranked:
    """Put the rows of each query into descending order of score.

    Tied rows are ordered by position, else by label (``highest_first`` or not) and then position:
    by label, the result is the same for every order of the input. ``with_head`` ranks can be asked
    for by `Ranked.rows_at`, which costs less than all rows. A table (``with_table``) is made only
    if it would not be mostly empty, and never with rows.
    """
    few = n_levels <= _FEW_LEVELS
    all_rows = with_rows or with_head > FEW_RANKS or not few
    turned = n_levels - 1 - code if highest_first else code
    if _falls(score, offsets):
        row = np.arange(len(score))
        ties = runs_of(_inside(score[1:] == score[:-1], offsets), offsets)
    else:
        layout = KeyLayout.of(int(np.diff(offsets).max()), n_levels if few else 1)
        ranked = _sorted(
            score,
            turned if few else None,
            offsets,
            layout,
            by_position=by_position or not few,
            with_rows=all_rows,
            with_head=0 if all_rows else with_head,
            with_table=with_table and few and not with_rows and not highest_first,
        )
        if highest_first and ranked.code is not None:  # codes are sorted, since they are few
            ranked = replace(ranked, code=np.uint8(n_levels - 1) - ranked.code)
        if few:
            return ranked
        assert ranked.row is not None
        row, ties = ranked.row, ranked.ties
    if not by_position:
        order_tied(row, ties, turned.take)
    codes = (code.astype(np.uint8) if few else code)[row]
    return Ranked(codes, row if with_rows or with_head else None, ties)


def _sorted(
    score: Floats,
    code: Ints | None,
    offsets: Ints,
    layout: KeyLayout,
    *,
    by_position: bool,
    with_rows: bool,
    with_head: int,
    with_table: bool,
) -> Ranked:
    """Sort the rows of each query; return their codes too, if they are given."""
    by_rank = ByRank.empty(offsets) if with_table else None
    ranked = None if code is None or by_rank is not None else np.empty(len(score), dtype=np.uint8)
    row = None
    head = np.empty((with_head, len(offsets) - 1), dtype=np.int64) if with_head else None
    collisions = []
    for block in sorted_blocks(score, code, offsets, layout):
        rows = slice(offsets[block.queries.start], offsets[block.queries.stop])
        if by_rank is not None:
            codes = layout.code(block.key)
            by_rank.fill(block.queries, codes if block.filled is None else codes * block.filled)
        if ranked is not None:
            ranked[rows] = block.flat(layout.code(block.key))
        if with_rows or (with_head and block.same.any()):
            row = np.empty(len(score), dtype=np.int64) if row is None else row
            position = layout.position(block.key)
            position += offsets[block.queries, None]
            row[rows] = block.flat(position)
        if head is not None:
            position = layout.position(block.key[:, :with_head].T.copy())
            np.add(position, offsets[block.queries], out=head[: len(position), block.queries])
        collisions.append(block.collisions(offsets))
    with_rows |= with_head > 0
    place, query, key, ties = mended(
        collisions, score, offsets, layout, by_position=by_position, with_rows=with_rows
    )
    if by_rank is not None:
        by_rank.mend(place - offsets[query], query, layout.code(key))
    if ranked is not None:
        ranked[place] = layout.code(key)
    if row is not None:
        row[place] = layout.position(key) + offsets[query]
    if row is not None and head is not None:
        rank = place - offsets[query]
        within = rank < with_head
        head[rank[within], query[within]] = row[place[within]]
    return Ranked(ranked, row, ties, by_rank, head)


def order_tied(row: Ints, ties: TiedGroups, key_of: Callable[[Ints], NDArray[Any]]) -> None:
    """Put the tied among ranked rows into the order of their keys, in place; the sort is stable."""
    place, group = ties.rows()
    tied = row[place]
    row[place] = tied[np.lexsort((key_of(tied), group))]


def _inside(flags: NDArray[np.bool_], offsets: Ints) -> Ints:
    rows = np.flatnonzero(flags) + 1
    return rows[rows > offsets[np.searchsorted(offsets, rows, side="right") - 1]]


def _falls(score: Floats, offsets: Ints) -> bool:
    # True for most files: their rows stand in descending order of score already.
    # The first rows settle it for most arrays; for files a sort is spared (bench_files).
    heads = (score[:256], score)
    return not any(len(_inside(head[1:] > head[:-1], offsets)) for head in heads)
