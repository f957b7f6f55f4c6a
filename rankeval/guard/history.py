"""The outputs that a project opened on the queries of a plan: which are new, and how good the best of them looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.guard.elsewhere import looked_elsewhere
from rankeval.guard.standing import Standings
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
        return sum(one.n_looks for one in looked_elsewhere(exposure, project, self.body, exposure.snapshot.entries))

    @property
    def first_baseline(self) -> str | None:
        """The output of the first baseline that the project declared for any of these queries."""
        exposure = self.standings.exposure
        bodies = (freezes[0].body for freezes in self.standings.frozen.values())
        plans = (body["content"] for body in bodies if exposure.shared(self.body, body))
        return next((dict(one["systems"])[one["baseline"]] for one in plans if one["baseline"] is not None), None)

    def new_looks(self, systems: Mapping[str, str], outputs: Mapping[str, Mapping[str, Hashes]]) -> tuple[str, ...]:
        """Return the systems with new outputs. The first declared baseline is free, and equal outputs count once.

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
            if output not in seen and not self._was_opened_before(outputs[name]):
                new.append(name)
                seen.add(output)
        return tuple(new)

    def scores_of_looks(self, measure: str) -> list[NDArray[np.float64]]:
        """Return the scores of these queries by one measure, for each output that was opened on all of them.

        Parameters
        ----------
        measure : str
            Name of a measure.
        """
        found: dict[str, NDArray[np.float64]] = {}
        for entry, places, arrays in self._aligned(self.opened):
            if measure in entry.body["measures"]:
                column, n_measures = entry.body["measures"].index(measure), len(entry.body["measures"])
                for place, output in enumerate(entry.body["systems"].values()):
                    scores = arrays[f"{place}.scores"].reshape(-1, n_measures)
                    # Another measure order or a later opening gives the same scores of the same output.
                    found.setdefault(output, scores[places, column])
        return list(found.values())

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

    def _was_opened_before(self, output: Mapping[str, Hashes]) -> bool:
        """Return whether an opening of a revision or of more queries had the same output on all of these queries."""
        return any(
            any(
                np.array_equal(output[kind], known[kind][places]) for kind in _KINDS if kind in output and kind in known
            )
            for places, known in self._outputs_elsewhere
        )

    @cached_property
    def _outputs_elsewhere(self) -> list[tuple[NDArray[np.intp], dict[str, Hashes]]]:
        """The outputs on other registrations or parts: the places of these queries there, and the hashes by kind."""
        named = ("registration", "queries")
        elsewhere = [entry for entry in self.opened if any(entry.body[one] != self.body[one] for one in named)]
        return [
            (places, part_of(arrays, f"{place}.outputs."))
            for entry, places, arrays in self._aligned(elsewhere)
            for place in range(len(entry.body["systems"]))
        ]

    def _aligned(self, opened: list[Entry]) -> Iterator[tuple[Entry, NDArray[np.intp], dict[str, NDArray[Any]]]]:
        """Yield those openings that hold all these queries, with the places of the queries there and the arrays."""
        exposure = self.standings.exposure
        for entry in opened:
            places = exposure.places_in(self.body, entry.body)
            if places is not None:
                yield entry, places, exposure.ledger.load(entry.body["outputs"])


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
