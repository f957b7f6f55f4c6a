"""Is this content registered? Fingerprints of queries, the ledger that keeps them, and the refusal."""

from rankeval.contamination.refusal import ContaminationCheck, forget

__all__ = ["ContaminationCheck", "forget"]
