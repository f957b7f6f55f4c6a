"""Describe evaluations and comparisons for readers of a run: in Markdown, and a comparison as an HTML page.

All names are escaped, since they come from outside. The page is one static file without scripts: MLflow shows artifacts
in a sandboxed frame that cannot fetch anything.
"""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rankeval._checks import count
from rankeval.comparison.views.tables import laid_out
from rankeval.render.layouts import interval_name
from rankeval.render.tables import Table, number
from rankeval_mlflow.names import MAX_TAG

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankeval.comparison import Comparison
    from rankeval.evaluation import Evaluation

_STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0 auto;padding:24px;max-width:1100px;
color:#1b1f24;background:#fff}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p.lead{color:#57606a;margin:0 0 12px}
.scroll{overflow-x:auto}svg{display:block;max-width:100%;height:auto}
"""


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


def evaluation_report(evaluation: Evaluation, role: str, said: str = "") -> dict[str, bytes]:
    """Return the report as an artifact, with a sentence for its reader; none if no query counts."""
    if not evaluation.n_queries:
        return {}
    from rankeval.report import report_for_evaluation

    return {f"rankeval/{role}/report.html": report_for_evaluation(evaluation, role=role, said=said).encode()}


def comparison_page(comparison: Comparison) -> bytes:
    """Return a comparison as an HTML page: the table with caption and notes, and a plot of the intervals."""
    parts = {
        "Differences" if comparison.has_pairs else "Means": f'<div class="scroll">{comparison._repr_html_()}</div>',
        "Intervals": _svg(comparison.plot()),
    }
    against = f"against {comparison.baseline}" if comparison.baseline is not None else "all pairs"
    against = against if comparison.has_pairs else "one system"
    return page("Comparison", against, parts)


def _svg(figure: Figure) -> str:
    """Return a figure as SVG for a page; equal figures give equal bytes."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "rankeval", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


def page(title: str, lead: str, parts: Mapping[str, str]) -> bytes:
    """Return an HTML page with a title, a first line and sections.

    Parameters
    ----------
    title, lead : str
        Plain text.
    parts : mapping of str to str
        Sections by heading: HTML that is already escaped, under plain text.
    """
    body = "".join(f"<h2>{html.escape(heading)}</h2>{content}" for heading, content in parts.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{html.escape(title)}</h1><p class="lead">{html.escape(lead)}</p>{body}</body></html>'
    ).encode()


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
