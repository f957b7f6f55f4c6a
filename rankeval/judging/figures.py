"""The figures of judging."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rankeval._checks import count
from rankeval.render.plots import BAND, BETTER, INK, SOFT, Figure, bare, shown_name, write_caption


def agreement_figure(
    confusion: pd.DataFrame, by_topic: pd.Series[float], whole: float, words: str, caption: str
) -> Figure:
    """Draw the confusion of grades with shares, and a coefficient of each topic with that of all as a line.

    Parameters
    ----------
    confusion : DataFrame
        Grades by grades, with counts.
    by_topic : Series
        The coefficient by topic; topics where it is undefined are left out and counted.
    whole : float
        The coefficient over all topics.
    words, caption : str
        The name of the coefficient, and the line above.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    shares = confusion.to_numpy(dtype=np.float64) / confusion.to_numpy().sum()
    left.imshow(shares, cmap="Greens", vmin=0, vmax=shares.max() * 1.6)  # so that ink stays legible on the darkest
    for row, column in np.ndindex(*shares.shape):
        left.text(column, row, f"{100 * shares[row, column]:.1f}", ha="center", va="center", fontsize=8, color=INK)
    left.set_xticks(range(len(confusion.columns)), confusion.columns)
    left.set_yticks(range(len(confusion.index)), confusion.index)
    left.set_xlabel(shown_name(confusion.columns.name), color=INK, parse_math=False)
    left.set_ylabel(shown_name(confusion.index.name), color=INK, parse_math=False)
    of = "pairs of labels" if confusion.index.name == "label" else "documents"
    left.set_title(f"% of {of}", loc="left", fontsize=10)
    ordered = by_topic.dropna().sort_values(kind="stable")
    places = np.arange(len(ordered))
    right.hlines(places, whole, ordered, color=BAND, linewidth=3)
    right.plot(ordered, places, "o", color=BETTER, markersize=4)
    right.axvline(whole, color=INK, linewidth=1)
    few = len(ordered) <= 40
    right.set_yticks(places if few else [], [shown_name(qid) for qid in ordered.index] if few else [], parse_math=False)
    undefined = len(by_topic) - len(ordered)
    right.set_ylabel(count(len(ordered), "topic") + f", {undefined} undefined" * (undefined > 0), color=SOFT)
    right.set_title(f"{words} by topic; line: {whole:.3f} over all", loc="left", fontsize=10)
    for axes in (left, right):
        bare(axes)
    right.tick_params(axis="y", labelsize=7)
    write_caption(figure, caption)
    return figure
