"""Rows for parts of the queries: collections or slices, each tested by itself, all corrected together.

The rows over all queries are the primary question and a family of their own. The rows of the parts are a second
family, whichever part they are of: who reads ten slices makes ten comparisons. So neither makes the other's harder::

    collection   system    family
    all          ltr       1        together
    all          bert      1
    news         ltr       2        each by itself
    news         bert      2
    web          ltr       2
    web          bert      2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.comparison.concluding import gain_signs, turned
from rankeval.comparison.design import COLUMNS, CROSSED, LEAST_QUERIES, TOGETHER, Design
from rankeval.comparison.record import PARTED
from rankeval.comparison.result import Comparison
from rankeval.join.flat import Ints
from rankeval.significance.columns import deviation
from rankeval.significance.declarations import CORRECTIONS, Floats, PairedResult, Settings, all_tests
from rankeval.significance.multiple import holm
from rankeval.significance.pairs import as_pairs
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
from rankeval.significance.strata import Strata, apart, interaction, stratified


def with_parts(
    compared: Comparison, design: Design, scores: Floats, places: Mapping[str, Ints], name: str, settings: Settings
) -> Comparison:
    """Add rows for each part to a comparison over all queries, and test whether the parts differ.

    Parameters
    ----------
    compared : Comparison
        The comparison over all queries.
    design : Design
        Its comparisons.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        Scores of all queries.
    places : mapping of str to ndarray of int
        Part -> the places of its queries.
    name : str
        The name of the parts, and of the first column.
    settings : Settings
        As the comparison was made; rng is the seed.

    Returns
    -------
    Comparison
        With the interaction, unless fewer than two parts are tested.
    """
    compared = replace(compared, grouped=name)
    # In the order of the queries: which patterns are drawn for a part must not depend on its name.
    large = {part: rows for part, rows in _by_place(places) if len(rows) >= LEAST_QUERIES}
    tables, said = _tested(compared, design, scores, large, settings) if large else ({}, [])
    tables |= {part: _listed(design, scores[rows]) for part, rows in places.items() if part not in large}
    rows = {TOGETHER: compared.table, **{part: tables[part] for part in places}}
    table = pd.concat([rows[part].assign(**{name: part}) for part in rows], ignore_index=True)[[name, *COLUMNS]]
    crossed = _interaction(design, scores, list(large.values()), settings) if len(large) > 1 else None
    found = replace(compared, table=table, interaction=crossed)
    notes = [*_interaction_notes(crossed, name, compared.alpha), *_small_notes(places, large, name), *said]
    return found.with_notes(*notes, *([PARTED] if found.parted.any() else []))


def _by_place(places: Mapping[str, Ints]) -> list[tuple[str, Ints]]:
    return sorted(places.items(), key=lambda item: int(item[1][0]))


def _tested(
    compared: Comparison, design: Design, scores: Floats, places: Mapping[str, Ints], settings: Settings
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return the table of each part, corrected over all of them, and notes."""
    test, correction = all_tests()[compared.test], CORRECTIONS[compared.correction]
    parts, pairs, signs = list(places.values()), design.pairs, gain_signs(design, settings)
    losses, n_unseen = design.greatest_losses(scores), settings.n_unseen
    gains = [with_unseen(as_pairs(design.differences(scores[rows]) * signs), losses, settings) for rows in parts]

    block, size = apart(scores, parts), design.size * len(parts)
    strata = Strata.side_by_side([len(rows) for rows in parts]).with_unseen(n_unseen)
    joint = stratified(strata, correction, len(pairs))
    columns = with_unseen(
        as_pairs(design.differences(block) * _across(signs, design, len(parts))),
        _across(losses, design, len(parts)),
        settings,
        n_strata=len(parts),
        seen=_interleaved([PairedResult(*np.full((3, len(signs)), len(rows))) for rows in parts], design).p_value,
    )
    results = [run(test, d, with_family_level(settings, joint, size)) for d in gains]
    # The notes are those of the smallest part.
    tested = replace(_interleaved(results, design), notes=results[int(np.argmin([len(d) for d in gains]))].notes)
    adjusted = adjust_by_family(joint, tested, columns, block, pairs, size, settings)
    tables = {}
    for place, (part, rows) in enumerate(places.items()):
        raw, family = (turned(_of_part(result, place, design, len(parts)), signs) for result in (tested, adjusted))
        spread = deviation(gains[place][:])
        detectable = family_detectable(test, correction, size, len(rows), spread, settings, losses)
        tables[part] = design.table(scores[rows], len(rows), raw, family, detectable)
    limits = resolution_notes(test, correction, size, min(map(len, parts)), settings)
    limits += few_query_notes(correction, size, min(map(len, parts)), settings)
    notes = [*tested.notes, *family_notes(test, correction, size), *limits]
    return tables, [f"by {compared.grouped}: {note}" for note in notes if note not in compared.notes]


def _interleaved(results: list[PairedResult], design: Design) -> PairedResult:
    """Join results of parts: (parts, measures, pairs) -> (measures, parts, pairs)."""

    def joined(values: list[Floats]) -> Floats:
        stacked = np.reshape(values, (len(values), len(design.measures), -1))
        return stacked.transpose(1, 0, 2).ravel()

    ends = [each.family for each in results if each.family is not None]
    return PairedResult(
        joined([each.p_value for each in results]),
        joined([each.ci_low for each in results]),
        joined([each.ci_high for each in results]),
        family=(joined([low for low, _ in ends]), joined([high for _, high in ends])) if ends else None,
    )


def _of_part(result: PairedResult, place: int, design: Design, n_parts: int) -> PairedResult:
    """Return the results of one part: the inverse of `_interleaved`."""

    def own(values: Floats) -> Floats:
        return np.reshape(values, (len(design.measures), n_parts, -1))[:, place].ravel()

    return PairedResult(own(result.p_value), own(result.ci_low), own(result.ci_high))


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


def _interaction(design: Design, scores: Floats, parts: list[Ints], settings: Settings) -> pd.DataFrame:
    """Return a row per comparison with the test that its difference is the same in all parts."""
    tested, size = interaction(design.differences(scores), parts, settings), design.size
    families = [tested.p_value[start : start + size] for start in range(0, len(tested.p_value), size)]
    found = {
        **design.names,
        "statistic": tested.statistic,
        "p_value": tested.p_value,
        "p_adjusted": np.concatenate([holm(family) for family in families]),
    }
    return pd.DataFrame(found, columns=CROSSED)


def _small_notes(places: Mapping[str, Ints], large: Mapping[str, Ints], name: str) -> list[str]:
    small = [f"{part} ({count(len(rows), 'query')})" for part, rows in places.items() if part not in large]
    if not small:
        return []
    return [f"listed by {name} and not tested, with fewer than {LEAST_QUERIES} queries: {', '.join(small)}"]


def _interaction_notes(crossed: pd.DataFrame | None, name: str, alpha: float) -> list[str]:
    if crossed is None:
        return []
    shown = int((crossed["p_adjusted"] <= alpha).sum())
    found = f"that a difference depends on the {name} is shown for {shown} of {count(len(crossed), 'comparison')}"
    test = "Welch's statistic under permuted labels, Holm"
    rest = "" if shown == len(crossed) else f"; elsewhere, rows that differ by {name} may differ by chance"
    return [f"{found} ({test}){rest}"]
