"""Do the labels of shared queries agree because they are the same labels? A Bayes factor over all of them.

Two data sets share query ids, or queries with the same documents. H1: a share of these queries comes from the
registered collection, with some labels changed. H0: they are other queries, or the same ones with new labels, such as
the clicks of another month. For each shared query i, with a share e of labels changed under H1, let ::

    l_i(e) = P(what is seen | H1, e) / P(what is seen | H0)
    BF = mean over q and e of  prod_i (q l_i(e) + 1 - q)

The product runs over agreements and disagreements alike: 23 agreements among 100 recurring queries are no evidence if
chance brings as many. By Markov's inequality, BF reaches 2^b with a chance of at most 2^-b under H0.

What is seen of a query is how many labels must change to make one multiset of labels the other: none, one, or more. H0
is taken at its best. If the labels of a query keep their probabilities from one month to the next, the chance of the
same counts c is at most that of a multinomial with probabilities c / n. If clicks persist by document, each is seen
again with a chance of `_PERSISTENCE`. If many registered queries have the same counts, a foreign one may have them too.
What disagrees has a chance of 1 under H0. So l_i is never above its true value.

If both sides know their documents, the labels of the same documents are compared instead, one by one. A document that
was clicked is clicked again with a chance p under H0, which is at most P. Its factor is (1 - e) / P if it is, and else
e / (1 - P), but at most 1. The mean of this factor grows with p and is at most 1 where p = P. So documents may persist
as unlike each other as they do. Grades say more if they agree: P is smaller, and what differs has a chance of 1.

The trap is the usual label. Nobody clicks most documents of some queries in any month, and 30 zeros that are zeros
again would outweigh all else. So it is never evidence for. Among clicks it is evidence against only if more than 15 %
of it changed, by the share that changed in all queries: else rare positives would drown in its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.label_counts import LabelCounts

ENOUGH_BITS = 14.0
"""Evidence by which labels of shared queries are the registered ones: by chance once in 10,000 data sets."""

ENOUGH_IF_ALL_AGREE = 5.0
"""The same, if the documents and labels of all registered queries agree without exception."""

CHANGED = np.array([0.0, 0.02, 0.06, 0.15])
"""Shares of changed labels that H1 allows."""

_SHARES = np.array([0.2, 0.4, 0.7, 0.9, 0.99])
"""Shares of shared queries that come from the collection under H1."""

_PERSISTENCE = 0.8
"""Chance that a document is clicked again, at most, if clicks are all the labels say."""

_SAME_GRADE = 0.5
"""Chance that a document has the same grade again, if there are three grades or more."""

_FLOOR = (0.05, 0.15)
"""Least chances, under H0, that no label or one label of a query differs."""


def bayes_factor_bits(log_ratios: NDArray[np.float64]) -> float:
    """Return log2 of the Bayes factor.

    Parameters
    ----------
    log_ratios : ndarray of shape (n_shared, len(CHANGED))
        Natural logarithms of l_i(e).
    """
    if not len(log_ratios):
        return 0.0
    bounded = np.minimum(log_ratios, 600.0)  # exp of more overflows
    sums = np.array([np.log1p(share * np.expm1(bounded)).sum(axis=0) for share in _SHARES])
    top = sums.max()
    return float((top + math.log(np.exp(sums - top).mean())) / math.log(2))


def paid(log_ratios: NDArray[np.float64], price: float) -> NDArray[np.float64]:
    """Return ratios, all lowered by as much as it takes for the Bayes factor to pay a price.

    Parameters
    ----------
    log_ratios : ndarray of shape (n_shared, len(CHANGED))
        Natural logarithms of l_i(e).
    price : float
        The price in bits. If the ratios are not worth it, each of them pays it.
    """
    wanted = bayes_factor_bits(log_ratios) - price
    each = price * math.log(2)
    if wanted > 0:
        each /= len(log_ratios)
        while bayes_factor_bits(log_ratios - each) > wanted:
            each *= 1.3
    return log_ratios - each


def ratios_of_counts(ours: LabelCounts, theirs: LabelCounts, chances: Chances) -> NDArray[np.float64]:
    """Return log l_i(e) of queries by their multisets of labels.

    Parameters
    ----------
    ours, theirs : LabelCounts
        The shared queries, registered and in the data, in the same order.
    chances : Chances
        The chances of the registered queries under H0.
    """
    same_size = ours.sizes == theirs.sizes
    if len(ours.levels) and len(theirs.levels):
        common = np.minimum(ours.counts, theirs.counts_at(ours.levels)).sum(axis=1, dtype=np.int64)
        n_changed = np.where(same_size, np.minimum(ours.sizes - common, 2), 2)
    else:  # too many levels to count: all or nothing
        n_changed = np.where(same_size & (ours.hashes == theirs.hashes), 0, 2)
    from scipy.stats import binom

    n = ours.sizes[:, None]
    none, one = binom.pmf(0, n, CHANGED), binom.pmf(1, n, CHANGED)
    under_h1 = np.stack([none, one, np.maximum(1 - none - one, 0)])
    under_h0 = np.stack([chances.none, chances.one, np.ones(len(chances.none))])
    rows = np.arange(len(n_changed))
    with np.errstate(divide="ignore"):
        ratios: NDArray[np.float64] = np.log(under_h1[n_changed, rows]) - np.log(under_h0[n_changed, rows])[:, None]
    return ratios


def ratios_of_documents(
    query: NDArray[np.integer[Any]], ours: NDArray[np.uint8], theirs: NDArray[np.uint8], *, usual: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.float64]]:
    """Return the queries that share documents, ascending, and log l_i(e) of each by the labels of these documents.

    A label may have been mapped to another one, as when grades are made binary: the most frequent label of the data is
    looked up for each registered one, and the choice of the map is paid for.

    Parameters
    ----------
    query : ndarray of int of shape (n_pairs,)
        The registered query of each shared pair of query and document.
    ours, theirs : ndarray of uint8 of shape (n_pairs,)
        Its label, registered and in the data.
    usual : int
        The registered label that most documents have. It is no evidence for.
    """
    labels, mine = np.unique(ours, return_inverse=True)
    found, other = np.unique(theirs, return_inverse=True)
    table = np.zeros((len(labels), len(found) + 1))  # the last column is for labels that the data lacks
    np.add.at(table, (mine, other), 1)
    is_usual = (labels == usual)[:, None]
    queries, place = np.unique(query, return_inverse=True)
    best = -math.inf
    log_best: NDArray[np.float64] = np.zeros((len(queries), len(CHANGED)))
    same = np.array([np.flatnonzero(found == label)[0] if label in found else -1 for label in labels])
    targets = (same, 0.0), (table.argmax(axis=1), len(labels) * math.log2(max(2, len(found))))
    rules = ((True, 0.0),) if min(len(labels), len(found)) <= 2 else ((False, 0.0), (True, 1.0))
    for (target, of_target), (are_clicks, of_rule) in product(targets, rules):
        if len(set(target.tolist())) < min(2, len(labels)):
            continue  # one label for all says nothing
        price = of_target + of_rule
        agree, differ = _factors(table, target, is_usual, are_clicks=are_clicks)
        summed = np.zeros((len(queries), len(CHANGED)))
        np.add.at(summed, place, np.where((target[mine] == other)[:, None], agree[mine], differ[mine]))
        bits = bayes_factor_bits(summed) - price
        if bits > best:
            best, log_best = bits, paid(summed, price)
    return queries, log_best


def _factors(
    table: NDArray[np.float64], target: NDArray[np.intp], is_usual: NDArray[np.bool_], *, are_clicks: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of what a document of each label adds to l_i(e), if it agrees and if it differs."""
    met = (table[np.arange(len(table)), target] / table.sum(axis=1))[:, None]
    share = (table[:, target].sum(axis=0) / table.sum())[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # of labels that never agree, or always
        if are_clicks:
            chance = np.where(is_usual, met, np.maximum(_PERSISTENCE, share))
            agree = np.where(is_usual, 0, np.log1p(-CHANGED) - np.log(chance))
            differ = np.log(np.where(is_usual, CHANGED[-1], CHANGED)) - np.log1p(-chance)
        else:
            agree = np.log1p(-CHANGED) - np.log(np.where(is_usual, 1, np.maximum(_SAME_GRADE, share)))
            differ = np.broadcast_to(np.log(CHANGED), agree.shape)
    return agree, np.where(CHANGED == 0, -np.inf, np.minimum(differ, 0))


@dataclass(frozen=True, eq=False)
class Chances:
    """Bounds on the chances, under H0, that the labels of registered queries are met again.

    Attributes
    ----------
    none, one : ndarray of float of shape (n_queries,)
        That no label differs; that one does.
    """

    none: NDArray[np.float64]
    one: NDArray[np.float64]

    @classmethod
    def of(cls, labels: LabelCounts, *, alike: NDArray[np.float64] | None = None) -> Chances:
        """Return the chances for the queries of a collection.

        Parameters
        ----------
        labels : LabelCounts
            Their labels.
        alike : ndarray of float of shape (n_queries,), optional
            The share of other queries with the same labels; by default the most frequent one of them may differ.
        """
        n_queries = len(labels.sizes)
        if not len(labels.levels):
            return cls(np.full(n_queries, _FLOOR[0]), np.full(n_queries, _FLOOR[1]))
        counts, n = labels.counts.astype(np.int64), np.maximum(labels.sizes, 1)
        own = np.exp2(labels.entropy + (counts * np.log2(np.maximum(counts, 1) / n[:, None])).sum(axis=1))
        # P(c + 1 of a, - 1 of b) = P(c) c_a / (c_a + 1); and a bit more, since c / n need not be the probabilities.
        n_levels = (counts > 0).sum(axis=1)
        neighbours = 1.3 * own * (counts / (counts + 1)).sum(axis=1) * np.maximum(n_levels - 1, 1)
        again = _again(labels)
        alike = labels.alike(but=labels.most_frequent) if alike is None else alike
        none = np.maximum(np.maximum(own, again), np.maximum(alike, _FLOOR[0]))
        return cls(np.minimum(none, 1), np.clip(neighbours, np.maximum(_FLOOR[1], np.minimum(again, 0.5)), 1))

    def take(self, queries: NDArray[np.int64]) -> Chances:
        """Return the chances of some queries."""
        return Chances(self.none[queries], self.one[queries])


def _again(labels: LabelCounts) -> NDArray[np.float64]:
    """Return the chance of as many clicks again if they persist by document; 0 where there are grades."""
    if len(labels.levels) > 2:
        return np.zeros(len(labels.sizes))
    from scipy.stats import binom

    rare = labels.sizes - labels.counts[:, labels.most_frequent].astype(np.int64)
    rest = labels.sizes - rare
    gained = np.minimum(rare * (1 - _PERSISTENCE) / np.maximum(rest, 1), 1)
    most = int(min(rare.max(initial=0), 30))
    total = np.zeros(len(rare))
    for lost in range(most + 1):  # as many are lost as are gained
        total += binom.pmf(lost, rare, 1 - _PERSISTENCE) * binom.pmf(lost, rest, gained)
    return total
