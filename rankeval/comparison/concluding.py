"""Test, correct and wrap: the last steps of every comparison, over all queries and for parts of them.

Parts are collections or slices. The rows over all queries are the primary question and a family of
their own. The rows of the parts are a second family, whichever part they are of: who reads ten
slices makes ten comparisons. So neither makes the other's harder::

    collection   system    family
    all          ltr       1        together
    all          bert      1
    news         ltr       2        each by itself
    news         bert      2
    web          ltr       2
    web          bert      2

At the end stands the comparison of a single system, which has nothing to test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from rankeval._checks import count, refuse
from rankeval.comparison.design import (
    COLUMNS,
    CROSSED,
    MEANS,
    TOGETHER,
    Design,
    table_without_rows,
)
from rankeval.comparison.groups import Groups
from rankeval.comparison.inputs import Systems
from rankeval.comparison.record import ComparisonSettings, parted_notes, with_notes, with_settings
from rankeval.comparison.result import Comparison
from rankeval.evaluation import Evaluation
from rankeval.evaluation.by_query import LEAST_QUERIES
from rankeval.evaluation.lacking import listed
from rankeval.join.flat import Ints
from rankeval.significance.columns import deviation
from rankeval.significance.declarations import (
    CLAIMS,
    CORRECTIONS,
    Floats,
    PairedResult,
    Settings,
    all_tests,
    joined,
)
from rankeval.significance.multiple import holm
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
from rankeval.significance.strata import (
    Strata,
    apart,
    interaction,
    stratified,
    stratified_test,
    weighted_test,
)
from rankeval.significance.weighted import MOST_SHARE, largest_share, linearised, relative


def conclude(
    design: Design,
    scores: Floats,
    d: Floats | Pairs,
    settings: ComparisonSettings,
    *,
    evaluations: Systems,
    n_queries: int,
    notes: Sequence[str],
    strata: Strata | None = None,
) -> Comparison:
    """Test, correct and wrap, for queries and for folds alike.

    ``scores`` have the shape (n_rows, n_systems, n_measures), by query or fold; ``d`` are the
    columns to test, their differences, which are widened for folds that overlap. With ``strata``
    means are over collections.
    """
    size, n_pairs = design.size, len(design.pairs)
    test, correction = all_tests()[settings.test], CORRECTIONS[settings.correction]
    n_strata, n, seen = 1, len(d), float(len(d))
    if strata is not None:
        tried = strata.with_unseen(settings.n_unseen)
        is_mean = bool(settings.collection_weights)
        test = stratified_test(tried) if is_mean else weighted_test(tried, test)
        correction = stratified(tried, correction, n_pairs)
        n_strata, n, seen = len(strata.parts), strata.size_by_degrees, strata.sizes.sum()
    signs, losses = _gain_signs(design, settings), design.greatest_losses(scores)
    gains = as_pairs(d).turned(signs)
    gains = with_unseen(gains, losses, settings, n_strata=n_strata, seen=seen)
    tested = run(test, gains, with_family_level(settings, correction, size))
    adjusted = adjust_by_family(correction, tested, gains, scores, design.pairs, size, settings)
    spread = _spread(gains, strata)
    detectable = family_detectable(test, correction, size, n, spread, settings, losses)
    raw, family = _turned(tested, signs), _turned(adjusted, signs)
    table = _table(design, scores, n_queries, raw, family, detectable, strata)
    all_notes = [*tested.notes, *few_query_notes(correction, size, n_queries, settings), *notes]
    # Over collections, a joint correction has the test's own patterns.
    own = correction if settings.collection_weights else CORRECTIONS[settings.correction]
    all_notes += family_notes(test, own, size)
    all_notes += resolution_notes(test, correction, size, len(d), settings)
    settings = replace(settings, n_comparisons=size)
    compared = Comparison(table, evaluations, settings, tuple(all_notes))
    return with_notes(compared, *parted_notes(compared))


def _spread(gains: Pairs, strata: Strata | None) -> Floats:
    """Return the deviation of each column that belongs to the error of its mean."""
    if strata is not None:
        n_columns = gains.shape[1]
        return np.asarray(strata.error(gains[:], n_columns) * np.sqrt(strata.size_by_degrees))
    (spread,) = gains.summed(lambda columns: (deviation(columns),))
    return np.asarray(spread)


def _table(
    design: Design,
    scores: Floats,
    n_queries: int,
    tested: PairedResult,
    adjusted: PairedResult,
    detectable: Floats,
    strata: Strata | None,
) -> pd.DataFrame:
    """Return `Design.table` of scores, or of weighed ones: weights change no win."""
    if strata is None:
        return design.table(scores, n_queries, tested, adjusted, detectable)
    weighed = scores * strata.weights[:, None]
    table = design.table(weighed, n_queries, tested, adjusted, detectable)
    effect = strata.effect(design.differences(scores))
    return table.assign(effect_size=effect, **design.outcomes(scores))


def _gain_signs(design: Design, settings: Settings) -> Floats:
    """Return the sign of each column: claims are about gains, differences about means."""
    return np.ones(design.directions.shape) if settings.claim == "difference" else design.directions


def _turned(result: PairedResult, signs: Floats) -> PairedResult:
    low = np.where(signs > 0, result.ci_low, -result.ci_high)
    high = np.where(signs > 0, result.ci_high, -result.ci_low)
    return replace(result, ci_low=low, ci_high=high)


def with_parts(
    compared: Comparison,
    design: Design,
    scores: Floats,
    places: Mapping[str, Ints],
    name: str,
    *,
    cut: str = "",
    weights: Floats | None = None,
) -> Comparison:
    """Add rows for each part to a comparison over all queries, and test whether the parts differ.

    ``places`` are those of the queries of each part, and ``name`` is the first column. If the parts
    are not independent samples, ``cut`` says why, and whether they differ is not tested.
    """
    # In the order of the queries: which patterns are drawn for a part must not depend on its name.
    by_place = sorted(places.items(), key=lambda item: int(item[1][0]))
    own = np.ones(len(scores)) if weights is None else weights
    sized = {part: rows for part, rows in by_place if is_tested(own[rows])}
    # A part in which no score changed has no claim to err in, so it needs no share of the level.
    is_counted = CLAIMS[compared.settings.claim].harmless
    large = {part: rows for part, rows in sized.items() if is_counted or is_changed(scores[rows])}
    tables, of_parts = _tested(compared.settings, design, scores, large, own) if large else ({}, [])
    of_parts = [f"by {name}: {note}" for note in of_parts if note not in compared.notes]
    small = {part: rows for part, rows in places.items() if part not in sized}
    same = {part: rows for part, rows in places.items() if part not in small | large}
    for part, places_of_part in (small | same).items():
        shares = relative(own[places_of_part])[:, None, None]
        tables[part] = _listed(design, scores[places_of_part] * shares)
    rows = [compared.table.assign(**{name: TOGETHER})]
    rows += [tables[part].assign(**{name: part}) for part in places]
    table = pd.concat(rows, ignore_index=True)[[name, *COLUMNS]]
    notes: list[str] = []
    crossed, unit = None, compared.settings.unit
    if len(sized) > 1 and cut:
        notes.append(f"that a difference depends on the {name} is not tested: {cut}")
    elif len(sized) > 1:
        plain = scores if weights is None else linearised(scores, weights)
        crossed = _interaction(design, plain, list(sized.values()), compared.settings)
        n, n_shown = len(crossed), int((crossed["p_adjusted"] <= compared.alpha).sum())
        note = f"that a difference depends on the {name} is shown for {n_shown} of {count(n, 'comparison')}"
        note += " (Welch's statistic under permuted labels, Holm)"
        if same:
            note += f"; scores changed in {listed(sorted(large))} alone"
        elif n_shown < n:
            note += f"; elsewhere, rows that differ by {name} may differ by chance"
        notes += [note] if large else []
    fewer = f"with fewer than {LEAST_QUERIES} {compared.settings.units}"
    if weights is not None:
        fewer += f" or with most of the weight in one {unit}"
    for reason, untested in ((fewer, small), (f"equal on every {unit}", same)):
        sizes = ", ".join(f"{part} ({count(len(rows), unit)})" for part, rows in untested.items())
        notes += [f"listed by {name} and not tested, {reason}: {sizes}"] if untested else []
    whole = replace(with_settings(compared, grouped=name), table=table, interaction=crossed)
    return with_notes(whole, *notes, *of_parts, *parted_notes(whole))


def is_tested(weights: Floats) -> bool:
    """Say whether a part whose queries have these weights is tested by itself."""
    return len(weights) >= LEAST_QUERIES and largest_share(weights) <= MOST_SHARE


def is_changed(scores: Floats) -> bool:
    """Say whether any score of these queries differs between systems."""
    return bool((scores != scores[:, :1]).any())


def _tested(
    settings: ComparisonSettings,
    design: Design,
    scores: Floats,
    places: Mapping[str, Ints],
    weights: Floats,
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    test, correction = all_tests()[settings.test], CORRECTIONS[settings.correction]
    parts, pairs, signs = list(places.values()), design.pairs, _gain_signs(design, settings)
    losses, n_unseen, n_parts = design.greatest_losses(scores), settings.n_unseen, len(parts)
    sizes = [len(rows) for rows in parts]
    alone = [Strata.side_by_side([len(rows)], weights[rows]) for rows in parts]
    gains = []
    for rows, own in zip(parts, alone, strict=True):
        of_part = as_pairs(design.differences(scores[rows]) * signs)
        gains.append(with_unseen(of_part, losses, settings, seen=own.sizes))
    block, size = apart(scores, parts), design.size * n_parts
    strata = Strata.side_by_side(sizes, weights[np.concatenate(parts)]).with_unseen(n_unseen)
    joint = stratified(strata, correction, len(pairs))
    # The number of queries of each column; only one of three equal fields is read.
    seen = [PairedResult(*np.full((3, len(signs)), own.sizes)) for own in alone]
    columns = with_unseen(
        as_pairs(design.differences(block) * _across(signs, design, n_parts)),
        _across(losses, design, n_parts),
        settings,
        n_strata=n_parts,
        seen=_interleaved(seen, design).p_value,
    )
    leveled = with_family_level(settings, joint, size)
    results = []
    for d, own in zip(gains, alone, strict=True):
        results.append(run(weighted_test(own.with_unseen(n_unseen), test), d, leveled))
    # The notes are those of the smallest part.
    smallest = int(np.argmin(sizes))
    tested, least = _interleaved(results, design), sizes[smallest]
    adjusted = adjust_by_family(joint, tested, columns, block, pairs, size, settings)
    tables = {}
    for place, (part, rows) in enumerate(places.items()):
        raw = _turned(_of_part(tested, place, design, n_parts), signs)
        family = _turned(_of_part(adjusted, place, design, n_parts), signs)
        own = alone[place]
        spread, n = _spread(gains[place], own), own.size_by_degrees
        detectable = family_detectable(test, correction, size, n, spread, settings, losses)
        tables[part] = _table(design, scores[rows], len(rows), raw, family, detectable, own)
    notes = [*results[smallest].notes, *family_notes(test, correction, size)]
    notes += resolution_notes(test, correction, size, least, settings)
    return tables, [*notes, *few_query_notes(correction, size, least, settings)]


def counted_by_row(
    compared: Comparison, design: Design, scores: Floats, places: Mapping[str, Ints]
) -> Comparison:
    """Count wins, ties and losses by query in a comparison that tested groups.

    ``places`` are the places of the queries of its parts.
    """
    # Doubled, since a part may have one query, and columns of differences take two.
    parts = [np.tile(rows, 2) for rows in (np.arange(len(scores)), *places.values())]
    counts = pd.concat([pd.DataFrame(design.outcomes(scores[rows])) // 2 for rows in parts])
    columns = {str(name): counts[name].to_numpy() for name in counts}
    return replace(compared, table=compared.table.assign(**columns))


def _interleaved(results: list[PairedResult], design: Design) -> PairedResult:
    """Join results of parts: (parts, measures, pairs) -> (measures, parts, pairs)."""
    shape = len(results), len(design.measures), -1
    return joined(results, lambda values: np.reshape(values, shape).transpose(1, 0, 2).ravel())


def _of_part(result: PairedResult, place: int, design: Design, n_parts: int) -> PairedResult:
    shape = len(design.measures), n_parts, -1
    return joined([result], lambda values: np.reshape(values[0], shape)[:, place].ravel())


def _across(signs: Floats, design: Design, n_parts: int) -> Floats:
    """Repeat the sign of each measure for all parts."""
    by_measure = signs.reshape(len(design.measures), -1)
    return np.tile(by_measure, n_parts).ravel()


def _listed(design: Design, scores: Floats) -> pd.DataFrame:
    """Return the rows of a part with too few queries to be tested: means and counts, and nan."""
    doubled = np.concatenate([scores, scores])  # a table takes two queries or more
    nothing = np.full(design.directions.shape, np.nan)
    untested = PairedResult(nothing, nothing, nothing)
    table = design.table(doubled, len(scores), untested, untested, nothing)
    halved = {column: table[column] // 2 for column in ("wins", "ties", "losses")}
    return table.assign(effect_size=np.nan, **halved)


def _interaction(
    design: Design, scores: Floats, parts: list[Ints], settings: Settings
) -> pd.DataFrame:
    tested = interaction(design.differences(scores), parts, settings)
    families = tested.p_value.reshape(-1, design.size)
    columns = {
        **design.names,
        "statistic": tested.statistic,
        "p_value": tested.p_value,
        "p_adjusted": np.concatenate([holm(family) for family in families]),
    }
    return pd.DataFrame(columns, columns=CROSSED)


def means_of(
    evaluations: Mapping[str, Evaluation], level: float = 0.95, groups: Groups | None = None
) -> pd.DataFrame:
    """Return the aggregate of each measure and system; means have Student's interval over queries.

    With groups, means and intervals are over groups. Another aggregate than the mean, such as
    gm_AP, has nan limits.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures="RR")
    >>> means_of({"final": ev}).round(2).values.tolist()
    [['RR', 'final', 3, 0.83, 0.12, 1.0]]
    """
    rows = []
    for system, evaluation in evaluations.items():
        own = evaluation
        if groups is not None:  # a group counts as a query
            queries, scores = np.arange(len(groups.sizes)), groups.means(own.scores)
            own = replace(own, queries=queries, scores=scores)
        names, n = list(own.measure_names), own.n_queries
        values, ends = own.aggregate(), own.ci(level)
        limits = ends[["ci_low", "ci_high"]].reindex(names).to_numpy(dtype=np.float64)
        for place, label in enumerate(names):
            rows.append((place, label, system, n, float(values[label]), *limits[place].tolist()))
    table = pd.DataFrame(rows, columns=["place", *MEANS])
    return table.sort_values("place", kind="stable", ignore_index=True).drop(columns="place")


def comparison_of_one(
    name: str, evaluation: Evaluation, *, alpha: float = 0.05, groups: Groups | None = None
) -> Comparison:
    """Return one system as a comparison without pairs: an empty table, and its mean with an interval.

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 0, 1, 1, 0], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures="RR")
    >>> comparison_of_one("final", ev).headline
    'final: RR 0.8333 [95% interval 0.1162 to 1.0000], on 3 queries.'
    """
    refuse((not evaluation.n_queries, f"{name!r} has no scored query, so it has no mean"))
    primary = evaluation.measure_names[0]
    settings = ComparisonSettings(alpha=alpha, rng=0, correction="none", primary=primary)
    settings = settings if groups is None else replace(settings, **groups.settings)
    means = means_of({name: evaluation}, 1 - alpha, groups)
    return Comparison(table_without_rows(), {name: evaluation}, settings, means=means)
