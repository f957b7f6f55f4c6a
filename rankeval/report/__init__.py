"""Reports that a reader opens in a browser: one file, nothing fetched, no script."""

from rankeval.report.html import report_for_evaluation, report_for_experiment
from rankeval.report.summaries import Candidate, ExperimentFacts, GuardFacts, headline

__all__ = ["Candidate", "ExperimentFacts", "GuardFacts", "headline", "report_for_evaluation", "report_for_experiment"]
