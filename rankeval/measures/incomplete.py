"""Measures for incomplete judgments: unjudged is not the same as judged not relevant.

A row is judged if it has a label. Under the conventions of trec_eval a label below zero means
pooled but not judged:

    label      2, 1         0                       -1                       none
    is         relevant     judged not relevant     pooled, not judged       not pooled
    bpref      hit          miss                    ignored                  ignored
    infAP      hit          known miss              share is estimated       taken as not relevant

The trap is in the ties. Rows of one label may still differ in being judged, so these measures use
``judged.ties``, all tied groups; ``judged.groups`` has only those whose labels differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import BELOW_ALL, Judged
from rankeval.measures.chances import hypergeometric
from rankeval.measures.family import family
from rankeval.measures.graded import summable
from rankeval.measures.grammar import Share, Spelling, fixing
from rankeval.measures.set_based import counted

EPSILON = 1e-5
"""trec_eval's small number: infAP adds it to counts of documents, and it is the least value in
geometric means, which a query with the value 0 would make 0."""


def judged_rows(judged: Judged) -> NDArray[np.bool_]:
    """Return a mask of the rows that have a judgment."""
    return np.ones(len(judged.code), dtype=bool) if judged.judged is None else judged.judged


def number_before(flags: NDArray[np.bool_]) -> Ints:
    """Return the number of flagged rows before each row of the chunk, and the total at the end."""
    return np.concatenate(([0], np.cumsum(flags)))


def _sum_of_capped(upto: Ints, cap: Ints) -> Floats:
    """Return min(0, cap) + min(1, cap) + ... + min(upto - 1, cap), in closed form."""
    rising = np.minimum(upto, cap + 1)
    total: Floats = rising * (rising - 1) / 2 + np.maximum(upto - cap - 1, 0) * cap
    return total


@family(
    "Bpref",
    title="binary preference",
    formula="(1/R) sum over relevant rows of 1 - min(N above, R) / min(N, R); N: documents judged "
    "not relevant",
    source="Buckley & Voorhees 2004, in the form of trec_eval since 2005",
    doi="10.1145/1008992.1009000",
    expected="kernel",
    spellings={"trec_eval": ("bpref",), "ir_measures": ("Bpref", "BPref"), "ranx": ("bpref",)},
)
def bpref(judged: Judged, *, rel: float = 1) -> Floats:
    """Share of relevant documents above those judged not relevant; unjudged documents are ignored.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    first = judged.threshold(rel)
    relevant = judged.relevant(rel)
    total = number_before(judged_rows(judged) & (judged.code < first))
    above = total[relevant.row] - total[judged.offsets[relevant.query]]
    n_relevant = judged.n_relevant(rel)
    worst = np.minimum(judged.counts[:, :first].sum(axis=1), n_relevant)
    capped = np.minimum(above, n_relevant[relevant.query]).astype(np.float64)
    if len(judged.ties.start):
        # In a group with u rows judged not relevant, a relevant row has 0, 1 ... u of them above
        # it, each number with equal chance: the mean over these numbers.
        start, end, query = judged.ties
        before, inside = total[start] - total[judged.offsets[query]], total[end] - total[start]
        cap = n_relevant[query]
        sums = _sum_of_capped(before + inside + 1, cap) - _sum_of_capped(before, cap)
        row, group = judged.ties.rows()
        hit = judged.code[row] >= first
        capped[judged.prefix(rel)[row[hit]]] = (sums / (inside + 1))[group[hit]]
    share = ratio(capped, worst[relevant.query], otherwise=0.0)
    return ratio(judged.sums(relevant.query, 1 - share), n_relevant)


def _precision_expected(relevant: Floats, known: Floats, pooled: Floats, rank: Floats) -> Floats:
    """Return the precision at a relevant row, from the relevant, judged and pooled rows above."""
    share = (relevant + EPSILON) / (known + 2 * EPSILON)
    return (1 + (known + pooled) * share) / rank


