"""Rows into rank order: the packed-key sort.

Each row becomes one 64-bit integer: the bits of its score, turned so that integers order as descending scores do,
with the lowest bits replaced by the row's position in its query and the code of its label. Sorting these integers in
place, as values, is several times faster than any argsort, and the label comes out of the sorted key without a
look-up. The price is that scores which agree in all but the replaced bits collide; rows that collide are compared by
their full scores and put right, so the order is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Ints
from rankeval.join.judged import Groups

_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_LAST = np.iinfo(np.int64).max
_FEW_LEVELS = 128
"""Beyond, the key would keep too little of the score for a label beside it. Fewer labels come as bytes."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in rank order: their label codes, the rows they were, and all groups of tied rows."""

    code: NDArray[np.uint8] | Ints
    row: Ints | None
    ties: Groups


def descending_bits(score: NDArray[np.float64]) -> Ints:
    """Return integers that order as the scores do when read from the greatest down; 0.0 and -0.0 are equal."""
    bits = (0.0 - score).view(np.int64)
    fold = bits >> 63
    fold &= _ALL_BUT_SIGN
    bits ^= fold
    return bits


def rank_rows(
    score: NDArray[np.float64],
    code: Ints,
    offsets: Ints,
    *,
    n_levels: int,
    by_position: bool,
    with_rows: bool = False,
) -> Ranking:
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
        Order tied rows by their position (True), or by label and then position (False: the same for every order
        of the input, where the order of tied rows has no meaning).
    with_rows : bool
        Also return which row stands at each rank.

    Returns
    -------
    Ranking
        With every group of two or more tied rows, whatever their labels.
    """
    if _falls(score, offsets):
        small = code.astype(np.uint8) if n_levels <= _FEW_LEVELS else code
        return _rank_falling(score, small, offsets, by_position=by_position, with_rows=with_rows)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    position_bits = max(longest - 1, 0).bit_length()
    code_bits = (n_levels - 1).bit_length()
    packed = n_levels <= _FEW_LEVELS
    if not packed:
        code_bits = 0
    low_bits = position_bits + code_bits

    key = descending_bits(score)
    key &= np.int64(-1) << np.int64(low_bits)
    if packed:
        key |= code if by_position else code << np.int64(position_bits)
    key = sort_within(key, offsets, longest, shift=code_bits if by_position else 0)
    key, same = _repair(key, score, offsets, low_bits, position_bits, code_bits, by_position=by_position)

    ties = _runs(same, offsets)
    if not packed:
        row = _position_of(key, position_bits, code_bits, by_position=by_position) + np.repeat(offsets[:-1], lengths)
        if not by_position:
            _order_by_label(row, code, ties)
        return Ranking(code[row], row if with_rows else None, ties)
    shifted = key if by_position else key >> np.int64(position_bits)
    ranked = shifted.astype(np.uint8)
    ranked &= np.uint8((1 << code_bits) - 1)
    if not with_rows:
        return Ranking(ranked, None, ties)
    row = _position_of(key, position_bits, code_bits, by_position=by_position) + np.repeat(offsets[:-1], lengths)
    return Ranking(ranked, row, ties)


def _position_of(key: Ints, position_bits: int, code_bits: int, *, by_position: bool) -> Ints:
    shifted = key >> np.int64(code_bits) if by_position else key
    return shifted & np.int64((1 << position_bits) - 1)


def _falls(score: NDArray[np.float64], offsets: Ints) -> bool:
    """Say whether the rows of each query stand in descending order of score already, as most files have them."""
    for upto in (256, len(score)):  # a look at the first rows settles it where they do not
        rising = np.flatnonzero(score[1:upto] > score[: min(upto, len(score)) - 1]) + 1
        if len(rising) and not (offsets[np.searchsorted(offsets, rising)] == rising).all():
            return False
    return True


def _rank_falling(
    score: NDArray[np.float64], code: NDArray[np.uint8] | Ints, offsets: Ints, *, by_position: bool, with_rows: bool
) -> Ranking:
    """Rank rows that stand in order: only tied ones may have to change places."""
    same = np.flatnonzero(score[1:] == score[:-1]) + 1
    same = same[offsets[np.searchsorted(offsets, same)] != same]
    ties = _runs(same, offsets)
    row = np.arange(len(score))
    if len(same) and not by_position:
        _order_by_label(row, code, ties)
        code = code[row]
    return Ranking(code, row if with_rows else None, ties)


def _order_by_label(row: Ints, code: NDArray[np.uint8] | Ints, ties: Groups) -> None:
    """Put the tied among ranked rows into the order of their labels; those of one label stay as they stand."""
    size = ties.end - ties.start
    group = np.repeat(np.arange(len(size)), size)
    place = np.arange(int(size.sum())) - (np.cumsum(size) - size)[group] + ties.start[group]
    tied = row[place]
    row[place] = tied[np.lexsort((code[tied], group))]


def sort_within(key: Ints, offsets: Ints, longest: int, *, shift: int) -> Ints:
    """Write each row's position in its query into its key, ``shift`` bits up, and sort the keys of each query.

    Lists of unlike length are padded to rows of one matrix, but for a few long lists among short ones, where the
    padding would cost more than one sort a list.

    Parameters
    ----------
    key : ndarray of int64 of shape (n_rows,)
        Keys with room for the position; overwritten.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query begins.
    longest : int
        The length of the longest list.
    shift : int
        By how many bits the position is moved up.

    Returns
    -------
    ndarray of int64 of shape (n_rows,)
    """
    if longest == 0:
        return key
    lengths = np.diff(offsets)
    position = np.arange(longest) << np.int64(shift)
    if longest * len(lengths) == len(key):
        table = key.reshape(-1, longest)
        table |= position
        table.sort(axis=1)
        return key
    if longest * len(lengths) > 3 * len(key):
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            key[begin:end] |= position[: end - begin]
            key[begin:end].sort()
        return key
    small = np.dtype(np.int16 if longest < 2**15 else np.int64)
    filled: NDArray[np.bool_] = np.arange(longest).astype(small) < lengths.astype(small)[:, None]
    padded = np.full(filled.shape, _LAST)
    padded[filled] = key
    padded |= position
    padded.sort(axis=1)
    packed: Ints = padded[filled]
    return packed


def _repair(
    key: Ints,
    score: NDArray[np.float64],
    offsets: Ints,
    low_bits: int,
    position_bits: int,
    code_bits: int,
    *,
    by_position: bool,
) -> tuple[Ints, Ints]:
    """Put keys that collide untied into exact order; return them, and which rows are tied with the one above."""
    # Keys that differ in their low bits only.
    apart = key[1:] ^ key[:-1]
    same = np.flatnonzero(apart.view(np.uint64) < np.uint64(1 << low_bits)) + 1
    if not len(same):
        return key, same
    query = np.searchsorted(offsets, same, side="right") - 1
    inside = same > offsets[query]
    same, query = same[inside], query[inside]
    if not len(same):
        return key, same

    def scores_of(rows: Ints, of_query: Ints) -> NDArray[np.float64]:
        at = _position_of(key[rows], position_bits, code_bits, by_position=by_position) + offsets[of_query]
        # 0.0 and -0.0 are one score; adding 0.0 makes them one number too.
        exact: NDArray[np.float64] = score[at] + 0.0
        return exact

    equal = scores_of(same, query) == scores_of(same - 1, query)
    if equal.all():
        return key, same

    runs = _runs(same, offsets)
    size = runs.end - runs.start
    run = np.repeat(np.arange(len(size)), size)
    rows = np.arange(int(size.sum())) - (np.cumsum(size) - size)[run] + runs.start[run]
    exact = scores_of(rows, runs.query[run])
    order = np.lexsort((key[rows], -exact, run))
    key[rows] = key[rows][order]
    exact = exact[order]
    tied = (exact[1:] == exact[:-1]) & (run[1:] == run[:-1])
    return key, rows[1:][tied]


def _runs(same: Ints, offsets: Ints) -> Groups:
    """Return the runs of rows of which each is tied with the one before."""
    if not len(same):
        none = np.empty(0, dtype=np.int64)
        return Groups(none, none, none)
    begins = np.flatnonzero(np.diff(same, prepend=same[0] - 2) != 1)
    start = same[begins] - 1
    end = same[np.append(begins[1:] - 1, len(same) - 1)] + 1
    return Groups(start, end, np.searchsorted(offsets, start, side="right") - 1)
