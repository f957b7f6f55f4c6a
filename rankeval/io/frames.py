"""Frames, dicts and records of any make as columns, and the names that columns have in other tools: one table.

Our own name wins over other tools' names; if two of these could be meant, the caller must choose.
The trap is a name that means two things. PyTerrier's frames have ``docno``, the id, beside
``docid``, the document's number in the index, and ``query``, the text, beside ``qid``. BEIR and
ranx call the relevance ``score``.

Qrels and Run check the columns of dicts and records. Those of frames are checked here, so that an
error has the name that the column has in the frame.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, repeat
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from rankeval._checks import require, said, shown
from rankeval.errors import InvalidInput
from rankeval.io.columns import IDS, Columns, id_column, value_column
from rankeval.io.opening import parsed_numbers

SPELLINGS: dict[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "query-id", "q_id", "topic_id"),
    "docid": ("docid", "docno", "doc_id", "corpus-id", "corpus_id", "document_id", "did", "pid"),
    "relevance": ("relevance", "rel", "label", "grade", "judgment", "judgement"),
    "score": ("score", "similarity", "prediction", "sim"),
    "aspect": ("aspect", "subtopic_id", "subtopic"),
    "subgroup": ("subgroup",),
    "name": ("run", "tag"),
    "rank": ("rank",),
}
"""Part -> its names, our own first; ``name`` is the system's, and a ``rank`` is only compared with the scores."""

LAST: dict[str, tuple[str, ...]] = {"qid": ("query", "topic"), "relevance": ("score",)}
"""Names that stand for a part only if it has no other: ``query`` is an id in trectools, and a text elsewhere."""

JUDGED_BY_SCORE = frozenset({"corpus-id", "corpus_id", "q_id"})
"""Names of BEIR and ranx, beside which a score is the relevance. Elsewhere this would hide a mix-up with a ranking."""

NUMBER_IN_INDEX = "number in index"
"""The part of PyTerrier's ``docid``, which must not be taken for an id, in what `columns_of` returns."""


def spelled(names: Iterable[str], part: str) -> list[str]:
    """Return the names that may stand for a part, such as ``docno`` for ``docid``; our own name wins."""
    held = set(names)
    found = [name for name in SPELLINGS[part] if name in held]
    if found[:2] == ["docid", "docno"]:
        return ["docno"]  # if `refuse_other_pairs` agrees
    if not found and not (part == "relevance" and not held & JUDGED_BY_SCORE):
        found = [name for name in LAST.get(part, ()) if name in held]
    return found[:1] if found[:1] == [part] else found


def columns_of(
    names: Sequence[str], role: str, asked: Mapping[str, Any], where: str, advice: str
) -> dict[str, str]:
    """Return part -> column: query, document and number, and of the other parts those that are there."""
    parts = {}
    needed = ("qid", "docid", role)
    for part in (*needed, *(("aspect", "subgroup") if role == "relevance" else ("name",))):
        wanted = asked.get(part)
        found = [] if wanted is False else spelled(names, part) if wanted is None else [wanted]
        if not found and part not in needed:
            continue
        if len(found) != 1 or found[0] not in names:
            problem = f"{where} has no column {shown(wanted or part)}: {_hint(names, part, found)}"
            raise InvalidInput(problem, remedy=advice.format(part=part))
        if names.count(found[0]) > 1:
            raise InvalidInput(
                f"{where} has {names.count(found[0])} columns {found[0]!r}; name each column once"
            )
        parts[part] = found[0]
    if asked.get("docid") is None and parts["docid"] == "docno" and "docid" in names:
        parts[NUMBER_IN_INDEX] = "docid"
    if role == "score" and names.count("rank") == 1 and "rank" not in parts.values():
        parts["rank"] = "rank"
    return parts


def others(names: Sequence[str], role: str) -> list[str]:
    """Return the names of the columns that give no id and no number of the rows, each once."""
    parts = columns_of(names, role, {}, "", "")
    read = {name for part, name in parts.items() if part != "name"}
    return [
        name
        for name in dict.fromkeys(names)
        if name and name not in read and [*names].count(name) == 1
    ]


def _hint(names: Sequence[str], part: str, found: Sequence[str]) -> str:
    if len(found) > 1:
        return f"columns {', '.join(map(repr, found))} could be it"
    if part == "score" and "rank" in names:
        return "a rank is no score; rankings are ordered by descending score, so that score = -rank keeps the order"
    return f"its columns are {list(names)}"


