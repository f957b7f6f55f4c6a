"""How surely a match shows that data is registered: bits for one query, chance for the labels of all.

**One query.** A registered query carries bits of evidence per kind of content. Suppose that a row
stands in c of Q registered queries. Then a foreign query has that row with a chance of about c / (Q
+ 1), which is log2((Q + 1) / c) bits of surprise, and the surprises of the rows of a query add up.
A query of 40 bits is identifiable: by chance it would be met once in 10^12 foreign queries.

**All labels.** The labels of one query prove nothing: many queries have three relevant rows of ten.
The labels of a whole collection do. Suppose that label pattern s stands m_s times in the n
registered queries. How likely is it that N foreign queries show registered patterns only, none more
often than it is registered? The answer depends on the population of the foreign queries. We take
the one that makes it likeliest for N = n, p_s = m_s / n, and so err on the side of letting data
through. The chance is then

    N! [z^N] prod_s T_s(p_s z)   with   T_s(x) = sum_{k <= m_s} x^k / k!

All coefficients are positive, so it is at most ``N! z^-N prod_s T_s(p_s z)`` for every z > 0. The
code takes the least of these bounds over a grid of z. For N = n the chance is the multinomial n!
prod_s p_s^m_s / m_s!. Twelve queries that all differ suffice for 1 in 10,000. Queries that all look
alike never suffice.

The trap: in a small collection even unique rows carry few bits, since c / (Q + 1) is large. So rows
of features count by how rarely the rows of other queries come back (`Recurrence`). Their digits
tell no more: flags that were standardised have many.

**Shared queries.** Do their labels agree because they are the same labels? A Bayes factor over all
of them tells. Two data sets share query ids, or queries with the same documents. H1: a share of
these queries comes from the registered collection, with some labels changed. H0: they are other
queries, or the same ones with new labels, such as the clicks of another month. For each shared
query i, with a share e of labels changed under H1, let ::

    l_i(e) = P(what is seen | H1, e) / P(what is seen | H0)
    BF = mean over q and e of  prod_i (q l_i(e) + 1 - q)

The product runs over agreements and disagreements alike: 23 agreements among 100 recurring queries
are no evidence if chance brings as many. By Markov's inequality, BF reaches 2^b with a chance of at
most 2^-b under H0.

What is seen of a query is how many labels must change to make one multiset of labels the other:
none, one, or more. H0 is taken at its best. If the labels of a query keep their probabilities from
one month to the next, the chance of the same counts c is at most that of a multinomial with
probabilities c / n. If clicks persist by document, each is seen again with a chance of
`PERSISTENCE`. If many registered queries have the same counts, a foreign one may have them too.
What disagrees has a chance of 1 under H0. So l_i is never above its true value.

If both sides know their documents, the labels of the same documents are compared instead, one by
one. A document that was clicked is clicked again with a chance p under H0, which is at most P. Its
factor is (1 - e) / P if it is, and else e / (1 - P), but at most 1. The mean of this factor grows
with p and is at most 1 where p = P. So documents may persist as unlike each other as they do.
Grades say more if they agree: P is smaller, and what differs has a chance of 1.

**Relevant documents alone.** One side may have positives only. Then what is seen of a query is
which of its relevant documents come back, and which others come. Each that comes back has the
factor (1 - e) / P, and each that is lost or new e / (1 - P), at most 1. P is the persistence of
clicks, or the popularity of the document if most queries have it. So 44 documents that all come
back under their queries' ids are enough (log2 1/P = .32 bits each). Candidates that nobody judged
are not relevant, and change nothing.

Under new ids, the relevant documents of all queries may be those of the collection, as all labels
may be: one document of each query is drawn, by its share of the registered ones, and the chance
that none is drawn more often than it stands there is bounded as above.

The trap is the usual label. Nobody clicks most documents of some queries in any month, and 30 zeros
that are zeros again would outweigh all else. So it is never evidence for. Among clicks it is
evidence against only if more than 15 % of it changed, by the share that changed in all queries:
else rare positives would drown in its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.query_values import SHARED_BY_FEW, LabelCounts, QueryValues, times_among

IDENTIFIABLE_BITS = 40.0
"""Evidence that a query needs to count; a chance of 2^-40 is small enough for collections of a million queries."""

REFUSAL_CHANCE = 1e-4
"""Labels alone refuse data if fewer than one in 10,000 foreign data sets would have them."""

_TINY = 1e-280
"""Below it, a share loses digits."""

_LOG_Z = np.linspace(-8.0, 40.0, 241)


def chance_of_being_contained(times: NDArray[np.int64], n_drawn: int) -> float:
    """Return an upper bound on the chance that n drawn patterns fit into a collection with these multiplicities."""
    total = int(times.sum())
    log_bound = math.lgamma(n_drawn + 1) - n_drawn * _LOG_Z
    for count, patterns in zip(*np.unique(times, return_counts=True), strict=True):
        log_bound += patterns * _log_partial_exponential(
            int(count), math.log(count / total) + _LOG_Z
        )
    return float(min(1.0, math.exp(min(0.0, float(log_bound.min())))))


def surprise_of_equality(times: NDArray[np.int64], *, same_ids: bool) -> float:
    """Return the bits of evidence that equal content is, if contents are drawn as often as they are registered."""
    n = int(times.sum())
    if same_ids:
        return float((times * np.log2(n / times)).sum())
    return -math.log2(max(chance_of_being_contained(times, n), 1e-300))


def _log_partial_exponential(terms: int, log_x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(sum_{k <= terms} x^k / k!).

    That is x + log Q(terms + 1, x) with the regularised incomplete gamma function Q. Where Q is too
    small for a float, x is far above ``terms``, and the sum is bounded from its last term, the
    largest: x^m / m! (1 + m / x + ...).
    """
    from scipy.special import gammaincc, gammaln

    x = np.exp(log_x)
    share = gammaincc(terms + 1, x)
    with np.errstate(divide="ignore", invalid="ignore"):  # of what the other branch gives
        bound = terms * log_x - gammaln(terms + 1) - np.log1p(-terms / x)
        total: NDArray[np.float64] = np.where(share < _TINY, bound, x + np.log(share))
    return total


