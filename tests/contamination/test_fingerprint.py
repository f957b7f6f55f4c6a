"""Laws of fingerprints: what changes them and what does not."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankeval.collection.qrels import Qrels
from rankeval.collection.run import Run
from rankeval.contamination.evidence import IDENTIFIABLE_BITS
from rankeval.contamination.fingerprint import (
    Lazy,
    fingerprint,
    fingerprint_qrels,
    run_outputs,
    tie_levels,
)
from rankeval.contamination.hashing import _letter_hashes, feature_blocks, rounded_hashes, row_hashes, text_hashes
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput

N_QUERIES, N_ROWS = 12, 96


def bits_of(kind, prints):
    """Return the bits of evidence of each query, by what a registration keeps of it."""
    signature = Signature.of(prints)
    kept = getattr(signature, f"{kind}_entries")
    bits = np.empty(prints.n_queries)
    bits[np.argsort(prints.content, kind="stable")] = kept.per_query(prints.n_queries, kept.bits)
    return bits


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N_ROWS, 6)) * (rng.random((N_ROWS, 6)) < 0.7)
    return X, rng.integers(0, 4, N_ROWS), np.repeat(np.arange(N_QUERIES), N_ROWS // N_QUERIES)


def test_renamed_and_reordered_queries_and_rows_keep_their_signatures(data):
    X, y, qid = data
    order = np.random.default_rng(1).permutation(N_ROWS)
    docid = np.array([f"d{row}" for row in range(N_ROWS)])
    renamed = np.array([f"topic {100 - q}" for q in qid])
    one = fingerprint(X, y, qid, docid=docid)
    two = fingerprint(X[order], y[order], renamed[order], docid=docid[order])
    assert one.digest == two.digest
    for kind in ("features", "judgments", "labels"):
        assert sorted(one.queries[kind]) == sorted(two.queries[kind])
    assert (one.rows["features"][order] == two.rows["features"]).all()
    assert (one.content[one.codes[order]] == two.content[two.codes]).all()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda X: X.astype(np.float32), id="float32"),
        pytest.param(lambda X: X.astype(np.float32).astype(np.float64), id="round trip through float32"),
        pytest.param(lambda X: np.where(X == 0, -0.0, X), id="negative zero"),
        pytest.param(np.asfortranarray, id="column order in memory"),
        pytest.param(lambda X: X.tolist(), id="lists"),
        pytest.param(lambda X: pd.DataFrame(X, index=np.arange(len(X)) * 3), id="DataFrame"),
        pytest.param(lambda X: pd.DataFrame(X).astype("Float64"), id="nullable DataFrame"),
        pytest.param(lambda X: pd.DataFrame(X).assign(qid=7), id="DataFrame with a qid column"),
        pytest.param(sparse.csr_matrix, id="csr_matrix"),
        pytest.param(sparse.csc_array, id="csc_array"),
        pytest.param(lambda X: np.hstack([X, np.zeros((len(X), 3))]), id="empty columns at the end"),
    ],
)
def test_the_container_of_the_features_makes_no_difference(data, form):
    X, y, qid = data
    assert fingerprint(form(X), y, qid).digest == fingerprint(X, y, qid).digest


def test_a_sparse_matrix_with_split_and_unsorted_entries_is_as_its_dense_form():
    parts = sparse.csr_matrix(([1.0, 2.0, 5.0], [2, 2, 0], [0, 3, 3]), shape=(2, 3))
    one = fingerprint(parts, None, [1, 2])
    assert one.digest == fingerprint(parts.toarray(), None, [1, 2]).digest
    assert parts.nnz == 3, "the caller's matrix stays as it was"


def test_missing_values_of_any_bit_pattern_are_one():
    odd = np.array([[0x7FC00001]], dtype=np.uint32).view(np.float32)
    assert fingerprint(odd, None, [0]).digest == fingerprint([[np.nan]], None, [0]).digest


def test_words_in_a_frame_count_by_content_whatever_their_type():
    words = pd.DataFrame({"site": ["a", "b"], "n": [1, 2]})
    as_categories = words.assign(site=words["site"].astype("category"))
    assert fingerprint(words, None, [0, 0]).digest == fingerprint(as_categories, None, [0, 0]).digest
    assert fingerprint(words, None, [0, 0]).digest != fingerprint(words.assign(site="a"), None, [0, 0]).digest


@given(st.integers(0, N_ROWS - 1), st.integers(0, 5))
@settings(max_examples=examples(30), deadline=None)
def test_one_changed_value_changes_one_query(row, column):
    X = np.random.default_rng(5).normal(size=(N_ROWS, 6))
    qid = np.repeat(np.arange(N_QUERIES), N_ROWS // N_QUERIES)
    changed = X.copy()
    changed[row, column] += 1
    differs = fingerprint(X, None, qid).queries["features"] != fingerprint(changed, None, qid).queries["features"]
    assert differs.sum() == 1
    assert differs[qid[row]]


def test_swapped_columns_rows_moved_between_queries_and_other_labels_differ(data):
    X, y, qid = data
    one = fingerprint(X, y, qid)
    assert one.digest != fingerprint(X[:, ::-1], y, qid).digest
    assert one.digest != fingerprint(X, y, np.roll(qid, 1)).digest
    other_labels = fingerprint(X, 3 - y, qid)
    assert one.digest != other_labels.digest
    assert (one.queries["features"] == other_labels.queries["features"]).all()


def test_all_queries_of_random_data_differ():
    rng = np.random.default_rng(0)
    known = fingerprint(rng.integers(0, 4, (60_000, 12)), None, np.arange(60_000) // 3)
    assert len(np.unique(known.queries["features"])) == known.n_queries


def test_a_frame_without_features_is_a_matrix_without_columns():
    assert (row_hashes(pd.DataFrame({"qid": [1, 2]})) == row_hashes(np.empty((2, 0)))).all()


def test_dates_count_by_their_instant():
    days = pd.DataFrame({"day": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-01"])})
    hashes = row_hashes(days)
    assert hashes[0] == hashes[2] != hashes[1]


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array], ids=lambda form: form.__name__)
def test_blocks_of_rows_change_nothing(data, form, monkeypatch):
    """Large data is worked off in blocks that stay in the processor's cache."""
    X, y, qid = data
    whole = row_hashes(form(X)), rounded_hashes(form(X)), bits_of("row", fingerprint(form(X), y, qid))
    monkeypatch.setattr("rankeval.contamination.hashing._BLOCK", 7 * X.shape[1] + 1)
    assert [len(block) for block in feature_blocks(form(X))] == [7] * 13 + [5]
    assert (row_hashes(form(X)) == whole[0]).all()
    assert (rounded_hashes(form(X)) == whole[1]).all()
    assert (bits_of("row", fingerprint(form(X), y, qid)) == whole[2]).all()


