"""Read a row of mlflow.genai.evaluate: the id of its query, its ranking and its judgments.

A ranking is what the application returned, or what a span of its trace holds. It may be given as

    ["d3", "d1"]                                             ids, best first
    [{"doc_id": "d3"}, ...] or Documents                     documents, best first; `docid` names the field of the id
    [(document, 0.7), ...]                                   documents with scores, best first: the scores are not read
    {"d3": 0.7, "d1": 0.2}                                   scores by id; the greatest is best, equal ones are tied

The order of a list is the ranking, since some retrievers score by distance. A document that a list has twice, as two
chunks of one document are, keeps its first place, and those behind it move up. Ids are compared as text: the tracking
server turns the keys of a mapping into text.

Judgments are found among the expectations of the row:

    {"relevance": {"d1": 3, "d2": 0}}                        grades by document
    {"relevance": ["d1", "d4"]}                              the relevant documents, of grade 1
    {"expected_retrieved_context": [{"doc_uri": "d1"}]}      MLflow's own field; a document may have a "relevance"

A row without judgments, or with none in the list, is not judged: it has no value, since 0 would be wrong. To say that
nothing is relevant, judge a document 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from rankeval._checks import few, shown
from rankeval.errors import InvalidInput

QUERY_IDS = ("qid", "query_id", "id")
"""The inputs that may hold the query's id."""

LONGEST_QUESTION = 200
"""A single text among the inputs is the query's id, up to this length."""

IDS = (
    "doc_id", "docid", "docno", "document_id", "id", "node_id",
    "metadata.doc_id", "metadata.docid", "metadata.document_id", "metadata.id", "doc_uri", "metadata.doc_uri",
)  # fmt: skip
"""The fields that may hold the id of a document; the first that all documents of a row have is read."""

CONTEXT = "expected_retrieved_context"
"""MLflow's name for the documents that should be retrieved; its documents are named by their ``doc_uri``."""

FIELDS = ("relevance", CONTEXT)
"""The expectations that may hold judgments, the first that a row has."""

Retrieved = str | Callable[[Any, Any], Any] | None
Expected = str | Callable[[Mapping[str, Any]], Any] | None


