"""The ideal of many queries is looked up by their numbers of documents, that of few is added up: the same bits."""

from __future__ import annotations

import numpy as np
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each_row

from rankeval.join import by_rank as ideals


def plainly(counts, gain, discount, cutoff):
    """Return the sum of gain * discount over the best order, one query and one document after another."""
    sums = []
    for numbers in counts.tolist():
        gains = sorted(
            (value for value, number in zip(gain, numbers, strict=True) for _ in range(number)), reverse=True
        )
        total = 0.0
        for value, factor in zip(gains[:cutoff], discount, strict=False):
            total += max(value, 0.0) * factor
        sums.append(total)
    return sums


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    gain=st.sampled_from([[0, 1], [0, 1, 2, 3], [0, 3, 1], [-1, 0, 2.5], [0, 0], [0.1, 0.7, 0.3]]),
    cutoff=st.sampled_from([None, 1, 3, 10, 64, 65]),
    n_queries=st.sampled_from([1, 20, 700]),
)
def test_each_way_adds_the_gains_in_the_order_of_the_ranks(seed, gain, cutoff, n_queries):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 13, (n_queries, len(gain))) * (rng.random((n_queries, 1)) < 0.9)
    discount = 1 / np.log2(np.arange(2, 2 + 13 * len(gain) + 65))
    gains = np.array(gain, dtype=float)
    assert ideals.ideal_sums(counts, gains, discount, cutoff).tolist() == plainly(counts, gains, discount, cutoff)


def test_the_sums_of_many_queries_are_looked_up(monkeypatch):
    """A case of each kind of query is added up, and no query."""
    added = []
    monkeypatch.setattr(ideals, "_rank_by_rank", lambda counts, *_: added.append(len(counts)) or np.zeros(len(counts)))
    ideals._sums_of_kinds.cache_clear()
    try:
        for _ in range(2):
            ideals.ideal_sums(np.ones((5000, 3), dtype=np.int64), np.array([0.0, 1, 2]), np.ones(9), 9)
    finally:
        ideals._sums_of_kinds.cache_clear()
    assert added == [100]


@each_row("cutoff", [None, 5])
def test_no_query_has_no_ideal(cutoff):
    assert ideals.ideal_sums(np.empty((0, 2), dtype=np.int64), np.array([0.0, 1.0]), np.ones(9), cutoff).tolist() == []
