"""A candidate at a gate: its ranking and its scores, and what else the ledger knows of the queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import InvalidInput
from rankeval.guard.collection import RegisteredCollection
from rankeval.guard.gate.decisions import GateRecord
from rankeval.guard.gate.terms import Terms
from rankeval.guard.loaded import LoadedCollection, Ranking, output_digest
from rankeval.guard.records import Records
from rankeval.guard.standing.exposure import is_few


@dataclass(frozen=True, eq=False)
class Candidate:
    """A ranking at a gate.

    Attributes
    ----------
    name : str
        The system.
    ranking : ndarray or Run
        Its ranking.
    output : str
        The hash of its ranking output.
    """

    name: str
    ranking: Ranking
    output: str

    @classmethod
    def of(cls, loaded: LoadedCollection, name: str, system: Any) -> Candidate:
        """Return the ranking of a system from its scores, its fitted model or its run."""
        ranking = loaded.ranking(name, system)
        return cls(name, ranking, output_digest(loaded.outputs(ranking)))


def scores_of(loaded: LoadedCollection, system: Candidate, terms: Terms) -> NDArray[np.float64]:
    """Return the scores of a system by query, in the order of the content."""
    evaluation = loaded.evaluate(system.name, system.ranking, [terms.measure], terms.convention)
    scores = loaded.by_content(evaluation)[:, 0]
    lacking = ~np.isfinite(scores)
    if lacking.any():
        query = loaded.prints.names_by_content[lacking][0]
        raise InvalidInput(
            f"{system.name!r} has no score by {terms.measure} on {count(int(lacking.sum()), 'query')}, such as "
            f"{query!r}: declare a gate by a convention that scores every query"
        )
    return scores


def exposed(records: Records, test: RegisteredCollection, gate: GateRecord | None = None) -> int:
    """Return how many queries of a collection somebody looked at, apart from the decisions of a gate; 0 if few."""
    own = set() if gate is None else {entry.hash for entry in gate.decided}
    exposure = records.exposure
    queries = exposure.queries_of(about(test, records))
    others = [one for one in exposure.exposing(records.project) if one.hash not in own]
    n_exposed = int(exposure.exposed(queries, others).sum())
    return 0 if is_few(n_exposed, len(queries)) else n_exposed


def exposed_words(n_exposed: int, test: RegisteredCollection) -> str:
    """Say what looks beside the gate mean for it."""
    return (
        f"{n_exposed} of {count(test.n_queries, 'query')} of {test.name!r} were looked at outside of this gate. Its "
        "level does not hold for candidates that such a look helped to make: declare a gate on fresh queries"
    )


def registration_of(records: Records, test: RegisteredCollection) -> str:
    """Return the id of the registration of a collection."""
    return records.registered(test).hash


def about(test: RegisteredCollection, records: Records) -> dict[str, Any]:
    """Return the keys by which entries name a collection."""
    return {
        "registration": registration_of(records, test),
        "queries": None,
        "digest": test.digest,
        "collection": test.name,
    }
