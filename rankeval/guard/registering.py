"""The first step of the protocol: record a collection, its links to others, and the findings of the checks.

A name stands for one collection of a project, which may change. If the same queries come again,
with another feature or a few other labels, that is a revision: a new entry that names the one
before. If the set of queries changes, the caller says so with ``supersedes=``. Looks belong to
queries, so they carry over either way, and to any other collection that holds some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankeval.contamination.evidence import ENOUGH_BITS, bayes_factor_bits
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match, match_content
from rankeval.contamination.registered import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput, LedgerError, warn
from rankeval.guard.checks import NO_AIM, Aim, Finding, Registration, run_checks
from rankeval.guard.collection import LoadedCollection, RegisteredCollection
from rankeval.guard.exposure import union
from rankeval.guard.journal import Journal, Records
from rankeval.join.matching import Hashes
from rankeval.ledger.entry import Entry
from rankeval.ledger.ledger import Ledger


def register(
    journal: Journal,
    name: str,
    loaded: LoadedCollection,
    supersedes: RegisteredCollection | str | None = None,
    aim: Aim = NO_AIM,
) -> RegisteredCollection:
    """Record a collection and the findings of the checks, unless it is on record."""
    fingerprint = loaded.prints
    if not fingerprint.n_queries:
        raise InvalidInput("the collection has no rows")
    content = RegisteredContent(
        signature=Signature.of(fingerprint),
        project=journal.project,
        name=name,
        digest=fingerprint.digest,
        id="",
        who="",
        time="",
    )
    new = Registration(
        fingerprint, content, loaded.labels, (), ranks_rows=loaded.qrels is None, aim=aim
    )

    def record(records: Records) -> RegisteredCollection:
        entry = _on_record(records, new)
        # Exempted queries are linked too.
        matches = [
            replace(
                match_content(replace(known, exempt=None), fingerprint, for_looks=True),
                registered=known,
            )
            for known in records.contents
        ]
        revised = (
            _predecessor(records, new, matches, supersedes)
            if entry is None
            else entry.body["revises"]
        )
        # The checks run for a collection on record too: its findings are shown again, without a
        # warning.
        findings = _findings(records, new, matches, revised)
        if entry is not None:
            registration = entry.hash
            head = records.head
        else:
            registration = head = journal.append(
                records, ("register", _body(records, new, matches, revised, findings))
            )
            for finding in findings:
                if finding.severity == "warning":
                    warn(f"{finding.code} {name!r}: {finding.message}")
        return RegisteredCollection(
            name=name,
            project=records.project,
            id=registration,
            digest=fingerprint.digest,
            n_queries=fingerprint.n_queries,
            n_rows=len(fingerprint.codes),
            n_identifiable=content.n_identifiable,
            findings=findings,
            revises=revised,
            ledger=records.where,
            head=head,
            content=loaded,
        )

    return journal.transact(record)


def _on_record(records: Records, new: Registration) -> Entry | None:
    entries = [
        entry
        for entry in records.named(new.content.name)
        if entry.body["digest"] == new.content.digest
    ]
    if entries and entries[-1].hash in records.retired:
        _refuse_retired(new.content.name, records.retired[entries[-1].hash])
    return entries[-1] if entries else None


def _refuse_retired(name: str, reason: str) -> NoReturn:
    raise LedgerError(
        f"this content was retired as {name!r} ({reason}) and may have been fitted on since: it can never be a test "
        "again. Register queries that were not in it"
    )


def _predecessor(
    records: Records,
    new: Registration,
    matches: list[Match],
    supersedes: RegisteredCollection | str | None,
) -> str | None:
    """Return the id of the registration that the new one revises or supersedes; None for a new collection."""
    for match in matches:
        theirs = match.registered
        if theirs.project == records.project and theirs.retired is not None and match.refused:
            _refuse_retired(theirs.name, theirs.retired)
    superseded = None if supersedes is None else records.registered(supersedes)
    registrations = records.named(new.content.name)
    if not registrations or (
        superseded is not None and superseded.body["name"] == new.content.name
    ):
        return None if superseded is None else superseded.hash
    ids = {entry.hash for entry in registrations}
    revised = [
        match for match in matches if match.registered.id in ids and is_revision(match, new.data)
    ]
    if not revised:
        last = registrations[-1].body
        name = new.content.name
        raise LedgerError(
            f"{name!r} is registered with other content: {last['n_queries']} queries, and this has "
            f"{new.data.n_queries}. If this takes its place, pass supersedes={name!r}, and looks carry over. Else "
            "choose another name"
        )
    return superseded.hash if superseded is not None else revised[-1].registered.id


def _findings(
    records: Records, new: Registration, matches: list[Match], revised: str | None
) -> tuple[Finding, ...]:
    """Run the checks; the collection itself and all that it revises or supersedes are no other collections."""
    lineage = _lineage(records, new.content.name, revised)
    own = _with_parts(records, [entry.hash for entry in lineage])
    others = tuple(
        match
        for match in matches
        if match.registered.retired is None and match.registered.id not in own
    )
    retired = tuple(match for match in matches if match.registered.retired is not None)
    return run_checks(replace(new, others=others, retired=retired))


def _with_parts(records: Records, ids: list[str]) -> set[str]:
    """Return some registrations, and those of the project that are subsets of these under other names."""
    classes = records.exposure.classes
    queries = union(classes[registration] for registration in ids)
    own = [entry.hash for entry in records.own]
    return {*ids, *(part for part in own if np.isin(classes[part], queries).all())}


def _lineage(records: Records, name: str, revised: str | None) -> list[Entry]:
    """Return the registrations under a name, and those that they and a new one revise or supersede."""
    by_id = records.exposure.registrations
    names = [name] if revised is None else [name, by_id[revised].body["name"]]
    lineage: list[Entry] = []
    for known in names:  # grows while it is read
        registrations = records.named(known)
        older = (
            by_id[entry.body["revises"]].body["name"]
            for entry in registrations
            if entry.body["revises"] is not None
        )
        names += [earlier for earlier in dict.fromkeys(older) if earlier not in names]
        lineage += registrations
    return lineage


def _body(
    records: Records,
    new: Registration,
    matches: list[Match],
    revised: str | None,
    findings: tuple[Finding, ...],
) -> dict[str, object]:
    fingerprint = new.data
    # A revision has the queries of all earlier ones of its name.
    earlier = {entry.hash for entry in records.named(new.content.name)} | {revised}
    links = [
        link_to(
            match,
            fingerprint,
            is_successor=revised is not None and match.registered.id in earlier,
        )
        for match in recognised_together(matches, fingerprint)
    ]
    signatures = records.ledger.keep("signatures", new.content.signature.arrays())
    # By code: a sentence may name query ids, which nobody must be able to read in a ledger.
    counts = dict(Counter(finding.code for finding in findings))
    return {
        "name": new.content.name,
        "digest": fingerprint.digest,
        "n_queries": fingerprint.n_queries,
        "n_rows": len(fingerprint.codes),
        "revises": revised,
        "signatures": signatures,
        "findings": counts,
        **kept_links(records.ledger, links),
    }


Places = NDArray[np.int64]
"""Places of queries in the order of the content."""


@dataclass(frozen=True, eq=False)
class Link:
    """The queries that a new registration shares with an earlier one."""

    match: Match  # The evidence
    own: Places  # (k,): The places of the same queries in the new registration and in the earlier one
    other: Places

    @property
    def released(self) -> Places:
        """The places of the new registration whose queries were exempted in the earlier one."""
        exempt = self.match.registered.exempt
        return self.own[:0] if exempt is None else self.own[exempt[self.other]]


def is_revision(match: Match, fingerprint: Fingerprint) -> bool:
    """Return whether data is a registered collection with other features or a few other labels: query for query."""
    signature = match.registered.signature
    if signature.n_queries != fingerprint.n_queries:
        return False
    all_matched = all(
        len(np.unique(match.pairs[:, side])) == fingerprint.n_queries for side in (0, 1)
    )
    return all_matched or (
        match.refused and np.array_equal(np.sort(signature.ids), np.sort(fingerprint.ids))
    )


def link_to(match: Match, fingerprint: Fingerprint, *, is_successor: bool) -> Link:
    """Return the link to a registered collection."""
    pairs = match.pairs
    if is_successor:
        pairs = np.concatenate([pairs, _by_id(match, fingerprint)])
    # The place of each query in the order of the content, in which entries count queries.
    place = np.empty(fingerprint.n_queries, dtype=np.int64)
    place[np.argsort(fingerprint.content, kind="stable")] = np.arange(fingerprint.n_queries)
    return Link(match, place[pairs[:, 0]], pairs[:, 1].astype(np.int64))


def recognised_together(matches: Sequence[Match], fingerprint: Fingerprint) -> list[Match]:
    """Return the matches with the queries that only several collections together show.

    Each query of the data counts once, and with its weakest evidence: the versions of a collection
    are no witnesses for each other. Queries with the same id and labels of their own are evidence
    against, as within one collection.
    """
    unknown = {
        place: _weighed(match, fingerprint)
        for place, match in enumerate(matches)
        if not len(match.pairs)
    }
    # The weakest evidence: two versions of one collection would else testify twice for the same
    # query.
    weakest: dict[int, NDArray[np.float64]] = {}
    for pairs, ratios in unknown.values():
        for query, ratio in zip(pairs[:, 0].tolist(), ratios, strict=True):
            weakest[query] = min(ratio, weakest.get(query, ratio), key=np.max)
    if bayes_factor_bits(np.array(list(weakest.values()))) < ENOUGH_BITS:
        return list(matches)
    agreeing = [query for query, ratio in weakest.items() if ratio.max() > 0]
    together = list(matches)
    for place, (pairs, _) in unknown.items():
        shown = pairs[np.isin(pairs[:, 0], agreeing)]
        together[place] = replace(together[place], pairs=shown)
    return together


def kept_links(ledger: Ledger, links: Sequence[Link]) -> dict[str, Any]:
    """Keep links and what they release in files of the ledger, and return what the entry says of them."""
    linked = [link for link in links if len(link.own)]
    arrays: Mapping[str, NDArray[Any]] = {
        f"{place}.{side}": ends
        for place, link in enumerate(linked)
        for side, ends in (("own", link.own), ("other", link.other))
    }
    released = union(link.released for link in links)
    return {
        "links": {
            "to": [link.match.registered.id for link in linked],
            "pairs": ledger.keep("signatures", arrays) if linked else None,
        },
        "released": ledger.keep("signatures", {"places": released}) if len(released) else None,
    }


def _by_id(match: Match, fingerprint: Fingerprint) -> NDArray[np.int64]:
    """Return the pairs with the same id of which neither query was found otherwise.

    If most of the queries that were found have other ids now, ids were given anew and say nothing.
    """
    theirs = match.registered.signature.ids
    pairs = match.pairs
    n_same = np.count_nonzero(fingerprint.ids[pairs[:, 0]] == theirs[pairs[:, 1]])
    if 2 * n_same < len(pairs):
        return pairs[:0]
    same = _equal(fingerprint.ids, theirs)
    return same[~np.isin(same[:, 0], pairs[:, 0]) & ~np.isin(same[:, 1], pairs[:, 1])]


def _weighed(
    match: Match, fingerprint: Fingerprint
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    # Pairs with the same id and size, and the evidence of their labels (`contamination.evidence`).
    theirs = match.registered.signature
    if match.shown is None or fingerprint.label_counts is None or theirs.label_counts is None:
        return np.zeros((0, 2), dtype=np.int64), np.zeros((0, 1))
    pairs = _equal(fingerprint.ids, theirs.ids)
    ratios = match.shown.ratios[pairs[:, 1]]
    weighed = ~np.isnan(ratios[:, 0]) & (
        fingerprint.label_counts.sizes[pairs[:, 0]] == theirs.label_counts.sizes[pairs[:, 1]]
    )
    return pairs[weighed], ratios[weighed]


def _equal(ours: Hashes, theirs: Hashes) -> NDArray[np.int64]:
    _, own, other = np.intersect1d(ours, theirs, return_indices=True)
    return np.stack([own, other], axis=1).astype(np.int64)
