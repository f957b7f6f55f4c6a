"""What an opening shows: one batch of systems, adjusted where that is honest, and said where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rankeval.errors import LedgerError
from rankeval.guard.history import CONFIRMATORY, EXPLORATORY, History, Standing, inflation_of
from rankeval.guard.plan import Plan
from rankeval.guard.rankings import Known, Ranking
from rankeval.ledger.chain import pack, unpack

if TYPE_CHECKING:
    from rankeval.comparison.result import Comparison
    from rankeval.evaluation import Evaluation

TOLERANCE = 1e-6
"""By how much the scores of a query may differ when a plan is opened again."""


@dataclass(frozen=True, eq=False)
class Opening:
    """The scores of a plan's systems, and of those that its batch is corrected for.

    Attributes
    ----------
    plan : Plan
        What is opened.
    known : Known
        The collection.
    rankings : mapping of str to ranking
        System -> its ranking.
    evaluations : mapping of str to Evaluation
        System -> its scores, by the primary and the secondary measures.
    """

    plan: Plan
    known: Known
    rankings: Mapping[str, Ranking]
    evaluations: Mapping[str, Evaluation]

    @classmethod
    def of(cls, plan: Plan, known: Known, packed: Mapping[str, Any]) -> Opening:
        """Score the systems of a plan.

        Parameters
        ----------
        plan : Plan
            The plan.
        known : Known
            The collection.
        packed : mapping of str to mapping
            System -> its ranking, as the ledger has it.
        """
        rankings = {name: known.unpack(packed[name], name) for name in plan.names}
        measures = [plan.measure, *plan.secondary]
        evaluations = {
            name: known.evaluate(name, ranking, measures, plan.convention) for name, ranking in rankings.items()
        }
        return cls(plan, known, rankings, evaluations)

    def body(self, standing: Standing) -> dict[str, Any]:
        """Return what the ledger keeps of the opening.

        Parameters
        ----------
        standing : Standing
            What it is worth.
        """
        plan = self.plan
        primary = next(iter(self.evaluations.values())).measure_names[0]
        return {
            "plan": plan.id,
            "digest": plan.digest,
            "collection": plan.collection,
            "status": standing.status,
            "looks": list(standing.looks),
            "n_looks": standing.n_looks,
            "family": list(standing.family),
            "measures": [plan.measure, *plan.secondary],
            "values": {name: float(one.aggregate()[primary]) for name, one in self.evaluations.items()},
            "systems": {
                name: {
                    "output": output,
                    "outputs": {kind: pack(h) for kind, h in self.known.outputs(self.rankings[name]).items()},
                    "scores": pack(self.known.by_content(self.evaluations[name]).ravel()),
                }
                for name, output in plan.systems
            },
        }

    def check_against(self, body: Mapping[str, Any]) -> None:
        """Hold the scores against those of the plan's first opening.

        Parameters
        ----------
        body : mapping
            Of the entry of the first opening.

        Raises
        ------
        LedgerError
            When the score of a query differs.
        """
        for name, evaluation in self.evaluations.items():
            then, now = unpack(body["systems"][name]["scores"]), self.known.by_content(evaluation).ravel()
            same = np.isclose(then, now, rtol=0, atol=TOLERANCE, equal_nan=True)
            if not same.all():
                largest = np.nanmax(np.abs(then - now))
                raise LedgerError(
                    f"plan {self.plan.id} was opened before, and {name!r} now scores otherwise: {int((~same).sum())} "
                    f"values differ, by up to {largest:.2g} (allowed: {TOLERANCE:g}). Has the library or a measure "
                    "changed? Freeze a new plan to record the new scores"
                )

    def compare(self, standing: Standing, family: Sequence[Opening], n_groups: int) -> Comparison:
        """Compare the systems: the primary measure over the family, the secondary ones besides.

        Parameters
        ----------
        standing : Standing
            What the opening is worth.
        family : sequence of Opening
            The other plans that are corrected in one batch with this one, scored by the primary measure.
        n_groups : int
            In how many such batches the plans frozen by then fall.
        """
        from rankeval.comparison.result import compare

        plan, primary = self.plan, next(iter(self.evaluations.values())).measure_names[0]
        options: dict[str, Any] = {
            "baseline": plan.baseline,
            "test": "randomization",
            "confidence_level": 1 - plan.alpha,
            "n_resamples": plan.n_resamples,
            "rng": plan.rng,
        }
        confirmatory = standing.status == CONFIRMATORY
        batch = {**self.evaluations, **self._others(family)}
        result = compare(batch, measures=[primary], correction="max_t" if confirmatory else "none", **options)
        rows = result.table["system"].isin(plan.names) & result.table["baseline"].isin(plan.names)
        table = result.table[rows].reset_index(drop=True)
        table["p_adjusted"] = (table["p_adjusted"] * n_groups).clip(upper=1.0)
        if not confirmatory:
            table["p_adjusted"] = np.nan
        if plan.secondary:
            import pandas as pd

            besides = compare(
                self.evaluations,
                measures=list(self.evaluations[plan.names[0]].measure_names[1:]),
                correction="none",
                **options,
            )
            table = pd.concat([table, besides.table.assign(p_adjusted=np.nan)], ignore_index=True)
        # What is not confirmatory has no adjusted p at all: see `notes`.
        notes = result.notes if confirmatory else tuple(one for one in result.notes if "not corrected" not in one)
        return replace(result, table=table, evaluations=dict(self.evaluations), primary=primary, notes=notes)

    def notes(
        self, standing: Standing, history: History, family: Sequence[Opening], n_groups: int, where: str
    ) -> tuple[str, ...]:
        """Return what a reader of the comparison must know.

        Parameters
        ----------
        standing : Standing
            What the opening is worth.
        history : History
            What was opened before.
        family : sequence of Opening
            The other plans in the batch.
        n_groups : int
            Number of batches of the family.
        where : str
            The ledger and its head.
        """
        plan, n_looks, n_others = self.plan, standing.n_looks, len(self._others(family))
        notes = []
        if standing.status == CONFIRMATORY:
            note = f"confirmatory for {plan.measure}: frozen before the first opening, max-T over the batch"
            if n_others:
                note += f" and {n_others} systems of other plans frozen by then"
            if n_groups > 1:
                note += f", times {n_groups} for the plans that form batches of their own"
            notes.append(note)
        elif standing.status == EXPLORATORY:
            scores = history.scores_of_looks(plan.measure, self.known.prints.n_queries)
            scores += [self.known.by_content(one)[:, 0] for one in self.evaluations.values()]
            # An opening that is reproduced stands in the history already.
            scores = list({one.tobytes(): one for one in scores}.values())
            notes.append(
                f"exploratory: this is the result of {n_looks} looks at {plan.collection!r}, the later ones chosen "
                f"after the first was seen; the best of {n_looks} equally good systems would look better than it is by "
                f"at least {inflation_of(scores, n_looks):.3f} in {plan.measure}. No p-value can be adjusted for that: "
                "confirm on fresh queries"
            )
        else:
            notes.append("secondary: all these rankings were opened before; nothing here is confirmatory")
        if plan.secondary:
            notes.append(f"secondary, without adjusted p: {', '.join(plan.secondary)}")
        total = f" ({history.elsewhere} more by other projects)" if history.elsewhere else ""
        looks = "1 look" if n_looks == 1 else f"{n_looks} looks"
        notes.append(f"{looks} of project {plan.project!r} at {plan.collection!r}{total}; plan {plan.id}; {where}")
        return tuple(notes)

    def _others(self, family: Sequence[Opening]) -> dict[str, Evaluation]:
        """Return the evaluations of the family's other systems, each output once, under names that do not collide."""
        seen = {output for _, output in self.plan.systems}
        others = {}
        for opening in family:
            for name, output in opening.plan.systems:
                if output not in seen:
                    seen.add(output)
                    others[f"{opening.plan.id}/{name}"] = opening.evaluations[name]
        return others
