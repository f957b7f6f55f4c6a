"""Compatibility: overlap of a ranking with the ideal order that is nearest to it.

A document at rank r of the ranking and rank s of the ideal order is in the overlap at every depth d
>= max(r, s), and each depth adds p^(d-1) / d, down to a depth that does not depend on the length of
the ranking:

    ranking     d4(1)  d1(2)  d9(0)  d3(1)        ideal: by grade, then as in the ranking
    ideal       d1(2)  d4(1)  d3(1)               d4: r = 1, s = 2, in the overlap from depth 2 on

Tied rows: the mean goes through the orders of a query, or through a sample of them.
"""

from __future__ import annotations

import numpy as np

from rankeval.join.flat import Floats, Ints, ratio, spread
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.grammar import Depth, Inner, Spelling


def _place_in_kind(kind: Ints) -> Ints:
    """Return, for each element, the number of earlier elements of the same kind."""
    order = np.argsort(kind, kind="stable")
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    place = np.empty(len(kind), dtype=np.int64)
    place[order] = np.arange(len(kind)) - np.repeat(first, np.diff(np.append(first, len(kind))))
    return place


_COMPAT_SPELLINGS = {"ir_measures": (Spelling("Compat", {"depth": None}),)}


@family(
    "Compat",
    title="compatibility",
    formula="rank-biased overlap, to a depth, with the best order of relevant documents, over that "
    "of this order with itself",
    source="Clarke, Vtyurina & Smucker 2021",
    doi="10.1145/3451161",
    expected="orders",
    spellings=_COMPAT_SPELLINGS,
    ascending=True,
    semantics=2,
)
def compat(
    judged: Judged, *, p: Inner = 0.95, normalize: bool = True, depth: Depth | None = 1000
) -> Floats:
    """Overlap of the ranking with an ideal one, top ranks weighing most.

    In [0, 1], higher is better; 0/0 without relevant documents. The ideal order takes documents of
    one grade in the order of the ranking, and those that are not retrieved last. ``depth`` is 1000
    in the authors' program, however short both lists are. ``depth=None`` is the rule of
    ir_measures: the length of the longer list, so that rows added below a short ranking raise the
    value.
    """
    zero = judged.threshold(0)
    n_ideal = judged.counts[:, zero + 1 :].sum(axis=1)
    longer = np.maximum(judged.n_retrieved, n_ideal)
    stop = longer if depth is None else np.full_like(n_ideal, depth)
    deepest = int(stop.max(initial=0))
    power = p ** np.arange(deepest)
    upto = np.concatenate(([0.0], np.cumsum(power / np.arange(1, deepest + 1))))
    mass = np.concatenate(([0.0], np.cumsum(power)))
    row, query, rank = judged.rows_of(np.arange(len(judged.levels)) > zero)
    code = judged.code[row].astype(np.int64)
    # The ideal rank: behind all judged documents of a better grade, and behind those of its grade
    # in the ranking above.
    better = np.cumsum(judged.counts[:, ::-1], axis=1)[:, ::-1] - judged.counts
    ideal_rank = better[query, code] + _place_in_kind(query * len(judged.levels) + code) + 1

    end = stop[query]
    added = upto[end] - upto[np.minimum(np.maximum(rank + 1, ideal_rank) - 1, end)]
    overlap = judged.sums(query, added)
    best = mass[stop]
    if normalize:  # added up as the overlap is, so that the ideal order has exactly 1
        above, its = spread(np.zeros_like(n_ideal), np.minimum(n_ideal, stop))
        best = judged.sums(its, upto[stop[its]] - upto[above])
    return ratio(overlap, np.where(n_ideal > 0, best, 0.0))
