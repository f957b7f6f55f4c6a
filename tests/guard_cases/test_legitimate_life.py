"""Legitimate use of the guard over the life of a test collection: nothing is refused, and nothing is warned about."""

import json
import subprocess
import sys

import numpy as np
import pytest
from guard_cases.situations import (
    changed,
    legitimate,
    planned,
    stacked,
    standing,
    without_rights_to_write,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import rankeval as rk
from rankeval.contamination import forget

pytestmark = pytest.mark.filterwarnings("error::rankeval.errors.RankevalWarning")


@pytest.fixture
def big(desk):
    """Make the test collection large enough that no check has anything to warn of: 80 queries."""
    whole = stacked(desk.test, desk.dev)
    desk.test, desk.dev = whole.take(whole.qid <= 80), whole.take(whole.qid > 80)
    return desk


@legitimate(rows=[1])
def test_a_new_feature_each_week(big):
    """The data is registered again under its name: a revision, to which the looks carry over."""
    guard = big.guard()
    first = guard.register("test", big.test)
    plan = planned(guard, first, big.test, 0, 1)
    assert standing(guard.open(plan)) == "confirmatory"
    X, rng = big.test.X, np.random.default_rng(0)
    for week in range(2, 5):
        X = np.column_stack([2 * X, rng.normal(size=len(X))])
        again = guard.register("test", changed(big.test, X=X))
        assert len(guard.looks(again)) == 1, week
    assert guard.verify()


@legitimate(rows=[8])
def test_an_extended_test(big):
    """Sixty queries more than the last revision: those that nobody looked at are a confirmatory test of their own."""
    guard = big.guard()
    old = guard.register("test", big.test)
    guard.open(planned(guard, old, big.test, 0, 1))
    guard.register("test", changed(big.test, X=big.test.X[:, :4]))
    larger = stacked(big.test, big.dev.take(big.dev.qid <= 140))
    new = guard.register("test 2", larger, supersedes="test")
    assert len(guard.looks(new)) == 1
    plan = planned(guard, new, larger, 0, 2, fresh=True)
    result = guard.open(plan)
    assert standing(result) == "confirmatory"
    assert {one.n_queries for one in result.evaluations.values()} == {60}


@legitimate(rows=[8])
def test_a_relabelled_test(big):
    """Labels were corrected before anybody looked: the successor is confirmatory."""
    guard = big.guard()
    old = guard.register("test", big.test)
    y = big.test.y.copy()
    y[:30] = (y[:30] + 1) % 3
    data = changed(big.test, y=y)
    new = guard.register("test", data, supersedes=old)
    assert standing(guard.open(planned(guard, new, data, 0, 1))) == "confirmatory"


@legitimate(rows=[10])
def test_several_projects_on_one_public_benchmark(big):
    """Each has its first look, with adjusted p-values, and reads who looked before."""
    results = {}
    for project, weight in (("ours", 1), ("theirs", 2), ("third", 3)):
        guard = big.guard(project, who=f"{project}@lab")
        results[project] = guard.open(planned(guard, guard.register("public", big.test), big.test, 0, weight))
    assert [standing(one) for one in results.values()] == [
        "confirmatory",
        "first look of this project",
        "first look of this project",
    ]
    assert results["third"].table["p_adjusted"].notna().all()
    assert "theirs@lab" in " ".join(results["third"].notes)


@legitimate(rows=[5])
def test_merging_the_ledgers_of_two_clones(big):
    """One opened its test, the other registered another; nothing is lost, and merging again adds nothing."""
    here, there = big.guard(), big.guard(ledger=big.ledger.with_name("clone"))
    opened = here.open(planned(here, here.register("test", big.test), big.test, 0, 1))
    there.register("other", big.dev)
    assert here.merge(there.ledger) > 0
    assert here.merge(there.ledger) == 0
    assert len(here.looks("test")) == 1
    assert here.verify()
    again = big.guard()
    again.register("test", big.test)
    assert standing(opened) == "confirmatory"
    assert again.status(big.dev).refused


@legitimate(rows=[5])
def test_a_ledger_that_tools_formatted(big):
    """A checkout with CRLF line ends, and a formatter that indents JSON: the entries are the same."""
    guard = big.guard()
    guard.open(planned(guard, guard.register("test", big.test), big.test, 0, 1))
    for number, file in enumerate(sorted(big.ledger.glob("*.json"))):
        text = json.dumps(json.loads(file.read_text()), indent=4, sort_keys=True) if number % 2 else file.read_text()
        file.write_bytes(text.replace("\n", "\r\n").encode())
    forget()
    assert big.guard().verify()
    assert len(big.guard().looks("test")) == 1


@pytest.mark.further
@legitimate(rows=[5])
def test_ci_that_may_only_read_and_evaluates_dev(big):
    """Refusal works there, and development data passes."""
    big.guard().register("test", big.test)
    for folder in (big.ledger, *(one for one in big.ledger.iterdir() if one.is_dir())):
        folder.chmod(0o555)
    program = """
import rankeval as rk
whole = rk.datasets.make_ranking(180, 12, 5, rng=11)
dev = whole.take(whole.qid > 80)
print(rk.evaluate(dev.y, dev.X[:, 0], qid=dev.qid, measures="AP").n_queries)
print(rk.Guard("project").status(dev).refused, rk.Guard("project").verify())
"""
    done = without_rights_to_write(program, CI="true")
    assert done.stdout.split() == ["100", "False", "True"], done.stderr


@pytest.mark.parametrize("way", ["a lasting store", "the run commits it"])
@legitimate(rows=[5])
def test_an_opening_in_ci(big, way):
    """RANKEVAL_LEDGER names a place outside the checkout, or the job says that it commits the ledger."""
    (big.folder / "checkout" / ".git").mkdir(parents=True)
    big.monkeypatch.chdir(big.folder / "checkout")
    big.monkeypatch.setenv("CI", "true")
    if way == "the run commits it":
        big.monkeypatch.delenv("RANKEVAL_LEDGER")
        big.monkeypatch.setenv("RANKEVAL_LEDGER_COMMITTED", "1")
    forget()
    guard = rk.Guard("project")
    assert standing(guard.open(planned(guard, guard.register("test", big.test), big.test, 0, 1))) == "confirmatory"


@legitimate()
def test_a_ledger_switched_off_on_purpose(big):
    """RANKEVAL_LEDGER=off is a decision, and needs no warning."""
    big.guard().register("test", big.test)
    big.monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    rk.evaluate(big.test.y, big.test.X[:, 0], qid=big.test.qid)
    rk.QueryRanker(Ridge()).fit(big.test.X, big.test.y, qid=big.test.qid)


@pytest.mark.further
@legitimate()
def test_opening_a_plan_in_another_process(big):
    """Frozen here, opened there by its id, and its scores are then free here."""
    guard = big.guard()
    plan = planned(guard, guard.register("test", big.test), big.test, 0, 1)
    program = f"""
import rankeval as rk
whole = rk.datasets.make_ranking(180, 12, 5, rng=11)
test = whole.take(whole.qid <= 80)
guard = rk.Guard("project")
guard.register("test", test)
print(guard.open({plan.id!r}).standing)
"""
    command = [sys.executable, "-W", "error::rankeval.errors.RankevalWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "confirmatory\n"
    rk.evaluate(big.test.y, big.test.X[:, 0] + big.test.X[:, 1], qid=big.test.qid)


@legitimate(rows=[8])
def test_a_benchmark_over_folds(big):
    """Unfitted systems, five folds, one look; what it opened may be scored again."""
    guard = big.guard()
    registered = guard.register("test", big.test)
    plan = guard.freeze(
        registered,
        systems={"weak": Ridge(1e4), "strong": Ridge(0.1)},
        folds=rk.QueryKFold(5),
        baseline="weak",
        n_resamples=199,
    )
    result = guard.open(plan)
    assert standing(result) == "confirmatory"
    assert {one.n_queries for one in result.evaluations.values()} == {80}
    assert len(guard.looks("test")) == 1


@legitimate(rows=[8])
def test_tuning_nested_in_a_benchmark_over_folds(big):
    """Each fold chooses its parameters within its training part."""
    guard = big.guard()
    tuned = GridSearchCV(rk.QueryRanker(Ridge()), {"estimator__alpha": [0.1, 1e4]}, cv=rk.QueryKFold(3))
    plan = guard.freeze(
        guard.register("test", big.test),
        systems={"plain": Ridge(1e4), "tuned": tuned},
        folds=rk.QueryKFold(4),
        baseline="plain",
        n_resamples=199,
    )
    assert standing(guard.open(plan)) == "confirmatory"


@pytest.mark.parametrize("kind", ["a model", "the mean of three seeds"])
@legitimate(rows=[8])
def test_one_final_model(big, kind):
    """A model card needs one mean with its interval: one look, however many seeds are averaged."""
    guard, model = big.guard(), Ridge().fit(big.dev.X, big.dev.y)
    if kind == "the mean of three seeds":
        noise = np.random.default_rng(0).normal(size=(3, len(big.test)))
        model = (model.predict(big.test.X) + 0.1 * noise).mean(axis=0)
    result = guard.open(guard.freeze(guard.register("test", big.test), systems={"final": model}))
    row = result.means.iloc[0]
    assert row["ci_low"] < row["mean"] < row["ci_high"]
    assert standing(result) == "confirmatory"
    assert len(guard.looks("test")) == 1


@legitimate(rows=[9])
def test_a_gate_that_accepts(big):
    """A better candidate passes, a worse one does not, and each costs one of the budget."""
    data, guard = big.test, big.guard()
    gate = guard.gate(guard.register("test", data), baseline=data.X[:, 0], budget=5)
    better, worse = gate.decide("better", data.y + 0.1 * data.X[:, 0]), gate.decide("worse", -data.y)
    assert (better.accepted, better.remaining) == (True, 4)
    assert (worse.accepted, worse.remaining) == (False, 3)
