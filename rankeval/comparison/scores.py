"""The scores that are compared: as frames, under one convention, on the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.choosing import labels_of
from rankeval.evaluation.facts import QUERY_COUNTS
from rankeval.evaluation.merging import differences, rule_differences
from rankeval.evaluation.result import by_name, info_of, size_of
from rankeval.io.frames import spelled
from rankeval.measures import Measure
from rankeval.significance.columns import PairedScores, pair_scores, refuse_fold_scores
from rankeval.significance.declarations import Floats

Scores = Evaluation | pd.DataFrame | Mapping[Any, Mapping[str, float]]
"""Scores of a system on one collection."""

Systems = Mapping[str, Scores] | Mapping[str, Scores | Mapping[str, Scores]]
"""Name -> scores of each system, on one collection or by collection."""

WEIGHT = "weight"
BESIDE = (*QUERY_COUNTS, WEIGHT)
"""Columns of frames that stand beside scores, as in the scores of Spark."""

POOLED_FOLDS = (
    "approximate: the queries of several folds are pooled, each fold ranked by models of its own, whose training parts "
    "overlap; one hold-out compares two models, question='algorithms' compares the algorithms behind them"
)
"""Note on a test over such queries."""


@dataclass(frozen=True)
class SharedScores:
    """The scores of all systems by the same measures on the same queries.

    Attributes
    ----------
    systems, measures : list of str
        Their names, in the order of the scores.
    queries : Index
        Query ids, ascending.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        Scores.
    notes : list of str
        Sentences on measures and queries that were left out.
    """

    systems: list[str]
    measures: list[str]
    queries: pd.Index[Any]
    scores: Floats
    notes: list[str]


def shared_scores(
    systems: Mapping[str, Scores], measures: str | Measure | Sequence[str | Measure] | None, *, unpaired: str
) -> SharedScores:
    """Check the scores of systems and pair them by query id.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        As in `rankeval.compare`.
    measures : str, Measure or sequence of them, or None
        None: all means and geometric means that the systems share.
    unpaired : {"error", "skip"}
        For queries that some systems lack.

    Raises
    ------
    ConventionMismatch
        Conventions or judgments differ.
    QueryIdError
        Query ids are repeated, missing, or not the same in all systems.
    InvalidInput
        Fewer than two systems, weighted evaluations, a score that is not finite, or no measure in common.
    UnknownName
        A measure or a value of unpaired does not exist.
    """
    check_number_of_systems(systems)
    refuse_weighted(systems)
    refuse_other_conventions(systems)
    frames = {str(name): per_query_frame(scores) for name, scores in systems.items()}
    labels, notes = chosen_measures(systems, frames, measures)
    paired = pair_scores(frames, labels, unpaired=unpaired)
    notes += [*pairing_notes(paired), *constant_notes(systems), *part_notes(systems), *fold_notes(systems)]
    return SharedScores(list(frames), labels, paired.queries, paired.scores, notes)


def per_query_frame(scores: Scores) -> pd.DataFrame:
    """Return scores as a frame with query ids as index; frames of polars and Arrow and dicts are understood too.

    Raises
    ------
    InvalidInput
        Scores of folds, or neither an Evaluation nor a frame.
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
        ids = spelled(frame.columns, "qid")
        return frame.set_index(ids[0]) if len(ids) == 1 else frame
    raise InvalidInput(
        f"systems are evaluations, DataFrames of per-query scores or {{qid: {{measure: score}}}}, found "
        f"{type(scores).__name__}"
    )


def refuse_other_conventions(systems: Mapping[str, Scores], *, judgments: bool = True) -> None:
    """Raise `ConventionMismatch` unless all evaluations have the conventions, and the judgments, of the first."""
    evaluations = {name: each for name, each in systems.items() if isinstance(each, Evaluation)}
    names, why = list(evaluations), differences if judgments else rule_differences
    for name in names[1:]:
        if reasons := why(evaluations[names[0]], evaluations[name]):
            raise ConventionMismatch(f"{names[0]!r} and {name!r} must not be compared: {'; '.join(reasons)}")


