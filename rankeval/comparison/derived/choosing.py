"""Choose the best of the compared systems, and say what the choice is worth."""

from __future__ import annotations

import numpy as np

from rankeval._registry import chosen
from rankeval.comparison.choice import Choice
from rankeval.comparison.derived.query_scores import has_scores, held_scores, refuse_several_collections
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.measures import direction
from rankeval.significance.columns import differences
from rankeval.significance.declarations import FOLD_TESTS, Settings
from rankeval.significance.multiple import value_of_choice


def best_system(record: ComparisonRecord, measure: str) -> Choice:
    """Return the system with the best mean, and its value corrected for the choosing.

    Parameters
    ----------
    record : ComparisonRecord
        The comparison. Candidates are all systems but its baseline.
    measure : str
        A measure that was compared.

    Raises
    ------
    InvalidInput
        Without scores per query, or if the comparison is one of folds.
    UnknownName
        If the measure was not compared.
    """
    if not record.has_pairs:
        return _only_system(record, measure)
    chosen("measure of the comparison", measure, record.table["measure"].tolist())
    if record.choice is not None and record.choice.measure == measure:
        return record.choice
    _check_scores(record, measure)
    scores = held_scores(record, [measure])
    columns = dict(zip(scores.systems, scores.scores[:, :, 0].T, strict=True))
    names = [name for name in columns if name != record.baseline]
    values = np.column_stack([columns[name] for name in names])
    if record.baseline is not None:
        values = differences(values, columns[record.baseline][:, None])
    sign = direction(measure)
    settings = Settings(alpha=record.alpha, n_resamples=record.n_resamples, rng=record.rng)
    value = value_of_choice(sign * values, settings)
    low, high = sorted((sign * value.ci_low, sign * value.ci_high))
    return Choice(
        system=names[value.leader],
        measure=measure,
        baseline=record.baseline,
        estimate=sign * value.estimate,
        ci_low=low,
        ci_high=high,
        n_candidates=len(names),
        confidence_level=record.confidence_level,
    )


def _only_system(record: ComparisonRecord, measure: str) -> Choice:
    """Return the one system with its mean: nothing was chosen."""
    if record.means is None:
        raise InvalidInput("the comparison has neither pairs nor means: compare two systems, or open a plan of one")
    rows = {row["measure"]: row for row in record.means.to_dict("records")}
    row = rows[chosen("measure", measure, rows)]
    return Choice(
        system=str(row["system"]),
        measure=measure,
        baseline=None,
        estimate=float(row["mean"]),
        ci_low=float(row["ci_low"]),
        ci_high=float(row["ci_high"]),
        n_candidates=1,
        confidence_level=record.confidence_level,
    )


def _check_scores(record: ComparisonRecord, measure: str) -> None:
    refuse_several_collections(record)
    if record.test in FOLD_TESTS:
        raise InvalidInput(
            "the value of the best is estimated from queries, and this comparison is one of folds",
            remedy='compare with question="models"',
        )
    if not has_scores(record):
        kept = f", and the value that was kept is by {record.choice.measure!r}" if record.choice else ""
        raise InvalidInput(
            f"the value of the best by {measure!r} needs the scores of every query, which this comparison has not: it "
            f"was read from a file or lost its evaluations{kept}; compare the evaluations again"
        )
