"""Describe evaluations and comparisons for readers of a run, in Markdown. Names come from outside, and are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rankeval._checks import count
from rankeval.comparison.views.tables import laid_out
from rankeval.render.layouts import interval_name
from rankeval.render.tables import Table, number
from rankeval_mlflow.names import MAX_TAG

if TYPE_CHECKING:
    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation


def evaluation_section(evaluation: Evaluation, role: str) -> str:
    """Describe an evaluation in Markdown: aggregates, and intervals of the means."""
    import pandas as pd

    frame = pd.DataFrame({"measure": evaluation.measure_names, "value": evaluation.aggregate().to_numpy(dtype=float)})
    if evaluation.weights is None:  # a weighted mean has no interval
        limits = evaluation.ci()
        ends = zip(limits.index, limits["ci_low"], limits["ci_high"], strict=True)
        shown = {str(label): f"[{number(low)}, {number(high)}]" for label, low, high in ends}
        frame["95 % interval"] = [shown.get(label, "") for label in evaluation.measure_names]
    system = f"{evaluation.name}, " if evaluation.name else ""
    queries = count(evaluation.n_queries, "query")
    caption = f"{system}{role}: {queries}, convention {evaluation.convention.name}"
    return Table(frame, caption=caption, notes=tuple(evaluation.info.values())).to_markdown()


def comparison_section(comparison: Comparison) -> str:
    """Describe a comparison in Markdown: its findings, and a table of as few columns as a decision needs."""
    shown = laid_out(comparison, "comparisons", digits=4)
    if not comparison.has_pairs:
        return replace(shown, caption=f"{' '.join(comparison.findings)} {shown.caption}").to_markdown()
    interval = interval_name(comparison.table, comparison.shown_level)
    against = ["against"] if comparison.baseline is None else []
    baseline = f"Against {comparison.baseline}. " if comparison.baseline is not None else ""
    kept = [*shown.frame.columns[: shown.frame.columns.get_loc("measure")], "measure", "system", *against, "mean"]
    shown = shown.only([*kept, "difference", interval, "p adjusted"])
    return replace(shown, caption=f"{' '.join(comparison.findings)} {baseline}{shown.caption}").to_markdown()


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
