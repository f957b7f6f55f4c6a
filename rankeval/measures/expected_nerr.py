"""The mean of the NERR measures over the orders of tied rows.

A NERR value is gain per rank looked at: A / B with A = sum of W(i) g(i) and B = sum of W(i). The attention W(i) of rank
i is a patience that depends on the rank alone, times (1 - g) of every row above. So inside a group of tied rows it
depends on the rows above only by their number for each gain.

The mean of a quotient becomes an integral of means,

    mean of A / B = integral over t > 0 of the mean of A exp(-t B),

and the mean inside is found place by place, as in `chances` but with a state for each number of rows by gain:

    group   gains 1 1 0.5 0       states (n1, n0.5)   (0,0) (1,0) (2,0) (0,1) (1,1) (2,1)
    each state holds              plain = mean of exp(-t B)     gained = mean of A exp(-t B)     so far, for every t

Groups are independent: their exponentials multiply (see `_of_queries`). Over x = log t the integrand is analytic, and a
plain sum over steps of 0.28 is as exact as the arithmetic: the error of such a sum falls exponentially with 1 / step.

The trap is the left end, where t is small and the integrand falls too slowly. So mean(A) exp(-t b), for a b near B, is
subtracted from the integrand, and its integral mean(A) / b is added to the result. The rest falls like t^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import Groups, Judged
from rankeval.measures.chances import CELLS, compositions

_STEP = 0.28
_T = np.concatenate(([0.0], np.exp(np.arange(-21.0, 3.8, _STEP))))
"""Nodes of the integral: 0 for the mean of A itself, then up to a t where exp(-t B) vanishes, since B is at least 1."""

_MOST = 2**17
"""States times places of a group, beyond which orders are drawn."""

EXACT_TO = "some hundred tied rows of one grade above 0, and 30 of four"
"""The groups with an exact mean, in words for users."""


class _Sums(NamedTuple):
    """Means of exp(-t B) and of A exp(-t B), each of shape (n, n_nodes)."""

    plain: Floats
    gained: Floats


def write_expected(judged: Judged, gain: Floats, patience: Floats, value: Floats) -> NDArray[np.bool_]:
    """Write the mean over orders into ``value``, and return a mask of the queries that have too many states.

    Parameters
    ----------
    judged : Judged
        The chunk.
    gain : ndarray of shape (n_levels,)
        Gain of each label, in [0, 1].
    patience : ndarray of shape (depth,)
        Attention of each rank if nothing was found above it; 1 for the first rank.
    value : ndarray of shape (n_queries,)
        The values. Those of queries without tied rows stay.
    """
    groups = judged.groups.of(judged.groups.start - judged.offsets[judged.groups.query] < len(patience))
    too_many = np.zeros(judged.n_queries, dtype=bool)
    queries = np.unique(groups.query)
    step = max(1, min(CELLS // len(patience), 1024))
    for first in range(0, len(queries), step):
        some = queries[first : first + step]
        low, high = np.searchsorted(groups.query, (some[0], some[-1] + 1))
        value[some], too_many[some] = _of_queries(judged, groups.of(slice(low, high)), gain, patience, some)
    return too_many


def _of_queries(
    judged: Judged, groups: Groups, gain: Floats, patience: Floats, queries: Ints
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the means of some queries, and a mask of those with too many states."""
    begin, end = judged.offsets[queries], judged.offsets[queries + 1]
    row = begin[:, None] + np.arange(len(patience))
    beyond = row >= end[:, None]
    row[beyond] = 0
    gains = np.where(beyond, 0.0, gain[judged.code[row]])
    passes = np.ones((len(row), len(patience) + 1))
    np.cumprod(1 - gains, axis=1, out=passes[:, 1:])
    weight = patience * passes[:, :-1]
    centre = np.cumsum(weight, axis=1)[:, -1]
    # Rows outside of groups have a fixed weight: their part of B and of A is known. Mark groups by their ends.
    query = np.searchsorted(queries, groups.query)
    rank = groups.start - begin[query]
    size = np.minimum(groups.end - groups.start, len(patience) - rank)
    edges = np.zeros((len(row), len(patience) + 1), dtype=np.int64)
    edges[query, rank] += 1
    edges[query, rank + size] -= 1
    alone = np.where(np.cumsum(edges, axis=1)[:, :-1] > 0, 0.0, weight)
    plain = np.exp(-np.cumsum(alone, axis=1)[:, -1:] * _T)
    sums = _Sums(plain, plain * np.cumsum(alone * gains, axis=1)[:, -1:])
    too_many = np.zeros(len(queries), dtype=bool)
    by_group = _Sums(np.ones((len(query), len(_T))), np.zeros((len(query), len(_T))))
    for kinds, places, at in compositions(judged, groups, gain, size):
        states = int(np.prod([min(rows, places) + 1 for one, rows in kinds if one])) * places
        if states > _MOST:
            too_many[query[at]] = True
            continue
        step = max(1, CELLS * places // (states * len(_T)))
        for begins in range(0, len(at), step):
            some = at[begins : begins + step]
            attention = patience[rank[some, None] + np.arange(places)] * passes[query[some], rank[some], None]
            by_group.plain[some], by_group.gained[some] = _of_groups(kinds, attention)
    # Combine the groups of each query, first group first: B adds up, so exp(-t B) multiplies and A follows by product
    # rule. Groups of one number belong to different queries, so each turn is one vector operation.
    number = np.arange(len(query)) - np.searchsorted(query, query)
    for turn in range(int(number.max(initial=-1)) + 1):
        at = np.flatnonzero(number == turn)
        of, plain, gained = query[at], by_group.plain[at], by_group.gained[at]
        sums.gained[of] = sums.gained[of] * plain + sums.plain[of] * gained
        sums.plain[of] *= plain
    mean = sums.gained[:, :1]
    rest = sums.gained[:, 1:] - mean * np.exp(-_T[1:] * centre[:, None])
    return mean[:, 0] / centre + _STEP * (_T[1:] * rest).sum(axis=1), too_many


def _of_groups(kinds: tuple[tuple[float, int], ...], attention: Floats) -> _Sums:
    """Return the sums of groups of one composition, given the attention of each place if the group had no gain."""
    size = sum(rows for _, rows in kinds)
    found = [(one, rows) for one, rows in kinds if one]
    numbers = [min(rows, attention.shape[1]) + 1 for _, rows in found]
    # Axes of the tables: one for each gain (rows of it so far), then group, then node t.
    so_far = np.indices(numbers).reshape(len(found), *numbers, 1, 1)
    passed = np.prod([(1 - one) ** number for (one, _), number in zip(found, so_far, strict=True)], axis=0)
    shape = (*numbers, len(attention), len(_T))
    plain, gained = np.zeros(shape), np.zeros(shape)
    plain[(0,) * len(found)] = 1
    without = size - sum(rows for _, rows in found)
    for place in range(attention.shape[1]):
        weight = attention[:, place, None] * passed
        looked = np.exp(-weight * _T)
        plain *= looked
        gained *= looked
        # The next row has no gain with chance `left`. Else it has one of the gains, and the state moves along its axis.
        left = np.clip(without - (place - so_far.sum(axis=0)), 0, None) / (size - place)
        plain_next, gained_next = left * plain, left * gained
        for axis, (one, rows) in enumerate(found):
            here, there = (slice(None),) * axis + (slice(0, -1),), (slice(None),) * axis + (slice(1, None),)
            chance = (rows - so_far[axis][here]) / (size - place)
            plain_next[there] += chance * plain[here]
            gained_next[there] += chance * (gained[here] + weight[here] * one * plain[here])
        plain, gained = plain_next, gained_next
    axes = tuple(range(len(found)))
    return _Sums(plain.sum(axis=axes), gained.sum(axis=axes))
