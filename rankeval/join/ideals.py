"""The discounted gain of the best order of judged documents, from their number by label.

    labels 0 1 2 of a query    counts 7 3 2    ideal order 2 2 1 1 1, then no gain    sum of gain * discount down to k

With a cut-off, few numbers matter: 4 labels above zero and k = 10 leave 11^4 kinds of queries. Their sums are computed
once and looked up. Gains are added one after the other, as those of a ranking are, so that a perfect ranking scores
exactly the ideal.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rankeval.join.flat import Floats, Ints, offsets_of

FEW_RANKS = 64
"""Up to here a table of rank by query is quicker than a list of rows."""

_MOST_KINDS = 2**16
"""More kinds of queries are not kept: a table of sums takes at most half a megabyte."""


def ideal_sums(counts: Ints, gain: Floats, discount: Floats, cutoff: int | None) -> Floats:
    """Return the discounted gain of the best order of each query's judged documents.

    Parameters
    ----------
    counts : ndarray of shape (n_queries, n_levels)
        Number of documents of each label.
    gain : ndarray of shape (n_levels,)
        Gain of each label. The best order is by gain, which need not be the order of the labels.
    discount : ndarray of shape (at least the longest list or the cut-off,)
        Factor of each rank.
    cutoff : int or None
        Deepest rank that counts.
    """
    best_first = np.argsort(-gain, kind="stable")
    best_first = best_first[gain[best_first] > 0]
    counts, gains = counts[:, best_first], gain[best_first]
    if not len(gains):
        return np.zeros(len(counts))
    if cutoff is None or cutoff > FEW_RANKS:
        return _row_by_row(counts, gains, discount, cutoff)
    n_kinds = (cutoff + 1) ** len(gains)
    if n_kinds > min(_MOST_KINDS, 4 * len(counts)):
        return _rank_by_rank(counts, gains, discount[:cutoff])
    kind = np.zeros(len(counts), dtype=np.int64)  # the numbers of documents are its digits (bench_arrays A, D)
    for number in counts.T:
        kind *= cutoff + 1
        kind += np.minimum(number, cutoff)
    sums: Floats = _sums_of_kinds(gains.tobytes(), discount[:cutoff].tobytes()).take(kind)
    return sums


@lru_cache(maxsize=16)
def _sums_of_kinds(gains: bytes, discount: bytes) -> Floats:
    """Return the sums of all kinds of queries."""
    gain, factor = np.frombuffer(gains), np.frombuffer(discount)
    digits = np.indices((len(factor) + 1,) * len(gain)).reshape(len(gain), -1)
    return _rank_by_rank(digits.T, gain, factor)


def _rank_by_rank(counts: Ints, gains: Floats, discount: Floats) -> Floats:
    """Add the gains of a table of rank by query; counts and gains stand best first."""
    # upto: the rank of the last document of each label in the ideal order.
    upto = np.minimum(np.cumsum(counts, axis=1), len(discount)).astype(np.int16)
    # The label at each rank of the ideal order: as many places down the gains as are used up before it.
    place = np.zeros((len(discount), len(counts)), dtype=np.uint8 if len(gains) < 256 else np.int64)
    for used_up in upto.T:
        place += used_up <= np.arange(len(discount), dtype=np.int16)[:, None]
    table = np.append(gains, 0.0).take(place)
    table *= discount[:, None]
    return added_rank_by_rank(table)


def _row_by_row(counts: Ints, gains: Floats, discount: Floats, cutoff: int | None) -> Floats:
    """Add the gains of the documents one after another; counts and gains stand best first."""
    upto = np.cumsum(counts, axis=1)
    if cutoff is not None:
        upto = np.minimum(upto, cutoff)
    size = np.diff(upto, axis=1, prepend=0)
    per_query = size.sum(axis=1)
    each = np.repeat(np.broadcast_to(gains, size.shape).ravel(), size.ravel())
    query = np.repeat(np.arange(len(counts)), per_query)
    rank = np.arange(len(each)) - np.repeat(offsets_of(per_query)[:-1], per_query)
    # Without any values bincount returns integers.
    sums = np.bincount(query, weights=each * discount[rank], minlength=len(counts))
    return sums.astype(np.float64, copy=False)


def added_rank_by_rank(gains: Floats) -> Floats:
    """Add the rows of a table of rank by query one after the other; NumPy's own sum may take another order."""
    total = np.zeros(gains.shape[1])
    for row in gains:
        total += row
    return total
