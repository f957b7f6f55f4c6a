"""Describe evaluations and comparisons for readers of a run, in Markdown. Names come from outside, and are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rankeval._checks import count
from rankeval.comparison.views.tables import laid_out, unjudged_tables
from rankeval.render.layouts import interval_name
from rankeval.render.tables import Table, number
from rankeval_mlflow.names import MAX_TAG, short_name
from rankeval_mlflow.views.tables import query_table_note

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation


def intervals(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of the mean of each measure by its label; none of weighted means, which have none.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    """
    if evaluation.weights is not None or not evaluation.n_queries:
        return {}
    limits = evaluation.ci()
    ends = zip(limits.index, limits["ci_low"], limits["ci_high"], strict=True)
    return {str(label): (float(low), float(high)) for label, low, high in ends}


def evaluation_section(
    evaluation: Evaluation,
    role: str,
    limits: Mapping[str, tuple[float, float]],
    *,
    step: int | None = None,
    table: str | None = None,
) -> str:
    """Describe an evaluation in Markdown: aggregates, intervals of the means, and where the queries are.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    role : str
        The role of its data.
    limits : mapping of str to pair of float
        The `intervals`.
    step : int, optional
        The step of training.
    table : str, optional
        The path of the table of queries among the artifacts.
    """
    import pandas as pd

    frame = pd.DataFrame({"measure": evaluation.measure_names, "value": evaluation.aggregate().to_numpy(dtype=float)})
    if limits:
        shown = {label: f"[{number(low)}, {number(high)}]" for label, (low, high) in limits.items()}
        frame["95 % interval"] = [shown.get(label, "") for label in evaluation.measure_names]
    system = f"{short_name(evaluation.name)}, " if evaluation.name else ""
    at = "" if step is None else f" at step {step}"
    queries = count(evaluation.n_queries, "query")
    caption = f"{system}{role}{at}: {queries}, convention {evaluation.convention.name}"
    notes = [*evaluation.info.values(), *([query_table_note(evaluation, table)] if table else [])]
    return Table(frame, caption=caption, notes=tuple(notes)).to_markdown()


def comparison_section(comparison: Comparison, *notes: str) -> str:
    """Describe a comparison in Markdown: its findings, and a table of as few columns as a decision needs.

    Parameters
    ----------
    comparison : Comparison
        The comparison, under the names that people shall see.
    *notes : str
        More notes; empty ones are left out.
    """
    shown = laid_out(comparison, "comparisons", digits=4)
    shown = replace(shown, notes=(*shown.notes, *filter(None, notes)))
    if not comparison.has_pairs:
        return replace(shown, caption=f"{' '.join(comparison.findings)} {shown.caption}").to_markdown()
    interval = interval_name(comparison.table, comparison.shown_level)
    against = ["against"] if comparison.baseline is None else []
    baseline = f"Against {comparison.baseline}. " if comparison.baseline is not None else ""
    kept = [*shown.frame.columns[: shown.frame.columns.get_loc("measure")], "measure", "system", *against, "mean"]
    shown = shown.only([*kept, "difference", interval, "p adjusted"])
    shown = replace(shown, caption=f"{' '.join(comparison.findings)} {baseline}{shown.caption}")
    return "\n\n".join(table.to_markdown() for table in [shown, *unjudged_tables(comparison)])


def rankers_section(rankers: pd.DataFrame, best: str) -> str:
    """Describe the rankers of an experiment in Markdown: a row each, the best first.

    Parameters
    ----------
    rankers : DataFrame
        A row per ranker.
    best : str
        The ranker whose metrics the run has.
    """
    caption = f"The rankers, the best first; the metrics of this run are those of {best}."
    return Table(rankers, caption=caption).to_markdown()


def merged(note: str, sections: Mapping[str, str]) -> str:
    """Insert or replace our sections in the description of a run; the text of the user stays.

    Parameters
    ----------
    note : str
        The present description.
    sections : mapping of str to str
        Markdown by key.
    """
    for key, text in sections.items():
        start, end = f"<!-- rankeval {key} -->", f"<!-- /rankeval {key} -->"
        block = f"{start}\n\n{text}\n\n{end}"
        if len(block) > MAX_TAG // 2:
            block = (
                f"{start}\n\n{_first_paragraph(text)} The table is long: see the report among the artifacts.\n\n{end}"
            )
        before, found, rest = note.partition(start)
        after = rest.partition(end)[2] if found else ""
        joined = f"{before}{block}{after}" if found else f"{note}\n\n{block}".lstrip()
        if len(joined) <= MAX_TAG:
            note = joined
    return note


def _first_paragraph(text: str) -> str:
    """Return the text before the first empty line."""
    return text.split("\n\n", maxsplit=1)[0][:500]
