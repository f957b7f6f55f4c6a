"""A look into opened results adds no look, opens nothing else, and passes for no ranking."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.contamination import forget
from rankeval.errors import GuardRefusal, InvalidInput
from rankeval.guard import Guard


@pytest.fixture
def guard(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger.db"))
    forget()
    yield Guard("project")
    forget()


@pytest.fixture
def data():
    return rk.datasets.make_ranking(50, 10, 4, rng=3)


@pytest.fixture
def opened(guard, data):
    test = guard.register("test", data.X, data.y, qid=data.qid)
    systems = {"s0": data.X[:, 0], "s1": data.X[:, 0] + data.X[:, 1]}
    return test, guard.open(guard.freeze(test, systems=systems, baseline="s0", measure="nDCG@10"))


def test_subsets_of_opened_evaluations_are_compared_and_are_no_look(guard, opened):
    test, result = opened
    before = guard.head, len(guard.looks(test))
    parts = {name: each.subset(each.queries[:20]) for name, each in result.evaluations.items()}
    compared = rk.compare(parts, baseline="s0")
    assert compared.table["n_queries"].tolist() == [20]
    assert result.evaluations["s1"].worst(3).shape == (3, 5)
    assert result.evaluations["s1"].slices("relevant")["n_queries"].sum() == 50
    assert (guard.head, len(guard.looks(test))) == before


def test_a_subset_is_no_system_of_a_plan(guard, opened):
    """A plan takes rankings, so scores of an evaluation cannot pass for an output that was opened."""
    test, result = opened
    part = result.evaluations["s0"].subset(result.evaluations["s0"].queries[:20])
    for given in (part, result.evaluations["s0"]):
        with pytest.raises(InvalidInput):
            guard.freeze(test, systems={"s0": given, "s1": given}, baseline="s0", measure="nDCG@10")


def test_the_queries_of_a_subset_stay_registered_content(opened, data):
    """Their opened ranking scores as the subset does, and no ranker is fitted on them."""
    _, result = opened
    asked = result.evaluations["s1"].queries[:20]
    rows = np.isin(data.qid, asked)
    alone = rk.evaluate(data.y[rows], (data.X[:, 0] + data.X[:, 1])[rows], qid=data.qid[rows], measures="nDCG@10")
    part = result.evaluations["s1"].subset(asked)
    assert part.scores.tolist() == alone.scores.tolist()
    assert part.judgments_digest == alone.judgments_digest
    with pytest.raises(GuardRefusal):
        rk.cross_validate(Ridge(), data.X[rows], data.y[rows], qid=data.qid[rows], measures="nDCG@10", cv=2)
