"""Orders by measures and on collections are those of the means; agreement of them is the arithmetic's, pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankeval as rk
from rankeval.errors import ConventionMismatch, InvalidInput, QueryIdError, UnknownName
from rankeval.significance.orders import tau_ap_a, tau_ap_b

MEASURES = ["nDCG@10", "AP", "ARP"]


def scores_of(seed, labels=MEASURES, *, n=20, names="abcdef"):
    generator = np.random.default_rng(seed)
    queries = pd.Index([f"q{i}" for i in range(n)], name="qid")
    return {name: pd.DataFrame(generator.random((n, len(labels))), queries, labels) for name in names}


def evaluations(seed, **options):
    generator = np.random.default_rng(seed)
    qid = np.repeat(np.arange(15), 10)
    y = generator.integers(0, 2, 150)
    return {
        name: rk.evaluate(y, y * gain + generator.random(150), qid=qid, measures=["nDCG@10", "AP"], **options)
        for name, gain in (("weak", 0.1), ("fair", 0.4), ("good", 0.6), ("best", 1.5))
    }


def test_orders_by_measures_are_those_of_the_means():
    """Every two measures; ARP, of which less is better, is turned round."""
    systems = scores_of(0)
    found = rk.analysis.order_agreement(systems)
    assert found.table[["a", "b"]].to_numpy().tolist() == [list(pair) for pair in itertools.combinations(MEASURES, 2)]
    means = pd.DataFrame({name: frame.mean() for name, frame in systems.items()}).T
    np.testing.assert_allclose(found.means.loc[means.index, MEASURES], means)
    gains = means.assign(ARP=-means["ARP"])
    for row in found.table.itertuples():
        assert row.n_systems == 6
        assert row.tau_b == pytest.approx(stats.kendalltau(gains[row.a], gains[row.b]).statistic, abs=1e-12)
        assert row.tau_ap == tau_ap_b(gains[row.a], gains[row.b])
        pairs = itertools.combinations(means.index, 2)
        swapped = sum(
            (gains.loc[i, row.a] - gains.loc[j, row.a]) * (gains.loc[i, row.b] - gains.loc[j, row.b]) < 0
            for i, j in pairs
        )
        assert (row.swaps, row.ties) == (swapped, 0)
    pd.testing.assert_frame_equal(
        found.ranks.astype(float), gains.rank(ascending=False), check_dtype=False, check_names=False
    )


def test_a_frame_of_means_is_taken_as_it_is():
    """The frame that an agreement is made of gives the agreement again, from pandas and polars."""
    found = rk.analysis.order_agreement(scores_of(1))
    again = rk.analysis.order_agreement(found.means)
    pd.testing.assert_frame_equal(found.table, again.table)
    with_names = pl.DataFrame({"system": found.means.index.tolist(), **{m: found.means[m].tolist() for m in MEASURES}})
    pd.testing.assert_frame_equal(found.table, rk.analysis.order_agreement(with_names).table)
    some = rk.analysis.order_agreement(found.means, measures=["map", "ARP"])
    assert some.table[["a", "b"]].to_numpy().tolist() == [["AP", "ARP"]]


def test_orders_on_collections_are_compared_measure_by_measure():
    """The table of each measure is that of a frame with its means on each collection."""
    names = ("news", "web", "medical")
    parts = {collection: scores_of(seed, names="abcde", n=10 + seed) for seed, collection in enumerate(names)}
    systems = {name: {collection: parts[collection][name] for collection in names} for name in "abcde"}
    found = rk.analysis.order_agreement(systems)
    assert found.table.columns.tolist() == ["measure", "a", "b", "n_systems", "tau_b", "tau_ap", "swaps", "ties"]
    assert len(found.table) == 9
    for measure, part in found.table.groupby("measure"):
        means = pd.DataFrame({c: {s: systems[s][c][measure].mean() for s in systems} for c in names})
        means = -means if measure == "ARP" else means
        expected = rk.analysis.order_agreement(means).table
        pd.testing.assert_frame_equal(part.drop(columns="measure").reset_index(drop=True), expected)
    swapped = found.swaps("news", "web", measure="ARP")
    row = found.table.set_index(["measure", "a", "b"]).loc[("ARP", "news", "web")]
    assert len(swapped) == row["swaps"]
    with pytest.raises(InvalidInput, match=r"the orders are by . measures; name one as measure=: .*ARP"):
        found.swaps("news", "web")
    one = rk.analysis.order_agreement(systems, measures="ARP")
    pd.testing.assert_frame_equal(one.swaps("news", "web"), swapped)
    with pytest.raises(UnknownName, match="measure of the orders"):
        found.swaps("news", "web", measure="RR")


def test_evaluations_and_scores_of_pytrec_eval_work_too():
    evs = evaluations(0)
    dicts = {name: ev.per_query.to_dict(orient="index") for name, ev in evs.items()}
    found = rk.analysis.order_agreement(evs).table
    pd.testing.assert_frame_equal(found, rk.analysis.order_agreement(dicts).table)
    twice = rk.analysis.order_agreement(
        {name: {"one": evs[name], "two": dicts[name]} for name in evs}, measures="AP"
    ).table
    assert twice[["measure", "a", "b", "tau_b", "tau_ap", "swaps"]].to_numpy().tolist() == [
        ["AP", "one", "two", pytest.approx(1), pytest.approx(1), 0]
    ]


def test_a_true_order_is_compared_with_each_of_the_others():
    """The coefficient is then tau_AP,a, and the truth stands first."""
    means = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (8, 3)).astype(float), columns=["x", "y", "z"])
    found = rk.analysis.order_agreement(means, truth="y")
    assert found.table[["a", "b"]].to_numpy().tolist() == [["y", "x"], ["y", "z"]]
    for row in found.table.itertuples():
        assert row.tau_ap == tau_ap_a(means["y"], means[row.b])
    assert "tau_AP,a" in found.caption
    with pytest.raises(UnknownName, match="order to take as truth 'w'"):
        rk.analysis.order_agreement(means, truth="w")


@given(st.permutations(range(6)))
def test_identity_and_reversal(order):
    means = pd.DataFrame({"x": order, "same": order, "turned": [-value for value in order]}, index=list("abcdef"))
    table = rk.analysis.order_agreement(means.astype(float), truth="x").table.set_index("b")
    assert table.loc["same", ["tau_b", "tau_ap", "swaps"]].tolist() == pytest.approx([1, 1, 0])
    assert table.loc["turned", ["tau_b", "tau_ap", "swaps"]].tolist() == pytest.approx([-1, -1, 15])


def test_swaps_name_the_systems():
    means = pd.DataFrame({"AP": [0.5, 0.4, 0.3], "ARP": [7.0, 5.0, 9.0]}, index=["a", "b", "c"])
    swapped = rk.analysis.order_agreement(means).swaps("AP", "ARP")
    assert swapped[["above_in_a", "above_in_b"]].to_numpy().tolist() == [["a", "b"]]
    assert swapped["difference_in_a"].item() == pytest.approx(0.1)
    assert swapped["difference_in_b"].item() == -2.0  # fewer ranks are better
    with pytest.raises(UnknownName, match="unknown order 'RR'"):
        rk.analysis.order_agreement(means).swaps("AP", "RR")


def test_an_order_without_a_first_system_is_said():
    means = pd.DataFrame({"AP": [1.0, 2.0, 3.0], "RR": [1.0, 1.0, 1.0]}, index=list("abc"))
    found = rk.analysis.order_agreement(means)
    assert found.table[["tau_b", "tau_ap"]].isna().all(axis=None)
    assert found.table["ties"].item() == 3
    assert found.notes == ("all systems are tied by RR: there is no order to agree with",)
    assert "\N{EN DASH}" in str(found)


def test_columns_that_are_no_measures_are_said_to_be_taken_as_they_are():
    """By ARP and latency the least leads, and nobody is asked; of other columns the greatest is taken to lead."""
    means = pd.DataFrame({"AP": [1.0, 2.0], "ARP": [2.0, 1.0], "latency_ms": [2.0, 1.0]}, index=list("ab"))
    assert rk.analysis.order_agreement(means).notes == ()
    assert rk.analysis.order_agreement(means).ranks.nunique(axis=1).tolist() == [1, 1]
    found = rk.analysis.order_agreement(means.assign(people=[1.0, 2.0]))
    assert found.notes == ("no measures, so their greater values are taken to lead: people",)
    assert found.ranks["people"].tolist() == [2, 1]


def test_a_frame_has_offline_means_beside_online_results():
    """The online column is no measure: its greater values lead, as a note says; ltr and bert change places."""
    means = pd.DataFrame(
        {"nDCG@10": [0.40, 0.45, 0.48, 0.47], "win share": [0.31, 0.50, 0.58, 0.61]},
        index=["bm25", "rm3", "ltr", "bert"],
    )
    found = rk.analysis.order_agreement(means, truth="win share")
    row = found.table.iloc[0]
    assert (row["a"], row["b"], row["n_systems"], row["swaps"]) == ("win share", "nDCG@10", 4, 1)
    assert row["tau_b"] == pytest.approx(2 / 3)  # 5 pairs in the same order, 1 swap
    assert found.swaps("nDCG@10", "win share")[["above_in_a", "above_in_b"]].to_numpy().tolist() == [["ltr", "bert"]]
    assert found.notes == ("no measures, so their greater values are taken to lead: win share",)
    assert "4 systems with that by win share" in found.caption


def test_missing_systems_are_refused_or_left_out_pair_by_pair():
    means = pd.DataFrame({"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, np.nan], "z": [4.0, 2, 3, 1]}, index=list("abcd"))
    with pytest.raises(InvalidInput, match=r"the order by 'y' lacks system 'd'.*unpaired=\"skip\""):
        rk.analysis.order_agreement(means)
    found = rk.analysis.order_agreement(means, unpaired="skip")
    assert found.table["n_systems"].tolist() == [3, 4, 3]
    assert found.table.iloc[0]["tau_b"] == pytest.approx(1)
    assert found.ranks["y"].isna().tolist() == [False, False, False, True]
    systems = {name: {"one": frame, "two": frame} for name, frame in scores_of(0).items()}
    del systems["c"]["two"]
    with pytest.raises(InvalidInput, match=r"'two'.*lacks system 'c'"):
        rk.analysis.order_agreement(systems)
    assert set(rk.analysis.order_agreement(systems, unpaired="skip").table["n_systems"]) == {5}


def test_missing_queries_are_refused_or_left_out():
    systems = scores_of(0)
    systems["a"] = systems["a"].drop("q3")
    with pytest.raises(QueryIdError, match="'a' lacks 1 of 20"):
        rk.analysis.order_agreement(systems)
    found = rk.analysis.order_agreement(systems, unpaired="skip")
    assert any("left out" in note for note in found.notes)
    assert found.means.loc["b", "AP"] == pytest.approx(systems["b"]["AP"].drop("q3").mean())


def test_orders_that_cannot_be_compared_are_refused():
    systems = scores_of(0)
    with pytest.raises(InvalidInput, match="two orders or more, found AP"):
        rk.analysis.order_agreement(systems, measures="AP")
    with pytest.raises(InvalidInput, match="two orders or more, found none"):
        rk.analysis.order_agreement(pd.DataFrame())
    alone = {name: {"one": frame[["AP"]]} for name, frame in systems.items()}
    with pytest.raises(InvalidInput, match="two orders or more, found AP on one"):
        rk.analysis.order_agreement(alone)
    with pytest.raises(InvalidInput, match="at least 2 names"):
        rk.analysis.order_agreement({"a": systems["a"]})
    with pytest.raises(InvalidInput, match="mapping of at least 2 names to their scores, found int"):
        rk.analysis.order_agreement(3)
    with pytest.raises(InvalidInput, match="system 'b' has not"):
        rk.analysis.order_agreement({"a": {"one": systems["a"]}, "b": systems["b"]})
    with pytest.raises(InvalidInput, match=r"2 systems or more, found \['a'\] on 'two'"):
        rk.analysis.order_agreement({"a": {"one": systems["a"], "two": systems["a"]}, "b": {"one": systems["b"]}})
    with pytest.raises(InvalidInput, match="no measure is shared by the systems on all of one, two"):
        rk.analysis.order_agreement(
            {name: {"one": frame[["AP"]], "two": frame[["ARP"]]} for name, frame in systems.items()}
        )
    with pytest.raises(UnknownName, match="value of unpaired"):
        rk.analysis.order_agreement(systems, unpaired="drop")
    with pytest.raises(InvalidInput, match=r"found (object|str) in the column 'team'"):
        rk.analysis.order_agreement(pd.DataFrame({"AP": [0.1, 0.2], "team": ["x", "y"]}))
    with pytest.raises(InvalidInput, match="1 that are NaN or infinite"):
        rk.analysis.order_agreement(pd.DataFrame({"x": [1.0, np.inf], "y": [1.0, 2.0]}))
    with pytest.raises(InvalidInput, match="one name each; found the system 'a' 2 times"):
        rk.analysis.order_agreement(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]}, index=["a", "a"]))
    with pytest.raises(InvalidInput, match="have 1 system in common"):
        rk.analysis.order_agreement(pd.DataFrame({"x": [1.0, 2, np.nan], "y": [np.nan, 2, 3.0]}), unpaired="skip")
    other = evaluations(0) | {"odd": evaluations(1, ties="best")["weak"]}
    with pytest.raises(ConventionMismatch):
        rk.analysis.order_agreement(other)


def test_agreement_is_shown_in_each_form():
    found = rk.analysis.order_agreement(scores_of(0))
    row = found.table.iloc[0]
    assert f"{row.tau_b:.3f}" in found.to_markdown()
    assert found.caption in str(found)
    assert found._repr_html_().startswith("<div>")
    assert r"\label{tab:tau}" in found.to_latex(label="tab:tau")
    assert "6 systems" in found.caption


def test_a_repeated_name_is_named():
    means = pd.DataFrame({"AP": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], "RR": 0.5}, index=list("abcdee"))
    with pytest.raises(InvalidInput, match="found the system 'e' 2 times"):
        rk.analysis.order_agreement(means)


def test_a_frame_of_means_the_wrong_way_round_is_refused():
    means = pd.DataFrame({"AP": [0.3, 0.2], "RR": [0.5, 0.6]}, index=["bm25", "ltr"])
    with pytest.raises(InvalidInput, match=r"rows are measures.*turn it by .T"):
        rk.analysis.order_agreement(means.T)
    assert len(rk.analysis.order_agreement(means).table) == 1
