"""Draw the files of a run that are made for people, from the files that hold its numbers.

Delivery draws them when it sends an upload, and again at a resend: the numbers are safe on disk by then.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from rankeval_mlflow.views.pages import comparison_page
from rankeval_mlflow.views.shortening import shown_comparison
from rankeval_mlflow.views.tables import log_table, query_table

Drawing = Callable[[bytes, Mapping[str, Any]], dict[str, bytes]]

REPORT = "report.html"
QUERIES = "queries.json"
RANKERS = "rankers.json"


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
