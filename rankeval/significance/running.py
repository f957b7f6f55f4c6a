"""Run a test or a correction by its name, with all that holds for every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankeval._registry import chosen, unknown
from rankeval.errors import InvalidInput
from rankeval.significance.claims import CLAIMS, Unseen
from rankeval.significance.columns import without_variance
from rankeval.significance.declarations import (
    Alternative,
    ClaimName,
    Floats,
    PairedResult,
    Rng,
    Settings,
    SignificanceTest,
    joined,
    one_pattern,
    seed_of,
)
from rankeval.significance.pairs import BLOCK, LARGE_BLOCK, Pairs, as_pairs
from rankeval.significance.rates import FEW_QUERIES
from rankeval.significance.registry import TESTS, corrections_of_p_values


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
        What is to be shown; see `claims`. Other claims than "difference" read `d` as gains: positive is better.
    margin : float, default 0
        Of the claim.
    unseen : int, default 0
        Number of queries that "not_worse" and "equivalent" add to those of `d`: they lost all that a query can. By
        default the test is the plain one; `rankeval.compare` adds one query.
    greatest_loss : float or array_like of shape (n_pairs,), default 1
        The loss of such a query. 1 is right for measures in [0, 1].

    Returns
    -------
    PairedResult
        P-values and intervals, in the shape of `d` without its first axis.

    Raises
    ------
    InvalidInput
        Fewer than two queries, a difference that is not finite, no resample, or a margin that does not go with the
        claim.
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
    gains: Pairs, losses: ArrayLike, settings: Settings, *, n_strata: int = 1, seen: ArrayLike | None = None
) -> Pairs:
    """Return gains with the queries that nobody saw, if the claim counts any.

    Parameters
    ----------
    gains : Pairs
        Gains by query.
    losses : float or array_like of shape (n_pairs,)
        The greatest loss of a query.
    settings : Settings
        Claim, and number of unseen queries.
    n_strata : int, default 1
        Each of so many collections has unseen queries of its own.
    seen : array_like of shape (n_pairs,), optional
        Number of queries of each column, if it is not that of the gains.
    """
    if not settings.n_unseen:
        return gains
    n, m = gains.shape
    sizes = n if seen is None else seen
    loss, of_column = (np.broadcast_to(np.asarray(each, dtype=np.float64), m) for each in (losses, sizes))
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
    def shaped(values: Floats) -> Any:
        return np.asarray(values).reshape(shape)[()]

    family = found.family and (shaped(found.family[0]), shaped(found.family[1]))
    return PairedResult(shaped(found.p_value), shaped(found.ci_low), shaped(found.ci_high), found.notes, family)


def _run_claim(test: SignificanceTest, gains: Pairs, settings: Settings) -> PairedResult:
    """Test each hypothesis of the claim on the gains moved by its margin: the largest p, and the ends of all."""
    results = []
    for side, factor in CLAIMS[settings.claim]:
        bound = factor * settings.margin
        # A gain that is the margin but for rounding must be a tie for tests that count or rank.
        results.append((bound, _run(test, gains.beyond(bound, side), settings.of_side(side), len(gains))))

    def ends(of_result: Callable[[PairedResult], tuple[Floats, Floats]], alpha: float) -> tuple[Floats, Floats]:
        lows, highs = zip(*(of_result(found) for _, found in results), strict=True)
        bounds = [bound for bound, _ in results]
        low = np.max([low + bound for low, bound in zip(lows, bounds, strict=True)], axis=0)
        high = np.min([high + bound for high, bound in zip(highs, bounds, strict=True)], axis=0)
        if gains.beside is None:
            return low, high
        reach = gains.beside.reach(alpha)
        return np.minimum(low, -reach), np.maximum(high, reach)

    notes = tuple(dict.fromkeys(note for _, found in results for note in found.notes))
    wide, family = settings.of_family, None
    if wide:
        family = ends(lambda found: found.family or (found.ci_low, found.ci_high), wide.alpha)
    p_value = np.max([found.p_value for _, found in results], axis=0)
    if gains.beside is not None:
        p_value = np.maximum(p_value, gains.beside.least_p(settings.margin))
    return PairedResult(p_value, *ends(lambda found: (found.ci_low, found.ci_high), settings.alpha), notes, family)


def _run(test: SignificanceTest, pairs: Pairs, settings: Settings, n: int) -> PairedResult:
    """Run a test on checked columns, for an alternative, some columns at a time; n queries were seen."""
    if test.takes_pairs and not test.needs_variance:
        found, n_constant = _finished(test, test.function(pairs, settings), settings), 0
        found = without_ends(found, *pairs.summed(lambda d: (without_variance(d),)))
    else:
        blocks = list(pairs.blocks(LARGE_BLOCK if test.resamples else BLOCK))
        if len(blocks) > 1:  # all blocks see the same resamples
            settings = replace(settings, rng=seed_of(settings.rng))
        parts, constant = zip(*(_run_block(test, pairs[columns], settings) for columns in blocks), strict=True)
        found, n_constant = joined(parts), sum(constant)
    declared = [test.note] if test.note else []
    return replace(found, notes=(*found.notes, *declared, *_constant_notes(n_constant), *liberal_notes(test, n)))


def _run_block(test: SignificanceTest, columns: Floats, settings: Settings) -> tuple[PairedResult, int]:
    """Run a test on some columns; return its result, and how many of them are constants other than 0."""
    n, mean, constant = len(columns), columns.mean(axis=0), without_variance(columns)
    flat = constant & test.needs_variance
    if not flat.any():
        return without_ends(_finished(test, _asked(test, columns, settings), settings), constant), 0
    # Columns that the function is not defined for are replaced, not left out: how BLAS rounds depends on the number
    # of columns, and no p-value may depend on another pair's.
    found = _finished(test, _asked(test, np.where(flat, np.arange(n)[:, None], columns), settings), settings, flat)
    p_value = _as_p(np.where(flat, _p_of_constants(mean, n, settings), found.p_value))
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
    if settings.of_family is None or not isinstance(found, PairedResult) or found.family is not None:
        return found
    again = test.function(columns, settings.of_family)
    return replace(found, family=(again.ci_low, again.ci_high))


def _finished(
    test: SignificanceTest, found: PairedResult, settings: Settings, unknown: NDArray[np.bool_] | None = None
) -> PairedResult:
    """Check what a function returned, but for columns that it does not know, and open one-sided intervals."""
    known = slice(None) if unknown is None else ~unknown
    if not isinstance(found, PairedResult) or np.isnan(np.asarray(found.p_value)[known]).any():
        raise InvalidInput(
            f"the {test.words} gave no p-value for some of the differences: a test returns a PairedResult without nan"
        )
    low, high = opened(np.asarray(found.ci_low), np.asarray(found.ci_high), settings.alternative)
    family = found.family and opened(*found.family, settings.alternative)
    return PairedResult(_as_p(np.asarray(found.p_value)), low, high, found.notes, family)


def _as_p(values: Floats) -> Floats:
    return np.clip(values, np.finfo(np.float64).tiny, 1.0)  # 2 in 2^2000 underflows, and is no 0


def opened(low: Floats, high: Floats, alternative: Alternative) -> tuple[Floats, Floats]:
    """Make the end of intervals infinite that a one-sided alternative leaves open."""
    if alternative == "greater":
        return low, np.full_like(high, np.inf)
    return (np.full_like(low, -np.inf), high) if alternative == "less" else (low, high)


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
    if method not in known:
        raise unknown("correction of p-values", method, known)
    return known[method].function(p)


def _p_of_constants(mean: Floats, n: int, settings: Settings) -> Floats:
    """Return the p-values of differences that are the same number on every query.

    Equal systems get 1. For a constant difference the t statistic is infinite and a bootstrap sees one value only:
    either would print a p of 0. The sign flips still have a distribution there, in which the observed order is the
    most extreme one: 2 in 2^n, or 1 in 2^n for a one-sided test.
    """
    return np.where(settings.evidence(mean) > 0, one_pattern(n, settings), 1.0)


def liberal_notes(test: SignificanceTest, n: int) -> list[str]:
    """Return the note with a test's measured error rates if so many queries are too few for it to hold its level."""
    if not test.liberal or n >= FEW_QUERIES:
        return []
    note = (
        f"the {test.words} is liberal on fewer than {FEW_QUERIES} queries (here {n}): two-sided false claims "
        f'measured where 5 % were asked are {test.liberal}, most on skewed or sparse scores; prefer test="t", '
        '"randomization" or "bootstrap"'
    )
    return [note]


def _constant_notes(count: int) -> list[str]:
    if not count:
        return []
    note = (
        f"{count} of the differences tested: the same number on every query. Without variance neither t nor a "
        "bootstrap is defined: the p-value is that of the sign flips, and no interval can be told"
    )
    return [note]
