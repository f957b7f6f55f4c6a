"""Write a result as one HTML file with its styles and figures, and one script for the table of queries.

MLflow shows artifacts in a sandboxed frame that cannot fetch or store anything, and names and ids
come from files of strangers. So the template engine escapes every value, figures are embedded
images, and the page's policy allows the one script by its hash: nothing else can run, whatever a
name contains. Without the script the page loses nothing but rows (`queries`). The words of a report
come from `summaries`, its layout from ``templates/``.
"""

from __future__ import annotations

import base64
import io
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from rankeval._arguments import explained
from rankeval._checks import count, require
from rankeval._display import Page
from rankeval._visible import visible
from rankeval.comparison import Comparison
from rankeval.comparison.headline import KeyNumber, key_numbers, named_pair, named_system
from rankeval.comparison.recorded import record_kind
from rankeval.comparison.seeds import seed_tables
from rankeval.comparison.tables import printed, unjudged_tables
from rankeval.evaluation import Evaluation
from rankeval.evaluation.result import (
    aggregates,
    left_out_of_worst,
    reading_of,
    table_of_slices,
    weights_note,
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
    dumped,
    needs_by_id,
    query_table,
    script,
)
from rankeval.significance.declarations import Rng
from rankeval.text.inspection import inspected

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as PlainFigure


def _finalized(value: Any) -> Any:
    """Return a text of a template without control characters; marked-up text stays marked up."""
    return type(value)(visible(value, keep="\n\t")) if isinstance(value, str) else value


