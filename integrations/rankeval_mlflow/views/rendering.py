"""Draw the files of a run that are made for people, from the files that hold its numbers.

Delivery draws them when it sends an upload, and again at a resend: the numbers are safe on disk by then.

Tables have the layout of `mlflow.log_table`: MLflow shows them beside the artifact tree and across runs. Pages are one
static HTML file without scripts: MLflow shows artifacts in a sandboxed frame that cannot fetch anything, and names come
from outside, so everything is escaped and in the file. A name of a system of 10,000 characters fills page, plot and
description, so people see a short one; the files with the numbers keep it whole.
"""

from __future__ import annotations

import html
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.comparison import Comparison
from rankeval_mlflow.names import short_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankeval.evaluation import Evaluation


MOST_QUERIES = 1000
"""Rows of a table of queries; the evaluation among the artifacts has all."""

_DIGITS = 6

_STYLE = """
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0 auto;padding:24px;max-width:1100px;
color:#1b1f24;background:#fff}
h1{font-size:22px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 8px}p.lead{color:#57606a;margin:0 0 12px}
.scroll{overflow-x:auto}.scroll td:not(.num){white-space:normal;overflow-wrap:anywhere;min-width:14ch}
svg{display:block;max-width:100%;height:auto}
"""

REPORT = "report.html"
QUERIES = "queries.json"
RANKERS = "rankers.json"


def query_table(evaluation: Evaluation) -> bytes:
    """Return the queries that a ranking can change, with all scores, the worst first, at most `MOST_QUERIES`.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation with at least one query.
    """
    worst = evaluation.worst_first(evaluation.measure_names[0])[:MOST_QUERIES]
    ids = [str(query) for query in np.asarray(evaluation.queries, dtype=object)[worst]]
    columns: dict[str, Sequence[Any]] = {"query": list(short_names(dict.fromkeys(ids)).values())}
    for name, values in zip(evaluation.by_name, evaluation.scores.T, strict=True):
        columns[name] = values[worst].tolist()
    for name, counts in evaluation.query_counts.items():
        columns[name] = counts[worst].tolist()
    return log_table(columns)


def query_table_note(evaluation: Evaluation, path: str) -> str:
    """Return the sentences that say what a table of queries holds.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    path : str
        The table among the artifacts.
    """
    label = evaluation.measure_names[0]
    n_queries, left_out = len(evaluation.worst_first(label)), evaluation.left_out_of_worst(label)
    some = "The queries, the worst first" if n_queries <= MOST_QUERIES else f"The {MOST_QUERIES:,} worst queries"
    return f"{some}: {path} among the artifacts; evaluation.parquet beside it has all. {left_out}".strip()


def log_table(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a table in the layout of `mlflow.log_table`: names of columns, and rows; nan and infinity as null.

    Parameters
    ----------
    columns : mapping of str to sequence
        Plain values by name.
    """
    rows = [[_plain(value) for value in row] for row in zip(*columns.values(), strict=True)]
    return json.dumps({"columns": list(columns), "data": rows}, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, _DIGITS) if math.isfinite(value) else None


def shown_comparison(content: bytes | str) -> Comparison:
    """Read a comparison from its JSON, long names of systems shortened visibly.

    Parameters
    ----------
    content : bytes or str
        What `Comparison.to_json` wrote.
    """
    fields = json.loads(content)
    names = short_names(_systems(fields))
    changed = {name: short for name, short in names.items() if name != short}
    return Comparison.from_json(json.dumps(_replaced(fields, changed)) if changed else _text(content))


def _text(content: bytes | str) -> str:
    return content if isinstance(content, str) else content.decode()


def _systems(fields: dict[str, Any]) -> Iterable[str]:
    """Return the names of the systems of a comparison as JSON."""
    frames = [frame for frame in (fields["table"], fields["means"]) if frame]
    named = [name for frame in frames for column in ("baseline", "system") for name in frame.get(column, ())]
    return dict.fromkeys(named)


def _replaced(value: Any, names: dict[str, str]) -> Any:
    """Return plain values with other names: where a text is a name, and where a sentence holds a long one."""
    if isinstance(value, dict):
        return {names.get(key, key): _replaced(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, names) for each in value]
    if isinstance(value, str):
        for name, short in sorted(names.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(name, short)
    return value


def comparison_page(comparison: Comparison) -> bytes:
    """Return a comparison as an HTML page: its findings, table, caption and notes, and a plot of the intervals.

    Parameters
    ----------
    comparison : Comparison
        The comparison, under the names that people shall see.
    """
    parts = {
        "Differences" if comparison.has_pairs else "Means": f'<div class="scroll">{comparison._repr_html_()}</div>',
        "Intervals": _svg(comparison.plot()),
    }
    against = f"against {comparison.baseline}" if comparison.baseline is not None else "all pairs"
    return page("Comparison", against if comparison.has_pairs else "one system", parts)


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


def _svg(figure: Figure) -> str:
    """Return a figure as SVG for a page; equal figures give equal bytes."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "rankeval", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]


Drawing = Callable[[bytes, Mapping[str, Any]], dict[str, bytes]]


def render(kind: str, content: bytes, options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return drawn files by path.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.
    content : bytes
        The file with the numbers.
    options : mapping of str to value
        Plain values. For an evaluation ``role`` and ``said``, and ``report`` and ``table``: whether each is drawn.
    """
    return KINDS[kind](content, options)


def _evaluation(content: bytes, options: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw the table of queries and, if wanted, the report."""
    from rankeval.evaluation import Evaluation
    from rankeval.report import report_for_evaluation

    evaluation = Evaluation.from_bytes(content)
    if not evaluation.n_queries:
        return {}
    drawn = {QUERIES: query_table(evaluation)} if options.get("table", True) else {}
    if options.get("report", True):
        page = report_for_evaluation(evaluation, role=options.get("role"), said=options.get("said", ""))
        drawn[REPORT] = page.encode()
    return drawn


def _comparison(content: bytes, _options: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw the page."""
    return {REPORT: comparison_page(shown_comparison(content))}


def _rankers(content: bytes, _options: Mapping[str, Any]) -> dict[str, bytes]:
    """Draw the table of an experiment's rankers, a file of comma-separated values."""
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(content))
    return {RANKERS: log_table({str(name): frame[name].tolist() for name in frame})}


KINDS: dict[str, Drawing] = {"evaluation": _evaluation, "comparison": _comparison, "rankers": _rankers}
"""What can be drawn: by kind, the function of content and options."""
