"""Binary judgments with some labels flipped, or without their zeros; and noise, with what of it goes unseen."""

from itertools import product

import numpy as np
import pytest
from circles import choose
from guard_cases.situations import registered

import rankeval as rk
from rankeval.contamination.fingerprint import fingerprint, fingerprint_qrels
from rankeval.contamination.matching import match_content
from rankeval.errors import GuardRefusal


class Judgments:
    """Binary judgments of 100 queries, 50 documents each."""

    def __init__(self, density, seed, *, n_queries=100, n_docs=50):
        self.rng = np.random.default_rng([seed, n_queries, n_docs])
        self.qid = np.repeat(np.arange(n_queries), n_docs).astype(str)
        self.docid = np.char.add("d", np.arange(n_queries * n_docs).astype(str))
        self.y = (self.rng.random(len(self.qid)) < density).astype(int)

    def qrels(self, y=None, *, keep=slice(None), new_ids=False):
        qid = np.char.add("topic-", self.qid) if new_ids else self.qid
        return rk.Qrels(qid[keep], self.docid[keep], (self.y if y is None else y)[keep])

    def flipped(self, share):
        return np.where(self.rng.random(len(self.y)) < share, 1 - self.y, self.y)


@pytest.mark.parametrize("change", ["5 % flipped", "positives only"])
def test_an_evaluation_against_changed_judgments_is_refused(guard, change):
    test = Judgments(0.1, seed=0)
    guard.register("test", qrels=test.qrels())
    changed = test.qrels(test.flipped(0.05)) if change == "5 % flipped" else test.qrels(keep=test.y > 0)
    run = rk.Run(test.qid, test.docid, test.rng.random(len(test.qid)))
    with pytest.raises(GuardRefusal) as refusal:
        rk.evaluate(changed, run)
    assert len(refusal.value.queries) >= 0.95 * len(set(changed.qid.to_pylist()))


def test_up_to_five_percent_of_binary_labels_may_be_flipped():
    """Under the same ids and under new ones."""
    for density, (seed, share), new_ids in product(
        (0.05, 0.1, 0.2, 0.4), enumerate([0.0, 0.01, 0.02, 0.03, 0.04, 0.05]), (False, True)
    ):
        test = Judgments(density, seed)
        known = registered(fingerprint_qrels(test.qrels()))
        found = match_content(known, fingerprint_qrels(test.qrels(test.flipped(share), new_ids=new_ids)))
        assert found.refused, (density, share, new_ids, found.why)


@pytest.mark.random
@pytest.mark.parametrize("density", [0.05, 0.1, 0.2, 0.4, 0.7])
def test_positives_only_are_refused_beside_other_judgments_too(density):
    for seed in range(choose(default=1, full=5)):
        test, other = Judgments(density, seed), Judgments(density, seed + 50)
        known = registered(fingerprint_qrels(test.qrels()))
        alone = test.qrels(keep=test.y > 0)
        assert match_content(known, fingerprint_qrels(alone)).refused
        ids = [np.char.add("x", part[other.y > 0]) for part in (other.qid, other.docid)]
        both = [np.append(a.to_pylist(), b) for a, b in zip((alone.qid, alone.docid), ids, strict=True)]
        found = match_content(known, fingerprint_qrels(rk.Qrels(*both, np.ones(len(both[0]), dtype=int))))
        assert found.refused
        assert found.queries.sum() == len(set(alone.qid.to_pylist()))


@pytest.mark.parametrize(("density", "seen"), [(0.1, False), (0.2, False), (0.6, True)])
def test_positives_only_under_new_ids_are_seen_if_enough_documents_are_left(density, seen):
    """A stated limit."""
    for seed in range(3):
        test = Judgments(density, seed)
        known = registered(fingerprint_qrels(test.qrels()))
        assert match_content(known, fingerprint_qrels(test.qrels(keep=test.y > 0, new_ids=True))).refused == seen


