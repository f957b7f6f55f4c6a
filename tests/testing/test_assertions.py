"""A release is stopped by a loss that is shown, or let through by one that is ruled out; the numbers are compare's."""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from tables import each_row

import rankeval as rk
from rankeval._display import view_of
from rankeval.errors import CheckFailed, ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.testing import CHECKS, assert_no_regression, assert_not_worse, assertions


def frames(gain=0.0, n=200, sd=0.2, seed=0, measure="nDCG@10"):
    """Return a baseline, and a candidate whose differences have this mean and deviation in truth."""
    rng = np.random.default_rng(seed)
    index = [f"q{place}" for place in range(n)]
    baseline = pd.DataFrame({measure: rng.normal(0.5, 0.2, n)}, index=index)
    return baseline + rng.normal(gain, sd, (n, 1)), baseline


def says(assertion, *args, **options):
    """Return the message with which an assertion fails."""
    with pytest.raises(CheckFailed) as failed:
        assertion(*args, **options)
    return str(failed.value)


@each_row("seed", range(3))
@each_row("gain", [-0.06, -0.02, 0.03])
def test_the_numbers_are_those_of_scipys_one_sided_t_tests(gain, seed):
    """P-values of both claims, and the interval of level 1 - 2 alpha."""
    candidate, baseline = frames(gain, 60, seed=seed)
    d = (candidate - baseline)["nDCG@10"]
    low, high = stats.ttest_1samp(d, 0).confidence_interval(0.9)
    p_loss = stats.ttest_1samp(d, -0.01, alternative="less").pvalue
    p_rest = stats.ttest_1samp(d, -0.05, alternative="greater").pvalue
    for assertion, options, p, fails in (
        (assert_no_regression, {"margin": 0.01}, p_loss, p_loss <= 0.05),
        (assert_not_worse, {"margin": 0.05, "unseen": 0}, p_rest, p_rest > 0.05),
    ):
        if fails:
            said = says(assertion, candidate, baseline, **options)
            assert (f"{p:.4f}" if p >= 0.0001 else "< 0.0001") in said
            assert f"[{low:+.4f}, {high:+.4f}]" in said
        else:
            row = assertion(candidate, baseline, **options).table.iloc[0]
            found = row[["ci_low", "ci_high", "p_value", "gain", "sd"]].astype(float)
            np.testing.assert_allclose(found, [low, high, p, d.mean(), d.std()], rtol=1e-9)


def test_a_loss_that_is_shown_fails_with_the_numbers_and_the_worst_queries():
    candidate, baseline = frames(-0.1)
    message = says(assert_no_regression, candidate, baseline, margin=0.005)
    assert re.match(r"nDCG@10: -0\.1\d{3}, a loss of more than 0\.005 is shown\n", message)
    assert "Paired t test, one-sided, over 200 queries, alpha 0.05" in message
    assert "90 % interval" in message
    table = message.partition("the greatest losses:\n")[2].splitlines()[2:]
    d = (candidate - baseline)["nDCG@10"].sort_values()
    assert [line.split()[0] for line in table] == d.index[:10].tolist()
    assert [line.split()[3] for line in table] == [f"{value:+.4f}" for value in d.iloc[:10]]
    worse = int((d < 0).sum())
    assert f"worse on {worse} of 200 queries, equal on 0, better on {200 - worse}" in message


def test_non_inferiority_that_is_not_shown_says_how_often_an_equal_system_passes():
    """On 60 queries an equal system rarely passes: the message has its chance, and the queries that are needed."""
    candidate, baseline = frames(0.0, 60, seed=3)
    message = says(assert_not_worse, candidate, baseline, margin=0.05)
    d = (candidate - baseline)["nDCG@10"]
    rng = np.random.default_rng(5)
    equal = np.column_stack([rng.normal(0, d.std(), (20_000, 60)), np.full(20_000, -1.0)])
    passes = (stats.ttest_1samp(equal, -0.05, axis=1, alternative="greater").pvalue <= 0.05).mean()
    assert re.match(r"nDCG@10: [+-]0\.\d{4}, a loss of 0\.05 is not ruled out\n", message)
    said = int(message.partition("an equal system passes only ")[2].split()[0])
    assert abs(said - 100 * passes) < 1.5
    needed = rk.topics_needed(0.0, d.std(), claim="not_worse", margin=0.05)
    assert f"for 80 % take {needed} queries or a wider margin" in message


