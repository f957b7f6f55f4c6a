"""genai_evaluation: a run of mlflow.genai.evaluate as the Evaluation that rankeval.evaluate gives.

Each scorer stored the rows that it saw (`rows`). They are scored again, together, and the values must be those of the
run to the last bit: so the evaluation has everything that one has, from the convention to the digests, and a run that
was altered is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlflow.entities import TraceState
from mlflow.tracing.constant import AssessmentMetadataKey

from rankeval._checks import count, few, shown
from rankeval._registry import chosen
from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput, TrackingError
from rankeval.evaluation import Evaluation
from rankeval.measures import LabelledMeasure, measure
from rankeval_mlflow.genai.rankings import Ranking
from rankeval_mlflow.genai.rows import ROW, Row
from rankeval_mlflow.genai.scoring import evaluation_of
from rankeval_mlflow.reading.asking import asking, pages
from rankeval_mlflow.reading.where import resolve

FAILED = ("error", "skip", "empty")
"""What becomes of rows whose application gave no ranking."""

NOT_JUDGED = "not judged"
NO_RANKING = "no ranking"


@dataclass
class _Scored:
    """The rows of one scorer, or of several without a name, and the values that they wrote."""

    convention: Mapping[str, Any]
    rows: dict[str, Row] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    trace_of: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def why(self, queries: list[str]) -> str:
        """Return the queries without a value, and the reason of the first one."""
        reasons = list(dict.fromkeys(self.reasons[query] for query in queries))
        others = f" ({count(len(reasons) - 1, 'other reason')} in the traces of the run)" if reasons[1:] else ""
        return f"({few(queries)}): {reasons[0]}{others}"


def genai_evaluation(
    run: Any, *, scorer: str | None = None, failed: str = "error", name: str | None = None
) -> Evaluation:
    """Load a run of ``mlflow.genai.evaluate`` with a `genai_scorer` as an evaluation.

    The evaluation can be compared with that of another run (`rankeval.compare`), sliced, and logged with
    `log_evaluation`, as any other.

    Parameters
    ----------
    run : EvaluationResult, TrackedRun or str
        What ``mlflow.genai.evaluate`` returned, or the id of its run.
    scorer : str, optional
        The ``name=`` of the scorer; needed only if there are several with names. Those without a name are one, with all
        their measures.
    failed : {"error", "skip", "empty"}
        What becomes of rows whose application failed or returned no ranking: an error that counts them; left out of the
        evaluation (then it cannot be compared with one that has them, but for the common queries); or scored as an
        empty ranking.
    name : str, optional
        Name of the system; by default the name of the run.

    Returns
    -------
    Evaluation
        A row is a query. Rows without judgments are left out, and counted in ``excluded``.

    Raises
    ------
    InvalidInput
        If the run does not exist, holds no such scorer, has two rankings for a query, rows that could not be scored, or
        rows without a ranking and ``failed`` is "error".
    TrackingError
        If the store cannot be reached, or a value is not that of its row.

    Examples
    --------
    >>> import mlflow
    >>> from rankeval_mlflow import genai_scorer
    >>> rows = [
    ...     {"inputs": {"question": "who"}, "outputs": ["d2", "d1"], "expectations": {"relevance": {"d1": 1}}},
    ...     {"inputs": {"question": "why"}, "outputs": ["d3"], "expectations": {"relevance": {"d3": 1}}},
    ... ]
    >>> result = mlflow.genai.evaluate(data=rows, scorers=[genai_scorer("RR")])  # doctest: +ELLIPSIS
    <BLANKLINE>
    ...
    >>> genai_evaluation(result).per_query["RR"].to_dict()
    {'who': 0.5, 'why': 1.0}
    """
    chosen("value of failed", failed, FAILED)
    is_result = type(run).__name__ == "EvaluationResult"
    with asking(None, "the run of an evaluation") as client:
        found = resolve(client, run.run_id if is_result else run).run
        run_id = found.info.run_id
        where = {"locations": [found.info.experiment_id], "run_id": run_id, "include_spans": False, "max_results": 500}
        traces = list(pages(client.search_traces, **where))
    traces.sort(key=_place(run.result_df if is_result else None))
    scored = _chosen(_by_scorer(traces, run_id), scorer, run_id)
    _check_rows(scored, len(traces), run_id)
    evaluation = _evaluated(scored, failed, run_id)
    return evaluation.renamed(name or found.info.run_name)


def _evaluated(scored: _Scored, failed: str, run_id: str) -> Evaluation:
    """Score the rows again, together."""
    problems: dict[str, list[str]] = {}
    for query, row in scored.rows.items():
        problems.setdefault(row.problem or "", []).append(query)
    lost = problems.get(NO_RANKING, [])
    if lost and failed == "error":
        raise InvalidInput(
            f"run {run_id}: {count(len(lost), 'row')} without a ranking {scored.why(lost)}. failed='empty' scores "
            "empty rankings there, failed='skip' leaves these rows out"
        )
    left_out = {NO_RANKING, NOT_JUDGED} if failed == "skip" else {NOT_JUDGED}
    empty = Ranking({}, is_list=True)
    rows = [
        row if row.ranking else replace(row, ranking=empty)
        for row in scored.rows.values()
        if row.problem not in left_out and row.judgments
    ]
    if not rows:
        raise InvalidInput(f"run {run_id}: no row has judgments and a ranking, so there is nothing to evaluate")
    measures = [LabelledMeasure(label, measure(spelling)) for label, spelling in scored.measures.items()]
    evaluation = evaluation_of(rows, measures, Convention.from_card(scored.convention))
    _check_values(evaluation, scored, run_id)
    unjudged = [query for query, row in scored.rows.items() if row.judgments is None]
    excluded = {"no judgments": sorted(unjudged), NO_RANKING: sorted({*lost} - {*unjudged}) if failed == "skip" else []}
    added = {reason: tuple(queries) for reason, queries in excluded.items() if queries}
    return replace(evaluation, excluded={**evaluation.excluded, **added})


def _check_values(evaluation: Evaluation, scored: _Scored, run_id: str) -> None:
    """Refuse a run whose values are not those of its rows."""
    places = {query: place for place, query in enumerate(evaluation.queries.tolist())}
    columns = {label: column for column, label in enumerate(evaluation.measure_names)}
    for (query, label), value in scored.values.items():
        again = float(evaluation.scores[places[query], columns[label]]) if query in places else float("nan")
        if value != again:
            raise TrackingError(
                f"run {run_id}: the value of {label} for the query {shown(query)} is {value!r}, and its ranking and "
                f"judgments give {again!r}: it was altered, or written by another version of rankeval"
            )


def _check_rows(scored: _Scored, n_traces: int, run_id: str) -> None:
    """Refuse rows that could not be scored, and traces that the scorer did not reach."""
    invalid = [query for query, row in scored.rows.items() if row.problem == "invalid"]
    if invalid:
        raise InvalidInput(f"run {run_id}: {count(len(invalid), 'row')} could not be scored {scored.why(invalid)}")
    reached = len(scored.trace_of)
    if reached < n_traces:
        raise InvalidInput(
            f"run {run_id}: the scorer wrote nothing for {n_traces - reached} of {count(n_traces, 'row')}; see the "
            "errors in the traces, and evaluate again"
        )


def _by_scorer(traces: list[Any], run_id: str) -> dict[str | None, _Scored]:
    """Collect the rows and values that our scorers wrote in this run, by the name given to the scorer."""
    found: dict[str | None, _Scored] = {}
    for trace in traces:
        ours = [one for one in trace.info.assessments if _of_run(one, run_id)]
        values = {one.name: one.feedback.value for one in ours if one.feedback is not None}
        for one in ours:
            if ROW not in (one.metadata or {}):
                continue
            row = Row.from_json(one.metadata[ROW])
            scored = found.setdefault(row.scorer, _Scored(row.convention))
            _add(scored, row, values, trace.info.trace_id, run_id)
            if row.problem is not None:
                scored.reasons.setdefault(row.query, _reason(trace, row, one))
    return found


def _reason(trace: Any, row: Row, assessment: Any) -> str:
    """Return why a row has no value: the scorer's error, but for a ranking that an application failed to give."""
    if row.problem == NO_RANKING and trace.info.state == TraceState.ERROR:
        return "the application failed, see its trace"
    error = assessment.feedback.error if assessment.feedback else None
    return (error and error.error_message) or row.problem or ""


