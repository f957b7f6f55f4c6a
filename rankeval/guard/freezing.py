"""The second step of the protocol: record a plan, with the rankings of its systems.

Everything that can fail at the opening is tried here: names are parsed, systems predict, and a
ranking that no system made is scored by the same measures and rules. No score of a system is
computed before the opening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, require
from rankeval.collection.convention import Convention
from rankeval.collection.run import Run
from rankeval.contamination.query_values import QueryValues, packed
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput, warn
from rankeval.guard.collection import (
    LoadedCollection,
    Ranking,
    RegisteredCollection,
    check_registered,
    keep_groups,
    output_digest,
)
from rankeval.guard.exposure import SHARE, is_few, keep_places
from rankeval.guard.folds import out_of_fold
from rankeval.guard.journal import Journal, Records
from rankeval.guard.plan import Plan
from rankeval.guard.standings import History
from rankeval.ledger.entry import Entry
from rankeval.measures import Measure, measure


@dataclass(frozen=True, eq=False)
class _Draft:
    """A plan about to be frozen: the rankings of all queries, and the fields of the plan."""

    collection: RegisteredCollection
    loaded: LoadedCollection
    rankings: Mapping[str, Ranking]
    fields: Mapping[str, Any]
    fresh: bool
    groups: Any


def freeze(
    journal: Journal,
    collection: RegisteredCollection,
    systems: Mapping[str, Any],
    folds: Any = None,
    *,
    measures: Sequence[str | Measure],
    convention: Convention,
    fresh: bool,
    groups: Any = None,
    **options: Any,
) -> Plan:
    """Record a plan with the rankings of its systems, unless it is on record."""
    if not isinstance(systems, Mapping) or not systems:
        raise InvalidInput(
            "systems must map names to rankings: at least one, for its mean, or two to compare them"
        )
    check_registered(collection)
    require(isinstance(fresh, (bool, np.bool_)), "fresh", fresh, "True or False")
    primary, *secondary = dict.fromkeys(str(measure(spec, convention)) for spec in measures)
    fields = options | {"measure": primary, "secondary": tuple(secondary), "convention": convention}
    from rankeval.significance.declarations import CLAIMS, Settings

    # Refuses the level, resamples, claim and margin that the comparison would refuse.
    Settings(
        "two-sided", fields["alpha"], fields["n_resamples"], None, fields["claim"], fields["margin"]
    )
    fields["unseen"] = int(CLAIMS[fields["claim"]].harmless)
    records = journal.read()
    records.unretired(collection)
    journal.ledger.check_writable()
    loaded = collection.loaded()
    if folds is not None:
        predicted = out_of_fold(loaded, systems, folds)
        systems = predicted.systems
        fields |= {"folds": predicted.folds, "n_folds": predicted.n_folds}
    rankings = {str(name): loaded.ranking(str(name), system) for name, system in systems.items()}
    draft = _Draft(collection, loaded, rankings, fields, bool(fresh), groups)
    return journal.transact(lambda records: _freeze_on(journal, records, draft), records)


def _freeze_on(journal: Journal, records: Records, draft: _Draft) -> Plan:
    entry = records.unretired(draft.collection)
    ledger = journal.ledger
    loaded = draft.loaded
    rankings = draft.rankings
    places = None
    if draft.fresh:
        places = fresh_places(records, entry)
        if len(places) == loaded.prints.n_queries:
            places = None
    if places is not None:
        rows = loaded.rows_of(places)
        loaded = loaded.part(rows)
        rankings = {
            name: ranking if isinstance(ranking, Run) else ranking[rows]
            for name, ranking in rankings.items()
        }
    grouped = loaded.grouped(draft.groups)
    fields = dict(draft.fields)
    if draft.groups is not None:
        fields |= keep_groups(ledger, grouped)
    outputs = {name: output_digest(loaded.outputs(ranking)) for name, ranking in rankings.items()}
    plan = Plan(
        project=journal.project,
        collection=draft.collection.name,
        digest=draft.collection.digest,
        systems=tuple(outputs.items()),
        queries=None if places is None else keep_places(ledger, places),
        registration=entry.hash,
        **fields,
    )
    # Frozen by another process meanwhile, or before: the same plan is no second one.
    if plan.id in records.standings.frozen:
        return records.plan(plan.id)
    _try_to_score(plan, loaded, rankings)
    _warn_of_few_resamples(plan, len(grouped.sizes))
    plan = replace(plan, notes=_notes(records, plan, fresh=draft.fresh))
    stored = {
        f"{place}.{part}": array
        for place, name in enumerate(plan.names)
        for part, array in loaded.stored(rankings[name]).items()
    }
    body = plan.about | {
        "rankings": ledger.keep("rankings", stored),
        "content": plan.content(),
        "notes": list(plan.notes),
    }
    head = journal.append(records, ("freeze", body))
    return replace(plan, ledger=ledger.where, head=head)


def _try_to_score(plan: Plan, loaded: LoadedCollection, rankings: Mapping[str, Ranking]) -> None:
    """Score rankings that no system made, and so find out what would fail at the opening."""
    measures = [plan.measure, *plan.secondary]
    for name, ranking in rankings.items():
        if isinstance(ranking, Run):  # other runs may lack other queries
            trial: Ranking = Run(
                ranking.qid, ranking.docid, np.arange(len(ranking.score), dtype=np.float64)
            )
        else:
            trial = np.arange(len(ranking), dtype=np.float64)
        evaluation = loaded.evaluate(name, trial, measures, plan.convention)
        if evaluation.n_queries < 2:
            raise InvalidInput(
                f"{count(evaluation.n_queries, 'query')} can be scored; a plan needs at least 2"
            )
        is_finite = np.isfinite(evaluation.scores).all(axis=0)
        if not is_finite.all():
            broken = evaluation.measure_names[int(np.argmin(is_finite))]
            raise InvalidInput(
                f"{broken} is not a finite number for some queries, so systems cannot be compared by it"
            )
        if not isinstance(ranking, Run):
            return


def _warn_of_few_resamples(plan: Plan, n_queries: int) -> None:
    # Before a look is spent on a plan that can show nothing.
    from rankeval.significance.declarations import CORRECTIONS, TESTS, Settings
    from rankeval.significance.running import limited_by_resamples, resolution_notes

    settings = Settings("two-sided", plan.alpha, plan.n_resamples, None, plan.claim, plan.margin)
    test = TESTS["randomization"]
    correction = CORRECTIONS["max_t"]
    size = len(plan.systems) - 1
    if size and limited_by_resamples(test, correction, n_queries, settings):
        for note in resolution_notes(test, correction, size, n_queries, settings):
            warn(f"plan of {plan.collection!r}: {note}")


def _notes(records: Records, plan: Plan, *, fresh: bool) -> tuple[str, ...]:
    if fresh:
        return (note_on_fresh(records, plan),)
    exposure = records.exposure
    exposed = exposure.exposed(exposure.queries_of(plan.about), exposure.exposing(records.project))
    if is_few(int(exposed.sum()), len(exposed)):
        return ()
    rest = len(exposed) - int(exposed.sum())
    hint = f"; fresh=True tests on the {rest} others" if rest > 1 else ""
    note = (
        f"not confirmatory: {int(exposed.sum())} of {count(len(exposed), 'query')} were looked at before this plan "
        f"was frozen{hint}"
    )
    return (note,)


_MOST = 0.5
"""If this share of the recognised queries kept their ids, or rows, the rest would have kept them too."""


def maybe_looked_at(records: Records, registration: str) -> NDArray[np.bool_]:
    """Return which queries of a collection may be ones that were looked at, although they are not recognised."""
    signatures = {content.id: content.signature for content in records.contents}
    classes = records.exposure.classes
    maybe = np.zeros(len(classes[registration]), dtype=bool)
    for other in classes:
        if other != registration:
            maybe |= _maybe_looked_at_in(records, (registration, other), signatures)
    return maybe


def _maybe_looked_at_in(
    records: Records, pair: tuple[str, str], signatures: dict[str, Signature]
) -> NDArray[np.bool_]:
    exposure = records.exposure
    ours, theirs = (exposure.classes[registration] for registration in pair)
    _, own, other = np.intersect1d(ours, theirs, return_indices=True)
    looked_at = exposure.exposed(theirs, exposure.exposing(records.project)) & ~np.isin(
        theirs, ours
    )
    missing = ~np.isin(ours, theirs)
    if not looked_at.any() or len(own) < SHARE * min(len(ours), len(theirs)):
        return np.zeros(len(ours), dtype=bool)
    here, there = (signatures[registration] for registration in pair)
    if (here.ids[own] == there.ids[other]).mean() >= _MOST:
        return missing & np.isin(here.ids, there.ids[looked_at])
    is_kept = bool(_same_content(here, there, own, other).mean() >= _MOST)
    return np.zeros(len(ours), dtype=bool) if is_kept else missing


def _same_content(
    here: Signature, there: Signature, own: NDArray[np.intp], other: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return which pairs of queries have rows or their text in common."""
    same = np.zeros(len(own), dtype=bool)
    rows = here.row_entries, there.rows_told(by_signs=here.by_signs)
    if rows[0] is not None and rows[1] is not None:
        sides = _keys(rows[0], own, here.n_queries), _keys(rows[1], other, there.n_queries)
        same[(np.intersect1d(*sides) >> np.uint64(32)).astype(np.int64)] = True
    if here.texts is not None and there.texts is not None:
        same |= (here.texts[own] == there.texts[other]) & (here.texts[own] != 0)
    return same


