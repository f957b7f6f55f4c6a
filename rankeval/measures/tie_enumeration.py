"""Average a measure over the orders of tied rows: over all distinct orders, or a sample of them.

Most measures have a formula for this mean. This module serves the other ones.

A measure cannot tell rows of one kind apart: they have the same label, and all or none of them are
judged. So only the arrangements of kinds within each group of tied rows are scored, each weighted
by its chance. Rows below the cut-off do not matter, so arrangements end there:

    scores      9   5   5   5   5   2   2        cut-off 3: the places that matter are ...|....
    labels      1   0   0   1   0   2   0        arrangements 100, 101, 110, chances 1/2, 1/4, 1/4

Every arrangement becomes a query of a new chunk, so that one call of the kernel scores thousands of
them:

    kinds       2   0   0                        kind = 2 * code, plus 1 if judged (if known)
                2   0   2                        _Orders.kinds: one arrangement a row
                2   2   0                        -> Judged with three queries of three rows

A query is enumerated, which is exact, if it has up to `ALWAYS` rows in groups of unlike kinds, or
few enough arrangements. For other queries `DRAWS` orders are drawn, and the standard error of their
mean is noted.

The trap: the draws of a query depend on its id alone. With one seed for all queries, those of one
pattern would get the same draws and the same error, which never averages out.

Arrangements are those down to the last place that matters. 30 tied rows, 5 of them relevant, have
142,506 arrangements; the first ten of their places have only 638. Those are not equally likely, so
each comes with its chance:

    counts (2, 1): rows a a b      places 2     kinds  a a   a b   b a     chance  1/3  1/3  1/3
    counts (3, 1): rows a a a b    places 2     kinds  a a   a b   b a     chance  1/2  1/4  1/4
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from math import comb, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import NO_GROUPS, Column, Judged, with_unlike_labels

Kinds = NDArray[np.uint32]

ALWAYS = 8
"""Up to this number of tied rows, all orders of a query are scored: at most 40,320."""

FEW = 1000
"""With more tied rows, up to this number of arrangements is scored, whatever the list's length."""

CELLS = 2**18
"""Short lists may have more arrangements than `FEW`: this number of rows, all together."""

DRAWS = 400
"""Orders drawn for any other query. Every second one reverses the last, to err the other way."""

EXACT_TO = f"{ALWAYS} tied rows or {FEW:,} distinct orders of them"
"""The queries that are enumerated, in words for users."""

_BATCH = 2**19
"""Rows, or counts of labels, in one call of a kernel: a bound on memory."""


def number_of_arrangements(counts: tuple[int, ...], places: int, most: int) -> int:
    """Return the number of ways to fill the first places, or any number above ``most``.

    ``counts`` has the number of rows of each kind, the greatest first.
    """
    # First a cheap lower bound, all other kinds taken as one: large groups end here.
    others = sum(counts[1:])
    at_least = 0
    for number in range(max(0, places - counts[0]), min(others, places) + 1):
        at_least += _choose(places, number, most)
        if at_least > most:
            return at_least
    # fillings[n]: ways to fill n places with the kinds so far
    fillings = [1] * (min(counts[0], places) + 1)
    for count in counts[1:]:
        longest = min(places, len(fillings) - 1 + count)
        fillings = [_fillings(length, count, fillings) for length in range(longest + 1)]
        if max(fillings) > most:  # each of them can be continued to all places
            return max(fillings)
    return fillings[places]


def _fillings(length: int, count: int, fillings: list[int]) -> int:
    """Return the ways to fill ``length`` places with the kinds so far and a new one."""
    own = range(max(0, length - len(fillings) + 1), min(count, length) + 1)
    return sum(comb(length, number) * fillings[length - number] for number in own)


def _choose(n: int, k: int, most: int) -> int:
    k = min(k, n - k)
    number = 1
    for factor in range(1, k + 1):
        number = number * (n - k + factor) // factor
        if number > most:
            break
    return number