def test_many_ids_have_the_hashes_of_few():
    """Ids are hashed in blocks, each as wide as its longest."""
    ids = np.array([f"{'x' * (row % 7)}{row}" for row in range(2**14 + 100)], dtype=object)
    assert (text_hashes(ids)[2**14 - 50 :] == text_hashes(ids[2**14 - 50 :])).all()
    assert len(np.unique(text_hashes(ids))) == len(ids)


WHOLE = [0, 7, 9, 10, 99, 100, 999, 1000, 123456, 10**9, 10**17 - 1, 10**17, 10**18 - 1, 10**18, 2**63 - 1, -1, -10]


@pytest.mark.parametrize("numbers", [WHOLE, WHOLE[:5], WHOLE[:11], list(range(3000)), [0], []])
def test_numbers_have_the_hashes_of_their_digits(numbers):
    """Digits are looked up in tables, three at a time; text has its letters."""
    expected = _letter_hashes(np.array(numbers, dtype=np.str_))
    assert (text_hashes(np.array(numbers, dtype=np.int64)) == expected).all()
    assert (text_hashes(pa.array(numbers, pa.int64())) == expected).all()
    for width in (np.uint8, np.int16, np.uint32, np.uint64):
        held = [number for number in numbers if 0 <= number <= np.iinfo(width).max]
        expected = _letter_hashes(np.array(held, dtype=np.str_))
        assert (text_hashes(np.array(held, dtype=width)) == expected).all()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(
    "texts", [["d1", "", "d22", "a long one", "d1"], ["é", "d1"], ["", ""], [], ["d"] * 20_000], ids=len
)
def test_arrow_columns_have_the_hashes_of_their_texts(kind, texts):
    """Read as bytes where they are ASCII, whole, cut and in chunks."""
    expected = _letter_hashes(np.array(texts, dtype=np.str_))
    column = pa.array(texts, kind)
    assert (text_hashes(column) == expected).all()
    assert (text_hashes(column[1:]) == expected[1:]).all()
    assert (text_hashes(pa.chunked_array([column, column[1:]])) == np.append(expected, expected[1:])).all()