def test_the_loss_found_is_the_one_that_fails_in_80_of_100_data_sets():
    candidate, baseline = frames(0.05)
    row = assert_no_regression(candidate, baseline, margin=0.01).table.iloc[0]
    rng = np.random.default_rng(5)
    losing = rng.normal(-row["rate"], row["sd"], (10_000, 200))
    fails = (stats.ttest_1samp(losing, -0.01, axis=1, alternative="less").pvalue <= 0.05).mean()
    assert abs(fails - 0.8) < 0.015


@each_row("measure", ["nDCG@10", "ARP"])
def test_a_loss_is_one_in_the_direction_of_the_measure(measure):
    """By ARP less is better: the same numbers, turned over, give the same check."""
    sign = -1 if measure == "ARP" else 1
    candidate, baseline = (sign * frame for frame in frames(-0.1, measure=measure))
    plain = says(assert_no_regression, *(frame.set_axis(["AP"], axis=1) for frame in frames(-0.1, measure=measure)))
    message = says(assert_no_regression, candidate, baseline)
    assert [line.split()[0] for line in message.splitlines()[-10:]] == [
        line.split()[0] for line in plain.splitlines()[-10:]
    ]
    table = assert_no_regression(baseline, candidate).table
    assert table["gain"][0] > 0
    assert table["ci_low"][0] < table["gain"][0] < table["ci_high"][0]
    upright = assert_no_regression(*(sign * frame.set_axis(["AP"], axis=1) for frame in (baseline, candidate))).table
    for column in ("gain", "ci_low", "ci_high", "p_value"):
        assert table[column][0] == pytest.approx(upright[column][0], rel=1e-9)
    assert ("less is better" in message) == (measure == "ARP")


def test_several_measures_share_alpha_for_a_loss_and_each_must_be_ruled_out():
    """Holm for losses, since any false alarm stops a release; none for non-inferiority, which all must show."""
    rng = np.random.default_rng(0)
    baseline = pd.DataFrame(rng.normal(0.5, 0.2, (50, 2)), columns=["nDCG@10", "AP"])
    candidate = baseline + rng.normal(0, 0.2, (50, 2))
    d = (candidate - baseline).to_numpy()
    d = d - d.mean(axis=0) - 1.8 * d.std(axis=0, ddof=1) / np.sqrt(50)  # p = .039 one-sided: a loss, if it were alone
    candidate = baseline + d
    for measure in ("nDCG@10", "AP"):
        assert "a loss is shown" in says(assert_no_regression, candidate, baseline, measure=measure)
    both = assert_no_regression(candidate, baseline, measure=["nDCG@10", "AP"])
    assert both.table["p_value"].between(0.05, 0.1).all()
    assert (both.table["ci_high"] > 0).all()  # the interval agrees with the corrected p
    assert "95 % interval" in str(both), "alpha at each end, over two measures"
    alone = assert_not_worse(candidate, baseline, measure="AP", margin=0.15).table["p_value"][0]
    together = assert_not_worse(candidate, baseline, measure=["nDCG@10", "AP"], margin=0.15).table
    np.testing.assert_allclose(together["p_value"][1], alone, rtol=1e-9)
    assert not [
        note for note in assert_not_worse(candidate, baseline, measure="AP", margin=0.15).notes if "correct" in note
    ]


def test_one_failing_measure_fails_and_only_its_queries_are_listed():
    candidate, baseline = (frame.assign(AP=0.5) for frame in frames(-0.1))  # AP: the unseen query alone loses
    message = says(assert_not_worse, candidate, baseline, measure=["nDCG@10", "AP"], margin=0.05)
    assert re.match(r"nDCG@10: [+-]0\.\d{4}, a loss of 0\.05 is not ruled out\n", message)
    assert "by nDCG@10 the candidate is worse" in message
    assert "by AP the candidate" not in message


