"""Comparisons of evaluations whose queries have weights: one path from `Evaluation.ci` to assertions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from tables import each_row

import rankeval as rk
from rankeval.errors import CheckFailed, InvalidInput
from rankeval.significance.declarations import CORRECTIONS, TESTS
from rankeval.significance.power import detectable_difference
from rankeval.significance.weighted import degrees_of_freedom, effective_number, linearised, weighted_error

QUERIES = [f"q{place:03d}" for place in range(80)]
WEIGHTS = dict(zip(QUERIES, np.exp(0.7 * np.random.default_rng(3).standard_normal(80)).round(3), strict=True))
MARKET = pd.Series({query: "uvw"[place % 3] for place, query in enumerate(QUERIES)}, name="market")
NEED = pd.Series({query: f"n{place // 4}" for place, query in enumerate(QUERIES)}, name="need")

pytestmark = pytest.mark.filterwarnings("ignore::rankeval.errors.NotedWarning")


def scored(name, weights=WEIGHTS, measures=("nDCG@5", "RR")):
    """Return an evaluation; "b" ranks better than "a", and "c" a little better."""
    gain = {"a": 0.3, "b": 0.9, "c": 0.4}[name]
    rng = np.random.default_rng(ord(name))
    y = np.random.default_rng(0).integers(0, 3, 80 * 8)
    score = gain * y + rng.standard_normal(len(y))
    return rk.evaluate(y, score, qid=np.repeat(QUERIES, 8), measures=list(measures), query_weight=weights, name=name)


def systems(names="ab", **options):
    return {name: scored(name, **options) for name in names}


def fitted(scores, weights):
    return sm.WLS(scores, np.ones(len(scores)), weights=weights).fit(cov_type="HC1")


def test_an_interval_is_that_of_weighted_least_squares():
    """Mean and error by statsmodels; the quantile by Satterthwaite's degrees of freedom."""
    ev = scored("a")
    table = ev.ci(0.9)
    for label in table.index:
        model = fitted(ev.per_query[label], ev.weights)
        reach = stats.t.ppf(0.95, degrees_of_freedom(ev.weights)) * model.bse.iloc[0]
        assert table["mean"][label] == pytest.approx(model.params.iloc[0])
        assert table["ci_high"][label] == pytest.approx(min(1.0, model.params.iloc[0] + reach))
        assert table["ci_low"][label] == pytest.approx(model.params.iloc[0] - reach)


def test_equal_weights_have_the_interval_of_plain_queries():
    plain, equal = scored("a", None), scored("a", dict.fromkeys(QUERIES, 0.3))
    np.testing.assert_allclose(equal.ci(), plain.ci(), rtol=1e-12)


def test_no_interval_if_one_query_carries_most_of_the_weight():
    ev = scored("a", {**WEIGHTS, "q007": 1e4})
    assert ev.ci()[["ci_low", "ci_high"]].isna().all(axis=None)


def test_a_row_is_that_of_weighted_least_squares():
    """Means, t and interval of the differences; effect by Kish's number, detectable difference by the degrees."""
    both = systems()
    row = rk.compare(both, baseline="a", measures="nDCG@5").table.iloc[0]
    weights = both["a"].weights
    d = (both["b"].per_query - both["a"].per_query)["nDCG@5"].to_numpy()
    model, degrees = fitted(d, weights), degrees_of_freedom(weights)
    assert row["difference"] == pytest.approx(model.params[0])
    assert row["mean_system"] == pytest.approx(both["b"].mean()["nDCG@5"])
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(model.tvalues[0]), degrees))
    assert row["ci_high"] - row["ci_low"] == pytest.approx(2 * stats.t.ppf(0.975, degrees) * model.bse[0])
    n = effective_number(weights)
    assert row["effect_size"] == pytest.approx(model.tvalues[0] / np.sqrt(n))
    size = 1 + round(degrees)
    assert row["detectable_difference"] == pytest.approx(
        detectable_difference(size, model.bse[0] * np.sqrt(size)), rel=1e-3
    )
    assert (row["wins"], row["ties"], row["losses"]) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())


