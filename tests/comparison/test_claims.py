"""Claims in compare: gains by what is better, intervals of differences, what is said, kept and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.weightstats import ttost_paired
from tables import each_row

import rankeval as rk
from rankeval.comparison import record
from rankeval.comparison.design import without_adjusted
from rankeval.comparison.record import PARTED
from rankeval.errors import InvalidInput
from rankeval.significance import CLAIMS, paired_test
from rankeval.significance.declarations import Settings
from rankeval.significance.multiple import max_t_limits


def systems(n=40, seed=0):
    """Return three systems by AP and by ARP, of which less is better and which mirrors AP."""
    rng = np.random.default_rng(seed)
    topic = rng.random(n)
    frames = {}
    for name, gain in (("base", 0.0), ("same", 0.01), ("good", 0.15)):
        score = topic + gain + rng.normal(0, 0.1, n)
        frames[name] = pd.DataFrame({"AP": score, "ARP": -score})
    return frames


def compared(**options):
    return rk.compare(systems(), baseline="base", **options)


def test_wins_and_losses_go_by_what_is_better():
    table = compared().table.set_index(["measure", "system"])
    for system in ("same", "good"):
        ap, arp = table.loc[("AP", system)], table.loc[("ARP", system)]
        assert (ap.wins, ap.ties, ap.losses) == (arp.wins, arp.ties, arp.losses)
        assert ap.difference == pytest.approx(-arp.difference)
    assert table.loc[("ARP", "good")].wins > 30


@each_row("claim", [name for name, one in CLAIMS.items() if one.hypotheses])
@each_row("correction", ["holm", "max_t", "none"])
def test_claims_are_about_gains(claim, correction):
    """By a measure of which less is better the p-values are the same, and the intervals of differences mirrored."""
    options = {"claim": claim, "margin": 0.04, "correction": correction, "family": "measure", "n_resamples": 999}
    options["unseen"] = 0  # AP has a declared range, ARP has none
    table = compared(**options).table
    more, less = (table[table["measure"] == name].reset_index() for name in ("AP", "ARP"))
    for column in ("p_value", "p_adjusted", "detectable_difference"):
        np.testing.assert_allclose(more[column], less[column], rtol=1e-9)
    for low, high in (("ci_low", "ci_high"), ("ci_low_adjusted", "ci_high_adjusted")):
        np.testing.assert_allclose(more[low], -less[high], rtol=1e-9)
        np.testing.assert_allclose(more[high], -less[low], rtol=1e-9)
    d = systems()["good"]["AP"] - systems()["base"]["AP"]
    expected = paired_test("t", d, claim=claim, margin=0.04).p_value
    assert more.set_index("system").loc["good", "p_value"] == pytest.approx(expected, rel=1e-9)


def test_what_is_shown_follows_from_the_claim():
    """A good system is better and not worse, and is not equivalent; a near copy is not worse and not better."""
    shown = {
        claim: dict(zip(found.table["system"], found.shown, strict=True))
        for claim, margin in (("better", 0.04), ("not_worse", 0.13), ("equivalent", 0.15))
        for found in [compared(measures="AP", claim=claim, margin=margin)]
    }
    assert shown["better"] == {"same": False, "good": True}
    assert shown["not_worse"] == {"same": True, "good": True}
    assert shown["equivalent"] == {"same": True, "good": False}


@each_row("measure", ["AP", "ARP", "Latency"])
def test_the_greatest_loss_is_the_range_of_the_measure_else_the_greatest_score_of_the_baseline(measure):
    column = "AP" if measure == "AP" else "ARP"
    given = {name: frame[[column]].set_axis([measure], axis=1) + 3 for name, frame in systems().items()}
    loss = 1.0 if measure == "AP" else given["base"][measure].max()
    sign = -1 if measure == "ARP" else 1
    d = sign * (given["good"][measure] - given["base"][measure])
    found = rk.compare(given, baseline="base", claim="not_worse", margin=0.5).table.set_index("system")
    expected = paired_test("t", d, claim="not_worse", margin=0.5, unseen=1, greatest_loss=loss)
    assert found.loc["good", "p_value"] == pytest.approx(expected.p_value, rel=1e-9)
    plain = rk.compare(given, baseline="base", claim="not_worse", margin=0.5, unseen=0).table.set_index("system")
    assert plain.loc["good", "p_value"] == pytest.approx(paired_test("t", d, claim="not_worse", margin=0.5).p_value)


@each_row("n", [5, 40, 300])
def test_plain_claims_equal_statsmodels(n):
    """Two one-sided tests, and one of them, to 1e-12; with an unseen query no evidence is greater."""
    given = systems(n, seed=n)
    old, new = (given[name][["AP"]] for name in ("base", "good"))
    for margin in (0.02, 0.2):
        p_value, low, _ = ttost_paired(new["AP"], old["AP"], -margin, margin)
        for claim, expected in (("equivalent", p_value), ("not_worse", low[1])):
            options = {"baseline": "old", "claim": claim, "margin": margin}
            found, beside = (
                rk.compare({"old": old, "new": new}, unseen=unseen, **options).table["p_value"].item()
                for unseen in (0, 1)
            )
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert beside >= min(found, 0.5)


@each_row("claim", ["not_worse", "equivalent"])
def test_ones_on_five_queries_show_no_absence_of_harm(claim):
    """P@1 is 1 for both systems: 45 % of the queries may be broken, and a margin of .001 says nothing of that."""
    ones = pd.DataFrame({"P@1": np.ones(5)})
    found = rk.compare({"old": ones, "new": ones}, baseline="old", claim=claim, margin=0.001)
    row = found.table.iloc[0]
    assert not found.shown.any()
    assert row.p_adjusted > 0.05
    assert row.ci_low < -0.3
    assert row.detectable_difference > 0.4
    assert np.isnan(found.bayes(rope=0.01)[["p_worse", "p_equivalent", "p_better"]].to_numpy()).all()
    with pytest.raises(rk.errors.CheckFailed):
        rk.testing.assert_not_worse(ones, ones, margin=0.001)


@pytest.mark.further
@each_row("claim", ["difference", "better", "not_worse", "equivalent"])
@each_row("test", ["t", "randomization", "bootstrap", "sign"])
@each_row("gain", [0.0, 0.1])
def test_nothing_of_zero_width_is_told_without_variance(gain, test, claim):
    """Ten queries that all gain the same, for .1 up to rounding: each interval is wide, or has no ends at all."""
    old = pd.DataFrame({"AP": [0.1, 0.2, 0.3, 0.7, 0.9] * 2})
    half = {"a": slice(0, 5), "b": slice(5, 10)}
    margin = {} if claim in ("difference", "better") else {"margin": 0.001}
    options = {"baseline": "old", "claim": claim, "test": test, "correction": "max_t", "n_resamples": 99, **margin}
    systems = {"old": old, "new": old + gain, "newer": old + 2 * gain}
    parted = {name: {part: frame[rows] for part, rows in half.items()} for name, frame in systems.items()}
    for given in (systems, parted, {name: systems[name] for name in ("old", "new")}):
        found = rk.compare(given, **options)
        table = found.table
        for end in table.filter(like="ci_"):
            assert (table[end].isna() | (abs(table[end] - table["difference"]) > 0.1)).all(), end
        told = table["detectable_difference"].dropna()
        assert (told > 0.1).all()
        assert not margin or not found.shown.any()
        if given is not parted:
            assert np.isnan(found.bayes(rope=0.01).filter(like="p_")).all(axis=None)
            assert (found.best.ci_low, found.best.ci_high) == (-np.inf, np.inf)


def test_equal_scores_leave_the_mean_without_an_interval():
    """Three queries with P@1 = 1 say nothing of the next."""
    ev = rk.evaluate([1, 0, 1, 0, 0, 1], [2, 1, 2, 1, 2, 1], qid=[1, 1, 2, 2, 3, 3], measures=["P@1", "P@2"])
    found = ev.ci()
    assert np.isnan(found.loc["P@2", ["ci_low", "ci_high"]]).all()
    assert found.loc["P@1", "ci_low"] < found.loc["P@1", "ci_high"]


def test_the_headline_names_what_cannot_have_been_seen():
    found = compared(measures="AP", claim="not_worse", margin=0.09)
    assert "On 40 queries a breakage of up to 7.2 % of the queries can go unseen." in found.headline
    assert "with 1 unseen query," in found.caption
    assert rk.Comparison.from_json(found.to_json()).settings.unseen == 1
    for claim in ("difference", "better"):
        assert compared(measures="AP", claim=claim).settings.unseen == 0


def test_each_slice_and_collection_has_an_unseen_query_of_its_own():
    frames = {name: frame[["AP"]] for name, frame in systems().items()}
    half = pd.Series(np.where(np.arange(40) < 20, "a", "b"), index=frames["base"].index)
    options = {"baseline": "base", "claim": "not_worse", "margin": 0.3}
    sliced = rk.compare(frames, by=half, **options).table
    alone = rk.compare({name: frame[half == "a"] for name, frame in frames.items()}, **options).table
    np.testing.assert_allclose(sliced[sliced.iloc[:, 0] == "a"]["p_value"], alone["p_value"], rtol=1e-9)
    parts = {name: {part: frame[half == part] for part in "ab"} for name, frame in frames.items()}
    d = frames["good"]["AP"] - frames["base"]["AP"]
    together = rk.compare(parts, n_resamples=999, **options).table
    by_hand = paired_test("randomization", np.append(d, [-1, -1]) + 0.3, alternative="greater", n_resamples=999, rng=0)
    found = together[(together["system"] == "good") & (together["collection"] == "all")]["p_value"].item()
    assert found == pytest.approx(by_hand.p_value, abs=0.01)


def test_the_claim_is_said_and_kept():
    found = compared(claim="equivalent", margin=0.04)
    assert "two one-sided tests, to show that neither gain nor loss reaches 0.04" in found.caption
    assert "90 % intervals" in found.caption
    back = rk.Comparison.from_json(found.to_json())
    assert (back.settings.claim, back.settings.margin, back.caption) == ("equivalent", 0.04, found.caption)


def test_ends_that_share_alpha_are_said_to():
    """Max-T holds all ends of a family together, at the level 1 - alpha; of one comparison each end has alpha."""
    options = {"claim": "equivalent", "margin": 0.1, "measures": "AP", "n_resamples": 999, "unseen": 0}
    joint, alone = compared(correction="max_t", **options), compared(correction="holm", **options)
    assert (joint.settings.interval_level, joint.settings.adjusted_level, alone.settings.adjusted_level) == (
        0.9,
        0.95,
        0.9,
    )
    assert "90 % intervals, 95 % adjusted ones, 999 resamples" in joint.caption
    assert "95 % interval (adjusted)" in str(joint)
    assert "[95% interval " in joint.headline
    assert "90 % interval (adjusted)" in str(alone)
    assert alone.caption.endswith("90 % intervals")
    pair = rk.compare({name: systems()[name] for name in ("base", "same")}, correction="max_t", **options)
    assert pair.settings.adjusted_level == 0.9
    assert "90 % interval" in str(pair)
    d = {name: systems()[name]["AP"] - systems()["base"]["AP"] for name in ("same", "good")}
    limits = max_t_limits(np.column_stack([*d.values(), *(-each for each in d.values())]), Settings("greater", rng=0))
    low, high = limits[0][:2], -limits[0][2:]
    wide = compared(correction="max_t", **options | {"n_resamples": 9999}).table
    np.testing.assert_allclose(wide["ci_low_adjusted"], low, rtol=1e-9)
    np.testing.assert_allclose(wide["ci_high_adjusted"], high, rtol=1e-9)


@each_row("claim", ["better", "not_worse"])
def test_a_claim_with_a_direction_needs_a_baseline(claim):
    """The order of the systems must not choose the direction; equivalence has none."""
    parts = {name: {"x": frame, "y": frame} for name, frame in systems().items()}
    for given in (systems(), parts):
        with pytest.raises(InvalidInput, match=f'claim="{claim}" has a direction.*baseline= .--baseline'):
            rk.compare(given, claim=claim, margin=0.05)
    turned = dict(reversed(systems().items()))
    one, other = (rk.compare(each, claim="equivalent", margin=0.05).table for each in (systems(), turned))
    assert sorted(one["p_value"]) == pytest.approx(sorted(other["p_value"]))


def test_what_cannot_be_claimed_is_refused():
    for argument, value in (("claim", "better"), ("baseline", "base")):
        with pytest.raises(InvalidInput) as caught:
            rk.compare(systems(), correction="tukey", **{argument: value})
        assert (caught.value.argument, caught.value.found) == (argument, repr(value))
    with pytest.raises(InvalidInput, match="a margin above 0"):
        compared(claim="not_worse")


def test_rows_in_which_step_down_and_interval_part_are_marked():
    """Holm rejects at alpha what the interval at alpha / m cannot exclude."""
    rng = np.random.default_rng(1)
    frames = {"base": pd.DataFrame({"AP": np.zeros(30)})}
    for name, t in (("clear", 9.0), ("close", 2.2)):  # the second one's p, .036, is below .05 and above .025
        noise = rng.normal(size=30)
        noise = (noise - noise.mean()) / noise.std(ddof=1)
        frames[name] = pd.DataFrame({"AP": noise + t / np.sqrt(30)})
    found = rk.compare(frames, baseline="base")
    assert found.shown.tolist() == [True, True]
    assert record.parted(found).tolist() == [False, True]
    assert PARTED.format(rows="close against base by AP") in found.notes
    plain = rk.compare(frames, baseline="base", correction="bonferroni")
    assert not record.parted(plain).any()
    assert not any("disagree" in note for note in plain.notes)
    assert not record.parted(replace(found, table=without_adjusted(found.table))).any()


def test_no_adjusted_interval_belongs_to_a_false_discovery_rate():
    for correction in ("bh", "by"):
        table = compared(correction=correction).table
        assert table[["ci_low_adjusted", "ci_high_adjusted"]].isna().all(axis=None)
    none = compared(correction="none").table
    assert none["ci_low_adjusted"].equals(none["ci_low"].rename("ci_low_adjusted"))
