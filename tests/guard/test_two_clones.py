"""Two clones of one ledger: nothing conflicts, nothing is lost, and what neither side knew is said."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from guard.conftest import Team, standing

import rankeval as rk
from rankeval.errors import LedgerError
from rankeval.guard import Guard


def git(folder, *command):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clones(tmp_path, data):
    """Two clones of a repository in which a test is registered, one of ann's and one of bob's."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    Guard("ours", ledger=origin / "rankeval-ledger", who="ann").register("test", data)
    git(origin, "add", "-A")
    git(origin, "commit", "-q", "-m", "register")
    teams = []
    for who in ("ann", "bob"):
        git(tmp_path, "clone", "-q", str(origin), who)
        teams.append(Team(Guard("ours", ledger=tmp_path / who / "rankeval-ledger", who=who)))
    return (tmp_path / "ann", tmp_path / "bob"), *teams


def test_two_clones_with_ten_looks_each_merge_in_git(clones, data, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER_COMMITTED", "1")  # it is, below; a CI job would be asked
    (ann_folder, bob_folder), ann, bob = clones
    for team, folder, sign in ((ann, ann_folder, 1), (bob, bob_folder, -1)):
        test = team.guard.register("test", data)
        for weight in range(1, 11):
            team.opened(test, sign * weight)
        assert team.statuses(test) == ["confirmatory"] + ["exploratory"] * 9
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "ten looks")
    firsts = [one.guard.looks("test")["plan"][0] for one in (ann, bob)]
    git(ann_folder, "push", "-q", "origin", "HEAD:ann")
    git(bob_folder, "pull", "-q", "--no-rebase", "--no-edit", "origin", "ann")
    assert not subprocess.run(
        ["git", "status", "--porcelain"], cwd=bob_folder, check=True, capture_output=True, text=True
    ).stdout
    looks = bob.guard.looks("test")
    assert len(looks) == 20
    assert sorted(looks["who"]) == ["ann"] * 10 + ["bob"] * 10
    assert looks["status"].tolist() == ["confirmatory"] + ["exploratory"] * 19, "the first one in the order of all"
    assert "+" in bob.guard.head
    assert bob.guard.verify(other=ann_folder / "rankeval-ledger")
    test = bob.guard.register("test", data)
    again = [bob.guard.open(plan) for plan in firsts]
    kept, lowered = again if looks["who"][0] == "ann" else again[::-1]
    assert (standing(kept), standing(lowered)) == ("confirmatory", "exploratory")
    assert "1 look of project 'ours' at 'test' up to this plan, 19 later" in kept.notes[-1]
    first, second = dict.fromkeys(looks["who"])
    assert lowered.notes[0].startswith("exploratory: plan ")
    assert f" of {first} (1 look) " in lowered.notes[0]
    assert f" of {second} " not in lowered.notes[0]
    assert "in another clone, before it in the order of the ledger. Neither side knew of the other" in lowered.notes[0]
    assert f"as of head {bob.guard.head}" in lowered.notes[-1]
    later = bob.opened(test, 20)
    assert standing(later) == "exploratory"
    assert "21 looks of project 'ours'" in later.notes[-1]
    assert "+" not in bob.guard.head


@pytest.fixture
def pair(ledger, team, tmp_path, data):
    """Return a team, and a colleague with a copy of its ledger."""
    team.guard.register("test", data)
    copy = tmp_path / "copy"
    shutil.copytree(ledger, copy)
    return team, Team(Guard("ours", ledger=copy, who="bob"))


@pytest.mark.parametrize("direction", ["theirs into ours", "ours into theirs"])
def test_of_two_openings_the_earlier_one_in_the_order_keeps_its_standing(pair, test, data, direction):
    """Its numbers too; the later one has no adjusted p-value, and names the other one."""
    results = [ours_or_bobs.opened(there, weight) for ours_or_bobs, there, weight in _each(pair, test, data)]
    plans = [team.guard.looks("test")["plan"][0] for team in pair]
    team, other = pair if direction == "theirs into ours" else pair[::-1]
    assert team.guard.merge(other.guard.ledger) > 0
    assert team.guard.merge(other.guard.ledger) == 0
    team.guard.register("test", data)
    order = [entry.body["plan"] for entry in team.guard._ledger.read().entries if entry.kind == "open"]
    first, second = sorted(range(2), key=lambda at: order.index(plans[at]))
    again = [team.guard.open(plan) for plan in plans]
    assert (standing(again[first]), standing(again[second])) == ("confirmatory", "exploratory")
    assert team.statuses("test") == ["confirmatory", "exploratory"]
    assert again[first].table.equals(results[first].table)
    assert again[first].notes[:-1] == results[first].notes[:-1]
    assert again[second].table["p_adjusted"].isna().all()
    who = ("ann", "bob")[first]
    reason = (
        f"exploratory: plan {plans[first]} of {who} (1 look) was opened on queries of this plan in another clone, "
        "before it in the order of the ledger. Neither side knew of the other, so the choice of systems may rest on "
        "the result. The best of 2 equally good systems would look better than it is by about "
    )
    assert again[second].notes[0].startswith(reason)


