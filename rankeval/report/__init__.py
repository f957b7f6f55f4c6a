"""Write reports for a browser: one static HTML file each."""

from rankeval.report.html import (
    report_for_evaluation,
    report_for_experiment,
    report_for_judging,
    report_for_queries,
)

__all__ = [
    "report_for_evaluation",
    "report_for_experiment",
    "report_for_judging",
    "report_for_queries",
]
