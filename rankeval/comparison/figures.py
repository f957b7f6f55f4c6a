"""The figures of a comparison: intervals, forest, significance matrix, rank intervals, differences by query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rankeval._checks import count, refuse
from rankeval._registry import chosen
from rankeval.comparison.derived import held_scores, rank_table
from rankeval.comparison.design import COLLECTION, TOGETHER
from rankeval.comparison.record import (
    ComparisonRecord,
    gains,
    known_means,
    main_measure,
    overall,
    part_sizes,
    parted,
    shown_level,
)
from rankeval.comparison.tables import (
    clearest,
    difference_errors,
    mean_table,
    ordered_claims,
    rows_left_out,
)
from rankeval.errors import InvalidInput
from rankeval.render import comparisons, plots
from rankeval.render.layouts import PARTED, levels_within, shown_interval
from rankeval.render.tables import digits_for
from rankeval.significance.columns import differences
from rankeval.significance.declarations import CLAIMS

if TYPE_CHECKING:
    from rankeval.render.plots import Figure


MOST_DRAWN = 2000
"""Lines in a figure of differences; more are left out, and it says so."""

KINDS = ("intervals", "forest", "matrix", "ranks", "queries")


def drawn(
    record: ComparisonRecord,
    kind: str | None,
    *,
    system: str | None,
    baseline: str | None,
    measure: str | None,
) -> Figure:
    """Return a figure of a comparison; `rankeval.Comparison.plot` documents the arguments."""
    kind = kind or (
        "queries" if system is not None else "forest" if record.settings.grouped else "intervals"
    )
    chosen("kind of plot", kind, KINDS)
    rows = record.table if not record.table.empty else known_means(record)
    if measure is not None:
        chosen("measure of the comparison", measure, list(rows["measure"].unique()))
    is_named = system is not None or baseline is not None
    if record.table.empty:
        alone = (
            f"kind={kind!r} draws differences, and this comparison has one system: leave kind= out"
        )
        refuse((kind != "intervals" or is_named, alone))
        rows = rows if measure is None else rows[rows["measure"] == measure]
        lines = rows.assign(
            label=rows["system"], difference=rows["mean"], group=rows["measure"], better=True
        )
        xlabel = f"mean\nline: {100 * record.settings.confidence_level:g} % interval"
        return comparisons.intervals(lines, xlabel=xlabel, caption=record.caption)
    if kind == "queries":
        return _queries(record, system, baseline, measure)
    if kind in ("matrix", "ranks"):
        refuse((is_named, f"kind={kind!r} shows all systems", "leave out system= and baseline="))
        return _matrix(record, measure) if kind == "matrix" else _ranks(record, measure)
    rows = _chosen_rows(record, system, baseline, measure)
    cut = rows_left_out(rows, MOST_DRAWN)
    rows = rows[clearest(rows, MOST_DRAWN)]
    return _intervals(record, rows, cut) if kind == "intervals" else _forest(record, rows, cut)


def _chosen_rows(
    record: ComparisonRecord, system: str | None, baseline: str | None, measure: str | None
) -> pd.DataFrame:
    table = record.table
    low, high, _ = shown_interval(table)
    ends = {"outer_low": table[low], "outer_high": table[high]}
    dagger = np.where(parted(record), PARTED, "")
    pair = (
        table["system"]
        if record.settings.baseline is not None
        else table["system"] + " - " + table["baseline"]
    )
    rows = table.assign(
        pair=pair, clear=record.shown, better=np.sign(gains(record)), dagger=dagger, **ends
    )
    for column, value in (("system", system), ("baseline", baseline), ("measure", measure)):
        if value is not None:
            chosen(f"{column} of the comparison", value, list(rows[column].unique()))
            rows = rows[rows[column] == value]
    return rows


def _intervals(record: ComparisonRecord, rows: pd.DataFrame, cut: list[str]) -> Figure:
    asked, group = record.settings, record.settings.grouped
    label = rows["pair"] + ", " + rows[group].astype(str) if group else rows["pair"]
    rows = rows.assign(
        label=label + rows["dagger"], group=rows["measure"], band=rows["detectable_difference"]
    )
    level = f"{100 * asked.interval_level:g} % interval"
    if shown_interval(record.table)[2] == " (adjusted)":
        n_parts, level_shown = len(part_sizes(record)), shown_level(record)
        by_part = f" (all), {asked.family_words(n_parts)} (by {group})" if n_parts else ""
        gap = "\n" if by_part else " "  # one line would be wider than the figure
        family = f" for {asked.family_words(1)}{by_part}"
        wide = "" if level_shown == asked.interval_level else f", {100 * level_shown:g} %"
        lines = f"thick: {level} of each pair alone;{gap}thin: adjusted{family}{wide}"
    else:
        rows = rows.drop(columns=["ci_low", "ci_high"]).rename(
            columns={"outer_low": "ci_low", "outer_high": "ci_high"}
        )
        lines = f"lines: {level} of each pair alone" if len(record.table) > 1 else f"line: {level}"
    sizes = rows["n_queries"].unique()
    queries = count(int(sizes[0]), asked.unit) if len(sizes) == 1 else f"so many {asked.units}"
    has_band = bool(((rows["band"] > 0) & np.isfinite(rows["band"])).any())
    shaded = [f"shaded: too small for {queries} to detect reliably"] if has_band else []
    # The places, other than zero, that a gain is compared with.
    edges = {
        measure: [
            factor * asked.margin * (asked.direction(measure).sign or 1.0)
            for _, factor in CLAIMS[asked.claim]
        ]
        for measure in map(str, record.table["measure"].unique())
        if asked.margin > 0
    }
    return comparisons.intervals(
        rows,
        xlabel="\n".join([_against(record), lines, *shaded, *_on_daggers(rows), *cut]),
        caption=record.caption,
        edges=edges,
    )


def _against(record: ComparisonRecord) -> str:
    return (
        "difference of means"
        if record.settings.baseline is None
        else f"difference from {record.settings.baseline}"
    )


def _on_daggers(rows: pd.DataFrame) -> list[str]:
    return (
        [f"{PARTED}: adjusted p and interval disagree; the colour goes by p"]
        if rows["dagger"].any()
        else []
    )


def _forest(record: ComparisonRecord, rows: pd.DataFrame, cut: list[str]) -> Figure:
    group = record.settings.grouped
    refuse(
        (
            not group,
            'kind="forest" needs several collections or slices; give compare() collections or by=',
        )
    )
    _, _, kind = shown_interval(record.table)
    ordered = rows.assign(
        group=rows["measure"], label=rows[group].astype(str) + rows["dagger"], n=rows["n_queries"],
        together=rows[group] == TOGETHER, ci_low=rows["outer_low"], ci_high=rows["outer_high"],
        place=pd.factorize(rows["pair"])[0],
    ).sort_values(["place", "together"], kind="stable")  # fmt: skip
    intervals_shown = f"{_against(record)}, {100 * shown_level(record):g} % intervals{kind}"
    xlabel = "\n".join([intervals_shown, *_on_daggers(rows), *cut])
    errors = difference_errors(record.table)
    return comparisons.forest(
        ordered, xlabel=xlabel, caption=record.caption, digits=digits_for(errors, default=3)
    )


def _one_measure(
    record: ComparisonRecord, measure: str | None
) -> tuple[ComparisonRecord, str, dict[str, Any]]:
    """Return the rows over all queries, the measure to draw, and the caption, title and decimals of the figure."""
    whole, measure = overall(record), measure or main_measure(record)
    over = {"": "", COLLECTION: ", all collections"}.get(
        record.settings.grouped, f", all {record.settings.units}"
    )
    digits = digits_for(difference_errors(whole.table)[whole.table["measure"] == measure])
    return whole, measure, {"title": measure + over, "caption": record.caption, "digits": digits}


def _matrix(record: ComparisonRecord, measure: str | None) -> Figure:
    is_one = record.settings.baseline is not None
    refuse((is_one, 'kind="matrix" needs all pairs of systems', "compare without baseline="))
    whole, measure, options = _one_measure(record, measure)
    known, claims, claim = (
        record.settings.direction(measure),
        ordered_claims(whole),
        CLAIMS[record.settings.claim],
    )
    means = mean_table(whole)[measure].sort_values(ascending=known.sign < 0, kind="stable")
    words = [claim.adjective.format(known)]
    words += [known.worse] if known.sign and not claim.hypotheses else []
    claims = claims[claims["column"] == measure]
    return comparisons.significance_matrix(
        means, claims, levels=levels_within(record.alpha), words=words, **options
    )


def _ranks(record: ComparisonRecord, measure: str | None) -> Figure:
    whole, measure, options = _one_measure(record, measure)
    ranks = rank_table(whole)
    words = record.settings.direction(measure)
    above, below = f"the number shown {words.better}", f"the number shown {words.worse}"
    xlabel = f"rank\nlines: from 1 + {above}, to the number of systems - {below}"
    return comparisons.rank_intervals(ranks[ranks["measure"] == measure], xlabel=xlabel, **options)


def _queries(
    record: ComparisonRecord, system: str | None, baseline: str | None, measure: str | None
) -> Figure:
    baseline = baseline or record.settings.baseline
    if system is None or baseline is None:
        lacking = (
            "system=, the system to draw"
            if system is None
            else "baseline=, the system to draw differences from"
        )
        raise InvalidInput(f'kind="queries" draws the differences of two systems: give {lacking}')
    measure = measure or main_measure(record)
    known = sorted({*record.table["system"], *record.table["baseline"]})
    for name in (system, baseline):
        chosen("system of the comparison", name, known)
    shared = held_scores(record, [measure])
    one, other = (shared.scores[:, shared.systems.index(name), 0] for name in (system, baseline))
    values = pd.Series(differences(one, other), index=shared.queries)
    sign, unit = record.settings.direction(measure).sign, record.settings.row
    return plots.query_differences(
        values, system=system, baseline=baseline, measure=measure, sign=sign, unit=unit
    )
