"""Orders of systems: how far two agree, and how much of one the comparisons of all pairs have shown.

Every function takes one number for each system, the greater the better, or a matrix over pairs of
systems. Two orders part the pairs of systems into those in the same order, *swaps* (in the other
order) and *ties* (tied in one of the orders at least). Kendall's tau counts the pairs alike; tau_AP
weights them by rank, so that the top counts most.

tau_AP goes down one order and asks at each rank which share of the systems above is above in the
other order too. That makes it directed. Urbano and Marrero (2017) give two forms for ties, after
the two questions one may ask:

    accuracy    one order is the truth       tau_ap_a, directed: the mean over all ways to break the ties
    agreement   neither order is the truth   tau_ap_b, symmetric: tied systems share a rank

The trap: means of equal scores differ in their last bits by the order of the sum. So means are
turned into ranks first, by `competition_ranks`, which leaves a slack.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rankeval.errors import InvalidInput
from rankeval.significance.bootstrap import weight_chunks
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import Floats, Settings, seed_of

Ints = NDArray[np.int64]


def competition_ranks(values: ArrayLike) -> Ints:
    """Rank systems, the best one 1; tied ones share the best of their ranks.

    Examples
    --------
    >>> competition_ranks([0.3, 0.1 + 0.2, 0.5, 0.1]).tolist()
    [2, 2, 1, 4]
    """
    means = _checked(values)
    order = np.argsort(-means, kind="stable")
    falling = means[order]
    size = np.abs(falling)
    begins = np.ones(len(means), dtype=np.bool_)  # a place at which a group of tied systems begins
    begins[1:] = falling[:-1] - falling[1:] > TIE_TOLERANCE * np.maximum(size[:-1], size[1:])
    ranks = np.empty(len(means), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(np.where(begins, np.arange(1, len(means) + 1), 1))
    return ranks


def tau_b(one: ArrayLike, other: ArrayLike) -> float:
    """Return Kendall's tau-b of two orders.

    In [-1, 1]: 1 for equal orders, -1 for reversed ones; nan if all systems are tied in one of
    them.

    Examples
    --------
    >>> round(tau_b([4, 3, 2, 1], [4, 3, 1, 2]), 4)  # 5 pairs in the same order, 1 swap
    0.6667
    """
    first, second = _ranked(one, other)
    return float(stats.kendalltau(first, second).statistic)


def tau_ap_a(truth: ArrayLike, estimate: ArrayLike) -> float:
    """Return tau_AP of an order against the true one, the mean over all ways to break ties.

    In [-1, 1]: 1 for equal orders without ties, -1 for reversed ones. Not symmetric.

    Examples
    --------
    >>> tau_ap_a([3, 2, 1], [2, 3, 1])  # C = 0 of 1 at rank 2, 2 of 2 at rank 3
    0.0
    >>> tau_ap_a([3, 2, 1], [3, 3, 1])  # the mean of 0 and 1
    0.5
    """
    true, found = _ranked(truth, estimate)
    above = found[:, None] > found  # the system of the column is above that of the row
    right = np.where(true[:, None] == true, 0.5, true[:, None] > true)
    n_above, group = found - 1, (found[:, None] == found).sum(axis=1)
    # A system of a group of t takes the ranks m + 1 ... m + t alike often, and 1 / (rank - 1) is
    # then S / t on average.
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(found)))])
    reciprocals = harmonic[n_above + group - 1] - harmonic[np.maximum(n_above - 1, 0)]
    # Of the k - 1 systems of the group that are above at its k-th rank, half are in the right order
    # on average.
    within = np.where(n_above > 0, group - n_above * reciprocals, group - 1) / 2
    right_above = (above * right).sum(axis=1)
    total = ((right_above * reciprocals * (n_above > 0) + within) / group).sum()
    return float(2 * total / (len(found) - 1) - 1)


def tau_ap_b(one: ArrayLike, other: ArrayLike) -> float:
    """Return the symmetric tau_AP of two orders, in which tied systems share a rank.

    In [-1, 1]: 1 for equal orders, with ties too, -1 for reversed ones; nan if all systems are tied
    in one of them.

    Examples
    --------
    >>> tau_ap_b([3, 2, 1], [2, 3, 1])
    0.0
    >>> tau_ap_b([3, 2, 2], [3, 2, 2])
    1.0
    """
    first, second = _ranked(one, other)
    return (_shared_rank_tau(first, second) + _shared_rank_tau(second, first)) / 2


def swaps_and_ties(one: ArrayLike, other: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the pairs of systems that two orders have in other order, and those tied in one of them at least."""
    first, second = _ranked(one, other)
    tied = (first[:, None] == first) | (second[:, None] == second)
    return (first[:, None] < first) & (second[:, None] > second), np.triu(tied, k=1)


def rank_ranges(better: ArrayLike) -> tuple[Ints, Ints]:
    """Return the ranks that a system may have, given which pairs were shown to differ.

    If no pair was shown wrongly, the true ranks of all systems lie in their ranges: the error rate
    is that of the tests over the family of all pairs. A system that is tied in truth has all ranks
    of its group.

    Examples
    --------
    >>> low, high = rank_ranges([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    >>> list(zip(low.tolist(), high.tolist()))
    [(1, 1), (2, 3), (2, 3)]
    """
    shown = np.asarray(better, dtype=np.bool_)
    return 1 + shown.sum(axis=0), len(shown) - shown.sum(axis=1)


def shares_first(scores: Floats, settings: Settings) -> Floats:
    """Return the share of resamples over queries in which each system has the best mean.

    A description of the sample, and no probability of being the best: of equal systems, one that
    led by chance may have a share near 1.
    """
    n, slack = len(scores), TIE_TOLERANCE * np.abs(scores).max(initial=0.0)
    first = np.zeros(scores.shape[1])
    for weights in weight_chunks(
        n, settings.n_resamples, seed_of(settings.rng), n_columns=len(first)
    ):
        means = weights @ scores
        leads = means >= means.max(axis=1, keepdims=True) - slack
        first += (leads / leads.sum(axis=1, keepdims=True)).sum(axis=0)
    return first / settings.n_resamples


def _shared_rank_tau(other: Ints, order: Ints) -> float:
    """Go down `order` and return the directed coefficient, in which tied systems share a rank."""
    below = order > 1
    if not below.any():
        return float("nan")
    right = (order[:, None] > order) & (other[:, None] > other)
    return float(2 * np.mean(right.sum(axis=1)[below] / (order[below] - 1)) - 1)


def _ranked(order: ArrayLike, other: ArrayLike) -> tuple[Ints, Ints]:
    first, second = competition_ranks(order), competition_ranks(other)
    if len(first) != len(second):
        raise InvalidInput(
            f"two orders rank the same systems, found {len(first)} and {len(second)}; give both all"
        )
    return first, second


def _checked(values: ArrayLike) -> Floats:
    means = np.asarray(values, dtype=np.float64)
    if means.ndim != 1 or len(means) < 2 or not np.isfinite(means).all():
        raise InvalidInput(
            f"an order takes one finite number for each of 2 systems or more, found shape {means.shape} with "
            f"{np.count_nonzero(~np.isfinite(means))} that are NaN or infinite"
        )
    return means
