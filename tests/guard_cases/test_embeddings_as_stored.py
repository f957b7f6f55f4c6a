"""Embeddings come back as people store them: in half precision, divided by their length, beside other rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from guard_cases.situations import registered

import rankeval as rk
from rankeval.contamination.fingerprint import fingerprint
from rankeval.contamination.matching import match_content

N_QUERIES, N_ROWS, N_COLUMNS = 60, 30, 64
QID = np.repeat(np.arange(N_QUERIES), N_ROWS)


def embedded(seed):
    """Return embeddings of unequal columns, which do not lie around 0."""
    rng = np.random.default_rng(seed)
    spread, centre = rng.uniform(0.5, 2, N_COLUMNS), rng.normal(scale=0.5, size=N_COLUMNS)
    return (centre + spread * rng.normal(size=(len(QID), N_COLUMNS))).astype(np.float32)


def one_positive(seed):
    rng = np.random.default_rng([seed, 1])
    y = np.zeros(len(QID), dtype=int)
    y[np.arange(N_QUERIES) * N_ROWS + rng.integers(0, N_ROWS, N_QUERIES)] = 1
    return y


FORMS = {
    "half precision": lambda X: X.astype(np.float16),
    "half precision and back": lambda X: X.astype(np.float16).astype(np.float64),
    "divided by their length": lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
    "both": lambda X: (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16),
    "in a frame": lambda X: pd.DataFrame(X.astype(np.float16)),
}


@pytest.mark.parametrize("new_ids", [False, True], ids=["the same ids", "new ids"])
@pytest.mark.parametrize("form", list(FORMS))
def test_they_are_recognised(form, new_ids):
    X, y = embedded(0), one_positive(0)
    known = registered(fingerprint(X, y, QID))
    found = match_content(known, fingerprint(FORMS[form](X), y, QID + 10**6 * new_ids))
    assert found.refused
    assert found.n_matched == N_QUERIES


def test_they_are_recognised_beside_others_with_new_labels():
    X, y = embedded(0), one_positive(0)
    known = registered(fingerprint(X, y, QID))
    both = np.vstack([X.astype(np.float16), embedded(1).astype(np.float16)])
    found = match_content(known, fingerprint(both, np.append(one_positive(5), y), np.append(QID, QID + 1000)))
    assert found.refused
    assert found.queries.sum() == N_QUERIES


def test_what_is_left_is_not_refused(guard):
    X, y = embedded(0), one_positive(0)
    guard.register("test", X, y, qid=QID)
    other = embedded(1)
    every = np.vstack([X, other]).astype(np.float16)
    qid = np.append(QID + 500, QID + 1000)
    status = guard.status(every, np.append(y, one_positive(1)), qid=qid)
    assert status.refused
    assert status.rows.sum() == len(QID)
    rest = ~status.rows
    assert not guard.status(every[rest], np.append(y, one_positive(1))[rest], qid=qid[rest]).refused


def test_other_embeddings_of_the_same_model_are_not():
    known = registered(fingerprint(embedded(0), one_positive(0), QID))
    for seed in range(1, 21):
        assert not match_content(known, fingerprint(embedded(seed), one_positive(seed), QID)).refused, seed


@pytest.mark.parametrize("load", [rk.datasets.load_digits_retrieval, lambda: rk.datasets.make_ranking(100, 10, 40)])
def test_features_with_ties_or_of_few_patterns_are_told_by_their_values(load):
    """Pixels of digits have ties; columns of unlike scales always stand in one order."""
    data = load()
    scales = np.arange(1, data.X.shape[1] + 1) ** 3.0
    prints = fingerprint(np.abs(np.asarray(data.X)) + 100 * scales, data.y, data.qid)
    assert not prints.by_signs
    assert match_content(registered(prints), prints).refused


def test_infinite_values_warn_of_nothing():
    X = embedded(0)
    X[::7, 3:6] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prints = fingerprint(X, one_positive(0), QID)
        assert match_content(registered(prints), prints).refused


def test_a_registration_of_old_is_compared_by_values():
    X, y = embedded(0), one_positive(0)
    prints = fingerprint(X, y, QID)
    prints.__dict__["by_signs"] = False  # as releases before had it
    known = registered(prints)
    assert not known.signature.by_signs
    assert match_content(known, fingerprint(X, y, QID + 1000)).refused
