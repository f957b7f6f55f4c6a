"""Measures of a set: the share of the retrieved that is relevant, and of the relevant retrieved.

With a cut-off k the set is the first k rows, and precision divides by k, as in trec_eval, even if
the list is shorter. Without a cut-off the set is everything retrieved.

Measures of a classification into retrieved and not retrieved also need the size of the collection.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.grammar import Chance, Count, Weight

_PRECISION_SPELLINGS = {
    "trec_eval": ("P_{cutoff}", "P{cutoff}", "set_P", "exact_prec"),
    "ir_measures": ("P@{cutoff}", "Precision@{cutoff}", "Precision", "SetP"),
    "ranx": ("precision@{cutoff}", "precision"),
}


@family(
    "P",
    title="precision",
    formula="hits(k) / k; without a cut-off hits / retrieved",
    source="Kent, Berry, Luehrs & Perry 1955",
    doi="10.1002/asi.5090060209",
    linear=True,
    monotone="grade",
    spellings=_PRECISION_SPELLINGS,
    known_as={
        "precision": ("pre", "prec", "PrecisionAt:top", "RetrievalPrecision", "PrecisionMetric")
    },
)
def precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the rows within the cut-off that are relevant.

    In [0, 1], higher is better; 0 without relevant documents, 0/0 for an empty set without a
    cut-off.
    """
    if cutoff is None:
        return ratio(judged.hits(rel), judged.n_retrieved)
    return judged.hits(rel, cutoff) / cutoff


_RECALL_SPELLINGS = {
    "trec_eval": ("recall_{cutoff}", "recall{cutoff}", "set_recall", "exact_recall"),
    "ir_measures": ("R@{cutoff}", "Recall@{cutoff}", "Recall", "SetR"),
    "ranx": ("recall@{cutoff}", "recall"),
}


