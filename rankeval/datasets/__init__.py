"""Data to rank: learning-to-rank files, a retrieval task from scikit-learn's digits, and data whose truth is known."""

from rankeval.datasets.letor import load_letor, load_letor_parts
from rankeval.datasets.made import load_digits_retrieval, make_ranking

__all__ = ["load_digits_retrieval", "load_letor", "load_letor_parts", "make_ranking"]
