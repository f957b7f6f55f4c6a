"""Score the systems of a plan, compare them, and say how far the comparison can be believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import count
from rankeval.errors import LedgerError
from rankeval.guard.folds import NOTE
from rankeval.guard.history import CONFIRMATORY, EXPLORATORY, History, OpeningStatus, inflation_of
from rankeval.guard.loaded import LoadedCollection, Ranking
from rankeval.guard.plan import Plan
from rankeval.ledger.arrays import part_of
from rankeval.ledger.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
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
        The collection.
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
            The collection.
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

    def body(self, status: OpeningStatus, ledger: Ledger) -> dict[str, Any]:
        """Return the body of the opening's entry, and keep its outputs and scores beside the ledger.

        Parameters
        ----------
        status : OpeningStatus
            Its standing.
        ledger : Ledger
            The ledger.
        """
        plan = self.plan
        arrays: dict[str, NDArray[Any]] = {}
        for place, name in enumerate(plan.names):
            arrays[f"{place}.scores"] = self.loaded.by_content(self.evaluations[name]).ravel()
            for kind, hashes in self.loaded.outputs(self.rankings[name]).items():
                arrays[f"{place}.outputs.{kind}"] = hashes
        return {
            **plan.about,
            **asdict(status),
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

    def result(
        self,
        status: OpeningStatus,
        history: History,
        others: Sequence[Plan],
        score: Callable[[Sequence[Plan]], list[ScoredPlan]],
        where: str,
    ) -> Comparison:
        """Compare the systems, and note how far the comparison can be believed.

        Plans of the family that share all but their systems with this one are corrected in one batch with it. The
        others form batches of their own, and the batches share the level by Bonferroni's correction.

        Parameters
        ----------
        status : OpeningStatus
            The standing of the opening.
        history : History
            The earlier openings.
        others : sequence of Plan
            The other plans of the family.
        score : callable
            Scores some of them.
        where : str
            The ledger and its head.
        """
        # A plan of one system tests nothing, so it takes no share of the level.
        others = [one for one in others if len(one.systems) > 1 and len(self.plan.systems) > 1]
        # Max-T needs one matrix of differences from one baseline by one measure: other plans cannot join the batch.
        together = [one for one in others if one.family_key == self.plan.family_key]
        n_batches = 1 + len({one.family_key for one in others} - {self.plan.family_key})
        batch = self._batch(score(together) if together else [])
        notes = [self._standing(status, history, len(batch) - len(self.evaluations), n_batches)]
        if self.plan.folds:
            notes.append(NOTE.format(folds=self.plan.folds))
        if self.plan.secondary:
            notes.append(f"secondary, without adjusted p: {', '.join(self.plan.secondary)}")
        looks = count(status.n_looks, "look")
        more = f" ({history.elsewhere} more by other projects)" if history.elsewhere else ""
        notes.append(
            f"{looks} of project {self.plan.project!r} at {self.plan.collection!r}{more}; plan {self.plan.id}; {where}"
        )
        return self._compare(batch, n_batches, confirmatory=status.status == CONFIRMATORY).with_notes(*notes)

    def _batch(self, family: Sequence[ScoredPlan]) -> dict[str, Evaluation]:
        """Return the evaluations to be corrected together: our own, and each other output once."""
        batch = dict(self.evaluations)
        seen = {output for _, output in self.plan.systems}
        for scored in family:
            for name, output in scored.plan.systems:
                if output not in seen:
                    seen.add(output)
                    # Other plans may call other systems by the same names.
                    batch[f"{scored.plan.id}/{name}"] = scored.evaluations[name]
        return batch

    def _compare(self, batch: Mapping[str, Evaluation], n_batches: int, *, confirmatory: bool) -> Comparison:
        """Compare by the primary measure within the batch, and by the secondary measures within the plan."""
        import pandas as pd

        from rankeval.comparison import compare
        from rankeval.comparison.design import without_adjusted
        from rankeval.comparison.means import comparison_of_one, means_of

        plan, (primary, *secondary) = self.plan, self.labels
        means = means_of(self.evaluations, 1 - plan.alpha)
        if len(plan.names) == 1:
            ((name, evaluation),) = self.evaluations.items()
            return comparison_of_one(name, evaluation, confidence_level=1 - plan.alpha)
        options: dict[str, Any] = {
            "baseline": plan.baseline,
            "test": "randomization",
            "confidence_level": 1 - plan.alpha,
            "n_resamples": plan.n_resamples,
            "rng": plan.rng,
        }
        result = compare(batch, measures=[primary], correction="max_t" if confirmatory else "none", **options)
        table, notes = result.table, result.notes
        if confirmatory and n_batches > 1:
            # Bonferroni over the batches: p times their number, and what belongs to it at the level that each has.
            shared = {**options, "confidence_level": 1 - plan.alpha / n_batches}
            narrow = compare(batch, measures=[primary], correction="max_t", **shared)
            table["p_adjusted"] = (table["p_adjusted"] * n_batches).clip(upper=1.0)
            of_level = ["ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
            table[of_level] = _within(narrow.table, plan)[of_level]
            notes = tuple(dict.fromkeys((*notes, *narrow.notes)))
        table = _within(table, plan)
        if not confirmatory:
            # There is no adjusted p at all, so the note that p is not corrected would mislead.
            table = without_adjusted(table)
            notes = tuple(note for note in notes if "not corrected" not in note)
        if secondary:
            besides = compare(self.evaluations, measures=secondary, correction="none", **options)
            table = pd.concat([table, without_adjusted(besides.table)], ignore_index=True)
        evaluations = dict(self.evaluations)
        return replace(result, table=table, evaluations=evaluations, primary=primary, notes=notes, means=means)

    def _standing(self, status: OpeningStatus, history: History, n_others: int, n_batches: int) -> str:
        """Return the standing of the opening in words."""
        plan = self.plan
        if status.status == CONFIRMATORY and len(plan.systems) == 1:
            return f"confirmatory for {plan.measure}: frozen before the first opening; a mean, and no test"
        if status.status == CONFIRMATORY:
            note = f"confirmatory for {plan.measure}: frozen before the first opening, max-T over the batch"
            if n_others:
                note += f" and {count(n_others, 'system')} of other plans frozen by then"
            if n_batches > 1:
                note += f", times {n_batches} for the plans that form batches of their own"
            return note
        if status.status == EXPLORATORY:
            scores = history.scores_of_looks(plan.measure, self.loaded.prints.n_queries)
            scores += [self.loaded.by_content(one)[:, 0] for one in self.evaluations.values()]
            # If an opening is reproduced, the history already holds its scores.
            scores = list({one.tobytes(): one for one in scores}.values())
            return (
                f"exploratory: this is the result of {status.n_looks} looks at {plan.collection!r}, the later ones "
                f"chosen after the first was seen. The best of {status.n_looks} equally good systems would look better "
                f"than it is by about {inflation_of(scores, status.n_looks):.3f} in {plan.measure}. No p-value can "
                "be adjusted for that: confirm on fresh queries"
            )
        return "secondary: all these rankings were opened before; nothing here is confirmatory"


def _within(table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    """Return the rows of a batch that compare systems of the plan."""
    return table[table["system"].isin(plan.names) & table["baseline"].isin(plan.names)].reset_index(drop=True)
