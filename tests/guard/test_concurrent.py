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
    first = ann.guard.looks("test")["plan"][0]
    git(ann_folder, "push", "-q", "origin", "HEAD:ann")
    git(bob_folder, "pull", "-q", "--no-rebase", "--no-edit", "origin", "ann")
    assert not subprocess.run(
        ["git", "status", "--porcelain"], cwd=bob_folder, check=True, capture_output=True, text=True
    ).stdout
    looks = bob.guard.looks("test")
    assert len(looks) == 20
    assert sorted(looks["who"]) == ["ann"] * 10 + ["bob"] * 10
    assert sorted(looks["status"]) == ["concurrent"] * 2 + ["exploratory"] * 18
    assert "+" in bob.guard.head
    assert bob.guard.verify(other=ann_folder / "rankeval-ledger")
    test = bob.guard.register("test", data)
    again = bob.guard.open(first)
    assert standing(again) == "concurrent"
    assert any("neither is confirmatory alone" in note and "10 systems of other plans" in note for note in again.notes)
    beside = [note for note in again.notes if note.startswith("concurrent with plan")]
    assert len(beside) == 10
    assert "of bob (project 'ours', 1 look)" in beside[0]
    assert f"as of head {bob.guard.head}" in again.notes[-1]
    assert "11 looks of project 'ours'" in again.notes[-1], "those of the other clone, and its own"
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


def test_one_family_is_corrected_together_once_merged(pair, test, data):
    ours, bobs = pair
    ours.opened(test, 0.1)
    bobs.opened(bobs.guard.register("test", data), 0.2)
    plans = [team.guard.looks("test")["plan"][0] for team in pair]
    assert ours.guard.merge(bobs.guard.ledger) > 0
    assert ours.guard.merge(bobs.guard.ledger) == 0
    merged = [ours.guard.open(plan) for plan in plans]
    assert [standing(one) for one in merged] == ["concurrent"] * 2
    X = data.X
    evaluations = {
        f"s{weight}": rk.evaluate(data.y, X[:, 0] + weight * X[:, 1], qid=data.qid, measures="nDCG@10")
        for weight in (0, 0.1, 0.2)
    }
    options = {"test": "randomization", "correction": "max_t", "n_resamples": 99, "rng": 0}
    wanted = rk.compare(evaluations, baseline="s0", **options).table["p_adjusted"]
    assert [one.table["p_adjusted"][0] for one in merged] == pytest.approx(wanted.tolist())


def test_rankings_that_stayed_in_the_other_clone_make_a_batch_of_its_own(pair, test, data):
    """They may be left out of git; Bonferroni then takes the place of max-T over both."""
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    ours.guard.open(plan)
    bobs.opened(bobs.guard.register("test", data), 0.2)
    for file in (ours.guard._ledger._store.path.parent / "copy" / "rankings").glob("*.bin"):
        file.unlink()
    ours.guard.merge(bobs.guard.ledger)
    again = ours.guard.open(plan)
    assert any("times 2 for the plans that form batches of their own" in note for note in again.notes)
    assert again.table["p_adjusted"][0] == pytest.approx(min(1, 2 * again.table["p_value"][0]))


def test_what_was_frozen_in_one_clone_and_opened_after_the_merge_is_concurrent(pair, test, data):
    """It had not seen the openings of the other clone, but somebody may have told their results: one family of all."""
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    there = bobs.guard.register("test", data)
    first = bobs.opened(there, 0.2)
    bobs.opened(there, 0.3)
    ours.guard.merge(bobs.guard.ledger)
    result = ours.guard.open(plan)
    assert standing(result) == "concurrent"
    assert "frozen in one clone while other plans of the project were opened" in result.notes[0]
    assert "2 systems of other plans frozen by then" in result.notes[0]
    assert sum("without knowing of plan" in note and "of bob (1 look)" in note for note in result.notes) == 2
    weights = (0, 0.1, 0.2, 0.3)
    scores = {f"s{weight}": data.X[:, 0] + weight * data.X[:, 1] for weight in weights}
    scored = {name: rk.evaluate(data.y, one, qid=data.qid, measures="nDCG@10") for name, one in scores.items()}
    options = {"test": "randomization", "correction": "max_t", "n_resamples": 99, "rng": 0}
    wanted = rk.compare(scored, baseline="s0", **options).table
    assert result.table["p_adjusted"][0] == pytest.approx(wanted["p_adjusted"][0])
    assert standing(first) == "confirmatory"
    assert ours.statuses("test") == ["confirmatory", "exploratory", "concurrent"]


def test_the_best_of_another_clone_is_not_confirmed_by_a_freeze_that_did_not_know_of_it(pair, test, data):
    ours, bobs = pair
    there = bobs.guard.register("test", data)
    for weight in (0.1, 0.2, 0.3):
        bobs.opened(there, weight)
    same = ours.frozen(test, 0.3)
    other = ours.frozen(test, 0.3, 0.4)
    ours.guard.merge(bobs.guard.ledger)
    assert standing(ours.guard.open(same)) == "exploratory", "one plan, that had been opened as such"
    result = ours.guard.open(other)
    assert standing(result) == "exploratory"
    assert result.notes[0].startswith("exploratory: s0.3 had been opened in another clone when this plan was frozen")
    assert "p_adjusted" not in result.table or result.table["p_adjusted"].isna().all()
    assert ours.statuses("test") == ["confirmatory", "exploratory", "exploratory", "exploratory"]


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
    assert "12 of 100 queries were looked at before this plan was frozen, or in another clone" in result.notes[0]
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
    assert "or in another clone before it was opened (project 'theirs' looked at 100 of them" in result.notes[0]


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
def test_looks_of_another_project_beside_ours_are_said_and_leave_us_confirmatory(pair, test, data):
    """By rule: neither plan was frozen after the other's opening."""
    ours, bobs = pair
    plan = ours.frozen(test, 0.1)
    ours.guard.open(plan)
    theirs = Team(Guard("theirs", ledger=bobs.guard.ledger, who="bob"))
    theirs.opened(theirs.guard.register("mine", data), 0.2)
    ours.guard.merge(theirs.guard.ledger)
    again = ours.guard.open(plan)
    assert standing(again) == "confirmatory"
    assert any(note.startswith("concurrent with plan") and "of bob (project 'theirs'" in note for note in again.notes)


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
    assert looks["status"].tolist() == ["concurrent"] * 2


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
