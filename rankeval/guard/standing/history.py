"""The outputs that a project opened on the queries of a plan: which are new, and how good the best of them looks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.standing.exposure import other_projects
from rankeval.guard.standing.standings import Standings
from rankeval.join.matching import Hashes
from rankeval.ledger.arrays import part_of
from rankeval.ledger.entry import Entry

_KINDS = ("features", "documents", "labels")
"""Kinds of rows by which two outputs are compared; the same order of any of them scores the same."""


@dataclass(frozen=True)
class History:
    """The openings by a project of the queries of one plan, parents first.

    Attributes
    ----------
    standings : Standings
        The plans of the project.
    body : mapping
        The body of the entry that froze the plan, or of any that names its queries.
    """

    standings: Standings
    body: Mapping[str, Any]

    @cached_property
    def opened(self) -> list[Entry]:
        """The openings of any of these queries."""
        return self.standings.openings_of(self.body)

    @property
    def elsewhere(self) -> int:
        """The looks of other projects at any of these queries."""
        exposure, project = self.standings.exposure, self.standings.project
        return sum(one.n_looks for one in other_projects(exposure, project, self.body, exposure.snapshot.entries))

    @property
    def first_baseline(self) -> str | None:
        """The output of the first baseline that the project declared for any of these queries."""
        exposure = self.standings.exposure
        bodies = (freezes[0].body for freezes in self.standings.frozen.values())
        plans = (body["content"] for body in bodies if exposure.shared(self.body, body))
        return next((dict(one["systems"])[one["baseline"]] for one in plans if one["baseline"] is not None), None)

    def new_looks(self, systems: Mapping[str, str], outputs: Mapping[str, Mapping[str, Hashes]]) -> tuple[str, ...]:
        """Return the systems with new outputs: those that rank some query as no opening of the project did.

        So rankings that were opened part by part are no new look on the whole, nor on another part. The first baseline
        that was declared for a query is free there, and equal outputs count once.

        Parameters
        ----------
        systems : mapping of str to str
            System -> the digest of its output.
        outputs : mapping
            System -> kind of row -> the hash of its output for each query, in the order of the content.
        """
        # A baseline is what one starts from: its score is published, or was the reason for the work.
        seen = {self.first_baseline, *(output for entry in self.opened for output in entry.body["systems"].values())}
        new = []
        for name, output in systems.items():
            if output not in seen and not (self._opened_before(outputs[name]) | self._free_of(output)).all():
                new.append(name)
                seen.add(output)
        return tuple(new)

    @property
    def looks(self) -> set[str]:
        """The outputs whose opening was a look."""
        return {entry.body["systems"][name] for entry in self.opened for name in entry.body["looks"]}

    def scores_of_looks(self, measure: str) -> dict[str, NDArray[np.float64]]:
        """Return the scores of these queries by one measure, for each opened output; nan where it was not opened.

        Parameters
        ----------
        measure : str
            Name of a measure.
        """
        found: dict[str, NDArray[np.float64]] = {}
        for entry, places, arrays in self._aligned:
            if measure in entry.body["measures"]:
                column, n_measures = entry.body["measures"].index(measure), len(entry.body["measures"])
                for place, output in enumerate(entry.body["systems"].values()):
                    scores = arrays[f"{place}.scores"].reshape(-1, n_measures)
                    # Another measure order or a later opening gives the same scores of the same output.
                    found.setdefault(output, np.where(places >= 0, scores[places, column], np.nan))
        return found

    def sd_of_differences(self, measure: str) -> float | None:
        """Return the standard deviation of differences per query, on average over pairs that were opened together.

        Parameters
        ----------
        measure : str
            Name of a measure.

        Returns
        -------
        float or None
            None if no two systems were opened by this measure.
        """
        found = []
        for entry in self.opened:
            if measure in entry.body["measures"]:
                column, n_measures = entry.body["measures"].index(measure), len(entry.body["measures"])
                arrays = self.standings.exposure.ledger.load(entry.body["outputs"])
                systems = [
                    arrays[f"{place}.scores"].reshape(-1, n_measures)[:, column]
                    for place in range(len(entry.body["systems"]))
                ]
                found += [float(np.nanstd(one - other, ddof=1)) for one, other in combinations(systems, 2)]
        varied = [one for one in found if one > 0]
        return float(np.mean(varied)) if varied else None

    def _opened_before(self, output: Mapping[str, Hashes]) -> NDArray[np.bool_]:
        """Return which of these queries an opening ranked as an output does, on whatever collection."""
        opened = np.zeros(len(self.standings.exposure.queries_of(self.body)), dtype=bool)
        for places, known in self._outputs:
            for kind in _KINDS:
                if kind in output and kind in known:
                    opened |= (places >= 0) & (output[kind] == known[kind][places])
        return opened

    def _free_of(self, output: str) -> NDArray[np.bool_]:
        """Return the queries on which an output is free: it is the plan's baseline, and none was declared before."""
        exposure, content = self.standings.exposure, self.body["content"]
        queries = exposure.queries_of(self.body)
        if content["baseline"] is None or dict(content["systems"])[content["baseline"]] != output:
            return np.zeros(len(queries), dtype=bool)
        bodies = (freezes[0].body for freezes in self.standings.frozen.values())
        before = takewhile(lambda body: body["plan"] != self.body["plan"], bodies)
        declared = [exposure.queries_of(body) for body in before if body["content"]["baseline"] is not None]
        return ~np.isin(queries, np.concatenate(declared)) if declared else np.ones(len(queries), dtype=bool)

    @cached_property
    def _outputs(self) -> list[tuple[NDArray[np.intp], dict[str, Hashes]]]:
        """The opened outputs: the places of these queries there, and the hashes by kind."""
        return [
            (places, part_of(arrays, f"{place}.outputs."))
            for entry, places, arrays in self._aligned
            for place in range(len(entry.body["systems"]))
        ]

    @cached_property
    def _aligned(self) -> list[tuple[Entry, NDArray[np.intp], dict[str, NDArray[Any]]]]:
        """The openings with the places of these queries there, -1 for those that they lack, and the arrays."""
        exposure = self.standings.exposure
        return [
            (entry, exposure.places_in(self.body, entry.body), exposure.ledger.load(entry.body["outputs"]))
            for entry in self.opened
        ]


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
