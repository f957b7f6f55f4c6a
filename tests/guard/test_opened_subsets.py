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


@pytest.fixture
def judged():
    """60 queries with 12 documents each: ids, documents, labels, and the scores of two systems and of a third."""
    rng = np.random.default_rng(0)
    qid, docid = np.repeat([f"q{i}" for i in range(60)], 12), np.arange(720).astype(str)
    return qid, docid, rng.integers(0, 4, 720), rng.random((3, 720))


@pytest.mark.parametrize("registered", ["judgments", "rows"])
def test_an_opened_ranking_is_known_as_rows_and_as_a_run(guard, judged, registered):
    """The same documents in the same order: whoever opened a run may evaluate its rows again, and the other way."""
    qid, docid, y, scores = judged
    qrels, runs = rk.Qrels(qid, docid, y), [rk.Run(qid, docid, score) for score in scores]
    if registered == "judgments":
        test, systems = guard.register("test", qrels=qrels), {"a": runs[0], "b": runs[1]}
    else:
        test, systems = guard.register("test", y=y, qid=qid, docid=docid), {"a": scores[0], "b": scores[1]}
    opened = guard.open(guard.freeze(test, systems=systems, baseline="a", measure="nDCG@10")).evaluations
    for place, name in enumerate("ab"):
        as_rows = rk.evaluate(y, scores[place], qid=qid, docid=docid, measures="nDCG@10")
        as_run = rk.evaluate(qrels, runs[place], measures="nDCG@10")
        assert as_rows.scores.ravel().tolist() == opened[name].scores.ravel().tolist()
        assert as_run.scores.ravel().tolist() == opened[name].scores.ravel().tolist()
    order = np.random.default_rng(1).permutation(720)
    again = rk.evaluate(y[order], 2 * scores[0][order], qid=qid[order], docid=docid[order], measures="nDCG@10")
    assert sorted(again.scores.ravel()) == sorted(opened["a"].scores.ravel())
    half = np.isin(qid, qid[:360])
    assert rk.evaluate(y[half], scores[0][half], qid=qid[half], docid=docid[half], measures="nDCG@10").n_queries == 30
    one_swap, pair = scores[0].copy(), 708 + np.array([np.argmin(y[708:]), np.argmax(y[708:])])  # of the last query
    one_swap[pair] = one_swap[pair[::-1]]
    for other in (scores[2], one_swap):
        with pytest.raises(GuardRefusal):
            rk.evaluate(y, other, qid=qid, docid=docid, measures="nDCG@10")
        with pytest.raises(GuardRefusal):
            rk.evaluate(qrels, rk.Run(qid, docid, other), measures="nDCG@10")
    assert len(guard.looks(test)) == 1, "that of b; the first baseline is free"


def test_the_documents_that_a_run_found_beside_the_judged_ones_are_part_of_it(guard, judged):
    """Rows of all that the run retrieved are known; those of the judged documents alone are another list."""
    qid, docid, y, scores = judged
    all_qid, all_docid = np.concatenate([qid, qid]), np.concatenate([docid, [f"n{i}" for i in range(720)]])
    all_y, score = np.concatenate([y, np.zeros(720, int)]), np.concatenate([scores[0], scores[2]])
    test = guard.register("test", qrels=rk.Qrels(qid, docid, y))
    run = rk.Run(all_qid, all_docid, score)
    guard.open(guard.freeze(test, systems={"a": run}, measure="nDCG@10"))
    assert rk.evaluate(all_y, score, qid=all_qid, docid=all_docid, measures="nDCG@10").n_queries == 60
    with pytest.raises(GuardRefusal):
        rk.evaluate(y, scores[0], qid=qid, docid=docid, measures="nDCG@10")
