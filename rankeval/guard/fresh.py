"""The queries of a collection that nobody has looked at, and what a plan on them can show.

Queries of which nobody can tell whether they were looked at.

A collection may be registered again with new ids, scaled features and some labels changed. Queries with changed labels
are not recognised then, though most others are. So if many queries of a looked-at collection are found and others are
not, a query that was not found here may be one of those that were not found there.

Two things tell that it is not: ids that were kept, and features that were. A query with the same rows is found whatever
its labels are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.contamination.entries import Entries
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput
from rankeval.guard.plan import Plan
from rankeval.guard.records import Records
from rankeval.guard.standing.exposure import SHARE
from rankeval.guard.standing.history import History
from rankeval.ledger.entry import Entry

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
    if here.row_entries is not None and there.row_entries is not None:
        sides = _keys(here.row_entries, own, here.n_queries), _keys(there.row_entries, other, there.n_queries)
        same[(np.intersect1d(*sides) >> np.uint64(32)).astype(np.int64)] = True
    if here.texts is not None and there.texts is not None:
        same |= (here.texts[own] == there.texts[other]) & (here.texts[own] != 0)
    return same


def _keys(rows: Entries, queries: NDArray[np.intp], n_queries: int) -> NDArray[np.uint64]:
    """Return the rows of some queries, each as one number with the place of its query among them."""
    place = np.full(n_queries, -1, dtype=np.int64)
    place[queries] = np.arange(len(queries))
    part = rows.take(place[rows.query] >= 0)
    return (place[part.query].astype(np.uint64) << np.uint64(32)) | part.value.astype(np.uint64)


TYPICAL_SD = 0.2
"""Standard deviation of differences per query that is assumed before any were seen; .15 to .20 for TREC runs."""


def fresh_places(records: Records, registration: Entry) -> NDArray[np.intp]:
    """Return the places, in the order of the content, of the queries that no entry exposes, as far as can be told.

    Parameters
    ----------
    records : Records
        The ledger.
    registration : Entry
        The entry of the collection.

    Raises
    ------
    InvalidInput
        If there are fewer than two.
    """
    exposure, body = records.exposure, registration.body
    whole = {"registration": registration.hash, "queries": None}
    exposed = exposure.exposed(exposure.queries_of(whole), exposure.exposing(records.project))
    unknown = ~exposed & untold(records, registration.hash)
    places = np.flatnonzero(~exposed & ~unknown)
    if len(places) < 2:
        said = f"fresh=True: {len(places)} of {count(len(exposed), 'query')} of {body['name']!r}"
        if unknown.any():
            raise InvalidInput(
                f"{said} are known to be new. {int(exposed.sum())} were looked at in some collection, and "
                f"{int(unknown.sum())} may be others of it: ids and features changed, so nothing tells. Register the "
                "queries under the ids that they had, and take new ones"
            )
        raise InvalidInput(
            f"{said} were never exposed. Add new queries and register them: guard.register(..., "
            f"supersedes={body['name']!r})"
        )
    return places


def note_on_fresh(records: Records, plan: Plan) -> str:
    """Return how many queries a plan tests on, and the difference that they can show.

    Parameters
    ----------
    records : Records
        The ledger.
    plan : Plan
        A plan on fresh queries.
    """
    exposure = records.exposure
    n = len(exposure.queries_of(plan.about))
    total = len(exposure.queries_of(plan.about | {"queries": None}))
    said = f"tests on {n} of {count(total, 'query')}, those not recognised as looked at"
    n_pairs = len(plan.systems) - 1
    if plan.baseline is None:
        n_pairs = n_pairs * len(plan.systems) // 2
    if not n_pairs:
        return said
    whole = History(records.standings, plan.about | {"queries": None})
    sd, source = whole.sd_of_differences(plan.measure), "as between the systems opened before"
    if sd is None:
        sd, source = TYPICAL_SD, "assumed, since no scores were opened"
    from rankeval.significance.power import detectable_difference

    found = detectable_difference(n, sd, plan.alpha / n_pairs, claim=plan.claim, margin=plan.margin, unseen=plan.unseen)
    return (
        f"{said}; a difference of about {float(found):.3f} in {plan.measure} is found with a power of 80 % if "
        f"differences have a standard deviation of {sd:.2f} ({source})"
    )
