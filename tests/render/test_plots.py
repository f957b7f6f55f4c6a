"""Figures show each row once, survive odd numbers, and leave pyplot alone."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pandas as pd
import pytest

from rankeval.render import plots


def drawn(figure):
    """Draw the figure, which lays it out, and return the PNG's size."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=50)
    return len(out.getvalue())


@pytest.mark.parametrize("n", [1, 30, *(pytest.param(n, marks=pytest.mark.rest) for n in (2, 300, 5000))])
def test_query_differences_count_wins_and_losses(n):
    """Few queries are named at the axis, many become an outline."""
    values = pd.Series(np.random.default_rng(0).normal(0.1, 1, n).round(1), index=[f"q{k}" for k in range(n)])
    figure = plots.query_differences(values, system="new", baseline="old", measure="AP")
    assert drawn(figure) > 1000
    won, tied, lost = (values > 0).sum(), (values == 0).sum(), (values < 0).sum()
    assert figure.axes[0].get_title(loc="left") == f"new against old: {won:,} won, {tied:,} tied, {lost:,} lost"
    if n <= 30:
        first = figure.axes[0].get_xticklabels()[0].get_text()
        assert values[first] == values.max()


@pytest.mark.parametrize("n_measures", [1, 4, *(pytest.param(n, marks=pytest.mark.rest) for n in (2, 3, 7))])
def test_sorted_scores_have_a_panel_per_measure(n_measures):
    frame = pd.DataFrame(
        np.random.default_rng(0).random((20, n_measures)) * 3, columns=[f"m{k}" for k in range(n_measures)]
    )
    figure = plots.sorted_scores(frame)
    assert drawn(figure) > 1000
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"m{k}: mean {frame[f'm{k}'].mean():.4f}" for k in range(n_measures)]


def test_one_query_can_be_drawn():
    assert drawn(plots.sorted_scores(pd.DataFrame({"AP": [0.5]}))) > 1000


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("n", [31, 500])
def test_the_largest_gains_and_losses_are_named(n):
    """Five of each beside the axes, the largest first, and nothing else is drawn there."""
    values = pd.Series(np.linspace(0.9, -0.4, n), index=[f"q{k}" for k in range(n)])
    figure = plots.query_differences(values.sample(frac=1, random_state=0), system="n", baseline="o", measure="AP")
    assert drawn(figure) > 1000
    _, gains, losses = texts(figure)
    assert gains.splitlines() == ["largest gains", *(f"{values.iloc[k]:+.3f}  q{k}" for k in range(5))]
    assert losses.splitlines()[1].endswith(f"  q{n - 1}")
    inside = figure.axes[0].get_window_extent()
    top, bottom = (text.get_window_extent() for text in figure.axes[0].texts[1:])
    assert min(top.x0, bottom.x0) > inside.x1
    assert top.y0 > bottom.y1
    assert max(top.x1, bottom.x1) <= figure.bbox.x1


def test_where_nothing_is_lost_none_is_named():
    figure = plots.query_differences(pd.Series(np.ones(40)), system="new", baseline="old", measure="AP")
    assert texts(figure)[2] == "largest losses\nnone"


def test_odd_ids_are_shown_short_in_one_line_and_as_text():
    """No formula, no line break, and a square for a character that the font lacks (matplotlib would warn)."""
    ids = [f"$x^{k}$ \n\u67e5{'long' * 9}{k}" for k in range(40)]
    values = pd.Series(np.linspace(1, -1, 40), index=ids)
    figure = plots.query_differences(values, system="new", baseline="old", measure="AP")
    assert drawn(figure) > 1000
    assert texts(figure)[1].splitlines()[1] == "+1.000  $x^0$ \u25a1lo\u2026onglong0"
    assert drawn(plots.query_differences(values[:30], system="new", baseline="old", measure="AP")) > 1000


def test_sorted_scores_name_the_worst_queries_where_less_is_better_too():
    frame = pd.DataFrame({"AP": [0.5, 0.1, 0.9, 0.1], "ARP": [2.0, 9.0, 4.0, 1.0]}, index=list("dbca"))
    figure = plots.sorted_scores(frame)
    assert [axes.get_xlabel() for axes in figure.axes] == ["worst: b, a, d, c", "worst: b, c, d, a"]
    assert figure.axes[1].lines[0].get_ydata().tolist() == [1.0, 2.0, 4.0, 9.0]


@pytest.mark.parametrize(
    "figure",
    [
        lambda: plots.query_differences(pd.Series([0.1, -0.2], ["q1", "q2"]), system="a", baseline="b", measure="AP"),
        lambda: plots.sorted_scores(pd.DataFrame({"AP": [0.1, 0.2]}, index=["q1", "q2"])),
        lambda: plots.curve(
            pd.DataFrame({"mean": [0.1], "min": [0.0], "max": [0.2]}, index=[10]), xlabel="", ylabel=""
        ),
    ],
    ids=["query_differences", "sorted_scores", "curve"],
)
def test_a_notebook_shows_a_figure_as_the_value_of_a_cell(figure):
    """It asks for `_repr_png_`, which matplotlib's own figures lack unless pyplot's inline mode is on."""
    made = figure()
    assert made._repr_png_().startswith(b"\x89PNG\r\n")
    assert pickle.loads(pickle.dumps(made))._repr_png_() == made._repr_png_()


def test_a_curve_of_many_queries_is_drawn_by_few_points_with_both_ends():
    """The page has fewer pixels; means and counts in words are those of all queries."""
    values = np.random.default_rng(1).random(100_000)
    frame = pd.DataFrame({"AP": values})
    line = plots.sorted_scores(frame).axes[0].lines[0]
    x, y = line.get_data()
    assert len(x) == plots.MOST_POINTS
    assert (x[0], x[-1], y[0], y[-1]) == (0, 100, values.max(), values.min())
    assert np.interp(x, np.linspace(0, 100, len(values)), np.sort(values)[::-1]) == pytest.approx(y)
    differences = frame["AP"] - 0.25
    figure = plots.query_differences(differences, system="a", baseline="b", measure="AP")
    assert f"{(differences > 0).sum():,} won" in figure.axes[0].get_title(loc="left")
    assert all(len(part.get_paths()[0].vertices) < 5 * plots.MOST_POINTS for part in figure.axes[0].collections)
