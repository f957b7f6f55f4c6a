"""One chunk of queries in rank order with their judgments: all that a kernel sees.

Rows lie flat, query after query, best first; ``offsets`` says where each query begins. A row's label is a code into
``levels``, the distinct labels in ascending order, so that "relevant at level rel" is one comparison of small
integers. What several measures need (hits, prefix sums, ideal gains) is computed once and kept: sharing made six
measures twice as fast as six kernels on their own.

Tied rows. Under ``ties="expected"`` a value is the mean over all orders of the rows with equal scores. For whatever
is linear in the gains, that is the same as giving each tied row the mean gain of its group, which is done here, in
`hits` and `discounted`. Measures that are not linear bring a formula of their own and read ``groups``; where there is
none, orders are gone through, or drawn by the ids in ``queries``, and ``drawn`` has the error of their mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints, spread

if TYPE_CHECKING:
    from rankeval.join.aspects import AspectBlock

_FEW_RANKS = 64
"""Up to here a table of rank by query is quicker than a list of rows."""


class Groups(NamedTuple):
    """Groups of two or more tied rows whose labels differ: first row, row after the last, and query of each."""

    start: Ints
    end: Ints
    query: Ints

    def rows(self) -> tuple[Ints, Ints]:
        """Return the tied rows, and the number of each one's group."""
        return spread(self.start, self.end - self.start)


BELOW_ALL = -(2**53)
"""The level of unjudged rows where they are kept apart from those judged 0."""

NO_GROUPS = Groups(*(np.empty(0, dtype=np.int64) for _ in range(3)))
"""No tied rows."""


def with_unlike_labels(ties: Groups, code: NDArray[Any]) -> Groups:
    """Return the tie groups in which the order matters: those whose rows differ in label."""
    if not len(ties.start):
        return ties
    size = ties.end - ties.start
    first = np.cumsum(size) - size
    labels = code[np.arange(int(size.sum())) + np.repeat(ties.start - first, size)]
    unlike = np.maximum.reduceat(labels, first) != np.minimum.reduceat(labels, first)
    return Groups(*(part[unlike] for part in ties))


class Relevant(NamedTuple):
    """The relevant rows: row, query, rank (from 1) and number of relevant rows up to and with it, in its query."""

    row: Ints
    query: Ints
    rank: Ints
    hits: Ints


