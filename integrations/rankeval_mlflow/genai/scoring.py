"""genai_scorer: measures of retrieval for mlflow.genai.evaluate, by our own rules and without a language model.

MLflow calls a scorer once a row, in threads. Each row is one call of `rankeval.evaluate`, so that a value is that of
the whole collection, and the guard sees what is scored. What a row cannot answer is an error of that row: MLflow
counts it, shows it and leaves it out of the mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from mlflow.entities import AssessmentError, Feedback
from mlflow.genai.scorers import Scorer
from pydantic import PrivateAttr

from rankeval._checks import count, shown
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, RankevalError
from rankeval.evaluation import Evaluation, evaluate
from rankeval.evaluation.scoring import bound_measures
from rankeval.measures import LabelledMeasure, Measure
from rankeval.measures import measures as parse_measures
from rankeval_mlflow.genai import rows
from rankeval_mlflow.genai.rows import Expected, Ranking, Retrieved
from rankeval_mlflow.names import safe_names

Specs = str | Measure | Iterable[str | Measure]


class RankingScorer(Scorer):  # type: ignore[misc]  # MLflow has no types
    """A scorer of rankings; `genai_scorer` makes it. Its fields are what MLflow's digest of a scorer reads.

    Attributes
    ----------
    measures, columns : dict
        The full spelling of each measure, and the name of its value in MLflow, by the name asked for.
    card : dict
        The card of the convention.
    retrieved, expected, docid, qid : str, optional
        Where ranking, judgments and ids are; a function is named.
    """

    measures: dict[str, str]
    columns: dict[str, str]
    card: dict[str, Any]
    retrieved: str | None = None
    expected: str | None = None
    docid: str | None = None
    qid: str | None = None

    _asked: Any = PrivateAttr(default=None)
    _rules: Any = PrivateAttr(default=None)
    _retrieved: Any = PrivateAttr(default=None)
    _expected: Any = PrivateAttr(default=None)

    def __call__(self, *, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> Any:
        """Score one row.

        Parameters
        ----------
        inputs, outputs : object, optional
            Inputs and return value of the application; by default those of the trace.
        expectations : mapping, optional
            The expectations; by default those of the trace.
        trace : Trace, optional
            The trace of the application.

        Returns
        -------
        Feedback or list of Feedback
            One for each measure; a single one with an error if the row cannot be scored.
        """
        inputs, outputs, expectations = _completed(inputs, outputs, expectations, trace)
        query, code = rows.query_id(inputs, self.qid), "INVALID"
        ids = rows.ids_for(expectations, self._expected, self.docid)
        try:
            judgments = rows.judgments_of_row(expectations, self._expected, ids)
            code = "NO_RANKING"
            ranking = rows.ranking_of_row(outputs, trace, self._retrieved, ids)
            if judgments is None:
                return self._failed("NOT_JUDGED", rows.why_not_judged(expectations, self._expected))
            if reason := _left_out(ranking, judgments, self._rules):
                return self._failed("LEFT_OUT", f"left out by the convention: {reason}")
            code, scores = "INVALID", dict(ranking.scores)
            found = evaluate({query: judgments}, {query: scores}, measures=self._asked, convention=self._rules)
            return self._feedbacks(found, _rationale(ranking, judgments))
        except RankevalError as error:
            return self._failed(code, str(error))

    def _feedbacks(self, evaluation: Evaluation, said: str) -> Any:
        values, undefined = evaluation.scores[0].tolist(), evaluation.facts.undefined[0]
        found = [
            Feedback(name=column, value=value, rationale=f"{said}; 0/0 by the convention" if zero else said)
            for column, value, zero in zip(self.columns.values(), values, undefined, strict=True)
        ]
        return found[0] if len(found) == 1 else found

    def _failed(self, code: str, message: str) -> Feedback:
        """Return the error of a row without a value. It is a single one, since MLflow counts only those."""
        return Feedback(name=self.name, error=AssessmentError(error_code=code, error_message=message))


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

    It compares the documents that an application retrieved with graded judgments, and needs no language model. The
    value of a row is that of `rankeval.evaluate` for this query.

    Parameters
    ----------
    measures : str, Measure or iterable of them
        The measures. Each has a column and a metric of its own, ``nDCG_at_10/value`` and ``nDCG_at_10/mean``.
    name : str, optional
        Another name for the column; before a slash and the key of the measure if there are several. Two scorers in one
        call need names.
    retrieved : str or callable, optional
        Where the ranking is: ``"outputs"``; ``"outputs.documents"``, a field of a returned mapping or object;
        ``"span"``, the span of type RETRIEVER (spans within it do not count); ``"first span"``, ``"last span"`` or
        ``"all spans"`` of them in the order of time; ``"span rerank"``, the span of this name; or a function of outputs
        and trace. By default the outputs, if they are a ranking, or the RETRIEVER span. If there are several and they
        differ, the row is an error.
    expected : str or callable, optional
        Where the judgments are: the name of an expectation, or a function of all. By default ``relevance``, else
        ``expected_retrieved_context``. Grades by document id, or a list of relevant documents.
    docid : str, optional
        The field with the id of a document, such as ``"metadata.doc_uri"``. By default a usual name that all documents
        of the row have.
    qid : str, optional
        The input with the id of the query. By default ``qid``, ``query_id`` or ``id``; else the only input, if it is a
        short text; else a hash of the inputs.
    convention : str or Convention, default "rankeval"
        The rules, as in `rankeval.evaluate`.

    Returns
    -------
    Scorer
        A scorer of MLflow. A row without judgments or without a ranking is an error with the reason, and not a 0.

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
    asked = _bound(measures, rules)
    rows.check_retrieved(retrieved)
    for option, value in (("name", name), ("docid", docid), ("qid", qid)):
        if value is not None and (not isinstance(value, str) or not value):
            raise InvalidInput(argument=option, found=shown(value), expected="a text")
    if not (expected is None or callable(expected) or (isinstance(expected, str) and expected)):
        raise InvalidInput(f"expected is {shown(expected)}; expected the name of an expectation, or a function")
    columns = _columns(asked, name)
    scorer = RankingScorer(
        name=name or (columns[asked[0].label] if len(asked) == 1 else "retrieval"),
        description=f"{', '.join(columns)} by the convention {rules.name}",
        measures={label: str(one) for label, one in asked},
        columns=columns,
        card=rules.card(),
        retrieved=_named(retrieved),
        expected=_named(expected),
        docid=docid,
        qid=qid,
    )
    scorer._asked, scorer._rules = asked, rules  # noqa: SLF001 - pydantic has no other way in
    scorer._retrieved, scorer._expected = retrieved, expected  # noqa: SLF001
    return scorer


def _bound(measures: Specs, rules: Convention) -> list[LabelledMeasure]:
    """Return the measures as the convention means them; refuse what a row, or a mean of rows, cannot answer."""
    if rules.unjudged == "highest":
        raise InvalidInput("the rule unjudged='highest' needs the grades of all rows, and a scorer sees one")
    labels, found = zip(*parse_measures(measures, rules), strict=True)
    for label, one in zip(labels, found, strict=True):
        if one.family.aggregate not in ("mean", "sum"):
            raise InvalidInput(
                f"{label} is aggregated by {one.family.aggregate}, and MLflow shows the mean of rows: choose another "
                "measure"
            )
    return [LabelledMeasure(*pair) for pair in zip(labels, bound_measures(found, rules), strict=True)]


def _columns(asked: list[LabelledMeasure], name: str | None) -> dict[str, str]:
    """Return the name of each measure's value in MLflow."""
    if name is not None and len(asked) == 1:
        return {asked[0].label: name}
    safe = safe_names(one.measure.key for one in asked)
    return {label: safe[one.key] if name is None else f"{name}/{safe[one.key]}" for label, one in asked}


