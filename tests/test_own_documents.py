"""Documents that are their own query are left out of ranking and judgments, counted, and on the card."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.contamination import refusal
from rankeval.errors import ConventionMismatch, GuardRefusal, InvalidInput

QRELS = {"q1": {"q1": 1, "d1": 1}, "q2": {"d2": 1}, "q3": {"q3": 1}, "q4": {"d1": 0, "d9": 1}}
RUN = {
    "q1": {"q1": 9.0, "d1": 1.0},
    "q2": {"q2": 9.0, "d2": 2.0, "d1": 0.5},
    "q3": {"q3": 1.0, "d1": 0.5},
    "q4": {"d1": 2.0, "d9": 1.0},
}
NAMES = {name: name for name in ("qid", "docid", "score", "relevance")}


def by_hand(table):
    """Return a table without the documents that are their own query."""
    kept = {qid: {docid: value for docid, value in row.items() if docid != qid} for qid, row in table.items()}
    return {qid: row for qid, row in kept.items() if row}


def frame():
    rows = [(qid, docid, score, QRELS[qid].get(docid, 0)) for qid, row in RUN.items() for docid, score in row.items()]
    return pd.DataFrame(rows, columns=["qid", "docid", "score", "relevance"])


def test_scores_are_those_of_a_collection_without_them():
    found = rk.evaluate(QRELS, RUN, measures=["RR", "nDCG", "R@1"], exclude_self=True)
    expected = rk.evaluate(by_hand(QRELS), by_hand(RUN), measures=["RR", "nDCG", "R@1"])
    pd.testing.assert_frame_equal(found.per_query, expected.per_query)
    assert found.excluded == {"no judgments": ("q3",)}  # its own document was all that was judged
    assert found.facts.totals()["own_document"] == 5
    assert "3 rows of the ranking and 2 of the judgments left out: the document is its own query" in found.notes
    assert found.subset(["q1"]).facts.totals()["own_document"] == 2
    assert found.convention.card()["own_document"] == "exclude"


def test_rows_in_any_order_are_left_out_with_their_weights_and_columns():
    table = frame()
    weight, price = table["qid"].map({"q1": 1, "q2": 2, "q3": 3, "q4": 4}), np.arange(1.0, len(table) + 1)
    table = table.assign(weight=weight, price=price)
    kept = table[table["qid"] != table["docid"]]
    options = {"measures": ["RR", "Revenue@1(column='price')"], "columns": ["price"], "query_weight": "weight"}
    expected = rk.evaluate(kept, **NAMES, **options)
    for seed in range(3):
        shuffled = table.sample(frac=1, random_state=seed).assign(rank=1)
        found = rk.evaluate(shuffled, **NAMES, **options, exclude_self=True)
        pd.testing.assert_frame_equal(found.per_query, expected.per_query)
        assert found.weights.tolist() == expected.weights.tolist()
        assert found.facts.totals()["own_document"] == 3


def test_a_query_with_no_other_row_is_excluded():
    table = pd.DataFrame({"qid": [7, 8, 8], "docid": ["7", "8", "9"], "relevance": [1, 0, 1], "score": [1.0, 2.0, 1.0]})
    found = rk.evaluate(table, **NAMES, measures="RR", exclude_self=True)
    assert found.excluded == {"no document but its own": (7,)}
    assert found.per_query["RR"].to_dict() == {8: 1.0}
    assert found.facts.totals()["own_document"] == 2


def test_a_data_set_is_read_by_the_same_rule(tmp_path):
    frame().to_parquet(tmp_path / "rows.parquet")
    rules = rk.Convention.with_rules(own_document="exclude")
    found = rk.evaluate_dataset(tmp_path / "rows.parquet", **NAMES, measures="RR", convention=rules)
    assert found.per_query.equals(rk.evaluate(frame(), **NAMES, measures="RR", exclude_self=True).per_query)
    assert found.facts.totals()["own_document"] == 3


def test_the_rule_stays_in_a_file_and_is_on_the_card_only_if_it_is_set(tmp_path):
    found = rk.evaluate(QRELS, RUN, measures="RR", exclude_self=True)
    found.save(tmp_path / "ev.parquet")
    loaded = rk.Evaluation.load(tmp_path / "ev.parquet")
    assert (loaded.convention, loaded.notes) == (found.convention, found.notes)
    assert "own_document" not in rk.Convention().card()


def test_it_is_compared_only_with_its_like_if_it_changed_anything():
    systems = {own: rk.evaluate(by_hand(QRELS), RUN, measures="RR", exclude_self=own == "out") for own in ("in", "out")}
    with pytest.raises(ConventionMismatch, match="own_document is 'keep' in one"):
        rk.compare(systems)
    clean = [rk.evaluate(by_hand(QRELS), by_hand(RUN), measures="RR", exclude_self=own) for own in (False, True)]
    assert rk.compare(dict(zip("ab", clean, strict=True))).table["difference"].tolist() == [0.0]


def test_rows_need_documents():
    with pytest.raises(InvalidInput) as caught:
        rk.evaluate([1, 0], [2.0, 1.0], qid=["a", "a"], measures="RR", exclude_self=True)
    assert caught.value.argument == "docid"


def test_the_guard_sees_the_whole_collection(tmp_path, monkeypatch):
    qrels = {f"q{i}": {f"d{i}-{j}": int(j < 2) for j in range(8)} | {f"q{i}": 1} for i in range(30)}
    run = {qid: {docid: float(place) for place, docid in enumerate(row)} for qid, row in qrels.items()}
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    refusal.forget()
    guard = rk.Guard("own")
    guard.register("own", qrels=qrels)
    with pytest.raises(GuardRefusal):
        rk.evaluate(qrels, run, measures="RR", exclude_self=True)
    refusal.forget()


def test_the_shell_has_the_switch(rankeval, tmp_path):
    rk.Qrels.from_dict(QRELS).write(tmp_path / "qrels")
    rk.Run.from_dict(RUN, name="bm25").write(tmp_path / "bm25.run")
    files = [str(tmp_path / "qrels"), str(tmp_path / "bm25.run")]
    code, out, err = rankeval("evaluate", *files, "-m", "RR", "--exclude-self")
    assert code == 0
    line = "3 rows of the ranking and 2 of the judgments left out: the document is its own query"
    assert line in out + err
    rk.Run.from_dict({**RUN, "q2": {"d2": 1.0}}, name="other").write(tmp_path / "other.run")
    code, out, err = rankeval("compare", *files, str(tmp_path / "other.run"), "-m", "RR", "--exclude-self")
    assert code == 0
    assert f"bm25.run: {line}" in out + err
    assert f"other.run: {line.replace('3 rows', '2 rows')}" in out + err
