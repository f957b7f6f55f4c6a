"""The randomisation test, and how resamples are drawn.

Under its null, swapping two systems' scores on a query changes nothing, so every pattern of signs on the differences
is equally likely. All patterns are counted for up to 16 queries; beyond, the p-value is ``(b + 1) / (B + 1)``: the
observed pattern is one of those that could have been drawn, so p is never 0.

All pairs share the patterns: a chunk of 32 patterns or more is a matrix that multiplies the matrix of differences
(BLAS). The stream of random numbers does not depend on the number of pairs, so another system in the comparison
leaves the p-values of the rest as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import Floats, PairedResult, Settings
from rankeval.significance.paired import t_interval

EXACT_UP_TO = 16
"""Up to this many queries all 2^n sign patterns are counted."""


def randomization(d: Floats, settings: Settings) -> PairedResult:
    """Test whether systems are exchangeable query by query, by Fisher's randomisation of signs.

    Exact up to 16 queries for systems that are exchangeable: every difference as likely with either sign. As a test of
    equal means it holds its level as Student's t does: 4-6 % false positives, two-sided, where 5 % were asked and
    differences are mildly skewed; 9.5 % at 10 queries and 8 % at 25 for exponential ones, one-sided 14 and 11 %.

    Patterns whose mean equals the observed one, up to rounding, count as extreme. The interval is Student's.
    """
    # Sums of tenths differ in their last bits by signs and order: the slack lets equal ones count as equal.
    least = settings.evidence(d.sum(axis=0)) - TIE_TOLERANCE * np.abs(d).sum(axis=0)
    count = np.zeros(d.shape[1], dtype=np.int64)
    for signs in sign_chunks(len(d), settings, n_columns=d.shape[1]):
        count += (settings.evidence(signs @ d) >= least).sum(axis=0)
    return PairedResult(share_of_patterns(count, len(d), settings), *t_interval(d, settings))


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
