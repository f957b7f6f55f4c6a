"""The scores that are compared: as frames, under one convention, on the same queries.

A system's scores come in one of these forms::

    plain                                   by collection
    Evaluation                              {collection: any plain form}
    frame, a row per query                  frame with an index (collection, qid), or a column "collection"
    {qid: {measure: score}}

A mapping is by collection if its values are scores themselves: evaluations, frames or mappings of
mappings. All forms are arranged as ``{system: {part: scores}}``, with the one part None for plain
scores. The scores of a system on a part are a *cell*; cells are paired within each part, and the
parts are stacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few, plural, refuse
from rankeval._registry import chosen
from rankeval.collection.rows import index_of
from rankeval.comparison.design import COLLECTION, COLUMNS, LEAST_QUERIES, TOGETHER
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import labels_of, slices_of
from rankeval.evaluation.facts import QUERY_COUNTS
from rankeval.evaluation.lacking import listed, undefined_notes
from rankeval.evaluation.merging import differences, rule_differences
from rankeval.evaluation.result import by_name, faults_of, size_of
from rankeval.io.frames import spelled
from rankeval.join.flat import Ints
from rankeval.measures import Measure
from rankeval.significance.columns import OTHER_QUERIES, UNPAIRED, pair_scores, refuse_fold_scores
from rankeval.significance.declarations import Floats

Scores = Evaluation | pd.DataFrame | Mapping[Any, Mapping[str, float]]
"""Scores of a system on one collection."""

Systems = Mapping[str, Scores] | Mapping[str, Scores | Mapping[str, Scores]]
"""Name -> scores of each system, on one collection or by collection."""

Measures = str | Measure | Sequence[str | Measure]
"""Measures by name or as objects, one or several."""

LowerIsBetter = str | Sequence[str] | Mapping[str, bool] | None
"""Columns in which less is better; in a mapping, False says that more is better."""

WEIGHT = "weight"
BESIDE = (*QUERY_COUNTS, WEIGHT)
"""Columns of frames that stand beside scores, as in the scores of Spark."""

POOLED_FOLDS = (
    "approximate: the {units} of several folds are pooled, each fold ranked by models of its own, whose training parts "
    "overlap; one hold-out compares two models, cross_validate({{...}}).compare(question='algorithms') the algorithms"
)
"""Note on a test over such queries; ``units`` is their noun."""


Given = dict[str, dict[Any, Scores]]
"""System -> part -> scores: by collection, by replicate, or all in the part None."""

_TURN = (
    "systems stand outermost, {system: {collection: scores}}; turn a mapping x of collections by {system: "
    "{collection: x[collection][system] for collection in x} for system in next(iter(x.values()))}"
)


@dataclass(frozen=True)
class SharedScores:
    """The scores of all systems by the same measures on the same queries."""

    systems: list[str]  # Their names, in the order of the scores
    measures: list[str]
    queries: pd.Index[Any]  # Query ids, ascending within each collection
    scores: Floats  # (n_queries, n_systems, n_measures): Scores
    notes: list[str]  # Sentences on measures and queries that were left out
    given: Systems  # System -> scores, or collection -> scores for each
    # Collection -> the places of its queries, in the order in which the collections were given;
    # empty for plain scores. The order of the scores follows from their content, so that no result
    # depends on the names of collections.
    places: dict[str, Ints]


def shared_scores(
    systems: Systems,
    measures: Measures | None,
    *,
    unpaired: str,
    baseline: str | None = None,
    fewest: int = 2,
    unit: str = "query",
) -> SharedScores:
    """Check the scores of systems, pair them by query id on each collection, and stack the collections."""
    check_number_of_systems(systems, fewest)
    given, notes = _common_parts(by_collection(systems, baseline), unpaired)
    cells, units = cell_scores(given, unit=unit), plural(unit)
    frames = {name: per_query_frame(scores, unit) for name, scores in cells.items()}
    labels, left_out = _chosen_measures(cells, frames, measures, unit)
    paired = {}
    for part in next(iter(given.values())):
        names = [cell(name, part) for name in given]
        paired[part] = pair_scores(
            {name: frames[name] for name in names}, labels, unpaired=unpaired, unit=unit
        )
        alone = f"collection {part!r} has 1 {unit}, and a paired test needs 2 or more"
        refuse((part is not None and len(paired[part].queries) < 2, alone, "leave it out"))
    lacked = [
        f"{units} that a system lacked were left out for all systems: {counts}"
        for each in paired.values()
        if (counts := ", ".join(f"{name} {n}" for name, n in each.absent.items()))
    ]
    # An order that follows from the content: the same signs are then drawn for a query whatever the
    # names are.
    ordered = sorted(
        paired,
        key=lambda part: (list(map(str, paired[part].queries)), paired[part].scores.tobytes()),
    )
    first, *others = (paired[part] for part in ordered)
    ends = np.cumsum([0, *(len(paired[part].queries) for part in ordered)])
    places = {part: np.arange(*ends[k : k + 2]) for k, part in enumerate(ordered)}
    return SharedScores(
        systems=list(given),
        measures=labels,
        queries=first.queries.append([one.queries for one in others]) if others else first.queries,
        scores=np.concatenate([first.scores, *(one.scores for one in others)])
        if others
        else first.scores,
        notes=[*notes, *left_out, *lacked, *_evaluation_notes(cells, labels, unit)],
        given=given if None not in paired else {name: parts[None] for name, parts in given.items()},
        places={part: places[part] for part in paired if part is not None},
    )


def per_query_frame(scores: Scores, unit: str = "query") -> pd.DataFrame:
    """Return scores as a frame with query ids as index; frames of polars and Arrow and dicts are understood too.

    Ids of another unit may be a column of its name.
    """
    if isinstance(scores, Evaluation):
        return scores.per_query
    if isinstance(scores, Mapping) and all(isinstance(one, Mapping) for one in scores.values()):
        scores = pd.DataFrame.from_dict(dict(scores), orient="index")
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    refuse_fold_scores(frame)
    if isinstance(frame, pd.DataFrame):
        # Ids left in a column are no measure, and the row numbers beside them are no ids.
        own = [name for name in (unit, f"{unit}_id") if unit != "query" and name in frame.columns]
        ids = own[:1] or spelled(frame.columns, "qid")
        return frame.set_index(ids[0]) if len(ids) == 1 else frame
    remedy = "take its .per_query" if hasattr(scores, "per_query") else None
    expected = (
        f"systems are evaluations, DataFrames of per-{unit} scores or {{qid: {{measure: score}}}}"
    )
    raise InvalidInput(f"{expected}, found {type(scores).__name__}", remedy=remedy)


def cell(system: str, part: Any, joint: str = " on ") -> str:
    """Return the name of a system's scores on a part."""
    return system if part is None else f"{system}{joint}{part}"


