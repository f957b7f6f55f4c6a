"""Comparisons of many systems are read as those of few are, and say what they leave out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from shown import whole

import rankeval as rk
from rankeval.comparison import figures, tables
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import value_of_choice


@pytest.fixture(scope="module")
def many():
    """Seventy systems, 2,415 pairs, the last of them far above the others."""
    rng = np.random.default_rng(4)
    hard = rng.random(30) / 2
    systems = {f"s{k}": pd.DataFrame({"AP": hard + rng.random(30) / 4 + 0.25 * (k == 69)}) for k in range(70)}
    return rk.compare(systems)


@pytest.mark.further
def test_a_table_of_very_many_pairs_says_which_rows_it_leaves_out(many):
    """The rows with the smallest p-values stay, in the order of the table."""
    said = "the 2,000 of 2,415 comparisons with the smallest p-values are shown; .table has all of them"
    for text in (many.to_markdown(), many._repr_html_(), whole(many)):
        assert said in text
    rows = [line for line in many.to_markdown().splitlines() if line.startswith("| AP |")]
    assert len(rows) == tables.MOST_ROWS
    assert sum("| s69 |" in row for row in rows) == 69
    assert len(rk.Comparison.from_json(many.to_json()).table) == 2415


def test_a_table_of_fewer_rows_has_all_of_them(many, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 2415)
    assert "smallest p-values are shown" not in many.to_markdown()


def test_a_figure_of_very_many_pairs_says_that_it_leaves_rows_out(many, monkeypatch):
    monkeypatch.setattr(figures, "MOST_DRAWN", 10)
    figure = many.plot()
    assert any("the 10 of 2,415 comparisons" in text.get_text() for text in figure.legends[0].get_texts())
    assert sum(len(axes.get_yticklabels()) for axes in figure.axes) == 10


def test_the_headline_counts_all_pairs(many):
    shown = int((many.table["p_adjusted"] <= 0.05).sum())
    assert many.headline.startswith("s69 beats ")
    assert f"{shown} of 2415 pairs were shown to differ." in many.headline


def test_too_few_resamples_for_so_many_pairs_are_noted():
    """Holm over 1,225 pairs with 9,999 resamples can reject nothing."""
    rng = np.random.default_rng(1)
    systems = {f"s{k}": pd.DataFrame({"AP": rng.random(20)}) for k in range(50)}
    notes = rk.compare(systems, test="randomization").notes
    assert any("nothing can be significant here" in note and "24,499 resamples" in note for note in notes)


def test_the_value_of_a_choice_is_that_of_the_columns_without_their_copies():
    gains = np.round(np.random.default_rng(3).normal(0.02, 0.1, (60, 9)), 2)
    alone = value_of_choice(gains, Settings(rng=1, n_resamples=499))
    with_copies = value_of_choice(
        np.column_stack([gains, gains[:, ::2], -(0.0 - gains[:, 3])]), Settings(rng=1, n_resamples=499)
    )
    assert with_copies == alone
