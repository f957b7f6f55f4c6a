"""A/B tests: who sees which arm, and whether the users of the arms differ."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2_contingency, norm
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.online import ab_power, ab_test, assign

CTR = {"ctr": ("clicks", "views")}


def world(n=400, lift=0.0, seed=0, arms=("A", "B")):
    """Return a row per user, of users who differ in how often they search and click, before the test as within it."""
    rng = np.random.default_rng(seed)
    rate, busy = rng.beta(1, 3, n), 1 + rng.gamma(0.7, 10, n)
    arm = rng.choice(arms, n)
    views, before = 1 + rng.poisson(busy), 1 + rng.poisson(busy)
    clicks = rng.binomial(views, np.clip(rate * (1 + lift * (arm == arms[-1])), 0, 1))
    early = {"clicks_before": rng.binomial(before, rate), "views_before": before}
    return pd.DataFrame({"user": np.arange(n), "arm": arm, "clicks": clicks, "views": views, **early})


@pytest.mark.parametrize("share", [0.001, 0.1, *(pytest.param(share, marks=pytest.mark.rest) for share in (0.01, 0.5))])
def test_shares_hold(share):
    """Of 100,000 users each arm has its share, within the binomial error, from .1 % to 50 %."""
    found = pd.Series([assign(user, "exp", {"A": share, "B": share}) for user in range(100_000)])
    for arm in "AB":
        assert 1e-4 < binom.cdf((found == arm).sum(), 100_000, share) < 1 - 1e-4


def test_salts_are_independent():
    """Two tests divide the same users independently."""
    arms = [[assign(f"u{i}", salt, {"A": 0.5, "B": 0.5}) for i in range(20_000)] for salt in ("one", "two")]
    assert chi2_contingency(pd.crosstab(*map(np.array, arms))).pvalue > 0.001


@settings(max_examples=examples(50), deadline=None)
@given(st.text(min_size=1), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5))
def test_raised_shares_keep_users(user, a, b, more_a, more_b):
    """A user of two arms stays if shares are raised."""
    low, high = {"A": min(a, more_a), "B": min(b, more_b)}, {"A": max(a, more_a), "B": max(b, more_b)}
    if sum(low.values()) > 0 and (arm := assign(user, "exp", low)) is not None:
        assert assign(user, "exp", high) == arm


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(), st.lists(st.floats(0.01, 0.2), min_size=3, max_size=5), st.floats(0.01, 1))
def test_shares_raised_together_keep_users(user, shares, factor):
    """A user of several arms stays if all shares are raised by the same factor."""
    high = {f"arm{i}": share for i, share in enumerate(shares)}
    arm = assign(user, "exp", {name: share * factor for name, share in high.items()})
    assert arm is None or assign(user, "exp", high) == arm


def test_assignments_stay_as_they_are():
    """The arms of a running test do not change with the version: users, salts and shares as of the first one."""
    shares = {"A": 0.3, "B": 0.3, "C": 0.2}
    assert "".join(assign(user, "exp7", shares) or "-" for user in range(16)) == "BBC-BA----BB--B-"
    assert assign(7, "exp7", shares) == assign("7", "exp7", shares)


@each_row("shares", [{}, {"A": 0.6, "B": 0.6}, {"A": -0.1, "B": 0.2}, {"A": 0, "B": 0}, {"A": np.nan}])
def test_refused_shares(shares):
    """Shares are from 0 on, and add up to at most 1."""
    with pytest.raises(InvalidInput) as error:
        assign("u", "s", shares)
    assert error.value.argument == "shares"


def test_ratio_metric_by_hand():
    """Estimate, error and interval of a ratio are those of the delta method, computed by hand, to 1e-12."""
    frame, plan = world(), rk.online.looks_plan(2)
    row = ab_test(frame, metrics=CTR, looks=plan, look=2).table.iloc[0]
    means, variances = [], []
    for _, part in frame.groupby("arm"):
        ratio = part["clicks"].sum() / part["views"].sum()
        linear = (part["clicks"] - ratio * part["views"]) / part["views"].mean()
        means.append(ratio)
        variances.append(linear.var() / len(part))
    error = np.sqrt(sum(variances))
    assert [row["mean_control"], row["mean_treatment"]] == pytest.approx(means, abs=1e-12)
    assert row["standard_error"] == pytest.approx(error, abs=1e-12)
    ends = means[1] - means[0] + plan.bounds[1] * error * np.array([-1, 1])
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(ends, abs=1e-12)
    assert row["relative"] == pytest.approx(means[1] / means[0] - 1, abs=1e-12)


def test_mean_metric_is_welchs_test():
    """A mean over users is tested as statsmodels does with unequal variances, to 1e-12."""
    frame = world(lift=0.3)
    row = ab_test(frame, metrics={"clicks": "clicks"}).table.iloc[0]
    parts = [DescrStatsW(frame.loc[frame["arm"] == arm, "clicks"]) for arm in "BA"]
    peer = CompareMeans(*parts)
    assert row["p_value"] == pytest.approx(peer.ttest_ind(usevar="unequal")[1], abs=1e-12)
    assert row[["ci_low", "ci_high"]].tolist() == pytest.approx(peer.tconfint_diff(usevar="unequal"), abs=1e-12)


def test_impressions_are_summed_by_user():
    """Rows of impressions give the result of their sums by user, in any order and from any frame."""
    users = world(100)
    rows = users.loc[users.index.repeat(3)].assign(clicks=lambda f: f["clicks"] / 3, views=lambda f: f["views"] / 3)
    whole = ab_test(users, metrics=CTR, covariates={"ctr": ("clicks_before", "views_before")})
    mixed = rows.sample(frac=1, random_state=0)
    for frame in (mixed, pa.Table.from_pandas(mixed, preserve_index=False)):
        summed = ab_test(frame, metrics=CTR, covariates={"ctr": ("clicks_before", "views_before")})
        pd.testing.assert_frame_equal(summed.table, whole.table)


@each_row("rho", [0.3, 0.8])
def test_cuped_lowers_the_variance(rho):
    """A covariate that correlates by rho lowers the variance by 1 - rho^2, within .02."""
    rng, n = np.random.default_rng(1), 40_000
    before = rng.normal(size=n)
    after = 5 + rho * before + np.sqrt(1 - rho**2) * rng.normal(size=n)
    frame = pd.DataFrame({"user": range(n), "arm": rng.choice(["A", "B"], n), "sales": after, "before": before})
    plain, adjusted = (
        ab_test(frame, metrics={"sales": "sales"}, covariates=own) for own in (None, {"sales": "before"})
    )
    found = (adjusted.table["standard_error"] / plain.table["standard_error"]).iloc[0] ** 2
    assert found == pytest.approx(1 - rho**2, abs=0.02)
    assert any("CUPED" in note for note in adjusted.notes)


@pytest.mark.world
def test_equal_arms_of_a_ratio_metric():
    """Of 240 ratios of equal arms with 1,000 strong users .03 to .07 differ, and no note says that few users decide."""
    metrics, p = {f"ctr{i}": (f"clicks{i}", f"views{i}") for i in range(10)}, []
    for seed in range(80, 104):
        rng = np.random.default_rng(seed)
        views = 1 + rng.poisson(1 + rng.gamma(0.7, 10, (1000, 10)))
        clicks = rng.binomial(views, rng.beta(1, 3, views.shape))
        columns = {
            f"{name}{i}": own[:, i] for name, own in {"clicks": clicks, "views": views}.items() for i in range(10)
        }
        test = ab_test(pd.DataFrame({"user": range(1000), "arm": ["A", "B"] * 500, **columns}), metrics=metrics)
        assert test.notes[:-1] == ()
        p += test.table["p_value"].tolist()
    assert 0.03 <= np.mean(np.array(p) <= 0.05) <= 0.07


def test_few_users_who_decide_are_told():
    """If the views of an arm are those of few users, a note says so with Kish's number; a mean per user has no note."""
    frame = world(200).assign(views=lambda f: np.where(f["user"] < 20, 1000, 1), clicks=lambda f: f["clicks"] % 2)
    test = ab_test(frame, metrics={**CTR, "clicks": "clicks"})
    views = frame["views"].groupby(frame["arm"])
    kish = (views.sum() ** 2 / (frame["views"] ** 2).groupby(frame["arm"]).sum()).min()
    assert len(test.notes) == 2
    assert f"for ctr of B an arm counts as {kish:.0f} users with equal views" in test.notes[0]


