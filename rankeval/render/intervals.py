"""Figures of differences with their intervals: one row per difference, or grouped as a forest.

An interval is drawn twice where it was adjusted for several comparisons::

    ---====o====---      thin: adjusted, holds for all rows at once
       ====              thick: holds for this row alone
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.render.figure import (
    BAND,
    BETTER,
    INK,
    LONGEST_NAME,
    SOFT,
    WORSE,
    Floats,
    bare,
    shown_name,
    write_caption,
)
from rankeval.render.markup import with_minus
from rankeval.render.tables import DASH, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from rankeval.render.figure import Figure

MOST_ROWS = 60
"""Intervals drawn in one panel; if there are more, those with the largest differences are drawn."""

MOST_PAIRS = 20
"""Pairs of systems in one panel of a forest; if there are more, those with the largest differences are drawn."""

FLAT = 1e-9
"""If no number is further from zero, all are taken as zero."""

NARROWEST = 0.1
"""How far the axis then reaches to either side."""

ROW = 0.27
"""Height of a row of a forest in inches."""


def intervals(
    frame: pd.DataFrame,
    *,
    xlabel: str = "difference of means",
    caption: str = "",
    edges: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Draw differences with their intervals about a line at zero, a panel per group.

    Parameters
    ----------
    frame : DataFrame
        A row per difference, drawn from top to bottom, with the columns "label", "difference", "ci_low" and "ci_high".
        Infinite ends run to the edge of the panel with an arrow, nan is left out. Further columns may be "group"
        (divides the rows into panels, each with a scale of its own), "outer_low" and "outer_high" (a wider interval,
        drawn thin), "clear" (booleans: rows drawn in colour, the others in grey), "better" (booleans: which of the two
        colours; by default the sign of the difference) and "band" (distances from zero, shaded behind the row).
    xlabel, caption : str
        Texts below and above.
    edges : mapping of str to sequence of float, optional
        Group -> places of dashed lines, such as margins.

    Returns
    -------
    Figure
        Not registered with pyplot.
    """
    from rankeval.render.figure import Figure

    groups = frame.groupby("group", sort=False) if "group" in frame else [("", frame)]
    wholes = {str(name): part for name, part in groups}
    shown = {name: part.iloc[_largest(part["difference"], MOST_ROWS)] for name, part in wholes.items()}
    heights = [(0.34 if len(part) <= 20 else 0.22) * len(part) + 0.55 for part in shown.values()]
    figure = Figure(figsize=(7.5, sum(heights) + 0.75), layout="constrained")
    panels = figure.subplots(len(shown), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, part) in zip(panels, shown.items(), strict=True):
        n = len(wholes[name])
        left_out = f" (the {len(part)} largest of {n})" if len(part) < n else ""
        axes.set_title(name + left_out, loc="left", fontsize=10, color=INK, parse_math=False)
        _draw_intervals(axes, part, (edges or {}).get(name, ()))
        names = [shown_name(text, LONGEST_NAME) for text in part["label"]]
        axes.set_yticks(range(len(part)), names, parse_math=False, fontsize=9 if len(part) <= 20 else 8)
    panels[-1].set_xlabel(xlabel, color=INK, parse_math=False)
    if caption:
        write_caption(figure, caption)
    return figure


def forest(frame: pd.DataFrame, *, xlabel: str = "difference of means", caption: str = "", digits: int = 3) -> Figure:
    """Draw differences on several collections or slices, those of one pair of systems below each other.

    Parameters
    ----------
    frame : DataFrame
        A row per difference, those of a pair beside each other, with the columns "pair" (heading), "label", "n"
        (number of queries), "difference", "ci_low", "ci_high", "clear" (booleans: rows drawn in colour), "better"
        (which colour), "together" (rows drawn as a diamond: the pair on all collections), and "group" (a panel each).
    xlabel, caption : str
        Texts below and above.
    digits : int, default 3
        Decimals of the numbers beside the panel.

    Returns
    -------
    Figure
        Not registered with pyplot. The area of a square grows with its number of queries.
    """
    from rankeval.render.figure import Figure

    panels = {str(name): _largest_pairs(part) for name, part in frame.groupby("group", sort=False)}
    heights = [ROW * (len(part) + part["pair"].nunique()) + 0.6 for part in panels.values()]
    figure = Figure(figsize=(7.5, sum(heights) + 0.6), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, part) in zip(grid, panels.items(), strict=True):
        whole = frame.loc[frame["group"] == name, "pair"].nunique()
        kept = part["pair"].nunique()
        left_out = f" (the {kept} largest of {whole})" if kept < whole else ""
        axes.set_title(name + left_out, loc="left", fontsize=10, color=INK, parse_math=False)
        _draw_forest(axes, part, digits)
    grid[-1].set_xlabel(xlabel, color=INK, parse_math=False)
    if caption:
        write_caption(figure, caption)
    return figure


def _largest(differences: pd.Series[float], most: int) -> Any:
    """Return the places of the largest differences, in their order."""
    return np.sort(differences.abs().to_numpy().argsort()[::-1][:most])


def _largest_pairs(part: pd.DataFrame) -> pd.DataFrame:
    """Keep the pairs with the largest differences, in their order."""
    size = part.groupby("pair", sort=False)["difference"].agg(lambda values: values.abs().max())
    return part[part["pair"].isin(size.index[_largest(size, MOST_PAIRS)])]


