"""The third step of the protocol: score a plan, record the opening, and compare.

The comparison is made before the opening is recorded, so that no look is spent on one that fails.
It is made again if somebody else appended in between and the standing changed. Its notes tell the
standing in words; the facts behind them go along as ``Comparison.opening``, into JSON, into MLflow,
into a report. So the head of the ledger is found wherever a comparison went, and nobody reads it
from a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._checks import count
from rankeval._visible import LimitNote, LooksNote
from rankeval.errors import LedgerError
from rankeval.guard.batches import Batch, ScoredPlan
from rankeval.guard.collection import LoadedCollection, RegisteredCollection, groups_kept
from rankeval.guard.exposure import is_look, places_of
from rankeval.guard.folds import NOTE
from rankeval.guard.journal import Journal, Records
from rankeval.guard.plan import Plan
from rankeval.guard.standings import (
    CONFIRMATORY,
    EXPLORATORY,
    FIRST,
    History,
    Standing,
    inflation_of,
)
from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import mention

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison


def open_plan(
    journal: Journal, plan_id: str, collections: Iterable[RegisteredCollection]
) -> Comparison:
    """Score a plan, record the opening unless it is on record, and compare.

    Its ``opening`` holds the number of looks recorded now: none, if another process had opened the
    plan.
    """
    from rankeval.comparison.record import with_notes

    records = journal.read()
    plan = records.plan(plan_id)
    collection = next((known for known in collections if known.digest == plan.digest), None)
    if collection is None:
        raise LedgerError(
            f"plan {plan.id} needs the data that {plan.collection!r} had when it was frozen: register it again, "
            f"guard.register({plan.collection!r}, ...), then open the plan"
        )
    records.unretired(collection)
    if records.standings.opening_of(plan.id) is None:
        journal.check_lasting()
    loaded = collection.loaded()
    if plan.queries is not None:
        loaded = loaded.part(loaded.rows_of(places_of(journal.ledger, plan.queries)))
    # Scored before the records are decided on: that takes longest, and is the same however often
    # others append.
    scored = _scored(records, plan, loaded)
    # The last comparison, and the standing that it was made for.
    made: list[tuple[Standing, Batch, Comparison]] = []

    def record(records: Records) -> Comparison:
        records.unretired(collection)
        body = records.standings.body_of(plan.id)
        history = History(records.standings, body)
        opening = records.standings.opening_of(plan.id)
        standing = records.standings.of(
            plan.id, lambda: history.new_looks(dict(plan.systems), scored.outputs)
        )
        if not made or made[-1][0] != standing:
            made.append((standing, *_compared(records, scored, standing, history)))
        _, batch, comparison = made[-1]
        head = records.head
        n_added = 0
        if opening is None:
            head = journal.append(records, ("open", scored.opening_body(standing, journal.ledger)))
            n_added = len(standing.looks)
        else:
            scored.check_against(opening.body, journal.ledger)
        facts = facts_of(batch, standing, history, ledger=records.where, head=head)
        return with_notes(
            replace(comparison, opening=facts | {"looks_added": n_added}),
            LooksNote(summary_of(facts)),
        )

    return journal.transact(record, records)


def _scored(records: Records, plan: Plan, loaded: LoadedCollection) -> ScoredPlan:
    body = records.standings.body_of(plan.id)
    ledger = records.ledger
    scored = ScoredPlan.of(plan, loaded, ledger.load(body["rankings"]))
    return replace(scored, groups=groups_kept(ledger, plan, loaded.ids)) if plan.groups else scored


def _compared(
    records: Records, scored: ScoredPlan, standing: Standing, history: History
) -> tuple[Batch, Comparison]:
    from rankeval.comparison.record import with_notes

    def score(plan: Plan) -> ScoredPlan | None:
        # Rankings are large and may stay in the clone that made them.
        if not records.ledger.has(records.standings.body_of(plan.id)["rankings"]):
            return None
        return _scored(records, plan, scored.loaded)

    others = [records.plan(other) for other in standing.family if other != scored.plan.id]
    batch = Batch.of(scored, others, score)
    comparison = replace(batch.compare(adjusted=standing.is_adjusted), standing=standing.name)
    return batch, with_notes(comparison, *notes_of(batch, standing, history))


_CAUSES = {"decide": "a gate", "exempt": "an exemption", "retire": "a retirement"}
"""What exposes queries without a look, in words."""

LEAST_SHARED = 10
"""Queries from which spread and correlation of the scores can be estimated."""


def notes_of(batch: Batch, standing: Standing, history: History) -> list[str]:
    """Return the sentences that say how far a comparison can be believed."""
    plan = batch.scored.plan
    note = _note_on_standing(batch, standing, history)
    notes = [note if standing.name == CONFIRMATORY else LimitNote(note)]
    if standing.n_released:
        notes.append(
            f"{standing.n_released} of {count(standing.n_queries, 'query')} had been exempted or retired, so systems "
            "may have been fitted on them: they count as looked at"
        )
    if plan.folds:
        notes.append(NOTE.format(folds=plan.folds))
    if plan.secondary:
        notes.append(f"secondary, without adjusted p: {', '.join(plan.secondary)}")
    return [*notes, *plan.notes]


def facts_of(
    batch: Batch, standing: Standing, history: History, *, ledger: str, head: str
) -> dict[str, Any]:
    """Return the facts on an opening: the looks, the names of project, collection and plan, the ledger and its head.

    Looks after the opening of the plan do not bear on its result, and stand apart.
    """
    plan = batch.scored.plan
    return {
        "looks": standing.n_looks,
        # Before its opening a plan knows of all looks, and of its own, which are no part of the
        # history yet.
        "later": max(0, len(history.outputs_looked_at) - standing.n_looks),
        "elsewhere": history.elsewhere,
        "project": plan.project,
        "test": plan.collection,
        "plan": plan.id,
        "ledger": ledger,
        "head": head,
    }


def summary_of(facts: Mapping[str, Any]) -> str:
    """Return the sentence that counts the looks, and names the plan and the ledger, from the result of `facts_of`."""
    more = f" ({facts['elsewhere']} more by other projects)" if facts["elsewhere"] else ""
    later = f" up to this plan, {facts['later']:,} later" if facts["later"] else ""
    return (
        f"{count(facts['looks'], 'look')} of project {facts['project']!r} at {facts['test']!r}{later}{more}; "
        f"plan {facts['plan']}; {mention(facts['ledger'], facts['head'])}"
    )


def _note_on_standing(batch: Batch, standing: Standing, history: History) -> str:
    plan = batch.scored.plan
    if standing.name == CONFIRMATORY:
        return f"confirmatory for {plan.measure}: frozen before the first opening{_correction_words(batch)}"
    if standing.name == FIRST:
        looked = "; ".join(
            f"project {other.project!r} looked at {other.n_queries} of them, {count(other.n_looks, 'look')} by "
            f"{', '.join(other.who)}"
            for other in standing.others
        )
        known = "If results were published, they" if looked else "If a decision was published, it"
        return (
            f"exploratory for {plan.measure}: the first look of this project, but "
            f"{_exposed_words(standing, plan.project)} ({looked or 'by a gate or a retirement of another project'}). "
            f"{known} may have guided the choice of systems. Otherwise p is as for a confirmatory plan"
            f"{_correction_words(batch)}"
        )
    if standing.name == EXPLORATORY:
        return _note_on_exploratory(batch, standing, history)
    return "exploratory: all these rankings were opened before, and this is another view of them"


def _note_on_exploratory(batch: Batch, standing: Standing, history: History) -> str:
    plan = batch.scored.plan
    n_looks = standing.n_looks
    looks = [entry for entry in standing.seen if is_look(entry) and entry.project == plan.project]
    if looks and all(entry in standing.apart for entry in looks):
        reason = (
            f"{_named_openings(looks)} opened on queries of this plan in another clone, before it in the order of the "
            "ledger. Neither side knew of the other, so the choice of systems may rest on the result"
        )
    elif n_looks == len(standing.looks):
        reason = f"{_exposed_words(standing, plan.project)}, by {_causes_words(standing)}"
    else:
        reason = (
            f"this is the result of {n_looks} looks at {plan.collection!r}, the later ones chosen after the first was "
            "seen"
        )
    luck = f". {_inflation_words(batch, history, n_looks)}" if n_looks > len(standing.looks) else ""
    remedy = "No p-value can be adjusted for that: confirm on queries nobody saw (fresh=True)"
    return f"exploratory: {reason}{luck}. {remedy}"


def _inflation_words(batch: Batch, history: History, n_looks: int) -> str:
    """Say how much better the best of all looks appears, on the queries that all were opened on."""
    plan = batch.scored.plan
    evaluations = batch.scored.evaluations
    by_content = batch.scored.loaded.by_content
    own = {output: by_content(evaluations[name])[:, 0] for name, output in plan.systems}
    known = history.scores_of_outputs(plan.measure) | own
    shared = np.asarray(np.isfinite(np.column_stack(list(known.values()))).all(axis=1), dtype=bool)
    if shared.sum() < LEAST_SHARED or history.outputs_looked_at - known.keys():
        return (
            f"The best of {n_looks} equally good systems would look better than it is, by an amount that cannot be "
            f"estimated: too few queries have scores of all of them by {plan.measure}"
        )
    inflation = inflation_of([scores[shared] for scores in known.values()], n_looks)
    where = (
        ""
        if shared.all()
        else f" on the {int(shared.sum())} of {count(len(shared), 'query')} with scores of all"
    )
    return (
        f"The best of {n_looks} equally good systems would look better than it is by about {inflation:.3f} in "
        f"{plan.measure}{where}"
    )


def _correction_words(batch: Batch) -> str:
    # The end of a sentence.
    if len(batch.scored.plan.systems) == 1:
        return "; a mean, and no test"
    words = ", max-T over the batch"
    if batch.n_others:
        words += f" and {count(batch.n_others, 'system')} of other plans frozen by then"
    if batch.n_batches > 1:
        words += f", times {batch.n_batches} for the plans that form batches of their own"
    return words


def _exposed_words(standing: Standing, project: str) -> str:
    # The beginning of a sentence.
    by = "before this plan was frozen"
    if any(not is_look(entry) or entry.project != project for entry in standing.apart):
        by += ", or in another clone while neither side knew of the other"
    return f"{standing.n_exposed} of {count(standing.n_queries, 'query')} were looked at {by}"


def _causes_words(standing: Standing) -> str:
    kinds = {entry.kind for entry in standing.seen}
    return " and ".join(words for kind, words in _CAUSES.items() if kind in kinds) or "others"


_NAMED = 3
"""Openings of another clone that a note names; it counts the rest."""


def _named_openings(openings: Sequence[Entry]) -> str:
    # The beginning of a sentence.
    named = [
        f"plan {entry.body['plan']} of {entry.who} ({count(len(entry.body['looks']), 'look')})"
        for entry in openings[:_NAMED]
    ]
    if len(openings) > _NAMED:
        named.append(f"{len(openings) - _NAMED:,} more")
    return f"{' and '.join(named)} {'was' if len(openings) == 1 else 'were'}"
