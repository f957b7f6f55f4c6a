"""The steps of the protocol, each a decision on the records of a journal: register, freeze, open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rankeval._checks import shown
from rankeval.collection.convention import Convention
from rankeval.contamination.matching import match
from rankeval.contamination.register import content_of, registration
from rankeval.errors import InvalidInput, LedgerError, warn
from rankeval.guard.checks import Registration, run_checks
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.loaded import LoadedCollection, output_digest
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.guard.scored import ScoredPlan
from rankeval.measures import Measure, measure

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison


def register(journal: Journal, name: str, content: LoadedCollection) -> RegisteredCollection:
    """Record a collection and the findings of the checks, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    name : str
        Name of the collection.
    content : LoadedCollection
        Its data.
    """
    data = content.prints
    if not data.n_queries:
        raise InvalidInput("the collection has no rows")
    arrays = registration(data, content.X)
    body = {"name": name, "digest": data.digest, "n_queries": data.n_queries, "n_rows": len(data.codes)}

    def record(records: Records) -> RegisteredCollection:
        before, head = records.same(name, data.digest), records.head
        # The checks run for a collection on record too: its findings are shown again, without a warning.
        registered = before or content_of(
            arrays, project=journal.project, name=name, digest=data.digest, id="", who="", time=""
        )
        others = tuple(match(one, data) for one in records.in_force() if one.digest != data.digest)
        found = run_checks(Registration(data, registered, content.labels, others))
        if before is None:
            findings = [[one.code, one.message] for one in found]
            kept = {"signatures": journal.ledger.keep("signatures", arrays), "findings": findings}
            head = journal.append(records, ("register", body | kept))
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


def freeze(
    journal: Journal,
    test: RegisteredCollection,
    systems: Mapping[str, Any],
    *,
    measures: Sequence[str | Measure],
    convention: Convention,
    **options: Any,
) -> Plan:
    """Record a plan with the rankings of its systems, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    test : RegisteredCollection
        The collection.
    systems : mapping of str to array, fitted model or Run
        The systems.
    measures : sequence of str or Measure
        The primary measure, then the secondary ones.
    convention : Convention
        The rules of scoring.
    **options
        Further fields of the plan.
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InvalidInput("systems must map at least two names to rankings: a look at one system compares nothing")
    if not isinstance(test, RegisteredCollection):
        raise InvalidInput(f"test is {shown(test)}; expected the result of guard.register")
    loaded = test.loaded()
    rankings = {str(name): loaded.ranking(str(name), system) for name, system in systems.items()}
    primary, *secondary = dict.fromkeys(str(measure(one, convention)) for one in measures)
    plan = Plan(
        project=journal.project,
        collection=test.name,
        digest=test.digest,
        systems=tuple((name, output_digest(loaded.outputs(ranking))) for name, ranking in rankings.items()),
        measure=primary,
        secondary=tuple(secondary),
        convention=convention,
        **options,
    )
    stored = {
        f"{place}.{part}": array
        for place, name in enumerate(plan.names)
        for part, array in loaded.stored(rankings[name]).items()
    }

    def record(records: Records) -> str:
        records.in_use(test)
        if plan.id in records.plans:
            return records.head
        kept = {"rankings": journal.ledger.keep("rankings", stored), "content": plan.content()}
        return journal.append(records, ("freeze", plan.about | kept))

    return replace(plan, ledger=journal.ledger.where, head=journal.decide(record))


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

    def score(plans: Sequence[Plan]) -> list[ScoredPlan]:
        files = {one.id: journal.ledger.load(records.plans[one.id]["rankings"]) for one in plans}
        return [ScoredPlan.of(one, loaded, files[one.id]) for one in plans]

    # Scored before the records are decided on: that takes longest, and is the same however often others append.
    (scored,) = score([plan])

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
        return scored.result(status, history, family, score, where), n_new

    return journal.decide(record, records)
