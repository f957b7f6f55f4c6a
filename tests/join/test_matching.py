"""Judgments are matched to retrieved documents exactly, whatever their hashes do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput
from rankeval.join import matching
from rankeval.join.collections import join_collection
from rankeval.join.matching import Side, hash_ids, match_documents

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
@settings(max_examples=examples(150), deadline=None)
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
            patch.setattr("rankeval.join.collections.hash_ids", lambda ids: np.zeros(len(ids), dtype=np.uint64))
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
    with pytest.raises(InvalidInput, match="qrels: document 'd' occurs twice in query 'q'"):
        rk.evaluate(twice, {"q": {"d": 1.0}})
    with pytest.raises(InvalidInput, match="run: document 'd' occurs twice in query 'p'"):
        rk.evaluate(once, rk.Run(["p", "q", "p"], ["d", "d", "d"], [3.0, 2.0, 1.0]))


def test_hashes_are_kept_apart_by_query():
    """The same document in two queries is two pairs."""
    assert matching.hash_ids(pa.array([7, 8])).tolist() != [0, 0]
    ev = rk.evaluate({1: {7: 1}, 2: {7: 0, 8: 2}}, {1: {7: 1.0}, 2: {7: 2.0, 8: 1.0}}, measures="RR")
    assert ev.scores.ravel().tolist() == [1.0, 0.5]


@each_row("letter", ["x", "é", "\0"])
def test_an_id_has_one_hash_whatever_stands_beside_it(letter):
    """Ids of up to 40 bytes alone, in pairs, and by length: words are read eight bytes at a time."""
    ids = [letter * size + "y" * (size % 3) for size in range(40)] + ["a" * 8, "a" * 9, "a" * 16, "a" * 17, "a" * 7]
    alone = {one: int(hash_ids(pa.array([one]))[0]) for one in ids}
    assert len(set(alone.values())) == len(set(ids))
    for column in (ids, ids[::-1], *([one, other] for one in ids for other in ids[::5])):
        assert hash_ids(pa.array(column)).tolist() == [alone[one] for one in column]
    for size in (8, 9, 16):
        column = ["b" * size] * 5 + ["c" * size]
        assert len(set(hash_ids(pa.array(column)).tolist())) == 2


def test_hashes_do_not_depend_on_the_blocks_they_are_made_in(monkeypatch):
    """Nor on where in a buffer the ids begin, or on what stands behind them."""
    rng = np.random.default_rng(0)
    ids = ["".join(rng.choice(list("abcdefgh"), rng.integers(0, 25))) for _ in range(300)]
    column = pa.array(ids)
    whole = hash_ids(column)
    for block in (1, 7, 256):
        monkeypatch.setattr(matching, "_BLOCK", block)
        np.testing.assert_array_equal(hash_ids(column), whole)
        for begin in (0, 1, 150, 299):
            np.testing.assert_array_equal(hash_ids(column.slice(begin, 5)), whole[begin : begin + 5])
    assert len(hash_ids(pa.array([], type=pa.string()))) == 0
    assert hash_ids(pa.array(["", ""])).tolist() == [int(hash_ids(pa.array([""]))[0])] * 2


def test_whole_numbers_have_one_hash_in_any_width():
    for kind in (pa.int8(), pa.int32(), pa.uint16()):
        np.testing.assert_array_equal(hash_ids(pa.array([7, 100], type=kind)), hash_ids(pa.array([7, 100])))
    assert len(set(hash_ids(pa.array(range(-5000, 5000))).tolist())) == 10_000


def test_a_hash_spreads_over_all_its_bits():
    """Sorting takes the upper bits, keys the lower: each is set in half of the ids."""
    for ids in (pa.array(range(20_000)), pa.array([f"d{number}" for number in range(20_000)])):
        bits = hash_ids(ids)[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.02


def side(pairs_of_query, name, large=False):
    """Return a side of rows in some order: query -> document ids."""
    docid = [docid for documents in pairs_of_query for docid in documents]
    qid = [query for query, documents in enumerate(pairs_of_query) for _ in documents]
    shuffled = np.random.default_rng(len(docid)).permutation(len(docid))
    ids = pa.array([docid[row] for row in shuffled], type=None if docid else pa.string())
    ids = ids.cast(pa.large_string()) if large and ids.type == pa.string() else ids
    rows = np.argsort(np.array(qid, dtype=np.int64)[shuffled], kind="stable") if docid else np.empty(0, dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum([len(documents) for documents in pairs_of_query], dtype=np.int64)))
    return Side(rows, offsets, ids, hash_ids(ids), pa.array([qid[row] for row in shuffled], type=pa.int64()), name)


@each_row("block", [1, 2, 20, 2**16])
@each_row("colliding", [False, True])
@each_row("make", [int, "doc {}".format], ids=["numbers", "texts"])
def test_what_is_matched_is_what_dictionaries_match(make, colliding, block, monkeypatch):
    """Queries of 0 to 70 documents on either side, in blocks of whole queries, with true hashes and with equal ones."""
    monkeypatch.setattr(matching, "_ROWS", block)
    rng = np.random.default_rng(block)
    for n_queries in (1, 2, 3, 9, 40):
        sizes = rng.choice([0, 1, 2, 15, 16, 17, 70], (2, n_queries))
        truth, ranked = ([[make(d) for d in rng.permutation(90)[:size].tolist()] for size in one] for one in sizes)
        if not sizes.sum(axis=1).all():
            continue
        left, right = side(truth, "qrels"), side(ranked, "run", large=n_queries % 2 == 0)
        if colliding:
            for one in (left, right):
                one.hashes[:] = 0
        rows = match_documents(left, right)
        found = {
            (left.qid[a].as_py(), left.docid[a].as_py(), right.qid[b].as_py(), right.docid[b].as_py())
            for a, b in zip(*(part.tolist() for part in rows), strict=True)
        }
        expected = {(q, d, q, d) for q in range(n_queries) for d in set(truth[q]) & set(ranked[q])}
        assert found == expected
        assert len(rows[0]) == len(rows[1]) == len(expected)


def test_a_hash_that_is_wrong_is_never_believed():
    """Different ids of one hash are told apart by what they are."""
    left, right = side([["a", "b"], ["c"]], "qrels"), side([["x", "b"], ["c", "d"]], "run")
    right.hashes[:] = np.array(
        [
            left.hashes[left.docid.to_pylist().index({"x": "a", "d": "c"}.get(one, one))]
            for one in right.docid.to_pylist()
        ]
    )
    rows = match_documents(left, right)
    assert {(left.docid[a].as_py(), right.docid[b].as_py()) for a, b in zip(*rows, strict=True)} == {
        ("b", "b"),
        ("c", "c"),
    }


def test_repeated_documents_are_counted_and_placed():
    """The rows of the first one, in the order of the input, whatever the order of the queries."""
    message = r"run: document 'e' occurs twice in query 'a' \(rows 1 and 3, counting from 0; 2 such rows in all\)"
    run = rk.Run(["b", "a", "b", "a", "b", "a"], ["d", "e", "x", "e", "d", "f"], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    with pytest.raises(InvalidInput, match=message):
        rk.evaluate({"a": {"e": 1}, "b": {"d": 1}}, run)
