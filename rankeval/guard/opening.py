"""The third step of the protocol: score a plan, record the opening, and compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rankeval.errors import LedgerError
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.guard.scored import ScoredPlan

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison


def open_plan(journal: Journal, plan_id: str, collections: Iterable[RegisteredCollection]) -> tuple[Comparison, int]:
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
    tuple of (Comparison, int)
        The comparison, and the number of looks that were recorded now.
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
    loaded = test.loaded()

    def score(plans: Sequence[Plan], records: Records) -> list[ScoredPlan]:
        files = {one.id: journal.ledger.load(records.plans[one.id]["rankings"]) for one in plans}
        return [ScoredPlan.of(one, loaded, files[one.id]) for one in plans]

    # Scored before the records are decided on: that takes longest, and is the same however often others append.
    (scored,) = score([plan], records)

    def record(records: Records) -> tuple[Comparison, int]:
        records.in_use(test)
        history, head, n_new = records.history(plan.digest), records.head, 0
        status, before = history.status_of(plan), history.opening_of(plan.id)
        if before is None:
            head, n_new = journal.append(records, ("open", scored.body(status, journal.ledger))), len(status.looks)
        else:
            scored.check_against(before.body, journal.ledger)
        family = [records.plan(one) for one in status.family if one != plan.id]
        where = f"ledger {records.where} at {head[:12]}"
        # A plan of the family may have been frozen since the ledger was first read.
        return scored.result(status, history, family, lambda plans: score(plans, records), where), n_new

    return journal.decide(record, records)