def test_the_measure_may_be_left_out_if_there_is_one():
    candidate, baseline = frames(0.0)
    assert assert_no_regression(candidate, baseline).table["measure"].tolist() == ["nDCG@10"]
    assert assert_no_regression(candidate, baseline, measure="ndcg_cut_10").passed
    two = candidate.assign(AP=0.1)
    assert assert_no_regression(two, baseline).table["measure"].tolist() == ["nDCG@10"]
    with pytest.raises(InvalidInput, match="share no measure: candidate has nDCG@10; baseline has x"):
        assert_no_regression(candidate, baseline.set_axis(["x"], axis=1))
    with pytest.raises(UnknownName, match="of both candidate and baseline"):
        assert_no_regression(two, baseline, measure="AP")


@each_row(
    ("wrong", "argument"), [({}, "measure"), ({"measure": "AP", "margin": "x"}, "margin"), ({"measure": "RR"}, None)]
)
@each_row("assertion", [assert_no_regression, assert_not_worse])
def test_a_wrong_argument_is_an_error_at_the_call(assertion, wrong, argument):
    """Its traceback has the caller and three lines of ours, which pytest hides; the remedy can be pasted."""
    candidate, baseline = (frame.assign(AP=0.1) for frame in frames(0.0))
    with pytest.raises(InvalidInput) as caught:
        assertion(candidate, baseline, **{"margin": 0.1} | wrong)
    assert [entry.ishidden(caught) for entry in caught.traceback[1:]] == [True, True, True]
    assert caught.value.argument == argument
    if not wrong:
        assert str(caught.value) == "measure: both sides have several; name one or more: measure=['nDCG@10', 'AP']"


