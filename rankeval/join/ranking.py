"""Put rows into rank order, and find the tied ones.

Rows that already stand in order, as in most files, are left as they are; all others are sorted by packed keys (see
`rankeval.join.sorting`). What measures ask of a ranking is the label at each rank; which row stands there is found only
where somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.by_rank import ByRank
from rankeval.join.flat import Floats, Ints, offsets_of, rows_of
from rankeval.join.judged import Groups
from rankeval.join.sorting import Layout, cuts, mended, runs_of, sorted_blocks

_FEW_LEVELS = 128
"""With more labels the key would keep too little of the score. Codes of fewer labels fit a byte."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """The label code at each rank, its row in the input if asked for, and all groups of tied rows.

    If the sort has made a table of codes on its way, ``by_rank`` holds them and ``code`` is None.
    """

    code: NDArray[np.uint8] | Ints | None
    row: Ints | None
    ties: Groups
    by_rank: ByRank | None = None


def rank_rows(
    score: Floats,
    code: Ints,
    offsets: Ints,
    *,
    n_levels: int,
    by_position: bool,
    highest_first: bool = False,
    with_rows: bool = False,
    with_table: bool = False,
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
    highest_first : bool
        Whether tied rows of the highest label come first, if they are ordered by label.
    with_rows : bool
        Also return which row stands at each rank.
    with_table : bool
        Return the codes by rank, if they are sorted and the table would not be mostly empty. Ignored ``with_rows``.

    Returns
    -------
    Ranked
        With every group of two or more tied rows, whatever their labels.
    """
    few = n_levels <= _FEW_LEVELS
    turned = n_levels - 1 - code if highest_first else code
    if _falls(score, offsets):
        row = np.arange(len(score))
        ties = runs_of(_inside(score[1:] == score[:-1], offsets), offsets)
    else:
        layout = Layout.of(int(np.diff(offsets).max()), n_levels if few else 1)
        found = _sorted(
            score,
            turned if few else None,
            offsets,
            layout,
            by_position=by_position or not few,
            with_rows=with_rows or not few,
            with_table=with_table and few and not with_rows and not highest_first,
        )
        if few and highest_first:
            assert found.code is not None
            return Ranked(np.uint8(n_levels - 1) - found.code, found.row, found.ties)
        if few:
            return found
        assert found.row is not None
        row, ties = found.row, found.ties
    if not by_position:
        order_tied(row, ties, turned.take)
    return Ranked((code.astype(np.uint8) if few else code)[row], row if with_rows else None, ties)


def _sorted(score: Floats, code: Ints | None, offsets: Ints, layout: Layout, **asked: bool) -> Ranked:
    """Sort the rows of each query; return their codes too, if they are given."""
    cut = cuts(offsets, ascending=False)
    if cut is not None:
        return _sorted_in_blocks(score, code, offsets, cut, layout, **asked)
    # A few long lists among short ones: the short ones would be padded to many times their length.
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    moved = offsets_of(lengths[order])
    rows = rows_of(offsets[order], lengths[order])
    cut = cuts(moved, ascending=True)
    assert cut is not None
    codes = None if code is None else code[rows]
    found = _sorted_in_blocks(score[rows], codes, moved, cut, layout, **{**asked, "with_table": False})
    ranked = None
    if found.code is not None:
        ranked = np.empty_like(found.code)
        ranked[rows] = found.code
    row = None
    if found.row is not None:
        row = np.empty_like(rows)
        row[rows] = rows[found.row]
    start, end, query = found.ties
    back = (offsets[order] - moved[:-1])[query]
    ties = Groups(start + back, end + back, order[query])
    return Ranked(ranked, row, ties.of(np.argsort(ties.start)))


def _sorted_in_blocks(
    score: Floats,
    code: Ints | None,
    offsets: Ints,
    cut: Ints,
    layout: Layout,
    *,
    by_position: bool,
    with_rows: bool,
    with_table: bool,
) -> Ranked:
    """Sort the rows of each query, block by block."""
    by_rank = ByRank.empty(offsets) if with_table else None
    ranked = None if code is None or by_rank is not None else np.empty(len(score), dtype=np.uint8)
    row = np.empty(len(score), dtype=np.int64) if with_rows else None
    found = []
    for block in sorted_blocks(score, code, offsets, cut, layout):
        rows = slice(offsets[block.queries.start], offsets[block.queries.stop])
        if by_rank is not None:
            codes = layout.code(block.key)
            by_rank.fill(block.queries, codes if block.filled is None else codes * block.filled)
        if ranked is not None:
            ranked[rows] = block.flat(layout.code(block.key))
        if row is not None:
            position = layout.position(block.key)
            position += offsets[block.queries, None]
            row[rows] = block.flat(position)
        found.append(block.collisions(offsets))
    place, query, key, ties = mended(found, score, offsets, layout, by_position=by_position, with_rows=with_rows)
    if by_rank is not None:
        by_rank.mend(place - offsets[query], query, layout.code(key))
    if ranked is not None:
        ranked[place] = layout.code(key)
    if row is not None:
        row[place] = layout.position(key) + offsets[query]
    return Ranked(ranked, row, ties, by_rank)


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


def _inside(flags: NDArray[np.bool_], offsets: Ints) -> Ints:
    """Return the rows flagged, but the first of a query; flags are of rows 1, 2 ..."""
    rows = np.flatnonzero(flags) + 1
    found: Ints = rows[rows > offsets[np.searchsorted(offsets, rows, side="right") - 1]]
    return found


def _falls(score: Floats, offsets: Ints) -> bool:
    """Say whether the rows of each query already stand in descending order of score, as in most files."""
    # The first rows settle it for most arrays; for files a sort is spared (bench_files).
    heads = (score[:256], score)
    return not any(len(_inside(head[1:] > head[:-1], offsets)) for head in heads)