def _keys(rows: QueryValues, queries: NDArray[np.intp], n_queries: int) -> NDArray[np.uint64]:
    """Return the rows of some queries, each as one number with the place of its query among them."""
    place = np.full(n_queries, -1, dtype=np.int64)
    place[queries] = np.arange(len(queries))
    part = rows.take(place[rows.query] >= 0)
    return packed(place[part.query], part.value)


TYPICAL_SD = 0.2
"""Standard deviation of differences per query that is assumed before any were seen; .15 to .20 for TREC runs."""


def fresh_places(records: Records, registration: Entry) -> NDArray[np.intp]:
    """Return the places, in the order of the content, of the queries that no entry exposes, as far as can be told."""
    exposure = records.exposure
    body = registration.body
    whole = {"registration": registration.hash, "queries": None}
    exposed = exposure.exposed(exposure.queries_of(whole), exposure.exposing(records.project))
    unknown = ~exposed & maybe_looked_at(records, registration.hash)
    places = np.flatnonzero(~exposed & ~unknown)
    if len(places) < 2:
        reason = (
            "were never looked at. Add new queries and register them: "
            f"guard.register(..., supersedes={body['name']!r})"
        )
        if unknown.any():
            reason = (
                f"are known to be new. {int(exposed.sum())} were looked at in some collection, and "
                f"{int(unknown.sum())} may be among them unrecognised, because ids and features changed. Register the "
                "queries under the ids that they had, and take new ones"
            )
        n_fresh = f"{len(places)} of {count(len(exposed), 'query')} of {body['name']!r}"
        raise InvalidInput(f"{n_fresh} {reason}", argument="fresh")
    return places


def note_on_fresh(records: Records, plan: Plan) -> str:
    """Return how many queries a plan tests on, and the difference that they can show."""
    exposure = records.exposure
    n = len(exposure.queries_of(plan.about))
    total = len(exposure.queries_of(plan.about | {"queries": None}))
    note = f"tests on {n} of {count(total, 'query')}, those not recognised as looked at"
    n_pairs = len(plan.systems) - 1
    if plan.baseline is None:
        n_pairs = n_pairs * len(plan.systems) // 2
    if not n_pairs or plan.groups:  # of groups the standard deviation is not known
        return note
    whole = History(records.standings, plan.about | {"queries": None})
    sd = whole.sd_of_differences(plan.measure)
    source = "as between the systems opened before"
    if sd is None:
        sd = TYPICAL_SD
        source = "assumed, since no scores were opened"
    from rankeval.significance.power import detectable_difference

    difference = detectable_difference(
        n, sd, plan.alpha / n_pairs, claim=plan.claim, margin=plan.margin, unseen=plan.unseen
    )
    return (
        f"{note}; a difference of about {float(difference):.3f} in {plan.measure} is found with a power of 80 % if "
        f"differences have a standard deviation of {sd:.2f} ({source})"
    )
