"""Plans and gates that test groups of queries: conversations are part of them, and kept in the ledger."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from guard.conftest import standing
from shown import whole

import rankeval as rk
from rankeval.collection.convention import get_convention
from rankeval.errors import InvalidInput, LedgerError, QueryIdError, RankevalWarning
from rankeval.evaluation import Given, score
from rankeval.guard import Guard
from rankeval.guard.plan import Plan
from rankeval.significance.power import detectable_difference

pytestmark = pytest.mark.filterwarnings("ignore::rankeval.errors.NotedWarning")


def conversations(data, size=4):
    qid = np.unique(data.qid)
    return pd.Series(np.arange(len(qid)) // size, index=qid, name="conversation")


def test_an_opening_is_the_comparison_over_groups(team, test, data):
    """Table, means and headline; the secondary measure too."""
    groups = conversations(data)
    result = team.opened(test, 1, 2, secondary="AP", groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.errors.RankevalWarning)
        options = {"baseline": "s0", "test": "randomization", "correction": "max_t", "n_resamples": 99}
        expected = rk.compare(result.evaluations, measures="nDCG@10", groups=groups, **options)
    pd.testing.assert_frame_equal(result.table[result.table["measure"] == "nDCG@10"], expected.table)
    assert standing(result) == "confirmatory"
    n = f"{len(groups.unique())} conversations of {len(groups)} queries"
    assert n in result.caption
    assert n in result.headline
    of_means = result.evaluations["s1"].per_query["AP"].groupby(groups).mean()
    row = result.means[(result.means["measure"] == "AP") & (result.means["system"] == "s1")].iloc[0]
    assert row["mean"] == pytest.approx(of_means.mean())
    assert row["n_queries"] == len(groups.unique())
    assert team.guard.looks(test)["value"].iloc[-1] == pytest.approx(
        result.means.set_index(["measure", "system"])["mean"]["nDCG@10", team.guard.looks(test)["system"].iloc[-1]]
    )
    again = team.guard.open(result.opening["plan"])
    pd.testing.assert_frame_equal(again.table, result.table)


def test_the_groups_are_part_of_the_plan(team, test, data):
    """The same groups under other names are the same plan; other groups, or none, another one."""
    groups = conversations(data)
    plan = team.frozen(test, 1, groups=groups)
    assert plan.grouped_by == "conversation"
    assert "tested by conversation" in whole(plan)
    assert team.frozen(test, 1, groups=groups.map("c{}".format).sample(frac=1, random_state=0)).id == plan.id
    plain, others = team.frozen(test, 1), team.frozen(test, 1, groups=conversations(data, 5))
    assert len({plan.id, plain.id, others.id}) == 3
    assert "groups" not in plain.content()
    assert "tested by" not in whole(plain)
    assert team.guard.plan(plan.id).groups == plan.groups
    assert Plan.from_body({"content": plain.content(), "collection": "t", "registration": "", "notes": []}, ledger="",
                          head="").id == plain.id  # fmt: skip


def test_a_plan_of_one_system_has_the_mean_of_its_groups(team, test, data):
    groups = conversations(data)
    result = team.opened(test, 1, baseline=None, groups=groups)
    n = f"{len(groups.unique())} conversations of {len(groups)} queries"
    assert f"on {n}." in result.headline
    assert f"Means over {n}" in result.caption
    assert rk.Comparison.from_json(result.to_json()).headline == result.headline


def test_fresh_queries_keep_their_groups(team, test, data):
    """A plan on the queries that nobody saw tests the groups of these."""
    team.opened(test, 1)
    more = rk.datasets.make_ranking(40, 10, 4, rng=99)
    X, y = np.vstack([data.X, more.X]), np.append(data.y, more.y)
    qid = np.append(data.qid, more.qid + 1000)
    larger = team.guard.register("test", X, y, qid=qid, supersedes=test)
    groups = pd.Series(np.unique(qid) // 4, index=np.unique(qid), name="conversation")
    result = team.opened(larger, 2, fresh=True, groups=groups)
    n_groups = groups[np.unique(more.qid) + 1000].nunique()
    assert f"{n_groups} conversations of 40 queries" in result.caption
    own = result.evaluations["s2"].per_query["nDCG@10"]
    assert result.table["mean_system"].iloc[0] == pytest.approx(own.groupby(groups).mean().mean())


def test_query_ids_as_groups_are_refused_at_the_freeze(team, test, data):
    """Before anything is recorded."""
    qid, head = np.unique(data.qid), team.guard._journal.read().head
    with pytest.raises(InvalidInput, match="has a group of its own") as caught:
        team.frozen(test, 1, groups=pd.Series(qid, index=qid))
    assert caught.value.argument == "groups"
    assert team.guard._journal.read().head == head
    assert isinstance(team.guard, Guard)


def alike(data, size=4):
    """Return a baseline, and candidates that are better in 14 to 23 of the 25 conversations, and else worse."""
    base, conversation = np.random.default_rng(0).normal(size=len(data)), data.qid // size
    return base, [base + 0.5 * data.y * np.where(conversation < n, 1, -1) for n in range(14, 26, 3)]


def test_a_gate_decides_over_groups(team, test, data):
    """As `compare` does; over queries, which are alike within a conversation, it would accept more."""
    groups, accepted = conversations(data), {"over groups": [], "compare": [], "over queries": []}
    base, candidates = alike(data)
    gate = team.guard.gate(test, baseline=base, budget=20, groups=groups)
    scored = {name: Given(data.y, score, data.qid).join(get_convention("rankeval"))
              for name, score in {"base": base, **dict(enumerate(candidates))}.items()}  # fmt: skip
    scored = {str(name): score(one, [("nDCG@10", rk.measure("nDCG@10"))]) for name, one in scored.items()}
    for number, candidate in enumerate(candidates):
        accepted["over groups"].append(gate.decide(str(number), candidate, baseline=base).accepted)
        pair = {"base": scored["base"], str(number): scored[str(number)]}
        how = {"baseline": "base", "test": "randomization", "correction": "none", "claim": "better", "alpha": 0.0025}
        for name, given in (("compare", groups), ("over queries", None)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rk.errors.RankevalWarning)
                found = rk.compare(pair, groups=given, **how)
            accepted[name].append(bool(found.table["p_value"][0] <= 0.0025))
    assert accepted["over groups"] == accepted["compare"]
    assert 0 < sum(accepted["compare"]) < sum(accepted["over queries"])


def test_a_gate_keeps_its_groups(team, test, data):
    """They are declared once: later calls have them with or without naming them, and no others."""
    groups, base = conversations(data), alike(data)[0]
    gate = team.guard.gate(test, baseline=base, groups=groups)
    renamed = groups.map("c{}".format).sample(frac=1, random_state=0)
    for again in (team.guard.gate(test), team.guard.gate(test, groups=renamed)):
        assert again.terms == gate.terms
        assert again.detectable == pytest.approx(float(detectable_difference(25, 0.2, 0.0025, claim="better")))
        assert "by nDCG@10, tested by conversation, at 0.0025" in whole(again)
        assert "if differences by conversation have" in whole(again)
    others = conversations(data, 5)
    with pytest.raises(LedgerError, match="'gate' is declared with other groups, or without any: leave groups= out"):
        team.guard.gate(test, groups=others)
    gate.decide("new", base[::-1])
    with pytest.warns(RankevalWarning, match="looked at outside"):
        plain = team.guard.gate(test, baseline=base, name="plain")
    assert not {"groups", "grouped_by"} & plain.terms.content().keys()
    with pytest.raises(LedgerError, match="'plain' is declared with other groups, or without any"):
        team.guard.gate(test, groups=groups, name="plain")


def test_two_clones_cannot_declare_a_gate_with_other_groups(team, test, data, tmp_path):
    base = alike(data)[0]
    clone = Guard("ours", ledger=tmp_path / "clone")
    clone.merge(team.guard.ledger)
    clone.gate(clone.register("test", data), baseline=base, groups=conversations(data, 5))
    team.guard.gate(test, baseline=base, groups=conversations(data))
    team.guard.merge(clone.ledger)
    with pytest.raises(LedgerError, match=r"in two clones by different terms \(groups is "):
        team.guard.gate(test)


def test_the_groups_of_a_gate_go_with_a_revision(team, test, data):
    """By the ids of the queries, whose content has another order then; a query without a group is refused."""
    groups, (base, (*_, best)) = conversations(data), alike(data)
    gate = team.guard.gate(test, baseline=base, groups=groups)
    assert gate.decide("best", best).accepted
    X = np.column_stack([data.X, np.random.default_rng(5).normal(size=len(data))])
    revised = team.guard.register("test", X, data.y, qid=data.qid, supersedes=test)
    assert not np.array_equal(revised.loaded().prints.names_by_content, test.loaded().prints.names_by_content)
    again = team.guard.gate(revised, groups=groups)
    assert again.detectable == gate.detectable
    assert again.decide("best", best, baseline=base).accepted
    more = rk.datasets.make_ranking(3, 10, 5, rng=99)
    larger = team.guard.register(
        "test", np.vstack([X, more.X]), np.append(data.y, more.y), qid=np.append(data.qid, more.qid + 1000),
        supersedes=revised,
    )  # fmt: skip
    with pytest.raises(QueryIdError, match="3 of 103 queries have no group") as caught:
        team.guard.gate(larger)
    assert caught.value.argument == "groups"


def test_bad_groups_of_a_gate_are_refused_before_anything_is_recorded(team, test, data):
    """One value for each query id, or too few groups for the budget."""
    qid, base, head = np.unique(data.qid), alike(data)[0], team.guard._journal.read().head
    for groups, match in (
        (pd.Series(qid, index=qid), "each of the 100 queries has a group of its own"),
        (conversations(data, 25), "has 4 conversations, on which no candidate can be accepted at 0.0025: that takes 9"),
    ):
        with pytest.raises(InvalidInput, match=match):
            team.guard.gate(test, baseline=base, groups=groups)
    assert team.guard._journal.read().head == head


def test_a_gate_that_counts_unseen_queries_is_not_one_that_counts_none(team, test, data):
    """The terms that only one of the two has are named."""
    base = alike(data)[0]
    team.guard.gate(test, baseline=base, claim="not_worse", margin=0.1)
    with pytest.raises(LedgerError, match=r"claim is not_worse and not better, .*, unseen is 1 and not none"):
        team.guard.gate(test)