def test_the_unit_is_the_noun_of_the_result():
    """With another unit no sentence is about users."""
    frame = world(2000, lift=0.3).rename(columns={"user": "team"})
    assert "on 2,000 teams, p" in ab_test(frame, unit="team", metrics=CTR).headline
    lost = ab_test(frame[(frame["arm"] == "A") | (frame["team"] % 3 > 0)], unit="team", metrics=CTR)
    assert "the numbers of teams do not fit" in lost.headline
    assert "user" not in lost.headline + " ".join(
        ab_test(frame.assign(clicks=1), unit="team", metrics={"c": "clicks"}).notes
    )


def test_headline_of_a_claim():
    """A claim is told with its interval, its relative change, its users and p."""
    test = ab_test(world(4000, lift=0.3), metrics=CTR)
    assert test.headline.startswith("ctr is higher in B than in A: +0.0")
    assert "on 4,000 users, p < 0.0001." in test.headline


def test_headline_without_a_claim():
    """If nothing is shown, the difference that would be found is told, and it is found four times in five."""
    test = ab_test(world(), metrics=CTR)
    row = test.table.iloc[0]
    assert test.headline.startswith("No difference was shown (ctr, B against A): ")
    assert "would be found four times in five" in test.headline
    assert norm.sf(norm.isf(0.025) - row["detectable_difference"] / row["standard_error"]) == pytest.approx(0.8)