def test_document_ids_are_the_same_as_strings_numbers_and_bytes():
    assert (text_hashes(np.array(["é".encode()])) == text_hashes(["é"])).all()
    assert (text_hashes(np.array([7, 12])) == text_hashes(np.array(["7", "12"]))).all()
    assert (text_hashes(np.array([b"7", b"12"])) == text_hashes(np.array(["7", "12"], dtype=object))).all()
    assert (text_hashes(np.array(["7", "long enough"]))[:1] == text_hashes(np.array(["7"]))).all()


@pytest.mark.filterwarnings("error")
def test_bytes_that_are_no_text_and_great_fractions_are_ids_of_their_own():
    """As Parquet holds UUIDs: objects of Python, bytes of NumPy, and Arrow columns of both kinds."""
    ids = [b"\xff\x00a", b"\xff\x01a", b"\xc8\xc9\x01", "é".encode(), b"7"]
    expected = text_hashes(np.array(ids))
    assert len(set(expected.tolist())) == len(ids)
    assert (expected[3:] == text_hashes(["é", "7"])).all()
    for column in (np.array(ids, dtype=object), pa.array(ids), pa.chunked_array([pa.array(ids)])):
        assert (text_hashes(column) == expected).all()
    uuids = pa.array([bytes([200, 255, number]) + bytes(12) + b"1" for number in range(9)], pa.binary(16))
    assert len(set(text_hashes(uuids.cast(pa.uuid())).tolist())) == 9
    assert len(set(text_hashes(np.array([2.0**63, 2.0**64, 1e300, -1e300])).tolist())) == 4


def test_judgments_and_rows_with_document_ids_are_one_content():
    qrels = Qrels.from_dict({"a": {"d1": 1, "d2": 0}, "b": {"d1": 2}})
    rows = fingerprint(None, [2, 0, 1], [5, 6, 6], docid=["d1", "d2", "d1"])
    assert fingerprint_qrels(qrels).digest == rows.digest


def test_rows_are_not_known_by_their_documents_alone():
    """Generated data sets call their documents alike: "7-3" is the third one of query 7 in all of them."""
    assert "documents" not in fingerprint([[1], [2]], [0, 1], [0, 0], docid=["0-1", "0-2"]).queries
    assert "documents" in fingerprint_qrels(Qrels.from_dict({"a": {"d": 1}})).queries


@pytest.mark.parametrize("X", [np.ones((20, 0)), pd.DataFrame({"qid": np.arange(20)}), sparse.csr_matrix((20, 0))])
def test_features_without_a_column_are_none(X):
    y, qid = np.arange(20) % 2, np.repeat(np.arange(5), 4)
    empty, without = fingerprint(X, y, qid), fingerprint(None, y, qid)
    assert empty.digest == without.digest
    assert Signature.of(empty).row_entries is None
    with pytest.raises(InvalidInput, match="features has 20, labels has 19"):
        fingerprint(X, y[:19], qid)


def test_parts_that_do_not_fit_are_named():
    with pytest.raises(InvalidInput, match="labels has 3, qid has 2"):
        fingerprint(None, [1, 2, 3], [0, 0])
    with pytest.raises(InvalidInput, match="y: expected numbers"):
        fingerprint(None, ["a", "b"], [0, 0])
    with pytest.raises(InvalidInput, match="shape"):
        fingerprint(np.zeros(3), None, [0, 0, 0])
    with pytest.raises(InvalidInput, match="at least one of"):
        fingerprint(None, None, [0])
    with pytest.raises(InvalidInput, match=r"y: expected one number a row, found an array of shape \(2, 2\)"):
        fingerprint(None, np.zeros((2, 2)), [0, 0])
    with pytest.raises(InvalidInput, match="X must be numbers"):
        fingerprint([["a"], ["b"]], None, [0, 0])
    for kind in (np.array, sparse.csr_matrix, pd.DataFrame):
        with pytest.raises(InvalidInput, match="X has complex numbers"):
            _ = fingerprint(kind([[1j], [2]]), None, [0, 0]).digest
    with pytest.raises(InvalidInput) as refused:
        fingerprint(None, [1, 2], [0, 0]).outputs([1.0])
    assert (refused.value.argument, refused.value.expected) == ("score", "2, one a row")


