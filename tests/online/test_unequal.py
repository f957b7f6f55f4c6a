"""Arms of unequal size: exact tests of shares, random arms for other metrics, and what is said of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from shown import whole
from tables import each_row

from rankeval.online import ab_power, ab_test, looks_plan
from rankeval.online.unequal import by_margins, by_random_arms, skewness_of_t


def users(*arms, **more):
    """Return a row per user, with the values of arm A, then of arm B."""
    arm = np.repeat(["A", "B"], [len(arm) for arm in arms])
    return pd.DataFrame({"user": range(len(arm)), "arm": arm, "value": np.concatenate(arms), **more})


def outcome(*arms, **options):
    """Return the test of their values, with the shares that their sizes have."""
    frame = users(*arms)
    return ab_test(frame, metrics={"value": "value"}, shares=dict(frame["arm"].value_counts()), **options)


def welch_t(first, second, axis=-1):
    """Return Welch's t of the second less the first."""
    means, errors = (
        [function(one, axis=axis) for one in (first, second)]
        for function in (np.mean, lambda one, axis: np.var(one, axis=axis, ddof=1) / one.shape[axis])
    )
    return (means[1] - means[0]) / np.sqrt(errors[0] + errors[1])


@settings(max_examples=examples(100), deadline=None)
@given(st.tuples(st.integers(3, 400), st.integers(3, 60)), st.data())
def test_shares_are_tested_as_by_fisher(sizes, data):
    """One-sided p-values are SciPy's, and the odds ratios of the ends are those of its exact interval."""
    events = tuple(data.draw(st.integers(0, size)) for size in sizes)
    if not 0 < sum(events) < sum(sizes):
        return
    table = [[events[1], sizes[1] - events[1]], [events[0], sizes[0] - events[0]]]
    found = by_margins(events, sizes, 0.025)
    assert found.below == pytest.approx(stats.fisher_exact(table, "less").pvalue, rel=1e-8)
    assert found.above == pytest.approx(stats.fisher_exact(table, "greater").pvalue, rel=1e-8)
    ends = stats.contingency.odds_ratio(np.array(table)).confidence_interval(0.95)
    total = sum(events)
    for end, expected in ((found.low, ends.low), (found.high, ends.high)):
        treatment = (total / sizes[0] + end) / (1 + sizes[1] / sizes[0])
        control = treatment - end
        if 0 < expected < np.inf:
            odds = treatment / (1 - treatment) / (control / (1 - control))
            assert odds == pytest.approx(expected, rel=1e-4)
    seen = events[1] / sizes[1] - events[0] / sizes[0]
    assert found.low - 1e-9 <= seen <= found.high + 1e-9
    assert (found.low > 0) == (found.above < 0.025)
    assert (found.high < 0) == (found.below < 0.025)


def test_an_arm_with_as_many_events_as_there_can_be_has_that_end():
    """7 of 25 is a share that, times 25, is no 7 in binary."""
    assert by_margins((0, 7), (3, 25), 0.025).high == pytest.approx(0.28)


@each_row("sizes", [(9, 3), (3, 9), (7, 4)])
def test_random_arms_agree_with_all_arms(sizes):
    """SciPy goes through every division of a few users: p is the same within the error of the draws, on either side."""
    values = np.random.default_rng(sum(sizes)).lognormal(0, 1.5, sum(sizes))
    parts = values[: sizes[0]], values[sizes[0] :]
    every = stats.permutation_test(parts, welch_t, vectorized=True, n_resamples=np.inf, alternative="less")
    error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
    found = by_random_arms(values, sizes, parts[1].mean() - parts[0].mean(), error, 0.025)
    assert found.below == pytest.approx(every.pvalue, abs=0.015)
    assert found.above == pytest.approx((every.null_distribution >= every.statistic * (1 - 1e-12)).mean(), abs=0.015)
    least, most = np.quantile(every.null_distribution, [0.025, 0.975])
    estimate = parts[1].mean() - parts[0].mean()
    assert [found.low, found.high] == pytest.approx([estimate - most * error, estimate - least * error], rel=0.1)


