"""Measures of a ranking with documents that are relevant or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.chances import hypergeometric
from rankeval.measures.family import family

LEAST_AP = 1e-5
"""What an AP of 0 counts as in the geometric mean (trec_eval's value)."""


def _sum_of_precisions(judged: Judged, rel: float, cutoff: int | None) -> Floats:
    """Add up the precision at each relevant row, of rows outside of groups of tied rows."""
    relevant = judged.relevant(rel)
    precision = relevant.hits / relevant.rank
    if cutoff is not None:
        precision[relevant.rank > cutoff] = 0
    if len(judged.groups.start):
        tied, _ = judged.tied_rows()
        tied = tied[judged.code[tied] >= judged.threshold(rel)]
        precision[judged.prefix(rel)[tied]] = 0
    # One after the other, as trec_eval does: by pairs, a value of 0.50625 may print another fourth digit.
    return judged.sums(relevant.query, precision)


def _per_relevant(total: Floats, judged: Judged, rel: float) -> Floats:
    return ratio(total, judged.n_relevant(rel))


NORMALIZERS = ("R", "min", "k", "hits")
"""What the sum of precisions is divided by: R, min(R, k), k, or the relevant rows seen."""


def _normalized(total: Floats, judged: Judged, rel: float, cutoff: int | None, normalizer: str) -> Floats:
    """Divide the sums of precisions; nan without relevant documents, 0 when none was seen."""
    found = judged.n_relevant(rel)
    if normalizer == "R":
        return _per_relevant(total, judged, rel)
    if normalizer == "min":
        whole = found if cutoff is None else np.minimum(found, cutoff)
    elif normalizer == "k":
        if cutoff is None:
            raise InvalidInput("AP(normalizer='k') divides by the cut-off: write AP(normalizer='k')@10, say")
        whole = np.where(found > 0, cutoff, 0)
    elif normalizer == "hits":
        whole = np.where(found > 0, np.maximum(judged.hits(rel, cutoff), 1), 0)
    else:
        raise unknown("normalizer of AP", str(normalizer), NORMALIZERS)
    return ratio(total, whole)


def _expected_normalized_ap(
    judged: Judged, *, rel: float = 1, normalizer: str = "R", cutoff: int | None = None
) -> Floats:
    """Return the mean of AP over the orders of tied rows; how many hits are seen may depend on the order too."""
    within = _precisions_within_groups(judged, rel, cutoff)
    total = _sum_of_precisions(judged, rel, cutoff)
    total += judged.sums(judged.groups.query, within)
    value = _normalized(total, judged, rel, cutoff, normalizer)
    if normalizer == "hits" and cutoff is not None:
        start, end, query = judged.groups
        crossed = np.flatnonzero((start - judged.offsets[query] < cutoff) & (cutoff < end - judged.offsets[query]))
        if len(crossed):
            above = total[query[crossed]] - within[crossed]
            value[query[crossed]] = _ap_by_hits_seen(judged, rel, cutoff, crossed, above)
    return value


def _precisions_within_groups(judged: Judged, rel: float, cutoff: int | None) -> Floats:
    """Return what each group of tied rows adds to the sum of precisions, on average over its orders.

    A group of m rows, r of them relevant, behind n rows with h hits: its j-th row is relevant with chance r/m, and
    then has h + 1 + (j - 1)(r - 1)/(m - 1) hits up to and with it on average (McSherry & Najork 2008).
    """
    row, group = judged.tied_rows()
    start, end, query = judged.groups
    prefix, begin = judged.prefix(rel), judged.offsets[:-1]
    size = (end - start).astype(np.float64)
    relevant = (prefix[end] - prefix[start]).astype(np.float64)
    before = (prefix[start] - prefix[begin[query]]).astype(np.float64)
    place = row - start[group]
    rank = row - begin[query[group]] + 1
    hits = before[group] + 1 + place * ((relevant - 1) / (size - 1))[group]
    part = (relevant / size)[group] * hits / rank
    if cutoff is not None:
        part[rank > cutoff] = 0
    return np.bincount(group, weights=part, minlength=len(start)).astype(np.float64, copy=False)


def _ap_by_hits_seen(judged: Judged, rel: float, cutoff: int, crossed: NDArray[np.int64], above: Floats) -> Floats:
    """Return the mean of AP by the hits seen, where the cut-off falls into a group of tied rows.

    Given that x relevant rows stand within the cut-off, their places there are random: the mean is that over a group
    of these rows alone, over the hits seen.
    """
    start, end, query = (part[crossed] for part in judged.groups)
    prefix, begin = judged.prefix(rel).astype(np.int64), judged.offsets[query]
    ahead, seen, size = start - begin, cutoff - (start - begin), end - start
    before, relevant = prefix[start] - prefix[begin], prefix[end] - prefix[start]
    inverse = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, cutoff + 1))))
    first = inverse[cutoff] - inverse[ahead]  # of 1 / rank over the places seen, and of (j - 1) / rank
    later = seen - (ahead + 1) * first
    value = np.zeros(len(crossed))
    for hits in range(int(np.minimum(seen, relevant).max(initial=-1)) + 1):
        each = (before + 1) * first + (hits - 1) / np.maximum(seen - 1, 1) * later
        chance = hypergeometric(size, relevant, seen, hits)
        value += chance * (above + hits / seen * each) / np.maximum(before + hits, 1)
    value[judged.n_relevant(rel)[query] == 0] = np.nan
    return value


