"""Propensities, and values of other rankings and policies: by hand, against simulated truth, refused where biased."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import position_users
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, RankevalWarning
from rankeval.online import ClickLog, counterfactual, policy_value, propensities

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
EXAMINED = pd.Series(1 / np.arange(1, 9), np.arange(1, 9))
RATES = {"1/k": 1 / np.arange(1, 11), "1/sqrt k": np.arange(1, 11) ** -0.5}


def simulated(n, shown, examination, *, rng=0):
    """Return a log of position-based users: 50 queries, lists that are shuffled, swapped or of three rankers."""
    generator = np.random.default_rng(rng)
    relevance = generator.uniform(0.05, 0.9, (50, 14))
    return position_users.simulated(relevance, n, shown, examination, rankers_rng=generator, rng=generator)[0]


def rows(*given):
    """Return a log of impressions, positions, documents and clicks."""
    frame = pd.DataFrame(given, columns=["impression", "position", "docid", "clicked"])
    return ClickLog.from_frame(frame, complete=False)


@pytest.mark.world
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


@each_row("how", ["swap", "all_pairs", "em"])
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
    """An item below the depth has none; without a click it needs none. The message names the parameter to change."""
    found = propensities(simulated(500, "shuffled", RATES["1/k"]), how="randomized", depth=2, n_resamples=0)
    assert found.weights(rows(("i", 1, "a", 0), ("i", 3, "b", 0))).tolist() == [1, 1]
    with pytest.raises(InvalidInput, match=r"clicked at the positions 3.*depth= of propensities"):
        found.weights(rows(("i", 1, "a", 0), ("i", 3, "b", 1)))


def test_resampling_says_its_unit():
    """Users if there are 50, else queries if there are 50, else impressions."""
    log = simulated(1000, "shuffled", RATES["1/k"])
    users = ClickLog(log.impressions.assign(user=np.arange(1000) % 60), log.items)
    one_query = ClickLog(log.impressions.assign(qid=pd.Categorical(["q"] * 1000)), log.items)
    said = [propensities(each, how="randomized", n_resamples=2).notes[-1] for each in (log, users, one_query)]
    assert [note.rpartition(" ")[2] for note in said] == ["queries", "users", "impressions"]


def test_picture_shows_propensities_beside_rates():
    """A line over the positions with an interval at each, and the rates of clicks unless they are the propensities."""
    log = simulated(2000, "rankers", RATES["1/k"])
    for how, labels in {"all_pairs": ["rate of clicks", "propensity"], "randomized": ["propensity"]}.items():
        found = propensities(simulated(500, "shuffled", RATES["1/k"]) if how == "randomized" else log, how=how)
        axes = found.plot().axes[0]
        assert [line.get_label() for line in axes.get_lines()] == labels
        np.testing.assert_array_equal(axes.get_lines()[-1].get_ydata(), found.table["propensity"])
        assert len(axes.collections[0].get_segments()) == 10
    assert "| 1 | 1.0000 |" in found.to_markdown()


def test_propensities_by_the_row_of_a_table_are_refused():
    """The column of a table has the labels 0, 1, ...: it would be one position off. The table is no mapping either."""
    log, found = rows(("i", 1, "a", 1)), propensities(simulated(500, "shuffled", RATES["1/k"]), how="randomized")
    for given in (found.table["propensity"], found.table, {0: 1.0, 1: 0.5}):
        with pytest.raises(InvalidInput, match="one number for each position from 1 on"):
            counterfactual(log, [1.0], given)


def test_propensities_above_that_of_position_1_are_valid():
    """Users may look at position 2 first, as in a grid. 0, negative and infinite ones are refused."""
    log = rows(("i", 1, "a", 0), ("i", 2, "b", 1))
    assert counterfactual(log, [1.0, 2.0], {1: 1.0, 2: 2.0}).per_query["DCG@10"].tolist() == [0.5]
    for bad in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="positions 2, which have no propensity above 0"):
            counterfactual(log, [1.0, 2.0], {1: 1.0, 2: bad})


def test_unknown_ways_and_bad_numbers_are_refused():
    """Names have near misses."""
    with pytest.raises(rk.errors.UnknownName, match="'all_pairs'"):
        propensities(rows(("i", 1, "a", 1)), how="all_pair")
    for bad in ({"clip": 1.5}, {"depth": 0}, {"n_resamples": -1}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            propensities(rows(("i", 1, "a", 1)), how="randomized", **bad)


def clicked_lists(n, *, rng):
    """Return a log of position-based users over 30 queries with 8 documents, with relevance by query and document."""
    generator = np.random.default_rng(rng)
    relevance = np.random.default_rng(0).uniform(0.05, 0.8, (30, 8))
    query = generator.integers(30, size=n)
    lists = np.argsort(-relevance + np.random.default_rng(1).normal(0, 0.4, (30, 8)), axis=1)[query]
    clicked = generator.random((n, 8)) < EXAMINED.to_numpy() * np.take_along_axis(relevance[query], lists, axis=1)
    ids = {"impression": np.repeat(np.arange(n), 8), "qid": np.repeat(query, 8), "position": np.tile(EXAMINED.index, n)}
    log = ClickLog.from_frame(pd.DataFrame({**ids, "docid": lists.ravel(), "clicked": clicked.ravel()}))
    return log, relevance


@pytest.mark.world
def test_values_are_unbiased_and_intervals_hold():
    """50 runs: the mean is near the truth, and intervals of 95 % hold it in 43 or more; raw clicks are far off."""
    values, held = [], []
    generator = np.random.default_rng(3)
    scores = {(q, d): generator.normal() for q in range(30) for d in range(8)}
    for seed in range(50):
        log, relevance = clicked_lists(300, rng=seed)
        ev = counterfactual(log, scores, EXAMINED, measure="DCG@5")
        best = np.argsort([[-scores[q, d] for d in range(8)] for q in range(30)], axis=1)[:, :5]
        truth = (np.take_along_axis(relevance, best, axis=1) / np.log2(np.arange(2, 7))).sum(axis=1).mean()
        values.append(ev.aggregate()["DCG@5"])
        interval = ev.ci().loc["DCG@5"]
        held.append(interval["ci_low"] <= truth <= interval["ci_high"])
    raw = counterfactual(log, scores, dict.fromkeys(EXAMINED.index, 1.0), measure="DCG@5").aggregate()["DCG@5"]
    assert abs(np.mean(values) - truth) < 4 * np.std(values) / np.sqrt(50) < 0.06
    assert sum(held) >= 43
    assert raw < 0.6 * truth


def test_scores_come_in_three_forms():
    """An array in the order of the items, scores by query and document, and a function of the items."""
    log, _ = clicked_lists(50, rng=0)
    scores = {(q, d): (7 * q + 3 * d) % 8 for q in range(30) for d in range(8)}

    def ranker(items):
        return (7 * items["qid"].astype(int) + 3 * items["docid"].astype(int)) % 8

    forms = (
        scores,
        pd.Series(scores),
        ranker,
        ranker(log.items.assign(qid=log.impressions["qid"].array[log.items["impression"]])),
    )
    values = [counterfactual(log, form, EXAMINED).per_query for form in forms]
    for other in values[1:]:
        pd.testing.assert_frame_equal(other, values[0])
    assert len(values[0]) == 50  # impressions without clicks are in


def test_two_rankers_are_compared_by_impression_and_by_user():
    """A better order of the same lists is found better, on the clicks of the worse one."""
    log, relevance = clicked_lists(3000, rng=0)
    log = ClickLog(log.impressions.assign(user=np.arange(3000) % 400), log.items)
    shown = counterfactual(log, -log.items["position"], EXAMINED)
    better = counterfactual(log, dict(np.ndenumerate(relevance)), EXAMINED)
    assert rk.compare({"shown": shown, "better": better}, baseline="shown").table["difference"][0] > 0.1
    by_user = {n: e.per_query.groupby(log.impressions["user"]).mean() for n, e in {"a": shown, "b": better}.items()}
    assert rk.compare(by_user, baseline="a").table["n_queries"][0] == 400


@each_row("measure", ["nDCG@10", "AP", "RR", "P@5", "R@5", "DCG(gain='exp')", "IdealDCG", "num_rel_ret"])
def test_measures_that_are_not_linear_are_refused(measure):
    """An unbiased gain gives a biased value of them."""
    log, _ = clicked_lists(20, rng=0)
    with pytest.raises(InvalidInput, match="not linear in the gains"):
        counterfactual(log, log.items["position"], EXAMINED, measure=measure)


def test_own_linear_measures_are_taken():
    """Linearity is tried, not listed."""
    log, _ = clicked_lists(20, rng=0)
    assert len(counterfactual(log, log.items["position"], EXAMINED, measure="DCG(discount='none')@3").per_query) == 20


def test_bad_logs_and_scores_are_refused():
    """Missing scores, positions without propensities, aggregated rows."""
    log, _ = clicked_lists(20, rng=0)
    with pytest.raises(InvalidInput, match="none for"):
        counterfactual(log, {(0, 0): 1.0}, EXAMINED)
    with pytest.raises(InvalidInput, match="a score for each shown item"):
        counterfactual(log, [1.0], EXAMINED)
    with pytest.raises(InvalidInput, match="no propensity above 0"):
        counterfactual(log, log.items["position"], {1: 0.0})
    with pytest.raises(InvalidInput, match="counts"):
        counterfactual(ClickLog(log.impressions.assign(count=2), log.items), log.items["position"], EXAMINED)


def test_lost_impressions_and_few_large_weights_are_warned_of():
    """A log of clicked impressions only, and one click that weighs as a thousand."""
    log, _ = clicked_lists(200, rng=0)
    kept = log.items["impression"].isin(log.items["impression"][log.items["clicked"]])
    only = ClickLog.from_frame(log.items[kept].assign(qid="q"))
    with pytest.warns(RankevalWarning, match="each impression has a click"):
        counterfactual(only, only.items["position"], EXAMINED)
    with pytest.warns(RankevalWarning, match="effective size"):
        counterfactual(log, log.items["position"], EXAMINED.where(EXAMINED.index < 8, 1e-4))


def told(call):
    """Return all that a call warns of, and the notes of its result."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return [str(one.message) for one in found], result.notes


