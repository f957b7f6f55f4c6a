"""A gate tells one bit for each candidate, spends its budget, and leaves no score behind."""

from __future__ import annotations

import json
import math
import multiprocessing
import re

import numpy as np
import pytest
from shown import whole

import rankeval as rk
from rankeval.collection.convention import get_convention
from rankeval.datasets import make_ranking
from rankeval.errors import GuardRefusal, InvalidInput, LedgerError, RankevalWarning
from rankeval.guard import Decision
from rankeval.guard.decisions import Account, Budget, Made, Terms
from rankeval.significance.power import detectable_difference

PROJECT = "gates"
DATA = make_ranking(60, 10, 4, rng=0)
RNG = np.random.default_rng(1)
NOISE = [DATA.X[:, 1] + RNG.normal(size=len(DATA)) for _ in range(12)]
BASE = NOISE[0]
GOOD = DATA.y + 0.7 * RNG.normal(size=len(DATA))
IDEAL = DATA.y.astype(float)


@pytest.fixture
def test(guard):
    return guard.register("test", DATA)


@pytest.fixture
def gate(guard, test):
    return guard.gate(test, baseline=BASE, budget=5)


def entries(guard, kind):
    return [one for one in guard._journal.read().snapshot.entries if one.kind == kind]


def test_it_accepts_what_is_far_better_and_rejects_what_is_not(gate):
    assert gate.decide("noise", NOISE[1]) == Decision(
        accepted=False, remaining=4, budget=5, name="noise", gate="gate", baseline="baseline", is_new=True
    )
    assert gate.decide("good", GOOD).accepted
    assert gate.remaining == 3


def test_a_decision_is_that_of_the_one_sided_randomisation_test_at_alpha_over_the_budget(guard, test):
    """Against `compare`, candidate by candidate, between certain rejection and certain acceptance."""
    weights = np.linspace(0, 0.45, 12)
    gate = guard.gate(test, baseline=BASE, budget=20)
    scored = {f"c{k}": BASE + w * DATA.y + 1e-9 * k * NOISE[2] for k, w in enumerate(weights)}
    evaluations = {name: rk_scores(score) for name, score in {"base": BASE, **scored}.items()}
    verdicts = []
    for name, score in scored.items():
        pair = {"base": evaluations["base"], name: evaluations[name]}
        compared = rk.compare(
            pair, baseline="base", test="randomization", correction="none", claim="better", rng=0,
            alpha=0.05 / 20,
        )  # fmt: skip
        verdicts.append(bool(compared.table["p_value"][0] <= 0.05 / 20))
        assert gate.decide(name, score, baseline=BASE).accepted == verdicts[-1], name
    assert len(set(verdicts)) == 2


def rk_scores(score):
    """Score without asking the guard."""
    from rankeval.evaluation import Given
    from rankeval.evaluation import score as scored

    return scored(Given(DATA.y, score, DATA.qid).join(get_convention("rankeval")), [("nDCG@10", rk.measure("nDCG@10"))])


def test_neither_entries_nor_decisions_nor_errors_hold_a_score(guard, gate, capsys, caplog):
    """Nothing that follows from the scores, but one bit: no number between 0 and 1 that was not declared."""
    decided = [gate.decide(f"n{k}", NOISE[k]) for k in (1, 2)] + [gate.decide("good", GOOD)]
    body = entries(guard, "decide")[-1].body
    assert set(body) == {
        "registration", "queries", "digest", "collection", "gate", "system", "output", "baseline", "baseline_name",
        "accepted", "rankings",
    }  # fmt: skip
    said = [json.dumps(one.body) for one in entries(guard, "decide")]
    said += [str(one) + repr(one) + one._repr_html_() for one in decided]
    while gate.remaining:
        gate.decide(f"more {gate.remaining}", NOISE[3 + gate.remaining])
    with pytest.raises(LedgerError) as refused:
        gate.decide("too late", NOISE[10])
    said += [str(refused.value), capsys.readouterr().out, capsys.readouterr().err, caplog.text]
    assert not re.search(r"\d\.\d|e-\d", " ".join(said))


def test_rejected_rankings_are_not_kept(guard, gate):
    gate.decide("noise", NOISE[1])
    assert entries(guard, "decide")[0].body["rankings"] is None


def test_what_was_accepted_is_the_baseline_of_later_decisions(gate):
    gate.decide("good", GOOD)
    assert gate.baseline == "good"
    assert not gate.decide("noise", NOISE[1]).accepted
    assert gate.decisions()["against"].tolist() == ["baseline", "good"]
    assert gate.decide("ideal", IDEAL).baseline == "good"


