"""Would this data be refused, and why: the answer of `Guard.status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count, few
from rankeval.contamination.fingerprint import Fingerprint
from rankeval.contamination.matching import Match
from rankeval.guard.plan import short


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
        asked = f"ledger {self.ledger} at {short(self.head)}"
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
