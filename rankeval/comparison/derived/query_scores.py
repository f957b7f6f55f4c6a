"""The scores behind a comparison, query by query: whether it has them, and the pairs that it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from rankeval.comparison.record import ComparisonRecord
from rankeval.comparison.scores import Scores, SharedScores, shared_scores
from rankeval.errors import InvalidInput
from rankeval.significance.declarations import FOLD_TESTS


def has_scores(record: ComparisonRecord) -> bool:
    """Tell whether systems were compared, and the scores of every one are here, query by query."""
    names = {*record.table["system"], *record.table["baseline"]}
    is_plain = record.has_pairs and record.test not in FOLD_TESTS and not record.weights
    return is_plain and names <= set(record.evaluations)


def held_scores(record: ComparisonRecord, measures: Sequence[str]) -> SharedScores:
    """Return the scores of a comparison query by query, paired as it paired them.

    Parameters
    ----------
    record : ComparisonRecord
        A comparison that `has_scores`.
    measures : sequence of str
        Measures that were compared.

    Raises
    ------
    InvalidInput
        Over several collections, whose queries are no single sample.
    """
    refuse_several_collections(record)
    # unpaired="skip" compared the common queries only; else all systems have the same ones.
    return shared_scores(cast("Mapping[str, Scores]", record.evaluations), list(measures), unpaired="skip")


def refuse_without_scores(record: ComparisonRecord) -> None:
    """Raise `InvalidInput` for a comparison over several collections, or one that lost its evaluations."""
    refuse_several_collections(record)
    if not record.has_pairs:
        raise InvalidInput("this is computed from differences, and the comparison has one system: compare two")
    if not {*record.table["system"], *record.table["baseline"]} <= set(record.evaluations):
        raise InvalidInput(
            "the scores of every query are needed, and this comparison was read from a file or lost its evaluations: "
            "compare the evaluations again"
        )


def refuse_several_collections(record: ComparisonRecord) -> None:
    """Raise `InvalidInput` for a comparison over several collections, whose queries are no single sample."""
    if record.weights:
        raise InvalidInput(
            "this is computed from the queries of one collection, and the comparison is over several: compare the "
            "systems on one of them, {system: parts[collection] for system, parts in evaluations.items()}"
        )
