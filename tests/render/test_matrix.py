"""The significance matrix: direction and level in each cell, names that fit, 2 to 50 systems."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from rankeval.render import comparisons
from rankeval.render.plots import BAND, BETTER, WORSE

LEVELS = (0.05, 0.01, 0.001)


def claims_of(names, p):
    """Return both directions of all pairs; earlier systems are better, `p` gives the adjusted p of a distance."""
    return pd.DataFrame(
        {
            "system": names[i],
            "other": names[j],
            "sign": 1.0 if i < j else -1.0,
            "p": p(abs(i - j)),
            "shown": p(abs(i - j)) <= 0.05,
        }
        for i in range(len(names))
        for j in range(len(names))
        if i != j
    )


def make(n, p=lambda distance: 0.1 ** (distance + 0.5), name="s{}", **options):
    names = [name.format(k) for k in range(n)]
    means = pd.Series(np.linspace(0.6, 0.2, n), index=names)
    return comparisons.significance_matrix(means, claims_of(names, p), levels=LEVELS, **options)


def cells(figure):
    return np.ma.getdata(figure.axes[0].images[0].get_array())


def test_rows_better_than_columns_are_of_one_colour_and_worse_ones_of_the_other():
    """P = .03, .003 and .0003 one, two and three places apart: one, two and three signs, the last at full strength."""
    figure = make(5, lambda distance: 3 * 0.1 ** (distance + 1))
    shown = cells(figure)
    assert shown[0, 3] == pytest.approx(to_rgb(BETTER))
    assert shown[3, 0] == pytest.approx(to_rgb(WORSE))
    assert shown[2, 2] == pytest.approx((1, 1, 1))
    signs = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in figure.axes[0].texts}
    assert [signs[0, k] for k in (1, 2, 3, 4)] == ["+", "++", "+++", "+++"]
    assert [signs[k, 0] for k in (1, 2, 3, 4)] == [sign.replace("+", "\u2212") for sign in ("+", "++", "+++", "+++")]


def test_pairs_without_a_claim_are_grey_and_pairs_not_compared_white():
    names = ["a", "b"]
    claims = claims_of(names, lambda _: 0.5).iloc[:1]
    figure = comparisons.significance_matrix(pd.Series([0.5, 0.4], index=names), claims, levels=LEVELS)
    assert cells(figure)[0, 1] == pytest.approx(to_rgb(BAND))
    assert cells(figure)[1, 0] == pytest.approx((1, 1, 1))


def test_a_small_p_that_is_not_shown_stays_grey():
    """As for a measure that is not the primary one."""
    names = ["a", "b"]
    claims = claims_of(names, lambda _: 1e-6).assign(shown=False)
    figure = comparisons.significance_matrix(pd.Series([0.5, 0.4], index=names), claims, levels=LEVELS)
    assert not figure.axes[0].texts
    assert cells(figure)[0, 1] == pytest.approx(to_rgb(BAND))


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.rest) for n in (2, 16, 50))])
@pytest.mark.parametrize("name", ["s{}", "a_system_with_a_long_name_$and$_a_number_{}"])
def test_names_neither_overlap_nor_leave_the_figure(n, name):
    figure = make(n, name=name, title="nDCG@10", caption="a test over many pairs of systems; " * 6)
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    axes = figure.axes[0]
    left, above = axes.get_yticklabels(), axes.get_xticklabels(which="both")
    beside = [text.get_window_extent() for text in left]
    over = [text.get_window_extent() for text in above if text.get_text()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in itertools.pairwise(beside))
    assert all(one.x1 <= other.x0 + 1 for one, other in itertools.pairwise(over))
    texts = [text.get_window_extent() for text in figure.texts]
    legend = figure.legends[0].get_window_extent()
    everything = [*beside, *over, *texts, legend]
    assert min(box.x0 for box in everything) >= 0
    assert min(box.y0 for box in everything) >= 0
    assert max(box.x1 for box in everything) <= figure.bbox.x1
    assert min(text.y0 for text in texts) >= max(box.y1 for box in over)
    assert legend.y1 <= min(box.y0 for box in beside) + 1


def test_means_stand_beside_the_names_and_the_legend_says_the_levels():
    figure = make(2, digits=2, words=("equivalent",))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["s0  0.60", "s1  0.20"]
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said == [
        "+++ equivalent, p \u2264 0.001",
        "++ equivalent, p \u2264 0.01",
        "+ equivalent, p \u2264 0.05",
        "not shown",
    ]
    assert figure._repr_png_().startswith(b"\x89PNG")
