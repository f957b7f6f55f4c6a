"""Errors in rows, told by file, row group, row and column, as the caller knows them.

Rows are checked where they are joined, many row groups together. If that fails, the row groups are read again, one at
a time, to find the one at fault: nothing is spent on places while all is well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from rankeval.errors import InvalidInput
from rankeval.evaluation.streaming.rows import Place, as_columns, batches
from rankeval.evaluation.streaming.source import Columns
from rankeval.io import columns as io_columns
from rankeval.io.ids import comparable

_ROLES = {"y_true": "relevance", "y_score": "score", "qid": "qid", "docid": "docid", "weights": "weights"}
_ROLE = re.compile(rf"^({'|'.join(_ROLES)})\b(?!=)")


@contextmanager
def located(places: Sequence[Place], columns: Columns) -> Iterator[None]:
    """Raise errors in rows again with the place of the rows.

    Parameters
    ----------
    places : sequence of Place
        The row groups that the rows come from.
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
        for place in places:
            _refuse_bad_rows(place, columns)
        where = ", ".join(dict.fromkeys(map(str, places[:3]))) + (", ..." if len(places) > 3 else "")
        raise type(error)(f"{_by_name(error, columns)} (among the rows of {where})") from error


def refuse_bad_values(rows: pa.RecordBatch | pa.Table) -> None:
    """Refuse rows that no join takes: without an id, or with a number that is missing or not finite.

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
    if given["qid"].null_count or pa.types.is_floating(given["qid"].type):  # to group by texts is dear
        comparable(given["qid"], "qid")
    if "weights" in rows.schema.names:
        io_columns.refuse_unbounded(io_columns.labels(rows["weights"], "weights"), "weights")


def _refuse_bad_rows(place: Place, columns: Columns) -> None:
    """Read a row group by itself, and refuse it if its rows are at fault."""
    rows = [batch.rows for batch in batches([replace(place.file, row_groups=(place.group,))], columns)]
    try:
        refuse_bad_values(pa.Table.from_batches(rows))
    except InvalidInput as error:
        raise type(error)(f"{place}: {_by_name(error, columns)}") from error


def _by_name(error: InvalidInput, columns: Columns) -> str:
    """Return the message of an error with the column's name, as the caller gave it, for that of the argument."""

    def named(found: re.Match[str]) -> str:
        role = _ROLES[found[1]]
        return f"{role}={columns.names[role]!r}" if role in columns.names else found[1]

    return _ROLE.sub(named, str(error))
