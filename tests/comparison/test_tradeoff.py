"""Trade-offs: joint regions are Hotelling's, and a system is dominated where both parts are shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.multivariate import test_mvmean as hotelling
from tables import each_row

import rankeval as rk
from rankeval.comparison.dominance import _joint_regions
from rankeval.comparison.record import with_settings
from rankeval.errors import InvalidInput, UnknownName
from rankeval.render.plots import INK, SOFT

from .test_tables import frames

GAINS = {"bm25": (0.0, 0.0), "fast": (0.02, 8.0), "good": (0.15, 0.0), "slow": (0.02, -8.0)}


def systems(n=80, gains=GAINS, seed=0):
    """Return systems by AP and by latency_ms, whose differences from the first go together."""
    generator = np.random.default_rng(seed)
    topic = generator.normal(0.4, 0.1, n)
    found = {}
    for name, (gain, faster) in gains.items():
        shared, own = generator.normal(size=(2, n))
        time = 100 - faster + 4 * (0.7 * shared + 0.7 * own)
        found[name] = pd.DataFrame({"AP": topic + gain + 0.1 * shared, "latency_ms": time})
    return found


@pytest.fixture(scope="module")
def compared():
    return rk.compare(systems(), baseline="bm25")


def test_points_on_the_ellipse_are_those_that_hotelling_just_rejects(compared):
    table = compared.tradeoff("AP", "latency_ms").set_index("system")
    own = compared.evaluations
    for name in ("fast", "good", "slow"):
        row, d = table.loc[name], (own[name] - own["bm25"]).to_numpy()
        assert [row.difference_x, row.difference_y] == pytest.approx(d.mean(axis=0))
        assert row.correlation == pytest.approx(np.corrcoef(d.T)[0, 1])
        width, height = row.high_x - row.difference_x, row.high_y - row.difference_y
        for angle in np.linspace(0, 6, 7):
            along = row.correlation * np.cos(angle) + np.sqrt(1 - row.correlation**2) * np.sin(angle)
            point = d.mean(axis=0) + np.array([width * np.cos(angle), height * along])
            assert hotelling(d, point).pvalue == pytest.approx(0.05 / 3)
    assert table.loc["bm25", ["low_x", "high_x", "low_y", "high_y", "correlation"]].isna().all()


def test_regions_hold_both_differences_at_their_level():
    """4,000 samples of 12 queries with a correlation of .8, each a column."""
    z = np.random.default_rng(0).normal(size=(12, 4000, 2))
    d = np.stack([z[..., 0], 0.8 * z[..., 0] + 0.6 * z[..., 1]], axis=-1)
    half, correlation = _joint_regions(d, 0.05)
    u, v = (d.mean(axis=0) / half).T
    inside = (u**2 - 2 * correlation * u * v + v**2) / (1 - correlation**2) <= 1
    assert inside.mean() == pytest.approx(0.95, abs=0.01)


def test_p_values_are_the_larger_of_two_one_sided_tests_by_holm(compared):
    table = compared.tradeoff("AP", "latency_ms").set_index("system")
    own = compared.evaluations
    pairs = list(permutations(own, 2))
    p_values = [
        max(
            stats.ttest_rel(own[better]["AP"], own[worse]["AP"], alternative="greater").pvalue,
            stats.ttest_rel(own[better]["latency_ms"], own[worse]["latency_ms"], alternative="less").pvalue,
        )
        for worse, better in pairs
    ]
    adjusted = dict(zip(pairs, multipletests(p_values, method="holm")[1], strict=True))
    for name in own:
        others = {other: adjusted[name, other] for other in own if other != name}
        assert table.loc[name, "p_dominated"] == pytest.approx(min(others.values()))
    assert table["dominated_by"].to_dict() == {"bm25": "", "fast": "", "good": "", "slow": "good"}


def test_a_margin_lets_a_system_that_is_no_slower_dominate(compared):
    """The second part is then the claim "not_worse" of compare, with its unseen query."""
    table = compared.tradeoff("AP", "latency_ms", margin=30.0).set_index("system")
    assert table["dominated_by"].to_dict() == {"bm25": "good", "fast": "good", "good": "", "slow": "good"}
    two = {name: compared.evaluations[name] for name in ("slow", "good")}
    p = [
        rk.compare(two, baseline="slow", measures=measure, correction="none", **claim).table["p_value"][0]
        for measure, claim in {
            "AP": {"claim": "better"},
            "latency_ms": {"claim": "not_worse", "margin": 30.0},
        }.items()
    ]
    alone = rk.compare(two, baseline="slow").tradeoff("AP", "latency_ms", margin=30.0)
    assert alone["p_dominated"][0] == pytest.approx(2 * max(p))
    assert "not worse by 30 by latency_ms" in alone.attrs["caption"]


@pytest.mark.world
def test_false_domination_is_rare_where_half_of_it_is_true():
    """All systems are equal by AP and far apart by latency: any domination is false."""
    gains = {name: (0.0, 20.0 * place) for place, name in enumerate("abcd")}
    false = 0
    for seed in range(500):
        found = rk.compare(systems(30, gains, seed), baseline="a").tradeoff("AP", "latency_ms")
        false += bool((found["dominated_by"] != "").any())
    assert stats.binomtest(false, 500, 0.05, alternative="greater").pvalue > 0.01


def test_equal_differences_have_no_region():
    own = systems()
    moved = own | {"good": own["bm25"] + 0.25}
    row = rk.compare(moved, baseline="bm25").tradeoff("AP", "latency_ms").set_index("system").loc["good"]
    assert [row.low_x, row.high_y] == [pytest.approx(np.nan, nan_ok=True)] * 2
    assert np.isnan(row.correlation)


def test_regions_of_groups_are_those_of_their_means():
    own, groups = systems(), np.arange(80) // 4
    grouped = rk.compare(own, baseline="bm25", groups=pd.Series(groups, name="user"))
    means = {name: frame.groupby(groups).mean() for name, frame in own.items()}
    expected = rk.compare(means, baseline="bm25").tradeoff("AP", "latency_ms")
    found = grouped.tradeoff("AP", "latency_ms")
    pd.testing.assert_frame_equal(found, expected, check_exact=False)
    assert "20 users of 80 queries" in found.attrs["caption"]


def test_a_secondary_measure_and_an_exploratory_result_dominate_nothing(compared):
    without = replace(compared, table=compared.table.assign(p_adjusted=np.nan))
    for limited in (with_settings(compared, primary="AP"), without):
        table = limited.tradeoff("AP", "latency_ms")
        assert table["p_dominated"].isna().all()
        assert not table["dominated_by"].any()
        assert "no system is called dominated" in table.attrs["caption"]


def test_the_figure_has_a_region_for_each_system_and_hollow_points(compared):
    figure = compared.plot("tradeoff", x="AP", y="latency_ms")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "difference in AP"
    assert axes.get_ylabel() == "difference in latency_ms (less is better)"
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() for line in points] == [INK, INK, INK, "white"]
    assert [line.get_color() for line in points] == [INK, INK, INK, SOFT]
    outlines = [line for line in axes.lines if len(line.get_xdata()) > 2]
    table = compared.tradeoff("AP", "latency_ms")
    assert [max(line.get_xdata()) for line in outlines[1:]] == pytest.approx(table["high_x"].tolist()[1:])
    assert "Hotelling's T2 over 80 queries, Bonferroni over 3 systems" in " ".join(figure.get_suptitle().split())


@each_row(("options", "error", "match"), [
    ({"x": "AP", "y": "nDCG"}, UnknownName, "measure of the comparison"),
    ({"x": "AP", "y": "ARP", "baseline": "bn25"}, UnknownName, "baseline"),
    ({"x": "AP", "y": "ARP", "margin": -1}, InvalidInput, "margin"),
])  # fmt: skip
def test_trade_offs_that_cannot_be_are_refused(options, error, match):
    with pytest.raises(error, match=match):
        rk.compare(frames(), baseline="bm25").tradeoff(**options)


def test_a_trade_off_needs_a_baseline_directions_queries_and_scores(compared):
    own = systems()
    with pytest.raises(InvalidInput, match="name the system with baseline="):
        rk.compare(own).tradeoff("AP", "latency_ms")
    all_pairs = rk.compare(own).tradeoff("AP", "latency_ms", baseline="bm25")
    pd.testing.assert_frame_equal(all_pairs, compared.tradeoff("AP", "latency_ms"))
    unknown = {name: frame.rename(columns={"latency_ms": "clicks"}) for name, frame in own.items()}
    with pytest.raises(InvalidInput, match="lower_is_better="):
        rk.compare(unknown, baseline="bm25").tradeoff("AP", "clicks")
    with pytest.raises(InvalidInput, match="at least 3 queries"):
        rk.compare(systems(2), baseline="bm25").tradeoff("AP", "latency_ms")
    with pytest.raises(InvalidInput, match="compare the evaluations again"):
        rk.Comparison.from_json(compared.to_json()).tradeoff("AP", "latency_ms")


def test_weighted_queries_have_no_trade_off():
    generator = np.random.default_rng(0)
    qid, label = np.repeat(np.arange(60), 4), np.tile([1, 0, 1, 0], 60)
    weights = dict(zip(range(60), generator.integers(1, 4, 60).tolist(), strict=True))
    weighed = {
        name: rk.evaluate(label, generator.random(240), qid=qid, measures=["AP", "RR"], query_weight=weights)
        for name in ("old", "new")
    }
    with pytest.raises(InvalidInput, match="weighted"):
        rk.compare(weighed, baseline="old").tradeoff("AP", "RR")


@each_row(("options", "match"), [
    ({"kind": "tradeoff", "x": "AP"}, "give x= and y="),
    ({"kind": "tradeoff", "x": "AP", "y": "latency_ms", "system": "fast"}, "leave out system="),
    ({"kind": "intervals", "x": "AP"}, 'measures of kind="tradeoff"'),
])  # fmt: skip
def test_figures_take_the_arguments_of_their_kind(compared, options, match):
    with pytest.raises(InvalidInput, match=match):
        compared.plot(**options)


def test_an_unknown_kind_lists_the_trade_off(compared):
    with pytest.raises(UnknownName, match="tradeoff"):
        compared.plot("trade")


def test_the_names_of_systems_that_nearly_coincide_do_not_overlap():
    own = systems()
    crowd = {f"a_rather_long_name_{k}": own["fast"] * (1 + k * 1e-6) for k in range(6)}
    figure = rk.compare(own | crowd, baseline="bm25").plot("tradeoff", x="AP", y="latency_ms")
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if text.get_text() in own | crowd]
    boxes = [Text.get_window_extent(name) for name in names]
    assert len(boxes) == len(own | crowd)
    assert all(box.count_overlaps(boxes) == 1 for box in boxes)
