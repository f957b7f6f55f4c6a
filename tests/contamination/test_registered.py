"""What of some data is in a registered collection, and how much of it is needed."""

import numpy as np
import pytest

from rankeval.collection.qrels import Qrels
from rankeval.contamination.evidence import chance_of_being_contained
from rankeval.contamination.fingerprint import fingerprint, fingerprint_qrels
from rankeval.contamination.matching import link, match_content, was_opened
from rankeval.contamination.registered import RegisteredContent, registered_contents
from rankeval.contamination.signature import Signature
from rankeval.ledger.discovery import ledger_url
from rankeval.ledger.ledger import Ledger


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 5)), rng.integers(0, 3, 60), np.repeat(np.arange(12), 5)


def kept(signature, **fields):
    """Return the collection as it is read from a ledger."""
    about = {"project": "p", "name": "test", "digest": "0" * 64, "id": "1f3a", "who": "me", "time": "2026-01-02"}
    return RegisteredContent(signature=Signature.from_arrays(signature.arrays()), **(about | fields))


def registered(X, y, qid, **fields):
    return kept(Signature.of(fingerprint(X, y, qid)), **fields)


def collection(n_identifiable, n_queries):
    """Return a collection of which the first queries can be told from others."""
    text = np.where(np.arange(n_queries) < n_identifiable, np.arange(1, n_queries + 1), 0).astype(np.uint64)
    hashes = np.arange(n_queries, dtype=np.uint64)
    return RegisteredContent("p", "test", "0" * 64, "1", "me", "2026", Signature(hashes, hashes, texts=text))


@pytest.mark.parametrize(
    ("n_identifiable", "needed"),
    [(1, 1), (2, 2), (3, 3), (60, 3), (61, 4), (80, 4), (81, 5), (100, 5), (101, 6), (1000, 50), (1001, 51)],
)
def test_so_many_identifiable_queries_must_match(n_identifiable, needed):
    """Five in a hundred, rounded up, and at least three; all of fewer."""
    one = collection(n_identifiable, n_identifiable + 7)
    assert one.n_queries == n_identifiable + 7
    assert one.n_identifiable == n_identifiable
    assert one.n_to_refuse == needed


def test_if_no_query_is_identifiable_so_many_of_all_must_be_found_by_their_ids_and_labels():
    assert collection(0, 7).n_to_refuse == 3
    assert collection(0, 200).n_to_refuse == 10


def test_queries_are_found_by_their_rows_wherever_they_stand(data):
    """In part, among others, with other labels."""
    X, y, qid = data
    one = registered(X, y, qid)
    assert one.n_queries == one.n_identifiable == 12
    other = np.random.default_rng(1).normal(size=(20, 5))
    rows = np.concatenate([X[qid == 3], other[:10], X[qid == 7], other[10:]])
    ids = np.repeat([4, 9, 8, 1, 0, 2], 5)
    prints = fingerprint(rows, np.zeros(30), ids)
    result = match_content(one, prints)
    assert result.n_matched == result.matched.sum() == 2
    assert prints.names[result.queries].tolist() == [1, 4]
    assert prints.names[result.pairs[:, 0]].tolist() == [1, 4]
    assert (np.sort(result.pairs[:, 1]) == np.flatnonzero(result.matched)).all()
    assert (result.chance, result.same_labels, result.refused, result.warned) == (1.0, False, False, True)
    assert result.why == "2 of its 12 queries are in the data"
    whole = match_content(one, fingerprint(X, 2 - y, qid))
    assert (whole.n_matched, whole.queries.all(), whole.refused) == (12, True, True)
    none = match_content(one, fingerprint(other, np.zeros(20), np.repeat([0, 1], 10)))
    assert (none.n_matched, none.why) == (0, "none of its queries are in the data")


def test_a_query_that_stands_twice_in_the_data_is_one_of_the_collection(data):
    X, y, qid = data
    part = np.concatenate([np.flatnonzero(qid == 3)] * 2)
    result = match_content(registered(X, y, qid), fingerprint(X[part], y[part], np.repeat([40, 41], 5)))
    assert (result.n_matched, result.queries.tolist()) == (1, [True, True])


def test_exempt_queries_count_for_nothing(data):
    X, y, qid = data
    whole = registered(X, y, qid)
    prints = fingerprint(X, y, qid)
    exempt = np.arange(12) < 9
    part = registered(X, y, qid, exempt=exempt)
    assert (part.n_queries, part.n_identifiable, part.n_to_refuse) == (12, 3, 3)
    assert match_content(part, prints).matched.tolist() == (~exempt).tolist()
    free = np.unique(match_content(whole, prints).pairs[:, 0][exempt[match_content(whole, prints).pairs[:, 1]]])
    rows = np.isin(prints.codes, free)
    for X_or_none in (X[rows], None):
        result = match_content(part, fingerprint(X_or_none, y[rows], qid[rows]))
        assert (result.n_matched, result.queries.any()) == (0, False)


