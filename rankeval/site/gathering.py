"""Read the records of a project as runs, and the evaluations in them as entries of leaderboards.

::

    StoredRun --read--> Record --> Run     a page of the site
                                    |
                                    +----> Entry, Entry, ...    a row of a leaderboard each

A record may be a stranger's, or damaged. Then it is a `Fault`: a line of the site with its reason.
The evaluations of a comparison are entries too, unless they were saved by themselves: then these
entries take the standing that the guard gave them.

The trap: a record of an evaluation says all that a list needs but its weights, which are a column of
its file. Only comparisons are read whole.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rankeval._checks import said
from rankeval.comparison import Comparison
from rankeval.comparison.record import part_of_row
from rankeval.comparison.shelved import NUMBERS, evaluations_of
from rankeval.errors import RankevalError
from rankeval.evaluation.result import EVALUATION, name_by_digest
from rankeval.evaluation.storage import unpacked_fields
from rankeval.report.summaries import GuardFacts
from rankeval.shelf.kinds import result_of
from rankeval.shelf.record import INTERVAL_ENDS, Record
from rankeval.significance.weighted import effective_number
from rankeval.tracking import StoredRun

_EVALUATION, _COMPARISON = "evaluation", "comparison"
_DECISIONS = ("promotion", "rollback")
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
    convention: dict[str, Any] = {}
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
    copies: set[str] = field(default_factory=set)
    """Places of runs with the same results, and its own."""
    pairs: list[tuple[str, list[Any]]] = field(default_factory=list)
    """The caption of each comparison, and its rows."""
    compared: dict[str, Run] = field(default_factory=dict)
    """The runs that stand for the systems of its comparisons on leaderboards, by their names."""

    @property
    def title(self) -> str:
        """The name of the run for people."""
        return self.record.name.strip() or self.place

    @property
    def sentence(self) -> str:
        """The headline; that of a promotion with its whole reason."""
        facts = self.record.facts if self.is_decision else {}
        if {"decision", "reason"} <= facts.keys():
            return f"{facts['decision']}: {facts['reason']}"
        return self.record.headline

    @property
    def is_decision(self) -> bool:
        """Whether it moved a champion, or refused to."""
        return self.record.kind in _DECISIONS

    @property
    def is_empty(self) -> bool:
        """Whether it has no result: another program logged it, without numbers."""
        record = self.record
        content = record.headline or record.metrics or record.parts or record.files
        return record.kind == "run" and not content and not record.children

    @property
    def page(self) -> str:
        """The path of its page within the site."""
        place = self.place.encode(errors="backslashreplace")
        return f"runs/{hashlib.sha256(place).hexdigest()[:_LETTERS]}.html"


@dataclass(frozen=True)
class Weights:
    """Weights of queries: their SHA-256, and the number of equal ones that tell as much."""

    digest: str
    effective: float


@dataclass(frozen=True, eq=False)
class Entry:
    """An evaluation of a run, with what the guard says of it."""

    run: Run
    record: Record
    facts: _Facts
    weights: Weights | None = None
    guard: GuardFacts | None = None
    is_compared: bool = False  # Part of a comparison: it may stand elsewhere too
    is_baseline: bool = False  # The baseline that the plan of its look froze

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
        """What the guard says of it, for lists; "" without a guard."""
        if self.guard is None:
            return ""
        return f"{self.guard.status}, look {self.guard.looks}"

    @property
    def values(self) -> dict[str, tuple[float, ...]]:
        """The aggregates with the ends of their intervals, by the names of their measures."""
        return {label: self.value(key) for key, label in self.facts.measures.items()}

    @property
    def ground(self) -> tuple[str, ...]:
        """What the scores of comparable evaluations have in common."""
        weights = self.weights.digest if self.weights else ""
        return self.facts.judgments, self.card, weights

    @property
    def scores(self) -> tuple[str, ...]:
        """What determines its scores: the same in a comparison and alone."""
        return *self.ground, self.facts.ranking

    @property
    def seal(self) -> str:
        """The SHA-256 of the file with its scores."""
        return hashlib.sha256(self.record.files[EVALUATION]).hexdigest()

    def lacks(self, key: str) -> bool:
        """Return whether it has no value of a measure."""
        return math.isnan(self.value(key)[0])

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
    n_empty: int = 0  # Runs that have no result
    n_copies: int = 0  # Runs whose results all stand in other runs
    # Name by digest -> the name that a run gives the same data
    names: dict[str, str] = field(default_factory=dict)


def gathered(stored: Iterable[StoredRun]) -> Project:
    """Read all runs of a project."""
    project = Project()
    found: list[tuple[Run, list[Entry]]] = []
    for item in stored:
        try:
            found += _read(Run(item.name, item.read(), item.started, item.views))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = f"facts of an evaluation: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            project.faults.append(Fault(item.name, reason))
        except (RankevalError, OSError, LookupError, TypeError, ValueError) as error:
            project.faults.append(Fault(item.name, said(error)))
    runs = [run for run, _ in found if not run.is_empty]
    copies = _copies([run for run in runs if not run.is_decision])
    project.runs.extend(run for run in runs if run.place not in copies)
    entries = [entry for run, own in found if run.place not in copies for entry in own]
    project.entries.extend(_once(entries))
    for run in project.runs:
        for data in run.record.data:
            name = name_by_digest(data.digest)
            if data.name != name:
                project.names.setdefault(name, data.name)
    return replace(project, n_empty=len(found) - len(runs), n_copies=len(copies))


def _copies(runs: Sequence[Run]) -> set[str]:
    """Return the places of runs whose results all stand in other runs, which get to know them."""
    known: dict[tuple[str, ...], Run] = {}
    copies: set[str] = set()
    seals = {run.place: {*_seals(run.record)} for run in runs}
    for run in sorted(runs, key=lambda run: (-len(seals[run.place]), -len(run.record.children))):
        own = seals[run.place]
        if own and own <= known.keys():
            copies.add(run.place)
        for seal in own:
            known.setdefault(seal, run).copies.add(run.place)
    return copies


def _seals(record: Record) -> Iterator[tuple[str, ...]]:
    """Yield what identifies each evaluation and comparison of a run: a look by its plan."""
    guard = record.facts.get("guard")
    plan = isinstance(guard, Mapping) and str(guard.get("plan") or "")
    for name in {EVALUATION, NUMBERS} & record.files.keys():
        content = plan or hashlib.sha256(record.files[name]).hexdigest()
        yield content, str(record.facts.get("role")), str(record.facts.get("step"))
    for part in record.parts.values():
        yield from _seals(part)


def _read(run: Run) -> Iterator[tuple[Run, list[Entry]]]:
    """Yield a run with its evaluations, and then its children that have evaluations."""
    started = run.record.started
    began = started if started and 0 < started < _LAST_TIME else run.began
    found = [*_evaluations(run.record, run.pairs)]
    guard = next((guard for _, guard, *_ in found if guard), None)
    dated = replace(run, began=began, guard=guard)
    facts = (_Facts.model_validate(record.facts) for record, *_ in found)
    yield (
        dated,
        [
            Entry(dated, record, own, _weights(record), guard, is_compared, is_baseline)
            for (record, guard, is_compared, is_baseline), own in zip(found, facts, strict=True)
        ],
    )
    for name, child in run.record.children.items():
        if child.kind == _EVALUATION or child.parts:
            yield from _read(Run(f"{run.place}/children/{name}", child, began))


def _weights(record: Record) -> Weights | None:
    """Return the weights of an evaluation, of which its record does not say anything."""
    content = record.files[EVALUATION]
    # The footer of the file has the names of its columns as they are, so most need not be unpacked.
    weights = unpacked_fields(content)["weights"] if b"weight" in content else None
    if weights is None:
        return None
    effective = effective_number(weights) if weights.any() else 0.0
    return Weights(hashlib.sha256(weights.tobytes()).hexdigest(), effective)


def _evaluations(
    record: Record, pairs: list[tuple[str, list[Any]]]
) -> Iterator[tuple[Record, GuardFacts | None, bool, bool]]:
    """Yield the evaluations of a record, each with `guard`, `is_compared` and `is_baseline`.

    The rows of its comparisons are added to ``pairs``.
    """
    if record.kind == _EVALUATION:
        yield record, None, False, False
    if record.kind == _COMPARISON:
        compared: Comparison = result_of(record)
        guard, data = GuardFacts.of(compared), {part.digest: part for part in record.data}
        if len(compared.table):
            table = compared.table.assign(part=part_of_row(compared), shown=compared.shown)
            pairs.append((compared.caption, [*table.itertuples(index=False)]))
        for (system, _), evaluation in evaluations_of(compared).items():
            own = data.get(evaluation.judgments_digest, *record.data[:1])
            named = replace(evaluation, name=system)
            is_baseline = guard is not None and system == compared.settings.baseline
            yield named.record(role=own.role, data=own), guard, True, is_baseline
    for part in record.parts.values():
        yield from _evaluations(part, pairs)


def _once(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield each evaluation once, those of comparisons last; each with the first look at it.

    The run of a comparison gets to know which runs have the evaluations that it does not yield.
    """
    looks: dict[tuple[str, ...], Entry] = {}
    known: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        before = looks.get(entry.scores, entry)
        if entry.guard and before.guard and entry.guard.looks <= before.guard.looks:
            looks[entry.scores] = entry
    for entry in sorted(entries, key=lambda entry: entry.is_compared):
        same = known.setdefault(entry.scores, [])
        if entry.is_compared and same:
            namesakes = [other for other in same if other.system == entry.system]
            entry.run.compared[entry.system] = [*namesakes, *same][0].run
        else:
            same.append(entry)
            look = looks.get(entry.scores, entry)
            yield replace(entry, guard=look.guard, is_baseline=look.is_baseline)
