"""Figures of comparisons: differences with intervals, the matrix of all pairs, ranges of ranks, trade-offs.

An interval is drawn twice where it was adjusted for several comparisons::

    ---====o====---      thin: adjusted, for all rows at once
       ====              thick: for this row alone

The matrix shows all pairs of systems at a glance, the best system in the first row.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.text import Text

from rankeval.render.plots import (
    BAND,
    BETTER,
    INK,
    LONGEST_NAME,
    SOFT,
    WORSE,
    Figure,
    Floats,
    one_panel,
    shown_name,
    without_frame,
    write_caption,
)
from rankeval.render.tables import DASH, interval, number, with_minus

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_ROWS = 60
"""Intervals drawn in one panel; if there are more, those with the largest differences are drawn."""

MOST_PAIRS = 20
"""Pairs in one panel of a forest; of more, those with the largest differences are drawn."""

FLAT = 1e-9
"""If no number is further from zero, all are taken as zero."""

_RISES = (4, -12, 16, -24, 28, -36, 40, -48, 52, -60)
"""Heights of a name over its point in points, tried in turn."""

_LEADER: dict[str, Any] = {"arrowstyle": "-", "color": SOFT, "linewidth": 0.6, "shrinkB": 4}
"""The line from a name to its point."""

_OFFSET: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "parse_math": False}

Box = tuple[float, float, float, float]
"""Left, lower, right and upper end."""

NARROWEST = 0.1
"""How far the axis then reaches to either side."""

ROW = 0.27
"""Height of a row of a forest in inches."""

MARKS: dict[str, dict[str, Any]] = {
    "line": {"color": SOFT, "linewidth": 2},
    "thick": {"color": SOFT, "linewidth": 2.8},
    "thin": {"color": SOFT, "linewidth": 1.2},
    "dashed": {"color": SOFT, "linewidth": 1, "linestyle": "--"},
    "hollow": {"color": SOFT, "marker": "o", "markerfacecolor": "white", "linestyle": "none"},
    "point": {"color": BETTER, "marker": "o", "linestyle": "none"},
    "shade": {"color": BAND, "linewidth": 8},
    "": {"linestyle": "none"},
}
"""What a line of the legend shows, by name; "" is a line of words alone."""


def intervals(
    frame: pd.DataFrame,
    *,
    xlabel: str = "difference of means",
    caption: str = "",
    edges: Mapping[str, Sequence[float]] | None = None,
    key: Sequence[tuple[str, str]] = (),
) -> Figure:
    """Draw differences with their intervals about a line at zero, a panel per group.

    ``edges`` are the other places that differences are compared with, by group; ``key`` has the
    lines of the legend, each the name of its mark (`MARKS`) and its words.
    """
    groups = frame.groupby("group", sort=False) if "group" in frame else [("", frame)]
    parts, sizes = {}, {}
    for name, whole in groups:
        part = parts[str(name)] = whole.iloc[_largest(whole["difference"], MOST_ROWS)]
        sizes[str(name)] = len(part), len(whole)
    heights = [(0.34 if len(part) <= 20 else 0.22) * len(part) + 0.55 for part in parts.values()]
    figure, panels = _stacked(sizes, heights, 0.75, xlabel)
    for axes, (name, part) in zip(panels, parts.items(), strict=True):
        _draw_intervals(axes, part, (edges or {}).get(name, ()))
        names = [shown_name(text, LONGEST_NAME) for text in part["label"]]
        size = 9 if len(part) <= 20 else 8
        axes.set_yticks(range(len(part)), names, parse_math=False, fontsize=size)
    write_caption(figure, caption)
    write_key(figure, key)
    return figure


def forest(
    frame: pd.DataFrame,
    *,
    xlabel: str = "difference of means",
    caption: str = "",
    digits: int = 3,
    key: Sequence[tuple[str, str]] = (),
) -> Figure:
    """Draw differences on collections or slices, those of one pair of systems below each other.

    The area of a square grows with its number of queries.
    """
    parts, sizes, heights = [], {}, []
    for name, whole in frame.groupby("group", sort=False):
        part = _largest_pairs(whole)
        n_pairs = part["pair"].nunique()
        parts.append(part)
        sizes[str(name)] = n_pairs, whole["pair"].nunique()
        heights.append(ROW * (len(part) + n_pairs) + 0.6)
    figure, panels = _stacked(sizes, heights, 0.6, xlabel)
    for axes, part in zip(panels, parts, strict=True):
        _draw_forest(axes, part, digits)
    write_caption(figure, caption)
    write_key(figure, key)
    return figure


def write_key(figure: Figure, key: Sequence[tuple[str, str]]) -> None:
    """Write a legend below a figure, and make the figure higher by its lines."""
    if not key:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=words, **MARKS[mark]) for mark, words in key]
    figure.legend(
        handles=handles, loc="outside lower left", fontsize=8.5, frameon=False, labelcolor=INK
    )
    figure.set_figheight(figure.get_figheight() + 0.22 * len(key))


def _stacked(
    sizes: Mapping[str, tuple[int, int]], heights: Sequence[float], room: float, xlabel: str
) -> tuple[Figure, list[Axes]]:
    """Return a figure of titled panels below each other; sizes are (drawn, of all)."""
    figure = Figure(figsize=(7.5, sum(heights) + room), layout="constrained")
    panels = figure.subplots(len(sizes), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (name, (n, n_all)) in zip(panels, sizes.items(), strict=True):
        left_out = f" (the {n} largest of {n_all})" if n < n_all else ""
        axes.set_title(name + left_out, loc="left", fontsize=10, color=INK, parse_math=False)
    panels[-1].set_xlabel(xlabel, color=INK, parse_math=False)
    return figure, list(panels)


def _largest(differences: pd.Series[float], most: int) -> Any:
    return np.sort(differences.abs().to_numpy().argsort()[::-1][:most])


def _largest_pairs(part: pd.DataFrame) -> pd.DataFrame:
    size = part.groupby("pair", sort=False)["difference"].agg(lambda values: values.abs().max())
    return part[part["pair"].isin(size.index[_largest(size, MOST_PAIRS)])]


def _draw_intervals(axes: Axes, part: pd.DataFrame, edges: Sequence[float]) -> None:
    without_frame(axes)
    has_outer = "outer_low" in part
    columns = ["difference", "ci_low", "ci_high"]
    if has_outer:
        columns += ["outer_low", "outer_high"]
    numbers = part[columns].to_numpy(dtype=np.float64)
    bands = np.asarray(part.get("band", np.zeros(len(part))), dtype=np.float64)
    shades = np.nan_to_num(bands, posinf=0.0)
    limits = _limits(axes, numbers, shades, -shades, np.asarray(edges))
    rows = zip(numbers, shades, *_colors(part), strict=True)
    for place, (row, shade, color, clear) in enumerate(rows):
        if shade > 0:
            around = [place - 0.42, place + 0.42]
            axes.fill_betweenx(around, -shade, shade, color=BAND, linewidth=0, zorder=0)
        if has_outer:
            _draw_line(axes, place, row[3:], limits, color, 1.2)
        _draw_line(axes, place, row[1:3], limits, color, 2.8 if has_outer else 2)
        _draw_point(axes, row[0], place, "o", color, 6, clear=clear)
    for edge in edges:
        axes.axvline(edge, color=SOFT, linewidth=1, linestyle="--", zorder=1)
    axes.set_ylim(len(part) - 0.4, -0.6)


def _draw_forest(axes: Axes, part: pd.DataFrame, digits: int) -> None:
    without_frame(axes)
    axes.spines["left"].set_visible(False)
    ends = part[["difference", "ci_low", "ci_high"]].to_numpy(dtype=np.float64)
    limits = _limits(axes, ends)
    largest = float(part["n"].max())
    lines: list[tuple[str, str]] = []
    headings: list[str] = []
    rows = zip(part.to_dict("records"), ends, *_colors(part), strict=True)
    for row, values, color, clear in rows:
        if not headings or row["pair"] != headings[-1]:
            headings.append(row["pair"])
            lines.append((shown_name(row["pair"], LONGEST_NAME), "bold"))
        place = len(lines)
        if row["together"]:
            _draw_diamond(axes, place, values, limits, color)
        else:
            _draw_line(axes, place, values[1:], limits, color, 1.5)
            size = 3 + 5 * float(np.sqrt(row["n"] / largest))
            _draw_point(axes, values[0], place, "s", color, size, clear=clear)
        lines.append((f"{shown_name(row['label'], LONGEST_NAME)}  n = {row['n']:,.0f}", "normal"))
        _write_numbers(axes, place, values, digits, bold=bool(row["together"]))
    axes.set_yticks(range(len(lines)), [name for name, _ in lines], parse_math=False)
    for text, (_, weight) in zip(axes.get_yticklabels(), lines, strict=True):
        text.set_fontweight(weight)
    axes.set_ylim(len(lines) - 0.4, -0.6)


def _draw_point(
    axes: Axes, x: float, place: float, marker: str, color: str, size: float, *, clear: bool
) -> None:
    face = color if clear else "white"
    axes.plot(x, place, marker, color=color, markersize=size, markerfacecolor=face)


def _colors(part: pd.DataFrame) -> tuple[list[str], list[bool]]:
    """Return the color of each row, and whether its claim is shown."""
    clear = np.ones(len(part), dtype=bool)
    if "clear" in part:
        clear = part["clear"].to_numpy(dtype=bool)
    gains = part["better" if "better" in part else "difference"].to_numpy(dtype=np.float64)
    colors = np.select([~clear, gains > 0, gains < 0], [SOFT, BETTER, WORSE], INK)
    return colors.tolist(), clear.tolist()


def _limits(axes: Axes, *numbers: Floats) -> tuple[float, float]:
    """Set the ends of the axis a little beyond all finite numbers and zero."""
    every = np.concatenate([values.ravel() for values in (*numbers, np.zeros(1))])
    finite = every[np.isfinite(every)]
    span = float(np.ptp(finite))
    # An axis of rounding errors would show differences where none are.
    room = 0.06 * span if span > FLAT else NARROWEST
    left, right = float(finite.min()) - room, float(finite.max()) + room
    axes.set_xlim(left, right)
    axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    axes.tick_params(axis="y", length=0)
    return left, right


def _draw_line(
    axes: Axes, place: float, ends: Floats, limits: tuple[float, float], color: str, width: float
) -> None:
    """Draw an interval, if it is known; an infinite end gets an arrow at the edge."""
    low, high = ends
    if interval(low, high) == DASH:
        return
    left, right = limits
    drawn = [max(low, left), min(high, right)]
    axes.plot(drawn, [place, place], color=color, linewidth=width, zorder=2)
    for end, edge, marker in ((low, left, "<"), (high, right, ">")):
        if np.isinf(end):
            axes.plot(
                edge, place, marker=marker, color=color, markersize=5, clip_on=False, zorder=3
            )


def _draw_diamond(
    axes: Axes, place: float, values: Floats, limits: tuple[float, float], color: str
) -> None:
    """Draw a diamond from end to end of an interval; if it is infinite, a line and a mark."""
    middle, low, high = values
    if np.isfinite([low, high]).all():
        corners = [place, place - 0.3, place, place + 0.3]
        axes.fill([low, middle, high, middle], corners, color=color, zorder=3)
        return
    _draw_line(axes, place, values[1:], limits, color, 1.5)
    axes.plot(middle, place, "D", color=color, markersize=7, zorder=3)


def _write_numbers(axes: Axes, place: float, values: Floats, digits: int, *, bold: bool) -> None:
    text = with_minus(number(values[0], digits=digits, sign=True))
    ends = with_minus(interval(*values[1:], digits=digits, sign=True))
    if ends != DASH:
        text = f"{text}  {ends}"
    weight = "bold" if bold else "normal"
    _write_beside(axes, 1.02, place, text, fontsize=8, fontweight=weight)


def _write_beside(axes: Axes, x: float, place: float, text: str, **options: Any) -> None:
    """Write a text at the right of a row; ``x`` is in widths of the axes."""
    right = axes.get_yaxis_transform()
    axes.text(x, place, text, transform=right, va="center", color=INK, **options)


MOST_SIGNED = 24
"""Up to this many systems the cells have signs, which are read without colour."""

FAINTEST = 0.35
"""Strength of the colour for one sign, if there are more; that of the most signs is 1."""

LETTER_WIDTH = 0.62
"""Width of a letter as a share of the size of the font, on the safe side."""


def significance_matrix(
    means: pd.Series[float],
    claims: pd.DataFrame,
    *,
    levels: Sequence[float],
    words: Sequence[str] = ("better", "worse"),
    digits: int = 4,
    title: str = "",
    caption: str = "",
) -> Figure:
    """Draw a cell for each pair of systems, coloured if one is shown better.

    ``means`` go from the best system to the worst; ``claims`` are rows of ``ordered_claims``.
    """
    codes = _codes(means, claims, levels)
    names = [shown_name(name, LONGEST_NAME) for name in means.index]
    figure, axes = _placed_axes(names, caption, title, len(levels))
    _draw_cells(axes, codes, len(levels))
    _name_systems(axes, means, digits)
    if len(means) <= MOST_SIGNED:
        _write_signs(axes, codes, len(levels))
    _add_legend(figure, levels, words)
    return figure


def _placed_axes(names: Sequence[str], caption: str, title: str, most: int) -> tuple[Figure, Axes]:
    """Return axes with cells of a fixed size, in a figure as large as cells and names need it.

    Matplotlib's own layouts keep the size of the figure, and long names would leave no room for the
    cells.
    """
    side = (0.36 if len(names) <= MOST_SIGNED else 0.2) * len(names)
    size = _font_size(len(names))
    reach = max(map(len, names)) * size * LETTER_WIDTH / 72
    left, below = reach + 8 * size * LETTER_WIDTH / 72 + 0.25, 0.2 * (most + 1) + 0.45
    width = max(left + side + 0.2, 5.5)
    lines = [(line, 9, SOFT) for line in textwrap.wrap(caption, int(14 * width))]
    lines += [(title, 10, INK)] if title else []
    height = below + side + reach + 0.16 * len(lines) + 0.35
    figure = Figure(figsize=(width, height))
    for place, (line, letters, color) in enumerate(lines):
        top = 1 - (0.16 * place + 0.08) / height
        figure.text(
            0.08 / width, top, line, va="top", fontsize=letters, color=color, parse_math=False
        )
    rectangle = (left / width, below / height, side / width, side / height)
    return figure, figure.add_axes(rectangle)


def _font_size(n: int) -> float:
    return 8.5 if n <= MOST_SIGNED else 6.5


def _codes(means: pd.Series[float], claims: pd.DataFrame, levels: Sequence[float]) -> Floats:
    """Return the signs of each cell, negative if the row is worse; nan if not compared."""
    places = {name: place for place, name in enumerate(means.index)}
    codes = np.full((len(means), len(means)), np.nan)
    for row in claims.to_dict("records"):
        signs = row["sign"] * sum(row["p"] <= level for level in levels) if row["shown"] else 0
        codes[places[row["system"]], places[row["other"]]] = signs
    return codes


def _draw_cells(axes: Axes, codes: Floats, most: int) -> None:
    from matplotlib.colors import to_rgb

    colors = np.ones((*codes.shape, 3))
    colors[codes == 0] = to_rgb(BAND)
    for sign, color in ((1, BETTER), (-1, WORSE)):
        for signs in range(1, most + 1):
            strength = _strength(signs, most)
            colors[codes == sign * signs] = strength * np.array(to_rgb(color)) + (1 - strength)
    axes.imshow(colors, interpolation="nearest", aspect="equal")
    edges = np.arange(len(codes) + 1) - 0.5
    axes.hlines(edges, -0.5, len(codes) - 0.5, color="white", linewidth=1)
    axes.vlines(edges, -0.5, len(codes) - 0.5, color="white", linewidth=1)
    axes.spines[:].set_visible(False)


def _strength(signs: int, most: int) -> float:
    return 1.0 if most == 1 else float(np.interp(signs, [1, most], [FAINTEST, 1.0]))


def _name_systems(axes: Axes, means: pd.Series[float], digits: int) -> None:
    size = _font_size(len(means))
    names = [shown_name(name, LONGEST_NAME) for name in means.index]
    numbers = [number(mean, digits=digits) for mean in means]
    beside = [f"{name}  {mean}" for name, mean in zip(names, numbers, strict=True)]
    axes.set_yticks(range(len(names)), beside, fontsize=size, parse_math=False)
    axes.set_xticks(range(len(names)), names, fontsize=size, rotation=90, parse_math=False)
    axes.tick_params(length=0, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False)


def _write_signs(axes: Axes, codes: Floats, most: int) -> None:
    for (row, column), code in np.ndenumerate(codes):
        if np.isfinite(code) and code:
            sign, signs = ("+" if code > 0 else "\N{MINUS SIGN}"), int(abs(code))
            color = "white" if _strength(signs, most) > 0.5 else INK
            axes.text(column, row, sign * signs, ha="center", va="center", fontsize=7, color=color)


def _add_legend(figure: Figure, levels: Sequence[float], words: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    most = len(levels)
    # A legend is filled column by column, and its columns have equal lengths.
    rest = [Patch(facecolor=BAND, label="not shown"), Patch(alpha=0, label="")]
    kinds = zip(words, (BETTER, WORSE), ("+", "\N{MINUS SIGN}"), rest, strict=False)
    patches = []
    for word, color, sign, last in kinds:
        for n in range(most, 0, -1):
            text = f"{sign * n} {word}, p ≤ {levels[n - 1]:g}"
            patches.append(Patch(facecolor=color, alpha=_strength(n, most), label=text))
        patches.append(last)
    figure.legend(
        handles=patches, loc="lower left", ncols=min(2, len(words)), fontsize=8, frameon=False, labelcolor=SOFT,
        title="row against column, adjusted p", title_fontsize=8, alignment="left",
    )  # fmt: skip


def rank_intervals(
    frame: pd.DataFrame,
    *,
    xlabel: str = "rank",
    title: str = "",
    caption: str = "",
    digits: int = 4,
    key: Sequence[tuple[str, str]] = (),
) -> Figure:
    """Draw the lowest and the highest rank of each system, and the place of its mean.

    The rows are in the order of the means, from the best to the worst.
    """
    n = len(frame)
    crowded = n > 20
    figure, axes = one_panel(7.5, (0.2 if crowded else 0.3) * n + 1.1)
    axes.spines["left"].set_visible(False)
    size = 7.5 if crowded else 9
    for place, row in enumerate(frame.to_dict("records")):
        if place % 2 == 0:
            axes.axhspan(place - 0.5, place + 0.5, color=BAND, alpha=0.5, linewidth=0, zorder=0)
        ends = [row["rank_low"], row["rank_high"]]
        axes.plot(ends, [place, place], color=SOFT, linewidth=2.5, solid_capstyle="butt")
        for end in ends:
            axes.plot([end, end], [place - 0.22, place + 0.22], color=SOFT, linewidth=1.5)
        mean = number(row["mean"], digits=digits)
        _write_beside(axes, 1.01, place, mean, fontsize=size - 1)
    # In the order of the frame, so that it does not matter whether more or less is better; equal
    # means share a place.
    first = [frame["mean"].tolist().index(mean) + 1 for mean in frame["mean"]]
    axes.plot(first, range(n), "o", color=BETTER, markersize=5, linestyle="none")
    names = [shown_name(name, LONGEST_NAME) for name in frame["system"]]
    axes.set_yticks(range(n), names, fontsize=size, parse_math=False)
    axes.set_xticks(_ticks(n))
    axes.set_xlim(0.5, n + 0.5)
    axes.set_ylim(n - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(xlabel, color=INK, fontsize=9, parse_math=False)
    axes.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    write_caption(figure, caption)
    write_key(figure, key)
    return figure


def _ticks(n: int) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 10**9) if n / step <= 16)
    return sorted({1, *np.arange(step, n + 1, step).tolist()})


def regions(frame: pd.DataFrame, labels: Sequence[str], caption: str) -> Figure:
    """Draw two differences of each system with their ellipse; systems that are dominated are hollow."""
    figure, axes = one_panel(7.5, 5)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.axvline(0, color=INK, linewidth=0.8)
    angles = np.linspace(0, 2 * np.pi, 181)
    across, up = np.cos(angles), np.sin(angles)
    for row in frame.to_dict("records"):
        x, y, shape = row["difference_x"], row["difference_y"], row["correlation"]
        color = SOFT if row["dominated_by"] else INK
        along = shape * across + np.sqrt(1 - shape**2) * up
        ends = row["high_x"] - x, row["high_y"] - y
        axes.plot(x + ends[0] * across, y + ends[1] * along, color=color, linewidth=1.2)
        _draw_point(axes, x, y, "o", color, 6, clear=not row["dominated_by"])
    axes.set_xlabel(labels[0], color=INK, parse_math=False)
    axes.set_ylabel(labels[1], color=INK, parse_math=False)
    write_caption(figure, caption)
    _name_points(figure, axes, frame)
    return figure


def _name_points(figure: Figure, axes: Axes, frame: pd.DataFrame) -> None:
    """Write the name of each point beside it, where it covers neither a point nor another name."""
    names = []
    for row in frame.to_dict("records"):
        point = row["difference_x"], row["difference_y"]
        label = shown_name(row["system"], LONGEST_NAME)
        names.append(axes.annotate(label, point, (6, 4), arrowprops=_LEADER, **_OFFSET))
    figure.draw_without_rendering()  # the layout says where the points are
    scale = figure.dpi / 72
    points = axes.transData.transform([name.xy for name in names]) / scale
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    for name, (x, y) in zip(names, points, strict=True):
        extent = Text.get_window_extent(name)
        width, height = extent.width / scale, extent.height / scale
        for across, up in product((6, -6 - width), _RISES):
            box = (x + across, y + up, x + across + width, y + up + height)
            if not any(_overlap(box, other) for other in taken):
                name.set_position((across, up))
                taken.append(box)
                break


def _overlap(box: Box, other: Box) -> bool:
    across = box[0] < other[2] and other[0] < box[2]
    return across and box[1] < other[3] and other[1] < box[3]
