"""Test, correct and wrap: the last steps of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankeval.comparison.design import Design
from rankeval.comparison.record import PARTED
from rankeval.comparison.result import Comparison
from rankeval.comparison.scores import Systems
from rankeval.significance.columns import deviation
from rankeval.significance.declarations import CORRECTIONS, Floats, PairedResult, Settings, all_tests, seed_of
from rankeval.significance.pairs import Pairs, as_pairs
from rankeval.significance.running import (
    adjust_by_family,
    family_detectable,
    family_notes,
    few_query_notes,
    resolution_notes,
    run,
    with_family_level,
    with_unseen,
)
from rankeval.significance.strata import Strata, stratified, stratified_test


def conclude(
    design: Design,
    scores: Floats,
    d: Floats | Pairs,
    *,
    test: str,
    correction: str,
    settings: Settings,
    evaluations: Systems,
    n_queries: int,
    notes: Sequence[str],
    strata: Strata | None = None,
) -> Comparison:
    """Test, correct and wrap, for queries and for folds alike.

    Parameters
    ----------
    design : Design
        The comparisons to make.
    scores : ndarray of shape (n_rows, n_systems, n_measures)
        Scores by query or by fold.
    d : ndarray of shape (n_rows, n_comparisons), or Pairs
        The columns to test: the differences of the scores, for folds widened by their overlap.
    test, correction : str
        Declared names.
    settings : Settings
        Alternative, level and resamples; rng is the seed.
    evaluations : mapping of str to Evaluation or DataFrame
        The systems, for the result.
    n_queries : int
        Number of queries behind the scores.
    notes : sequence of str
        Notes on the scores.
    strata : Strata, optional
        The collections that the queries are of: means are then over collections, and the test is stratified.

    Returns
    -------
    Comparison
        With the notes of the test and the correction besides.
    """
    size, n_pairs = design.size, len(design.pairs)
    declared, corrected, weighed = all_tests()[test], CORRECTIONS[correction], scores
    if strata is not None:
        tried = strata.with_unseen(settings.n_unseen)
        declared, corrected = stratified_test(tried), stratified(tried, corrected, n_pairs)
        weighed = scores * strata.weights[:, None]
    signs, losses = gain_signs(design, settings), design.greatest_losses(scores)
    gains = with_unseen(as_pairs(d).turned(signs), losses, settings, n_strata=len(strata.parts) if strata else 1)
    tested = run(declared, gains, with_family_level(settings, corrected, size))
    adjusted = adjust_by_family(corrected, tested, gains, scores, design.pairs, size, settings)
    spread = _spread(gains) if strata is None else strata.error(np.asarray(d), n_pairs) * np.sqrt(len(d))
    detectable = family_detectable(declared, corrected, size, len(d), spread, settings, losses)
    table = design.table(weighed, n_queries, turned(tested, signs), turned(adjusted, signs), detectable)
    if strata is not None:
        table = table.assign(effect_size=strata.effect(np.asarray(d)))
    few = few_query_notes(corrected, size, n_queries, settings)
    said = [*tested.notes, *few, *notes, *family_notes(declared, corrected, size)]
    compared = Comparison(
        table=table,
        evaluations=evaluations,
        baseline=design.baseline,
        test=test,
        correction=correction,
        family=design.family,
        confidence_level=settings.confidence_level,
        rng=seed_of(settings.rng),
        n_comparisons=size,
        notes=(*said, *resolution_notes(declared, corrected, size, len(d), settings)),
        alternative=settings.alternative,
        n_resamples=int(settings.n_resamples),
        claim=settings.claim,
        margin=float(settings.margin),
        unseen=settings.n_unseen,
    )
    return compared.with_notes(PARTED) if compared.parted.any() else compared


def _spread(columns: Pairs) -> Floats:
    (spread,) = columns.summed(lambda d: (deviation(d),))
    return np.asarray(spread)


def gain_signs(design: Design, settings: Settings) -> Floats:
    """Return the sign of each column: claims are about gains; without one, "greater" is of the mean as it is."""
    return np.ones(design.directions.shape) if settings.claim == "difference" else design.directions


def turned(result: PairedResult, signs: Floats) -> PairedResult:
    """Turn intervals of gains into intervals of differences."""
    low = np.where(signs > 0, result.ci_low, -result.ci_high)
    return replace(result, ci_low=low, ci_high=np.where(signs > 0, result.ci_high, -result.ci_low))
