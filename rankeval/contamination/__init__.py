"""Is this data a registered test collection? Fingerprints of queries, the evidence of a match, and the refusal."""

from rankeval.contamination.refusal import ContaminationCheck, forget

__all__ = ["ContaminationCheck", "forget"]
