"""Find the ranking of a row of mlflow.genai.evaluate: in what the application returned, or in a span of its trace.

A ranking may be given as

    ["d3", "d1"]                                             ids, best first
    [{"doc_id": "d3"}, ...] or Documents                     documents, best first; `docid` names the field of the id
    [(document, 0.7), ...]                                   documents with scores, best first: the scores are not read
    {"d3": 0.7, "d1": 0.2}                                   scores by id; the greatest is best, equal ones are tied

The order of a list is the ranking, since some retrievers score by distance. A document that a list has twice, as two
chunks of one document are, keeps its first place, and those behind it move up. Ids are compared as text: the tracking
server turns the keys of a mapping into text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from rankeval._checks import few, shown
from rankeval.errors import InvalidInput

IDS = (
    "doc_id", "docid", "docno", "document_id", "id", "node_id",
    "metadata.doc_id", "metadata.docid", "metadata.document_id", "metadata.id", "doc_uri", "metadata.doc_uri",
)  # fmt: skip
"""The fields that may hold the id of a document; the first that all documents of a row have is read."""

Retrieved = str | Callable[[Any, Any], Any] | None


@dataclass(frozen=True)
class Ranking:
    """The documents that one row retrieved.

    Parameters
    ----------
    scores : mapping of str to float
        Score by document, best first.
    is_list : bool
        Whether they came as a list, whose places are the scores.
    repeated : int
        Number of documents that the list had again.
    """

    scores: Mapping[str, float]
    is_list: bool
    repeated: int = 0

    def plain(self) -> list[str] | dict[str, float]:
        """Return it as JSON has it; `as_ranking` reads it back."""
        return list(self.scores) if self.is_list else dict(self.scores)


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
    return Ranking(scores, is_list=True, repeated=len(named) - len(places))


def _by_score(value: Mapping[Any, Any]) -> Ranking:
    scores = {str(one): float(score) for one, score in value.items()}
    if len(scores) < len(value):
        raise InvalidInput("two documents have the same id as text, such as 1 and '1'")
    return Ranking(dict(sorted(scores.items(), key=lambda item: -item[1])), is_list=False)


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
        return Ranking(joined.scores, is_list=True, repeated=joined.repeated + repeated)
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