@lru_cache(maxsize=16)
def arrangements(counts: tuple[int, ...], places: int) -> tuple[Kinds, Floats]:
    """Return all distinct ways to fill the first places of a group, (n, places), and chances."""
    # A tree, grown place by place: a branch for each kind that has rows left. `steps` keeps each
    # branch's parent.
    left, chance, size = np.array([counts]), np.ones(1), sum(counts)
    steps = []
    for place in range(places):
        came_from, kind = np.nonzero(left)
        chance = chance[came_from] * left[came_from, kind] / (size - place)
        left = left[came_from]
        left[np.arange(len(kind)), kind] -= 1
        steps.append((came_from, kind))
    # Walk back from the leaves to the root and read the kinds.
    kinds = np.empty((len(chance), places), dtype=np.uint32)
    at = np.arange(len(chance))
    for place, (came_from, kind) in reversed(list(enumerate(steps))):
        kinds[:, place] = kind[at]
        at = came_from[at]
    return kinds, chance


class _Orders(NamedTuple):
    """Some orders of one query, a row of kinds each.

    ``place`` is the query's place among those wanted. ``chance`` is None if the orders were drawn.
    ``last`` says whether these are the query's last orders.
    """

    place: int
    kinds: Ints
    chance: Floats | None
    last: bool


class _Group(NamedTuple):
    """A group of tied rows: its rows that matter, its kinds, and the number of rows of each."""

    rows: slice
    kinds: Ints
    counts: tuple[int, ...]

    @property
    def places(self) -> int:
        """Number of its places that matter."""
        return int(self.rows.stop - self.rows.start)


def over_orders(
    kernel: Callable[..., Floats],
    judged: Judged,
    parameters: Mapping[str, Any],
    *,
    rel: float | None = None,
    columns: Iterable[str] = (),
) -> Floats:
    """Return the mean of a kernel's values over the orders of tied rows.

    Orders with the value 0/0 count as 0, unless all have it: then the mean is 0/0. Rows beyond a
    parameter ``cutoff`` or ``depth`` are assumed not to matter. Give ``rel`` if the kernel sees
    only which rows are relevant: there are then two kinds only. If orders are drawn,
    ``judged.drawn`` gets the standard error of the mean.
    """
    if rel is not None:
        judged = _as_hits(judged, rel)
    judged = replace(judged, columns={name: judged.columns[name] for name in columns})
    kinds = _Kinds.of(judged)
    queries = np.arange(judged.n_queries)
    value, visible = _as_they_stand(kernel, judged, parameters, queries)
    parts: dict[int, list[tuple[Floats, Floats | None]]] = {}
    all_orders = _all_orders(judged, kinds.row, queries, visible)
    for batch in _batches(all_orders, len(judged.levels)):
        scored = kernel(_spread(judged, kinds, queries, batch), **parameters)
        ends = np.cumsum([len(orders.kinds) for orders in batch])
        for orders, values in zip(batch, np.split(scored, ends[:-1]), strict=True):
            parts.setdefault(orders.place, []).append((values, orders.chance))
            if orders.last:
                mean, error = _mean(parts.pop(orders.place))
                value[orders.place] = mean
                if orders.chance is None:
                    judged.drawn[orders.place] = error
    return value


def _as_hits(judged: Judged, rel: float) -> Judged:
    first, n_levels = judged.threshold(rel), len(judged.levels)
    label = np.where(np.arange(n_levels) >= first, min(first, n_levels - 1), 0)
    return replace(
        judged, flat=label[judged.code], by_rank=None, judged=None, groups=NO_GROUPS, _memo={}
    )


