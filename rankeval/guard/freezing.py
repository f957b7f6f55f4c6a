"""The second step of the protocol: record a plan, with the rankings of its systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankeval._checks import shown
from rankeval.collection.convention import Convention
from rankeval.errors import InvalidInput
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.folds import out_of_fold
from rankeval.guard.loaded import output_digest
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.measures import Measure, measure


def freeze(
    journal: Journal,
    test: RegisteredCollection,
    systems: Mapping[str, Any],
    folds: Any = None,
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
    folds : object, optional
        If given, the systems are estimators, and their out-of-fold predictions are frozen.
    measures : sequence of str or Measure
        The primary measure, then the secondary ones.
    convention : Convention
        The rules of scoring.
    **options
        Further fields of the plan.
    """
    if not isinstance(systems, Mapping) or not systems:
        raise InvalidInput("systems must map names to rankings: at least one, for its mean, or two to compare them")
    if not isinstance(test, RegisteredCollection):
        raise InvalidInput(f"test is {shown(test)}; expected the result of guard.register")
    loaded = test.loaded()
    if folds is not None:
        # Fitting takes long: what can fail before it, fails before it.
        journal.ledger.check_writable()
        journal.read().in_use(test)
        predicted = out_of_fold(loaded, systems, folds)
        systems, options = predicted.systems, {**options, "folds": predicted.folds, "n_folds": predicted.n_folds}
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
