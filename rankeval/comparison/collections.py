"""Systems on several collections: told apart from plain scores, arranged by collection, paired, stacked.

A system's scores come in one of these forms::

    plain                                   by collection
    Evaluation                              {collection: any plain form}
    frame, a row per query                  frame with an index (collection, qid), or a column "collection"
    {qid: {measure: score}}

A mapping is by collection if its values are scores themselves: evaluations, frames or mappings of mappings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count, few
from rankeval._registry import chosen
from rankeval.comparison.design import COLLECTION, LEAST_QUERIES, TOGETHER
from rankeval.comparison.scores import (
    Scores,
    SharedScores,
    check_number_of_systems,
    chosen_measures,
    constant_notes,
    fold_notes,
    pairing_notes,
    part_notes,
    per_query_frame,
    refuse_other_conventions,
    refuse_weighted,
)
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.join.flat import Ints
from rankeval.measures import Measure
from rankeval.significance.columns import UNPAIRED, pair_scores
from rankeval.significance.declarations import Floats

ByCollection = Mapping[str, Mapping[str, Scores]]
"""System -> collection -> scores."""


@dataclass(frozen=True)
class PooledScores(SharedScores):
    """The scores of all systems on the queries of several collections.

    Attributes
    ----------
    places : mapping of str to ndarray of int
        Collection -> the places of its queries, in the order in which the collections were given. The order of the
        scores follows from their content, so that no result depends on the names of collections.
    given : mapping of str to mapping of str to scores
        System -> collection -> scores.
    """

    places: dict[str, Ints]
    given: ByCollection


def pooled_scores(
    systems: Mapping[str, Any],
    measures: str | Measure | Sequence[str | Measure] | None,
    *,
    baseline: str | None,
    unpaired: str,
) -> PooledScores | None:
    """Check scores by collection, pair them on each, and stack the collections; None for systems with plain scores.

    Parameters
    ----------
    systems : mapping of str to scores
        As in `rankeval.compare`.
    measures : str, Measure or sequence of them, or None
        None: all means and geometric means that the systems share on all collections.
    baseline : str or None
        The baseline asked for; a mapping that has it within its values is the wrong way round.
    unpaired : {"error", "skip"}
        For collections and queries that some systems lack.

    Raises
    ------
    ConventionMismatch
        Conventions differ, or judgments within a collection.
    QueryIdError
        Query ids are repeated, missing, or not the same in all systems.
    InvalidInput
        Only some systems are by collection, one lacks a collection, or systems stand within collections.
    """
    check_number_of_systems(systems)
    given, notes = by_collection(systems, baseline, unpaired)
    if not given:
        return None
    flat = {f"{name} on {collection}": each for name, parts in given.items() for collection, each in parts.items()}
    refuse_weighted(flat)
    refuse_unlike_collections(given)
    frames = {name: per_query_frame(scores) for name, scores in flat.items()}
    labels, left_out = chosen_measures(flat, frames, measures)
    paired = {}
    for collection in next(iter(given.values())):
        names = [f"{name} on {collection}" for name in given]
        paired[collection] = pair_scores({name: frames[name] for name in names}, labels, unpaired=unpaired)
        if len(paired[collection].queries) < 2:
            raise InvalidInput(
                f"collection {collection!r} has 1 query; a paired test needs at least 2, so leave it out"
            )
    lacked = [note for found in paired.values() for note in pairing_notes(found)]
    # An order that follows from the content: the same signs are then drawn for a query whatever the names are.
    ordered = sorted(paired, key=lambda name: (list(map(str, paired[name].queries)), paired[name].scores.tobytes()))
    ends = np.cumsum([0, *(len(paired[name].queries) for name in ordered)])
    places = {name: np.arange(*ends[k : k + 2]) for k, name in enumerate(ordered)}
    return PooledScores(
        systems=list(given),
        measures=labels,
        queries=pd.MultiIndex.from_tuples([(name, query) for name in ordered for query in paired[name].queries]),
        scores=np.concatenate([paired[name].scores for name in ordered]),
        notes=[*notes, *left_out, *lacked, *constant_notes(flat), *part_notes(flat), *fold_notes(flat)],
        places={name: places[name] for name in paired},
        given=given,
    )


def by_collection(systems: Mapping[str, Any], baseline: str | None, unpaired: str) -> tuple[ByCollection, list[str]]:
    """Return the systems arranged by collection, and notes; nothing if they are not by collection.

    Parameters
    ----------
    systems : mapping
        As `rankeval.compare` takes them.
    baseline : str or None
        The baseline asked for; a mapping that has it within its values is the wrong way round.
    unpaired : {"error", "skip"}
        What to do if a system lacks a collection.

    Raises
    ------
    InvalidInput
        If only some systems are by collection, one lacks a collection, a name is taken, or systems stand within
        collections.
    """
    parted = {str(name): parts_of(scores) for name, scores in systems.items()}
    found = {name: dict(parts) for name, parts in parted.items() if parts is not None}
    if not found:
        return {}, []
    if len(found) < len(parted):
        plain = next(name for name in parted if name not in found)
        raise InvalidInput(
            f"system {next(iter(found))!r} has scores by collection, and system {plain!r} has not",
            remedy="give all systems by collection",
        )
    _refuse_turned(found, baseline)
    return _common_collections(found, unpaired)


def parts_of(scores: Any) -> Mapping[str, Scores] | None:
    """Return a system's scores by collection; None if they are not by collection.

    Raises
    ------
    InvalidInput
        If the values of a mapping are of several kinds, or two collections have the same name.
    """
    if isinstance(scores, Mapping):
        kinds = {_is_scores(value) for value in scores.values()}
        if len(kinds) == 2:
            raise InvalidInput(
                "a system's scores are {qid: {measure: score}} or {collection: scores}, found both kinds of values in "
                f"one mapping: {few(list(scores))}"
            )
        return _named(list(scores.items())) if kinds == {True} else None
    if isinstance(scores, Evaluation):
        return None
    to_pandas = getattr(scores, "to_pandas", None)  # polars, Arrow
    frame = to_pandas() if callable(to_pandas) else scores
    return _parts_of_frame(frame) if isinstance(frame, pd.DataFrame) else None


def collection_notes(places: Mapping[str, Ints], shares: Floats, weights: str) -> list[str]:
    """Return notes on what rows over all collections speak of, and on the share of each in them.

    Parameters
    ----------
    places : mapping of str to ndarray of int
        Collection -> the places of its queries.
    shares : ndarray of shape (n_collections,)
        Their shares in the mean.
    weights : str
        How the shares were chosen.
    """
    if len(places) == 1:
        return [f"rows over all and rows of {next(iter(places))} are of the same queries: it is the only collection"]
    said = f"rows over all {len(places)} collections speak of these collections only: their queries are a sample"
    notes = [f"{said}, and they themselves are none, so another collection may differ by more than the intervals say"]
    parts = [
        (name, count(len(rows), "query"), share) for (name, rows), share in zip(places.items(), shares, strict=True)
    ]
    said = ", ".join(f"{name} {share:.2f} ({queries})" for name, queries, share in parts)
    notes.append(f"shares of the collections in rows over all: {said}")
    remedy = "" if weights == "queries" else '; collection_weights="queries" gives each query the same weight'
    return notes + [
        f"{name} has only {queries}, and carries {share:.2f} of the rows over all{remedy}"
        for name, queries, share in parts
        if len(places[name]) < LEAST_QUERIES
    ]


def refuse_unlike_collections(given: ByCollection) -> None:
    """Raise unless conventions and judgments are alike within each collection, and conventions across collections.

    Raises
    ------
    ConventionMismatch
        If they are not.
    InvalidInput
        If two collections are the same one.
    """
    within: dict[str, dict[str, Evaluation]] = {}
    for name, parts in given.items():
        for collection, scores in parts.items():
            if isinstance(scores, Evaluation):
                within.setdefault(collection, {})[f"{name} on {collection}"] = scores
    for evaluations in within.values():
        try:
            refuse_other_conventions(evaluations)
        except ConventionMismatch as error:
            hint = f"; {_TURN}" if _alike_across(given) else ""
            raise ConventionMismatch(f"{error}{hint}") from None
    refuse_other_conventions({name: each for part in within.values() for name, each in part.items()}, judgments=False)
    judged: dict[str, str] = {}
    for collection, evaluations in within.items():
        digest = next(iter(evaluations.values())).judgments_digest
        if (other := judged.setdefault(digest, collection)) != collection:
            raise InvalidInput(
                f"collections {other!r} and {collection!r} have the same queries and judgments",
                remedy="give each collection once",
            )


_TURN = (
    "systems stand outermost, {system: {collection: scores}}; turn a mapping x of collections by {system: "
    "{collection: x[collection][system] for collection in x} for system in next(iter(x.values()))}"
)


def _is_scores(value: Any) -> bool:
    """Say whether a value of a mapping is the scores of a collection, rather than the scores of a query."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(inner, Mapping) or _is_scores(inner) for inner in value.values())
    return isinstance(value, Evaluation) or hasattr(value, "columns") or callable(getattr(value, "to_pandas", None))


