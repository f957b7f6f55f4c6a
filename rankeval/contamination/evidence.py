"""How surely a match shows that data is registered: bits for one query, chance for the labels of all.

**One query.** A registered query carries bits of evidence per kind of content. Suppose that a row stands in c of Q
registered queries. Then a foreign query has that row with a chance of about c / (Q + 1), which is log2((Q + 1) / c)
bits of surprise, and the surprises of the rows of a query add up. A query of 40 bits is identifiable: by chance it
would be met once in 10^12 foreign queries.

**All labels.** The labels of one query prove nothing: many queries have three relevant rows of ten. The labels of a
whole collection do. Suppose that label pattern s stands m_s times in the n registered queries. How likely is it that N
foreign queries show registered patterns only, none more often than it is registered? The answer depends on the
population of the foreign queries. We take the one that makes it likeliest for N = n, p_s = m_s / n, and so err on the
side of letting data through. The chance is then

    N! [z^N] prod_s T_s(p_s z)   with   T_s(x) = sum_{k <= m_s} x^k / k!

All coefficients are positive, so it is at most ``N! z^-N prod_s T_s(p_s z)`` for every z > 0. The code takes the least
of these bounds over a grid of z. For N = n the chance is the multinomial n! prod_s p_s^m_s / m_s!. Twelve queries that
all differ suffice for 1 in 10,000. Queries that all look alike never suffice.

The trap: in a small collection even unique rows carry few bits, since c / (Q + 1) is large. So a row of features that
stands in one query only may count its unusual values instead, if they carry more. Flags that were standardised have
many digits, and are no unusual values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import SHARED_BY_FEW, Entries, times_among
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.hashing import taken
from rankeval.join.matching import Hashes

IDENTIFIABLE_BITS = 40.0
"""Evidence that a query needs to count; a chance of 2^-40 is small enough for collections of a million queries."""

REFUSAL_CHANCE = 1e-4
"""Labels alone refuse data if fewer than one in 10,000 foreign data sets would have them."""

_UNUSUAL_VALUE_BITS = 6.0
"""Evidence of a value with three or more significant digits; equal values in a row count once."""

_COUNTED = 1 << 18
"""Kept rows up to which unusual values are counted in all of them; of more, where rarity does not identify a query."""

_TINY, _NEGLIGIBLE = 1e-280, 1e-17
"""Below the first, a share loses digits; a term of less than the second adds nothing to a sum."""

_LOG_Z = np.linspace(-8.0, 40.0, 241)


def chance_of_labels(registered: Hashes, candidate: Hashes) -> float:
    """Return the chance that foreign queries show the candidate's label patterns; 1 if some are not registered.

    Parameters
    ----------
    registered, candidate : ndarray of uint64
        The label signature of each query.
    """
    known, times = np.unique(registered, return_counts=True)
    drawn, drawn_times = np.unique(candidate, return_counts=True)
    if not len(known) or not len(drawn):
        return 1.0
    place = np.minimum(np.searchsorted(known, drawn), len(known) - 1)
    if not bool(((known[place] == drawn) & (times[place] >= drawn_times)).all()):
        return 1.0
    return chance_of_being_contained(times, int(drawn_times.sum()))


def chance_of_being_contained(times: NDArray[np.int64], n_drawn: int) -> float:
    """Return an upper bound on the chance that n drawn patterns fit into a collection with these multiplicities.

    Parameters
    ----------
    times : ndarray of int
        How often each pattern stands in the collection.
    n_drawn : int
        How many patterns are drawn from its distribution.
    """
    total = int(times.sum())
    log_bound = math.lgamma(n_drawn + 1) - n_drawn * _LOG_Z
    for count, patterns in zip(*np.unique(times, return_counts=True), strict=True):
        log_bound += patterns * _log_partial_exponential(int(count), math.log(count / total) + _LOG_Z)
    return float(min(1.0, math.exp(min(0.0, float(log_bound.min())))))


def _log_partial_exponential(terms: int, log_x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(sum_{k <= terms} x^k / k!).

    That is x + log Q(terms + 1, x) with the regularised incomplete gamma function Q. Where Q is too small for a float,
    x is far above ``terms``, and the sum is read from its last term, the largest: x^m / m! (1 + m / x + ...).
    """
    from scipy.special import gammaincc, gammaln

    x = np.exp(log_x)
    share = gammaincc(terms + 1, x)
    tiny = share < _TINY
    with np.errstate(divide="ignore"):
        total: NDArray[np.float64] = x + np.log(share)
    if tiny.any():
        ratio, rest = np.ones(int(tiny.sum())), np.zeros(int(tiny.sum()))
        for k in range(terms, -1, -1):
            rest += ratio
            ratio = ratio * k / x[tiny]
            if (ratio < _NEGLIGIBLE * rest).all():
                break
        total[tiny] = terms * log_x[tiny] - gammaln(terms + 1) + np.log(rest)
    return total


