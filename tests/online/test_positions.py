"""Propensities of positions: against the truth of simulated users, by hand, and where they must be refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.online import ClickLog, propensities

RATES = {"1/k": 1 / np.arange(1, 11), "1/sqrt k": np.arange(1, 11) ** -0.5}


def simulated(n, shown, examination, *, rng=0):
    """Return a log of position-based users: 50 queries, lists that are shuffled, swapped or of three rankers."""
    generator = np.random.default_rng(rng)
    relevance = generator.uniform(0.05, 0.9, (50, 14))
    rankers = np.argsort(-(relevance + generator.normal(0, 0.3, (3, 50, 14))), axis=2)[:, :, :10]
    query, each = generator.integers(50, size=n), np.arange(n)
    lists = rankers[0 if shown != "rankers" else generator.integers(3, size=n), query]
    if shown == "shuffled":
        lists = generator.permuted(lists, axis=1)
    if shown == "swapped":
        other = generator.integers(10, size=n)
        lists[each, 0], lists[each, other] = lists[each, other].copy(), lists[each, 0].copy()
    clicked = generator.random((n, 10)) < examination * relevance[query[:, None], lists]
    ids = {"impression": np.repeat(each, 10), "qid": np.repeat(query, 10), "position": np.tile(np.arange(1, 11), n)}
    return ClickLog.from_frame(pd.DataFrame({**ids, "docid": lists.ravel(), "clicked": clicked.ravel()}))


def rows(*given):
    """Return a log of impressions, positions, documents and clicks."""
    frame = pd.DataFrame(given, columns=["impression", "position", "docid", "clicked"])
    return ClickLog.from_frame(frame, complete=False)


@pytest.mark.parametrize("truth", RATES)
@pytest.mark.parametrize(
    ("shown", "how"), [("shuffled", "randomized"), ("swapped", "swap"), ("rankers", "all_pairs"), ("rankers", "em")]
)
def test_each_way_finds_the_truth(shown, how, truth):
    """30,000 impressions: the mean error over positions is at most 4 %."""
    log = simulated(30_000, shown, RATES[truth])
    found = propensities(log, how=how, n_resamples=0).table["propensity"]
    assert np.abs(found / RATES[truth] - 1).mean() < 0.04
    rates = log.items.groupby("position")["clicked"].mean().to_numpy()
    assert shown == "shuffled" or np.abs(rates / rates[0] / RATES[truth] - 1).mean() > 0.09


def test_intervals_hold_the_truth():
    """Over 6 logs, intervals of 95 % hold at least 48 of the 54 propensities, and are no wider than they need be."""
    logs = [simulated(2000, "rankers", RATES["1/k"], rng=seed) for seed in range(6)]
    found = pd.concat(propensities(log, how="all_pairs", n_resamples=100).table[1:] for log in logs)
    truth = np.tile(RATES["1/k"][1:], 6)
    assert (found["ci_low"].le(truth) & found["ci_high"].ge(truth)).sum() >= 48
    off, half = found["propensity"] - truth, (found["ci_high"] - found["ci_low"]) / 2
    assert (off.abs() > half / 2).sum() >= 10


def test_swap_is_the_ratio_of_rates_of_the_same_documents():
    """Shown equally often at both positions, relevance cancels: clicks at 2 over clicks at 1."""
    log = rows(*[(n, 1 + n % 2, "a" if n < 20 else "b", n % 10 in {0, 1, 2} or n == 4) for n in range(40)])
    clicks = log.items[log.items["clicked"]].groupby("position").size()
    found = propensities(log, how="swap", n_resamples=0).table["propensity"]
    assert found.tolist() == pytest.approx([1, clicks[2] / clicks[1]], abs=1e-9)


def test_counts_stand_for_impressions():
    """A row with count 2 is as two rows."""
    log = simulated(400, "rankers", RATES["1/sqrt k"])
    twice = ClickLog(log.impressions.assign(count=2), log.items)
    one, two = (propensities(each, how="all_pairs", depth=3, n_resamples=0).table for each in (log, twice))
    np.testing.assert_allclose(one["propensity"], two["propensity"], atol=1e-9)
    assert (2 * one[["impressions", "clicks"]] == two[["impressions", "clicks"]]).to_numpy().all()


@pytest.mark.parametrize("how", ["swap", "all_pairs", "em"])
def test_positions_without_shared_documents_are_refused(how):
    """One ranker with a fixed order links no positions: the message names the groups."""
    log = rows(*[(n, 1 + place, "abc"[place], n % 2 == 0) for n in range(4) for place in range(3)])
    with pytest.raises(InvalidInput, match=r"groups of positions \[1\], \[2\], \[3\]"):
        propensities(log, how=how)


def test_swap_needs_position_1():
    """Documents at 2 and 3 link these two for all_pairs, and say nothing of either against 1."""
    pairs = [("a", 1), ("a", 2), ("b", 2), ("b", 3)]
    log = rows(*[(n, pairs[n % 4][1], pairs[n % 4][0], n % 3 == 0) for n in range(48)])
    assert len(propensities(log, how="all_pairs", n_resamples=0).table) == 3
    with pytest.raises(InvalidInput, match=r"\[1, 2\], \[3\]"):
        propensities(log, how="swap")


def test_positions_without_clicks_are_refused():
    """Nothing is known of their propensity; a lesser depth leaves them out."""
    log = rows(*[(n, 1 + place, "ab"[(n + place) % 2], place == 0) for n in range(4) for place in range(2)])
    with pytest.raises(InvalidInput, match="nothing was clicked at the positions 2"):
        propensities(log, how="randomized")
    assert propensities(log, how="randomized", depth=1).table["propensity"].tolist() == [1.0]
    with pytest.raises(InvalidInput, match="nothing was shown at position 1"):
        propensities(rows(("i", 2, "a", True)), how="randomized")


def test_lists_that_were_not_shuffled_are_warned_of():
    """The rates of clicks of a production log mix position and relevance."""
    with pytest.warns(RankevalWarning, match="keep their positions"):
        found = propensities(simulated(1000, "rankers", RATES["1/k"]), how="randomized", n_resamples=0)
    assert "keep their positions" in found.notes[1]
    assert len(propensities(simulated(1000, "shuffled", RATES["1/k"]), how="randomized", n_resamples=0).notes) == 1


def test_weights_are_of_clicks_only():
    """1 / propensity where it was clicked, else 1, in the order of the items; clipping is said."""
    log = simulated(2000, "shuffled", RATES["1/k"])
    found = propensities(log, how="randomized", clip=0.2, n_resamples=0)
    place, clicked = log.items["position"].to_numpy() - 1, log.items["clicked"].to_numpy()
    expected = np.where(clicked, 1 / found.table["propensity"].to_numpy()[place], 1)
    np.testing.assert_array_equal(found.weights(log), expected)
    assert found.table["propensity"].min() == 0.2
    small = found.table["clicks"][found.table["propensity"] == 0.2].sum()
    assert f"the weights of {small:,} of {clicked.sum():,} clicks are too small" in found.notes[-1]


def test_weights_need_a_propensity_of_each_click():
    """An item below the depth has none; without a click it needs none."""
    found = propensities(simulated(500, "shuffled", RATES["1/k"]), how="randomized", depth=2, n_resamples=0)
    assert found.weights(rows(("i", 1, "a", 0), ("i", 3, "b", 0))).tolist() == [1, 1]
    with pytest.raises(InvalidInput, match="clicked at the positions 3"):
        found.weights(rows(("i", 1, "a", 0), ("i", 3, "b", 1)))


def test_resampling_says_its_unit():
    """Users if there are 50, else queries if there are 50, else impressions."""
    log = simulated(1000, "shuffled", RATES["1/k"])
    users = ClickLog(log.impressions.assign(user=np.arange(1000) % 60), log.items)
    one_query = ClickLog(log.impressions.assign(qid=pd.Categorical(["q"] * 1000)), log.items)
    said = [propensities(each, how="randomized", n_resamples=2).notes[-1] for each in (log, users, one_query)]
    assert [note.rpartition(" ")[2] for note in said] == ["queries", "users", "impressions"]


def test_picture_shows_propensities_beside_rates():
    """Two lines over the positions, and an interval at each."""
    found = propensities(simulated(500, "shuffled", RATES["1/k"]), how="randomized", n_resamples=5)
    axes = found.plot().axes[0]
    assert [line.get_label() for line in axes.get_lines()] == ["rate of clicks", "propensity"]
    np.testing.assert_array_equal(axes.get_lines()[1].get_ydata(), found.table["propensity"])
    assert len(axes.collections[0].get_segments()) == 10
    assert "| 1 | 1.0000 |" in found.to_markdown()


def test_unknown_ways_and_bad_numbers_are_refused():
    """Names have near misses."""
    with pytest.raises(rk.errors.UnknownName, match="'all_pairs'"):
        propensities(rows(("i", 1, "a", 1)), how="all_pair")
    for bad in ({"clip": 1.5}, {"depth": 0}, {"n_resamples": -1}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            propensities(rows(("i", 1, "a", 1)), how="randomized", **bad)
