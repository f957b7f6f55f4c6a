"""Write a result as one HTML file that holds its styles and figures, and one script for the table of queries.

MLflow shows artifacts in a sandboxed frame that cannot fetch or store anything, and names and ids come from files of
strangers. So the template engine escapes every value, figures are embedded images, and the page's policy allows the one
script by its hash: nothing else can run, whatever a name holds. Without the script the page loses nothing but rows
(`queries`). The words of a report come from `summaries`, its layout from ``templates/``.
"""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from rankeval._checks import count
from rankeval.comparison.headline import named_system
from rankeval.comparison.tables import printed
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import left_out_of_worst, reading_of, worst_first
from rankeval.measures import greater_is_better
from rankeval.render import plots
from rankeval.render.tables import DASH, Table, number, with_minus
from rankeval.report import summaries
from rankeval.report.queries import Column, QueryTable, TextTable, query_table, script, script_hash
from rankeval.report.summaries import WARNINGS, Candidate, ExperimentFacts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def report_for_experiment(facts: ExperimentFacts) -> str:
    """Write the report of an experiment as one HTML page.

    Parameters
    ----------
    facts : ExperimentFacts
        The facts of the experiment.

    Returns
    -------
    str
        The page.
    """
    comparison = facts.comparison
    best = named_system(comparison) if facts.baseline else facts.candidates[0].name
    return _render(
        "experiment.html.jinja",
        facts=facts,
        findings=comparison.findings,
        notes=sorted(summaries.notes_of(facts), key=lambda note: not note.startswith(WARNINGS)),
        warnings=WARNINGS,
        intervals=_image(comparison.plot()),
        candidates=_texts(Table(summaries.candidate_frame(facts))),
        comparison=_texts(printed(comparison)),
        # Without p-values: the plan promised none.
        secondary=facts.secondary and _texts(printed(facts.secondary), "p adjusted"),
        queries=_image(_figure_of_queries(facts, best)),
        best=best,
        table_of_queries=_queries_of(facts, best),
        moved=facts.moved and _texts(Table(facts.moved.table)),
        slices=[(name, _texts(Table(frame))) for name, frame in facts.slices.items()],
        searches=[(each.name, _search(each)) for each in facts.candidates],
        card=TextTable(["Rule", "Value", "Affected"], summaries.card_rows(facts.candidates[0].test), n_text=2),
        coverage=[(each.name, summaries.coverage_sentences(each.test)) for each in facts.candidates],
        trained=count(facts.n_trained, "ranker"),
    )


def report_for_evaluation(evaluation: Evaluation, *, role: str | None = None, said: str = "") -> str:
    """Write the report of one evaluation as one HTML page.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str, optional
        The role of the data, such as ``"dev"``.
    said : str
        A sentence that a reader should see first, such as what the guard says.

    Returns
    -------
    str
        The page.
    """
    return _render(
        "evaluation.html.jinja",
        title=evaluation.name or "Evaluation",
        role=role,
        said=said,
        evaluation=evaluation,
        means=_means(evaluation),
        curves=_image(_sorted_scores(evaluation)),
        table_of_queries=_scores_of_queries(evaluation),
        card=TextTable(["Rule", "Value", "Affected"], summaries.card_rows(evaluation), n_text=2),
        coverage=summaries.coverage_sentences(evaluation),
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rankeval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = count
    environment.filters["minus"] = with_minus
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(script=script(), script_hash=script_hash(), **values)


def _image(figure: Figure) -> str:
    # Twice the resolution of the page, for dense screens.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, bbox_inches="tight", facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _texts(shown: Table, *hidden: str) -> TextTable:
    names = list(map(str, shown.frame))
    kept = [place for place, name in enumerate(names) if name not in hidden]
    rows = [[row[place] for place in kept] for row in shown.texts()]
    return TextTable([names[place] for place in kept], rows, n_text=1 + ("measure" in names))


def _search(candidate: Candidate) -> TextTable:
    frame = candidate.search
    rows = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row]
        for row in frame.itertuples(index=False, name=None)
    ]
    return TextTable(list(map(str, frame.columns)), rows, n_text=0)


def _means(evaluation: Evaluation) -> TextTable:
    limits = evaluation.ci().reset_index().to_dict("records") if evaluation.weights is None else []
    intervals = {str(row["index"]): row for row in limits}
    shares, rows = reading_of(evaluation, "judged").mean(axis=0), []
    for (label, value), share in zip(evaluation.aggregate().items(), shares, strict=True):
        row = intervals.get(str(label))
        interval = DASH if row is None else f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
        rows.append([str(label), number(value), interval, number(share, digits=2)])
    if (shares == 1).all():
        return TextTable(["Measure", "value", "95% interval"], [row[:3] for row in rows])
    return TextTable(["Measure", "value", "95% interval", "judged within the cut-off"], rows)


def _scores_of_queries(evaluation: Evaluation) -> QueryTable:
    label = evaluation.measure_names[0]
    shown = np.sort(worst_first(evaluation, label))
    scores = zip(evaluation.measure_names, evaluation.scores[shown].T, strict=True)
    columns = [Column(name, "score", values) for name, values in scores]
    columns += [Column(name, "count", numbers[shown]) for name, numbers in evaluation.facts.query_counts.items()]
    falls = not evaluation.measures[0].family.greater_is_better
    table = query_table(evaluation.queries[shown], columns, by=0, falls=falls, order=f"worst by {label} first")
    return replace(table, said=f"{table.said} {left_out_of_worst(evaluation, label)}".strip())


def _sorted_scores(evaluation: Evaluation) -> Figure:
    worst = {name: evaluation.queries[worst_first(evaluation, name)] for name in evaluation.measure_names}
    return plots.sorted_scores(evaluation.per_query, worst)


def _figure_of_queries(facts: ExperimentFacts, best: str) -> Figure:
    if facts.baseline is None:
        return _sorted_scores(facts.candidates[0].test)
    return facts.comparison.plot(system=best, measure=facts.primary)


def _queries_of(facts: ExperimentFacts, best: str) -> QueryTable:
    """Return the test queries with the primary score of every ranker, the largest losses of the best one first.

    A single ranker loses against nobody: its lowest queries are first.
    """
    import pandas as pd

    if facts.baseline is None:
        return _scores_of_queries(facts.candidates[0].test)
    scores = pd.DataFrame({each.name: each.test.per_query[facts.primary] for each in facts.candidates})
    difference = (scores[best] - scores[facts.baseline]).to_numpy()
    columns = [Column(f"{best} against {facts.baseline}", "difference", difference)]
    columns += [Column(str(name), "score", scores[name].to_numpy()) for name in scores]
    order = f"by {facts.primary}, the largest losses of {best} first"
    return query_table(scores.index, columns, by=0, falls=not greater_is_better(facts.primary), order=order)
