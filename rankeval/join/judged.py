"""One chunk of queries in rank order with their judgments: all that a kernel sees.

A run and its judgments, and the chunk that they become. d3 and d5 have equal scores; d9 was never
judged; d7 was judged but not retrieved:

    query a     d1 9.0   d3 5.0   d5 5.0             judged   d1 = 2   d3 = 0   d5 = 1   d7 = 1
    query b     d9 4.0   d2 3.0                      judged   d2 = 1

    row           0    1    2  |  3    4             best first; rank: row - offsets[query] + 1
    document     d1   d3   d5  | d9   d2             (not kept)
    offsets       0               3         5        where each query begins, with the total behind
    levels      [ 0    1    2 ]                      the distinct labels, zero always among them
    code          2    0    1  |  0    1             a row's label: levels[code]
    judged        T    T    T  |  F    T             None if all rows have a judgment
    counts      [ 1    2    1 ]  [ 0    1    0 ]     judged documents per level, with d7
    groups      start 1, end 3, query a              tied rows of unlike labels: d3, d5
    columns     {"price": [ 9  4  7 | 5  8 ]}        numbers of the rows that measures read

"Relevant at level rel" is one comparison of small integers: ``code >= threshold(rel)``. Everything
about documents that were not retrieved comes from ``counts``: the number of relevant documents, and
the ideal order.

Several measures share intermediate results (hits, prefix sums, ideal gains): these are computed
once and kept in the chunk. Sharing made six measures twice as fast as six independent kernels.

The trap is tied rows. Under ``ties="expected"`` a value is the mean over all orders of the rows
with equal scores. A measure that is linear in the gains may give each tied row the mean gain of its
group: `hits` and `discounted` do that. Any other measure must not read the order of rows inside
``groups``: here they stand by label, lowest first. It has a formula of its own; or its orders are
enumerated, or drawn by a seed made of the query's id, and ``drawn`` keeps the standard error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval.join.by_rank import FEW_RANKS, ByRank, Table, discounted_gains, ideal_sums
from rankeval.join.flat import Floats, Ints, offsets_of, spread

if TYPE_CHECKING:
    from rankeval.join.aspects import AspectBlock

_Value = TypeVar("_Value")


class TiedGroups(NamedTuple):
    """Groups of two or more tied rows."""

    start: Ints  # the first row of each
    end: Ints  # the row after the last
    query: Ints

    def rows(self) -> tuple[Ints, Ints]:
        """Return the tied rows, and the number of each one's group."""
        return spread(self.start, self.end - self.start)

    def of(self, some: NDArray[np.bool_] | Ints | slice) -> TiedGroups:
        """Return some of the groups."""
        return TiedGroups(*(part[some] for part in self))

    def divided(self, stop: Ints) -> NDArray[np.bool_]:
        """Return a mask of the groups that a cut-off divides; ``stop``: each first row below it."""
        return (self.start < stop[self.query]) & (stop[self.query] < self.end)

    def averaged(self, values: Floats) -> Floats:
        """Return a value for each row of the chunk: for tied rows the mean of their group."""
        row, group = self.rows()
        mean = np.bincount(group, weights=values[row]) / (self.end - self.start)
        averaged = values.copy()
        averaged[row] = mean[group]
        return averaged


BELOW_ALL = -(2**53)
"""The level of unjudged rows, if measures must tell them from rows judged 0."""

NO_GROUPS = TiedGroups(*(np.empty(0, dtype=np.int64) for _ in range(3)))
"""No tied rows."""


def with_unlike_labels(ties: TiedGroups, code: NDArray[Any]) -> TiedGroups:
    """Return the tie groups whose rows differ in label: only there does the order matter."""
    if not len(ties.start):
        return ties
    labels, first = code[ties.rows()[0]], offsets_of(ties.end - ties.start)[:-1]
    unlike = np.maximum.reduceat(labels, first) != np.minimum.reduceat(labels, first)
    return ties.of(unlike)


class Relevant(NamedTuple):
    """The relevant rows, in rank order."""

    row: Ints
    query: Ints
    rank: Ints  # from 1
    hits: Ints  # relevant rows of the query down to this one


class Column:
    """A column of the rows of a chunk, in rank order, looked up by row: most measures ask for few.

    Parameters
    ----------
    at : callable
        Returns the values of some rows, given the query and the rank, from 0, of each. A table of
        ranks is that of the first ranks of all queries.
    offsets : ndarray of shape (n_queries + 1,)
        Where each query's rows begin.
    """

    def __init__(self, at: Callable[[Ints, Ints], Floats], offsets: Ints) -> None:
        self.at = at
        self.offsets = offsets

    @cached_property
    def values(self) -> Floats:
        """The values of all rows, an array of shape (n_rows,)."""
        rank, query = spread(np.zeros_like(self.offsets[:-1]), np.diff(self.offsets))
        return self.at(query, rank)

    @classmethod
    def of(cls, values: Floats, offsets: Ints) -> Column:
        """Return the column of these values."""
        return cls(lambda query, rank: values[offsets[query] + rank], offsets)


