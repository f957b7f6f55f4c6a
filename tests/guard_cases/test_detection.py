"""A registered collection is recognised after each of these changes, alone and beside four times as many other rows."""

from itertools import product

import numpy as np
import pytest

from rankeval.collection.data import RankingData
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.matching import link, match_content
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.datasets import make_ranking


def registered(data, *, with_features=True, docid=None):
    prints = fingerprint(data.X if with_features else None, data.y, data.qid, docid=docid)
    signature = Signature.from_arrays(Signature.of(prints).arrays())
    return RegisteredContent("project", "test", prints.digest, "id", "somebody", "2026-01-02", signature=signature)


def counts(n_queries, seed):
    """Make short and long lists of counts and flags, as many columns of learning-to-rank files are."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(1, n_queries + 1), rng.integers(8, 40, n_queries))
    X = np.column_stack([rng.poisson(3, (len(qid), 10)), rng.random((len(qid), 4)) < 0.2, rng.gamma(2, size=len(qid))])
    y = np.digitize(X[:, :3].sum(axis=1) + rng.normal(size=len(qid)), [9, 12, 14, 16])
    return RankingData(X, y, qid)


WORLDS = {
    "300 queries of 20": lambda seed: make_ranking(300, 20, 12, rng=seed),
    "40 queries of 12": lambda seed: make_ranking(40, 12, 5, rng=seed),
    "50 queries of 10": lambda seed: make_ranking(50, 10, 4, rng=seed),
    "60 queries of counts": lambda seed: counts(60, seed),
}


DEFAULT = "40 queries of 12"


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == DEFAULT else pytest.mark.rest) for name in WORLDS],
)
def world(request):
    """Return a test collection, and other data of four times as many queries from the same population."""
    make = WORLDS[request.param]
    test, parts = make(1), [make(seed) for seed in (2, 3, 4, 5)]
    step = max(test.qid) + 1
    qid = np.concatenate([part.qid + 1000 + place * step for place, part in enumerate(parts)])
    dev = RankingData(np.vstack([one.X for one in parts]), np.concatenate([one.y for one in parts]), qid)
    return test, dev


def renamed(qid):
    return np.array([f"topic-{1000 - q}" for q in qid])


def relabelled(y, share, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(y)
    rows = rng.choice(len(y), round(share * len(y)), replace=False)
    y[rows] = (y[rows] + rng.integers(1, 5, len(rows))) % 5
    return y


def places(data):
    """Return the place of each row in its query."""
    return np.arange(len(data)) - np.searchsorted(data.qid, data.qid)


def other_rows(test, n_queries):
    extra = make_ranking(n_queries, 12, test.X.shape[1], rng=99)
    return extra.X, extra.y, extra.qid + 5000


def with_queries(test, n_queries):
    X, y, qid = other_rows(test, n_queries)
    return np.vstack([test.X, X]), np.append(test.y, y), np.append(test.qid, qid)


def half(test, _seed=0):
    some = np.isin(test.qid, np.random.default_rng(0).choice(np.unique(test.qid), len(np.unique(test.qid)) // 2, False))
    return test.X[some], test.y[some], test.qid[some]


def minus_one(test):
    keep = test.qid != test.qid[0]
    return test.X[keep], test.y[keep], test.qid[keep]


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def noise(X):
    return np.random.default_rng(7).normal(size=(len(X), 1))


def rows_where(test, keep):
    return test.X[keep], test.y[keep], test.qid[keep]


# With features. Each of them under the same ids and under new ones.
CHANGES = {
    "exact": lambda d: (d.X, d.y, d.qid),
    "shuffled": lambda d: tuple(part[np.random.default_rng(0).permutation(len(d))] for part in (d.X, d.y, d.qid)),
    "one query more": lambda d: with_queries(d, 1),
    "five queries more": lambda d: with_queries(d, 5),
    "one query less": minus_one,
    "half of the queries": half,
    "a column more": lambda d: (np.hstack([d.X, noise(d.X)]), d.y, d.qid),
    "a column of ones more": lambda d: (np.hstack([d.X, np.ones_like(noise(d.X))]), d.y, d.qid),
    "a column less": lambda d: (d.X[:, 1:], d.y, d.qid),
    "one column scaled": lambda d: (d.X * np.append(3.0, np.ones(d.X.shape[1] - 1)), d.y, d.qid),
    "all columns scaled": lambda d: (7 * d.X - 3, d.y, d.qid),
    "columns reordered": lambda d: (d.X[:, ::-1], d.y, d.qid),
    "monotone maps": lambda d: (np.exp(d.X / 4), d.y, d.qid),
    "decreasing maps": lambda d: (-np.arctan(d.X), d.y, d.qid),
    "standardised": lambda d: (scaled(d.X), d.y, d.qid),
    "min-max": lambda d: ((d.X - d.X.min(axis=0)) / np.ptp(d.X, axis=0), d.y, d.qid),
    "two thirds of the columns": lambda d: (d.X[:, : -(d.X.shape[1] // 3)], d.y, d.qid),
    "float32": lambda d: (d.X.astype(np.float32), d.y, d.qid),
    "written with six digits": lambda d: (
        np.array([f"{v:.6g}" for v in d.X.ravel()], float).reshape(d.X.shape),
        d.y,
        d.qid,
    ),
    "binary labels": lambda d: (d.X, (d.y > 1).astype(int), d.qid),
    "other labels": lambda d: (d.X, np.random.default_rng(0).integers(0, 5, len(d)), d.qid),
    "a row less": lambda d: rows_where(d, places(d) != 3),
    "three quarters of the rows": lambda d: rows_where(d, places(d) % 4 != 1),
    "5 % relabelled": lambda d: (d.X, relabelled(d.y, 0.05), d.qid),
    "5 % relabelled, scaled": lambda d: (7 * d.X - 3, relabelled(d.y, 0.05), d.qid),
}


def failures_of(check, *tables):
    """Call a check with each combination of rows of some tables; return what failed, by the names of the rows."""
    failed = {}
    for row in product(*tables):
        try:
            check(*row)
        except AssertionError as error:
            failed[row] = str(error)
    return failed


def found(test, dev, rows, *, ids):
    X, y, qid = rows
    qid = renamed(qid) if ids == "new" else qid
    if dev is not None:
        more = np.random.default_rng(3).normal(size=(len(dev), X.shape[1]))
        width = min(dev.X.shape[1], X.shape[1])
        more[:, :width] = dev.X[:, :width]
        X, y, qid = np.vstack([X, more]), np.append(y, dev.y), np.append(qid.astype(object), dev.qid.astype(object))
        qid = qid.astype(str)
    data = fingerprint(X, y, qid)
    return match_content(registered(test), data), data


BESIDE = ("alone", "beside dev rows")


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("ids", ["same", "new"])
def test_changed_features_and_labels_are_seen(world, ids, beside):
    test, dev = world
    names = renamed(test.qid) if ids == "new" else test.qid
    of_test = {str(name) for name in names} | {str(q + 5000) for q in range(9)}

    def check(change):
        result, data = found(test, dev if beside != "alone" else None, CHANGES[change](test), ids=ids)
        assert result.refused, result.why
        assert {str(name) for name in data.names[result.queries]} <= of_test

    assert failures_of(check, CHANGES) == {}


# Without features, as rk.evaluate has it.
LABELS = {
    "exact": lambda d: (d.y, d.qid),
    "one query more": lambda d: with_queries(d, 1)[1:],
    "five queries more": lambda d: with_queries(d, 5)[1:],
    "one query less": lambda d: minus_one(d)[1:],
    "half of the queries": lambda d: half(d)[1:],
    "5 % relabelled": lambda d: (relabelled(d.y, 0.05), d.qid),
    "5 % relabelled otherwise": lambda d: (relabelled(d.y, 0.05, seed=5), d.qid),
}


def documents(ids):
    return np.array([f"{q}-{p}" for q, p in zip(ids, np.arange(len(ids)) - np.searchsorted(ids, ids), strict=True)])


def test_labels_under_the_same_ids_are_seen(world):
    test, dev = world

    def check(change, beside, docid):
        y, qid = LABELS[change](test)
        if beside != "alone":
            y, qid = np.append(y, dev.y), np.append(qid, dev.qid)
        with_documents = docid == "with documents"
        result = match_content(
            registered(test, docid=documents(test.qid) if with_documents else None),
            fingerprint(None, y, qid, docid=documents(qid) if with_documents else None),
        )
        assert result.refused, result.why
        assert result.queries.sum() >= 0.9 * np.isin(np.unique(qid), test.qid).sum()

    assert failures_of(check, LABELS, BESIDE, ("without documents", "with documents")) == {}


def fewer_zeros(d, share=0.5):
    return (d.y > 0) | (np.random.default_rng(2).random(len(d)) < share)


# Grades mapped, or negatives sampled: the features are scaled (or not there), and the ids are the same.
MAPPED = {
    "gains": lambda d: (2.0**d.y - 1, d.qid, slice(None)),
    "binary, at least 1": lambda d: (d.y >= 1, d.qid, slice(None)),
    "binary, at least 2": lambda d: (d.y >= 2, d.qid, slice(None)),
    "one less": lambda d: (np.maximum(d.y - 1, 0), d.qid, slice(None)),
    "half of the zeros": lambda d: (d.y, d.qid, fewer_zeros(d)),
    "half of the zeros, gains": lambda d: (2.0**d.y - 1, d.qid, fewer_zeros(d)),
    "gains, 5 % relabelled": lambda d: (2.0 ** relabelled(d.y, 0.05) - 1, d.qid, slice(None)),
}


def test_mapped_grades_under_the_same_ids_are_seen(world):
    """Also by what registrations keep of each other (`link`)."""
    test, dev = world

    def check(change, beside, features):
        y, qid, keep = MAPPED[change](test)
        X = {"scaled": 3 * test.X + 1, "noise": test.X + 1e-3 * noise(test.X), "none": None}[features]
        X, y, qid = None if X is None else X[keep], np.asarray(y, dtype=float)[keep], qid[keep]
        n = len(np.unique(qid))
        if beside != "alone":
            more = np.maximum(dev.y - 1, 0) if change == "one less" else np.unique(y)[dev.y % len(np.unique(y))]
            X = None if X is None else np.vstack([X, dev.X])
            y, qid = np.append(y, more), np.append(qid, dev.qid)
        known, data = registered(test), fingerprint(X, y, qid)
        result = match_content(known, data)
        assert result.refused, result.why
        assert set(data.names[result.queries].tolist()) <= set(test.qid.tolist())
        assert result.n_matched >= (0.3 if "relabelled" in change else 0.95) * n
        if beside == "alone":
            assert len(link(known.signature, Signature.of(data))) >= 0.3 * n

    assert failures_of(check, MAPPED, BESIDE, ("scaled", "none", "noise")) == {}


def test_what_is_left_without_the_recognised_rows_is_not_refused(world):
    """`X[~mask]` gets one out, and of the other data nothing is lost."""
    test, dev = world

    def check(change):
        result, data = found(test, dev, CHANGES[change](test), ids="new")
        keep = ~result.queries[data.codes]
        assert keep.sum() >= len(dev)
        rest = fingerprint(data.X[keep], data.y[keep], data.names[data.codes][keep])
        assert not match_content(registered(test), rest).refused

    assert failures_of(check, CHANGES) == {}
