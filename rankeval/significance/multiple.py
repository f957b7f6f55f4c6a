"""Many comparisons at once: adjusted p-values.

Holm, Bonferroni and max-T control the chance of *any* false claim in the family, Benjamini-Hochberg only the
expected *share* of false claims among those made: with half of ten systems really better it lets a false claim
through in 29 % of the experiments. Tukey's test must be blocked by query: the unpaired one found none of the true
differences in our simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval.significance.paired import TIE_TOLERANCE, Floats, as_columns, check_alternative
from rankeval.significance.resampling import Rng, check_resamples, share_of_patterns, sign_chunks


def none(p: ArrayLike) -> Floats:
    """Return the p-values as they are."""
    return _checked(p).copy()


def bonferroni(p: ArrayLike) -> Floats:
    """Multiply each p-value by the size of the family.

    Examples
    --------
    >>> bonferroni([0.01, 0.04]).tolist()
    [0.02, 0.08]
    """
    values = _checked(p)
    return np.minimum(values * values.size, 1.0)


def holm(p: ArrayLike) -> Floats:
    """Step down: the smallest p-value times m, the next times m - 1, never falling.

    Holm (1979), https://www.jstor.org/stable/4615733. Never weaker than Bonferroni.

    Examples
    --------
    >>> holm([0.01, 0.04]).tolist()
    [0.02, 0.04]
    """
    values = _checked(p)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def bh(p: ArrayLike) -> Floats:
    """Control the false discovery rate, by Benjamini and Hochberg (1995).

    doi:10.1111/j.2517-6161.1995.tb02031.x. Not the chance of any false claim: see the head of this module.
    """
    adjusted: Floats = np.asarray(stats.false_discovery_control(_checked(p), method="bh"), dtype=np.float64)
    return adjusted


def max_t(d: ArrayLike, *, alternative: str = "two-sided", n_resamples: int = 9999, rng: Rng = None) -> Floats:
    """Adjust jointly: sign flips shared by all columns, step-down against the largest studentised difference.

    Westfall and Young (1993). Uses how the systems' scores go together over queries, so it is less conservative than
    Holm for variants of one system; exact for candidates that were fixed before any score was seen. All patterns are
    counted up to 16 queries.

    Parameters
    ----------
    d : array_like of shape (n_queries, n_comparisons)
        Per-query differences of all comparisons of the family, over the same queries in the same order.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        As in the tests.
    n_resamples : int, default 9999
        Random patterns beyond 16 queries.
    rng : int, Generator or None
        Source of the patterns.

    Returns
    -------
    ndarray of shape (n_comparisons,)
        Adjusted p-values, in (0, 1].

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    columns = as_columns(d)
    n, m = columns.shape
    # The sum of squares does not change with the signs, so t is a monotone function of this and gives the same ranks.
    length = np.sqrt((columns**2).sum(axis=0))
    unit = columns / np.where(length > 0, length, 1.0)
    observed = _towards(unit.sum(axis=0), alternative)
    order = np.argsort(-observed, kind="stable")
    unit, falling = unit[:, order], observed[order]
    slack = TIE_TOLERANCE * np.sqrt(n)
    count = np.zeros(m, dtype=np.int64)
    for signs in sign_chunks(n, n_resamples, rng, n_columns=m):
        drawn = _towards(signs @ unit, alternative)
        # The largest among the hypotheses not yet rejected when this one is reached.
        largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        count += (largest >= falling - slack).sum(axis=0)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(share_of_patterns(count, n, n_resamples))
    return adjusted