@pytest.mark.random
def test_documents_that_are_clicked_month_after_month_are_no_evidence():
    """A few documents of each query are clicked in four months of five, all others hardly ever; grades change more."""
    seeds = range(choose(default=1, full=6))
    for rare, frequent, graded, seed in product((0.0, 0.01, 0.05), (0.02, 0.05, 0.2), (False, True), seeds):
        rng = np.random.default_rng([seed, 5])
        log = Judgments(0, seed, n_queries=60, n_docs=30)
        rate = np.where(rng.random(len(log.y)) < frequent, 0.8, rare)
        first, second = ((rng.random(len(rate)) < rate) * rng.integers(1, 3 if graded else 2, len(rate)) for _ in "ab")
        known = registered(fingerprint_qrels(log.qrels(first)))
        for data in (log.qrels(second), log.qrels(second, keep=second > 0), log.qrels(np.minimum(second, 1))):
            found = match_content(known, fingerprint_qrels(data))
            assert not found.refused, (rare, frequent, graded, seed, found.why)
            assert not found.warned, (rare, frequent, graded, seed, found.why)


@pytest.mark.parametrize("recall", [0.5, 0.7, 0.9])
def test_other_judgments_of_the_same_documents_are_no_evidence(recall):
    """Documents that a good ranker puts first, taken for relevant: its judgments are positives only."""
    for seed in range(6):
        test = Judgments(0.1, seed)
        score = test.rng.normal(size=len(test.y)) + 6 * test.y * (test.rng.random(len(test.y)) < recall)
        first = np.zeros(len(score), dtype=bool)
        for rows in np.arange(len(score)).reshape(100, 50):
            first[rows[np.argsort(-score[rows])[:15]]] = True
        known = registered(fingerprint_qrels(test.qrels()))
        data = test.qrels(np.ones_like(test.y), keep=first)
        assert not match_content(known, fingerprint_qrels(data)).refused


class TestNoise:
    """Noise of a millionth of a standard deviation, beside other rows."""

    @staticmethod
    def found(data, dev, *, new_ids, share):
        rng = np.random.default_rng(1)
        known = registered(fingerprint(data.X, data.y, data.qid))
        X = data.X + 1e-6 * np.std(data.X, axis=0) * rng.normal(size=data.X.shape)
        y = np.where(rng.random(len(data.y)) < share, rng.permutation(data.y), data.y)
        qid = data.qid + 10**6 if new_ids else data.qid
        prints = fingerprint(np.vstack([X, dev.X]), np.append(y, dev.y), np.append(qid, dev.qid + 10**7))
        return match_content(known, prints)

    @pytest.mark.parametrize(("new_ids", "share"), [(True, 0), (True, 0.1), (False, 0), (False, 0.1)])
    def test_on_distinct_floats_it_is_seen(self, new_ids, share):
        whole = rk.datasets.make_ranking(180, 12, 5, rng=0)
        test, dev = whole.take(whole.qid <= 60), whole.take(whole.qid > 60)
        found = self.found(test, dev, new_ids=new_ids, share=share)
        assert found.refused
        assert found.n_matched >= 57

    @pytest.mark.parametrize(
        ("new_ids", "share", "seen"), [(False, 0, 120), (True, 0, 0), (True, 0.1, 0), (False, 0.1, 0)]
    )
    def test_on_features_of_few_values_it_is_seen_by_ids_and_labels_only(self, new_ids, share, seen):
        """A stated limit: the noise breaks ties, so that the order of values in a column is another one."""
        whole = rk.datasets.load_digits_retrieval()
        queries = np.unique(whole.qid)[:120]
        test, dev = (whole.take(np.isin(whole.qid, queries) == part) for part in (True, False))
        assert self.found(test, dev, new_ids=new_ids, share=share).n_matched == seen


def test_queries_that_are_split_in_two_with_other_features_go_unseen():
    """A stated limit: rows are scaled, and no column of a query is whole."""
    whole = rk.datasets.make_ranking(180, 12, 5, rng=0)
    test, dev = whole.take(whole.qid <= 60), whole.take(whole.qid > 60)
    known = registered(fingerprint(test.X, test.y, test.qid))
    qid = np.append(10**6 + 2 * test.qid + np.arange(len(test)) % 2, dev.qid + 10**7)
    found = match_content(known, fingerprint(np.vstack([3 * test.X + 1, dev.X]), np.append(test.y, dev.y), qid))
    assert found.n_matched == 0
