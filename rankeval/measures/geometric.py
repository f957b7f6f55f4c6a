"""Logarithms of AP and bpref: measures whose mean over queries is a geometric mean, or a mean of log odds.

R times AP (or bpref) is a sum with one term for each relevant row. A `HitSum` describes this sum if rows are tied:

    ranks            1   2   3-5 tied: 2 relevant, 1 not   6                R * AP
    relevant         x   .   (x x .)                       x
    HitSum.fixed     1/1                                 + 4/6              terms that are the same in every order
    HitSum.groups            hits 2, misses 1, hits_above 1, misses_above 1
    HitSum.adds              hit number j of the group at place t adds (hits_above + j) / (above + t)

`expected_logs.mean_log` then gives the mean of the logarithm over orders.

The trap is the bound: the measure is log(max(value, 0.00001)), and a mean of logarithms cannot see the max. So queries
with an order of a value between 0 and the bound are left to drawn orders; orders of value 0 are counted apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints
from rankeval.join.judged import Judged
from rankeval.measures.expected_logs import HitSum, mean_log, too_large
from rankeval.measures.family import family
from rankeval.measures.incomplete import EPSILON, bpref, judged_rows, number_before
from rankeval.measures.lattice import Mixed, as_listed, mixed_groups, outside, relevant_or_not, worst_ranks
from rankeval.measures.ranked import LEAST_AP, average_precision
from rankeval.measures.tie_enumeration import write_over_orders

_LARGE = "2,000 tied rows, and more where few of them are relevant"
_EXACT_TO = f"{_LARGE}, and R = {{}} (beyond, some order may have a value between 0 and 0.00001)"


def _bounded_log(judged: Judged, sums: HitSum, rel: float, least: float, value: Floats) -> NDArray[np.bool_]:
    """Write the mean of log(max(sum / R, least)) into ``value``; return a mask of the queries left to drawn orders.

    These are the queries that are too large, and those in which some order has a value between 0 and ``least``.
    """
    n_relevant = judged.n_relevant(rel)
    query = np.unique(sums.groups.query[n_relevant[sums.groups.query] > 0])
    bounded = too_large(sums.groups, judged.n_queries)
    bounded[query] |= sums.least[query] < least * n_relevant[query]
    query = query[~bounded[query]]
    total, none = mean_log(sums, query)
    value[query] = total - (1 - none) * np.log(n_relevant[query]) + none * np.log(least)
    return bounded


def _precisions(judged: Judged, rel: float, rank: Ints, cutoff: int | None = None) -> Floats:
    """Return the precision at each relevant row, given the ranks of these rows; 0 beyond the cut-off."""
    precision: Floats = judged.relevant(rel).hits / rank
    return precision if cutoff is None else np.where(rank <= cutoff, precision, 0.0)


def _expected_gm_ap(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Return the mean of gm_AP over the orders of tied rows."""
    parameters = {"rel": rel, "cutoff": cutoff}
    value = gm_average_precision(as_listed(judged), **parameters)
    sums = _sum_of_precisions(judged, rel, cutoff)
    bounded = _bounded_log(judged, sums, rel, LEAST_AP, value)
    return write_over_orders(value, bounded, gm_average_precision, judged, parameters, rel=rel)


def _sum_of_precisions(judged: Judged, rel: float, cutoff: int | None = None) -> HitSum:
    """Return R times AP as a sum over hits."""
    found = judged.relevant(rel)
    groups, alone = relevant_or_not(judged, rel)
    fixed = np.where(alone, _precisions(judged, rel, found.rank, cutoff), 0.0)
    worst = judged.sums(found.query, _precisions(judged, rel, worst_ranks(judged, rel, groups, alone), cutoff))

    def adds(groups: Mixed, place: int, hits: Ints) -> Floats:
        rank = groups.above + place
        precision: Floats = (groups.hits_above + hits) / rank
        return precision if cutoff is None else precision * (rank <= cutoff)

    seen = groups if cutoff is None else groups.of(groups.above < cutoff)
    least = np.where(worst > 0, worst, 1 / (cutoff or 1))
    return HitSum(judged.sums(found.query, fixed), seen, adds, least)


@family(
    "gm_AP",
    title="average precision, for the geometric mean",
    formula="log(max(AP, 0.00001)); the aggregate is exp of the mean",
    source="Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(float(np.log(LEAST_AP)), 0.0),
    aggregate="gmean",
    expected=_expected_gm_ap,
    exact_to=_EXACT_TO.format("100,000 / deepest rank"),
    monotone="order",
    spellings={"trec_eval": ("gm_map", "gm_ap"), "ir_measures": ("GMAP",)},
)
def gm_average_precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Logarithm of AP, bounded below: its mean over queries is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return np.log(np.maximum(np.nan_to_num(average_precision(judged, rel=rel, cutoff=cutoff)), LEAST_AP))


