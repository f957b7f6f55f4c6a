"""The figures of judging."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval.render.plots import BAND, BETTER, INK, LONGEST_NAME, SOFT, WORSE, Figure, bare, shown_name, write_caption

if TYPE_CHECKING:
    from rankeval.judging.systems import Disagreement, Reusability


def order_under_judges(found: Disagreement) -> Figure:
    """Draw the place of each system under each set of judgments; systems that rise or fall have a colour."""
    ranks = found.order.ranks.droplevel(0, axis=1).astype(np.float64)
    places = ranks.rank(method="first")  # tied systems beside each other, so that no line hides another one
    figure = Figure(figsize=(1.6 + 1.5 * places.shape[1], 1.2 + 0.26 * len(places)), layout="constrained")
    axes = figure.subplots()
    bare(axes)
    for line, moved in zip(places.to_numpy(), ranks.sub(ranks.iloc[:, 0], axis=0).sum(axis=1), strict=True):
        color = INK if moved == 0 else WORSE if moved > 0 else BETTER
        axes.plot(line, marker="o", markersize=4, color=color, linewidth=1.5)
    axes.set_xticks(range(places.shape[1]), [shown_name(name) for name in places], parse_math=False)
    first = places.iloc[:, 0].sort_values()
    axes.set_yticks(first, [shown_name(name, LONGEST_NAME) for name in first.index], parse_math=False)
    axes.set_ylim(len(places) + 0.5, 0.5)
    axes.set_xlabel("the systems by rank, the best above; green: rises, red: falls", color=SOFT, fontsize=9)
    write_caption(figure, found.caption)
    return figure


def means_without(found: Reusability) -> Figure:
    """Draw the mean of each system by all judgments, and without the documents that only its group found."""
    table = found.table.sort_values("mean", kind="stable")
    places = np.arange(len(table))
    figure = Figure(figsize=(7, 1.2 + 0.26 * len(table)), layout="constrained")
    axes = figure.subplots()
    bare(axes)
    axes.hlines(places, table["mean_without"], table["mean"], color=BAND, linewidth=4)
    axes.plot(table["mean"], places, "o", color=INK, markersize=5, label="all judgments")
    axes.plot(table["mean_without"], places, "o", color=WORSE, markersize=5, label="without its unique documents")
    fell = (table["rank_without"] - table["rank"]).tolist()
    names = [f"{shown_name(name, LONGEST_NAME)} ({-by:+d})" for name, by in zip(table["system"], fell, strict=True)]
    axes.set_yticks(places, names, parse_math=False)
    axes.set_xlabel("mean; in brackets: places gained or lost without the documents", color=SOFT, fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    write_caption(figure, found.caption)
    return figure
