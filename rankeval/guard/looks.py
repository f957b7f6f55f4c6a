"""The looks at a collection, or of a project, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.records import Records
from rankeval.guard.standing.exposure import outputs_shown
from rankeval.guard.standing.standings import Standings
from rankeval.ledger.entry import Entry

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "look", "time", "who", "project", "system", "measure", "value", "status", "plan", "output", "n_queries",
)  # fmt: skip


def looks_table(records: Records, test: RegisteredCollection | str | None, *, everybody: bool) -> pd.DataFrame:
    """Return the looks, one row each: those that others build on first, and else by time.

    Parameters
    ----------
    records : Records
        The ledger.
    test : RegisteredCollection or str, optional
        The collection; all that the project opened without one.
    everybody : bool
        Whether the looks of other projects are listed too.
    """
    import pandas as pd

    queries = _queries(records, test)
    found = list(_looks(records, queries))
    own = [one for one in found if one["project"] == records.project]
    shown = found if everybody else own
    columns = list(COLUMNS) if test is not None else ["test", *COLUMNS]
    rows = [one | {"look": number} for number, one in enumerate(shown, start=1)]
    table = pd.DataFrame(rows, columns=columns).astype({"look": "int64", "value": "float64", "n_queries": "int64"})
    table.attrs = {"ledger": records.where, "head": records.head, "elsewhere": len(found) - len(own)}
    table.attrs["decisions"] = _n_decisions(records, queries, everybody=everybody)
    return table


def _queries(records: Records, test: RegisteredCollection | str | None) -> NDArray[np.int64]:
    """Return the classes of the queries that are asked about: of a collection with its revisions, or of all."""
    if test is not None:
        entries = records.named(records.registered(test).body["name"])
    else:
        entries = [one for one in records.exposure.registrations.values() if one.project == records.project]
    parts = [records.exposure.classes[entry.hash] for entry in entries]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _looks(records: Records, queries: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield the looks of all projects at some queries; equal outputs of a project count once."""
    status, exposure, seen = _Statuses(records), records.exposure, set()
    found = [
        (entry, n_queries)
        for entry in _oldest_first(records)
        if entry.kind == "open" and (n_queries := int(np.isin(queries, exposure.queries_of(entry.body)).sum()))
    ]
    projects = dict.fromkeys(entry.project for entry, _ in found)
    openings = {project: [entry for entry, _ in found if entry.project == project] for project in projects}
    shown = {project: outputs_shown(opened) for project, opened in openings.items()}
    for entry, n_queries in found:
        own = entry.project == records.project
        for name in entry.body["looks"] if own else entry.body["systems"]:
            output = entry.body["systems"][name]
            if (entry.project, output) not in seen and (own or output in shown[entry.project]):
                seen.add((entry.project, output))
                yield _row(entry, name) | {"status": status.of(entry), "n_queries": n_queries}


def _oldest_first(records: Records) -> list[Entry]:
    """Return the entries in an order for readers: parents first, and by time where nothing else orders them.

    Clocks decide nothing else: openings of two clones stand by turns here, and are concurrent all the same.
    """
    waiting = {entry.hash: len(entry.parents) for entry in records.snapshot.entries}
    children: dict[str, list[Entry]] = {}
    for entry in records.snapshot.entries:
        for parent in entry.parents:
            children.setdefault(parent, []).append(entry)
    ready = [(one.time, one.hash, one) for one in records.snapshot.entries if not waiting[one.hash]]
    heapify(ready)
    found = []
    while ready:
        *_, entry = heappop(ready)
        found.append(entry)
        for child in children.get(entry.hash, ()):
            waiting[child.hash] -= 1
            if not waiting[child.hash]:
                heappush(ready, (child.time, child.hash, child))
    return found


def _n_decisions(records: Records, queries: NDArray[np.int64], *, everybody: bool) -> int:
    """Return the number of decisions of gates on some queries, which no table of looks lists."""
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
        "test": body["collection"],
        "time": entry.time,
        "who": entry.who,
        "project": entry.project,
        "system": name,
        "measure": body["measures"][0],
        "value": body["values"][name],
        "plan": body["plan"],
        "output": body["systems"][name],
    }


class _Statuses:
    """The standing of each opened plan, as of the head."""

    def __init__(self, records: Records) -> None:
        self._exposure = records.exposure
        self._standings = {records.project: records.standings}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, entry: Entry) -> str:
        """Return the standing of the plan that an entry opened."""
        key = entry.project, entry.body["plan"]
        if key not in self._known:
            standings = self._standings.setdefault(entry.project, Standings(entry.project, self._exposure))
            self._known[key] = standings.of(entry.body["plan"]).status
        return self._known[key]
