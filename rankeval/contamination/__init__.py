"""Is this data a registered test collection? Fingerprints of queries, the evidence of a match, and the refusal."""

from rankeval.contamination.refusal import ContaminationCheck, forget
from rankeval.contamination.streamed import StreamedCheck

__all__ = ["ContaminationCheck", "StreamedCheck", "forget"]
