"""Frames, dicts and columns of any make into the three columns that judgments and rankings are.

Ids are strings or int64, never both in one column: whether 1 and "1" are the same query is not for us to guess.
Values are finite numbers. A missing id or value is an error that names its row, since dropping it would lose a row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankeval.errors import InvalidInput
from rankeval.io.columns import labels, numbers_of, refuse_masked, refuse_unbounded, scores

# The largest text that 32-bit offsets can address; beyond it a column is large_string.
_MOST_BYTES = 2**31 - 1

# What other tools call our columns: taken when our own name was asked for and is not there.
SPELLINGS = {
    "qid": ("qid", "query_id", "query-id", "q_id", "topic", "topic_id", "query"),
    "docid": ("docid", "doc_id", "docno", "corpus-id", "corpus_id", "document_id", "did", "pid"),
    "relevance": ("relevance", "rel", "label", "grade", "judgment", "judgement"),
    "score": ("score", "similarity", "prediction", "sim"),
}


@dataclass(frozen=True, eq=False)
class Columns:
    """Rows of (query, document, value), as a reader returns them.

    ``name`` is the run tag; ``aspect`` and ``subgroup`` are those of judgments; ``source`` is the file, where a reader
    says it. Each is None where there is none.
    """

    qid: pa.Array
    docid: pa.Array
    value: NDArray[Any]
    name: str | None = None
    aspect: pa.Array | None = None
    subgroup: pa.Array | None = None
    source: Any = None


def from_dict(mapping: Mapping[Any, Mapping[Any, Any]], value: str) -> Columns:
    """Flatten ``{qid: {docid: value}}``; a query with an empty dict has no rows.

    Judgments may also be ``{qid: {docid: {aspect: grade}}}``.
    """
    if not isinstance(mapping, Mapping):
        raise InvalidInput(f"expected {{qid: {{docid: {value}}}}}, found a {type(mapping).__name__}")
    for query, documents in mapping.items():
        if not isinstance(documents, Mapping):
            raise InvalidInput(
                f"expected {{qid: {{docid: {value}}}}}, but query {query!r} has a {type(documents).__name__}"
            )
    if value == "relevance" and any(isinstance(one, Mapping) for rows in mapping.values() for one in rows.values()):
        return _from_nested(mapping)
    queries = chain.from_iterable(repeat(query, len(documents)) for query, documents in mapping.items())
    rows = mapping.values()
    return Columns(
        id_column(list(queries), "qid"),
        id_column(list(chain.from_iterable(rows)), "docid"),
        value_column(list(chain.from_iterable(documents.values() for documents in rows)), value, value),
    )


def _from_nested(mapping: Mapping[Any, Mapping[Any, Any]]) -> Columns:
    """Flatten ``{qid: {docid: {aspect: grade}}}``."""
    rows = []
    for query, documents in mapping.items():
        for document, by_aspect in documents.items():
            if not isinstance(by_aspect, Mapping):
                raise InvalidInput(
                    f"expected {{qid: {{docid: {{aspect: relevance}}}}}}, as other documents have it, but document "
                    f"{document!r} of query {query!r} has a {type(by_aspect).__name__}"
                )
            rows += [(query, document, aspect, grade) for aspect, grade in by_aspect.items()]
    qids, docids, aspects, grades = ([row[at] for row in rows] for at in range(4))
    return Columns(
        id_column(qids, "qid"),
        id_column(docids, "docid"),
        value_column(grades, "relevance"),
        aspect=id_column(aspects, "aspect"),
    )


def is_records(thing: Any) -> bool:
    """Whether `from_records` can take it: a dataset of ir_datasets, what its iterators give, or a list of that."""
    if isinstance(thing, (list, tuple)):
        return bool(thing) and hasattr(thing[0], "query_id")
    return hasattr(thing, "__next__") or hasattr(thing, "qrels_iter") or hasattr(thing, "scoreddocs_iter")


def from_records(thing: Any, value: str) -> Columns:
    """Take records with query_id, doc_id and relevance or score, as ir_datasets and ir_measures have them.

    Parameters
    ----------
    thing : iterable of records, or dataset
        A dataset has ``qrels_iter()`` or ``scoreddocs_iter()``.
    value : {"relevance", "score"}
        What to take.
    """
    source = {"relevance": "qrels_iter", "score": "scoreddocs_iter"}[value]
    if hasattr(thing, "qrels_iter") or hasattr(thing, "scoreddocs_iter"):
        if not hasattr(thing, source):
            raise InvalidInput(f"the dataset has no {source}(): expected one with {value} of documents")
        thing = getattr(thing, source)()
    wanted = ("query_id", "doc_id", value)
    rows = list(thing)
    for at, row in enumerate(rows):
        if not all(hasattr(row, part) for part in wanted):
            raise InvalidInput(f"record {at} (counting from 0): expected {', '.join(wanted)}, found {row!r}"[:300])
    by_aspect = bool(rows) and hasattr(rows[0], "subtopic_id")
    return Columns(
        id_column([row.query_id for row in rows], "query_id"),
        id_column([row.doc_id for row in rows], "doc_id"),
        value_column([getattr(row, value) for row in rows], value, value),
        aspect=id_column([row.subtopic_id for row in rows], "subtopic_id") if by_aspect else None,
    )


def from_frame(frame: Any, *, qid: str, docid: str, value: str, role: str, aspect: str | None = None) -> Columns:
    """Take three columns of a pandas or polars frame, an Arrow table or anything with an Arrow C stream.

    Parameters
    ----------
    frame : frame
        One row per (query, document).
    qid, docid, value : str
        Names of the columns.
    role : {"relevance", "score"}
        What the value is.
    aspect : str, optional
        Name of a fourth column, of judgments: taken if it is there, where it is the usual one. A column ``subgroup``
        goes with it.
    """
    table = _table(frame)
    names = [_find(table, wanted, part) for wanted, part in ((qid, "qid"), (docid, "docid"), (value, role))]
    return Columns(
        id_column(_column(table, names[0]), names[0]),
        id_column(_column(table, names[1]), names[1]),
        value_column(_column(table, names[2]), names[2], role),
        aspect=None if aspect is None else _optional(table, aspect, "aspect"),
        subgroup=None if aspect is None else _optional(table, "subgroup", "subgroup"),
    )


def _optional(table: Any, wanted: str, usual: str) -> pa.Array | None:
    if wanted == usual and wanted not in _names(table):
        return None
    name = _find(table, wanted, usual)
    return id_column(_column(table, name), name)


def is_frame(thing: Any) -> bool:
    """Whether `from_frame` can take it."""
    return _is_pandas(thing) or hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "collect_schema")


def spelled(names: Iterable[str], part: str) -> list[str]:
    """Return those of the names that stand for a part, such as ``docno`` for ``docid``, our own name first."""
    held = set(names)
    found = [name for name in SPELLINGS[part] if name in held]
    if part == "relevance" and {"corpus-id", "score"} <= held:
        found.append("score")  # BEIR's judgments; elsewhere a score is a ranking's, and taking it would hide a mix-up
    return found[:1] if found[:1] == [part] else found


def _is_pandas(thing: Any) -> bool:
    pandas = sys.modules.get("pandas")  # a DataFrame exists only where pandas was imported already
    return pandas is not None and isinstance(thing, pandas.DataFrame)


def _table(frame: Any) -> Any:
    """Return a pandas frame (its index levels as columns) or an Arrow table."""
    if _is_pandas(frame):
        levels = [name for name in frame.index.names if name is not None]
        return frame.reset_index(level=[name for name in levels if name not in frame.columns]) if levels else frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if hasattr(frame, "collect_schema"):
        return pa.table(frame.collect())  # a lazy frame: reading it is what was asked for
    raise InvalidInput(
        f"expected a pandas or polars DataFrame, a pyarrow Table or an object with an Arrow C stream, "
        f"found a {type(frame).__name__}"
    )


def _names(table: Any) -> list[str]:
    return [str(name) for name in (table.column_names if isinstance(table, pa.Table) else table.columns)]


def _find(table: Any, wanted: str, part: str) -> str:
    """Return the column to take: the name asked for, else the one other spelling of it."""
    names = _names(table)
    if names.count(wanted) == 1:
        return wanted
    if wanted in names:
        raise InvalidInput(f"the frame has {names.count(wanted)} columns {wanted!r}; name each column once")
    found = spelled(names, part) if wanted == part else []
    if len(found) == 1:
        return found[0]
    hint = f"columns {', '.join(map(repr, found))} could be it" if found else f"its columns are {names}"
    raise InvalidInput(f"the frame has no column {wanted!r}: {hint}; say which by {part}=")


def _column(table: Any, name: str) -> Any:
    return table.column(name) if isinstance(table, pa.Table) else table[name]


def _arrow(values: Any, name: str) -> pa.Array:
    """Return one plain Arrow array: combined, decoded, NaN as null where pandas means it so."""
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
                raise InvalidInput(f"column {name}: expected one id a row, found a {type(values).__name__}") from None
            kinds = sorted({type(value).__name__ for value in values})
            raise InvalidInput(
                f"column {name} holds {' and '.join(kinds)}: give all values of one column the same type"
            ) from error
    if pa.types.is_dictionary(values.type):
        pieces = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        kind = combined(pieces[0].dictionary).type if pieces else pa.string()
        values = pa.chunked_array([combined(piece.dictionary).take(piece.indices) for piece in pieces], kind)
    return combined(values)


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the column in one piece, text as string, or large_string if string cannot hold it."""
    kind = column.type
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        fits = column.nbytes < _MOST_BYTES
        column = column.cast(pa.string() if fits else pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def places_of(rows: NDArray[np.int64]) -> pa.Array:
    """Return row numbers as Arrow takes them; `pyarrow.array` would import pandas.

    Parameters
    ----------
    rows : ndarray of int64
        Not copied if they stand in one piece.
    """
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))])


