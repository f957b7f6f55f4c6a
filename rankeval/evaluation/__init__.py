"""Scores of a ranking, query by query, with the convention that made them."""

from rankeval.evaluation.by_query import query_weights
from rankeval.evaluation.front_door import DEFAULT_MEASURES, Given, evaluate
from rankeval.evaluation.merging import differences, merged
from rankeval.evaluation.result import Evaluation, aggregate_errors, from_bytes, standard_errors
from rankeval.evaluation.scoring import score
from rankeval.evaluation.storage import to_bytes

__all__ = [
    "DEFAULT_MEASURES",
    "Evaluation",
    "Given",
    "aggregate_errors",
    "differences",
    "evaluate",
    "from_bytes",
    "merged",
    "query_weights",
    "score",
    "standard_errors",
    "to_bytes",
]
