"""Measures of a ranking, relevant or not: average precision, R-precision, reciprocal rank.

A tied row has no single rank. Each kernel here excludes the rows of open groups, or takes their
mean over orders from a formula of its own (McSherry & Najork 2008). If the cut-off divides a group,
the number of relevant rows above the cut-off is random too, and hypergeometric.

The logarithms of AP and bpref (geometric means, log odds) have no simple mean over the orders of
tied rows, so their orders are scored (`tie_enumeration`).
"""

from __future__ import annotations

import numpy as np

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.join.by_rank import before_first_hit, sum_of_precisions
from rankeval.join.flat import Floats, Ints, ratio, rows_of
from rankeval.join.judged import Judged, TiedGroups
from rankeval.measures.chances import hypergeometric
from rankeval.measures.family import family
from rankeval.measures.grammar import fixing
from rankeval.measures.incomplete import EPSILON, bpref

_LONG = 1024
"""Rows in a list for which a call or two of their own are no cost."""


def _sum_of_precisions(judged: Judged, rel: float, cutoff: int | None) -> Floats:
    """Return the sum of the precisions at the relevant rows outside of groups of tied rows."""
    hits = judged.hits_by_rank(rel)
    if hits is not None and judged.by_rank is not None:
        counting = judged.by_rank.at_least(judged.threshold(rel))[:cutoff]
        if len(judged.groups.start):
            tied, group = judged.tied_rows()
            query = judged.groups.query[group]
            rank = tied - judged.offsets[query]
            within = rank < len(counting)
            counting[rank[within], query[within]] = 0
        return sum_of_precisions(hits, counting)
    if judged.n_queries * _LONG <= len(judged.code):
        return _sums_list_by_list(judged, rel, cutoff)
    relevant = judged.relevant(rel)
    precision = relevant.hits / relevant.rank
    if cutoff is not None:
        precision[relevant.rank > cutoff] = 0
    if len(judged.groups.start):
        tied, _ = judged.tied_rows()
        tied = tied[judged.code[tied] >= judged.threshold(rel)]
        precision[judged.n_hits_before(rel, tied)] = 0
    # Add one after the other, as trec_eval does: added by pairs, a value of 0.50625 may print
    # another fourth digit.
    return judged.sums(relevant.query, precision)


def _sums_list_by_list(judged: Judged, rel: float, cutoff: int | None) -> Floats:
    # Slices of long lists take less time than arrays that say whose each row is (bench_arrays C).
    rows, first = judged.relevant_rows(rel), judged.first_hits(rel)
    total = np.zeros(judged.n_queries)
    among = _relevant_in_groups(judged, rel)
    parts = np.searchsorted(among, first)
    n_hits = np.arange(1, int(np.diff(first).max(initial=0)) + 1, dtype=np.float64)
    for query, begin in enumerate(judged.offsets[:-1].tolist()):
        precision = rows[first[query] : first[query + 1]].astype(np.float64)
        precision -= begin - 1  # the rank
        if cutoff is not None:
            precision = precision[: np.searchsorted(precision, cutoff, side="right")]
        np.divide(n_hits[: len(precision)], precision, out=precision)
        out = among[parts[query] : parts[query + 1]] - first[query]
        precision[out[out < len(precision)]] = 0
        # One after the other, as `Judged.sums` adds. NumPy's sum adds by pairs, its difference does
        # not, and is four times as fast as the running sum (bench_arrays C).
        total[query] = 0.0 - np.subtract.reduce(precision, initial=0.0)
    return total


def _relevant_in_groups(judged: Judged, rel: float) -> Ints:
    """Return which relevant rows are in groups of tied rows, as places in `relevant_rows`."""
    if not len(judged.groups.start):
        return np.empty(0, dtype=np.int64)
    above, within = judged.hits_of_groups(rel)
    return rows_of(judged.first_hits(rel)[judged.groups.query] + above, within)


