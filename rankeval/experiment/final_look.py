"""Open the test part for the winners: through the guard, or without one if the experiment switches it off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import get_convention
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.comparison.means import comparison_of_one
from rankeval.errors import LedgerError
from rankeval.evaluation import Evaluation, Given, evaluate, score
from rankeval.experiment.config import ExperimentConfig
from rankeval.experiment.guarding import TestPart, committing, given
from rankeval.measures import measures as parse_measures
from rankeval.report import GuardFacts
from rankeval.significance.declarations import check_claim


@dataclass(frozen=True, eq=False)
class Opened:
    """The comparison by the primary measure, the evaluation of each ranker by all measures, and facts on the guard."""

    comparison: Comparison
    evaluations: Mapping[str, Evaluation]
    guard: GuardFacts


def open_test(config: ExperimentConfig, part: TestPart, scores: Mapping[str, NDArray[np.float64]]) -> Opened:
    """Freeze the winners, open the test part once, and compare.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.
    part : TestPart
        The test part, as `guard_test_part` returns it.
    scores : mapping of str to ndarray of shape (n_test_rows,)
        The scores of each winner.
    """
    if part.guard is None or config.guard is None:
        options: dict[str, Any] = {"qid": part.data.qid, "measures": config.all_measures}
        options["convention"] = config.convention
        evaluations = {name: evaluate(part.data.y, one, **options, name=name) for name, one in scores.items()}
        if config.baseline is None:
            (name,) = evaluations
            level = config.comparison.confidence_level
            alone = comparison_of_one(name, evaluations[name], confidence_level=level)
            return Opened(alone, evaluations, GuardFacts(active=False, reason=part.unguarded))
        comparison = compare(
            evaluations,
            baseline=config.baseline,
            measures=config.all_measures[:1],
            test=config.comparison.test,
            correction=config.comparison.correction,
            claim=check_claim(config.comparison.claim, config.comparison.margin),
            margin=config.comparison.margin,
            confidence_level=config.comparison.confidence_level,
            rng=config.seed,
        )
        return Opened(comparison, evaluations, GuardFacts(active=False, reason=part.unguarded))
    guard = part.guard
    plan = guard.freeze(
        part.registered,
        systems=dict(scores),
        baseline=config.baseline,
        measure=config.all_measures[0],
        secondary=config.all_measures[1:] if config.baseline is None else (),
        convention=config.convention,
        alpha=round(1 - config.comparison.confidence_level, 12),
        claim=check_claim(config.comparison.claim, config.comparison.margin),
        margin=config.comparison.margin,
        rng=config.seed,
        **given(queries=None if config.guard.queries == "all" else config.guard.queries),
    )
    with committing(config):
        comparison, looks_added = guard.open_counted(plan)
    facts = GuardFacts.of(comparison, digest=part.registered.digest, looks_added=looks_added)
    if facts is None:
        raise LedgerError(f"the opening of plan {plan.id} names no standing: is the guard of another version?")
    # These rankings are open now: any measure of them is free, so nothing is left to refuse.
    evaluations = _scored(config, part.data, scores)
    if config.guard.queries == "fresh":  # the others are not open
        opened = {name: one for name, one in comparison.evaluations.items() if isinstance(one, Evaluation)}
        evaluations = {name: one.subset(opened[name].queries) for name, one in evaluations.items()}
    return Opened(comparison, evaluations, facts)


def _scored(
    config: ExperimentConfig, test: RankingData, scores: Mapping[str, NDArray[np.float64]]
) -> dict[str, Evaluation]:
    rules = get_convention(config.convention)
    asked = parse_measures(config.all_measures, rules)
    return {name: score(Given(test.y, one, test.qid).join(rules), asked, name=name) for name, one in scores.items()}
