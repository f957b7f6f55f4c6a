"""Columns of frames, dicts and records, and a table of the names of columns in other tools.

Names are compared by `rankeval.io.words.plain`, so case, blanks, ``-`` and ``_`` do not matter. Our
own name wins over other tools' names; if two of these could be meant, the caller must choose.
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
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rankeval._checks import refuse, require, said, shown
from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.io.columns import IDS, Columns, as_list, id_column, value_column
from rankeval.io.words import Grades, plain

SPELLINGS: dict[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "q_id", "topic_id", "search_id"),
    "docid": ("docid", "docno", "doc_id", "corpus_id", "document_id", "did", "pid"),
    "relevance": (
        *("relevance", "rel", "label", "grade", "judgment", "judgement", "rating"),
        *("esci_label", "gpt4-label"),
    ),
    "score": ("score", "similarity", "prediction", "sim"),
    "aspect": ("aspect", "subtopic_id", "subtopic"),
    "subgroup": ("subgroup",),
    "name": (
        *("run", "tag", "system", "algorithm", "run_id", "run_name", "system_name", "system_id"),
        *("model", "model_name", "method", "engine", "retriever", "ranker", "algo", "approach"),
        *("pipeline", "variant", "experiment"),
    ),
    "rank": ("rank",),
    "status": ("result_status",),
}
"""Part -> its names, our own first. ``name`` is the system, by the first of its names that a table
has; ``rank`` only meets the scores; ``status`` is 0 where a judge of UMBRELA gave no grade."""

LAST: dict[str, tuple[str, ...]] = {
    "qid": ("query", "topic", "query_text", "user", "user_id"),
    "docid": ("item", "item_id", "product_id", "movie_id"),
    "relevance": ("score",),
}
"""Names of a part without any other: ``query`` is an id in trectools, and a text elsewhere."""

TEXTS = frozenset({"query", "querytext"})
"""`plain` names of columns in which the text of a query is its id."""

JUDGES = (
    *("judge", "judge_id", "worker", "worker_id", "assessor", "assessor_id"),
    *("annotator", "annotator_id", "rater", "rater_id"),
)
"""Names of the aspect where judges are compared, before its other names."""

JUDGED_BY_SCORE = frozenset({"corpus-id", "corpus_id", "q_id"})
"""Names of BEIR and ranx, beside which a score is the relevance."""
# Beside other names, a score in judgments is a mix-up with a ranking.

NUMBER_IN_INDEX = "number in index"
"""The part of PyTerrier's ``docid``, which is not an id, in what `columns_of` returns."""


SCORED = """add it: frame["score"] = -frame["rank"]"""
_OPTIONAL = {"relevance": ("aspect", "subgroup", "status"), "score": ("name",)}


def spelled(names: Iterable[Any], part: str) -> list[str]:
    """Return the names that may mean a part, such as ``docno`` for ``docid``; our own name wins."""
    held, own = dict.fromkeys(names), SPELLINGS[part][0]
    if own in held:
        return ["docno"] if own == "docid" and "docno" in held else [own]
    found = alike(held, SPELLINGS[part])
    is_judged = not JUDGED_BY_SCORE.isdisjoint(str(name).casefold() for name in held)
    if not found and (part != "relevance" or is_judged):
        found = alike(held, LAST.get(part, ()))
    return found


def alike(names: Iterable[Any], known: Iterable[str]) -> list[Any]:
    """Return the names that are known, in the order in which they are: see `plain`."""
    order = [*map(plain, known)]
    found = [name for name in names if plain(name) in order]
    return sorted(found, key=lambda name: order.index(plain(name)))


def _named(names: Sequence[str], part: str, column: Any) -> list[str]:
    """Return the columns that may be a part: by its name, one of some names, or any usual name."""
    if isinstance(column, str):
        return [column]
    return alike(dict.fromkeys(names), column or ()) or spelled(names, part)