def _expected_yaap(judged: Judged, *, rel: float = 1) -> Floats:
    """Return the mean of YAAP over the orders of tied rows: the difference of the means of two logarithms."""
    value = yet_another_average_precision(as_listed(judged), rel=rel)
    sums, n_relevant = _sum_of_precisions(judged, rel), judged.n_relevant(rel).astype(np.float64)
    in_groups = np.bincount(sums.groups.query, sums.groups.hits, judged.n_queries)

    def lacks(groups: Mixed, place: int, hits: Ints) -> Floats:
        return 1 - sums.adds(groups, place, hits)

    found = HitSum(1 + sums.fixed, sums.groups, sums.adds, np.ones(judged.n_queries))
    rest = 1 + n_relevant - in_groups - sums.fixed
    lacking = HitSum(rest, sums.groups, lacks, np.maximum(rest, 1.0))
    tied = np.bincount(sums.groups.query, minlength=judged.n_queries) > 0
    # At rel=0 unjudged rows count as found, so more rows may be found than are judged relevant, and the rest negative.
    handed_over = tied & ((rest <= 0) | too_large(sums.groups, judged.n_queries))
    query = np.flatnonzero(tied & ~handed_over)
    value[query] = mean_log(found, query)[0] - mean_log(lacking, query)[0]
    return write_over_orders(value, handed_over, yet_another_average_precision, judged, {"rel": rel}, rel=rel)


@family(
    "YAAP",
    title="yet another average precision",
    formula="log((1 + R * AP) / (1 + R - R * AP))",
    source="Robertson 2012",
    doi="10.1007/978-3-642-28997-2_14",
    bounds=(-np.inf, np.inf),
    expected=_expected_yaap,
    exact_to=_LARGE,
    spellings={"trec_eval": ("yaap",)},
)
def yet_another_average_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Log odds of AP, smoothed by the number of relevant documents: values on a scale made for means over queries.

    Higher is better; 0 without relevant documents.
    """
    # Added one after the other, as trec_eval does.
    total = judged.sums(judged.relevant(rel).query, _precisions(judged, rel, judged.relevant(rel).rank))
    return np.log((1 + total) / (1 + judged.n_relevant(rel) - total))


def _expected_gm_bpref(judged: Judged, *, rel: float = 1) -> Floats:
    """Return the mean of gm_Bpref over the orders of tied rows."""
    value = gm_bpref(as_listed(judged), rel=rel)
    bounded = _bounded_log(judged, _sum_of_bpref(judged, rel), rel, EPSILON, value)
    return write_over_orders(value, bounded, gm_bpref, judged, {"rel": rel})


def _sum_of_bpref(judged: Judged, rel: float) -> HitSum:
    """Return R times bpref as a sum over hits: rows above that are judged not relevant reduce a relevant row's term."""
    first, n_relevant, found = judged.threshold(rel), judged.n_relevant(rel), judged.relevant(rel)
    miss = number_before(judged_rows(judged) & (judged.code < first))
    groups = mixed_groups(judged.ties, judged.offsets, judged.prefix(rel).astype(np.int64), miss)
    most = np.maximum(np.minimum(judged.counts[:, :first].sum(axis=1), n_relevant), 1)

    def left(above: Ints, query: Ints) -> Floats:
        share: Floats = 1 - np.minimum(above, n_relevant[query]) / most[query]
        return share

    def adds(groups: Mixed, place: int, hits: Ints) -> Floats:
        return left(groups.misses_above + place - hits, groups.query)

    alone = outside(groups, judged.offsets, judged.prefix(rel).astype(np.int64))
    above = miss[found.row] - miss[judged.offsets[found.query]]
    fixed = np.where(alone, left(above, found.query), 0.0)
    above[~alone] = np.repeat(groups.misses_above + groups.misses, groups.hits)
    worst = judged.sums(found.query, left(above, found.query))
    return HitSum(judged.sums(found.query, fixed), groups, adds, np.where(worst > 0, worst, 1 / most))


@family(
    "gm_Bpref",
    title="binary preference, for the geometric mean",
    formula="log(max(Bpref, 0.00001)); the aggregate is exp of the mean",
    source="Buckley & Voorhees, trec_eval; Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(float(np.log(EPSILON)), 0.0),
    aggregate="gmean",
    expected=_expected_gm_bpref,
    exact_to=_EXACT_TO.format("316"),
    spellings={"trec_eval": ("gm_bpref",)},
)
def gm_bpref(judged: Judged, *, rel: float = 1) -> Floats:
    """Logarithm of Bpref, bounded below: its mean over queries is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return np.log(np.maximum(np.nan_to_num(bpref(judged, rel=rel)), EPSILON))