def _parts_of_frame(frame: pd.DataFrame) -> Mapping[str, Scores] | None:
    levels = list(frame.index.names)
    if frame.index.nlevels == 2:
        place = levels.index(COLLECTION) if COLLECTION in levels else 0
        return _named([(name, part.droplevel(place)) for name, part in frame.groupby(level=place, sort=False)])
    if COLLECTION in frame.columns and frame.index.nlevels == 1:
        grouped = frame.groupby(COLLECTION, sort=False)
        return _named([(name, part.drop(columns=COLLECTION)) for name, part in grouped])
    return None


def _named(parts: Sequence[tuple[Any, Scores]]) -> dict[str, Scores]:
    """Return scores by the collection's name as text."""
    named = {str(name): scores for name, scores in parts}
    if len(named) < len(parts):
        raise InvalidInput(f"two collections have the same name as text: {few([name for name, _ in parts])}")
    if TOGETHER in named:
        raise InvalidInput(
            f"a collection is named {TOGETHER!r}, which stands for all collections together in the table; rename it"
        )
    return named


def _refuse_turned(given: ByCollection, baseline: str | None) -> None:
    """Raise if systems stand within collections, which shows by the place of the baseline."""
    if baseline is not None and baseline not in given and all(baseline in parts for parts in given.values()):
        raise InvalidInput(f"the baseline {baseline!r} stands within each of {few(list(given))}; {_TURN}")


