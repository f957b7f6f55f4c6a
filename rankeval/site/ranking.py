"""Rank the evaluations of a project: a leaderboard for each role, data set, convention and weights.

The measure of a board is the one that most of its evaluations have; of several, the one that the
newest run names first. Evaluations without it stand below the ranked rows.

The first `MOST_RANKED` rows and the *reference* of a board are compared, all pairs as one family. The
reference is the champion if a promotion moved one of the rows, else the baseline that a plan of the
guard froze, else the best row::

    verdict, p, interval, ranks, shading       randomization test, max-T over all pairs

The trap: the best of many rows is chosen by the same scores. A family of the pairs with the best row
alone takes it as fixed, and claims too much. All pairs allow for any choice.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
from pydantic import BaseModel, ConfigDict

from rankeval._checks import count
from rankeval._visible import LimitNote
from rankeval.comparison import Comparison, compare
from rankeval.errors import RankevalError
from rankeval.evaluation import Evaluation
from rankeval.measures import direction
from rankeval.shelf.kinds import result_of
from rankeval.site.gathering import Entry, Run
from rankeval.tracking import SOURCES

MOST_RANKED = 50
"""Rows of a board that are compared with each other."""

MOST_QUERIES = 15
"""Lost queries that a page lists."""

_MOVED = ("accepted", "forced", "rolled back", "promoted")
_FORMAT = 3
"""Raise it if `BoardFigures` or its numbers change: earlier figures are then computed again."""


@dataclass(frozen=True, eq=False)
class Promotion:
    """A decision on the champion, as a record of a promotion has it."""

    run: Run

    def setting(self, name: str) -> str:
        """Return a parameter or a fact of the promotion; "" if it has none."""
        record = self.run.record
        return str(record.params.get(name) or record.facts.get(name) or "")

    @property
    def version(self) -> str:
        """The model and the version."""
        return f"{self.setting('model')} {self.setting('version')}".strip()

    @property
    def has_moved(self) -> bool:
        """Whether the version became the champion."""
        return self.setting("decision") in _MOVED

    def is_of(self, entry: Entry) -> bool:
        """Return whether an evaluation is of the version."""
        params = entry.run.record.params
        version = f"{params.get('model', self.setting('model'))} {params.get('version')}".strip()
        compared = [part.params.get("system") for part in self.run.record.parts.values()]
        called = [*map(self.setting, ("candidate_run", "system")), *compared]
        called += self.setting(SOURCES).split()
        names = {
            *entry.run.copies,
            entry.run.place,
            entry.system,
            entry.run.title,
            version.replace("/", " "),
        }
        spelt = self.version.replace(" ", " v", 1)
        return not names.isdisjoint({self.version, spelt, *filter(None, called)} - {""})


def promotions_of(runs: Iterable[Run]) -> list[Promotion]:
    """Return the promotions, the first one first."""
    found = [Promotion(run) for run in runs if run.is_decision]
    return sorted(found, key=lambda promotion: promotion.run.began or 0.0)


def _champion(rows: Mapping[str, Entry], promotions: Sequence[Promotion]) -> str | None:
    """Return the name of the row of the version that was promoted last; None if no row is one."""
    moved = [promotion for promotion in promotions if promotion.has_moved]
    # A rollback names no run: an earlier promotion of the version does.
    same = [earlier for earlier in moved if earlier.version == moved[-1].version]
    found = (name for name in rows for earlier in same if earlier.is_of(rows[name]))
    return next(found, None)


class Against(BaseModel):
    """A row against its baseline: a row of `Comparison.table`, and the queries that it lost."""

    model_config: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="strings")

    system: str
    baseline: str
    difference: float
    ci_low_adjusted: float
    ci_high_adjusted: float
    p_adjusted: float
    wins: int
    ties: int
    losses: int
    shown: bool
    # Query, score of the baseline and score of the row; those that lost most first
    lost: list[tuple[str, float, float]] = []

    def reversed(self) -> Against:
        """Return the comparison as the other side sees it."""
        sides = {"system": self.baseline, "baseline": self.system}
        low, high = -self.ci_high_adjusted, -self.ci_low_adjusted
        ends = {"difference": -self.difference, "ci_low_adjusted": low, "ci_high_adjusted": high}
        counts = {"wins": self.losses, "losses": self.wins}
        return self.model_copy(update={**sides, **ends, **counts})


class BoardFigures(BaseModel):
    """The comparisons of a board, by the names of its rows.

    Each row stands against the reference, and the reference against the best of the others.
    """

    against: dict[str, Against] = {}
    ranks: dict[str, tuple[int, int]] = {}
    # Rows that are not shown to differ from the first
    tied: list[str] = []
    notes: list[str] = []


@dataclass(frozen=True, eq=False)
class Board:
    """A leaderboard: evaluations of one role with the same judgments, convention and weights."""

    measure: str
    key: str
    others: Mapping[str, str]  # Key -> label of the measures that do not decide
    rows: Mapping[str, Entry]  # By unique names, the best first
    unranked: Mapping[str, Entry]  # Those without the measure
    champion: str | None
    frozen: str | None  # The baseline of the plan that all rows are of

    @property
    def entries(self) -> dict[str, Entry]:
        """All rows by their names, those that are not ranked last."""
        return {**self.rows, **self.unranked}

    @property
    def first(self) -> str:
        """The name of the best row."""
        return next(iter(self.rows))

    @property
    def head(self) -> Entry:
        """The best row."""
        return self.rows[self.first]

    @property
    def reference(self) -> str:
        """The row that the others are compared with."""
        if self.champion and self.champion in self.rows:
            return self.champion
        return self.frozen or self.first

    @property
    def values(self) -> list[tuple[float, ...]]:
        """The mean of each row with the ends of its interval."""
        return [entry.value(self.key) for entry in self.rows.values()]

    @property
    def sign(self) -> float:
        """1 if more of the measure is better, -1 if less is, 0 if that is not known."""
        return direction(self.measure).sign

    def identity(self, *, queries: bool) -> str:
        """Return the digest of all that the figures of the board depend on."""
        seals = {name: entry.seal for name, entry in self.rows.items()}
        parts = [_FORMAT, self.key, self.reference, queries, seals]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def boards_of(entries: Iterable[Entry], promotions: Sequence[Promotion]) -> list[Board]:
    """Return the leaderboards: those of test parts first, then those with the most rows."""
    by_content: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        by_content.setdefault((entry.facts.role, *entry.ground), []).append(entry)
    boards = [_board(rows, promotions) for rows in by_content.values()]
    return sorted(boards, key=lambda board: (board.head.facts.role != "test", -len(board.rows)))


def _board(entries: Sequence[Entry], promotions: Sequence[Promotion]) -> Board:
    (key, measure), *others = _measures(entries) or [("", "")]
    sign = direction(measure).sign or 1.0

    def order(entry: Entry) -> tuple[bool, float]:
        return entry.lacks(key), -sign * entry.value(key)[0]

    named = _named(sorted(entries, key=order))
    n_ranked = sum(not entry.lacks(key) for entry in entries) or len(entries)
    items = [*named.items()]
    rows, unranked = dict(items[:n_ranked]), dict(items[n_ranked:])
    frozen = next((name for name, entry in rows.items() if entry.is_baseline), None)
    if len({entry.guard and entry.guard.plan for entry in rows.values()}) > 1:
        frozen = None
    return Board(measure, key, dict(others), rows, unranked, _champion(named, promotions), frozen)


def _measures(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return the measures, those of most evaluations first, equal ones as the newest run has them."""
    oldest_first = sorted(entries, key=lambda entry: (entry.run.began or 0.0, entry.run.place))
    labels = {
        key: label
        for entry in reversed(oldest_first)
        for key, label in entry.facts.measures.items()
    }

    def number(item: tuple[str, str]) -> int:
        return sum(not entry.lacks(item[0]) for entry in entries)

    return sorted(labels.items(), key=number, reverse=True)