def surprise(n: Any, k: Any, chance: Any) -> NDArray[np.float64]:
    """Return the bits of k or more hits in n draws with this chance of a hit: at most -log2 of the binomial tail.

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
    """How often the rows of registered queries come back in other queries, learnt from these queries."""

    # (n,): How many registered queries have each row; 0 for rows that are no evidence.
    times: NDArray[np.float64]
    chance: NDArray[np.float64]  # (n,): The chance that a row of a foreign query is this one

    @classmethod
    def of(cls, rows: QueryValues, n_queries: int) -> Recurrence:
        """Learn it by Good-Turing: a row of one query weighs (rows of two queries + 2) / (rows of one)."""
        bits = np.zeros(len(rows)) if rows.bits is None else rows.bits.astype(float)
        times = np.where(
            bits > 0, np.maximum(1, np.rint((n_queries + 1) / np.exp2(np.minimum(bits, 100)))), 0
        )
        n_elsewhere = max(1e-9, (times > 0).sum() * (1 - 1 / n_queries))
        unseen = ((times == 2).sum() + 2) / max(1, (times == 1).sum())
        return cls(times, np.where(times > 0, np.maximum(times - 1, unseen) / n_elsewhere, 0))

    def bits_of_all(self, rows: QueryValues, n_queries: int) -> NDArray[np.float64]:
        """Return the bits of each query if all of its rows come back, and no others."""
        n = rows.per_query(n_queries, self.times > 0)
        return surprise(np.maximum(n, 1), n, rows.per_query(n_queries, self.chance))


def rarity(all_values: QueryValues, kept: QueryValues, n_queries: int) -> QueryValues:
    """Return kept values with their bits of evidence by how many queries have them."""
    n_with = times_among(kept.value, all_values.value)
    bits = np.log2((n_queries + 1) / n_with).astype(np.float32)
    return replace(kept, bits=np.where(n_with > SHARED_BY_FEW, np.float32(0), bits))


ENOUGH_BITS = 14.0
"""Evidence by which labels of shared queries are the registered ones: by chance once in 10,000 data sets."""

ENOUGH_IF_ALL_AGREE = 5.0
"""The same, if the documents and labels of all registered queries agree without exception."""

CHANGED = np.array([0.0, 0.02, 0.06, 0.15])
"""Shares of changed labels that H1 allows."""

_SHARES = np.array([0.2, 0.4, 0.7, 0.9, 0.99])
"""Shares of shared queries that come from the collection under H1."""

PERSISTENCE = 0.8
"""Chance that a document is clicked again, at most, if clicks are all the labels say."""

ENOUGH_POSITIVES = math.ceil(ENOUGH_BITS / -math.log2(PERSISTENCE))
"""Relevant documents that must all come back under the same ids to be evidence enough."""

SAME_GRADE = 0.5
"""Chance that a document has the same grade again, if there are three grades or more."""

_FLOOR = (0.05, 0.15)
"""Least chances, under H0, that no label or one label of a query differs."""


def bayes_factor_bits(log_ratios: NDArray[np.float64]) -> float:
    """Return log2 of the Bayes factor."""
    if not len(log_ratios):
        return 0.0
    bounded = np.minimum(log_ratios, 600.0)  # exp of more overflows
    sums = np.array([np.log1p(share * np.expm1(bounded)).sum(axis=0) for share in _SHARES])
    top = sums.max()
    return float((top + math.log(np.exp(sums - top).mean())) / math.log(2))


def paid(log_ratios: NDArray[np.float64], price: float) -> NDArray[np.float64]:
    """Return ratios, all lowered by as much as it takes for the Bayes factor to pay a price."""
    wanted = bayes_factor_bits(log_ratios) - price
    each = price * math.log(2)
    if wanted > 0:
        each /= len(log_ratios)
        while bayes_factor_bits(log_ratios - each) > wanted:
            each *= 1.3
    return log_ratios - each


def ratios_of_counts(
    ours: LabelCounts, theirs: LabelCounts, chances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return log l_i(e) of queries by their multisets of labels."""
    same_size = ours.sizes == theirs.sizes
    if len(ours.levels) and len(theirs.levels):
        common = np.minimum(ours.counts, theirs.counts_at(ours.levels)).sum(axis=1, dtype=np.int64)
        n_changed = np.where(same_size, np.minimum(ours.sizes - common, 2), 2)
    else:  # too many levels to count: all or nothing
        n_changed = np.where(same_size & (ours.hashes == theirs.hashes), 0, 2)
    from scipy.stats import binom

    n = ours.sizes[:, None]
    none, single = binom.pmf(0, n, CHANGED), binom.pmf(1, n, CHANGED)
    under_h1 = np.stack([none, single, np.maximum(1 - none - single, 0)])
    rows = np.arange(len(n_changed))
    with np.errstate(divide="ignore"):
        ratios: NDArray[np.float64] = (
            np.log(under_h1[n_changed, rows]) - np.log(chances[rows, n_changed])[:, None]
        )
    return ratios


