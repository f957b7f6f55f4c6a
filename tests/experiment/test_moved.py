"""The rows that moved in the query that lost most, against what `rk.evaluate` says of each row put back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankeval as rk
from rankeval.collection.data import RankingData
from rankeval.experiment.final_look import SHOWN, moved_rows


def of(y, old, new, qid, *, measure="nDCG@10", docid=None, convention="rankeval"):
    options = {"qid": qid, "measures": [measure], "convention": convention}
    scores = {"old": np.asarray(old, dtype=float), "new": np.asarray(new, dtype=float)}
    evaluations = {name: rk.evaluate(y, one, **options, name=name) for name, one in scores.items()}
    compared = rk.compare(evaluations, baseline="old")
    test = RankingData(np.zeros((len(y), 1)), y, qid, docid=docid)
    return moved_rows(compared, evaluations, scores, test), evaluations


@given(
    seed=st.integers(0, 10_000),
    measure=st.sampled_from(["nDCG@10", "AP", "RR", "P@5", "nDCG@3"]),
    convention=st.sampled_from(["rankeval", "trec_eval-10"]),
)
def test_an_effect_is_the_score_less_that_with_the_row_alone_back(seed, measure, convention):
    """Without ties, by the definition: take the row out of the new order and put it where the old one had it."""
    rng = np.random.default_rng(seed)
    qid, y = np.repeat(["a", "b", "c"], 12), rng.integers(0, 3, 36)
    y[::12] = 1
    old, new = rng.permutation(36), rng.permutation(36)
    moved, evaluations = of(y, old, new, qid, measure=measure, convention=convention)
    scores = {name: ev.per_query[measure] for name, ev in evaluations.items()}
    gains = scores["new"] - scores["old"]
    if moved is None:
        assert gains.min() > -1e-12
        return
    assert (moved.before, moved.after) == (scores["old"][moved.query], scores["new"][moved.query])
    assert moved.after - moved.before == gains.min()
    rows = np.flatnonzero(qid == moved.query)
    order = {name: list(rows[np.argsort(-one[rows])]) for name, one in (("old", old), ("new", new))}
    effects = {}
    for row in rows:
        back = [one for one in order["new"] if one != row]
        back.insert(order["old"].index(row), row)
        put = rk.evaluate(y[back], -np.arange(12), qid=["q"] * 12, measures=[measure], convention=convention)
        effects[str(row)] = moved.after - put.per_query[measure].iloc[0]
    shown = moved.table.set_index("row")
    assert list(shown.columns) == ["label", "rank by old", "rank by new", "moved", f"effect on {measure}"]
    for row, line in shown.iterrows():
        assert float(line[f"effect on {measure}"]) == pytest.approx(effects[row], abs=6e-5)
        assert int(line["rank by old"]) == order["old"].index(int(row)) + 1
        assert int(line["rank by new"]) == order["new"].index(int(row)) + 1
        assert float(line["label"]) == y[int(row)]
        way, by = line["moved"].split()
        assert int(by) * (1 if way == "up" else -1) == int(line["rank by old"]) - int(line["rank by new"])
    sizes = np.abs(shown[f"effect on {measure}"].astype(float).to_numpy())
    assert (np.diff(sizes) <= 0).all()
    assert (shown["rank by old"] != shown["rank by new"]).all()
    others = [abs(effect) for row, effect in effects.items() if row not in shown.index]
    assert len(shown) <= SHOWN
    assert max(others, default=0) <= sizes.min() + 1e-4 if len(shown) == SHOWN else max(others, default=0) < 1e-12


def test_documents_have_their_ids_and_tied_rows_the_mean_of_their_ranks():
    y, qid, docid = [1, 0, 0, 1, 0], ["a"] * 3 + ["b"] * 2, ["d1", "d2", "d3", "d4", "d5"]
    moved, _ = of(y, [3, 2, 1, 2, 1], [1, 1, 1, 2, 1], qid, measure="AP", docid=docid)
    assert moved.query == "a"
    first = moved.table.iloc[0]
    assert (first["document"], first["rank by old"], first["rank by new"], first["moved"]) == ("d1", "1", "2", "down 1")


def test_of_a_measure_whose_least_value_is_best_the_largest_growth_is_the_loss():
    """The mean rank of the relevant rows falls in query a, and grows in query b."""
    y, qid = [0, 1, 0, 0, 1, 0], ["a"] * 3 + ["b"] * 3
    moved, evaluations = of(y, [3, 2, 1, 2, 3, 1], [2, 3, 1, 3, 2, 1], qid, measure="ARP")
    assert not evaluations["old"].measures[0].family.greater_is_better
    assert (moved.query, moved.after > moved.before) == ("b", True)


def test_nothing_is_said_if_no_query_lost():
    y, qid = [1, 0, 1, 0], ["a", "a", "b", "b"]
    assert of(y, [1, 2, 1, 2], [2, 1, 1, 2], qid)[0] is None
