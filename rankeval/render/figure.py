"""Figures that a notebook shows: their colours, bare axes and names that fit.

This imports matplotlib, so it is imported where a figure is drawn.
"""

from __future__ import annotations

import io
import textwrap
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, SOFT, BETTER, WORSE, BAND = "#1f2933", "#7b8794", "#0b6e4f", "#b3412f", "#e8ebee"
LONGEST_ID = 18
"""Characters of a query id in a figure; the middle of a longer one is left out."""

LONGEST_NAME = 34
"""Characters of the name of a system, or of a pair of systems, in a figure."""


class Figure(figure.Figure):
    """A matplotlib figure, made without pyplot, that a notebook shows if it is the value of a cell.

    With ``%matplotlib inline`` IPython has a way of its own to show figures and does not ask for `_repr_png_`.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()


Floats = NDArray[np.float64]


def bare(axes: Axes) -> None:
    """Remove the parts of the frame that carry no information."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=9)


def write_caption(figure: Figure, caption: str, *, width: int = 105) -> None:
    """Write a caption above a figure, and make the figure higher by its lines."""
    lines = textwrap.wrap(caption, width)
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=9, color=SOFT, parse_math=False)
    figure.set_figheight(figure.get_figheight() + 0.15 * len(lines))


def shown_name(name: object, longest: int = LONGEST_ID) -> str:
    """Return a name as a figure can show it: short, in one line, in characters of the font."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = f"{text[: longest // 2]}\N{HORIZONTAL ELLIPSIS}{text[1 - longest // 2 :]}"
    known = _characters()
    return "".join(letter if ord(letter) in known else "\N{WHITE SQUARE}" for letter in text)


@cache
def _characters() -> frozenset[int]:
    """Return the characters of the font: matplotlib warns of each that it lacks."""
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    return frozenset(font.get_charmap())
