"""What the notes of an opening say of the guard is read back as it was written, whatever stands beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rankeval as rk
from rankeval.comparison.record import with_notes
from rankeval.contamination import refusal
from rankeval.guard.opening import summary_of
from rankeval.guard.standings import STATUS_OF
from rankeval.report.summaries import GuardFacts

HEAD = "+".join(("ab" * 32, "cd" * 32))
OPENING = {
    "looks": 1234,
    "later": 0,
    "elsewhere": 2,
    "looks_added": 1,
    "project": "bob's",
    "test": "a; plan b",
    "plan": "0f1e",
    "ledger": "/l l",
    "head": HEAD,
}


@pytest.mark.parametrize("standing", STATUS_OF)
def test_the_standing_is_the_field_whatever_the_notes_begin_with(standing):
    """Notes may begin with the words of another standing, and one on a dagger may come before all."""
    beside = ("exploratory as plan 12 of somebody", "secondary, without adjusted p: AP", summary_of(OPENING))
    opened = replace(with_notes(rk.compare(_systems()), *beside), standing=standing, opening=OPENING)
    facts = GuardFacts.of(rk.Comparison.from_json(opened.to_json()))
    assert (facts.standing, facts.status) == (standing, STATUS_OF[standing])
    assert facts.tags()["rankeval.standing"] in {"confirmatory", "exploratory"}
    assert facts.warning == "" if standing == "confirmatory" else facts.warning.startswith(f"{facts.status.upper()}: ")
    assert {name: getattr(facts, name) for name in OPENING} == OPENING


def test_a_comparison_that_no_guard_opened_has_no_facts():
    compared = rk.compare(_systems())
    assert (compared.standing, GuardFacts.of(compared)) == ("", None)
    assert GuardFacts(active=False, reason="off").line == ""


def _systems():
    return {
        name: rk.evaluate([1, 0, 1, 0], score, qid=[1, 1, 2, 2])
        for name, score in (("a", [1, 2] * 2), ("b", [2, 1, 1, 2]))
    }


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