def id_column(values: Any, name: str) -> pa.Array:
    """Return ids as an Arrow array of string or int64.

    Parameters
    ----------
    values : array, list, Series or Arrow array
        Strings or integers, not both.
    name : str
        What messages call the column.

    Returns
    -------
    pyarrow.Array
        Of type string (large_string beyond 2 GB) or int64.

    Raises
    ------
    InvalidInput
        For missing or empty ids, mixed types, and ids that are neither text nor integers.
    """
    refuse_masked(values, f"column {name}")
    array = _arrow(values, name)
    if len(array) == 0 and not pa.types.is_integer(array.type):  # whatever type a library gives to nothing
        return pa.array([], pa.string())
    if array.null_count:
        row = pc.index(pc.is_null(array), True).as_py()
        raise InvalidInput(f"column {name} has no id in row {row} (counting from 0), {array.null_count} rows in all")
    if pa.types.is_integer(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"column {name} holds integers beyond 64 bits: give them as text") from error
    if pa.types.is_floating(array.type) or pa.types.is_boolean(array.type):
        raise InvalidInput(f"column {name} is of type {array.type}: ids are text or integers; cast it first")
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        try:
            array = combined(array.cast(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"column {name} is of type {array.type}: ids are text or integers") from error
    length = numbers_of(pc.binary_length(array))
    if not length.min(initial=1):
        raise InvalidInput(f"column {name} has an empty id in row {int(length.argmin())} (counting from 0)")
    return array


def value_column(values: Any, name: str, role: str = "relevance") -> NDArray[Any]:
    """Return finite numbers: int64 where all are whole, else float64.

    Parameters
    ----------
    values : array, list, Series or Arrow array
        The numbers.
    name : str
        What messages call the column.
    role : {"relevance", "score"}
        What they are, which says what must hold them exactly.

    Raises
    ------
    InvalidInput
        For text, missing values, NaN, infinity and numbers that would be changed, naming the row.
    """
    numbers = (scores if role == "score" else labels)(values, f"column {name}")
    refuse_unbounded(numbers, f"column {name}")
    return numbers.astype(np.float64 if numbers.dtype.kind == "f" else np.int64, copy=False)


def whole(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as int64 if none has a fraction, else as they are."""
    if numbers.dtype.kind == "f" and (np.abs(numbers) < 2**53).all() and (numbers == np.floor(numbers)).all():
        return numbers.astype(np.int64)
    return numbers


def check_lengths(rows: Any, *names: str) -> None:
    """Refuse columns that are not as long as the query column."""
    for name in names:
        column = getattr(rows, name)
        if column is not None and len(column) != len(rows.qid):
            raise InvalidInput(f"{name} has {len(column)} rows, but qid has {len(rows.qid)}: give one {name} a row")
