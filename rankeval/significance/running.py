"""Run a test or a correction by its name, with all that holds for every one of them.

Families of comparisons: which p-values are corrected together, and notes on their limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._arguments import explained
from rankeval._registry import chosen
from rankeval._visible import PowerlessNote
from rankeval.errors import InvalidInput
from rankeval.significance.catalogue import FEW_QUERIES, FEWEST_QUERIES, on_few_queries
from rankeval.significance.columns import without_variance
from rankeval.significance.declarations import (
    CLAIMS,
    TESTS,
    Alternative,
    Claim,
    ClaimName,
    Correction,
    Floats,
    PairedResult,
    Rng,
    Settings,
    SignificanceTest,
    Unseen,
    corrections_of_p_values,
    joined,
    one_pattern,
    seed_of,
)
from rankeval.significance.pairs import BLOCK, LARGE_BLOCK, PairPlaces, Pairs, as_pairs
from rankeval.significance.power import detectable_difference


@explained
def paired_test(
    name: str,
    d: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
    n_resamples: int = 9999,
    rng: Rng = None,
    claim: ClaimName = "difference",
    margin: float = 0.0,
    unseen: int = 0,
    greatest_loss: ArrayLike = 1.0,
) -> PairedResult:
    """Run a test by its name.

    Parameters
    ----------
    name : str
        A key of `TESTS`.
    d : array_like of shape (n_queries,) or (n_queries, n_pairs)
        Per-query differences, system minus baseline.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the system is better than the baseline.
    alpha : float, default 0.05
        Level of the test; the interval has the level 1 - alpha.
    n_resamples : int, default 9999
        For tests that resample.
    rng : int, Generator or None
        Source of the resamples.
    claim : {"difference", "better", "not_worse", "equivalent"}, default "difference"
        What is to be shown; see `claims`. Other claims than "difference" read `d` as gains:
        positive is better.
    margin : float, default 0
        Of the claim.
    unseen : int, default 0
        Number of queries that "not_worse" and "equivalent" add to those of `d`: they lost all that
        a query can. By default the test is the plain one; `rankeval.compare` adds one query.
    greatest_loss : float or array_like of shape (n_pairs,), default 1
        The loss of such a query. 1 is right for measures in [0, 1].

    Returns
    -------
    PairedResult
        P-values and intervals, in the shape of `d` without its first axis.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a difference that is not finite, no resample, or a margin that does
        not go with the claim.
    UnknownName
        There is no such test, alternative or claim.

    Examples
    --------
    >>> round(float(paired_test("t", [0.1, 0.3, 0.2]).p_value), 4)
    0.0742
    >>> float(paired_test("randomization", [1, 2, 3]).p_value)  # 2 of the 8 patterns of signs reach |6|
    0.25
    """
    settings = Settings(alternative, alpha, n_resamples, rng, claim, margin, unseen)
    pairs = with_unseen(as_pairs(d), greatest_loss, settings)
    return _reshaped(run(TESTS[chosen("test", name, TESTS)], pairs, settings), np.shape(d)[1:])


def with_unseen(
    gains: Pairs,
    losses: ArrayLike,
    settings: Settings,
    *,
    n_strata: int = 1,
    seen: ArrayLike | None = None,
) -> Pairs:
    """Return gains with the queries that nobody saw, if the claim counts any."""
    if not settings.n_unseen:
        return gains
    n, m = gains.shape
    sizes = n if seen is None else seen
    loss, of_column = (
        np.broadcast_to(np.asarray(each, dtype=np.float64), m) for each in (losses, sizes)
    )
    return replace(gains, beside=Unseen(settings.n_unseen * n_strata, loss, of_column))


def run(test: SignificanceTest, d: ArrayLike, settings: Settings) -> PairedResult:
    """Check the differences, run a test on them, and add what holds for all tests.

    Parameters
    ----------
    test : SignificanceTest
        Its declaration.
    d : array_like of shape (n_queries,) or (n_queries, n_pairs), or Pairs
        Per-query differences.
    settings : Settings
        Alternative or claim, levels and resamples.

    Returns
    -------
    PairedResult
        As `paired_test` returns it.

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    pairs = as_pairs(d)
    if CLAIMS[settings.claim].hypotheses:
        found = _run_claim(test, pairs, settings)
    else:
        found = _run(test, pairs, settings, len(pairs))
    return found if isinstance(d, Pairs) else _reshaped(found, np.shape(d)[1:])


