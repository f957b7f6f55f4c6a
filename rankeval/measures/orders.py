"""The mean of a measure over the orders of tied rows, where no formula gives it.

The orders of a query's tied rows are the arrangements of their labels within each group of equal scores, all equally
likely. Up to `EXACT` of them are gone through, which gives the mean exactly; of more, `SAMPLES` are drawn from a fixed
seed, so that the value is always the same, whatever the order of the rows and whichever queries are scored with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.judged import NO_GROUPS, Ints, Judged

Floats = NDArray[np.float64]

EXACT = 1000
"""Up to so many orders of a query's tied rows are gone through one by one."""

SAMPLES = 400
"""So many orders are drawn where there are more."""

_BATCH = 2**19
"""Rows that are scored at once."""


def over_orders(kernel: Callable[..., Floats], judged: Judged, parameters: Mapping[str, Any]) -> Floats:
    """Return the mean of a kernel's values over the orders of tied rows.

    Parameters
    ----------
    kernel : callable
        The measure for rankings without ties.
    judged : Judged
        A chunk, tied rows open.
    parameters : mapping
        The kernel's parameters; rows beyond a ``cutoff`` are taken to have no say.

    Returns
    -------
    ndarray of shape (n_queries,)
        An order in which the value is 0/0 counts as 0, unless it is so in all of them.
    """
    value = kernel(replace(judged, groups=NO_GROUPS, ties=NO_GROUPS, _memo={}), **parameters)
    kind = judged.code.astype(np.int64) * 2
    if judged.judged is not None:
        kind += judged.judged
    waiting: list[tuple[int, Ints]] = []
    rows = 0
    for query, groups in _open_groups(judged, kind, parameters.get("cutoff")):
        orders, sampled = _orders(kind, judged.offsets[query : query + 2].tolist(), groups)
        if sampled:
            judged.sampled.add(query)
        waiting.append((query, orders))
        rows += orders.size
        if rows > _BATCH:
            _score(kernel, judged, parameters, waiting, value)
            waiting, rows = [], 0
    if waiting:
        _score(kernel, judged, parameters, waiting, value)
    return value


def _open_groups(judged: Judged, kind: Ints, cutoff: int | None) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield each query with tied rows of unlike kinds, and where in its list those groups begin and end."""
    current = -1
    groups: list[tuple[int, int]] = []
    for start, end, query in zip(*(part.tolist() for part in judged.ties), strict=True):
        begin = int(judged.offsets[query])
        if cutoff is not None and start - begin >= cutoff:
            continue
        inside = kind[start:end]
        if inside.min() == inside.max():
            continue
        if query != current and groups:
            yield current, groups
            groups = []
        current = query
        groups.append((start - begin, end - begin))
    if groups:
        yield current, groups


def _orders(kind: Ints, bounds: list[int], groups: list[tuple[int, int]]) -> tuple[Ints, bool]:
    """Return arrangements of a query's kinds, one a row, and whether they are a sample."""
    listed = kind[bounds[0] : bounds[1]]
    inside = [np.sort(listed[start:end]) for start, end in groups]
    number = prod(_arrangements(one) for one in inside)
    if number <= EXACT:
        choices = [_all_arrangements(tuple(one.tolist())) for one in inside]
        picks = np.array(list(product(*(range(len(one)) for one in choices))))
        drawn = [one[picks[:, at]] for at, one in enumerate(choices)]
    else:
        drawn = [_sample(one, at) for at, one in enumerate(inside)]
    orders = np.tile(listed, (len(drawn[0]), 1))
    for (start, end), one in zip(groups, drawn, strict=True):
        orders[:, start:end] = one
    return orders, number > EXACT


def _arrangements(kinds: Ints) -> int:
    """Return the number of distinct arrangements, or a number above `EXACT` when there are still more."""
    counts = sorted(Counter(kinds.tolist()).values())
    number = 1
    placed = counts[-1]  # the others are put among these one by one: the number only grows
    for count in counts[:-1]:
        for one in range(1, count + 1):
            placed += 1
            number = number * placed // one
            if number > EXACT:
                return number
    return number


@lru_cache(maxsize=1024)
def _all_arrangements(kinds: tuple[int, ...]) -> Ints:
    def arrange(left: Counter[int]) -> list[list[int]]:
        if not +left:
            return [[]]
        return [[one, *rest] for one in sorted(+left) for rest in arrange(left - Counter([one]))]

    return np.array(arrange(Counter(kinds)), dtype=np.int64)


def _sample(kinds: Ints, at: int) -> Ints:
    """Draw arrangements of the group that is number ``at`` of its query."""
    rng = np.random.default_rng([at, len(kinds)])
    return rng.permuted(np.tile(kinds, (SAMPLES, 1)), axis=1)


def _score(
    kernel: Callable[..., Floats],
    judged: Judged,
    parameters: Mapping[str, Any],
    waiting: list[tuple[int, Ints]],
    value: Floats,
) -> None:
    """Score every order as a query of its own, and write the means."""
    query = np.concatenate([np.full(len(orders), query) for query, orders in waiting])
    kind = np.concatenate([orders.ravel() for _, orders in waiting])
    offsets = np.concatenate(([0], np.cumsum(judged.n_retrieved[query])))
    spread = Judged(
        offsets=offsets,
        levels=judged.levels,
        code=kind // 2,
        counts=judged.counts[query],
        groups=NO_GROUPS,
        judged=None if judged.judged is None else kind % 2 == 1,
    )
    values = kernel(spread, **parameters)
    first = 0
    for number, orders in waiting:
        of_query = values[first : first + len(orders)]
        value[number] = np.nan if np.isnan(of_query).all() else np.nan_to_num(of_query).mean()
        first += len(orders)