def evaluation(seed, **rules):
    rng = np.random.default_rng(seed)
    labels = np.random.default_rng(9).integers(0, 3, 400)
    return rk.evaluate(labels, rng.integers(0, 5, 400), qid=np.arange(400) // 10, measures="AP", **rules)


def test_evaluations_and_saved_ones_and_frames_give_the_same(tmp_path):
    candidate, baseline = evaluation(1), evaluation(2)
    baseline.save(tmp_path / "old.parquet")
    expected = str(assert_not_worse(candidate, baseline, margin=0.3))
    assert str(assert_not_worse(candidate, tmp_path / "old.parquet", margin=0.3)) == expected
    assert str(assert_not_worse(candidate, str(tmp_path / "old.parquet"), margin=0.3)) == expected
    assert str(assert_not_worse(candidate.per_query, baseline.per_query, margin=0.3)) == expected
    with pytest.raises(InvalidInput, match="there is no file"):
        assert_not_worse(candidate, tmp_path / "new.parquet", margin=0.3)


def test_what_cannot_be_compared_is_refused_and_not_failed():
    """An error of use is no AssertionError: it says what to mend in the test."""
    with pytest.raises(ConventionMismatch, match="'candidate' and 'baseline' must not be compared: ties is"):
        assert_no_regression(evaluation(1, ties="best"), evaluation(2))
    candidate, baseline = frames()
    with pytest.raises(QueryIdError, match="'candidate' lacks 1 of 200 queries"):
        assert_no_regression(candidate.iloc[1:], baseline)
    assert assert_no_regression(candidate.iloc[1:], baseline, unpaired="skip").table["n_queries"][0] == 199
    with pytest.raises(InvalidInput, match=r"margin is -0\.1; expected a number, 0 or greater"):
        assert_no_regression(candidate, baseline, margin=-0.1)
    with pytest.raises(InvalidInput, match=r"margin is 0; expected a loss above it: nothing shows equality"):
        assert_not_worse(candidate, baseline, margin=0)
    for alpha in (0, 0.25, 0.5, 1, True):
        with pytest.raises(InvalidInput, match="alpha is"):
            assert_no_regression(candidate, baseline, alpha=alpha)
    with pytest.raises(UnknownName, match="test"):
        assert_no_regression(candidate, baseline, test="T")


def test_a_candidate_that_is_the_baseline_passes_both():
    """Identical runs have no variance: no loss is shown, and all are ruled out but what 200 queries can have missed."""
    _, baseline = frames()
    assert np.isnan(assert_no_regression(baseline, baseline).table["rate"][0])  # no loss can be named that is found
    check = assert_not_worse(baseline, baseline, margin=0.02)
    assert check.table["rate"][0] == 1
    assert "100 %" in str(check)
    assert "a loss of 0.01 is not ruled out" in says(assert_not_worse, baseline, baseline, margin=0.01)
    assert assert_not_worse(baseline, baseline, margin=1e-6, unseen=0).passed


def test_no_worst_query_is_listed_that_did_not_lose():
    """Three queries are too few to rule out a loss though none lost."""
    baseline = pd.DataFrame({"AP": [0.1, 0.2, 0.3]}, index=["a", "b", "c"])
    message = says(assert_not_worse, baseline + np.array([[0.0], [0.5], [0.1]]), baseline, margin=0.05)
    assert message.endswith("the candidate is worse on 0 of 3 queries, equal on 1, better on 2")


@each_row("test", ["randomization", "bootstrap", "wilcoxon", "sign"])
def test_other_tests_are_named_and_seeded(test):
    candidate, baseline = frames(-0.2, 60)
    first, again = (says(assert_no_regression, candidate, baseline, test=test, n_resamples=999) for _ in range(2))
    assert first == again
    assert rk.significance.TESTS[test].words.lower() in first.lower()


@each_row(("test", "known"), [("randomization", True), ("sign", False)])
def test_a_rate_is_given_only_if_the_test_has_the_power_of_t(test, known):
    """For ranks and signs it depends on more than mean and deviation: then a dash stands for it."""
    candidate, baseline = frames(0.05, 60)
    for check in (
        assert_no_regression(candidate, baseline, test=test),
        assert_not_worse(candidate, baseline, test=test, margin=0.3),
    ):
        assert np.isfinite(check.table["rate"][0]) == known
        assert (check.rows()[0]["verdict"].count("(") == 1) == known
        assert ("\N{EN DASH}" in view_of(check).to_text(width=None)) != known


def test_hostile_ids_stay_in_their_row():
    baseline = pd.DataFrame({"AP": np.full(6, 0.5)}, index=["a\nb", "c" * 500, "\x1b[31m", "d", "e", "f"])
    message = says(assert_no_regression, baseline - np.array([[0.1, 0.2] * 3]).T, baseline)
    assert len(message.splitlines()[-1]) < 140
    assert "\x1b" not in message
    assert r"'a\nb'" in message


def test_checks_are_kept_for_the_summary():
    CHECKS.clear()
    candidate, baseline = frames(0.05)
    assert_no_regression(candidate, baseline)
    row = CHECKS.pop()
    assert row["verdict"].startswith("no loss is shown (a true loss of 0.0")
    assert row["queries"] == "200"
    assert set(row) == {"measure", "queries", "gain", "interval", "verdict", "failure"}
    assert row["failure"] == ""
    message = says(assert_no_regression, baseline - 0.5, candidate)
    failure = CHECKS.pop()["failure"]
    assert failure.startswith("by nDCG@10 the candidate is worse on ")
    assert message.endswith(failure)
    assert all(isinstance(value, str) for value in row.values())


RATES = [
    (0.0, True, 10, 9),
    (-0.1, False, 5, 5),
    pytest.param(0.0, True, 100, 92, marks=pytest.mark.world),
    pytest.param(-0.1, False, 40, 40, marks=pytest.mark.world),
]


@pytest.mark.parametrize(("gain", "outcome", "trials", "least"), RATES)
def test_the_rates_that_are_promised(gain, outcome, trials, least):
    """N = 200, sd .20, fixed seeds: an equal ranker passes both checks, one worse by .10 fails both.

    A check that finds such a loss in 95 of 100 data sets passes this with a chance of 13 %, one of 90 with 1 %.
    """

    def passes(assertion, *systems, **options):
        try:
            return assertion(*systems, **options).passed
        except CheckFailed:
            return False

    both = 0
    for seed in range(trials):
        systems = frames(gain, seed=seed)
        both += (passes(assert_no_regression, *systems), passes(assert_not_worse, *systems, margin=0.06)) == (
            outcome,
            outcome,
        )
    assert both >= least


def test_a_check_is_shown_in_a_notebook():
    check = assert_no_regression(*frames())
    assert "<table" in check._repr_html_()
    assert "loss found" in check._repr_html_()


@each_row("check", [assert_no_regression, assert_not_worse])
def test_the_path_of_a_run_is_answered_with_the_call_that_scores_it(check, tmp_path):
    """A file that is missing is another matter."""
    path, saved = tmp_path / "v2.run.gz", tmp_path / "v1.parquet"
    rk.Run.from_any({"q1": {"a": 2.0, "b": 1.0}}).write(path)
    rk.evaluate([1, 0], [0.5, 0.1], qid=["q1", "q1"], measures="RR").save(saved)
    with pytest.raises(InvalidInput, match=r"v2\.run\.gz: expected .*; score a run first: rk\.evaluate\(qrels, run\)"):
        check(path, saved, margin=0.1)
    with pytest.raises(InvalidInput) as failed:
        check(tmp_path / "v3.run", saved, margin=0.1)
    assert "evaluate" not in str(failed.value)


CONVERSATIONS = pd.Series(np.repeat(np.arange(40), 5), index=[f"q{place}" for place in range(200)], name="conversation")


def in_conversations(gain, seed=0):
    """Return a candidate whose differences go together within conversations, and the baseline."""
    candidate, baseline = frames(gain, sd=0.05, seed=seed)
    return candidate.add(np.random.default_rng(seed).normal(0, 0.1, 40)[CONVERSATIONS], axis=0), baseline


@each_row("gain", [-0.1, -0.03, 0.05])
def test_with_groups_the_numbers_are_those_of_the_means_of_groups(gain):
    """Of both assertions, whether they pass or fail; the queries that lost most are printed all the same."""
    candidate, baseline = in_conversations(gain)
    grouped = [side.groupby(CONVERSATIONS).mean() for side in (candidate, baseline)]
    for assertion, options in ((assert_no_regression, {}), (assert_not_worse, {"margin": 0.1})):
        told = []
        for sides, groups in (((candidate, baseline), {"groups": CONVERSATIONS}), (grouped, {})):
            try:
                said = str(assertion(*sides, **options, **groups))
            except CheckFailed as failed:
                said = str(failed)
            told.append((said, {name: CHECKS[-1][name] for name in ("queries", "gain", "interval", "verdict")}))
        (said, found), (_, expected) = told
        assert found == expected
        assert "over 40 conversations of 200 queries, alpha 0.05" in said
        assert "the greatest losses:" not in said or "of 200 queries, equal on" in said


def test_with_groups_the_advice_is_in_groups():
    """The message says how many conversations are needed, and the summary how many were tested."""
    message = says(assert_not_worse, *in_conversations(0.0, seed=2), margin=0.02, groups=CONVERSATIONS)
    assert "conversations or a wider margin" in message
    assert "queries or a wider margin" not in message
    assert "intraclass correlation of differences in nDCG@10" in message
    assert CHECKS[-1]["queries"] == "40"
    plain = says(assert_not_worse, *in_conversations(0.0, seed=2), margin=0.02)
    assert "queries or a wider margin" in plain
    assert "conversation" not in plain


def test_query_ids_as_groups_are_refused():
    with pytest.raises(InvalidInput, match="has a group of its own") as caught:
        assert_no_regression(*frames(), groups=pd.Series(CONVERSATIONS.index, index=CONVERSATIONS.index))
    assert caught.value.argument == "groups"


MARKETS = pd.Series(["de"] * 120 + ["us"] * 60 + ["fr"] * 38 + ["nl"] * 3, name="market").set_axis(
    [f"q{place}" for place in range(221)]
)


def in_markets(loss, seed=0):
    """Return a candidate that loses this much in fr alone, and the baseline."""
    candidate, baseline = frames(0.0, 221, sd=0.05, seed=seed)
    return candidate.sub(loss * (MARKETS == "fr"), axis=0), baseline


def holm(p):
    """Step down by statsmodels."""
    return multipletests(p, method="holm")[1]


@each_row("loss", [0.0, 0.05, 0.15])
def test_the_whole_and_its_slices_are_one_family(loss):
    """For both assertions: p-values of SciPy, corrected by statsmodels; 3 queries are not tested."""
    candidate, baseline = in_markets(loss)
    d = (candidate - baseline)["nDCG@10"]
    parts = {"all": d, **{name: d[name == MARKETS] for name in ("de", "us", "fr")}}
    for assertion, margin, tail in ((assert_no_regression, 0.005, "less"), (assert_not_worse, 0.1, "greater")):
        own = {"unseen": 0} if assertion is assert_not_worse else {}
        p = {name: stats.ttest_1samp(x, -margin, alternative=tail).pvalue for name, x in parts.items()}
        expected = dict(zip(p, holm([*p.values()]), strict=True))
        fails = [name for name, value in expected.items() if (value <= 0.05) == (tail == "less")]
        check = checked(assertion, candidate, baseline, margin=margin, by=MARKETS, **own)
        table = check.table.set_index("slice")
        assert set(table.index) == {*parts, "nl"}
        for name, x in parts.items():
            row = table.loc[name]
            low, high = stats.ttest_1samp(x, 0).confidence_interval(1 - 2 * 0.05 / 4)
            found = row[["n_queries", "gain", "ci_low", "ci_high", "p_value", "sd"]].astype(float)
            wanted = [len(x), x.mean(), low, high, expected[name], x.std()]
            np.testing.assert_allclose(found, wanted, rtol=1e-9)
        assert sorted(table.index[~table["passed"]]) == sorted(fails)
        assert np.isnan(table.loc["nl", "p_value"])
    systems = {"candidate": candidate, "baseline": baseline}  # with a query in each part that is not seen
    rows = rk.compare(systems, baseline="baseline", claim="not_worse", margin=0.1, by=MARKETS).table.dropna()
    table = checked(assert_not_worse, candidate, baseline, margin=0.1, by=MARKETS).table.set_index("slice")
    np.testing.assert_allclose(table.loc[rows["market"], "p_value"].astype(float), holm(rows["p_value"]), rtol=1e-9)


def checked(assertion, *sides, **options):
    """Return the Check, whether it passes or not."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assertions, "record", made.append)
        with suppress(CheckFailed):
            assertion(*sides, **options)
    return made[0]


def test_the_market_that_lost_is_named_first_with_its_queries():
    candidate, baseline = in_markets(0.15)
    message = says(assert_no_regression, candidate, baseline, margin=0.005, by=MARKETS)
    loss = (candidate - baseline)["nDCG@10"][MARKETS == "fr"].mean()
    assert message.startswith(f"nDCG@10, market fr: {loss:.4f}, a loss of more than 0.005 is shown")
    assert "over 221 queries, by market (Holm over 4 parts), alpha 0.05" in message
    assert message.splitlines()[5].split()[1:3] == ["fr", "38"]
    listed = message.partition("by nDCG@10, market fr the candidate is worse on")[2]
    ids = [line.split()[0] for line in listed.split("\n\n")[0].splitlines()[3:]]
    assert set(ids) <= set(MARKETS.index[MARKETS == "fr"])
    assert len(ids) == 10
    rows = {row["measure"]: row for row in list(CHECKS)[-5:]}
    assert rows["nDCG@10, market fr"]["failure"].startswith("by nDCG@10, market fr the candidate is")
    assert rows["nDCG@10, market nl"]["verdict"] == "not tested, with fewer than 5 queries"


def test_a_slice_without_a_changed_score_is_listed_and_not_tested():
    """The loss in one of four markets is corrected with that of all queries alone."""
    candidate, baseline = in_markets(0.0)
    is_changed = MARKETS == "fr"
    candidate = baseline.where(~is_changed, candidate - 0.025, axis=0)
    check = checked(assert_no_regression, candidate, baseline, margin=0.005, by=MARKETS)
    table = check.table.set_index("slice")
    d = (candidate - baseline)["nDCG@10"]
    p = [stats.ttest_1samp(x, -0.005, alternative="less").pvalue for x in (d[is_changed], d)]
    np.testing.assert_allclose(table.loc[["fr", "all"], "p_value"].astype(float), holm(p), rtol=1e-9)
    assert table.loc[["de", "us", "nl"], "p_value"].isna().all()
    assert table.loc[["de", "us", "nl"], "passed"].all()
    assert check.verdicts[list(check.table["slice"]).index("de")] == "equal on every query"
    assert "by market (Holm over 2 parts)" in str(check)
    assert "95 % interval" in str(check), "the level of two parts, as p has it"
    for name, x in (("fr", d[is_changed]), ("all", d)):
        ends = stats.ttest_1samp(x, 0).confidence_interval(1 - 2 * 0.05 / 2)
        np.testing.assert_allclose(table.loc[name, ["ci_low", "ci_high"]].astype(float), ends, rtol=1e-9)
    rows = {row["measure"]: row["interval"] for row in check.rows()}
    assert rows["nDCG@10, market fr"].endswith("] (95 %)")
    assert "%" not in rows["nDCG@10, market de"]
    same = checked(assert_no_regression, baseline, baseline, by=MARKETS)
    assert same.passed
    assert same.table.set_index("slice").loc["all", "p_value"] == 1
    ruled_out = checked(assert_not_worse, candidate, baseline, margin=0.1, by=MARKETS).table.set_index("slice")
    assert ruled_out.loc[["de", "us"], "p_value"].notna().all()


def test_a_small_slice_says_which_loss_it_would_miss():
    """Its loss found is the smallest that is shown 80 % of the time at the level of the family."""
    candidate, baseline = in_markets(0.0, seed=1)
    check = assert_no_regression(candidate, baseline, by=MARKETS)
    row = check.table.set_index("slice").loc["fr"]
    assert f"a loss under {row['rate']:.2g} nDCG@10 in fr (38 queries) would not be found reliably" in str(check)
    rng = np.random.default_rng(5)
    losing = rng.normal(-row["rate"], row["sd"], (10_000, 38))
    shown = stats.ttest_1samp(losing, 0, axis=1, alternative="less").pvalue <= 0.05 / 4
    assert abs(shown.mean() - 0.8) < 0.015


def test_slices_are_resolved_as_in_compare():
    """By a mapping, by the name of a count, with groups; and refused with the same argument."""
    candidate, baseline = in_markets(0.15)
    series = checked(assert_no_regression, candidate, baseline, by=MARKETS)
    mapping = checked(assert_no_regression, candidate, baseline, by=MARKETS.to_dict())
    pd.testing.assert_frame_equal(series.table, mapping.table)
    evaluations = [
        rk.evaluate(np.arange(80) % 4 > 0, scores, qid=np.repeat(np.arange(20), [3, 5] * 10), measures="AP")
        for scores in (np.arange(80) % 3, np.arange(80) % 5)
    ]
    counted = checked(assert_no_regression, *evaluations, by="retrieved")
    assert set(counted.table["slice"]) == {"all", "3", "5"}
    groups = pd.Series(np.arange(221) // 2, index=MARKETS.index, name="need")
    grouped = checked(assert_no_regression, candidate, baseline, by=MARKETS, groups=groups)
    table = grouped.table.set_index("slice")
    means = (candidate - baseline)["nDCG@10"][MARKETS == "fr"].groupby(groups).mean()
    np.testing.assert_allclose(table.loc["fr", ["gain", "sd"]].astype(float), [means.mean(), means.std()])
    for by in (5, pd.Series({"x": "de"}), MARKETS.reset_index(drop=True)):
        with pytest.raises((InvalidInput, QueryIdError)) as refused:
            assert_no_regression(candidate, baseline, by=by)
        assert refused.value.argument == "by"


def test_several_measures_and_slices_are_one_family_of_losses():
    candidate, baseline = (side.assign(AP=side["nDCG@10"] ** 2) for side in in_markets(0.05))
    options = {"measure": ["nDCG@10", "AP"], "by": MARKETS}
    table = checked(assert_no_regression, candidate, baseline, **options).table.dropna()
    d = candidate - baseline
    p = [
        stats.ttest_1samp(d[row.measure][(row.slice == MARKETS) | (row.slice == "all")], 0, alternative="less").pvalue
        for row in table.itertuples()
    ]
    np.testing.assert_allclose(table["p_value"], holm(p), rtol=1e-9)
    table = checked(assert_not_worse, candidate, baseline, margin=0.1, **options).table.dropna()
    alone = checked(assert_not_worse, candidate, baseline, margin=0.1, measure="AP", by=MARKETS).table.dropna()
    np.testing.assert_allclose(table.loc[table["measure"] == "AP", "p_value"], alone["p_value"])