def columns_of(
    names: Sequence[str],
    role: str,
    wanted: Mapping[str, Any],
    where: str,
    advice: str,
    ranked: str = SCORED,
) -> dict[str, str]:
    """Return part -> column: query, document and number, and the other parts that are there.

    ``advice`` and ``ranked`` are remedies, the second for a ranking with ranks and no scores.
    """
    # ``wanted`` names the columns of some parts: None is any usual name, a tuple has names that
    # come before these, False leaves out a part.
    parts, lacking = {}, {}
    needed = ("qid", "docid", role)
    for part in (*needed, *_OPTIONAL[role]):
        column = wanted.get(part)
        matches = [] if column is False else _named(names, part, column)
        if part == "name":
            matches = matches[:1]
        if len(matches) == 1 and matches[0] in names:
            parts[part] = matches[0]
        elif matches or part in needed:
            lacking[part] = matches
    is_ranked = role == "score" and "rank" in names and parts.get("score", "rank") == "rank"
    if is_ranked and lacking in ({}, {"score": []}):
        problem = f"{where} has no column 'score': {_RANK}"
        found = ", ".join(names)
        raise InvalidInput(problem, found=found, expected="score", remedy=ranked)
    if lacking:
        raise _lacking(names, lacking, wanted, where, advice)
    for column in parts.values():
        if (times := names.count(column)) > 1:
            raise InvalidInput(f"{where} has {times} columns {column!r}; name each column once")
    if wanted.get("docid") is None and parts["docid"] == "docno" and "docid" in names:
        parts[NUMBER_IN_INDEX] = "docid"
    if role == "score" and names.count("rank") == 1 and "rank" not in parts.values():
        parts["rank"] = "rank"
    return parts


def check_parts(wanted: Mapping[str, Any]) -> None:
    """Refuse names of columns for parts that no table has."""
    for part in wanted:
        chosen("part of a table", part, SPELLINGS)


def refuse_columns(wanted: Mapping[str, Any], words: str) -> None:
    """Refuse names of columns for rows without names, except the aspect, the second column."""
    named = {part for part, name in wanted.items() if isinstance(name, str)} - {"aspect"}
    require(not named, "columns", wanted, f"None: {words} has no names of columns")