@each_row("test", [name for name, declared in TESTS.items() if declared.weighted is not None])
@each_row("correction", [*CORRECTIONS])
def test_equal_weights_change_no_number(test, correction):
    """All tests and corrections, over all queries and in slices; sentences say that queries are weighted."""
    options = {"test": test, "correction": correction, "by": MARKET, "n_resamples": 199, "measures": "nDCG@5"}
    plain = rk.compare(systems("abc", weights=None), **options)
    equal = rk.compare(systems("abc", weights=dict.fromkeys(QUERIES, 2.0)), **options)
    pd.testing.assert_frame_equal(equal.table, plain.table, rtol=1e-8)
    pd.testing.assert_frame_equal(equal.interaction, plain.interaction, rtol=1e-8)
    assert plain.settings.n_effective == 0
    assert equal.settings.n_effective == pytest.approx(80)


@each_row("claim", ["better", "not_worse", "equivalent"])
def test_equal_weights_change_no_claim(claim):
    margin = {} if claim == "better" else {"margin": 0.3}
    options = {"baseline": "a", "claim": claim, "by": MARKET, **margin}
    plain = rk.compare(systems("abc", weights=None), **options)
    equal = rk.compare(systems("abc", weights=dict.fromkeys(QUERIES, 2.0)), **options)
    pd.testing.assert_frame_equal(equal.table, plain.table, rtol=1e-8)
    assert (
        equal.headline.replace(" (weighted, effective number 80)", "").replace("weight can", "queries can")
        == plain.headline
    )


def test_a_slice_is_the_comparison_of_its_queries():
    both = systems()
    parts = rk.compare(both, baseline="a", by=MARKET, correction="none").table
    numbers = ["difference", "ci_low", "ci_high", "p_value", "effect_size", "detectable_difference", "wins"]
    for market in "uvw":
        ids = MARKET.index[MARKET.eq(market)]
        alone = rk.compare({name: ev.subset(ids) for name, ev in both.items()}, baseline="a", correction="none")
        found = parts[parts["market"] == market][numbers].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, alone.table[numbers], rtol=1e-9)


def test_small_and_lone_slices_are_listed_with_weighted_means():
    place = dict.fromkeys(QUERIES, "large") | dict.fromkeys(QUERIES[:3], "small") | dict.fromkeys(QUERIES[3:10], "lone")
    both = systems(weights={**WEIGHTS, QUERIES[4]: 50.0})
    table = rk.compare(both, baseline="a", by=pd.Series(place, name="part"), measures="RR").table.set_index("part")
    assert table.loc[["small", "lone"], "p_value"].isna().all()
    assert table.loc["large", "p_value"] < 1
    for part, ids in (("small", QUERIES[:3]), ("lone", QUERIES[3:10])):
        assert table.loc[part, "mean_system"] == pytest.approx(both["b"].subset(ids).mean()["RR"])


def test_groups_have_the_sum_of_the_weights_of_their_queries():
    """The mean stays that of the queries; the error is the clustered one: products are summed within groups."""
    both = systems()
    row = rk.compare(both, baseline="a", groups=NEED, measures="nDCG@5").table.iloc[0]
    d = (both["b"].per_query - both["a"].per_query)["nDCG@5"].to_numpy()
    weights, of = both["a"].weights, np.arange(80) // 4
    m = (weights @ d) / weights.sum()
    sums = np.bincount(of, weights * (d - m))
    error = np.sqrt((sums**2).sum() * 20 / 19) / weights.sum()
    degrees = degrees_of_freedom(np.bincount(of, weights))
    assert row["difference"] == pytest.approx(m)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(m) / error, degrees))


def test_queries_of_weight_0_do_not_count():
    """They are left out, and counted in a note; slices by query id still find theirs."""
    both = systems(weights={**WEIGHTS, "q001": 0.0})
    others = [query for query in QUERIES if query != "q001"]
    found = rk.compare(both, baseline="a", by=MARKET)
    kept = rk.compare({name: ev.subset(others) for name, ev in both.items()}, baseline="a", by=MARKET)
    pd.testing.assert_frame_equal(found.table, kept.table)
    assert found.table["n_queries"].iloc[0] == 79
    assert "queries of weight 0, left out: 1" in found.notes
    np.testing.assert_allclose(both["a"].ci(), both["a"].subset(others).ci())