NORMALIZERS = ("R", "min", "k", "hits")
"""Divisors of the sum of precisions: R, min(R, k), k, or the relevant rows within the cut-off."""


def _normalized(
    total: Floats, judged: Judged, rel: float, cutoff: int | None, normalizer: str
) -> Floats:
    chosen("normalizer of AP", normalizer, NORMALIZERS)
    n_relevant = judged.n_relevant(rel)
    if normalizer == "R":
        whole = n_relevant
    elif normalizer == "min":
        whole = n_relevant if cutoff is None else np.minimum(n_relevant, cutoff)
    elif normalizer == "k":
        if cutoff is None:
            raise InvalidInput(
                "AP(normalizer='k') divides by the cut-off: give one, write AP(normalizer='k')@10"
            )
        whole = np.where(n_relevant > 0, cutoff, 0)
    else:
        whole = np.where(n_relevant > 0, np.maximum(judged.hits(rel, cutoff), 1), 0)
    return ratio(total, whole)


def _expected_normalized_ap(
    judged: Judged, *, rel: float = 1, normalizer: str = "R", cutoff: int | None = None
) -> Floats:
    within = _precisions_within_groups(judged, rel, cutoff)
    total = _sum_of_precisions(judged, rel, cutoff)
    total += judged.sums(judged.groups.query, within)
    value = _normalized(total, judged, rel, cutoff, normalizer)
    if normalizer == "hits" and cutoff is not None:
        # The divisor depends on the order, too, if the cut-off divides a group.
        divided = judged.groups.divided(judged.offsets[:-1] + cutoff)
        groups = judged.groups.of(divided)
        above = total[groups.query] - within[divided]
        value[groups.query] = _ap_by_hits_seen(judged, rel, cutoff, groups, above)
    return value


def _precisions_within_groups(judged: Judged, rel: float, cutoff: int | None) -> Floats:
    """Return the mean, over orders, of each tied group's part of the sum of precisions.

    Take a group of m rows, r of them relevant, below n rows with h hits. Its j-th row is relevant
    with chance r/m. If so, the mean number of hits down to it is h + 1 + (j - 1)(r - 1)/(m - 1)
    (McSherry & Najork 2008).
    """
    row, group = judged.tied_rows()
    start, end, query = judged.groups
    begin, size = judged.offsets[:-1], (end - start).astype(np.float64)
    before, relevant = (number.astype(np.float64) for number in judged.hits_of_groups(rel))
    place = row - start[group]
    rank = row - begin[query[group]] + 1
    hits = before[group] + 1 + place * ((relevant - 1) / (size - 1))[group]
    part = (relevant / size)[group] * hits / rank
    if cutoff is not None:
        part[rank > cutoff] = 0
    return np.bincount(group, weights=part, minlength=len(start)).astype(np.float64, copy=False)


def _ap_by_hits_seen(
    judged: Judged, rel: float, cutoff: int, groups: TiedGroups, above: Floats
) -> Floats:
    """Return the mean of AP by the hits within the cut-off, for groups that the cut-off divides.

    The mean is over the number x of the group's relevant rows within the cut-off. Given x, the
    places above the cut-off form a group of their own with x relevant rows.
    """
    start, end, query = groups
    prefix, begin = judged.prefix(rel).astype(np.int64), judged.offsets[query]
    ahead, seen, size = start - begin, cutoff - (start - begin), end - start
    before, relevant = prefix[start] - prefix[begin], prefix[end] - prefix[start]
    inverse = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, cutoff + 1))))
    # Sums of 1 / rank over the places seen, and of (j - 1) / rank.
    first = inverse[cutoff] - inverse[ahead]
    later = seen - (ahead + 1) * first
    value = np.zeros(len(query))
    for hits in range(int(np.minimum(seen, relevant).max(initial=-1)) + 1):
        mean = (before + 1) * first + (hits - 1) / np.maximum(seen - 1, 1) * later
        chance = hypergeometric(size, relevant, seen, hits)
        value += chance * (above + hits / seen * mean) / np.maximum(before + hits, 1)
    value[judged.n_relevant(rel)[query] == 0] = np.nan
    return value


