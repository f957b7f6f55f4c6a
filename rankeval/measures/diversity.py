"""Measures of diversity: which aspects (subtopics) a ranking covers, and how soon it repeats.

Every aspect of a query is taken as a query of its own. A measure is applied to each, and the values
are added up or averaged by query:

    query a   aspect 1, aspect 2      -> by_aspect(judged).judged:   3 queries, one an aspect
    query b   aspect 1                   by_aspect(judged).query:    a a b

The second relevant document of an aspect gains (1 - alpha) times the gain of the first, the third
(1 - alpha) times that of the second, and so on. So alpha-nDCG, ERR-IA and NRBP are cascades that
differ only in the discount of ranks.

Aspects without a relevant document do not count. The normalised forms divide by the value of a
greedy order of the judged documents, as ndeval does; among equals it chooses the greater document
id. Finding the best order is NP-complete, so a normalised value may be slightly above 1.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.flat import Floats, Ints, ratio
from rankeval.join.judged import Judged
from rankeval.join.what_if import by_aspect
from rankeval.measures.cascade import cascade
from rankeval.measures.family import FAMILIES, family
from rankeval.measures.grammar import Chance, Share

GREATEST_NORMALISED = math.e / (math.e - 1)
"""Upper bound of normalised values: a greedy order reaches (1 - 1/e) of the best (Nemhauser, Wolsey
& Fisher 1978)."""


def _counted_aspects(judged: Judged, rel: float) -> tuple[NDArray[np.bool_], Ints]:
    parts = by_aspect(judged)
    counted = parts.judged.n_relevant(rel) > 0
    return counted, np.bincount(parts.query[counted], minlength=judged.n_queries)


def intent_aware(judged: Judged, name: str, *, rel: float, **parameters: Any) -> Floats:
    """Return the mean of a measure over the aspects with a relevant document; nan without them."""
    parts = by_aspect(judged)
    counted, number = _counted_aspects(judged, rel)
    values = FAMILIES[name].with_parameters(rel=rel, **parameters).values(parts.judged)
    return ratio(judged.sums(parts.query[counted], values[counted]), number)


def _novelty(judged: Judged, rel: float, alpha: float, discount: Floats) -> Floats:
    """Return the discounted gain; each repetition of an aspect multiplies its gain by 1 - alpha."""
    # A cascade in which a relevant document "stops" a share alpha of the users leaves 1 - alpha for
    # the next one.
    parts = by_aspect(judged)
    gain = (np.asarray(parts.judged.levels) >= rel).astype(np.float64)
    beyond = max(0, int(judged.n_retrieved.max(initial=0)) - len(discount))
    padded = np.concatenate((discount, np.zeros(beyond)))
    values = cascade(parts.judged, gain, alpha * gain, padded, len(discount))
    return judged.sums(parts.query, values)


def _greedy(judged: Judged, rel: float, alpha: float, discount: Floats) -> Floats:
    """Return the discounted gain of the greedy order of each query's judged documents."""
    block = judged.aspects
    assert block is not None  # declared by needs="aspects"
    of, entries = block.table.entries(block.known)
    good = entries.grade >= rel
    query = block.known_query[of][good]
    document, aspect = entries.document[good], entries.aspect[good]
    total = np.zeros(judged.n_queries)
    order = np.argsort(query, kind="stable")
    bounds = np.searchsorted(query[order], np.arange(judged.n_queries + 1))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        rows = order[bounds[number] : bounds[number + 1]]
        names, doc_at = np.unique(block.table.byte_rank[document[rows]], return_inverse=True)
        aspects, aspect_at = np.unique(aspect[rows], return_inverse=True)
        relevant = np.zeros((len(aspects), len(names)))
        # The greatest id comes first, because argmax takes the first of equals: ndeval's choice.
        relevant[aspect_at, len(names) - 1 - doc_at] = 1
        gains = _greedy_gains(relevant, alpha, len(discount))
        total[number] = (gains * discount[: len(gains)]).sum()
    return total