def test_sample_ratio_mismatch_stops_the_headline():
    """If users of an arm are lost, no difference is told; with their planned shares the same numbers are right."""
    frame = world(4000, lift=0.5)
    frame = frame[(frame["arm"] == "A") | (frame["user"] % 10 > 0)]
    lost = ab_test(frame, metrics=CTR)
    assert lost.sample_ratio < 0.001
    assert lost.headline.startswith("No result: ")
    assert lost.claims.empty
    assert lost.table["p_adjusted"].isna().all()
    assert lost.notes[:-1] == ("the sample ratio is wrong: no row is a result, and p_adjusted is missing",)
    assert lost.plot().axes
    planned = ab_test(frame, metrics=CTR, shares={"A": 0.1, "B": 0.09})
    assert planned.sample_ratio > 0.01
    assert planned.headline.startswith("ctr is higher")


def test_several_metrics_are_one_family():
    """Without a primary metric p is adjusted by Holm over all rows; with one, the others claim nothing."""
    frame = world(2000, lift=0.15)
    metrics = {**CTR, "views": "views", "clicks": "clicks"}
    table = ab_test(frame, metrics=metrics).table.set_index("metric")
    assert table["p_adjusted"].min() == pytest.approx(3 * table["p_value"].min())
    test = ab_test(frame, metrics=metrics, primary="ctr")
    assert test.table["p_adjusted"].notna().tolist() == [True, False, False]
    assert test.table["p_adjusted"].iloc[0] == test.table["p_value"].iloc[0]


def test_three_arms():
    """Each arm is compared with the control; the family are both comparisons."""
    test = ab_test(world(900, arms=("new", "newer", "old")), metrics=CTR, control="old")
    assert test.table["arm"].tolist() == ["new", "newer"]
    assert test.control == "old"
    assert test.headline.endswith("Of 2 comparisons 0 show a difference (p adjusted by Holm).")
    assert test.notes[:-1] == ()


def test_a_control_of_three_arms_that_nobody_named_is_told():
    """Without control= the first of three arms by name is the control, and a note says so; of two arms none does."""
    test = ab_test(world(900, arms=("new", "newer", "old")), metrics=CTR)
    assert test.notes[:-1] == ("the control is new, the first arm by name (control=)",)
    assert ab_test(world(900), metrics=CTR).notes[:-1] == ()


def test_adjusted_means_of_a_control_differ_by_pair():
    """CUPED adjusts each pair of arms: of three arms the control has two means, and a note says so."""
    frame, own = world(900, arms=("A", "B", "C")), {"ctr": ("clicks_before", "views_before")}
    test = ab_test(frame, metrics=CTR, covariates=own, control="A")
    assert test.table["mean_control"].nunique() == 2
    assert test.notes[:-1] == ("the means of ctr, also A's, are adjusted in each row anew (CUPED)",)


def test_identical_rows_are_counted():
    """Rows that repeat the only row of their user are summed, and a note counts them; several sessions may be equal."""
    frame = world(100)
    twice, apart = (pd.concat([frame, other]) for other in (frame.head(30), frame.assign(clicks=-1)))
    counted = "30 of 130 rows repeat the only row of their user: leave out what was logged twice"
    assert ab_test(twice, metrics={"clicks": "clicks"}).notes[:-1] == (counted,)
    assert ab_test(apart, metrics={"clicks": "clicks"}).notes[:-1] == ()
    assert ab_test(pd.concat([apart, frame]), metrics={"clicks": "clicks"}).notes[:-1] == ()


