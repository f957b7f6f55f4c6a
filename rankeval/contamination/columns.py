"""Columns of features: the labels of a query in the order of a column's values.

    value   .2  .5  .5  .9        labels in that order, ties as sets:   1 | 0 2 | 0
    label    1   2   0   0        or the other way round:               0 | 0 2 | 1

One hash stands for both directions. So a column is recognised after scaling, after any increasing or decreasing map,
wherever it stands and whatever columns are beside it.

How likely is it that a foreign query with the same labels has the same sequence? Two codes for a sequence bound that
chance, and the shorter one counts. The first takes labels to be in any order: with n_g rows in tie group g, of which
c_gl have label l, a share of ::

    prod_g n_g! / prod_l c_gl!   of   n! / prod_l c_l!

orders agrees (the multivariate hypergeometric distribution). The second expects labels in runs, as columns have them
that rank well: with r_l runs of label l, R in all, there are at most ``R! / prod_l r_l! prod_l C(c_l - 1, r_l - 1)``
such sequences. For perfectly sorted labels that is a handful, and so hardly any evidence.

Columns of one query resemble each other, so their bits never add up (`contamination.matching`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import Entries, short
from rankeval.contamination.hashing import keys, number_hashes, ordered_bits, taken
from rankeval.join.matching import Hashes, mixed

LEAST_BITS = 8.0
"""Columns of less evidence are not kept, and queries whose labels cannot give as much are not looked at."""

_VALUES = 1 << 18
"""Values worked on at a time: the temporaries stay in the processor's cache."""

_LABEL_BITS = np.uint64(15)
_MOST_LEVELS = 12


def column_entries(
    X: Any,
    y: NDArray[np.float64],
    codes: NDArray[np.intp],
    wanted: NDArray[np.bool_],
    *,
    with_bits: bool = False,
) -> Entries:
    """Return the columns of some queries as hashes.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame of shape (n_rows, n_features)
        The features, as `hashing.as_matrix` returns them.
    y : ndarray of shape (n_rows,)
        The labels.
    codes : ndarray of int of shape (n_rows,)
        The query of each row.
    wanted : ndarray of bool of shape (n_queries,)
        The queries to look at.
    with_bits : bool
        Whether to weigh each column too; columns of fewer than `LEAST_BITS` are then left out.
    """
    rows = np.flatnonzero(wanted[codes])
    rows = rows[np.argsort(codes[rows], kind="stable")]
    label = number_hashes(y[rows], name="y") >> (np.uint64(64) - _LABEL_BITS)
    query, value, bits = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint32)], [np.zeros(0)]
    for part in _blocks(codes[rows], X.shape[1]):
        block = _Block(taken(X, rows[part]), label[part], codes[rows[part]])
        hashes = short(block.hashes())
        weight = block.bits() if with_bits else np.full(hashes.shape, np.inf)
        column, place = np.nonzero(weight >= LEAST_BITS)
        query.append(block.queries[place])
        value.append(hashes[column, place])
        bits.append(weight[column, place])
    found = np.concatenate(query), np.concatenate(value)
    return Entries.of(*found, bits=np.concatenate(bits).astype(np.float32) if with_bits else None)


