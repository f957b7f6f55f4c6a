"""Measures of ranking quality, one declaration each.

To add one, write a decorated function in the chapter it belongs to: see `family`.
"""

from rankeval.measures import graded, ranked, set_based  # declared by being imported
from rankeval.measures.catalogue import list_measures
from rankeval.measures.family import Family, Measure, family
from rankeval.measures.names import measure, measure_from_key, measures

__all__ = [
    "Family",
    "Measure",
    "family",
    "graded",
    "list_measures",
    "measure",
    "measure_from_key",
    "measures",
    "ranked",
    "set_based",
]
