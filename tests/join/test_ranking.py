"""The packed-key sort puts rows into exact order."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tables import each_row

from rankeval.join.ranking import rank_rows

NEIGHBOURS = [0.0, -0.0, 1.0, 1 + 2**-52, 1 + 2**-51, -1.0]
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_any_two_scores_fall(a, b):
    """0.0 equals -0.0; the least difference counts."""
    found = rank_rows(
        np.array([a, b]), np.array([1, 0]), np.array([0, 2]), n_levels=2, by_position=False, with_rows=True
    )
    assert found.row.tolist() == ([0, 1] if a > b else [1, 0])
    assert len(found.ties.start) == (a == b)


@each_row("by_position", [False, True])
def test_keys_are_sorted_alike_where_the_processor_flushes_subnormal_numbers(by_position, monkeypatch):
    """The key of the score 0 is a subnormal number; libraries compiled with -ffast-math make these zeros."""
    rng = np.random.default_rng(0)
    score, code, offsets = rng.integers(-3, 4, 900) / 7, rng.integers(0, 3, 900), np.arange(0, 901, 30)
    as_floats = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    monkeypatch.setattr("rankeval.join.ranking._SMALLEST", 0.0)
    as_integers = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    np.testing.assert_array_equal(as_floats.row, as_integers.row)
    np.testing.assert_array_equal(as_floats.code, as_integers.code)


@given(
    hnp.arrays(np.float64, st.integers(1, 40), elements=st.sampled_from(NEIGHBOURS)),
    st.integers(1, 12),
    st.booleans(),
)
@settings(max_examples=examples(200))
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


@each_row("n_levels", [1, 2, 100, 300])
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
@settings(max_examples=examples(100))
def test_rows_that_stand_in_order_are_ranked_like_any_other(score, per_query, by_position):
    """The way for sorted files gives what the sort gives."""
    offsets = np.append(np.arange(0, len(score), per_query), len(score))
    for begin, end in pairwise(offsets):
        score[begin:end] = -np.sort(-score[begin:end])
    code = np.arange(len(score)) % 3
    quick = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankeval.join.ranking._falls", lambda *_: False)
        sort = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
    np.testing.assert_array_equal(quick.row, sort.row)
    np.testing.assert_array_equal(quick.code, sort.code)
    for mine, theirs in zip(quick.ties, sort.ties, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def plainly(score, code, offsets, *, by_position):
    """Return the rows in rank order and the tie groups, query by query, with Python's own sort."""
    rows, ties = [], []
    for query, (begin, end) in enumerate(pairwise(offsets.tolist())):
        within = sorted(range(begin, end), key=lambda row: (-score[row], 0 if by_position else code[row], row))
        ties += [(begin + start, begin + stop, query) for start, stop in _runs(score[within], 0, len(within))]
        rows += within
    return rows, ties


LENGTHS = {
    "one list": [40],
    "equal lists": [8] * 5,
    "equal lists of a power of two and one more": [17] * 3,
    "empty lists between": [0, 5, 0, 0, 7, 0],
    "unlike lists, padded": [5, 9, 3, 8, 7],
    "one long list among short ones": [2, 150, 1, 3, 2, 1, 1, 2],
    "a long list is three times as many rows": [6, 0, 0, 12, 0, 0],
    "lists of one row": [1] * 9,
    "none": [],
    "none but empty": [0, 0],
}


@each_row("n_levels", [1, 2, 3, 128, 129, 300])
@each_row("lengths", LENGTHS.values(), ids=LENGTHS)
def test_lists_of_any_length_are_ranked_as_pythons_sort_would(lengths, n_levels):
    """Whichever way of sorting the lengths lead to, with ties and without, scores in order already or not."""
    offsets = np.cumsum([0, *lengths])
    rng = np.random.default_rng(len(lengths))
    for kind in ("ties", "apart", "close", "falling", "falling with ties", "falling at first"):
        score = rng.integers(-3, 4, offsets[-1]).astype(float) if "ties" in kind else rng.normal(size=offsets[-1])
        if kind == "close":
            score = 1 + rng.integers(0, 4, offsets[-1]) * 2.0**-52
        for begin, end in pairwise(offsets) if "falling" in kind else ():
            score[begin:end] = -np.sort(-score[begin:end])
        if kind == "falling at first" and len(score):
            score[-1] += 100
        code = rng.integers(0, n_levels, offsets[-1])
        for by_position in (False, True):
            rows, ties = plainly(score, code, offsets, by_position=by_position)
            for with_rows in (False, True):
                given_score, given_code = score.copy(), code.copy()
                found = rank_rows(
                    given_score, given_code, offsets, n_levels=n_levels, by_position=by_position, with_rows=with_rows
                )
                assert found.code.tolist() == code[rows].tolist()
                assert (found.row.tolist() if with_rows else found.row) == (rows if with_rows else None)
                assert list(zip(*(part.tolist() for part in found.ties), strict=True)) == ties
                assert (given_score == score).all(), "the caller's scores stay as they are"
                assert (given_code == code).all()


