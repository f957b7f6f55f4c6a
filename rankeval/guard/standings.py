"""The standing of a plan: how far its result can be believed, decided by what its writer may have seen.

The entries of a ledger have one order, that of `Snapshot`: parents first, and by their hashes if
neither writer knew of the other entry. It never changes, and no clock decides. Three openings of
one collection::

    freeze A --- freeze B --- open A --- freeze C --- open B --- open C

A and B were frozen before anything was opened: both are confirmatory, and one family, since a
result may be picked from either. C came after A was opened: it is exploratory.

In two clones of a ledger, plans can be frozen and opened by people who do not know of each other's
entries::

    register --+-- freeze P --- open P --+--
               |                         |
               +-- freeze Q --- open Q --+

Somebody may have told the result of the first opening to the other side. The ledger cannot know
which one was first, so its order decides: one of both comes before the other, and keeps its
standing; the other one is exploratory.

Were queries of a plan seen before, by an entry that exposes them?::

    the entry comes before the      its writer knew             the queries
    opening, in this order          a freeze of the plan        were
    no                              -                           not seen
    yes                             yes                         not seen: the plan was fixed by then
    yes                             no                          seen

All entries come before the opening of a plan that was not opened yet. If two clones opened the same
plan, the last of both openings counts. If a plan was frozen in one clone and opened after a merge,
all that the merge brought comes before its opening.

Few queries (`is_few`) count as none. Who saw them decides the standing::

    seen by                                                          new outputs        standing
    nobody                                                           -                  confirmatory
    another project alone, by a look or a decision                   -                  first look of this project
    this project by a look or a decision, or anybody                 yes                exploratory
    who exempted or retired them (*)                                 no                 secondary

    (*) a retirement by another project counts as its looks do for what the project had registered itself by then,
        since that went on being refused

Later entries can lower a standing, and never raise it.

A `History` holds the outputs that the project opened on the queries of a plan: which are new, and
how good the best of them looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.exposure import (
    Classes,
    Exposure,
    OtherProject,
    Output,
    is_few,
    other_projects,
    outputs_of_looks,
    union,
)
from rankeval.join.matching import Hashes
from rankeval.ledger.arrays import part_of
from rankeval.ledger.entry import Entry

CONFIRMATORY = "confirmatory"
"""Frozen before anybody had looked at its queries: its p-values, adjusted over its family, are valid."""
FIRST = "first look of this project"
"""Frozen before this project had looked at them, but others had: valid if no result was passed on."""
EXPLORATORY = "exploratory"
"""Frozen later, and with new outputs: nothing can adjust for the lessons of the earlier openings."""
SECONDARY = "secondary"
"""Frozen later, and all its outputs were opened before: it is another view of known rankings."""

ADJUSTED = (CONFIRMATORY, FIRST)
"""The standings with adjusted p-values."""
STATUS_OF = {CONFIRMATORY: CONFIRMATORY} | dict.fromkeys(
    (FIRST, EXPLORATORY, SECONDARY), EXPLORATORY
)
"""Standing -> its status, one of two words in sentences and tables: the sentence behind the word has the rest.

A first look is called exploratory, because a ledger cannot show whether the other project's results
were known."""

RELEASES = ("exempt", "retire")
"""The kinds of entries after which queries may be fitted on."""


QueryHashes = Mapping[str, Hashes]
"""Kind of row -> the hash of an output's ranking of each query, in the order of the content."""


@dataclass(frozen=True)
class Standing:
    """The standing of a plan as of one head of the ledger; `seen` are the entries by which its queries were seen."""

    name: str  # a key of `STATUS_OF`
    looks: tuple[str, ...]  # the systems of the plan whose opening is a new look
    n_looks: int  # of the project at these queries, these included
    family: tuple[str, ...]  # the plans that are corrected together, this one included
    n_queries: int
    n_exposed: int  # queries that were seen before
    n_released: int  # those that had been exempted or retired by then
    others: tuple[OtherProject, ...]  # that had looked at them by then
    seen: tuple[Entry, ...]
    apart: tuple[
        Entry, ...
    ]  # those of `seen` in another clone: neither they nor the freeze knew of the other

    @property
    def is_adjusted(self) -> bool:
        """Whether p-values can be adjusted."""
        return self.name in ADJUSTED