_AP_SPELLINGS = {
    "trec_eval": ("map", "map_cut_{cutoff}"),
    "ir_measures": ("AP", "AP@{cutoff}", "MAP", "MAP@{cutoff}"),
    "ranx": ("map@{cutoff}", "map"),
}
_AP_ELSEWHERE = {
    "average precision": ("average_precision", "MeanAveragePrecisionMetric"),
    "divided by min(R, k)": fixing(
        {"normalizer": "min"}, "mapk", "apk", "mean_average_precision", "MAP:top"
    ),
    "divided by the hits to k": fixing(
        {"normalizer": "hits"}, "RetrievalMAP", "retrieval_average_precision"
    ),
}


@family(
    "AP",
    title="average precision",
    formula="(1/R) sum over relevant rows of hits(rank)/rank; a cut-off ends the sum and leaves R; "
    "normalizer replaces R by min(R, k), k or hits(k)",
    source="Harman 1992; Buckley & Voorhees 2000",
    doi="10.1145/345508.345543",
    expected=_expected_normalized_ap,
    monotone="order",
    spellings=_AP_SPELLINGS,
    known_as=_AP_ELSEWHERE,
)
def average_precision(
    judged: Judged, *, rel: float = 1, normalizer: str = "R", cutoff: int | None = None
) -> Floats:
    """Mean of the precisions at the relevant documents; one that is not retrieved counts 0.

    In [0, 1], higher is better; 0/0 without relevant documents. ``normalizer`` is "R" (trec_eval,
    ir_measures, ranx), "min" for min(R, k) (Kaggle, LightGBM, XGBoost), "k", or "hits" for the
    relevant rows within the cut-off.
    """
    return _normalized(_sum_of_precisions(judged, rel, cutoff), judged, rel, cutoff, normalizer)


@family(
    "Rprec",
    title="R-precision",
    formula="hits(R) / R",
    source="Buckley & Voorhees 2000",
    doi="10.1145/345508.345543",
    linear=True,
    monotone="order",
    spellings={
        "trec_eval": ("Rprec", "R-prec", "R_prec"),
        "ir_measures": ("Rprec", "RPrec"),
        "ranx": ("r_precision", "r-precision"),
    },
    known_as={"R-precision": ("RetrievalRPrecision",)},
)
def r_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Precision at rank R, the number of relevant documents.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    n_relevant = judged.n_relevant(rel)
    return ratio(judged.hits(rel, n_relevant), n_relevant)


