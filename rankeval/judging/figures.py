"""The figures of judging: one function for each picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.render import plots
from rankeval.render.comparisons import intervals
from rankeval.render.layouts import shown_interval
from rankeval.render.tables import number

MOST_NAMED = 30
"""Topics that are named at the axis; of more, none is."""


def agreement_figure(
    confusion: pd.DataFrame, by_topic: pd.Series[float], value: float, caption: str
) -> plots.Figure:
    """Draw the confusion of grades, and a coefficient of each topic, with that of all as a line."""
    figure = plots.Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    shares = confusion.to_numpy(dtype=np.float64) / confusion.to_numpy().sum()
    # So that ink stays legible on the darkest.
    left.imshow(shares, cmap="Greens", vmin=0, vmax=shares.max() * 1.6)
    middle: dict[str, Any] = {"ha": "center", "va": "center"}
    for (row, column), share in np.ndenumerate(shares):
        left.text(column, row, f"{100 * share:.1f}", **middle, fontsize=8, color=plots.INK)
    for axis, grades in ((left.xaxis, confusion.columns), (left.yaxis, confusion.index)):
        axis.set_ticks(range(len(grades)), grades)
        axis.set_label_text(plots.shown_name(grades.name), color=plots.INK, parse_math=False)
    counted = "pairs of labels" if confusion.index.name == "label" else "documents"
    left.set_title(f"% of {counted}", fontsize=10)
    ordered = by_topic.dropna().sort_values(kind="stable")
    places = np.arange(len(ordered))
    right.hlines(places, value, ordered, color=plots.BAND, linewidth=3)
    right.plot(ordered, places, "o", color=plots.BETTER, markersize=4)
    right.axvline(value, color=plots.INK, linewidth=1)
    named = ordered.index if len(ordered) <= MOST_NAMED else ordered.index[:0]
    names = [plots.shown_name(qid) for qid in named]
    plots.without_frame(left)
    plots.without_frame(right)
    right.set_yticks(places[: len(named)], names, parse_math=False, fontsize=7)
    n_undefined = len(by_topic) - len(ordered)
    topics = f"{count(len(ordered), 'topic')}, {n_undefined:,} undefined"
    right.set_ylabel(topics, color=plots.SOFT)
    line = f"line: {number(value, digits=3)} over all"
    right.set_title(f"{by_topic.name} by topic; {line}", fontsize=10)
    plots.write_caption(figure, caption)
    return figure


def order_under_judges(ranks: pd.DataFrame, caption: str) -> plots.Figure:
    """Draw the place of each system under each set of judgments; rises and falls have a colour."""
    # Tied systems beside each other, so that no line hides another one.
    places = ranks.rank(method="first")
    n_systems, n_sets = places.shape
    width, height = max(7.0, 1.6 + 1.5 * min(n_sets, 9)), 1.2 + 0.26 * n_systems
    figure, axes = plots.one_panel(width, height)
    moves = ranks.sub(ranks.iloc[:, 0], axis=0).sum(axis=1)
    for line, moved in zip(places.to_numpy(), moves, strict=True):
        color = plots.INK if moved == 0 else plots.WORSE if moved > 0 else plots.BETTER
        axes.plot(line, marker="o", markersize=4, color=color, linewidth=1.5)
    sets = [plots.shown_name(name) for name in places]
    axes.set_xticks(range(n_sets), sets, parse_math=False)
    first = places.iloc[:, 0].sort_values()
    names = [plots.shown_name(name, plots.LONGEST_NAME) for name in first.index]
    axes.set_yticks(first, names, parse_math=False)
    axes.set_ylim(n_systems + 0.5, 0.5)
    axes.set_xlim(-0.3, n_sets - 0.7)
    xlabel = "by rank, the best above; green: rises on average, red: falls"
    axes.set_xlabel(xlabel, color=plots.SOFT, fontsize=9)
    plots.write_caption(figure, caption)
    return figure


def estimates(table: pd.DataFrame, *, alpha: float, caption: str) -> plots.Figure:
    """Draw each estimate with its interval beside those of people and of the machine alone."""
    low, high, kind = shown_interval(table)
    names = ["difference", "ci_low", "ci_high", "outer_low", "outer_high"]
    sides = zip(table["system"], table["baseline"], strict=True)
    pairs = [" - ".join(filter(None, pair)) for pair in sides]
    columns = {"both": ["estimate", "ci_low", "ci_high", low, high]}
    for judge in ("human", "machine"):
        ends = [f"ci_low_{judge}", f"ci_high_{judge}"]
        columns[judge] = [f"mean_{judge}", *ends, *ends]
    parts = []
    for judge, own in columns.items():
        part = table[own].set_axis(names, axis=1)
        parts.append(part.assign(judge=judge, group=table["measure"], pair=pairs))
    lines = pd.concat(parts).sort_index(kind="stable")
    lines["label"] = lines["pair"] + ": " + lines["judge"].replace("human", "people")
    lines = lines.assign(better=True, clear=lines["judge"] == "both")
    level = f"{100 * (1 - alpha):g}% interval"
    key = [("line", level)]
    if kind == " (adjusted)":
        key = [("thick", level), ("thin", "interval adjusted for all pairs")]
    key += [("point", "people and machine together"), ("hollow", "one judge alone")]
    return intervals(lines, xlabel="mean, or difference of means", caption=caption, key=key)