def surprise(n: Any, k: Any, chance: Any) -> NDArray[np.float64]:
    """Return the bits of k or more hits in n draws with this chance of a hit: at most -log2 of the binomial tail.

    Parameters
    ----------
    n, k : array of int
        Draws, at least one, and hits.
    chance : array of float
        The chance of a hit in each draw.

    Examples
    --------
    Ten hits in ten fair draws are ten bits, five are none:

    >>> surprise([10, 10], [10, 5], 0.5).tolist()
    [10.0, 0.0]
    """
    share, chance = np.asarray(k) / np.asarray(n), np.clip(chance, 1e-300, 1 - 1e-15)
    hits = share * np.log2(np.maximum(share, 1e-300) / chance)
    misses = (1 - share) * np.log2(np.maximum(1 - share, 1e-300) / (1 - chance))
    return np.where(share > chance, np.asarray(n) * (hits + misses), 0.0)


@dataclass(frozen=True, eq=False)
class Recurrence:
    """How often the rows of registered queries come back in other queries, learnt from these queries.

    Attributes
    ----------
    times : ndarray of float of shape (n,)
        How many registered queries have each row; 0 for rows that are no evidence.
    chance : ndarray of float of shape (n,)
        The chance that a row of a foreign query is this one.
    """

    times: NDArray[np.float64]
    chance: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Entries, n_queries: int) -> Recurrence:
        """Learn it. By Good and Turing, rows of one query are as likely as those of two are many, and one row more.

        Parameters
        ----------
        rows : Entries
            The rows with their bits by rarity.
        n_queries : int
            Number of queries.
        """
        bits = np.zeros(len(rows)) if rows.bits is None else rows.bits.astype(float)
        times = np.where(bits > 0, np.maximum(1, np.rint((n_queries + 1) / np.exp2(np.minimum(bits, 100)))), 0)
        n_elsewhere = max(1e-9, (times > 0).sum() * (1 - 1 / n_queries))
        unseen = ((times == 2).sum() + 2) / max(1, (times == 1).sum())
        return cls(times, np.where(times > 0, np.maximum(times - 1, unseen) / n_elsewhere, 0))


def rarity(all_values: Entries, kept: Entries, n_queries: int) -> Entries:
    """Return kept values with their bits of evidence by how many queries have them.

    Parameters
    ----------
    all_values : Entries
        The values of all queries.
    kept : Entries
        The smallest of each query.
    n_queries : int
        Number of queries.
    """
    n_with = times_among(kept.value, all_values.value)
    bits = np.log2((n_queries + 1) / n_with).astype(np.float32)
    return replace(kept, bits=np.where(n_with > SHARED_BY_FEW, np.float32(0), bits))


def unusual_values(kept: Entries, data: Fingerprint) -> Entries:
    """Count the unusual values of rows of one query only, where they carry more than rarity.

    Parameters
    ----------
    kept : Entries
        The kept rows of each query, with their bits by rarity.
    data : Fingerprint
        The data.
    """
    n_queries, bits = data.n_queries, kept.bits
    if bits is None or not len(kept):
        return kept
    weak = (kept.per_query(n_queries, bits) < IDENTIFIABLE_BITS) | (len(kept) <= _COUNTED)
    known = data.short_rows() if weak.any() else None
    if known is None:
        return kept
    unique = bits >= np.float32(np.log2(n_queries + 1))
    greatest = np.zeros(n_queries, dtype=np.uint32)
    np.maximum.at(greatest, kept.query, kept.value)
    # The rows whose hashes are kept, looked up by (query, hash).
    here = np.flatnonzero(weak[data.codes] & (known <= greatest[data.codes]))
    if not len(here):
        return kept
    key = (kept.query.astype(np.uint64) << np.uint64(32)) | kept.value
    place = np.searchsorted(key, (data.codes[here].astype(np.uint64) << np.uint64(32)) | known[here])
    more = np.zeros(len(kept), dtype=np.float32)
    more[place] = _UNUSUAL_VALUE_BITS * _n_unusual(data.X, here)
    return replace(kept, bits=np.where(unique, np.maximum(bits, more), bits))


def _n_unusual(X: Any, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the number of distinct unusual values in each of these rows.

    A value is unusual if it has three or more significant digits, and most such values of its column are distinct:
    flags stay flags when they are standardised.
    """
    step = max(1, (1 << 18) // max(1, X.shape[1]))
    continuous: NDArray[np.bool_] | None = None
    counted = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(rows), step):
        values = np.abs(taken(X, rows[start : start + step]).astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            leading = values / 10.0 ** (np.floor(np.log10(values)) - 1)  # two digits before the point
            # float32 keeps 7 digits: 0.12 is not exactly 12 here, and is still a value of two digits.
            unusual = np.isfinite(leading) & (np.abs(leading - np.round(leading)) > 1e-4 * leading)
        if continuous is None:
            column = [np.unique(values[told, place]) for place, told in enumerate(unusual.T)]
            continuous = 2 * np.array([len(one) for one in column]) >= unusual.sum(axis=0)
        values = np.sort(np.where(unusual & continuous, values, 0), axis=1)
        counted.append((np.diff(values, axis=1, prepend=0.0) > 0).sum(axis=1))
    return np.concatenate(counted)
