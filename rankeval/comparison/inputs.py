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
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few, plural, refuse
from rankeval._registry import chosen
from rankeval.collection.rows import index_of
from rankeval.comparison.design import COLLECTION, COLUMNS, TOGETHER
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import LEAST_QUERIES, id_index, labels_of, slices_of
from rankeval.evaluation.facts import QUERY_COUNTS
from rankeval.evaluation.lacking import listed, own_notes, undefined_notes
from rankeval.evaluation.merging import differences, rule_differences
from rankeval.evaluation.result import by_name, faults_of, sampled_note, size_of
from rankeval.io.frames import spelled
from rankeval.join.flat import Ints
from rankeval.measures import Measure
from rankeval.significance.columns import OTHER_QUERIES, UNPAIRED, pair_scores, refuse_fold_scores
from rankeval.significance.declarations import Floats, Settings
from rankeval.significance.weighted import MOST_SHARE, NOTED_SHARE, largest_share

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
"""Columns of frames beside the scores, such as those that Spark writes."""

POOLED_FOLDS = (
    "approximate: the {units} of several folds are pooled, each fold ranked by models of its own, whose training parts "
    "overlap; compare two models on one hold-out, algorithms by "
    "cross_validate({{...}}).compare(question='algorithms')"
)
"""Note on a test over such queries; ``units`` is their noun."""


Cells = dict[str, dict[Any, Scores]]
"""System -> part -> scores: by collection, by replicate, or all in the part None."""

