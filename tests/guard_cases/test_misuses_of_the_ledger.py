"""Misuse of the ledger and of the machine around it: what is lost, edited or out of reach."""

import json
import shutil
import subprocess
import sys

import pytest
from guard_cases.situations import (
    FAILS,
    FOUND,
    REFUSED,
    WARNED,
    copied,
    entries,
    misuse,
    planned,
    standing,
    without_rights_to_write,
)

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import ConfigError, GuardRefusal, LedgerError, RankevalWarning
from rankeval.experiment import run_experiment

EXPERIMENT = {
    "name": "small",
    "data": {"loader": "digits", "arguments": {"n_queries": 60, "n_candidates": 15}},
    "rankers": {
        name: {"estimator": "sklearn.linear_model.Ridge", "params": {"alpha": alpha}}
        for name, alpha in (("weak", 1000.0), ("strong", 0.1))
    },
    "cv": {"n_splits": 2},
    "tracking": "off",
}


def edit_who(ledger):
    edit(entries(ledger, "open")[0], who="nobody@nowhere")


def delete_the_opening(ledger):
    entries(ledger, "open")[0].unlink()


def turn_the_opening_into_a_note(ledger):
    edit(entries(ledger, "open")[0], kind="note")


def edit(file, **fields):
    file.write_text(json.dumps(json.loads(file.read_text()) | fields, indent=1))


@pytest.mark.parametrize("tamper", [edit_who, delete_the_opening, turn_the_opening_into_a_note])
@misuse(FOUND, rows=[4])
def test_a_ledger_that_was_edited(guarded, tamper):
    """Whoever reads it for a decision finds out: looks, freeze, open, run, and a score."""
    guarded.look("test", guarded.test, 0, 1)
    guard = guarded.guard()
    registered = guard.register("test", guarded.test)
    plan = planned(guard, registered, guarded.test, 0, 2)
    tamper(guarded.ledger)
    forget()
    for decide in (
        lambda: guard.looks("test"),
        lambda: planned(guard, registered, guarded.test, 0, 3),
        lambda: guard.open(plan),
        lambda: guard.register("other", guarded.dev),
        lambda: run_experiment({**EXPERIMENT, "output": {"directory": str(guarded.folder / "out")}}),
        lambda: rk.evaluate(guarded.test.y, guarded.test.X[:, 3], qid=guarded.test.qid),
    ):
        with pytest.raises(LedgerError, match=r"altered|missing"):
            decide()
    assert not guarded.guard().verify()


@pytest.mark.parametrize(
    "way", ["rolled back", *(pytest.param(way, marks=pytest.mark.rest) for way in ("emptied", "written anew"))]
)
@misuse(FOUND, rows=[4])
def test_a_ledger_that_was_rolled_back(guarded, way):
    """What is left is whole. This process still knows, and in a new one the head in a report tells, or a clone."""
    before = copied(guarded.ledger, "before")
    report = guarded.folder / "report.json"
    report.write_text(guarded.look("test", guarded.test, 0, 1).to_json())
    clone, head = copied(guarded.ledger, "clone"), guarded.guard().head
    shutil.rmtree(guarded.ledger)
    if way == "rolled back":
        before.rename(guarded.ledger)
    elif way == "written anew":
        in_new_process("guard.register('test', rk.datasets.make_ranking(60, 12, 5, rng=12))")
    with pytest.raises(LedgerError, match=r"(lost entries|gone).*" if way != "emptied" else r"."):
        guarded.guard().looks("test")
    found = in_new_process(f"""
print(guard.verify(), guard.verify({head!r}), guard.verify({str(report)!r}), guard.verify(other={str(clone)!r}))
try:
    guard.verify({head[:12]!r}, strict=True)
except rk.errors.LedgerError as error:
    print(error.problem)
""")
    assert found.startswith("True False False False")
    assert head[:12] in found, "every report names the head of the ledger"


def in_new_process(program):
    """Run something with a guard that knows nothing but the ledger; return what it prints."""
    program = f"import rankeval as rk\nguard = rk.Guard('project')\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@misuse(REFUSED, rows=[4])
def test_a_ledger_switched_off_first_and_on_later(guarded):
    """A look that was taken while it was off is not on record; from then on, all is refused again, in one process."""
    data = guarded.test
    guarded.monkeypatch.setenv("RANKEVAL_LEDGER", "off")
    rk.evaluate(data.y, data.X[:, 2], qid=data.qid)
    with pytest.raises(LedgerError, match="switched off"):
        rk.Guard("project")
    guarded.monkeypatch.setenv("RANKEVAL_LEDGER", str(guarded.ledger))
    with pytest.raises(GuardRefusal, match="'test'"):
        rk.evaluate(data.y, data.X[:, 2], qid=data.qid)