def test_a_column_of_labels_is_as_a_list_of_them():
    assert fingerprint(None, [[1], [2]], [0, 0]).digest == fingerprint(None, [1, 2], [0, 0]).digest


class TestEvidence:
    def test_a_row_counts_by_how_many_queries_have_it(self):
        """A row of c of Q queries counts log2((Q + 1) / c), once a query, however often it stands there."""
        row = {"a": [1, 2, 2], "b": [2, 3], "c": [2]}
        X = np.array([[value] for values in row.values() for value in values], dtype=float)
        qid = np.repeat(list(row), [len(values) for values in row.values()])
        bits = bits_of("row", fingerprint(X, None, qid))
        assert bits.tolist() == pytest.approx([2 + np.log2(4 / 3), 2 + np.log2(4 / 3), np.log2(4 / 3)])

    @pytest.mark.parametrize(("n_queries", "n_documents", "told"), [(7, 13, False), (7, 14, True), (15, 10, True)])
    def test_a_query_of_forty_bits_is_identifiable(self, n_queries, n_documents, told):
        """Seven queries of 13 documents of their own have 39 bits each, 15 queries of ten just 40."""
        qid = np.repeat(np.arange(n_queries), n_documents)
        known = fingerprint_qrels(Qrels(qid, np.arange(len(qid)), qid % 2))
        assert IDENTIFIABLE_BITS == 40
        assert bits_of("document", known) == pytest.approx([np.log2(n_queries + 1) * n_documents] * n_queries)
        assert Signature.of(known).identifiable.tolist() == [told] * n_queries

    def test_a_text_identifies_its_query_if_no_other_has_it(self):
        """Case, width, ligatures and space make no difference."""
        texts = {0: "Straße", 1: " STRASSE\n", 2: "ﬁrst  word", 3: "first"}
        known = fingerprint(None, [1, 0, 1, 0], [0, 1, 2, 3], queries=texts)
        assert known.queries["text"][0] == known.queries["text"][1]
        assert (np.sort(Signature.of(known).texts) != 0).tolist() == [False, False, True, True]
        assert Signature.of(known).identifiable.sum() == 2
        other = fingerprint(None, [1, 1, 1, 1], [5, 6, 7, 8], queries={5: " ", 6: None, 7: "First word"})
        assert other.queries["text"].tolist() == [0, 0, known.queries["text"][2], 0]

    @pytest.mark.parametrize(("n_queries", "n_rows", "told"), [(10, 5, False), (20, 5, True), (100, 3, True)])
    def test_rows_identify_their_query_by_how_rarely_rows_come_back(self, n_queries, n_rows, told):
        """Whatever their digits: measurements and counts alike, if no row of another query is the same."""
        qid = np.repeat(np.arange(n_queries), n_rows)
        for X in (np.random.default_rng(0).normal(size=(len(qid), 4)), np.arange(len(qid))[:, None]):
            assert Signature.of(fingerprint(X, None, qid)).identifiable.tolist() == [told] * n_queries

    def test_rows_that_all_queries_share_say_nothing(self):
        X = np.tile(np.random.default_rng(0).normal(size=(10, 4)), (20, 1))
        bits = bits_of("row", fingerprint(X, None, np.arange(200) // 10))
        assert bits.max() < 1

    def test_a_few_flags_do_not_identify_a_query(self):
        X = np.random.default_rng(0).integers(0, 2, (200, 3))
        assert bits_of("row", fingerprint(X, None, np.arange(200) // 5)).max() < 40

    def test_counts_identify_by_how_rare_the_row_is(self):
        X = np.random.default_rng(0).integers(0, 50, (600, 12))
        assert bits_of("row", fingerprint(X, None, np.arange(600) // 10)).min() > 40

    def test_document_numbers_within_each_query_say_nothing(self):
        """Labels in the order of such numbers may be sorted ones, so they identify no query either."""
        rng = np.random.default_rng(0)
        docid, y = np.tile(np.arange(40), 30), rng.integers(0, 5, 1200)
        known = fingerprint_qrels(Qrels(np.arange(1200) // 40, docid, y))
        assert bits_of("document", known).max() < 10
        assert Signature.of(known).identifiable.sum() == 0


class TestOutputs:
    @given(st.integers(0, 2**32))
    @settings(max_examples=examples(25), deadline=None)
    def test_increasing_transforms_within_a_query_and_the_order_of_rows_keep_the_output(self, seed):
        rng = np.random.default_rng(seed)
        X, y, qid = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), np.repeat([3, 1, 2], 20)
        score = rng.integers(0, 8, 60).astype(float)
        order = rng.permutation(60)
        one = fingerprint(X, y, qid).outputs(score)
        two = fingerprint(X[order], y[order], qid[order]).outputs((np.exp(score) + 10 * qid)[order])
        for kind in ("features", "labels"):
            assert (one[kind] == two[kind]).all()

    def test_a_level_counts_the_distinct_scores_above(self):
        query, score = np.array([0, 1, 0, 1, 0, 0, 1]), np.array([1.0, 5.0, 3.0, 5.0, 1.0, 0.0, -2.0])
        assert tie_levels(query, score).tolist() == [1, 0, 0, 0, 1, 2, 1]

    def test_a_tie_that_is_broken_is_another_output(self):
        known = fingerprint([[1], [2], [3]], [0, 1, 0], [0, 0, 0])
        tied, broken = known.outputs([1.0, 1.0, 0.0]), known.outputs([1.0, 1.5, 0.0])
        assert tied["features"] != broken["features"]
        assert tied["labels"] != broken["labels"]

    def test_swapping_rows_of_one_label_is_another_ranking_but_not_another_evaluation(self):
        known = fingerprint([[1], [2], [3]], [1, 1, 0], [0, 0, 0])
        one, two = known.outputs([3.0, 2.0, 1.0]), known.outputs([2.0, 3.0, 1.0])
        assert one["features"] != two["features"]
        assert one["labels"] == two["labels"]

    def test_runs_are_told_by_their_order_under_each_query(self):
        qrels = Qrels.from_dict({"a": {"d1": 1, "d2": 0}, "b": {"d1": 2, "d3": 0}})
        known = fingerprint_qrels(qrels)
        run = Run.from_dict({"a": {"d1": 3, "d2": 1}, "b": {"d9": 1, "d1": 0}, "other": {"d1": 1}})
        same = Run.from_dict({"b": {"d1": -1, "d9": 5}, "a": {"d2": 0.5, "d1": 0.6}})
        other = Run.from_dict({"a": {"d1": 3, "d2": 1}, "b": {"d9": 0, "d1": 1}})
        assert (run_outputs(known, run)["documents"] == run_outputs(known, same)["documents"]).all()
        assert (run_outputs(known, run)["documents"] != run_outputs(known, other)["documents"]).tolist() == [
            False,
            True,
        ]


def test_the_canonical_order_is_the_same_for_any_order_of_rows_and_keeps_queries_together(data):
    X, y, qid = data
    X = np.vstack([X, X[:8]])  # the first query stands there twice
    y, qid = np.append(y, y[:8]), np.append(qid, np.full(8, 99))
    order = np.random.default_rng(2).permutation(len(y))
    one, two = fingerprint(X, y, qid), fingerprint(X[order], y[order], qid[order])
    assert (X[one.canonical_order] == X[order][two.canonical_order]).all()
    blocks = two.codes[two.canonical_order]
    assert (np.diff(blocks) != 0).sum() == two.n_queries - 1


def test_to_ask_which_kinds_there_are_computes_none():
    """A kind that is not kept was hashed anew for every `in`: of ten million rows .2 s each time."""
    made = []
    lazy = Lazy({"labels": lambda: made.append(1) or np.zeros(1, np.uint64)}, not_kept=("labels",))
    assert "labels" in lazy
    assert "features" not in lazy
    assert list(lazy) == ["labels"]
    assert not made


@pytest.mark.parametrize("order", ["by query", "shuffled"])
def test_levels_of_many_rows_are_those_of_each_query_alone(order, monkeypatch):
    """Rows are sorted some queries at a time, cut between queries; a long query is never cut."""
    monkeypatch.setattr("rankeval.contamination.fingerprint._SORTED_AT_ONCE", 16)
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(40), rng.integers(1, 50, 40))
    score = rng.integers(0, 9, len(codes)) / 4
    if order == "shuffled":
        shuffle = rng.permutation(len(codes))
        codes, score = codes[shuffle], score[shuffle]
    expected = [len(set(score[(codes == code) & (score > own)])) for code, own in zip(codes, score, strict=True)]
    assert tie_levels(codes, score).tolist() == expected
    assert tie_levels(codes[:0], score[:0]).tolist() == []
