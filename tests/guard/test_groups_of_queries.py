"""Plans that test groups of queries: conversations are part of the plan, and kept in the ledger."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from guard.conftest import standing

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.guard import Guard
from rankeval.guard.plan import Plan

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
    assert "tested by conversation" in repr(plan)
    assert team.frozen(test, 1, groups=groups.map("c{}".format).sample(frac=1, random_state=0)).id == plan.id
    plain, others = team.frozen(test, 1), team.frozen(test, 1, groups=conversations(data, 5))
    assert len({plan.id, plain.id, others.id}) == 3
    assert "groups" not in plain.content()
    assert "tested by" not in repr(plain)
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