@pytest.mark.world
def test_the_skewness_is_that_of_t_in_simulations():
    """It cancels in arms of one size, and turns its sign with the arms."""
    rng = np.random.default_rng(3)
    values = rng.gamma(1, size=(8000, 1000))
    drawn = (values[:, 900:].mean(axis=1) - values[:, :900].mean(axis=1)) / np.sqrt(1 / 900 + 1 / 100)
    assert skewness_of_t(values.ravel(), (900, 100)) == pytest.approx(stats.skew(drawn), abs=0.1)
    assert skewness_of_t(values[0], (500, 500)) == 0
    assert skewness_of_t(values[0], (100, 900)) == pytest.approx(-skewness_of_t(values[0], (900, 100)))


def test_no_buyer_among_a_hundred_users_is_no_loss():
    """Where one is due: Welch's test has p < .0001."""
    bought = np.zeros(10_000)
    bought[:99] = 1
    test = outcome(bought[:9900], bought[9900:])
    row = test.table.iloc[0]
    assert test.headline.startswith("No difference was shown (value, B against A): -0.0100 [95% interval -0.01")
    assert row["method"] == "exact"
    assert row["p_value"] == pytest.approx(2 * stats.hypergeom(10_000, 99, 100).cdf(0))
    assert row["ci_low"] == pytest.approx(-0.01, abs=1e-4)
    assert 0.02 < row["ci_high"] < 0.04
    known = "0 users of B have a value other than 0 where 1 are due"
    assert f"value of B is tested by Fisher's exact test, since one arm is smaller: {known}" in test.notes
    assert outcome(bought[:5000], bought[5000:]).table["method"].tolist() == ["Welch"]


def test_shares_of_0_and_1_are_tested():
    """No user varies from the others of an arm, but the arms differ."""
    test = outcome(np.zeros(20), np.ones(20))
    assert test.table[["method", "p_value"]].to_numpy().tolist() == [["exact", pytest.approx(2 / 137846528820)]]
    assert not any("does not vary" in note for note in test.notes)


def revenue(rng, n, share=0.03, sigma=2.0):
    return np.where(rng.random(n) < share, rng.lognormal(0, sigma, n), 0)


def test_few_due_have_no_interval():
    """Random arms give a p-value; the headline, the table and the notes say that there is no interval."""
    rng = np.random.default_rng(0)
    test = outcome(revenue(rng, 9900), revenue(rng, 100))
    assert test.table["method"].tolist() == ["random arms"]
    assert test.table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert 0 < test.table["p_value"].iloc[0] <= 1
    assert "[no 95% interval]" in test.headline
    assert any(note.endswith("too few for an interval") for note in test.notes)
    many = outcome(revenue(rng, 19_000, 0.3), revenue(rng, 1000, 0.3))
    assert many.table["method"].tolist() == ["random arms"]
    assert many.table["ci_low"].iloc[0] < many.table["estimate"].iloc[0] < many.table["ci_high"].iloc[0]
    assert not any("too few" in note for note in many.notes)


def test_a_claim_and_its_interval_agree():
    """With 50 users due and more, a doubled metric is seen, and the interval does not hold 0; and neither otherwise."""
    rng = np.random.default_rng(1)
    for lift in (1.0, 2.0):
        row = outcome(revenue(rng, 19_000, 0.1, 1), lift * revenue(rng, 1000, 0.1, 1)).table.iloc[0]
        assert row["method"] == "random arms"
        assert (row["p_value"] <= 0.05) == (lift == 2)
        assert (row["ci_low"] > 0) == (lift == 2)


def test_arms_of_one_size_are_tested_by_welch():
    """However skewed the metric is."""
    rng = np.random.default_rng(2)
    first, second = revenue(rng, 3000), revenue(rng, 3000)
    row = outcome(first, second).table.iloc[0]
    assert row["method"] == "Welch"
    assert row["p_value"] == pytest.approx(stats.ttest_ind(second, first, equal_var=False).pvalue)


def test_at_an_early_look_random_arms_do_not_reach_the_bound():
    """Of a bound of 4.9 no draw of 10,000 is known: there is neither a claim nor an interval."""
    rng = np.random.default_rng(4)
    plan = looks_plan(5)
    arms = revenue(rng, 19_000, 0.1, 1), 3 * revenue(rng, 1000, 0.1, 1)
    first, last = (outcome(*arms, looks=plan, look=look) for look in (1, 5))
    assert first.table["ci_low"].isna().all()
    assert first.claims.empty
    assert len(last.claims) == 1
    assert last.table["ci_low"].iloc[0] > 0


