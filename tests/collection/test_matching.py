"""Judgments are matched to retrieved documents exactly, whatever their hashes do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankeval as rk
from rankeval.collection import matching
from rankeval.collection.judgments import join_collection
from rankeval.collection.matching import hash_ids
from rankeval.errors import InvalidInput

names = st.text(alphabet="ab\x00é", max_size=20)


@given(st.lists(names, min_size=1, max_size=30), st.integers(0, 5))
def test_equal_ids_have_equal_hashes_in_any_column(ids, skipped):
    """A slice, a large-string column and another order give each id the same hash; different ids have others."""
    column = pa.array(ids)
    whole = hash_ids(column)
    np.testing.assert_array_equal(hash_ids(column.slice(skipped)), whole[skipped:])
    np.testing.assert_array_equal(hash_ids(column.cast(pa.large_string())), whole)
    assert len(set(whole.tolist())) == len(set(ids))


documents = st.sampled_from(["a", "b", "ab", "d1", "d10", ""])
pairs = st.dictionaries(st.tuples(st.sampled_from("pqr"), documents), st.integers(0, 3))


@given(pairs.filter(len), pairs.filter(len), st.booleans())
@settings(max_examples=150, deadline=None)
def test_labels_are_those_of_the_pairs(truth, ranked, colliding):
    """Every retrieved pair has its label, also when all hashes collide."""
    truth = {(q, d or "empty"): label for (q, d), label in truth.items()}
    ranked = {(q, d or "empty"): score for (q, d), score in ranked.items()}
    if not {q for q, _ in truth} & {q for q, _ in ranked}:
        return
    qrels = rk.Qrels([q for q, _ in truth], [d for _, d in truth], list(truth.values()))
    run = rk.Run([q for q, _ in ranked], [d for _, d in ranked], [float(score) for score in ranked.values()])
    with pytest.MonkeyPatch.context() as patch:
        if colliding:
            patch.setattr("rankeval.collection.judgments.hash_ids", lambda ids: np.zeros(len(ids), dtype=np.uint64))
        joined = join_collection(qrels, run, convention=rk.Convention())
    for row, pair in enumerate(ranked):
        if any(q == pair[0] for q, _ in truth):
            assert joined.relevance[row] == truth.get(pair, 0)
            assert joined.judged[row] == (pair in truth)
    left = sum(1 for pair in truth if pair not in ranked)
    assert len(joined.unretrieved) == left


def test_duplicates_are_named():
    """The side, the document and the query are said."""
    twice = rk.Qrels(["q", "q", "p"], ["d", "d", "d"], [1, 2, 1])
    once = rk.Qrels(["q", "p"], ["d", "d"], [1, 1])
    with pytest.raises(InvalidInput, match="qrels: document 'd' stands twice in query 'q'"):
        rk.evaluate(twice, {"q": {"d": 1.0}})
    with pytest.raises(InvalidInput, match="run: document 'd' stands twice in query 'p'"):
        rk.evaluate(once, rk.Run(["p", "q", "p"], ["d", "d", "d"], [3.0, 2.0, 1.0]))


def test_hashes_are_kept_apart_by_query():
    """The same document in two queries is two pairs."""
    assert matching.hash_ids(pa.array([7, 8])).tolist() != [0, 0]
    ev = rk.evaluate({1: {7: 1}, 2: {7: 0, 8: 2}}, {1: {7: 1.0}, 2: {7: 2.0, 8: 1.0}}, measures="RR")
    assert ev.scores.ravel().tolist() == [1.0, 0.5]
