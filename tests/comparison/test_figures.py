"""Figures of comparisons: the kind that is asked for, with the rows, colours and words of the comparison."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from tables import each_row

import rankeval as rk
from rankeval.comparison import record
from rankeval.errors import InvalidInput, UnknownName
from rankeval.render.plots import BETTER, SOFT, WORSE

from .test_tables import frames, on_two_collections


@pytest.fixture(scope="module")
def against_bm25():
    return rk.compare(frames(), baseline="bm25", correction="max_t", n_resamples=1999)


@pytest.fixture(scope="module")
def all_pairs():
    return rk.compare(frames(), correction="max_t", n_resamples=1999)


def colors(axes):
    """Return the colour of each row's point."""
    return [line.get_color() for line in axes.lines if line.get_marker() == "o"]


def legend(figure):
    """Return the words of the legend."""
    return [text.get_text() for found in figure.legends for text in found.get_texts()]


def test_intervals_are_coloured_by_gain_and_drawn_twice(against_bm25):
    """A panel per measure; of ARP lower is better; pyplot holds no figure."""
    figure = against_bm25.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["AP", "ARP"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["rm3", "ltr", "broken"]
    for axes in figure.axes:
        assert colors(axes) == [SOFT, BETTER, WORSE]
    row = against_bm25.table.iloc[0]
    drawn = [list(line.get_xdata()) for line in figure.axes[0].lines if len(line.get_xdata()) == 2][1:3]
    assert drawn == [[row["ci_low_adjusted"], row["ci_high_adjusted"]], [row["ci_low"], row["ci_high"]]]
    assert legend(figure)[:2] == ["95% interval of each pair alone", "interval adjusted for 6 comparisons"]
    assert figure.axes[-1].get_xlabel() == "difference from bm25"
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@each_row("correction", ["holm", "max_t", "bh"])
def test_a_single_comparison_has_one_line(correction):
    """It is the one that the headline has, and nothing says that it is adjusted."""
    pair = {name: frames()[name] for name in ("bm25", "ltr")}
    found = rk.compare(pair, baseline="bm25", measures="AP", correction=correction)
    figure = found.plot()
    axes = figure.axes[0]
    assert legend(figure)[0] == "95% interval"
    drawn = [list(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2][1:]
    row = found.table.iloc[0]
    ends = ["ci_low", "ci_high"] if correction == "bh" else ["ci_low_adjusted", "ci_high_adjusted"]
    assert drawn == [[row[end] for end in ends]]
    assert "adjusted)" not in str(found)


def test_margins_are_drawn_on_the_side_of_losses():
    found = rk.compare(frames(), baseline="bm25", claim="not_worse", margin=0.1)
    for axes, place in zip(found.plot().axes, (-0.1, 0.1), strict=True):
        assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [place]


def test_intervals_of_one_system_and_measure(all_pairs):
    figure = all_pairs.plot("intervals", system="ltr", measure="AP")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["ltr - bm25", "ltr - rm3"]


def test_differences_by_query(against_bm25, all_pairs):
    row = against_bm25.table.query("system == 'ltr' and measure == 'ARP'").iloc[0]
    title = against_bm25.plot(system="ltr", measure="AP").axes[0].get_title(loc="left")
    ap = against_bm25.table.query("system == 'ltr' and measure == 'AP'").iloc[0]
    assert title == f"ltr against bm25: {ap.wins} won, {ap.ties} tied, {ap.losses} lost"
    assert row.wins > row.losses
    assert all_pairs.plot(system="ltr", baseline="rm3").axes[0].get_title(loc="left").startswith("ltr against rm3")


def test_the_matrix_shows_the_adjusted_p_of_each_pair(all_pairs):
    """Systems stand in the order of their means, the lowest ARP first; colours follow shown and gain."""
    for measure in ("AP", "ARP"):
        figure = all_pairs.plot("matrix", measure=measure)
        order = [text.get_text() for text in figure.axes[0].get_xticklabels()]
        assert order == ["ltr", "rm3", "bm25", "broken"]
        cells = np.ma.getdata(figure.axes[0].images[0].get_array())
        assert cells[0, 3] == pytest.approx(to_rgb(BETTER))
        assert cells[3, 0] == pytest.approx(to_rgb(WORSE))
        texts = {tuple(map(int, text.get_position()))[::-1]: text.get_text() for text in figure.axes[0].texts}
        rows = all_pairs.table[all_pairs.table["measure"] == measure]
        for row in rows.to_dict("records"):
            i, j = order.index(row["system"]), order.index(row["baseline"])
            signs = sum(row["p_adjusted"] <= level for level in (0.05, 0.01, 0.001))
            assert len(texts.get((i, j), "")) == len(texts.get((j, i), "")) == signs


def test_rank_intervals_are_those_of_ranks(all_pairs):
    figure = all_pairs.plot("ranks", measure="ARP")
    ranks = all_pairs.ranks.query("measure == 'ARP'")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ranks["system"].tolist()
    ends = [tuple(line.get_xdata()) for line in figure.axes[0].lines if len(set(line.get_ydata())) == 1]
    assert ends[: len(ranks)] == list(zip(ranks["rank_low"], ranks["rank_high"], strict=True))


def test_several_collections_are_drawn_as_a_forest():
    found = on_two_collections()
    axes = found.plot().axes[0]
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[:5] == ["rm3", "cranfield  n = 60", "cisi  n = 40", "all  n = 100", "ltr"]
    assert len(axes.patches) == 3
    assert found.plot("intervals", system="ltr").axes[0].get_yticklabels()[0].get_text() == "ltr, all"
    assert legend(found.plot("intervals", system="ltr"))[1].startswith("interval adjusted")


def test_the_matrix_of_several_collections_is_that_of_all_of_them():
    first, second = frames(), frames(n=40)
    both = {name: {"one": first[name], "two": second[name].add_prefix("c", axis=0)} for name in first}
    found = rk.compare(both, correction="bonferroni", measures="AP", n_resamples=999)
    figure, whole = found.plot("matrix"), record.overall(found)
    shown = sum(bool(text.get_text()) for text in figure.axes[0].texts)
    assert shown == 2 * whole.shown.sum() > 0
    assert found.plot("ranks").axes[0].get_yticklabels()[0].get_text() == "ltr"


@each_row(("options", "error", "match"), [
    ({"kind": "bars"}, UnknownName, "kind of plot"),
    ({"kind": "matrix"}, InvalidInput, "all pairs"),
    ({"kind": "ranks"}, InvalidInput, "baseline"),
    ({"kind": "forest"}, InvalidInput, "several collections"),
    ({"kind": "queries"}, InvalidInput, "give system="),
    ({"kind": "matrix", "system": "ltr"}, InvalidInput, "leave out system="),
    ({"system": "lrt"}, UnknownName, "'ltr'"),
    ({"kind": "intervals", "system": "lrt"}, UnknownName, "'ltr'"),
    ({"system": "ltr", "measure": "nDCG@5"}, UnknownName, "measure of the comparison 'nDCG@5'"),
])  # fmt: skip
def test_figures_that_do_not_fit_are_refused(against_bm25, options, error, match):
    with pytest.raises(error, match=match):
        against_bm25.plot(**options)


def test_queries_of_all_pairs_need_a_baseline(all_pairs):
    with pytest.raises(InvalidInput, match="baseline="):
        all_pairs.plot(system="ltr")


def test_cells_of_a_claim_say_what_is_shown():
    found = rk.compare(frames(), measures="AP", claim="equivalent", margin=0.1).plot("matrix")
    said = [text.get_text() for text in found.legends[0].get_texts()]
    assert said == [
        "+++ equivalent, p \u2264 0.001",
        "++ equivalent, p \u2264 0.01",
        "+ equivalent, p \u2264 0.05",
        "not shown",
    ]


@pytest.mark.rest
@pytest.mark.parametrize("n", [2, 16, 50])
def test_matrix_ranks_and_intervals_of_many_systems(n):
    generator = np.random.default_rng(1)
    topic = generator.beta(2, 2, 30)
    systems = {f"system_{k}": pd.DataFrame({"AP": topic + 0.01 * k + generator.normal(0, 0.05, 30)}) for k in range(n)}
    found = rk.compare(systems, correction="max_t", n_resamples=199)
    for kind in ("matrix", "ranks", "intervals"):
        assert found.plot(kind)._repr_png_().startswith(b"\x89PNG")


@each_row("family", ["all", "measure"])
def test_the_size_of_each_family_is_said(family):
    """Rows over all are one family, and those of the two collections another one, twice as large."""
    each = {name: {"x": part, "y": part + 0.01} for name, part in frames().items()}
    found = rk.compare(each, baseline="bm25", family=family, correction="bonferroni", n_resamples=999)
    words = "interval adjusted for 3 comparisons per measure (all), 6 comparisons per measure (by collection)"
    label = " ".join(legend(found.plot("intervals")))
    assert (words if family == "measure" else "for 6 comparisons (all), 12 comparisons (by collection)") in label
    per_row = (found.table["p_adjusted"] / found.table["p_value"])[found.table["p_adjusted"] < 1].round(9)
    assert set(per_row) <= ({3, 6} if family == "measure" else {6, 12})


@each_row("kind", ["matrix", "ranks"])
def test_figures_of_the_rows_over_all_say_so(kind):
    each = {name: {"x": part, "y": part + 0.01} for name, part in frames().items()}
    slices = pd.Series(np.repeat(["short", "long"], 30), index=frames()["bm25"].index, name="length")
    for found, title in (
        (rk.compare(each), "AP, all collections"),
        (rk.compare(frames(), by=slices), "AP, all queries"),
        (rk.compare(frames()), "AP"),
    ):
        figure = found.plot(kind)
        texts = [axes.get_title(loc="left") for axes in figure.axes] + [text.get_text() for text in figure.texts]
        assert title in texts


@each_row("name", ["pair", "clear", "better", "dagger", "group", "label"])
def test_an_attribute_may_have_the_name_of_a_column_of_the_figure(name):
    slices = pd.Series(np.repeat(["short", "long"], 30), index=frames()["bm25"].index, name=name)
    compared = rk.compare(frames(), baseline="bm25", by=slices)
    for kind in ("forest", "intervals"):
        shown = " ".join(
            text.get_text() for axes in compared.plot(kind).axes for text in [*axes.get_yticklabels(), *axes.texts]
        )
        assert {"short", "long"} <= set(re.findall(r"\w+", shown)), kind


def parting(compared, system, p):
    """Return a comparison whose rows of a system have this adjusted p, which its intervals do not follow."""
    own = compared.table["system"] == system
    return replace(compared, table=compared.table.assign(p_adjusted=compared.table["p_adjusted"].where(~own, p)))


def test_rows_whose_p_and_interval_disagree_have_a_dagger_that_is_explained(against_bm25):
    found = parting(against_bm25, "ltr", 0.06)
    figure = found.plot()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["rm3", "ltr\u2020", "broken"]
    said = "\u2020: adjusted p and interval disagree; the colour goes by p"
    assert legend(figure)[-1] == said
    assert said not in legend(found.plot("intervals", system="rm3"))
    assert said not in legend(against_bm25.plot())
    forest = parting(on_two_collections(), "ltr", 0.06)
    drawn = forest.plot(measure="AP")
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    marked = forest.table[record.parted(forest) & (forest.table["measure"] == "AP")]["collection"]
    assert len(marked) > 0
    daggered = [name.partition("\u2020")[0] for name in names if "\u2020" in name]
    assert sorted(daggered) == sorted(marked)
    assert legend(drawn)[-1] == said


def test_equal_systems_are_drawn_on_an_axis_that_shows_no_difference():
    """Nothing is shaded, so no shading is spoken of."""
    same = frames()["bm25"][["AP"]]
    figure = rk.compare({"a": same, "b": same.copy(), "c": same.copy()}, baseline="a").plot()
    assert figure.axes[0].get_xlim() == (-0.1, 0.1)
    assert not any("detect" in words for words in legend(figure))


def test_only_differences_that_are_not_shown_have_a_shaded_zone(against_bm25):
    """Beside a difference that is shown, a zone of differences hard to find would read as doubt."""
    figure = against_bm25.plot(measure="AP")
    (axes,) = figure.axes
    assert against_bm25.shown[against_bm25.table["measure"] == "AP"].tolist() == [False, True, True]
    assert len(axes.collections) == 1
    assert legend(figure)[2:] == ["No difference was shown", "too small for 60 queries to detect reliably"]
    shown = against_bm25.plot("intervals", system="ltr")
    assert not any(axes.collections for axes in shown.axes)
    assert len(legend(shown)) == 2