def test_a_baseline_of_ones_own_overrides_for_one_decision(gate):
    """As for a promotion whose alias was moved by hand."""
    gate.decide("good", GOOD)
    assert gate.decide("better than noise", GOOD + 0.3 * IDEAL, baseline=BASE).accepted
    assert gate.baseline == "better than noise"


def test_the_baseline_has_a_name_and_decisions_say_since_when_it_is_on_record(guard, test):
    gate = guard.gate(test, baseline=BASE, baseline_name="first stage", budget=5)
    assert gate.baseline == "first stage"
    one = gate.decide("noise", NOISE[1])
    (declared,) = entries(guard, "gate")
    assert (one.baseline, one.against.output) == ("first stage", declared.body["baseline"])
    assert (one.against.time, one.against.who) == (declared.time, declared.who)
    words = f"ranking {declared.body['baseline'][:12]}, on record since {declared.time[:10]} by {declared.who}"
    assert one.against.on_record == words
    assert gate.decide("noise", NOISE[1]).against == one.against, "also of a free answer"
    gate.decide("good", GOOD)
    (*_, accepted) = entries(guard, "decide")
    assert gate.decide("more noise", NOISE[2]).against.time == accepted.time
    other = gate.decide("good", GOOD, baseline=NOISE[3], baseline_name="last year's")
    assert (other.baseline, other.against.time) == ("last year's", "")
    assert other.against.on_record == f"ranking {other.against.output[:12]}"
    assert gate.decisions()["against"].tolist() == ["first stage", "first stage", "good", "last year's"]


def test_a_name_of_the_baseline_is_a_text_and_no_term(guard, test, gate):
    assert guard.gate(test, budget=5, baseline_name="another").baseline == gate.baseline == "baseline"
    for ask in (lambda: guard.gate(test, baseline=BASE, baseline_name=" ", name="new"),
                lambda: gate.decide("noise", NOISE[1], baseline=BASE, baseline_name=7)):  # fmt: skip
        with pytest.raises(InvalidInput) as caught:
            ask()
        assert caught.value.argument == "baseline_name"
    assert gate.remaining == 5


BUDGETS = [(5, [], 0, 5), (5, ["a", "b"], 2, 3), (5, ["a", "a", "b"], 2, 3), (1, ["a", "b"], 2, 0)]


@pytest.mark.parametrize(("decisions", "questions", "n_made", "left"), BUDGETS)
def test_an_account_counts_questions_and_not_entries(decisions, questions, n_made, left):
    """The same code counts for gates and for promotions without one."""
    made = tuple(Made((one,), accepted=True, name=one, baseline="old") for one in questions)
    account = Account(Budget(0.05, decisions), "shop@champion", "these queries", made)
    assert (account.n_made, account.remaining) == (n_made, left)
    told = {"name": "new", "gate": "shop@champion", "baseline": "old"}
    for known in made[:1]:
        free = account.repeat(known, told)
        assert (free.accepted, free.is_new, free.remaining, free.first_name) == (True, False, left, "a")
    if left:
        assert account.decide(lambda: False, told).remaining == left - 1
    else:
        with pytest.raises(LedgerError, match="shop@champion has made its 1 decision on these queries") as spent:
            account.decide(pytest.fail, told)
        assert (spent.value.argument, spent.value.found) == ("budget", "2")


def test_an_equal_output_has_the_same_decision_for_free(gate):
    """Whatever it is called, and whatever the baseline is by now."""
    first = gate.decide("noise", NOISE[1])
    gate.decide("good", GOOD)
    again = gate.decide("renamed", np.exp(NOISE[1] / 10))
    assert (again.accepted, again.is_new, again.name) == (first.accepted, False, "renamed")
    assert again.remaining == gate.remaining == 3
    assert again.words.startswith("renamed: rejected (as before under the name 'noise', which is free)")
    assert "(as before, which is free)" in gate.decide("noise", NOISE[1]).words
    assert gate.decide("good again", 2 * GOOD).accepted
    assert gate.remaining == 3


def test_another_baseline_is_another_question(gate):
    gate.decide("good", GOOD)
    assert not gate.decide("good", GOOD, baseline=IDEAL).accepted
    assert gate.remaining == 3
    assert gate.decide("good", GOOD, baseline=BASE).is_new is False


def test_an_exhausted_budget_says_what_to_do(gate):
    for k in range(1, 6):
        gate.decide(f"n{k}", NOISE[k])
    with pytest.raises(
        LedgerError, match="has made its 5 decisions on 'test', and decides no more; collect and"
    ) as spent:
        gate.decide("good", GOOD)
    assert (spent.value.argument, spent.value.found) == ("budget", "5")
    assert gate.decide("n1", NOISE[1]).remaining == 0


