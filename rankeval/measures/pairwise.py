"""Measures of pairs of rows in the right order, and of the mean rank of relevant rows."""

from __future__ import annotations

import numpy as np

from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.cascade import ranks
from rankeval.measures.chances import hypergeometric
from rankeval.measures.family import family


@family(
    "PairAccuracy",
    title="pairwise accuracy",
    formula="pairs (relevant, not relevant) of rows to k with the relevant one above / all such pairs",
    source="MacAvaney, Macdonald & Ounis 2022, ir_measures, which calls it Accuracy",
    doi="10.1007/978-3-030-99739-7_38",
    expected="kernel",
    monotone="",
    spellings={"ir_measures": ("Accuracy", "Accuracy@{cutoff}")},
)
def pair_accuracy(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Chance that a retrieved relevant row is above one that is not relevant: the area under the ROC curve.

    In [0, 1], higher is better, 1/2 for a random order; 0/0 without a pair. Unjudged rows count as not relevant.
    Accuracy is another measure: the share of a collection's documents that are classified rightly.
    """
    # A tied pair is half in order. If the cut-off divides a group of tied rows, the number of the group's relevant rows
    # within it is random, and the mean is over that number.
    begin, prefix = judged.offsets[:-1], judged.prefix(rel)
    stop = begin + judged.depth(cutoff)
    divided = judged.groups.of(judged.groups.divided(stop))
    settled = stop.copy()
    settled[divided.query] = divided.start
    hits = (prefix[settled] - prefix[begin]).astype(np.float64)
    misses = settled - begin - hits

    found = judged.relevant(rel)
    above = (found.rank - found.hits).astype(np.float64)
    if len(judged.groups.start):
        start, end, query = judged.groups
        row, group = judged.tied_rows()
        before = start - begin[query] - (prefix[start] - prefix[begin[query]])
        inside = end - start - (prefix[end] - prefix[start])
        tied = judged.code[row] >= judged.threshold(rel)
        above[prefix[row[tied]]] = (before + inside / 2)[group[tied]]
    # Pairs of rows that are within the cut-off in every order; those of a divided group follow below.
    counts = found.row < settled[found.query]
    of_query = found.query[counts]
    in_order = judged.sums(of_query, misses[of_query] - above[counts])
    value = ratio(in_order, hits * misses)
    # From here on: the mean over the number of relevant rows that a divided group has within the cut-off.
    start, end, query = divided
    size, drawn = end - start, stop[query] - start
    relevant = prefix[end].astype(np.int64) - prefix[start]
    total, defined = np.zeros(len(size)), np.zeros(len(size), dtype=bool)
    for number in range(int(min(drawn.max(initial=0), relevant.max(initial=0))) + 1):
        can = (number <= np.minimum(drawn, relevant)) & (drawn - number <= size - relevant)
        of, wrong = query[can], (drawn - number)[can]
        chance = hypergeometric(size[can], relevant[can], drawn[can], number)
        pairs = (hits[of] + number) * (misses[of] + wrong)
        good = in_order[of] + hits[of] * wrong + number * wrong / 2
        total[can] += chance * ratio(good, pairs, otherwise=0.0)
        defined[can] |= pairs > 0
    value[query] = np.where(defined, total, np.nan)
    return value


@family(
    "OPA",
    title="ordered pair accuracy",
    formula="pairs of rows of unlike grades with the better one above / all such pairs",
    source="Pasumarthi et al. 2019, TensorFlow Ranking",
    doi="10.1145/3292500.3330677",
    expected="kernel",
    monotone="order",
)
def ordered_pair_accuracy(judged: Judged) -> Floats:
    """Share of the retrieved pairs of unlike grades that are in order.

    In [0, 1], higher is better; 0/0 without such a pair.
    """
    # A tied pair is half in order.
    begin = judged.offsets[:-1]
    query = np.repeat(np.arange(judged.n_queries), judged.n_retrieved)
    zero = judged.threshold(0)
    in_order, pairs = np.zeros(judged.n_queries), np.zeros(judged.n_queries)
    row, group = judged.tied_rows()
    for code in range(zero, len(judged.levels) - 1):
        prefix = judged.prefix(judged.levels[code + 1])
        lower = judged.code <= code if code == zero else judged.code == code
        above = (prefix[:-1] - prefix[begin[query]]).astype(np.float64)
        if len(row):
            start, end, of_query = judged.groups
            mean = prefix[start] - prefix[begin[of_query]] + (prefix[end] - prefix[start]) / 2
            above[row] = mean[group]
        in_order += judged.sums(query[lower], above[lower])
        pairs += np.bincount(query[lower], minlength=judged.n_queries) * (
            prefix[judged.offsets[1:]] - prefix[begin]
        ).astype(np.float64)
    return ratio(in_order, pairs)


@family(
    "ARP",
    title="average relevance position",
    formula="sum of rank * rel / sum of rel, over the retrieved",
    source="Zhu 2004; Pasumarthi et al. 2019, TensorFlow Ranking",
    doi="10.1145/3292500.3330677",
    bounds=(0.0, np.inf),
    linear=True,
    monotone="order",
    greater_is_better=False,
)
def average_relevance_position(judged: Judged) -> Floats:
    """Mean rank of the relevant rows, weighted by grade.

    1 or greater, lower is better; 0/0 if nothing relevant was retrieved. Beware: counted as 0, that is the best value.
    """
    gain = np.maximum(np.asarray(judged.levels, dtype=np.float64), 0)
    rank = ranks(judged, None)
    weight = judged.discounted(gain, np.ones_like(rank))
    return ratio(judged.discounted(gain, rank), weight)