def test_best_ranks_and_what_is_said():
    found = rk.compare(systems("abc"), measures="nDCG@5", correction="max_t")
    assert found.ranks["share_first"].sum() == pytest.approx(1)
    assert found.ranks["system"].iloc[0] == found.best.system == "b"
    number = f"{effective_number(np.array([*WEIGHTS.values()])):.0f}"
    assert f"80 queries (weighted, effective number {number})" in found.caption
    assert f"80 queries (weighted, effective number {number})" in found.headline
    assert any(f"80 weighted queries are worth {number} equal ones" in note for note in found.notes)
    again = rk.Comparison.from_json(found.to_json())
    assert (again.caption, again.headline) == (found.caption, found.headline)
    one = rk.compare(systems(), baseline="a", measures="nDCG@5")
    row = one.table.iloc[0]
    np.testing.assert_allclose([one.best.ci_low, one.best.ci_high], row[["ci_low", "ci_high"]].astype(float))


def test_a_heavy_query_is_named_and_one_with_most_of_the_weight_refused():
    heavy = rk.compare(systems(weights={**WEIGHTS, "q007": 30.0}), baseline="a")
    assert any(note.startswith("query 'q007' carries 0.") for note in heavy.notes)
    with pytest.raises(InvalidInput, match="'q007' carries") as caught:
        rk.compare(systems(weights={**WEIGHTS, "q007": 1e5}), baseline="a")
    assert caught.value.argument == "query_weight"


def test_a_query_id_that_is_a_number_is_shown_as_one():
    """Not as NumPy's scalar, whether one query has most of the weight or two weights."""
    labels, qid = np.arange(30) % 3, np.arange(30) // 3
    scores = np.random.default_rng(0).random(30)
    heavy = dict.fromkeys(range(10), 1.0) | {7: 100.0}

    def ev(weights):
        return rk.evaluate(labels, scores, qid=qid, measures="nDCG", query_weight=weights)

    for other, shown in ((heavy, "query 7 carries"), (heavy | {7: 99.0}, "query 7 weighs")):
        with pytest.raises(InvalidInput, match=shown):
            rk.compare({"a": ev(heavy), "b": ev(other)}, baseline="a")


@each_row("test", [name for name, declared in TESTS.items() if declared.weighted is None])
def test_tests_that_declare_nothing_for_weights_are_refused(test):
    with pytest.raises(InvalidInput) as caught:
        rk.compare(systems(), test=test)
    assert caught.value.argument == "test"
    assert "'t'" in caught.value.remedy


def test_weights_must_be_shared():
    """The refusal names the query; frames and unweighted evaluations have none."""
    with pytest.raises(InvalidInput, match=r"query 'q009' weighs .* in 'a' and 9 in 'b'") as caught:
        rk.compare({"a": scored("a"), "b": scored("b", {**WEIGHTS, "q009": 9.0})})
    assert caught.value.argument == "query_weight"
    for other in (scored("b", None), scored("b").per_query):
        for both in ({"a": scored("a"), "b": other}, {"b": other, "a": scored("a")}):
            with pytest.raises(InvalidInput, match="'a' has query weights, and 'b' has none"):
                rk.compare(both)


def test_what_counts_every_query_once_refuses_weights():
    """Collections, effects, posteriors, agreement of orders and replicates."""
    both = systems(measures=["RR"])
    found = rk.compare(both, baseline="a")
    refusing = [
        lambda: rk.compare({name: {"x": ev, "y": ev} for name, ev in both.items()}),
        lambda: found.effects,
        lambda: found.bayes(rope=0.01),
        lambda: rk.analysis.order_agreement(systems()),
        lambda: rk.analysis.anova(both),
    ]
    for call in refusing:
        with pytest.raises(InvalidInput, match="weight"):
            call()


