"""The figures of a comparison: intervals, forest, matrix, ranks, differences by query."""

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

KINDS = ("intervals", "forest", "matrix", "ranks", "queries", "tradeoff")


def drawn(
    record: ComparisonRecord,
    kind: str | None,
    *,
    system: str | None,
    baseline: str | None,
    measure: str | None,
) -> Figure:
    """Return a figure of a comparison; `rankeval.Comparison.plot` documents the arguments."""
    if kind is None:
        parts = "forest" if record.settings.grouped else "intervals"
        kind = parts if system is None else "queries"
    chosen("kind of plot", kind, KINDS)
    rows = record.table if not record.table.empty else known_means(record)
    if measure is not None:
        chosen("measure of the comparison", measure, list(rows["measure"].unique()))
    is_named = system is not None or baseline is not None
    if record.table.empty:
        differences = f"kind={kind!r} draws differences, and this comparison has one system"
        refuse((kind != "intervals" or is_named, f"{differences}: leave kind= out"))
        return _means(record, rows if measure is None else rows[rows["measure"] == measure])
    if kind == "queries":
        return _queries(record, system, baseline, measure)
    if kind in ("matrix", "ranks"):
        refuse((is_named, f"kind={kind!r} shows all systems", "leave out system= and baseline="))
        return _matrix(record, measure) if kind == "matrix" else _ranks(record, measure)
    rows = _chosen_rows(record, system, baseline, measure)
    cut = rows_left_out(rows, MOST_DRAWN)
    rows = rows[clearest(rows, MOST_DRAWN)]
    return _intervals(record, rows, cut) if kind == "intervals" else _forest(record, rows, cut)


def _means(record: ComparisonRecord, means: pd.DataFrame) -> Figure:
    names = {"system": "label", "mean": "difference", "measure": "group"}
    key = [("line", f"{100 * record.settings.confidence_level:g}% interval")]
    lines = means.rename(columns=names).assign(better=True)
    return comparisons.intervals(lines, xlabel="mean", caption=record.caption, key=key)


def _chosen_rows(
    record: ComparisonRecord, system: str | None, baseline: str | None, measure: str | None
) -> pd.DataFrame:
    table, group = record.table, record.settings.grouped
    low, high, _ = shown_interval(table)
    # An attribute of the user may have the name of one of these columns.
    part_of = table[group].astype(str) if group else ""
    rows = table.assign(
        part_of=part_of,
        pair=table["system"],
        clear=record.shown,
        better=np.sign(gains(record)),
        dagger=np.where(parted(record), PARTED, ""),
        outer_low=table[low],
        outer_high=table[high],
    )
    if record.settings.baseline is None:
        rows["pair"] += " - " + table["baseline"]
    for column, value in (("system", system), ("baseline", baseline), ("measure", measure)):
        if value is not None:
            chosen(f"{column} of the comparison", value, list(rows[column].unique()))
            rows = rows[rows[column] == value]
    return rows


def _intervals(record: ComparisonRecord, rows: pd.DataFrame, cut: list[str]) -> Figure:
    settings = record.settings
    label = rows["pair"] + ", " + rows["part_of"] if settings.grouped else rows["pair"]
    rows = rows.assign(label=label + rows["dagger"], group=rows["measure"])
    # Where a difference is shown, a zone of differences that are hard to find reads as doubt.
    rows["band"] = rows["detectable_difference"].where(~rows["clear"])
    key = _intervals_key(record, rows)
    if key[0][0] == "line":
        rows["ci_low"], rows["ci_high"] = rows.pop("outer_low"), rows.pop("outer_high")
    # The places, other than zero, that a gain is compared with.
    edges = {}
    factors = [factor for _, factor in CLAIMS[settings.claim]]
    for measure in map(str, record.table["measure"].unique() if settings.margin > 0 else ()):
        margin = settings.margin * (settings.direction(measure).sign or 1.0)
        edges[measure] = [factor * margin for factor in factors]
    key += [("dashed", f"margin {settings.margin:g}")] if edges else []
    key += [("", words) for words in [*_on_daggers(rows), *cut]]
    return comparisons.intervals(
        rows, xlabel=_against(record), caption=record.caption, edges=edges, key=key
    )