def _each(pair, test, data):
    return [(pair[0], test, 0.1), (pair[1], pair[1].guard.register("test", data), 0.2)]


def test_the_order_of_merging_makes_no_difference(pair, test, data):
    for team, there, weight in _each(pair, test, data):
        team.opened(there, weight)
        team.opened(there, 10 * weight)
    ours, bobs = pair
    ours.guard.merge(bobs.guard.ledger)
    bobs.guard.merge(ours.guard.ledger)
    assert ours.guard.looks("test").equals(bobs.guard.looks("test"))
    assert ours.statuses("test") == ["confirmatory"] + ["exploratory"] * 3


def test_plans_that_both_clones_had_before_they_parted_are_one_family(ledger, team, test, data, tmp_path):
    """Each was fixed before the other was opened: both stay confirmatory, and are corrected together."""
    plans = [team.frozen(test, 0.1), team.frozen(test, 0.2)]
    shutil.copytree(ledger, tmp_path / "copy")
    bobs = Team(Guard("ours", ledger=tmp_path / "copy", who="bob"))
    team.guard.open(plans[0])
    bobs.guard.open(plans[1], bobs.guard.register("test", data))
    team.guard.merge(bobs.guard.ledger)
    merged = [team.guard.open(plan) for plan in plans]
    assert [standing(one) for one in merged] == ["confirmatory"] * 2
    X = data.X
    evaluations = {
        f"s{weight}": rk.evaluate(data.y, X[:, 0] + weight * X[:, 1], qid=data.qid, measures="nDCG@10")
        for weight in (0, 0.1, 0.2)
    }
    options = {"test": "randomization", "correction": "max_t", "n_resamples": 99, "rng": 0}
    wanted = rk.compare(evaluations, baseline="s0", **options).table["p_adjusted"]
    assert [one.table["p_adjusted"][0] for one in merged] == pytest.approx(wanted.tolist())


def test_rankings_that_stayed_in_the_other_clone_make_a_batch_of_its_own(ledger, team, test, data, tmp_path):
    """They may be left out of git; Bonferroni then takes the place of max-T over both."""
    shutil.copytree(ledger, tmp_path / "copy")
    bobs = Team(Guard("ours", ledger=tmp_path / "copy", who="bob"))
    bobs.frozen(bobs.guard.register("test", data), 0.2)
    for file in (tmp_path / "copy" / "rankings").glob("*.bin"):
        file.unlink()
    plan = team.frozen(test, 0.1)
    team.guard.merge(bobs.guard.ledger)
    result = team.guard.open(plan)
    assert any("times 2 for the plans that form batches of their own" in note for note in result.notes)
    assert result.table["p_adjusted"][0] == pytest.approx(min(1, 2 * result.table["p_value"][0]))


def test_what_was_frozen_in_one_clone_and_opened_after_a_merge_that_brought_openings_is_exploratory(pair, test, data):
    """It had not seen the openings of the other clone, but somebody may have told their results."""
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    there = bobs.guard.register("test", data)
    first = bobs.opened(there, 0.2)
    for weight in (0.3, 0.4, 0.5):
        bobs.opened(there, weight)
    assert standing(first) == "confirmatory"
    ours.guard.merge(bobs.guard.ledger)
    result = ours.guard.open(plan)
    assert standing(result) == "exploratory"
    assert result.notes[0].count("of bob (1 look)") == 3
    assert " and 1 more were opened on queries of this plan in another clone" in result.notes[0]
    assert result.table["p_adjusted"].isna().all()
    assert ours.statuses("test") == ["confirmatory"] + ["exploratory"] * 4


