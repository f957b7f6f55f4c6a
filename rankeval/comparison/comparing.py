"""Compare systems query by query: check, pair, test, correct, wrap."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rankeval._registry import chosen
from rankeval.comparison.design import Design
from rankeval.comparison.record import PARTED
from rankeval.comparison.result import Comparison
from rankeval.comparison.scores import Scores, shared_scores
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.measures import Measure
from rankeval.significance.declarations import Alternative, ClaimName, Floats, PairedResult, Rng, Settings, seed_of
from rankeval.significance.families import adjust_by_family, family_detectable, family_notes, resolution_notes
from rankeval.significance.registry import CORRECTIONS, TESTS, all_tests
from rankeval.significance.running import liberal_notes, run


def compare(
    systems: Mapping[str, Scores],
    *,
    baseline: str | None = None,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    test: str = "t",
    correction: str = "holm",
    family: str = "all",
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    claim: ClaimName = "difference",
    margin: float = 0.0,
    missing: str = "error",
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> Comparison:
    """Compare systems query by query, and correct for the number of comparisons made.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        Name -> scores of shape (n_queries, n_measures). A frame, also one of polars, has a column per measure, and the
        query ids as its index or as a column ``qid``.
    baseline : str, optional
        The system that the others are compared with. By default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all means and geometric means that the systems share. Sums such as NumRel are compared only if asked
        for. Geometric means are compared on their log scale.
    test : str, default "t"
        "t", "randomization", "bootstrap" (symmetric studentised), "wilcoxon", "wilcoxon_pratt", "sign",
        "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"; or another one declared in
        ``rankeval.significance.TESTS``.
    correction : str, default "holm"
        "holm", "bonferroni", "bh" and "by" (false discovery rate only), "max_t" (sign flips joint over the family),
        "tukey" (randomised, all pairs only), "none"; or another one declared in ``rankeval.significance.CORRECTIONS``.
        An adjusted p is never below its raw one.
    family : {"all", "measure"}, default "all"
        The comparisons to correct for: all that are made here, or those within one measure.
    confidence_level : float, default 0.95
        The level of the intervals; alpha is 1 less this.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        The side of a difference to show. "greater": the system has the greater mean, which is better for most measures,
        but not for all.
    claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
        What to show. "better": the gain is above the margin. "not_worse": a loss is smaller than the margin
        (non-inferiority). "equivalent": gain and loss are smaller than the margin (two one-sided tests at alpha each;
        the intervals are then 1 - 2 alpha ones). A gain is a difference turned so that positive is better. Tests of
        claims other than "difference" are one-sided, at alpha.
    margin : float, default 0
        Of the claim, in units of the measure; needed for "not_worse" and "equivalent".
    missing : {"error", "skip"}, default "error"
        If some systems lack a query, "error" refuses and "skip" compares on the queries common to all. To score a
        missing query as an empty ranking, use `rankeval.evaluate`.
    n_resamples : int, default 9999
        Number of resamples, for tests and corrections that resample.
    rng : int, Generator or None, default 0
        Seed; the one used is recorded.

    Returns
    -------
    Comparison
        Its notes warn the reader, for instance if there are too few resamples for so large a family.

    Raises
    ------
    ConventionMismatch
        If conventions or judgments of the evaluations differ.
    QueryIdError
        If query ids are repeated, missing, or not the same in all systems.
    InvalidInput
        If there are fewer than two systems or queries, a score is not finite, or evaluations are weighted.
    UnknownName
        If a baseline, measure, test or setting does not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
    >>> ltr = pd.DataFrame({"AP": [0.9, 0.5, 0.4]}, index=["q3", "q2", "q1"])
    >>> row = compare({"bm25": bm25, "ltr": ltr}, baseline="bm25").table.iloc[0]
    >>> print(f"{row.difference:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}], p = {row.p_adjusted:.3f}")
    0.20 [-0.05, 0.45], p = 0.074
    """
    settings = Settings(alternative, confidence_level, n_resamples, seed_of(rng), claim, margin)
    chosen("test", test, TESTS)
    _check_correction(correction, baseline, settings)
    shared = shared_scores(systems, measures, missing=missing)
    design = Design(shared.systems, shared.measures, baseline, family)
    scores = shared.scores
    # The note stays with the result; the warning reaches the one who chose the test.
    for note in liberal_notes(TESTS[test], len(scores)):
        warnings.warn(note, RankevalWarning, stacklevel=2)
    return conclude(
        design,
        scores,
        design.differences(scores),
        test=test,
        correction=correction,
        settings=settings,
        evaluations=dict(zip(shared.systems, systems.values(), strict=True)),
        n_queries=len(scores),
        notes=shared.notes,
    )


def conclude(
    design: Design,
    scores: Floats,
    d: Floats,
    *,
    test: str,
    correction: str,
    settings: Settings,
    evaluations: Mapping[str, Scores],
    n_queries: int,
    notes: Sequence[str],
) -> Comparison:
    """Test, correct and wrap, for queries and for folds alike.

    Parameters
    ----------
    design : Design
        The comparisons to make.
    scores : ndarray of shape (n_rows, n_systems, n_measures)
        Scores by query or by fold.
    d : ndarray of shape (n_rows, n_comparisons)
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

    Returns
    -------
    Comparison
        With the notes of the test and the correction besides.
    """
    declared, corrected, size = all_tests()[test], CORRECTIONS[correction], design.size
    # Claims are about gains; without one, "greater" is of the mean, whatever is better.
    signs = np.ones(d.shape[1]) if settings.claim == "difference" else design.directions
    again = partial(run, declared, d * signs)
    tested = again(settings)
    adjusted = adjust_by_family(corrected, again, tested, d * signs, scores, design.pairs, size, settings)
    detectable = family_detectable(declared, corrected, size, len(d), d.std(axis=0, ddof=1), settings)
    said = [*tested.notes, *notes, *family_notes(declared, corrected, size)]
    compared = Comparison(
        table=design.table(scores, n_queries, _turned(tested, signs), _turned(adjusted, signs), detectable),
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
    )
    return compared.with_notes(PARTED) if compared.parted.any() else compared


def _turned(result: PairedResult, signs: Floats) -> PairedResult:
    """Turn intervals of gains into intervals of differences."""
    low = np.where(signs > 0, result.ci_low, -result.ci_high)
    return replace(result, ci_low=low, ci_high=np.where(signs > 0, result.ci_high, -result.ci_low))


def _check_correction(correction: str, baseline: str | None, settings: Settings) -> None:
    if not CORRECTIONS[chosen("correction", correction, CORRECTIONS)].all_pairs_only:
        return
    if settings.sides == 1 or settings.claim != "difference":
        found = f"alternative={settings.alternative!r}" if settings.sides == 1 else f"claim={settings.claim!r}"
        raise InvalidInput(f'{correction} is a two-sided test for a difference, found {found}; use correction="max_t"')
    if baseline is not None:
        raise InvalidInput(
            f'{correction} compares all pairs; leave out baseline=, or use correction="max_t" for one baseline'
        )
