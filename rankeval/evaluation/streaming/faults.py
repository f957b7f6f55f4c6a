"""Errors in rows, told by file, row group, row and column, as the caller knows them, or by the query.

Rows are checked where they are joined, many row groups together. If that fails, the row groups are read again, one at
a time, to find the one at fault; if no row is at fault alone, the queries are tried by halves. So nothing is spent on
places while all is well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.evaluation.streaming.rows import Place, as_columns, batches
from rankeval.evaluation.streaming.source import Columns
from rankeval.io import columns as io_columns
from rankeval.io.ids import comparable

_Made = TypeVar("_Made")
_ROLES = {"y_true": "relevance", "y_score": "score"}
_ROLES |= {role: role for role in ("qid", "docid", "relevance", "weights")}
_ROW = re.compile(r"^(\w+: row )(\d+)")
_ROLE = re.compile(rf"^({'|'.join(_ROLES)})\b(?!=)")


@contextmanager
def located(place: Place, columns: Columns) -> Iterator[None]:
    """Raise errors in rows again with the place of the rows.

    Parameters
    ----------
    place : Place
        The row group that the rows come from.
    columns : Columns
        The columns, for their names.

    Raises
    ------
    InvalidInput
        Of the class of the error.
    """
    try:
        yield
    except InvalidInput as error:
        _refuse_bad_rows(place, columns)
        raise type(error)(f"{place}: {_by_name(str(error), columns)}") from error


def of_queries(rows: pa.Table, places: Sequence[Place], columns: Columns, work: Callable[[pa.Table], _Made]) -> _Made:
    """Return what is made of the rows of whole queries; an error names the row at fault, or else the query.

    Parameters
    ----------
    rows : Arrow table
        Rows under the names ``qid``, ``relevance`` and so on.
    places : sequence of Place
        The row groups that they come from; empty if nobody knows.
    columns : Columns
        The columns, for their names.
    work : callable
        What is to be made. It does the same for a query whatever queries are beside it, and changes nothing.

    Raises
    ------
    InvalidInput
        Of the class of the error.
    """
    try:
        return work(rows)
    except InvalidInput as error:
        for place in places:
            _refuse_bad_rows(place, columns)
        query, alone = _query_at_fault(rows, work) or (None, error)
        said = _by_name(str(alone), columns)
        if alone is not error:
            said = f"query {shown(query)}{_where(query, places)}: {_of_query(said)}"
        raise type(alone)(said) from error


def _query_at_fault(rows: pa.Table, work: Callable[[pa.Table], object]) -> tuple[object, InvalidInput] | None:
    """Return the first query whose rows alone are refused, found by halves, with the error; None if none is."""
    numbers, _ = comparable(rows["qid"], "qid")
    left = np.unique(numbers)
    while len(left):
        half = left[: (len(left) + 1) // 2]
        error = _error_of(work, rows.filter(pa.array((numbers >= half[0]) & (numbers <= half[-1]))))
        if error is not None and len(half) == 1:
            return rows["qid"][int(np.argmax(numbers == half))].as_py(), error
        left = left[len(half) :] if error is None else half
    return None


def _error_of(work: Callable[[pa.Table], object], rows: pa.Table) -> InvalidInput | None:
    try:
        work(rows)
    except InvalidInput as error:
        return error
    return None


def _where(query: Any, places: Sequence[Place]) -> str:
    """Return the row groups that may have rows of a query, as the end of a phrase."""
    known = [one for one in places if one.group.ends is None or one.group.ends[0] <= query <= one.group.ends[1]]
    return f" in {', '.join(map(str, known[:3]))}{', ...' if len(known) > 3 else ''}" if known else ""


def _of_query(message: str) -> str:
    """Return a message on the rows of one query: numbers of rows are counted in it, and others are not."""
    message = message.replace(" (1 such in all)", "")
    return re.sub(r"(rows \d+ and \d+), counting", r"\1 of the query, counting", message)


def refuse_bad_values(rows: pa.RecordBatch | pa.Table) -> None:
    """Refuse rows that no join takes: without an id, or with a number that is missing, not finite or a weight below 0.

    Parameters
    ----------
    rows : Arrow record batch or table
        Rows under the names ``qid``, ``relevance`` and so on.

    Raises
    ------
    InvalidInput
        The message names the row.
    """
    given = as_columns(rows)
    io_columns.refuse_unbounded(io_columns.labels(given["y"], "y_true"), "y_true")
    io_columns.refuse_unbounded(io_columns.scores(given["score"], "y_score"), "y_score")
    for role in ("qid", "docid"):
        ids = given[role]
        if ids is not None and (ids.null_count or pa.types.is_floating(ids.type)):  # to group by texts is dear
            comparable(ids, role)
    if "weights" in rows.schema.names:
        _refuse_bad_weights(io_columns.labels(rows["weights"], "weights"))


def _refuse_bad_weights(weights: NDArray[Any]) -> None:
    io_columns.refuse_unbounded(weights, "weights")
    if len(weights) and weights.min() < 0:
        row = int(np.argmax(weights < 0))
        raise InvalidInput(f"weights: row {row} is {weights[row]}; expected numbers, none below 0")


def _refuse_bad_rows(place: Place, columns: Columns) -> None:
    """Read a row group by itself, and refuse it if its rows are at fault."""
    first = 0
    for batch in batches([replace(place.file, row_groups=(place.group,))], columns):
        try:
            refuse_bad_values(batch.rows)
        except InvalidInput as error:
            raise type(error)(f"{place}: {_by_name(_moved(str(error), first), columns)}") from error
        first += batch.rows.num_rows


def _moved(message: str, first: int) -> str:
    """Return a message on a row of a batch with the number of the row in its row group."""
    return _ROW.sub(lambda found: f"{found[1]}{first + int(found[2])}", message)


def _by_name(message: str, columns: Columns) -> str:
    """Return a message with the column's name, as the caller gave it, for that of the argument."""

    def named(found: re.Match[str]) -> str:
        role = _ROLES[found[1]]
        return f"{role}={columns.names[role]!r}" if role in columns.names else found[1]

    return _ROLE.sub(named, message)