def _reshaped(found: PairedResult, shape: tuple[int, ...]) -> PairedResult:
    return joined([found], lambda arrays: np.asarray(arrays[0]).reshape(shape)[()])


def _run_claim(test: SignificanceTest, gains: Pairs, settings: Settings) -> PairedResult:
    """Test each hypothesis of the claim on the gains moved by its margin: the largest p, and the ends of all."""
    bounds, results = [], []
    for side, factor in CLAIMS[settings.claim]:
        bound = factor * settings.margin
        bounds.append(bound)
        # A gain that is the margin but for rounding must be a tie for tests that count or rank.
        moved = gains.beyond(bound, side)
        results.append(_run(test, moved, settings.of_side(side), len(gains)))

    def ends(
        of_result: Callable[[PairedResult], tuple[Floats, Floats]], alpha: float
    ) -> tuple[Floats, Floats]:
        lows, highs = zip(*map(of_result, results), strict=True)
        low = np.max([low + bound for low, bound in zip(lows, bounds, strict=True)], axis=0)
        high = np.min([high + bound for high, bound in zip(highs, bounds, strict=True)], axis=0)
        if gains.beside is None:
            return low, high
        reach = gains.beside.reach(alpha)
        return np.minimum(low, -reach), np.maximum(high, reach)

    notes = tuple(dict.fromkeys(note for found in results for note in found.notes))
    wide, family = settings.of_family, None
    if wide:
        family = ends(lambda found: found.family or (found.ci_low, found.ci_high), wide.alpha)
    p_value = np.max([found.p_value for found in results], axis=0)
    if gains.beside is not None:
        p_value = np.maximum(p_value, gains.beside.least_p(settings.margin))
    return PairedResult(
        p_value, *ends(lambda found: (found.ci_low, found.ci_high), settings.alpha), notes, family
    )


def _run(test: SignificanceTest, pairs: Pairs, settings: Settings, n: int) -> PairedResult:
    if test.takes_pairs and not test.needs_variance:
        found, n_constant = _finished(test, test.function(pairs, settings), settings), 0
        found = without_ends(found, *pairs.summed(lambda d: (without_variance(d),)))
    else:
        blocks = list(pairs.blocks(LARGE_BLOCK if test.resamples else BLOCK))
        if len(blocks) > 1:  # all blocks see the same resamples
            settings = replace(settings, rng=seed_of(settings.rng))
        parts, constant = zip(
            *(_run_block(test, pairs[columns], settings) for columns in blocks), strict=True
        )
        found, n_constant = joined(parts), sum(constant)
    notes = _constant_notes(n_constant, settings) + liberal_notes(test, n, settings)
    return replace(found, notes=(*found.notes, *filter(None, [test.note]), *notes))


def _run_block(
    test: SignificanceTest, columns: Floats, settings: Settings
) -> tuple[PairedResult, int]:
    """Run a test on some columns; return its result, and how many of them are constants other than 0."""
    n, mean, constant = len(columns), columns.mean(axis=0), without_variance(columns)
    flat = constant & test.needs_variance
    if flat.any():
        # Columns that the function is not defined for are replaced, not left out: how BLAS rounds
        # depends on the number of columns, and no p-value may depend on another pair's.
        columns = np.where(flat, np.arange(n)[:, None], columns)
    found = _finished(test, _asked(test, columns, settings), settings, flat)
    # Equal systems get 1. For a constant difference the t statistic is infinite and a bootstrap
    # sees one value only: either would print a p of 0. The sign flips still have a distribution
    # there, in which the observed order is the most extreme one: 2 in 2^n, or 1 in 2^n for a
    # one-sided test.
    of_constants = np.where(settings.evidence(mean) > 0, one_pattern(n, settings), 1.0)
    p_value = _as_p(np.where(flat, of_constants, found.p_value))
    return without_ends(replace(found, p_value=p_value), constant), int((flat & (mean != 0)).sum())


