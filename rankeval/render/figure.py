"""A figure that a notebook shows. It imports matplotlib, so it is imported where a figure is drawn."""

from __future__ import annotations

import io

from matplotlib import figure


class Figure(figure.Figure):
    """A matplotlib figure, made without pyplot, that a notebook shows if it is the value of a cell.

    With ``%matplotlib inline`` IPython has a way of its own to show figures and does not ask for `_repr_png_`.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()
