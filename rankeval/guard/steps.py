"""The steps of the protocol, each a decision on the records of a journal: register, freeze, open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval.contamination.matching import match
from rankeval.contamination.register import RegisteredContent, registration
from rankeval.errors import InvalidInput, warn
from rankeval.guard.checks import Registration, run_checks
from rankeval.guard.collection import Content, RegisteredCollection
from rankeval.guard.plan import Plan
from rankeval.guard.rankings import LoadedCollection
from rankeval.guard.records import Journal, Records
from rankeval.guard.scored import ScoredPlan

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison


def register(journal: Journal, name: str, content: Content) -> RegisteredCollection:
    """Record a collection and the findings of the checks, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    name : str
        Name of the collection.
    content : Content
        Its data.
    """
    data = content.fingerprint()
    if not data.n_queries:
        raise InvalidInput("the collection has no rows")
    body = {"name": name, **registration(data, content.X)}

    def record(records: Records) -> RegisteredCollection:
        before, head = records.same(name, data.digest), records.head
        registered = before or RegisteredContent.from_body(body, journal.project)
        others = tuple(match(one, data) for one in records.in_force() if one.digest != data.digest)
        found = run_checks(Registration(data, registered, content.labels, others))
        if before is None:
            findings = [[one.code, one.message] for one in found]
            head = journal.append(records, ("register", body | {"findings": findings}))
            for one in found:
                if one.severity == "warning":
                    warn(f"{one.code} {name!r}: {one.message}")
        return RegisteredCollection(
            name=name,
            project=journal.project,
            digest=data.digest,
            n_queries=data.n_queries,
            n_rows=len(data.codes),
            n_identifiable=registered.n_identifiable,
            findings=found,
            ledger=records.where,
            head=head,
            content=content,
        )

    return journal.decide(record)


def freeze(journal: Journal, test: RegisteredCollection, plan: Plan, stored: Mapping[str, Any]) -> Plan:
    """Record a plan with its rankings, unless it is on record; return it with ledger and head.

    Parameters
    ----------
    journal : Journal
        The ledger.
    test : RegisteredCollection
        The collection of the plan.
    plan : Plan
        The plan.
    stored : mapping of str to mapping
        System -> its ranking, as the ledger stores it.
    """
    about = {"plan": plan.id, "digest": plan.digest, "collection": plan.collection}

    def record(records: Records) -> str:
        records.in_use(test)
        if records.is_frozen(plan):
            return records.head
        # The rankings are an entry of their own, so that reading plans stays cheap.
        notes = ("rankings", about | {"rankings": stored}), ("freeze", about | {"content": plan.content()})
        return journal.append(records, *notes)

    return replace(plan, ledger=journal.ledger.where, head=journal.decide(record))


def open_plan(journal: Journal, records: Records, plan: Plan, test: RegisteredCollection) -> tuple[Comparison, int]:
    """Score a plan, record the opening unless it is on record, and compare.

    Parameters
    ----------
    journal : Journal
        The ledger.
    records : Records
        The records that hold the plan.
    plan : Plan
        The plan.
    test : RegisteredCollection
        Its collection.

    Returns
    -------
    tuple of (Comparison, int)
        The comparison, and the number of looks that were recorded now.
    """
    records.in_use(test)
    loaded = LoadedCollection.of(test)

    def score(plans: Sequence[Plan]) -> list[ScoredPlan]:
        stored = journal.rankings()
        return [ScoredPlan.of(one, loaded, stored[one.id]) for one in plans]

    (scored,) = score([plan])

    def record(records: Records) -> tuple[Comparison, int]:
        records.in_use(test)
        history, head, n_new = records.history(plan.digest), records.head, 0
        status, before = history.status_of(plan), history.opening_of(plan.id)
        if before is None:
            head, n_new = journal.append(records, ("open", scored.body(status))), len(status.looks)
        else:
            scored.check_against(before.body)
        family = [records.plan(one) for one in status.family if one != plan.id]
        where = f"ledger {records.where} at {head[:12]}"
        return scored.result(status, history, family, score, where), n_new

    return journal.decide(record, records)