def cell_scores(given: Given, joint: str = " on ", unit: str = "query") -> dict[str, Scores]:
    """Return all scores by the names of their cells."""
    cells: dict[str, Scores] = {}
    within: dict[Any, dict[str, Evaluation]] = {}
    for name, parts in given.items():
        for part, scores in parts.items():
            cells[cell(name, part, joint)] = scores
            if isinstance(scores, Evaluation):
                within.setdefault(part, {})[cell(name, part, joint)] = scores
    evaluations = {name: one for each in within.values() for name, one in each.items()}
    weighted = [name for name, one in evaluations.items() if one.weights is not None][:1]
    refuse(
        (
            weighted,
            f"system {few(weighted)} was evaluated with {unit} weights; the tests count every {unit} once",
        )
    )
    for each in within.values():
        refuse_other_conventions(each, unit)
    refuse_other_conventions(
        evaluations, unit, judgments=False
    )  # each part may have judgments of its own
    judged: dict[str, Any] = {}
    for part, each in within.items() if joint == " on " else ():
        other = judged.setdefault(next(iter(each.values())).judgments_digest, part)
        same = f"collections {other!r} and {part!r} have the same {plural(unit)} and judgments"
        refuse((other != part, same, "give each collection once"))
    return cells


def refuse_other_conventions(
    evaluations: Mapping[str, Evaluation], unit: str = "query", *, judgments: bool = True
) -> None:
    """Raise `ConventionMismatch` unless all evaluations have the conventions, and the judgments, of the first."""
    first, why = next(iter(evaluations), ""), differences if judgments else rule_differences
    for name, one in evaluations.items():
        if reasons := why(evaluations[first], one):
            is_other = judgments and one.judgments_digest != evaluations[first].judgments_digest
            raise ConventionMismatch(
                f"{first!r} and {name!r} must not be compared: {'; '.join(reasons)}",
                remedy=OTHER_QUERIES.format(unit, plural(unit)) if is_other else None,
            )