def test_assertions_are_of_weighted_means():
    both = systems(measures=["nDCG@5"])
    check = rk.testing.assert_no_regression(both["b"], both["a"])
    assert check.table["candidate"].iloc[0] == pytest.approx(both["b"].mean()["nDCG@5"])
    one_sided = rk.compare(both, baseline="a", claim="better").table.iloc[0]
    assert check.table["ci_low"].iloc[0] == pytest.approx(one_sided["ci_low"])
    assert "weighted, effective number" in str(check)
    with pytest.raises(CheckFailed, match="a loss is shown"):
        rk.testing.assert_no_regression(both["a"], both["b"])
    weights = both["a"].weights
    d = (both["a"].per_query - both["b"].per_query)["nDCG@5"].to_numpy()[:, None]
    n = effective_number(weights)
    assert check.table["sd"].iloc[0] == pytest.approx(weighted_error(d, weights)[0] * np.sqrt(n))
    rk.testing.assert_not_worse(both["b"], both["a"], margin=0.1)


def test_the_interaction_is_one_of_linearised_differences():
    """Welch's statistic of the slices' means of linearised differences, by SciPy for two slices."""
    halves = pd.Series({query: place % 2 for place, query in enumerate(QUERIES)}, name="half")
    both = systems(measures=["RR"])
    found = rk.compare(both, baseline="a", by=halves).interaction["statistic"].iloc[0]
    d = (both["b"].per_query - both["a"].per_query)["RR"].to_numpy()
    values = linearised(d, both["a"].weights)
    t = stats.ttest_ind(values[::2], values[1::2], equal_var=False).statistic
    assert found == pytest.approx(t**2)


def test_weights_survive_a_file_and_a_record(tmp_path):
    both = systems()
    both["a"].save(tmp_path / "a.parquet")
    loaded = {"a": rk.Evaluation.load(tmp_path / "a.parquet"), "b": rk.Evaluation.from_record(both["b"].record())}
    pd.testing.assert_frame_equal(rk.compare(loaded, baseline="a").table, rk.compare(both, baseline="a").table)
    rk.testing.assert_no_regression(both["b"], str(tmp_path / "a.parquet"), measure="RR")
    assert both["a"].record().metrics["RR_ci_low"] == pytest.approx(both["a"].ci().loc["RR", "ci_low"])


def test_assertions_test_slices_by_their_weighted_means():
    """The row of a slice has the weighted means of its queries, and the sd that belongs to its error."""
    both = systems(measures=["nDCG@5"])
    check = rk.testing.assert_no_regression(both["b"], both["a"], by=MARKET)
    row = check.table.set_index("slice").loc["u"]
    part = {name: ev.subset(MARKET.index[MARKET.eq("u")]) for name, ev in both.items()}
    weights = part["a"].weights
    d = (part["b"].per_query - part["a"].per_query)["nDCG@5"].to_numpy()[:, None]
    assert row["candidate"] == pytest.approx(part["b"].mean()["nDCG@5"])
    assert row["sd"] == pytest.approx(weighted_error(d, weights)[0] * np.sqrt(effective_number(weights)))


def test_seeds_of_weighted_queries_are_noted_and_not_tested():
    data = rk.datasets.make_ranking(30, 8, rng=0)
    rankers = {f"depth {depth}": RandomForestRegressor(5, max_depth=depth) for depth in (1, 3)}
    weights = dict(zip(np.unique(data.qid).tolist(), np.linspace(1, 2, 30), strict=True))
    found = rk.cross_validate(rankers, data, measures="AP", cv=2, seeds=2, query_weight=weights)
    compared = found.compare(question="models")
    assert compared.seeds is None
    assert any("means over seeds" in note for note in compared.notes)
    assert compared.settings.n_effective == pytest.approx(effective_number(np.linspace(1, 2, 30)))


def test_rank_intervals_are_of_weighted_means():
    three = systems("abc", measures=["nDCG@5"])
    ranks = rk.rank_intervals(three)
    same = rk.compare(three, test="randomization", correction="max_t").ranks
    pd.testing.assert_frame_equal(ranks.table if hasattr(ranks, "table") else ranks, same)
    best = ranks.table if hasattr(ranks, "table") else ranks
    assert best["mean"].iloc[0] == pytest.approx(three["b"].mean()["nDCG@5"])
