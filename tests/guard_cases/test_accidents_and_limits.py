"""How rarely chance looks like misuse, and which misuse is known to go unseen."""

import warnings

import numpy as np
import pytest
from circles import choose
from guard_cases.situations import registered
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.contamination import forget
from rankeval.contamination.evidence import REFUSAL_CHANCE
from rankeval.contamination.fingerprint import fingerprint, fingerprint_qrels
from rankeval.contamination.matching import link, match_content
from rankeval.contamination.signature import Signature
from rankeval.errors import RankevalWarning

SEEDS = [
    (0, 10),
    *(pytest.param(seed, 10, marks=pytest.mark.rest) for seed in (1, 2)),
    *(pytest.param(seed, 100, marks=pytest.mark.world) for seed in range(10)),
]
"""Seed and number of populations: the worlds of the full circle are all pairs that issue 12 promises."""


class Population:
    """Small data sets of one kind, as awkward as they come: each draw is another data set.

    Short lists, discrete features, flags that were standardised, constant columns, features that give the labels away,
    copies of columns with a little noise; ids 0..n-1, and documents called after their place.
    """

    def __init__(self, rng):
        self.longest = rng.integers(2, 13)
        self.varied = rng.random() < 0.5
        self.kind = rng.choice(["real", "counts", "flags", "standardised", "levels", "mixed"])
        self.width = int(rng.choice([1, 3, 8, 20]))
        self.label = rng.choice(["binary", "one", "grades", "rare", "zeros", "sorted"])
        self.leaks, self.copies, self.constant = rng.random(3) < (0.3, 0.5, 0.3)
        self.rate = rng.uniform(0.05, 0.5, self.width)
        self.documents = rng.choice(["none", "query-place", "place"])
        self.grades = rng.dirichlet(np.ones(5))
        self.with_features = rng.random() < 0.7

    def labels(self, rng, sizes):
        n_rows, first = sizes.sum(), np.cumsum(sizes) - sizes
        if self.label == "one":
            y = np.zeros(n_rows, dtype=int)
            y[first + rng.integers(0, sizes)] = 1
            return y
        if self.label in {"binary", "rare", "zeros"}:
            return (rng.random(n_rows) < {"binary": 0.3, "rare": 0.02, "zeros": 0}[self.label]).astype(int)
        y = rng.choice(5, p=self.grades, size=n_rows)
        return y[np.lexsort((-y, np.repeat(np.arange(len(sizes)), sizes)))] if self.label == "sorted" else y

    def features(self, rng, y, sizes):
        size = (len(y), self.width)
        flags = rng.random(size) < self.rate
        X = {
            "real": lambda: rng.normal(size=size),
            "counts": lambda: rng.poisson(1, size),
            "flags": lambda: flags,
            "standardised": lambda: (flags - self.rate) / np.sqrt(self.rate * (1 - self.rate)),
            "levels": lambda: rng.integers(0, 30, size) / 29,
            "mixed": lambda: np.hstack([rng.poisson(2, size), rng.integers(0, 4, size) * 0.333]),
        }[self.kind]()
        columns = [X]
        if self.leaks:
            columns += [(y + 0.3 * rng.normal(size=len(y)))[:, None], y[:, None] > 0]
        if self.copies:
            columns += [X[:, :1] + 0.01 * rng.normal(size=(len(y), 4)), np.round(2.0 * X[:, :1])]
        if self.constant:
            columns += [np.full((len(y), 2), 3.14159), np.repeat(rng.normal(size=len(sizes)), sizes)[:, None]]
        return np.hstack(columns).astype(float)

    def draw(self, rng):
        n_queries = int(rng.integers(5, 61) * rng.choice([1, 1, 4]))
        sizes = rng.integers(2, self.longest + 1, n_queries) if self.varied else np.full(n_queries, self.longest)
        qid = np.repeat(np.arange(n_queries), sizes)
        place = (np.arange(len(qid)) - np.repeat(np.cumsum(sizes) - sizes, sizes)).astype(str)
        y = self.labels(rng, sizes)
        docid = {
            "none": None,
            "place": np.char.add("d", place),
            "query-place": np.char.add(np.char.add(qid.astype(str), "-"), place),
        }[str(self.documents)]
        return fingerprint(self.features(rng, y, sizes) if self.with_features else None, y, qid, docid=docid)


