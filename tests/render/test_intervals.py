"""Intervals and forests: a row each in its place, whatever the ends are, and names that fit."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pandas as pd
import pytest

from rankeval.render import comparisons
from rankeval.render.plots import BETTER, SOFT, WORSE


def rows(n, **columns):
    middle = np.linspace(-0.1, 0.2, n)
    frame = {
        "label": [f"s{k}" for k in range(n)],
        "difference": middle,
        "ci_low": middle - 0.05,
        "ci_high": middle + 0.05,
    }
    return pd.DataFrame(frame | columns)


def drawn(figure):
    """Draw the figure, which lays it out, and return the PNG's size."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=50)
    return len(out.getvalue())


def lines(axes):
    """Return color, ends and width of each interval drawn."""
    return [
        (line.get_color(), *line.get_xdata(), line.get_linewidth())
        for line in axes.lines
        if len(line.get_xdata()) == 2 and line.get_xdata()[0] != line.get_xdata()[1]
    ]


def test_intervals_have_a_row_each_and_a_panel_per_group():
    frame = rows(4, group=["AP", "AP", "RR", "RR"], clear=[True, False, True, False], band=0.08)
    figure = comparisons.intervals(frame, caption="x " * 200)
    assert drawn(figure) > 1000
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["AP", "RR"]
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]
    assert labels == [["s0", "s1"], ["s2", "s3"]]


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (np.nan, np.nan), (0.0, 0.0)])
def test_intervals_without_ends_are_drawn(low, high):
    """One-sided, missing and empty intervals keep their point within a finite axis."""
    frame = rows(2).assign(ci_low=low, ci_high=high)
    figure = comparisons.intervals(frame)
    assert drawn(figure) > 1000
    left, right = figure.axes[0].get_xlim()
    assert -1 < left < -0.1 < 0.2 < right < 1


def test_a_difference_of_zero_only_is_drawn():
    assert drawn(comparisons.intervals(rows(1).assign(difference=0.0, ci_low=0.0, ci_high=0.0))) > 1000


def test_of_many_intervals_the_largest_are_drawn_and_counted():
    figure = comparisons.intervals(rows(500))
    assert len(figure.axes[0].get_yticks()) == comparisons.MOST_ROWS
    assert "the 60 largest of 500" in figure.axes[0].get_title(loc="left")
    assert figure.get_figheight() < 30


def test_the_adjusted_interval_is_drawn_thin_around_the_other():
    figure = comparisons.intervals(rows(1, outer_low=-0.3, outer_high=0.1))
    assert drawn(figure) > 1000
    (_, *outer, thin), (_, *inner, thick) = lines(figure.axes[0])
    assert (outer, inner) == ([-0.3, 0.1], pytest.approx([-0.15, -0.05]))
    assert thin < thick


def test_colour_follows_the_gain_and_not_the_sign():
    """If less is better, a negative difference is a better system; what is not shown is grey."""
    frame = rows(3, difference=-0.1, clear=[True, True, False], better=[1, -1, 1])
    assert [color for color, *_ in lines(comparisons.intervals(frame).axes[0])] == [BETTER, WORSE, SOFT]


def test_margins_are_dashed_and_within_the_axis():
    figure = comparisons.intervals(rows(2, group="AP"), edges={"AP": [-0.5, 0.5]})
    dashed = [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert dashed == [-0.5, 0.5]
    left, right = figure.axes[0].get_xlim()
    assert left < -0.5 < 0.5 < right


def on_collections(n_pairs, n_collections=3, **columns):
    frame = pd.DataFrame(
        {
            "group": "AP",
            "pair": f"a_long_name_of_a_system_that_goes_on_{pair}",
            "label": "all" if part == n_collections else f"collection {part}",
            "together": part == n_collections,
            "n": 50 * (part + 1),
            "difference": 0.01 * pair + 0.02 * part,
            "ci_low": 0.01 * pair - 0.05,
            "ci_high": 0.01 * pair + 0.15,
            "clear": part == 2,
            "better": True,
        }
        for pair in range(n_pairs)
        for part in range(n_collections + 1)
    )
    return frame.assign(**columns)


def test_a_forest_has_a_heading_per_pair_a_row_per_collection_and_a_diamond():
    figure = comparisons.forest(on_collections(2), xlabel="difference", caption="words " * 50)
    assert drawn(figure) > 1000
    axes = figure.axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[1:5] == ["collection 0  n = 50", "collection 1  n = 100", "collection 2  n = 150", "all  n = 200"]
    assert names[0] == "a_long_name_of_a_\u2026m_that_goes_on_0"
    assert [text.get_fontweight() for text in axes.get_yticklabels()][:2] == ["bold", "normal"]
    (first, second) = axes.patches
    assert first.get_xy()[:, 0].tolist()[:3] == pytest.approx([-0.05, 0.06, 0.15])
    assert second.get_xy()[:, 1].mean() > first.get_xy()[:, 1].mean()
    written = [text.get_text() for text in axes.texts]
    assert written[0] == "0.000  [\u22120.050, +0.150]"
    assert len(written) == 8


def test_the_texts_of_a_forest_do_not_overlap():
    figure = comparisons.forest(on_collections(6))
    drawn(figure)
    axes = figure.axes[0]
    for texts in (axes.get_yticklabels(), axes.texts):
        boxes = [text.get_window_extent() for text in texts]
        assert all(upper.y0 >= lower.y1 - 1 for upper, lower in itertools.pairwise(boxes))
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    inside = axes.get_window_extent()
    assert all(text.get_window_extent().x0 > inside.x1 for text in axes.texts)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 0.3), (-0.3, np.inf), (np.nan, np.nan), (-np.inf, np.inf)])
def test_a_forest_without_finite_ends_is_drawn(low, high):
    figure = comparisons.forest(on_collections(1, ci_low=low, ci_high=high))
    assert drawn(figure) > 1000
    assert not figure.axes[0].patches


def test_of_many_pairs_the_largest_are_drawn_and_counted():
    figure = comparisons.forest(on_collections(100))
    assert figure.axes[0].get_title(loc="left") == "AP (the 20 largest of 100)"
    assert figure.axes[0].get_yticklabels()[-5].get_text().endswith("99")
    assert figure.get_figheight() < 35


@pytest.mark.parametrize(
    "make", [lambda: comparisons.intervals(rows(2)), lambda: comparisons.forest(on_collections(1))]
)
def test_a_notebook_shows_the_figure(make):
    assert make()._repr_png_().startswith(b"\x89PNG\r\n")
