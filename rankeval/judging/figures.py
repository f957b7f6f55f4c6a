"""The figures of judging: one function for each picture."""

from __future__ import annotations

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
    """Draw the confusion of grades with shares, and a coefficient of each topic with that of all as a line."""
    figure = plots.Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    shares = confusion.to_numpy(dtype=np.float64) / confusion.to_numpy().sum()
    left.imshow(
        shares, cmap="Greens", vmin=0, vmax=shares.max() * 1.6
    )  # so that ink stays legible on the darkest
    for (row, column), share in np.ndenumerate(shares):
        left.text(
            column, row, f"{100 * share:.1f}", ha="center", va="center", fontsize=8, color=plots.INK
        )
    for axis, grades in ((left.xaxis, confusion.columns), (left.yaxis, confusion.index)):
        axis.set_ticks(range(len(grades)), grades)
        axis.set_label_text(plots.shown_name(grades.name), color=plots.INK, parse_math=False)
    left.set_title(
        f"% of {'pairs of labels' if confusion.index.name == 'label' else 'documents'}", fontsize=10
    )
    ordered = by_topic.dropna().sort_values(kind="stable")
    places = np.arange(len(ordered))
    right.hlines(places, value, ordered, color=plots.BAND, linewidth=3)
    right.plot(ordered, places, "o", color=plots.BETTER, markersize=4)
    right.axvline(value, color=plots.INK, linewidth=1)
    named = ordered.index if len(ordered) <= MOST_NAMED else ordered.index[:0]
    plots.without_frame(left)
    plots.without_frame(right)
    right.set_yticks(
        places[: len(named)], [plots.shown_name(qid) for qid in named], parse_math=False, fontsize=7
    )
    right.set_ylabel(
        f"{count(len(ordered), 'topic')}, {len(by_topic) - len(ordered):,} undefined",
        color=plots.SOFT,
    )
    right.set_title(
        f"{by_topic.name} by topic; line: {number(value, digits=3)} over all", fontsize=10
    )
    plots.write_caption(figure, caption)
    return figure


def order_under_judges(ranks: pd.DataFrame, caption: str) -> plots.Figure:
    """Draw the place of each system under each set of judgments; systems that rise or fall have a colour."""
    places = ranks.rank(
        method="first"
    )  # tied systems beside each other, so that no line hides another one
    figure, axes = plots.one_panel(
        max(7.0, 1.6 + 1.5 * min(places.shape[1], 9)), 1.2 + 0.26 * len(places)
    )
    for line, moved in zip(
        places.to_numpy(), ranks.sub(ranks.iloc[:, 0], axis=0).sum(axis=1), strict=True
    ):
        color = plots.INK if moved == 0 else plots.WORSE if moved > 0 else plots.BETTER
        axes.plot(line, marker="o", markersize=4, color=color, linewidth=1.5)
    axes.set_xticks(
        range(places.shape[1]), [plots.shown_name(name) for name in places], parse_math=False
    )
    first = places.iloc[:, 0].sort_values()
    axes.set_yticks(
        first,
        [plots.shown_name(name, plots.LONGEST_NAME) for name in first.index],
        parse_math=False,
    )
    axes.set_ylim(len(places) + 0.5, 0.5)
    axes.set_xlim(-0.3, places.shape[1] - 0.7)
    axes.set_xlabel(
        "by rank, the best above; green: rises on average, red: falls", color=plots.SOFT, fontsize=9
    )
    plots.write_caption(figure, caption)
    return figure


def estimates(table: pd.DataFrame, *, alpha: float, caption: str) -> plots.Figure:
    """Draw each estimate with its interval beside those of the people alone and of the machine alone."""
    low, high, kind = shown_interval(table)
    ends, outer = ["difference", "ci_low", "ci_high"], ["outer_low", "outer_high"]
    pairs = [
        " - ".join(filter(None, pair))
        for pair in zip(table["system"], table["baseline"], strict=True)
    ]
    parts = [
        table[["estimate", "ci_low", "ci_high", low, high]]
        .set_axis([*ends, *outer], axis=1)
        .assign(judge="both")
    ]
    for judge in ("human", "machine"):
        columns = [f"{name}_{judge}" for name in ("mean", "ci_low", "ci_high", "ci_low", "ci_high")]
        parts.append(table[columns].set_axis([*ends, *outer], axis=1).assign(judge=judge))
    lines = pd.concat(
        [part.assign(group=table["measure"], pair=pairs) for part in parts]
    ).sort_index(kind="stable")
    lines["label"] = lines["pair"] + ": " + lines["judge"].replace("human", "people")
    level = f"{100 * (1 - alpha):g} % intervals" + (
        "; thin: adjusted" if kind == " (adjusted)" else ""
    )
    xlabel = (
        f"mean, or difference of means\n{level}\ngreen: people and machine, grey: one judge alone"
    )
    return intervals(
        lines.assign(better=True, clear=lines["judge"] == "both"), xlabel=xlabel, caption=caption
    )