@pytest.mark.parametrize(("seed", "n"), SEEDS)
def test_disjoint_data_is_never_refused_nor_warned_about(seed, n):
    """10,000 pairs in all, of 1,000 populations."""
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        population = Population(rng)
        prints = population.draw(rng)
        known = registered(prints)
        for _ in range(10):
            other = population.draw(rng)
            found = match_content(known, other)
            assert not found.refused, (population.__dict__, found.why)
            assert not found.warned, (population.__dict__, found.why)
        sides = known.signature, Signature.of(other)
        # For looks, documents that are relevant again under the same ids are enough: other grades may be new judgments.
        # They are in lists that are named in the order of their labels, and where all documents are relevant.
        by_names = population.label == "sorted" or any(side.has_positives_only for side in sides)
        if population.documents != "query-place" or not by_names:
            assert len(link(*sides)) == 0
        # The same worlds can be told: their own data is recognised, if labels or features vary at all.
        own = match_content(known, prints)
        assert own.refused or own.same_labels


class Log:
    """A search log: some queries come again each month, the others are new, and clicks are made anew.

    The click-through of a query or of a document persists over the months. There may be documents, and features of
    which some persist too.
    """

    def __init__(self, rng):
        self.depth, self.recurring = int(rng.choice([10, 20, 30])), int(rng.integers(20, 101))
        self.total = int(rng.integers(self.recurring + 1, 300))
        self.kind = rng.choice(["queries", "documents", "navigational", "graded", "one click"])
        shape = (self.recurring + 600, self.depth)
        rates = {
            "queries": np.broadcast_to(rng.beta(1, 6, (shape[0], 1)), shape),
            "navigational": np.where(np.arange(self.depth) == 0, rng.uniform(0.4, 0.8, (shape[0], 1)), 0.02),
        }
        by_document = np.minimum(0.95, 1.5 * rng.beta(0.6, 3, shape) / np.sqrt(1 + np.arange(self.depth)))
        self.rates = rates.get(str(self.kind), by_document)
        self.lasting = rng.normal(size=(*shape, 6))
        self.same_documents, self.with_documents, self.with_features = rng.random(3) < (0.6, 0.5, 0.5)

    def month(self, rng, number):
        n = self.total
        query = np.append(np.arange(self.recurring), self.recurring + 300 * number + np.arange(n - self.recurring))
        clicks = rng.random((n, self.depth)) < self.rates[query]
        if self.kind == "one click":
            clicks = np.arange(self.depth) == rng.integers(0, self.depth, (n, 1))
        y = clicks * (1 + (rng.random(clicks.shape) < 0.3)) if self.kind == "graded" else clicks
        qid = np.repeat(query, self.depth)
        document = np.tile(np.arange(self.depth), n)
        if not self.same_documents:
            document = rng.integers(0, 10**6, len(qid))
        docid = np.char.add(np.char.add(qid.astype(str), "/"), document.astype(str)) if self.with_documents else None
        X = np.concatenate([self.lasting[query], rng.normal(size=(n, self.depth, 2))], axis=2).reshape(len(qid), -1)
        return X if self.with_features else None, y.ravel().astype(int), qid, docid


@pytest.mark.parametrize(("seed", "n"), SEEDS)
def test_monthly_logs_with_recurring_queries_and_new_clicks_are_never_refused_nor_warned_about(seed, n):
    """1,000 pairs in all."""
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        log = Log(rng)
        first, second = log.month(rng, 0), log.month(rng, 1)
        X, y, qid, docid = first
        known = registered(fingerprint(X, y, qid, docid=docid))
        X, y, qid, docid = second
        found = match_content(known, fingerprint(X, y, qid, docid=docid))
        assert not found.refused, (log.kind, found.why)
        assert not found.warned, (log.kind, found.why)
        if docid is not None:  # and clicks alone, without the documents that were not clicked
            unique = np.unique(np.stack([qid.astype(str), docid]), axis=1, return_index=True)[1]
            known = registered(fingerprint_qrels(rk.Qrels(first[2].astype(str), first[3], first[1])))
            for keep in (unique, unique[y[unique] > 0]):
                data = fingerprint_qrels(rk.Qrels(qid[keep].astype(str), docid[keep], y[keep]))
                assert not match_content(known, data).refused, log.kind
                assert not match_content(known, data).warned, log.kind


MAPS = {
    "clicked": lambda y: np.minimum(y, 1),
    "gains": lambda y: 2**y - 1,
    "no lowest": lambda y: np.maximum(y - 1, 0),
}


@pytest.mark.parametrize(("seed", "n"), SEEDS)
def test_months_with_other_grades_shorter_lists_or_fewer_unclicked_rows_are_never_accused(seed, n):
    """1,000 months in all, changed in four ways each."""
    for number in range(n):
        rng = np.random.default_rng([seed, number, 1])
        log = Log(rng)
        (X, y, qid, _), (X2, y2, qid2, _) = log.month(rng, 0), log.month(rng, 1)
        known = registered(fingerprint(X, y, qid))
        place = np.tile(np.arange(log.depth), log.total)
        some = (y2 > 0) | (rng.random(len(y2)) < rng.uniform(0.1, 0.9))
        y2 = MAPS[rng.choice(list(MAPS))](y2) if rng.random() < 0.5 else y2
        for keep in (place >= 0, place < 10, rng.random(len(y2)) < rng.uniform(0.2, 0.95), some):
            found = match_content(known, fingerprint(None if X2 is None else X2[keep], y2[keep], qid2[keep]))
            assert not found.refused, (log.kind, found.why)
            assert not found.warned, (log.kind, found.why)


