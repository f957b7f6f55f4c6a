"""The standing of a plan: how far its result can be believed, decided by what its writer had seen when it was frozen.

Only the ancestors of the entry that froze a plan count, never a clock. Four openings of one collection::

    freeze A --- freeze B --- open A --+-- freeze C --- open B --- open C
                                       |
                                       +-- freeze D --- open D          (in another clone)

A and B were frozen before anything was opened: both are confirmatory, and one family, since a result may be picked from
either. C and D came after A was opened: they are exploratory. If D had been frozen and opened beside A, neither having
seen the other, A and D would be concurrent: one family, and neither confirmatory alone.

A plan that was frozen beside an opening and opened after the merge is concurrent too, and one family with all that was
opened there: somebody may have told the results. If one of its own outputs was opened there, it is exploratory. Later
entries can lower a standing, and never raise it (`timing`).

The looks of a project count in full. Those of other projects do not make a plan exploratory, but it is not confirmatory
either: it is the first look of this project, and its notes say who looked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.standing.elsewhere import ElsewhereLooked, looked_elsewhere
from rankeval.guard.standing.exposure import Classes, Exposure, is_few, is_look
from rankeval.guard.standing.timing import Timing
from rankeval.ledger.entry import Entry

CONFIRMATORY = "confirmatory"
"""Frozen before anybody had looked at its queries: its p-values hold, adjusted over its family."""
FIRST = "first look of this project"
"""Frozen before this project had looked at them, but others had: its p-values hold if nobody told."""
CONCURRENT = "concurrent"
"""As the above, but plans of the project were opened without knowing of each other: neither confirms alone."""
EXPLORATORY = "exploratory"
"""Frozen later, and with new outputs: nothing can adjust for the lessons of the earlier openings."""
SECONDARY = "secondary"
"""Frozen later, and all its outputs were opened before: it is another view of known rankings."""

STANDINGS = (CONFIRMATORY, FIRST, CONCURRENT, EXPLORATORY, SECONDARY)
ADJUSTED = (CONFIRMATORY, FIRST, CONCURRENT)
"""The standings with adjusted p-values."""

RELEASES = ("exempt", "retire")
"""The kinds of entries after which queries may be fitted on."""


@dataclass(frozen=True)
class Standing:
    """The standing of a plan as of one head of the ledger.

    Attributes
    ----------
    status : str
        One of `STANDINGS`.
    looks : tuple of str
        The systems of the plan whose opening is a new look.
    n_looks : int
        Looks of the project at these queries, these included.
    family : tuple of str
        Ids of the plans that are corrected together, this one included.
    n_queries, n_exposed, n_released : int
        Queries of the plan; those that anybody had looked at when it was frozen; those that had been exempted or
        retired by then.
    before : tuple of ElsewhereLooked
        Other projects that had looked at them by then.
    beside : tuple of Entry
        Openings of these queries that did not know of this plan's opening, nor it of them.
    missed : tuple of Entry
        What else exposed these queries before the plan was opened, without its freeze knowing of it.
    taken : tuple of str
        The systems of the plan whose outputs the project had opened among these.
    """

    status: str
    looks: tuple[str, ...]
    n_looks: int
    family: tuple[str, ...]
    n_queries: int
    n_exposed: int
    n_released: int
    before: tuple[ElsewhereLooked, ...]
    beside: tuple[Entry, ...]
    missed: tuple[Entry, ...]
    taken: tuple[str, ...]

    @property
    def is_adjusted(self) -> bool:
        """Whether p-values can be adjusted."""
        return self.status in ADJUSTED


@dataclass(frozen=True)
class Standings:
    """The plans of one project, and their standings.

    Attributes
    ----------
    project : str
        The project.
    exposure : Exposure
        The queries that were looked at.
    """

    project: str
    exposure: Exposure

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

    def openings_of(self, queries_of: Mapping[str, Any]) -> list[Entry]:
        """Return the openings by the project of any queries that the body of an entry is about."""
        entries = (entry for entries in self.opened.values() for entry in entries)
        return [entry for entry in entries if self.exposure.shared(queries_of, entry.body)]

    def of(self, plan_id: str, new_looks: Callable[[], tuple[str, ...]] = tuple) -> Standing:
        """Return the standing of a frozen plan.

        Parameters
        ----------
        plan_id : str
            Its id.
        new_looks : callable
            Returns the systems whose opening would be a new look; asked if the plan was not opened yet.
        """
        body, openings = self._body(plan_id), self.opened.get(plan_id, ())
        looks = tuple(dict.fromkeys(name for one in openings for name in one.body["looks"]))
        looks = looks if openings else new_looks()
        queries, before = self.exposure.queries_of(body), self._before(plan_id)
        missed, beside = self._missed(plan_id), self._beside(plan_id)
        status, taken = self._at_freeze(plan_id), self._taken(body, missed)
        if status in ADJUSTED and self._matters(body, self._looks_of_own([*missed, *beside])):
            status = EXPLORATORY if taken else CONCURRENT
        if status == EXPLORATORY and not looks:
            status = SECONDARY
        released = [entry for entry in before if entry.kind in RELEASES]
        return Standing(
            status=status,
            looks=looks,
            n_looks=len(self._outputs(plan_id, looks)),
            family=self._family(plan_id) if status in ADJUSTED else (plan_id,),
            n_queries=len(queries),
            n_exposed=int(self.exposure.exposed(queries, before).sum()),
            n_released=int(self.exposure.exposed(queries, released).sum()),
            before=looked_elsewhere(self.exposure, self.project, body, before),
            beside=tuple(beside),
            missed=tuple(missed),
            taken=taken,
        )

    def _own(self, kind: str) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.exposure.snapshot.entries:
            if entry.kind == kind and entry.project == self.project:
                found.setdefault(entry.body["plan"], []).append(entry)
        return found

    def _body(self, plan_id: str) -> Mapping[str, Any]:
        return self.frozen[plan_id][0].body

    def _timing(self, plan_id: str) -> Timing:
        openings = tuple(self.opened.get(plan_id, ()))
        return Timing(self.exposure.snapshot, tuple(self.frozen[plan_id]), openings)

    def _before(self, plan_id: str) -> list[Entry]:
        """Return the entries that had exposed queries by rule before the plan was frozen.

        They are those that a freeze knew, and of those that it missed all but the looks of the project, which make
        the plan concurrent.
        """
        knew, missed = self._timing(plan_id).knew, self._missed(plan_id)
        own = {entry.hash for entry in self._looks_of_own(missed)}
        also = {entry.hash for entry in missed} - own
        return [entry for entry in self.exposure.exposing(self.project) if entry.hash in also or knew(entry)]

    def _missed(self, plan_id: str) -> list[Entry]:
        """Return what other plans and anybody else exposed before the opening, without a freeze knowing of it."""
        return self._others(plan_id, self._timing(plan_id).missed)

    def _beside(self, plan_id: str) -> list[Entry]:
        """Return the looks by other plans that an opening of this one did not know of, nor they of it."""
        crossed = self._timing(plan_id).crossed
        return self._others(plan_id, lambda entry: is_look(entry) and crossed(entry))

    def _others(self, plan_id: str, wanted: Callable[[Entry], bool]) -> list[Entry]:
        """Return the wanted ones of the entries that expose queries of a plan, but for its own openings."""
        body, own = self._body(plan_id), {entry.hash for entry in self.opened.get(plan_id, ())}
        return [
            entry
            for entry in self.exposure.exposing(self.project)
            if entry.hash not in own and wanted(entry) and self.exposure.shared(body, entry.body)
        ]

    def _looks_of_own(self, entries: Iterable[Entry]) -> list[Entry]:
        return [entry for entry in entries if is_look(entry) and entry.project == self.project]

    def _taken(self, body: Mapping[str, Any], missed: Iterable[Entry]) -> tuple[str, ...]:
        """Return the systems of a plan whose outputs the project opened without its freeze knowing of it."""
        known = {entry.body["systems"][name] for entry in self._looks_of_own(missed) for name in entry.body["looks"]}
        return tuple(name for name, output in body["content"]["systems"] if output in known)

    def _at_freeze(self, plan_id: str) -> str:
        """Return the standing that the ancestors of the freeze alone give."""
        if plan_id not in self._known:
            body, before = self._body(plan_id), self._before(plan_id)
            queries = self.exposure.queries_of(body)
            if is_few(int(self.exposure.exposed(queries, before).sum()), len(queries)):
                self._known[plan_id] = CONFIRMATORY
            else:
                few = is_few(int(self._used(queries, before).sum()), len(queries))
                self._known[plan_id] = FIRST if few else EXPLORATORY
        return self._known[plan_id]

    def _used(self, queries: Classes, before: Sequence[Entry]) -> NDArray[np.bool_]:
        """Return which queries the project looked at, or may have fitted on."""
        used = self.exposure.exposed(queries, [entry for entry in before if entry.project == self.project])
        for entry in (one for one in before if one.kind in RELEASES and one.project != self.project):
            free = self.exposure.exposed(queries, [entry])
            if entry.kind == "retire":  # what the project had registered by then went on being refused
                free &= ~np.isin(queries, self._registered_before(entry))
            used |= free
        return used

    def _registered_before(self, entry: Entry) -> Classes:
        """Return the queries that the project had registered before an entry."""
        exposure = self.exposure
        found = [
            exposure.classes[one.hash]
            for one in exposure.registrations.values()
            if one.project == self.project and exposure.snapshot.precedes(one.hash, entry.hash)
        ]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    @cached_property
    def _known(self) -> dict[str, str]:
        return {}

    def _matters(self, body: Mapping[str, Any], by: Iterable[Entry]) -> bool:
        """Return whether entries expose more than few of the queries of a plan."""
        queries = self.exposure.queries_of(body)
        return not is_few(int(self.exposure.exposed(queries, by).sum()), len(queries))

    def _family(self, plan_id: str) -> tuple[str, ...]:
        """Return the plans that somebody could have picked a result from as well as from this one."""
        precedes, openings = self.exposure.snapshot.precedes, self.opened.get(plan_id, ())
        unknown = self._looks_of_own([*self._missed(plan_id), *self._beside(plan_id)])
        # Of plans that were opened unknown to this one even those count that are exploratory: it may be picked by them.
        opened = {entry.body["plan"] for entry in unknown}
        family = [
            other
            for other, freezes in self.frozen.items()
            if self._is_linked(self._body(plan_id), freezes[0].body)
            and (other in opened or self._at_freeze(other) in ADJUSTED)
            and not any(precedes(opening.hash, freeze.hash) for opening in openings for freeze in freezes)
        ]
        return tuple(dict.fromkeys([*family, plan_id]))

    def _is_linked(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        """Return whether two plans share more than few queries of either."""
        pairs = ((one, other), (other, one))
        return any(not is_few(self.exposure.shared(a, b), len(self.exposure.queries_of(a))) for a, b in pairs)

    def _outputs(self, plan_id: str, looks: Iterable[str]) -> set[str]:
        """Return the outputs that the project has looked at, but for looks that came after the plan's opening."""
        precedes, openings = self.exposure.snapshot.precedes, self.opened.get(plan_id, ())
        body = self._body(plan_id)
        systems = dict(body["content"]["systems"])
        seen = {systems[name] for name in looks}
        for entry in self.openings_of(body):
            if not any(precedes(opening.hash, entry.hash) for opening in openings):
                seen.update(entry.body["systems"][name] for name in entry.body["looks"])
        return seen
