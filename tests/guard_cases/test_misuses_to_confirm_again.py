"""Misuse after a look: the same queries in another guise. None of these results may be called confirmatory."""

import numpy as np
import pytest
from guard_cases.situations import (
    COUNTED,
    N_TEST,
    NEVER,
    REFUSED,
    changed,
    copied,
    misuse,
    planned,
    renamed,
    stacked,
    standing,
    weighted,
)

import rankeval as rk
from rankeval.errors import GuardRefusal, LedgerError, RankevalWarning

ROUND_AGAIN = pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")


@pytest.fixture
def looked(desk):
    """Open the test collection once."""
    assert standing(desk.look("test", desk.test, 0, 1)) == "confirmatory"
    return desk


def has_no_adjusted_p(result):
    return not len(result.table) or result.table["p_adjusted"].isna().all()


@pytest.mark.parametrize("name", ["test", "test 2"])
@misuse(NEVER, rows=[1])
def test_one_changed_label(looked, name):
    """Under the same name, and under another."""
    y = looked.test.y.copy()
    y[0] = (y[0] + 1) % 5
    supersedes = {"supersedes": "test"} if name == "test" else {}
    again = looked.look(name, changed(looked.test, y=y), 0, 2, **supersedes)
    assert standing(again) == "exploratory"
    assert has_no_adjusted_p(again)


@pytest.mark.parametrize("more", [-1, 1], ids=["a query less", "a query more"])
@pytest.mark.parametrize("name", ["test", "test 2"])
@misuse(NEVER, rows=[1])
def test_a_query_more_or_less(looked, more, name):
    """39 or 40 of these queries were looked at."""
    test, dev = looked.test, looked.dev
    data = test.take(test.qid < N_TEST) if more < 0 else stacked(test, dev.take(dev.qid == N_TEST + 1))
    supersedes = {"supersedes": "test"} if name == "test" else {}
    assert standing(looked.look(name, data, 0, 2, **supersedes)) == "exploratory"


@misuse(NEVER, rows=[1, 10])
def test_another_project(looked):
    """Another project's first look is no confirmation: it is told who looked before, and how often."""
    again = looked.look("test", looked.test, 0, 2, project="other")
    assert standing(again) == "first look of this project"
    assert "'project' looked at 40 of them, 1 look" in " ".join(again.notes)
    assert not any(note.startswith("confirmatory") for note in again.notes)
    assert standing(looked.look("test", looked.test, 0, 3, project="other")) == "exploratory"


@pytest.mark.parametrize("columns", [5, 6], ids=["as it is", "a column more"])
@misuse(NEVER, rows=[1])
def test_another_name(looked, columns):
    """The same queries under another name are linked, and RG003 says so."""
    data = changed(looked.test, X=np.column_stack([looked.test.X, np.ones(len(looked.test))])[:, :columns])
    guard = looked.guard()
    with pytest.warns(RankevalWarning, match="RG003.*40 of the 40"):
        registered = guard.register("test 2", data)
    assert standing(guard.open(planned(guard, registered, data, 0, 2))) == "exploratory"


@pytest.mark.parametrize("ids", ["the same ids", "other ids"])
@misuse(NEVER, rows=[1])
def test_a_new_feature(looked, ids):
    """A feature is new, and all others are on another scale."""
    test = looked.test if ids == "the same ids" else renamed(looked.test)
    X = np.column_stack([3 * test.X + 1, np.random.default_rng(0).normal(size=len(test))])
    assert standing(looked.look("test", changed(test, X=X), 0, 2)) == "exploratory"


@ROUND_AGAIN
@pytest.mark.parametrize("first", ["the whole", "the parts"])
@misuse(NEVER, rows=[1])
def test_twenty_small_parts(desk, first):
    """Twenty looks at four queries of 80 each are a look at all; and a part of what was looked at was looked at."""
    whole = stacked(desk.test, desk.dev).take(np.arange(80 * 12))
    places = np.arange(80 * 12) // 12 // 4
    parts = [whole.take(places == part) for part in range(20)]
    if first == "the whole":
        desk.look("whole", whole, 0, 1)
        assert {standing(desk.look(f"part {i}", part, 0, 2)) for i, part in enumerate(parts[:3])} == {"exploratory"}
        return
    desk.look("part 0", parts[0], 0, 1)
    for i, part in enumerate(parts[1:], start=1):
        desk.look(f"part {i}", part, 0, 1)
    again = desk.look("whole", whole, 0, 2)
    assert standing(again) == "exploratory"
    assert has_no_adjusted_p(again)


