"""The mean of each system with its interval, and the comparison of a single system, which has nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rankeval.comparison.design import MEANS, table_without_rows
from rankeval.comparison.result import Comparison
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation


def means_of(evaluations: Mapping[str, Evaluation], confidence_level: float = 0.95) -> pd.DataFrame:
    """Return the aggregate of each measure and system, with Student's interval over queries if it is a mean.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        The systems, by the same measures.
    confidence_level : float
        Of the intervals.

    Returns
    -------
    DataFrame of shape (n_measures * n_systems, 6)
        Columns: measure, system, n_queries, mean, ci_low, ci_high, as `rankeval.Evaluation.ci` gives them. A measure
        with another aggregate, such as gm_AP, has that instead of the mean, and nan limits.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures="RR")
    >>> means_of({"final": ev}).round(2).values.tolist()
    [['RR', 'final', 3, 0.83, 0.12, 1.55]]
    """
    rows = []
    for system, evaluation in evaluations.items():
        values, known = evaluation.aggregate(), evaluation.ci(confidence_level)
        limits = known[["ci_low", "ci_high"]].reindex(list(evaluation.measure_names)).to_numpy(dtype=np.float64)
        for place, label in enumerate(evaluation.measure_names):
            rows.append((place, label, system, evaluation.n_queries, float(values[label]), *limits[place].tolist()))
    table = pd.DataFrame(rows, columns=["place", *MEANS])
    return table.sort_values("place", kind="stable", ignore_index=True).drop(columns="place")


def comparison_of_one(
    name: str, evaluation: Evaluation, *, confidence_level: float = 0.95, notes: tuple[str, ...] = ()
) -> Comparison:
    """Return one system as a comparison without pairs: an empty table, and its mean with an interval.

    Parameters
    ----------
    name : str
        The system.
    evaluation : Evaluation
        Its scores, by the primary measure first.
    confidence_level : float
        Of the intervals.
    notes : tuple of str
        Sentences for the reader.

    Raises
    ------
    InvalidInput
        If no query was scored.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures="RR")
    >>> comparison_of_one("final", ev).headline
    'final: RR 0.8333 [95% interval 0.1162 to 1.5504], on 3 queries.'
    """
    if not evaluation.n_queries:
        raise InvalidInput(f"{name!r} has no scored query, so it has no mean")
    return Comparison(
        table=table_without_rows(),
        evaluations={name: evaluation},
        baseline=None,
        test="t",
        correction="none",
        family="all",
        confidence_level=confidence_level,
        rng=0,
        n_comparisons=0,
        notes=notes,
        primary=evaluation.measure_names[0],
        means=means_of({name: evaluation}, confidence_level),
    )