def test_a_plan_that_was_opened_in_the_other_clone_is_another_view_of_it(pair, test, data):
    ours, bobs = pair
    there = bobs.guard.register("test", data)
    for weight in (0.1, 0.2, 0.3):
        bobs.opened(there, weight)
    same, view = ours.frozen(test, 0.3), ours.frozen(test, 0.3, measure="AP")
    ours.guard.merge(bobs.guard.ledger)
    assert standing(ours.guard.open(same)) == "exploratory", "one plan, that had been opened as such"
    assert standing(ours.guard.open(view)) == "secondary"
    assert ours.statuses("test") == ["confirmatory", "exploratory", "exploratory"]


def test_the_same_output_opened_in_both_clones_is_one_look_and_tells_no_luck(pair, test, data):
    ours, bobs = pair
    ours.opened(test, 0.1)
    bobs.opened(bobs.guard.register("test", data), 0.1, measure="AP")
    plans = [team.guard.looks("test")["plan"][0] for team in pair]
    ours.guard.merge(bobs.guard.ledger)
    notes = [ours.guard.open(plan).notes[0] for plan in plans]
    (lowered,) = (note for note in notes if note.startswith("exploratory"))
    assert "so the choice of systems may rest on the result. No p-value" in lowered
    assert sum(note.startswith("confirmatory") for note in notes) == 1


def test_a_freeze_in_another_clone_raises_no_standing(pair, test, data):
    """Neither before it is opened there, nor after."""
    ours, bobs = pair
    there = bobs.guard.register("test", data)
    bobs.opened(there, 0.1)
    bobs.opened(there, 0.2)
    ours.frozen(test, 0.2)
    ours.guard.merge(bobs.guard.ledger)
    assert ours.statuses("test") == ["confirmatory", "exploratory"]
    bobs.guard.merge(ours.guard.ledger)
    assert standing(bobs.opened(there, 0.2)) == "exploratory"


def test_an_exemption_that_the_freeze_did_not_know_counts_at_the_opening(pair, test, data):
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    bobs.guard.exempt("test", np.unique(data.qid)[:12].tolist(), "overlap")
    ours.guard.merge(bobs.guard.ledger)
    result = ours.guard.open(plan)
    assert standing(result) == "exploratory"
    looked = "12 of 100 queries were looked at before this plan was frozen, or in another clone while neither side knew"
    assert looked in result.notes[0]
    assert any(note.startswith("12 of 100 queries had been exempted or retired") for note in result.notes)


def test_the_answer_of_a_gate_that_the_freeze_did_not_know_counts_at_the_opening(pair, test, data):
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    bobs.guard.gate(bobs.guard.register("test", data), baseline=data.X[:, 0], budget=2).decide("s1", data.X[:, 1])
    ours.guard.merge(bobs.guard.ledger)
    assert standing(ours.guard.open(plan)) == "exploratory"


@pytest.mark.filterwarnings("ignore:RG003")
def test_looks_of_another_project_that_the_freeze_did_not_know_make_a_first_look(pair, test, data):
    ours, bobs = pair
    theirs = Team(Guard("theirs", ledger=bobs.guard.ledger, who="bob"))
    theirs.opened(theirs.guard.register("mine", data), 0.2)
    plan = ours.frozen(test, 0.1)
    ours.guard.merge(theirs.guard.ledger)
    result = ours.guard.open(plan)
    assert standing(result) == "first look of this project"
    assert "while neither side knew of the other (project 'theirs' looked at 100 of them, 1 look" in result.notes[0]


def test_a_clone_made_after_the_freeze_cannot_have_guided_it(ledger, team, test, data, tmp_path):
    """Its openings knew of the freeze: the plan was fixed by then."""
    plan = team.frozen(test, 0.1)
    shutil.copytree(ledger, tmp_path / "late")
    late = Team(Guard("ours", ledger=tmp_path / "late", who="bob"))
    late.opened(late.guard.register("test", data), 0.2)
    team.guard.merge(late.guard.ledger)
    result = team.guard.open(plan)
    assert standing(result) == "confirmatory"
    assert "1 system of other plans frozen by then" in result.notes[0]


