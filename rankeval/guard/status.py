"""Would this data be refused, and why: the answer of `Guard.status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rankeval.contamination.register import Match


@dataclass(frozen=True)
class Status:
    """Whether some data is registered test content.

    Attributes
    ----------
    refused : bool
        Whether it would be refused, but for rankings that were opened, and wherever the ledger is not switched off.
    collection, project : str, optional
        The registered collection that it matches, if it does.
    why : str
        The evidence, in words.
    n_matched, n_to_refuse : int
        Identifiable queries that match the collection, and how many it takes.
    ledger, head : str
        Where that was looked up.
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
    """Sum up what was matched.

    Parameters
    ----------
    found : sequence of Match
        One for each registered collection.
    ledger, head : str
        Where that was looked up.
    off : bool
        Whether refusals are switched off in this process.
    """
    ranked = sorted(found, key=lambda one: (one.by_content or one.by_labels, one.n_matched, one.same_labels))
    best = ranked[-1] if ranked else None
    if best is None or not (best.n_matched or best.by_labels or best.same_labels):
        return Status(False, None, None, "nothing of it is registered", 0, 0, ledger, head)
    sealed, matches = best.sealed, best.by_content or best.by_labels
    why = f"it is {sealed.name!r} of project {sealed.project!r}: {best.why}"
    if not matches:
        why = f"it may have to do with {sealed.name!r} of project {sealed.project!r}, on weak evidence: {best.why}"
    elif off:
        why += "; but the ledger is switched off in this process"
    return Status(matches, sealed.name, sealed.project, why, best.n_matched, sealed.n_to_refuse, ledger, head)
