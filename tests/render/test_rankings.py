"""Rank intervals: a line from the lowest to the highest rank, the place of the mean on it."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pandas as pd
import pytest

from rankeval.render import comparisons


def frame(n, name="s{}"):
    ranks = np.arange(1, n + 1)
    return pd.DataFrame(
        {
            "system": [name.format(k) for k in range(n)],
            "mean": np.linspace(0.6, 0.2, n),
            "rank_low": np.maximum(ranks - 1, 1),
            "rank_high": np.minimum(ranks + 2, n),
        }
    )


def points(figure):
    return next(line for line in figure.axes[0].lines if line.get_marker() == "o").get_xdata().tolist()


def test_lines_run_from_lowest_to_highest_rank():
    figure = comparisons.rank_intervals(frame(4), xlabel="rank", title="AP", caption="words", digits=2)
    ends = [tuple(line.get_xdata()) for line in figure.axes[0].lines if len(set(line.get_ydata())) == 1]
    assert ends[:4] == [(1, 3), (1, 4), (2, 4), (3, 4)]
    assert points(figure) == [1, 2, 3, 4]
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.60", "0.47", "0.33", "0.20"]


def test_equal_means_share_a_place_and_less_may_be_better():
    ranks = frame(3).assign(mean=[1.0, 1.0, 7.0])
    assert points(comparisons.rank_intervals(ranks)) == [1, 1, 3]


@pytest.mark.parametrize("n", [16, *(pytest.param(n, marks=pytest.mark.rest) for n in (2, 50))])
@pytest.mark.parametrize("name", ["s{}", "a_system_with_a_long_name_$and$_a_number_{}"])
def test_names_do_not_overlap(n, name):
    figure = comparisons.rank_intervals(frame(n, name), xlabel="rank\nlines", caption="words " * 60)
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in itertools.pairwise(boxes))
    places = [text.get_window_extent() for text in figure.axes[0].get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(places))
    assert min(box.x0 for box in boxes) >= 0
    assert figure._repr_png_().startswith(b"\x89PNG")
