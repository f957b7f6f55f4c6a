"""The randomisation test, and what all resampling shares.

Under its null, swapping two systems' scores on a query changes nothing, so every pattern of signs on the differences
is equally likely. All patterns are counted for up to 16 queries; beyond, the p-value is ``(b + 1) / (B + 1)``: the
observed pattern is one of those that could have been drawn, so p is never 0.

All pairs share the patterns: a chunk of 32 or more of them is a matrix that multiplies the matrix of differences
(BLAS). The stream of random numbers does not depend on the number of pairs, so another system in the comparison
leaves the p-values of the rest as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import shown
from rankeval.errors import InvalidInput
from rankeval.significance.paired import (
    TIE_TOLERANCE,
    Floats,
    PairedTest,
    as_columns,
    check_alternative,
    t_interval,
    wrap,
)

_MOST_RESAMPLES = 100_000_000
"""Hours of work; more would not end."""

EXACT_UP_TO = 16
"""Up to this many queries all 2^n sign patterns are counted."""

Rng = int | np.random.Generator | None


def sign_chunks(n: int, n_resamples: int, rng: Rng, *, n_columns: int = 1) -> Iterator[Floats]:
    """Yield matrices of -1 and 1, a pattern per row: all 2^n up to `EXACT_UP_TO` queries, else random ones."""
    rows = chunk_rows(n, n_columns)
    if n <= EXACT_UP_TO:
        for start in range(0, 2**n, rows):
            patterns = np.arange(start, min(start + rows, 2**n))
            yield (((patterns[:, None] >> np.arange(n)) & 1) * 2 - 1).astype(np.float64)
        return
    generator, words = np.random.default_rng(rng), -(-n // 64)
    for start in range(0, n_resamples, rows):
        # Whole 64-bit words per row: the stream is then the same for every chunk size.
        size = (min(rows, n_resamples - start), words)
        drawn = generator.integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n).astype(np.float64) * 2 - 1


def share_of_patterns(count: NDArray[np.int64], n: int, n_resamples: int) -> Floats:
    """Turn counts over `sign_chunks` into p-values: exact, or with the observed pattern added."""
    if n <= EXACT_UP_TO:
        return count / 2.0**n
    p_value: Floats = (count + 1) / (n_resamples + 1)
    return p_value


def sign_flip(
    d: ArrayLike,
    *,
    alternative: str = "two-sided",
    confidence_level: float = 0.95,
    n_resamples: int = 9999,
    rng: Rng = None,
) -> PairedTest:
    """Test whether systems are exchangeable query by query, by Fisher's randomisation of signs.

    Exact up to 16 queries for systems that are exchangeable: every difference as likely with either sign. As a test of
    equal means it holds its level as Student's t does: 4-6 % false positives, two-sided, where 5 % were asked and
    differences are mildly skewed; 9.5 % at 10 queries and 8 % at 25 for exponential ones, one-sided 14 and 11 %.

    Parameters
    ----------
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the system is better than the baseline.
    confidence_level : float, default 0.95
        Of the interval, which is Student's.
    n_resamples : int, default 9999
        Random patterns beyond 16 queries.
    rng : int, Generator or None
        Source of the patterns.

    Returns
    -------
    PairedTest
        Patterns whose mean equals the observed one, up to rounding, count as extreme.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a difference that is not finite, or no resample.

    Examples
    --------
    >>> float(sign_flip([1, 2, 3]).p_value)  # 2 of the 8 patterns reach |6|
    0.25
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    columns = as_columns(d)
    n, m = columns.shape
    observed, slack = columns.sum(axis=0), TIE_TOLERANCE * np.abs(columns).sum(axis=0)
    count = np.zeros(m, dtype=np.int64)
    for signs in sign_chunks(n, n_resamples, rng, n_columns=m):
        count += as_extreme(signs @ columns, observed, slack, alternative).sum(axis=0)
    p_value = share_of_patterns(count, n, n_resamples)
    return wrap(d, p_value, *t_interval(columns, alternative, confidence_level))


def chunk_rows(n: int, n_columns: int) -> int:
    """Choose the rows of a chunk: small temporaries are two to three times as fast as large ones."""
    return int(np.clip(2**16 // (n + n_columns), 32, 4096))


def as_extreme(drawn: Floats, observed: Floats, slack: Floats, alternative: str) -> NDArray[np.bool_]:
    """Mark what reaches the observed value in the direction of the alternative, ties counted."""
    if alternative == "greater":
        return drawn >= observed - slack
    if alternative == "less":
        return drawn <= observed + slack
    reached: NDArray[np.bool_] = np.abs(drawn) >= np.abs(observed) - slack
    return reached


def seed_of(rng: Any) -> int:
    """Return the seed: a whole number as it is, that of a generator or of chance drawn from it.

    Parameters
    ----------
    rng : int, Generator or None
        As callers give it.

    Raises
    ------
    InvalidInput
        For anything else.
    """
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng is {shown(rng)}; expected a seed (a whole number, 0 or greater), a Generator or None")
    return int(np.random.default_rng(rng).integers(2**31))


def check_resamples(n_resamples: Any) -> None:
    """Raise `InvalidInput` unless there is at least one resample."""
    if not isinstance(n_resamples, (int, np.integer)) or isinstance(n_resamples, bool):
        raise InvalidInput(f"n_resamples is {shown(n_resamples)}; expected a whole number, such as 9999")
    if n_resamples < 1:
        raise InvalidInput(f"n_resamples is {n_resamples}; ask for at least 1, or 9999 to resolve p = 0.0001")
    if n_resamples > _MOST_RESAMPLES:
        raise InvalidInput(f"n_resamples is {shown(n_resamples)}; ask for {_MOST_RESAMPLES:,} at most")
