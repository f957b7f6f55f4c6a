"""The first step of the protocol: record a collection and the findings of the checks."""

from __future__ import annotations

from rankeval.contamination.matching import match
from rankeval.contamination.register import content_of
from rankeval.contamination.signature import Signature
from rankeval.errors import InvalidInput, warn
from rankeval.guard.checks import Registration, run_checks
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.loaded import LoadedCollection
from rankeval.guard.records import Journal, Records


def register(journal: Journal, name: str, content: LoadedCollection) -> RegisteredCollection:
    """Record a collection and the findings of the checks, unless it is on record.

    Parameters
    ----------
    journal : Journal
        The ledger.
    name : str
        Name of the collection.
    content : LoadedCollection
        Its data.
    """
    data = content.prints
    if not data.n_queries:
        raise InvalidInput("the collection has no rows")
    arrays = Signature.of(data).arrays()
    body = {"name": name, "digest": data.digest, "n_queries": data.n_queries, "n_rows": len(data.codes)}

    def record(records: Records) -> RegisteredCollection:
        before, head = records.same(name, data.digest), records.head
        # The checks run for a collection on record too: its findings are shown again, without a warning.
        registered = before or content_of(
            arrays, project=journal.project, name=name, digest=data.digest, id="", who="", time=""
        )
        others = tuple(match(one, data) for one in records.in_force() if one.digest != data.digest)
        found = run_checks(Registration(data, registered, content.labels, others))
        if before is None:
            findings = [[one.code, one.message] for one in found]
            kept = {"signatures": journal.ledger.keep("signatures", arrays), "findings": findings}
            head = journal.append(records, ("register", body | kept))
            for one in found:
                if one.severity == "warning":
                    warn(f"{one.code} {name!r}: {one.message}")
        return RegisteredCollection(
            name=name,
            project=journal.project,
            digest=data.digest,
            n_queries=data.n_queries,
            n_rows=len(data.codes),
            n_identifiable=registered.n_identifiable,
            findings=found,
            ledger=records.where,
            head=head,
            content=content,
        )

    return journal.decide(record)
