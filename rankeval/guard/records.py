"""What one project has on record: its entries in the ledger, read and appended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankeval.contamination.register import Sealed, read_register
from rankeval.errors import LedgerError
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.history import History
from rankeval.guard.plan import Plan
from rankeval.ledger import discovery
from rankeval.ledger.chain import Ledger


class Records:
    """The entries of one project.

    Parameters
    ----------
    project : str
        The project.
    url : str
        The ledger.
    """

    def __init__(self, project: str, url: str) -> None:
        self.project = project
        self.ledger = Ledger(url)
        self.seen: str | None = None

    @property
    def where(self) -> str:
        """The ledger, as reports name it."""
        return discovery.sqlite_path(self.ledger.url) or self.ledger.shown

    def head(self) -> str:
        """Return the present head, and remember it."""
        self.seen = self.ledger.head()
        return self.seen

    def append(self, kind: str, body: Mapping[str, Any], *, expected: str | None = None) -> None:
        """Append an entry.

        Parameters
        ----------
        kind : str
            Its kind.
        body : mapping
            What it says.
        expected : str, optional
            The head it was made for.
        """
        self.seen = self.ledger.append(kind, self.project, body, expected=expected).hash

    def problems(self, head: str | None) -> list[str]:
        """Return what is wrong with the ledger, held against a head and against the last one seen.

        Parameters
        ----------
        head : str, optional
            A head from a report.
        """
        found = self.ledger.problems(head)
        return found + [one for one in self.ledger.problems(self.seen) if one not in found]

    def history(self, digest: str) -> History:
        """Return what was frozen and opened of one content.

        Parameters
        ----------
        digest : str
            The content.
        """
        return History.of(self.ledger.entries(kinds=["freeze", "open"]), self.project, digest)

    def same(self, register: Sequence[Sealed], name: str, digest: str) -> Sealed | None:
        """Return this content as it was registered before, if it was.

        Parameters
        ----------
        register : sequence of Sealed
            All registered collections.
        name, digest : str
            Name and content.

        Raises
        ------
        LedgerError
            When the name stands for other content, the content for another name, or it was retired.
        """
        for one in register:
            if one.project != self.project:
                continue
            if one.digest == digest and one.retired is not None:
                raise LedgerError(
                    f"this content was retired as {one.name!r} ({one.retired}): it may have been fitted on since, and "
                    "is no test any more"
                )
            if one.digest == digest and one.name != name:
                raise LedgerError(f"this content is registered as {one.name!r}: use that name instead of {name!r}")
            if one.digest != digest and one.name == name:
                raise LedgerError(
                    f"{name!r} is registered with other content (digest {one.digest[:12]}, this has {digest[:12]}): "
                    "choose another name"
                )
            if one.digest == digest:
                return one
        return None

    def sealed(self, test: RegisteredCollection | str) -> Sealed:
        """Return a collection of the project as the ledger has it.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.

        Raises
        ------
        LedgerError
            When it is not on record.
        """
        name = test if isinstance(test, str) else test.name
        own = {one.name: one for one in read_register(self.ledger) if one.project == self.project}
        if name not in own or (isinstance(test, RegisteredCollection) and own[name].digest != test.digest):
            raise LedgerError(
                f"project {self.project!r} has no collection {name!r} in the ledger {self.where}; it has: "
                f"{', '.join(own) or 'none'}"
            )
        return own[name]

    def in_use(self, test: RegisteredCollection | str) -> Sealed:
        """Return a collection of the project that was not retired.

        Parameters
        ----------
        test : RegisteredCollection or str
            The collection or its name.

        Raises
        ------
        LedgerError
            When it is not on record, or was retired.
        """
        sealed = self.sealed(test)
        if sealed.retired is not None:
            raise LedgerError(f"{sealed.name!r} was retired ({sealed.retired}), and is no test any more")
        return sealed

    def is_frozen(self, plan: Plan) -> bool:
        """Whether a plan is on record.

        Parameters
        ----------
        plan : Plan
            The plan.
        """
        return any(body["plan"] == plan.id for body in self._bodies("freeze"))

    def freeze(self, plan: Plan, rankings: Mapping[str, Any]) -> None:
        """Record a plan; its rankings first, apart, so that reading plans stays cheap.

        Parameters
        ----------
        plan : Plan
            The plan.
        rankings : mapping of str to mapping
            System -> its ranking, packed.
        """
        about = {"plan": plan.id, "digest": plan.digest, "collection": plan.collection}
        self.append("rankings", about | {"rankings": dict(rankings)})
        self.append("freeze", about | {"content": plan.content()})

    def plan(self, plan_id: str) -> Plan:
        """Return a plan by its id, or enough of its beginning.

        Parameters
        ----------
        plan_id : str
            The id.

        Raises
        ------
        LedgerError
            When there is none, or there are several.
        """
        found = {body["plan"]: body for body in self._bodies("freeze") if body["plan"].startswith(plan_id)}
        if len(found) != 1 or not plan_id:
            raise LedgerError(
                f"{len(found) if plan_id else 'no'} plans of project {self.project!r} begin with {plan_id!r} in the "
                f"ledger {self.where}: give the id of one that was frozen"
            )
        body = next(iter(found.values()))
        return Plan.from_content(body["content"], collection=body["collection"], ledger=self.where, head=self.head())

    def rankings(self) -> dict[str, Mapping[str, Any]]:
        """Return plan id -> system -> packed ranking."""
        return {body["plan"]: body["rankings"] for body in self._bodies("rankings")}

    def register_and_head(self) -> tuple[tuple[Sealed, ...], str]:
        """Return all registered collections with a head that is no newer than they are."""
        head = self.head()
        return read_register(self.ledger), head

    def _bodies(self, kind: str) -> Iterator[Mapping[str, Any]]:
        for entry in self.ledger.entries(kinds=[kind], project=self.project):
            yield entry.body
