"""The packed-key sort puts rows into exact order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rankeval.collection.ranking import descending_bits, rank_rows

NEIGHBOURS = [0.0, -0.0, 1.0, 1 + 2**-52, 1 + 2**-51, -1.0]
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_bits_order_as_scores_fall(a, b):
    """Integers compare as the scores do, the other way round; 0.0 equals -0.0."""
    first, second = descending_bits(np.array([a, b]))
    assert (first < second) == (a > b)
    assert (first == second) == (a == b)


@given(
    hnp.arrays(np.float64, st.integers(1, 40), elements=st.sampled_from(NEIGHBOURS)),
    st.integers(1, 12),
    st.booleans(),
)
@settings(max_examples=200)
def test_scores_that_differ_in_the_last_bit_are_told_apart(score, per_query, by_position):
    """Keys that collide are put right: the order is that of a stable sort, ties are exactly equal scores."""
    offsets = np.append(np.arange(0, len(score), per_query), len(score))
    code = np.arange(len(score)) % 3
    ranking = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    for begin, end in pairwise(offsets):
        keys = (np.arange(end - begin),) if by_position else (np.arange(end - begin), code[begin:end])
        order = np.lexsort((*keys, -(score[begin:end] + 0.0))) + begin
        np.testing.assert_array_equal(ranking.row[begin:end], order)
    np.testing.assert_array_equal(ranking.code, code[ranking.row])
    ranked = score[ranking.row] + 0.0
    tied = {(start, end) for begin, stop in pairwise(offsets) for start, end in _runs(ranked, begin, stop)}
    assert set(zip(ranking.ties.start.tolist(), ranking.ties.end.tolist(), strict=True)) == tied


def _runs(ranked, begin, stop):
    start = begin
    for place in range(begin + 1, stop + 1):
        if place == stop or ranked[place] != ranked[start]:
            if place - start > 1:
                yield start, place
            start = place


@pytest.mark.parametrize("n_levels", [1, 2, 100, 300])
def test_any_number_of_labels(n_levels):
    """Labels come out right whether they fit into the key or not."""
    rng = np.random.default_rng(0)
    score, code = rng.normal(size=1000), rng.integers(0, n_levels, 1000)
    ranking = rank_rows(score, code, np.array([0, 400, 400, 1000]), n_levels=n_levels, by_position=True, with_rows=True)
    order = np.concatenate([np.argsort(-score[:400]), 400 + np.argsort(-score[400:])])
    np.testing.assert_array_equal(ranking.code, code[order])


@given(
    hnp.arrays(np.float64, st.integers(1, 600), elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0])),
    st.integers(1, 300),
    st.booleans(),
)
@settings(max_examples=100)
def test_rows_that_stand_in_order_are_ranked_like_any_other(score, per_query, by_position):
    """The way for sorted files gives what the sort gives."""
    offsets = np.append(np.arange(0, len(score), per_query), len(score))
    for begin, end in pairwise(offsets):
        score[begin:end] = -np.sort(-score[begin:end])
    code = np.arange(len(score)) % 3
    quick = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankeval.collection.ranking._falls", lambda *_: False)
        sort = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    np.testing.assert_array_equal(quick.row, sort.row)
    np.testing.assert_array_equal(quick.code, sort.code)
    for mine, theirs in zip(quick.ties, sort.ties, strict=True):
        np.testing.assert_array_equal(mine, theirs)