def test_looks_widen_interval_and_p():
    """At a look the interval reaches bound times error to both sides, and p is the plan's."""
    frame, plan = world(lift=0.2), rk.online.looks_plan(5)
    test = ab_test(frame, metrics=CTR, looks=plan, look=3)
    row = test.table.iloc[0]
    assert row["ci_high"] - row["estimate"] == pytest.approx(plan.bounds[2] * row["standard_error"])
    assert row["p_value"] == plan.p_value(row["estimate"] / row["standard_error"], 3)
    assert "This is look 3 of 5" in test.headline


@each_row("wrong", [{"look": 6}, {"look": 0}, {"look": None}, {"looks": None}, {"alpha": 0.01}])
def test_refused_looks(wrong):
    """A look that was not planned, a plan without a look, and another alpha are refused."""
    with pytest.raises(InvalidInput):
        ab_test(world(), metrics=CTR, **{"looks": rk.online.looks_plan(5), "look": 2} | wrong)


@each_row("column", ["user", "arm", "clicks"])
def test_missing_values_are_refused_with_their_row(column):
    """A missing unit, arm or value is refused, with its column and the first row."""
    frame = world().astype({column: object})
    frame.loc[[7, 9], column] = None
    with pytest.raises(InvalidInput, match="row 7") as error:
        ab_test(frame, metrics=CTR)
    assert column in str(error.value)


@each_row(
    ("change", "match"),
    [
        ({"clicks": np.inf}, "column clicks: row 0 is inf"),
        ({"views": -1}, "a denominator is below 0, or 0 for all users of an arm"),
        ({"views": 0}, "a denominator is below 0, or 0 for all users of an arm"),
        ({"arm": "A"}, "two arms or more"),
    ],
)
def test_refused_values(change, match):
    """Infinite values, denominators below 0 or without a sum, and a single arm are refused."""
    with pytest.raises(InvalidInput, match=match):
        ab_test(world().assign(**change), metrics=CTR)


def test_refused_metrics():
    """No metric, a ratio of a column to itself, unknown names and columns are refused."""
    for metrics in ({}, {"ctr": ("clicks", "clicks")}, {"ctr": "clack"}, {"ctr": 7}, ["clicks"]):
        with pytest.raises(InvalidInput):
            ab_test(world(), metrics=metrics)
    for wrong in ({"primary": "ctrl"}, {"control": "C"}, {"covariates": {"clicks": "views_before"}}):
        with pytest.raises(UnknownName):
            ab_test(world(), metrics=CTR, **wrong)
    with pytest.raises(InvalidInput):
        ab_test(world(), metrics=CTR, shares={"A": 0.5, "C": 0.5})


def test_refused_covariates():
    """A covariate that changes within a user, or belongs to the test itself, is refused."""
    frame = pd.concat([world(50), world(50).assign(views_before=1)])
    with pytest.raises(InvalidInput, match="with several values"):
        ab_test(frame, metrics=CTR, covariates={"ctr": ("clicks_before", "views_before")})
    with pytest.raises(InvalidInput, match="before the test"):
        ab_test(world(), metrics=CTR, covariates={"ctr": "clicks"})


def test_users_in_several_arms():
    """Up to 1 % of the users in several arms are left out and counted; more are refused."""
    frame = world(1000)
    other = frame.head(10).assign(arm=lambda f: f["arm"].map({"A": "B", "B": "A"}))
    test = ab_test(pd.concat([frame, other]), metrics=CTR)
    assert test.notes[0] == "10 users in several arms left out"
    pd.testing.assert_frame_equal(test.table, ab_test(frame.iloc[10:], metrics=CTR).table)
    other = frame.head(11).assign(arm=lambda f: f["arm"].map({"A": "B", "B": "A"}))
    with pytest.raises(InvalidInput, match=r"11 users in several arms.*at most 1 % of 1,000 users"):
        ab_test(pd.concat([frame, other]), metrics=CTR)


@each_row(
    ("change", "metrics", "covariates"),
    [
        ({"clicks": 1.0}, {"clicks": "clicks"}, None),
        ({"clicks": lambda f: 0.3 * f["views"]}, CTR, None),
        ({"clicks": lambda f: 3 * f["views_before"] + 1}, {"clicks": "clicks"}, {"clicks": "views_before"}),
    ],
)
def test_metric_that_does_not_vary(change, metrics, covariates):
    """A metric that is the same for all users, or follows from its covariate, has no p-value, and a note says so."""
    test = ab_test(world().assign(**change), metrics=metrics, covariates=covariates)
    assert np.isnan(test.table["p_value"].iloc[0])
    assert "does not vary" in test.notes[0]
    assert test.headline == "Nothing was tested: the notes say why."