@pytest.mark.filterwarnings("ignore:RG003")
def test_of_openings_of_two_projects_the_later_one_is_a_first_look(pair, test, data):
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    ours.guard.open(plan)
    theirs = Team(Guard("theirs", ledger=bobs.guard.ledger, who="bob"))
    there = theirs.guard.register("mine", data)
    other = theirs.frozen(there, 0.2)
    theirs.guard.open(other)
    ours.guard.merge(theirs.guard.ledger)
    merged = Team(Guard("theirs", ledger=ours.guard.ledger, who="bob"))
    merged.guard.register("mine", data)
    results = [ours.guard.open(plan), merged.guard.open(other)]
    order = [entry.project for entry in ours.guard._ledger.read().entries if entry.kind == "open"]
    kept, lowered = results if order == ["ours", "theirs"] else results[::-1]
    assert (standing(kept), standing(lowered)) == ("confirmatory", "first look of this project")
    assert f"(project {order[0]!r} looked at 100 of them, 1 look" in lowered.notes[0]
    assert lowered.table["p_adjusted"].notna().all()


def test_one_plan_opened_in_both_clones_is_one_look(pair, test, data):
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    ours.guard.open(plan)
    mine = bobs.guard.register("test", data)
    assert bobs.frozen(mine, 0.1).id == plan.id
    bobs.guard.open(plan.id)
    ours.guard.merge(bobs.guard.ledger)
    again = ours.guard.open(plan)
    assert standing(again) == "confirmatory"
    assert len(ours.guard.looks("test")) == 1
    assert "1 look of project 'ours'" in again.notes[-1]


@pytest.mark.filterwarnings("ignore:RG003")
def test_collections_registered_in_two_clones_are_linked_by_their_signatures(pair):
    """Neither registration knew of the other: nothing but what they keep tells that the queries are the same."""
    ours, bobs = pair
    extra = rk.datasets.make_ranking(40, 10, 4, rng=98)
    left, right = extra.take(extra.qid <= 30), extra.take(extra.qid > 10)
    one = ours.guard.register("left", left)
    ours.opened(one, 1)
    other = bobs.guard.register("right", right.X, right.y, qid=right.qid)
    bobs.opened(other, 2)
    ours.guard.merge(bobs.guard.ledger)
    looks = ours.guard.looks("left")
    assert sorted(looks["n_queries"]) == sorted([left.n_queries, left.n_queries + right.n_queries - 40])
    assert looks["status"].tolist() == ["confirmatory", "exploratory"]


@pytest.mark.filterwarnings("ignore:RG003")
def test_an_exemption_is_extended_to_what_another_clone_registered_meanwhile(pair, data):
    ours, bobs = pair
    ids = np.unique(data.qid)[:12].tolist()
    few = data.take(np.isin(data.qid, ids))
    assert ours.guard.exempt("test", ids, "overlap") == 12
    bobs.guard.register("again", data)
    ours.guard.merge(bobs.guard.ledger)
    assert ours.guard.status(few).refused
    assert ours.guard.exempt("test", ids, "overlap, there too") == 12
    assert not ours.guard.status(few).refused
    assert ours.guard.exempt("test", ids, "once more") == 0


def test_a_missing_file_of_links_is_named(team, test, data):
    """Without it nobody knows which queries were looked at, so nothing is decided."""
    team.opened(test, 1)
    team.guard.register("test", np.column_stack([data.X, data.X[:, 0] ** 2]), data.y, qid=data.qid)
    entry = team.guard._ledger.read().entries[-1]
    name = entry.body["links"]["pairs"]
    (team.guard._ledger._store.path / name).unlink()
    with pytest.raises(LedgerError) as caught:
        team.guard.verify(strict=True)
    assert caught.value.problem == f"the file {name} is missing"
    with pytest.raises(LedgerError, match=f"lacks its file {name}"):
        team.guard.looks("test")


@pytest.mark.usefixtures("test")
def test_a_merge_of_nothing_is_said(team, tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger"):
        team.guard.merge(tmp_path / "nowhere")
    assert team.guard.export(tmp_path / "copy.db") > 0
    assert Guard("ours", ledger=tmp_path / "copy.db").head == team.guard.head
    assert team.guard.verify(other=tmp_path / "copy.db")
    Guard("ours", ledger=tmp_path / "copy.db").retire("test", "there only")
    assert not team.guard.verify(other=tmp_path / "copy.db")
    with pytest.raises(LedgerError, match="is not here"):
        team.guard.verify(other=tmp_path / "copy.db", strict=True)
