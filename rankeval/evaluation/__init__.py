"""Scores of a ranking, query by query, with the convention that made them."""

from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import DEFAULT_MEASURES, evaluate, score_arrays, score_collection

__all__ = ["DEFAULT_MEASURES", "Evaluation", "evaluate", "score_arrays", "score_collection"]
