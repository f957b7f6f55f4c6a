"""Which queries were looked at, whatever collection, project or name they stood in.

The same query may stand in several registrations: in a revision with another feature, in a larger
collection, in that of another project. Links say which are the same, and the connected components
of all links are *classes* of queries::

    registration a   0  1  2        a and b share two queries        classes  0  1  2
    registration b   0  1                                                     1  2
    registration c   0  1           c shares one with b                       2  3

Three sources give links. Equal digests link all queries. A registration keeps the links to those
before it, which were found with its data at hand. Two registrations that were made in two clones
are linked by their signatures.

An entry *exposes* its queries if somebody learned something about them: an opening with a new look,
a decision of a gate, an exemption or a retirement, after which they may have been fitted on. The
first baseline of a project is no look of its own; but its score was shown, so to all other projects
any opening exposes queries. Exposure is a set of classes, so it adds up over openings, names and
projects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.matching import link
from rankeval.contamination.signature import Signature
from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import Snapshot
from rankeval.ledger.ledger import Ledger

Classes = NDArray[np.int64]
"""The class of each query, in the order of the content."""

Output = str
"""The hash of a whole ranking output."""

SHARE, NUMBER = 0.05, 5
"""From this share or this number of its queries on, a plan counts as exposed."""


def union(parts: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the classes or places that any part has, ascending; none of no parts."""
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


def is_few(n_exposed: int, n_queries: int) -> bool:
    """Return whether so few queries are exposed that a plan counts as if none were: under 5 %, and under 5.

    Examples
    --------
    >>> is_few(4, 100), is_few(5, 1000), is_few(1, 20)
    (True, False, False)
    """
    return n_exposed < NUMBER and n_exposed < SHARE * n_queries


@dataclass(frozen=True)
class Exposure:
    """The classes of queries of a ledger, and what its entries expose."""

    ledger: Ledger
    snapshot: Snapshot
    # Found once, since the standing of every plan asks for them of every other one.
    _exposing: dict[str, tuple[Entry, ...]] = field(default_factory=dict, init=False, repr=False)
    _queries: dict[tuple[str, str | None], Classes] = field(
        default_factory=dict, init=False, repr=False
    )
    _shared: dict[tuple[Any, Any], int] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def registrations(self) -> dict[str, Entry]:
        """Id -> the entry of each registration; the id is the hash of the entry."""
        return {entry.hash: entry for entry in self.snapshot.entries if entry.kind == "register"}

    def exposing(self, project: str) -> tuple[Entry, ...]:
        """Return the entries that expose queries to a project, parents first."""
        if project not in self._exposing:
            self._exposing[project] = tuple(
                entry for entry in self.snapshot.entries if exposes(entry, project)
            )
        return self._exposing[project]

    @cached_property
    def classes(self) -> dict[str, Classes]:
        """Id of a registration -> the class of each of its queries."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        start = {}
        total = 0
        for registration, entry in self.registrations.items():
            start[registration] = total
            total += entry.body["n_queries"]
        # Each query of each registration is a node. Components make links transitive: if a project
        # registers a part of a collection, and another one a part of that part, all three share the
        # class.
        links = [
            (start[first] + own, start[second] + other)
            for first, own, second, other in self._links()
        ]
        if not links:
            labels = np.arange(total, dtype=np.int32)
        else:
            rows, columns = (np.concatenate(ends) for ends in zip(*links, strict=True))
            graph = coo_array(
                (np.ones(len(rows), dtype=bool), (rows, columns)), shape=(total, total)
            )
            labels = connected_components(graph, directed=False)[1]
        return {
            registration: labels[start[registration] :][: entry.body["n_queries"]].astype(np.int64)
            for registration, entry in self.registrations.items()
        }

    @cached_property
    def _n_classes(self) -> int:
        return 1 + max((int(part.max()) for part in self.classes.values() if len(part)), default=-1)

    def queries_of(self, body: Mapping[str, Any]) -> Classes:
        """Return the classes of the queries that the body of an entry names, in the order of the content."""
        registration, part = key = _key(body)
        if key not in self._queries:
            classes = self.classes[registration]
            if part is not None:
                classes = classes[places_of(self.ledger, part)]
            self._queries[key] = classes
        return self._queries[key]

    def exposed(self, queries: Classes, by: Iterable[Entry]) -> NDArray[np.bool_]:
        """Return which queries, given by their classes, some entries expose."""
        marked = np.zeros(self._n_classes, dtype=bool)
        # Most openings are about whole collections: each collection is marked once.
        for body in {_key(entry.body): entry.body for entry in by}.values():
            marked[self.queries_of(body)] = True
        return marked[queries]

    def shared(self, body: Mapping[str, Any], other: Mapping[str, Any]) -> int:
        """Return how many queries of one entry the other is about too, by the bodies of both."""
        key = _key(body), _key(other)
        if key not in self._shared:
            self._shared[key] = int(np.isin(self.queries_of(body), self.queries_of(other)).sum())
        return self._shared[key]

    def places_in(self, body: Mapping[str, Any], other: Mapping[str, Any]) -> NDArray[np.intp]:
        """Return the place of each query of one entry among those of another, by their bodies; -1 if it lacks one."""
        wanted = self.queries_of(body)
        there = self.queries_of(other)
        if _key(body) == _key(other):
            return np.arange(len(wanted))
        # searchsorted gives a place for every class, also past the end: only equal classes are the
        # same query.
        order = np.argsort(there, kind="stable")
        place = order[np.minimum(np.searchsorted(there[order], wanted), len(there) - 1)]
        return np.where(there[place] == wanted, place, -1)

    def _links(self) -> Iterable[tuple[str, NDArray[Any], str, NDArray[Any]]]:
        """Yield (registration, places, other registration, places) for all queries known to be the same."""
        by_digest: dict[str, str] = {}
        for registration, entry in self.registrations.items():
            first = by_digest.setdefault(entry.body["digest"], registration)
            if first != registration:
                # Equal digests have equal contents, and places are in the order of the content.
                places = np.arange(entry.body["n_queries"])
                yield registration, places, first, places
            kept = entry.body["links"]
            arrays = self.ledger.load(kept["pairs"]) if kept["to"] else {}
            for place, other in enumerate(kept["to"]):
                yield registration, arrays[f"{place}.own"], other, arrays[f"{place}.other"]
        yield from self._links_between_clones()

    def _links_between_clones(self) -> Iterable[tuple[str, NDArray[Any], str, NDArray[Any]]]:
        for first, second in combinations(self.registrations.values(), 2):
            is_apart = self.snapshot.apart(first.hash, second.hash)
            if is_apart and first.body["digest"] != second.body["digest"]:
                files = first.body["signatures"], second.body["signatures"]
                own, other = _linked(self.ledger, *files)
                yield first.hash, own, second.hash, other


def _linked(ledger: Ledger, first: str, second: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the places of the same queries in two registrations, by the files of their signatures."""
    key = first, second
    if key not in _LINKED:  # files are named by their content
        pairs = link(*(Signature.from_arrays(ledger.load(name)) for name in key))
        _LINKED[key] = pairs[:, 0], pairs[:, 1]
    return _LINKED[key]