def test_the_same_terms_return_it_in_another_process_too(guard, test, gate, tmp_path):
    gate.decide("good", GOOD)
    other = rk.Guard("gates", ledger=tmp_path / "ledger")
    again = other.gate(other.register("test", DATA), budget=5)
    assert (again.remaining, again.baseline) == (4, "good")
    for known in (BASE, GOOD):
        assert guard.gate(test, baseline=known, budget=5).remaining == 4
    assert len(entries(guard, "gate")) == 1


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        ({"budget": 6}, "budget is 5 and not 6"),
        ({"alpha": 0.1}, "alpha is 0.05 and not 0.1"),
        ({"measure": "AP"}, "measure is nDCG@10 and not AP"),
        ({"claim": "not_worse", "margin": 0.02}, "claim is better and not not_worse, margin is 0.0 and not 0.02"),
        ({"rng": 1}, "rng is 0 and not 1"),
        ({"baseline": NOISE[5]}, "another baseline"),
    ],
)
def test_other_terms_are_an_error(guard, test, gate, terms, match):
    with pytest.raises(LedgerError, match=match):
        guard.gate(test, **{"budget": 5, **terms})
    assert gate.remaining == 5


def test_gates_of_other_names_and_projects_have_budgets_of_their_own(guard, test, gate, tmp_path):
    gate.decide("noise", NOISE[1])
    with pytest.warns(RankevalWarning, match="60 of 60 queries of 'test' were looked at outside this gate"):
        second = guard.gate(test, baseline=BASE, budget=3, name="second")
    assert second.remaining == 3
    other = rk.Guard("others", ledger=tmp_path / "ledger")
    with pytest.warns(RankevalWarning, match="looked at outside"):
        theirs = other.gate(other.register("test", DATA), baseline=BASE, budget=2)
    assert (theirs.remaining, gate.remaining) == (2, 4)


@pytest.mark.parametrize(
    "given",
    [
        {"budget": 0},
        {"budget": 2.5},
        {"alpha": 0.0},
        {"claim": "difference"},
        {"margin": 0.0, "claim": "not_worse"},
        {"margin": -0.1},
        {"sd": 0},
        {"name": " "},
    ],
)
def test_a_gate_that_is_not_whole_is_refused(guard, test, given):
    with pytest.raises(InvalidInput, match=f"^{next(iter(given))} is ") as said:
        guard.gate(test, **{"baseline": BASE, **given})
    assert said.value.argument in {None, next(iter(given))}
    for baseline in (None, BASE[:-1]):
        with pytest.raises(InvalidInput):
            guard.gate(test, baseline=baseline)
    assert entries(guard, "gate") == []


def test_too_few_queries_to_accept_anything_are_refused(guard):
    """8 queries have 256 patterns, of which .0025 is less than one; 9 have 512."""
    small = make_ranking(9, 10, rng=3)
    test = guard.register("small", small)
    guard.gate(test, baseline=-small.y, budget=20)
    assert guard.gate(test, budget=20).decide("ideal", small.y).accepted
    eight = make_ranking(8, 10, rng=4)
    smaller = guard.register("smaller", eight)
    with pytest.raises(InvalidInput, match=r"8 queries, on which no candidate can be accepted at 0.0025: that takes 9"):
        guard.gate(smaller, baseline=-eight.y, budget=20)


def test_not_worse_accepts_an_equal_system_where_better_rejects_it(guard, test):
    near = BASE + 1e-3 * NOISE[1]
    gate = guard.gate(test, baseline=BASE, claim="not_worse", margin=0.1, budget=5)
    assert gate.decide("near", near).accepted
    assert not gate.decide("worst", -IDEAL).accepted


def test_less_is_better_by_some_measures(guard):
    qrels = {f"q{k}": {f"d{j}": int(j == k % 4) for j in range(6)} for k in range(20)}
    good = {q: {d: float(rel) for d, rel in docs.items()} for q, docs in qrels.items()}
    bad = {q: {d: -float(rel) for d, rel in docs.items()} for q, docs in qrels.items()}
    with pytest.warns(RankevalWarning, match="RG001"):
        test = guard.register("judged", qrels=qrels)
    gate = guard.gate(test, baseline=bad, measure="ARP", budget=2)
    assert gate.decide("good", good).accepted


