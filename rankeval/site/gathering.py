"""Read the records of a project as runs, and the evaluations in them as entries of leaderboards.

::

    StoredRun --read--> Record --> Run     a page of the site
                                    |
                                    +----> Entry, Entry, ...    a row of a leaderboard each

A record may be a stranger's, or damaged. Then it is a `Fault`: a line of the site with its reason.
The evaluations of a comparison are entries too, unless they were saved by themselves: then these
entries take the standing that the guard gave them.

The trap: a record of an evaluation says all that a list needs. Only comparisons are read whole.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from rankeval._checks import said
from rankeval.comparison import Comparison
from rankeval.comparison.shelved import evaluations_of
from rankeval.errors import RankevalError
from rankeval.evaluation.result import EVALUATION
from rankeval.report.summaries import GuardFacts
from rankeval.shelf.kinds import result_of
from rankeval.shelf.record import INTERVAL_ENDS, Record
from rankeval.tracking import StoredRun

_EVALUATION, _COMPARISON = "evaluation", "comparison"
_LETTERS = 16  # of the name of a page
_LAST_TIME = 2.5e11
"""The end of the year 9891: a record of a stranger may have any number as its time."""


class _Facts(BaseModel):
    """The facts that a leaderboard needs of an evaluation."""

    role: str
    step: int | None
    n_queries: int
    system: str | None
    measures: dict[str, str]
    judgments: str
    ranking: str


@dataclass(frozen=True, eq=False)
class Run:
    """A record with a page of its own."""

    place: str
    record: Record
    began: float | None = None
    views: Mapping[str, Path] = field(default_factory=dict)
    guard: GuardFacts | None = None

    @property
    def title(self) -> str:
        """The name of the run for people."""
        return self.record.name.strip() or self.place

    @property
    def page(self) -> str:
        """The path of its page within the site."""
        place = self.place.encode(errors="backslashreplace")
        return f"runs/{hashlib.sha256(place).hexdigest()[:_LETTERS]}.html"


@dataclass(frozen=True, eq=False)
class Entry:
    """An evaluation of a run, with what the guard says of it."""

    run: Run
    record: Record
    facts: _Facts
    guard: GuardFacts | None = None
    is_compared: bool = False  # Part of a comparison: it may stand elsewhere too

    @property
    def system(self) -> str:
        """The name of the evaluated system."""
        name = (self.facts.system or "").strip() or self.run.title
        return name if self.facts.step is None else f"{name}, step {self.facts.step}"

    @property
    def data(self) -> str:
        """The name of its data set."""
        return next((data.name for data in self.record.data), "data without a name")

    @property
    def card(self) -> str:
        """The name of the convention and the start of the digest of its card."""
        return self.record.tags.get("card", "unknown")

    @property
    def standing(self) -> str:
        """What the guard says of it, for lists; "" if a guard has no say in its role."""
        if self.guard is None:
            return "no guard" if self.facts.role == "test" else ""
        return f"{self.guard.status}, look {self.guard.looks}"

    @property
    def values(self) -> dict[str, tuple[float, ...]]:
        """The aggregates with the ends of their intervals, by the names of their measures."""
        return {label: self.value(key) for key, label in self.facts.measures.items()}

    @property
    def scores(self) -> tuple[str, ...]:
        """What determines its scores: the same in a comparison and alone."""
        return self.facts.judgments, self.facts.ranking, self.card

    @property
    def seal(self) -> str:
        """The SHA-256 of the file with its scores."""
        return hashlib.sha256(self.record.files[EVALUATION]).hexdigest()

    def value(self, key: str) -> tuple[float, ...]:
        """Return `value_of` the record of the evaluation."""
        return value_of(self.record, key)


def value_of(record: Record, key: str) -> tuple[float, ...]:
    """Return a metric, such as the aggregate of a measure, and the ends of its interval; nan if unknown."""
    names = [f"{key}{end}" for end in ("", *INTERVAL_ENDS)]
    return tuple(record.metrics.get(name, math.nan) for name in names)


@dataclass(frozen=True)
class Fault:
    """A run that cannot be read, and why."""

    place: str
    reason: str


@dataclass(frozen=True, eq=False)
class Project:
    """The runs of a project, their evaluations, and the runs that cannot be read."""

    runs: list[Run] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def gathered(stored: Iterable[StoredRun]) -> Project:
    """Read all runs of a project."""
    project = Project()
    entries: list[Entry] = []
    for item in stored:
        try:
            found = [*_read(Run(item.name, item.read(), item.started, item.views))]
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = f"facts of an evaluation: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            project.faults.append(Fault(item.name, reason))
        except (RankevalError, OSError, LookupError, TypeError, ValueError) as error:
            project.faults.append(Fault(item.name, said(error)))
        else:
            project.runs.extend(run for run, _ in found)
            entries += [entry for _, own in found for entry in own]
    project.entries.extend(_once(entries))
    return project


def _read(run: Run) -> Iterator[tuple[Run, list[Entry]]]:
    """Yield a run with its evaluations, and then its children that have evaluations."""
    started = run.record.started
    began = started if started and 0 < started < _LAST_TIME else run.began
    found = [*_evaluations(run.record)]
    guard = next((guard for _, guard, _ in found if guard), None)
    dated = replace(run, began=began, guard=guard)
    facts = (_Facts.model_validate(record.facts) for record, _, _ in found)
    pairs = zip(found, facts, strict=True)
    yield dated, [Entry(dated, record, own, said, beside) for (record, said, beside), own in pairs]
    for name, child in run.record.children.items():
        if child.kind == _EVALUATION or child.parts:
            yield from _read(Run(f"{run.place}/children/{name}", child, began))


def _evaluations(record: Record) -> Iterator[tuple[Record, GuardFacts | None, bool]]:
    """Yield the evaluations of a record, what the guard says of each, and if it is of a comparison."""
    if record.kind == _EVALUATION:
        yield record, None, False
    if record.kind == _COMPARISON:
        compared: Comparison = result_of(record)
        guard, data = GuardFacts.of(compared), {part.digest: part for part in record.data}
        for (system, _), evaluation in evaluations_of(compared).items():
            own = data.get(evaluation.judgments_digest, *record.data[:1])
            named = replace(evaluation, name=system)
            yield named.record(role=own.role, data=own), guard, True
    for part in record.parts.values():
        yield from _evaluations(part)


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield each evaluation once, those of comparisons last; each with the first look at it."""
    guards: dict[tuple[str, ...], GuardFacts] = {}
    known: set[tuple[str, ...]] = set()
    for entry in entries:
        guard = entry.guard
        if guard and guard.looks <= guards.get(entry.scores, guard).looks:
            guards[entry.scores] = guard
    for entry in sorted(entries, key=lambda entry: entry.is_compared):
        if not entry.is_compared or entry.scores not in known:
            known.add(entry.scores)
            yield replace(entry, guard=guards.get(entry.scores))
