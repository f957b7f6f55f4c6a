"""Queries of which nobody can tell whether they were looked at.

A collection may be registered again with new ids, scaled features and some labels changed. Queries with changed labels
are not recognised then, though most others are. So if many queries of a looked-at collection are found and others are
not, a query that was not found here may be one of those that were not found there.

Two things tell that it is not: ids that were kept, and features that were. A query with the same rows is found whatever
its labels are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.entries import Entries
from rankeval.contamination.signature import Signature
from rankeval.guard.records import Records
from rankeval.guard.standing.exposure import SHARE

_MOST = 0.5
"""If at least this share of the queries that were found have the same ids, or rows, the others would have had too."""


def untold(records: Records, registration: str) -> NDArray[np.bool_]:
    """Return which queries of a collection may be ones that were looked at, although they are not recognised.

    Parameters
    ----------
    records : Records
        The ledger.
    registration : str
        Id of the collection.

    Returns
    -------
    ndarray of bool of shape (n_queries,)
        In the order of the content.
    """
    signatures = {one.id: one.signature for one in records.contents}
    classes = records.exposure.classes
    found = np.zeros(len(classes[registration]), dtype=bool)
    for other in classes:
        if other != registration:
            found |= _untold_by(records, (registration, other), signatures)
    return found


def _untold_by(records: Records, pair: tuple[str, str], signatures: dict[str, Signature]) -> NDArray[np.bool_]:
    exposure = records.exposure
    ours, theirs = (exposure.classes[one] for one in pair)
    _, own, other = np.intersect1d(ours, theirs, return_indices=True)
    looked_at = exposure.exposed(theirs, exposure.exposing(records.project)) & ~np.isin(theirs, ours)
    missing = ~np.isin(ours, theirs)
    if not looked_at.any() or len(own) < SHARE * min(len(ours), len(theirs)):
        return np.zeros(len(ours), dtype=bool)
    here, there = (signatures[one] for one in pair)
    if (here.ids[own] == there.ids[other]).mean() >= _MOST:
        return missing & np.isin(here.ids, there.ids[looked_at])
    kept = bool(_same_content(here, there, own, other).mean() >= _MOST)
    return np.zeros(len(ours), dtype=bool) if kept else missing


def _same_content(
    here: Signature, there: Signature, own: NDArray[np.intp], other: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return which pairs of queries have rows or their text in common."""
    same = np.zeros(len(own), dtype=bool)
    if here.rows is not None and there.rows is not None:
        sides = _keys(here.rows, own, here.n_queries), _keys(there.rows, other, there.n_queries)
        same[(np.intersect1d(*sides) >> np.uint64(32)).astype(np.int64)] = True
    if here.text is not None and there.text is not None:
        same |= (here.text[own] == there.text[other]) & (here.text[own] != 0)
    return same


def _keys(rows: Entries, queries: NDArray[np.intp], n_queries: int) -> NDArray[np.uint64]:
    """Return the rows of some queries, each as one number with the place of its query among them."""
    place = np.full(n_queries, -1, dtype=np.int64)
    place[queries] = np.arange(len(queries))
    part = rows.take(place[rows.query] >= 0)
    return (place[part.query].astype(np.uint64) << np.uint64(32)) | part.value.astype(np.uint64)
