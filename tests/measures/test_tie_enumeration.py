"""The mean over orders of tied rows: what is enumerated, what is drawn, and for which queries."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from tables import each_row

import rankeval as rk
from rankeval.measures import family
from rankeval.measures.family import FAMILIES
from rankeval.measures.tie_enumeration import arrangements, number_of_arrangements


@each_row("rows", ["a", "aab", "abab", "abcd", "aaabbc", "abcdde"])
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


@each_row("counts", [(1,) * 1000, (10**5, 10**5), (10**6, 1), (500, 499, 1)])
def test_too_many_arrangements_are_not_counted_to_the_end(counts):
    """Where there are more than asked for, any greater number will do; it takes no time."""
    assert number_of_arrangements(counts, sum(counts), 1000) > 1000
    assert number_of_arrangements(counts, 1, 1000) == len(counts)


def test_grades_that_a_measure_does_not_see_make_no_orders():
    """20 tied rows of seven grades, 3 of them relevant at level 4: 1,140 orders, not 10^13 of them."""
    y = np.array([6, 5, 4, *[3, 2, 1, 0] * 4, -1])
    options = {"qid": [0] * 20, "measures": ["YAAP(rel=4)", "gm_AP(rel=4)", "gm_AP(rel=0)", "gm_AP(rel=9)"]}
    graded = rk.evaluate(y, np.zeros(20), **options, convention=rk.Convention("pool", negative="unjudged"))
    binary = rk.evaluate(np.where(y >= 4, 4, 0), np.zeros(20), **options)
    assert graded.facts.errors is None
    np.testing.assert_allclose(graded.scores[0, :2], binary.scores[0, :2], rtol=1e-14)


def test_a_measure_that_sees_the_rows_below_its_cutoff_is_given_them():
    """A value over the length of the list, with a cut-off: the rows below it must not be taken away."""

    def hits_by_length(judged, *, cutoff=2):
        return judged.hits(1, cutoff) ** 2 / judged.n_retrieved

    options = {"source": "a test", "title": "", "formula": "hits(k)^2 / retrieved"}
    family("HitsByLength", expected="orders", **options)(hits_by_length)
    try:
        value = rk.evaluate([1, 0, 1, 0], [1, 1, 1, 0], qid=[0] * 4, measures="HitsByLength").scores[0, 0]
    finally:
        del FAMILIES["HitsByLength"]
    assert value == pytest.approx((4 + 1 + 1) / 3 / 4)