def tukey(scores: ArrayLike, pairs: Sequence[tuple[int, int]], *, n_resamples: int = 9999, rng: Rng = None) -> Floats:
    """Adjust all pairs jointly by randomised Tukey HSD: systems shuffled within each query.

    Each pair's difference is held against the range (largest less smallest system mean) of the shuffled table.
    Carterette (2012), doi:10.1145/2094072.2094076. Assumes all systems exchangeable: with near-identical variants
    beside unlike systems it made 16 % family-wise errors where 5 % were asked; max_t or Holm do not.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_systems) or (n_queries, n_systems, n_measures)
        Scores; several measures are one family, each range in units of the measure's spread within queries.
    pairs : sequence of (int, int)
        Columns to be compared.
    n_resamples : int, default 9999
        Number of shuffles.
    rng : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    ndarray of shape (n_pairs,) or (n_pairs, n_measures)
        Adjusted two-sided p-values, in (0, 1].

    Raises
    ------
    InvalidInput
        Fewer than two queries or systems, or a score that is not finite.
    """
    check_resamples(n_resamples)
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim not in (2, 3) or table.shape[1] < 2:
        raise InvalidInput(
            f"scores have shape (n_queries, n_systems, n_measures), 2 systems or more, found {table.shape}"
        )
    as_columns(table.reshape(len(table), -1))
    blocked = table.reshape(*table.shape[:2], -1)
    # The variance within queries does not change when systems are shuffled within them.
    spread = np.sqrt(blocked.var(axis=1).mean(axis=0))
    blocked = (blocked - blocked.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    means = blocked.mean(axis=0)
    observed = np.abs(means[[i for i, _ in pairs]] - means[[j for _, j in pairs]])
    slack = TIE_TOLERANCE * np.abs(blocked).max()
    count = np.zeros(observed.shape, dtype=np.int64)
    for shuffled in _shuffled_means(blocked, n_resamples, rng):
        largest = np.ptp(shuffled, axis=1).max(axis=1)
        count += (largest[:, None, None] >= observed - slack).sum(axis=0)
    return ((count + 1) / (n_resamples + 1)).reshape(len(pairs), *table.shape[2:])


CORRECTIONS: dict[str, Callable[..., Floats]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "bh": bh,
    "none": none,
    "max_t": max_t,
    "tukey": tukey,
}
"""Name -> correction. `JOINT_CORRECTIONS` take the scores, the others the p-values."""

JOINT_CORRECTIONS = frozenset({"max_t", "tukey"})


def adjust(p: ArrayLike, method: str = "holm") -> Floats:
    """Adjust the p-values of a family.

    Parameters
    ----------
    p : array_like of shape (n_comparisons,)
        P-values in [0, 1].
    method : {"holm", "bonferroni", "bh", "none"}, default "holm"
        Which correction.

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
    if method not in CORRECTIONS or method in JOINT_CORRECTIONS:
        raise unknown("correction of p-values", method, set(CORRECTIONS) - JOINT_CORRECTIONS)
    return CORRECTIONS[method](p)


def family_level(alpha: float, method: str, size: int) -> float:
    """Return the level at which the hardest comparison of a family is tested.

    Parameters
    ----------
    alpha : float
        Level of the family.
    method : str
        A key of `CORRECTIONS`.
    size : int
        Number of comparisons.

    Returns
    -------
    float
        Alpha for bh and none, else ``alpha / size``, which for max_t and tukey is a lower bound.
    """
    return alpha if method in ("bh", "none") else alpha / size


def _checked(p: ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InvalidInput(f"expected a list of p-values in [0, 1], found {values!r}")
    return values


def _towards(statistic: Floats, alternative: str) -> Floats:
    """Turn the statistic so that large speaks for the alternative."""
    if alternative == "two-sided":
        return np.abs(statistic)
    return statistic if alternative == "greater" else -statistic


def _shuffled_means(blocked: Floats, n_resamples: int, rng: Rng) -> Iterator[Floats]:
    """Yield system means, ``(rows, n_systems, n_measures)``, of tables shuffled within queries."""
    n, k, _ = blocked.shape
    generator = np.random.default_rng(rng)
    rows = int(np.clip(2**18 // (n * k), 1, n_resamples))
    systems = np.arange(n)[:, None]
    for start in range(0, n_resamples, rows):
        size = min(rows, n_resamples - start)
        order: NDArray[np.int64] = np.argsort(generator.random((size, n, k), dtype=np.float32), axis=2)
        yield blocked[systems, order].mean(axis=1)
