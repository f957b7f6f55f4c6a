"""A ledger as one project sees it: its collections, its plans, and the looks at them.

`Records` is a snapshot of the ledger at one head. A `Journal` reads it once for each step of the
guard. The step decides on it, and appends entries that name its head. If somebody else appended in
between, the ledger refuses the entries, and the step decides again on newer records. So no entry
stands on records that have changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import require, said
from rankeval.contamination.registered import RegisteredContent, registered_contents
from rankeval.errors import LedgerError
from rankeval.guard.collection import RegisteredCollection, check_registered
from rankeval.guard.exposure import Exposure, outputs_shown, union
from rankeval.guard.plan import Plan
from rankeval.guard.standings import STATUS_OF, Standings
from rankeval.ledger import discovery
from rankeval.ledger.entry import GENESIS, Entry
from rankeval.ledger.graph import HeadMovedError, Snapshot, short
from rankeval.ledger.ledger import Ledger, Note

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")

_SEEN: dict[str, str] = {}
"""URL -> the last head that this process saw, against which a missing end is found."""


@dataclass(frozen=True)
class Records:
    """The entries that decisions of one project are based on."""

    project: str  # The project
    ledger: Ledger  # The ledger
    snapshot: Snapshot  # Its entries, of all projects

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
        """The registered collections of all projects, with their signatures."""
        return registered_contents(self.ledger, self.snapshot)

    @cached_property
    def exposure(self) -> Exposure:
        """The queries that were looked at."""
        return Exposure(self.ledger, self.snapshot)

    @cached_property
    def standings(self) -> Standings:
        """The plans of the project."""
        return Standings(self.project, self.exposure)

    @cached_property
    def retired(self) -> dict[str, str]:
        """Id of a registration -> the reason for which it was retired."""
        bodies = [entry.body for entry in self.snapshot.entries if entry.kind == "retire"]
        return {body["registration"]: body["reason"] for body in bodies}

    @cached_property
    def own(self) -> list[Entry]:
        """The registrations by the project."""
        entries = self.exposure.registrations.values()
        return [entry for entry in entries if entry.project == self.project]

    def named(self, name: str) -> list[Entry]:
        """Return the registrations of a collection by the project: the first, and its revisions."""
        return [entry for entry in self.own if entry.body["name"] == name]

    def registered(self, collection: RegisteredCollection | str) -> Entry:
        """Return the entry that registered a collection of the project; by its name, the latest."""
        check_registered(collection, or_name=True)
        name = collection if isinstance(collection, str) else collection.name
        entries = [
            entry
            for entry in self.named(name)
            if isinstance(collection, str) or entry.body["digest"] == collection.digest
        ]
        if not entries:
            names = ", ".join(dict.fromkeys(entry.body["name"] for entry in self.own)) or "none"
            raise LedgerError(
                f"project {self.project!r} has no collection {name!r} in the ledger {self.where}; it has: {names}"
            )
        return entries[-1]

    def registered_by_anybody(self, collection: RegisteredCollection | str) -> Entry:
        """Return the entry that registered a collection of any project, by "name" or "project/name"."""
        if isinstance(collection, RegisteredCollection):
            return Records(collection.project, self.ledger, self.snapshot).registered(collection)
        check_registered(collection, or_name=True)
        if self.named(collection):
            return self.registered(collection)
        registrations = self.exposure.registrations.values()
        entries = [
            entry
            for entry in registrations
            if collection in {entry.body["name"], f"{entry.project}/{entry.body['name']}"}
        ]
        if len({entry.project for entry in entries}) != 1:
            known = dict.fromkeys(
                f"{entry.project}/{entry.body['name']}" for entry in entries or registrations
            )
            raise LedgerError(
                f"{len(known) if entries else 'no'} collections are called {collection!r} in the ledger {self.where}: "
                f"give one of {', '.join(known) or 'none'}"
            )
        return entries[-1]

    def unretired(self, collection: RegisteredCollection | str) -> Entry:
        """Return the entry of a collection as `registered` does; raises LedgerError if it was retired."""
        entry = self.registered(collection)
        reason = self.retired.get(entry.hash)
        if reason is not None:
            raise LedgerError(
                f"{entry.body['name']!r} was retired ({reason}) and is no longer a test"
            )
        return entry

    def plan(self, plan_id: str) -> Plan:
        """Return a plan by its id."""
        require(isinstance(plan_id, str), "plan", plan_id, "a frozen plan or its id")
        frozen = self.standings.frozen
        ids = [known for known in frozen if known.startswith(plan_id)]
        if len(ids) != 1 or not plan_id:
            raise LedgerError(
                f"{len(ids) if plan_id else 'no'} plans of project {self.project!r} begin with {plan_id!r} in the "
                f"ledger {self.where}: give the id of one that was frozen"
            )
        try:
            return Plan.from_body(frozen[ids[0]][0].body, ledger=self.where, head=self.head)
        except (KeyError, TypeError, AttributeError) as error:
            raise LedgerError(
                f"plan {ids[0]} of the ledger {self.where} cannot be read: {said(error)}"
            ) from error


COMMITTED = "RANKEVAL_LEDGER_COMMITTED"
"""The variable by which a run in CI says that it commits the ledger."""

# JENKINS_URL alone may be set on anybody's machine: the client of its command line reads it.
SERVICES = (
    "CI", "APPVEYOR", "BITBUCKET_BUILD_NUMBER", "BUILDER_OUTPUT", "BUILDKITE", "CIRCLECI", "CIRRUS_CI",
    "CODEBUILD_BUILD_ID", "DRONE", "GITHUB_ACTIONS", "GITLAB_CI", "GO_PIPELINE_LABEL", "JENKINS_URL BUILD_ID",
    "SEMAPHORE", "TEAMCITY_VERSION", "TF_BUILD", "TRAVIS", "bamboo_planKey",
)  # fmt: skip
"""The variables by which a CI service is known; all variables of one text must be set."""

POD = "KUBERNETES_SERVICE_HOST"
"""Set in each pod of Kubernetes, whose checkout may lie on a volume that outlives it."""


def why_lost(url: str, *, committed: bool = False) -> str | None:
    """Return why an opening that is recorded in a ledger would be lost with the machine; None if it would last.

    In continuous integration a checkout is thrown away after the run. A ledger inside it is lost
    with it, whichever setting names it, unless the run commits it. In a pod of Kubernetes it may be
    lost: a warning says so once.
    """
    path = discovery.place_of(url).path
    names = (*SERVICES, POD)
    service = next((name for name in names if all(map(_is_set, name.split()))), None)
    if not path or committed or service is None or _is_set(COMMITTED):
        return None
    checkout = next((folder for folder in Path(path).parents if (folder / ".git").exists()), None)
    if checkout is None:
        return None
    place = f"the variable {service.split()[0]} is set, and the ledger {path} lies in the checkout {checkout}"
    remedy = (
        f"Name a ledger outside the checkout, or a server, with {discovery.VARIABLE}, or let the run commit the ledger "
        f"and set {COMMITTED}=1"
    )
    if service == POD:
        lost = "if the checkout is lost with the pod, the look is lost too, and the next pod has it again"
        discovery.warn_once(
            POD, f"{place}: {lost}. {remedy}. If it lies on a lasting volume, set that variable too"
        )
        return None
    return (
        f"{place}, which is thrown away after the run: the look would be lost, and the next run would have it again. "
        f"{remedy}"
    )


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in {"", "0", "false", "no", "off"}


class Journal:
    """The ledger as one project reads and extends it."""

    def __init__(self, project: str, ledger: Ledger) -> None:
        self.project = project
        self.ledger = ledger

    @property
    def seen(self) -> str:
        """The last head of the ledger that this process saw."""
        return _SEEN.get(self.ledger.url, GENESIS)

    def read(self) -> Records:
        """Read the ledger."""
        # A ledger whose newest entries were cut off is whole: only a head that was seen before
        # shows it.
        snapshot = self.ledger.read()
        seen = self.seen
        if not snapshot.holds(seen):
            raise LedgerError(
                f"the ledger {self.ledger.where} lost entries since this process last read it, when its head was "
                f"{short(seen)}: it was shortened or replaced. Restore it from a copy"
            )
        _SEEN[self.ledger.url] = snapshot.head
        return Records(self.project, self.ledger, snapshot)

    def check_lasting(self) -> None:
        """Find out whether a look or a decision will be kept, before anything is scored."""
        if reason := why_lost(self.ledger.url):
            raise LedgerError(reason)
        self.ledger.check_writable()

    def append(self, records: Records, *notes: Note) -> str:
        """Append entries that were decided on these records, and return the new head."""
        head = self.ledger.append(self.project, *notes, expected=records.head).hash
        _SEEN[self.ledger.url] = head
        return head

    def transact(self, step: Callable[[Records], T], records: Records | None = None) -> T:
        """Let a step decide and append, again if somebody else appended in between."""
        try:
            return step(records or self.read())
        except HeadMovedError:
            # Under the lock nobody else appends. The step may take long, so it goes without at
            # first.
            with self.ledger.locked():
                return step(self.read())


COLUMNS = (
    "look", "time", "who", "project", "system", "measure", "value", "status", "plan", "output", "n_queries",
)  # fmt: skip


def looks_table(
    records: Records, collection: RegisteredCollection | str | None, *, everybody: bool
) -> pd.DataFrame:
    """Return the looks, one row each, in the order of the ledger."""
    import pandas as pd

    queries = _queries_of(records, collection)
    looks = list(_looks(records, queries))
    own = [look for look in looks if look["project"] == records.project]
    shown = looks if everybody else own
    columns = list(COLUMNS) if collection is not None else ["collection", *COLUMNS]
    rows = [look | {"look": number} for number, look in enumerate(shown, start=1)]
    table = pd.DataFrame(rows, columns=columns).astype(
        {"look": "int64", "value": "float64", "n_queries": "int64"}
    )
    table.attrs = {
        "ledger": records.where,
        "head": records.head,
        "elsewhere": len(looks) - len(own),
        "decisions": _n_decisions(records, queries, everybody=everybody),
    }
    return table


def _queries_of(
    records: Records, collection: RegisteredCollection | str | None
) -> NDArray[np.int64]:
    """Return the classes of the queries of a collection with its revisions, or of all."""
    entries = records.own
    if collection is not None:
        entries = records.named(records.registered(collection).body["name"])
    return union(records.exposure.classes[entry.hash] for entry in entries)


def _looks(records: Records, queries: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield the looks of all projects at some queries; equal outputs of a project count once."""
    exposure = records.exposure
    seen = set()
    standings = cache(lambda project: Standings(project, exposure))
    standing = cache(lambda project, plan: standings(project).of(plan).name)
    openings = [
        (entry, n_queries)
        for entry in records.snapshot.entries
        if entry.kind == "open"
        and (n_queries := int(np.isin(queries, exposure.queries_of(entry.body)).sum()))
    ]
    by_project: dict[str, list[Entry]] = {}
    for entry, _ in openings:
        by_project.setdefault(entry.project, []).append(entry)
    shown = {project: outputs_shown(entries) for project, entries in by_project.items()}
    for entry, n_queries in openings:
        own = entry.project == records.project
        for name in entry.body["looks"] if own else entry.body["systems"]:
            output = entry.body["systems"][name]
            if (entry.project, output) not in seen and (own or output in shown[entry.project]):
                seen.add((entry.project, output))
                status = STATUS_OF[standing(entry.project, entry.body["plan"])]
                yield _row(entry, name) | {"status": status, "n_queries": n_queries}


def _n_decisions(records: Records, queries: NDArray[np.int64], *, everybody: bool) -> int:
    exposure = records.exposure
    return sum(
        entry.kind == "decide"
        and (everybody or entry.project == records.project)
        and bool(np.isin(queries, exposure.queries_of(entry.body)).any())
        for entry in exposure.snapshot.entries
    )


def _row(entry: Entry, name: str) -> dict[str, Any]:
    body = entry.body
    return {
        "collection": body["collection"],
        "time": entry.time,
        "who": entry.who,
        "project": entry.project,
        "system": name,
        "measure": body["measures"][0],
        "value": body["values"][name],
        "plan": body["plan"],
        "output": body["systems"][name],
    }