def test_it_says_what_it_can_find_and_from_which_spread(guard, test):
    assumed = guard.gate(test, baseline=BASE, budget=5)
    assert assumed.detectable == pytest.approx(float(detectable_difference(60, 0.2, 0.01, claim="better")))
    assert f"A true gain of {assumed.detectable:.2g} is accepted four times in five" in whole(assumed)
    assert "a standard deviation of 0.2, which is assumed" in whole(assumed)
    known = guard.gate(test, budget=5, sd=0.1)
    assert known.detectable == pytest.approx(assumed.detectable / 2)
    assert "a standard deviation of 0.1\n" in whole(known)
    assert "5 left" in known._repr_html_()


def test_what_it_can_find_is_found_four_times_in_five():
    """Simulated: normal differences with the spread assumed, and the gain that is said to be detectable."""
    terms = Terms("nDCG@10", get_convention("rankeval"), "better", 0.0, 0.05, 5, 0)
    rng, gain = np.random.default_rng(0), terms.detectable(60, 0.2)
    found = [terms.claim_shown(rng.normal(gain, 0.2, 60), 1.0) for _ in range(400)]
    assert np.mean(found) == pytest.approx(0.8, abs=3 * math.sqrt(0.8 * 0.2 / 400))


def test_an_opening_of_the_same_queries_marks_the_gate(guard, test, gate):
    """The level of a gate holds for candidates that no other look helped to make."""
    assert "looked at outside" not in whole(gate)
    guard.open(guard.freeze(test, systems={"a": BASE, "b": GOOD}, baseline="a"))
    assert "60 of 60 queries of 'test' were looked at outside this gate" in whole(gate)
    with pytest.warns(RankevalWarning, match="declare a gate on fresh queries"):
        guard.gate(test, baseline=BASE, name="late")
    assert entries(guard, "gate")[-1].body["n_exposed"] == 60


def test_decisions_are_looks_for_plans_on_the_same_queries(guard, test, gate):
    """One bit is little, but a plan that is frozen after it is no first look."""
    before = guard.freeze(test, systems={"a": BASE, "b": NOISE[3]}, baseline="a")
    gate.decide("noise", NOISE[1])
    after = guard.freeze(test, systems={"a": BASE, "c": NOISE[4]}, baseline="a")
    assert not any(note.startswith("confirmatory") for note in guard.open(after).notes)
    assert any(note.startswith("confirmatory") for note in guard.open(before).notes)


def test_a_revision_of_the_collection_has_the_budget_of_its_gate(guard, test, gate):
    """A team adds a feature every week. The kept ranking fits the earlier rows, so the system in use is given again."""
    gate.decide("noise", NOISE[1])
    X = np.column_stack([DATA.X, np.random.default_rng(5).normal(size=len(DATA))])
    revised = guard.register("test", X, DATA.y, qid=DATA.qid)
    assert revised.revises == test.id
    again = guard.gate(revised, budget=5)
    assert again.remaining == 4
    with pytest.raises(LedgerError, match="revised since the ranking of 'baseline' was kept"):
        again.decide("good", GOOD)
    assert again.decide("good", GOOD, baseline=BASE).accepted
    assert again.remaining == gate.remaining == 3
    assert again.decide("noise 2", NOISE[2]).baseline == "good"


def test_what_a_gate_accepted_is_still_refused_elsewhere(gate):
    gate.decide("good", GOOD)
    with pytest.raises(GuardRefusal):
        rk.evaluate(DATA.y, GOOD, qid=DATA.qid)


def test_a_retired_collection_has_no_decisions(guard, test, gate):
    guard.retire(test, "given up")
    with pytest.raises(LedgerError, match="retired"):
        gate.decide("good", GOOD)
    with pytest.raises(LedgerError, match="retired"):
        guard.gate(test, baseline=BASE, budget=5)


def test_a_ledger_that_is_lost_with_the_machine_is_refused_before_anything_is_scored(guard, gate, monkeypatch):
    monkeypatch.setattr("rankeval.guard.journal.why_lost", lambda _url: "the ledger would be lost")
    monkeypatch.setattr("rankeval.guard.gate.scores_of", None)
    with pytest.raises(LedgerError, match="would be lost"):
        gate.decide("good", GOOD)
    assert entries(guard, "decide") == []


def _decide(folder, number, results):
    guard = rk.Guard("gates", ledger=folder)
    gate = guard.gate(guard.register("test", DATA), budget=6)
    for k in range(5):
        try:
            decision = gate.decide(f"p{number} {k}", NOISE[1 + 5 * number + k])
        except LedgerError:
            results.put("used up")
        else:
            results.put(decision.remaining)


