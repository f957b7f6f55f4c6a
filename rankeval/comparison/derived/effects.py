"""The sizes of the differences of a comparison row by row, and how probable it is that a system is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rankeval._registry import chosen
from rankeval.comparison.derived.query_scores import held_scores, refuse_without_scores
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.measures import direction
from rankeval.significance.columns import differences
from rankeval.significance.declarations import Floats, Rng, seed_of
from rankeval.significance.effects import (
    Posterior,
    cliffs_delta,
    correlated_t,
    effect_interval,
    hedges_g,
    signed_rank,
    standardised_effect,
    superiority,
)

METHODS = ("t", "signed_rank")


@dataclass(frozen=True)
class RowScores:
    """The numbers that a row of a comparison is made of.

    Attributes
    ----------
    measure, baseline, system : str
        The row's.
    direction : float
        1, or -1 if less is better by the measure.
    baseline_scores, system_scores : ndarray of shape (n,)
        Scores by query or by fold, paired.
    """

    measure: str
    baseline: str
    system: str
    direction: float
    baseline_scores: Floats
    system_scores: Floats

    @property
    def gains(self) -> Floats:
        """The differences, positive where the system is better."""
        return self.direction * differences(self.system_scores, self.baseline_scores)

    @property
    def names(self) -> dict[str, str]:
        """Measure, baseline and system, as a table begins with them."""
        return {"measure": self.measure, "baseline": self.baseline, "system": self.system}


def scores_by_row(record: ComparisonRecord) -> Iterator[RowScores]:
    """Return the scores behind each row of a comparison.

    Parameters
    ----------
    record : ComparisonRecord
        A comparison over queries that has its evaluations, or one over folds. Rows of slices are left out.

    Raises
    ------
    InvalidInput
        The comparison was read from JSON, which holds no scores of queries.
    """
    table = record.overall.table
    measures = [str(name) for name in table["measure"].unique()]
    scores = _of_folds(record, measures) if record.folds else _of_queries(record, measures)
    for measure, baseline, system in table[["measure", "baseline", "system"]].itertuples(index=False, name=None):
        yield RowScores(
            measure, baseline, system, direction(measure), scores[baseline, measure], scores[system, measure]
        )


def effects_of(record: ComparisonRecord) -> pd.DataFrame:
    """Return the table of effects, as `rankeval.Comparison.effects` documents it."""
    ratio = record.folds.ratio if record.folds else 0.0
    return pd.DataFrame([_effects(row, record.confidence_level, ratio) for row in scores_by_row(record)])


def _effects(row: RowScores, confidence_level: float, ratio: float) -> dict[str, Any]:
    gains = row.gains
    interval = effect_interval(gains, confidence_level=confidence_level, ratio=ratio)
    return {
        **row.names,
        "cohens_d": float(standardised_effect(gains)),
        "d_low": float(interval.low),
        "d_high": float(interval.high),
        "hedges_g": float(hedges_g(gains)),
        "cliffs_delta": row.direction * cliffs_delta(row.system_scores, row.baseline_scores) + 0.0,  # no -0
        "superiority": float(superiority(gains)),
    }


def _of_folds(record: ComparisonRecord, measures: list[str]) -> dict[tuple[str, str], Floats]:
    folds = record.folds
    return {(name, one): folds.of(name, one) for name in folds.systems for one in measures} if folds else {}


def _of_queries(record: ComparisonRecord, measures: list[str]) -> dict[tuple[str, str], Floats]:
    refuse_without_scores(record)
    shared = held_scores(record, measures)
    return {
        (name, one): shared.scores[:, place, column]
        for place, name in enumerate(shared.systems)
        for column, one in enumerate(shared.measures)
    }


def posteriors_of(record: ComparisonRecord, rope: float, *, method: str, n_samples: int, rng: Rng) -> pd.DataFrame:
    """Return the table of posterior probabilities, as `rankeval.Comparison.bayes` documents it."""
    if chosen("method", method, METHODS) == "signed_rank" and record.folds:
        raise InvalidInput(
            'the signed rank test takes independent gains, and folds overlap: use method="t", the correlated t, or '
            'compare the queries with question="models"'
        )
    seed = seed_of(rng)

    def posterior(row: RowScores) -> Posterior:
        if method == "signed_rank":
            return signed_rank(row.gains, rope, n_samples=n_samples, rng=seed)
        return correlated_t(row.gains, rope, ratio=record.folds.ratio if record.folds else 0.0)

    found = [(row, posterior(row)) for row in scores_by_row(record)]
    return pd.DataFrame(
        [
            {
                **row.names,
                "p_worse": float(one.worse),
                "p_equivalent": float(one.equivalent),
                "p_better": float(one.better),
            }
            for row, one in found
        ]
    )
