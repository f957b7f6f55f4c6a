"""Measures of ranking quality, one declaration each.

To add one, write a decorated function in the chapter it belongs to: see `family`.
"""

from rankeval.join.judged import Column
from rankeval.measures import (  # declared by being imported
    cascade,
    compatibility,
    diversity,
    graded,
    incomplete,
    interpolated,
    preference,
    ranked,
    set_based,
    user_models,
)
from rankeval.measures.directions import Direction, direction, greatest_loss
from rankeval.measures.family import Family, Measure, family
from rankeval.measures.grammar import Spelling
from rankeval.measures.guide import list_measures, measures_markdown
from rankeval.measures.names import LabelledMeasure, measure, measure_from_key, measures

__all__ = [
    "Column",
    "Direction",
    "Family",
    "LabelledMeasure",
    "Measure",
    "Spelling",
    "cascade",
    "compatibility",
    "direction",
    "diversity",
    "family",
    "graded",
    "greatest_loss",
    "incomplete",
    "interpolated",
    "list_measures",
    "measure",
    "measure_from_key",
    "measures",
    "measures_markdown",
    "preference",
    "ranked",
    "set_based",
    "user_models",
]