_TURN = (
    "the outer keys are systems, {system: {collection: scores}}; turn a mapping x of collections by {system: "
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
    inputs: Systems  # System -> scores, or collection -> scores for each
    # Collection -> the places of its queries, in the order in which the collections were given;
    # empty for plain scores. The order of the scores follows from their content, so that no result
    # depends on the names of collections.
    places: dict[str, Ints]
    weights: Floats | None = None  # (n_queries,): Weights above 0, the same for all systems


def shared_scores(
    systems: Systems,
    measures: Measures | None,
    *,
    unpaired: str,
    baseline: str | None = None,
    fewest: int = 2,
    unit: str = "query",
    weighted: bool = False,
) -> SharedScores:
    """Check the scores of systems, pair them by query id within collections, and stack these.

    A baseline within the values of ``systems`` shows that collections stand outermost. ``unit`` is
    the noun for a row, and a column of this name may hold the ids. Weights of queries are refused
    unless ``weighted``; queries of weight 0 are then left out.
    """
    check_number_of_systems(systems, fewest)
    arranged_cells, notes = _common_parts(by_collection(systems, baseline), unpaired)
    shared = _on_common_queries(arranged_cells) if unpaired == "skip" else arranged_cells
    cells, units = cell_scores(shared, unit=unit, weighted=weighted), plural(unit)
    frames = {
        cell(name, part): per_query_frame(scores, unit)
        for name, parts in arranged_cells.items()
        for part, scores in parts.items()
    }
    labels, left_out = _chosen_measures(cells, frames, measures, unit)
    notes += left_out
    paired = {}
    for part in next(iter(arranged_cells.values())):
        names = [cell(name, part) for name in arranged_cells]
        own = {name: frames[name] for name in names}
        block = paired[part] = pair_scores(own, labels, unpaired=unpaired, unit=unit)
        alone = f"collection {part!r} has 1 {unit}, and a paired test needs 2 or more"
        refuse((part is not None and len(block.queries) < 2, alone, "leave it out"))
        if lacked := ", ".join(f"{name} {n}" for name, n in block.absent.items()):
            notes.append(f"{units} that a system lacked were left out for all systems: {lacked}")

    def content(part: Any) -> tuple[list[str], bytes]:
        return list(map(str, paired[part].queries)), paired[part].scores.tobytes()

    # An order that follows from the content: the same signs are then drawn for a query whatever the
    # names are.
    ordered = sorted(paired, key=content)
    blocks = [paired[part] for part in ordered]
    queries, scores = blocks[0].queries, blocks[0].scores
    if len(blocks) > 1:
        queries = queries.append([block.queries for block in blocks[1:]])
        scores = np.concatenate([block.scores for block in blocks])
    ends = np.cumsum([0, *(len(block.queries) for block in blocks)])
    places = {part: np.arange(*ends[k : k + 2]) for k, part in enumerate(ordered)}
    inputs: Any = arranged_cells
    if None in paired:
        inputs = {name: parts[None] for name, parts in arranged_cells.items()}
    notes += _evaluation_notes(cells, labels, unit)
    weights = _shared_weights(cells, queries, unit)
    if weights is not None and not weights.all():
        is_counted = weights > 0
        notes.append(f"{units} of weight 0, left out: {int((~is_counted).sum())}")
        queries, scores, weights = queries[is_counted], scores[is_counted], weights[is_counted]
    by_part = {part: places[part] for part in paired if part is not None}
    return SharedScores(
        list(arranged_cells), labels, queries, scores, notes, inputs, by_part, weights
    )


def _on_common_queries(arranged_cells: Cells) -> Cells:
    """Return evaluations of the queries that all systems have, whose judgments may be the same."""
    shared: Cells = {name: {} for name in arranged_cells}
    for part in next(iter(arranged_cells.values())):
        own = {name: parts[part] for name, parts in arranged_cells.items()}
        evaluations = [scores for scores in own.values() if isinstance(scores, Evaluation)]
        queries = [id_index(evaluation.queries) for evaluation in evaluations]
        common = reduce(pd.Index.intersection, queries) if queries else pd.Index([])
        for name, scores in own.items():
            shared[name][part] = scores
            if isinstance(scores, Evaluation) and len(common):
                shared[name][part] = scores.subset(common)
    return shared


def _shared_weights(
    cells: Mapping[str, Scores], queries: pd.Index[Any], unit: str
) -> Floats | None:
    """Return the weights of the queries; refuse systems that do not share them."""
    by_system: dict[str, Floats] = {}
    for name, scores in cells.items():
        if isinstance(scores, Evaluation) and scores.weights is not None:
            places = id_index(scores.queries).get_indexer(queries)
            by_system[name] = scores.weights[places]
    if not by_system:
        return None
    first, expected = next(iter(by_system.items()))
    lacking = [name for name in cells if name not in by_system][:1]
    remedy = "evaluate all systems with the same query_weight"
    alone = f"{first!r} has {unit} weights, and {few(lacking)} has none"
    refuse((lacking, alone, remedy), argument="query_weight")
    for name, weights in by_system.items():
        for place in np.flatnonzero(weights != expected)[:1]:
            values = f"{expected[place]:g} in {first!r} and {weights[place]:g} in {name!r}"
            problem = f"{unit} {queries.tolist()[place]!r} weighs {values}"
            raise InvalidInput(problem, argument="query_weight", remedy=remedy)
    return expected


def per_query_frame(scores: Scores, unit: str = "query") -> pd.DataFrame:
    """Return scores as a frame with query ids as index; polars, Arrow and dicts are understood too.

    Ids of another unit may be a column of its name.
    """
    if isinstance(scores, Evaluation):
        return scores.per_query
    if isinstance(scores, Mapping) and all(isinstance(row, Mapping) for row in scores.values()):
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


def cell_scores(
    arranged_cells: Cells, joint: str = " on ", unit: str = "query", *, weighted: bool = False
) -> dict[str, Scores]:
    """Return all scores by the names of their cells, of one convention.

    Query weights are refused unless ``weighted``, and within collections. The judgments of a part
    are one. Those of two collections differ; replicates may share theirs.
    """
    cells: dict[str, Scores] = {}
    by_part: dict[Any, dict[str, Evaluation]] = {}
    for system, parts in arranged_cells.items():
        for part, scores in parts.items():
            name = cell(system, part, joint)
            cells[name] = scores
            if isinstance(scores, Evaluation):
                by_part.setdefault(part, {})[name] = scores
    evaluations: dict[str, Evaluation] = {}
    for own in by_part.values():
        evaluations |= own
    heavy = [name for name, scores in evaluations.items() if scores.weights is not None][:1]
    counts_once = f"{unit} weights, and every {unit} counts once here"
    is_refused = heavy and not (weighted and [*by_part] == [None])
    remedy = "rk.compare takes weights on one collection"
    refuse((is_refused, f"system {few(heavy)} was evaluated with {counts_once}", remedy))
    for own in by_part.values():
        refuse_other_conventions(own, unit)
    # Each part may have judgments of its own.
    refuse_other_conventions(evaluations, unit, judgments=False)
    judged: dict[str, Any] = {}
    for part, own in by_part.items() if joint == " on " else ():
        other = judged.setdefault(next(iter(own.values())).judgments_digest, part)
        same = f"collections {other!r} and {part!r} have the same {plural(unit)} and judgments"
        refuse((other != part, same, "give each collection once"))
    return cells


def refuse_other_conventions(
    evaluations: Mapping[str, Evaluation], unit: str = "query", *, judgments: bool = True
) -> None:
    """Raise `ConventionMismatch` unless all have the conventions and judgments of the first."""
    first, why = next(iter(evaluations), ""), differences if judgments else rule_differences
    for name, evaluation in evaluations.items():
        expected = evaluations[first]
        if reasons := why(expected, evaluation):
            is_other = judgments and evaluation.judgments_digest != expected.judgments_digest
            raise ConventionMismatch(
                f"{first!r} and {name!r} must not be compared: {'; '.join(reasons)}",
                remedy=OTHER_QUERIES.format(unit, plural(unit)) if is_other else None,
            )


def check_number_of_systems(systems: Mapping[str, Any], fewest: int = 2) -> None:
    """Raise `InvalidInput` unless there is a mapping of enough systems, none without a name."""
    is_mapping = isinstance(systems, Mapping)
    names = [*systems] if is_mapping else []
    found = len(systems) if is_mapping else type(systems).__name__
    least = count(fewest, "name")
    too_few = f"systems is a mapping of at least {least} to their scores, found {found}"
    empty = "systems has an empty name; results name the systems, so give each a name"
    refuse((len(names) < fewest, too_few), (not all(str(name).strip() for name in names), empty))


def _evaluation_notes(cells: Mapping[str, Scores], labels: Sequence[str], unit: str) -> list[str]:
    notes: list[str] = []
    undefined: dict[str, list[str]] = {}
    sizes: list[str] = []  # of evaluations of a chosen part of the queries
    evaluations = {name: cell for name, cell in cells.items() if isinstance(cell, Evaluation)}
    for name, evaluation in evaluations.items():
        notes += [f"{name}: {fault}" for fault in faults_of(evaluation, unit)]
        sampled = sampled_note(evaluation)
        own = [*own_notes(evaluation), *undefined_notes(evaluation, labels, unit)]
        for note in filter(None, [*own, sampled]):
            undefined.setdefault(note, []).append(name)
        if evaluation.facts.whole:
            sizes.append(size_of(evaluation, unit))
    for note, names in undefined.items():
        of = "" if len(names) == len(evaluations) else f"{listed(names)}: "
        notes.append(of + note)
    if sizes:
        of = ", ".join(dict.fromkeys(sizes))
        chosen_part = f"compared on a chosen part of the {plural(unit)} ({of})"
        warning = "if it was chosen by results, it shows differences that are not there"
        notes.append(f"{chosen_part}: {warning}")
    return [*notes, *fold_notes(cells, unit)]


def fold_notes(cells: Mapping[str, Scores], unit: str = "query") -> list[str]:
    """Return a note if queries of several folds are pooled: a test takes them for a sample."""
    for scores in cells.values():
        if isinstance(scores, Evaluation) and scores.facts.n_folds > 1:
            return [POOLED_FOLDS.format(units=plural(unit))]
    return []


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
    for scores in reversed([*cells.values()]):
        named = by_name(scores) if isinstance(scores, Evaluation) else {}
        aggregates |= {label: measure.family.aggregate for label, measure in named.items()}
    labels = [label for label in everywhere if aggregates[label] in ("mean", "gmean")]
    owned = "; ".join(f"{name!r} has {', '.join(own)}" for name, own in columns.items())
    none = f"the systems share no measure that is a mean over {plural(unit)}: {owned}"
    refuse((not labels, none))
    beside = [label for label in seen if aggregates[label] == "none"]
    lacked = [label for label in seen if label not in everywhere and label not in beside]
    notes = [f"not compared, since only some systems have it: {label}" for label in lacked]
    notes += [
        f"{label} is compared on its log scale" for label in labels if aggregates[label] == "gmean"
    ]
    if beside:
        why = f"not compared, because these columns are not scores: {', '.join(beside)}"
        notes.append(f"{why}; name them in measures= to compare them")
    if WEIGHT in beside:
        notes.append(f"the tests count every {unit} once, and do not use the column {WEIGHT!r}")
    return labels, notes


def by_collection(systems: Mapping[str, Any], baseline: str | None = None) -> Cells:
    """Return the scores of systems by collection; plain ones have the part None."""
    parted = {str(name): collections_of(scores) for name, scores in systems.items()}
    by_collection = {name: dict(parts) for name, parts in parted.items() if parts is not None}
    if not by_collection:
        return {str(name): {None: scores} for name, scores in systems.items()}
    plain = [name for name in parted if name not in by_collection]
    first, other = next(iter(by_collection)), next(iter(plain), None)
    mixed = f"system {first!r} has scores by collection, and system {other!r} has not"
    is_named = baseline is None or baseline in by_collection
    is_inside = not is_named and all(baseline in parts for parts in by_collection.values())
    names = few(list(by_collection))
    inside = f"the baseline {baseline!r} is inside each of {names}; {_TURN}"
    refuse((plain, mixed, "give all systems by collection"), (is_inside, inside))
    return by_collection


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
        levelled = frame.groupby(level=place, sort=False)
        return _named([(name, part.droplevel(place)) for name, part in levelled])
    if COLLECTION in frame.columns and frame.index.nlevels == 1:
        grouped = frame.groupby(COLLECTION, sort=False)
        return _named([(name, part.drop(columns=COLLECTION)) for name, part in grouped])
    return None


def _is_scores(value: Any) -> bool:
    """Say whether a value of a mapping is the scores of a collection, not those of a query."""
    if isinstance(value, Mapping):
        rows = value.values()
        return bool(value) and all(isinstance(row, Mapping) or _is_scores(row) for row in rows)
    is_frame = hasattr(value, "columns") or callable(getattr(value, "to_pandas", None))
    return is_frame or isinstance(value, Evaluation)


def _named(parts: Sequence[tuple[Any, Scores]]) -> dict[str, Scores]:
    named = {str(name): scores for name, scores in parts}
    names = few([name for name, _ in parts])
    twice = f"two collections have the same name as text: {names}"
    stands_for = "the table's name for all collections together; rename it"
    taken = f"a collection is named {TOGETHER!r}, {stands_for}"
    refuse((len(named) < len(parts), twice), (TOGETHER in named, taken))
    return named


def _common_parts(cells: Cells, unpaired: str) -> tuple[Cells, list[str]]:
    chosen("value of unpaired", unpaired, UNPAIRED)
    union = list(dict.fromkeys(part for parts in cells.values() for part in parts))
    lacked = {name: [part for part in union if part not in cells[name]] for name in cells}
    left_out = {part for parts in lacked.values() for part in parts}
    common = [part for part in union if part not in left_out]
    if left_out and (unpaired == "error" or not common):
        name = next(name for name in cells if lacked[name])
        lacks = f"{len(lacked[name])} of {count(len(union), COLLECTION)}: {few(lacked[name])}"
        remedy = "the systems have no collection in common"
        if common:
            remedy = 'evaluate it there, or pass unpaired="skip" to compare on the collections common to all'
        raise InvalidInput(f"system {name!r} lacks {lacks}", remedy=remedy)
    names = ", ".join(part for part in union if part in left_out)
    note = f"collections that a system lacked were left out for all systems: {names}"
    kept = {name: {part: parts[part] for part in common} for name, parts in cells.items()}
    return kept, [note] if left_out else []


def collection_notes(
    places: Mapping[str, Ints], shares: Floats, weights: str, unit: str = "query"
) -> list[str]:
    """Return notes on what rows over all collections speak of, and on the share of each in them."""
    units = plural(unit)
    if len(places) == 1:
        name = next(iter(places))
        return [
            f"rows over all and rows of {name} are of the same {units}: it is the only collection"
        ]
    over = f"rows over all {len(places)} collections speak of these collections only"
    sample = f"their {units} are a sample, and they themselves are none"
    other = "so another collection may differ by more than the intervals say"
    carried, small = [], []
    remedy = f'; collection_weights="queries" gives each {unit} the same weight'
    for (name, rows), share in zip(places.items(), shares, strict=True):
        queries = count(len(rows), unit)
        carried.append(f"{name} {share:.2f} ({queries})")
        if len(rows) < LEAST_QUERIES:
            carries = f"{name} has only {queries}, and carries {share:.2f} of the rows over all"
            small.append(carries if weights == "queries" else carries + remedy)
    of_each = f"shares of the collections in rows over all: {', '.join(carried)}"
    return [f"{over}: {sample}, {other}", of_each, *small]


def weight_notes(
    weights: Floats, queries: pd.Index[Any], effective: float, settings: Settings
) -> list[str]:
    """Return notes on what weighted units tell; refuse if one carries most of the weight."""
    n, share, units = len(weights), largest_share(weights), settings.units
    name = f"{settings.unit} {queries.tolist()[weights.argmax()]!r}"
    if n < len(queries):
        name = f"one {settings.unit}"
    lone = f"{name} carries {share:.2f} of the weight, so the others hardly influence the mean"
    remedy = "leave it out, with subset, or evaluate without query_weight"
    refuse((share > MOST_SHARE, lone, remedy), argument="query_weight")
    number = f"{n:,} weighted {units} are worth {effective:.0f} equal ones (Kish)"
    notes = [f"{number}; wins, ties and losses count each once"]
    if share > max(NOTED_SHARE, 2 / n):
        notes.append(f"{name} carries {share:.2f} of the weight: p-values and intervals rest on it")
    return notes


def slices_by(
    by: Any, queries: pd.Index[Any], systems: Mapping[str, Scores], unit: str = "query"
) -> tuple[str, dict[str, Ints]]:
    """Return the name of an attribute, and the places of the queries with each of its values.

    Refuses an attribute that does not fit, has no slice that can be tested, or takes a name of the
    table. ``by`` is as in `compare`.
    """
    values, places = values_by(by, queries, systems, unit)
    units = plural(unit)
    name = " x ".join(map(str, values.names))
    texts = [_value_text(value) for value in values]
    slices = f"found {len(places)} slices of {count(len(queries), unit)}"
    small = f"no slice has {LEAST_QUERIES} {units} or more, so none could be tested: {slices}"
    names = few(texts)
    alike = f"slices need different names, and {TOGETHER!r} means all {units}; found {names}"
    taken = f"the table has a column {name!r}"
    ranges = "give an attribute with fewer values, such as ranges of a number (pandas.qcut)"
    refuse(
        (max(map(len, places)) < LEAST_QUERIES, small, ranges),
        (name in COLUMNS, taken, "give the attribute another name"),
        (len(set(texts)) < len(texts) or TOGETHER in texts, alike, "rename them"),
        argument="by",
    )
    return name, dict(zip(texts, places, strict=True))


def values_by(
    by: Any,
    queries: pd.Index[Any],
    systems: Mapping[str, Any],
    unit: str = "query",
    what: str = "by",
) -> tuple[pd.Index[Any], list[Ints]]:
    """Return the values of an attribute, and the places of the queries with each.

    ``what`` is the argument that gives it, for messages.
    """
    evaluations = {name: cell for name, cell in systems.items() if isinstance(cell, Evaluation)}
    ids = np.empty(len(queries), dtype=object)
    ids[:] = queries
    units = plural(unit)
    facts = [evaluation.facts for evaluation in evaluations.values()]
    counts = facts[0].query_counts if facts else {}
    if isinstance(by, str):
        counts = _common_counts(by, evaluations, queries, units)
    elif not isinstance(by, Mapping) and index_of(by) is None:
        # Values without ids can only be in the order of an evaluation.
        order = queries.tolist()
        is_common = any(cell.queries.tolist() == order for cell in evaluations.values())
        problem = f"values without {unit} ids go by position, and these systems have no common order of {units}"
        remedy = f"give a Series or mapping by {unit} id"
        refuse((not is_common, problem, remedy), argument=what)
    rows = next((fact.rows for fact in facts if fact.rows is not None), None)
    return slices_of(by, ids, counts, rows, what)


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _common_counts(
    by: str, evaluations: Mapping[str, Evaluation], queries: pd.Index[Any], units: str
) -> dict[str, Ints]:
    """Return the counts of queries in the first evaluation; refuse if ``by`` differs elsewhere."""
    counts, frames = {}, f"by={by!r} names a count of an evaluation, and the systems are frames"
    refuse((not evaluations, frames, "give a Series by id"))
    for name, evaluation in evaluations.items():
        rows = pd.Index(evaluation.queries, tupleize_cols=False).get_indexer(queries)
        own = evaluation.facts.query_counts
        counts[name] = {key: numbers[rows] for key, numbers in own.items()}
    first = next(iter(counts))
    for name, own in counts.items():
        is_shared = by in counts[first] and by in own
        is_other = is_shared and not np.array_equal(counts[first][by], own[by])
        other = f"by={by!r} differs between {first!r} and {name!r}"
        attribute = f"a slice is an attribute of the {units}, the same for all systems"
        refuse((is_other, f"{other}; {attribute}"))
    return counts[first]
