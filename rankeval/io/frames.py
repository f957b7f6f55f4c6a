"""Frames, dicts and records of any make as columns.

Qrels and Run check the columns of dicts and records. Those of frames are checked here, so that an error has the name
that the column has in the frame. Where our own name is asked for and is not there, the usual names of other tools
stand in; if two of them could be meant, the caller must choose.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from typing import Any

import pyarrow as pa

from rankeval.errors import InvalidInput
from rankeval.io.columns import Columns, id_column, value_column

# The names of our columns in other tools.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "query-id", "q_id", "topic", "topic_id", "query"),
    "docid": ("docid", "doc_id", "docno", "corpus-id", "corpus_id", "document_id", "did", "pid"),
    "relevance": ("relevance", "rel", "label", "grade", "judgment", "judgement"),
    "score": ("score", "similarity", "prediction", "sim"),
}


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
    values = chain.from_iterable(documents.values() for documents in rows)
    return Columns(list(queries), list(chain.from_iterable(rows)), list(values))


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
    return Columns(qids, docids, grades, aspect=aspects)


def is_records(thing: Any) -> bool:
    """Say whether `from_records` takes it: a dataset of ir_datasets, an iterator, or a list of records."""
    if isinstance(thing, (list, tuple)):
        return bool(thing) and hasattr(thing[0], "query_id")
    return hasattr(thing, "__next__") or hasattr(thing, "qrels_iter") or hasattr(thing, "scoreddocs_iter")


def from_records(thing: Any, value: str) -> Columns:
    """Take records with query_id, doc_id and relevance or score, or a dataset of ir_datasets with such records."""
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
    qids, docids, values = ([getattr(row, part) for row in rows] for part in wanted)
    by_aspect = bool(rows) and hasattr(rows[0], "subtopic_id")
    return Columns(qids, docids, values, aspect=[row.subtopic_id for row in rows] if by_aspect else None)


def from_frame(
    frame: Any,
    role: str,
    *,
    qid: str = "qid",
    docid: str = "docid",
    value: str | None = None,
    aspect: str | None = "aspect",
) -> Columns:
    """Take columns of a pandas or polars frame, an Arrow table or anything with an Arrow C stream.

    Parameters
    ----------
    frame : frame
        One row per (query, document).
    role : {"relevance", "score"}
        The part that the value is.
    qid, docid, value : str
        Names of the columns; the value is called as its role by default.
    aspect : str, optional
        For relevance: name of the column of aspects. Under its usual name it is optional; a column ``subgroup`` goes
        with it.
    """
    table = _table(frame)
    parts = {"qid": _find(table, qid, "qid"), "docid": _find(table, docid, "docid")}
    for part, wanted in (("aspect", aspect), ("subgroup", aspect and "subgroup")):
        if role == "relevance" and wanted and (wanted != part or wanted in _names(table)):
            parts[part] = _find(table, wanted, part)
    ids = {part: id_column(_column(table, name), name) for part, name in parts.items()}
    name = _find(table, value or role, role)
    return Columns(value=value_column(_column(table, name), name, role), **ids)


def is_frame(thing: Any) -> bool:
    """Say whether `from_frame` takes it."""
    return _is_pandas(thing) or hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "collect_schema")


def spelled(names: Iterable[str], part: str) -> list[str]:
    """Return the names that may stand for a part, such as ``docno`` for ``docid``; our own name wins."""
    held = set(names)
    found = [name for name in SPELLINGS[part] if name in held]
    if part == "relevance" and {"corpus-id", "score"} <= held:
        # BEIR calls relevance so; elsewhere a score is a ranking's, and taking it would hide a mix-up.
        found.append("score")
    return found[:1] if found[:1] == [part] else found


def _is_pandas(thing: Any) -> bool:
    pandas = sys.modules.get("pandas")  # pandas is imported if there is a DataFrame
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
    if hasattr(frame, "collect_schema"):  # a lazy frame
        return pa.table(frame.collect())
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
