"""Put rows into rank order, and find the tied ones: the packed-key sort.

Each row becomes one float of 64 bits, and the floats of a query are sorted in place, as values. That is several times
faster than an argsort, and the label comes out of the sorted key without a look-up.

    63                                                        0
    [ score, greatest first          | label code | position ]      tied rows by label: ties="expected", "worst", "best"
    [ score, greatest first          | position | label code ]      tied rows by position: ties="stable", "docid"

The score is negated, so that keys ascend as scores descend. Label and position take the place of its lowest bits: 20
bits for lists of 100,000 documents and 8 grades. Negative keys ascend as these bits descend: ties are turned round.

The trap: scores that agree in all but those lowest bits *collide*. The sort then orders them by label or position, as
if they were tied. So rows whose keys collide are compared by their full scores and sorted again (`_repair`); the order
is exact, and two rows are tied only if their scores are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import NO_GROUPS, Groups

_FEW_LEVELS = 128
"""With more labels the key would keep too little of the score. Codes of fewer labels fit a byte."""

_LAST = np.finfo(np.float64).max.view(np.int64)
"""The bits of the largest float: all ones where keys have position and label, so no key comes behind it."""

_SMALLEST = 5e-324
"""Not above zero where a library has set the processor to take subnormal numbers for zeros."""

_BLOCK = 2**15
"""Rows whose keys are made at once: what is made on the way to a key stays in the cache (bench_arrays C)."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """The label code at each rank, its row in the input if asked for, and all groups of tied rows."""

    code: NDArray[np.uint8] | Ints
    row: Ints | None
    ties: Groups


class _Layout(NamedTuple):
    """Where a key holds the position, and how many bits position and label code take together."""

    position_at: int
    position_bits: int
    low_bits: int

    def position(self, key: Ints) -> Ints:
        """Return the position in its query of each key's row."""
        position: Ints = key >> np.int64(self.position_at)
        position &= np.int64((1 << self.position_bits) - 1)
        return position


