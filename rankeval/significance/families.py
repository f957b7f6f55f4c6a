"""Families of comparisons: which p-values are corrected together, and notes on their limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankeval.significance.claims import CLAIMS, Claim
from rankeval.significance.declarations import Correction, Floats, PairedResult, Settings, SignificanceTest
from rankeval.significance.pairs import PairPlaces, Pairs, as_pairs
from rankeval.significance.power import detectable_difference
from rankeval.significance.rates import FEW_QUERIES, FEWEST_QUERIES, on_few_queries
from rankeval.significance.registry import TESTS
from rankeval.significance.running import opened

NOTHING_POSSIBLE = "nothing can be significant here"
"""Begin of the note on smallest p-values above alpha."""


def adjust_by_family(
    correction: Correction,
    tested: PairedResult,
    d: Floats | Pairs,
    scores: Floats,
    pairs: PairPlaces,
    size: int,
    settings: Settings,
) -> PairedResult:
    """Adjust p-values and intervals within each family: all columns, or those of each measure.

    Parameters
    ----------
    correction : Correction
        Its declaration.
    tested : PairedResult
        What the test found under the settings of `with_family_level`, for columns laid out with the pairs of a measure
        beside each other.
    d : ndarray of shape (n_queries, n_measures * n_pairs), or Pairs
        Differences in the same order; gains for claims other than "difference".
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        The scores that the differences were taken of.
    pairs : sequence of (int, int)
        Baseline and system of each pair.
    size : int
        Number of comparisons in one family.
    settings : Settings
        Alternative or claim, level and resamples.

    Returns
    -------
    PairedResult
        Adjusted p-values, never below the raw ones (joint corrections have a test of their own), and the intervals
        that belong to them; their ends are nan if the correction has none.
    """
    d = as_pairs(d)
    families = [slice(start, start + size) for start in range(0, d.shape[1], size)]
    measures = [slice(each.start // len(pairs), each.stop // len(pairs)) for each in families]
    found = []
    for family, part in zip(families, measures, strict=True):
        if correction.needs == "scores":
            found.append(_of_scores(correction, scores[:, :, part], pairs, settings))
        elif correction.is_joint:
            found.append(_of_differences(correction, d.part(family), settings))
        else:
            found.append((correction.function(tested.p_value[family]),))
    p_value, *ends = (np.concatenate(parts) for parts in zip(*found, strict=True))
    low, high = ends or _limits_at(correction, tested, size, settings)
    return PairedResult(np.maximum(p_value, tested.p_value), low, high)


def with_family_level(settings: Settings, correction: Correction, size: int) -> Settings:
    """Return settings that ask a test for the intervals of single comparisons, and for those of the family.

    Parameters
    ----------
    settings : Settings
        The level of the family.
    correction : Correction
        Its declaration.
    size : int
        Number of comparisons in a family.
    """
    level = correction.interval_level and correction.interval_level(settings.alpha, size)
    return replace(settings, family_alpha=level if level and level != settings.alpha else None)


def _limits_at(declared: Correction, tested: PairedResult, size: int, settings: Settings) -> tuple[Floats, Floats]:
    """Return the test's intervals at the level that the correction leaves to each comparison."""
    if declared.interval_level is None:
        return np.full_like(tested.p_value, np.nan), np.full_like(tested.p_value, np.nan)
    if with_family_level(settings, declared, size).of_family is None:
        return tested.ci_low, tested.ci_high
    assert tested.family is not None, "run the test under the settings of with_family_level"
    return tested.family


def _of_scores(declared: Correction, scores: Floats, pairs: PairPlaces, settings: Settings) -> tuple[Floats, ...]:
    """Return the p-values of a joint correction of scores, and its intervals if it has any, from the same resamples."""
    drawn = {} if declared.draw is None else {"drawn": declared.draw(scores, settings)}
    found = [declared.function(scores, pairs, settings, **drawn)]
    if declared.limits:
        found += declared.limits(scores, pairs, settings, **drawn)
    return tuple(each.T.ravel() for each in found)