def check_number_of_systems(systems: Mapping[str, Any], fewest: int = 2) -> None:
    """Raise `InvalidInput` unless there is a mapping of two systems (or one) or more, none without a name."""
    found, names = (
        (len(systems), [*systems]) if isinstance(systems, Mapping) else (type(systems).__name__, [])
    )
    too_few = (
        f"systems is a mapping of at least {count(fewest, 'name')} to their scores, found {found}"
    )
    empty = "systems has an empty name; results name the systems, so give each a name"
    refuse((len(names) < fewest, too_few), (not all(str(name).strip() for name in names), empty))


def _evaluation_notes(cells: Mapping[str, Scores], labels: Sequence[str], unit: str) -> list[str]:
    evaluations = {name: one for name, one in cells.items() if isinstance(one, Evaluation)}
    notes = [
        f"{name}: {fault}" for name, one in evaluations.items() for fault in faults_of(one, unit)
    ]
    undefined: dict[str, list[str]] = {}
    for name, one in evaluations.items():
        for note in undefined_notes(one, labels, unit):
            undefined.setdefault(note, []).append(name)
    notes += [
        note if len(of) == len(evaluations) else f"{listed(of)}: {note}"
        for note, of in undefined.items()
    ]
    if sizes := ", ".join(
        dict.fromkeys(size_of(one, unit) for one in evaluations.values() if one.facts.whole)
    ):
        part = f"compared on a chosen part of the {plural(unit)} ({sizes})"
        notes.append(
            f"{part}: if it was chosen by results, it shows differences that are not there"
        )
    return [*notes, *fold_notes(cells, unit)]


def fold_notes(cells: Mapping[str, Scores], unit: str = "query") -> list[str]:
    """Return a note if queries of several folds are pooled, which a test over queries takes for a sample."""
    pooled = any(isinstance(one, Evaluation) and one.facts.n_folds > 1 for one in cells.values())
    return [POOLED_FOLDS.format(units=plural(unit))] if pooled else []


def _chosen_measures(
    cells: Mapping[str, Scores],
    frames: Mapping[str, pd.DataFrame],
    wanted: Measures | None,
    unit: str,
) -> tuple[list[str], list[str]]:
    columns = {name: [str(label) for label in frame] for name, frame in frames.items()}
    seen = list(dict.fromkeys(label for labels in columns.values() for label in labels))
    everywhere = [label for label in seen if all(label in frame for frame in frames.values())]
    if wanted is not None:
        return labels_of(wanted, everywhere), []
    # As the family says, for the first evaluation that has it; columns of frames are means.
    aggregates = {label: "none" if label in BESIDE else "mean" for label in seen}
    for one in reversed([one for one in cells.values() if isinstance(one, Evaluation)]):
        aggregates |= {label: measure.family.aggregate for label, measure in by_name(one).items()}
    labels = [label for label in everywhere if aggregates[label] in ("mean", "gmean")]
    listed = "; ".join(f"{name!r} has {', '.join(each)}" for name, each in columns.items())
    refuse(
        (not labels, f"the systems share no measure that is a mean over {plural(unit)}: {listed}")
    )
    beside = [label for label in seen if aggregates[label] == "none"]
    lacked = [label for label in seen if label not in everywhere and label not in beside]
    notes = [f"not compared, since only some systems have it: {label}" for label in lacked]
    notes += [
        f"{label} is compared on its log scale" for label in labels if aggregates[label] == "gmean"
    ]
    if beside:
        why = f"not compared, since these columns are no scores: {', '.join(beside)}"
        notes.append(f"{why}; name them in measures= to compare them")
    if WEIGHT in beside:
        notes.append(f"the tests count every {unit} once, and do not use the column {WEIGHT!r}")
    return labels, notes