@dataclass(eq=False)
class Judged:
    """A chunk of queries, ranked and judged.

    Parameters
    ----------
    offsets : ndarray of shape (n_queries + 1,)
        Where each query's rows begin.
    levels : ndarray of shape (n_levels,)
        The distinct labels, ascending, zero among them; labels below zero are kept, and gain nothing.
    code : ndarray of shape (n_rows,)
        The label of each row in rank order, as an index into ``levels``; unjudged rows have the code of zero.
    counts : ndarray of shape (n_queries, n_levels)
        How many judged documents of each label a query has, retrieved or not.
    groups : Groups
        Tied rows whose order is open; empty where ties are broken.
    judged : ndarray of bool of shape (n_rows,), optional
        Which rows have a judgment; None when all have.
    ties : Groups
        All tied rows whose order is open, those of one label included.
    aspects : AspectBlock, optional
        The judgments by aspect, where there are such.
    queries : ndarray of shape (n_queries,), optional
        Their ids, by which draws are seeded.
    drawn : dict of int to float
        The queries whose last value is a mean over drawn orders of tied rows, with the standard error of that mean.
    """

    offsets: Ints
    levels: NDArray[Any]
    code: NDArray[Any]
    counts: Ints
    groups: Groups
    judged: NDArray[np.bool_] | None = None
    ties: Groups = NO_GROUPS
    aspects: AspectBlock | None = None
    queries: NDArray[Any] | None = field(default=None, repr=False)
    drawn: dict[int, float] = field(default_factory=dict, repr=False)
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what was computed for this chunk under a key, by whichever measure asked first."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    @property
    def has_open_ties(self) -> bool:
        """Whether a value may depend on the order of tied rows; rows of one label differ by aspect, or unjudged."""
        return bool(len(self.groups.start)) or (
            bool(len(self.ties.start)) and (self.judged is not None or self.aspects is not None)
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    def seed(self, query: int) -> int:
        """Return a number that depends on the text of a query's id alone, and on which one of equal ids it is."""
        if self.queries is None:
            return _hashed(str(query))
        name, first = self.queries[query], query
        while first and self.queries[first - 1] == name:  # the aspects of a query stand together under its id
            first -= 1
        return _hashed(f"{name}\n{query - first}")

    @property
    def n_retrieved(self) -> Ints:
        """Number of rows of each query."""
        lengths: Ints = self.once("lengths", lambda: np.diff(self.offsets))
        return lengths

    def sums(self, query: Ints, values: Floats) -> Floats:
        """Return the sum of the values of each query, added up one after the other."""
        # NumPy gives integers for no values at all.
        total: Floats = np.bincount(query, weights=values, minlength=self.n_queries).astype(np.float64, copy=False)
        return total

    def depth(self, cutoff: int | Ints | None) -> Ints:
        """Return how many rows of each query stand within the cut-off."""
        return self.n_retrieved if cutoff is None else np.minimum(self.n_retrieved, cutoff)

    def threshold(self, rel: float) -> int:
        """Return the lowest code that counts as relevant at level ``rel``."""
        return int(np.searchsorted(self.levels, rel))

    def n_relevant(self, rel: float) -> Ints:
        """Return the number of judged documents of each query with a label of at least ``rel``."""
        first = self.threshold(rel)
        at_least = np.arange(len(self.levels)) >= first
        # A product: NumPy sums short rows five times slower.
        found: Ints = self.once(("n_relevant", first), lambda: self.counts @ at_least.astype(np.int64))
        return found

    def prefix(self, rel: float) -> NDArray[np.int32]:
        """Return the number of relevant rows before each row of the chunk, with the total behind."""
        first = self.threshold(rel)

        def add_up() -> NDArray[np.int32]:
            sums = np.empty(len(self.code) + 1, dtype=np.int32)
            sums[0] = 0
            np.cumsum(self.code >= first, out=sums[1:])
            return sums

        sums: NDArray[np.int32] = self.once(("prefix", first), add_up)
        return sums

    def hits(self, rel: float, cutoff: int | Ints | None = None) -> Floats:
        """Return the number of relevant rows within the cut-off; its mean over orders where rows are tied.

        Parameters
        ----------
        rel : float
            Lowest relevant label.
        cutoff : int or ndarray of shape (n_queries,), optional
            Deepest rank that counts.

        Returns
        -------
        ndarray of shape (n_queries,)
            Counts, fractional where the cut-off falls inside a group of tied rows.
        """
        prefix = self.prefix(rel)
        begin = self.offsets[:-1]
        stop = begin + self.depth(cutoff)
        found: Floats = (prefix[stop] - prefix[begin]).astype(np.float64)
        if cutoff is not None and len(self.groups.start):
            start, end, query = self.groups
            crossed = (start < stop[query]) & (stop[query] < end)
            start, end, query = start[crossed], end[crossed], query[crossed]
            share = (stop[query] - start) / (end - start)
            found[query] = prefix[start] - prefix[begin[query]] + share * (prefix[end] - prefix[start])
        return found

    def relevant(self, rel: float) -> Relevant:
        """Return the relevant rows in rank order."""
        first = self.threshold(rel)

        def find() -> Relevant:
            row = np.flatnonzero(self.code >= first)
            begin = self.offsets[:-1]
            before = self.prefix(rel)[self.offsets].astype(np.int64)
            per_query = np.diff(before)
            query = np.repeat(np.arange(self.n_queries), per_query)
            rank = row - np.repeat(begin - 1, per_query)
            hits = np.arange(1, len(row) + 1) - np.repeat(before[:-1], per_query)
            return Relevant(row, query, rank, hits)

        found: Relevant = self.once(("relevant", first), find)
        return found

    def discounted(self, gain: Floats, discount: Floats, cutoff: int | None = None) -> Floats:
        """Return the discounted gain of each query, added up in rank order.

        Parameters
        ----------
        gain : ndarray of shape (n_levels,)
            Gain of each label.
        discount : ndarray of shape (at least the longest list or the cut-off,)
            Factor of each rank.
        cutoff : int, optional
            Deepest rank that counts.

        Returns
        -------
        ndarray of shape (n_queries,)
            Added up one after the other, as the ideal is, so that a perfect ranking is exactly the ideal one.
        """
        deepest = int(self.n_retrieved.max(initial=0))
        if cutoff is not None:
            cutoff = min(cutoff, len(discount))  # beyond those of the longest list there is nothing to discount
        if cutoff is not None and cutoff <= _FEW_RANKS and cutoff * self.n_queries <= 2 * len(self.code):
            total = self._discounted_head(gain, discount, cutoff)
        else:
            row, query, rank = self._gaining(gain)
            if cutoff is not None and cutoff < deepest:
                within = rank < cutoff
                row, query, rank = row[within], query[within], rank[within]
            total = self.sums(query, gain[self.code[row]] * discount[rank])
        if len(self.groups.start):
            total += self._levelled(gain, discount, cutoff)
        return total

    def _gaining(self, gain: Floats) -> tuple[Ints, Ints, Ints]:
        """Return row, query and rank (from 0) of the rows that have a gain."""

        def find() -> tuple[Ints, Ints, Ints]:
            row = np.flatnonzero((gain != 0)[self.code])
            size = np.diff(np.searchsorted(row, self.offsets))
            query = np.repeat(np.arange(self.n_queries), size)
            return row, query, row - np.repeat(self.offsets[:-1], size)

        found: tuple[Ints, Ints, Ints] = self.once(("gaining", (gain != 0).tobytes()), find)
        return found

    def _discounted_head(self, gain: Floats, discount: Floats, cutoff: int) -> Floats:
        """Add up rank by rank: only the first rows of each query are read."""
        rank = np.arange(cutoff)[:, None]
        row = self.offsets[:-1] + rank
        short = None if self.n_retrieved.min(initial=cutoff) >= cutoff else rank >= self.n_retrieved
        if short is not None:
            row[short] = 0
        gains = gain.take(self.code.take(row))
        if short is not None:
            gains[short] = 0
        gains *= discount[:cutoff, None]
        return _add_rank_by_rank(gains)

    def _levelled(self, gain: Floats, discount: Floats, cutoff: int | None) -> Floats:
        """Return what it adds to each query that a tied row gains the mean of its group."""
        row, group = self.tied_rows()
        gains = gain[self.code[row]]
        mean = np.bincount(group, weights=gains) / (self.groups.end - self.groups.start)
        query = self.groups.query[group]
        rank = row - self.offsets[query]
        if cutoff is not None:
            within = rank < cutoff
            gains, group, query, rank = gains[within], group[within], query[within], rank[within]
        return self.sums(query, (mean[group] - gains) * discount[rank])

    def tied_rows(self) -> tuple[Ints, Ints]:
        """Return the rows of the tie groups of unlike labels, and the group of each."""

        def spread() -> tuple[Ints, Ints]:
            size = self.groups.end - self.groups.start
            group = np.repeat(np.arange(len(size)), size)
            first = np.cumsum(size) - size
            return np.arange(int(size.sum())) - first[group] + self.groups.start[group], group

        rows: tuple[Ints, Ints] = self.once("tied", spread)
        return rows

    def ideal(self, gain: Floats, discount: Floats, cutoff: int | None = None) -> Floats:
        """Return the discounted gain of the best order of each query's judged documents.

        Parameters
        ----------
        gain : ndarray of shape (n_levels,)
            Gain of each label; the best order is by gain, whatever the order of the labels.
        discount : ndarray of shape (at least the longest list or the cut-off,)
            Factor of each rank.
        cutoff : int, optional
            Deepest rank that counts.
        """

        def add_up() -> Floats:
            best_first = np.argsort(-gain, kind="stable")
            best_first = best_first[gain[best_first] > 0]
            upto = np.cumsum(self.counts[:, best_first], axis=1)
            if cutoff is not None and cutoff <= _FEW_RANKS:
                # Which label stands at a rank: as many places down as labels are used up before it.
                place = np.zeros((cutoff, self.n_queries), dtype=np.uint8 if len(best_first) < 256 else np.int64)
                for used_up in np.minimum(upto, cutoff).astype(np.int16).T:
                    place += used_up <= np.arange(cutoff, dtype=np.int16)[:, None]
                gains = np.append(gain[best_first], 0.0).take(place)
                gains *= discount[:cutoff, None]
                return _add_rank_by_rank(gains)
            if cutoff is not None:
                upto = np.minimum(upto, cutoff)
            size = np.diff(upto, axis=1, prepend=0)
            per_query = size.sum(axis=1)
            gains = np.repeat(np.broadcast_to(gain[best_first], size.shape).ravel(), size.ravel())
            query = np.repeat(np.arange(self.n_queries), per_query)
            rank = np.arange(len(gains)) - np.repeat(np.cumsum(per_query) - per_query, per_query)
            return self.sums(query, gains * discount[rank])

        total: Floats = self.once(("ideal", gain.tobytes(), discount[:64].tobytes(), cutoff), add_up)
        return total

    @property
    def longest(self) -> int:
        """The greatest rank that any list of this chunk can have, retrieved or ideal."""
        return int(max(self.n_retrieved.max(initial=0), self.n_relevant(-np.inf).max(initial=0)))


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _add_rank_by_rank(gains: Floats) -> Floats:
    """Add up the rows of a table of rank by query one after the other, which NumPy's own sum does not promise."""
    total = np.zeros(gains.shape[1])
    for row in gains:
        total += row
    return total
