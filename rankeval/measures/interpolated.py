"""Precision at points of recall: interpolated, averaged over levels, and at multiples of R.

Programs differ in the number of relevant documents that a recall level needs (`RULES`). For level
0.3 of 4 documents: 2 by "exact" (1.2 rounded up), 2 by "trec_eval-9" (int(2.1)), 1 by
"trec_eval-10" (1.2 rounded).

Tied rows: the value is a maximum over ranks, so the mean goes through the orders of hits: all of them
for few tied rows, else a sample (see `rankeval.measures.tie_enumeration`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from rankeval._registry import chosen
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.grammar import Chance, Levels, Positive, Spelling, fixing

ELEVEN = tuple(place / 10 for place in range(11))
"""The recall levels of the eleven-point average."""


def _exactly(level: float, n_relevant: Ints) -> Ints:
    """Return the least number of documents that is at least level * R, computed in integers."""
    # Fraction reads the level as written: the float 0.28 times 25 is above 7.
    share = Fraction(str(level))
    return -(-n_relevant * share.numerator // share.denominator)


def _nearly_up(level: float, n_relevant: Ints) -> Ints:
    # As in trec_eval 9; this is not always the ceiling.
    return (level * n_relevant + 0.9).astype(np.int64)


def _rounded(level: float, n_relevant: Ints) -> Ints:
    # Halves go up, as in trec_eval 10; recall may then be below the level.
    share = level * n_relevant
    whole = np.floor(share)
    needed: Ints = (whole + (share - whole >= 0.5)).astype(np.int64)
    return needed


RULES: dict[str, Callable[[float, Ints], Ints]] = {
    "exact": _exactly,
    "trec_eval-9": _nearly_up,
    "trec_eval-10": _rounded,
}
"""Number of relevant documents that a recall level needs, by name of the rule."""


def _by_version(*names: str) -> dict[str, tuple[Spelling, ...]]:
    versions = ("trec_eval-9", "trec_eval-10")
    return {version: fixing({"rule": version}, *names) for version in versions}


def _needed(judged: Judged, level: float, rule: str, rel: float) -> Ints:
    chosen("rule of interpolation", rule, RULES)
    return np.maximum(RULES[rule](level, judged.n_relevant(rel)), 1)


def _interpolated(judged: Judged, rank: Ints, needed: Ints, rel: float) -> Floats:
    """Return the greatest precision from the needed hit on; 0 if the query lacks that hit."""
    precision = judged.relevant(rel).hits / rank
    starts = judged.prefix(rel)[judged.offsets].astype(np.int64)
    reached = np.flatnonzero(np.diff(starts) >= needed)
    value = np.where(judged.n_relevant(rel) > 0, 0.0, np.nan)
    if len(reached):
        # reduceat takes pairs (needed hit, end of the query); the 0 appended makes the last end a
        # valid place.
        first = starts[reached] + needed[reached] - 1
        pairs = np.column_stack((first, starts[reached + 1])).ravel()
        value[reached] = np.maximum.reduceat(np.append(precision, 0.0), pairs)[::2]
    return value


@family(
    "IPrec",
    title="interpolated precision at a recall level",
    formula="max over ranks with recall >= level of precision",
    source="Salton & McGill 1983; Buckley & Voorhees, trec_eval",
    expected="orders of hits",
    monotone="order",
    spellings={
        **_by_version("iprec_at_recall_{recall}"),
        "trec_eval-8": (Spelling("ircl_prn_{recall}", {"rule": "trec_eval-9"}),),
        "ir_measures": ("IPrec@{recall}",),
    },
)
def interpolated_precision(
    judged: Judged, *, recall: Chance, rule: str = "exact", rel: float = 1
) -> Floats:
    """Greatest precision at any rank with at least the given recall.

    In [0, 1], higher is better; 0/0 without relevant documents. ``rule`` says when recall r of R
    documents is reached: "exact" at hits >= r * R, "trec_eval-9" at hits >= int(r * R + 0.9),
    "trec_eval-10" at hits >= round(r * R).
    """
    return _interpolated(judged, judged.relevant(rel).rank, _needed(judged, recall, rule, rel), rel)


@family(
    "IAP11",
    title="eleven-point average precision",
    formula="mean of IPrec over the recall levels 0, 0.1 ... 1",
    source="Salton & McGill 1983; Buckley & Voorhees, trec_eval",
    expected="orders of hits",
    monotone="order",
    spellings={
        **_by_version("11pt_avg", "11pt_avg_{levels}"),
        "trec_eval-8": (Spelling("11-pt_avg", {"rule": "trec_eval-9"}),),
    },
)
def eleven_point_average(
    judged: Judged, *, levels: Levels = ELEVEN, rule: str = "exact", rel: float = 1
) -> Floats:
    """Mean of the interpolated precisions at recall levels, eleven unless others are given.

    In [0, 1], higher is better; 0/0 without relevant documents. ``rule`` as of IPrec.
    """
    total = np.zeros(judged.n_queries)
    for level in reversed(levels):  # trec_eval adds from the greatest level down
        total += interpolated_precision(judged, recall=level, rule=rule, rel=rel)
    return total / len(levels)


@family(
    "RprecMult",
    title="precision at a multiple of R",
    formula="hits(k) / k at k = int(multiple * R + 0.9)",
    source="Buckley & Voorhees, trec_eval",
    linear=True,
    monotone="order",
    spellings={"trec_eval": ("Rprec_mult_{multiple}",)},
)
def rprec_multiple(judged: Judged, *, multiple: Positive, rel: float = 1) -> Floats:
    """Precision at a multiple of R: below 1, of the first ranks; above 1, of later ranks too.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    n_relevant = judged.n_relevant(rel)
    cutoff = _nearly_up(multiple, n_relevant)
    share = ratio(judged.hits(rel, cutoff), cutoff, otherwise=0.0)
    share[n_relevant == 0] = np.nan
    return share
