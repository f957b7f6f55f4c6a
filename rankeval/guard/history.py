"""The plans and openings of one collection by one project, and the standing that they give to the next opening."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.plan import Plan
from rankeval.ledger.entry import Entry
from rankeval.ledger.ledger import Ledger

CONFIRMATORY = "confirmatory"
"""The plan was frozen before the first opening: its p-values hold, adjusted over all plans frozen by then."""
EXPLORATORY = "exploratory"
"""It was frozen later, and has new outputs: nothing can adjust for the lessons of the earlier openings."""
SECONDARY = "secondary"
"""It was frozen later, and all its outputs were opened before: it is another view of known rankings."""


@dataclass(frozen=True)
class OpeningStatus:
    """The standing of an opening.

    Attributes
    ----------
    status : {"confirmatory", "exploratory", "secondary"}
        See the constants of this module.
    looks : tuple of str
        The systems of the plan whose opening is a new look.
    n_looks : int
        Looks of the project at the collection, these included.
    family : tuple of str
        Ids of the plans that are corrected together, this one included.
    """

    status: str
    looks: tuple[str, ...]
    n_looks: int
    family: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """The plans and openings of one content, oldest first.

    Attributes
    ----------
    ledger : Ledger
        The ledger.
    project : str
        The project.
    frozen, opened : tuple of Entry
        Its entries.
    elsewhere : int
        Looks at the content by other projects.
    order : mapping of str to int
        Hash of an entry -> its place.
    """

    ledger: Ledger
    project: str
    frozen: tuple[Entry, ...]
    opened: tuple[Entry, ...]
    elsewhere: int
    order: Mapping[str, int]

    @classmethod
    def of(cls, ledger: Ledger, entries: Sequence[Entry], project: str, digest: str) -> History:
        """Pick the entries of one project about one content."""
        about = [entry for entry in entries if entry.kind in {"freeze", "open"} and entry.body.get("digest") == digest]
        own = [entry for entry in about if entry.project == project]
        return cls(
            ledger,
            project,
            tuple(entry for entry in own if entry.kind == "freeze"),
            tuple(entry for entry in own if entry.kind == "open"),
            sum(len(entry.body["looks"]) for entry in about if entry.kind == "open" and entry.project != project),
            {entry.hash: place for place, entry in enumerate(entries)},
        )

    @cached_property
    def n_looks(self) -> int:
        """Number of looks so far."""
        return sum(len(entry.body["looks"]) for entry in self.opened)

    @property
    def first_baseline(self) -> str | None:
        """The output of the first baseline that the project declared."""
        plans = (entry.body["content"] for entry in self.frozen)
        return next((dict(one["systems"])[one["baseline"]] for one in plans if one["baseline"] is not None), None)

    def opening_of(self, plan_id: str) -> Entry | None:
        """Return the entry of a plan's opening; None if it was not opened."""
        return next((entry for entry in self.opened if entry.body["plan"] == plan_id), None)

    def status_of(self, plan: Plan) -> OpeningStatus:
        """Return the standing that opening a plan now has; for an opened plan, the standing that it had then.

        Parameters
        ----------
        plan : Plan
            A frozen plan.
        """
        before = self.opening_of(plan.id)
        if before is not None:
            body = before.body
            return OpeningStatus(body["status"], tuple(body["looks"]), body["n_looks"], tuple(body["family"]))
        looks = self._new_looks(plan)
        # Nobody had seen a new output when these plans were frozen, so one correction over all of them is honest.
        first = next((self.order[entry.hash] for entry in self.opened if entry.body["looks"]), math.inf)
        frozen = (entry.body["plan"] for entry in self.frozen if self.order[entry.hash] < first)
        family = tuple(dict.fromkeys(frozen))
        if plan.id in family:
            status = CONFIRMATORY
        else:
            status, family = (EXPLORATORY if looks else SECONDARY), (plan.id,)
        return OpeningStatus(status, looks, self.n_looks + len(looks), family)

    def _new_looks(self, plan: Plan) -> tuple[str, ...]:
        """Return the systems with new outputs. The first declared baseline is free, and equal outputs count once."""
        opened = (output for entry in self.opened for output in entry.body["systems"].values())
        # A baseline is what one starts from: its score is published, or was the reason for the work.
        seen = {self.first_baseline, *opened}
        new = []
        for name, output in plan.systems:
            if output not in seen:
                new.append(name)
                seen.add(output)
        return tuple(new)

    def scores_of_looks(self, measure: str, n_queries: int) -> list[NDArray[np.float64]]:
        """Return the per-query scores by one measure of all opened outputs, each output once.

        Parameters
        ----------
        measure : str
            Name of a measure.
        n_queries : int
            Number of queries of the collection.
        """
        found: dict[str, NDArray[np.float64]] = {}
        for entry in self.opened:
            if measure in entry.body["measures"]:
                column = entry.body["measures"].index(measure)
                arrays = self.ledger.load(entry.body["outputs"])
                for place, output in enumerate(entry.body["systems"].values()):
                    scores = arrays[f"{place}.scores"].reshape(n_queries, -1)
                    # Another measure order or a later opening gives the same scores of the same output.
                    found.setdefault(output, scores[:, column])
        return list(found.values())

    def table(self) -> Any:
        """Return the looks as a DataFrame, one row per look, oldest first."""
        import pandas as pd

        columns = ["look", "time", "who", "system", "measure", "value", "status", "plan", "output"]
        rows: list[tuple[Any, ...]] = []
        for entry in self.opened:
            body = entry.body
            for name in body["looks"]:
                about = (name, body["measures"][0], body["values"][name], body["status"], body["plan"])
                rows.append((len(rows) + 1, entry.time, entry.who, *about, body["systems"][name]))
        return pd.DataFrame(rows, columns=columns).astype({"look": "int64", "value": "float64"})


