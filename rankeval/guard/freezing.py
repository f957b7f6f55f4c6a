"""The second step of the protocol: record a plan, with the rankings of its systems.

Everything that can fail at the opening is tried here: names are parsed, systems predict, and a ranking that no system
made is scored by the same measures and rules. No score of a system is computed before the opening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankeval._checks import check_alpha, count, shown
from rankeval.collection.convention import Convention
from rankeval.collection.run import Run
from rankeval.errors import InvalidInput, warn
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.folds import out_of_fold
from rankeval.guard.fresh import fresh_places, note_on_fresh
from rankeval.guard.loaded import LoadedCollection, Ranking, output_digest
from rankeval.guard.plan import Plan
from rankeval.guard.records import Journal, Records
from rankeval.guard.standing.exposure import is_few, keep_places
from rankeval.measures import Measure, measure


@dataclass(frozen=True, eq=False)
class _Asked:
    """A plan about to be frozen: the rankings of all queries, and the fields of the plan."""

    test: RegisteredCollection
    loaded: LoadedCollection
    rankings: Mapping[str, Ranking]
    fields: Mapping[str, Any]
    fresh: bool


def freeze(
    journal: Journal,
    test: RegisteredCollection,
    systems: Mapping[str, Any],
    folds: Any = None,
    *,
    measures: Sequence[str | Measure],
    convention: Convention,
    fresh: bool,
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
    fresh : bool
        Whether to test on those queries alone that nobody looked at.
    **options
        Further fields of the plan.
    """
    if not isinstance(systems, Mapping) or not systems:
        raise InvalidInput("systems must map names to rankings: at least one, for its mean, or two to compare them")
    if not isinstance(test, RegisteredCollection):
        raise InvalidInput(argument="test", found=shown(test), expected="the result of guard.register")
    if not isinstance(fresh, (bool, np.bool_)):
        raise InvalidInput(argument="fresh", found=shown(fresh), expected="True or False")
    primary, *secondary = dict.fromkeys(str(measure(one, convention)) for one in measures)
    fields = options | {"measure": primary, "secondary": tuple(secondary), "convention": convention}
    check_alpha(fields["alpha"])
    from rankeval.significance.declarations import CLAIMS, Settings

    # Refuses settings that the comparison would refuse.
    Settings("two-sided", fields["alpha"], fields["n_resamples"], None, fields["claim"], fields["margin"])
    fields["unseen"] = int(CLAIMS[fields["claim"]].harmless)
    records = journal.read()
    records.in_use(test)
    journal.ledger.check_writable()
    loaded = test.loaded()
    if folds is not None:
        predicted = out_of_fold(loaded, systems, folds)
        systems, fields = predicted.systems, {**fields, "folds": predicted.folds, "n_folds": predicted.n_folds}
    rankings = {str(name): loaded.ranking(str(name), system) for name, system in systems.items()}
    asked = _Asked(test, loaded, rankings, fields, bool(fresh))
    return journal.decide(lambda records: _record(journal, records, asked), records)


def _record(journal: Journal, records: Records, asked: _Asked) -> Plan:
    """Make the plan for the records, and record it unless it is on record."""
    entry, ledger = records.in_use(asked.test), journal.ledger
    loaded, rankings, places = asked.loaded, asked.rankings, None
    if asked.fresh:
        places = fresh_places(records, entry)
        if len(places) == loaded.prints.n_queries:
            places = None
    if places is not None:
        rows = loaded.rows_of(places)
        loaded = loaded.part(rows)
        rankings = {name: one if isinstance(one, Run) else one[rows] for name, one in rankings.items()}
    plan = Plan(
        project=journal.project,
        collection=asked.test.name,
        digest=asked.test.digest,
        systems=tuple((name, output_digest(loaded.outputs(ranking))) for name, ranking in rankings.items()),
        queries=None if places is None else keep_places(ledger, places),
        registration=entry.hash,
        **asked.fields,
    )
    if plan.id in records.standings.frozen:
        return records.plan(plan.id)
    _try_to_score(plan, loaded, rankings)
    _warn_of_few_resamples(plan, loaded.prints.n_queries)
    plan = replace(plan, notes=_notes(records, plan, fresh=asked.fresh))
    stored = {
        f"{place}.{part}": array
        for place, name in enumerate(plan.names)
        for part, array in loaded.stored(rankings[name]).items()
    }
    kept = {"rankings": ledger.keep("rankings", stored), "content": plan.content(), "notes": list(plan.notes)}
    head = journal.append(records, ("freeze", plan.about | kept))
    return replace(plan, ledger=ledger.where, head=head)


def _try_to_score(plan: Plan, loaded: LoadedCollection, rankings: Mapping[str, Ranking]) -> None:
    """Score rankings that no system made, and so find out what would fail at the opening.

    Raises
    ------
    InvalidInput
        If a measure cannot be computed, or there are too few queries.
    """
    measures = [plan.measure, *plan.secondary]
    for name, ranking in rankings.items():
        if isinstance(ranking, Run):  # other runs may lack other queries
            trial: Ranking = Run(ranking.qid, ranking.docid, np.arange(len(ranking.score), dtype=np.float64))
        else:
            trial = np.arange(len(ranking), dtype=np.float64)
        found = loaded.evaluate(name, trial, measures, plan.convention)
        if found.n_queries < 2:
            raise InvalidInput(f"{count(found.n_queries, 'query')} can be scored; a plan needs at least 2")
        if not np.isfinite(found.scores).all():
            broken = found.measure_names[int(np.argmin(np.isfinite(found.scores).all(axis=0)))]
            raise InvalidInput(f"{broken} is no finite number for some queries, so systems cannot be compared by it")
        if not isinstance(ranking, Run):
            return


def _warn_of_few_resamples(plan: Plan, n_queries: int) -> None:
    """Say so before a look is spent if so few resamples are asked for that nothing can be shown."""
    from rankeval.significance.declarations import CORRECTIONS, TESTS, Settings
    from rankeval.significance.running import limited_by_resamples, resolution_notes

    settings = Settings("two-sided", plan.alpha, plan.n_resamples, None, plan.claim, plan.margin)
    test, correction, size = TESTS["randomization"], CORRECTIONS["max_t"], len(plan.systems) - 1
    if size and limited_by_resamples(test, correction, n_queries, settings):
        for note in resolution_notes(test, correction, size, n_queries, settings):
            warn(f"plan of {plan.collection!r}: {note}")


def _notes(records: Records, plan: Plan, *, fresh: bool) -> tuple[str, ...]:
    """Return what a reader should know before the plan is opened."""
    if fresh:
        return (note_on_fresh(records, plan),)
    exposure = records.exposure
    exposed = exposure.exposed(exposure.queries_of(plan.about), exposure.exposing(records.project))
    if is_few(int(exposed.sum()), len(exposed)):
        return ()
    rest = len(exposed) - int(exposed.sum())
    hint = f"; fresh=True tests on the {rest} others" if rest > 1 else ""
    said = (
        f"not confirmatory: {int(exposed.sum())} of {count(len(exposed), 'query')} were exposed before this plan was "
        f"frozen{hint}"
    )
    return (said,)
