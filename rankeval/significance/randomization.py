"""Patterns of signs, and the sums of many rows of numbers under each of them.

Up to 16 queries all 2^n patterns are counted; beyond, they are drawn, a bit per sign. A pattern is
drawn in whole 64-bit words, so the stream of random numbers depends neither on the number of rows
nor on the size of a chunk, and another system in a comparison leaves the p-values of the rest as
they are.

The sums are products of matrices, made in tiles: a megabyte or two of signs at a time, some
patterns by some queries::

                     queries                    patterns
    rows        a  | . . . . |            a  | S S S S |
                b  | . . . . |     ->     b  | S S S S |      a row of sums for each row of numbers

so that a million queries take no more memory than a thousand. One thread of BLAS multiplies: beside
other processes several wait for each other longer than they work.

The randomisation test with the interval that belongs to it, and how resamples are drawn.

Under its null, swapping two systems' scores on a query changes nothing, so every pattern of signs
on the differences is equally likely. All patterns are counted for up to 16 queries; beyond, the
p-value is ``(b + 1) / (B + 1)``: the observed pattern is one of those that could have been drawn,
so p is never 0.

The interval holds every delta that the test of ``d - delta`` does not reject, by the same patterns.
A pattern keeps the signs of some queries, K, and flips those of the others, F. It is as extreme as
the observed one if ``|S_K - S_F| >= |S_K + S_F|``, S being sums of ``d - delta``: exactly if the
two sums differ in sign, that is, if delta lies between the mean of the kept and the mean of the
flipped differences::

    counts at delta:      min(mean_K, mean_F) <= delta <= max(mean_K, mean_F)

All these stretches contain the mean of d. So the number of patterns that count falls on either side
of it, and the ends of the interval are order statistics of the ends of the stretches. One-sided, a
pattern counts if mean_F is on the side of delta that the alternative denies.

All pairs share the patterns, and the patterns multiply systems, not pairs: kept less flipped
differences of a pair are the difference of two sums, one for each system. So there is a row of sums
for each system, one sum a pattern, and what is left for a pair is to subtract two rows and to read
them::

    sums of b   | 1.2  -.3   .8   ... |
    sums of a   |  .9  -.1  1.1   ... |
    sums of b-a |  .3  -.2  -.3   ... |     how many reach the observed sum: p;  the largest ends: the interval

The trap: two sums of a thousand scores can be larger by far than the sum of their differences, and
carry the rounding errors of large numbers. The slack by which equal sums count as equal has room
for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._threads import one_blas_thread
from rankeval.significance.columns import TIE_TOLERANCE, without_variance
from rankeval.significance.declarations import (
    TESTS,
    Floats,
    PairedResult,
    Settings,
    SignificanceTest,
    most_reaching,
    one_pattern,
    one_resample,
    seed_of,
)
from rankeval.significance.pairs import Ints, Pairs, as_pairs

EXACT_UP_TO = 16
"""Up to this many queries all 2^n sign patterns are counted."""

PATTERNS, _QUERIES = 256, 1024
"""The patterns and queries of a tile of signs (2 MB)."""

SUMS_AT_ONCE = 2**24
"""Sums to keep in memory at once (128 MB)."""

_KEPT = 2**21
"""Sums that are kept for those who ask for them again (16 MB): those of 200 systems under 10,000 patterns."""

_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64) * 2 - 1
"""The eight signs of each byte: looked up, a sign takes less than half of the time of unpacking and scaling it."""


def number_of_patterns(n: int, settings: Settings) -> int:
    """Return the number of patterns that p-values are shares of: all, or those drawn and the observed one."""
    return int(2**n) if n <= EXACT_UP_TO else settings.n_resamples + 1


def number_drawn(n: int, settings: Settings) -> int:
    """Return the number of patterns that are gone through: all, or those drawn."""
    return int(2**n) if n <= EXACT_UP_TO else settings.n_resamples


def share_of_patterns(count: NDArray[np.int64], n: int, settings: Settings) -> Floats:
    """Turn counts over the patterns into p-values: exact, or with the observed pattern added."""
    return np.asarray((count + (n > EXACT_UP_TO)) / number_of_patterns(n, settings))


def sums_by_pattern(rows: Floats, settings: Settings, *, at_once: int) -> Iterator[Floats]:
    """Yield the sums of rows of numbers under patterns of signs, some patterns at a time."""
    total = number_drawn(rows.shape[1], settings)
    chunks = _byte_chunks(rows.shape[1], settings)
    span = min(total, PATTERNS * max(1, at_once // (PATTERNS * len(rows))))
    table = np.empty((len(rows), span))
    for start in range(0, total, span):
        sums = table[:, : min(span, total - start)]
        for place in range(0, sums.shape[1], PATTERNS):
            _add_up(rows, next(chunks), sums[:, place : place + PATTERNS])
        yield sums


def sums_of(pairs: Pairs, settings: Settings, weights: Floats | None = None) -> Iterator[Floats]:
    """Yield the sums of the rows of pairs, and of their weights and of ones, under patterns of signs.

    Sums of a few systems are kept with the pairs. Of a million queries they take nearly all of the
    time, and a test, the p-values of max-T and its intervals read the same ones.
    """
    total, height = number_drawn(len(pairs), settings), len(pairs.rows) + 2
    span = PATTERNS * -(-total // PATTERNS)
    if (
        not isinstance(settings.rng, int)
        or height * span > _KEPT
        or not (weights is None or (weights == 1).all())
    ):
        yield from sums_by_pattern(pairs.rows_and_ones(weights), settings, at_once=SUMS_AT_ONCE)
        return
    key = settings.rng, total
    if key not in pairs.kept:
        (pairs.kept[key],) = sums_by_pattern(pairs.rows_and_ones(), settings, at_once=SUMS_AT_ONCE)
        pairs.kept[key].flags.writeable = False
    yield pairs.kept[key]


@one_blas_thread()
def _add_up(rows: Floats, packed: NDArray[np.uint8], sums: Floats) -> None:
    # Tile by tile, so that signs stay in the cache.
    n = rows.shape[1]
    for start in range(0, n, _QUERIES):
        part = rows[:, start : start + _QUERIES]
        signs = _signs_of(packed[:, start // 8 : (start + _QUERIES) // 8], part.shape[1])
        if start:
            sums += part @ signs.T
        else:
            np.matmul(part, signs.T, out=sums)


def _signs_of(packed: NDArray[np.uint8], n: int) -> Floats:
    return _OF_BYTE.take(packed, axis=0).reshape(len(packed), -1)[:, :n]


def _byte_chunks(n: int, settings: Settings) -> Iterator[NDArray[np.uint8]]:
    """Yield patterns with a bit per sign, `PATTERNS` at a time."""
    total = number_drawn(n, settings)
    generator, words = np.random.default_rng(settings.rng), -(-n // 64)
    for start in range(0, total, PATTERNS):
        size = min(PATTERNS, total - start)
        if n <= EXACT_UP_TO:
            # The bits of 0 ... 2^n - 1 are all patterns.
            bits = (np.arange(start, start + size)[:, None] >> np.arange(n)) & 1
            yield np.packbits(bits.astype(np.uint8), axis=1)
        else:
            drawn = generator.integers(
                0, 2**64 - 1, size=(size, words), dtype=np.uint64, endpoint=True
            )
            yield drawn.view(np.uint8)


def randomization(d: Floats, settings: Settings) -> PairedResult:
    """Test whether systems are exchangeable query by query, by Fisher's randomisation of signs.

    Exact up to 16 queries for systems that are exchangeable: every difference as likely with either
    sign. As a test of equal means it holds its level as Student's t does.

    Measured false claims where 5 % were asked, two-sided: symmetric to mildly skewed differences 4.5-5.5 % at 10
    queries, 5.2-5.5 % at 25, 5.0-5.5 % at 50, 5.0-5.3 % at 100; sparse scores 0.0-0.2 % at 10 queries, 0.5-3.4 % at 25,
    1.8-5.0 % at 50, 2.7-4.9 % at 100; exponential differences 9.1 % at 10 queries, 7.7 % at 25, 6.7 % at 50, 5.7 % at
    100. One-sided, the worse side: symmetric to mildly skewed differences 5.1-7.5 % at 10 queries, 5.2-6.6 % at 25,
    5.2-5.9 % at 50, 5.1-5.2 % at 100; sparse scores 0.1-0.7 % at 10 queries, 0.9-4.0 % at 25, 2.1-5.3 % at 50,
    3.0-5.0 % at 100; exponential differences 13.0 % at 10 queries, 10.5 % at 25, 8.8 % at 50, 7.6 % at 100.

    Patterns whose mean equals the observed one, up to rounding, count as extreme. The interval
    holds delta exactly if the test of ``d - delta`` by the same patterns has a p-value above alpha:
    it is infinite if so few queries cannot reject anything, 5 or fewer at 5 %, two-sided.
    """
    return flip_test(d, settings)


def one_flip(n: int, settings: Settings) -> float:
    """Return the floor of tests by sign flips, which are counted out for few queries."""
    return one_pattern(n, settings) if n <= EXACT_UP_TO else one_resample(n, settings)


def flip_test(
    d: ArrayLike | Pairs, settings: Settings, weights: Floats | None = None
) -> PairedResult:
    """Test a mean or a weighted mean by flipping signs, with the interval that the same patterns lead to."""
    pairs = as_pairs(d)
    n, m = pairs.shape
    weights = np.ones(n) if weights is None else weights
    settings = replace(settings, rng=seed_of(settings.rng))  # all groups see the same patterns
    facts = _Facts(pairs, weights, settings)
    levels = [level for level in (settings, settings.of_family) if level]
    ranks = [_rank_of_end(n, level) for level in levels]
    count, reaches = np.zeros(m, dtype=np.int64), np.full((2, len(ranks), m), np.inf)
    for group in _groups(pairs, max(ranks), settings):
        _read_group(pairs, group, weights, facts, ranks, count, reaches, settings)
    reaches += facts.slack
    # Every stretch of a constant is the one value, whatever rounding makes of it.
    low, high = (
        np.where(facts.flat & np.isfinite(end), facts.first, end)
        for end in (facts.mean - reaches[0], facts.mean + reaches[1])
    )
    family = (low[1], high[1]) if settings.of_family else None
    return PairedResult(share_of_patterns(count, n, settings), low[0], high[0], family=family)


TESTS["randomization"] = SignificanceTest(
    function=randomization,
    weighted=flip_test,
    words="randomisation test (sign flips)",
    random_beyond=EXACT_UP_TO,
    floor=one_flip,
    power_of_t=True,
    takes_pairs=True,
)


class _Facts:
    """What is read of the differences themselves, column by column."""

    def __init__(self, pairs: Pairs, weights: Floats, settings: Settings) -> None:
        whole = weights.sum()

        def of_block(d: Floats) -> tuple[Any, ...]:
            weighted = weights[:, None] * d
            total = weighted.sum(axis=0)
            spread = weights @ np.abs(d - total / whole)
            return total, np.abs(weighted).sum(axis=0), spread, without_variance(d), d[0].copy()

        total, size, spread, self.flat, self.first, lost = pairs.summed(of_block, weights)
        noise = pairs.noise(lost, weights)
        self.mean = total / whole
        # Sums of tenths differ in their last bits by signs and order: the slack lets equal ones
        # count as equal.
        self.least = settings.evidence(total) - TIE_TOLERANCE * size - noise
        # A pattern counts a little beyond its stretch, as far as its slack reaches: half of that,
        # at least, is certain.
        self.slack = (TIE_TOLERANCE / 8 * spread + noise / 4) / whole


def _rank_of_end(n: int, settings: Settings) -> int:
    """Return which of the largest ends is the end of the interval; 0 if it is infinite."""
    # More than k = alpha * patterns must count where delta is not rejected. The observed pattern
    # always does; it is among those counted out, and one more than those drawn.
    k = most_reaching(settings.alpha, number_of_patterns(n, settings))
    return k + 1 if n <= EXACT_UP_TO else k


def _groups(pairs: Pairs, rank: int, settings: Settings) -> Iterator[Ints]:
    """Yield places of columns whose systems have room for all of their sums at once."""
    n, m = pairs.shape
    total = PATTERNS * -(-number_drawn(n, settings) // PATTERNS)
    room = max(2, SUMS_AT_ONCE // total - 2)
    if total > SUMS_AT_ONCE // 8:
        # The largest ends are kept from one span of patterns to the next.
        room = max(2, min(room, SUMS_AT_ONCE // (4 * max(1, rank))))
        yield from (np.arange(start, min(start + room, m)) for start in range(0, m, room))
    elif len(pairs.rows) <= room:
        yield np.arange(m)
    elif pairs.ends is None:
        yield from np.array_split(np.arange(m), -(-m // room))
    else:
        low, high = pairs.ends // (room // 2)
        key = low * len(pairs.rows) + high
        order = np.argsort(key, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _read_group(
    pairs: Pairs,
    group: Ints,
    weights: Floats,
    facts: _Facts,
    ranks: Sequence[int],
    count: NDArray[np.int64],
    reaches: Floats,
    settings: Settings,
) -> None:
    own = pairs.at(group)
    total = number_drawn(len(weights), settings)
    kept: dict[int, Floats] = {}
    gone = 0
    for sums in sums_of(own, settings, weights):
        gone += sums.shape[1]
        patterns = _Patterns(sums[-2], sums[-1], weights, settings)
        for columns in own.blocks_of_sums(sums.shape[1]):
            places = group[columns]
            drawn = own.sums(sums, columns)
            count[places] += np.count_nonzero(
                settings.evidence(drawn) >= facts.least[places, None], axis=1
            )
            if not max(ranks):
                continue
            drawn -= facts.mean[places, None] * sums[-2]
            ends = patterns.ends(drawn)
            if sums.shape[1] < total:
                ends = kept[columns.start] = _largest(ends, kept.get(columns.start), max(ranks))
            if gone == total:
                reaches[..., places] = _order_statistics(ends, ranks, settings)


class _Patterns:
    """How far below and above the mean of a column each pattern counts."""

    def __init__(self, balance: Floats, total: Floats, weights: Floats, settings: Settings) -> None:
        self.alternative, whole = settings.alternative, weights.sum()
        # Deviations from the mean add up to 0: kept less flipped ones is twice the sum of the kept
        # ones.
        with np.errstate(divide="ignore"):
            self.of_kept, self.of_flipped = 1 / (whole + balance), -1 / (whole - balance)
        two_sided = self.alternative == "two-sided"
        # No query is flipped, or, two-sided, none is kept.
        self.always = np.flatnonzero((np.abs(total) if two_sided else total) == len(weights))
        self.of_kept[self.always] = self.of_flipped[self.always] = 0.0

    def ends(self, centred: Floats) -> Floats:
        """Return the distances of shape (n_sides, n_columns, n_patterns), from sums of deviations from the mean."""
        if self.alternative == "two-sided":
            ends = np.empty((2, *centred.shape))
            np.multiply(centred, self.of_flipped, out=ends[0])
            centred *= self.of_kept
            np.maximum(ends[0], centred, out=ends[1])
            np.minimum(ends[0], centred, out=ends[0])
            np.negative(ends[0], out=ends[0])
        else:
            ends = (centred * self.of_flipped)[None]
            if self.alternative == "greater":
                np.negative(ends, out=ends)
        ends[..., self.always] = np.inf
        return ends


def _largest(ends: Floats, before: Floats | None, rank: int) -> Floats:
    together = ends if before is None else np.concatenate([before, ends], axis=2)
    place = max(0, together.shape[2] - rank)
    together.partition(place, axis=2)
    return together[..., place:].copy()


def _order_statistics(ends: Floats, ranks: Sequence[int], settings: Settings) -> Floats:
    """Return the ends of each rank: shape (2, n_ranks, n_columns); infinite where an interval is open."""
    found = np.full((2, len(ranks), ends.shape[1]), np.inf)
    sides = {"two-sided": slice(0, 2), "greater": slice(0, 1), "less": slice(1, 2)}[
        settings.alternative
    ]
    places = [ends.shape[2] - rank for rank in ranks if rank]
    ends.partition(places, axis=2)
    found[sides, [bool(rank) for rank in ranks]] = ends[..., places].transpose(0, 2, 1)
    return found


def chunk_rows(n: int, n_columns: int) -> int:
    """Choose the rows of a chunk: small temporaries are two to three times as fast as large ones."""
    least = int(np.clip(2**22 // n, 1, 32))  # 32 rows of a million are 256 MB
    return int(np.clip(2**16 // (n + n_columns), least, 4096))
