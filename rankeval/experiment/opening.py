"""The winners' rankings of the test part, opened through the guard, or compared without one where it is off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankeval.collection.data import RankingData
from rankeval.comparison.result import Comparison, compare
from rankeval.errors import ConfigError
from rankeval.evaluation import Evaluation, evaluate, score_arrays
from rankeval.experiment.config import ExperimentConfig
from rankeval.ledger import discovery
from rankeval.report import GuardFacts

if TYPE_CHECKING:
    from rankeval.guard import Guard


@dataclass(frozen=True, eq=False)
class TestPart:
    """The test part and the guard that stands before it, or why none does."""

    data: RankingData
    guard: Guard | None
    registered: Any = None
    unguarded: str = ""


@dataclass(frozen=True, eq=False)
class Opened:
    """What opening gave: the comparison by the primary measure, all measures of each ranker, and the guard's word."""

    comparison: Comparison
    evaluations: Mapping[str, Evaluation]
    guard: GuardFacts


def stand_guard(config: ExperimentConfig, test: RankingData) -> TestPart:
    """Register the test part, so that nothing in this experiment or after it can score it by accident.

    Parameters
    ----------
    config : ExperimentConfig
        Names the project and the ledger.
    test : RankingData
        The part.

    Raises
    ------
    ConfigError
        When a comparison is asked for that no plan can freeze.
    """
    if config.guard is None:
        return TestPart(test, None, unguarded="The experiment file switches the guard off.")
    if config.guard.ledger is None and discovery.default_url() is None:
        return TestPart(test, None, unguarded="The ledger is switched off (RANKEVAL_LEDGER=off).")
    if not config.comparison.as_frozen:
        raise ConfigError(
            f"comparison: test {config.comparison.test!r} with correction {config.comparison.correction!r} is not what "
            "the guard's plans freeze (randomization, max_t): leave both out, or switch the guard off with guard=off"
        )
    from rankeval.guard import Guard

    guard = Guard(config.guard.project or config.name, ledger=config.guard.ledger)
    registered = guard.register(test.name or "test", test)
    return TestPart(test, guard, registered)


def open_test(config: ExperimentConfig, part: TestPart, scores: Mapping[str, NDArray[np.float64]]) -> Opened:
    """Freeze the winners, open the test part once, and compare.

    Parameters
    ----------
    config : ExperimentConfig
        Measures, baseline and comparison.
    part : TestPart
        As `stand_guard` made it.
    scores : mapping of str to ndarray of shape (n_test_rows,)
        Each winner's scores.
    """
    if part.guard is None:
        evaluations = _evaluations(evaluate, config, part.data, scores)
        comparison = compare(
            evaluations,
            baseline=config.baseline,
            measures=config.all_measures[:1],
            test=config.comparison.test,
            correction=config.comparison.correction,
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
    # These rankings are open now, so any measure of them may be had, and there is nothing left to refuse.
    return Opened(comparison, _evaluations(score_arrays, config, part.data, scores), facts)


def _standing(comparison: Comparison) -> str:
    """Return what the guard calls the comparison: the first word of the note in which it says so."""
    words = ("confirmatory", "exploratory", "secondary")
    return next(word for note in comparison.notes for word in words if note.startswith(word))


def _evaluations(
    score_one: Callable[..., Evaluation],
    config: ExperimentConfig,
    test: RankingData,
    scores: Mapping[str, NDArray[np.float64]],
) -> dict[str, Evaluation]:
    options = {"qid": test.qid, "measures": config.all_measures, "convention": config.convention}
    return {name: score_one(test.y, score, **options, name=name) for name, score in scores.items()}