def _draw_intervals(axes: Axes, part: pd.DataFrame, edges: Sequence[float]) -> None:
    """Draw a row per difference."""
    bare(axes)
    has_outer = "outer_low" in part
    columns = ["difference", "ci_low", "ci_high", *(["outer_low", "outer_high"] if has_outer else [])]
    numbers = part[columns].to_numpy(dtype=np.float64)
    shades = (
        np.nan_to_num(part["band"].to_numpy(dtype=np.float64), posinf=0.0) if "band" in part else np.zeros(len(part))
    )
    left, right = _limits(axes, numbers, shades, np.asarray(edges))
    for place, (row, shade, color, clear) in enumerate(zip(numbers, shades, *_colors(part), strict=True)):
        if shade > 0:
            axes.fill_betweenx([place - 0.42, place + 0.42], -shade, shade, color=BAND, linewidth=0, zorder=0)
        if has_outer:
            _draw_line(axes, place, row[3:], (left, right), color, 1.2)
        _draw_line(axes, place, row[1:3], (left, right), color, 2.8 if has_outer else 2)
        axes.plot(row[0], place, "o", color=color, markersize=6, markerfacecolor=color if clear else "white")
    for edge in edges:
        axes.axvline(edge, color=SOFT, linewidth=1, linestyle="--", zorder=1)
    axes.set_ylim(len(part) - 0.4, -0.6)


def _draw_forest(axes: Axes, part: pd.DataFrame, digits: int) -> None:
    """Draw a heading per pair and a row per collection, with numbers at the right."""
    bare(axes)
    axes.spines["left"].set_visible(False)
    ends = part[["difference", "ci_low", "ci_high"]].to_numpy(dtype=np.float64)
    limits = _limits(axes, ends)
    largest = float(part["n"].max())
    lines: list[tuple[str, str]] = []
    headings: list[str] = []
    for row, values, color, clear in zip(part.to_dict("records"), ends, *_colors(part), strict=True):
        if not headings or row["pair"] != headings[-1]:
            headings.append(row["pair"])
            lines.append((shown_name(row["pair"], LONGEST_NAME), "bold"))
        place = len(lines)
        if row["together"]:
            _draw_diamond(axes, place, values, limits, color)
        else:
            _draw_line(axes, place, values[1:], limits, color, 1.5)
            size = 3 + 5 * np.sqrt(row["n"] / largest)
            axes.plot(values[0], place, "s", color=color, markersize=size, markerfacecolor=color if clear else "white")
        lines.append((f"{shown_name(row['label'], LONGEST_NAME)}  n = {row['n']:,.0f}", "normal"))
        _write_numbers(axes, place, values, digits, bold=bool(row["together"]))
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], parse_math=False)
    for text, (_, weight) in zip(axes.get_yticklabels(), lines, strict=True):
        text.set_fontweight(weight)
    axes.set_ylim(len(lines) - 0.4, -0.6)


def _colors(part: pd.DataFrame) -> tuple[list[str], list[bool]]:
    """Return the colour of each row, and whether it is one of those that are clear."""
    clear = part["clear"].to_numpy(dtype=bool) if "clear" in part else np.ones(len(part), dtype=bool)
    better = part["better"].to_numpy(dtype=bool) if "better" in part else part["difference"].to_numpy() >= 0
    shades = np.where(clear, np.where(better, BETTER, WORSE), SOFT)
    return [str(shade) for shade in shades], [bool(each) for each in clear]


def _limits(axes: Axes, *numbers: Floats) -> tuple[float, float]:
    """Set the ends of the axis a little beyond all finite numbers and zero."""
    shades = numbers[1:2]
    every = np.concatenate([each.ravel() for each in (*numbers, *(-shade for shade in shades), np.zeros(1))])
    finite = every[np.isfinite(every)]
    span = float(np.ptp(finite))
    room = 0.06 * span if span > FLAT else NARROWEST  # an axis of rounding errors would show differences where none are
    left, right = float(finite.min()) - room, float(finite.max()) + room
    axes.set_xlim(left, right)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    axes.tick_params(axis="y", length=0)
    return left, right


def _draw_line(axes: Axes, place: float, ends: Floats, limits: tuple[float, float], color: str, width: float) -> None:
    """Draw an interval; an infinite end gets an arrow at the edge, an interval that is not known is left out."""
    low, high = ends
    if np.isnan(low) or np.isnan(high):
        return
    left, right = limits
    axes.plot([max(low, left), min(high, right)], [place, place], color=color, linewidth=width, zorder=2)
    for infinite, edge, marker in ((low == -np.inf, left, "<"), (high == np.inf, right, ">")):
        if infinite:
            axes.plot(edge, place, marker=marker, color=color, markersize=5, clip_on=False, zorder=3)


def _draw_diamond(axes: Axes, place: float, values: Floats, limits: tuple[float, float], color: str) -> None:
    """Draw a diamond from end to end of the interval; without two finite ends a line and a diamond in its middle."""
    middle, low, high = values
    if np.isfinite([low, high]).all():
        axes.fill([low, middle, high, middle], [place, place - 0.3, place, place + 0.3], color=color, zorder=3)
        return
    _draw_line(axes, place, values[1:], limits, color, 1.5)
    axes.plot(middle, place, "D", color=color, markersize=7, zorder=3)


def _write_numbers(axes: Axes, place: float, values: Floats, digits: int, *, bold: bool) -> None:
    """Write the difference and its interval at the right of a row."""
    middle, low, high = (with_minus(number(value, digits=digits, sign=True)) for value in values)
    interval = "" if DASH in (low, high) else f"  [{low}, {high}]"
    axes.text(
        1.02, place, f"{middle}{interval}", transform=axes.get_yaxis_transform(), va="center",
        fontsize=8, color=INK, fontweight="bold" if bold else "normal",
    )  # fmt: skip
