"""A document that stands twice in a query is refused, with advice that loses no judgment.

Two rows that say the same are one too many. Two rows that differ are often right both: judgments of
two judges or for two subtopics, rankings of two systems. Then a column that nobody read tells them
apart, and the error names it. So the columns that were not read are looked up again, in the file or
in the frame; only after the fault is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.join.flat import Ints, order_of

if TYPE_CHECKING:
    from rankeval.collection.rows import RowSource

_LOOKED_UP = 1000  # pairs of rows of which the other columns are looked up
_RANKS = "rank", "position"  # they differ in any two rows of a ranking


def refuse_repeats(
    query: Ints,
    ids: NDArray[Any],
    rows: Ints,
    problem: Callable[[int], str],
    source: RowSource | None = None,
    **values: NDArray[Any],
) -> None:
    """Raise if an id is twice in a query; ``problem`` describes a place in ``query``."""
    # Two stable sorts, the last by query: rows by query, then id, then their order in the input.
    order = order_of(ids)
    order = order[order_of(query[order])]
    query, ids = query[order], ids[order]
    twice = np.flatnonzero((query[1:] == query[:-1]) & (ids[1:] == ids[:-1]))
    if len(twice):
        pairs = rows[order[np.column_stack([twice, twice + 1])]]
        differ = np.zeros(len(pairs), dtype=bool)
        for value in values.values():
            differ |= value[pairs[:, 0]] != value[pairs[:, 1]]
        worst = int(np.argmax(differ))
        pair = pairs[worst].tolist()
        place = f"rows {pair[0]} and {pair[1]}, counting from 0"
        if source is not None:
            place = source.place(pair)
        words = problem(int(order[twice[worst]]))
        raise InvalidInput(
            f"{words} ({place}; {len(twice)} such rows in all)",
            remedy=_advice(pairs, pair, source, values),
        )


def _advice(
    pairs: Ints, pair: list[int], source: RowSource | None, values: Mapping[str, NDArray[Any]]
) -> str:
    """Say what to do about rows of one document: keep one only if they say the same."""
    if source is not None and (column := _telling(pairs[:_LOOKED_UP], source, *values)):
        name, cells = column
        apart = f"these rows differ in a column: {name} ({' and '.join(map(shown, cells))})"
        return f"{apart}; {source.way_on(name, *values)}"
    differing = []
    for name, numbers in values.items():
        first, second = numbers[pair].tolist()
        if numbers[pair[0]] != numbers[pair[1]]:
            differing.append(f"{name} {shown(first)} and {shown(second)}")
    if not differing:
        return "keep one of them"
    return f"they differ ({', '.join(differing)}): find out which of them is right"


def _telling(pairs: Ints, source: RowSource, value: str) -> tuple[str, list[Any]] | None:
    """Return a column that was not read and differs in the pairs, and its first two such cells."""
    best = None
    for name, column in source.beside(pairs.ravel().tolist(), value).items():
        cells = [*zip(column[::2], column[1::2], strict=True)]
        apart = [list(pair) for pair in cells if pair[0] != pair[1]]
        # The index of a frame that became an Arrow table.
        is_number_of_row = name.startswith("__index_level_")
        if not apart or is_number_of_row or (value == "score" and name.lower() in _RANKS):
            continue
        # A judge, a subtopic or a system has few values; the number of a row has as many as there
        # are rows.
        merit = len(apart), -len(set(map(repr, column)))
        if best is None or merit > best[0]:
            best = merit, name, apart[0]
    return None if best is None else best[1:]
