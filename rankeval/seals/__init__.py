"""Is this content registered? Fingerprints of queries, the ledger that keeps them, and the refusal."""

from rankeval.seals.refusal import Seals, forget

__all__ = ["Seals", "forget"]
