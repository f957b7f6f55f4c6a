"""What the notes of an opening say of the guard is read back as it was written, whatever stands beside it."""

from __future__ import annotations

import pytest

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.guard.notes import facts_in
from rankeval.guard.standing import STANDINGS
from rankeval.report import GuardFacts

HEAD = "+".join(("ab" * 32, "cd" * 32))
SUMMARY = (
    "1,234 looks of project \"bob's\" at 'a; plan b' (2 more by other projects); plan 0f1e; "
    f"ledger /l l as of head {HEAD}"
)


@pytest.mark.parametrize("standing", STANDINGS)
def test_the_first_note_with_a_standing_is_the_standing(standing):
    """Later notes may begin with the words of another one."""
    beside = ("concurrent with plan 12 of somebody", "secondary, without adjusted p: AP")
    found = facts_in(["a note of the test", f"{standing} for AP: so it was", *beside, SUMMARY])
    assert found == {
        "standing": standing,
        "looks": "1,234",
        "elsewhere": "2",
        "project": "bob's",
        "test": "a; plan b",
        "plan": "0f1e",
        "ledger": "/l l",
        "head": HEAD,
    }


def test_a_comparison_that_no_guard_opened_has_no_facts():
    systems = {
        name: rk.evaluate([1, 0, 1, 0], score, qid=[1, 1, 2, 2])
        for name, score in (("a", [1, 2] * 2), ("b", [2, 1, 1, 2]))
    }
    assert GuardFacts.of(rk.compare(systems)) is None
    assert GuardFacts(active=False, reason="off").line == ""


def test_the_facts_are_those_that_the_guard_has(tmp_path):
    data = rk.datasets.make_ranking(60, rng=0)
    guard = rk.Guard("it's a shop", ledger=tmp_path / "ledger")
    test = guard.register('a "test"', data)
    plan = guard.freeze(test, systems={"a": data.X[:, 0], "b": data.X[:, 1]}, baseline="a", secondary="AP")
    facts = GuardFacts.of(guard.open(plan))
    refusal.forget()
    assert (facts.project, facts.test, facts.plan, facts.head) == ("it's a shop", 'a "test"', plan.id, guard.head)
    assert (facts.looks, facts.elsewhere, facts.standing, facts.ledger) == (1, 0, "confirmatory", guard.ledger)
    assert facts.warning == ""