@dataclass(frozen=True)
class Standings:
    """The plans of one project, and their standings."""

    project: str
    exposure: Exposure
    _all_seen: dict[str, tuple[Entry, ...]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def frozen(self) -> dict[str, list[Entry]]:
        """Id -> the entries that froze a plan of the project; two, if it was frozen in two clones."""
        return self._own("freeze")

    @cached_property
    def opened(self) -> dict[str, list[Entry]]:
        """Id -> the entries that opened a plan of the project."""
        return self._own("open")

    def opening_of(self, plan_id: str) -> Entry | None:
        """Return the first entry of a plan's opening; None if it was not opened."""
        return next(iter(self.opened.get(plan_id, ())), None)

    def openings_of(self, body: Mapping[str, Any]) -> list[Entry]:
        """Return the openings by the project of any queries that the body of an entry is about."""
        entries = (entry for entries in self.opened.values() for entry in entries)
        return [entry for entry in entries if self.exposure.shared(body, entry.body)]

    def of(self, plan_id: str, new_looks: Callable[[], tuple[str, ...]] = tuple) -> Standing:
        """Return the standing of a frozen plan; `new_looks` tells those of a plan that was not opened yet."""
        body = self.body_of(plan_id)
        seen = self._seen(plan_id)
        apart = self.exposure.snapshot.apart
        freezes = self.frozen[plan_id]
        if openings := self.opened.get(plan_id, ()):
            looks = tuple(dict.fromkeys(name for entry in openings for name in entry.body["looks"]))
        else:
            looks = new_looks()
        queries = self.exposure.queries_of(body)
        exposed = self.exposure.exposed(queries, seen)
        n_looks = len(self._outputs_looked_at(plan_id, looks))
        if self._knew_queries(plan_id):
            name = EXPLORATORY if looks else SECONDARY
        else:
            name = FIRST if _are_more_than_few(exposed) else CONFIRMATORY
        released = [entry for entry in seen if entry.kind in RELEASES]
        n_released = int(self.exposure.exposed(queries, released).sum())
        entries_apart = tuple(
            entry for entry in seen if all(apart(entry.hash, freeze.hash) for freeze in freezes)
        )
        family = self._family(plan_id) if name in ADJUSTED else (plan_id,)
        return Standing(
            name=name,
            looks=looks,
            n_looks=n_looks,
            family=family,
            n_queries=len(queries),
            n_exposed=int(exposed.sum()),
            n_released=n_released,
            others=other_projects(self.exposure, self.project, body, seen),
            seen=seen,
            apart=entries_apart,
        )

    def _own(self, kind: str) -> dict[str, list[Entry]]:
        by_plan: dict[str, list[Entry]] = {}
        for entry in self.exposure.snapshot.entries:
            if entry.kind == kind and entry.project == self.project:
                by_plan.setdefault(entry.body["plan"], []).append(entry)
        return by_plan

    def body_of(self, plan_id: str) -> Mapping[str, Any]:
        """Return the body of the entry that froze a plan."""
        return self.frozen[plan_id][0].body

    @property
    def bodies(self) -> Iterator[Mapping[str, Any]]:
        """The bodies of all plans, in the order of the ledger."""
        return map(self.body_of, self.frozen)

    def _seen(self, plan_id: str) -> tuple[Entry, ...]:
        """Return the entries by which queries of a plan were seen before, by the truth table above."""
        if plan_id not in self._all_seen:
            body = self.body_of(plan_id)
            exposing = [
                entry
                for entry in self.exposure.exposing(self.project)
                if self.exposure.shared(body, entry.body)
            ]
            self._all_seen[plan_id] = tuple(
                entry
                for entry in exposing
                if self._is_before(entry, plan_id) and not self._knew_freeze(entry, plan_id)
            )
        return self._all_seen[plan_id]

    def _knew_freeze(self, entry: Entry, plan_id: str) -> bool:
        """Return whether the writer of an entry knew that the plan was frozen."""
        precedes = self.exposure.snapshot.precedes
        return any(precedes(freeze.hash, entry.hash) for freeze in self.frozen[plan_id])

    def _is_before(self, entry: Entry, plan_id: str) -> bool:
        """Return whether an entry comes before the opening of a plan; all do if it was not opened."""
        places = self.exposure.snapshot.places
        opened = self.opened.get(plan_id)
        return opened is None or places[entry.hash] < places[opened[-1].hash]

    def _knew_queries(self, plan_id: str) -> bool:
        """Return whether the project looked at queries of a plan before, or may have fitted on them."""
        queries = self.exposure.queries_of(self.body_of(plan_id))
        return _are_more_than_few(self._known(queries, self._seen(plan_id)))

    def _known(self, queries: Classes, seen: Sequence[Entry]) -> NDArray[np.bool_]:
        known = self.exposure.exposed(
            queries, [entry for entry in seen if entry.project == self.project]
        )
        for entry in seen:
            if entry.kind in RELEASES and entry.project != self.project:
                released = self.exposure.exposed(queries, [entry])
                if entry.kind == "retire":
                    # What the project had registered by then went on being refused.
                    released &= ~np.isin(queries, self._registered_before(entry))
                known |= released
        return known

    def _registered_before(self, entry: Entry) -> Classes:
        exposure = self.exposure
        return union(
            exposure.classes[own.hash]
            for own in exposure.registrations.values()
            if own.project == self.project and exposure.snapshot.precedes(own.hash, entry.hash)
        )

    def _family(self, plan_id: str) -> tuple[str, ...]:
        """Return the plans that somebody could have picked a result from as well as from this one."""
        family = [
            other
            for other, freezes in self.frozen.items()
            if self._is_before(freezes[0], plan_id)
            and self._is_linked(self.body_of(plan_id), freezes[0].body)
            and not self._knew_queries(other)
        ]
        return tuple(dict.fromkeys([*family, plan_id]))

    def _is_linked(self, body: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        pairs = ((body, other), (other, body))
        return any(
            not is_few(self.exposure.shared(first, second), len(self.exposure.queries_of(first)))
            for first, second in pairs
        )

    def _outputs_looked_at(self, plan_id: str, looks: Iterable[str]) -> set[Output]:
        # Looks that came after the plan's opening do not bear on its result.
        body = self.body_of(plan_id)
        systems = dict(body["content"]["systems"])
        outputs = {systems[name] for name in looks}
        openings = self.openings_of(body)
        earlier = [entry for entry in openings if self._is_before(entry, plan_id)]
        return outputs | outputs_of_looks(earlier)


def _are_more_than_few(marked: NDArray[np.bool_]) -> bool:
    return not is_few(int(marked.sum()), len(marked))


_KINDS = ("features", "documents", "labels")
"""Kinds of rows by which two outputs are compared; the same order of any of them scores the same."""


class Opening(NamedTuple):
    """An opening beside the queries of another entry."""

    entry: Entry
    places: NDArray[
        np.intp
    ]  # (n_queries,): The place of each query in the opening, -1 if it lacks it
    arrays: dict[str, NDArray[Any]]  # The scores and the hashes that the opening kept


@dataclass(frozen=True)
class History:
    """The openings by a project of the queries of one plan, or of any entry whose body names queries."""

    standings: Standings
    body: Mapping[str, Any]

    @cached_property
    def opened(self) -> list[Entry]:
        """The openings of any of these queries."""
        return self.standings.openings_of(self.body)

    @property
    def elsewhere(self) -> int:
        """The looks of other projects at any of these queries."""
        exposure = self.standings.exposure
        project = self.standings.project
        others = other_projects(exposure, project, self.body, exposure.snapshot.entries)
        return sum(other.n_looks for other in others)

    @property
    def first_baseline(self) -> Output | None:
        """The output of the first baseline that the project declared for any of these queries."""
        exposure = self.standings.exposure
        for body in self.standings.bodies:
            plan = body["content"]
            if plan["baseline"] is not None and exposure.shared(self.body, body):
                return str(dict(plan["systems"])[plan["baseline"]])
        return None

    def new_looks(
        self, systems: Mapping[str, Output], hashes: Mapping[str, QueryHashes]
    ) -> tuple[str, ...]:
        """Return the systems with new outputs: those that rank some query as no opening of the project did.

        So rankings that were opened part by part are no new look on the whole, nor on another part.
        The first baseline that was declared for a query is free there, and equal outputs count
        once.

        `systems` has the output of each system, and `hashes` those of its queries.
        """
        # A baseline is what one starts from: its score is published, or was the reason for the
        # work.
        seen = {
            self.first_baseline,
            *(output for entry in self.opened for output in entry.body["systems"].values()),
        }
        new = []
        for name, output in systems.items():
            # Query by query: parts that were opened one after the other are no new look as a whole.
            if (
                output not in seen
                and not (self._opened_before(hashes[name]) | self._free_of(output)).all()
            ):
                new.append(name)
                seen.add(output)
        return tuple(new)

    @property
    def outputs_looked_at(self) -> set[Output]:
        """The outputs whose opening was a look."""
        return outputs_of_looks(self.opened)

    def scores_of_outputs(self, measure: str) -> dict[Output, NDArray[np.float64]]:
        """Return the scores of these queries by one measure, for each opened output; nan where it was not opened."""
        by_output: dict[Output, NDArray[np.float64]] = {}
        for opening in self._openings:
            outputs = opening.entry.body["systems"].values()
            is_there = opening.places >= 0
            for output, scores in zip(outputs, _scores(opening, measure), strict=False):
                # Another measure order or a later opening gives the same scores of the same output.
                by_output.setdefault(output, np.where(is_there, scores[opening.places], np.nan))
        return by_output

    def sd_of_differences(self, measure: str) -> float | None:
        """Return the mean standard deviation of differences per query, over pairs opened together; None without one."""
        sds = []
        for opening in self._openings:
            pairs = combinations(_scores(opening, measure), 2)
            sds += [float(np.nanstd(first - second, ddof=1)) for first, second in pairs]
        varied = [sd for sd in sds if sd > 0]
        return float(np.mean(varied)) if varied else None

    def _opened_before(self, hashes: QueryHashes) -> NDArray[np.bool_]:
        """Return which of these queries an opening ranked as an output does, on whatever collection."""
        opened = np.zeros(len(self.standings.exposure.queries_of(self.body)), dtype=bool)
        for places, known in self._opened_hashes:
            for kind in _KINDS:
                if kind in hashes and kind in known:
                    opened |= (places >= 0) & (hashes[kind] == known[kind][places])
        return opened

    def _free_of(self, output: Output) -> NDArray[np.bool_]:
        """Return the queries on which an output is free: it is the plan's baseline, and none was declared before."""
        exposure = self.standings.exposure
        content = self.body["content"]
        queries = exposure.queries_of(self.body)
        if content["baseline"] is None or dict(content["systems"])[content["baseline"]] != output:
            return np.zeros(len(queries), dtype=bool)
        before = takewhile(lambda body: body["plan"] != self.body["plan"], self.standings.bodies)
        declared = (
            exposure.queries_of(body) for body in before if body["content"]["baseline"] is not None
        )
        return ~np.isin(queries, union(declared))

    @cached_property
    def _opened_hashes(self) -> list[tuple[NDArray[np.intp], QueryHashes]]:
        """The places of these queries in each opening, and the hashes of each output there."""
        return [
            (opening.places, part_of(opening.arrays, f"{system}.outputs."))
            for opening in self._openings
            for system in range(len(opening.entry.body["systems"]))
        ]

    @cached_property
    def _openings(self) -> list[Opening]:
        exposure = self.standings.exposure
        return [
            Opening(
                entry,
                exposure.places_in(self.body, entry.body),
                exposure.ledger.load(entry.body["outputs"]),
            )
            for entry in self.opened
        ]


def _scores(opening: Opening, measure: str) -> list[NDArray[np.float64]]:
    """Return the scores of the systems of an opening by one measure; none if they were not scored by it."""
    measures = opening.entry.body["measures"]
    systems = opening.entry.body["systems"]
    if measure not in measures:
        return []
    tables = (
        opening.arrays[f"{system}.scores"].reshape(-1, len(measures))
        for system in range(len(systems))
    )
    return [scores[:, measures.index(measure)] for scores in tables]


def expected_inflation(n_looks: int, n_queries: int, *, sd: float, correlation: float) -> float:
    """Return the expected inflation: how much better the best of K equally good systems looks than it is.

    It is at least 0, and grows with more looks and fewer queries; it is 0 for one look. The formula
    is ``sd sqrt(1 - r) / sqrt(n) E_K`` with Blom's approximation ``E_K = Phi^-1((K - .375) / (K +
    .25))`` of the expected maximum of K standard normals (Blom 1958).

    >>> round(expected_inflation(10, 50, sd=0.28, correlation=0.9), 3)
    0.019
    """
    from scipy.special import ndtri

    if n_looks <= 1:
        return 0.0
    spread = sd * math.sqrt(max(0.0, 1 - correlation)) / math.sqrt(n_queries)
    return spread * float(ndtri((n_looks - 0.375) / (n_looks + 0.25)))


def inflation_of(scores: Sequence[NDArray[np.float64]], n_looks: int) -> float:
    """Return the expected inflation, with spread and correlation estimated from the scores of the opened outputs."""
    table = np.column_stack(scores)
    table = table[np.isfinite(table).all(axis=1)]
    deviations = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])
    varied = table[:, deviations > 0]
    correlation = 0.9  # typical of variants of one system; used if only one system varies
    if varied.shape[1] > 1:
        matrix = np.atleast_2d(np.corrcoef(varied, rowvar=False))
        correlation = float(matrix[np.triu_indices(len(matrix), 1)].mean())
    return expected_inflation(
        n_looks, max(1, len(table)), sd=float(deviations.mean()), correlation=correlation
    )