TEMPLATES = Environment(
    loader=PackageLoader("rankeval.report"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_finalized,
)


def typeset(sentence: str) -> str:
    """Set minus signs, and percent signs beside their numbers.

    Examples
    --------
    >>> typeset("-0.03 [95 % interval]").replace("\N{MINUS SIGN}", "minus ")
    'minus 0.03 [95% interval]'
    """
    return closed_up(with_minus(sentence))


def closed_up(text: str) -> str:
    """Return a text, or a fragment of HTML, with percent signs beside their numbers."""
    return _PERCENT.sub("%", text)


def head(sentence: str) -> str:
    """Return a note as one line: the note itself, or the first clause of a long one."""
    if len(sentence) <= _LINE:
        return sentence
    ends = [found.start() for found in _CLAUSE.finditer(sentence)]
    fitting = [end for end in ends if _SHORTEST <= end <= _LINE]
    if fitting:
        return sentence[: fitting[-1]]
    return textwrap.shorten(sentence, _LINE, placeholder="")


def capital(sentence: str) -> str:
    """Return a sentence with a capital at its start."""
    return sentence[:1].upper() + sentence[1:]


TEMPLATES.filters.update(
    count=count, minus=with_minus, typeset=typeset, head=head, capital=capital, dumped=dumped
)
_SHORTEST, _LINE = 30, 100
"""Letters of a note that has one line: of a longer one it has the first clauses, the rest is folded."""

_PERCENT = re.compile(r"(?<=\d) %(?!\w)")
_CLAUSE = re.compile(r"[;:] ")
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
        "numbers": key_numbers(comparison, facts.guard.status),
        "findings": comparison.findings,
        "worst": summaries.worst_slices(facts),
        "notes": summaries.unguarded_notes(facts),
        "limits": summaries.limits_of(facts),
        "fit_notes": summaries.fit_notes(facts),
    }
    pictures = {
        "intervals": _picture(comparison.plot()),
        "queries": _picture(drawn) if drawn else _curves(alone.test),
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
    needs: Any = None,
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
    needs : mapping, Series, frame or path, optional
        The texts of queries by id, as in `report_for_queries`: the page has them beside the ids.

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
        slices = table_of_slice_texts(means)
    tables = {
        "means": _means(evaluation),
        "slices": slices,
        "table_of_queries": with_needs(_scores_of_queries(evaluation), needs),
        "card": _card(evaluation),
    }
    return _render(
        "evaluation.html.jinja",
        title=evaluation.name or "Evaluation",
        role=role,
        said=said,
        evaluation=evaluation,
        numbers=summaries.key_means(evaluation),
        weighted=weights_note(evaluation),
        curves=_curves(evaluation),
        coverage=summaries.coverage_sentences(evaluation),
        online=_shown_results(online, "online"),
        **tables,
    )


@explained
def report_for_judging(
    results: Iterable[Any],
    *,
    title: str = "Judging",
    needs: Any = None,
    queries: QueryTable | None = None,
) -> str:
    """Write results with a table as one HTML page: of judging, of online evaluation, comparisons.

    The page of a single comparison begins with its numbers and its headline. If the comparison has
    its evaluations, the page also has the scores of every query and the convention.

    Parameters
    ----------
    results : iterable of results
        The results in the order of the page, such as an Agreement, or an offline Comparison and an
        ABTest. Each has its table with caption and notes, and its picture if it has one.
    title : str
        The title of the page.
    needs : mapping, Series, frame or path, optional
        The texts of queries by id, as in `report_for_queries`: the page of a single comparison has
        them beside the ids.
    queries : QueryTable, optional
        The queries of a single comparison that was read without its evaluations, as
        `queries_of_comparison` made it.

    Returns
    -------
    str
        The page.

    Raises
    ------
    InvalidInput
        If one of them is not a result with a table.
    """
    listed = _listed(results)
    if len(listed) != 1 or not isinstance(listed[0], Comparison):
        return _render("judging.html.jinja", title=title, results=_shown_results(listed, "results"))
    (comparison,) = listed
    queries = queries or queries_of_comparison(comparison)
    held = next((e for e in comparison.evaluations.values() if isinstance(e, Evaluation)), None)
    return _render(
        "comparison.html.jinja",
        title=title,
        result=_shown_comparison(comparison, queries and with_needs(queries, needs)),
        card=held and _card(held),
        digests={"judgments": held.judgments_digest} if held else {},
    )


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
    unfolded below. For two systems, the page shows how each document moved. A document that nearly
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
        How many queries; or which, as in `Evaluation.subset`. For two systems, two fifths are the
        greatest losses, two fifths the greatest gains, and the others are drawn at random. For one
        system, they are the worst, the best and random ones. If lower is better (ARP), the highest
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


class Picture(NamedTuple):
    """A figure as two images: for a wide page, and for a phone."""

    wide: str
    narrow: str


def _picture(figure: PlainFigure, narrow: PlainFigure | None = None) -> Picture:
    # The page has the caption as text.
    for drawn in filter(None, (figure, narrow)):
        drawn.suptitle("")
    wide = _image(figure)
    return Picture(wide, _image(plots.narrowed(narrow or figure)))


def _curves(evaluation: Evaluation) -> Picture:
    return _picture(_sorted_scores(evaluation), _sorted_scores(evaluation, most_columns=2))


def _image(figure: PlainFigure) -> str:
    # Twice the resolution of the page, for dense screens.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200, bbox_inches="tight", facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _texts(shown: Table, *hidden: str) -> TextTable:
    names = list(map(str, shown.frame))
    is_shown = [name not in hidden for name in names]
    header, *rows = (list(compress(row, is_shown)) for row in (names, *shown.texts()))
    return TextTable(header, rows, n_text=1 + ("measure" in names))


class ShownResult(NamedTuple):
    """A result as its template needs it; the fragments of tables escape their content."""

    name: str
    tables: list[str]
    picture: Picture | None
    opening: Any
    tiles: Sequence[KeyNumber] = ()
    sentences: Sequence[str] = ()
    notes: Sequence[str] = ()
    queries: QueryTable | None = None


def _listed(results: Any) -> list[Any]:
    return [results] if hasattr(results, "notes") else [*results]


def _shown_results(results: Any, argument: str) -> list[ShownResult]:
    listed = _listed(results)
    have_tables = all({"notes", "_repr_html_"} <= {*dir(result)} for result in listed)
    require(have_tables, argument, listed, "results with a table")
    return [
        _shown_comparison(result) if isinstance(result, Comparison) else _shown_result(result)
        for result in listed
    ]


def _shown_result(result: Any) -> ShownResult:
    picture = _picture(result.plot()) if hasattr(result, "plot") else None
    name, opening = title_of(record_kind(result)), getattr(result, "opening", None)
    return ShownResult(name, [closed_up(result._repr_html_())], picture, opening)


def _shown_comparison(comparison: Comparison, queries: QueryTable | None = None) -> ShownResult:
    first = printed(comparison)
    tables = [replace(first, notes=()), *seed_tables(comparison), *unjudged_tables(comparison)]
    guard = summaries.GuardFacts.of(comparison)
    is_equal = _is_equal(comparison)
    return ShownResult(
        title_of(record_kind(comparison)),
        [closed_up(table.to_html()) for table in tables],
        None if is_equal else _picture(comparison.plot()),
        comparison.opening,
        key_numbers(comparison, guard.status if guard else ""),
        comparison.findings,
        first.notes,
        queries,
    )


def _is_equal(comparison: Comparison) -> bool:
    """Return whether all systems are equal on every query: then there are no differences to draw."""
    table = comparison.table
    return len(table) > 0 and not table[["wins", "losses"]].to_numpy().any()


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


def _sorted_scores(evaluation: Evaluation, *, most_columns: int = 3) -> plots.Figure:
    worst = {
        name: evaluation.queries[worst_first(evaluation, name)] for name in evaluation.measure_names
    }
    means = None if evaluation.weights is None else aggregates(evaluation)
    return plots.sorted_scores(evaluation.per_query, worst, means=means, most_columns=most_columns)


def _queries_of(facts: summaries.ExperimentFacts, best: str) -> QueryTable:
    """Return the test queries with the primary score of every ranker, the largest losses of the best one first.

    A single ranker loses against nobody: its lowest queries are first.
    """
    if facts.baseline is None:
        return _scores_of_queries(facts.candidates[0].test)
    scores = {
        candidate.name: candidate.test.per_query[facts.primary] for candidate in facts.candidates
    }
    return _losses_first(scores, best, facts.baseline, facts.primary)


def queries_of_comparison(comparison: Comparison) -> QueryTable | None:
    """Return the queries with the score of every system by the measure of the headline.

    Returns None if the comparison does not have the scores, has no pairs, is of several
    collections, or all systems are equal on every query.
    """
    held = {
        name: evaluation
        for name, evaluation in comparison.evaluations.items()
        if isinstance(evaluation, Evaluation)
    }
    is_whole = len(held) == len(comparison.evaluations) > 0
    if comparison.table.empty or not is_whole or _is_equal(comparison):
        return None
    system, baseline, measure = named_pair(comparison)
    scores = {name: evaluation.per_query[measure] for name, evaluation in held.items()}
    return _losses_first(scores, system, baseline, measure)


def with_needs(table: QueryTable, needs: Any) -> QueryTable:
    """Return a table of queries with their texts."""
    return replace(table, needs=needs_by_id(needs, table.ids))


def _losses_first(
    scores: Mapping[str, pd.Series[float]], system: str, baseline: str, measure: str
) -> QueryTable:
    difference = (scores[system] - scores[baseline]).dropna()
    columns = [QueryColumn("difference", "difference", difference.to_numpy())]
    for name, values in scores.items():
        columns.append(QueryColumn(name, "score", values.reindex(difference.index).to_numpy()))
    order = f"by {measure}, the largest losses of {system} against {baseline} first"
    falls = direction(measure).sign < 0
    return query_table(difference.index, columns, by=0, falls=falls, order=order)


def table_of_slice_texts(frame: pd.DataFrame) -> TextTable:
    """Return the table of `Evaluation.slices` for a page, with each interval in one column."""
    shown = frame.rename(columns={"n_queries": "queries"})
    for name in [name for name in frame if str(name).endswith(" ci_low")]:
        label = str(name).removesuffix(" ci_low")
        ends = zip(shown[name], shown[f"{label} ci_high"], strict=True)
        shown[name] = [interval(*pair) for pair in ends]
        shown = shown.drop(columns=f"{label} ci_high").rename(
            columns={name: f"{label} 95% interval"}
        )
    return table_of_texts(shown)
