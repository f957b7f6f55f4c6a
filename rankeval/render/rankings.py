"""Rank intervals: the places that each system may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankeval.render.figure import BAND, BETTER, INK, LONGEST_NAME, SOFT, bare, shown_name, write_caption
from rankeval.render.tables import number

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.render.figure import Figure


def rank_intervals(
    frame: pd.DataFrame, *, xlabel: str = "rank", title: str = "", caption: str = "", digits: int = 4
) -> Figure:
    """Draw the lowest and the highest rank of each system, and the place of its mean.

    Parameters
    ----------
    frame : DataFrame
        A row per system, from the best to the worst mean, with the columns "system", "mean", "rank_low", "rank_high".
    xlabel, title, caption : str
        Texts below and above.
    digits : int, default 4
        Decimals of the means.

    Returns
    -------
    Figure
        Not registered with pyplot.
    """
    from rankeval.render.figure import Figure

    n = len(frame)
    crowded = n > 20
    figure = Figure(figsize=(7.5, (0.2 if crowded else 0.3) * n + 1.1), layout="constrained")
    axes = figure.subplots()
    bare(axes)
    axes.spines["left"].set_visible(False)
    size = 7.5 if crowded else 9
    for place, row in enumerate(frame.to_dict("records")):
        if place % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color=BAND, alpha=0.5, linewidth=0, zorder=0)
        axes.plot([row["rank_low"], row["rank_high"]], [place, place], color=SOFT, linewidth=2.5, solid_capstyle="butt")
        for end in (row["rank_low"], row["rank_high"]):
            axes.plot([end, end], [place - 0.22, place + 0.22], color=SOFT, linewidth=1.5)
        axes.text(
            1.01, place, number(row["mean"], digits=digits), transform=axes.get_yaxis_transform(), va="center",
            fontsize=size - 1, color=INK,
        )  # fmt: skip
    # In the order of the frame, so that it does not matter whether more or less is better; equal means share a place.
    first = [frame["mean"].tolist().index(mean) + 1 for mean in frame["mean"]]
    axes.plot(first, range(n), "o", color=BETTER, markersize=5, linestyle="none")
    axes.set_yticks(
        range(n), [shown_name(name, LONGEST_NAME) for name in frame["system"]], fontsize=size, parse_math=False
    )
    axes.set_xticks(_ticks(n))
    axes.set_xlim(0.5, n + 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(xlabel, color=INK, fontsize=9, parse_math=False)
    axes.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    if caption:
        write_caption(figure, caption)
    return figure


def _ticks(n: int) -> list[int]:
    """Return ranks to print: the first, and whole steps up to the last."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 10**9) if n / step <= 16)
    return sorted({1, *np.arange(step, n + 1, step).tolist()})
