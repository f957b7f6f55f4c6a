"""Frames as matplotlib figures, made without pyplot: safe in threads and without a display.

A notebook shows them (`Figure`). This imports matplotlib, so it is imported where a figure is
drawn.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure as PlainFigure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.measures import direction
from rankeval.render.tables import signed, with_minus

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

INK, SOFT, BETTER, WORSE, BAND = "#1f2933", "#7b8794", "#0b6e4f", "#b3412f", "#e8ebee"
LONGEST_ID = 18
"""Characters of a query id in a figure; the middle of a longer one is left out."""

LONGEST_NAME = 34
"""Characters of the name of a system, or of a pair of systems, in a figure."""


class Figure(PlainFigure):
    """A matplotlib figure, made without pyplot, that a notebook shows if it is the value of a cell.

    With ``%matplotlib inline`` IPython has a way of its own to show figures and does not ask for
    `_repr_png_`.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()


Floats = NDArray[np.float64]


def without_frame(axes: Axes) -> None:
    """Remove the parts of the frame that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9)


def one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of one panel, and its axes; the size is in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    without_frame(axes)
    return figure, axes


def write_caption(figure: Figure, caption: str) -> None:
    """Write a caption above a figure, if there is any, and make the figure higher by its lines."""
    if not caption:
        return
    lines = textwrap.wrap(caption, 105)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, color=SOFT, parse_math=False)
    figure.set_figheight(figure.get_figheight() + 0.15 * len(lines))


NARROW = 4.6
"""Width in inches of a figure for a phone."""

_LETTERS_BESIDE = 32
"""Letters of names that a narrow axis has room for."""

_LETTER = 0.6
"""Width of a letter in sizes of its font."""


def narrowed(figure: PlainFigure) -> PlainFigure:
    """Give a figure the width of a phone, and break its long lines anew; one of a fixed size stays."""
    share = NARROW / figure.get_figwidth()
    if share >= 1 or figure.get_layout_engine() is None:
        return figure
    figure.set_figwidth(NARROW)
    for text in figure.findobj(Text):
        spec = None if text.axes is None else text.axes.get_subplotspec()
        columns = 1 if spec is None else spec.get_gridspec().ncols
        letters = int(NARROW / columns * 72 / (_LETTER * float(text.get_fontsize())))
        lines = text.get_text().split("\n")
        broken = [textwrap.fill(line, letters, break_long_words=False) for line in lines]
        text.set_text("\n".join(broken))
    for axes in figure.axes:
        if isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
            axes.locator_params(axis="x", nbins=5)
        elif sum(len(label.get_text()) for label in axes.get_xticklabels()) > _LETTERS_BESIDE:
            axes.tick_params(axis="x", labelrotation=90)
    return figure


def shown_name(name: object, longest: int = LONGEST_ID) -> str:
    """Return a name as a figure can show it: short, in one line, in characters of the font."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = f"{text[: longest // 2]}\N{HORIZONTAL ELLIPSIS}{text[1 - longest // 2 :]}"
    known = _characters()
    return "".join(letter if ord(letter) in known else "\N{WHITE SQUARE}" for letter in text)


@cache
def _characters() -> frozenset[int]:
    # matplotlib warns of each character that its font lacks.
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    return frozenset(font.get_charmap())


N_EXTREME = 5
"""Queries with the largest gains, the largest losses or the worst scores that a figure names."""

MOST_BARS = 400
"""Of more queries a filled outline is drawn: thousands of bars are slow and run into each other."""

MOST_POINTS = 4_000
"""Points drawn of a sorted curve: more than a page has pixels, and a million take seconds."""


def query_differences(
    differences: pd.Series[float],
    *,
    system: str,
    baseline: str,
    measure: str,
    sign: float = 1.0,
    unit: str = "query",
) -> Figure:
    """Draw one system's per-query differences from another, sorted from gain to loss.

    A sign of 0 means that it is not known whether less is better: then nothing is called a gain.
    """
    ordered = differences.sort_values(ascending=sign < 0, kind="stable")
    values, mean = ordered.to_numpy(dtype=np.float64), float(differences.mean())
    sides = values * (sign or 1.0)
    wins, losses = int((sides > 0).sum()), int((sides < 0).sum())
    colors, won, lost, order = (INK, INK), "higher", "lower", "rise to fall"
    if sign:
        colors, won, lost, order = (BETTER, WORSE), "won", "lost", "gain to loss"
    figure, axes = one_panel(7.5, 3.2)
    places = np.arange(len(values))
    if len(values) <= MOST_BARS:
        axes.bar(places, values, width=0.8, color=np.where(sides >= 0, *colors))
    else:
        some = _some(len(values))
        for color, part in zip(colors, (sides > 0, sides < 0), strict=True):
            heights = np.where(part, values, 0)[some]
            axes.fill_between(some, heights, step="mid", color=color, linewidth=0)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.axhline(mean, color=SOFT, linewidth=1, linestyle="--")
    # If less is better, bars rise to the right, so there is room below the line.
    shift, side = (-3, "top") if sign < 0 else (3, "bottom")
    axes.annotate(
        with_minus(f"mean {signed(mean)}"), (1, mean), xycoords=("axes fraction", "data"), xytext=(-2, shift), va=side,
        ha="right", textcoords="offset points", fontsize=8, color=SOFT,
    )  # fmt: skip
    if len(values) <= 30:
        long = max(len(str(query)) for query in ordered.index) > 3
        names = [shown_name(query) for query in ordered.index]
        axes.set_xticks(places, names, rotation=90 if long else 0, fontsize=8, parse_math=False)
    else:
        parts = ordered[sides > 0], ordered[sides < 0][::-1]
        _name_extremes(axes, parts, colors, ("gains", "losses") if sign else ("rises", "falls"))
    axes.set_xlim(-0.7, len(values) - 0.3)
    axes.set_xlabel(f"{count(len(values), unit)}, from {order}", color=INK)
    axes.set_ylabel(f"difference in {measure}", color=INK)
    ties = len(values) - wins - losses
    counts = f"{wins:,} {won}, {ties:,} tied, {losses:,} {lost}"
    axes.set_title(f"{system} against {baseline}: {counts}", loc="left", fontsize=10, color=INK)
    return figure


def _name_extremes(
    axes: Axes, parts: Sequence[pd.Series[float]], colors: Sequence[str], names: Sequence[str]
) -> None:
    corners = zip((1.0, 0.0), ("top", "bottom"), colors, names, parts, strict=True)
    for y, place, color, words, part in corners:
        values = part[:N_EXTREME].items()
        lines = [f"{with_minus(f'{value:+.3f}')}  {shown_name(query)}" for query, value in values]
        text = "\n".join([f"largest {words}", *(lines or ["none"])])
        axes.text(
            1.02, y, text, transform=axes.transAxes, va=place, fontsize=8, linespacing=1.4, color=color,
            parse_math=False,
        )  # fmt: skip


def sorted_scores(
    per_query: pd.DataFrame,
    worst: Mapping[str, NDArray[Any]] | None = None,
    *,
    means: Mapping[str, float] | None = None,
    most_columns: int = 3,
) -> Figure:
    """Draw each measure's scores over the queries, sorted from best to worst, with the mean.

    ``means`` are those of weighted queries.
    """
    columns = min(most_columns, max(1, per_query.shape[1]))
    rows = -(-per_query.shape[1] // columns)
    figure = Figure(figsize=(7.5, 2.5 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    some = _some(len(per_query))
    share = np.linspace(0, 100, len(per_query))[some] if len(per_query) > 1 else np.array([50.0])
    for axes, name in zip(panels, per_query.columns, strict=False):
        without_frame(axes)
        more_is_better = direction(str(name)).sign >= 0
        worst_first = per_query[name].sort_values(ascending=more_is_better, kind="stable")
        values = worst_first.to_numpy(dtype=np.float64)[::-1]
        mean = float(values.mean()) if means is None else means[str(name)]
        axes.fill_between(share, values[some], color=BAND, linewidth=0)
        marker = "o" if len(values) == 1 else None
        axes.plot(share, values[some], color=BETTER, linewidth=1.5, marker=marker)
        axes.axhline(mean, color=SOFT, linewidth=1, linestyle="--")
        axes.set_xlim(0, 100)
        # Few ticks: the time of a figure is that of laying out its texts.
        axes.set_xticks([0, 50, 100])
        axes.locator_params(axis="y", nbins=3)
        kind = "mean" if means is None else "weighted mean"
        axes.set_title(f"{name}: {kind} {mean:.4f}", loc="left", fontsize=9, color=INK)
        named = worst_first.index.to_numpy() if worst is None else worst[str(name)]
        axes.set_xlabel(_worst(named), loc="left", fontsize=7, color=SOFT, parse_math=False)
        if values.min() >= 0 and values.max() <= 1:
            axes.set_ylim(0, 1.03)
    for axes in panels[per_query.shape[1] :]:
        axes.remove()
    figure.supxlabel(f"% of {count(len(per_query), 'query')}, best first", fontsize=9, color=INK)
    return figure


def _some(n: int) -> NDArray[np.int64]:
    """Return the places of a sorted curve to draw: as many as a page shows, with both ends."""
    return np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.int64)


def _worst(queries: NDArray[Any]) -> str:
    names = [shown_name(query) for query in queries[:N_EXTREME]]
    lines = textwrap.wrap(
        f"worst: {', '.join(names)}", 38, max_lines=2, placeholder=" ...", break_on_hyphens=False
    )
    return "\n".join(lines) if names else ""


def curve(frame: pd.DataFrame, *, xlabel: str, ylabel: str) -> Figure:
    """Draw a line through means, with the range from least to greatest behind it."""
    figure, axes = one_panel(6, 3.6)
    axes.fill_between(frame.index, frame["min"], frame["max"], color=BAND, linewidth=0)
    axes.plot(frame.index, frame["mean"], color=INK, marker="o", markersize=4)
    axes.set_xlabel(xlabel, color=SOFT)
    axes.set_ylabel(ylabel, color=SOFT)
    return figure
