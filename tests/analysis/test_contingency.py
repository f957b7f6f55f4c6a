"""Contingency tables and their averages; the lectures' listing."""

from __future__ import annotations

import numpy as np
import pytest

import rankeval as rk
from rankeval.errors import InvalidInput


def test_averages_over_queries_and_over_documents():
    """One query of 1 in 2, one of 3 in 3: macro precision 3/4, micro 4/5; recall and F likewise, by hand."""
    qrels = {"q1": {"a": 1, "lost": 1}, "q2": {"a": 1, "b": 1, "c": 1}}
    run = {"q1": {"a": 2.0, "x": 1.0}, "q2": {"a": 3.0, "b": 2.0, "c": 1.0}}
    table = rk.analysis.contingency_table(qrels, run, collection_size=10)
    assert table.per_query.loc["q1"].tolist() == [1, 1, 1, 7]
    assert table.macro().tolist() == pytest.approx([0.75, 0.75, 0.75, 0.9])
    assert table.micro().tolist() == pytest.approx([4 / 5, 4 / 5, 4 / 5, 18 / 20])
    assert "accuracy" not in rk.analysis.contingency_table(qrels, run).micro()
    with pytest.raises(InvalidInput, match="give the number of documents in the whole collection"):
        rk.analysis.contingency_table(qrels, run, collection_size=2)


def test_macro_averages_are_the_means_of_the_measures():
    """Precision, recall and F by query are P, R and F, at a cut-off too, with tied rows."""
    rng = np.random.default_rng(1)
    y, score, qid = rng.integers(0, 2, 120), rng.integers(0, 9, 120).astype(float), np.repeat(np.arange(8), 15)
    for cutoff in (None, 15):
        suffix = "" if cutoff is None else f"@{cutoff}"
        names = [f"P{suffix}", f"R{suffix}", f"F(beta=2){suffix}", f"Accuracy(collection_size=40){suffix}"]
        means = rk.evaluate(y, score, qid=qid, measures=names).mean()
        macro = rk.analysis.contingency_table(y, score, qid=qid, cutoff=cutoff, collection_size=40).macro(beta=2)
        assert macro.tolist() == pytest.approx(means.tolist(), abs=1e-12)


def test_listing_consistency():
    """The lecture's listing: 1555 of 3875 found among 30,000: micro recall .4013, micro precision .0518."""
    relevant, hits, retrieved = [129] * 29 + [134], [51] * 29 + [76], 1000
    assert (sum(relevant), sum(hits)) == (3875, 1555)
    judged = {}
    for query, (r, h) in enumerate(zip(relevant, hits, strict=True)):
        judged[query] = dict.fromkeys([*range(h), *range(h - r, 0)], 1)
    run = {query: {d: -float(d) for d in range(retrieved)} for query in judged}
    micro = rk.analysis.contingency_table(judged, run).micro()
    assert micro["recall"] == pytest.approx(0.4012903225806452, abs=1e-15)
    assert micro["precision"] == pytest.approx(0.051833333333333335, abs=1e-15)
