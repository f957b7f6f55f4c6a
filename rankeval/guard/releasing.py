"""Give up some queries of a registered collection, or all of it: on record, and for good.

Would this data be refused, and why: the answer of `Guard.status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.hashing import text_hashes
from rankeval.contamination.matching import Match
from rankeval.errors import InvalidInput
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.exposure import keep_places
from rankeval.guard.records import Journal, Records
from rankeval.io.ids import as_typed
from rankeval.ledger.entry import Entry
from rankeval.ledger.graph import mention, short


@dataclass(frozen=True, eq=False)
class Status:
    """Whether some data is registered test content.

    Attributes
    ----------
    refused : bool
        Whether it would be refused. Rankings that were opened are accepted all the same, and nothing is refused while
        ledgers are switched off.
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
        Registered queries of that collection that were not found. If they may be in the data in a form that nothing
        shows, leave them out by their ids in the source of the data.
    ledger, head : str
        The ledger that was asked.
    matched : mapping of str to ndarray of int
        Id of a registration -> the places of its queries that are in the data.
    """

    refused: bool
    collection: str | None
    project: str | None
    why: str
    queries: list[Any]
    n_matched: int
    n_to_refuse: int
    n_unaccounted: int
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
        asked = mention(self.ledger, short(self.head))
        if self.refused and self.n_unaccounted:
            rest = "if they may be in the data too, leave them out by their ids in its source"
            asked = f"{self.n_unaccounted} of its queries are unaccounted for: {rest}; {asked}"
        if not self.queries:
            return f"{verdict}: {self.why} ({asked})"
        return (
            f"{verdict}: {self.why}; {count(len(self.queries), 'query')} of the data, {few(self.queries)}, in "
            f"{count(int(self.rows.sum()), 'row')} ({asked})"
        )

    def __str__(self) -> str:
        return f"{self.words}; ~status.rows marks the rest" if self.queries else self.words

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


def status_of(found: Sequence[Match], data: Fingerprint, *, ledger: str, head: str, off: bool) -> Status:
    """Sum up matches by the strongest of them.

    Parameters
    ----------
    found : sequence of Match
        One for each registered collection.
    data : Fingerprint
        The data.
    ledger, head : str
        The ledger that was asked.
    off : bool
        Whether refusals are switched off in this process.
    """
    queries = np.logical_or.reduce([np.zeros(data.n_queries, dtype=bool), *(one.queries for one in found)])
    best = max(found, key=lambda one: one.strength, default=None)
    refused, collection, project, numbers = False, None, None, (0, 0, 0)
    why = "nothing of it is registered"
    if best is not None and (best.refused or best.queries.any() or best.same_labels):
        content, refused = best.registered, best.refused
        link = "it holds" if refused else "there is weak evidence that it holds"
        why = f"{link} queries of {content.name!r} of project {content.project!r}: {best.why}"
        if refused and off:
            why += "; but the ledger is switched off in this process"
        collection, project, numbers = (
            content.name,
            content.project,
            (
                best.n_matched,
                content.n_to_refuse,
                best.n_unaccounted,
            ),
        )
    return Status(
        refused,
        collection,
        project,
        why,
        data.names[queries].tolist(),
        *numbers,
        ledger,
        head,
        queries[data.codes],
        {one.registered.id: np.flatnonzero(one.matched) for one in found if one.n_matched},
    )


def exempt(journal: Journal, test: RegisteredCollection | str, queries: Iterable[Any] | Status, reason: str) -> int:
    """Record that some queries of a collection may be used elsewhere.

    Parameters
    ----------
    journal : Journal
        The ledger.
    test : RegisteredCollection or str
        The collection, of any project.
    queries : iterable of query id, or Status
        The queries by their registered ids, or those that `Guard.status` found.
    reason : str
        The reason.

    Returns
    -------
    int
        Number of queries that were exempted now.
    """
    _check_reason(reason, "the queries are exempted")
    if isinstance(queries, str):
        raise InvalidInput(f"queries is {queries!r}; expected a list of query ids, or the result of guard.status")
    given = queries if isinstance(queries, Status) else list(queries)

    def record(records: Records) -> int:
        entry, exposure = records.anybodys(test), records.exposure
        wanted = _matched(records, entry, given) if isinstance(given, Status) else _named(records, entry, given)
        classes = exposure.classes[entry.hash]
        new = wanted[np.isin(classes[wanted], _protected(records))]
        if not len(new):
            return 0
        everywhere = {name: np.flatnonzero(np.isin(there, classes[new])) for name, there in exposure.classes.items()}
        body = _about(entry) | {
            "queries": keep_places(journal.ledger, new),
            "everywhere": journal.ledger.keep("signatures", everywhere),
            "n_queries": len(new),
            "owner": entry.project,
            "reason": reason,
        }
        journal.append(records, ("exempt", body))
        return len(new)

    return journal.decide(record)


def retire(journal: Journal, test: RegisteredCollection | str, reason: str) -> None:
    """Record that a collection of the project, with all its revisions, is no test any more.

    Parameters
    ----------
    journal : Journal
        The ledger.
    test : RegisteredCollection or str
        The collection.
    reason : str
        The reason.
    """
    _check_reason(reason, "the collection is given up")

    def record(records: Records) -> None:
        entry = records.in_use(test)
        revisions = [one for one in records.named(entry.body["name"]) if one.hash not in records.retired]
        notes = [("retire", _about(one) | {"queries": None, "reason": reason}) for one in revisions]
        journal.append(records, *notes)

    journal.decide(record)


def _about(entry: Entry) -> dict[str, Any]:
    return {"registration": entry.hash, "name": entry.body["name"], "digest": entry.body["digest"]}


def _check_reason(reason: str, done: str) -> None:
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput(f"reason is missing: say why {done}; it goes on record")


def _protected(records: Records) -> NDArray[np.int64]:
    """Return the classes of queries that some registration still protects.

    A registration of another clone may have come after an exemption without knowing of it.
    """
    classes = records.exposure.classes
    protected = [classes[one.id] if one.exempt is None else classes[one.id][~one.exempt] for one in records.contents]
    return np.unique(np.concatenate(protected))


def _named(records: Records, entry: Entry, ids: list[Any]) -> NDArray[np.intp]:
    """Return the places of query ids in a registration, which keeps only hashes of them."""
    if not ids:
        raise InvalidInput("queries is empty: give the ids of the queries")
    known = next(one.signature.ids for one in records.contents if one.id == entry.hash)
    hashes = text_hashes(as_typed(ids, "queries"))
    missing = [one for one, here in zip(ids, np.isin(hashes, known), strict=True) if not here]
    if missing:
        raise InvalidInput(
            f"{count(len(missing), 'id')} in queries= {'is' if len(missing) == 1 else 'are'} not in "
            f"{entry.body['name']!r}: {few(missing)}"
        )
    return np.flatnonzero(np.isin(known, hashes))


def _matched(records: Records, entry: Entry, status: Status) -> NDArray[np.intp]:
    """Return the places in a registration of the queries that a status found there or in linked collections."""
    classes = records.exposure.classes
    found = [classes[name][places] for name, places in status.matched.items() if name in classes]
    places = np.flatnonzero(np.isin(classes[entry.hash], np.concatenate(found))) if found else np.zeros(0, np.intp)
    if not len(places):
        raise InvalidInput(f"the status found no query of {entry.body['name']!r}: {status}")
    return places
