"""How probable it is that a system is better, row by row of a comparison."""

from __future__ import annotations

import pandas as pd

from rankeval._registry import chosen
from rankeval.comparison.derived.effects import RowScores, scores_by_row
from rankeval.comparison.record import ComparisonRecord
from rankeval.errors import InvalidInput
from rankeval.significance.bayes import Posterior, correlated_t, signed_rank
from rankeval.significance.declarations import Rng, seed_of

METHODS = ("t", "signed_rank")


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
