"""Compare systems query by query: check, pair, test, correct, wrap; and estimators over the folds they were fitted on.

Two questions about cross-validated estimators have a test each. Which *algorithm* gives better
rankers? Training and test queries vary from fold to fold, but folds overlap: the corrected
resampled t test. Which fitted *model* ranks better? Queries vary, the models are given: a paired
test over queries, that of `compare`. Cross-validation comes as plain columns: a frame of means per
fold for each system, and the sizes of the folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from rankeval._arguments import explained, gone
from rankeval._checks import count, few, refuse, require
from rankeval._registry import chosen
from rankeval.comparison.concluding import conclude, counted_by_row, with_parts
from rankeval.comparison.design import COLLECTION, Design
from rankeval.comparison.groups import query_groups
from rankeval.comparison.inputs import (
    LowerIsBetter,
    Measures,
    Scores,
    Systems,
    collection_notes,
    refuse_other_conventions,
    shared_scores,
    slices_by,
    weight_notes,
)
from rankeval.comparison.record import (
    ComparisonSettings,
    FoldScores,
    best_first,
    main_measure,
    overall,
    with_kept,
    with_notes,
)
from rankeval.comparison.result import Comparison
from rankeval.comparison.seeds import seed_notes
from rankeval.comparison.unjudged import with_bounds, with_reading
from rankeval.errors import InvalidInput, NotedWarning, warn
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import labels_of
from rankeval.evaluation.result import by_name
from rankeval.significance.catalogue import FEWEST_QUERIES
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    FOLD_TESTS,
    TESTS,
    ClaimName,
    Floats,
    Rng,
    corrections_of_p_values,
    refuse_undirected,
)
from rankeval.significance.paired import REPEATS_RECOMMENDED, widened
from rankeval.significance.pairs import Pairs
from rankeval.significance.running import few_query_notes, liberal_notes
from rankeval.significance.strata import WEIGHTS, Strata, weights_of_collections
from rankeval.significance.weighted import effective_number


@explained
def compare(
    systems: Systems,
    *,
    baseline: str | None = None,
    measures: Measures | None = None,
    test: str = "t",
    correction: str = "holm",
    family: str = "all",
    alpha: float = 0.05,
    claim: ClaimName = "difference",
    margin: float = 0.0,
    unseen: int = 1,
    by: Any = None,
    collection_weights: str = "collections",
    unpaired: str = "error",
    unjudged: str | None = None,
    n_resamples: int = 9999,
    rng: Rng = 0,
    lower_is_better: LowerIsBetter = None,
    unit: str = "query",
    groups: Any = None,
) -> Comparison:
    """Compare systems query by query, and correct for the number of comparisons made.

    Parameters
    ----------
    systems : mapping of str to Evaluation or DataFrame
        Name -> scores of shape (n_queries, n_measures). A frame, also of polars or Arrow, has a
        column per measure, and the query ids as its index or as a column ``qid``. For several
        collections: name -> {collection: scores}, or frames with an index (collection, qid) or a
        column ``collection``. The systems are then compared on each collection and over all.
        Evaluations with ``query_weight`` are compared by their weighted means, on one collection,
        if all have the same weights; queries of weight 0 are left out.
    baseline : str, optional
        The system that the others are compared with. By default all pairs are compared.
    measures : str, Measure or sequence of them, optional
        By default all means and geometric means that the systems share. Sums such as NumRel are
        compared only if you name them, and so are the columns relevant, retrieved, tied, judged and
        weight of frames. Geometric means are compared on their log scale.
    test : str, default "t"
        "t", "randomization", "bootstrap" (symmetric studentised), "wilcoxon", "wilcoxon_pratt",
        "sign", "bootstrap_shift", "bootstrap_percentile", "bootstrap_bca"; or another one declared
        in ``rankeval.significance.TESTS``. The first three are defined for weighted queries.
    correction : str, default "holm"
        "holm", "bonferroni", "bh" and "by" (false discovery rate only), "max_t" (sign flips joint
        over the family), "tukey" (randomised, all pairs only), "none"; or another one declared in
        ``rankeval.significance.CORRECTIONS``. An adjusted p is never below its raw one.
    family : {"all", "measure"}, default "all"
        The comparisons to correct for: all that are made here, or those within one measure.
    alpha : float, default 0.05
        The level of the tests; the intervals have the level 1 - alpha.
    claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
        What to show. "better": the gain is above the margin. "not_worse": a loss is smaller than
        the margin (non-inferiority). "equivalent": neither gain nor loss reaches the margin (two
        one-sided tests at alpha each; the interval of each pair alone is then a 1 - 2 alpha one,
        and the caption has the level of the adjusted ones). A gain is a difference turned so that
        positive is better. Tests of claims other than "difference" are one-sided, at alpha.
        "better" and "not_worse" have a direction, so they need a baseline.
    margin : float, default 0
        Of the claim, in units of the measure; needed for "not_worse" and "equivalent".
    unseen : int, default 1
        Number of queries that "not_worse" and "equivalent" add to those seen, in each collection or
        slice. Each counts as if it had lost all that a query can lose (for the other side of
        "equivalent": gained): the declared range of the measure, or the greatest score of the
        baseline if there is no range. Without them, the test would assume that no query is broken
        which is not among those seen. With ``groups`` these are groups. 0 is the plain test, for
        comparison with other programs.
    by : Series or mapping by query id, DataFrame, array or str, optional
        An attribute of the queries, as in `Evaluation.slices`: the systems are then also compared
        on each of its values with 5 queries or more, and ``interaction`` tests whether the
        differences depend on it. One collection only. Queries without a value are the slice
        ``nan``, which is tested and corrected for like any other; to leave them out, compare
        ``evaluation.subset(attribute.notna())`` of each system.
    collection_weights : {"collections", "queries", "inverse_variance"}, default "collections"
        The weights of several collections in the rows over all: equal, by number of queries, or by
        number of queries over the mean variance of the systems' scores within a query.
    unpaired : {"error", "skip"}, default "error"
        If some systems lack a query or a collection, "error" refuses and "skip" compares on those
        common to all. To score a missing query as an empty ranking, use `rankeval.evaluate`.
    unjudged : {"skip"}, optional
        "skip" compares a second time, without the unjudged documents (condensed lists):
        ``condensed`` is that table. Evaluations of qrels and runs only. Condensed lists favour
        systems that found many unjudged documents.
    n_resamples : int, default 9999
        Number of resamples, for tests and corrections that resample.
    rng : int, Generator or None, default 0
        Seed; the one used is recorded.
    lower_is_better : str, sequence of str, or mapping of str to bool, optional
        Columns in which less is better; in a mapping, False says that more is better. A measure has
        its own direction. A column named by latency, time, cost, price, bytes or memory, such as
        "latency_ms" or "cost per 1000", has one too: the headline then calls a system faster,
        cheaper or smaller. All other columns show a difference only. They have no best system and
        no ranks, and one-sided claims are refused.
    unit : str, default "query"
        The noun, in the singular, for a row of the scores. For an online experiment it is "user",
        "session" or "impression": headline, tables, figures and notes then speak of users, and the
        ids of a frame may be a column ``user`` or ``user_id``. Take the unit that the systems were
        assigned to: rows of one user are not an independent sample. Columns such as ``n_queries``
        keep their names.
    groups : Series or mapping by query id, DataFrame or array, optional
        The group of each query, in the forms of ``by``: its conversation, the need that it
        paraphrases, the document that it is about. Queries of a group are not independent. So
        tests, corrections and intervals are over groups: scores are the means of each group, and
        ``mean_baseline``, ``mean_system`` and ``difference`` are means over groups, each group
        counting once. They equal the means over queries if all groups have one size; otherwise a
        note says how far apart they are. ``n_queries`` is the number of groups;
        ``settings.n_members`` has that of the queries. Wins, ties, losses and slices stay those of
        queries. A name such as "conversation" is the noun in sentences, and a note has the
        intraclass correlation. Groups of several collections are apart. If queries have weights, a
        group has the sum of theirs.

    Returns
    -------
    Comparison
        Its notes warn the reader, for instance if there are too few resamples for so large a
        family, or if the share of judged documents is not the same for both systems: then
        ``bounds`` has more.

    Raises
    ------
    ConventionMismatch
        If conventions or judgments of the evaluations differ.
    QueryIdError
        If query ids are repeated, missing, or not the same in all systems, or a query has no group.
    InvalidInput
        If there are fewer than two systems, queries or groups, each query is a group of its own, a
        score is not finite, weights of queries differ between systems, one query carries more than
        half of the weight, the test is not defined for weights, a claim that has a direction has no
        baseline or a column whose direction is not known, or ``unjudged="skip"`` is given for
        scores without judgments.
    UnknownName
        If a baseline, measure, test or setting does not exist.

    Notes
    -----
    Over several collections, the difference is the weighted mean of those on each, and the test is a randomisation test
    with signs flipped within collections, whatever ``test`` is; it speaks of these collections only. The rows over all
    are one family, and the rows of the collections or slices together are another one. The interaction is tested by
    Welch's statistic under permuted labels, and corrected by Holm.

    A weighted mean is a ratio, and its standard error is linearised (Cochran 1977, Sampling Techniques, chapter 6).
    Student's t has Satterthwaite's degrees of freedom, the randomisation test flips the signs of weight times
    difference, and the bootstrap draws queries with their weights. The effect size is by Kish's effective number of
    queries, ``(sum w)^2 / sum w^2``, and the detectable difference by the degrees of freedom.

    Examples
    --------
    >>> import pandas as pd
    >>> bm25 = pd.DataFrame({"AP": [0.2, 0.4, 0.6]}, index=["q1", "q2", "q3"])
    >>> ltr = pd.DataFrame({"AP": [0.9, 0.5, 0.4]}, index=["q3", "q2", "q1"])
    >>> row = compare({"bm25": bm25, "ltr": ltr}, baseline="bm25").table.iloc[0]
    >>> print(f"{row.difference:.2f} [{row.ci_low:.2f}, {row.ci_high:.2f}], p = {row.p_adjusted:.3f}")
    0.20 [-0.05, 0.45], p = 0.074
    """
    settings = ComparisonSettings(
        alpha=alpha, n_resamples=n_resamples, rng=rng, claim=claim, margin=margin, unseen=unseen
    )
    chosen("test", test, TESTS)
    chosen("value of collection_weights", collection_weights, WEIGHTS)
    chosen("correction", correction, CORRECTIONS)
    settings = replace(settings, test=test, correction=correction, family=family, baseline=baseline)
    settings = replace(
        settings, collection_weights=collection_weights, lower_is_better=lower_is_better, unit=unit
    )
    _check_correction(settings)
    refuse_undirected(claim, baseline)
    made = partial(_compared, unpaired=unpaired, groups=groups)
    compared = made(systems, settings, measures, by=by)
    for name, less in settings.lower_is_better.items():
        chosen("compared column", name, [*compared.table["measure"]])
        require(less is True or less is False, f"lower_is_better[{name!r}]", less, "True or False")
        is_other = settings.direction(name).sign != (-1 if less else 1)
        problem = f"lower_is_better: {name} is a measure, and declares what is better"
        refuse((is_other, problem, "leave it out"))
    # Of collections each is tested, so the smallest counts; the note stays with the result.
    rows = compared.table if compared.settings.collection_weights else overall(compared).table
    n, declared = int(rows["n_queries"].min()), CORRECTIONS[correction]
    promised = compared.settings.n_comparisons if n < FEWEST_QUERIES and declared.familywise else 1
    resolved = compared.settings
    for note in (
        *liberal_notes(TESTS[test], n, resolved),
        *few_query_notes(declared, promised, n, resolved),
    ):
        warn(note, NotedWarning)
    plain = replace(settings, correction="none", claim="difference", margin=0.0)
    by_t = replace(plain, test="t", n_resamples=1, rng=0)

    def of_leaders(measure: str, second: str) -> Comparison:
        return made(systems, replace(plain, baseline=second), measure)

    def by_reading(read: Systems, names: list[str]) -> Comparison:
        return made(read, by_t, names)

    compared = with_bounds(with_first_two(compared, of_leaders), systems, by_reading)
    compared = with_notes(compared, *seed_notes(compared))
    if unjudged is None:
        return compared
    chosen("value of unjudged", unjudged, ("skip",))
    condensed = made(with_reading(systems, "skipped"), settings, measures, by=by)
    return replace(compared, condensed=condensed.table)


def _check_correction(settings: ComparisonSettings) -> None:
    name, needed = settings.correction, {"claim": "difference", "baseline": None}
    for argument, value in needed.items() if CORRECTIONS[name].all_pairs_only else ():
        setting = getattr(settings, argument)
        if setting != value:
            raise InvalidInput(
                argument=argument,
                found=repr(setting),
                expected=f"{value!r}, since {name} tests all pairs for a difference",
                remedy='or use correction="max_t"',
            )


def _compared(
    systems: Systems,
    settings: ComparisonSettings,
    measures: Measures | None,
    *,
    unpaired: str,
    groups: Any,
    by: Any = None,
) -> Comparison:
    shared = shared_scores(
        systems,
        measures,
        unpaired=unpaired,
        baseline=settings.baseline,
        unit=settings.unit,
        weighted=True,
    )
    is_defined = shared.weights is None or TESTS[settings.test].weighted is not None
    able = few([name for name, declared in TESTS.items() if declared.weighted is not None])
    undefined = f"{settings.test!r} is not defined for weighted {settings.units}"
    refuse((not is_defined, undefined, f"choose one of {able}"), argument="test")
    if CLAIMS[settings.claim].sides == 1:
        settings.must_know_directions(shared.measures, "one-sided claims have a direction")
    design = Design(
        shared.systems,
        shared.measures,
        settings.baseline,
        settings.family,
        settings.lower_is_better,
    )
    scores, places, weights = shared.scores, shared.places, shared.weights
    strata, grouped = None, None
    size = count(len(scores), settings.unit)
    too_few = f"a paired test needs at least 2 {settings.units}, found {size}"
    refuse((len(scores) < 2, too_few))
    inputs = cast("Mapping[str, Scores]", shared.inputs)
    notes = [*shared.notes, *settings.direction_notes(shared.measures)]
    if groups is not None:
        grouped = query_groups(
            groups, shared.queries, settings.unit, systems=inputs, collections=places
        )
        scores, weights, places = grouped.apart(scores, places, weights)
        settings = replace(settings, **grouped.settings)
        notes += grouped.notes(shared, design)
    d: Floats | Pairs = design.columns(scores)
    if places:
        mixed = "slices within several collections are not compared: an attribute may mean another thing in each"
        refuse((by is not None, mixed, "compare slices on one collection at a time"), argument="by")
        parts, how = list(places.values()), settings.collection_weights
        shares = weights_of_collections(how, scores, parts)
        notes = [*collection_notes(places, shares, how, settings.unit), *notes]
        strata = Strata.together(parts, shares)
        d = design.differences(scores)
    else:
        settings = replace(settings, collection_weights="")
    if weights is not None:
        settings = replace(settings, n_effective=effective_number(weights))
        notes += weight_notes(weights, shared.queries, settings.n_effective, settings)
        strata = Strata.side_by_side([len(weights)], weights)
    compared = conclude(
        design,
        scores,
        d,
        settings,
        evaluations=shared.inputs,
        n_queries=len(scores),
        notes=notes,
        strata=strata,
    )
    of_queries = shared.places
    if places:
        compared = with_parts(compared, design, scores, places, COLLECTION)
    elif by is not None:
        name, of_queries = slices_by(by, shared.queries, inputs, settings.row)
        places, cut = of_queries, ""
        if grouped:
            scores, weights, places = grouped.apart(shared.scores, of_queries, shared.weights)
            cut = grouped.cut(of_queries)
        compared = with_parts(compared, design, scores, places, name, cut=cut, weights=weights)
    if grouped is None:
        return compared
    return with_kept(counted_by_row(compared, design, shared.scores, of_queries), groups=grouped)


def with_first_two(compared: Comparison, again: Callable[[str, str], Comparison]) -> Comparison:
    """Add the row of the two systems with the best means, unless one of them is the baseline.

    That a pair is chosen by its means makes no false claim more likely: systems whose means lie
    beside each other differ less than others. So it is tested without a correction.
    """
    leaders = list(best_first(compared))[:2]
    if compared.settings.baseline in (None, *leaders) or not leaders:
        return compared
    first, second = leaders
    rows = overall(again(main_measure(compared), second)).table
    return with_kept(compared, first_two=rows[rows["system"] == first].reset_index(drop=True))


DEFAULT_TEST = "corrected_resampled_t"
OPTIONS = ("correction", "family", "alpha", "claim", "margin")
"""The options of a comparison of algorithms beside baseline, measures and test."""


def compare_models(evaluations: Mapping[str, Evaluation], **options: Any) -> Comparison:
    """Compare fitted models by the queries they held out."""
    compared = compare(evaluations, **options)
    if any(evaluation.facts.n_folds > 1 for evaluation in evaluations.values()):
        return compared
    return with_notes(
        compared, "these are the models fitted on one training part, not the algorithms behind them"
    )


def compare_algorithms(
    folds: Mapping[str, pd.DataFrame],
    evaluations: Mapping[str, Evaluation],
    *,
    sizes: Sequence[tuple[int, int]],
    baseline: str | None = None,
    measures: Measures | None = None,
    test: str = DEFAULT_TEST,
    **options: Any,
) -> Comparison:
    """Compare algorithms by the corrected resampled t test over the same folds."""
    if answer := gone(options, OPTIONS):
        raise answer
    for name in options:
        chosen("option for algorithms", name, (*OPTIONS, "baseline", "measures", "test"))
    plain = (
        f"algorithms are compared by the {DEFAULT_TEST}, not by test={test!r}: scores of folds overlap and are not a "
        "sample, so that a plain test over them claims a difference in half of the cases without one. Leave test out, "
        'or ask question="models"'
    )
    found = f"found {len(folds)} on {len(sizes)}"
    few_folds = f"algorithms are at least two estimators on at least 2 folds, {found}"
    is_few = len(folds) < 2 or len(sizes) < 2
    refuse(
        (test not in FOLD_TESTS, plain),
        (is_few, few_folds, 'for a single hold-out, use question="models"'),
    )
    settings = ComparisonSettings(test=test, rng=0, baseline=baseline, **options)
    chosen("correction of tests over folds", settings.correction, corrections_of_p_values())
    refuse_undirected(settings.claim, baseline)
    refuse_other_conventions(evaluations)
    evaluation = next(iter(evaluations.values()))
    frames = folds.values()
    labels = []
    for label, measure in by_name(evaluation).items():
        if measure.family.aggregate == "mean" and all(label in frame for frame in frames):
            labels.append(str(label))
    refuse((not labels, "no measure here is a mean over queries; folds are compared by such means"))
    if measures is not None:
        labels = labels_of(measures, labels, "measure that is a mean over queries")
    design = Design(list(folds), labels, baseline, settings.family)
    blocks = [frame[labels].to_numpy(np.float64) for frame in frames]
    scores = np.stack(blocks, axis=1)
    ratio = float(np.mean([n_test / n_train for n_train, n_test in sizes]))
    n_queries = evaluation.n_queries
    repeats = sum(n_test for _, n_test in sizes) / n_queries
    notes = _notes(len(sizes), ratio, repeats)
    if any(own.facts.seeds for own in evaluations.values()):
        notes.append("folds are means over seeds, so what seeds move is part of how folds differ")
    d = widened(design.differences(scores), ratio)
    compared = conclude(
        design, scores, d, settings, evaluations=evaluations, n_queries=n_queries, notes=notes
    )
    compared = with_kept(compared, folds=FoldScores(design.systems, design.measures, scores, ratio))
    again = partial(
        compare_algorithms, folds, evaluations, sizes=sizes, correction="none", alpha=settings.alpha
    )
    return with_first_two(
        compared, lambda measure, second: again(measures=measure, baseline=second, test=test)
    )


def _notes(n_folds: int, ratio: float, repeats: float) -> list[str]:
    about = f"over {n_folds} folds with {ratio:.3g} test queries for each training query"
    notes = [f"{about}; means, effect sizes, wins, ties and losses are those of folds"]
    if repeats < REPEATS_RECOMMENDED:
        notes.append(
            f"each query was held out {repeats:.3g} times on average: {REPEATS_RECOMMENDED} repeats or more are "
            "recommended, RepeatedQueryKFold(5, n_repeats=10), since with fewer the test misses differences"
        )
    return notes
