"""Blocks of whole queries, from rows that are sorted by query.

    batches   q1 q1 q2 | q2 q2 q3 | q3 q4        blocks   q1 | q2 q2 q2 | q3 q3 | q4

The last query of a batch may go on in the next one, in the next row group or in the next file. So it is held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.evaluation.streaming.faults import located
from rankeval.evaluation.streaming.plan import Part
from rankeval.evaluation.streaming.rows import BATCH, Batch, Place, batches
from rankeval.evaluation.streaming.source import Columns
from rankeval.io.ids import comparable

_LEAST = BATCH // 2
"""Rows of a block, at least: each costs a few calls."""


class Unsorted(Exception):
    """The rows are not sorted by query, whatever the statistics of the files say."""


class Block(NamedTuple):
    """Rows of whole queries, and the row groups that they come from."""

    rows: pa.Table
    places: list[Place]


@dataclass(frozen=True, eq=False)
class _Ids:
    """The queries of a batch: numbers, and for texts the names that these stand for."""

    numbers: NDArray[Any]
    names: NDArray[Any] | None

    @classmethod
    def of(cls, batch: Batch, columns: Columns) -> _Ids:
        with located(batch.place, columns):
            return cls(*comparable(batch.rows["qid"], "qid"))

    def __getitem__(self, row: int) -> Any:
        number = self.numbers[row]
        return number if self.names is None else self.names[number]

    def beyond(self, ends: tuple[Any, Any] | None) -> bool:
        """Say whether rows are outside of what the file says of their row group: they would belong to another part."""
        return ends is not None and bool(self[0] < ends[0] or self[-1] > ends[1])

    @property
    def ascend(self) -> bool:
        return bool((self.numbers[1:] >= self.numbers[:-1]).all())

    def behind(self, query: Any) -> int:
        """Return the number of rows up to and with a query."""
        if self.names is not None:
            return int(np.searchsorted(self.numbers, np.searchsorted(self.names, query, side="right")))
        # NumPy compares unsigned numbers and Python's own as floats, which makes neighbours beyond 2**53 one.
        return int(np.searchsorted(self.numbers, np.asarray(query, dtype=self.numbers.dtype), side="right"))

    def start_of(self, row: int) -> int:
        """Return the first row with the query of a row."""
        return int(np.searchsorted(self.numbers, self.numbers[row]))


def whole_queries(part: Part, columns: Columns, most: int) -> Iterator[Block]:
    """Yield blocks of whole queries of a part that is sorted by query.

    Parameters
    ----------
    part : Part
        An interval of queries.
    columns : Columns
        The columns.
    most : int
        The rows of one query that fit into memory.

    Raises
    ------
    Unsorted
        If the rows are not sorted.
    InvalidInput
        If a query has more rows than fit.
    """
    held: list[Batch] = []
    before: Any
    last: Any
    before = last = None  # the last query that was read, and that which is held back
    n_held = n_last = 0
    for batch in batches(part.files, columns):
        ids = _Ids.of(batch, columns)
        if not ids.ascend or (before is not None and ids[0] < before) or ids.beyond(batch.place.group.ends):
            raise Unsorted
        before = ids[-1]
        begin = 0 if part.above is None else ids.behind(part.above)
        end = batch.rows.num_rows if part.upto is None else ids.behind(part.upto)
        if begin < end:
            cut = max(ids.start_of(end - 1), begin)
            goes_on = cut == begin and bool(held) and ids[begin] == last
            if not goes_on and n_held + cut - begin >= _LEAST:
                yield _block([*held, _part_of(batch, begin, cut)])
                held, n_held, begin = [], 0, cut
            held.append(_part_of(batch, begin, end))
            n_held += end - begin
            last, n_last = ids[end - 1], end - cut + (n_last if goes_on else 0)
            refuse_great(last, n_last, most)
        if end < batch.rows.num_rows:
            break
    if held:
        yield _block(held)


def refuse_great(query: Any, n_rows: int, most: int) -> None:
    """Refuse a query that has more rows than fit into memory.

    Parameters
    ----------
    query : object
        Its id.
    n_rows : int
        The rows that were found.
    most : int
        The rows that fit.

    Raises
    ------
    InvalidInput
        The message names the query.
    """
    if n_rows > most:
        query = query.item() if isinstance(query, np.generic) else query
        raise InvalidInput(
            f"memory: query {shown(query)} has more than {most:,} rows, which is what fits into the memory of one "
            "process; raise memory=, or lower n_jobs="
        )


def _part_of(batch: Batch, begin: int, end: int) -> Batch:
    return Batch(batch.rows.slice(begin, end - begin), batch.place)


def _block(held: list[Batch]) -> Block:
    rows = pa.Table.from_batches([batch.rows for batch in held if batch.rows.num_rows])
    return Block(rows, list(dict.fromkeys(batch.place for batch in held)))
