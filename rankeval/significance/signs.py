"""Patterns of signs, and the sums of many rows of numbers under each of them.

Up to 16 queries all 2^n patterns are counted; beyond, they are drawn, a bit per sign. A pattern is drawn in whole
64-bit words, so the stream of random numbers depends neither on the number of rows nor on the size of a chunk, and
another system in a comparison leaves the p-values of the rest as they are.

The sums are products of matrices, made in tiles: a megabyte or two of signs at a time, some patterns by some queries::

                     queries                    patterns
    rows        a  | . . . . |            a  | S S S S |
                b  | . . . . |     ->     b  | S S S S |      a row of sums for each row of numbers

so that a million queries take no more memory than a thousand. One thread of BLAS multiplies: beside other processes
several wait for each other longer than they work.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankeval._threads import one_blas_thread
from rankeval.significance.declarations import Floats, Settings
from rankeval.significance.pairs import Pairs

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
    return np.asarray(count / 2.0**n if n <= EXACT_UP_TO else (count + 1) / (settings.n_resamples + 1))


def sums_by_pattern(rows: Floats, settings: Settings, *, at_once: int) -> Iterator[Floats]:
    """Yield the sums of rows of numbers under patterns of signs, some patterns at a time.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_queries)
        Numbers.
    settings : Settings
        Number of random patterns beyond 16 queries, and their source.
    at_once : int
        Sums to hold at once; at least those of `PATTERNS` patterns are.

    Yields
    ------
    ndarray of shape (n_rows, n_patterns)
        Sums of signs times numbers. The array is filled anew for the next patterns.
    """
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

    Sums of a few systems are kept with the pairs. Of a million queries they take nearly all of the time, and a test,
    the p-values of max-T and its intervals read the same ones.

    Parameters
    ----------
    pairs : Pairs
        The columns.
    settings : Settings
        As in `sums_by_pattern`.
    weights : ndarray of shape (n_queries,), optional
        Weights of the queries; 1 by default.

    Yields
    ------
    ndarray of shape (n_rows + 2, n_patterns)
        To be read only, and before the next one is asked for.
    """
    total, height = number_drawn(len(pairs), settings), len(pairs.rows) + 2
    span = PATTERNS * -(-total // PATTERNS)
    if not isinstance(settings.rng, int) or height * span > _KEPT or not (weights is None or (weights == 1).all()):
        yield from sums_by_pattern(pairs.rows_and_ones(weights), settings, at_once=SUMS_AT_ONCE)
        return
    key = settings.rng, total
    if key not in pairs.kept:
        (pairs.kept[key],) = sums_by_pattern(pairs.rows_and_ones(), settings, at_once=SUMS_AT_ONCE)
        pairs.kept[key].flags.writeable = False
    yield pairs.kept[key]


@one_blas_thread()
def _add_up(rows: Floats, packed: NDArray[np.uint8], sums: Floats) -> None:
    """Write the sums of rows under packed patterns, tile by tile."""
    n = rows.shape[1]
    for start in range(0, n, _QUERIES):
        part = rows[:, start : start + _QUERIES]
        signs = _signs_of(packed[:, start // 8 : (start + _QUERIES) // 8], part.shape[1])
        if start:
            sums += part @ signs.T
        else:
            np.matmul(part, signs.T, out=sums)


def sign_chunks(n: int, settings: Settings) -> Iterator[Floats]:
    """Yield matrices of -1 and 1, a pattern per row: all 2^n up to `EXACT_UP_TO` queries, else random ones."""
    for packed in _byte_chunks(n, settings):
        yield _signs_of(packed, n)


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
            drawn = generator.integers(0, 2**64 - 1, size=(size, words), dtype=np.uint64, endpoint=True)
            yield drawn.view(np.uint8)