def by_collection(systems: Mapping[str, Any], baseline: str | None = None) -> Given:
    """Return the scores of systems by collection; plain ones have the part None."""
    parted = {str(name): collections_of(scores) for name, scores in systems.items()}
    found = {name: dict(parts) for name, parts in parted.items() if parts is not None}
    if not found:
        return {str(name): {None: scores} for name, scores in systems.items()}
    plain = [name for name in parted if name not in found]
    mixed = f"system {next(iter(found))!r} has scores by collection, and system {next(iter(plain), None)!r} has not"
    is_inside = (
        baseline is not None
        and baseline not in found
        and all(baseline in parts for parts in found.values())
    )
    inside = f"the baseline {baseline!r} stands within each of {few(list(found))}; {_TURN}"
    refuse((plain, mixed, "give all systems by collection"), (is_inside, inside))
    return found


def collections_of(scores: Any) -> Mapping[str, Scores] | None:
    """Return a system's scores by collection; None if they are not by collection."""
    if isinstance(scores, Mapping):
        kinds = {_is_scores(value) for value in scores.values()}
        both = "a system's scores are {qid: {measure: score}} or {collection: scores}"
        found = f"found both kinds of values in one mapping: {few(list(scores))}"
        refuse((len(kinds) == 2, f"{both}, {found}"))
        return _named(list(scores.items())) if kinds == {True} else None
    if isinstance(scores, Evaluation):
        return None
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    if not isinstance(frame, pd.DataFrame):
        return None
    if frame.index.nlevels == 2:
        levels = list(frame.index.names)
        place = levels.index(COLLECTION) if COLLECTION in levels else 0
        return _named(
            [(name, part.droplevel(place)) for name, part in frame.groupby(level=place, sort=False)]
        )
    if COLLECTION in frame.columns and frame.index.nlevels == 1:
        grouped = frame.groupby(COLLECTION, sort=False)
        return _named([(name, part.drop(columns=COLLECTION)) for name, part in grouped])
    return None


def _is_scores(value: Any) -> bool:
    """Say whether a value of a mapping is the scores of a collection, rather than the scores of a query."""
    if isinstance(value, Mapping):
        return bool(value) and all(
            isinstance(inner, Mapping) or _is_scores(inner) for inner in value.values()
        )
    return (
        isinstance(value, Evaluation)
        or hasattr(value, "columns")
        or callable(getattr(value, "to_pandas", None))
    )


def _named(parts: Sequence[tuple[Any, Scores]]) -> dict[str, Scores]:
    named = {str(name): scores for name, scores in parts}
    taken = f"a collection is named {TOGETHER!r}, which stands for all collections together in the table; rename it"
    refuse(
        (
            len(named) < len(parts),
            f"two collections have the same name as text: {few([name for name, _ in parts])}",
        ),
        (TOGETHER in named, taken),
    )
    return named


def _common_parts(given: Given, unpaired: str) -> tuple[Given, list[str]]:
    chosen("value of unpaired", unpaired, UNPAIRED)
    union = list(dict.fromkeys(part for parts in given.values() for part in parts))
    common = [part for part in union if all(part in parts for parts in given.values())]
    left_out = [part for part in union if part not in common]
    if left_out and (unpaired == "error" or not common):
        name, lacked = next(
            (name, lacked)
            for name, parts in given.items()
            if (lacked := [each for each in union if each not in parts])
        )
        remedy = (
            'evaluate it there, or pass unpaired="skip" to compare on the collections common to all'
        )
        lacks = (
            f"system {name!r} lacks {len(lacked)} of {count(len(union), COLLECTION)}: {few(lacked)}"
        )
        raise InvalidInput(
            lacks, remedy=remedy if common else "the systems have no collection in common"
        )
    note = f"collections that a system lacked were left out for all systems: {', '.join(left_out)}"
    kept = {name: {part: parts[part] for part in common} for name, parts in given.items()}
    return kept, [note] if left_out else []