_LINKED: dict[tuple[str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
"""The links between registrations of two clones, as this process found them."""


def exposes(entry: Entry, project: str) -> bool:
    """Return whether a project learned something about the queries of an entry, or somebody may have fitted on them.

    Its own free first baseline exposes nothing to it; that of another project does.
    """
    by_others = entry.kind == "open" and entry.project != project
    return by_others or entry.kind in {"decide", "exempt", "retire"} or is_look(entry)


def is_look(entry: Entry) -> bool:
    """Return whether an entry is an opening with new outputs."""
    return entry.kind == "open" and bool(entry.body["looks"])


def outputs_of_looks(openings: Iterable[Entry]) -> set[Output]:
    """Return the outputs whose opening was a look."""
    return {entry.body["systems"][name] for entry in openings for name in entry.body["looks"]}


def outputs_shown(openings: Sequence[Entry]) -> set[Output]:
    """Return the outputs that another project saw: its looks, or its first baseline if it opened nothing else."""
    looks = outputs_of_looks(openings)
    return looks or {output for entry in openings for output in entry.body["systems"].values()}


@dataclass(frozen=True)
class OtherProject:
    """The looks of another project at queries of a plan."""

    project: str
    n_looks: int
    n_queries: int
    who: tuple[str, ...]


def other_projects(
    exposure: Exposure, project: str, about: Mapping[str, Any], entries: Iterable[Entry]
) -> tuple[OtherProject, ...]:
    """Return the other projects whose openings among some entries are about queries of a body, and how often."""
    queries = exposure.queries_of(about)
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind == "open" and entry.project != project and exposure.shared(about, entry.body):
            found.setdefault(entry.project, []).append(entry)
    return tuple(
        OtherProject(
            other,
            len(outputs_shown(openings)),
            int(exposure.exposed(queries, openings).sum()),
            tuple(dict.fromkeys(entry.who for entry in openings)),
        )
        for other, openings in found.items()
    )


def places_of(ledger: Ledger, name: str) -> NDArray[np.int64]:
    """Return the places of a part of a collection's queries that `keep_places` kept, in the order of the content."""
    return ledger.load(name)["places"].astype(np.int64)


def keep_places(ledger: Ledger, places: NDArray[Any]) -> str:
    """Keep a part of a collection's queries in a file of the ledger, and return its name."""
    return ledger.keep("signatures", {"places": np.sort(places).astype(np.int64)})


def _key(body: Mapping[str, Any]) -> tuple[str, str | None]:
    return body["registration"], body["queries"]
