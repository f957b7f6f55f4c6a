"""A query's values, counts and hashes are its own: they do not depend on which other queries stand beside it.

Evaluation out of core, on several workers and on Spark rests on this law: each of them cuts the queries differently.
"""

from __future__ import annotations

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_measure_laws import all_members
from tables import each_row

import rankeval as rk
from rankeval.join import joined
from rankeval.measures import ranked

LENGTHS = {
    "of one length": lambda rng: np.full(12, rng.integers(1, 20)),
    "of unlike length": lambda rng: rng.integers(1, 20, 12),
    "of about the same length": lambda rng: rng.integers(60, 80, 12),
    "one long among short ones": lambda rng: np.append(rng.integers(1, 6, 11), 300),
}
LABELS = {
    "few": lambda rng, n: rng.integers(0, 4, n),
    "below zero": lambda rng, n: rng.integers(-2, 3, n),
    "with fractions": lambda rng, n: rng.choice([0, 0.5, 1, 2.25], n),
    "many": lambda rng, n: rng.integers(0, 400, n) * (rng.random(n) < 0.5),
}
FEW = [
    "nDCG@10",
    "nDCG",
    "nDCG(gain={1: 1.5})@5",
    "AP",
    "AP(rel=2)",
    "AP@5",
    "RR",
    "P@10",
    "R@100",
    "Rprec",
    "RR@3",
    "ERR(max_rel=400)",
]


def rows(seed: int, lengths: str, labels: str, ties: bool):
    """Return labels, scores and query ids of twelve queries, the last label of some higher than all others."""
    rng = np.random.default_rng(seed)
    size = LENGTHS[lengths](rng)
    qid = np.repeat(np.arange(len(size)), size)
    score = rng.normal(size=len(qid))
    return LABELS[labels](rng, len(qid)), np.round(score, 1) if ties else score, qid


def assert_alone_as_together(y, score, qid, names, queries, **rules):
    """Evaluate all queries at once, and some of them alone; what is a query's own must agree to the last bit."""
    together = rk.evaluate(y, score, qid=qid, measures=names, **rules)
    some = np.isin(qid, queries)
    alone = rk.evaluate(y[some], score[some], qid=qid[some], measures=names, **rules)
    at = np.searchsorted(together.queries, alone.queries)
    np.testing.assert_array_equal(together.queries[at], alone.queries)
    for name, one, other in zip(together.measure_names, together.scores[at].T, alone.scores.T, strict=True):
        assert one.tobytes() == other.tobytes(), name
    assert together.facts.rankings[at].tobytes() == alone.facts.rankings.tobytes()
    assert together.facts.judgments[at].tobytes() == alone.facts.judgments.tobytes()
    for count, numbers in together.facts.query_counts.items():
        np.testing.assert_array_equal(numbers[at], alone.facts.query_counts[count])


@settings(max_examples=examples(15), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    labels=st.sampled_from(list(LABELS)),
    rule=st.sampled_from(["expected", "stable", "worst", "best"]),
    chunk=st.sampled_from([1, 40, 2**18]),
    few=st.integers(1, 3),
    fewest=st.sampled_from([0, 9, 10**6]),
    long=st.sampled_from([1, 10, 1024]),
)
@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_query_has_the_same_values_alone_and_beside_others(lengths, seed, labels, rule, chunk, few, fewest, long):
    y, score, qid = rows(seed, lengths, labels, ties=seed % 2 == 0)
    order = np.random.default_rng(seed).permutation(len(qid)) if seed % 3 == 0 else slice(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joined, "CHUNK", chunk)
        patch.setattr(joined, "_MANY_QUERIES", fewest)
        patch.setattr(ranked, "_LONG", long)
        negative = "zero" if labels == "below zero" and seed % 4 < 2 else "unjudged"
        rules = {"convention": rk.Convention(negative=negative), "ties": rule}
        assert_alone_as_together(y[order], score[order], qid[order], FEW, range(few), **rules)


@each_row("ties", [False, True])
@each_row("lengths", LENGTHS)
def test_tables_by_rank_give_the_values_of_flat_lists(lengths, ties, monkeypatch):
    """The layouts, and long lists one by one, add the same numbers in the same order."""
    y, score, qid = rows(2, lengths, "few", ties)
    found = []
    for fewest, long in ((0, 1024), (10**6, 1024), (10**6, 1)):
        monkeypatch.setattr(joined, "_MANY_QUERIES", fewest)
        monkeypatch.setattr(ranked, "_LONG", long)
        ev = rk.evaluate(y, score, qid=qid, measures=all_members() if not ties else FEW)
        found.append(
            (ev.scores.tobytes(), ev.ranking_digest, ev.judgments_digest, ev.facts.query_counts["relevant"].tolist())
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_that_holds_for_every_measure(lengths):
    y, score, qid = rows(1, lengths, "few", ties=True)
    kept = score + 0.01 * np.arange(len(score)) * (qid > 2)  # drawing orders of tied rows takes long
    assert_alone_as_together(y, kept, qid, all_members(), [2, 5, 11])


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6), labels=st.sampled_from(list(LABELS)), lengths=st.sampled_from(list(LENGTHS)))
def test_two_rows_of_unlike_label_that_change_places_change_the_hash_of_their_query(seed, labels, lengths):
    y, score, qid = rows(seed, lengths, labels, ties=False)
    query = np.random.default_rng(seed).integers(12)
    at = np.flatnonzero(qid == query)
    one, other = np.random.default_rng(seed).choice(at, 2)
    swapped = y.copy()
    swapped[[one, other]] = y[[other, one]]
    before, after = (rk.evaluate(labels, score, qid=qid, measures="RR").facts.rankings for labels in (y, swapped))
    changed = np.flatnonzero(before != after).tolist()
    assert changed == ([query] if y[one] != y[other] else [])
