"""The mean over orders of tied rows: what is enumerated, what is drawn, and for which queries."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

import rankeval as rk
from rankeval.collection.join import join_arrays
from rankeval.measures.arrangements import arrangements, number_of_arrangements
from rankeval.measures.orders import over_orders
from rankeval.measures.ranked import average_precision


@pytest.mark.parametrize("rows", ["a", "aab", "abab", "abcd", "aaabbc", "abcdde"])
def test_arrangements_are_the_distinct_beginnings_of_all_orders(rows):
    """Each distinct beginning is there once, with the share of the orders that begin so."""
    counts = tuple(Counter(rows).values())
    for places in range(len(rows) + 1):
        kinds, chance = arrangements(counts, places)
        names = np.array(sorted(set(rows)))
        found = dict(zip(map("".join, names[kinds.astype(int)]), chance, strict=True))
        every = Counter("".join(order[:places]) for order in permutations(rows))
        assert found == pytest.approx({begin: number / every.total() for begin, number in every.items()}, abs=1e-15)
        assert number_of_arrangements(tuple(sorted(counts, reverse=True)), places, 10**6) == len(every)


@pytest.mark.parametrize("counts", [(1,) * 1000, (10**5, 10**5), (10**6, 1), (500, 499, 1)])
def test_too_many_arrangements_are_not_counted_to_the_end(counts):
    """Where there are more than asked for, any greater number will do; it takes no time."""
    assert number_of_arrangements(counts, sum(counts), 1000) > 1000
    assert number_of_arrangements(counts, 1, 1000) == len(counts)


def test_a_formula_may_hand_over_the_queries_that_are_too_much_for_it():
    """The values of some queries, by mask or by number, are those among all."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(6), [1, 5, 30, 4, 12, 2])
    joined = join_arrays(rng.integers(0, 2, len(qid)), rng.integers(0, 2, len(qid)), qid, docid=None,
                         convention=rk.Convention("all"))  # fmt: skip
    ((_, judged, _),) = joined.chunks()
    every = over_orders(average_precision, judged, {"cutoff": 3})
    some = over_orders(average_precision, judged, {"cutoff": 3}, only=np.array([4, 2, 0]))
    np.testing.assert_array_equal(some, every[[4, 2, 0]])
    mask = np.array([True, False, False, True, False, True])
    np.testing.assert_array_equal(over_orders(average_precision, judged, {"cutoff": 3}, only=mask), every[mask])