@family(
    "R",
    title="recall",
    formula="hits(k) / R",
    source="Kent, Berry, Luehrs & Perry 1955",
    doi="10.1002/asi.5090060209",
    linear=True,
    monotone="order",
    spellings=_RECALL_SPELLINGS,
    known_as={"recall": ("rec", "RecallAt:top", "RetrievalRecall", "RecallMetric")},
)
def recall(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the relevant documents that are within the cut-off.

    In [0, 1], higher is better; 0/0 without relevant documents.
    """
    return ratio(judged.hits(rel, cutoff), judged.n_relevant(rel))


@family(
    "RelP",
    title="relative precision",
    formula="hits(k) / min(k, R); without a cut-off hits / min(retrieved, R)",
    source="Buckley & Voorhees, trec_eval",
    linear=True,
    spellings={
        "trec_eval": ("relative_P_{cutoff}", "set_relative_P", "exact_relative_prec"),
        "ir_measures": ("SetRelP",),
    },
    known_as={"recall capped by k": ("recall_cap", "R_cap", "capped_recall")},
)
def relative_precision(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Precision as a share of the greatest one that the number of relevant documents allows.

    In [0, 1], higher is better; 0/0 without relevant documents or for an empty set.
    """
    size = judged.n_retrieved if cutoff is None else np.full(judged.n_queries, cutoff)
    return ratio(judged.hits(rel, cutoff), np.minimum(size, judged.n_relevant(rel)))


@family(
    "SetAP",
    title="set average precision",
    formula="hits^2 / (retrieved * R)",
    source="Buckley & Voorhees, trec_eval",
    linear=True,
    spellings={"trec_eval": ("set_map", "exact_unranked_avg_prec"), "ir_measures": ("SetAP",)},
)
def set_average_precision(judged: Judged, *, rel: float = 1) -> Floats:
    """Precision times recall of everything retrieved: about the AP of the set in random order.

    In [0, 1], higher is better; 0/0 without relevant documents or for an empty set. Ties never
    matter.
    """
    return ratio(judged.hits(rel) ** 2, judged.n_retrieved * judged.n_relevant(rel))


@family(
    "Utility",
    title="linear utility of a set",
    formula="a * relevant retrieved + b * other retrieved + c * relevant missed + d * all others "
    "of the collection",
    source="Buckley & Voorhees, trec_eval; TREC filtering tracks",
    bounds=(-np.inf, np.inf),
    linear=True,
    spellings={"trec_eval": ("utility_{a},{b},{c},{d}",)},
)
def utility(
    judged: Judged,
    *,
    a: float = 1,
    b: float = -1,
    c: float = 0,
    d: float = 0,
    collection_size: Count | None = None,
    rel: float = 1,
) -> Floats:
    """Total price of the documents, with prices ``a`` to ``d`` by cell of the contingency table.

    Unbounded, higher is better. ``d``, the price of documents rightly left out, needs the size of
    the collection.
    """
    if d != 0 and collection_size is None:
        raise InvalidInput(
            f"Utility: found d={d}, the price of documents that are neither retrieved nor "
            "relevant; to count them, give collection_size=, the number of documents in the "
            "collection"
        )
    hits, n_relevant, size = judged.hits(rel), judged.n_relevant(rel), judged.n_retrieved
    value = a * hits + b * (size - hits) + c * (n_relevant - hits)
    return value if d == 0 else value + d * ((collection_size or 0) - size - n_relevant + hits)


_F_SPELLINGS = {
    "trec_eval": ("set_F", "set_F_{beta:squared}"),
    "ir_measures": ("SetF", "SetF(beta={beta:squared})"),
    "as it reads": ("SetF(beta={beta})",),
    "ranx": ("f1@{cutoff}", "f1"),
}


@family(
    "F",
    title="F measure",
    formula="(1 + beta^2) P R / (beta^2 P + R) = (1 + beta^2) hits / (beta^2 R + k); "
    "beta^2 = (1 - alpha) / alpha",
    source="van Rijsbergen 1974 and 1979",
    doi="10.1108/eb026584",
    linear=True,
    monotone="order",
    spellings=_F_SPELLINGS,
    known_as={"F1": ("f1_score", "F measure")},
)
def f_measure(
    judged: Judged,
    *,
    beta: Weight = 1,
    alpha: Chance | None = None,
    rel: float = 1,
    cutoff: int | None = None,
) -> Floats:
    """Weighted harmonic mean of precision and recall.

    In [0, 1], higher is better; 0/0 without relevant documents. ``beta`` above 1 favours recall;
    ``alpha`` is the weight of precision: 1 gives precision, 0 recall.
    """
    if alpha is not None and beta != 1:
        raise InvalidInput(f"F: give beta or alpha, not both (found beta={beta}, alpha={alpha})")
    # trec_eval's parameter is beta squared. Its root, squared again, is off in the last digit:
    # rounding repairs it.
    square = float(f"{beta**2:.15g}")
    if alpha is None:
        of_both, of_precision, of_recall = square + 1, square, 1.0
    else:
        of_both, of_precision, of_recall = 1.0, 1 - alpha, alpha
    hits, n_relevant = judged.hits(rel, cutoff), judged.n_relevant(rel)
    size = judged.n_retrieved if cutoff is None else cutoff
    p, r = ratio(hits, size, otherwise=0.0), ratio(hits, n_relevant, otherwise=0.0)
    # trec_eval's order of operations: with P = 9/20 and R = 9/44 any other order prints 0.2812 in
    # place of 0.2813.
    mean = of_precision * p + of_recall * r
    return ratio(of_both * p * r, mean, otherwise=np.where(n_relevant > 0, 0.0, np.nan))


def _expected_success(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    value = success(judged, rel=rel, cutoff=cutoff)
    prefix, begin = judged.prefix(rel), judged.offsets[:-1]
    stop = begin + judged.depth(cutoff)
    # Only a group that the cut-off divides is random, and only if there is no hit above it.
    divided = judged.groups.of(judged.groups.divided(stop))
    start, end, query = divided.of(prefix[divided.start] == prefix[begin[divided.query]])
    size, relevant, drawn = end - start, prefix[end] - prefix[start], stop[query] - start
    # The chance that all drawn rows are not relevant, row by row: (u/m) (u-1)/(m-1) ... with u of m
    # not relevant.
    none = np.ones(len(size))
    for place in range(int(drawn.max(initial=0))):
        still = place < drawn
        others = np.maximum(size - relevant - place, 0)
        none[still] *= others[still] / (size - place)[still]
    value[query] = 1 - none
    return value


_SUCCESS_ELSEWHERE = {
    "hit rate": (
        "HR",
        "Hit",
        "Hits",
        "Hit Ratio",
        "RetrievalHitRate",
        "retrieval_hit_rate",
        "HitsMetric",
    ),
    "accuracy at k of sentence-transformers and MTEB": ("accuracy", "acc", "top_k_accuracy"),
}


@family(
    "Success",
    title="success, hit rate",
    formula="1 if hits(k) > 0, else 0",
    source="Buckley & Voorhees, trec_eval",
    expected=_expected_success,
    monotone="grade",
    spellings={
        "trec_eval": ("success_{cutoff}",),
        "ir_measures": ("Success@{cutoff}",),
        "ranx": ("hit_rate@{cutoff}", "hit_rate"),
    },
    known_as=_SUCCESS_ELSEWHERE,
)
def success(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Whether a relevant document is within the cut-off.

    0 or 1, higher is better; 0 without relevant documents.
    """
    return (judged.hits(rel, cutoff) > 0).astype(np.float64)


counted: partial[family] = partial(
    family,
    source="Buckley & Voorhees, trec_eval",
    aggregate="sum",
    bounds=(0.0, np.inf),
    linear=True,
)
"""`family` for counts, which are added up over queries."""


@counted(
    "NumQ",
    title="number of queries",
    counts="rows",
    formula="1 for each query",
    bounds=(1.0, 1.0),
    monotone="grade",
    spellings={"trec_eval": ("num_q",), "ir_measures": ("NumQ",)},
)
def num_q(judged: Judged) -> Floats:
    """Count of queries: 1 for each, added up."""
    return np.ones(judged.n_queries)


@counted(
    "NumRet",
    title="number of retrieved documents",
    counts="rows",
    formula="retrieved",
    monotone="grade",
    spellings={"trec_eval": ("num_ret",), "ir_measures": ("NumRet",)},
)
def num_ret(judged: Judged) -> Floats:
    """Count of retrieved documents, added up over queries."""
    return judged.n_retrieved.astype(np.float64)


@counted(
    "NumRel",
    title="number of relevant documents",
    formula="R",
    monotone="order",
    spellings={"trec_eval": ("num_rel",), "ir_measures": ("NumRel",)},
)
def num_rel(judged: Judged, *, rel: float = 1) -> Floats:
    """Count of relevant documents, retrieved or not, added up over queries."""
    return judged.n_relevant(rel).astype(np.float64)


@counted(
    "NumRelRet",
    title="number of relevant documents retrieved",
    formula="hits",
    monotone="grade",
    spellings={
        "trec_eval": ("num_rel_ret",),
        "ir_measures": ("NumRelRet", "NumRet(rel={rel})"),
        "ranx": ("hits@{cutoff}", "hits"),
    },
)
def num_rel_ret(judged: Judged, *, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Count of relevant documents within the cut-off, added up over queries."""
    return judged.hits(rel, cutoff)


def false_and_missed(
    judged: Judged, rel: float, cutoff: int | None, collection_size: int
) -> tuple[Floats, Floats]:
    """Return the number of false positives and the number of false negatives of each query."""
    hits, relevant = judged.hits(rel, cutoff), judged.n_relevant(rel)
    seen = judged.n_retrieved - judged.hits(rel) + relevant
    if len(seen) and seen.max() > collection_size:
        raise InvalidInput(
            f"found collection_size={collection_size}, but a query has {int(seen.max())} documents "
            "that are retrieved or relevant: give the number of documents in the whole collection"
        )
    return judged.depth(cutoff) - hits, relevant - hits


@family(
    "Accuracy",
    title="accuracy",
    formula="(true positives + true negatives) / documents in the collection",
    source="Manning, Raghavan & Schütze 2008, 8.3",
    doi="10.1017/CBO9780511809071",
    linear=True,
    monotone="order",
)
def accuracy(
    judged: Judged, *, collection_size: Count, rel: float = 1, cutoff: int | None = None
) -> Floats:
    """Share of the collection's documents that are rightly retrieved or rightly left out.

    In [0, 1], higher is better. Any short list scores close to 1, since nearly no document is
    relevant. ``collection_size`` must be given. The Accuracy of ir_measures is another measure:
    here it is PairAccuracy.
    """
    wrong = np.add(*false_and_missed(judged, rel, cutoff, collection_size))
    return 1 - wrong / collection_size


@family(
    "FallOut",
    title="fall-out",
    formula="false positives / documents that are not relevant",
    source="Kent, Berry, Luehrs & Perry 1955",
    doi="10.1002/asi.5090060209",
    linear=True,
    monotone="order",
    greater_is_better=False,
)
def fall_out(
    judged: Judged, *, collection_size: Count, rel: float = 1, cutoff: int | None = None
) -> Floats:
    """Share of the documents without relevance that are retrieved.

    In [0, 1], lower is better; 0/0 if every document is relevant. ``collection_size`` must be
    given.
    """
    false, _ = false_and_missed(judged, rel, cutoff, collection_size)
    rest = collection_size - judged.n_relevant(rel)
    return ratio(false, rest)