def others(names: Sequence[str], role: str, wanted: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that give no id and no number of the rows, each once."""
    unread = _unread(names, columns_of(names, role, wanted, "", ""))
    return [name for name in unread if name and names.count(name) == 1]


def _lacking(
    names: Sequence[str],
    lacking: Mapping[str, Sequence[str]],
    wanted: Mapping[str, Any],
    where: str,
    advice: str,
) -> InvalidInput:
    """Make the error for all columns that are not there, or that several could be."""
    named = {part: name for part, name in wanted.items() if isinstance(name, str)}
    columns = ", ".join(f"no column {shown(named.get(part, part))}" for part in lacking)
    hints = dict.fromkeys(_hint(names, found) for found in lacking.values())
    problem = f"{where} has {columns}: {'; '.join(hints)}"
    found, expected = ", ".join(names), ", ".join(lacking)
    return InvalidInput(
        problem, found=found, expected=expected, remedy=_advised(advice, [*lacking])
    )


_RANK = (
    "a rank is not a score; rankings are ordered by descending score, so that score = -rank keeps the "
    "order"
)


def _advised(advice: str, parts: Sequence[str]) -> str:
    columns = ", ".join(f"{part!r}: ..." for part in parts)
    options = " ".join(f"--column {part}=..." for part in parts)
    return advice.format(part=parts[0], columns=columns, options=options)


def _hint(names: Sequence[str], matches: Sequence[str]) -> str:
    if len(matches) > 1:
        return f"columns {', '.join(map(repr, matches))} could be it"
    return f"its columns are {list(names)}"


def columns_in(table: Any, parts: Mapping[str, str], role: str, where: str, advice: str) -> Columns:
    """Return the columns of a table that `columns_of` found."""
    cells = {part: table[name] for part, name in parts.items() if part != "name"}
    n_unparsed = [*map(str, as_list(cells.pop("status", ())))].count("0")
    problem = f"{where} has rows of UMBRELA without a grade: result_status is 0 in {n_unparsed}"
    refuse((n_unparsed, problem, "leave these rows out"))
    number = cells.pop(NUMBER_IN_INDEX, None)
    if number is not None and not _are_pyterrier(docno=cells["docid"], docid=number):
        expected = "as in PyTerrier, where 'docno' is text and 'docid' a number in the index"
        problem = f"{where} has the columns 'docno' and 'docid', not {expected}"
        raise InvalidInput(problem, remedy=_advised(advice, ["docid"]))
    systems = table[parts["name"]] if "name" in parts else None
    value, name = cells.pop(role), parts[role]
    return Columns(value=value, value_name=name, systems=systems, parts=parts, **cells)


def _are_pyterrier(docno: Any, docid: Any) -> bool:
    """Say whether two columns are ids of text and numbers in an index."""
    try:
        numbers = id_column(docid, "docid").cast(pa.string())
    except InvalidInput:
        return False
    if pc.all(pc.match_substring_regex(numbers, "^-?[0-9]+$")).as_py() is False:
        return False
    return not pa.types.is_integer(id_column(docno, "docno").type)


@dataclass(frozen=True, eq=False)
class FrameSource:
    """The frame or the records that rows were taken from, for messages; pickles leave it out."""

    names: Sequence[str] = ()  # The columns that were not read
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
            return (
                f"if it is the system, rk.Run.by_system(frame, system={name!r}) gives a run of each"
            )
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
    queries = [query for query, documents in rows.items() for _ in documents]
    ids = list(chain.from_iterable(rows.values()))
    numbers = list(chain.from_iterable(documents.values() for documents in rows.values()))
    if value == "relevance" and any(isinstance(number, Mapping) for number in numbers):
        return _from_nested(rows)
    return Columns(queries, ids, numbers)


def _listed(query: Any, documents: Any, value: str) -> Mapping[Any, Any]:
    """Return the documents of a query with their numbers.

    The first of a ranked list of ids has the score -1, the next -2; relevant documents, in any
    order, have the grade 1. A list of pairs holds ids and numbers.
    """
    if isinstance(documents, Mapping):
        return documents
    no_list = (str, bytes, *((set, frozenset) if value == "score" else ()))  # a set has no order
    is_list = isinstance(documents, Iterable) and not isinstance(documents, no_list)
    if not is_list or hasattr(documents, "columns"):
        expected = f"expected {{docid: {value}}}, [docid, ...] or [(docid, {value}), ...]"
        raise InvalidInput(f"{expected}, but query {query!r} has a {type(documents).__name__}")
    if isinstance(documents, _pandas_series()) and _names_documents(documents):
        documents = list(documents.items())
    items = documents.tolist() if hasattr(documents, "tolist") else as_list(documents)
    ids: Iterable[Any] = items
    numbers: Iterable[Any] = repeat(1) if value == "relevance" else count(-1, -1)
    if items and all(isinstance(item, (list, tuple)) and len(item) == 2 for item in items):
        ids, numbers = zip(*items, strict=True)
    listed: dict[Any, Any] = {}
    for place, (document, number) in enumerate(zip(ids, numbers, strict=False)):
        if isinstance(document, (list, dict, set)):  # cannot be looked up
            found = f"a {type(document).__name__} as document {place} (counting from 0)"
            remedy = f"give ids, or pairs of id and {value}"
            raise InvalidInput(f"query {query!r} has {found}", remedy=remedy)
        if document in listed:
            first = listed[document]
            remedy = "keep one of them"
            if isinstance(numbers, count):
                remedy = "keep its best place"
            elif first != number:
                remedy = f"{first} and {number} are given: find out which of them is right"
            raise InvalidInput(
                f"document {document!r} occurs twice in the list of query {query!r}", remedy=remedy
            )
        listed[document] = number
    return listed


def _pandas_series() -> Any:
    pandas = sys.modules.get("pandas")
    return pandas.Series if pandas is not None else ()


def _names_documents(numbers: Any) -> bool:
    """Say whether a Series of numbers has documents as its index."""
    if type(numbers.index).__name__ == "RangeIndex":
        return False
    # Whole numbers may themselves be ids, beside an index of row numbers that a filter left.
    has_texts = all(isinstance(label, str) for label in numbers.index)
    return numbers.dtype.kind in ("iuf" if has_texts else "f")


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
    return Columns(qids, docids, grades, aspect=aspects)


def is_records(thing: Any) -> bool:
    """Say whether `from_records` takes records, an iterator, a dataset or an object of ranx."""
    if isinstance(thing, (list, tuple)):
        return bool(thing) and bool(_fields(thing[0]))
    if _is_ranx(thing) or any(hasattr(thing, name) for name in ("__next__", *_ITERATORS.values())):
        return True
    # ``dataset.qrels`` of ir_datasets has no iterator of its own.
    fields = getattr(getattr(thing, "type", None), "_fields", ())
    return "query_id" in fields and hasattr(thing, "__iter__")


def from_records(thing: Any, value: str, **wanted: Any) -> Columns:
    """Return the columns of records with a query, a document, and a relevance or a score."""
    if _is_ranx(thing):
        if not hasattr(thing, _HOLDERS[value]):
            raise InvalidInput(
                f"expected {_HOLDERS[value].title()} of ranx, found its {type(thing).__name__}"
            )
        columns = from_dict(thing.to_dict(), value)
        return replace(columns, name=getattr(thing, "name", None))
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
    names, advice = _fields(rows[0]), "give records with these fields"
    where = f"record 0 (counting from 0): {expected}, found {shown(rows[0])}, which"
    parts = columns_of(names, value, wanted, where, advice)
    if "rank" in parts and not all("rank" in _fields(row) for row in rows):
        del parts["rank"]

    def cell(name: str, row: int) -> Any:
        return _field(rows[row], name, row, expected)

    cells = {name: [cell(name, row) for row in range(len(rows))] for name in parts.values()}
    columns = columns_in(cells, parts, value, "record 0", advice)
    return replace(columns, source=FrameSource(_unread(names, parts), cell))


def _fields(record: Any) -> list[str]:
    """Return the names of a record's fields, as far as we know such names."""
    if isinstance(record, Mapping):
        return [name for name in record if isinstance(name, str)]
    known = chain.from_iterable((*SPELLINGS.values(), *LAST.values()))
    return [name for name in dict.fromkeys(known) if hasattr(record, name)]


def _field(record: Any, name: str, at: int, expected: str) -> Any:
    try:
        return record[name] if isinstance(record, Mapping) else getattr(record, name)
    except (KeyError, AttributeError):
        raise InvalidInput(
            f"record {at} (counting from 0): {expected}, found {shown(record)}"
        ) from None


def _is_ranx(thing: Any) -> bool:
    return hasattr(thing, "get_doc_ids_and_scores") and hasattr(thing, "to_dict")


def _unread(names: Iterable[str], parts: Mapping[str, str]) -> list[str]:
    """Return the names of the columns beside those that give a part of each row."""
    read = {name for part, name in parts.items() if part != "name"}
    return [name for name in names if name not in read]


def from_frame(frame: Any, role: str, grades: Grades = None, **wanted: Any) -> Columns:
    """Return columns of a pandas or polars frame, an Arrow table or an Arrow C stream."""
    table = as_table(frame)
    wanted["subgroup"] = False if wanted.get("aspect") is False else None
    parts = columns_of(names_in(table), role, wanted, "the frame", _ADVICE)
    columns = columns_in(table, parts, role, "the frame", _ADVICE).graded(grades)
    ids = {part: id_column(getattr(columns, part), parts[part]) for part in IDS if part in parts}
    numbers = value_column(columns.value, parts[role], role)
    # Callers who name the column of the number know what it is.
    value_name = parts[role] if wanted.get(role) is None else None
    source = FrameSource(_unread(names_in(table), parts), partial(_cell, table))
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
            problem = f"{shown(name)} occurs {known.count(name)} times in the frame"
            remedy = f"its columns are: {', '.join(known)}"
            raise InvalidInput(problem, argument=role, remedy=remedy)
    columns = {role: table[name] for role, name in names.items()}
    # A further column of ranks, which is only compared with the scores.
    if known.count("rank") == 1 and "rank" not in names.values():
        columns["rank"] = table["rank"]
    return columns


def is_frame(thing: Any) -> bool:
    """Say whether `from_frame` takes it."""
    # Lazy frames have a schema to collect.
    return hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "collect_schema")