def _keys(score: Floats, code: Ints | None, low_bits: int, code_at: np.int64) -> Ints:
    """Return a key for each row, without its position, and with its label code if codes are given."""
    key = np.empty(len(score), dtype=np.int64)
    for begin in range(0, len(score), _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        bits = (0.0 - score[rows]).view(np.int64)  # never -0.0
        bits &= np.int64(-1 << low_bits)
        if code is not None:
            bits |= code[rows] << code_at
        key[rows] = bits
    return key


def rank_rows(
    score: Floats, code: Ints, offsets: Ints, *, n_levels: int, by_position: bool, with_rows: bool = False
) -> Ranked:
    """Put the rows of each query into descending order of score.

    Parameters
    ----------
    score : ndarray of shape (n_rows,)
        Finite scores.
    code : ndarray of int64 of shape (n_rows,)
        Label codes.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins.
    n_levels : int
        Number of label codes.
    by_position : bool
        Order tied rows by their position, else by label and then position. By label, the result is the same for every
        order of the input.
    with_rows : bool
        Also return which row stands at each rank.

    Returns
    -------
    Ranked
        With every group of two or more tied rows, whatever their labels.
    """
    few = n_levels <= _FEW_LEVELS
    if _falls(score, offsets):
        row = np.arange(len(score))
        ties = _runs(_inside(score[1:] == score[:-1], offsets)[0], offsets)
    else:
        position_bits = max(int(np.diff(offsets).max(initial=0)) - 1, 0).bit_length()
        code_bits = (n_levels - 1).bit_length() if few else 0
        layout = _Layout(code_bits if by_position else 0, position_bits, position_bits + code_bits)
        code_at = np.int64(0 if by_position else position_bits)
        key = _keys(score, code if few else None, layout.low_bits, code_at)
        key = sort_within(key, offsets, shift=layout.position_at)
        ties = _repair(key, score, offsets, layout)
        if few:  # the code comes out of the key: no look-up (bench_arrays A)
            ranked = np.empty(len(key), dtype=np.uint8)
            np.right_shift(key, code_at, out=ranked, casting="unsafe")
            ranked &= np.uint8((1 << code_bits) - 1)
            if not with_rows:
                return Ranked(ranked, None, ties)
        row = layout.position(key) + np.repeat(offsets[:-1], np.diff(offsets))
        if few:
            return Ranked(ranked, row, ties)
    if not by_position:
        order_tied(row, ties, code.take)
    return Ranked((code.astype(np.uint8) if few else code)[row], row if with_rows else None, ties)


def order_tied(row: Ints, ties: Groups, key_of: Callable[[Ints], NDArray[Any]]) -> None:
    """Put the tied among ranked rows into the order of their keys; rows of one key stay as they stand.

    Parameters
    ----------
    row : ndarray of shape (n_rows,)
        Row of the input at each rank; changed in place.
    ties : Groups
        The tied rows.
    key_of : callable
        Returns the keys of rows of the input.
    """
    place, group = ties.rows()
    tied = row[place]
    row[place] = tied[np.lexsort((key_of(tied), group))]


def _inside(flags: NDArray[np.bool_], offsets: Ints) -> tuple[Ints, Ints]:
    """Return the rows flagged, but the first of a query, and where their queries begin; flags are of rows 1, 2 ..."""
    rows = np.flatnonzero(flags) + 1
    begin = offsets[np.searchsorted(offsets, rows, side="right") - 1]
    inside = rows > begin
    return rows[inside], begin[inside]


def _falls(score: Floats, offsets: Ints) -> bool:
    """Say whether the rows of each query already stand in descending order of score, as in most files."""
    # The first rows settle it for most arrays; for files a sort is spared (bench_files).
    heads = (score[:256], score)
    return not any(len(_inside(head[1:] > head[:-1], offsets)[0]) for head in heads)


def sort_within(key: Ints, offsets: Ints, *, shift: int) -> Ints:
    """Write each row's position in its query into its key, ``shift`` bits up, and sort the keys of each query.

    Parameters
    ----------
    key : ndarray of int64 of shape (n_rows,)
        Keys with room for the position; may be overwritten.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins.
    shift : int
        How far above the lowest bit the position goes.

    Returns
    -------
    ndarray of int64 of shape (n_rows,)
    """
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    position = np.arange(longest) << np.int64(shift)
    if longest * len(lengths) == len(key):  # lists of one length are a matrix as they stand (bench_arrays D)
        table = key.reshape(len(lengths), longest)
        table |= position
        _sort(table)
        return key
    if longest * len(lengths) > 3 * len(key):  # a few long lists among short ones: padding would take too much memory
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            key[begin:end] |= position[: end - begin]
            _sort(key[begin:end])
        return key
    # One sort of a padded matrix is far quicker than thousands of small sorts (bench_arrays A).
    small = np.dtype(np.int16 if longest < 2**15 else np.int64)  # a quarter of the bytes to compare
    filled: NDArray[np.bool_] = np.arange(longest).astype(small) < lengths.astype(small)[:, None]
    table = np.full(filled.shape, _LAST)
    table[filled] = key
    table |= position
    _sort(table)
    ranked: Ints = table[filled]
    return ranked


def _sort(key: Ints) -> None:
    """Sort keys along the last axis, in place, as the floats that they are: a third quicker than as integers."""
    if _SMALLEST > 0.0:
        key.view(np.float64).sort()
    else:  # the keys of the score 0 are subnormal
        but_sign = np.int64(0x7FFF_FFFF_FFFF_FFFF)
        key ^= key >> 63 & but_sign  # as integers, negative floats ascend the wrong way round
        key.sort()
        key ^= key >> 63 & but_sign


def _repair(key: Ints, score: Floats, offsets: Ints, layout: _Layout) -> Groups:
    """Put keys that collide without being tied into exact order, in place; return the tied rows."""
    same = np.empty(max(len(key) - 1, 0), dtype=np.bool_)
    for first in range(0, len(same), _BLOCK):
        block = slice(first, first + _BLOCK)
        apart = key[1:][block] ^ key[:-1][block]
        np.less(apart.view(np.uint64), np.uint64(1 << layout.low_bits), out=same[block])
    collides, begin = _inside(same, offsets)
    if not len(collides):
        return NO_GROUPS

    def exact(rows: Ints, begin: Ints) -> Floats:
        scores: Floats = score[layout.position(key[rows]) + begin] + 0.0  # makes -0.0 and 0.0 one number
        return scores

    collisions = _runs(collides, offsets)
    if (exact(collides, begin) == exact(collides - 1, begin)).all():
        turned = collisions.of(key[collisions.start] < 0)  # negative floats ascend as their low bits descend
        rows, run = turned.rows()
        key[rows] = key[(turned.start + turned.end - 1)[run] - rows]
        return collisions
    # The exact order within each run of collisions; of equal scores the key's low bits decide, as before.
    rows, run = collisions.rows()
    scores = exact(rows, offsets[collisions.query[run]])
    order = np.lexsort((key[rows], -scores, run))
    key[rows] = key[rows][order]
    scores = scores[order]
    return _runs(rows[1:][(scores[1:] == scores[:-1]) & (run[1:] == run[:-1])], offsets)


def _runs(same: Ints, offsets: Ints) -> Groups:
    """Return the runs of rows in which each, by its number in ``same``, belongs to the one before."""
    start = same[np.diff(same, prepend=-1) != 1] - 1
    end = same[np.diff(same, append=-1) != 1] + 1
    return Groups(start, end, np.searchsorted(offsets, start, side="right") - 1)
