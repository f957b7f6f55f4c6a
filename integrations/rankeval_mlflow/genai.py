"""genai_scorer: measures of retrieval for mlflow.genai.evaluate, by our own rules and without a language model.

MLflow calls a scorer once a row, in threads. Each row is one call of `rankeval.evaluate`, so that a
value is that of the whole collection, and the guard sees what is scored. What a row cannot answer
is an error of that row: MLflow counts it, shows it and leaves it out of the mean.

A row has the id of its query, its ranking and its judgments. A ranking is what the application
returned, or what a span of its trace holds. It may be given as

    ["d3", "d1"]                                             ids, best first
    [{"doc_id": "d3"}, ...] or Documents                     documents, best first; `docid` names the field of the id
    [(document, 0.7), ...]                                   documents with scores, best first: the scores are not read
    {"d3": 0.7, "d1": 0.2}                                   scores by id; the greatest is best, equal ones are tied

The order of a list is the ranking, since some retrievers score by distance. A document that a list
has twice, as two chunks of one document are, keeps its first place, and those behind it move up.
Ids are compared as text: the tracking server turns the keys of a mapping into text.

Judgments are found among the expectations of the row:

    {"relevance": {"d1": 3, "d2": 0}}                        grades by document
    {"relevance": ["d1", "d4"]}                              the relevant documents, of grade 1
    {"expected_retrieved_context": [{"doc_uri": "d1"}]}      MLflow's own field; a document may have a "relevance"

A row without judgments, or with none in the list, is not judged: it has no value, since 0 would be
wrong. To say that nothing is relevant, judge a document 0.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

from mlflow.entities import AssessmentError, Feedback
from mlflow.genai.scorers import Scorer

from rankeval._arguments import explained
from rankeval._checks import count, few, refuse, require, shown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, RankevalError
from rankeval.evaluation import Evaluation, evaluate
from rankeval.evaluation.scoring import bound_measures
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as parse_measures
from rankeval_mlflow.run_names import safe_names

# The inputs that may hold the query's id.
QUERY_IDS = ("qid", "query_id", "id")

# A single text among the inputs is the query's id, up to this length.
LONGEST_QUESTION = 200

# The fields that may hold the id of a document; the first that all documents of a row have is read.
IDS = (
    "doc_id", "docid", "docno", "document_id", "id", "node_id",
    "metadata.doc_id", "metadata.docid", "metadata.document_id", "metadata.id", "doc_uri", "metadata.doc_uri",
)  # fmt: skip

# MLflow's name for the documents that should be retrieved; its documents are named by their
# ``doc_uri``.
CONTEXT = "expected_retrieved_context"

# The expectations that may hold judgments, the first that a row has.
FIELDS = ("relevance", CONTEXT)

_PLACE = re.compile(r"outputs(\..*[^.\s])?|span( .*[^.\s])?|(first|last) span|all spans", re.DOTALL)
Retrieved = str | Callable[[Any, Any], Any] | None
Expected = str | Callable[[Mapping[str, Any]], Any] | None


Specs = str | Measure | Iterable[str | Measure]


def query_id(inputs: Any, qid: str | None) -> str:
    """Return the id of a row's query."""
    fields = inputs if isinstance(inputs, Mapping) else {"inputs": inputs}
    if qid is not None and fields.get(qid) is None:
        raise InvalidInput(
            f"qid is {qid!r}, but the inputs of a row are {sorted(map(str, fields))}"
        )
    for name in [qid] if qid else QUERY_IDS:
        if isinstance(fields.get(name), (str, int)) or qid:
            return str(fields[name])
    alone = next(iter(fields.values())) if len(fields) == 1 else None
    if isinstance(alone, str) and 0 < len(alone) <= LONGEST_QUESTION:
        return alone
    text = json.dumps(fields, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_ranking(value: Any, ids: Iterable[str] = IDS) -> dict[str, float]:
    """Return a list of ids or documents, or scores by id, as scores by document, best first."""
    if _is_scores(value):
        scores = {str(docid): float(score) for docid, score in value.items()}
        _refuse_same_text(scores, value)
        return dict(sorted(scores.items(), key=lambda item: -item[1]))
    documents = _listed(value)
    if documents is None:
        raise InvalidInput(
            f"it is {_described(value)}; expected a list of ids or of documents, or scores by id"
        )
    places = dict.fromkeys(str(docid) for docid in document_ids(documents, ids))
    return {docid: float(len(places) - place) for place, docid in enumerate(places)}


def _refuse_same_text(named: Mapping[str, Any], mapping: Mapping[Any, Any]) -> None:
    refuse((len(named) < len(mapping), "two documents have the same id as text, such as 1 and '1'"))


def document_ids(documents: list[Any], ids: Iterable[str]) -> list[str | int]:
    """Return the id of each document: itself, or the first of the given fields that every document has."""
    ids = tuple(ids)
    alone = [_without_score(document) for document in documents]
    objects = [document for document in alone if not _is_id(document)]
    for document in objects:
        is_plain = document is None or isinstance(document, (Real, str))
        refuse((is_plain, f"a document is {shown(document)}; expected an id or a document"))
    key = next(
        (key for key in ids if all(_is_id(field(document, key)) for document in objects)), None
    )
    if key is None:
        raise InvalidInput(
            f"the documents have no common field {' or '.join(map(repr, ids[:4]))}{' ...' if len(ids) > 4 else ''} "
            f"with an id; a document has {few(_fields(objects[0]))}: name the field of the id with docid="
        )
    return [document if _is_id(document) else field(document, key) for document in alone]


def field(value: Any, path: str) -> Any:
    """Return a field of a mapping or an object, or a field within a field; None if there is none."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, None)
    return value


def ranking_of_row(
    outputs: Any, trace: Any, retrieved: Retrieved, ids: Iterable[str] = IDS
) -> dict[str, float]:
    """Return the ranking of a row of an evaluation."""
    ids = tuple(ids)
    rankings = {}
    for place, value in _places(outputs, trace, retrieved):
        try:
            rankings[place] = as_ranking(value, ids)
        except InvalidInput as error:
            raise InvalidInput(f"{place} is not a ranking: {error}") from error
    if retrieved == "all spans":
        return as_ranking([document for ranking in rankings.values() for document in ranking])
    if len({tuple(ranking) for ranking in rankings.values()}) > 1:
        raise InvalidInput(
            f"there are {len(rankings)} different rankings ({', '.join(rankings)}): choose one by retrieved=, such as "
            "'outputs', 'last span', 'all spans' or 'span NAME'"
        )
    return next(iter(rankings.values()))


def _places(outputs: Any, trace: Any, retrieved: Retrieved) -> list[tuple[str, Any]]:
    if callable(retrieved):
        return [("the result of retrieved", retrieved(outputs, trace))]
    if retrieved is None:
        own = [("outputs", outputs)] if _is_scores(outputs) or _listed(outputs) is not None else []
        if places := [*own, *_spans(trace)]:
            return places
        raise InvalidInput(
            f"no ranking: outputs is {_described(outputs)} and the trace has no RETRIEVER span. Return the ranking, or "
            "say where it is with retrieved=, such as 'outputs.documents'"
        )
    if retrieved == "outputs":
        return [("outputs", outputs)]
    if retrieved.startswith("outputs."):
        return [(retrieved, field(outputs, retrieved.removeprefix("outputs.")))]
    spans = _spans(trace, retrieved.partition(" ")[2] if retrieved.startswith("span ") else None)
    if not spans:
        has = (
            [f"{span.name} ({span.span_type})" for span in trace.data.spans]
            if trace and trace.data
            else []
        )
        raise InvalidInput(
            f"retrieved is {retrieved!r}, but the trace has no such span: it has {few(has) or 'none'}"
        )
    return {"first span": spans[:1], "last span": spans[-1:]}.get(retrieved, spans)


def check_retrieved(retrieved: Retrieved) -> None:
    """Refuse a place that does not exist, before anything is evaluated."""
    places = (
        "'outputs', 'outputs.FIELD', 'span', 'first span', 'last span', 'all spans', 'span NAME'"
    )
    named = isinstance(retrieved, str) and _PLACE.fullmatch(retrieved) is not None
    fits = retrieved is None or callable(retrieved) or named
    require(fits, "retrieved", retrieved, f"{places}, or a function of outputs and trace")


def _spans(trace: Any, name: str | None = None) -> list[tuple[str, Any]]:
    """Return the spans of this name, else those of type RETRIEVER that are not part of another, in order of time."""
    spans = [] if trace is None or trace.data is None else list(trace.data.spans)
    by_id = {span.span_id: span for span in spans}
    chosen = [
        span
        for span in spans
        if (span.name == name if name else _is_retriever(span) and not _is_part(span, by_id))
    ]
    chosen.sort(key=lambda span: span.start_time_ns)
    return [(f"span {span.name!r}", _content(span)) for span in chosen]


def _is_retriever(span: Any) -> bool:
    return str(span.span_type) == "RETRIEVER"


def _is_part(span: Any, by_id: Mapping[str, Any]) -> bool:
    # The result of the outer retriever is the last word.
    while (span := by_id.get(span.parent_id)) is not None:
        if _is_retriever(span):
            return True
    return False


def _content(span: Any) -> Any:
    if isinstance(span.outputs, str):
        try:
            return json.loads(span.outputs)
        except ValueError:
            return span.outputs
    return span.outputs


def _is_id(value: Any) -> bool:
    return (isinstance(value, str) and value != "") or (
        isinstance(value, int) and not isinstance(value, bool)
    )


def _is_scores(value: Any) -> bool:
    """Return whether a value is a mapping of ids to numbers; an empty one says nothing."""
    return isinstance(value, Mapping) and len(value) > 0 and all(map(_is_number, value.values()))


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real)


def _listed(value: Any) -> list[Any] | None:
    if hasattr(value, "tolist") and getattr(value, "ndim", None) == 1:
        return list(value.tolist())
    return list(value) if isinstance(value, (list, tuple)) else None


def _without_score(document: Any) -> Any:
    is_pair = isinstance(document, (list, tuple)) and len(document) == 2
    return document[0] if is_pair and _is_number(document[1]) else document


def _fields(document: Any) -> list[str]:
    is_mapping = isinstance(document, Mapping)
    fields = document if is_mapping else getattr(document, "__dict__", ())
    return [str(name) for name in fields] or [type(document).__name__]


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping with the fields {few(list(value))}" if value else "an empty mapping"
    return shown(value)


def judgments_of_row(
    expectations: Mapping[str, Any] | None, expected: Expected, ids: Iterable[str]
) -> dict[str, Any] | None:
    """Return the grade of each judged document of a row, or None if the row is not judged."""
    fields = expectations or {}
    if callable(expected):
        name = "the result of expected"
        value = expected(fields)
    else:
        name = expected or next((name for name in FIELDS if fields.get(name) is not None), "")
        value = fields.get(name)
    if value is None:
        return None
    grades = value if isinstance(value, Mapping) else _grades(name, value, ids)
    named = {str(docid): grade for docid, grade in grades.items()}
    _refuse_same_text(named, grades)
    return named or None


def ids_for(
    expectations: Mapping[str, Any] | None, expected: Expected, docid: str | None
) -> tuple[str, ...]:
    """Return the fields that may hold the id of a document; MLflow's own expectation has it in ``doc_uri``."""
    if docid is not None:
        return (docid,)
    is_context = expected == CONTEXT or (
        expected is None and "relevance" not in (expectations or {})
    )
    first = (
        ("doc_uri", "metadata.doc_uri") if is_context and CONTEXT in (expectations or {}) else ()
    )
    return (*first, *(name for name in IDS if name not in first))


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
    is_list = isinstance(documents, (list, tuple, set, frozenset))
    require(is_list, name, value, "grades by document id, or a list of relevant documents")
    grades: dict[Any, Any] = {}
    listed = list(documents)
    for docid, document in zip(document_ids(listed, ids), listed, strict=True):
        graded = None if isinstance(document, (str, int)) else field(document, "relevance")
        grade = graded if isinstance(graded, Real) else 1
        if grades.setdefault(docid, grade) != grade:
            raise InvalidInput(
                f"the document {shown(docid)} has the grades {grades[docid]} and {grade}",
                argument=name,
            )
    return grades


class RankingScorer(Scorer):  # type: ignore[misc]  # MLflow has no types
    """A scorer of rankings; `genai_scorer` makes it. Its fields are what MLflow's digest of a scorer reads."""

    # The full spelling of each measure, and the name of its value in MLflow, by the name asked for.
    measures: dict[str, str]
    columns: dict[str, str]
    card: dict[str, Any]  # The card of the convention
    retrieved: str | None = None  # Where ranking, judgments and ids are; a function is named
    expected: str | None = None
    docid: str | None = None
    qid: str | None = None

    _labelled: Any = None
    _rules: Any = None
    _retrieved: Any = None
    _expected: Any = None

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        expectations: Any = None,
        trace: Any = None,
    ) -> Any:
        """Score one row."""
        inputs, outputs, expectations = _completed(inputs, outputs, expectations, trace)
        query = query_id(inputs, self.qid)
        code = "INVALID"
        ids = ids_for(expectations, self._expected, self.docid)
        try:
            judgments = judgments_of_row(expectations, self._expected, ids)
            code = "NO_RANKING"
            ranking = ranking_of_row(outputs, trace, self._retrieved, ids)
            if judgments is None:
                return self._failed("NOT_JUDGED", why_not_judged(expectations, self._expected))
            if reason := _left_out(ranking, judgments, self._rules, self._labelled):
                return self._failed("LEFT_OUT", f"left out by the convention: {reason}")
            code = "INVALID"
            evaluation = evaluate(
                {query: judgments},
                {query: ranking},
                measures=self._labelled,
                convention=self._rules,
            )
            if not evaluation.n_queries:
                return self._failed(
                    "LEFT_OUT", f"left out by the convention: {', '.join(evaluation.excluded)}"
                )
            return self._feedbacks(evaluation, _rationale(ranking, judgments))
        except RankevalError as error:
            return self._failed(code, str(error))

    def _feedbacks(self, evaluation: Evaluation, rationale: str) -> Any:
        values = evaluation.scores[0].tolist()
        undefined = evaluation.facts.undefined[0]
        feedbacks = [
            Feedback(
                name=column,
                value=value,
                rationale=f"{rationale}; 0/0 by the convention" if zero else rationale,
            )
            for column, value, zero in zip(self.columns.values(), values, undefined, strict=True)
        ]
        return feedbacks[0] if len(feedbacks) == 1 else feedbacks

    def _failed(self, code: str, message: str) -> Feedback:
        # A single one, since MLflow counts only those.
        return Feedback(
            name=self.name, error=AssessmentError(error_code=code, error_message=message)
        )