@pytest.mark.parametrize("columns", [("clicks", "views"), "clicks/views"])
def test_a_ratio_may_be_written_with_a_stroke(columns):
    rng = np.random.default_rng(5)
    views = 1 + rng.poisson(5, 400)
    frame = users(rng.binomial(views, 0.3)[:200], rng.binomial(views, 0.3)[200:], views=views)
    frame = frame.rename(columns={"value": "clicks"}).assign(early=frame["views"])
    test = ab_test(frame, metrics={"ctr": columns}, covariates={"ctr": "early"})
    by_pair = ab_test(frame, metrics={"ctr": ("clicks", "views")}, covariates={"ctr": "early"})
    pd.testing.assert_frame_equal(test.table, by_pair.table)
    own = ab_test(frame.assign(**{"clicks/views": 1.0 * frame["clicks"]}), metrics={"ctr": "clicks/views"})
    assert own.table["mean_control"].iloc[0] == frame.loc[frame["arm"] == "A", "clicks"].mean()
    options = {"shares": {"A": 0.5, "B": 0.5}, "relative": 0.1}
    power = ab_power(frame, metric=columns, **options)
    pd.testing.assert_frame_equal(power, ab_power(frame, metric=("clicks", "views"), **options))


def test_the_users_of_the_arms_and_the_loss_that_would_show_are_said():
    """A loss of 4.6 % of 10,000 users is found by half of the tests at .001, as simulations say."""
    rng = np.random.default_rng(6)
    test = outcome(rng.random(10_000), rng.random(10_000))
    loss = test.arms["detectable_loss"].iloc[1]
    assert loss == pytest.approx(0.0455, abs=5e-4)
    known = f"{100 * loss:.2g} % of A or {100 * loss:.2g} % of B"
    said = f"users: A 10,000 (10,000 due), B 10,000 (10,000 due); sample ratio p = 1.0000; a loss of {known} would show"
    assert test.notes[-1].startswith(said)
    assert said in whole(test)
    assert said in test.to_markdown()
    assert said in test._repr_html_()
    assert found_in(20_000, 0.5, loss, rng) == pytest.approx(0.5, abs=0.03)
    for n, share in ((200, 0.5), (1_000, 0.5), (6_000, 0.9)):
        sizes = {"A": round(n * share), "B": n - round(n * share)}
        few = outcome(rng.random(sizes["A"]), rng.random(sizes["B"]))
        assert found_in(n, share, few.arms["detectable_loss"].iloc[0], rng) == pytest.approx(0.5, abs=0.06)


def found_in(n, share, loss, rng):
    """Return how often the ratio test finds that the first arm, of n users, lost this share of its own."""
    first = rng.binomial(n, share, 20_000)
    kept = rng.binomial(first, 1 - loss)
    users = np.array([kept, n - first])
    due = users.sum(axis=0) * np.array([[share], [1 - share]])
    return (stats.chisquare(users, due).pvalue < 0.001).mean()


def test_arms_that_differed_before_the_test_have_no_result():
    """A fifth of the heaviest users of B is lost: the sample ratio fits, and the covariate shows it."""
    rng = np.random.default_rng(7)
    rate = rng.gamma(0.3, size=20_000)
    arm = rng.choice(["A", "B"], 20_000)
    clicks = {"clicks": rng.poisson(rate), "early": rng.poisson(5 * rate)}
    frame = pd.DataFrame({"user": range(20_000), "arm": arm, **clicks})
    heavy = (frame["early"] >= np.quantile(frame["early"], 0.95)) & (arm == "B")
    lost = frame[~(heavy & (rng.random(20_000) < 0.4))]
    options = {"metrics": {"clicks": "clicks"}, "covariates": {"clicks": "early"}}
    test = ab_test(lost, **options)
    assert test.sample_ratio > 0.001
    assert test.before["p_value"].iloc[0] < 0.001
    assert test.table["p_adjusted"].isna().all()
    assert test.claims.empty
    assert test.headline.startswith("No result: the arms differed before the test (clicks, B against A; p")
    assert "the arms differed before the test: no row is a result, and p_adjusted is missing" in test.notes
    whole = ab_test(frame, **options)
    assert whole.before[["metric", "arm"]].to_numpy().tolist() == [["clicks", "B"]]
    assert "clicks of B before the test: a difference of" in whole.notes[-1]
    assert whole.table["p_adjusted"].notna().all()
    assert "No result" not in whole.headline
    assert ab_test(frame, metrics={"clicks": "clicks"}).before.empty
