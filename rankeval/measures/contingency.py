"""Measures of a classification into retrieved and not retrieved; they need the size of the collection."""

from __future__ import annotations

import numpy as np

from rankeval.errors import InvalidInput
from rankeval.join.flat import Floats, ratio
from rankeval.join.judged import Judged
from rankeval.measures.family import family
from rankeval.measures.grammar import Count
from rankeval.measures.incomplete import judged_rows, number_before


def false_and_missed(judged: Judged, rel: float, cutoff: int | None, collection_size: int) -> tuple[Floats, Floats]:
    """Return the number of false positives and the number of false negatives of each query.

    Parameters
    ----------
    judged : Judged
        The chunk.
    rel : float
        Lowest relevant label.
    cutoff : int, optional
        Deepest rank that counts as retrieved.
    collection_size : int
        Number of documents in the collection.

    Raises
    ------
    InvalidInput
        If the documents of a query, retrieved or relevant, outnumber the collection.
    """
    hits, relevant = judged.hits(rel, cutoff), judged.n_relevant(rel)
    seen = judged.n_retrieved - judged.hits(rel) + relevant
    if len(seen) and seen.max() > collection_size:
        raise InvalidInput(
            f"found collection_size={collection_size}, but a query has {int(seen.max())} documents that are retrieved "
            "or relevant: give the number of documents in the whole collection"
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
def accuracy(judged: Judged, *, collection_size: Count, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the collection's documents that are rightly retrieved or rightly left out.

    In [0, 1], higher is better. Any short list scores close to 1, since nearly no document is relevant.
    ``collection_size`` must be given. The Accuracy of ir_measures is another measure: here it is PairAccuracy.
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
def fall_out(judged: Judged, *, collection_size: Count, rel: float = 1, cutoff: int | None = None) -> Floats:
    """Share of the documents without relevance that are retrieved.

    In [0, 1], lower is better; 0/0 if every document is relevant. ``collection_size`` must be given.
    """
    false, _ = false_and_missed(judged, rel, cutoff, collection_size)
    rest = collection_size - judged.n_relevant(rel)
    return ratio(false, rest)


@family(
    "Judged",
    title="share of judged rows",
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
    return ratio(judged.mean_within(judged.ties, number_before(judged_rows(judged)), cutoff), judged.depth(cutoff))