def test_queries_that_are_not_identifiable_are_not_counted():
    """Flags in three columns stand in many queries: they match, and prove nothing."""
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    one = registered(X, [0, 1, 1, 0], [0, 0, 1, 1])
    assert one.n_identifiable == 0
    result = match_content(one, fingerprint(X, [0, 1, 1, 0], [0, 0, 1, 1]))
    assert (result.n_matched, result.refused, result.queries.any()) == (0, False, False)
    assert result.same_labels
    assert result.why == "the labels equal those of its 2 queries, which may be chance"


def test_labels_alone_are_weighed_for_the_whole_collection():
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 3, 60 * 8), np.repeat(np.arange(60), 8)
    labels = fingerprint(None, y, qid)
    one = registered(None, y, qid)
    renamed = fingerprint(None, y, qid + 100)
    result = match_content(one, renamed)
    times = np.unique(labels.queries["labels"], return_counts=True)[1]
    assert result.chance == chance_of_being_contained(times, 60)
    assert result.by_labels
    assert result.refused
    assert result.same_labels
    assert result.queries.all()
    assert result.n_matched == 60
    hashes = labels.queries["labels"], one.signature.label_counts.hashes
    assert (hashes[0][result.pairs[:, 0]] == hashes[1][result.pairs[:, 1]]).all()
    assert result.why == "the labels are those of 60 of its 60 queries (chance under 1e-12)"
    part = match_content(one, fingerprint(None, y[:40], qid[:40] + 100))
    assert (part.same_labels, part.queries.any(), part.by_labels) == (False, False, False)
    y[0] = 9
    other = match_content(one, fingerprint(None, y, qid + 100))
    assert (other.chance, other.same_labels, other.by_labels, other.queries.any()) == (1.0, False, False, False)


def test_labels_under_the_same_ids_are_weighed_for_and_against():
    """Half of the queries under their ids are the collection; the same ids with other labels are not."""
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 4, 60 * 8), np.repeat(np.arange(60), 8)
    one = registered(None, y, qid)
    half = match_content(one, fingerprint(None, y[:240], qid[:240]))
    assert half.refused
    assert half.n_matched == half.queries.sum() == 30
    assert half.bits > 60
    assert half.why.startswith("30 of its 60 queries are in the data: they have the same ids, and labels agree")
    again = match_content(one, fingerprint(None, rng.integers(0, 4, 480), qid))
    assert again.bits < -5
    assert (again.n_matched, again.refused, again.warned) == (0, False, False)


def test_an_opened_ranking_is_let_through_if_all_matched_queries_are_ranked_so(data):
    """Queries of other data may be ranked as they like; one order of rows or of labels suffices."""
    X, y, qid = data
    y = np.where(qid == 5, [0, 0, 1, 2, 2] * 12, y)  # no order of these labels is its own reverse
    known = fingerprint(X, y, qid)
    score = np.random.default_rng(3).normal(size=60)
    outputs = known.outputs(score)
    one = registered(X, y, qid, opened=({"labels": outputs["labels"][:3]}, outputs))
    result = match_content(one, known)
    assert was_opened(result, outputs)
    assert was_opened(result, {"features": outputs["features"]})
    assert not was_opened(result, {"documents": outputs["features"]})
    assert not was_opened(result, known.outputs(np.where(qid == 5, -score, score)))
    assert not was_opened(match_content(registered(X, y, qid), known), outputs)
    foreign = fingerprint(X + 100, y, qid + 100)
    assert not was_opened(match_content(one, foreign), foreign.outputs(score)), (
        "nothing of it is opened, nor registered"
    )
    rows = np.concatenate([X[qid < 4], X[qid == 5] + 1])
    with_others = fingerprint(rows, np.append(y[qid < 4], y[qid == 5]), np.append(qid[qid < 4], [77] * 5))
    ranked = with_others.outputs(np.append(score[qid < 4], [5, 4, 3, 2, 1]))
    assert was_opened(match_content(one, with_others), ranked)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(ledger_url(tmp_path / "ledger"))


def test_the_register_is_what_the_entries_say(ledger, data):
    """A collection is retired by its own project alone; what was opened of a content was seen by all."""
    X, y, qid = data
    signature = Signature.of(fingerprint(X, y, qid))
    file = ledger.keep("signatures", signature.arrays())
    outputs = ledger.keep("signatures", {f"{place}.outputs.labels": signature.content[:2] for place in (0, 1)})

    def register(project, digest, name):
        body = {"digest": digest, "name": name, "signatures": file, "revises": None, "released": None, "n_queries": 12}
        return ledger.append(project, ("register", body)).hash

    first = register("p", "d1", "one")
    register("p", "d2", "two")
    last = register("other", "d1", "theirs")
    ledger.append("other", ("open", {"digest": "d1", "systems": {"a": {}, "b": {}}, "outputs": outputs}))
    ledger.append("p", ("retire", {"registration": first, "reason": "published"}))
    ledger.append("p", ("note", {"registration": last, "reason": "nothing"}))
    one, two, theirs = registered_contents(ledger, ledger.read())
    assert [(s.project, s.name, s.digest, s.retired, len(s.opened)) for s in (one, two, theirs)] == [
        ("p", "one", "d1", "published", 2),
        ("p", "two", "d2", None, 0),
        ("other", "theirs", "d1", None, 2),
    ]
    assert theirs.id == last
    assert theirs.opened[0]["labels"].tolist() == signature.content[:2].tolist()
    assert match_content(two, fingerprint(X, y, qid)).n_matched == 12