def _intervals_key(record: ComparisonRecord, rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the lines of the legend: the intervals, and the marks of rows that are not shown."""
    settings, alone = record.settings, f"{100 * record.settings.interval_level:g}% interval"
    if len(record.table) > 1:
        alone += " of each pair alone"
    key = [("line", alone)]
    if shown_interval(record.table)[2] == " (adjusted)":
        key = [("thick", alone), ("thin", _on_adjusted(record))]
    if not rows["clear"].all():
        key.append(("hollow", CLAIMS[settings.claim].nothing))
    if ((rows["band"] > 0) & np.isfinite(rows["band"])).any():
        sizes = rows["n_queries"].unique()
        queries = count(int(sizes[0]), settings.unit) if len(sizes) == 1 else "this many queries"
        key.append(("shade", f"too small for {queries} to detect reliably"))
    return key


def _on_adjusted(record: ComparisonRecord) -> str:
    settings, level = record.settings, shown_level(record)
    n_parts = len(part_sizes(record))
    by_part = ""
    if n_parts:
        by_part = f" (all), {settings.family_words(n_parts)} (by {settings.grouped})"
    wide = "" if level == settings.interval_level else f", {100 * level:g}%"
    return f"interval adjusted for {settings.family_words(1)}{by_part}{wide}"


def _against(record: ComparisonRecord) -> str:
    baseline = record.settings.baseline
    return "difference of means" if baseline is None else f"difference from {baseline}"


def _on_daggers(rows: pd.DataFrame) -> list[str]:
    if not rows["dagger"].any():
        return []
    return [f"{PARTED}: adjusted p and interval disagree; the colour goes by p"]


def _forest(record: ComparisonRecord, rows: pd.DataFrame, cut: list[str]) -> Figure:
    problem = 'kind="forest" needs several collections or slices; give compare() collections or by='
    refuse((not record.settings.grouped, problem))
    ordered = rows.assign(group=rows["measure"], n=rows["n_queries"])
    ordered["ci_low"], ordered["ci_high"] = rows["outer_low"], rows["outer_high"]
    ordered["label"] = rows["part_of"] + rows["dagger"]
    ordered["together"] = rows["part_of"] == TOGETHER
    ordered["place"] = pd.factorize(rows["pair"])[0]
    ordered = ordered.sort_values(["place", "together"], kind="stable")
    _, _, kind = shown_interval(record.table)
    key = [("line", f"{100 * shown_level(record):g}% interval{kind}")]
    key += [("", words) for words in [*_on_daggers(rows), *cut]]
    digits = digits_for(difference_errors(record.table), default=3)
    return comparisons.forest(
        ordered, xlabel=_against(record), caption=record.caption, digits=digits, key=key
    )


def _one_measure(
    record: ComparisonRecord, measure: str | None
) -> tuple[ComparisonRecord, str, dict[str, Any]]:
    """Return the rows over all queries, the measure, and title, caption and decimals."""
    whole, measure = overall(record), measure or main_measure(record)
    units = {"": "", COLLECTION: "collections"}.get(record.settings.grouped, record.settings.units)
    over = f", all {units}" if units else ""
    errors = difference_errors(whole.table)
    digits = digits_for(errors[whole.table["measure"] == measure])
    return whole, measure, {"title": measure + over, "caption": record.caption, "digits": digits}


def _matrix(record: ComparisonRecord, measure: str | None) -> Figure:
    is_one = record.settings.baseline is not None
    refuse((is_one, 'kind="matrix" needs all pairs of systems', "compare without baseline="))
    whole, measure, options = _one_measure(record, measure)
    known, claim = record.settings.direction(measure), CLAIMS[record.settings.claim]
    claims = ordered_claims(whole)
    means = mean_table(whole)[measure].sort_values(ascending=known.sign < 0, kind="stable")
    words = [claim.adjective.format(known)]
    words += [known.worse] if known.sign and not claim.hypotheses else []
    claims = claims[claims["column"] == measure]
    levels = levels_within(record.alpha)
    return comparisons.significance_matrix(means, claims, levels=levels, words=words, **options)


def _ranks(record: ComparisonRecord, measure: str | None) -> Figure:
    whole, measure, options = _one_measure(record, measure)
    ranks = rank_table(whole)
    words = record.settings.direction(measure)
    above, below = f"the number shown {words.better}", f"the number shown {words.worse}"
    line = f"ranks from 1 + {above}, to the number of systems less {below}"
    key = [("point", "rank of the mean"), ("line", line)]
    return comparisons.rank_intervals(ranks[ranks["measure"] == measure], key=key, **options)


def _queries(
    record: ComparisonRecord, system: str | None, baseline: str | None, measure: str | None
) -> Figure:
    baseline = baseline or record.settings.baseline
    if system is None or baseline is None:
        lacking = "baseline=, the system to draw differences from"
        if system is None:
            lacking = "system=, the system to draw"
        raise InvalidInput(f'kind="queries" draws the differences of two systems: give {lacking}')
    measure = measure or main_measure(record)
    known = sorted({*record.table["system"], *record.table["baseline"]})
    for name in (system, baseline):
        chosen("system of the comparison", name, known)
    shared = held_scores(record, [measure])
    own, base = (shared.scores[:, shared.systems.index(name), 0] for name in (system, baseline))
    values = pd.Series(differences(own, base), index=shared.queries)
    sign, unit = record.settings.direction(measure).sign, record.settings.row
    return plots.query_differences(
        values, system=system, baseline=baseline, measure=measure, sign=sign, unit=unit
    )