@explained
def genai_scorer(
    measures: Specs,
    *,
    name: str | None = None,
    retrieved: Retrieved = None,
    expected: Expected = None,
    docid: str | None = None,
    qid: str | None = None,
    convention: str | Convention = "rankeval",
) -> RankingScorer:
    """Return a scorer of retrieval for ``mlflow.genai.evaluate``.

    It compares the documents that an application retrieved with graded judgments, and needs no
    language model. The value of a row is that of `rankeval.evaluate` for this query.

    Parameters
    ----------
    measures : str, Measure or iterable of them
        The measures. Each has a column and a metric of its own, ``nDCG_at_10/value`` and
        ``nDCG_at_10/mean``.
    name : str, optional
        Another name for the column; before a slash and the key of the measure if there are several.
        Two scorers in one call need names.
    retrieved : str or callable, optional
        Where the ranking is: ``"outputs"``; ``"outputs.documents"``, a field of a returned mapping
        or object; ``"span"``, the span of type RETRIEVER (spans within it do not count); ``"first
        span"``, ``"last span"`` or ``"all spans"`` of them in the order of time; ``"span rerank"``,
        the span of this name; or a function of outputs and trace. By default the outputs, if they
        are a ranking, or the RETRIEVER span. If there are several and they differ, the row is an
        error.
    expected : str or callable, optional
        Where the judgments are: the name of an expectation, or a function of all. By default
        ``relevance``, else ``expected_retrieved_context``. Grades by document id, or a list of
        relevant documents.
    docid : str, optional
        The field with the id of a document, such as ``"metadata.doc_uri"``. By default a usual name
        that all documents of the row have.
    qid : str, optional
        The input with the id of the query. By default ``qid``, ``query_id`` or ``id``; without
        these the only input, if it is a short text, or else a hash of the inputs.
    convention : str or Convention, default "rankeval"
        The rules, as in `rankeval.evaluate`.

    Returns
    -------
    Scorer
        A scorer of MLflow. A row without judgments or without a ranking is an error with the
        reason, and not a 0.

    Raises
    ------
    UnknownName
        If a measure or the convention does not exist.
    InvalidInput
        If a measure or rule needs all rows at once, or an argument has another form.

    Notes
    -----
    A document that a list has twice, as two chunks of it are, counts at its first place. Ids are compared as text.

    Examples
    --------
    >>> scorer = genai_scorer("nDCG@10")
    >>> feedback = scorer(outputs=["d7", "d1", "d3"], expectations={"relevance": {"d1": 3, "d3": 1}})
    >>> feedback.name, round(feedback.value, 3), feedback.rationale
    ('nDCG_at_10', 0.659, '2 of 2 relevant documents among 3 retrieved')
    """
    rules = get_convention(convention)
    labelled = _bound(measures, rules)
    check_retrieved(retrieved)
    for option, value in (("name", name), ("docid", docid), ("qid", qid), ("expected", expected)):
        text = "a text, or a function of all expectations" if option == "expected" else "a text"
        is_text = value is None or (isinstance(value, str) and value != "")
        require(is_text or (option == "expected" and callable(value)), option, value, text)
    columns = _columns(labelled, name)
    column = columns[labelled[0].label] if len(labelled) == 1 else "retrieval"
    spellings = {label: str(measure) for label, measure in labelled}
    scorer = RankingScorer(
        name=name or column,
        description=f"{', '.join(columns)} by the convention {rules.name}",
        measures=spellings,
        columns=columns,
        card=rules.card(),
        retrieved=_named(retrieved),
        expected=_named(expected),
        docid=docid,
        qid=qid,
    )
    scorer._labelled, scorer._rules = labelled, rules  # noqa: SLF001 - pydantic has no other way in
    scorer._retrieved, scorer._expected = retrieved, expected  # noqa: SLF001 - as above
    return scorer


