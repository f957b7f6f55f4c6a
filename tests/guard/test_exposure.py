"""Looks belong to queries: no change of name, labels, features, queries or project makes them new again."""

from __future__ import annotations

import time

import numpy as np
import pytest
from guard.conftest import Team, standing

import rankeval as rk
from rankeval.guard import Guard
from rankeval.guard.exposure import Exposure
from rankeval.guard.journal import Records
from rankeval.guard.standings import Standings

FRESH = rk.datasets.make_ranking(100, 10, 4, rng=99)


def relabelled(data):
    y = data.y.copy()
    y[0] = (y[0] + 1) % 5
    return data.X, y, data.qid


def with_a_feature(data):
    return np.column_stack([data.X, np.arange(len(data)) % 7]), data.y, data.qid


def with_a_query(data):
    n = 10
    return np.vstack([data.X, FRESH.X[:n]]), np.append(data.y, FRESH.y[:n]), np.append(data.qid, np.full(n, 900))


def without_a_query(data):
    kept = data.qid != data.qid[0]
    return data.X[kept], data.y[kept], data.qid[kept]


def with_other_ids(data):
    return data.X, data.y, [f"q{one}" for one in data.qid]


def rescaled(data):
    return 3 * data.X + 1, data.y, data.qid


def unchanged(data):
    return data.X, data.y, data.qid


TRICKS = [unchanged, relabelled, with_a_feature, with_a_query, without_a_query, with_other_ids, rescaled]


@pytest.mark.filterwarnings("ignore:RG003")
@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
class TestTricks:
    """The rows of guard.md 1: each of these printed "confirmatory, 1 look" once."""

    def test_another_name_confirms_nothing_again(self, team, test, data, trick):
        team.opened(test, 1)
        X, y, qid = trick(data)
        again = team.opened(team.guard.register("other", X, y, qid=qid), 2)
        assert standing(again) == "exploratory"
        assert again.table["p_adjusted"].isna().all()
        assert any("this is the result of" in note and "looks" in note for note in again.notes)
        assert len(team.guard.looks("test")) == len(team.guard.looks("other")) > 1

    def test_the_same_name_confirms_nothing_again(self, team, test, data, trick):
        team.opened(test, 1)
        X, y, qid = trick(data)
        again = team.opened(team.guard.register("test", X, y, qid=qid, supersedes="test"), 2)
        assert standing(again) == "exploratory"
        assert team.statuses("test")[:2] == ["confirmatory", "exploratory"]

    def test_another_project_is_told_who_looked(self, team, theirs, test, data, trick):
        team.opened(test, 1)
        X, y, qid = trick(data)
        again = theirs.opened(theirs.guard.register("mine", X, y, qid=qid), 2)
        assert standing(again) == "first look of this project"
        (said,) = [note for note in again.notes if "the first look of this project" in note]
        assert "project 'ours' looked at" in said
        assert "1 look by ann" in said
        assert "guided the choice" in said
        assert again.table["p_adjusted"].notna().all()
        assert theirs.guard.looks("mine").attrs["elsewhere"] == 1
        both = theirs.guard.looks("mine", projects="all")
        assert both["project"].tolist() == ["ours", *["theirs"] * (len(both) - 1)]
        later = theirs.opened(theirs.guard.register("mine", X, y, qid=qid), 3)
        assert standing(later) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003", "ignore:RG006")
def test_a_chain_of_tricks_leads_back_to_the_first_registration(team, test, data):
    """Each step is linked to the one before, so the last is linked to the first by classes."""
    team.opened(test, 1)
    step = data
    for number, trick in enumerate((relabelled, with_a_feature, with_other_ids, rescaled)):
        X, y, qid = trick(step)
        step = rk.RankingData(X, y, np.asarray(qid))
        last = team.guard.register(f"step {number}", step)
    assert standing(team.opened(last, 2)) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003", "ignore:RG008")
def test_small_looks_add_up(team, test, data):
    """Four queries of a hundred are few; with four more, seen under another name, they are too many."""
    for number in range(2):
        part = np.isin(data.qid, np.unique(data.qid)[4 * number : 4 * number + 4])
        small = team.guard.register(f"part {number}", data.X[part], data.y[part], qid=data.qid[part])
        before = team.frozen(test, 5 + number)
        assert team.guard.open(team.frozen(small, 1, measure="AP")).table["n_queries"].tolist() == [4]
    assert standing(team.guard.open(before)) == "confirmatory"
    assert standing(team.opened(test, 7)) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003", "ignore:RG008")
def test_twenty_looks_at_a_twentieth_each_are_a_look_at_all(team, theirs, test, data):
    """By whomever: for the project that looked, other systems are exploratory; for the other it is a first look."""
    queries = np.unique(data.qid)
    for number in range(25):
        part = np.isin(data.qid, queries[4 * number : 4 * number + 4])
        name = f"part {number}"
        theirs.opened(theirs.guard.register(name, data.X[part], data.y[part], qid=data.qid[part]), 1)
    result = team.opened(test, 1)
    assert standing(result) == "first look of this project"
    assert "100 of 100 queries were looked at" in " ".join(result.notes)
    assert "looked at 100 of them, 25 looks by bob" in " ".join(result.notes)
    whole = theirs.guard.register("all", data)
    assert standing(theirs.opened(whole, 1)) == "secondary"
    assert standing(theirs.opened(whole, 2)) == "exploratory"


