"""Two questions about cross-validated estimators, and the test that answers each.

Which *algorithm* gives better rankers? Training and test queries vary from fold to fold, but folds overlap: the
corrected resampled t test. Which fitted *model* ranks better? Queries vary, the models are given: a paired test over
queries.

Cross-validation comes as plain columns: a frame of means per fold for each system, and the sizes of the folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from rankeval._registry import unknown
from rankeval.comparison.comparing import compare, with_first_two
from rankeval.comparison.concluding import conclude
from rankeval.comparison.design import Design, refuse_undirected
from rankeval.comparison.inputs import Measures, refuse_other_conventions
from rankeval.comparison.record import ComparisonSettings, FoldScores, with_kept, with_notes
from rankeval.comparison.result import Comparison
from rankeval.errors import InvalidInput
from rankeval.evaluation import Evaluation
from rankeval.evaluation.labels import labels_of
from rankeval.significance.declarations import Alternative, ClaimName
from rankeval.significance.folds import REPEATS_RECOMMENDED, widened
from rankeval.significance.registry import FOLD_TESTS, corrections_of_p_values

DEFAULT_TEST = "corrected_resampled_t"
OPTIONS = ("baseline", "measures", "test", "correction", "family", "alpha", "alternative", "claim", "margin")
"""The options of a comparison of algorithms."""


def compare_models(evaluations: Mapping[str, Evaluation], **options: Any) -> Comparison:
    """Compare fitted models by the queries they held out.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Out-of-fold scores of the same queries.
    **options
        As in `rankeval.compare`.

    Returns
    -------
    Comparison
        With a note on what it is about if there is one fold; `rankeval.compare` notes pooled ones.
    """
    compared = compare(evaluations, **options)
    if any(one.n_folds > 1 for one in evaluations.values()):
        return compared
    return with_notes(compared, "these are the models fitted on one training part, not the algorithms behind them")


def compare_algorithms(
    folds: Mapping[str, pd.DataFrame],
    evaluations: Mapping[str, Evaluation],
    *,
    sizes: Sequence[tuple[int, int]],
    baseline: str | None = None,
    measures: Measures | None = None,
    test: str = DEFAULT_TEST,
    correction: str = "holm",
    family: str = "all",
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    claim: ClaimName = "difference",
    margin: float = 0.0,
    **others: Any,
) -> Comparison:
    """Compare algorithms by the corrected resampled t test over the same folds.

    Parameters
    ----------
    folds : mapping of str to DataFrame
        System -> a row per fold, a column per measure. The folds are the same for all systems.
    evaluations : mapping of str to Evaluation
        System -> out-of-fold scores, for the conventions and for the result.
    sizes : sequence of (int, int)
        Numbers of training and test queries of each fold.
    baseline : str, optional
        By default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all that are means over queries.
    test : str, default "corrected_resampled_t"
        A test over folds.
    correction : str, default "holm"
        "holm", "bonferroni", "bh", "by", "none": those that need p-values only.
    family, alpha, alternative, claim, margin
        As in `rankeval.compare`.
    **others
        None: other options of `rankeval.compare` are about queries, and are refused.

    Returns
    -------
    Comparison
        Means, differences, effect sizes, wins, ties and losses are those of folds.

    Raises
    ------
    InvalidInput
        Fewer than two folds or systems, a measure that is no mean over queries, a test over queries, or a
        claim that has a direction without a baseline.
    ConventionMismatch
        Evaluations whose conventions or judgments differ.
    UnknownName
        A baseline, measure, setting or option that does not exist.
    """
    for name in others:
        raise unknown("option for algorithms", name, OPTIONS)
    if test not in FOLD_TESTS:
        raise InvalidInput(
            f"algorithms are compared by the {DEFAULT_TEST}, not by test={test!r}: scores of folds overlap and are not "
            "a sample, so that a plain test over them claims a difference in half of the cases without one. Leave "
            'test out, or ask question="models"'
        )
    if len(folds) < 2 or len(sizes) < 2:
        raise InvalidInput(
            f"algorithms are at least two estimators on at least 2 folds, found {len(folds)} on {len(sizes)}",
            remedy='for one hold-out ask question="models"',
        )
    if correction not in (known := corrections_of_p_values()):
        raise unknown("correction of tests over folds", correction, known)
    settings = ComparisonSettings(alternative, alpha, rng=0, claim=claim, margin=margin)
    settings = replace(settings, test=test, correction=correction, family=family, baseline=baseline)
    refuse_undirected(claim, baseline)
    refuse_other_conventions(evaluations)
    evaluation = next(iter(evaluations.values()))
    means = [
        str(label)
        for label, one in evaluation.by_name.items()
        if one.family.aggregate == "mean" and all(label in frame for frame in folds.values())
    ]
    if not means:
        raise InvalidInput("no measure here is a mean over queries; folds are compared by such means")
    labels = means if measures is None else labels_of(measures, means, "measure that is a mean over queries")
    design = Design(list(folds), labels, baseline, family)
    scores = np.stack([frame[design.measures].to_numpy(np.float64) for frame in folds.values()], axis=1)
    ratio = float(np.mean([n_test / n_train for n_train, n_test in sizes]))
    n_queries = evaluation.n_queries
    notes = _notes(len(sizes), ratio, sum(n_test for _, n_test in sizes) / n_queries)
    d = widened(design.differences(scores), ratio)
    compared = conclude(design, scores, d, settings, evaluations=evaluations, n_queries=n_queries, notes=notes)
    compared = with_kept(compared, folds=FoldScores(design.systems, design.measures, scores, ratio))
    again = partial(compare_algorithms, folds, evaluations, sizes=sizes, test=test, correction="none", alpha=alpha)
    return with_first_two(compared, lambda measure, second: again(measures=measure, baseline=second))


def _notes(n_folds: int, ratio: float, repeats: float) -> list[str]:
    """Return notes on the unit of the numbers, and on too few repeats."""
    about = f"over {n_folds} folds with {ratio:.3g} test queries for each training query"
    notes = [f"{about}; means, effect sizes, wins, ties and losses are those of folds"]
    if repeats < REPEATS_RECOMMENDED:
        notes.append(
            f"each query was held out {repeats:.3g} times on average: {REPEATS_RECOMMENDED} repeats or more are "
            "recommended, RepeatedQueryKFold(5, n_repeats=10), since with fewer the test misses differences"
        )
    return notes