def test_the_same_month_with_a_few_grades_changed_is_the_collection():
    """The other side of the law above: most documents the same, and nearly all of their labels."""
    rng = np.random.default_rng(0)
    qid, docid = np.repeat(np.arange(50), 30), np.arange(1500).astype(str)
    y = rng.choice(4, 1500, p=[0.7, 0.15, 0.1, 0.05])
    changed = y.copy()
    some = rng.choice(1500, 60, replace=False)
    changed[some] = (changed[some] + 1) % 4
    keep = rng.random(1500) < 0.9
    known = registered(fingerprint_qrels(rk.Qrels(qid.astype(str), docid, y)))
    new_ids = np.char.add("t", qid.astype(str))
    found = match_content(known, fingerprint_qrels(rk.Qrels(new_ids[keep], docid[keep], changed[keep])))
    assert found.refused
    assert found.n_matched == 50


@pytest.mark.random
def test_labels_refuse_no_other_data_of_the_same_population_in_two_thousand():
    for seed in range(choose(default=100, full=400)):
        rng = np.random.default_rng(seed)
        docs, n_queries, grades = rng.integers(3, 12), rng.integers(8, 60), rng.dirichlet(np.ones(3))
        qid = np.arange(n_queries * docs) // docs

        known = registered(fingerprint(None, rng.choice(3, p=grades, size=len(qid)), qid))
        for _ in range(5):
            n_rows = docs * rng.integers(1, n_queries + 1)
            part = fingerprint(None, rng.choice(3, p=grades, size=len(qid))[:n_rows], qid[:n_rows])
            assert match_content(known, part).chance >= REFUSAL_CHANCE


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.rest) for one in (1, 2))])
def test_labels_of_a_letor_collection_are_told_from_chance(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.choice(3, p=[0.8, 0.15, 0.05], size=45 * 40), np.arange(45 * 40) // 40
    labels = fingerprint(None, y, qid)
    assert match_content(registered(labels), labels).chance < REFUSAL_CHANCE


def rotated(data):
    """Return the features in the axes of a principal component analysis."""
    centred = data.X - data.X.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2].T, data.y, data.qid + 10_000


def dropped_and_scaled(data):
    keep = np.arange(len(data)) % 12 != 5
    return (3 * data.X + 1)[keep], data.y[keep], data.qid[keep] + 10_000


def labels_of_a_part(data):
    keep = data.qid <= 10
    return None, data.y[keep], data.qid[keep] + 10_000


def eight_of_twelve(data):
    """Under the same ids: shorter lists with new labels fit into longer ones too."""
    keep = np.arange(len(data)) % 3 != 1
    return (3 * data.X + 1)[keep], data.y[keep], data.qid[keep]


def mapped_and_scaled(data):
    return 3 * data.X + 1, 2.0**data.y - 1, data.qid + 10_000


def names_padded(data):
    """Without features, other ids and 5 % other labels: nothing is left but how many labels there are."""
    y = np.where(np.random.default_rng(0).random(len(data)) < 0.05, (data.y + 1) % 5, data.y)
    return None, y, np.array([f"{q:05d}" for q in data.qid])


@pytest.mark.parametrize(
    "change", [rotated, dropped_and_scaled, labels_of_a_part, eight_of_twelve, mapped_and_scaled, names_padded]
)
def test_what_goes_unseen_beside_other_data_is_stated(tmp_path, monkeypatch, change):
    """Stated limits. Neither a row, nor the order of a column, nor labels under the same ids are left of the test."""
    data, dev = rk.datasets.make_ranking(60, 12, 5, rng=11), rk.datasets.make_ranking(240, 12, 5, rng=12)
    monkeypatch.setenv("RANKEVAL_LEDGER", str(tmp_path / "ledger"))
    forget()
    rk.Guard("project").register("test", data)
    X, y, qid = change(data)
    y, qid = np.append(y, dev.y), np.append(qid, (dev.qid + 20_000).astype(qid.dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankevalWarning)
        if X is None:
            rk.evaluate(y, np.arange(len(y)), qid=qid)
        else:
            rk.QueryRanker(Ridge()).fit(np.vstack([X, dev.X]), y, qid=qid)
    forget()
