"""What a table of looks shows beside the looks, and in which order; and the advice that registrations give."""

from __future__ import annotations

import warnings

import pytest
from guard.conftest import Team

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import InvalidInput
from rankeval.guard import Guard


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_decisions_of_gates_are_counted_beside_the_looks(team, theirs, test, data):
    gate = team.guard.gate(test, baseline=data.X[:, 0])
    gate.decide("a", data.X[:, 1])
    gate.decide("b", data.X[:, 2])
    theirs.guard.gate(theirs.guard.register("same", data), baseline=data.X[:, 0]).decide("c", data.X[:, 1])
    assert len(team.guard.looks("test")) == 0
    assert team.guard.looks("test").attrs["decisions"] == 2
    assert team.guard.looks("test", projects="all").attrs["decisions"] == 3


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_looks_of_two_clones_stand_in_the_order_of_the_ledger(ledger, tmp_path, data):
    """By which the first one keeps its standing; within a clone, that is the order of time."""
    team = Team(Guard("ours", ledger=ledger, who="ann"))
    team.guard.register("test", data)
    team.guard.export(tmp_path / "clone")
    other = Team(Guard("ours", ledger=tmp_path / "clone", who="bob"))
    tests = {one: one.guard.register("test", data) for one in (team, other)}
    for weight in range(1, 9):
        one = (team, other)[weight % 2]
        one.opened(tests[one], weight)
    team.guard.merge(tmp_path / "clone")
    forget()
    looks = team.guard.looks("test")
    opened = [one.body["looks"][0] for one in team.guard._ledger.read().entries if one.kind == "open"]
    assert looks["system"].tolist() == opened
    assert looks["status"].tolist() == ["confirmatory"] + ["exploratory"] * 7
    for _, own in looks.groupby("who"):
        assert own["time"].is_monotonic_increasing


def test_superseding_a_collection_with_two_names_warns_of_neither(team, data):
    part = data.qid <= 60
    old = (data.X[part], data.y[part])
    team.guard.register("fold1-test", *old, qid=data.qid[part])
    with pytest.warns(match="RG003"):
        team.guard.register("other-name", *old, qid=data.qid[part])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        team.guard.register("whole", data, supersedes="fold1-test")
    assert not [one for one in caught if "RG003" in str(one.message)]


@pytest.mark.parametrize(
    ("folds", "says"),
    [(1000, "folds is 1000, and there are 60 queries"), ([([0], [1])], "split 0 of folds cuts query")],
)
def test_faults_of_folds_are_told_by_their_own_name(team, folds, says):
    from sklearn.linear_model import Ridge

    data = rk.datasets.make_ranking(60, 10, 4, rng=3)
    test = team.guard.register("small", data)
    with pytest.raises(InvalidInput, match=says):
        team.guard.freeze(test, systems={"a": Ridge()}, folds=folds)


def test_too_few_resamples_are_warned_about_before_a_look_is_spent(team, test):
    with pytest.warns(match="nothing can be significant here.*ask for 19 resamples or more"):
        team.frozen(test, 1, n_resamples=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        team.frozen(test, 2, n_resamples=99)


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_a_plan_after_a_gate_names_the_gate_and_no_other_cause(team, test, data):
    team.guard.gate(test, baseline=data.X[:, 0]).decide("a", data.X[:, 1])
    (note,) = (one for one in team.opened(test, 3).notes if one.startswith("exploratory"))
    assert ", by a gate. No p-value" in note


@pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
def test_what_came_after_the_freeze_is_no_cause(team, test, data):
    """It cannot have guided the plan."""
    team.guard.gate(test, baseline=data.X[:, 0]).decide("a", data.X[:, 1])
    plan = team.frozen(test, 3)
    team.guard.exempt("test", [1, 2, 3, 4, 5, 6, 7], "overlap")
    (note,) = (one for one in team.guard.open(plan).notes if one.startswith("exploratory"))
    assert ", by a gate. No p-value" in note