def _of_differences(declared: Correction, d: Pairs, settings: Settings) -> tuple[Floats, ...]:
    """Return the p-values of a joint correction of differences, and its intervals if it has any."""
    p_value = _joint_p(declared, d, settings)
    return (p_value, *_joint_limits(declared, d, settings)) if declared.limits else (p_value,)


def _joint_p(declared: Correction, d: Pairs, settings: Settings) -> Floats:
    """Return the p-values of a joint correction; of a claim, the largest among its hypotheses."""
    blocks, m = _hypotheses(declared, d, settings), d.shape[1]
    parts = [declared.function(columns, inner).reshape(-1, m) for columns, inner in blocks]
    least = 0.0 if d.beside is None else np.minimum(m * d.beside.least_p(settings.margin), 1.0)
    return np.asarray(np.maximum(np.concatenate(parts).max(axis=0), least))


def _joint_limits(declared: Correction, d: Pairs, settings: Settings) -> tuple[Floats, Floats]:
    """Return the intervals of a joint correction; of a claim, the ends that its hypotheses lead to."""
    assert declared.limits is not None
    claim = CLAIMS[settings.claim]
    if not claim.hypotheses:
        return opened(*declared.limits(_taken(declared, d), settings), settings.alternative)
    blocks = _hypotheses(declared, d, settings)
    ends = [declared.limits(columns, inner)[0].reshape(-1, d.shape[1]) for columns, inner in blocks]
    low, high = np.full(d.shape[1], -np.inf), np.full(d.shape[1], np.inf)
    reach = -np.inf if d.beside is None else d.beside.reach(settings.alpha / d.shape[1])
    for (side, factor), end in zip(claim, np.concatenate(ends), strict=True):
        if side == "greater":
            low = np.minimum(end + factor * settings.margin, -reach)
        else:
            high = np.maximum(factor * settings.margin - end, reach)
    return low, high


def _hypotheses(declared: Correction, gains: Pairs, settings: Settings) -> list[tuple[Floats | Pairs, Settings]]:
    """Return the columns of all hypotheses of a claim, turned so that "greater" is to be shown, and their settings.

    They are one block, so that a joint correction takes them as one family. A single comparison is no family: its claim
    is shown if each hypothesis is, without a correction for their number.
    """
    claim, m = CLAIMS[settings.claim], gains.shape[1]
    if not claim.hypotheses:
        return [(_taken(declared, gains), settings)]
    turned = [
        gains.beyond(factor * settings.margin, side).turned(np.full(m, 1.0 if side == "greater" else -1.0))
        for side, factor in claim
    ]
    inner = settings.of_side("greater")
    return [(_taken(declared, block), inner) for block in (turned if m == 1 else [Pairs.joined(turned)])]


def _taken(declared: Correction, columns: Pairs) -> Floats | Pairs:
    """Return columns as a correction takes them: as pairs, or all differences at once."""
    return columns if declared.takes_pairs else np.asarray(columns)


def adjusted_level(alpha: float, correction: Correction, claim: Claim, size: int) -> float:
    """Return the level of the adjusted intervals.

    Two ends that a claim leaves alpha each make a 1 - 2 alpha interval. A joint correction leaves alpha to all ends of
    the family together, so its intervals are simultaneous ones of level 1 - alpha.

    Parameters
    ----------
    alpha : float
        Level of the family.
    correction : Correction
        Its declaration.
    claim : Claim
        What is to be shown.
    size : int
        Number of comparisons.
    """
    shared = correction.is_joint and size > 1
    return round(1 - alpha * (1 if shared else max(1, claim.sides)), 12)


def family_level(alpha: float, correction: Correction, size: int) -> float:
    """Return the level at which the hardest comparison of a family is tested.

    Parameters
    ----------
    alpha : float
        Level of the family.
    correction : Correction
        Its declaration.
    size : int
        Number of comparisons.

    Returns
    -------
    float
        ``alpha / size`` if any false claim is controlled (a lower bound for joint corrections), else alpha.
    """
    return alpha / size if correction.familywise else alpha


