"""How often work is done: names parsed, rows grouped, queries scored, estimators cloned, rooms entered."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.evaluation.result import aggregates

ROOT = Path(__file__).parents[1]
MEASURES = ["nDCG@10", "ndcg_cut_5", "AP"]


def counted(monkeypatch, module, name):
    """Count the calls of a function, in every module that imported it."""
    calls = []
    original = getattr(sys.modules[module], name)

    def count(*args, **options):
        calls.append(args)
        return original(*args, **options)

    for known in list(sys.modules.values()):
        if getattr(known, "__name__", "").startswith("rankeval"):
            for alias in [alias for alias, value in vars(known).items() if value is original]:
                monkeypatch.setattr(known, alias, count)
    return calls


@pytest.fixture
def calls(monkeypatch):
    """Return the calls of each function that is expensive, or a sign of work done twice."""
    import_module("rankeval.model_selection.validation")  # imported now, so that its names are replaced too

    return {
        "parses": counted(monkeypatch, "rankeval.measures.names", "measures"),
        "groupings": counted(monkeypatch, "rankeval.join.flat", "group_rows"),
        "evaluations": counted(monkeypatch, "rankeval.evaluation.scoring", "score"),
        "clones": counted(monkeypatch, "rankeval.model_selection.boosters", "cloned"),
    }


def numbers(calls):
    return {name: len(found) for name, found in calls.items()}


@pytest.fixture
def data():
    return rk.datasets.make_ranking(30, 8, 4, rng=0)


def test_evaluate_parses_groups_and_scores_once(calls, data):
    rk.evaluate(data.y, data.X[:, 0], qid=data.qid, measures=MEASURES)
    assert numbers(calls) == {"parses": 1, "groupings": 1, "evaluations": 1, "clones": 0}


@pytest.mark.parametrize("n_systems", [1, 2])
def test_cross_validate_groups_once_and_scores_each_fold_and_the_whole(calls, data, n_systems):
    """Clones of a fold, as in scikit-learn: the ranker, the estimator in it, and the estimator that it fits.

    Two more before the folds: the ranker and the estimator that were given, unfitted.
    """
    systems = {f"ridge {number}": Ridge(alpha=number + 1) for number in range(n_systems)}
    rk.cross_validate(systems, data, measures=MEASURES, cv=3)
    wanted = {"parses": 1, "groupings": 1, "evaluations": 4 * n_systems, "clones": (2 + 3 * 3) * n_systems}
    assert numbers(calls) == wanted


def test_one_grouping_gives_the_numbers_of_each_fold_on_its_own(data):
    """Rows of a query apart, weights, docids, a fold without a relevant document: as if each was evaluated alone."""
    rng = np.random.default_rng(3)
    data = data.take(rng.permutation(len(data)))
    y = np.where(data.qid % 7 == 0, 0, data.y)
    weight = (data.qid % 3 + 1.0) / 2
    docid = np.array([f"d{row}" for row in range(len(y))])
    for rules in ("rankeval", "trec_eval-9.0.8", rk.Convention("one", no_relevant="one", ties="best")):
        asked = {"measures": ["nDCG@5", "gm_AP", "NumRel"], "convention": rules}
        found = rk.cross_validate(
            Ridge(), np.round(data.X), y, qid=data.qid, docid=docid, query_weight=weight, cv=3, **asked
        )
        whole = rk.evaluate(y, found.predictions, qid=data.qid, docid=docid, query_weight=weight, **asked)
        assert found.evaluation.scores.tolist() == whole.scores.tolist()
        assert found.evaluation.ranking_digest == whole.ranking_digest
        assert found.evaluation.judgments_digest == whole.judgments_digest
        for fold, (_, test) in enumerate(rk.QueryKFold(3).split(data.X, y, qid=data.qid)):
            alone = rk.evaluate(
                y[test],
                found.predictions[test],
                qid=data.qid[test],
                docid=docid[test],
                query_weight=weight[test],
                **asked,
            )
            for name, value in aggregates(alone).items():
                assert found.folds.loc[fold, name] == value


def test_a_scorer_parses_when_it_is_made_and_not_when_it_is_called(calls, data):
    scorer = rk.make_scorer(MEASURES)
    ridge = Ridge().fit(data.X, data.y)
    for _ in range(3):
        scorer(ridge, data.X, data.y, qid=data.qid)
    assert numbers(calls) == {"parses": 1, "groupings": 3, "evaluations": 3, "clones": 0}


def test_early_stopping_groups_once_for_all_iterations(calls, data):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=1, verbose=-1, n_jobs=1)
    rk.QueryRanker(booster, early_stopping_rounds=5).fit(data.X, data.y, qid=data.qid)
    assert len(calls["parses"]) == len(calls["groupings"]) == 1
    assert len(calls["evaluations"]) >= 5


WALK = """
import sys
from importlib import import_module
from pathlib import Path
import rankeval as rk
folder = Path(sys.argv[1])
(folder / "qrels").write_text("".join(f"{q} 0 D{d} {d % 3}\\n" for q in range(301, 311) for d in range(12)))
(folder / "run").write_text("".join(f"{q} Q0 D{d} 0 {9 - d // 2} tag\\n" for q in range(301, 311) for d in (5, 3, 40)))
rk.evaluate, import_module("rankeval.join.collections")
def is_wrapper(name):  # it passes calls on, whatever floor they are on
    return name == "rankeval._arguments"
def walk(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("rankeval.") and frame.f_code.co_name != "<module>" and not is_wrapper(name):
        caller = frame.f_back
        while caller and (not (of := caller.f_globals.get("__name__", "")).startswith("rankeval.") or is_wrapper(of)):
            caller = caller.f_back
        steps.append((caller.f_globals["__name__"] if caller else name, name))
steps = []
sys.setprofile(walk)
rk.evaluate(folder / "qrels", folder / "run", measures=["nDCG@10", "AP"])
sys.setprofile(None)
print("\\n".join(" ".join(step) for step in steps))
"""


def floors():
    """Return the number of each room's floor, the lowest first, by the contract of pyproject.toml."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"].startswith("The floors"))
    return {room: number for number, layer in enumerate(reversed(layers)) for room in layer.split(" | ")}


@pytest.mark.worth("the way of a reader of the code from a file to its numbers")
def test_the_walk_from_a_trec_file_to_its_numbers(tmp_path):
    """Few modules take part, and every call goes down.

    Each of these does a part of the work. No module is entered that the call has no use for: no weights, no
    fingerprints without a ledger. The 36 are 4 of reading, 4 that ask whether a first line names columns or another
    format has written it, whether the ranking is a search, the columns and whether they are plausible, 4 of
    collections, 9 of the join, 3 of names, 2 of kernels, 5 of evaluation, the check of choices, the tables of
    refusals, and one look for a ledger.
    """
    done = subprocess.run([sys.executable, "-c", WALK, tmp_path], capture_output=True, text=True, check=True)
    steps = [line.split() for line in done.stdout.splitlines()]
    floor = {module: floors()[module.split(".")[1]] for step in steps for module in step}
    climbs = Counter(step for step in map(tuple, steps) if floor[step[0]] < floor[step[1]])
    assert not climbs, climbs
    modules = {called for _, called in steps}
    assert len(modules) <= 36, sorted(modules)
