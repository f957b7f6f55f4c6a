"""How often each label stands in each query.

    query    0  1  2     levels         The labels of query 9 are 0 0 1: two zeros and a one.
      7      1  0  2
      9      2  1  0

Most collections have a handful of levels. If there are more than twelve, the counts are left out, and only a hash says
whether two queries have the same labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.hashing import join, number_hashes
from rankeval.join.matching import Hashes, mixed

_MOST_LEVELS = 12


def summand(rows: Hashes) -> Hashes:
    """Return what each row adds to the hash of its query; the constant keeps rows that hash to zero in the sum."""
    return mixed(rows + np.uint64(0xD1B54A32D192ED03))


def label_bytes(labels: Hashes) -> NDArray[np.uint8]:
    """Return the hashes of labels as bytes: two labels are taken for one in 256."""
    return (labels >> np.uint64(56)).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """The labels of queries, whatever their order.

    Attributes
    ----------
    sizes : ndarray of int of shape (n_queries,)
        Number of rows of each query.
    levels : ndarray of float of shape (n_levels,)
        The labels that occur, ascending; none if they are too many.
    counts : ndarray of unsigned int of shape (n_queries, n_levels)
        How often each label stands in each query, in the smallest type that holds it.
    hashed : ndarray of uint64 of shape (n_queries,), optional
        A hash of the labels of each query; None if the counts tell it.
    """

    sizes: NDArray[np.int64]
    levels: NDArray[np.float64]
    counts: NDArray[Any]
    hashed: Hashes | None = None

    @classmethod
    def of(cls, y: NDArray[np.float64], codes: NDArray[np.intp], n_queries: int) -> LabelCounts:
        """Count the labels of each query."""
        sizes = np.bincount(codes, minlength=n_queries)
        # The levels of the first rows are nearly always all: looking them up is faster than sorting all labels.
        levels = np.unique(y[:1000])
        if len(levels) > _MOST_LEVELS or not np.isin(y, levels).all():
            levels = np.unique(y)
        if len(levels) > _MOST_LEVELS or not np.isfinite(levels).all():
            total = np.zeros(n_queries, dtype=np.uint64)
            np.add.at(total, codes, summand(number_hashes(y, name="y")))
            none = np.zeros((n_queries, 0), dtype=np.int64)
            return cls(sizes, np.zeros(0), none, join(total, sizes.astype(np.uint64)))
        place = codes * len(levels) + np.searchsorted(levels, y)
        counts = np.bincount(place, minlength=n_queries * len(levels)).reshape(n_queries, len(levels))
        return cls(sizes, levels, _small(counts))

    @cached_property
    def hashes(self) -> Hashes:
        """One hash per query over its labels, as `Fingerprint.queries` has it."""
        if self.hashed is not None:
            return self.hashed
        total = np.zeros(len(self.sizes), dtype=np.uint64)
        for counts, each in zip(self.counts.T, summand(number_hashes(self.levels, name="levels")), strict=True):
            total += counts * each
        return join(total, self.sizes.astype(np.uint64))

    @cached_property
    def level_bytes(self) -> NDArray[np.uint8]:
        """The levels as bytes, as documents keep their labels."""
        return label_bytes(number_hashes(self.levels, name="levels"))

    @property
    def most_frequent(self) -> int:
        """The place of the most frequent label among the levels."""
        return int(self.counts.sum(axis=0, dtype=np.int64).argmax())

    @cached_property
    def entropy(self) -> NDArray[np.float64]:
        """Bits in the order of the labels of each query: log2 of the number of their arrangements."""
        if not len(self.levels):
            return log2_factorial(self.sizes)
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

        Parameters
        ----------
        parts : sequence of LabelCounts
            At least one, of different queries.

        Examples
        --------
        >>> one, two = (LabelCounts.of(np.array(y), np.zeros(2, dtype=int), 1) for y in ([0.0, 1], [2.0, 0]))
        >>> LabelCounts.together([one, two]).counts.tolist()
        [[1, 1, 0], [1, 0, 1]]
        """
        sizes = np.concatenate([part.sizes for part in parts])
        levels = np.unique(np.concatenate([part.levels for part in parts]))
        if len(levels) > _MOST_LEVELS or any(part.hashed is not None for part in parts):
            none = np.zeros((len(sizes), 0), dtype=np.int64)
            return cls(sizes, np.zeros(0), none, np.concatenate([part.hashes for part in parts]))
        return cls(sizes, levels, _small(np.concatenate([part.counts_at(levels) for part in parts])))

    def occurring(self) -> LabelCounts:
        """Return the same counts without levels that stand nowhere."""
        some = (self.counts > 0).any(axis=0)
        return LabelCounts(self.sizes, self.levels[some], self.counts[:, some], self.hashed)

    def merged(self, starts: Sequence[int], levels: NDArray[np.float64]) -> LabelCounts:
        """Return the counts of merged levels.

        Parameters
        ----------
        starts : sequence of int
            The place at which each merged level begins; the first one is 0.
        levels : ndarray of float of shape (len(starts),)
            The merged levels.

        Examples
        --------
        >>> counts = LabelCounts.of(np.array([0.0, 0, 1, 2, 2]), np.zeros(5, dtype=int), 1)
        >>> counts.counts.tolist(), counts.merged([0, 1], np.array([0.0, 1])).counts.tolist()
        ([[2, 1, 2]], [[2, 3]])
        """
        return LabelCounts(self.sizes, levels, np.add.reduceat(self.counts, starts, axis=1, dtype=np.int64))

    def alike(self, *, but: int) -> NDArray[np.float64]:
        """Return the share of the other queries that have the same counts of all levels but one.

        Parameters
        ----------
        but : int
            The place of the level that may differ.
        """
        pattern = np.delete(self.counts, but, axis=1)
        _, place, times = np.unique(pattern, axis=0, return_inverse=True, return_counts=True)
        share: NDArray[np.float64] = (times[place.ravel()] - 1) / max(1, len(self.sizes) - 1)
        return share

    def counts_at(self, levels: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the counts of these labels."""
        at = np.zeros((len(self.sizes), len(levels)), dtype=np.int64)
        _, mine, theirs = np.intersect1d(self.levels, levels, assume_unique=True, return_indices=True)
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
            sizes = arrays["labels.sizes"].astype(np.int64)
            return cls(sizes, np.zeros(0), np.zeros((len(sizes), 0), dtype=np.int64), arrays["labels.hashes"])
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