def _inf_ap_of_group(
    ahead: int,
    size: int,
    relevant: tuple[int, int],
    nonrelevant: tuple[int, int],
    pooled: tuple[int, int],
) -> float:
    """Return the mean part of a tied group in the sum of precisions.

    ``relevant``, ``nonrelevant`` and ``pooled`` each give the number of rows above the group and in
    it. A relevant row at place p (from 0) has p rows of the group above it. Of these s are judged,
    with hypergeometric chance, and of those on average s (r - 1) / (r + u - 1) are relevant. The
    estimate is linear in the numbers of relevant and of pooled rows, so their means suffice.
    """
    (hits, inside), (misses, others), (marks, more) = relevant, nonrelevant, pooled
    if not inside:
        return 0.0
    known = inside + others - 1  # judged rows of the group besides the relevant row in question
    place = np.arange(size, dtype=np.float64)[:, None]
    drawn = np.arange(known + 1, dtype=np.float64)
    chance = hypergeometric(size - 1, known, place, drawn)
    relevant_above = hits + (drawn * (inside - 1) / known if known else 0.0 * drawn)
    left = size - 1 - known
    pooled_above = marks + ((place - drawn) * more / left if left else 0.0 * (place - drawn))
    known_above = hits + misses + drawn
    estimate = _precision_expected(relevant_above, known_above, pooled_above, ahead + place + 1)
    return float((chance * estimate).sum() * inside / size)


@family(
    "infAP",
    title="inferred average precision",
    formula="(1/R) sum over relevant rows of (1 + pooled above * (r + e) / (r + n + 2e)) / rank; "
    "e = 0.00001",
    source="Yilmaz & Aslam 2006",
    doi="10.1145/1183614.1183633",
    expected="kernel",
    spellings={"trec_eval": ("infAP",), "ir_measures": ("infAP", "InfAP")},
)
def inf_ap(judged: Judged, *, rel: float = 1) -> Floats:
    """Average precision, estimated from a random sample of judgments.

    In [0, 1], higher is better; 0/0 without relevant documents. A document without a judgment
    counts as not pooled, hence not relevant. If the convention says so, a label below zero means
    pooled but not judged. A perfect ranking scores a little below 1, because the estimate adds a
    small e to its counts.
    """
    first = judged.threshold(rel)
    relevant = judged.relevant(rel)
    known = judged_rows(judged)
    nonrelevant = number_before(known & (judged.code < first))
    level = np.asarray(judged.levels)
    pooled = number_before(~known & ((level < 0) & (level > BELOW_ALL))[judged.code])
    row, begin = relevant.row, judged.offsets[relevant.query]
    hits_above = (relevant.hits - 1).astype(np.float64)
    known_above = hits_above + (nonrelevant[row] - nonrelevant[begin])
    pooled_above = (pooled[row] - pooled[begin]).astype(np.float64)
    value = _precision_expected(
        hits_above, known_above, pooled_above, relevant.rank.astype(np.float64)
    )
    hits = judged.prefix(rel)
    tied, _ = judged.ties.rows()
    value[hits[tied[judged.code[tied] >= first]]] = 0  # counted by group
    total = judged.sums(relevant.query, value)
    for start, end, query in zip(*(part.tolist() for part in judged.ties), strict=True):
        top = int(judged.offsets[query])
        counts = [
            (int(sums[start] - sums[top]), int(sums[end] - sums[start]))
            for sums in (hits, nonrelevant, pooled)
        ]
        total[query] += _inf_ap_of_group(start - top, end - start, *counts)
    return ratio(total, judged.n_relevant(rel))


@family(
    "Judged",
    title="share of judged rows",
    counts="rows",
    formula="judged rows to k / min(k, retrieved)",
    source="MacAvaney, Macdonald & Ounis 2022, ir_measures",
    doi="10.1007/978-3-030-99739-7_38",
    linear=True,
    spellings={"ir_measures": ("Judged@{cutoff}",)},
)
def judged_share(judged: Judged, *, cutoff: int | None = None) -> Floats:
    """Share of the rows within the cut-off that have a judgment.

    In [0, 1], higher is better; 0/0 if nothing was retrieved.
    """
    n_judged = judged.mean_within(judged.ties, number_before(judged_rows(judged)), cutoff)
    return ratio(n_judged, judged.depth(cutoff))


@family(
    "Unj",
    title="unjudged documents",
    counts="rows",
    formula="unjudged rows within the cut-off / k; without a cut-off unjudged / retrieved",
    source="Soboroff, trec_eval",
    linear=True,
    greater_is_better=False,
    spellings={"trec_eval": ("unj_{cutoff}",)},
)
def unjudged(judged: Judged, *, cutoff: int | None = None) -> Floats:
    """Share of the rows within the cut-off that nobody judged.

    In [0, 1]; with a high share the other measures rest on few judgments. 0/0 for an empty list
    without a cut-off.
    """
    n_unjudged = judged.mean_within(judged.ties, number_before(~judged_rows(judged)), cutoff)
    size = judged.n_retrieved if cutoff is None else np.full(judged.n_queries, cutoff)
    return ratio(n_unjudged, size)