@pytest.mark.parametrize("width", [0, 1])
def test_features_without_columns_or_values_identify_nothing_and_cost_nothing(data, width):
    _, y, qid = data
    one = registered(np.zeros((60, width)), y, qid)
    assert one.n_identifiable == 0
    assert match_content(one, fingerprint(np.zeros((60, width)), y, qid)).n_matched == 12  # by ids and labels
    assert match_content(one, fingerprint(np.zeros((0, width)), [], [])).n_matched == 0
    assert match_content(one, fingerprint(np.zeros((60, width)), 5 - y, qid + 60)).n_matched == 0


class TestSignature:
    def test_it_says_nothing_of_the_order_of_queries_and_rows(self, data):
        X, y, qid = data
        order = np.random.default_rng(0).permutation(60)
        one, two = (Signature.of(fingerprint(X[rows], y[rows], qid[rows])).arrays() for rows in (np.arange(60), order))
        assert one.keys() == two.keys()
        assert all((one[name] == two[name]).all() for name in one)
        assert (np.diff(one["content"].astype(float)) > 0).all()

    def test_it_is_the_same_after_a_ledger(self, data, ledger):
        X, y, qid = data
        docid = np.array([f"d{row}" for row in range(60)])
        texts = {query: f"the text of {query}" for query in range(12)}
        whole = Signature.of(fingerprint(X, y, qid, docid=docid, queries=texts))
        again = Signature.from_arrays(ledger.load(ledger.keep("signatures", whole.arrays())))
        for name, array in whole.arrays().items():
            assert (array == again.arrays()[name]).all(), name
        assert again.n_queries == again.identifiable.sum() == 12
        assert len(link(whole, again)) == 12

    def test_many_levels_of_labels_are_hashed_instead_of_counted(self, data):
        X, _, qid = data
        y = np.random.default_rng(0).normal(size=60)
        one = registered(X, y, qid)
        assert (one.signature.label_counts.hashes == np.sort(fingerprint(X, y, qid).queries["labels"])).sum() <= 12
        assert set(one.signature.label_counts.hashes) == set(fingerprint(X, y, qid).queries["labels"].tolist())
        assert match_content(one, fingerprint(None, y[:30], qid[:30])).refused
        assert not match_content(one, fingerprint(None, y[::-1][:30], qid[:30])).refused

    def test_counts_tell_the_same_hash_of_labels_as_the_rows(self, data):
        X, y, qid = data
        prints = fingerprint(X, y, qid)
        assert (prints.label_counts.hashes == prints.queries["labels"]).all()

    @pytest.mark.parametrize(("n_rows", "n_kept"), [(50, 50), (200, 131)])
    def test_the_size_is_that_of_a_quarter_of_a_million_rows_at_most(self, n_rows, n_kept):
        rng = np.random.default_rng(0)
        X, qid = rng.normal(size=(2000 * n_rows, 4)), np.arange(2000 * n_rows) // n_rows
        signature = Signature.of(fingerprint(X, rng.integers(0, 5, len(qid)), qid))
        assert len(signature.row_entries) == 2000 * n_kept <= 2**18
        large = sum(array.nbytes for array in signature.arrays().values()) / signature.n_queries
        assert large < 60 + 6 * n_kept

    def test_judgments_keep_documents_with_labels(self):
        arrays = Signature.of(fingerprint_qrels(Qrels(["a", "b"], ["d", "d"], [1, 0]))).arrays()
        assert {name.partition(".")[0] for name in arrays} == {"content", "ids", "labels", "documents"}
        assert len(set(arrays["documents.label"].tolist())) == 2


class TestLink:
    def test_two_registrations_are_linked_by_what_they_keep(self, data):
        """With other features, labels, rows and ids; each side in its own order."""
        X, y, qid = data
        whole = fingerprint(X, y, qid)
        ours = Signature.of(whole)
        order = np.argsort(whole.content)
        for X2, y2, ids in ((X, y, qid), (X, 2 - y, qid + 50), (3 * X - 1, y, qid)):
            other = fingerprint(X2, y2, ids)
            pairs = link(ours, Signature.of(other))
            found = [(qid_of(whole, order, a), qid_of(other, np.argsort(other.content), b)) for a, b in pairs]
            assert len(found) == 12
            assert {b - a for a, b in found} == {int(ids[0] - qid[0])}

    def test_other_data_is_not_linked(self, data):
        X, y, qid = data
        rng = np.random.default_rng(9)
        ours = Signature.of(fingerprint(X, y, qid))
        assert len(link(ours, Signature.of(fingerprint(rng.normal(size=X.shape), rng.integers(0, 3, 60), qid)))) == 0


def qid_of(prints, order, place):
    return int(prints.names[order[place]])
