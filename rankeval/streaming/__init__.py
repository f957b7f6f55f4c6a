"""Data sets that are larger than memory: read in parts of whole queries, and scored part by part.

    files -> plan -> blocks of whole queries -> join, score -> evaluations of parts -> merged

A part's evaluation does not depend on the rows beside it, so the result is that of all rows at
once, bit for bit.
"""

from rankeval.streaming.running import evaluate_dataset

__all__ = ["evaluate_dataset"]