def columns_in(table: Any, parts: Mapping[str, str], role: str, where: str, advice: str) -> Columns:
    """Return the columns of a table that `columns_of` found."""
    cells = {part: table[name] for part, name in parts.items() if part != "name"}
    if (docid := cells.pop(NUMBER_IN_INDEX, None)) is not None:
        try:
            digits = pc.match_substring_regex(
                id_column(docid, "docid").cast(pa.string()), "^-?[0-9]+$"
            )
        except InvalidInput:
            digits = pa.array([False])
        if pc.all(digits).as_py() is False or pa.types.is_integer(
            id_column(cells["docid"], "docno").type
        ):
            as_there = "as in PyTerrier, where 'docno' is text and 'docid' a number in the index"
            problem = f"{where} has the columns 'docno' and 'docid', not {as_there}"
            raise InvalidInput(problem, remedy=advice.format(part="docid"))
    return Columns(value=cells.pop(role), value_name=parts[role], **cells)


@dataclass(frozen=True, eq=False)
class FrameSource:
    """The frame or the records that rows were taken from, for messages; a copy of the rows takes none of it along.

    ``names`` are the columns that were not read, and ``cell`` takes a name and a row.
    """

    names: Sequence[str] = ()
    cell: Callable[[str, int], Any] = lambda _name, _row: None
    format: ClassVar[str] = ""

    def place(self, rows: Sequence[int]) -> str:
        """Return rows, counted from 0, in words."""
        return f"rows {' and '.join(map(str, rows))}, counting from 0"

    def beside(self, rows: Sequence[int], value: str) -> dict[str, list[Any]]:  # noqa: ARG002 - as of a file
        """Return the cells of rows in the columns that were not read, by name."""
        return {name: [self.cell(name, row) for row in rows] for name in self.names}

    def way_on(self, name: str, value: str) -> str:
        """Say how to read rows that a column tells apart."""
        if value == "score":
            return f"give a run for each, such as {{one: part for one, part in frame.groupby({name!r})}}"
        return f"if it is the subtopic or the judge, say aspect={name!r} in Qrels.from_frame"

    def __reduce__(self) -> tuple[type[FrameSource], tuple[()]]:
        return FrameSource, ()


# Methods of datasets of ir_datasets, and attributes of objects of ranx, that give the rows.
_ITERATORS = {"relevance": "qrels_iter", "score": "scoreddocs_iter"}
_HOLDERS = {"relevance": "qrels", "score": "run"}
_ADVICE = "say which by {part}= in Qrels.from_frame or Run.from_frame"


def from_dict(mapping: Any, value: str) -> Columns:
    """Flatten ``{qid: {docid: value}}``; a query with an empty dict has no rows.

    Instead of a dict, a query may have a list of documents or of pairs, as `_listed` reads it.
    Judgments may also be ``{qid: {docid: {aspect: grade}}}``.
    """
    if not isinstance(mapping, Mapping):
        expected = f"expected {{qid: {{docid: {value}}}}} or {{qid: [docid, ...]}}"
        raise InvalidInput(f"{expected}, found a {type(mapping).__name__}")
    rows = {query: _listed(query, documents, value) for query, documents in mapping.items()}
    if value == "relevance" and any(
        isinstance(one, Mapping) for known in rows.values() for one in known.values()
    ):
        return _from_nested(rows)
    queries = chain.from_iterable(
        repeat(query, len(documents)) for query, documents in rows.items()
    )
    values = chain.from_iterable(documents.values() for documents in rows.values())
    return Columns(
        list(queries), list(chain.from_iterable(rows.values())), parsed_numbers(list(values))
    )