def _greedy_gains(relevant: Floats, alpha: float, depth: int) -> Floats:
    left = np.ones(len(relevant))
    gains = np.zeros(min(depth, relevant.shape[1]))
    free = np.ones(relevant.shape[1], dtype=bool)
    for rank in range(len(gains)):
        score = np.zeros(relevant.shape[1])
        # Added aspect by aspect for all documents alike, so that equal gains are equal floats.
        for weight, row in zip(left, relevant, strict=True):
            score += weight * row
        best = int(np.argmax(np.where(free, score, -1.0)))
        gains[rank] = score[best]
        free[best] = False
        left[relevant[:, best] > 0] *= 1 - alpha
    return gains


def _log_discount(depth: int) -> Floats:
    return 1 / np.log2(np.arange(depth) + 2)


def _rank_discount(depth: int) -> Floats:
    return 1 / np.arange(1.0, depth + 1)


def _to_ideal(judged: Judged, rel: float, alpha: float, discount: Floats) -> Floats:
    """Return novelty gain by that of a list in which every document is relevant to every aspect."""
    most = (discount * (1 - alpha) ** np.arange(len(discount))).sum()
    _, number = _counted_aspects(judged, rel)
    return ratio(_novelty(judged, rel, alpha, discount), number * most)


def _to_greedy(judged: Judged, rel: float, alpha: float, discount: Floats) -> Floats:
    return ratio(_novelty(judged, rel, alpha, discount), _greedy(judged, rel, alpha, discount))


_over_aspects = partial(family, linear=True, needs="aspects")
"""`family` for measures over the aspects of a query: linear, since each aspect's value is."""


@_over_aspects(
    "alpha_DCG",
    title="alpha-DCG",
    formula="sum to k of novelty gain / log2(1 + rank), over that of a list in which all is "
    "relevant to every aspect",
    source="Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher & MacKinnon 2008; ndeval",
    doi="10.1145/1390334.1390446",
    spellings={
        "ndeval": ("alpha-DCG@{cutoff}",),
        "ir_measures": ("alpha_DCG@{cutoff}", "\N{GREEK SMALL LETTER ALPHA}_DCG@{cutoff}"),
    },
)
def alpha_dcg(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, cutoff: int) -> Floats:
    """Discounted gain in which a repeated aspect gains less, as a share of that of an ideal list.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document. The ideal is the same for
    all collections: every document is relevant to every aspect.
    """
    return _to_ideal(judged, rel, alpha, _log_discount(cutoff))


@_over_aspects(
    "alpha_nDCG",
    title="alpha-nDCG",
    formula="alpha-DCG over that of the greedy order of the judged documents",
    source="Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher & MacKinnon 2008; ndeval",
    doi="10.1145/1390334.1390446",
    bounds=(0.0, GREATEST_NORMALISED),
    spellings={
        "ndeval": ("alpha-nDCG@{cutoff}",),
        "ir_measures": ("alpha_nDCG@{cutoff}", "\N{GREEK SMALL LETTER ALPHA}_nDCG@{cutoff}"),
    },
)
def alpha_ndcg(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, cutoff: int) -> Floats:
    """Discounted gain in which a repeated aspect gains less, as a share of the greedy order's.

    In [0, 1], slightly above if an order beats the greedy one, higher is better; 0/0 if no aspect
    has a relevant document.
    """
    return _to_greedy(judged, rel, alpha, _log_discount(cutoff))


@_over_aspects(
    "ERR_IA",
    title="intent-aware expected reciprocal rank",
    formula="sum to k of novelty gain / rank, over that of a list in which all is relevant to "
    "every aspect",
    source="Chapelle, Ji, Liao, Velipasaoglu, Lai & Wu 2011; ndeval",
    doi="10.1007/s10791-011-9167-7",
    spellings={"ndeval": ("ERR-IA@{cutoff}",), "ir_measures": ("ERR_IA@{cutoff}",)},
)
def err_ia(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, cutoff: int) -> Floats:
    """Mean over aspects of expected reciprocal rank; relevance stops a user with chance alpha.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document.
    """
    return _to_ideal(judged, rel, alpha, _rank_discount(cutoff))