def test_relative_change_needs_means_above_zero():
    """Of a mean at or below 0 no relative change is given, and a note says so."""
    test = ab_test(world().assign(clicks=lambda f: f["clicks"] - 100), metrics={"gain": "clicks"})
    assert test.table["relative"].isna().all()
    assert "gain has no relative change" in test.notes[0]


def test_a_mean_next_to_zero():
    """A mean whose relative change has no end is refused with the remedy, and the remedy works."""
    frame = pd.DataFrame({"user": range(40), "arm": ["A", "B"] * 20, "gain": [1.0, 1.0, -1.0, -1.0] * 10})
    frame["gain"] += 1e-6
    with pytest.raises(InvalidInput, match="so near 0") as error:
        ab_test(frame, metrics={"gain": "gain"})
    assert "add a constant" in error.value.remedy
    assert ab_test(frame.assign(gain=frame["gain"] + 5), metrics={"gain": "gain"}).table["estimate"].iloc[0] == 0


def test_result_in_all_forms():
    """The result is printed and drawn, with a dash for what is not known."""
    test = ab_test(world(2000), metrics={**CTR, "views": "views"}, primary="ctr")
    lines = test.to_markdown().splitlines()
    assert lines[0].startswith("No difference was shown")
    row = next(line for line in lines if line.startswith("| views | B |"))
    assert row.endswith("| \N{EN DASH} |")
    assert test.notes[-1] in lines[-1]
    assert len(test.plot().axes) == 2


def test_without_tea_tasting(monkeypatch):
    """Without the extra the error names the command that installs it."""
    monkeypatch.setitem(sys.modules, "tea_tasting", None)
    with pytest.raises(InvalidInput, match=r'pip install "rankeval-mlflow\[online\] @ '):
        ab_test(world(), metrics=CTR)


def test_global_settings_of_tea_tasting_do_not_count():
    """A test is two-sided with unequal variances under each global setting of tea-tasting."""
    import tea_tasting

    usual = ab_test(world(), metrics=CTR).table
    with tea_tasting.config_context(alternative="greater", equal_var=True, use_t=False):
        pd.testing.assert_frame_equal(ab_test(world(), metrics=CTR).table, usual)


def test_power_is_that_of_simulated_tests():
    """With the users that are named for a change, four tests in five find it."""
    past = pd.DataFrame({"user": range(1000), "orders": [0, 0, 0, 1, 3] * 200})
    needed = ab_power(past, metric="orders", relative=0.5, shares={"A": 0.5, "B": 0.5}).iloc[0]
    rng = np.random.default_rng(0)
    n = int(needed["users"]) // 2
    a, b = (rng.choice([0, 0, 0, 1, 3], (4000, n)) for _ in range(2))
    z = (b.mean(axis=1) + needed["difference"] - a.mean(axis=1)) / np.sqrt((a.var(axis=1) + b.var(axis=1)) / n)
    assert (np.abs(z) > norm.isf(0.025)).mean() == pytest.approx(0.8, abs=0.02)


def test_days_follow_the_traffic():
    """Ten times the share of users is a tenth of the days; the lectures' .1 % and 1 % differ so."""
    small, large = (
        ab_power(world(), metric=CTR["ctr"], shares={"A": s, "B": s}, users_per_day=100_000) for s in (0.001, 0.01)
    )
    assert small["users"].tolist() == large["users"].tolist()
    assert small["days"].tolist() == np.ceil(small["users"] / 200).tolist()
    assert large["days"].tolist() == np.ceil(large["users"] / 2000).tolist()


@each_row(
    "wrong",
    [
        {"shares": {"A": 1}},
        {"shares": {"A": 0.9, "B": 0.2}},
        {"metric": "constant"},
        {"power": 1},
        {"alpha": 0.7},
        {"users_per_day": 0},
    ],
)
def test_refused_powers(wrong):
    """Power takes two arms, a metric that varies, and levels within their range."""
    with pytest.raises(InvalidInput) as error:
        ab_power(world().assign(constant=1), **{"metric": "clicks", "shares": {"A": 0.5, "B": 0.5}} | wrong)
    assert error.value.argument == next(iter(wrong))
