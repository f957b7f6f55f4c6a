"""Scores of a ranking, query by query, with the convention that made them."""

from rankeval.evaluation.front_door import DEFAULT_MEASURES, evaluate
from rankeval.evaluation.given import Given
from rankeval.evaluation.result import Evaluation
from rankeval.evaluation.scoring import score
from rankeval.evaluation.weights import query_weights

__all__ = ["DEFAULT_MEASURES", "Evaluation", "Given", "evaluate", "query_weights", "score"]
