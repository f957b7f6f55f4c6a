"""Rank-biased overlap against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput


def by_definition(one, two, p, depth=4000):
    """Sum (1 - p) p^(d-1) |overlap at d| / d to a depth at which nothing is left."""
    total, seen = 0.0, [set(), set()]
    for d in range(1, depth + 1):
        for documents, so_far in zip((one, two), seen, strict=True):
            so_far.update(documents[d - 1 : d])
        total += (1 - p) * p ** (d - 1) * len(seen[0] & seen[1]) / d
    return total


def runs(one, two):
    return [{"q": {f"d{document}": -float(rank) for rank, document in enumerate(docs)}} for docs in (one, two)]


def test_bounds_are_those_of_any_continuation():
    """The lower bound is the lists with nothing in common beyond; the upper one all there can be in common."""
    rng = np.random.default_rng(0)
    for p in (0.5, 0.9, 0.98):
        one, two = rng.permutation(12)[:7].tolist(), rng.permutation(12)[:10].tolist()
        row = rk.rank_biased_overlap(*runs(one, two), p=p).per_query.loc["q"]
        apart = [100 + d for d in range(3000)], [10_000 + d for d in range(3000)]
        assert row["rbo_min"] == pytest.approx(by_definition(one + apart[0], two + apart[1], p), abs=1e-9)
        # The most: each list goes on with what the other has shown, then both with the same.
        full = one + [d for d in two if d not in one], two + [d for d in one if d not in two]
        depth = len(full[0])
        same = [50_000 + d for d in range(3000)]
        best = by_definition(full[0] + same, full[1] + same, p)
        assert row["rbo_min"] + row["residual"] == pytest.approx(best, abs=1e-9), depth
        assert row["rbo_min"] - 1e-12 <= row["rbo"] <= row["rbo_min"] + row["residual"] + 1e-12


def test_equal_and_disjoint_lists():
    """Equal lists have 1, lists without a common document 0; the order of arguments does not matter."""
    assert rk.rank_biased_overlap(*runs([1, 2, 3], [1, 2, 3])).per_query.at["q", "rbo"] == pytest.approx(1, abs=1e-12)
    assert rk.rank_biased_overlap(*runs([1, 2], [3, 4])).per_query.at["q", "rbo"] == 0
    a, b = runs([1, 2, 3, 4, 5], [3, 1, 9])
    left, right = rk.rank_biased_overlap(a, b).per_query, rk.rank_biased_overlap(b, a).per_query
    assert left.to_numpy() == pytest.approx(right.to_numpy())


def test_the_top_weighs_most():
    """Exchanging the first two documents costs more than exchanging the last two."""
    base = [1, 2, 3, 4, 5, 6]
    top = rk.rank_biased_overlap(*runs(base, [2, 1, 3, 4, 5, 6])).mean()["rbo"]
    end = rk.rank_biased_overlap(*runs(base, [1, 2, 3, 4, 6, 5])).mean()["rbo"]
    assert top < end < 1


def test_what_cannot_be_compared_is_said():
    """No common query, a persistence out of range, queries of one run only."""
    with pytest.raises(InvalidInput, match="no query in common"):
        rk.rank_biased_overlap({"a": {"d": 1.0}}, {"b": {"d": 1.0}})
    for p in (0, 1, True, np.nan):
        with pytest.raises(InvalidInput) as refused:
            rk.rank_biased_overlap({"a": {"d": 1.0}}, {"a": {"d": 1.0}}, p=p)
        assert (refused.value.argument, refused.value.found) == ("p", repr(p))
    both = rk.rank_biased_overlap({"a": {"d": 1.0}, "b": {"d": 1.0}}, {"a": {"d": 1.0}})
    assert both.only_in_one == ("b",)


@each_row(
    ("one", "two", "column"), [({1: {"d": 1}}, {"1": {"d": 1}}, "qid"), ({"q": {5: 1}}, {"q": {"5": 1}}, "docid")]
)
def test_numbers_and_texts_are_not_held_against_each_other(one, two, column):
    """Document 5 is not document "5": an overlap of 0.0 would hide that they were given differently."""
    with pytest.raises(InvalidInput, match=f"^{column}: integer ids are compared with string ids"):
        rk.rank_biased_overlap(one, two)
    with pytest.raises(InvalidInput) as refused:
        rk.rank_biased_overlap(one, one, p=".9")
    assert (refused.value.argument, refused.value.found) == ("p", "'.9'")
