"""A ledger as one project sees it: its collections, its plans, and the looks at them.

`Records` is a snapshot of the ledger at one head. A `Journal` reads it once for each step of the guard. The step
decides on it, and appends entries that name its head. If somebody else appended in between, the ledger refuses the
entries, and the step decides again on newer records. So no entry stands on records that have changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from rankeval._checks import shown
from rankeval.contamination.register import RegisteredContent, registered_contents
from rankeval.errors import InvalidInput, LedgerError
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.history import History
from rankeval.guard.plan import Plan
from rankeval.ledger.entry import GENESIS
from rankeval.ledger.graph import HeadMovedError, Snapshot
from rankeval.ledger.ledger import Ledger, Note

T = TypeVar("T")

_PATIENCE = 60.0
"""Seconds for which a step is decided again while others append."""


@dataclass(frozen=True)
class Records:
    """The entries that decisions of one project are based on.

    Attributes
    ----------
    project : str
        The project.
    ledger : Ledger
        The ledger.
    snapshot : Snapshot
        Its entries, of all projects.
    """

    project: str
    ledger: Ledger
    snapshot: Snapshot

    @property
    def where(self) -> str:
        """The ledger, as reports name it."""
        return self.ledger.where

    @property
    def head(self) -> str:
        """The head of the ledger."""
        return self.snapshot.head

    @cached_property
    def contents(self) -> tuple[RegisteredContent, ...]:
        """The registered collections of all projects."""
        return registered_contents(self.ledger, self.snapshot)

    @cached_property
    def plans(self) -> dict[str, Mapping[str, Any]]:
        """Id -> body of the project's frozen plans."""
        own = [one for one in self.snapshot.entries if one.kind == "freeze" and one.project == self.project]
        return {entry.body["plan"]: entry.body for entry in own}

    def in_force(self) -> list[RegisteredContent]:
        """Return the collections of all projects that are not retired."""
        return [one for one in self.contents if one.retired is None]

    def history(self, digest: str) -> History:
        """Return the plans and openings of one content."""
        return History.of(self.ledger, self.snapshot.entries, self.project, digest)

    def same(self, name: str, digest: str) -> RegisteredContent | None:
        """Return the project's registration of a content; None if there is none yet.

        Parameters
        ----------
        name, digest : str
            Name and content to be registered.

        Raises
        ------
        LedgerError
            If the name stands for other content, the content for another name, or it was retired.
        """
        for one in self.contents:
            if one.project != self.project or (one.digest != digest and one.name != name):
                continue
            if one.digest != digest:
                raise LedgerError(
                    f"{name!r} is registered with other content (digest {one.digest[:12]}, this has {digest[:12]}): "
                    "choose another name"
                )
            if one.retired is not None:
                raise LedgerError(
                    f"this content was retired as {one.name!r} ({one.retired}) and may have been fitted on since: it "
                    "can never be a test again"
                )
            if one.name != name:
                raise LedgerError(f"this content is registered as {one.name!r}: use that name instead of {name!r}")
            return one
        return None

    def registered(self, test: RegisteredCollection | str) -> RegisteredContent:
        """Return a collection of the project as the ledger describes it.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.

        Raises
        ------
        InvalidInput
            If it is neither.
        LedgerError
            If it is not registered.
        """
        if not isinstance(test, (str, RegisteredCollection)):
            raise InvalidInput(f"test is {shown(test)}; expected a registered collection or its name")
        name = test if isinstance(test, str) else test.name
        own = {one.name: one for one in self.contents if one.project == self.project}
        if name not in own or (isinstance(test, RegisteredCollection) and own[name].digest != test.digest):
            raise LedgerError(
                f"project {self.project!r} has no collection {name!r} in the ledger {self.where}; it has: "
                f"{', '.join(own) or 'none'}"
            )
        return own[name]

    def in_use(self, test: RegisteredCollection | str) -> RegisteredContent:
        """Return a collection of the project as `registered` does; raises LedgerError if it was retired too."""
        content = self.registered(test)
        if content.retired is not None:
            raise LedgerError(f"{content.name!r} was retired ({content.retired}) and is no test any more")
        return content

    def plan(self, plan_id: str) -> Plan:
        """Return a plan by its id.

        Parameters
        ----------
        plan_id : str
            The id, or enough of its beginning.

        Raises
        ------
        InvalidInput
            If it is no text.
        LedgerError
            If no plan or more than one begins so.
        """
        if not isinstance(plan_id, str):
            raise InvalidInput(f"plan is {shown(plan_id)}; expected a frozen plan or its id")
        found = [one for one in self.plans if one.startswith(plan_id)]
        if len(found) != 1 or not plan_id:
            raise LedgerError(
                f"{len(found) if plan_id else 'no'} plans of project {self.project!r} begin with {plan_id!r} in the "
                f"ledger {self.where}: give the id of one that was frozen"
            )
        body = self.plans[found[0]]
        return Plan.from_content(body["content"], collection=body["collection"], ledger=self.where, head=self.head)


class Journal:
    """The ledger as one project reads and extends it.

    Parameters
    ----------
    project : str
        The project.
    ledger : Ledger
        The ledger.
    """

    def __init__(self, project: str, ledger: Ledger) -> None:
        self.project = project
        self.ledger = ledger
        self.seen = GENESIS  # the last head, against which a missing end is found

    def read(self) -> Records:
        """Read the ledger."""
        snapshot = self.ledger.read()
        # A ledger that lost the last head that was seen is cut off: keep that head, so that `Guard.verify` finds it.
        if snapshot.holds(self.seen):
            self.seen = snapshot.head
        return Records(self.project, self.ledger, snapshot)

    def append(self, records: Records, *notes: Note) -> str:
        """Append entries that were decided on these records, and return the new head."""
        self.seen = self.ledger.append(self.project, *notes, expected=records.head).hash
        return self.seen

    def decide(self, step: Callable[[Records], T], records: Records | None = None) -> T:
        """Let a step decide and append, again if somebody else appended in between.

        Parameters
        ----------
        step : callable
            Decides on records, and appends to them.
        records : Records, optional
            Records that were just read.

        Raises
        ------
        HeadMovedError
            If others were faster for a minute.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return step(records or self.read())
            except HeadMovedError:
                if time.monotonic() > deadline:
                    raise
                records = None