def check_number_of_systems(systems: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` unless there is a mapping of two systems or more, none without a name."""
    if not isinstance(systems, Mapping) or len(systems) < 2:
        found = f"{len(systems)}" if isinstance(systems, Mapping) else type(systems).__name__
        raise InvalidInput(f"systems is a mapping of at least two names to their scores, found {found}")
    if any(not str(name).strip() for name in systems):
        raise InvalidInput("systems has an empty name; results name the systems, so give each a name")


def refuse_weighted(systems: Mapping[str, Scores]) -> None:
    """Raise `InvalidInput` for an evaluation with query weights."""
    for name, each in systems.items():
        if isinstance(each, Evaluation) and each.weights is not None:
            raise InvalidInput(f"system {name!r} was evaluated with query weights; the tests count every query once")


def constant_notes(systems: Mapping[str, Scores]) -> list[str]:
    """Return a note on each evaluation of a ranker that gives the rows of most queries one score."""
    said = {name: info_of(each).get("constant") for name, each in systems.items() if isinstance(each, Evaluation)}
    return [f"{name}: {note}" for name, note in said.items() if note]


def part_notes(systems: Mapping[str, Scores]) -> list[str]:
    """Return a note if evaluations are subsets: chosen parts of the queries."""
    sizes = dict.fromkeys(
        size_of(each) for each in systems.values() if isinstance(each, Evaluation) and each.facts.whole
    )
    if not sizes:
        return []
    part = f"compared on a chosen part of the queries ({', '.join(sizes)})"
    return [f"{part}: if it was chosen by results, it shows differences that are not there"]


def fold_notes(systems: Mapping[str, Scores]) -> list[str]:
    """Return a note if queries of several folds are pooled, which a test over queries takes for a sample."""
    if not any(isinstance(each, Evaluation) and each.facts.n_folds > 1 for each in systems.values()):
        return []
    return [POOLED_FOLDS]


def chosen_measures(
    systems: Mapping[str, Scores],
    frames: Mapping[str, pd.DataFrame],
    wanted: str | Measure | Sequence[str | Measure] | None,
) -> tuple[list[str], list[str]]:
    """Return the measures to compare, and a note on each that is left out."""
    columns = {name: [str(label) for label in frame] for name, frame in frames.items()}
    seen = list(dict.fromkeys(label for labels in columns.values() for label in labels))
    everywhere = [label for label in seen if all(label in frame for frame in frames.values())]
    if wanted is not None:
        return labels_of(wanted, everywhere), []
    aggregates = {label: _aggregate(systems, label) for label in seen}
    labels = [label for label in everywhere if aggregates[label] in ("mean", "gmean")]
    if not labels:
        listed = "; ".join(f"{name!r} has {', '.join(labels)}" for name, labels in columns.items())
        raise InvalidInput(f"the systems share no measure that is a mean over queries: {listed}")
    beside = [label for label in seen if aggregates[label] == "none"]
    lacked = [label for label in seen if label not in everywhere and label not in beside]
    notes = [f"not compared, since only some systems have it: {label}" for label in lacked]
    notes += [f"{label} is compared on its log scale" for label in labels if aggregates[label] == "gmean"]
    if beside:
        why = f"not compared, since these columns are no scores: {', '.join(beside)}"
        notes.append(f"{why}; name them in measures= to compare them")
    if WEIGHT in beside:
        notes.append(f"the tests count every query once, and do not use the column {WEIGHT!r}")
    return labels, notes


def _aggregate(systems: Mapping[str, Scores], label: str) -> str:
    """Return how a measure is aggregated: as its family says; columns of frames by the mean, but for `BESIDE`."""
    for each in systems.values():
        if isinstance(each, Evaluation) and label in by_name(each):
            return by_name(each)[label].family.aggregate
    return "none" if label in BESIDE else "mean"


def pairing_notes(paired: PairedScores) -> list[str]:
    """Return a note if queries were left out because a system lacked them."""
    if not paired.absent:
        return []
    counts = ", ".join(f"{name} {count}" for name, count in paired.absent.items())
    return [f"queries that a system lacked were left out for all systems: {counts}"]