@counted(
    "NumNonrelJudgedRet",
    title="number of retrieved documents that were judged not relevant",
    formula="rows judged not relevant",
    greater_is_better=False,
    spellings={"trec_eval": ("num_nonrel_judged_ret",)},
)
def num_nonrel_judged_ret(judged: Judged, *, rel: float = 1) -> Floats:
    """Count of retrieved documents that were judged not relevant, added up over queries."""
    total = number_before(judged_rows(judged) & (judged.code < judged.threshold(rel)))
    return np.diff(total[judged.offsets]).astype(np.float64)


def persistence(judged: Judged, p: float) -> Floats:
    """Return p^(rank - 1) for the ranks of the longest list."""
    return np.power(p, np.arange(judged.longest + 1, dtype=np.float64))


RBP_GAINS = ("binary", "scaled", "linear")
"""Gain of a relevant document in RBP: 1, its share of the query's greatest label, or its label."""

_RBP_OF_TREC_EVAL = (
    *fixing({"p": 0.9, "gain": "scaled"}, "rbp", "RBP", "RBP@{cutoff}", "rbp@{cutoff}"),
    *fixing({"gain": "scaled"}, "rbp_p={p}", "rbp.p={p}"),
)
_RBP_SPELLINGS = {
    "trec_eval-10": _RBP_OF_TREC_EVAL,
    "trectools": fixing({"p": 0.8}, "rbp", "rbp@{cutoff}"),
    "ranx": fixing({"gain": "linear"}, "rbp.{p:decimals}", "rbp@{p:decimals}"),
    "ir_measures": fixing({"p": 0.8}, "RBP", "RBP@{cutoff}"),
    "Moffat & Zobel": fixing({"p": 0.95}, "RBP", "RBP@{cutoff}"),
}


@family(
    "RBP",
    title="rank-biased precision",
    formula="(1 - p) sum over ranks of gain * p^(rank - 1)",
    source="Moffat & Zobel 2008",
    doi="10.1145/1416950.1416952",
    bounds=(0.0, np.inf),  # in [0, 1] unless gain="linear"
    linear=True,
    monotone="grade",
    spellings=_RBP_SPELLINGS,
)
def rbp(
    judged: Judged, *, p: Share, gain: str = "binary", rel: float = 1, cutoff: int | None = None
) -> Floats:
    """Mean gain per document read, by a user who reads the next document with chance p.

    In [0, 1] unless gains are linear, higher is better; 0 without relevant documents. A relevant
    document gains 1 ("binary"), its label divided by the greatest label of the query ("scaled", as
    in trec_eval 10), or its label ("linear"). ranx has linear gains, against its description; the
    value may then exceed 1.
    """
    chosen("gain of RBP", gain, RBP_GAINS)
    label = np.asarray(judged.levels, dtype=np.float64)
    gains = np.where(label >= rel, 1.0 if gain == "binary" else summable(label), 0.0)
    value = (1 - p) * judged.discounted(gains, persistence(judged, p), cutoff)
    if gain == "scaled":
        greatest = np.max(np.where(judged.counts > 0, label, 0.0), axis=1, initial=0.0)
        value /= np.maximum(greatest, 1.0)
    return value


RULES = ("exact", "trec_eval-10")
"""RBPResid of a list without unjudged rows: the weight of the ranks beyond it ("exact"), or 0."""


@family(
    "RBPResid",
    title="residual of rank-biased precision",
    counts="rows",
    formula="(1 - p) sum over unjudged rows of p^(rank - 1), plus p^retrieved for the ranks beyond "
    "the list",
    source="Moffat & Zobel 2008",
    doi="10.1145/1416950.1416952",
    expected="kernel",
    greater_is_better=False,
    spellings={"trec_eval-10": (Spelling("rbp_resid", {"p": 0.9, "rule": "trec_eval-10"}),)},
)
def rbp_residual(judged: Judged, *, p: Share, rule: str = "exact") -> Floats:
    """Rise of rank-biased precision if all documents unjudged or beyond the list were relevant.

    In [0, 1]; a lower value means that RBP is known more exactly. ``rule="trec_eval-10"`` gives 0
    if every retrieved document is judged, although the documents beyond the list are still unknown.
    """
    chosen("rule of RBPResid", rule, RULES)
    weight = persistence(judged, p)
    open_rows = judged.ties.averaged((~judged_rows(judged)).astype(np.float64))
    row = np.flatnonzero(open_rows)
    query = np.searchsorted(judged.offsets, row, side="right") - 1
    within = judged.sums(query, open_rows[row] * weight[row - judged.offsets[query]])
    value: Floats = (1 - p) * within + weight[judged.n_retrieved]
    if rule == "trec_eval-10":
        value[within == 0] = 0
    return value
