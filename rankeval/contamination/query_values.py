"""Things that stand in queries, each as a hash of 32 bits: rows, columns or documents, sorted by query and hash.

    query   0   0   0   1   1  ...
    value   3   8   9   2   8  ...     sorted within each query, each value once

A registration keeps all rows of each query, but of large collections the k smallest values only, as
of documents: a *bottom-k sketch* (Broder, 1997). Where other data holds such a query, whole or with
other rows beside, all k stand there; of a query that lost a quarter of its rows, about three
quarters of them do.

`LabelCounts` tells how often each label stands in each query::

    query    0  1  2     levels         The labels of query 9 are 0 0 1: two zeros and a one.
      7      1  0  2
      9      2  1  0

Most collections have a handful of levels. If there are more than twelve, the counts are left out,
and only a hash says whether two queries have the same labels.

**Columns** of features: the labels of a query in the order of a column's values.

    value   .2  .5  .5  .9        labels in that order, ties as sets:   1 | 0 2 | 0
    label    1   2   0   0        or the other way round:               0 | 0 2 | 1

One hash stands for both directions. So a column is recognised after scaling, after any increasing
or decreasing map, wherever it stands and whatever columns are beside it.

How likely is it that a foreign query with the same labels has the same sequence? Two codes for a
sequence bound that chance, and the shorter one counts. The first takes labels to be in any order:
with n_g rows in tie group g, of which c_gl have label l, a share of ::

    prod_g n_g! / prod_l c_gl!   of   n! / prod_l c_l!

orders agrees (the multivariate hypergeometric distribution). The second expects labels in runs, as
columns have them that rank well: with r_l runs of label l, R in all, there are at most ``R! /
prod_l r_l! prod_l C(c_l - 1, r_l - 1)`` such sequences. For perfectly sorted labels that is a
handful, and so hardly any evidence.

Columns of one query resemble each other, so their bits never add up (`contamination.matching`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.hashing import join, keys, number_hashes, ordered_bits, taken
from rankeval.join.flat import spread
from rankeval.join.matching import Hashes, mixed

SHARED_BY_FEW = 50
"""A value that stands in more registered queries than this tells no query from another."""


def upper_half(hashes: Hashes) -> NDArray[np.uint32]:
    """Return the upper 32 bits of mixed hashes."""
    return (hashes >> np.uint64(32)).astype(np.uint32)


def packed(upper: NDArray[Any], lower: NDArray[Any]) -> Hashes:
    """Return two whole numbers of 32 bits as one: pairs are sorted, found and compared at once."""
    both: Hashes = (upper.astype(np.uint64) << np.uint64(32)) | lower
    return both


@dataclass(frozen=True, eq=False)
class QueryValues:
    """Values that stand in queries, sorted by query and value, each value of a query once."""

    query: NDArray[np.int32]  # (n,): The query of each value
    value: NDArray[np.uint32]  # (n,): The values
    bits: NDArray[np.float32] | None = None  # (n,): The evidence that a match of each value is
    label: NDArray[np.uint8] | None = None  # (n,): The label of each document

    @classmethod
    def of(
        cls,
        query: NDArray[Any],
        value: NDArray[np.uint32],
        *,
        bits: NDArray[np.float32] | None = None,
        label: NDArray[np.uint8] | None = None,
    ) -> QueryValues:
        """Sort values by query; of equal ones the first counts."""
        key = packed(query, value)
        if bits is None and label is None:  # sorting values is ten times as fast as sorting places
            key.sort()
            key = key[_first(key)]
            return cls(upper_half(key).astype(np.int32), key.astype(np.uint32))
        order = np.argsort(key, kind="stable")
        order = order[_first(key[order])]
        return cls(query.astype(np.int32), value, bits, label).take(order)

    def __len__(self) -> int:
        return len(self.value)

    def take(self, part: NDArray[Any] | slice) -> QueryValues:
        """Return some of the entries, in this order."""
        bits = None if self.bits is None else self.bits[part]
        return QueryValues(
            self.query[part],
            self.value[part],
            bits,
            None if self.label is None else self.label[part],
        )

    def renumbered(self, place: NDArray[np.int32]) -> QueryValues:
        """Return the entries of queries with other numbers, sorted again, without those of numbers below 0."""
        moved = replace(self, query=place[self.query])
        return QueryValues.together([moved.take(moved.query >= 0)])

    def places(self) -> NDArray[np.int64]:
        """Return the place of each value in its query: those below k are the k smallest."""
        start = np.flatnonzero(_first(self.query))
        return np.arange(len(self)) - np.repeat(start, np.diff(start, append=len(self)))

    def smallest(self, k: int) -> QueryValues:
        """Return the k smallest values of each query."""
        return self.take(self.places() < k)

    @classmethod
    def together(cls, parts: Sequence[QueryValues]) -> QueryValues:
        """Return the entries of one part or several, sorted again."""
        columns = {
            column.name: [getattr(part, column.name) for part in parts] for column in fields(cls)
        }
        return cls.of(
            **{name: np.concatenate(each) for name, each in columns.items() if each[0] is not None}
        )

    def per_query(self, n_queries: int, weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the number of entries of each query, or the sum of weights."""
        return np.bincount(self.query, weights=weights, minlength=n_queries)

    def arrays(self, name: str, n_queries: int) -> dict[str, NDArray[Any]]:
        """Return the entries as arrays of one dimension, for the ledger."""
        n = self.per_query(n_queries)
        arrays: dict[str, NDArray[Any]] = {
            f"{name}.n": n.astype(np.min_scalar_type(int(n.max(initial=0)))),
            f"{name}.value": self.value,
        }
        if self.bits is not None:
            arrays[f"{name}.bits"] = self.bits.astype(np.float16)
        return arrays if self.label is None else arrays | {f"{name}.label": self.label}

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, NDArray[Any]]) -> QueryValues | None:
        """Return the entries of `arrays`; None if there are none of this name."""
        if f"{name}.value" not in arrays:
            return None
        n, bits = arrays[f"{name}.n"], arrays.get(f"{name}.bits")
        query = np.repeat(np.arange(len(n), dtype=np.int32), n)
        bits = None if bits is None else bits.astype(np.float32)
        return cls(query, arrays[f"{name}.value"], bits, arrays.get(f"{name}.label"))

    @cached_property
    def _keys(self) -> Hashes:
        """The queries and values together, ascending."""
        return packed(self.query, self.value)

    def find(self, query: NDArray[Any], value: NDArray[np.uint32]) -> NDArray[np.intp]:
        """Return the place of each wanted value of a query; -1 where the query lacks it."""
        if not len(self):
            return np.full(len(value), -1)
        wanted = packed(query, value)
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        return np.where(self._keys[place] == wanted, place, -1)

    def positive(self, labels: LabelCounts) -> NDArray[np.bool_]:
        """Return which documents are relevant: their labels are above 0."""
        assert self.label is not None
        return ~np.isin(self.label, labels.not_positive)

    @cached_property
    def _told(self) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
        """The places of the values that are evidence, and these values, in ascending order."""
        places = np.arange(len(self)) if self.bits is None else np.flatnonzero(self.bits > 0)
        places = places[np.argsort(self.value[places], kind="stable")]
        return places, self.value[places]

    def found_in(
        self, data: QueryValues
    ) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Find the values that queries of the data and queries here have in common."""
        places, values = self._told
        # Most values are foreign: a table of upper bits says so faster than a search
        # (bench_guard_large).
        maybe = np.flatnonzero(self._upper_bits[data.value >> self._shift])
        first = np.searchsorted(values, data.value[maybe], side="left")
        same = (
            values[np.minimum(first, len(values) - 1)] == data.value[maybe]
            if len(values)
            else first[:0] > 0
        )
        known, first = maybe[same], first[same]
        rows, run = spread(first, np.searchsorted(values, data.value[known], side="right") - first)
        ours, theirs = places[rows], known[run]
        n_known = int(self.query.max(initial=0)) + 1
        key, pair = np.unique(
            data.query[theirs] * np.int64(n_known) + self.query[ours], return_inverse=True
        )
        return np.stack([key // n_known, key % n_known], axis=1), pair, ours, theirs

    @property
    def recur(self) -> bool:
        """Whether values that are evidence stand in several queries, more than hashes of 32 bits collide."""
        values = self._told[1]
        return bool((~_first(values)).sum() > 4 * len(values) ** 2 / 2**33)

    @cached_property
    def of_two_queries(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The values that are evidence and stand in two queries exactly, ascending, and these queries."""
        places, values = self._told
        start = np.flatnonzero(_first(values))
        twice = start[np.diff(start, append=len(values)) == 2]
        return values[twice], np.stack(
            [self.query[places[twice]], self.query[places[twice + 1]]], axis=1
        )

    @property
    def _shift(self) -> np.uint32:
        # The table has 16 places for each value that is evidence, up to 2^26.
        return np.uint32(32 - min(26, (16 * len(self._told[1])).bit_length()))

    @cached_property
    def _upper_bits(self) -> NDArray[np.bool_]:
        table = np.zeros(1 << (32 - int(self._shift)), dtype=bool)
        table[self._told[1] >> self._shift] = True
        return table


