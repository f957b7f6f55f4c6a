"""Are these labels those of a registered collection? What labels alone can prove.

One query's labels prove nothing: many queries have three relevant rows of ten. A whole collection's do. If the label
patterns of the candidate's queries are drawn from any population, how likely is it that they all are found among the
registered ones, none more often than it stands there? With pattern s standing m_s times in n registered queries, the
population in which that is likeliest (for n drawn queries) is the registered collection itself, p_s = m_s / n, so we
ask for that one and err on the side of letting through. For N drawn queries the chance is

    N! [z^N] prod_s T_s(p_s z)   with   T_s(x) = sum_{k <= m_s} x^k / k!

and, all coefficients being positive, at most ``N! z^-N prod_s T_s(p_s z)`` for every z > 0: we take the least over a
grid. At N = n this is the multinomial n! prod_s p_s^m_s / m_s!. Twelve queries that all differ are enough for 1 in
10,000; queries that all look alike never are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.hashing import Hashes

REFUSAL_CHANCE = 1e-4
"""Labels alone refuse where chance is below one in 10,000 data sets."""

_LOG_Z = np.linspace(-8.0, 40.0, 241)


def chance_of_labels(registered: Hashes, candidate: Hashes) -> float:
    """Return the chance that other queries show the candidate's label patterns; 1 where they are not all registered.

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
