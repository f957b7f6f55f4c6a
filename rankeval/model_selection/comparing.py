"""Two questions about cross-validated estimators, and the test that answers each.

Which *algorithm* gives better rankers? Folds vary training and test data, but overlap: the corrected resampled t. Which
fitted *model* ranks better? Queries vary, the models are given: the paired test over queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval._checks import check_share
from rankeval._registry import unknown
from rankeval.comparison.result import COLUMNS, FAMILIES, Comparison, compare
from rankeval.errors import ConventionMismatch, InvalidInput
from rankeval.measures import measures as find_measures
from rankeval.significance.effects import outcomes, standardised_effect
from rankeval.significance.folds import REPEATS_RECOMMENDED, corrected_resampled_t, detectable_fold_difference
from rankeval.significance.multiple import CORRECTIONS, JOINT_CORRECTIONS, adjust, family_level
from rankeval.significance.paired import differences

if TYPE_CHECKING:
    from rankeval.measures import Measure
    from rankeval.model_selection.results import CrossValidation

Results = Mapping[str, "CrossValidation"]

TEST = "corrected_resampled_t"
WHY = (
    "scores of folds overlap and are no sample, so that a plain test over them claims a difference in half of the "
    'cases without one. Leave test out, or ask question="models"'
)


def compare_models(results: Results, *, baseline: str | None = None, **options: Any) -> Comparison:
    """Compare fitted models by the queries they held out.

    Parameters
    ----------
    results : mapping of str to CrossValidation
        On the same queries.
    baseline : str, optional
        By default all pairs are compared.
    **options
        As of `rankeval.compare`.

    Returns
    -------
    Comparison
        With a note that it is approximate, unless all queries stand in one hold-out.
    """
    systems = {name: result.evaluation for name, result in results.items()}
    compared = compare(systems, baseline=baseline, **options)
    if all(len(result.folds) == 1 for result in results.values()):
        return compared.with_notes("these are the models fitted on one training part, not the algorithms behind them")
    return compared.with_notes(
        "approximate: the queries of several folds are pooled, each fold ranked by models of its own, whose training "
        "parts overlap; one hold-out compares two models, question='algorithms' what made them"
    )


def compare_algorithms(
    results: Results,
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    test: str = TEST,
    correction: str = "holm",
    family: str = "all",
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
) -> Comparison:
    """Compare algorithms by the corrected resampled t over the same folds.

    Parameters
    ----------
    results : mapping of str to CrossValidation
        On the same folds.
    baseline : str, optional
        By default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all that are means over queries.
    test : str, default "corrected_resampled_t"
        There is no other one of folds.
    correction : str, default "holm"
        "holm", "bonferroni", "bh" or "none".
    family, confidence_level, alternative
        As of `rankeval.compare`.

    Returns
    -------
    Comparison
        Means, differences, effect sizes, wins, ties and losses are those of folds.

    Raises
    ------
    InvalidInput
        Folds that differ, fewer than two of them, a measure that is no mean over queries, or another test.
    ConventionMismatch
        Evaluations whose conventions or judgments differ.
    UnknownName
        A baseline, measure or setting that does not exist.
    """
    import pandas as pd

    if test != TEST:
        raise InvalidInput(f"algorithms are compared by the {TEST}, not by test={test!r}: {WHY}")
    _check_settings(results, baseline, correction, family, confidence_level)
    ratio = _refuse_unlike(results)
    labels = _chosen(results, measures)
    names = list(results)
    first = None if baseline is None else names.index(baseline)
    pairs = list(combinations(range(len(names)), 2))
    if first is not None:
        pairs = [(first, j) for j in range(len(names)) if j != first]
    scores = np.stack([results[name].folds[labels].to_numpy(np.float64) for name in names], axis=1)
    low, high = ([pair[side] for pair in pairs] for side in (0, 1))
    d = differences(scores[:, high], scores[:, low]).transpose(0, 2, 1).reshape(len(scores), -1)
    tested = corrected_resampled_t(d, ratio, alternative=alternative, confidence_level=confidence_level)
    size = d.shape[1] if family == "all" else len(pairs)
    p = np.asarray(tested.p_value).reshape(-1, size)
    adjusted = np.concatenate([adjust(one, correction) for one in p])
    level = family_level(round(1 - confidence_level, 12), correction, size)
    counts, means = outcomes(d), scores.mean(axis=0).T
    n_queries = next(iter(results.values())).evaluation.n_queries
    table = pd.DataFrame(
        {
            "measure": [label for label in labels for _ in pairs],
            "baseline": [names[i] for _ in labels for i in low],
            "system": [names[j] for _ in labels for j in high],
            "n_queries": n_queries,
            "mean_baseline": means[:, low].ravel(),
            "mean_system": means[:, high].ravel(),
            "difference": d.mean(axis=0),
            "ci_low": tested.ci_low,
            "ci_high": tested.ci_high,
            "p_value": tested.p_value,
            "p_adjusted": adjusted,
            "effect_size": standardised_effect(d),
            "wins": counts.wins,
            "ties": counts.ties,
            "losses": counts.losses,
            "detectable_difference": detectable_fold_difference(d, ratio, level, alternative=alternative),
        },
        columns=COLUMNS,
    )
    evaluations = {name: result.evaluation for name, result in results.items()}
    notes = (*tested.notes, *_notes(results, ratio))
    return Comparison(
        table, evaluations, baseline, TEST, correction, family, confidence_level, 0, size, notes,
        alternative=alternative,
    )  # fmt: skip


def _check_settings(results: Results, baseline: str | None, correction: str, family: str, level: float) -> None:
    known = [name for name in CORRECTIONS if name not in JOINT_CORRECTIONS]
    if len(results) < 2:
        raise InvalidInput(f"a comparison takes at least two estimators, found {len(results)}")
    if baseline is not None and baseline not in results:
        raise unknown("baseline", baseline, results)
    if correction not in known:
        raise unknown("correction of tests over folds", correction, known)
    if family not in FAMILIES:
        raise unknown("family", family, FAMILIES)
    check_share("confidence_level", level, least=0.5)


def _refuse_unlike(results: Results) -> float:
    """Check that all have the same folds of the same data; return test queries by training queries."""
    (name, first), *others = results.items()
    for other, result in others:
        if reasons := first.evaluation.differs_from(result.evaluation):
            raise ConventionMismatch(f"{name!r} and {other!r} must not be compared: {'; '.join(reasons)}")
        if [split.digest for split in first.splits] != [split.digest for split in result.splits]:
            raise InvalidInput(
                f"{name!r} and {other!r} were cross-validated on different folds: give both the same splitter with a "
                "random_state, or cross_validate a mapping of both"
            )
    if len(first.splits) < 2:
        raise InvalidInput(
            f"algorithms are compared over at least 2 folds, found {len(first.splits)}; for one hold-out ask "
            'question="models"'
        )
    return float(np.mean([split.n_test / split.n_train for split in first.splits]))


def _chosen(results: Results, wanted: str | Measure | Sequence[str | Measure] | None) -> list[str]:
    evaluation = next(iter(results.values())).evaluation
    means = [
        str(label)
        for label, one in evaluation.by_name.items()
        if one.family.aggregate == "mean" and all(label in result.folds for result in results.values())
    ]
    if wanted is None:
        if not means:
            raise InvalidInput("no measure here is a mean over queries, which folds are compared by")
        return means
    known = {one: str(label) for label, one in evaluation.by_name.items()}
    chosen = [known.get(one, label) for label, one in find_measures(wanted)]
    for label in chosen:
        if label not in means:
            raise unknown("measure that is a mean over queries", label, means)
    return list(dict.fromkeys(chosen))


def _notes(results: Results, ratio: float) -> list[str]:
    first = next(iter(results.values()))
    n_folds = len(first.splits)
    repeats = sum(split.n_test for split in first.splits) / first.evaluation.n_queries
    about = f"over {n_folds} folds with {ratio:.3g} test queries for each training query"
    notes = [f"{about}; means, effect sizes, wins, ties and losses are those of folds"]
    if repeats < REPEATS_RECOMMENDED:
        notes.append(
            f"each query was held out {repeats:.3g} times on average: {REPEATS_RECOMMENDED} repeats or more are "
            "recommended, RepeatedQueryKFold(5, n_repeats=10), since with fewer the test misses differences"
        )
    return notes