def ratios_of_documents(
    query: NDArray[np.integer[Any]],
    ours: NDArray[np.uint8],
    theirs: NDArray[np.uint8],
    *,
    usual: int,
) -> tuple[NDArray[np.integer[Any]], NDArray[np.float64]]:
    """Return the queries that share documents, ascending, and log l_i(e) of each by the labels of these documents.

    A label may have been mapped to another one, as when grades are made binary: the most frequent
    label of the data is looked up for each registered one, and the choice of the map is paid for.
    The usual label is no evidence for.
    """
    labels, mine = np.unique(ours, return_inverse=True)
    found, other = np.unique(theirs, return_inverse=True)
    table = np.zeros(
        (len(labels), len(found) + 1)
    )  # the last column is for labels that the data lacks
    np.add.at(table, (mine, other), 1)
    is_usual = (labels == usual)[:, None]
    queries, place = np.unique(query, return_inverse=True)
    best = -math.inf
    log_best: NDArray[np.float64] = np.zeros((len(queries), len(CHANGED)))
    same = np.array(
        [np.flatnonzero(found == label)[0] if label in found else -1 for label in labels]
    )
    targets = (same, 0.0), (table.argmax(axis=1), len(labels) * math.log2(max(2, len(found))))
    rules = ((True, 0.0),) if min(len(labels), len(found)) <= 2 else ((False, 0.0), (True, 1.0))
    for (target, of_target), (are_clicks, of_rule) in product(targets, rules):
        if len(set(target.tolist())) < min(2, len(labels)):
            continue  # one label for all says nothing
        price = of_target + of_rule
        agree, differ = _factors(table, target, is_usual, are_clicks=are_clicks)
        summed = np.zeros((len(queries), len(CHANGED)))
        np.add.at(
            summed, place, np.where((target[mine] == other)[:, None], agree[mine], differ[mine])
        )
        bits = bayes_factor_bits(summed) - price
        if bits > best:
            best, log_best = bits, paid(summed, price)
    return queries, log_best