@family(
    "AP",
    title="average precision",
    formula="(1/R) sum over relevant rows of hits(rank)/rank; with a cut-off the sum stops there, R stays; instead of "
    "R min(R, k), k or the hits seen, by normalizer",
    source="Harman 1992; Buckley & Voorhees 2000",
    doi="10.1145/345508.345543",
    expected=_expected_normalized_ap,
    monotone="order",
    spellings={
        "trec_eval": ("map", "map_cut_{cutoff}"),
        "ir_measures": ("AP", "AP@{cutoff}", "MAP", "MAP@{cutoff}"),
        "ranx": ("map@{cutoff}", "map"),
    },
)
def average_precision(judged: Judged, *, rel: float = 1, normalizer: str = "R", cutoff: int | None = None) -> Floats:
    """Mean of the precisions at the relevant documents, those not retrieved counting 0.

    In [0, 1], higher is better; 0/0 without relevant documents. ``normalizer`` is "R" (trec_eval, ir_measures, ranx),
    "min" for min(R, k) (Kaggle, LightGBM, XGBoost), "k", or "hits" for the relevant rows seen (a running average).
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
)
def r_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Precision at rank R, the number of relevant documents.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    found = judged.n_relevant(rel)
    return _per_relevant(judged.hits(rel, found), judged, rel)


def _first_relevant(judged: Judged, rel: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the queries with a relevant row, and the first such row of each."""
    before = judged.prefix(rel)[judged.offsets]
    query = np.flatnonzero(before[1:] > before[:-1])
    return query, judged.relevant(rel).row[before[query]]


def _expected_rr(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Return the mean of RR over the orders of tied rows, by the chance that the j-th of them is the first hit."""
    value = reciprocal_rank(judged, rel=rel, cutoff=cutoff)
    prefix, begin = judged.prefix(rel), judged.offsets[:-1]
    start, end, query = judged.groups
    first = (prefix[start] == prefix[begin[query]]) & (prefix[end] > prefix[start])
    start, end, query = start[first], end[first], query[first]
    size, relevant = end - start, prefix[end] - prefix[start]
    ahead = start - begin[query]
    total, none_yet = np.zeros(len(size)), np.ones(len(size))
    for place in range(int((size - relevant).max(initial=-1)) + 1):
        here = none_yet * ratio(relevant, size - place, otherwise=0.0)
        if cutoff is not None:
            here[ahead + place >= cutoff] = 0
        total += here / (ahead + place + 1)
        left = np.maximum(size - relevant - place, 0)
        none_yet *= ratio(left, size - place, otherwise=0.0)
    value[query] = total
    return value


@family(
    "RR",
    title="reciprocal rank",
    formula="1 / rank of the first relevant row, 0 beyond the cut-off",
    source="Kantor & Voorhees 2000",
    doi="10.1023/A:1009902609570",
    expected=_expected_rr,
    monotone="grade",
    spellings={
        "trec_eval": ("recip_rank",),
        "ir_measures": ("RR", "RR@{cutoff}", "MRR", "MRR@{cutoff}"),
        "ranx": ("mrr@{cutoff}", "mrr"),
    },
)
def reciprocal_rank(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """One over the rank of the first relevant document.

    In [0, 1], higher is better; 0 without relevant documents. Whether its values may be averaged is disputed, since
    equal steps in it are not equal steps in rank (Fuhr 2017; Sakai 2020).
    """
    value = np.zeros(judged.n_queries)
    query, row = _first_relevant(judged, rel)
    rank = row - judged.offsets[query] + 1
    value[query] = 1 / rank
    if cutoff is not None:
        value[query[rank > cutoff]] = 0
    return value
