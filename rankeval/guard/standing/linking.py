"""Which queries of a new registration stand in earlier ones too: links, found with the data at hand.

A collection of two or three queries is too little to be recognised once its features have changed. Twenty of them are
not: the labels of all queries in such small collections are weighed together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.evidence import ENOUGH_BITS, bayes_factor_bits
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match
from rankeval.join.matching import Hashes
from rankeval.ledger.ledger import Ledger

Places = NDArray[np.int64]
"""Places of queries in the order of the content."""


@dataclass(frozen=True, eq=False)
class Link:
    """The queries that a new registration shares with an earlier one.

    Attributes
    ----------
    found : Match
        The evidence.
    own, other : ndarray of int of shape (k,)
        The places of the same queries in the new registration and in the earlier one.
    """

    found: Match
    own: Places
    other: Places

    @property
    def released(self) -> Places:
        """The places of the new registration whose queries were exempted in the earlier one."""
        exempt = self.found.registered.exempt
        return self.own[:0] if exempt is None else self.own[exempt[self.other]]


def is_revision(found: Match, data: Fingerprint) -> bool:
    """Return whether data is a registered collection with other features or a few other labels: query for query.

    Parameters
    ----------
    found : Match
        The evidence against the registered collection.
    data : Fingerprint
        The data.
    """
    signature = found.registered.signature
    if signature.n_queries != data.n_queries:
        return False
    all_found = all(len(np.unique(found.pairs[:, side])) == data.n_queries for side in (0, 1))
    return all_found or (found.refused and np.array_equal(np.sort(signature.ids), np.sort(data.ids)))


def link_to(found: Match, data: Fingerprint, *, is_successor: bool) -> Link:
    """Return the link to a registered collection.

    Parameters
    ----------
    found : Match
        The evidence.
    data : Fingerprint
        The data of the new registration.
    is_successor : bool
        Whether it revises or supersedes the collection. Queries with the same id are the same then, even if nothing
        else shows it.
    """
    pairs = found.pairs
    if is_successor:
        pairs = np.concatenate([pairs, _by_id(found, data)])
    place = np.empty(data.n_queries, dtype=np.int64)
    place[np.argsort(data.content, kind="stable")] = np.arange(data.n_queries)
    return Link(found, place[pairs[:, 0]], pairs[:, 1].astype(np.int64))


def recognised_together(matches: Sequence[Match], data: Fingerprint) -> list[Match]:
    """Return the matches with the queries that only several collections together show.

    Each query of the data counts once, and with its weakest evidence: the versions of a collection are no witnesses
    for each other. Queries with the same id and labels of their own are evidence against, as within one collection.

    Parameters
    ----------
    matches : sequence of Match
        The matches with all registered collections.
    data : Fingerprint
        The data.
    """
    unknown = {place: _weighed(one, data) for place, one in enumerate(matches) if not len(one.pairs)}
    weakest: dict[int, NDArray[np.float64]] = {}
    for pairs, ratios in unknown.values():
        for query, ratio in zip(pairs[:, 0].tolist(), ratios, strict=True):
            weakest[query] = min(ratio, weakest.get(query, ratio), key=np.max)
    if bayes_factor_bits(np.array(list(weakest.values()))) < ENOUGH_BITS:
        return list(matches)
    agreeing = [query for query, ratio in weakest.items() if ratio.max() > 0]
    return [
        replace(one, pairs=unknown[place][0][np.isin(unknown[place][0][:, 0], agreeing)]) if place in unknown else one
        for place, one in enumerate(matches)
    ]


def kept_links(ledger: Ledger, links: Sequence[Link]) -> dict[str, Any]:
    """Keep links and what they release in files of the ledger, and return what the entry says of them.

    Parameters
    ----------
    ledger : Ledger
        The ledger.
    links : sequence of Link
        The links to other collections.
    """
    linked = [one for one in links if len(one.own)]
    arrays: Mapping[str, NDArray[Any]] = {
        f"{place}.{side}": ends
        for place, one in enumerate(linked)
        for side, ends in (("own", one.own), ("other", one.other))
    }
    released = np.unique(np.concatenate([one.released for one in links])) if links else np.zeros(0, dtype=np.int64)
    return {
        "links": {
            "to": [one.found.registered.id for one in linked],
            "pairs": ledger.keep("signatures", arrays) if linked else None,
        },
        "released": ledger.keep("signatures", {"places": released}) if len(released) else None,
    }


def _by_id(found: Match, data: Fingerprint) -> NDArray[np.int64]:
    """Return the pairs with the same id of which neither query was found otherwise.

    If most of the queries that were found have other ids now, ids were given anew and say nothing.
    """
    theirs, pairs = found.registered.signature.ids, found.pairs
    if len(pairs) and 2 * int((data.ids[pairs[:, 0]] == theirs[pairs[:, 1]]).sum()) < len(pairs):
        return pairs[:0]
    same = _equal(data.ids, theirs)
    return same[~np.isin(same[:, 0], pairs[:, 0]) & ~np.isin(same[:, 1], pairs[:, 1])]


def _weighed(found: Match, data: Fingerprint) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the pairs with the same id and size, and the evidence of their labels (`contamination.evidence`)."""
    theirs = found.registered.signature
    if found.shown is None or data.label_counts is None:
        return np.zeros((0, 2), dtype=np.int64), np.zeros((0, 1))
    pairs = _equal(data.ids, theirs.ids)
    ratios = found.shown.ratios[pairs[:, 1]]
    weighed = ~np.isnan(ratios[:, 0]) & (data.label_counts.sizes[pairs[:, 0]] == theirs.sizes[pairs[:, 1]])
    return pairs[weighed], ratios[weighed]


def _equal(ours: Hashes, theirs: Hashes) -> NDArray[np.int64]:
    _, own, other = np.intersect1d(ours, theirs, return_indices=True)
    return np.stack([own, other], axis=1).astype(np.int64)
