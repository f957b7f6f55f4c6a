"""Data to rank: tables, learning-to-rank files, digits, data whose truth is known, and results of benchmarks."""

from rankeval.datasets.beir import BeirData, load_beir
from rankeval.datasets.files import load_letor, load_letor_parts, load_table, load_table_parts
from rankeval.datasets.made import load_digits_retrieval, make_ranking
from rankeval.datasets.results import load_mteb_results

__all__ = [
    "BeirData",
    "load_beir",
    "load_digits_retrieval",
    "load_letor",
    "load_letor_parts",
    "load_mteb_results",
    "load_table",
    "load_table_parts",
    "make_ranking",
]


def __dir__() -> list[str]:
    return sorted(__all__)
