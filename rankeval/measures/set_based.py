"""Measures of a set: how much of what was returned is relevant, and how much of what is relevant was returned.

With a cut-off the set is the first k rows, and precision divides by k; without one it is everything retrieved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.judged import Judged
from rankeval.errors import InvalidInput
from rankeval.measures.family import family

Floats = NDArray[np.float64]


def _ratio(part: Floats, whole: NDArray[np.int64] | Floats) -> Floats:
    """Divide; nan for 0/0."""
    share: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=np.asarray(whole) > 0)
    return share


@family(
    "P",
    title="precision",
    formula="hits(k) / k; without a cut-off hits / retrieved",
    source="Kent, Berry, Luehrs & Perry 1955",
    doi="10.1002/asi.5090060209",
    linear=True,
    spellings={
        "trec_eval": ("P_{cutoff}", "P.{cutoff}", "P{cutoff}", "set_P", "exact_prec"),
        "ir_measures": ("Precision@{cutoff}", "SetP"),
        "ranx": ("precision@{cutoff}", "precision"),
    },
)
def precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the rows within the cut-off that are relevant.

    In [0, 1], higher is better; 0 without relevant documents, 0/0 for an empty set without a cut-off.
    """
    if cutoff is None:
        return _ratio(judged.hits(rel), judged.n_retrieved)
    return judged.hits(rel, cutoff) / cutoff


@family(
    "R",
    title="recall",
    formula="hits(k) / R",
    source="Kent, Berry, Luehrs & Perry 1955",
    doi="10.1002/asi.5090060209",
    linear=True,
    spellings={
        "trec_eval": ("recall_{cutoff}", "recall.{cutoff}", "recall{cutoff}", "set_recall", "exact_recall"),
        "ir_measures": ("Recall@{cutoff}", "SetR"),
        "ranx": ("recall@{cutoff}", "recall"),
    },
)
def recall(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the relevant documents that stand within the cut-off.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    return _ratio(judged.hits(rel, cutoff), judged.n_relevant(rel))


@family(
    "F",
    title="F measure",
    formula="(1 + beta^2) P R / (beta^2 P + R) = (1 + beta^2) hits / (beta^2 R + k); beta^2 = (1 - alpha) / alpha",
    source="van Rijsbergen 1979",
    linear=True,
    spellings={"trec_eval": ("set_F",), "ir_measures": ("SetF",), "ranx": ("f1@{cutoff}", "f1")},
)
def f_measure(
    judged: Judged, *, beta: float = 1, alpha: float | None = None, rel: float = 1, cutoff: int | None = None
) -> Floats:
    """Weighted harmonic mean of precision and recall.

    In [0, 1], higher is better; 0/0 without relevant documents. ``beta`` above 1 favours recall; ``alpha`` is the
    weight of precision: 1 gives precision, 0 recall.

    Raises
    ------
    InvalidInput
        When both beta and alpha are given, or one is out of its range.
    """
    if alpha is not None and beta != 1:
        raise InvalidInput(f"F: give beta or alpha, not both (found beta={beta}, alpha={alpha})")
    if beta < 0 or (alpha is not None and not 0 <= alpha <= 1):
        raise InvalidInput(f"F: beta is 0 or greater and alpha in [0, 1] (found beta={beta}, alpha={alpha})")
    share = 1 / (1 + beta**2) if alpha is None else alpha
    size = judged.n_retrieved if cutoff is None else cutoff
    found = judged.n_relevant(rel)
    value = _ratio(judged.hits(rel, cutoff), (1 - share) * found + share * size)
    value[found == 0] = np.nan
    return value


def _expected_success(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Return the chance that one of the rows within the cut-off is relevant, over the orders of tied rows."""
    value = (judged.hits(rel, cutoff) > 0).astype(np.float64)
    prefix, begin = judged.prefix(rel), judged.offsets[:-1]
    stop = begin + judged.depth(cutoff)
    start, end, query = judged.groups
    crossed = (start < stop[query]) & (stop[query] < end) & (prefix[start] == prefix[begin[query]])
    start, end, query = start[crossed], end[crossed], query[crossed]
    size, relevant, drawn = end - start, prefix[end] - prefix[start], stop[query] - start
    none = np.ones(len(size))
    for place in range(int(drawn.max(initial=0))):
        still = place < drawn
        none[still] *= np.maximum(size - relevant - place, 0)[still] / (size - place)[still]
    value[query] = 1 - none
    return value


@family(
    "Success",
    title="success, hit rate",
    formula="1 if hits(k) > 0, else 0",
    source="Buckley & Voorhees, trec_eval",
    expected=_expected_success,
    spellings={
        "trec_eval": ("success_{cutoff}", "success.{cutoff}"),
        "ir_measures": ("Success@{cutoff}",),
        "ranx": ("hit_rate@{cutoff}", "hit_rate"),
    },
)
def success(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Whether a relevant document stands within the cut-off.

    0 or 1, higher is better; 0 without relevant documents.
    """
    return (judged.hits(rel, cutoff) > 0).astype(np.float64)


@family(
    "NumQ",
    title="number of queries",
    formula="1 for each query",
    source="Buckley & Voorhees, trec_eval",
    aggregate="sum",
    bounds=(1.0, 1.0),
    linear=True,
    spellings={"trec_eval": ("num_q",)},
)
def num_q(judged: Judged) -> Floats:
    """Count the queries: 1 each, added up."""
    return np.ones(judged.n_queries)


@family(
    "NumRet",
    title="number of retrieved documents",
    formula="retrieved",
    source="Buckley & Voorhees, trec_eval",
    aggregate="sum",
    bounds=(0.0, np.inf),
    linear=True,
    spellings={"trec_eval": ("num_ret",)},
)
def num_ret(judged: Judged) -> Floats:
    """Count the retrieved documents; added up over queries."""
    return judged.n_retrieved.astype(np.float64)


@family(
    "NumRel",
    title="number of relevant documents",
    formula="R",
    source="Buckley & Voorhees, trec_eval",
    aggregate="sum",
    bounds=(0.0, np.inf),
    linear=True,
    spellings={"trec_eval": ("num_rel",)},
)
def num_rel(judged: Judged, *, rel: float = 1) -> Floats:
    """Count the relevant documents, retrieved or not; added up over queries."""
    return judged.n_relevant(rel).astype(np.float64)


@family(
    "NumRelRet",
    title="number of relevant documents retrieved",
    formula="hits",
    source="Buckley & Voorhees, trec_eval",
    aggregate="sum",
    bounds=(0.0, np.inf),
    linear=True,
    spellings={"trec_eval": ("num_rel_ret",), "ranx": ("hits@{cutoff}", "hits")},
)
def num_rel_ret(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Count the relevant documents within the cut-off; added up over queries."""
    return judged.hits(rel, cutoff)