def as_table(frame: Any) -> Any:
    """Return a frame as one of pandas, with the named levels of its index, or as an Arrow table."""
    pandas = sys.modules.get("pandas")  # pandas is imported if there is a DataFrame
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        levels = [name for name in frame.index.names if name is not None]
        if not levels:
            return frame
        return frame.reset_index(level=[name for name in levels if name not in frame.columns])
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a lazy frame
        frame = frame.collect()
    is_column = getattr(frame, "ndim", 2) == 1 or isinstance(frame, pa.ChunkedArray)
    if hasattr(frame, "__arrow_c_stream__") and not is_column:
        try:
            return pa.table(frame)
        except pa.ArrowException as error:
            # Arrow lacks the type of a column, which perhaps nobody reads.
            if hasattr(frame, "columns"):
                return frame
            raise InvalidInput(
                f"Arrow cannot take a column of the frame ({said(error)})", remedy="cast it"
            ) from error
    expected = "a pandas or polars DataFrame, a pyarrow Table or an object with an Arrow C stream"
    raise InvalidInput(f"expected {expected}, found a {type(frame).__name__}")


def names_in(table: Any) -> list[str]:
    """Return the columns of an Arrow table or of a frame of pandas."""
    names = table.column_names if isinstance(table, pa.Table) else table.columns
    return [*map(str, names)]