def _listed(query: Any, documents: Any, value: str) -> Mapping[Any, Any]:
    """Return the documents of a query with their numbers.

    The first of a ranked list of ids has the score -1, the next -2; relevant documents, in any
    order, have the grade 1. A list of pairs holds ids and numbers.
    """
    if isinstance(documents, Mapping):
        return documents
    no_list = (str, bytes, *((set, frozenset) if value == "score" else ()))  # a set has no order
    if (
        isinstance(documents, no_list)
        or not isinstance(documents, Iterable)
        or hasattr(documents, "columns")
    ):
        expected = f"expected {{docid: {value}}}, [docid, ...] or [(docid, {value}), ...]"
        raise InvalidInput(f"{expected}, but query {query!r} has a {type(documents).__name__}")
    if isinstance(documents, _pandas_series()) and _names_documents(documents):
        documents = list(documents.items())
    items = next(
        (
            getattr(documents, name)()
            for name in ("tolist", "to_pylist")
            if hasattr(documents, name)
        ),
        None,
    )
    items = list(documents) if items is None else items
    ids: Iterable[Any] = items
    numbers: Iterable[Any] = repeat(1) if value == "relevance" else count(-1, -1)
    if items and all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items):
        ids, numbers = zip(*items, strict=True)
    found: dict[Any, Any] = {}
    for place, (document, number) in enumerate(zip(ids, numbers, strict=False)):
        if isinstance(document, (list, dict, set)):  # cannot be looked up
            problem = f"query {query!r} has a {type(document).__name__} as document {place} (counting from 0)"
            raise InvalidInput(problem, remedy=f"give ids, or pairs of id and {value}")
        if document in found:
            differ = f"{found[document]} and {number} are given: find out which of them holds"
            remedy = "keep one of them" if found[document] == number else differ
            remedy = "keep its best place" if isinstance(numbers, count) else remedy
            raise InvalidInput(
                f"document {document!r} stands twice in the list of query {query!r}", remedy=remedy
            )
        found[document] = number
    return found


def _pandas_series() -> Any:
    pandas = sys.modules.get("pandas")
    return pandas.Series if pandas is not None else ()


def _names_documents(numbers: Any) -> bool:
    """Say whether a Series has documents as its index: whole values may be ids, whose index is left of other rows."""
    has_texts = all(isinstance(label, str) for label in numbers.index)
    return (
        numbers.dtype.kind in ("iuf" if has_texts else "f")
        and type(numbers.index).__name__ != "RangeIndex"
    )


def _from_nested(mapping: Mapping[Any, Any]) -> Columns:
    rows = []
    for query, documents in mapping.items():
        for document, by_aspect in documents.items():
            if not isinstance(by_aspect, Mapping):
                found = f"document {document!r} of query {query!r} has a {type(by_aspect).__name__}"
                raise InvalidInput(
                    f"expected {{qid: {{docid: {{aspect: relevance}}}}}}, but {found}"
                )
            rows += [(query, document, aspect, grade) for aspect, grade in by_aspect.items()]
    qids, docids, aspects, grades = ([row[at] for row in rows] for at in range(4))
    return Columns(qids, docids, parsed_numbers(grades), aspect=aspects)


def is_records(thing: Any) -> bool:
    """Say whether `from_records` takes it: records, an iterator, a dataset of ir_datasets, a Run or Qrels of ranx."""
    if isinstance(thing, (list, tuple)):
        return bool(thing) and bool(_fields(thing[0]))
    # ``dataset.qrels`` of ir_datasets has no iterator of its own.
    is_part = "query_id" in getattr(getattr(thing, "type", None), "_fields", ()) and hasattr(
        thing, "__iter__"
    )
    return (
        is_part
        or _is_ranx(thing)
        or any(hasattr(thing, one) for one in ("__next__", *_ITERATORS.values()))
    )


def from_records(thing: Any, value: str) -> Columns:
    """Take what `is_records` says; the records have a query, a document, and a relevance or a score."""
    if _is_ranx(thing):
        if not hasattr(thing, _HOLDERS[value]):
            raise InvalidInput(
                f"expected {_HOLDERS[value].title()} of ranx, found its {type(thing).__name__}"
            )
        return replace(from_dict(thing.to_dict(), value), name=getattr(thing, "name", None))
    if any(hasattr(thing, iterator) for iterator in _ITERATORS.values()):
        if not hasattr(thing, _ITERATORS[value]):
            raise InvalidInput(
                f"the dataset has no {_ITERATORS[value]}(): expected one with {value} of documents"
            )
        thing = getattr(thing, _ITERATORS[value])()
    is_list = isinstance(thing, Iterable) and getattr(thing, "ndim", 1) > 0
    require(is_list, "records", thing, "an iterable of records")
    rows = list(thing)
    if not rows:
        return Columns([], [], [])
    expected = f"expected query_id, doc_id, {value}"
    if not _fields(rows[0]):
        problem = f"{expected} in each record, found {shown(rows[0])} in a {type(thing).__name__}"
        raise InvalidInput(
            problem, remedy="give records, a dict {qid: {docid: number}}, or lists with qid="
        )
    where = f"record 0 (counting from 0): {expected}, found {shown(rows[0])}" + ", which"
    parts = columns_of(_fields(rows[0]), value, {}, where, "give records with these fields")
    if "rank" in parts and not all("rank" in _fields(row) for row in rows):
        del parts["rank"]
    cells = {
        name: [_field(row, name, at, expected) for at, row in enumerate(rows)]
        for name in parts.values()
    }
    left = [name for name in _fields(rows[0]) if name not in cells or name == parts.get("name")]
    source = FrameSource(left, lambda name, row: _field(rows[row], name, row, expected))
    columns = columns_in(cells, parts, value, "record 0", "give records with one of them")
    return replace(columns, value=parsed_numbers(columns.value), source=source)


