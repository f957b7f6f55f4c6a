"""Score the systems of a plan, keep the scores, and hold later scores against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import LedgerError
from rankeval.guard.loaded import LoadedCollection, Ranking
from rankeval.guard.plan import Plan
from rankeval.guard.standing.standings import Standing
from rankeval.join.matching import Hashes
from rankeval.ledger.arrays import part_of
from rankeval.ledger.ledger import Ledger

if TYPE_CHECKING:
    from rankeval.evaluation import Evaluation

TOLERANCE = 1e-6
"""Allowed difference in the score of a query when a plan is opened again."""


@dataclass(frozen=True, eq=False)
class ScoredPlan:
    """The systems of a plan with their scores.

    Attributes
    ----------
    plan : Plan
        The plan.
    loaded : LoadedCollection
        The queries of the plan.
    rankings : mapping of str to ranking
        System -> its ranking.
    evaluations : mapping of str to Evaluation
        System -> its scores, by the primary and the secondary measures.
    """

    plan: Plan
    loaded: LoadedCollection
    rankings: Mapping[str, Ranking]
    evaluations: Mapping[str, Evaluation]

    @classmethod
    def of(cls, plan: Plan, loaded: LoadedCollection, stored: Mapping[str, NDArray[Any]]) -> ScoredPlan:
        """Score the systems of a plan.

        Parameters
        ----------
        plan : Plan
            The plan.
        loaded : LoadedCollection
            The queries of the plan.
        stored : mapping of str to ndarray
            The rankings, as the ledger stores them.
        """
        rankings = {name: loaded.restored(part_of(stored, f"{place}."), name) for place, name in enumerate(plan.names)}
        measures = [plan.measure, *plan.secondary]
        evaluations = {
            name: replace(loaded.evaluate(name, ranking, measures, plan.convention), n_folds=plan.n_folds)
            for name, ranking in rankings.items()
        }
        return cls(plan, loaded, rankings, evaluations)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the measures in the evaluations, the primary one first."""
        return self.evaluations[self.plan.names[0]].measure_names

    @cached_property
    def outputs(self) -> dict[str, dict[str, Hashes]]:
        """System -> kind of row -> the hash of its ranking of each query, in the order of the content."""
        return {name: self.loaded.outputs(ranking) for name, ranking in self.rankings.items()}

    def body(self, standing: Standing, ledger: Ledger) -> dict[str, Any]:
        """Return the body of the opening's entry, and keep its outputs and scores beside the ledger.

        Parameters
        ----------
        standing : Standing
            Its standing as it is opened.
        ledger : Ledger
            The ledger.
        """
        plan = self.plan
        arrays: dict[str, NDArray[Any]] = {}
        for place, name in enumerate(plan.names):
            arrays[f"{place}.scores"] = self.loaded.by_content(self.evaluations[name]).ravel()
            for kind, hashes in self.outputs[name].items():
                arrays[f"{place}.outputs.{kind}"] = hashes
        return {
            **plan.about,
            "status": standing.status,
            "looks": standing.looks,
            "n_looks": standing.n_looks,
            "family": standing.family,
            "n_queries": standing.n_queries,
            "measures": [plan.measure, *plan.secondary],
            "values": {name: float(one.aggregate()[self.labels[0]]) for name, one in self.evaluations.items()},
            "systems": dict(plan.systems),
            "outputs": ledger.keep("signatures", arrays),
        }

    def check_against(self, body: Mapping[str, Any], ledger: Ledger) -> None:
        """Compare the scores with those of the plan's first opening.

        Parameters
        ----------
        body : mapping
            The body of the first opening's entry.
        ledger : Ledger
            The ledger, whose files hold the scores.

        Raises
        ------
        LedgerError
            If the score of a query differs.
        """
        arrays = ledger.load(body["outputs"])
        for place, name in enumerate(self.plan.names):
            then, now = arrays[f"{place}.scores"], self.loaded.by_content(self.evaluations[name]).ravel()
            same = np.isclose(then, now, rtol=0, atol=TOLERANCE, equal_nan=True)
            if not same.all():
                largest = np.nanmax(np.abs(then - now))
                raise LedgerError(
                    f"plan {self.plan.id} was opened before, and {name!r} now scores otherwise: {int((~same).sum())} "
                    f"values differ, by up to {largest:.2g} (allowed: {TOLERANCE:g}). Has the library or a measure "
                    "changed? Freeze a new plan to record the new scores"
                )
