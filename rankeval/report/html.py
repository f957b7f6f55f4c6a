"""Write a result as one HTML file that holds its styles and figures, and one script for the table of queries.

MLflow shows artifacts in a sandboxed frame that cannot fetch or store anything, and names and ids
come from files of strangers. So the template engine escapes every value, figures are embedded
images, and the page's policy allows the one script by its hash: nothing else can run, whatever a
name holds. Without the script the page loses nothing but rows (`queries`). The words of a report
come from `summaries`, its layout from ``templates/``.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from rankeval._arguments import explained
from rankeval._checks import count, require
from rankeval._display import Page
from rankeval._visible import visible
from rankeval.comparison.headline import named_system
from rankeval.comparison.recorded import record_kind
from rankeval.comparison.tables import printed
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import (
    left_out_of_worst,
    reading_of,
    table_of_slices,
    worst_first,
    worst_slice,
)
from rankeval.measures import Measure, direction
from rankeval.render import plots
from rankeval.render.tables import DASH, Table, interval, number, with_minus
from rankeval.report import summaries
from rankeval.report.queries import (
    QueryColumn,
    QueryTable,
    TextTable,
    allowing,
    query_table,
    script,
)
from rankeval.significance.declarations import Rng
from rankeval.text.inspection import inspected

if TYPE_CHECKING:
    import pandas as pd


def _finalized(value: Any) -> Any:
    """Return a text of a template without control characters; marked-up text stays marked up."""
    return type(value)(visible(value, keep="\n\t")) if isinstance(value, str) else value


TEMPLATES = Environment(
    loader=PackageLoader("rankeval.report"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_finalized,
)
TEMPLATES.filters.update(count=count, minus=with_minus)
_TITLES = {"ab_test": "A/B test", "log_checks": "Checks of the click log"}
"""Headings of results that readers know by other words than their class."""


@explained
def report_for_experiment(facts: summaries.ExperimentFacts) -> str:
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
    comparison, rankers = facts.comparison, facts.candidates
    alone = rankers[0]
    best, drawn = alone.name, None
    if facts.baseline:
        best = named_system(comparison)
        drawn = comparison.plot(system=best, measure=facts.primary)
    sentences = {
        "findings": comparison.findings,
        "worst": summaries.worst_slices(facts),
        "notes": summaries.unguarded_notes(facts),
        "limits": summaries.limits_of(facts),
        "fit_notes": summaries.fit_notes(facts),
    }
    pictures = {
        "intervals": _image(comparison.plot()),
        "queries": _image(drawn or _sorted_scores(alone.test)),
    }
    tables = {
        "candidates": table_of_texts(summaries.candidate_frame(facts)),
        "comparison": _texts(printed(comparison)),
        # Without p-values: the plan promised none.
        "secondary": facts.secondary and _texts(printed(facts.secondary), "p adjusted"),
        "moved": facts.moved and table_of_texts(facts.moved.table),
    }
    coverage = [(ranker.name, summaries.coverage_sentences(ranker.test)) for ranker in rankers]
    slices = [(name, table_of_texts(frame)) for name, frame in facts.slices.items()]
    searches = [(ranker.name, table_of_texts(ranker.search.map(_short))) for ranker in rankers]
    return _render(
        "experiment.html.jinja",
        facts=facts,
        best=best,
        slices=slices,
        table_of_queries=_queries_of(facts, best),
        card=_card(alone.test),
        searches=searches,
        coverage=coverage,
        **sentences,
        **pictures,
        **tables,
    )


@explained
def report_for_evaluation(
    evaluation: Evaluation,
    *,
    role: str | None = None,
    said: str = "",
    slices: Any = None,
    online: Iterable[Any] = (),
) -> str:
    """Write the report of one evaluation as one HTML page.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str, optional
        The role of the data, such as ``"dev"``.
    said : str
        A sentence that a reader should see first, such as what the guard says.
    slices : Series, mapping, DataFrame, array, str or TextTable, optional
        An attribute of the queries, as in `Evaluation.slices`: the page has the means of each of
        its values. Or their table, as `table_of_texts` made it.
    online : iterable of results
        Results of ``rankeval.online``, such as an ABTest or a Comparison of interleaved rankings:
        the page shows the table, the notes and the picture of each in this order.

    Returns
    -------
    str
        The page.

    Raises
    ------
    QueryIdError, InvalidInput
        If the attribute does not fit the queries, or a result has no table.
    """
    if not (slices is None or isinstance(slices, TextTable)):
        means = table_of_slices(evaluation, slices)
        said = f"{said} {worst_slice(means, evaluation)}".lstrip()
        slices = table_of_texts(means)
    tables = {
        "means": _means(evaluation),
        "slices": slices,
        "table_of_queries": _scores_of_queries(evaluation),
        "card": _card(evaluation),
    }
    return _render(
        "evaluation.html.jinja",
        title=evaluation.name or "Evaluation",
        role=role,
        said=said,
        evaluation=evaluation,
        curves=_image(_sorted_scores(evaluation)),
        coverage=summaries.coverage_sentences(evaluation),
        online=_parts(online, "online"),
        **tables,
    )


@explained
def report_for_judging(results: Iterable[Any], *, title: str = "Judging") -> str:
    """Write results with a table as one HTML page: of judging, of online evaluation, comparisons.

    Parameters
    ----------
    results : iterable of results
        The results in the order of the page, such as an Agreement, or an offline Comparison and an
        ABTest. Each has its table with caption and notes, and its picture if it has one.
    title : str
        The title of the page.

    Returns
    -------
    str
        The page.

    Raises
    ------
    InvalidInput
        If one of them is no result with a table.
    """
    return _render("judging.html.jinja", title=title, parts=_parts(results, "results"))


def title_of(kind: str) -> str:
    """Return the heading of a kind of result.

    Examples
    --------
    >>> title_of("ab_test"), title_of("policy_value")
    ('A/B test', 'Policy value')
    """
    return _TITLES.get(kind, kind.replace("_", " ").capitalize())


@explained
def report_for_queries(
    evaluations: Evaluation | Mapping[str, Evaluation],
    runs: Any,
    qrels: Any,
    *,
    texts: Any = None,
    needs: Any = None,
    queries: Any = 10,
    measure: str | Measure | None = None,
    depth: int = 10,
    rng: Rng = 0,
    stem: str | None = None,
    stop: str | Collection[str] | None = "english",
) -> str:
    """Write some queries as one HTML page: need, ranked documents, labels and snippets, of two systems side by side.

    A mean does not say why a ranking is bad; reading ten queries does. The page begins with the
    means over all queries and a list of those shown. It has for each query its scores and the first
    documents of each ranking: rank, grade or "unjudged", id, score, and the parts of the text
    around the words of the need, which are marked. Relevant documents that no ranking shows can be
    unfolded below. Of two systems the page shows how each document moved. A document that nearly
    repeats one above it is marked: a reader who saw that one gains nothing.

    Parameters
    ----------
    evaluations : Evaluation, or mapping of one or two by name
        The scores of the systems. Nothing is evaluated again. The second is compared with the
        first.
    runs : mapping of Run, dict, frame or path
        The rankings that were evaluated, by the same names. For a single Evaluation also the
        ranking itself. Equal scores are shown in the order of the run; if the scores were made with
        ``ties="docid"``, by document id, descending.
    qrels : Qrels, dict, frame or path
        The judgments.
    texts : mapping, Series, frame or path, optional
        The texts of documents by id. Documents may lack one.
    needs : mapping, Series, frame or path, optional
        The texts of queries by id. Without one, a document has its first words.
    queries : int, or ids of queries, or mask
        How many queries; or which, as in `Evaluation.subset`. Of two systems two fifths are the
        greatest losses, two fifths the greatest gains, and the others are drawn at random. Of one
        system they are the worst, the best and random ones. If lower is better (ARP), the highest
        scores are the worst.
    measure : str or Measure, optional
        The measure that chooses; by default the first that the evaluations share.
    depth : int
        How many documents of each ranking.
    rng : int, Generator or None
        Seed of the draw.
    stem, stop
        As in `rankeval.text.snippets`: the words of the need that are marked.

    Returns
    -------
    str
        The page. It has at most 2,000 ranked documents, reads at most 100,000 characters of a text,
        and says what it leaves out. Text of strangers stays text: control characters and marks of
        the writing direction are written as escapes.

    Raises
    ------
    InvalidInput
        If there are more than two evaluations, no run of one, or no common measure or query; or the
        judgments, runs or texts cannot be read.
    QueryIdError
        If a query that is asked for is unknown.
    UnknownName
        If the evaluations lack the measure.
    GuardRefusal
        If the content is registered with a guard and a ranking was not opened.

    Notes
    -----
    Near-duplicates: more than half of the different runs of four words in either text are in both (Jaccard
    coefficient of shingles; Broder et al. 1997, https://doi.org/10.1016/S0169-7552(97)00031-7).

    Examples
    --------
    >>> import rankeval as rk
    >>> qrels, run = {"q1": {"d1": 1, "d2": 0}}, {"q1": {"d2": 0.9, "d1": 0.2}}
    >>> ev = rk.evaluate(qrels, run, measures="RR", name="bm25")
    >>> page = report_for_queries(ev, run, qrels, texts={"d1": "lift of a wing"}, needs={"q1": "wings"}, stem="english")
    >>> "lift of a <mark>wing</mark>" in page
    True
    """
    arguments = evaluations, runs, qrels, texts, needs, queries, measure, depth, rng, stem, stop
    return _render("cards.html.jinja", page=inspected(*arguments))


def _card(evaluation: Evaluation) -> TextTable:
    return TextTable(["Rule", "Value", "Affected"], summaries.card_rows(evaluation), n_text=2)


def table_of_texts(frame: pd.DataFrame) -> TextTable:
    """Return a table for a page, such as that of `Evaluation.slices`."""
    return _texts(Table(frame))


def _render(template: str, **values: Any) -> str:
    rendered = TEMPLATES.get_template(template).render(
        script=script(), script_hash=allowing(script()), **values
    )
    return Page(rendered)


def _image(figure: Any) -> str:
    # Twice the resolution of the page, for dense screens.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, bbox_inches="tight", facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _texts(shown: Table, *hidden: str) -> TextTable:
    names = list(map(str, shown.frame))
    is_shown = [name not in hidden for name in names]
    header, *rows = (list(compress(row, is_shown)) for row in (names, *shown.texts()))
    return TextTable(header, rows, n_text=1 + ("measure" in names))


def _parts(results: Iterable[Any], argument: str) -> list[tuple[str, str, str, Any]]:
    """Return name, table, picture and opening of each result; their tables escape what they hold."""
    listed: list[Any] = [results] if hasattr(results, "notes") else [*results]
    have_tables = all({"notes", "_repr_html_"} <= {*dir(result)} for result in listed)
    require(have_tables, argument, listed, "results with a table")
    parts = []
    for result in listed:
        picture = _image(result.plot()) if hasattr(result, "plot") else ""
        opening = getattr(result, "opening", None)
        parts.append((title_of(record_kind(result)), result._repr_html_(), picture, opening))
    return parts


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _means(evaluation: Evaluation) -> TextTable:
    intervals = evaluation.ci().to_dict("index")
    shares, rows = reading_of(evaluation, "judged").mean(axis=0), []
    for (label, value), share in zip(evaluation.aggregate().items(), shares, strict=True):
        row = intervals.get(label)
        ends = DASH if row is None else interval(row["ci_low"], row["ci_high"])
        rows.append([str(label), number(value), ends, number(share, digits=2)])
    kept = 3 if (shares == 1).all() else 4
    headers = ["Measure", "value", "95% interval", "judged within the cut-off"]
    return TextTable(headers[:kept], [row[:kept] for row in rows])


def _scores_of_queries(evaluation: Evaluation) -> QueryTable:
    names = evaluation.measure_names
    by = next((place for place, name in enumerate(names) if len(worst_first(evaluation, name))), 0)
    label = names[by]
    shown = np.sort(worst_first(evaluation, label))
    scores = zip(names, evaluation.scores[shown].T, strict=True)
    columns = [QueryColumn(name, "score", values) for name, values in scores]
    columns += [
        QueryColumn(name, "count", numbers[shown])
        for name, numbers in evaluation.facts.query_counts.items()
    ]
    falls = not evaluation.measures[by].family.greater_is_better
    table = query_table(
        evaluation.queries[shown], columns, by=by, falls=falls, order=f"worst by {label} first"
    )
    return replace(table, said=f"{table.said} {left_out_of_worst(evaluation, label)}".strip())


def _sorted_scores(evaluation: Evaluation) -> plots.Figure:
    worst = {
        name: evaluation.queries[worst_first(evaluation, name)] for name in evaluation.measure_names
    }
    return plots.sorted_scores(evaluation.per_query, worst)


def _queries_of(facts: summaries.ExperimentFacts, best: str) -> QueryTable:
    """Return the test queries with the primary score of every ranker, the largest losses of the best one first.

    A single ranker loses against nobody: its lowest queries are first.
    """
    if facts.baseline is None:
        return _scores_of_queries(facts.candidates[0].test)
    scores = {
        candidate.name: candidate.test.per_query[facts.primary] for candidate in facts.candidates
    }
    difference = scores[best] - scores[facts.baseline]
    columns = [QueryColumn(f"{best} against {facts.baseline}", "difference", difference.to_numpy())]
    columns += [QueryColumn(name, "score", values.to_numpy()) for name, values in scores.items()]
    order = f"by {facts.primary}, the largest losses of {best} first"
    return query_table(
        difference.index, columns, by=0, falls=direction(facts.primary).sign < 0, order=order
    )