def without_ends(found: PairedResult, constant: NDArray[np.bool_]) -> PairedResult:
    """Open the intervals of columns without variance: differences that are all the same tell no width."""

    def ends(low: Floats, high: Floats) -> tuple[Floats, Floats]:
        return np.where(constant, -np.inf, low), np.where(constant, np.inf, high)

    low, high = ends(found.ci_low, found.ci_high)
    return replace(found, ci_low=low, ci_high=high, family=found.family and ends(*found.family))


def _asked(test: SignificanceTest, columns: Floats, settings: Settings) -> PairedResult:
    """Call the function of a test; again for the second interval, if it leaves that out."""
    found = test.function(columns, settings)
    if (
        settings.of_family is None
        or not isinstance(found, PairedResult)
        or found.family is not None
    ):
        return found
    again = test.function(columns, settings.of_family)
    return replace(found, family=(again.ci_low, again.ci_high))


def _finished(
    test: SignificanceTest,
    found: PairedResult,
    settings: Settings,
    unknown: NDArray[np.bool_] | None = None,
) -> PairedResult:
    """Check what a function returned, but for columns that it does not know, and open one-sided intervals."""
    known = slice(None) if unknown is None else ~unknown
    if not isinstance(found, PairedResult) or np.isnan(np.asarray(found.p_value)[known]).any():
        raise InvalidInput(
            f"the {test.words} gave no p-value for some of the differences: a test returns a PairedResult without nan"
        )
    low, high = open_ended(
        np.asarray(found.ci_low), np.asarray(found.ci_high), settings.alternative
    )
    family = found.family and open_ended(*found.family, settings.alternative)
    return PairedResult(_as_p(np.asarray(found.p_value)), low, high, found.notes, family)


def _as_p(values: Floats) -> Floats:
    return np.clip(values, np.finfo(np.float64).tiny, 1.0)  # 2 in 2^2000 underflows, and is no 0


def open_ended(low: Floats, high: Floats, alternative: Alternative) -> tuple[Floats, Floats]:
    """Make the end of intervals infinite that a one-sided alternative leaves open."""
    if alternative == "greater":
        return low, np.full_like(high, np.inf)
    return (np.full_like(low, -np.inf), high) if alternative == "less" else (low, high)


@explained
def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """Adjust the p-values of a family.

    Parameters
    ----------
    p : array_like of shape (n_comparisons,)
        P-values in [0, 1].
    method : str, default "holm"
        A key of `CORRECTIONS` that needs p-values only: "holm", "bonferroni", "bh", "by" or "none".

    Returns
    -------
    ndarray of shape (n_comparisons,)
        Adjusted p-values in the order given, never below the given ones.

    Raises
    ------
    InvalidInput
        P-values outside [0, 1] or NaN.
    UnknownName
        No such correction, or one that needs scores (`max_t`, `tukey`).
    """
    known = corrections_of_p_values()
    return np.asarray(
        known[chosen("correction of p-values", method, known)].function(p), dtype=np.float64
    )


def liberal_notes(test: SignificanceTest, n: int, settings: Settings) -> list[str]:
    """Return the note with a test's measured error rates if so many queries are too few for it to hold its level."""
    if not test.liberal or n >= FEW_QUERIES:
        return []
    rates = test.liberal.format(units=settings.units)
    return [
        (
            f"the {test.words} is liberal on fewer than {FEW_QUERIES} {settings.units} (here {n}): two-sided "
            f"false claims measured where 5 % were asked are {rates}, most on skewed or sparse scores; prefer "
            'test="t", "randomization" or "bootstrap"'
        )
    ]


def _constant_notes(count: int, settings: Settings) -> list[str]:
    if not count:
        return []
    return [
        (
            f"{count} of the differences tested: the same number on every {settings.unit}. "
            "Without variance neither t nor a bootstrap is defined: the p-value is that of the sign "
            "flips, and there is no interval"
        )
    ]