def _named(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Return the entries by system; those of the same name by their place too."""
    numbers = Counter(entry.system for entry in entries)
    named: dict[str, Entry] = {}
    for entry in entries:
        name = entry.system
        if numbers[name] > 1:
            name = f"{name} ({entry.run.place})"
        while name in named:
            name = f"{name}, again"
        named[name] = entry
    return named


def figures_of(board: Board, *, queries: bool) -> BoardFigures:
    """Compare the rows of a board; what cannot be compared is a note."""
    if len(board.rows) < 2:
        return BoardFigures()
    if board.sign == 0:
        unknown = f"whether more or less {board.measure} is better is not known"
        return BoardFigures(notes=[f"{unknown}, so no row is compared"])
    systems, notes = _loaded(board)
    try:
        figures = _compared(board, systems, queries=queries)
    except RankevalError as error:
        figures = BoardFigures(notes=[f"the rows are not compared: {error}"])
    return figures.model_copy(update={"notes": [*notes, *figures.notes]})


def _loaded(board: Board) -> tuple[dict[str, Evaluation], list[str]]:
    """Load the evaluations of the first rows and of the reference; say which are left out."""
    names = [*board.rows]
    systems: dict[str, Evaluation] = {}
    notes: list[str] = []
    for name in dict.fromkeys([*names[:MOST_RANKED], board.reference]):
        try:
            found: Evaluation = result_of(board.rows[name].record)
            labels = tuple(map(str, found.measures))  # The names asked for may be spelt otherwise
            systems[name] = replace(found, measure_names=labels)
        except RankevalError as error:
            notes.append(f"{name} is not compared: {error}")
    n_others = len(names) - len(systems) - len(notes)
    if n_others:
        notes.append(f"{count(n_others, 'row')} below the first {MOST_RANKED} are not compared")
    return systems, notes


def _compared(board: Board, systems: Mapping[str, Evaluation], *, queries: bool) -> BoardFigures:
    measure, reference = board.measure, board.reference
    pairs = compare(systems, measures=measure, test="randomization", correction="max_t")
    against = _against(pairs, reference)
    rival = next(name for name in systems if name != reference)
    if rival in against:  # and the reference could be loaded
        against[reference] = against[rival].reversed()
    if queries:
        scores = {name: evaluation.per_query[measure] for name, evaluation in systems.items()}
        for name, row in against.items():
            row.lost = _lost(scores[row.baseline], scores[name], board.sign)
    ranks = pairs.ranks.set_index("system")[["rank_low", "rank_high"]]
    first = [name for name in [*board.rows][:MOST_RANKED] if name in systems]
    return BoardFigures(
        against=against,
        ranks={name: tuple(ranks.loc[name]) for name in first},
        tied=[name for name, row in _against(pairs, board.first).items() if not row.shown],
        notes=[str(note) for note in pairs.notes if isinstance(note, LimitNote)],
    )


def _against(pairs: Comparison, reference: str) -> dict[str, Against]:
    """Return each other system of a comparison of all pairs against one of them."""
    rows = pairs.table.assign(shown=pairs.shown).to_dict("records")
    found = [Against.model_validate(row) for row in rows]
    found += [pair.reversed() for pair in found]
    return {pair.system: pair for pair in found if pair.baseline == reference}


def _lost(
    before: pd.Series[float], own: pd.Series[float], sign: float
) -> list[tuple[str, float, float]]:
    """Return the queries that a system lost, the greatest losses first, with both scores."""
    gains = sign * (own - before)
    worst = gains[gains < 0].nsmallest(MOST_QUERIES).index
    return [(str(query), float(before[query]), float(own[query])) for query in worst]