@pytest.mark.parametrize("way", ["it never was", "it is gone"])
@misuse(WARNED, rows=[5])
def test_a_configured_ledger_that_is_not_there(guarded, way):
    """A misspelt path guards nothing, which is said; of one that is gone the last known state counts."""
    if way == "it never was":
        guarded.monkeypatch.setenv("RANKEVAL_LEDGER", str(guarded.folder / "rankeval-legder"))
        with pytest.warns(RankevalWarning, match=r"rankeval-legder.*RANKEVAL_LEDGER.*guards nothing"):
            rk.evaluate(guarded.dev.y, guarded.dev.X[:, 0], qid=guarded.dev.qid)
        return
    guard = guarded.guard()
    plan = planned(guard, guard.register("test", guarded.test), guarded.test, 0, 1)
    assert guard.status(guarded.test).refused
    rk.evaluate(guarded.dev.y, guarded.dev.X[:, 0], qid=guarded.dev.qid)
    shutil.rmtree(guarded.ledger)
    with pytest.warns(RankevalWarning, match="gone.*last known state"), pytest.raises(GuardRefusal):
        rk.evaluate(guarded.test.y, guarded.test.X[:, 2], qid=guarded.test.qid)
    with pytest.raises(LedgerError):
        guard.open(plan)


@misuse(FAILS, rows=[5])
def test_an_opening_in_ci_with_the_ledger_in_the_checkout(desk):
    """The checkout is thrown away, and the look with it."""
    (desk.folder / ".git").mkdir()
    desk.monkeypatch.delenv("RANKEVAL_LEDGER")
    desk.monkeypatch.setenv("CI", "true")
    forget()
    guard = rk.Guard("project")
    plan = planned(guard, guard.register("test", desk.test), desk.test, 0, 1)
    with pytest.raises(LedgerError, match=r"CI.*RANKEVAL_LEDGER.*RANKEVAL_LEDGER_COMMITTED"):
        guard.open(plan)
    assert len(guard.looks("test")) == 0


@misuse(FAILS, rows=[7])
def test_a_ledger_that_can_only_be_read(guarded):
    """Test content is refused all the same; freeze and open fail before anything is scored."""
    guard = guarded.guard()
    plan = planned(guard, guard.register("test", guarded.test), guarded.test, 0, 1)
    for folder in (guarded.ledger, *(one for one in guarded.ledger.iterdir() if one.is_dir())):
        folder.chmod(0o555)
    program = f"""
import numpy as np, rankeval as rk
from rankeval.errors import GuardRefusal, LedgerError
whole = rk.datasets.make_ranking(180, 12, 5, rng=11)
test = whole.take(whole.qid <= 40)
try:
    rk.evaluate(test.y, test.X[:, 2], qid=test.qid)
except GuardRefusal:
    print("refused")
guard = rk.Guard("project")
registered = guard.register("test", test)
class Model:
    def predict(self, X):
        print("scored")
        return X[:, 0]
for act in (lambda: guard.freeze(registered, systems={{"a": Model(), "b": Model()}}), lambda: guard.open({plan.id!r})):
    try:
        act()
    except LedgerError as error:
        print("fails:", "cannot be written" in str(error))
"""
    done = without_rights_to_write(program)
    assert done.stdout.split("\n") == ["refused", "fails: True", "fails: True", ""], done.stderr


@misuse(FAILS, rows=[7])
def test_a_misspelt_host_in_an_experiment(desk):
    """It is found before data is loaded: nothing is registered, and no look is spent."""
    with pytest.raises(ConfigError, match="mlfow"):
        run_experiment({**EXPERIMENT, "tracking": {"host": "mlfow"}})
    assert not desk.ledger.exists()


@misuse(REFUSED, rows=[6, 7])
def test_an_experiment_on_registered_content(desk):
    """Its dev part is a test of somebody else: it is refused, and leaves nothing in the ledger."""
    data = rk.datasets.load_digits_retrieval(n_queries=60, n_candidates=15)
    desk.guard("theirs").register("digits", data)
    before = sorted(desk.ledger.glob("*.json"))
    with pytest.raises(GuardRefusal, match="'digits' of project 'theirs'"):
        run_experiment({**EXPERIMENT, "output": {"directory": str(desk.folder / "out")}})
    assert sorted(desk.ledger.glob("*.json")) == before


@misuse(FOUND, rows=[4, 5])
def test_a_signature_that_was_not_committed(guarded):
    """Without it nobody knows what is registered: scoring fails, and names the file."""
    clone = copied(guarded.ledger, "clone")
    missing = next((clone / "signatures").iterdir())
    missing.unlink()
    guarded.monkeypatch.setenv("RANKEVAL_LEDGER", str(clone))
    forget()
    with pytest.raises(LedgerError, match=f"lacks its file signatures/{missing.stem}"):
        rk.evaluate(guarded.dev.y, guarded.dev.X[:, 0], qid=guarded.dev.qid)
    assert standing(guarded.look("test", guarded.test, 0, 1)) == "confirmatory"