@dataclass(eq=False)
class Judged:
    """A chunk of queries, ranked and judged."""

    offsets: Ints  # (n_queries + 1,): Where each query's rows begin
    # (n_levels,): The distinct labels, ascending, zero among them. Labels below zero are kept and
    # gain nothing
    levels: NDArray[Any]
    # (n_rows,): What `code` returns, if it is at hand: None leaves it to be taken from ``by_rank``
    flat: NDArray[Any] | None
    counts: Ints  # (n_queries, n_levels): Judged documents of each label, retrieved or not
    groups: TiedGroups  # Tied rows of unlike labels whose order is open; empty if ties are broken
    judged: NDArray[np.bool_] | None = None  # (n_rows,): Rows with a judgment; None if all
    ties: TiedGroups = NO_GROUPS  # All tied rows whose order is open, also those of one label
    aspects: AspectBlock | None = None  # The judgments by aspect, if there are any
    # (n_queries,): The ids of the queries, which seed the drawing of orders.
    queries: NDArray[Any] | None = field(default=None, repr=False)
    # The codes once more, by rank, if the lists are many and of similar length.
    by_rank: ByRank | None = field(default=None, repr=False)
    columns: Mapping[str, Column] = field(default_factory=dict, repr=False)  # Columns of the rows
    # Queries whose last value is a mean over drawn orders of tied rows -> its standard error
    drawn: dict[int, float] = field(default_factory=dict, repr=False)
    _memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, compute: Callable[[], _Value]) -> _Value:
        """Compute a value the first time that it is asked for, and keep it under this key."""
        if key not in self._memo:
            self._memo[key] = compute()
        kept: _Value = self._memo[key]
        return kept

    def relabelled(self, code: NDArray[Any], ties: TiedGroups, **parts: Any) -> Judged:
        """Return a chunk of these codes and ties, without aspects, columns and what was computed.

        ``parts`` are other fields of the new chunk. All others are those of this one.
        """
        fresh: dict[str, Any] = {
            "aspects": None,
            "by_rank": None,
            "columns": {},
            "drawn": {},
            "_memo": {},
        }
        groups = with_unlike_labels(ties, code)
        return replace(self, flat=code, groups=groups, ties=ties, **fresh | parts)

    def kept(self, rows: NDArray[np.bool_]) -> Judged:
        """Return the chunk with some of its rows, given a mask of them; aspects are left behind."""
        before = offsets_of(rows)
        offsets = before[self.offsets]
        ties = TiedGroups(before[self.ties.start], before[self.ties.end], self.ties.query)
        columns = {
            name: Column.of(column.values[rows], offsets) for name, column in self.columns.items()
        }
        return self.relabelled(
            self.code[rows],
            ties.of(ties.end - ties.start > 1),
            offsets=offsets,
            judged=None if self.judged is None else self.judged[rows],
            columns=columns,
        )

    @property
    def has_open_ties(self) -> bool:
        """Whether a value may depend on the order of tied rows: by label, aspect or judgment."""
        by_label = self.judged is None and self.aspects is None
        return len((self.groups if by_label else self.ties).start) > 0

    @property
    def code(self) -> NDArray[Any]:
        """Each row's label in rank order, an index into ``levels``; that of 0 if unjudged."""
        if self.flat is None:
            assert self.by_rank is not None
            self.flat = self.by_rank.flat(np.diff(self.offsets))
        return self.flat

    def codes_at(self, row: Ints, query: Ints) -> NDArray[Any]:
        """Return the codes of some rows, given the query of each."""
        # A few rows need no list of all (bench_arrays A).
        if self.by_rank is None or 4 * len(row) > self.offsets[-1]:
            return self.code[row]
        codes: NDArray[Any] = self.by_rank.lists[query, row - self.offsets[query]]
        return codes

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    def seed(self, query: int) -> int:
        """Return a seed made of the query's id and the place among aspects with that id."""
        if self.queries is None:
            return _hashed(str(query))
        name, first = self.queries[query], query
        # The aspects of a query follow each other under its id.
        while first and self.queries[first - 1] == name:
            first -= 1
        return _hashed(f"{name}\n{query - first}")

    @property
    def n_retrieved(self) -> Ints:
        """Number of rows of each query."""
        return self.once("lengths", lambda: np.diff(self.offsets))

    def sums(self, query: Ints, values: Floats) -> Floats:
        """Return the sum of each query's values, added one after the other."""
        total = np.bincount(query, weights=values, minlength=self.n_queries)
        return total.astype(np.float64, copy=False)  # integers if there are no values

    def depth(self, cutoff: int | Ints | None) -> Ints:
        """Return the number of rows of each query within the cut-off."""
        return self.n_retrieved if cutoff is None else np.minimum(self.n_retrieved, cutoff)

    def threshold(self, rel: float) -> int:
        """Return the lowest code that counts as relevant at level ``rel``."""
        return int(np.searchsorted(self.levels, rel))

    def n_relevant(self, rel: float) -> Ints:
        """Return the number of judged documents of each query with a label of at least ``rel``."""
        first = self.threshold(rel)
        at_least = np.arange(len(self.levels)) >= first
        # A matrix product: NumPy sums short rows five times slower (bench_arrays D).
        return self.once(("n_relevant", first), lambda: self.counts @ at_least.astype(np.int64))

    def prefix(self, rel: float) -> Ints:
        """Return the number of relevant rows of the chunk before each row, and the total."""
        first = self.threshold(rel)
        return self.once(("prefix", first), lambda: offsets_of(self.code >= first))

    def hits(self, rel: float, cutoff: int | Ints | None = None) -> Floats:
        """Return the number of relevant rows within the cut-off, the mean over orders of ties."""
        stop = self.offsets[:-1] + self.depth(cutoff)
        number = self.hits_above(rel, stop, np.arange(self.n_queries)).astype(np.float64)
        if cutoff is not None and len(self.groups.start):
            divided = self.groups.divided(stop)
            start, end, query = self.groups.of(divided)
            before, within = (hits[divided] for hits in self.hits_of_groups(rel))
            # Of a group that the cut-off divides, the share of its rows above the cut-off counts.
            number[query] = before + (stop[query] - start) / (end - start) * within
        return number

    def hits_of_groups(self, rel: float) -> tuple[Ints, Ints]:
        """Return the relevant rows of its query above each group of tied rows, and those in it."""
        start, end, query = self.groups

        def count() -> tuple[Ints, Ints]:
            above = self.hits_above(rel, start, query)
            return above, self.hits_above(rel, end, query) - above

        return self.once(("hits of groups", self.threshold(rel)), count)

    def hits_by_rank(self, rel: float) -> Table | None:
        """Return the relevant rows above each rank, by rank and query; None without a table.

        The table has a row more than there are ranks: the last row counts the relevant rows of
        whole lists.
        """
        first, table = self.threshold(rel), self.by_rank
        if table is None or first == 0:  # the table is filled up with the lowest code
            return None
        return self.once(("hits by rank", first), lambda: table.hits(first))

    def hits_above(self, rel: float, row: Ints, query: Ints) -> Ints:
        """Return the number of relevant rows of its query above each row, given the row's query."""
        if (above := self.hits_by_rank(rel)) is None:
            return self.n_hits_before(rel, row) - self.first_hits(rel)[query]
        number: Ints = above[row - self.offsets[query], query].astype(np.int64)
        return number

    def n_hits_before(self, rel: float, row: Ints) -> Ints:
        """Return the relevant rows of the chunk before some rows: for few, as `prefix` for all."""
        return np.searchsorted(self.relevant_rows(rel), row)

    def first_hits(self, rel: float) -> Ints:
        """Return where each query begins among the relevant rows, and their number."""
        key = "first hits", self.threshold(rel)
        return self.once(key, lambda: self.n_hits_before(rel, self.offsets))

    def mean_within(
        self, groups: TiedGroups, before: NDArray[Any], cutoff: int | Ints | None
    ) -> Floats:
        """Return the number of counted rows within the cut-off, the mean over orders of ties.

        ``before`` has the number of counted rows of the chunk before each row, and the total.
        """
        begin = self.offsets[:-1]
        stop = begin + self.depth(cutoff)
        number: Floats = (before[stop] - before[begin]).astype(np.float64)
        if cutoff is not None and len(groups.start):
            start, end, query = groups.of(groups.divided(stop))
            # Of a group that the cut-off divides, the share of its rows above the cut-off counts.
            share = (stop[query] - start) / (end - start)
            above, within = before[start] - before[begin[query]], before[end] - before[start]
            number[query] = above + share * within
        return number

    def relevant_rows(self, rel: float) -> Ints:
        """Return the relevant rows, query by query in rank order."""
        first = self.threshold(rel)
        return self.once(("relevant rows", first), lambda: np.flatnonzero(self.code >= first))

    def relevant(self, rel: float) -> Relevant:
        """Return the relevant rows in rank order."""

        def find() -> Relevant:
            row, first = self.relevant_rows(rel), self.first_hits(rel)
            hits, query = spread(np.ones_like(first[:-1]), np.diff(first))
            return Relevant(row, query, row - self.offsets[query] + 1, hits)

        return self.once(("relevant", self.threshold(rel)), find)

    def discounted(self, gain: Floats, discount: Floats, cutoff: int | None = None) -> Floats:
        """Return the discounted gain of each query, added in rank order."""
        if cutoff is not None:
            cutoff = min(cutoff, len(discount))  # no list is longer
        if self.by_rank is not None and gain[0] == 0:
            total = discounted_gains(self.by_rank.code[:cutoff], gain, discount)
        elif cutoff and cutoff <= FEW_RANKS and cutoff * self.n_queries <= 2 * self.offsets[-1]:
            # Rank by rank: only the first rows of each query are read (bench_arrays C).
            rank = np.arange(cutoff)[:, None]
            code = self.code.take(self.offsets[:-1] + rank, mode="clip")
            code[rank >= self.n_retrieved] = len(gain)
            total = discounted_gains(code, np.append(gain, 0.0), discount)
        else:
            row, query, rank = self.rows_of(gain != 0)
            if cutoff is not None and cutoff < int(self.n_retrieved.max(initial=0)):
                within = rank < cutoff
                row, query, rank = row[within], query[within], rank[within]
            total = self.sums(query, gain[self.code[row]] * discount[rank])
        if len(self.groups.start):
            total += self._levelled(gain, discount, cutoff)
        return total

    def discounted_rows(
        self,
        values: Column | Floats,
        discount: Floats,
        cutoff: int | None = None,
        *,
        rel: float | None = None,
    ) -> Floats:
        """Return the discounted sum of a value of each row; tied rows take their group's mean."""
        column = values if isinstance(values, Column) else Column.of(values, self.offsets)

        def counted(query: Ints, rank: Ints) -> Floats:
            value = column.at(query, rank)
            if rel is not None:
                value[self.codes_at(begin[query] + rank, query) < self.threshold(rel)] = 0.0
            return value

        begin, depth = self.offsets[:-1], self.depth(cutoff)
        is_table = len(depth) > 0 and int(depth.min()) == cutoff and cutoff <= FEW_RANKS
        if is_table:
            rank, query = np.arange(int(depth[0]))[:, None], np.arange(self.n_queries)
        else:
            rank, query = spread(np.zeros_like(begin), depth)
        terms = counted(query, rank)
        # Rows of one label differ in their values, so all tied rows count here.
        reached = self.ties.of(self.ties.start < (begin + depth)[self.ties.query])
        if len(reached.start):
            tied, group = reached.rows()
            of = reached.query[group]
            place = tied - begin[of]
            value = counted(of, place)
            # Sorted: the same sum, to the last bit, for every order of the input.
            value = value[np.lexsort((value, group))]
            mean = np.bincount(group, weights=value) / (reached.end - reached.start)
            within = place < depth[of]
            of, place, group = of[within], place[within], group[within]
            terms[(place, of) if is_table else offsets_of(depth)[of] + place] = mean[group]
        terms *= discount[rank]
        return self.sums(np.broadcast_to(query, terms.shape).ravel(), terms.ravel())

    def rows_of(self, wanted: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
        """Return row, query and rank (from 0) of rows of some labels, given a mask of levels."""

        def find() -> tuple[Ints, Ints, Ints]:
            row = np.flatnonzero(wanted[self.code])
            sizes = np.diff(np.searchsorted(row, self.offsets))
            query = np.repeat(np.arange(self.n_queries), sizes)
            return row, query, row - self.offsets[query]

        return self.once(("rows of", wanted.tobytes()), find)

    def _levelled(self, gain: Floats, discount: Floats, cutoff: int | None) -> Floats:
        """Return the change of each query's sum if every tied row gains the mean of its group."""
        row, group = self.tied_rows()
        query = self.groups.query[group]
        gains = gain[self.codes_at(row, query)]
        mean = np.bincount(group, weights=gains) / (self.groups.end - self.groups.start)
        rank = row - self.offsets[query]
        if cutoff is not None:
            within = rank < cutoff
            gains, group, query, rank = gains[within], group[within], query[within], rank[within]
        return self.sums(query, (mean[group] - gains) * discount[rank])

    def tied_rows(self) -> tuple[Ints, Ints]:
        """Return the tied rows of unlike labels, and the group of each."""
        return self.once("tied", self.groups.rows)

    def ideal(self, gain: Floats, discount: Floats, cutoff: int | None = None) -> Floats:
        """Return the discounted gain of the best order of each query's judged documents."""
        key = "ideal", gain.tobytes(), discount[:64].tobytes(), cutoff
        return self.once(key, lambda: ideal_sums(self.counts, gain, discount, cutoff))

    @property
    def longest(self) -> int:
        """The length of the longest list of this chunk, retrieved or ideal."""
        return int(max(self.n_retrieved.max(initial=0), self.n_relevant(-np.inf).max(initial=0)))


def _hashed(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
