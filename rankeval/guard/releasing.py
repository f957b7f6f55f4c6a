"""What is refused, and how it is released.

`Guard.status` says if some data would be refused, and why. If it would be for no good reason, such
as a legitimate overlap, the queries found are exempted; a collection that is no test any more is
retired. Both are entries of the ledger, for good: who wrote them, when and why can be read there,
and plans frozen later count these queries as exposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few, refuse, require
from rankeval._display import Displayed, View
from rankeval._visible import escaping
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.hashing import text_hashes
from rankeval.contamination.matching import Match
from rankeval.errors import InvalidInput
from rankeval.guard.checks import check_text
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.exposure import keep_places, union
from rankeval.guard.journal import Journal, Records
from rankeval.io.columns import as_typed
from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import mention, short


@escaping
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Status(Displayed):
    """Whether some data is registered test content.

    Attributes
    ----------
    refused : bool
        Whether it would be refused. Rankings that were opened are accepted all the same, and
        nothing is refused while ledgers are switched off.
    collection, project : str, optional
        The registered collection that it matches best, if any.
    why : str
        The evidence in words.
    rows : ndarray of bool of shape (n_rows,)
        The rows of registered queries: ``X[~status.rows]`` is the rest.
    queries : list
        The ids of these queries in the data.
    n_matched, n_to_refuse : int
        Registered queries that are in the data, and how many are needed to refuse it.
    n_unaccounted : int
        Registered queries of that collection that were not found. If they may be in the data in a
        form that nothing shows, leave them out by their ids in the source of the data.
    ledger, head : str
        The ledger that was asked.
    matched : mapping of str to ndarray of int
        Id of a registration -> the places of its queries that are in the data.
    """

    refused: bool = False
    collection: str | None = None
    project: str | None = None
    why: str = "nothing of it is registered"
    queries: list[Any]
    n_matched: int = 0
    n_to_refuse: int = 0
    n_unaccounted: int = 0
    ledger: str
    head: str
    rows: NDArray[np.bool_] = field(repr=False)
    matched: Mapping[str, NDArray[Any]] = field(repr=False)

    def __bool__(self) -> bool:
        return self.refused

    @property
    def words(self) -> str:
        """The answer in a sentence."""
        verdict = "would be refused" if self.refused else "would not be refused"
        ledger = mention(self.ledger, short(self.head))
        if self.refused and self.n_unaccounted:
            rest = "if they may be in the data too, leave them out by their ids in its source"
            ledger = f"{self.n_unaccounted} of its queries were not found: {rest}; {ledger}"
        if not self.queries:
            return f"{verdict}: {self.why} ({ledger})"
        return (
            f"{verdict}: {self.why}; {count(len(self.queries), 'query')} of the data, {few(self.queries)}, in "
            f"{count(int(self.rows.sum()), 'row')} ({ledger})"
        )

    def _view(self) -> View:
        rest = ["~status.rows marks the rest"] if self.queries else []
        return View([self.words], notes=rest)


def status_of(
    matches: Sequence[Match], fingerprint: Fingerprint, *, ledger: str, head: str, off: bool
) -> Status:
    """Sum up matches by the strongest of them."""
    queries = np.logical_or.reduce(
        [np.zeros(fingerprint.n_queries, dtype=bool), *(match.queries for match in matches)]
    )
    shared = {
        "queries": fingerprint.names[queries].tolist(),
        "rows": queries[fingerprint.codes],
        "matched": {
            match.registered.id: np.flatnonzero(match.matched)
            for match in matches
            if match.n_matched
        },
        "ledger": ledger,
        "head": head,
    }
    best = max(matches, key=lambda match: match.strength, default=None)
    if best is None or not (best.refused or best.queries.any() or best.same_labels):
        return Status(**shared)
    content = best.registered
    link = "it contains" if best.refused else "there is weak evidence that it contains"
    why = f"{link} queries of {content.name!r} of project {content.project!r}: {best.why}"
    return Status(
        **shared,
        why=f"{why}; but the ledger is switched off in this process"
        if best.refused and off
        else why,
        refused=best.refused,
        collection=content.name,
        project=content.project,
        n_matched=best.n_matched,
        n_to_refuse=content.n_to_refuse,
        n_unaccounted=best.n_unaccounted,
    )


def exempt(
    journal: Journal,
    collection: RegisteredCollection | str,
    queries: Iterable[Any] | Status,
    reason: str,
) -> int:
    """Record that some queries of a collection may be used elsewhere."""
    check_text("reason", reason, "why the queries are exempted; it goes on record")
    expected = "a list of query ids, or the result of guard.status"
    require(not isinstance(queries, str), "queries", queries, expected)
    ids = [] if isinstance(queries, Status) else list(queries)

    def record(records: Records) -> int:
        entry, exposure = records.registered_by_anybody(collection), records.exposure
        wanted = (
            _matched(records, entry, queries)
            if isinstance(queries, Status)
            else _with_ids(records, entry, ids)
        )
        classes = exposure.classes[entry.hash]
        new = wanted[np.isin(classes[wanted], _protected(records))]
        if not len(new):
            return 0
        # The same queries stand in other registrations, where they must not be refused either.
        everywhere = {
            registration: np.flatnonzero(np.isin(there, classes[new]))
            for registration, there in exposure.classes.items()
        }
        body = _about(entry) | {
            "queries": keep_places(journal.ledger, new),
            "everywhere": journal.ledger.keep("signatures", everywhere),
            "n_queries": len(new),
            "owner": entry.project,
            "reason": reason,
        }
        journal.append(records, ("exempt", body))
        return len(new)

    return journal.transact(record)


def retire(journal: Journal, collection: RegisteredCollection | str, reason: str) -> None:
    """Record that a collection of the project, with all its revisions, is no test any more."""
    check_text("reason", reason, "why the collection is given up; it goes on record")

    def record(records: Records) -> None:
        entry = records.unretired(collection)
        revisions = [
            revision
            for revision in records.named(entry.body["name"])
            if revision.hash not in records.retired
        ]
        notes = [
            ("retire", _about(revision) | {"queries": None, "reason": reason})
            for revision in revisions
        ]
        journal.append(records, *notes)

    journal.transact(record)


def _about(entry: Entry) -> dict[str, Any]:
    return {"registration": entry.hash, "name": entry.body["name"], "digest": entry.body["digest"]}


def _protected(records: Records) -> NDArray[np.int64]:
    """Return the classes of queries that some registration still protects.

    A registration of another clone may have come after an exemption without knowing of it.
    """
    classes = records.exposure.classes
    protected = [
        classes[content.id] if content.exempt is None else classes[content.id][~content.exempt]
        for content in records.contents
    ]
    return union(protected)


def _with_ids(records: Records, entry: Entry, ids: list[Any]) -> NDArray[np.intp]:
    """Return the places of query ids in a registration, which keeps only hashes of them."""
    if not ids:
        raise InvalidInput("queries is empty: give the ids of the queries")
    known = next(content.signature.ids for content in records.contents if content.id == entry.hash)
    hashes = text_hashes(as_typed(ids, "queries"))
    missing = [query for query, here in zip(ids, np.isin(hashes, known), strict=True) if not here]
    are = "is" if len(missing) == 1 else "are"
    refuse(
        (
            missing,
            f"{count(len(missing), 'id')} in queries= {are} not in {entry.body['name']!r}: {few(missing)}",
        )
    )
    return np.flatnonzero(np.isin(known, hashes))


def _matched(records: Records, entry: Entry, status: Status) -> NDArray[np.intp]:
    """Return the places in a registration of the queries that a status found there or in linked collections."""
    classes = records.exposure.classes
    matched = [
        classes[registration][places]
        for registration, places in status.matched.items()
        if registration in classes
    ]
    places = np.flatnonzero(np.isin(classes[entry.hash], union(matched)))
    if not len(places):
        raise InvalidInput(f"the status found no query of {entry.body['name']!r}: {status.words}")
    return places
