"""Compare the systems of a plan, corrected together with those of all plans of its family.

Plans that share all but their systems are one batch: one matrix of differences from one baseline,
over which max-T corrects. Other plans of the family, with another baseline, measure or part of the
queries, form batches of their own, and the batches share the level by Bonferroni's correction::

    family of A:   A, B  (same baseline, measure, queries)    one batch, max-T
                   C     (another measure)                    a batch of its own
                   p of A = 2 times the p of max-T over the systems of A and B

Score the systems of a plan, keep the scores, and hold later scores against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.errors import LedgerError
from rankeval.guard.collection import LoadedCollection, Ranking
from rankeval.guard.plan import Plan
from rankeval.guard.standings import Standing
from rankeval.join.matching import Hashes
from rankeval.ledger.arrays import part_of
from rankeval.ledger.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from rankeval.comparison import Comparison
    from rankeval.comparison.groups import Groups
    from rankeval.evaluation import Evaluation


TOLERANCE = 1e-6
"""Allowed difference in the score of a query when a plan is opened again."""


@dataclass(frozen=True, eq=False)
class ScoredPlan:
    """The systems of a plan with their scores."""

    plan: Plan  # The plan
    loaded: LoadedCollection  # The queries of the plan
    rankings: Mapping[str, Ranking]  # System -> its ranking
    evaluations: Mapping[
        str, Evaluation
    ]  # System -> its scores, by the primary and the secondary measures
    # The group of each query by its id, under the noun for a group
    groups: pd.Series[int] | None = None

    @classmethod
    def of(
        cls, plan: Plan, loaded: LoadedCollection, stored: Mapping[str, NDArray[Any]]
    ) -> ScoredPlan:
        """Score the systems of a plan."""
        rankings = {
            name: loaded.restored(part_of(stored, f"{place}."), name)
            for place, name in enumerate(plan.names)
        }
        measures = [plan.measure, *plan.secondary]
        evaluations = {}
        for name, ranking in rankings.items():
            evaluation = loaded.evaluate(name, ranking, measures, plan.convention)
            facts = replace(evaluation.facts, n_folds=plan.n_folds)
            evaluations[name] = replace(evaluation, facts=facts)
        return cls(plan, loaded, rankings, evaluations)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the measures in the evaluations, the primary one first."""
        return self.evaluations[self.plan.names[0]].measure_names

    @property
    def grouped(self) -> Groups | None:
        """The groups of the queries that were scored."""
        from rankeval.comparison.groups import query_groups

        queries = self.evaluations[self.plan.names[0]].per_query.index
        return None if self.groups is None else query_groups(self.groups, queries)

    @cached_property
    def outputs(self) -> dict[str, dict[str, Hashes]]:
        """System -> kind of row -> the hash of its ranking of each query, in the order of the content."""
        return {name: self.loaded.outputs(ranking) for name, ranking in self.rankings.items()}

    def opening_body(self, standing: Standing, ledger: Ledger) -> dict[str, Any]:
        """Return the body of the opening's entry, and keep its outputs and scores beside the ledger."""
        from rankeval.comparison.concluding import means_of

        plan = self.plan
        means = means_of(self.evaluations, groups=self.grouped)
        means = means[means["measure"] == self.labels[0]]
        arrays: dict[str, NDArray[Any]] = {}
        for place, name in enumerate(plan.names):
            arrays[f"{place}.scores"] = self.loaded.by_content(self.evaluations[name]).ravel()
            for kind, hashes in self.outputs[name].items():
                arrays[f"{place}.outputs.{kind}"] = hashes
        facts = ("looks", "n_looks", "family", "n_queries")
        body = {**plan.about, "status": standing.name}
        body |= {name: getattr(standing, name) for name in facts}
        return body | {
            "measures": [plan.measure, *plan.secondary],
            "values": dict(zip(means["system"], means["mean"].tolist(), strict=True)),
            "systems": dict(plan.systems),
            "outputs": ledger.keep("signatures", arrays),
        }

    def check_against(self, body: Mapping[str, Any], ledger: Ledger) -> None:
        """Compare the scores with those of the plan's first opening."""
        arrays = ledger.load(body["outputs"])
        for place, name in enumerate(self.plan.names):
            then = arrays[f"{place}.scores"]
            now = self.loaded.by_content(self.evaluations[name]).ravel()
            # A query without a score then must have none now.
            same = np.isclose(then, now, rtol=0, atol=TOLERANCE, equal_nan=True)
            if not same.all():
                largest = np.nanmax(np.abs(then - now))
                raise LedgerError(
                    f"plan {self.plan.id} was opened before, and {name!r} now scores otherwise: {int((~same).sum())} "
                    f"values differ, by up to {largest:.2g} (allowed: {TOLERANCE:g}). Has the library or a measure "
                    "changed? Freeze a new plan to record the new scores"
                )


Score = Callable[[Plan], ScoredPlan | None]
"""Scores a plan; None if its rankings are not here."""