def _fields(record: Any) -> list[str]:
    """Return the names of a record's fields, as far as we know such names."""
    if isinstance(record, Mapping):
        return [name for name in record if isinstance(name, str)]
    return [name for name in chain.from_iterable(SPELLINGS.values()) if hasattr(record, name)]


def _field(record: Any, name: str, at: int, expected: str) -> Any:
    try:
        return record[name] if isinstance(record, Mapping) else getattr(record, name)
    except (KeyError, AttributeError):
        raise InvalidInput(
            f"record {at} (counting from 0): {expected}, found {shown(record)}"
        ) from None


def _is_ranx(thing: Any) -> bool:
    return hasattr(thing, "get_doc_ids_and_scores") and hasattr(thing, "to_dict")


def from_frame(frame: Any, role: str, **asked: str | Literal[False] | None) -> Columns:
    """Take columns of a pandas or polars frame, an Arrow table or anything with an Arrow C stream."""
    table = as_table(frame)
    asked["subgroup"] = False if asked.get("aspect") is False else None
    parts = columns_of(names_in(table), role, asked, "the frame", _ADVICE)
    columns = columns_in(table, parts, role, "the frame", _ADVICE)
    ids = {part: id_column(getattr(columns, part), parts[part]) for part in IDS if part in parts}
    numbers = value_column(columns.value, parts[role], role)
    # If the caller names the column of the number, he knows what it is.
    value_name = parts[role] if asked.get(role) is None else None
    left = [
        name for name in names_in(table) if name not in parts.values() or name == parts.get("name")
    ]
    source = FrameSource(left, partial(_cell, table))
    return replace(columns, value=numbers, value_name=value_name, source=source, **ids)


def _cell(table: Any, name: str, row: int) -> Any:
    column = table[name]
    cell = column.iloc[row] if hasattr(column, "iloc") else column[row]
    return cell.as_py() if hasattr(cell, "as_py") else cell


def frame_columns(frame: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return columns of a frame by their roles."""
    table = as_table(frame)
    known = names_in(table)
    for role, name in names.items():
        if known.count(name) != 1:
            problem = f"{shown(name)} stands {known.count(name)} times in the frame"
            raise InvalidInput(
                problem, argument=role, remedy=f"its columns are: {', '.join(known)}"
            )
    is_ranked = known.count("rank") == 1 and "rank" not in names.values()
    return {
        role: table[name]
        for role, name in {**names, **({"rank": "rank"} if is_ranked else {})}.items()
    }


def is_frame(thing: Any) -> bool:
    """Say whether `from_frame` takes it."""
    return hasattr(thing, "__arrow_c_stream__") or hasattr(
        thing, "collect_schema"
    )  # of a lazy frame


def as_table(frame: Any) -> Any:
    """Return a frame of any make as one of pandas, with named levels of its index as columns, or as an Arrow table."""
    pandas = sys.modules.get("pandas")  # pandas is imported if there is a DataFrame
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        levels = [name for name in frame.index.names if name is not None]
        return (
            frame.reset_index(level=[name for name in levels if name not in frame.columns])
            if levels
            else frame
        )
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a lazy frame
        frame = frame.collect()
    is_column = getattr(frame, "ndim", 2) == 1 or isinstance(frame, pa.ChunkedArray)
    if hasattr(frame, "__arrow_c_stream__") and not is_column:
        try:
            return pa.table(frame)
        except pa.ArrowException as error:
            if hasattr(
                frame, "columns"
            ):  # Arrow lacks the type of a column, which perhaps nobody reads
                return frame
            raise InvalidInput(
                f"Arrow cannot take a column of the frame ({said(error)})", remedy="cast it"
            ) from error
    expected = "a pandas or polars DataFrame, a pyarrow Table or an object with an Arrow C stream"
    raise InvalidInput(f"expected {expected}, found a {type(frame).__name__}")


def names_in(table: Any) -> list[str]:
    """Return the columns of an Arrow table or of a frame of pandas."""
    return [
        str(name) for name in (table.column_names if isinstance(table, pa.Table) else table.columns)
    ]