@ROUND_AGAIN
@misuse(NEVER, rows=[1])
def test_small_changes_at_each_opening(looked):
    """Each time one label, one query and one feature differ from the time before."""
    data, standings = looked.test, []
    for step in range(1, 5):
        y = data.y.copy()
        y[12 * step] = (y[12 * step] + 1) % 5
        fresh = looked.dev.take(looked.dev.qid == N_TEST + step)
        rows = changed(data, y=y, X=data.X + step).take(data.qid > step)
        data = stacked(rows, fresh)
        standings.append(standing(looked.look(f"test {step}", data, 0, step + 1)))
    assert set(standings) == {"exploratory"}


@ROUND_AGAIN
@misuse(NEVER, rows=[4, 5])
def test_two_clones_that_both_open(guarded):
    """Neither knew of the other: once merged, one of both is exploratory."""
    here, there = guarded.guard(), guarded.guard(ledger=copied(guarded.ledger, "clone"))
    plans = [
        planned(guard, guard.register("test", guarded.test), guarded.test, 0, weight)
        for guard, weight in ((here, 1), (there, 2))
    ]
    assert [standing(guard.open(plan)) for guard, plan in zip((here, there), plans, strict=True)] == [
        "confirmatory",
        "confirmatory",
    ]
    assert here.merge(there.ledger) > 0
    merged = guarded.guard()
    merged.register("test", guarded.test)
    assert len(merged.looks("test")) == 2
    again = [merged.open(plan.id) for plan in plans]
    assert sorted(map(standing, again)) == ["confirmatory", "exploratory"]
    (lowered,) = (one for one in again if standing(one) == "exploratory")
    assert "Neither side knew of the other" in lowered.notes[0]
    assert has_no_adjusted_p(lowered)


@misuse(REFUSED, rows=[1, 6])
def test_retired_content_registered_again(guarded):
    """Under its old name, another name, or with another feature: it may have been fitted on."""
    guard = guarded.guard()
    guard.retire("test", "a larger one was bought")
    wider = changed(guarded.test, X=np.column_stack([guarded.test.X, np.ones(len(guarded.test))]))
    for name, data in (("test", guarded.test), ("test 2", guarded.test), ("test", wider), ("test 3", wider)):
        with pytest.raises(LedgerError, match="retired"):
            guard.register(name, data)


@misuse(REFUSED, rows=[9])
def test_a_gate_asked_more_than_it_was_made_for(guarded):
    """A ranking it knows gets the same answer for nothing; the third new one of two is not scored; all are looks."""
    guard = guarded.guard()
    registered = guard.register("test", guarded.test)
    gate = guard.gate(registered, baseline=guarded.test.X[:, 0], budget=2)
    first, again = (gate.decide(name, guarded.test.X[:, 1]) for name in ("candidate", "the candidate once more"))
    assert (first.accepted, first.remaining) == (again.accepted, again.remaining)
    assert gate.decide("another", guarded.test.X[:, 2]).remaining == 0
    with pytest.raises((GuardRefusal, LedgerError), match="has made its 2 decisions"):
        gate.decide("a third", guarded.test.X[:, 3])
    assert standing(guard.open(planned(guard, registered, guarded.test, 0, 2))) == "exploratory"


@misuse(COUNTED, rows=[9, 10])
def test_ten_plans_one_after_the_other(looked):
    """Each is counted, and the note says about how much the best of so many equals would gain."""
    for weight in range(2, 11):
        result = looked.look("test", looked.test, 0, weight)
        assert standing(result) == "exploratory"
        assert has_no_adjusted_p(result)
    said = next(note for note in result.notes if note.startswith("exploratory"))
    assert "10 looks" in said
    assert "about" in said
    assert "at least" not in said
    assert len(looked.guard().looks("test")) == 10


def test_the_systems_of_these_cases_rank_otherwise(desk):
    """Else an opening would be a reproduction, and no look."""
    scores = weighted(desk.test, 0, 1, 2).values()
    assert len({rk.evaluate(desk.test.y, one, qid=desk.test.qid, measures="AP").mean()["AP"] for one in scores}) == 3