def _blocks(codes: NDArray[np.intp], n_columns: int) -> Iterator[slice]:
    start, step = 0, max(1, _VALUES // max(1, n_columns))
    ends = np.append(np.flatnonzero(codes[1:] != codes[:-1]) + 1, len(codes))
    while start < len(codes):
        end = int(ends[max(np.searchsorted(ends, start + step, side="right") - 1, np.searchsorted(ends, start + 1))])
        yield slice(start, end)
        start = end


class _Block:
    """The columns of some whole queries, each sorted by query, value and label.

    Parameters
    ----------
    X : ndarray of float32 of shape (n_rows, n_columns)
        The features, the rows of a query together.
    label : ndarray of uint64 of shape (n_rows,)
        The labels as hashes of 15 bits.
    codes : ndarray of int of shape (n_rows,)
        The query of each row.
    """

    def __init__(self, X: NDArray[np.float32], label: Hashes, codes: NDArray[np.intp]) -> None:
        new = np.ones(len(codes), dtype=bool)
        new[1:] = codes[1:] != codes[:-1]
        self.start = np.flatnonzero(new)
        self.queries = codes[self.start].astype(np.int64)
        self.size = np.diff(self.start, append=len(codes))
        local = (np.cumsum(new) - 1).astype(np.uint64)
        self.begin = np.repeat(self.start, self.size).astype(np.int32)
        self.place = np.arange(len(codes), dtype=np.int32)
        key = ordered_bits(np.ascontiguousarray(X.T)).astype(np.uint64) << _LABEL_BITS
        key |= local << np.uint64(47)
        key |= label
        key.sort(axis=1)
        self.key = key
        self.label = (key & np.uint64((1 << 15) - 1)).astype(np.int32)
        self.group = self._starts(key >> _LABEL_BITS)

    def _starts(self, key: Hashes) -> NDArray[np.int32]:
        """Return, for each place, where its run of equal keys begins."""
        start = np.zeros(key.shape, dtype=np.int32)
        start[:, 1:] = np.where(key[:, 1:] != key[:, :-1], self.place[1:], 0)
        np.maximum.accumulate(start, axis=1, out=start)
        return start

    def hashes(self) -> Hashes:
        """Return a hash for each column and query."""
        key = keys(int(self.size.max(initial=0)) + 1, salt=2)
        value = _LABEL_HASHES[self.label]
        tied = (self.group != self.place).any(axis=1)
        before, after = self.place - self.begin, self.begin + np.repeat(self.size, self.size) - self.place - 1
        sums = self._mixed_sum(value * key[before]), self._mixed_sum(value * key[after])
        if tied.any():
            before, after = self._around_ties(tied)
            sums[0][tied] = self._mixed_sum(value[tied] * key[before])
            sums[1][tied] = self._mixed_sum(value[tied] * key[after])
        return mixed(sums[0] + sums[1] + self.size.astype(np.uint64))

    def _mixed_sum(self, values: Hashes) -> Hashes:
        return mixed(np.add.reduceat(values, self.start, axis=1))

    def _around_ties(self, columns: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many rows of the query stand before and after the tie group of each row."""
        group = self.group[columns]
        new = np.ones((len(group), len(self.place) + 1), dtype=bool)
        new[:, 1:-1] = group[:, 1:] != group[:, :-1]
        # The end of each tie group is the next start of one: places at starts, filled from the right.
        ends = np.where(new[:, 1:], self.place + np.int32(1), np.int32(len(self.place)))
        ends = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        return group - self.begin, self.begin + np.repeat(self.size, self.size).astype(np.int32) - ends

    def bits(self) -> NDArray[np.float64]:
        """Return the bits of evidence of each column and query."""
        run = self._starts(self.key)
        log = np.append(0.0, np.log2(np.arange(1, int(self.size.max(initial=0)) + 1)))
        # log2(n!) as a sum over the rows of a set: log2 of the rank of each row within it.
        in_groups = np.add.reduceat(log[self.place - self.group + 1] - log[self.place - run + 1], self.start, axis=1)
        labels = np.unique(self.label[0]) if len(self.label) else np.zeros(0, dtype=np.int32)
        if len(labels) > _MOST_LEVELS:
            ordered = np.add.reduceat(log[self.place - self.begin + 1], self.start)
            unbounded: NDArray[np.float64] = ordered[None, :] - in_groups
            return unbounded
        table = np.append(0.0, np.cumsum(log[1:]))  # log2(n!)
        in_runs = np.zeros(in_groups.shape)
        n_runs = np.zeros(in_groups.shape, dtype=np.int64)
        whole = table[self.size]
        changes = np.ones(self.label.shape, dtype=bool)
        changes[:, 1:] = self.label[:, 1:] != self.label[:, :-1]
        changes[:, self.start] = True
        for label in labels:
            here = self.label == label
            rows = np.add.reduceat(here[0], self.start, dtype=np.int64)
            runs = np.add.reduceat(here & changes, self.start, axis=1, dtype=np.int64)
            some = np.maximum(rows - 1, 0)
            between = np.maximum(runs - 1, 0)
            in_runs += table[some] - table[between] - table[some - between] - table[runs]
            n_runs += runs
            whole = whole - table[rows]
        bits: NDArray[np.float64] = np.minimum(whole[None, :] - in_groups, in_runs + table[n_runs])
        return bits


_LABEL_HASHES: Hashes = keys(1 << 15, salt=3)
"""A hash for each label of 15 bits."""
