"""What the writer of a plan had seen: which entries its freeze knew, and which it missed.

A plan can be frozen in one clone of a ledger and opened after a merge. The merge brings entries that its opening knows,
and its freeze did not know::

    register --+-- freeze P ------------ merge, open P       P missed the opening of Q,
               |                           |                 but somebody may have told its result
               +-- freeze Q -- open Q -----+

An entry that was written after a freeze, and knew it, cannot have guided it: the plan was fixed by then. If a plan was
frozen in two clones, the freezes that an opening knows count, and what any of them knew or missed is known or missed.
So later entries cannot change what an opening rested on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import Snapshot


@dataclass(frozen=True)
class Timing:
    """The freezes and the openings of one plan, among all entries.

    Attributes
    ----------
    snapshot : Snapshot
        The ledger.
    freezes, openings : tuple of Entry
        The entries that froze and that opened the plan; several, if several clones did.
    """

    snapshot: Snapshot
    freezes: tuple[Entry, ...]
    openings: tuple[Entry, ...]

    def knew(self, entry: Entry) -> bool:
        """Return whether an entry was known when the plan was frozen."""
        return any(self.snapshot.precedes(entry.hash, freeze.hash) for freeze, _ in self._steps)

    def missed(self, entry: Entry) -> bool:
        """Return whether an entry was known when the plan was opened, but not when it was frozen, nor knew of that.

        A plan that was not opened yet will be opened with knowledge of all entries.
        """
        return any(
            self.snapshot.concurrent(entry.hash, freeze.hash)
            and (opening is None or self.snapshot.precedes(entry.hash, opening.hash))
            for freeze, opening in self._steps
        )

    def crossed(self, entry: Entry) -> bool:
        """Return whether an entry and an opening of the plan did not know of each other."""
        return any(self.snapshot.concurrent(entry.hash, opening.hash) for opening in self.openings)

    @cached_property
    def _steps(self) -> list[tuple[Entry, Entry | None]]:
        """Each opening with each freeze that it knew; each freeze alone, if the plan was not opened."""
        if not self.openings:
            return [(freeze, None) for freeze in self.freezes]
        return [
            (freeze, opening)
            for opening in self.openings
            for freeze in self.freezes
            if self.snapshot.precedes(freeze.hash, opening.hash)
        ]