def times_among(wanted: NDArray[np.uint32], values: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return how often each wanted value stands among others.

    Examples
    --------
    >>> times_among(np.array([7, 2, 5], dtype=np.uint32), np.array([5, 7, 5], dtype=np.uint32)).tolist()
    [1, 0, 2]
    """
    ordered = np.sort(values)
    # Looked up in ascending order, which keeps the search in the cache: value above, place below.
    key = packed(wanted, np.arange(len(wanted), dtype=np.uint64))
    key.sort()
    ascending = upper_half(key)
    times = np.empty(len(wanted), dtype=np.int64)
    found = np.searchsorted(ordered, ascending, side="right") - np.searchsorted(
        ordered, ascending, side="left"
    )
    times[(key & np.uint64(0xFFFFFFFF)).astype(np.int64)] = found
    return times


def are_among(wanted: NDArray[Any], values: NDArray[Any]) -> bool:
    """Return whether more hashes are among many others than collide by chance; their upper 16 bits rule most out."""
    n_bits = 8 * values.dtype.itemsize
    shift = values.dtype.type(n_bits - 16)
    table = np.zeros(1 << 16, dtype=bool)
    table[wanted >> shift] = True
    by_chance = len(values) * len(wanted) / 2.0**n_bits
    n = np.isin(values[table[values >> shift]], wanted).sum()
    return bool(n > by_chance + 3 * by_chance**0.5 + (by_chance > 0.01))


def _first(values: NDArray[Any]) -> NDArray[np.bool_]:
    first = np.ones(len(values), dtype=bool)
    first[1:] = values[1:] != values[:-1]
    return first


_MOST_LEVELS = 12


def multisets(rows: Hashes, codes: NDArray[np.intp], n_queries: int) -> Hashes:
    """Hash the multiset of the row hashes of each query: a sum does not depend on their order."""
    total = np.zeros(n_queries, dtype=np.uint64)
    np.add.at(total, codes, _summand(rows))
    return join(total, np.bincount(codes, minlength=n_queries).astype(np.uint64))


def _summand(rows: Hashes) -> Hashes:
    return mixed(rows + np.uint64(0xD1B54A32D192ED03))  # rows that hash to zero stay in the sum


def label_bytes(labels: Hashes) -> NDArray[np.uint8]:
    """Return the hashes of labels as bytes: two labels are taken for one in 256."""
    return (labels >> np.uint64(56)).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """The labels of queries, whatever their order."""

    sizes: NDArray[np.int64]  # (n_queries,): Number of rows of each query
    levels: NDArray[
        np.float64
    ]  # (n_levels,): The labels that occur, ascending; none if they are too many
    # (n_queries, n_levels): How often each label stands in each query, in the smallest type that
    # holds it.
    counts: NDArray[Any]
    # (n_queries,): A hash of the labels of each query; None if the counts tell it.
    hashed: Hashes | None = None

    @classmethod
    def of(cls, y: NDArray[np.float64], codes: NDArray[np.intp], n_queries: int) -> LabelCounts:
        """Count the labels of each query."""
        sizes = np.bincount(codes, minlength=n_queries)
        # The levels of the first rows are nearly always all: looking them up is faster than sorting
        # all labels.
        levels = np.unique(y[:1000])
        if len(levels) > _MOST_LEVELS or not np.isin(y, levels).all():
            levels = np.unique(y)
        if len(levels) > _MOST_LEVELS or not np.isfinite(levels).all():
            return cls._hashed(sizes, multisets(number_hashes(y, name="y"), codes, n_queries))
        place = codes * len(levels) + np.searchsorted(levels, y)
        counts = np.bincount(place, minlength=n_queries * len(levels)).reshape(
            n_queries, len(levels)
        )
        return cls(sizes, levels, _small(counts))

    @classmethod
    def _hashed(cls, sizes: NDArray[np.int64], hashes: Hashes) -> LabelCounts:
        """Return labels of too many levels to count."""
        return cls(sizes, np.zeros(0), np.zeros((len(sizes), 0), dtype=np.int64), hashes)

    @cached_property
    def hashes(self) -> Hashes:
        """One hash per query over its labels, as `Fingerprint.queries` has it."""
        if self.hashed is not None:
            return self.hashed
        total = np.zeros(len(self.sizes), dtype=np.uint64)
        for counts, each in zip(
            self.counts.T, _summand(number_hashes(self.levels, name="levels")), strict=True
        ):
            total += counts * each
        return join(total, self.sizes.astype(np.uint64))

    @cached_property
    def level_bytes(self) -> NDArray[np.uint8]:
        """The levels as bytes, as documents keep their labels."""
        return label_bytes(number_hashes(self.levels, name="levels"))

    @cached_property
    def not_positive(self) -> NDArray[np.uint8]:
        """The labels of documents that are not relevant, as bytes; of too many levels that of 0."""
        levels = self.levels[self.levels <= 0] if len(self.levels) else np.zeros(1)
        return label_bytes(number_hashes(levels, name="levels"))

    @property
    def most_frequent(self) -> int:
        """The place of the most frequent label among the levels."""
        return int(self.counts.sum(axis=0, dtype=np.int64).argmax())

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Bits in the order of the labels of each query: log2 of the number of their arrangements."""
        entropy = log2_factorial(self.sizes)
        for counts in self.counts.T:
            entropy = entropy - log2_factorial(counts)
        return entropy

    def take(self, queries: NDArray[Any]) -> LabelCounts:
        """Return the labels of some queries."""
        hashed = None if self.hashed is None else self.hashed[queries]
        return LabelCounts(self.sizes[queries], self.levels, self.counts[queries], hashed)

    @classmethod
    def together(cls, parts: Sequence[LabelCounts]) -> LabelCounts:
        """Return the counts of the queries of several parts, as `of` counts them in the rows of all.

        Examples
        --------
        >>> one, two = (LabelCounts.of(np.array(y), np.zeros(2, dtype=int), 1) for y in ([0.0, 1], [2.0, 0]))
        >>> LabelCounts.together([one, two]).counts.tolist()
        [[1, 1, 0], [1, 0, 1]]
        """
        sizes = np.concatenate([part.sizes for part in parts])
        levels = np.unique(np.concatenate([part.levels for part in parts]))
        if len(levels) > _MOST_LEVELS or any(part.hashed is not None for part in parts):
            return cls._hashed(sizes, np.concatenate([part.hashes for part in parts]))
        return cls(
            sizes, levels, _small(np.concatenate([part.counts_at(levels) for part in parts]))
        )

    def occurring(self) -> LabelCounts:
        """Return the same counts without levels that stand nowhere."""
        some = (self.counts > 0).any(axis=0)
        return LabelCounts(self.sizes, self.levels[some], self.counts[:, some], self.hashed)

    def above(self, level: float) -> LabelCounts:
        """Return the same counts with a level below all others, which stands nowhere."""
        none = np.zeros((len(self.sizes), 1), dtype=self.counts.dtype)
        return LabelCounts(
            self.sizes, np.append(level, self.levels), np.hstack([none, self.counts]), self.hashed
        )

    def merged(self, starts: Sequence[int], levels: NDArray[np.float64]) -> LabelCounts:
        """Return the counts of merged levels.

        Examples
        --------
        >>> counts = LabelCounts.of(np.array([0.0, 0, 1, 2, 2]), np.zeros(5, dtype=int), 1)
        >>> counts.counts.tolist(), counts.merged([0, 1], np.array([0.0, 1])).counts.tolist()
        ([[2, 1, 2]], [[2, 3]])
        """
        return LabelCounts(
            self.sizes, levels, np.add.reduceat(self.counts, starts, axis=1, dtype=np.int64)
        )

    def alike(self, *, but: int) -> NDArray[np.float64]:
        """Return the share of the other queries that have the same counts of all levels but one."""
        pattern = np.delete(self.counts, but, axis=1)
        _, place, times = np.unique(pattern, axis=0, return_inverse=True, return_counts=True)
        share: NDArray[np.float64] = (times[place.ravel()] - 1) / max(1, len(self.sizes) - 1)
        return share

    def counts_at(self, levels: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the counts of these labels."""
        at = np.zeros((len(self.sizes), len(levels)), dtype=np.int64)
        _, mine, theirs = np.intersect1d(
            self.levels, levels, assume_unique=True, return_indices=True
        )
        at[:, theirs] = self.counts[:, mine]
        return at

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the counts as arrays of one dimension, for the ledger."""
        if self.hashed is not None:
            return {"labels.sizes": _small(self.sizes), "labels.hashes": self.hashed}
        return {"labels.levels": self.levels, "labels.counts": _small(self.counts.ravel())}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LabelCounts:
        """Return the counts of `arrays`."""
        if "labels.hashes" in arrays:
            return cls._hashed(arrays["labels.sizes"].astype(np.int64), arrays["labels.hashes"])
        levels = arrays["labels.levels"]
        counts = arrays["labels.counts"].reshape(-1, len(levels))
        return cls(counts.sum(axis=1, dtype=np.int64), levels, counts)


def log2_factorial(n: NDArray[Any]) -> NDArray[np.float64]:
    """Return log2(n!)."""
    table = np.append(0.0, np.cumsum(np.log2(np.arange(1, int(n.max(initial=0)) + 1))))
    found: NDArray[np.float64] = table[n]
    return found


def _small(numbers: NDArray[np.int64]) -> NDArray[Any]:
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


LEAST_BITS = 8.0
"""Columns of less evidence are not kept, and queries whose labels cannot give as much are not looked at."""

_VALUES = 1 << 18
"""Values worked on at a time: the temporaries stay in the processor's cache."""

_LABEL_BITS = np.uint64(15)


def column_entries(
    X: Any,
    y: NDArray[np.float64],
    codes: NDArray[np.intp],
    wanted: NDArray[np.bool_],
    *,
    with_bits: bool = False,
) -> QueryValues:
    """Return the columns of some queries as hashes."""
    rows = np.flatnonzero(wanted[codes])
    rows = rows[np.argsort(codes[rows], kind="stable")]
    label = number_hashes(y[rows], name="y") >> (np.uint64(64) - _LABEL_BITS)
    query, value, bits = (
        [np.zeros(0, dtype=np.int64)],
        [np.zeros(0, dtype=np.uint32)],
        [np.zeros(0)],
    )
    for part in _blocks(codes[rows], X.shape[1]):
        block = _Block(taken(X, rows[part]), label[part], codes[rows[part]])
        hashes = upper_half(block.hashes())
        weight = block.bits() if with_bits else np.full(hashes.shape, np.inf)
        column, place = np.nonzero(weight >= LEAST_BITS)
        query.append(block.queries[place])
        value.append(hashes[column, place])
        bits.append(weight[column, place])
    found = np.concatenate(query), np.concatenate(value)
    return QueryValues.of(
        *found, bits=np.concatenate(bits).astype(np.float32) if with_bits else None
    )


def _blocks(codes: NDArray[np.intp], n_columns: int) -> Iterator[slice]:
    start, step = 0, max(1, _VALUES // max(1, n_columns))
    ends = np.append(np.flatnonzero(_first(codes))[1:], len(codes))
    while start < len(codes):
        # The last end within a step, or the next one if one query is longer than that.
        last = np.searchsorted(ends, start + step, side="right") - 1
        end = int(ends[max(last, np.searchsorted(ends, start + 1))])
        yield slice(start, end)
        start = end


class _Block:
    """The columns of some whole queries, each sorted by query, value and label."""

    def __init__(self, X: NDArray[np.float32], label: Hashes, codes: NDArray[np.intp]) -> None:
        new = _first(codes)
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
        before, after = (
            self.place - self.begin,
            self.begin + np.repeat(self.size, self.size) - self.place - 1,
        )
        sums = self._mixed_sum(value * key[before]), self._mixed_sum(value * key[after])
        if tied.any():
            before, after = self._around_ties(tied)
            sums[0][tied] = self._mixed_sum(value[tied] * key[before])
            sums[1][tied] = self._mixed_sum(value[tied] * key[after])
        return mixed(sums[0] + sums[1] + self.size.astype(np.uint64))

    def _mixed_sum(self, values: Hashes) -> Hashes:
        return mixed(np.add.reduceat(values, self.start, axis=1))

    def _around_ties(
        self, columns: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return how many rows of the query stand before and after the tie group of each row."""
        group = self.group[columns]
        new = np.ones((len(group), len(self.place) + 1), dtype=bool)
        new[:, 1:-1] = group[:, 1:] != group[:, :-1]
        # The end of each tie group is the next start of one: places at starts, filled from the
        # right.
        ends = np.where(new[:, 1:], self.place + np.int32(1), np.int32(len(self.place)))
        ends = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        return group - self.begin, self.begin + np.repeat(self.size, self.size).astype(
            np.int32
        ) - ends

    def bits(self) -> NDArray[np.float64]:
        """Return the bits of evidence of each column and query."""
        run = self._starts(self.key)
        log = np.append(0.0, np.log2(np.arange(1, int(self.size.max(initial=0)) + 1)))
        # log2(n!) as a sum over the rows of a set: log2 of the rank of each row within it.
        in_groups = np.add.reduceat(
            log[self.place - self.group + 1] - log[self.place - run + 1], self.start, axis=1
        )
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