@pytest.mark.parametrize("store", ["ledger", "ledger.db"])
def test_two_processes_at_once_never_overspend(store, tmp_path):
    """Ten candidates, six decisions: each number of remaining ones is told once, in a folder and in a database."""
    guard = rk.Guard("gates", ledger=tmp_path / store)
    guard.gate(guard.register("test", DATA), baseline=BASE, budget=6)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_decide, args=(tmp_path / store, k, results)) for k in range(2)]
    for worker in workers:
        worker.start()
    told = [results.get(timeout=120) for _ in range(10)]
    for worker in workers:
        worker.join(30)
    assert sorted(one for one in told if one != "used up") == [0, 1, 2, 3, 4, 5]
    assert told.count("used up") == 4
    assert len(entries(guard, "decide")) == 6
    assert guard.verify()


def test_two_clones_may_overspend_and_the_merged_ledger_says_so(guard, test, tmp_path):
    """All decisions count. If both accepted a system, the next decision needs to be told which one is in use."""
    guard.gate(test, baseline=BASE, budget=2)
    clone = rk.Guard("gates", ledger=tmp_path / "clone")
    clone._ledger.merge(guard._ledger)
    theirs = clone.gate(clone.register("test", DATA), budget=2)
    ours = guard.gate(test, budget=2)
    ours.decide("noise", NOISE[1])
    ours.decide("good", GOOD)
    ours_alone = ours.decide("good", GOOD)
    theirs.decide("noise", NOISE[1])
    theirs.decide("ideal", IDEAL)
    guard._ledger.merge(clone._ledger)
    merged = guard.gate(test, budget=2)
    assert merged.remaining == 0
    assert "1 decision over the budget" in whole(merged)
    told = merged.decide("ideal", IDEAL)
    assert (told.accepted, told.n_over) == (True, 1)
    assert told.words.endswith("0 of 2 decisions left, and 1 over the budget: its level is exceeded")
    assert "over the budget" not in ours_alone.words
    with pytest.raises(LedgerError, match=r"accepted '(good|ideal)' and '(good|ideal)' in two clones"):
        _ = merged.baseline
    with pytest.raises(LedgerError, match="accepted"):
        merged.decide("new", NOISE[2])


def test_after_a_merge_the_decisions_over_the_budget_are_marked(guard, test, tmp_path):
    """They are the last ones in the order of the ledger; a question that both clones asked counts once."""
    guard.gate(test, baseline=BASE, budget=2)
    guard.export(tmp_path / "clone")
    clone = rk.Guard("gates", ledger=tmp_path / "clone", who="bob")
    for one, name, score in ((guard, "good", GOOD), (clone, "ideal", IDEAL)):
        gate = one.gate(one.register("test", DATA), budget=2)
        gate.decide("noise", NOISE[1])
        assert not gate.decisions()["over_budget"].any()
        gate.decide(name, score)
        assert "over the budget" not in whole(gate)
    guard.merge(clone.ledger)
    merged = guard.gate(test, budget=2)
    found = merged.decisions()
    assert len(found) == 4
    (over,) = found["system"][found["over_budget"]]
    assert over == found["system"].drop_duplicates().iloc[-1]
    verdict = "accepted" if over != "noise" else "rejected"
    assert whole(merged).endswith(
        f"\n* 1 decision over the budget ({over} {verdict}): clones decided without knowing of each other"
    )


def test_the_ranking_of_the_baseline_is_no_candidate_and_was_not_decided_on_before(guard, gate):
    same = gate.decide("same", 2 * BASE)
    assert entries(guard, "decide") == []
    assert same.words == (
        "same: rejected (the ranking of the baseline, which is free) against baseline by gate 'gate'; "
        "5 of 5 decisions left"
    )


def test_gates_declared_together_say_that_others_decide_on_the_same_queries(guard, test):
    """Five budgets of two are ten decisions at alpha over two: each gate but the first says so, and warns once."""
    first, second = (guard.gate(test, baseline=BASE, budget=3, name=name) for name in ("first", "second"))
    assert "outside" not in first.decide("a", NOISE[1]).words
    with pytest.warns(RankevalWarning, match="gate 'second': 60 of 60 queries of 'test' were looked at outside"):
        decision = second.decide("b", NOISE[2])
    assert decision.n_exposed == 60
    assert decision.words.endswith(
        "; decision 1 of 3; 60 queries looked at outside this gate, so its level may be exceeded"
    )
    assert second.decide("c", NOISE[3]).n_exposed == 60, "warnings are errors here: it does not warn again"