def _completed(inputs: Any, outputs: Any, expectations: Any, trace: Any) -> tuple[Any, Any, Any]:
    """Return inputs, outputs and expectations, those of the trace for what is not given."""
    if trace is None:
        return inputs, outputs, expectations
    root = next((span for span in trace.data.spans if span.parent_id is None), None) if trace.data else None
    if expectations is None:
        expectations = {one.name: one.expectation.value for one in trace.search_assessments(type="expectation")}
    return (
        inputs if inputs is not None or root is None else root.inputs,
        outputs if outputs is not None or root is None else root.outputs,
        expectations,
    )


def _left_out(ranking: Ranking, judgments: Mapping[str, Any], rules: Convention) -> str:
    """Return why a convention leaves out a row, or nothing: `score` would warn that no query is left."""
    if rules.missing == "skip" and not ranking.scores:
        return "nothing was retrieved"
    is_barren = all(isinstance(grade, Real) and grade <= 0 for grade in judgments.values())
    return "no relevant document" if rules.no_relevant == "skip" and is_barren else ""


def _rationale(ranking: Ranking, judgments: Mapping[str, Any]) -> str:
    """Return what was retrieved, in a sentence."""
    relevant = [one for one, grade in judgments.items() if isinstance(grade, Mapping) or grade > 0]
    hits = sum(one in ranking.scores for one in relevant)
    again = f"; {count(ranking.repeated, 'repeated document')} left out" if ranking.repeated else ""
    return f"{hits} of {count(len(relevant), 'relevant document')} among {len(ranking.scores)} retrieved{again}"


def _named(place: Any) -> str | None:
    """Return the name of a function, and a text as it is."""
    return getattr(place, "__qualname__", repr(place)) if callable(place) else place
