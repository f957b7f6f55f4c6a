"""Measures of users whose patience depends on what they have found: the C/W/L framework of Moffat, Thomas & Scholer.

A user at rank i goes on with chance C(i); W(i), the share of attention that rank i gets, is proportional to the product
of C over the ranks above; the value is the gain seen per rank looked at, sum W(i) g(i). Lists end at ``depth`` ranks:
shorter ones are filled up with rows of no gain (cwl_eval does so at 1000).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.judged import Judged
from rankeval.errors import InvalidInput
from rankeval.measures.family import family
from rankeval.measures.parameters import Count
from rankeval.measures.static_models import DEPTH, scaled

Floats = NDArray[np.float64]
Continuation = Callable[[Floats, Floats], Floats]

_CELLS = 2**19
"""Gains in a table at once."""


def _gain_per_rank(judged: Judged, gain: Floats, depth: int, goes_on: Continuation) -> Floats:
    """Return sum W g over ranks, from the chance to go on at each, given gains (n_queries, depth) and ranks."""
    value = np.empty(judged.n_queries)
    rank = np.arange(1, depth + 1, dtype=np.float64)
    step = max(1, _CELLS // depth)
    for first in range(0, judged.n_queries, step):
        begin, end = judged.offsets[:-1][first : first + step], judged.offsets[1:][first : first + step]
        row = begin[:, None] + np.arange(depth)
        beyond = row >= end[:, None]
        row[beyond] = 0
        gains = gain[judged.code[row]] if len(judged.code) else np.zeros(row.shape)
        gains[beyond] = 0
        weight = np.ones_like(gains)
        np.cumprod(goes_on(gains, rank)[:, :-1], axis=1, out=weight[:, 1:])
        value[first : first + step] = np.cumsum(weight * gains, axis=1)[:, -1] / np.cumsum(weight, axis=1)[:, -1]
    return value


def _goal(name: str, T: float) -> float:
    if T <= 0:
        raise InvalidInput(f"{name}: T, the gain wanted, is above 0 (found {T})")
    return T


@family(
    "INST",
    title="INST, the adaptive form of INSQ",
    formula="C(i) = ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - gain so far",
    source="Bailey, Moffat, Scholer & Thomas 2015",
    doi="10.1145/2766462.2767728",
    expected="orders",
    spellings={"ir_measures": ("INST",)},
)
def inst(judged: Judged, *, max_rel: float, min_rel: float = 0, T: float = 1, depth: Count = DEPTH) -> Floats:
    """Gain per rank of users who want T documents and lose patience as they find them.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    goal = _goal("INST", T)

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        ahead = rank + 2 * goal - np.cumsum(gains, axis=1)
        chance: Floats = ((ahead - 1) / ahead) ** 2
        return chance

    return _gain_per_rank(judged, scaled(judged, "INST", min_rel, max_rel), depth, goes_on)


@family(
    "BPM",
    title="Bejeweled player model",
    formula="C(i) = 1 while the gain so far is below T and i < k, else 0",
    source="Zhang, Liu, Li, Zhang, Xu & Ma 2017, static form",
    doi="10.1145/3077136.3080841",
    expected="orders",
    spellings={"ir_measures": ("BPM@{cutoff}",)},
)
def bpm(judged: Judged, *, max_rel: float, min_rel: float = 0, T: float = 1, cutoff: int) -> Floats:
    """Gain per rank of users who stop when they have the gain T, or at rank k.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    goal = _goal("BPM", T)

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        return ((np.cumsum(gains, axis=1) < goal) & (rank < cutoff)).astype(np.float64)

    return _gain_per_rank(judged, scaled(judged, "BPM", min_rel, max_rel), cutoff, goes_on)


@family(
    "NERR8",
    title="nearly expected reciprocal rank, equation 8",
    formula="C(i) = 1 - g(i), to rank k",
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="orders",
    spellings={"ir_measures": ("NERR8@{cutoff}",)},
)
def nerr8(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank of users who stop at what satisfies them.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _gain_per_rank(judged, scaled(judged, "NERR8", min_rel, max_rel), cutoff, lambda gains, _: 1 - gains)


@family(
    "NERR9",
    title="nearly expected reciprocal rank, equation 9",
    formula="C(i) = i / (i + 1) * (1 - g(i)), to rank k",
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="orders",
    spellings={"ir_measures": ("NERR9@{cutoff}",)},
)
def nerr9(judged: Judged, *, max_rel: float, min_rel: float = 0, cutoff: int) -> Floats:
    """Gain per rank of users who stop at what satisfies them, and tire by rank.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    return _gain_per_rank(
        judged, scaled(judged, "NERR9", min_rel, max_rel), cutoff, lambda gains, rank: rank / (rank + 1) * (1 - gains)
    )


