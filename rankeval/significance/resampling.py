"""The randomisation test with the interval that belongs to it, and how resamples are drawn.

Under its null, swapping two systems' scores on a query changes nothing, so every pattern of signs on the differences
is equally likely. All patterns are counted for up to 16 queries; beyond, the p-value is ``(b + 1) / (B + 1)``: the
observed pattern is one of those that could have been drawn, so p is never 0.

The interval holds every delta that the test of ``d - delta`` does not reject, by the same patterns. A pattern keeps the
signs of some queries, K, and flips those of the others, F. It is as extreme as the observed one if
``|S_K - S_F| >= |S_K + S_F|``, S being sums of ``d - delta``: exactly if the two sums differ in sign, that is, if delta
lies between the mean of the kept and the mean of the flipped differences::

    counts at delta:      min(mean_K, mean_F) <= delta <= max(mean_K, mean_F)

All these stretches contain the mean of d. So the number of patterns that count falls on either side of it, and the ends
of the interval are order statistics of the ends of the stretches. One-sided, a pattern counts if mean_F is on the
side of delta that the alternative denies.

All pairs share the patterns: a chunk of 32 patterns or more is a matrix that multiplies the matrix of differences
(BLAS). The stream of random numbers does not depend on the number of pairs, so another system in the comparison
leaves the p-values of the rest as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankeval.significance.columns import TIE_TOLERANCE, without_variance
from rankeval.significance.declarations import Floats, PairedResult, Settings, most_reaching, seed_of

EXACT_UP_TO = 16
"""Up to this many queries all 2^n sign patterns are counted."""

_KEPT_AT_ONCE = 2**17
"""Ends of stretches kept in memory, on each side (1 MB); more pairs are worked off in blocks, by the same patterns."""

_LEAST_KEPT = 2**11
"""Ends kept for a pair before those are dropped that cannot be the end of its interval."""


def randomization(d: Floats, settings: Settings) -> PairedResult:
    """Test whether systems are exchangeable query by query, by Fisher's randomisation of signs.

    Exact up to 16 queries for systems that are exchangeable: every difference as likely with either sign. As a test of
    equal means it holds its level as Student's t does.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences 4.5-5.5 % at 10
    queries, 5.2-5.5 % at 25, 5.0-5.5 % at 50, 5.0-5.3 % at 100; sparse scores 0.0-0.2 % at 10 queries, 0.5-3.4 % at 25,
    1.8-5.0 % at 50, 2.7-4.9 % at 100; exponential differences 9.1 % at 10 queries, 7.7 % at 25, 6.7 % at 50, 5.7 % at
    100. One-sided, the worse side: symmetric to mildly skewed differences 5.1-7.5 % at 10 queries, 5.2-6.6 % at 25,
    5.2-5.9 % at 50, 5.1-5.2 % at 100; sparse scores 0.1-0.7 % at 10 queries, 0.9-4.0 % at 25, 2.1-5.3 % at 50,
    3.0-5.0 % at 100; exponential differences 13.0 % at 10 queries, 10.5 % at 25, 8.8 % at 50, 7.6 % at 100.

    Patterns whose mean equals the observed one, up to rounding, count as extreme. The interval holds delta exactly if
    the test of ``d - delta`` by the same patterns has a p-value above alpha: it is infinite if so few queries cannot
    reject anything, 5 or fewer at 5 %, two-sided.
    """
    return flip_test(d, settings)


def flip_test(d: Floats, settings: Settings, weights: Floats | None = None) -> PairedResult:
    """Test a mean or a weighted mean by flipping signs, with the interval that the same patterns lead to.

    Parameters
    ----------
    d : ndarray of shape (n_queries, n_pairs)
        Differences.
    settings : Settings
        Alternative, level and resamples.
    weights : ndarray of shape (n_queries,), optional
        Positive weights of the queries, for instance one over the size of their collection. Then the test is of the
        sum of weight times difference, and the interval is of the weighted mean.

    Returns
    -------
    PairedResult
        Arrays of shape (n_pairs,).
    """
    weights = np.ones(len(d)) if weights is None else weights
    settings = replace(settings, rng=seed_of(settings.rng))  # all blocks see the same patterns
    rank = _rank_of_end(len(d), settings)
    width = max(1, _KEPT_AT_ONCE // max(1, _room(rank, number_of_patterns(len(d), settings))))
    parts = [_flip_block(d[:, i : i + width], weights, rank, settings) for i in range(0, d.shape[1], width)]
    return PairedResult(
        np.concatenate([part.p_value for part in parts]),
        np.concatenate([part.ci_low for part in parts]),
        np.concatenate([part.ci_high for part in parts]),
    )


def _flip_block(d: Floats, weights: Floats, rank: int, settings: Settings) -> PairedResult:
    n, m = d.shape
    weighted, whole = weights[:, None] * d, weights.sum()
    total = weighted.sum(axis=0)
    mean = total / whole
    # Sums of tenths differ in their last bits by signs and order: the slack lets equal ones count as equal.
    least = (settings.evidence(total) - TIE_TOLERANCE * np.abs(weighted).sum(axis=0))[:, None]
    count = np.zeros(m, dtype=np.int64)
    ends = _Ends(weights[:, None] * (d - mean), weights, rank, settings)
    for signs in sign_chunks(n, settings, n_columns=m):
        sums = weighted.T @ signs.T  # of kept differences less flipped ones
        count += np.count_nonzero(settings.evidence(sums) >= least, axis=1)
        ends.add(signs)
    # A pattern counts a little beyond its stretch, as far as its slack reaches: half of that, at least, is certain.
    slack = TIE_TOLERANCE / 8 * (weights @ np.abs(d - mean)) / whole
    down, up = (reach + slack for reach in ends.reaches())
    flat = without_variance(d)  # every stretch is the one value, whatever rounding makes of it
    low, high = (np.where(flat & np.isfinite(each), d[0], mean + side * each) for side, each in ((-1, down), (1, up)))
    return PairedResult(share_of_patterns(count, n, settings), low, high)


def _rank_of_end(n: int, settings: Settings) -> int:
    """Return which of the largest ends is the end of the interval; 0 if it is infinite."""
    # More than k = alpha * patterns must count where delta is not rejected. The observed pattern always does; it is
    # among those counted out, and one more than those drawn.
    k = most_reaching(settings.alpha, number_of_patterns(n, settings))
    return k + 1 if n <= EXACT_UP_TO else k


def _room(rank: int, patterns: int) -> int:
    return min(patterns, max(4 * rank, _LEAST_KEPT)) if rank else 0


class _Ends:
    """How far below and above the mean each pattern counts: of each pair, the largest of these distances.

    Patterns come in chunks. They are written beside each other until there is no room, and then those are dropped that
    cannot be the end of an interval. All arrays of a chunk's size are allocated once: with fresh ones, half of the time
    would be spent on their pages.
    """

    def __init__(self, centred: Floats, weights: Floats, rank: int, settings: Settings) -> None:
        self.centred, self.weights, self.rank, self.alternative = centred.T, weights, rank, settings.alternative
        shape = (centred.shape[1], _room(rank, number_of_patterns(len(centred), settings)))
        self.sides = [np.empty(shape) for side in ("less", "greater") if settings.alternative != side]
        self.filled = 0
        self.halves = np.empty((2, 0, 0))

    def add(self, signs: Floats) -> None:
        """Take in a chunk of patterns."""
        if not self.rank:
            return
        step = self.sides[0].shape[1] - self.rank
        for start in range(0, len(signs), step):
            self._add(signs[start : start + step])

    def _add(self, signs: Floats) -> None:
        rows, (m, room) = len(signs), self.sides[0].shape
        if self.filled + rows > room:
            self._drop()
        if self.halves.shape[2] != rows:
            self.halves = np.empty((2, m, rows))
        places = [side[:, self.filled : self.filled + rows] for side in self.sides]
        self.filled += rows
        balance, whole = signs @ self.weights, self.weights.sum()
        total = signs.sum(axis=1)
        of_kept, of_flipped = self.halves
        # Deviations from the mean add up to 0: kept less flipped ones is twice the sum of the kept ones.
        np.matmul(self.centred, signs.T, out=of_kept)
        with np.errstate(divide="ignore", invalid="ignore"):
            np.multiply(of_kept, -1 / (whole - balance), out=of_flipped)
            of_kept *= 1 / (whole + balance)
        if self.alternative == "two-sided":
            np.minimum(of_kept, of_flipped, out=places[0])
            np.negative(places[0], out=places[0])
            np.maximum(of_kept, of_flipped, out=places[1])
            always = np.abs(total) == signs.shape[1]
        else:
            np.multiply(of_flipped, -1.0 if self.alternative == "greater" else 1.0, out=places[0])
            always = total == signs.shape[1]  # no query is flipped
        for place in places if always.any() else ():
            place[:, always] = np.inf

    def _drop(self) -> None:
        first = self.filled - self.rank
        for side in self.sides:
            kept = side[:, : self.filled]
            kept.partition(first, axis=1)  # in place: the pages of a copy would take longer than the order
            side[:, : self.rank] = kept[:, first:]
        self.filled = self.rank

    def reaches(self) -> tuple[Floats, Floats]:
        """Return the distances of both ends of the intervals from the mean; infinite where one is open."""
        open_end = np.full(len(self.centred), np.inf)
        if not self.rank:
            return open_end, open_end
        self._drop()
        ends = [side[:, : self.rank].min(axis=1) for side in self.sides]
        if self.alternative == "two-sided":
            return ends[0], ends[1]
        return (ends[0], open_end) if self.alternative == "greater" else (open_end, ends[0])


def sign_chunks(n: int, settings: Settings, *, n_columns: int = 1) -> Iterator[Floats]:
    """Yield matrices of -1 and 1, a pattern per row: all 2^n up to `EXACT_UP_TO` queries, else random ones."""
    rows = chunk_rows(n, n_columns)
    if n <= EXACT_UP_TO:
        for start in range(0, 2**n, rows):
            # The bits of 0 ... 2^n - 1 are all patterns.
            patterns = np.arange(start, min(start + rows, 2**n))
            yield (((patterns[:, None] >> np.arange(n)) & 1) * 2 - 1).astype(np.float64)
        return
    generator, words = np.random.default_rng(settings.rng), -(-n // 64)
    for start in range(0, settings.n_resamples, rows):
        # One bit per sign. Whole 64-bit words per row: the stream is then the same for every chunk size.
        size = (min(rows, settings.n_resamples - start), words)
        drawn = generator.integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n).astype(np.float64) * 2 - 1


def number_of_patterns(n: int, settings: Settings) -> int:
    """Return the number of patterns that p-values are shares of: all, or those drawn and the observed one."""
    return int(2**n) if n <= EXACT_UP_TO else settings.n_resamples + 1


def share_of_patterns(count: NDArray[np.int64], n: int, settings: Settings) -> Floats:
    """Turn counts over `sign_chunks` into p-values: exact, or with the observed pattern added."""
    return np.asarray(count / 2.0**n if n <= EXACT_UP_TO else (count + 1) / (settings.n_resamples + 1))


def chunk_rows(n: int, n_columns: int) -> int:
    """Choose the rows of a chunk: small temporaries are two to three times as fast as large ones."""
    return int(np.clip(2**16 // (n + n_columns), 32, 4096))