def test_disjoint_collections_know_nothing_of_each_other(team, test):
    team.opened(test, 1)
    other = team.guard.register("other", FRESH)
    result = team.opened(other, 1)
    assert standing(result) == "confirmatory"
    assert "1 look of project 'ours' at 'other'; plan" in result.notes[-1]
    assert len(team.guard.looks()) == 2
    assert team.guard.looks()["collection"].tolist() == ["test", "other"]


@pytest.mark.filterwarnings("ignore:RG003")
def test_a_project_frozen_before_it_saw_the_first_opening_is_confirmatory_too(team, theirs, test, data):
    plan = theirs.frozen(theirs.guard.register("mine", data), 1)
    assert standing(team.opened(test, 1)) == "confirmatory"
    assert standing(theirs.guard.open(plan)) == "confirmatory"
    assert standing(theirs.opened(theirs.guard.register("mine", data), 2)) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003")
def test_the_same_output_on_a_revision_or_on_a_part_is_no_new_look(team, test, data):
    """A new feature changes the hash of every row, and the ranking is the same all the same."""
    team.opened(test, 1)
    revised = team.guard.register("test", *with_a_feature(data)[:2], qid=data.qid)
    again = team.opened(revised, 1)
    assert standing(again) == "secondary"
    assert len(team.guard.looks("test")) == 1
    part = data.qid <= 50
    half = team.guard.register("half", data.X[part], data.y[part], qid=data.qid[part])
    assert standing(team.opened(half, 1)) == "secondary"
    assert len(team.guard.looks("test")) == 1
    assert standing(team.opened(half, 2)) == "exploratory"


def test_standings_of_two_hundred_openings_take_no_time(ledger):
    """Of a thousand queries each, in well under a second; they are decided at every freeze and opening."""
    data = rk.datasets.make_ranking(1000, 5, 3, rng=0)
    team = Team(Guard("ours", ledger=ledger))
    test = team.guard.register("test", data)
    plans = [team.frozen(test, weight) for weight in range(1, 4)]
    for plan in plans:
        team.guard.open(plan)
    template = {kind: team.guard._ledger.read().entries[place].body for kind, place in (("freeze", 1), ("open", -1))}
    notes = []
    for number in range(200):
        about = {"plan": f"{number:020}"}
        systems = {"s0": "0" * 64, f"s{number}": f"{number:064}"}
        content = template["freeze"]["content"] | {"systems": list(systems.items())}
        notes.append(("freeze", template["freeze"] | about | {"content": content}))
        notes.append(("open", template["open"] | about | {"systems": systems, "looks": [f"s{number}"]}))
    team.guard._ledger.append("ours", *notes)
    snapshot = team.guard._ledger.read()
    start = time.process_time()
    records = Records("ours", team.guard._ledger, snapshot)
    last = Standings("ours", Exposure(team.guard._ledger, snapshot)).of(f"{199:020}")
    assert time.process_time() - start < 0.5
    assert (last.name, last.n_looks, last.n_exposed) == ("exploratory", 203, 1000)
    start = time.process_time()
    assert sum(records.standings.of(plan).name == "exploratory" for plan in records.standings.frozen) == 200
    assert time.process_time() - start < 2


@pytest.mark.filterwarnings("ignore:RG003")
def test_the_first_baseline_of_a_project_is_no_look_of_its_own_but_was_shown_to_all_others(ledger, data):
    """Else a name of a project for each system would show all of them, and none would be a look."""
    for weight in range(3):
        try_one = Guard(f"try {weight}", ledger=ledger, who="ann")
        there = try_one.register("test", data)
        scores = data.X[:, 0] + weight * data.X[:, 1]
        result = try_one.open(try_one.freeze(there, systems={"s": scores, "twice": 2 * scores}, baseline="s"))
        assert standing(result) == ("first look of this project" if weight else "confirmatory")
        assert f"0 looks of project 'try {weight}' at 'test'" in result.notes[-1]
        assert len(try_one.looks(there)) == 0
        assert try_one.looks(there).attrs["elsewhere"] == (0, 1, 3)[weight]
        assert standing(Team(try_one).opened(there, weight, weight + 7)) == standing(result), "it was free there"
    final = Team(Guard("final", ledger=ledger, who="ann"))
    plan = final.frozen(final.guard.register("test", data), 2)
    assert any("100 of 100 queries were looked at" in note for note in plan.notes)
    result = final.guard.open(plan)
    assert standing(result) == "first look of this project"
    for weight in range(3):
        assert f"project 'try {weight}' looked at 100 of them" in result.notes[0]


@pytest.mark.filterwarnings("ignore:RG003")
def test_a_free_baseline_alone_is_listed_among_the_looks_of_others(team, theirs, test, data):
    mine = theirs.guard.register("mine", data)
    scores = data.X[:, 0]
    theirs.guard.open(theirs.guard.freeze(mine, systems={"s": scores, "twice": 2 * scores}, baseline="s"))
    assert theirs.statuses(mine, projects="all") == []
    looks = team.guard.looks(test, projects="all")
    assert looks[["project", "system", "status"]].values.tolist() == [["theirs", "s", "confirmatory"]]
    assert "(1 more by other projects)" in team.opened(test, 1).notes[-1]