def query_id(inputs: Any, qid: str | None) -> str:
    """Return the id of a row's query.

    Parameters
    ----------
    inputs : mapping
        The inputs of the row.
    qid : str, optional
        Which of them is the id. By default ``qid``, ``query_id`` or ``id``, if it is text or a whole number; else the
        only input, if it is a short text; else a hash of all inputs.

    Raises
    ------
    InvalidInput
        If there is no such input.
    """
    given = inputs if isinstance(inputs, Mapping) else {"inputs": inputs}
    if qid is not None and given.get(qid) is None:
        raise InvalidInput(f"qid is {qid!r}, but the inputs of a row are {sorted(map(str, given))}")
    for name in [qid] if qid else QUERY_IDS:
        if isinstance(given.get(name), (str, int)) or qid:
            return str(given[name])
    alone = next(iter(given.values())) if len(given) == 1 else None
    if isinstance(alone, str) and 0 < len(alone) <= LONGEST_QUESTION:
        return alone
    text = json.dumps(given, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Ranking:
    """The documents that one row retrieved.

    Parameters
    ----------
    scores : mapping of str to float
        Score by document, best first.
    repeated : int
        Number of documents that the list had again.
    """

    scores: Mapping[str, float]
    repeated: int = 0


def as_ranking(value: Any, ids: Iterable[str] = IDS) -> Ranking:
    """Return a list of ids or documents, or scores by id, as a ranking.

    Parameters
    ----------
    value : list or mapping
        As above.
    ids : iterable of str
        The fields that may hold the id of a document.

    Raises
    ------
    InvalidInput
        If it is no ranking, or a document has no id.
    """
    if _is_scores(value):
        return _by_score(value)
    documents = _listed(value)
    if documents is None:
        raise InvalidInput(f"it is {_described(value)}; expected a list of ids or of documents, or scores by id")
    named = [str(one) for one in document_ids(documents, ids)]
    places = dict.fromkeys(named, 0.0)
    scores = {one: float(len(places) - place) for place, one in enumerate(places)}
    return Ranking(scores, repeated=len(named) - len(places))


def _by_score(value: Mapping[Any, Any]) -> Ranking:
    scores = {str(one): float(score) for one, score in value.items()}
    if len(scores) < len(value):
        raise InvalidInput("two documents have the same id as text, such as 1 and '1'")
    return Ranking(dict(sorted(scores.items(), key=lambda item: -item[1])))


def document_ids(documents: list[Any], ids: Iterable[str] = IDS) -> list[str | int]:
    """Return the id of each document: itself, or the first of the given fields that every document has.

    Parameters
    ----------
    documents : list
        Ids, mappings, objects, or pairs of one of these and a score.
    ids : iterable of str
        Names of fields; ``"metadata.doc_uri"`` is a field within a field.

    Raises
    ------
    InvalidInput
        If a document has no id.
    """
    ids, alone = tuple(ids), [_without_score(one) for one in documents]
    objects = [one for one in alone if not _is_id(one)]
    for one in objects:
        if one is None or isinstance(one, (Real, str)):
            raise InvalidInput(f"a document is {shown(one)}; expected an id or a document")
    key = next((key for key in ids if all(_is_id(field(one, key)) for one in objects)), None)
    if key is None:
        raise InvalidInput(
            f"the documents have no common field {' or '.join(map(repr, ids[:4]))}{' ...' if len(ids) > 4 else ''} "
            f"with an id; a document has {few(_fields(objects[0]))}: name the field of the id with docid="
        )
    return [one if _is_id(one) else field(one, key) for one in alone]


def field(value: Any, path: str) -> Any:
    """Return a field of a mapping or an object, or a field within a field; None if there is none."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
    return value


def ranking_of_row(outputs: Any, trace: Any, retrieved: Retrieved, ids: Iterable[str] = IDS) -> Ranking:
    """Return the ranking of a row of an evaluation.

    Parameters
    ----------
    outputs : object
        The return value of the application.
    trace : Trace, optional
        Its trace.
    retrieved : str, callable or None
        Where the ranking is; `genai_scorer` explains it.
    ids : iterable of str
        The fields that may hold the id of a document.

    Raises
    ------
    InvalidInput
        If there is no ranking, or it is not clear which of several is meant.
    """
    ids, found = tuple(ids), {}
    for place, value in _places(outputs, trace, retrieved):
        try:
            found[place] = as_ranking(value, ids)
        except InvalidInput as error:
            raise InvalidInput(f"{place} is no ranking: {error}") from error
    if retrieved == "all spans":
        together = [document for one in found.values() for document in one.scores]
        repeated = sum(one.repeated for one in found.values())
        joined = as_ranking(together)
        return Ranking(joined.scores, repeated=joined.repeated + repeated)
    if len({tuple(one.scores) for one in found.values()}) > 1:
        raise InvalidInput(
            f"there are {len(found)} different rankings ({', '.join(found)}): choose one by retrieved=, such as "
            "'outputs', 'last span', 'all spans' or 'span NAME'"
        )
    return next(iter(found.values()))


def _places(outputs: Any, trace: Any, retrieved: Retrieved) -> list[tuple[str, Any]]:
    """Return the places where the ranking may be, each with its content; at least one."""
    if callable(retrieved):
        return [("the result of retrieved", retrieved(outputs, trace))]
    if retrieved is None:
        given = [("outputs", outputs)] if _is_scores(outputs) or _listed(outputs) is not None else []
        return [*given, *_spans(trace)] or _lacking(outputs)
    if retrieved == "outputs":
        return [("outputs", outputs)]
    if retrieved.startswith("outputs."):
        return [(retrieved, field(outputs, retrieved.removeprefix("outputs.")))]
    spans = _spans(trace, retrieved.partition(" ")[2] if retrieved.startswith("span ") else None)
    if not spans:
        raise InvalidInput(f"retrieved is {retrieved!r}, but the trace has no such span: {_has(trace)}")
    return {"first span": spans[:1], "last span": spans[-1:]}.get(retrieved, spans)


def check_retrieved(retrieved: Retrieved) -> None:
    """Refuse a place that does not exist, before anything is evaluated."""
    if retrieved is None or callable(retrieved):
        return
    known = isinstance(retrieved, str) and (
        retrieved in ("outputs", "span", "first span", "last span", "all spans")
        or (retrieved.startswith(("outputs.", "span ")) and not retrieved.endswith((".", " ")))
    )
    if not known:
        raise InvalidInput(
            f"retrieved is {shown(retrieved)}; expected 'outputs', 'outputs.FIELD', 'span', 'first span', 'last span', "
            "'all spans', 'span NAME', or a function of outputs and trace"
        )


def _lacking(outputs: Any) -> list[tuple[str, Any]]:
    raise InvalidInput(
        f"no ranking: outputs is {_described(outputs)} and the trace has no RETRIEVER span. Return the ranking, or say "
        "where it is with retrieved=, such as 'outputs.documents'"
    )


def _spans(trace: Any, name: str | None = None) -> list[tuple[str, Any]]:
    """Return the spans of this name, else those of type RETRIEVER that are not part of another, in order of time."""
    spans = [] if trace is None or trace.data is None else list(trace.data.spans)
    by_id = {span.span_id: span for span in spans}
    chosen = [
        span for span in spans if (span.name == name if name else _is_retriever(span) and not _is_part(span, by_id))
    ]
    chosen.sort(key=lambda span: span.start_time_ns)
    return [(f"span {span.name!r}", _content(span)) for span in chosen]


def _is_retriever(span: Any) -> bool:
    return str(span.span_type) == "RETRIEVER"


def _is_part(span: Any, by_id: Mapping[str, Any]) -> bool:
    """Return whether a span lies within another retriever, whose result is the last word."""
    while (span := by_id.get(span.parent_id)) is not None:
        if _is_retriever(span):
            return True
    return False


def _content(span: Any) -> Any:
    """Return the outputs of a span, read if they are JSON."""
    if isinstance(span.outputs, str):
        try:
            return json.loads(span.outputs)
        except ValueError:
            return span.outputs
    return span.outputs


def _has(trace: Any) -> str:
    if trace is None or trace.data is None:
        return "there is no trace"
    return f"it has {few([f'{span.name} ({span.span_type})' for span in trace.data.spans])}"


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _is_scores(value: Any) -> bool:
    """Return whether a value is a mapping of ids to numbers; an empty one says nothing."""
    return isinstance(value, Mapping) and len(value) > 0 and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real)


def _listed(value: Any) -> list[Any] | None:
    """Return a list, tuple, array or Series as a list, and None for anything else."""
    if hasattr(value, "tolist") and getattr(value, "ndim", None) == 1:
        return list(value.tolist())
    return list(value) if isinstance(value, (list, tuple)) else None


def _without_score(document: Any) -> Any:
    """Return the document of a pair of a document and its score."""
    is_pair = isinstance(document, (list, tuple)) and len(document) == 2
    return document[0] if is_pair and _is_number(document[1]) else document


def _fields(document: Any) -> list[str]:
    fields = document if isinstance(document, Mapping) else vars(document) if hasattr(document, "__dict__") else ()
    return [str(one) for one in fields] or [type(document).__name__]


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping with the fields {few(list(value))}" if value else "an empty mapping"
    return shown(value)


def judgments_of_row(
    expectations: Mapping[str, Any] | None, expected: Expected, ids: Iterable[str] = IDS
) -> dict[str, Any] | None:
    """Return the grade of each judged document of a row, or None if the row is not judged.

    Parameters
    ----------
    expectations : mapping, optional
        The expectations of the row.
    expected : str, callable or None
        Which of them holds the judgments; by default the first of `FIELDS`.
    ids : iterable of str
        The fields that may hold the id of a document.

    Raises
    ------
    InvalidInput
        If the judgments cannot be read.
    """
    given = expectations or {}
    if callable(expected):
        name, value = "the result of expected", expected(given)
    else:
        name = expected or next((name for name in FIELDS if given.get(name) is not None), "")
        value = given.get(name)
    if value is None:
        return None
    grades = value if isinstance(value, Mapping) else _grades(name, value, ids)
    named = {str(one): grade for one, grade in grades.items()}
    if len(named) < len(grades):
        raise InvalidInput("two documents have the same id as text, such as 1 and '1'", argument=name)
    return named or None


def ids_for(expectations: Mapping[str, Any] | None, expected: Expected, docid: str | None) -> tuple[str, ...]:
    """Return the fields that may hold the id of a document; MLflow's own expectation has it in ``doc_uri``."""
    if docid is not None:
        return (docid,)
    is_context = expected == CONTEXT or (expected is None and "relevance" not in (expectations or {}))
    first = ("doc_uri", "metadata.doc_uri") if is_context and CONTEXT in (expectations or {}) else ()
    return (*first, *(one for one in IDS if one not in first))


def why_not_judged(expectations: Mapping[str, Any] | None, expected: Expected) -> str:
    """Return why a row has no judgments, and what to do."""
    wanted = "judgments" if callable(expected) else f"expectation {expected or FIELDS[0]!r}"
    held = f"it has {few(list(expectations))}" if expectations else "it has none"
    return (
        f"not judged: this row has no {wanted}, or it is empty ({held}). Give the relevant documents, such as "
        "expectations={'relevance': {'d1': 1}}, or name the expectation with expected="
    )


def _grades(name: str, value: Any, ids: Iterable[str]) -> dict[Any, Any]:
    """Return the grades of a list of documents: 1, or the number in the field ``relevance`` of a document."""
    documents = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(documents, (list, tuple, set, frozenset)):
        raise InvalidInput(f"{name} is {shown(value)}; expected grades by document id, or a list of relevant documents")
    grades: dict[Any, Any] = {}
    listed = list(documents)
    for one, document in zip(document_ids(listed, ids), listed, strict=True):
        graded = None if isinstance(document, (str, int)) else field(document, "relevance")
        grade = graded if isinstance(graded, Real) else 1
        if grades.setdefault(one, grade) != grade:
            raise InvalidInput(f"the document {shown(one)} has the grades {grades[one]} and {grade}", argument=name)
    return grades