@_over_aspects(
    "nERR_IA",
    title="normalised intent-aware expected reciprocal rank",
    formula="ERR-IA over that of the greedy order of the judged documents",
    source="Chapelle, Ji, Liao, Velipasaoglu, Lai & Wu 2011; ndeval",
    doi="10.1007/s10791-011-9167-7",
    bounds=(0.0, GREATEST_NORMALISED),
    spellings={"ndeval": ("nERR-IA@{cutoff}",), "ir_measures": ("nERR_IA@{cutoff}",)},
)
def nerr_ia(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, cutoff: int) -> Floats:
    """Intent-aware expected reciprocal rank, as a share of that of the greedy order.

    In [0, 1], slightly above if an order beats the greedy one, higher is better; 0/0 if no aspect
    has a relevant document.
    """
    return _to_greedy(judged, rel, alpha, _rank_discount(cutoff))


def _patience(judged: Judged, beta: float) -> Floats:
    assert judged.aspects is not None
    most_known = int(np.bincount(judged.aspects.known_query, minlength=1).max())
    longest = max(int(judged.n_retrieved.max(initial=0)), most_known)
    discount: Floats = np.power(beta, np.arange(longest, dtype=float))
    return discount


@_over_aspects(
    "NRBP",
    title="novelty- and rank-biased precision",
    formula="(1 - (1 - alpha) beta) / aspects * sum over ranks of beta^(rank - 1) novelty gain",
    source="Clarke, Kolla & Vechtomova 2009; ndeval",
    doi="10.1007/978-3-642-04417-5_17",
    spellings={"ir_measures": ("NRBP",)},
)
def nrbp(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, beta: Share = 0.5) -> Floats:
    """Novelty gain of users who read the next row with chance beta.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document.
    """
    _, number = _counted_aspects(judged, rel)
    value = _novelty(judged, rel, alpha, _patience(judged, beta))
    return ratio((1 - (1 - alpha) * beta) * value, number)


@_over_aspects(
    "nNRBP",
    title="normalised novelty- and rank-biased precision",
    formula="NRBP over that of the greedy order of the judged documents",
    source="Clarke, Kolla & Vechtomova 2009; ndeval",
    doi="10.1007/978-3-642-04417-5_17",
    bounds=(0.0, GREATEST_NORMALISED),
    spellings={"ir_measures": ("nNRBP",)},
)
def nnrbp(judged: Judged, *, rel: float = 1, alpha: Chance = 0.5, beta: Share = 0.5) -> Floats:
    """Novelty- and rank-biased precision, as a share of that of the greedy order.

    In [0, 1], slightly above if an order beats the greedy one, higher is better; 0/0 if no aspect
    has a relevant document.
    """
    return _to_greedy(judged, rel, alpha, _patience(judged, beta))


@_over_aspects(
    "P_IA",
    title="intent-aware precision",
    formula="mean over aspects of P(k)",
    source="Agrawal, Gollapudi, Halverson & Ieong 2009; ndeval",
    doi="10.1145/1498759.1498766",
    spellings={"ndeval": ("P-IA@{cutoff}",), "ir_measures": ("P_IA@{cutoff}",)},
)
def p_ia(judged: Judged, *, rel: float = 1, cutoff: int) -> Floats:
    """Precision, averaged over aspects.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document.
    """
    return intent_aware(judged, "P", rel=rel, cutoff=cutoff)


@_over_aspects(
    "AP_IA",
    title="intent-aware average precision",
    formula="mean over aspects of AP",
    source="Agrawal, Gollapudi, Halverson & Ieong 2009; ndeval",
    doi="10.1145/1498759.1498766",
    spellings={"ndeval": ("MAP-IA",), "ir_measures": ("AP_IA", "MAP_IA")},
)
def ap_ia(judged: Judged, *, rel: float = 1) -> Floats:
    """Average precision, averaged over aspects.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document.
    """
    return intent_aware(judged, "AP", rel=rel)


@_over_aspects(
    "StRecall",
    title="subtopic recall",
    formula="aspects with a relevant row within the cut-off / aspects with a relevant document",
    source="Zhai, Cohen & Lafferty 2003; ndeval",
    doi="10.1145/860435.860440",
    spellings={"ndeval": ("strec@{cutoff}",), "ir_measures": ("StRecall@{cutoff}",)},
)
def subtopic_recall(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the aspects that the ranking covers within the cut-off.

    In [0, 1], higher is better; 0/0 if no aspect has a relevant document.
    """
    return intent_aware(judged, "Success", rel=rel, cutoff=cutoff)
