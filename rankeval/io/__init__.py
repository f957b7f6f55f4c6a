"""Files and frames, in and out. The built-in formats are declared when this package is imported."""

from rankeval.io import tables, trec

__all__ = ["tables", "trec"]
