"""What of some data is in a registered collection, and how much of it is needed."""

import numpy as np
import pytest
from rankeval.ledger.chain import Entry

from rankeval.collection.qrels import Qrels
from rankeval.contamination.evidence import REFUSAL_CHANCE, chance_of_being_contained
from rankeval.contamination.fingerprint import fingerprint, fingerprint_qrels
from rankeval.contamination.matching import Match, match, was_opened
from rankeval.contamination.register import RegisteredContent, registered_contents, registration
from rankeval.ledger.arrays import decode_array, encode_array


def collection(n_identifiable, n_queries=None, **found):
    """Return a collection of which the first queries can be told from others."""
    n_queries = n_identifiable if n_queries is None else n_queries
    told = np.arange(n_queries) < n_identifiable
    return RegisteredContent(
        "p", "test", "0" * 64, {"features": np.arange(n_queries, dtype=np.uint64)}, {"features": told}, **found
    )


def found(of, n_matched, chance=1.0, same_labels=False, n_queries=4):
    return Match(of, n_matched, chance, same_labels, np.ones(n_queries, dtype=bool))


@pytest.mark.parametrize(
    ("n_identifiable", "needed"),
    [(0, 0), (1, 1), (2, 2), (3, 3), (60, 3), (61, 4), (80, 4), (81, 5), (100, 5), (101, 6), (1000, 50), (1001, 51)],
)
def test_so_many_identifiable_queries_must_match(n_identifiable, needed):
    """Five in a hundred, rounded up, and at least three; all of fewer; and never none."""
    one = collection(n_identifiable, n_identifiable + 7)
    assert one.n_queries == n_identifiable + 7
    assert one.n_identifiable == n_identifiable
    assert one.n_to_refuse == needed
    assert not found(one, 0).by_content
    assert not found(one, needed - 1).by_content
    assert found(one, max(needed, 1)).by_content


def test_a_query_that_any_kind_of_content_tells_is_identifiable():
    kinds = {"features": np.array([True, False, False]), "judgments": np.array([True, True, False])}
    one = RegisteredContent("p", "n", "d", {kind: np.arange(3, dtype=np.uint64) for kind in kinds}, kinds)
    assert one.n_identifiable == 2
    assert {kind: hashes.tolist() for kind, hashes in one.identifying.items()} == {"features": [0], "judgments": [0, 1]}
    none = RegisteredContent("p", "n", "d", {"labels": np.arange(3, dtype=np.uint64)}, {})
    assert (none.n_identifiable, none.identifying, none.n_to_refuse) == (0, {}, 0)


def test_labels_refuse_below_one_in_ten_thousand():
    one = collection(5)
    assert REFUSAL_CHANCE == 1e-4
    assert not found(one, 0, chance=1e-4).by_labels
    assert found(one, 0, chance=0.99e-4).by_labels


def test_the_evidence_is_said_in_words():
    one = collection(30, 40)
    assert found(one, 7, chance=1e-9).why == "7 of its 30 identifiable queries are in the data"
    assert found(one, 0, chance=2e-9).why == "the labels are those of 4 of its 40 queries (chance 2e-09)"
    assert found(one, 0, chance=1e-12).why == "the labels are those of 4 of its 40 queries (chance 1e-12)"
    assert found(one, 0, chance=9e-13).why == "the labels are those of 4 of its 40 queries (chance under 1e-12)"
    assert found(one, 0, same_labels=True).why == "the labels equal those of its 40 queries, which may be chance"
    assert found(one, 0).why == "none of its queries are in the data"


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 5)), rng.integers(0, 3, 60), np.repeat(np.arange(12), 5)


def registered(X, y, qid, **found):
    return RegisteredContent.from_body({"name": "test", **registration(fingerprint(X, y, qid), X)}, "p", **found)


def test_queries_are_found_by_their_rows_wherever_they_stand(data):
    """In part, among others, with other labels; each kind of content finds its own."""
    X, y, qid = data
    one = registered(X, y, qid)
    assert one.n_queries == one.n_identifiable == 12
    other = np.random.default_rng(1).normal(size=(20, 5))
    rows = np.concatenate([X[qid == 3], other[:10], X[qid == 7], other[10:]])
    labels, ids = np.zeros(30), np.repeat([4, 9, 8, 1, 0, 2], 5)
    result = match(one, fingerprint(rows, labels, ids))
    assert result.n_matched == 2
    names = np.unique(ids)
    assert names[result.queries].tolist() == [1, 4]
    assert (result.chance, result.same_labels) == (1.0, False)
    whole = match(one, fingerprint(X, 2 - y, qid))
    assert (whole.n_matched, whole.queries.all()) == (12, True)
    assert match(one, fingerprint(other, np.zeros(20), np.repeat([0, 1], 10))).n_matched == 0


def test_a_query_that_stands_twice_in_the_data_is_one_of_the_collection(data):
    X, y, qid = data
    part = np.concatenate([np.flatnonzero(qid == 3)] * 2)
    result = match(registered(X, y, qid), fingerprint(X[part], y[part], np.repeat([0, 1], 5)))
    assert (result.n_matched, result.queries.tolist()) == (1, [True, True])