def _alike_across(given: ByCollection) -> bool:
    """Say whether evaluations under one outer name share their judgments, as systems within collections do."""
    digests = [{getattr(one, "judgments_digest", None) for one in parts.values()} for parts in given.values()]
    return all(len(found) == 1 for found in digests) and len(set.union(*digests)) == len(digests)


def _common_collections(given: dict[str, dict[str, Scores]], unpaired: str) -> tuple[ByCollection, list[str]]:
    chosen("value of unpaired", unpaired, UNPAIRED)
    union = list(dict.fromkeys(collection for parts in given.values() for collection in parts))
    common = [collection for collection in union if all(collection in parts for parts in given.values())]
    lacking = {name: [each for each in union if each not in parts] for name, parts in given.items()}
    lacking = {name: lacked for name, lacked in lacking.items() if lacked}
    if lacking and (unpaired == "error" or not common):
        name, lacked = next(iter(lacking.items()))
        remedy = (
            'evaluate it there, or pass unpaired="skip" to compare on the collections common to all'
            if common
            else "the systems have no collection in common"
        )
        raise InvalidInput(
            f"system {name!r} lacks {len(lacked)} of {count(len(union), COLLECTION)}: {few(lacked)}; {remedy}"
        )
    left_out = [each for each in union if each not in common]
    notes = (
        [f"collections that a system lacked were left out for all systems: {', '.join(left_out)}"] if lacking else []
    )
    return {name: {each: parts[each] for each in common} for name, parts in given.items()}, notes