def family_detectable(
    test: SignificanceTest,
    correction: Correction,
    size: int,
    n: int,
    sd: Floats,
    settings: Settings,
    losses: ArrayLike = 1.0,
) -> Floats:
    """Return the detectable differences of the test and claim made, at the level of the family.

    Parameters
    ----------
    test : SignificanceTest
        The test.
    correction : Correction
        Its declaration.
    size : int
        Number of comparisons in a family.
    n : int
        Number of queries.
    sd : ndarray of shape (n_comparisons,)
        Standard deviations of the differences.
    settings : Settings
        Alternative or claim, and level.
    losses : float or array_like of shape (n_comparisons,), default 1
        What an unseen query loses.

    Returns
    -------
    ndarray of shape (n_comparisons,)
        Nan without variance and for tests whose power is not that of Student's t; infinite if no data could lead to a
        rejection.
    """
    if not test.power_of_t:
        return np.full(len(sd), np.nan)
    floor, _, level = _resolution(test, correction, size, n, settings)
    if floor > level * (1 + 1e-9):
        return np.full(len(sd), np.inf)
    of_claim: dict[str, Any] = {name: getattr(settings, name) for name in ("alternative", "claim", "margin", "unseen")}
    return detectable_difference(
        n, sd, family_level(settings.alpha, correction, size), greatest_loss=losses, **of_claim
    )


def family_notes(test: SignificanceTest, correction: Correction, size: int) -> list[str]:
    """Return notes on the limits of the correction, and on the test that its p-values come from."""
    notes = [correction.note.format(size=size)] if correction.note and size > 1 else []
    own_test = TESTS.get(correction.own_test, test)
    if own_test is not test:
        notes.append(
            f"adjusted p-values come from the {own_test.words}, joint over the family; raw ones from the {test.words}"
        )
    return notes


def few_query_notes(correction: Correction, size: int, n: int, settings: Settings) -> list[str]:
    """Return a note with the rates measured on few queries and strong skew, if several are compared on so few.

    Parameters
    ----------
    correction : Correction
        Its declaration.
    size : int
        Number of comparisons in a family.
    n : int
        Number of queries.
    settings : Settings
        Alternative or claim. Claims that count an unseen query keep their level.
    """
    if size == 1 or n >= FEW_QUERIES or settings.n_unseen:
        return []
    one_sided = settings.sides == 1 or bool(CLAIMS[settings.claim].hypotheses)
    said = on_few_queries(correction.words if correction.familywise else "", size, one_sided=one_sided)
    here = f"here {n}, and none were measured below {FEWEST_QUERIES}" if n < FEWEST_QUERIES else f"here {n}"
    return [f"on fewer than {FEW_QUERIES} queries ({here}) errors are more frequent under strong skew; at worst {said}"]


def resolution_notes(
    test: SignificanceTest, correction: Correction, size: int, n: int, settings: Settings
) -> list[str]:
    """Return a note if no data could have led to a rejection."""
    floor, at_random, level = _resolution(test, correction, size, n, settings)
    if floor <= level * (1 + 1e-9):
        return []
    # The smallest p-value possible is a multiple of 1 / (n + 1).
    needed = math.ceil((settings.n_resamples + 1) * floor / level - 1e-9) - 1
    remedy = f"ask for {needed:,} resamples or more" if at_random else "more queries are needed"
    possible = f"the smallest p-value possible is {floor:.2g}, and the family of {size} asks for {level:.2g}"
    return [f"{NOTHING_POSSIBLE}: {possible}; {remedy}"]


def limited_by_resamples(test: SignificanceTest, correction: Correction, n: int, settings: Settings) -> bool:
    """Tell whether resamples, and not the number of queries, set the smallest p-value possible."""
    return _resolution(test, correction, 1, n, settings)[1]


def _resolution(
    test: SignificanceTest, correction: Correction, size: int, n: int, settings: Settings
) -> tuple[float, bool, float]:
    """Return the smallest p-value possible, whether resamples set it, and the level that it is held against."""
    level = settings.alpha if correction.is_joint else family_level(settings.alpha, correction, size)
    one_sided = settings.of_side("greater") if CLAIMS[settings.claim].hypotheses else settings
    # A joint correction has a smallest p-value of its own, and no adjusted p-value is below its raw one.
    floor, at_random = max((one.floor(n, one_sided), one.is_random(n)) for one in (test, correction))
    return floor, at_random, level
