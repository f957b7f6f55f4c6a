"""Columns of differences between systems, made some at a time.

A thousand systems make 499,500 pairs: their differences on a thousand queries take 4 GB, the scores
8 MB. So a comparison hands on the scores, and which of them each column is made of::

    rows             a    b    c            scores of the systems, by one or several measures
    high, low        b-a  c-a  c-b          a column is sign * (high - low) - bound

Whoever needs differences asks for a block of columns. Sums over resamples are taken of the rows,
and subtracted then: the sum of a column is the difference of two sums, whatever the signs or the
weights of the queries are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval.significance.columns import are_ties, as_columns, differences
from rankeval.significance.declarations import Floats, Side, Unseen

Ints = NDArray[np.int64]

BLOCK = 2**18
"""Differences handed out at once (2 MB)."""

LARGE_BLOCK = 2**22
"""Differences handed at once to tests that resample (32 MB): each block is resampled anew."""

_IN_CACHE = 2**14
"""Differences made at once (128 KB): the numbers that they are made of stay in the cache."""


_ROUNDING = 16 * np.finfo(np.float64).eps
"""A sum of signed numbers is exact up to this share of their sizes: of a million it was .3 of the last bit."""


READ_AT_ONCE = 2**15
"""Sums of pairs read at once (256 KB): what is made of them stays in the cache."""

PairPlaces = Sequence[tuple[int, int]] | NDArray[np.int64]
"""Places of baseline and system in each pair."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences of systems as columns: an array of shape ``(n_queries, n_pairs)``, made when asked for."""

    # (n_scores, n_queries): The scores of a system by a measure in each row, or columns of
    # differences as they are.
    rows: Floats
    # (2, n_pairs): The rows of the baseline, low, and of the system, high, in each pair. None: the
    # rows are the columns.
    ends: Ints | None = None
    signs: Floats | None = None  # (n_pairs,): -1 for columns that are turned
    bounds: Floats | None = None  # (n_pairs,): What is taken off each column, after it was turned
    beside: Unseen | None = None  # The queries that nobody saw; `beyond` adds them
    # (n_unseen, n_pairs): The gains on them, once they are added. They are the last queries: all
    # scores are 0 there, and so many rows behind those of the scores are 1 on one of them each, and
    # 0 elsewhere.
    unseen: Floats | None = None
    # Sums of the rows over resamples, for whoever asks for the same ones (`signs.sums_of`).
    kept: dict[tuple[int, int], Floats] = field(default_factory=dict)

    @classmethod
    def of_systems(cls, scores: Floats, pairs: ArrayLike) -> Pairs:
        """Return the pairs of systems, those of a measure beside each other."""
        n, _, n_measures = scores.shape
        rows = np.ascontiguousarray(as_columns(scores.reshape(n, -1)).T)
        places = np.asarray(pairs, dtype=np.int64)
        measures = np.arange(n_measures)
        ends = [np.add.outer(measures, place * n_measures).ravel() for place in places.T]
        return cls(rows, np.stack(ends))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and of columns."""
        return len(self), len(self.rows) if self.ends is None else self.ends.shape[1]

    def __len__(self) -> int:
        return int(self.rows.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """Return all differences at once, as NumPy's functions ask for them."""
        del copy
        return np.asarray(self[:], dtype=dtype)

    def __getitem__(self, columns: slice) -> Floats:
        """Return some of the columns; ties are exactly 0."""
        return self.with_noise(columns)[0]

    def with_noise(self, columns: slice, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Return some of the columns, and the weighted sum of what was taken for a tie in each."""
        if self.ends is None:
            d = self.rows[columns].T
            return d, np.zeros(d.shape[1])
        low, high = self.ends[:, columns]
        found, lost = np.empty((len(high), len(self))), np.zeros(len(high))
        step = max(1, _IN_CACHE // len(self))
        for start in range(0, len(high), step):
            own = slice(start, start + step)
            d, first, second = found[own], self.rows[high[own]], self.rows[low[own]]
            np.subtract(first, second, out=d)
            lost[own] = _settle(d, first, second, weights)
            if self.signs is not None:
                d *= self.signs[columns][own, None]
            if self.unseen is not None:
                d[:, -len(self.unseen) :] += self.unseen[:, columns][:, own].T
            if self.bounds is not None:
                bounds, moved = self.bounds[columns][own, None], d.copy()
                d -= bounds
                lost[own] += _settle(d, moved, bounds, weights)
        return found.T, lost

    def blocks(self, size: int = BLOCK) -> Iterator[slice]:
        """Yield the columns in slices of about so many differences each."""
        n, m = self.shape
        ends = np.linspace(0, m, -(-m // max(2, size // n)) + 1).astype(np.int64)
        return map(slice, ends[:-1].tolist(), ends[1:].tolist())

    def part(self, columns: slice | Ints) -> Pairs:
        """Return some of the columns as pairs."""
        beside = self.beside and self.beside.part(columns)
        if self.ends is None:
            return Pairs(self.rows[columns], beside=beside)
        by_pair: dict[str, Any] = {}
        for name in ("ends", "signs", "bounds", "unseen"):
            array = getattr(self, name)
            by_pair[name] = None if array is None else array[..., columns]
        return replace(self, beside=beside, **by_pair)

    def turned(self, signs: Floats) -> Pairs:
        """Return the columns times 1 or -1 each."""
        if (signs == 1).all():
            return self
        if self.ends is None:
            return Pairs(self.rows * signs[:, None])
        return replace(
            self,
            signs=signs if self.signs is None else self.signs * signs,
            bounds=None if self.bounds is None else self.bounds * signs,
            unseen=None if self.unseen is None else self.unseen * signs,
        )

    def moved(self, bound: float) -> Pairs:
        """Return the columns less a number; those equal to it are exactly 0. Columns are moved once."""
        if self.ends is None:
            return Pairs(differences(self.rows, bound))
        assert self.bounds is None, "columns are moved once"
        return replace(self, bounds=np.full(self.shape[1], float(bound)))

    def beyond(self, bound: float, side: Side) -> Pairs:
        """Return the columns as a hypothesis of a claim sees them: less its bound, with what unseen queries lost."""
        moved = self.moved(bound)
        if self.beside is None:
            return moved
        loss = self.beside.loss
        gains = np.tile(-loss if side == "greater" else loss, (self.beside.count, 1))
        if self.ends is None:
            return Pairs(np.concatenate([moved.rows, gains.T - bound], axis=1))
        (n_rows, n), k = self.rows.shape, len(gains)
        rows = np.zeros((n_rows + k, n + k))
        rows[:n_rows, :n], rows[n_rows:, n:] = self.rows, np.eye(k)
        return replace(moved, rows=rows, beside=None, unseen=gains, kept={})

    def at(self, places: Ints) -> Pairs:
        """Return the columns of some places, with the rows that they are made of and no others."""
        part = self.part(places)
        if part.ends is None:
            return part
        used, places_of_ends = np.unique(part.ends, return_inverse=True)
        n_scores = len(self.rows) - (0 if self.unseen is None else len(self.unseen))
        if len(used) == n_scores:
            return part
        rows = self.rows[np.append(used, np.arange(n_scores, len(self.rows)))]
        return replace(part, rows=rows, ends=places_of_ends.reshape(2, -1), kept={})

    def sums(self, of_rows: Floats, columns: slice) -> Floats:
        """Return sums of some columns, made of sums of the rows and, in the last row but one, of the number 1."""
        if self.ends is None:
            return of_rows[:-2][columns].copy()
        ends = self.ends[:, columns].T.tolist()
        found = np.empty((len(ends), of_rows.shape[1]))
        for sums, (low, high) in zip(found, ends, strict=True):
            np.subtract(of_rows[high], of_rows[low], out=sums)
        if self.signs is not None:
            found *= self.signs[columns, None]
        if self.unseen is not None:
            found += self.unseen[:, columns].T @ of_rows[-2 - len(self.unseen) : -2]
        if self.bounds is not None:
            found -= self.bounds[columns, None] * of_rows[-2]
        return found

    def rows_and_ones(self, weights: Floats | None = None) -> Floats:
        """Return the rows times the weights of queries, then the weights, then ones, as `sums` needs their sums."""
        found = np.ones((len(self.rows) + 2, len(self)))
        if weights is None:
            found[:-2] = self.rows
        else:
            np.multiply(self.rows, weights, out=found[:-2])
            found[-2] = weights
        return found

    def blocks_of_sums(self, n_sums: int, *, backwards: bool = False) -> Iterator[slice]:
        """Yield the columns in slices of so few that so many sums of each stay in the cache."""
        m, width = self.shape[1], max(1, READ_AT_ONCE // n_sums)
        starts = range(0, m, width)
        for start in reversed(starts) if backwards else starts:
            yield slice(start, min(start + width, m))

    def centred(self, means: Floats) -> Pairs:
        """Return the columns less their means, for `sums`."""
        if self.ends is None:
            return Pairs(self.rows - means[:, None])
        return replace(self, bounds=means if self.bounds is None else self.bounds + means)

    def noise(self, lost: Floats, weights: Floats) -> Floats:
        """Return by how much `sums` may differ from sums of the columns themselves; 0 for plain columns."""
        if self.ends is None:
            return np.zeros(len(self.rows))
        low, high = np.array([np.abs(row) @ weights for row in self.rows])[self.ends]
        size = high + low
        if self.bounds is not None:
            size += np.abs(self.bounds) * weights.sum()
        if self.unseen is not None:
            size += weights[-len(self.unseen) :] @ np.abs(self.unseen)
        # Columns are 0 where scores are equal up to rounding, and the sums of the rows are not.
        return np.asarray(lost + _ROUNDING * size)

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Return the columns of parts with the same rows beside each other."""
        first = parts[0]
        if first.ends is None:
            return cls(np.concatenate([part.rows for part in parts]))

        def of_all(name: str, default: float = 0.0) -> Any:
            arrays = (getattr(part, name) for part in parts)
            full = [
                np.full(part.shape[1], default) if array is None else array
                for array, part in zip(arrays, parts, strict=True)
            ]
            return np.concatenate(full, axis=-1)

        unseen = None if first.unseen is None else of_all("unseen")
        signs, bounds = of_all("signs", 1.0), of_all("bounds")
        return cls(first.rows, of_all("ends"), signs, bounds, unseen=unseen)

    def summed(
        self, of_block: Callable[[Floats], tuple[Any, ...]], weights: Floats | None = None
    ) -> tuple[Any, ...]:
        """Return numbers of each column, found a block at a time."""
        found = []
        for columns in self.blocks():
            d, lost = self.with_noise(columns, weights)
            found.append((*of_block(d), *([] if weights is None else [lost])))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _settle(d: Floats, first: Floats, second: Floats, weights: Floats | None) -> Floats | float:
    """Make ties exactly 0, and return the weighted sum of their sizes in each row; 0 without weights."""
    ties = are_ties(d, first, second)
    lost = 0.0 if weights is None else np.abs(np.where(ties, d, 0.0)) @ weights
    np.copyto(d, 0.0, where=ties)
    return lost


def as_pairs(d: ArrayLike | Pairs) -> Pairs:
    """Check differences and return them as pairs; pairs were checked when they were made."""
    return d if isinstance(d, Pairs) else Pairs(as_columns(d).T)