def ratios_of_positives(
    query: NDArray[np.integer[Any]],
    is_there: NDArray[np.bool_],
    popularity: NDArray[np.float64],
    persistence: float,
) -> tuple[NDArray[np.integer[Any]], NDArray[np.float64]]:
    """Return the queries that have relevant documents, ascending, and log l_i(e) of each by these documents.

    A relevant document that comes back is one that was clicked again: its chance under H0 is at
    most its persistence, or its popularity, if most queries have it.
    """
    chance = np.maximum(persistence, popularity)[:, None]
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # of shares of 0, and of documents that all queries have
        agree = np.log1p(-CHANGED) - np.log(chance)
        differ = np.where(CHANGED == 0, -np.inf, np.minimum(np.log(CHANGED) - np.log1p(-chance), 0))
    queries, place = np.unique(query, return_inverse=True)
    summed = np.zeros((len(queries), len(CHANGED)))
    np.add.at(summed, place, np.where(is_there[:, None], agree, differ))
    return queries, summed


def _factors(
    table: NDArray[np.float64],
    target: NDArray[np.intp],
    is_usual: NDArray[np.bool_],
    *,
    are_clicks: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of what a document of each label adds to l_i(e), if it agrees and if it differs."""
    met = (table[np.arange(len(table)), target] / table.sum(axis=1))[:, None]
    share = (table[:, target].sum(axis=0) / table.sum())[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # of labels that never agree, or always
        if are_clicks:
            chance = np.where(is_usual, met, np.maximum(PERSISTENCE, share))
            agree = np.where(is_usual, 0, np.log1p(-CHANGED) - np.log(chance))
            differ = np.log(np.where(is_usual, CHANGED[-1], CHANGED)) - np.log1p(-chance)
        else:
            agree = np.log1p(-CHANGED) - np.log(
                np.where(is_usual, 1, np.maximum(SAME_GRADE, share))
            )
            differ = np.broadcast_to(np.log(CHANGED), agree.shape)
    return agree, np.where(CHANGED == 0, -np.inf, np.minimum(differ, 0))


def chances_of_labels(
    labels: LabelCounts, *, alike: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return bounds on the chances, under H0, that the labels of registered queries are met again."""
    n_queries = len(labels.sizes)
    if not len(labels.levels):
        return np.tile([*_FLOOR, 1.0], (n_queries, 1))
    counts, n = labels.counts.astype(np.int64), np.maximum(labels.sizes, 1)
    own = np.exp2(
        labels.entropy + (counts * np.log2(np.maximum(counts, 1) / n[:, None])).sum(axis=1)
    )
    # P(c + 1 of a, - 1 of b) = P(c) c_a / (c_a + 1); and a bit more, since c / n need not be the
    # probabilities.
    n_levels = (counts > 0).sum(axis=1)
    neighbours = 1.3 * own * (counts / (counts + 1)).sum(axis=1) * np.maximum(n_levels - 1, 1)
    again = _again(labels)
    alike = labels.alike(but=labels.most_frequent) if alike is None else alike
    none = np.maximum(np.maximum(own, again), np.maximum(alike, _FLOOR[0]))
    single = np.clip(neighbours, np.maximum(_FLOOR[1], np.minimum(again, 0.5)), 1)
    return np.column_stack([np.minimum(none, 1), single, np.ones(n_queries)])


def _again(labels: LabelCounts) -> NDArray[np.float64]:
    """Return the chance of as many clicks again if they persist by document; 0 where there are grades."""
    if len(labels.levels) > 2:
        return np.zeros(len(labels.sizes))
    from scipy.stats import binom

    rare = labels.sizes - labels.counts[:, labels.most_frequent].astype(np.int64)
    rest = labels.sizes - rare
    gained = np.minimum(rare * (1 - PERSISTENCE) / np.maximum(rest, 1), 1)
    most = int(min(rare.max(initial=0), 30))
    total = np.zeros(len(rare))
    for lost in range(most + 1):  # as many are lost as are gained
        total += binom.pmf(lost, rare, 1 - PERSISTENCE) * binom.pmf(lost, rest, gained)
    return total