def _as_they_stand(
    kernel: Callable[..., Floats], judged: Judged, parameters: Mapping[str, Any], queries: Ints
) -> tuple[Floats, Ints]:
    """Return the values of lists in their current order, and how many of their rows matter."""
    whole = judged.n_retrieved[queries]
    value = kernel(_cut(judged, queries, whole), **parameters)
    cutoff = parameters.get("cutoff", parameters.get("depth"))
    if cutoff is None:
        return value, whole
    head = np.minimum(whole, cutoff)
    of_head = kernel(_cut(judged, queries, head), **parameters)
    # A measure may use rows below its cut-off, for example to divide by the length of the list:
    # then all rows matter.
    is_enough = np.isclose(of_head, value, rtol=1e-9, atol=1e-12, equal_nan=True)
    return value, np.where(is_enough, head, whole)


def _cut(judged: Judged, queries: Ints, length: Ints) -> Judged:
    """Return the first rows of some queries, with ties broken by the current order."""
    offsets = np.concatenate(([0], np.cumsum(length)))
    row = np.arange(offsets[-1]) + np.repeat(judged.offsets[queries] - offsets[:-1], length)
    columns = {
        name: Column.of(column.values[row], offsets) for name, column in judged.columns.items()
    }
    return Judged(
        offsets=offsets,
        levels=judged.levels,
        flat=judged.code[row],
        counts=judged.counts[queries],
        groups=NO_GROUPS,
        judged=None if judged.judged is None else judged.judged[row],
        columns=columns,
    )


class _Kinds(NamedTuple):
    """The kind of each row; of each kind, its number without columns and its columns' values."""

    row: Ints
    plain: Ints
    columns: Mapping[str, Floats]

    @classmethod
    def of(cls, judged: Judged) -> _Kinds:
        # The lowest bit says whether the row is judged, the bits above it are the code: `_spread`
        # takes them apart.
        kind = judged.code.astype(np.int64) * 2
        if judged.judged is not None:
            kind += judged.judged
        if not judged.columns:
            return cls(kind, np.arange(2 * len(judged.levels)), {})
        table = np.column_stack([kind, *(column.values for column in judged.columns.values())])
        values, row = np.unique(table, axis=0, return_inverse=True)
        columns = dict(zip(judged.columns, values.T[1:], strict=True))
        return cls(row.reshape(-1), values[:, 0].astype(np.int64), columns)


def _all_orders(judged: Judged, kind: Ints, queries: Ints, visible: Ints) -> Iterator[_Orders]:
    """Yield the orders of each query in which tied rows differ in kind."""
    place = np.full(judged.n_queries, -1)
    place[queries] = np.arange(len(queries))
    begin, upto = judged.offsets[:-1], judged.offsets[:-1].copy()
    upto[queries] += visible
    ties = with_unlike_labels(judged.ties, kind)
    start, end, query = ties.of(ties.start < upto[ties.query])
    bounds = np.append(np.flatnonzero(np.diff(query, prepend=-1)), len(query))
    for low, high in pairwise(bounds.tolist()):
        number = int(query[low])
        top, bottom = int(begin[number]), int(upto[number])
        groups = []
        for group in range(low, high):
            kinds, counts = np.unique(kind[start[group] : end[group]], return_counts=True)
            rows = slice(int(start[group]) - top, min(int(end[group]), bottom) - top)
            groups.append(_Group(rows, kinds, tuple(counts.tolist())))
        listed, seed = kind[top:bottom], partial(judged.seed, number)
        yield from _orders(int(place[number]), listed, groups, seed, len(judged.levels))


