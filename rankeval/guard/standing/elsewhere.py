"""What other projects saw of the queries of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankeval.guard.standing.exposure import Exposure, outputs_shown
from rankeval.ledger.entry import Entry


@dataclass(frozen=True)
class ElsewhereLooked:
    """The looks of another project at queries of a plan."""

    project: str
    n_looks: int
    n_queries: int
    who: tuple[str, ...]


def looked_elsewhere(
    exposure: Exposure, project: str, about: Mapping[str, Any], entries: Iterable[Entry]
) -> tuple[ElsewhereLooked, ...]:
    """Return the other projects that looked at some queries, and how often.

    Parameters
    ----------
    exposure : Exposure
        The queries that were looked at.
    project : str
        The project that asks.
    about : mapping
        The body of an entry that names the queries.
    entries : iterable of Entry
        The entries among which openings are looked for.
    """
    queries = exposure.queries_of(about)
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind == "open" and entry.project != project and exposure.shared(about, entry.body):
            found.setdefault(entry.project, []).append(entry)
    return tuple(
        ElsewhereLooked(
            other,
            len(outputs_shown(openings)),
            int(exposure.exposed(queries, openings).sum()),
            tuple(dict.fromkeys(entry.who for entry in openings)),
        )
        for other, openings in found.items()
    )