def _bound(measures: Specs, rules: Convention) -> list[LabelledMeasure]:
    """Return the measures as the convention means them; refuse what a row, or a mean of rows, cannot answer."""
    labelled = parse_measures(measures, rules)
    of_all = "needs the grades of all rows, and a scorer sees one"
    if rules.unjudged == "highest":
        raise InvalidInput(f"the rule unjudged='highest' {of_all}")
    for label, measure in labelled:
        aggregate = measure.family.aggregate
        if aggregate not in ("mean", "sum"):
            raise InvalidInput(
                f"{label} is aggregated by {aggregate}, and MLflow shows the mean of rows: choose another measure"
            )
    bound = bound_measures([measure for _, measure in labelled], rules)
    return [
        LabelledMeasure(label, measure) for (label, _), measure in zip(labelled, bound, strict=True)
    ]


def _columns(labelled: list[LabelledMeasure], name: str | None) -> dict[str, str]:
    if name is not None and len(labelled) == 1:
        return {labelled[0].label: name}
    safe = safe_names(measure.key for _, measure in labelled)
    return {
        label: safe[measure.key] if name is None else f"{name}/{safe[measure.key]}"
        for label, measure in labelled
    }


def _completed(inputs: Any, outputs: Any, expectations: Any, trace: Any) -> tuple[Any, Any, Any]:
    if trace is None:
        return inputs, outputs, expectations
    if expectations is None:
        assessments = trace.search_assessments(type="expectation")
        expectations = {known.name: known.expectation.value for known in assessments}
    roots = [span for span in trace.data.spans if span.parent_id is None] if trace.data else []
    if roots:
        inputs = roots[0].inputs if inputs is None else inputs
        outputs = roots[0].outputs if outputs is None else outputs
    return inputs, outputs, expectations


def _left_out(
    ranking: Mapping[str, float],
    judgments: Mapping[str, Any],
    rules: Convention,
    labelled: list[LabelledMeasure],
) -> str:
    # Asked here, since `evaluate` would warn that no query is left.
    if rules.missing == "skip" and not ranking:
        return "nothing was retrieved"
    level = min(
        (measure.level for _, measure in labelled if measure.level > -math.inf),
        default=math.ulp(0.0),
    )
    is_barren = all(isinstance(grade, Real) and grade < level for grade in judgments.values())
    return "no relevant document" if rules.no_relevant == "skip" and is_barren else ""


def _rationale(ranking: Mapping[str, float], judgments: Mapping[str, Any]) -> str:
    relevant = [
        docid for docid, grade in judgments.items() if isinstance(grade, Mapping) or grade > 0
    ]
    hits = sum(docid in ranking for docid in relevant)
    return f"{hits} of {count(len(relevant), 'relevant document')} among {len(ranking)} retrieved"


def _named(place: Any) -> str | None:
    return getattr(place, "__qualname__", repr(place)) if callable(place) else place