def _orders(
    place: int, listed: Ints, groups: list[_Group], seed: Callable[[], int], n_levels: int
) -> Iterator[_Orders]:
    # Blocks are even, because orders are drawn in pairs.
    step = 2 * max(1, _BATCH // (2 * max(len(listed), n_levels)))
    most = max(FEW, CELLS // len(listed))
    number = 1
    if sum(sum(group.counts) for group in groups) > ALWAYS:
        for group in groups:
            counts = tuple(sorted(group.counts, reverse=True))
            number *= number_of_arrangements(counts, group.places, most)
            if number > most:
                yield from _drawn(place, listed, groups, seed(), step)
                return
    # Groups are independent: number i of all orders takes from each group the arrangement that
    # unravel_index names.
    choices = [arrangements(group.counts, group.places) for group in groups]
    sizes = tuple(len(chance) for _, chance in choices)
    number = prod(sizes)
    for first in range(0, number, step):
        last = min(first + step, number)
        picks = np.unravel_index(np.arange(first, last), sizes)
        filled, chances = [], []
        for group, (kinds, chance), pick in zip(groups, choices, picks, strict=True):
            filled.append(group.kinds[kinds[pick]])
            chances.append(chance[pick])
        orders = _filled(listed, groups, filled)
        yield _Orders(place, orders, np.prod(chances, axis=0), last == number)


def _drawn(
    place: int, listed: Ints, groups: list[_Group], seed: int, step: int
) -> Iterator[_Orders]:
    # A generator for each group: its draws then do not depend on the other groups, nor on the size
    # of a block.
    generators = [np.random.default_rng([seed, group]) for group in range(len(groups))]
    for first in range(0, DRAWS, step):
        last = min(first + step, DRAWS)
        filled = []
        for group, rng in zip(groups, generators, strict=True):
            rows = np.repeat(group.kinds, group.counts)
            once = rng.permuted(np.tile(rows, ((last - first) // 2, 1)), axis=1)
            both = np.stack((once, once[:, ::-1]), axis=1).reshape(-1, len(rows))
            filled.append(both[:, : group.places])
        yield _Orders(place, _filled(listed, groups, filled), None, last == DRAWS)


def _filled(listed: Ints, groups: list[_Group], filled: list[Ints]) -> Ints:
    orders = np.tile(listed, (len(filled[0]), 1))
    for group, kinds in zip(groups, filled, strict=True):
        orders[:, group.rows] = kinds
    return orders


def _batches(orders: Iterator[_Orders], n_levels: int) -> Iterator[list[_Orders]]:
    # An order costs its rows, or the counts of its labels if these are more.
    waiting: list[_Orders] = []
    rows = 0
    for some in orders:
        waiting.append(some)
        rows += len(some.kinds) * max(some.kinds.shape[1], n_levels)
        if rows >= _BATCH:
            yield waiting
            waiting, rows = [], 0
    if waiting:
        yield waiting


def _spread(judged: Judged, kinds: _Kinds, queries: Ints, batch: list[_Orders]) -> Judged:
    size = [len(orders.kinds) for orders in batch]
    length = np.repeat([orders.kinds.shape[1] for orders in batch], size)
    listed = np.concatenate([orders.kinds.ravel() for orders in batch])
    kind = kinds.plain[listed]
    offsets = np.concatenate(([0], np.cumsum(length)))
    query = queries[np.repeat([orders.place for orders in batch], size)]
    columns = {name: Column.of(column[listed], offsets) for name, column in kinds.columns.items()}
    return Judged(
        offsets=offsets,
        levels=judged.levels,
        flat=kind // 2,
        counts=judged.counts[query],
        groups=NO_GROUPS,
        judged=None if judged.judged is None else kind % 2 == 1,
        columns=columns,
    )


def _mean(parts: list[tuple[Floats, Floats | None]]) -> tuple[float, float]:
    values = np.concatenate([values for values, _ in parts])
    if np.isnan(values).all():
        return np.nan, 0.0
    values = np.nan_to_num(values)
    chances = [chance for _, chance in parts if chance is not None]
    if chances:
        return float(np.average(values, weights=np.concatenate(chances))), 0.0
    # The two orders of a pair are dependent, so the standard error is that of the means of pairs.
    pairs = values.reshape(-1, 2).mean(axis=1)
    return float(pairs.mean()), float(pairs.std(ddof=1) / np.sqrt(len(pairs)))
