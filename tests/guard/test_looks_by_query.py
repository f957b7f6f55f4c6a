"""Looks are counted query by query: what was opened in parts is no look on the whole, and luck is told where it was."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from guard.conftest import Team, standing

import rankeval as rk
from rankeval.guard import Guard
from rankeval.guard.journal import Records
from rankeval.guard.standings import History

pytestmark = pytest.mark.filterwarnings("ignore::rankeval.errors.RankevalWarning")
KINDS = ("features", "labels")


@pytest.fixture
def halves(team, data):
    """Open the first sixty queries, then register all hundred, and open their rest as fresh."""
    part = data.qid <= 60
    first = team.guard.register("first", data.X[part], data.y[part], qid=data.qid[part])
    team.opened(first, 1)
    whole = team.guard.register("whole", data, supersedes="first")
    assert standing(team.opened(whole, 1, fresh=True)) == "confirmatory"
    return whole


def test_rankings_opened_part_by_part_are_secondary_on_all(team, halves):
    before = len(team.guard.looks(halves))
    again = team.opened(halves, 1)
    assert (standing(again), len(team.guard.looks(halves))) == ("secondary", before)
    assert before == 2


def test_one_query_ranked_otherwise_is_a_look(team, halves, data):
    other = data.X[:, 0] + data.X[:, 1]
    other[data.qid == 7] *= -1
    plan = team.guard.freeze(halves, systems={"s0": data.X[:, 0], "other": other}, baseline="s0", n_resamples=99)
    assert standing(team.guard.open(plan)) == "exploratory"
    assert team.guard.looks(halves)["system"].tolist()[2:] == ["other"]


def test_the_baseline_is_free_on_queries_that_were_added(team, data):
    part = data.qid <= 60
    team.opened(team.guard.register("first", data.X[part], data.y[part], qid=data.qid[part]), 1)
    whole = team.guard.register("whole", data, supersedes="first")
    team.opened(whole, 2)
    assert team.guard.looks(whole)["system"].tolist() == ["s1", "s2"]


def test_another_baseline_on_opened_queries_is_a_look(team, data):
    part = data.qid <= 60
    team.opened(team.guard.register("first", data.X[part], data.y[part], qid=data.qid[part]), 1)
    whole = team.guard.register("whole", data, supersedes="first")
    systems = {"new": data.X[:, 2], "s1": data.X[:, 0] + data.X[:, 1]}
    team.guard.open(team.guard.freeze(whole, systems=systems, baseline="new", n_resamples=99))
    assert team.guard.looks(whole)["system"].tolist()[1:] == ["new", "s1"]


def test_the_luck_of_looks_before_an_extension_is_told_on_their_queries(team, data):
    """Two systems that are nearly the same do not hide the spread of six that were opened before."""
    part = data.qid <= 50
    first = team.guard.register("first", data.X[part], data.y[part], qid=data.qid[part])
    random = np.random.default_rng(0).normal(size=(len(data), 6))
    systems = {f"r{k}": random[part, k] for k in range(6)}
    team.guard.open(team.guard.freeze(first, systems=systems, n_resamples=99))
    whole = team.guard.register("whole", data, supersedes="first")
    alike = data.X[:, 0].copy()
    alike[data.qid == 3] *= -1
    plan = team.guard.freeze(whole, systems={"a": data.X[:, 0], "b": alike}, n_resamples=99)
    (note,) = (one for one in team.guard.open(plan).notes if one.startswith("exploratory"))
    found = re.search(r"best of 8 .* by about (\d\.\d+) in nDCG@10 on the 50 of 100 queries with scores of all", note)
    assert found is not None, note
    assert float(found.group(1)) > 0.01


def test_luck_that_cannot_be_estimated_is_not_given_as_a_number(team, data):
    part = data.qid <= 50
    team.opened(team.guard.register("first", data.X[part], data.y[part], qid=data.qid[part]), 1, 2, measure="AP")
    whole = team.guard.register("whole", data, supersedes="first")
    (note,) = (one for one in team.opened(whole, 3).notes if one.startswith("exploratory"))
    assert "by an amount that cannot be estimated" in note
    assert "by about" not in note


def test_a_system_is_held_against_two_hundred_openings_in_no_time(ledger):
    data = rk.datasets.make_ranking(1000, 5, 3, rng=0)
    team = Team(Guard("ours", ledger=ledger))
    test = team.guard.register("test", data)
    team.opened(test, 1)
    freeze, opened = (one.body for one in team.guard._ledger.read().entries if one.kind in ("freeze", "open"))
    kept, rng = team.guard._ledger.load(opened["outputs"]), np.random.default_rng(0)
    notes = []
    for number in range(200):
        about = {"plan": f"{number:020}"}
        systems = {"s0": "0" * 64, f"s{number}": f"{number:064}"}
        hashes = {f"1.outputs.{kind}": rng.integers(2**63, size=1000, dtype=np.uint64) for kind in KINDS}
        outputs = team.guard._ledger.keep("signatures", kept | hashes)
        notes.append(("freeze", freeze | about | {"content": freeze["content"] | {"systems": list(systems.items())}}))
        notes.append(("open", opened | about | {"systems": systems, "looks": [f"s{number}"], "outputs": outputs}))
    team.guard._ledger.append("ours", *notes)
    plan = team.frozen(test, 2)
    snapshot = team.guard._ledger.read()
    start = time.process_time()
    records = Records("ours", team.guard._ledger, snapshot)
    history = History(records.standings, records.standings.frozen[plan.id][0].body)
    outputs = {name: {"features": rng.integers(2**63, size=1000, dtype=np.uint64)} for name in plan.names}
    assert history.new_looks(dict(plan.systems), outputs) == ("s2",)
    assert time.process_time() - start < 1