def test_queries_that_are_not_identifiable_are_not_counted():
    """Flags in three columns stand in many queries: they match, and prove nothing."""
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    one = registered(X, [0, 1, 1, 0], [0, 0, 1, 1])
    assert one.n_identifiable == 0
    result = match(one, fingerprint(X, [0, 1, 1, 0], [0, 0, 1, 1]))
    assert (result.n_matched, result.by_content, result.queries.any()) == (0, False, False)
    assert result.same_labels


def test_labels_alone_are_weighed_for_the_whole_collection(data):
    X, _, _ = data
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 3, 60 * 8), np.repeat(np.arange(60), 8)
    labels = fingerprint(None, y, qid)
    one = RegisteredContent.from_body({"name": "test", **registration(labels, None)}, "p")
    result = match(one, labels)
    times = np.unique(labels.queries["labels"], return_counts=True)[1]
    assert result.chance == chance_of_being_contained(times, 60)
    assert result.by_labels
    assert result.same_labels
    assert result.queries.all()
    assert (result.n_matched, result.by_content) == (0, False)
    part = match(one, fingerprint(None, y[:40], qid[:40]))
    assert (part.same_labels, part.queries.any(), part.by_labels) == (False, False, False)
    y[0] = 9
    other = match(one, fingerprint(None, y, qid))
    assert (other.chance, other.same_labels, other.by_labels, other.queries.any()) == (1.0, False, False, False)
    without = match(one, fingerprint(X, None, np.repeat(np.arange(12), 5)))
    assert (without.chance, without.same_labels) == (1.0, False)


def test_an_opened_ranking_is_let_through_if_all_matched_queries_are_ranked_so(data):
    """Queries of other data may be ranked as they like; one order of rows or of labels suffices."""
    X, y, qid = data
    y = np.where(qid == 5, [0, 0, 1, 2, 2] * 12, y)  # no order of these labels is its own reverse
    known = fingerprint(X, y, qid)
    score = np.random.default_rng(3).normal(size=60)
    outputs = known.outputs(score)
    one = registered(X, y, qid, opened=({"labels": outputs["labels"][:3]}, outputs))
    result = match(one, known)
    assert was_opened(result, outputs)
    assert was_opened(result, {"features": outputs["features"]})
    assert not was_opened(result, {"documents": outputs["features"]})
    assert not was_opened(result, known.outputs(np.where(qid == 5, -score, score)))
    assert not was_opened(match(registered(X, y, qid), known), outputs)
    rows = np.concatenate([X[qid < 4], X[qid == 5] + 1])
    with_others = fingerprint(rows, np.append(y[qid < 4], y[qid == 5]), np.append(qid[qid < 4], [77] * 5))
    ranked = with_others.outputs(np.append(score[qid < 4], [5, 4, 3, 2, 1]))
    assert was_opened(match(one, with_others), ranked)


def entry(kind, project, body):
    return Entry(0, kind, project, "t", "w", body, "", "")


def body_of(digest, name):
    return {
        "name": name,
        "digest": digest,
        "signatures": {"labels": encode_array(np.ones(2, dtype=np.uint64))},
        "identifiable": {},
    }


def test_the_register_is_what_the_entries_say():
    """A collection is retired by its own project alone; what was opened of a content was seen by all."""
    output = {"labels": encode_array(np.array([5, 6], dtype=np.uint64))}
    entries = [
        entry("register", "p", body_of("d1", "one")),
        entry("register", "p", body_of("d2", "two")),
        entry("register", "other", body_of("d1", "theirs")),
        entry("open", "other", {"digest": "d1", "systems": {"a": {"outputs": output}, "b": {"outputs": output}}}),
        entry("retire", "p", {"digest": "d1", "reason": "published"}),
        entry("note", "p", {"digest": "d2", "reason": "nothing"}),
    ]
    one, two, theirs = registered_contents(entries)
    assert [(s.project, s.name, s.digest, s.retired, len(s.opened)) for s in (one, two, theirs)] == [
        ("p", "one", "d1", "published", 2),
        ("p", "two", "d2", None, 0),
        ("other", "theirs", "d1", None, 2),
    ]
    assert theirs.opened[0]["labels"].tolist() == [5, 6]
    assert one.signatures["labels"].tolist() == [1, 1]


def test_a_registration_keeps_signatures_in_an_order_that_says_nothing(data):
    """By content: the order of queries, which may tell their ids, is not kept; evidence goes along."""
    X, y, qid = data
    X = X.copy()
    X[qid == 4] = [[1], [2], [3], [4], [5]]  # a query of plain numbers among measurements
    order = np.random.default_rng(0).permutation(60)
    one, two = (
        registration(fingerprint(X[rows], y[rows], (11 - qid)[rows]), X[rows]) for rows in (np.arange(60), order)
    )
    assert one == two
    assert (one["n_queries"], one["n_rows"]) == (12, 60)
    told = decode_array(one["identifiable"]["features"])
    assert told.sum() == 11
    known = fingerprint(X, y, qid)
    plain = known.queries["features"][4]
    assert decode_array(one["signatures"]["features"])[~told].tolist() == [plain]
    qrels = fingerprint_qrels(Qrels(["a", "b"], ["d", "d"], [1, 0]))
    assert set(registration(qrels, None)["signatures"]) == {"documents", "labels", "judgments"}
