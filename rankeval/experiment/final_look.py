"""Open the test part for the winners: through the guard, or without one if the experiment switches it off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.convention import get_convention
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison, compare
from rankeval.evaluation import Evaluation, Given, evaluate, score
from rankeval.experiment.config import ExperimentConfig
from rankeval.ledger import discovery
from rankeval.measures import measures as parse_measures
from rankeval.report import GuardFacts
from rankeval.significance.declarations import check_claim

if TYPE_CHECKING:
    from rankeval.guard import Guard


@dataclass(frozen=True, eq=False)
class TestPart:
    """The test part, and its guard or the reason why it has none."""

    data: RankingData
    guard: Guard | None
    registered: Any = None
    unguarded: str = ""


@dataclass(frozen=True, eq=False)
class Opened:
    """The comparison by the primary measure, the evaluation of each ranker by all measures, and facts on the guard."""

    comparison: Comparison
    evaluations: Mapping[str, Evaluation]
    guard: GuardFacts


def unguarded(config: ExperimentConfig) -> str:
    """Return why no guard counts the looks at the test part; an empty text if one does.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment.
    """
    if config.guard is None:
        return "The experiment file switches the guard off."
    if config.guard.ledger is None and discovery.default_url() is None:
        return "The ledger is switched off (RANKEVAL_LEDGER=off)."
    return ""


def guard_test_part(config: ExperimentConfig, test: RankingData) -> TestPart:
    """Register the test part, so that this experiment and later ones cannot score it by accident.

    Parameters
    ----------
    config : ExperimentConfig
        The experiment, with its project and ledger.
    test : RankingData
        The test part.
    """
    reason = unguarded(config)
    if config.guard is None or reason:
        return TestPart(test, None, unguarded=reason)
    from rankeval.guard import Guard

    guard = Guard(config.guard.project or config.name, ledger=config.guard.ledger)
    registered = guard.register(test.name or "test", test)
    return TestPart(test, guard, registered)


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
    if part.guard is None:
        options: dict[str, Any] = {"qid": part.data.qid, "measures": config.all_measures}
        options["convention"] = config.convention
        evaluations = {name: evaluate(part.data.y, one, **options, name=name) for name, one in scores.items()}
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
        convention=config.convention,
        alpha=round(1 - config.comparison.confidence_level, 12),
        rng=config.seed,
    )
    comparison, looks_added = guard.open_counted(plan)
    facts = GuardFacts(
        active=True,
        project=guard.project,
        ledger=guard.ledger,
        head=guard.head,
        plan=plan.id,
        test=part.registered.name,
        digest=part.registered.digest,
        looks=len(guard.looks(part.registered)),
        looks_added=looks_added,
        standing=_standing(comparison),
    )
    # These rankings are open now: any measure of them is free, so nothing is left to refuse.
    return Opened(comparison, _scored(config, part.data, scores), facts)


def _standing(comparison: Comparison) -> str:
    """Return the standing that the guard gave the comparison: the first word of one of its notes."""
    words = ("confirmatory", "exploratory", "secondary")
    return next(word for note in comparison.notes for word in words if note.startswith(word))


def _scored(
    config: ExperimentConfig, test: RankingData, scores: Mapping[str, NDArray[np.float64]]
) -> dict[str, Evaluation]:
    rules = get_convention(config.convention)
    asked = parse_measures(config.all_measures, rules)
    return {name: score(Given(test.y, one, test.qid).join(rules), asked, name=name) for name, one in scores.items()}