def expected_inflation(n_looks: int, n_queries: int, *, sd: float, correlation: float) -> float:
    """Return the expected inflation: how much better the best of K equally good systems looks than it is.

    It is at least 0, and grows with more looks and fewer queries; it is 0 for one look. The formula is
    ``sd sqrt(1 - r) / sqrt(n) E_K`` with Blom's approximation ``E_K = Phi^-1((K - .375) / (K + .25))`` of the expected
    maximum of K standard normals (Blom 1958).

    Parameters
    ----------
    n_looks : int
        Number K of opened ranking outputs.
    n_queries : int
        Number n of queries.
    sd : float
        Standard deviation of the scores over queries.
    correlation : float
        Mean correlation r between the scores of two systems.

    Returns
    -------
    float
        On the scale of the measure.

    Examples
    --------
    >>> round(expected_inflation(10, 50, sd=0.28, correlation=0.9), 3)
    0.019
    """
    from scipy.special import ndtri

    if n_looks <= 1:
        return 0.0
    spread = sd * math.sqrt(max(0.0, 1 - correlation)) / math.sqrt(n_queries)
    return spread * float(ndtri((n_looks - 0.375) / (n_looks + 0.25)))


def inflation_of(scores: Sequence[NDArray[np.float64]], n_looks: int) -> float:
    """Return the expected inflation, with spread and correlation estimated from the opened scores.

    Parameters
    ----------
    scores : sequence of ndarray of shape (n_queries,)
        Per-query scores of the outputs opened so far.
    n_looks : int
        Number of looks.
    """
    table = np.column_stack(scores)
    table = table[np.isfinite(table).all(axis=1)]
    deviations = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(table.shape[1])
    varied = table[:, deviations > 0]
    correlation = 0.9  # typical of variants of one system; used if only one system varies
    if varied.shape[1] > 1:
        matrix = np.atleast_2d(np.corrcoef(varied, rowvar=False))
        correlation = float(matrix[np.triu_indices(len(matrix), 1)].mean())
    return expected_inflation(n_looks, max(1, len(table)), sd=float(deviations.mean()), correlation=correlation)
