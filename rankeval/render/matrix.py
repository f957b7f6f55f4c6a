"""The significance matrix: all pairs of systems at a glance, the best system in the first row."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankeval.render.figure import BAND, BETTER, INK, LONGEST_NAME, SOFT, WORSE, Floats, shown_name
from rankeval.render.tables import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from rankeval.render.figure import Figure

MOST_SIGNED = 24
"""Up to this many systems the cells hold signs, which are read without colour."""

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

    Parameters
    ----------
    means : Series
        Mean of each system, from the best to the worst: the order of rows and columns.
    claims : DataFrame
        A row per ordered pair, with the columns "system" (row), "other" (column), "sign" (1 or -1), "p" (adjusted) and
        "shown".
    levels : sequence of float
        The levels of one, two and more signs.
    words : sequence of str
        Words of the legend for a positive and, if there is one, for a negative sign.
    digits : int, default 4
        Decimals of the means.
    title, caption : str
        Texts above.

    Returns
    -------
    Figure
        Not registered with pyplot.
    """
    from rankeval.render.figure import Figure

    codes = _codes(means, claims, levels)
    figure = Figure(figsize=(1, 1))
    axes = _placed_axes(figure, [shown_name(name, LONGEST_NAME) for name in means.index], caption, title, len(levels))
    _draw_cells(axes, codes, len(levels))
    _name_systems(axes, means, digits)
    if len(means) <= MOST_SIGNED:
        _write_signs(axes, codes, len(levels))
    _add_legend(figure, levels, words)
    return figure


def _placed_axes(figure: Figure, names: Sequence[str], caption: str, title: str, most: int) -> Axes:
    """Return axes with cells of a fixed size, and make the figure as large as they and the names around need it.

    Matplotlib's own layouts keep the size of the figure, and long names would leave no room for the cells.
    """
    side = (0.36 if len(names) <= MOST_SIGNED else 0.2) * len(names)
    size = _font_size(len(names))
    reach = max(map(len, names)) * size * LETTER_WIDTH / 72
    left, below = reach + 8 * size * LETTER_WIDTH / 72 + 0.25, 0.2 * (most + 1) + 0.45
    width = max(left + side + 0.2, 5.5)
    lines = textwrap.wrap(caption, int(14 * width)) + ([title] if title else [])
    height = below + side + reach + 0.16 * len(lines) + 0.35
    figure.set_size_inches(width, height)
    for place, line in enumerate(lines):
        is_title = bool(title) and place == len(lines) - 1
        figure.text(
            0.08 / width, 1 - (0.16 * place + 0.08) / height, line, va="top", fontsize=10 if is_title else 9,
            color=INK if is_title else SOFT, parse_math=False,
        )  # fmt: skip
    return figure.add_axes((left / width, below / height, side / width, side / height))


def _font_size(n: int) -> float:
    """Return the size of the names of so many systems."""
    return 8.5 if n <= MOST_SIGNED else 6.5


def _codes(means: pd.Series[float], claims: pd.DataFrame, levels: Sequence[float]) -> Floats:
    """Return the number of signs of each cell, negative if the row is worse; nan where nothing was compared."""
    places = {name: place for place, name in enumerate(means.index)}
    codes = np.full((len(means), len(means)), np.nan)
    for row in claims.to_dict("records"):
        signs = row["sign"] * sum(row["p"] <= level for level in levels) if row["shown"] else 0
        codes[places[row["system"]], places[row["other"]]] = signs
    return codes


def _draw_cells(axes: Axes, codes: Floats, most: int) -> None:
    """Fill the cells; those that compare nothing stay white."""
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
    for spine in axes.spines.values():
        spine.set_visible(False)


def _strength(signs: int, most: int) -> float:
    """Return the strength of a colour: that of the most signs is full."""
    return 1.0 if most == 1 else float(np.interp(signs, [1, most], [FAINTEST, 1.0]))


def _name_systems(axes: Axes, means: pd.Series[float], digits: int) -> None:
    """Write the systems with their means at the left, and their names above."""
    size = _font_size(len(means))
    names = [shown_name(name, LONGEST_NAME) for name in means.index]
    beside = [f"{name}  {number(mean, digits=digits)}" for name, mean in zip(names, means, strict=True)]
    axes.set_yticks(range(len(names)), beside, fontsize=size, parse_math=False)
    axes.set_xticks(range(len(names)), names, fontsize=size, rotation=90, parse_math=False)
    axes.tick_params(length=0, colors=INK, top=True, labeltop=True, bottom=False, labelbottom=False)


def _write_signs(axes: Axes, codes: Floats, most: int) -> None:
    """Write the signs into the cells."""
    for (row, column), code in np.ndenumerate(codes):
        if np.isfinite(code) and code:
            sign, signs = ("+" if code > 0 else "\N{MINUS SIGN}"), int(abs(code))
            color = "white" if _strength(signs, most) > 0.5 else INK
            axes.text(column, row, sign * signs, ha="center", va="center", fontsize=7, color=color)


def _add_legend(figure: Figure, levels: Sequence[float], words: Sequence[str]) -> None:
    """Explain the colours and signs below the matrix."""
    from matplotlib.patches import Patch

    most = len(levels)
    columns = []
    for word, color, sign in zip(words, (BETTER, WORSE), ("+", "\N{MINUS SIGN}"), strict=False):
        texts = {signs: f"{sign * signs} {word}, p ≤ {levels[signs - 1]:g}" for signs in range(most, 0, -1)}
        columns.append([Patch(facecolor=color, alpha=_strength(n, most), label=text) for n, text in texts.items()])
    # A legend is filled column by column, and its columns have equal lengths.
    rest = [Patch(facecolor=BAND, label="not shown"), Patch(alpha=0, label="")]
    figure.legend(
        handles=[patch for column, last in zip(columns, rest, strict=False) for patch in (*column, last)],
        loc="lower left", ncols=len(columns), fontsize=8, frameon=False, labelcolor=SOFT,
        title="row against column, adjusted p", title_fontsize=8, alignment="left",
    )  # fmt: skip