def collection_notes(
    places: Mapping[str, Ints], shares: Floats, weights: str, unit: str = "query"
) -> list[str]:
    """Return notes on what rows over all collections speak of, and on the share of each in them."""
    if len(places) == 1:
        return [
            f"rows over all and rows of {next(iter(places))} are of the same {plural(unit)}: it is the only collection"
        ]
    said = f"rows over all {len(places)} collections speak of these collections only: their {plural(unit)} are a sample"
    notes = [
        f"{said}, and they themselves are none, so another collection may differ by more than the intervals say"
    ]
    parts = [
        (name, count(len(rows), unit), share)
        for (name, rows), share in zip(places.items(), shares, strict=True)
    ]
    said = ", ".join(f"{name} {share:.2f} ({queries})" for name, queries, share in parts)
    notes.append(f"shares of the collections in rows over all: {said}")
    remedy = (
        ""
        if weights == "queries"
        else f'; collection_weights="queries" gives each {unit} the same weight'
    )
    return notes + [
        f"{name} has only {queries}, and carries {share:.2f} of the rows over all{remedy}"
        for name, queries, share in parts
        if len(places[name]) < LEAST_QUERIES
    ]


def slices_by(
    by: Any, queries: pd.Index[Any], systems: Mapping[str, Scores], unit: str = "query"
) -> tuple[str, dict[str, Ints]]:
    """Return the name of an attribute, and value as text -> the places of its queries; ``by`` is as in `compare`.

    Refuses an attribute that does not fit, has no slice that can be tested, or takes a name of the
    table.
    """
    values, places = values_by(by, queries, systems, unit)
    units = plural(unit)
    name, said = " x ".join(map(str, values.names)), [_said(value) for value in values]
    small = f"no slice has {LEAST_QUERIES} {units} or more, so none could be tested: found {len(places)} slices of "
    small += count(len(queries), unit)
    alike = (
        f"slices need different names, and {TOGETHER!r} stands for all {units}; found {few(said)}"
    )
    ranges = "give an attribute with fewer values, such as ranges of a number (pandas.qcut)"
    refuse(
        (max(map(len, places)) < LEAST_QUERIES, small, ranges),
        (name in COLUMNS, f"the table has a column {name!r}", "give the attribute another name"),
        (len(set(said)) < len(said) or TOGETHER in said, alike, "rename them"),
        argument="by",
    )
    return name, dict(zip(said, places, strict=True))


def values_by(
    by: Any,
    queries: pd.Index[Any],
    systems: Mapping[str, Any],
    unit: str = "query",
    what: str = "by",
) -> tuple[pd.Index[Any], list[Ints]]:
    """Return the values of an attribute, and the places of the queries with each; ``what`` names the argument."""
    evaluations = {name: each for name, each in systems.items() if isinstance(each, Evaluation)}
    ids = np.empty(len(queries), dtype=object)
    ids[:] = queries
    units, counts = (
        plural(unit),
        next((each.facts.query_counts for each in evaluations.values()), {}),
    )
    if isinstance(by, str):
        counts = _common_counts(by, evaluations, queries, units)
    # Values without ids can only be in the order of an evaluation.
    elif not (isinstance(by, Mapping) or index_of(by) is not None) and not any(
        each.queries.tolist() == queries.tolist() for each in evaluations.values()
    ):
        problem = f"values without {unit} ids go by position, and these systems have no common order of {units}"
        raise InvalidInput(problem, argument=what, remedy=f"give a Series or mapping by {unit} id")
    rows = next(
        (each.facts.rows for each in evaluations.values() if each.facts.rows is not None), None
    )
    return slices_of(by, ids, counts, rows, what)


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_said, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _common_counts(
    by: str, evaluations: Mapping[str, Evaluation], queries: pd.Index[Any], units: str
) -> dict[str, Ints]:
    """Return the counts of the queries in the first evaluation, if the one asked for is the same in all."""
    counts, frames = {}, f"by={by!r} names a count of an evaluation, and the systems are frames"
    refuse((not evaluations, frames, "give a Series by id"))
    for name, each in evaluations.items():
        rows = pd.Index(each.queries, tupleize_cols=False).get_indexer(queries)
        counts[name] = {key: numbers[rows] for key, numbers in each.facts.query_counts.items()}
    first = next(iter(counts))
    for name, own in counts.items():
        is_other = (
            by in counts[first] and by in own and not np.array_equal(counts[first][by], own[by])
        )
        other = f"by={by!r} differs between {first!r} and {name!r}; a slice is an attribute of the {units}"
        refuse((is_other, f"{other}, the same for all systems"))
    return counts[first]