@each_row("begin", [254, 255, 256, 257, 511])
@each_row("by_position", [False, True])
def test_lists_that_fall_at_first_and_rise_later_are_sorted(begin, by_position):
    """A look at the first rows does not settle that a list is in order."""
    for lengths in ([600], [300, 300], [begin, 600 - begin]):
        offsets = np.cumsum([0, *lengths])
        score = np.concatenate([-np.arange(length, dtype=float) for length in lengths])
        score[begin] += 1.5
        code = np.arange(600) % 3
        rows, _ = plainly(score, code, offsets, by_position=by_position)
        found = rank_rows(score, code, offsets, n_levels=3, by_position=by_position, with_rows=True)
        assert found.row.tolist() == rows


@each_row("longest", [2**15 - 1, 2**15, 2**15 + 1])
def test_lists_around_the_range_of_two_bytes(longest):
    """Rank by rank, two unlike long lists are still told apart."""
    offsets = np.array([0, longest, longest + 20_000])
    score = np.random.default_rng(0).normal(size=offsets[-1])
    code = np.arange(offsets[-1]) % 2
    order = np.concatenate([begin + np.argsort(-score[begin:end]) for begin, end in pairwise(offsets)])
    found = rank_rows(score, code, offsets, n_levels=2, by_position=True, with_rows=True)
    np.testing.assert_array_equal(found.row, order)
    np.testing.assert_array_equal(found.code, code[order])


def test_extreme_scores_are_in_order():
    """The greatest and smallest numbers there are, subnormal ones and both zeros."""
    score = np.array([-1.7e308, 5e-324, 0.0, 1.6e308, -0.0, -5e-324, 2.3e-308, 1.7e308])
    found = rank_rows(score, np.arange(8), np.array([0, 8]), n_levels=8, by_position=True, with_rows=True)
    assert found.row.tolist() == [7, 3, 6, 1, 2, 4, 5, 0]
    assert [part.tolist() for part in found.ties] == [[4], [6], [0]]


@each_row("lengths", [[600], [1] * 300, [3, 0, 300, 5, 1, 0]])
def test_lists_that_stand_in_order_are_not_sorted(lengths, monkeypatch):
    """Most files have them so: from one query to the next scores may rise, ties may stand among them."""
    monkeypatch.setattr("rankeval.join.ranking.sorted_blocks", None)
    offsets = np.cumsum([0, *lengths])
    score = np.concatenate([[place - (row + 1) // 2 for row in range(length)] for place, length in enumerate(lengths)])
    code = np.arange(len(score)) % 2
    for by_position in (False, True):
        found = rank_rows(score.astype(float), code, offsets, n_levels=2, by_position=by_position, with_rows=True)
        assert found.row.tolist() == plainly(score, code, offsets, by_position=by_position)[0]


def test_a_few_long_lists_among_many_short_ones_are_not_padded():
    """A matrix of 20,000 rows of 20,000 would take gigabytes."""
    offsets = np.cumsum([0, 20_000, *[1] * 20_000])
    score = np.random.default_rng(0).normal(size=offsets[-1])
    tracemalloc.start()
    try:
        found = rank_rows(
            score, np.zeros(len(score), dtype=np.int64), offsets, n_levels=1, by_position=True, with_rows=True
        )
        assert tracemalloc.get_traced_memory()[1] < 100 * len(score)
    finally:
        tracemalloc.stop()
    assert found.row[:20_000].tolist() == np.argsort(-score[:20_000]).tolist()
    assert found.row[20_000:].tolist() == list(range(20_000, 40_000))