def _expected_rr(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Return the mean of RR over orders of tied rows: a sum over the places of the first hit."""
    value = reciprocal_rank(judged, rel=rel, cutoff=cutoff)
    start, end, query = judged.groups
    # The group with the first hit of its query: no hit above it, and one in it.
    above, relevant = judged.hits_of_groups(rel)
    first = (above == 0) & (relevant > 0)
    start, end, query, relevant = start[first], end[first], query[first], relevant[first]
    size, ahead = end - start, start - judged.offsets[query]
    total, none_yet = np.zeros(len(size)), np.ones(len(size))
    for place in range(int((size - relevant).max(initial=-1)) + 1):
        chance = none_yet * ratio(relevant, size - place, otherwise=0.0)
        if cutoff is not None:
            chance[ahead + place >= cutoff] = 0
        total += chance / (ahead + place + 1)
        left = np.maximum(size - relevant - place, 0)
        none_yet *= ratio(left, size - place, otherwise=0.0)
    value[query] = total
    return value


_RR_SPELLINGS = {
    "trec_eval": ("recip_rank",),
    "ir_measures": ("RR", "RR@{cutoff}", "MRR", "MRR@{cutoff}"),
    "ranx": ("mrr@{cutoff}", "mrr"),
}
_RR_ELSEWHERE = (
    "mean_reciprocal_rank", "reciprocal_rank", "RetrievalMRR", "MRRMetric", "MRR:top",
)  # fmt: skip


@family(
    "RR",
    title="reciprocal rank",
    formula="1 / rank of the first relevant row, 0 beyond the cut-off",
    source="Kantor & Voorhees 2000",
    doi="10.1023/A:1009902609570",
    expected=_expected_rr,
    monotone="grade",
    spellings=_RR_SPELLINGS,
    known_as={"reciprocal rank": _RR_ELSEWHERE},
)
def reciprocal_rank(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """One over the rank of the first relevant document.

    In [0, 1], higher is better; 0 without relevant documents. It is disputed whether its values may
    be averaged, since equal steps of the value are not equal steps of the rank (Fuhr 2017; Sakai
    2020).
    """
    value = np.zeros(judged.n_queries)
    hits = judged.hits_by_rank(rel)
    if hits is not None:
        above = before_first_hit(hits).astype(np.float64)
        within = above < min(len(hits) - 1, cutoff or len(hits))
        np.divide(1, above + 1, out=value, where=within)
        return value
    before = judged.first_hits(rel)
    query = np.flatnonzero(before[1:] > before[:-1])
    first = judged.relevant_rows(rel)[before[query]]
    rank = first - judged.offsets[query] + 1
    value[query] = 1 / rank
    if cutoff is not None:
        value[query[rank > cutoff]] = 0
    return value


_LEAST_LOG = float(np.log(EPSILON))


def _log_at_least(value: Floats) -> Floats:
    """Return the logarithm of values; that of `EPSILON` for lower ones and for 0/0."""
    return np.log(np.maximum(np.nan_to_num(value), EPSILON))


@family(
    "gm_AP",
    title="average precision, for the geometric mean",
    formula="log(max(AP, 0.00001)); the aggregate is exp of the mean",
    source="Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(_LEAST_LOG, 0.0),
    aggregate="gmean",
    expected="orders of hits",
    monotone="order",
    spellings={"trec_eval": ("gm_map", "gm_ap"), "ir_measures": ("GMAP",)},
)
def gm_average_precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Logarithm of AP, bounded below: its mean over queries is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return _log_at_least(average_precision(judged, rel=rel, cutoff=cutoff))


@family(
    "YAAP",
    title="yet another average precision",
    formula="log((1 + R * AP) / (1 + R - R * AP))",
    source="Robertson 2012",
    doi="10.1007/978-3-642-28997-2_14",
    bounds=(-np.inf, np.inf),
    expected="orders of hits",
    spellings={"trec_eval": ("yaap",)},
)
def yet_another_average_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Log odds of AP, smoothed by the number of relevant documents: a scale made for means.

    Higher is better; 0 without relevant documents.
    """
    # Added one after the other, as trec_eval does.
    relevant = judged.relevant(rel)
    total = judged.sums(relevant.query, relevant.hits / relevant.rank)
    return np.log((1 + total) / (1 + judged.n_relevant(rel) - total))


@family(
    "gm_Bpref",
    title="binary preference, for the geometric mean",
    formula="log(max(Bpref, 0.00001)); the aggregate is exp of the mean",
    source="Buckley & Voorhees, trec_eval; Robertson 2006",
    doi="10.1145/1183614.1183630",
    bounds=(_LEAST_LOG, 0.0),
    aggregate="gmean",
    expected="orders",
    spellings={"trec_eval": ("gm_bpref",)},
)
def gm_bpref(judged: Judged, *, rel: float = 1) -> Floats:
    """Logarithm of Bpref, bounded below: its mean is the logarithm of a geometric mean.

    In [log 0.00001, 0], higher is better; the least value without relevant documents.
    """
    return _log_at_least(bpref(judged, rel=rel))
