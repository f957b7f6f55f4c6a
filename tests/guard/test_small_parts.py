"""Looks at twenty small parts of a collection are a look at it, whatever happens to its features in between."""

from __future__ import annotations

import numpy as np
import pytest

import rankeval as rk
from rankeval.guard.standings import CONFIRMATORY, EXPLORATORY

pytestmark = pytest.mark.filterwarnings("ignore:RG")

N, ROWS, PARTS = 40, 8, 20


@pytest.fixture
def guard(tmp_path):
    return rk.Guard("project", ledger=str(tmp_path / "ledger"))


@pytest.fixture
def data():
    generator = np.random.default_rng(3)
    y = generator.integers(0, 4, N * ROWS).astype(float)
    y[::ROWS] = 3
    return generator.normal(size=(N * ROWS, 4)), y, np.repeat(np.arange(N), ROWS)


def opened(guard, name, X, y, qid):
    generator = np.random.default_rng(len(name))
    systems = {"old": generator.normal(size=len(y)), "new": generator.normal(size=len(y))}
    test = guard.register(name, X, y, qid=qid)
    plan = guard.freeze(test, systems=systems, baseline="old", n_resamples=99)
    guard.open(plan)
    return guard.looks(test)["status"].iloc[-1]


def look_at_parts(guard, X, y, qid, n_parts):
    for part in range(n_parts):
        rows = qid % PARTS == part
        assert opened(guard, f"part {part}", X[rows], y[rows], qid[rows]) == CONFIRMATORY


@pytest.mark.further
@pytest.mark.parametrize("n_parts", [4, PARTS])
def test_with_a_new_feature_the_whole_is_known_by_all_its_parts(guard, data, n_parts):
    X, y, qid = data
    look_at_parts(guard, X, y, qid, n_parts)
    more = np.column_stack([X, np.random.default_rng(1).normal(size=len(y))])
    assert opened(guard, "whole", more, y, qid) == EXPLORATORY


def test_one_part_alone_is_no_evidence(guard, data):
    X, y, qid = data
    look_at_parts(guard, X, y, qid, 1)
    more = np.column_stack([X, np.random.default_rng(1).normal(size=len(y))])
    assert opened(guard, "whole", more, y, qid) == CONFIRMATORY


@pytest.mark.parametrize("seed", [11, 12])
def test_queries_that_recur_with_other_labels_are_others(guard, data, seed):
    """Also if the parts were registered twice: the same chance agreement is not counted twice."""
    X, y, qid = data
    look_at_parts(guard, X, y, qid, 6)
    for part in range(6):
        rows = qid % PARTS == part
        guard.register(f"again {part}", np.column_stack([X, X[:, 0] ** 2])[rows], y[rows], qid=qid[rows])
    generator = np.random.default_rng(seed)
    month = generator.integers(0, 4, len(y)).astype(float)
    assert opened(guard, "next month", generator.normal(size=X.shape), month, qid) == CONFIRMATORY
