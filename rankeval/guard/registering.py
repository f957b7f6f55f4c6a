"""The first step of the protocol: record a collection, its links to others, and the findings of the checks.

A name stands for one collection of a project, which may change. If the same queries come again, with another feature or
a few other labels, that is a revision: a new entry that names the one before. If the set of queries changes, the caller
says so with ``supersedes=``. Looks belong to queries, so they carry over either way, and to any other collection that
holds some of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from rankeval.contamination.matching import Match, match
from rankeval.contamination.register import RegisteredContent
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput, LedgerError, warn
from rankeval.guard.checks import NO_AIM, Aim, Finding, Registration, run_checks
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.loaded import LoadedCollection
from rankeval.guard.records import Journal, Records
from rankeval.guard.standing.linking import is_revision, kept_links, link_to, recognised_together
from rankeval.ledger.entry import Entry


@dataclass(frozen=True, eq=False)
class _New:
    """A collection about to be registered."""

    name: str
    content: LoadedCollection
    signature: Signature
    aim: Aim

    def found_in(self, records: Records) -> list[Match]:
        """Return its matches with all registered collections; exempted queries are linked too."""
        data = self.content.prints
        return [replace(match(replace(one, exempt=None), data), registered=one) for one in records.contents]


def register(
    journal: Journal,
    name: str,
    content: LoadedCollection,
    supersedes: RegisteredCollection | str | None = None,
    aim: Aim = NO_AIM,
) -> RegisteredCollection:
    """Record a collection and the findings of the checks, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    name : str
        Name of the collection.
    content : LoadedCollection
        Its data.
    supersedes : RegisteredCollection or str, optional
        The collection that it takes the place of.
    aim : Aim
        The difference that is to be found on it.
    """
    data = content.prints
    if not data.n_queries:
        raise InvalidInput("the collection has no rows")
    new = _New(name, content, Signature.of(data), aim)

    def record(records: Records) -> RegisteredCollection:
        before = _on_record(records, new)
        matches = new.found_in(records)
        if before is None:
            _refuse_retired(records, matches)
            revised = _predecessor(records, new, matches, supersedes)
        else:
            revised = before.body["revises"]
        # The checks run for a collection on record too: its findings are shown again, without a warning.
        found = _findings(records, new, matches, revised)
        if before is not None:
            return _collection(records, new, before.hash, revised, found, records.head)
        head = journal.append(records, ("register", _body(records, new, matches, revised, found)))
        for one in found:
            if one.severity == "warning":
                warn(f"{one.code} {name!r}: {one.message}")
        return _collection(records, new, head, revised, found, head)

    return journal.decide(record)


def _on_record(records: Records, new: _New) -> Entry | None:
    """Return the entry that registered this content under this name; None if there is none yet."""
    digest = new.content.prints.digest
    found = [entry for entry in records.named(new.name) if entry.body["digest"] == digest]
    if found and found[-1].hash in records.retired:
        raise LedgerError(_retired(new.name, records.retired[found[-1].hash]))
    return found[-1] if found else None


def _refuse_retired(records: Records, matches: list[Match]) -> None:
    """Refuse queries that this project retired, as many as would have been refused elsewhere before."""
    for found in matches:
        content = found.registered
        if content.project == records.project and content.retired is not None and found.refused:
            raise LedgerError(_retired(content.name, content.retired))


def _retired(name: str, reason: str) -> str:
    return (
        f"this content was retired as {name!r} ({reason}) and may have been fitted on since: it can never be a test "
        "again. Register queries that were not in it"
    )


def _predecessor(
    records: Records, new: _New, matches: list[Match], supersedes: RegisteredCollection | str | None
) -> str | None:
    """Return the id of the registration that the new one revises or supersedes; None for a new collection.

    Raises
    ------
    LedgerError
        If the name stands for other content, and the caller does not say that this takes its place.
    """
    declared = None if supersedes is None else records.registered(supersedes)
    named = records.named(new.name)
    if not named or (declared is not None and declared.body["name"] == new.name):
        return None if declared is None else declared.hash
    ids = {entry.hash for entry in named}
    revised = [one for one in matches if one.registered.id in ids and is_revision(one, new.content.prints)]
    if not revised:
        last = named[-1].body
        raise LedgerError(
            f"{new.name!r} is registered with other content ({last['n_queries']} queries, digest {last['digest'][:12]};"
            f" this has {new.content.prints.n_queries} and {new.content.prints.digest[:12]}). If this takes its place, "
            f"say so, and looks carry over: guard.register({new.name!r}, ..., supersedes={new.name!r}). Else choose "
            "another name"
        )
    return declared.hash if declared is not None else revised[-1].registered.id


def _findings(records: Records, new: _New, matches: list[Match], revised: str | None) -> tuple[Finding, ...]:
    """Run the checks; the collection itself and all that it revises or supersedes are no other collections."""
    registered = _content(records, new)
    own = _with_parts(records, [entry.hash for entry in _line(records, new.name, revised)])
    others = tuple(one for one in matches if one.registered.retired is None and one.registered.id not in own)
    retired = tuple(one for one in matches if one.registered.retired is not None)
    ranks_rows = new.content.qrels is None
    return run_checks(
        Registration(
            new.content.prints, registered, new.content.labels, others, retired, ranks_rows=ranks_rows, aim=new.aim
        )
    )


def _with_parts(records: Records, line: list[str]) -> set[str]:
    """Return some registrations, and those of the project that hold none but their queries under other names."""
    exposure = records.exposure
    if not line:
        return set()
    held = np.concatenate([exposure.classes[one] for one in line])
    names = (name for name, entry in exposure.registrations.items() if entry.project == records.project)
    return {*line, *(name for name in names if np.isin(exposure.classes[name], held).all())}


def _line(records: Records, name: str, revised: str | None) -> list[Entry]:
    """Return the registrations under a name, and those that they and a new one revise or supersede."""
    of_id = records.exposure.registrations
    names = [name] if revised is None else [name, of_id[revised].body["name"]]
    line: list[Entry] = []
    for one in names:  # grows while it is read
        found = records.named(one)
        older = (of_id[entry.body["revises"]].body["name"] for entry in found if entry.body["revises"] is not None)
        names += [other for other in dict.fromkeys(older) if other not in names]
        line += found
    return line


def _body(
    records: Records, new: _New, matches: list[Match], revised: str | None, found: tuple[Finding, ...]
) -> dict[str, object]:
    data = new.content.prints
    # A revision has the queries of all earlier ones of its name.
    before = {entry.hash for entry in records.named(new.name)} | {revised}
    links = [
        link_to(one, data, is_successor=revised is not None and one.registered.id in before)
        for one in recognised_together(matches, data)
    ]
    return {
        "name": new.name,
        "digest": data.digest,
        "n_queries": data.n_queries,
        "n_rows": len(data.codes),
        "revises": revised,
        "signatures": records.ledger.keep("signatures", new.signature.arrays()),
        # Counts by code: a sentence may name query ids, which nobody must be able to read in a ledger.
        "findings": dict(Counter(one.code for one in found)),
        **kept_links(records.ledger, links),
    }


def _content(records: Records, new: _New) -> RegisteredContent:
    return RegisteredContent(
        signature=new.signature,
        project=records.project,
        name=new.name,
        digest=new.content.prints.digest,
        id="",
        who="",
        time="",
    )


def _collection(
    records: Records, new: _New, registration: str, revised: str | None, found: tuple[Finding, ...], head: str
) -> RegisteredCollection:
    data = new.content.prints
    return RegisteredCollection(
        name=new.name,
        project=records.project,
        id=registration,
        digest=data.digest,
        n_queries=data.n_queries,
        n_rows=len(data.codes),
        n_identifiable=new.signature.n_identifiable,
        findings=found,
        revises=revised,
        ledger=records.where,
        head=head,
        content=new.content,
    )