@dataclass(frozen=True, eq=False)
class Batch:
    """The systems that are corrected together with those of a plan."""

    scored: ScoredPlan  # The plan
    evaluations: Mapping[
        str, Evaluation
    ]  # Its systems, and those of plans that share all else with it
    n_batches: int  # Number of batches in the family

    @classmethod
    def of(cls, scored: ScoredPlan, others: Sequence[Plan], score: Score) -> Batch:
        """Gather the systems of a family."""
        plan = scored.plan
        batch = dict(scored.evaluations)
        # A plan of one system tests nothing, so it takes no share of the level.
        others = [other for other in others if len(other.systems) > 1 and len(plan.systems) > 1]
        seen = {output for _, output in plan.systems}
        apart = set()
        for other in others:
            together = score(other) if other.family_key == plan.family_key else None
            if together is None:
                # A plan of which another clone kept the rankings is a batch of its own too.
                apart.add(other.id if other.family_key == plan.family_key else other.family_key)
                continue
            for name, output in other.systems:
                if output not in seen:
                    seen.add(output)
                    # Other plans may call other systems by the same names.
                    batch[f"{other.id}/{name}"] = together.evaluations[name]
        return cls(scored, batch, 1 + len(apart))

    @property
    def n_others(self) -> int:
        """Number of systems of other plans."""
        return len(self.evaluations) - len(self.scored.evaluations)

    def compare(self, *, adjusted: bool) -> Comparison:
        """Compare by the primary measure within the batch, and by the secondary measures within the plan."""
        from rankeval.comparison.concluding import comparison_of_one, means_of
        from rankeval.comparison.record import with_settings

        plan = self.scored.plan
        evaluations = self.scored.evaluations
        if len(plan.names) == 1:
            ((name, evaluation),) = evaluations.items()
            return comparison_of_one(name, evaluation, alpha=plan.alpha, groups=self.scored.grouped)
        result = self._adjusted() if adjusted else self._unadjusted()
        means = means_of(evaluations, 1 - plan.alpha, self.scored.grouped)
        own = replace(
            result, table=_within(result.table, plan), evaluations=dict(evaluations), means=means
        )
        return with_settings(self._with_secondary(own), primary=self.scored.labels[0])

    def _adjusted(self) -> Comparison:
        plan = self.scored.plan
        n = self.n_batches
        result = self._compared(plan.alpha)
        if n == 1:
            return result
        # Bonferroni over the batches: p times their number, and what belongs to it at the level
        # that each has.
        narrow = self._compared(plan.alpha / n)
        table = result.table
        table["p_adjusted"] = (table["p_adjusted"] * n).clip(upper=1.0)
        of_level = ["ci_low_adjusted", "ci_high_adjusted", "detectable_difference"]
        table[of_level] = narrow.table[of_level]
        return replace(result, notes=tuple(dict.fromkeys((*result.notes, *narrow.notes))))

    def _unadjusted(self) -> Comparison:
        from rankeval.comparison.design import without_adjusted
        from rankeval.significance.declarations import CORRECTIONS

        result = self._compared(self.scored.plan.alpha, correction="none")
        # The note on the standing says already that there is no adjusted p.
        of_correction = CORRECTIONS["none"].note.format(size=result.settings.n_comparisons)
        notes = tuple(note for note in result.notes if note != of_correction)
        return replace(result, table=without_adjusted(result.table), notes=notes)

    def _compared(self, alpha: float, correction: str = "max_t") -> Comparison:
        from rankeval.comparison import compare

        primary = self.scored.labels[0]
        options = self._options | {"alpha": alpha}
        return compare(self.evaluations, measures=[primary], correction=correction, **options)

    def _with_secondary(self, result: Comparison) -> Comparison:
        """Return the result with the rows of secondary measures, and with what is said of the systems of the plan."""
        import pandas as pd

        from rankeval.comparison import compare
        from rankeval.comparison.design import without_adjusted
        from rankeval.comparison.record import kept, with_kept, with_notes
        from rankeval.comparison.unjudged import share_notes

        plan = self.scored.plan
        labels = list(self.scored.labels)
        if not self.n_others and len(labels) == 1:
            return result
        plain = {"claim": "difference", "margin": 0.0, "unseen": 0}
        options = self._options | {"alpha": plan.alpha, **plain}
        own = compare(self.scored.evaluations, measures=labels, correction="none", **options)
        secondary = own.table[own.table["measure"] != labels[0]]
        table = result.table
        if len(secondary):
            table = pd.concat([table, without_adjusted(secondary)], ignore_index=True)
        # Notes on unjudged documents of the batch may name systems of other plans: those of the
        # plan take their place.
        of_batch = share_notes(result.bounds)
        notes = tuple(note for note in result.notes if note not in of_batch)
        result = replace(result, table=table, bounds=own.bounds, notes=notes)
        return with_notes(
            with_kept(result, first_two=kept(own).first_two), *share_notes(own.bounds)
        )

    @property
    def _options(self) -> dict[str, Any]:
        plan = self.scored.plan
        kept = {
            name: getattr(plan, name)
            for name in ("baseline", "claim", "margin", "unseen", "n_resamples", "rng")
        }
        return kept | {"test": "randomization", "groups": self.scored.groups}


def _within(table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    own = table["system"].isin(plan.names) & table["baseline"].isin(plan.names)
    return table[own].reset_index(drop=True)