def policy_of(n_clicks, n=20_000, weights=(1.0,), **options):
    """Return the value of a policy from a log of so many clicks, with weights in turn."""
    propensity = np.resize(0.1 / np.array(weights), n)
    return policy_value(np.arange(n) % (n // n_clicks) == 0, propensity, 0.1, **options)


FEW_CLICKS = "the effective number of clicks is 10 of 10, below 100"
LARGE = "a few large weights decide"
NOTHING = "nothing was clicked"


@each_row(
    ("said", "world", "other"),
    [
        (FEW_CLICKS, lambda: policy_of(10), lambda: policy_of(100)),
        (LARGE, lambda: policy_of(1000, weights=[1.0] * 19 + [100.0]), lambda: policy_of(1000)),
        (NOTHING, lambda: policy_value(np.zeros(99), np.full(99, 0.5), 0.5), lambda: policy_of(100)),
        (
            "weights above 1.2 are set to 1.2",
            lambda: policy_of(500, weights=[1, 2], how="clipped", clip=1.2),
            lambda: policy_of(500, weights=[1, 2]),
        ),
        ("and not 1: propensities are wrong", lambda: policy_of(500, weights=[2, 4]), lambda: policy_of(500)),
    ],
)
def test_a_policy_has_its_notes_where_they_hold_and_only_there(said, world, other):
    """Each sentence by a log of its own, and gone in another."""
    warned, notes = told(world)
    assert [said in one for one in notes].count(True) == 1
    assert (said in " ".join(warned)) == (said in (FEW_CLICKS, LARGE, NOTHING))
    assert said not in " ".join([*told(other)[0], *told(other)[1]])


@each_row(
    ("said", "world", "other"),
    [
        ("below 100: 95 % intervals", 20, 500),
        ("each impression has a click", "clicked", 500),
        (NOTHING, "silent", 500),
        (LARGE, "rare", 500),
    ],
)
def test_a_value_has_its_warnings_where_they_hold_and_only_there(said, world, other):
    """Each sentence by a log of its own, and gone in another."""

    def value(name):
        log, _ = clicked_lists(name if isinstance(name, int) else 500, rng=0)
        chance = EXAMINED.where(EXAMINED.index < 8, 1e-4) if name == "rare" else EXAMINED
        if name == "silent":
            log = ClickLog(log.impressions, log.items.assign(clicked=False))
        if name == "clicked":
            log = log.subset(np.bincount(log.items["impression"], log.items["clicked"]) > 0)
        return counterfactual(log, -log.items["position"], chance)

    assert said in " ".join(told(lambda: value(world))[0])
    assert said not in " ".join(told(lambda: value(other))[0])


@each_row(
    ("said", "how", "world", "other"),
    [
        (
            "each list of the log was shuffled uniformly, and a click depends on position and",
            "randomized",
            {},
            "all_pairs",
        ),
        ("says nothing of its relevance to that user, and a click depends on position", "all_pairs", {}, "randomized"),
        ("keep their positions", "randomized", {"shown": "rankers"}, {}),
        ("percentiles of 2 samples of queries", "all_pairs", {}, {"n_resamples": 0}),
        ("no interval is known", "all_pairs", {"n": 60, "shown": "rankers", "n_resamples": 50}, {}),
        ("propensities below 0.3 are set to 0.3", "randomized", {"clip": 0.3}, {}),
    ],
)
def test_propensities_have_their_notes_where_they_hold_and_only_there(said, how, world, other):
    """Each sentence by a log or an option of its own, and gone with another; the assumption is always named."""

    def notes(how, n=2000, shown="shuffled", **options):
        log = simulated(n, shown, RATES["1/sqrt k"])
        return propensities(log, how=how, **{"depth": 6, "n_resamples": 2} | options).notes

    assert said in " ".join(notes(how, **world))
    absent = notes(other) if isinstance(other, str) else notes(how, **other)
    assert said not in " ".join(absent)
    assert "a click depends on position and document alone" in absent[0]


@pytest.mark.shared
@each_row("name", ["random_men", "bts_men"])
def test_open_bandit(name):
    """The value of the uniform policy, as an independent program has it."""
    golden = json.loads((DATA / "golden" / "open_bandit_summary.json").read_text())["values"][name]
    log = pd.read_csv(DATA / "open_bandit" / f"{name}.csv.gz")
    given = log["click"], log["propensity_score"], 1 / 34
    if name == "bts_men":
        with pytest.warns(RankevalWarning, match=r"656 of 10,000 items \(7 %\)"):
            ips, snips = policy_value(*given), policy_value(*given, how="snips")
    else:
        with pytest.warns(RankevalWarning, match="effective number of clicks is 46 of 46, below 100"):
            ips, snips = policy_value(*given), policy_value(*given, how="snips")
    assert ips.value == pytest.approx(golden["ips_uniform_policy_value"], rel=1e-9)
    assert snips.value == pytest.approx(golden["snips_uniform_policy_value"], rel=1e-9)
    assert 34 * ips.table["mean_weight"][0] == pytest.approx(golden["mean_inverse_propensity"], rel=1e-9)


def test_policy_values_by_hand():
    """Weights 1, 2, 1/2 and 4 of the clicks 1, 0, 1, 1; a model that predicts one half everywhere."""
    click, propensity, target = [1, 0, 1, 1], [0.5, 0.25, 0.5, 0.125], [0.5, 0.5, 0.25, 0.5]
    half = [0.5] * 4
    ways = {"ips": {}, "snips": {}, "clipped": {"clip": 2.0}, "dr": {"baseline": (half, half)}}
    found = {how: policy_value(click, propensity, target, how=how, **more) for how, more in ways.items()}
    assert [one.value for one in found.values()] == pytest.approx([5.5 / 4, 5.5 / 7.5, 3.5 / 4, 0.5 + 1.75 / 4])
    table = found["clipped"].table.iloc[0]
    assert table["effective_size"] == pytest.approx(5.5**2 / (1 + 4 + 0.25 + 4))
    assert (table["largest_weight"], table["clipped_share"]) == (4, 0.25)


def test_a_user_is_a_unit():
    """Each item twice, by the same user: the interval is as wide as with each item once."""
    generator = np.random.default_rng(0)
    click, propensity = generator.random(200) < 0.4, generator.uniform(0.2, 0.8, 200)
    once = policy_value(click, propensity, 0.5).table.iloc[0]
    by_user = policy_value(np.tile(click, 2), np.tile(propensity, 2), 0.5, unit=np.tile(np.arange(200), 2)).table.iloc[
        0
    ]
    naive = policy_value(np.tile(click, 2), np.tile(propensity, 2), 0.5).table.iloc[0]
    assert by_user["ci_high"] == pytest.approx(once["ci_high"])
    assert naive["ci_high"] < once["ci_high"]


def test_each_unbiased_way_holds_the_truth_and_clipping_does_not():
    """60 logs of a policy over 4 items: intervals of 95 % hold the value in 53 or more; clipped ones miss it."""
    shown, wanted, rate = (
        np.array([0.55, 0.25, 0.15, 0.05]),
        np.array([0.1, 0.2, 0.3, 0.4]),
        np.array([0.1, 0.2, 0.3, 0.5]),
    )
    held = {"ips": 0, "snips": 0, "dr": 0, "clipped": 0}
    for seed in range(60):
        generator = np.random.default_rng(seed)
        item = generator.choice(4, 1500, p=shown)
        given = generator.random(1500) < rate[item], shown[item], wanted[item]
        wrong = np.array([0.2, 0.2, 0.2, 0.2]) + 0.1 * np.arange(4)
        more = {"dr": {"baseline": (wrong[item], np.full(1500, wrong @ wanted))}, "clipped": {"clip": 2.0}}
        for how in held:
            row = policy_value(*given, how=how, **more.get(how, {})).table.iloc[0]
            held[how] += row["ci_low"] <= wanted @ rate <= row["ci_high"]
    assert all(held[how] >= 53 for how in ("ips", "snips", "dr")), held
    assert held["clipped"] < 10


@each_row(
    ("change", "argument", "where"),
    [
        ({"propensity": [0.5, 0.0]}, "propensity", "row 1"),
        ({"propensity": [1.5, 0.5]}, "propensity", "row 0"),
        ({"target": [0.5, -0.1]}, "target", "row 1"),
        ({"click": [np.nan, 1]}, "click", "row 0"),
        ({"target": [0.0, 0.0]}, "target", None),
        ({"how": "clipped"}, "clip", None),
        ({"clip": 2.0}, "clip", None),
        ({"how": "dr"}, "baseline", None),
        ({"how": "dr", "baseline": ([0.1, np.inf], [0.1, 0.1])}, "baseline[0]", "row 1"),
    ],
)
def test_bad_rows_are_named(change, argument, where):
    """The argument, the number and the row."""
    with pytest.raises(InvalidInput) as caught:
        policy_value(**{"click": [0, 1], "propensity": [0.5, 0.5], "target": [0.5, 0.5]} | change)
    assert (caught.value.argument, caught.value.where) == (argument, where)


def test_lengths_must_agree():
    """An array of another length is named."""
    with pytest.raises(InvalidInput, match="propensity is '2 numbers'; expected 3"):
        policy_value([0, 1, 1], [0.5, 0.5], 0.5)


def test_weights_with_a_mean_far_from_one_are_noted():
    """The target shows items that the log never has: their clicks are unknown."""
    found = policy_value([0, 1] * 50, [0.5, 0.4] * 50, [0.25, 0.2] * 50)
    assert "mean 0.5 and not 1" in found.notes[-1]
    assert policy_value([0, 1] * 100, [0.5, 0.5] * 100, [0.2, 0.8] * 100).notes == ()
