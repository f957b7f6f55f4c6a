"""Facts on the guard that every report names: the ledger, its head, the plan, its standing, and the looks.

The head is written whole, so that ``rankeval guard verify --report`` finds it again in the report
(`rankeval.ledger.graph`): only so does a report show later that entries were deleted or rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass

from rankeval._checks import count
from rankeval.comparison import Comparison
from rankeval.guard.standings import CONCURRENT, EXPLORATORY, FIRST, SECONDARY

WARNED = {
    FIRST: "others had looked at the test part before this comparison was frozen",
    CONCURRENT: "other plans of this project were opened on the test part, and neither side knew of the other",
    EXPLORATORY: "the test part had been opened before this comparison was frozen",
    SECONDARY: "all these rankings had been opened before",
}
"""Each standing but confirmatory -> why the result can be trusted less."""

WARNINGS = (*WARNED, "not confirmatory")
"""The first words of notes that limit how far the numbers can be trusted."""


@dataclass(frozen=True)
class GuardFacts:
    """Facts on the guard of an experiment, or of one comparison.

    Attributes
    ----------
    active : bool
        False if no guard protected the test part.
    reason : str
        The reason if there was no guard, else empty.
    project, ledger, head, plan, test : str
        The project, the ledger, its head, the id of the plan, the name of the registered part.
    digest : str
        Digest of the registered content.
    looks, looks_added : int
        Looks of the project at this content up to this plan, and those that this run added.
    later : int
        Looks of the project after the plan was opened.
    elsewhere : int
        Looks of other projects.
    standing : str
        "confirmatory", or one of `WARNED`; "unguarded" without a guard.
    """

    active: bool
    reason: str = ""
    project: str = ""
    ledger: str = ""
    head: str = ""
    plan: str = ""
    test: str = ""
    digest: str = ""
    looks: int = 0
    looks_added: int = 0
    elsewhere: int = 0
    standing: str = "unguarded"
    later: int = 0

    @classmethod
    def of(cls, comparison: Comparison, *, digest: str = "") -> GuardFacts | None:
        """Return the facts on the guard that opened a comparison; None if none did.

        Parameters
        ----------
        comparison : Comparison
            The comparison.
        digest : str
            Digest of the registered content.
        """
        if comparison.opening is None:
            return None
        return cls(active=True, digest=digest, standing=comparison.standing, **comparison.opening)

    @property
    def warning(self) -> str:
        """Why the result can be trusted less, as a sentence; empty if it is confirmatory."""
        return f"{self.standing.upper()}: {WARNED[self.standing]}." if self.standing in WARNED else ""

    @property
    def line(self) -> str:
        """All that a reader needs to check the standing, as a sentence; empty without a guard."""
        if not self.active:
            return ""
        later = f" up to this plan, {self.later:,} later" if self.later else ""
        return (
            f"Guard: {self.standing} as of head {self.head}; plan {self.plan}; {count(self.looks, 'look')} of project "
            f"{self.project} at {self.test}{later}, {self.elsewhere:,} of other projects; ledger {self.ledger}."
        )

    def tags(self) -> dict[str, str]:
        """Return the tags of a tracked run: the standing, and the facts on the guard."""
        return {
            "rankeval.standing": self.standing,
            "rankeval.guard.ledger": self.ledger or self.reason,
            "rankeval.guard.head": self.head,
            "rankeval.guard.plan": self.plan,
            "rankeval.guard.looks": str(self.looks),
            "rankeval.guard.elsewhere": str(self.elsewhere),
        }
