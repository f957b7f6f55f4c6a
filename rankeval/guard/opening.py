"""The third step of the protocol: score a plan, record the opening, and compare.

The comparison is made before the opening is recorded, so that no look is spent on one that fails. It is made again if
somebody else appended in between and the standing changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rankeval.errors import LedgerError
from rankeval.guard.batches import Batch
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.loaded import LoadedCollection
from rankeval.guard.notes import facts_of, notes_of, summary_of
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.guard.scored import ScoredPlan
from rankeval.guard.standing.exposure import places_of
from rankeval.guard.standing.history import History
from rankeval.guard.standing.standings import Standing
from rankeval.ledger.ledger import Ledger

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison


def open_plan(journal: Journal, plan_id: str, collections: Iterable[RegisteredCollection]) -> Comparison:
    """Score a plan, record the opening unless it is on record, and compare.

    Parameters
    ----------
    journal : Journal
        The ledger.
    plan_id : str
        Id of the plan.
    collections : iterable of RegisteredCollection
        The collections at hand.

    Returns
    -------
    Comparison
        Its ``opening`` holds the number of looks that were recorded now: none, if another process had opened the plan.
    """
    records = journal.read()
    plan = records.plan(plan_id)
    test = next((one for one in collections if one.digest == plan.digest), None)
    if test is None:
        raise LedgerError(
            f"plan {plan.id} is about {plan.collection!r} (digest {plan.digest[:12]}), which is not at hand: register "
            f"it again, guard.register({plan.collection!r}, ...), then open the plan"
        )
    records.in_use(test)
    if records.standings.opening_of(plan.id) is None:
        journal.check_lasting()
    loaded = _queries_of(plan, test.loaded(), journal.ledger)
    # Scored before the records are decided on: that takes longest, and is the same however often others append.
    scored = _scored(records, plan, loaded)
    # The last comparison, and the standing that it was made for.
    made: list[tuple[Standing, Batch, Comparison]] = []

    def record(records: Records) -> Comparison:
        records.in_use(test)
        body = records.standings.frozen[plan.id][0].body
        history, before = History(records.standings, body), records.standings.opening_of(plan.id)
        standing = records.standings.of(plan.id, lambda: history.new_looks(dict(plan.systems), scored.outputs))
        if not made or made[-1][0] != standing:
            made.append((standing, *_compared(records, scored, standing, history)))
        _, batch, comparison = made[-1]
        head, n_added = records.head, 0
        if before is None:
            head = journal.append(records, ("open", scored.body(standing, journal.ledger)))
            n_added = len(standing.looks)
        else:
            scored.check_against(before.body, journal.ledger)
        facts = facts_of(batch, standing, history, ledger=records.where, head=head)
        return replace(comparison, opening=facts | {"looks_added": n_added}).with_notes(summary_of(facts))

    return journal.decide(record, records)


def _queries_of(plan: Plan, loaded: LoadedCollection, ledger: Ledger) -> LoadedCollection:
    """Return the queries that a plan tests on."""
    return loaded if plan.queries is None else loaded.part(loaded.rows_of(places_of(ledger, plan.queries)))


def _scored(records: Records, plan: Plan, loaded: LoadedCollection) -> ScoredPlan:
    body = records.standings.frozen[plan.id][0].body
    return ScoredPlan.of(plan, loaded, records.ledger.load(body["rankings"]))


def _compared(records: Records, scored: ScoredPlan, standing: Standing, history: History) -> tuple[Batch, Comparison]:
    """Return the comparison within the plan's family, with all notes but the summary."""

    def score(plan: Plan) -> ScoredPlan | None:
        body = records.standings.frozen[plan.id][0].body
        # Rankings are large and may stay in the clone that made them.
        return _scored(records, plan, scored.loaded) if records.ledger.has(body["rankings"]) else None

    others = [records.plan(one) for one in standing.family if one != scored.plan.id]
    batch = Batch.of(scored, others, score)
    comparison = replace(batch.compare(adjusted=standing.is_adjusted), standing=standing.status)
    return batch, comparison.with_notes(*notes_of(batch, standing, history))