@family(
    "NERR10",
    title="nearly expected reciprocal rank, equation 10",
    formula="C(i) = p (1 - g(i))",
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="orders",
    spellings={"ir_measures": ("NERR10",)},
)
def nerr10(judged: Judged, *, max_rel: float, min_rel: float = 0, p: float = 0.9, depth: Count = DEPTH) -> Floats:
    """Gain per rank of users who stop at what satisfies them, with a patience p.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    if not 0 <= p <= 1:
        raise InvalidInput(f"NERR10: p, the chance to go on, is in [0, 1] (found {p})")
    return _gain_per_rank(judged, scaled(judged, "NERR10", min_rel, max_rel), depth, lambda gains, _: p * (1 - gains))


@family(
    "NERR11",
    title="nearly expected reciprocal rank, equation 11",
    formula="C(i) = ((i + 2T - 1) / (i + 2T))^2 (1 - g(i))",
    source="Azzopardi, Mackenzie & Moffat 2021",
    doi="10.1145/3471158.3472239",
    expected="orders",
    spellings={"ir_measures": ("NERR11",)},
)
def nerr11(judged: Judged, *, max_rel: float, min_rel: float = 0, T: float = 1, depth: Count = DEPTH) -> Floats:
    """Gain per rank of users who stop at what satisfies them, with the patience of INSQ.

    In [0, 1], higher is better; 0 without relevant documents.
    """
    goal = _goal("NERR11", T)

    def goes_on(gains: Floats, rank: Floats) -> Floats:
        patience: Floats = ((rank + 2 * goal - 1) / (rank + 2 * goal)) ** 2 * (1 - gains)
        return patience

    return _gain_per_rank(judged, scaled(judged, "NERR11", min_rel, max_rel), depth, goes_on)


@family(
    "Compat",
    title="compatibility",
    formula="rank-biased overlap with the best order of relevant documents, over that of that order with itself",
    source="Clarke, Vtyurina & Smucker 2021",
    doi="10.1145/3451161",
    expected="orders",
    spellings={"ir_measures": ("Compat",)},
)
def compat(judged: Judged, *, p: float = 0.95, normalize: bool = True) -> Floats:
    """Overlap of the ranking with an ideal one, top ranks weighing most.

    In [0, 1], higher is better; 0/0 without relevant documents. Among documents of one grade the ideal order is that
    of the ranking, and those not retrieved come last.
    """
    if not 0 < p < 1:
        raise InvalidInput(f"Compat: p, the persistence, is above 0 and below 1 (found {p})")
    zero = judged.threshold(0)
    n_ideal = judged.counts[:, zero + 1 :].sum(axis=1)
    depth = np.maximum(judged.n_retrieved, n_ideal)
    deepest = int(depth.max(initial=0))
    power = p ** np.arange(deepest)
    # A document at rank r of one list and s of the other is in the overlap of every depth d >= max(r, s), which adds
    # p^(d-1) / d each.
    upto = np.concatenate(([0.0], np.cumsum(power / np.arange(1, deepest + 1))))
    mass = np.concatenate(([0.0], np.cumsum(power)))
    row = np.flatnonzero(judged.code > zero)
    query = np.searchsorted(judged.offsets, row, side="right") - 1
    rank = row - judged.offsets[query] + 1
    code = judged.code[row].astype(np.int64)
    better = np.cumsum(judged.counts[:, ::-1], axis=1)[:, ::-1] - judged.counts
    by_grade = np.lexsort((rank, code, query))
    group = np.flatnonzero(np.diff(query[by_grade] * len(judged.levels) + code[by_grade], prepend=-1))
    place = np.empty(len(row), dtype=np.int64)
    place[by_grade] = np.arange(len(row)) - np.repeat(group, np.diff(np.append(group, len(row))))
    ideal_rank = better[query, code] + place + 1
    overlap = judged.sums(query, upto[depth[query]] - upto[np.maximum(rank, ideal_rank) - 1])
    best = mass[depth]
    if normalize:  # added up as the overlap is, so that the ideal order has exactly 1
        its = np.repeat(np.arange(judged.n_queries), n_ideal)
        first = np.cumsum(n_ideal) - n_ideal
        best = judged.sums(its, upto[depth[its]] - upto[np.arange(len(its)) - first[its]])
    value: Floats = np.divide(overlap, best, out=np.full(judged.n_queries, np.nan), where=n_ideal > 0)
    return value