def _place(table: Any) -> Callable[[Any], tuple[int, int]]:
    """Return the key that sorts traces: by the rows of a result, which are those of the data; else by their time."""
    places = {} if table is None else {trace_id: place for place, trace_id in enumerate(table["trace_id"])}
    return lambda trace: (places.get(trace.info.trace_id, len(places)), trace.info.request_time)


def _of_run(assessment: Any, run_id: str) -> bool:
    """Return whether an assessment is of this run: a trace that is evaluated again has those of all runs."""
    return (assessment.metadata or {}).get(AssessmentMetadataKey.SOURCE_RUN_ID) == run_id


def _add(scored: _Scored, row: Row, values: dict[str, Any], trace_id: str, run_id: str) -> None:
    """Add a row, and its values by the names asked for."""
    known, at = scored.rows.setdefault(row.query, row), scored.trace_of.setdefault(row.query, trace_id)
    if at != trace_id or (known.ranking, known.judgments) != (row.ranking, row.judgments):
        raise InvalidInput(
            f"run {run_id} has two rows for the query {shown(row.query)}: the data has it twice, or two evaluations "
            "went to this run, or two scorers without name= read it differently. Name the input with its id by qid=, "
            "and scorers by name="
        )
    if row.convention != scored.convention:
        raise InvalidInput(f"run {run_id} has scorers with different conventions: give them names by name=")
    scored.measures.update(row.measures)
    if row.problem is None:
        scored.values |= {(row.query, label): values[column] for label, column in row.columns.items()}


def _chosen(found: dict[str | None, _Scored], scorer: str | None, run_id: str) -> _Scored:
    if not found:
        raise InvalidInput(f"run {run_id} has no values of a genai_scorer in its traces")
    names = [name or "(without a name)" for name in found]
    if scorer is None and (None in found or len(found) == 1):
        return found.get(None) or next(iter(found.values()))
    if scorer not in found:
        raise InvalidInput(f"scorer is {shown(scorer)}; expected one of those in run {run_id}: {', '.join(names)}")
    return found[scorer]
