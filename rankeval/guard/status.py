"""Would this data be refused, and why: the answer of `Guard.status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rankeval.contamination.matching import Match


@dataclass(frozen=True)
class Status:
    """Whether some data is registered test content.

    Attributes
    ----------
    refused : bool
        Whether it would be refused. Rankings that were opened are accepted all the same, and nothing is refused while
        ledgers are switched off.
    collection, project : str, optional
        The registered collection that it matches, if any.
    why : str
        The evidence in words.
    n_matched, n_to_refuse : int
        Identifiable queries that match the collection, and how many are needed.
    ledger, head : str
        The ledger that was asked.
    """

    refused: bool
    collection: str | None
    project: str | None
    why: str
    n_matched: int
    n_to_refuse: int
    ledger: str
    head: str

    def __bool__(self) -> bool:
        return self.refused

    def __str__(self) -> str:
        verdict = "would be refused" if self.refused else "would not be refused"
        return f"{verdict}: {self.why} (ledger {self.ledger} at {self.head[:12]})"

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"


def status_of(found: Sequence[Match], *, ledger: str, head: str, off: bool) -> Status:
    """Sum up matches by the strongest of them.

    Parameters
    ----------
    found : sequence of Match
        One for each registered collection.
    ledger, head : str
        The ledger that was asked.
    off : bool
        Whether refusals are switched off in this process.
    """
    best = max(found, key=lambda one: (one.refused, one.n_matched, one.same_labels), default=None)
    if best is None or not (best.refused or best.n_matched or best.same_labels):
        return Status(False, None, None, "nothing of it is registered", 0, 0, ledger, head)
    content = best.registered
    link = "it is" if best.refused else "there is weak evidence that it is"
    why = f"{link} {content.name!r} of project {content.project!r}: {best.why}"
    if best.refused and off:
        why += "; but the ledger is switched off in this process"
    return Status(best.refused, content.name, content.project, why, best.n_matched, content.n_to_refuse, ledger, head)
