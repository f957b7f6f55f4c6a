"""How surely a match shows that data is registered: bits for one query, chance for the labels of all.

**One query.** A registered query carries bits of evidence per kind of content. Suppose that a row stands in c of Q
registered queries. Then a foreign query has that row with a chance of about c / (Q + 1), which is log2((Q + 1) / c)
bits of surprise, and the surprises of the rows of a query add up. A query of 40 bits is identifiable: by chance it
would be met once in 10^12 foreign queries. Queries below that are never a reason to refuse anything.

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
stands in one query only may count its unusual values instead, if they carry more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.hashing import blocks
from rankeval.join.matching import Hashes

IDENTIFIABLE_BITS = 40.0
"""Evidence that a query needs to count; a chance of 2^-40 is small enough for collections of a million queries."""

REFUSAL_CHANCE = 1e-4
"""Labels alone refuse data if fewer than one in 10,000 foreign data sets would have them."""

IDENTIFYING = ("features", "documents", "judgments", "text")
"""Kinds of content that can identify one query."""

_UNUSUAL_VALUE_BITS = 6.0
"""Evidence of a value with three or more significant digits, about log2(100); equal values in a row count once."""

_LOG_Z = np.linspace(-8.0, 40.0, 241)


def evidence_bits(data: Fingerprint, X: Any | None) -> dict[str, NDArray[np.float64]]:
    """Return the bits of evidence that each query carries, per kind of content that can identify it.

    Parameters
    ----------
    data : Fingerprint
        The content.
    X : array, sparse matrix or DataFrame, optional
        The features, whose unusual values are evidence too.
    """
    bits = {kind: _row_bits(data, kind, X) for kind in IDENTIFYING if kind in data.rows and kind in data.queries}
    if "text" in data.queries:
        bits["text"] = _text_bits(data)
    return bits


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
    """Return log(sum_{k <= terms} x^k / k!)."""
    total = np.zeros_like(log_x)
    term = np.zeros_like(log_x)
    for k in range(1, terms + 1):
        term = term + log_x - math.log(k)
        total = np.logaddexp(total, term)
    return total


def _row_bits(data: Fingerprint, kind: str, X: Any | None) -> NDArray[np.float64]:
    row, count = _rows_in_queries(data.rows[kind], data.codes)
    surprise = np.log2((data.n_queries + 1) / count)
    query = data.codes[row]
    total = np.bincount(query, weights=surprise, minlength=data.n_queries)
    # Looking at every value costs as much as hashing it, so only if rarity does not suffice.
    if kind == "features" and X is not None and (total < IDENTIFIABLE_BITS).any():
        surprise = np.where(count == 1, np.maximum(surprise, _unusual_values(X)[row]), surprise)
        total = np.bincount(query, weights=surprise, minlength=data.n_queries)
    return total.astype(np.float64)


def _rows_in_queries(rows: Hashes, codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return one row for each distinct (content, query), and the number of queries that hold its content."""
    order = np.lexsort((codes, rows))
    content, query = rows[order], codes[order]
    new_content = np.ones(len(order), dtype=bool)
    new_content[1:] = content[1:] != content[:-1]
    new_pair = new_content.copy()
    new_pair[1:] |= query[1:] != query[:-1]
    group = np.cumsum(new_content[new_pair]) - 1
    return order[new_pair], np.bincount(group)[group]


def _unusual_values(X: Any) -> NDArray[np.float64]:
    """Return the bits of evidence in each row's distinct values of three or more significant digits."""
    bits = [np.zeros(0)]
    for block in blocks(X):
        values = np.sort(np.abs(block.astype(np.float64)), axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            leading = values / 10.0 ** (np.floor(np.log10(values)) - 1)  # two digits before the point
            # float32 keeps 7 digits: 0.12 is not exactly 12 here, and is still a value of two digits.
            unusual = np.isfinite(leading) & (np.abs(leading - np.round(leading)) > 1e-4 * leading)
        unusual[:, 1:] &= values[:, 1:] != values[:, :-1]
        bits.append(_UNUSUAL_VALUE_BITS * unusual.sum(axis=1))
    return np.concatenate(bits)


def _text_bits(data: Fingerprint) -> NDArray[np.float64]:
    """Return the evidence of the query texts: a text identifies its query unless another query has it too."""
    _, place, count = np.unique(data.queries["text"], return_inverse=True, return_counts=True)
    return np.where(count[place] == 1, IDENTIFIABLE_BITS, 0.0)
