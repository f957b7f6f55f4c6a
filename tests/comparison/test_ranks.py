"""Rank ranges equal brute force, hold the rank of the mean, and are refused where the pairs say nothing on them."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import rankeval as rk
from rankeval._visible import PowerlessNote
from rankeval.comparison.derived import RANK_COLUMNS
from rankeval.comparison.design import without_adjusted
from rankeval.errors import InvalidInput, NotedWarning, RankevalWarning, UnknownName
from rankeval.significance import CORRECTIONS


def systems_of(scores, labels=("AP",)):
    """Return frames of scores of shape (n_queries, n_systems, n_measures)."""
    queries = [f"q{i}" for i in range(len(scores))]
    names = "abcdefghij"[: scores.shape[1]]
    return {
        name: pd.DataFrame(scores[:, place], index=queries, columns=list(labels)) for place, name in enumerate(names)
    }


def drawn(seed, *, n=30, k=5, spread=0.1, labels=("AP",)):
    generator = np.random.default_rng(seed)
    gains = generator.normal(0, spread, size=(1, k, len(labels)))
    topic = generator.normal(0.5, 0.2, size=(n, 1, 1))
    return systems_of(topic + gains + generator.normal(0, 0.1, size=(n, k, len(labels))), labels)


def step_down(d):
    """Return the adjusted p-values of max-T over all sign patterns, step by step."""
    n, m = d.shape

    def statistic(x):
        length = np.sqrt((x**2).sum(axis=0))
        return np.abs(x.sum(axis=0)) / np.where(length > 0, length, 1)

    observed = statistic(d)
    every = np.array([statistic(d * np.array(signs)[:, None]) for signs in itertools.product((1, -1), repeat=n)])
    adjusted, floor = np.empty(m), 0.0
    order = np.argsort(-observed, kind="stable")
    for step, j in enumerate(order):
        floor = max(floor, (every[:, order[step:]].max(axis=1) >= observed[j] - 1e-9).mean())
        adjusted[j] = floor
    return adjusted


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(5, 8), k=st.integers(2, 5))
def test_rank_intervals_equal_brute_force(seed, n, k):
    """All patterns of signs, all pairs, counted one by one."""
    systems = drawn(seed, n=n, k=k, spread=0.5)
    pairs = list(itertools.combinations(systems, 2))
    means = {name: frame["AP"].mean() for name, frame in systems.items()}
    p = step_down(np.column_stack([systems[j]["AP"] - systems[i]["AP"] for i, j in pairs]))
    found = rk.rank_intervals(systems, alpha=0.1, n_resamples=9).set_index("system")
    for name in systems:
        better = worse = 0
        for (i, j), adjusted in zip(pairs, p, strict=True):
            if adjusted <= 0.1 and name in (i, j):
                other = j if name == i else i
                better += means[other] > means[name]
                worse += means[other] < means[name]
        assert found.loc[name, ["rank_low", "rank_high"]].tolist() == [1 + better, k - worse]
        assert found.loc[name, "rank"] == 1 + sum(mean > means[name] for mean in means.values())
        assert found.loc[name, "mean"] == pytest.approx(means[name])


@settings(max_examples=examples(40), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    test=st.sampled_from(["t", "randomization", "wilcoxon", "sign"]),
    correction=st.sampled_from([name for name, one in CORRECTIONS.items() if one.familywise]),
    family=st.sampled_from(["all", "measure"]),
)
def test_the_rank_of_the_mean_is_in_the_range(seed, test, correction, family):
    """Whatever the test says of medians: a system counts as better by its mean."""
    systems = {name: frame.round(1) for name, frame in drawn(seed, labels=("AP", "ARP")).items()}
    ranks = rk.compare(systems, test=test, correction=correction, family=family, n_resamples=499).ranks
    assert tuple(ranks.columns) == RANK_COLUMNS
    assert (ranks["rank_low"] <= ranks["rank"]).all()
    assert (ranks["rank"] <= ranks["rank_high"]).all()
    assert ranks["rank_low"].min() == 1
    assert ranks["rank_high"].max() == len(systems)
    np.testing.assert_allclose(ranks.groupby("measure")["share_first"].sum(), 1)


def test_less_is_better_for_arp():
    """Scores turned round for a measure that counts down give the same ranks."""
    systems = drawn(3)
    turned = {name: (1 - frame).set_axis(["ARP"], axis=1) for name, frame in systems.items()}
    columns = ["system", "rank", "rank_low", "rank_high", "share_first"]
    up, down = rk.rank_intervals(systems, n_resamples=499), rk.rank_intervals(turned, n_resamples=499)
    pd.testing.assert_frame_equal(up[columns], down[columns])
    assert down["mean"].is_monotonic_increasing


def test_ranks_of_equal_systems_are_open_and_shared():
    one = pd.DataFrame({"AP": np.linspace(0, 1, 20)})
    ranks = rk.rank_intervals({"a": one, "b": one, "c": one}, n_resamples=499)
    assert ranks["rank"].tolist() == [1, 1, 1]
    assert ranks["rank_low"].tolist() == [1, 1, 1]
    assert ranks["rank_high"].tolist() == [3, 3, 3]
    assert ranks["share_first"].tolist() == pytest.approx([1 / 3] * 3)


def test_clear_systems_have_one_rank_each():
    topic = np.random.default_rng(0).random((40, 1, 1))
    noise = np.random.default_rng(1).normal(0, 0.01, (40, 4, 1))
    ranks = rk.rank_intervals(systems_of(topic + noise + np.array([0.1, 0.4, 0.2, 0.3])[:, None]))
    assert ranks["system"].tolist() == ["b", "d", "c", "a"]
    assert (ranks["rank_low"] == ranks["rank"]).all()
    assert (ranks["rank_high"] == ranks["rank"]).all()
    assert ranks["share_first"].tolist() == [1, 0, 0, 0]


def test_the_order_of_systems_and_of_rows_is_none():
    systems = drawn(7)
    shuffled = {name: systems[name].sample(frac=1, random_state=0) for name in reversed(systems)}
    one, other = rk.rank_intervals(systems, n_resamples=499), rk.rank_intervals(shuffled, n_resamples=499)
    pd.testing.assert_frame_equal(one, other)


def test_ranks_come_by_measure():
    systems = drawn(5, labels=("AP", "RR"))
    ranks = rk.compare(systems, correction="holm", family="measure").ranks
    for label in ("AP", "RR"):
        alone = rk.compare(systems, measures=label, correction="holm").ranks
        pd.testing.assert_frame_equal(ranks[ranks["measure"] == label].reset_index(drop=True), alone)
    with pytest.raises(InvalidInput, match="found AP, RR; name one as measure="):
        rk.rank_intervals(systems)
    assert rk.rank_intervals(systems, measure="RR")["measure"].unique().tolist() == ["RR"]


def test_ranks_are_read_from_pairs_on_common_queries():
    """Queries that a system lacks are left out of the shares too."""
    systems = drawn(2)
    systems["b"] = systems["b"].drop(["q3", "q4"])
    common = {name: frame.drop(["q3", "q4"], errors="ignore") for name, frame in systems.items()}
    found = rk.rank_intervals(systems, unpaired="skip", n_resamples=499)
    pd.testing.assert_frame_equal(found, rk.rank_intervals(common, n_resamples=499))


def test_ranks_survive_json_but_for_the_shares():
    compared = rk.compare(drawn(4), correction="max_t", n_resamples=499)
    back = rk.Comparison.from_json(compared.to_json())
    shares = back.ranks.pop("share_first")
    assert shares.isna().all()
    columns = list(RANK_COLUMNS[:-1])
    pd.testing.assert_frame_equal(back.ranks[columns], compared.ranks[columns])


def test_a_table_of_ranks_names_its_test_first():
    """Its defaults are others than those of compare."""
    systems = drawn(1)
    ranked, compared = rk.rank_intervals(systems, n_resamples=1999), rk.compare(systems)
    assert ranked.attrs["caption"].startswith("Randomisation test (sign flips) over ")
    assert "; max-T over " in ranked.attrs["caption"]
    assert compared.ranks.attrs["caption"] == compared.caption


def test_comparisons_that_say_nothing_on_all_pairs_are_refused():
    systems = drawn(1)
    with pytest.raises(InvalidInput, match=r"need all pairs.*rank_intervals"):
        _ = rk.compare(systems, baseline="a").ranks
    with pytest.raises(InvalidInput, match="both directions of each pair"):
        _ = rk.compare(systems, claim="equivalent", margin=0.1).ranks
    for correction in ("bh", "none"):
        with pytest.raises(InvalidInput, match=r"any false claim.*'holm'"):
            rk.rank_intervals(systems, correction=correction)
    with pytest.raises(InvalidInput, match="this comparison has none"):
        _ = replace(found := rk.compare(systems), table=without_adjusted(found.table)).ranks
    with pytest.raises(UnknownName, match="unknown measure"):
        rk.rank_intervals(systems, measure="nDCG@10")


def test_tables_of_several_collections_have_ranks_on_each():
    """A first column before the measure parts the rows; a part that was not tested leaves all ranks open."""
    one, other = (rk.compare(drawn(seed), correction="holm") for seed in (1, 2))
    untested = one.table.assign(p_value=np.nan, p_adjusted=np.nan)
    tables = {"news": one.table, "web": other.table, "few": untested}
    together = pd.concat([table.assign(collection=name) for name, table in tables.items()], ignore_index=True)
    together = together[["collection", *one.table.columns]]
    ranks = dataclasses.replace(one, table=together).ranks
    assert tuple(ranks.columns) == ("collection", *RANK_COLUMNS)
    for name, alone in (("news", one), ("web", other)):
        part = ranks[ranks["collection"] == name].reset_index(drop=True)
        columns = list(RANK_COLUMNS[:-1])
        pd.testing.assert_frame_equal(part[columns], alone.ranks[columns])
    open_ranks = ranks[ranks["collection"] == "few"]
    assert open_ranks["rank"].tolist() == [1, 2, 3, 4, 5]
    assert open_ranks[["rank_low", "rank_high"]].to_numpy().tolist() == [[1, 5]] * 5


def test_algorithms_compared_over_folds_have_ranks_without_shares():
    generator = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 10)
    X = generator.normal(size=(400, 3))
    y = (X[:, 0] + generator.normal(size=400) > 1).astype(int)
    from sklearn.dummy import DummyRegressor
    from sklearn.linear_model import Ridge

    both = rk.cross_validate({"ridge": Ridge(), "flat": DummyRegressor()}, X, y, qid=qid, measures=["AP"], cv=4)
    ranks = both.compare(question="algorithms").ranks
    assert ranks["system"].tolist() == ["ridge", "flat"]
    assert ranks["share_first"].isna().all()


@pytest.mark.shared
def test_the_ranks_of_the_runs_of_trec_covid_are_sensible(shared):
    """The run that led the track is first or second of 16 by nDCG@10, the feature-free baseline never above 15."""
    folder = shared / "trec_covid_r5"
    runs = sorted((folder / "runs").glob("*.gz"))
    evaluations = {
        path.name.removesuffix(".gz"): rk.evaluate(folder / "qrels.residual.txt.gz", path, measures="nDCG@10")
        for path in runs
    }
    ranks = rk.rank_intervals(evaluations, n_resamples=1999).set_index("system")
    assert len(ranks) == 16
    assert ranks.loc["UPrrf93-wt-r5", ["rank", "rank_low"]].tolist() == [1, 1]
    assert ranks.loc["UPrrf93-wt-r5", "rank_high"] <= 3
    assert ranks.loc["uab.base", "rank_high"] == 16
    assert ranks.loc["uab.base", "rank_low"] >= 14
    widths = ranks["rank_high"] - ranks["rank_low"]
    assert 2 <= widths.median() <= 8


def test_few_resamples_are_warned_of_at_the_callers_line():
    """With 10, no p-value can reach .05; with 20 the seed decides; exact patterns leave share_first alone."""
    systems = drawn(3, n=30, k=4)
    with pytest.warns(RankevalWarning, match="nothing can be significant here.*resamples or more") as caught:
        ranks = rk.rank_intervals(systems, n_resamples=10)
    assert (ranks["rank_low"].eq(1) & ranks["rank_high"].eq(4)).all()
    assert {Path(each.filename).name for each in caught} == {Path(__file__).name}
    said = "error of 0.049, so ranges change.*error of up to 0.11; ask for n_resamples=475"
    with pytest.warns(RankevalWarning, match=said):
        rk.rank_intervals(systems, n_resamples=20)
    few = {name: frame[:8] for name, frame in systems.items()}
    with pytest.warns(RankevalWarning, match="^n_resamples=20: share_first has"):
        rk.rank_intervals(few, n_resamples=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.rank_intervals(systems, n_resamples=475)


def test_the_warning_goes_by_the_kind_of_the_note(monkeypatch):
    """Whatever its words; copies keep the kind, and JSON does not need it."""
    monkeypatch.setattr("rankeval.comparison.concluding.resolution_notes", lambda *_: [PowerlessNote("umformuliert")])
    scores = {name: pd.DataFrame({"AP": np.arange(8) / place}) for place, name in enumerate("abc", start=9)}
    with pytest.warns(NotedWarning, match="^umformuliert$"):
        rk.rank_intervals(scores)
    compared = rk.compare(scores)
    for notes in (pickle.loads(pickle.dumps(compared.notes)), copy.deepcopy(compared.notes)):
        assert sum(isinstance(note, PowerlessNote) for note in notes) == 1
    assert rk.Comparison.from_json(compared.to_json()).notes == compared.notes