def adjust_by_family(
    correction: Correction,
    tested: PairedResult,
    d: Floats | Pairs,
    scores: Floats,
    pairs: PairPlaces,
    size: int,
    settings: Settings,
) -> PairedResult:
    """Adjust p-values and intervals within each family: all columns, or those of each measure."""
    d = as_pairs(d)
    families = [slice(start, start + size) for start in range(0, d.shape[1], size)]
    measures = [slice(each.start // len(pairs), each.stop // len(pairs)) for each in families]
    found = []
    for family, part in zip(families, measures, strict=True):
        if correction.needs == "scores":
            joint = correction.function(scores[:, :, part], pairs, settings)
            found.append(
                tuple(each.T.ravel() for each in (joint.p_value, joint.ci_low, joint.ci_high))
            )
        elif correction.is_joint:
            own = d.part(family)
            p_value = _joint_p(correction, own, settings)
            found.append(
                (p_value, *(_joint_limits(correction, own, settings) if correction.limits else ()))
            )
        else:
            found.append((correction.function(tested.p_value[family]),))
    p_value, *ends = (np.concatenate(parts) for parts in zip(*found, strict=True))
    low, high = ends or _limits_at(correction, tested, size, settings)
    return PairedResult(np.maximum(p_value, tested.p_value), low, high)


def with_family_level(settings: Settings, correction: Correction, size: int) -> Settings:
    """Return settings that ask a test for the intervals of single comparisons, and for those of the family."""
    level = correction.interval_level and correction.interval_level(settings.alpha, size)
    return replace(settings, family_alpha=level if level and level != settings.alpha else None)


def _limits_at(
    declared: Correction, tested: PairedResult, size: int, settings: Settings
) -> tuple[Floats, Floats]:
    if declared.interval_level is None:
        return np.full_like(tested.p_value, np.nan), np.full_like(tested.p_value, np.nan)
    if with_family_level(settings, declared, size).of_family is None:
        return tested.ci_low, tested.ci_high
    assert tested.family is not None, "run the test under the settings of with_family_level"
    return tested.family


def _joint_p(declared: Correction, d: Pairs, settings: Settings) -> Floats:
    """Return the p-values of a joint correction; of a claim, the largest among its hypotheses."""
    blocks, m = _hypotheses(declared, d, settings), d.shape[1]
    parts = [declared.function(columns, inner).reshape(-1, m) for columns, inner in blocks]
    least = 0.0 if d.beside is None else np.minimum(m * d.beside.least_p(settings.margin), 1.0)
    return np.asarray(np.maximum(np.concatenate(parts).max(axis=0), least))


def _joint_limits(declared: Correction, d: Pairs, settings: Settings) -> tuple[Floats, Floats]:
    assert declared.limits is not None
    claim = CLAIMS[settings.claim]
    if not claim.hypotheses:
        return open_ended(*declared.limits(_taken(declared, d), settings), settings.alternative)
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


def _hypotheses(
    declared: Correction, gains: Pairs, settings: Settings
) -> list[tuple[Floats | Pairs, Settings]]:
    """Return the columns of all hypotheses of a claim, turned so that "greater" is to be shown, and their settings.

    They are one block, so that a joint correction takes them as one family. A single comparison is
    no family: its claim is shown if each hypothesis is, without a correction for their number.
    """
    claim, m = CLAIMS[settings.claim], gains.shape[1]
    if not claim.hypotheses:
        return [(_taken(declared, gains), settings)]
    turned = [
        gains.beyond(factor * settings.margin, side).turned(
            np.full(m, 1.0 if side == "greater" else -1.0)
        )
        for side, factor in claim
    ]
    inner = settings.of_side("greater")
    return [
        (_taken(declared, block), inner) for block in (turned if m == 1 else [Pairs.joined(turned)])
    ]


def _taken(declared: Correction, columns: Pairs) -> Floats | Pairs:
    return columns if declared.takes_pairs else np.asarray(columns)


def adjusted_level(alpha: float, correction: Correction, claim: Claim, size: int) -> float:
    """Return the level of the adjusted intervals.

    Two ends that a claim leaves alpha each make a 1 - 2 alpha interval. A joint correction leaves
    alpha to all ends of the family together, so its intervals are simultaneous ones of level 1 -
    alpha.
    """
    shared = correction.is_joint and size > 1
    return round(1 - alpha * (1 if shared else max(1, claim.sides)), 12)


def family_level(alpha: float, correction: Correction, size: int) -> float:
    """Return the level at which the hardest comparison of a family is tested."""
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
    """Return the detectable differences of the test and claim made, at the level of the family."""
    if not test.power_of_t:
        return np.full(len(sd), np.nan)
    floor, _, level = _resolution(test, correction, size, n, settings)
    if floor > level * (1 + 1e-9):
        return np.full(len(sd), np.inf)
    return detectable_difference(
        n,
        sd,
        family_level(settings.alpha, correction, size),
        alternative=settings.alternative,
        claim=settings.claim,
        margin=settings.margin,
        unseen=settings.unseen,
        greatest_loss=losses,
    )


def family_notes(test: SignificanceTest, correction: Correction, size: int) -> list[str]:
    """Return notes on the limits of the correction, and on the test that its p-values come from."""
    notes = [correction.note.format(size=size)] if correction.note and size > 1 else []
    own_test = TESTS.get(correction.own_test, test)
    if own_test.words != test.words:
        notes.append(
            f"adjusted p-values come from the {own_test.words}, joint over the family; raw ones from the {test.words}"
        )
    return notes


def few_query_notes(correction: Correction, size: int, n: int, settings: Settings) -> list[str]:
    """Return a note with the rates measured on few queries and strong skew, if several are compared on so few."""
    if size == 1 or n >= FEW_QUERIES or settings.n_unseen:
        return []
    one_sided = settings.sides == 1 or bool(CLAIMS[settings.claim].hypotheses)
    words = on_few_queries(
        correction.words if correction.familywise else "",
        size,
        n=n,
        one_sided=one_sided,
        units=settings.units,
    )
    below = f", and none were measured below {FEWEST_QUERIES}" if n < FEWEST_QUERIES else ""
    return [
        (
            f"on fewer than {FEW_QUERIES} {settings.units} (here {n}{below}) errors are more frequent under strong "
            f"skew; at worst {words}"
        )
    ]


def resolution_notes(
    test: SignificanceTest, correction: Correction, size: int, n: int, settings: Settings
) -> list[str]:
    """Return a note if no data could have led to a rejection."""
    floor, at_random, level = _resolution(test, correction, size, n, settings)
    if floor <= level * (1 + 1e-9):
        return []
    # The smallest p-value possible is a multiple of 1 / (n + 1).
    needed = math.ceil((settings.n_resamples + 1) * floor / level - 1e-9) - 1
    remedy = (
        f"ask for {needed:,} resamples or more"
        if at_random
        else f"more {settings.units} are needed"
    )
    possible = f"the smallest p-value possible is {floor:.2g}, and the family of {size} asks for {level:.2g}"
    return [PowerlessNote(f"nothing can be significant here: {possible}; {remedy}")]


def limited_by_resamples(
    test: SignificanceTest, correction: Correction, n: int, settings: Settings
) -> bool:
    """Tell whether resamples, and not the number of queries, set the smallest p-value possible."""
    return _resolution(test, correction, 1, n, settings)[1]


def _resolution(
    test: SignificanceTest, correction: Correction, size: int, n: int, settings: Settings
) -> tuple[float, bool, float]:
    """Return the smallest p-value possible, whether resamples set it, and the level that it is held against."""
    level = (
        settings.alpha if correction.is_joint else family_level(settings.alpha, correction, size)
    )
    one_sided = settings.of_side("greater") if CLAIMS[settings.claim].hypotheses else settings
    # A joint correction has a smallest p-value of its own, and no adjusted p-value is below its raw
    # one.
    floor, at_random = max(
        (declared.floor(n, one_sided), declared.is_random(n)) for declared in (test, correction)
    )
    return floor, at_random, level
