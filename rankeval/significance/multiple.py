"""Many comparisons at once: adjusted p-values.

Holm, Bonferroni and max-T control the chance of *any* false claim in the family, Benjamini-Hochberg only the
expected *share* of false claims among those made: with half of ten systems really better it lets a false claim
through in 29 % of the experiments. Tukey's test must be blocked by query: the unpaired one found none of the true
differences in our simulation.

The first four take a list of p-values. `max_t` and `tukey` resample the data of the whole family, because the largest
of many statistics depends on how the systems' scores go together over queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE, as_columns
from rankeval.significance.declarations import Floats, Settings
from rankeval.significance.resampling import share_of_patterns, sign_chunks


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

    doi:10.1111/j.2517-6161.1995.tb02031.x. It does not control the chance of any false claim: see the head of this
    module.
    """
    return np.asarray(stats.false_discovery_control(_checked(p), method="bh"), dtype=np.float64)


def max_t(d: ArrayLike, settings: Settings) -> Floats:
    """Adjust jointly: sign flips shared by all columns, step-down against the largest studentised difference.

    Westfall and Young (1993). Uses how the systems' scores go together over queries, so it is less conservative than
    Holm for variants of one system; exact for candidates that were fixed before any score was seen. All patterns are
    counted up to 16 queries.

    Parameters
    ----------
    d : array_like of shape (n_queries, n_comparisons)
        Per-query differences of all comparisons of the family, over the same queries in the same order.
    settings : Settings
        Alternative, number of random patterns beyond 16 queries, and their source.

    Returns
    -------
    ndarray of shape (n_comparisons,)
        Adjusted p-values, in (0, 1].

    Raises
    ------
    InvalidInput
        Fewer than two queries, or a difference that is not finite.
    """
    columns = as_columns(d)
    n, m = columns.shape
    # Signs leave the sum of squares as it is, so the sum over its root orders the patterns as Student's t does.
    length = np.sqrt((columns**2).sum(axis=0))
    unit = columns / np.where(length > 0, length, 1.0)
    observed = settings.evidence(unit.sum(axis=0))
    order = np.argsort(-observed, kind="stable")
    unit, falling = unit[:, order], observed[order]
    slack = TIE_TOLERANCE * np.sqrt(n)
    count = np.zeros(m, dtype=np.int64)
    for signs in sign_chunks(n, settings, n_columns=m):
        drawn = settings.evidence(signs @ unit)
        # The largest among the hypotheses not yet rejected when this one is reached.
        largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        count += (largest >= falling - slack).sum(axis=0)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(share_of_patterns(count, n, settings))
    return adjusted


def tukey(scores: ArrayLike, pairs: Sequence[tuple[int, int]], settings: Settings) -> Floats:
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
    settings : Settings
        Number of shuffles and their source.

    Returns
    -------
    ndarray of shape (n_pairs,) or (n_pairs, n_measures)
        Adjusted two-sided p-values, in (0, 1].

    Raises
    ------
    InvalidInput
        Fewer than two queries or systems, or a score that is not finite.
    """
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
    for shuffled in _shuffled_means(blocked, settings):
        largest = np.ptp(shuffled, axis=1).max(axis=1)
        count += (largest[:, None, None] >= observed - slack).sum(axis=0)
    return ((count + 1) / (settings.n_resamples + 1)).reshape(len(pairs), *table.shape[2:])


def _checked(p: ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InvalidInput(f"expected a list of p-values in [0, 1], found {values!r}")
    return values


def _shuffled_means(blocked: Floats, settings: Settings) -> Iterator[Floats]:
    """Yield system means, ``(rows, n_systems, n_measures)``, of tables shuffled within queries."""
    n, k, _ = blocked.shape
    generator = np.random.default_rng(settings.rng)
    rows = int(np.clip(2**18 // (n * k), 1, settings.n_resamples))
    systems = np.arange(n)[:, None]
    for start in range(0, settings.n_resamples, rows):
        size = min(rows, settings.n_resamples - start)
        # Sorting random numbers shuffles: float32 is enough, since ties are rare and harm no order more than another.
        order: NDArray[np.int64] = np.argsort(generator.random((size, n, k), dtype=np.float32), axis=2)
        yield blocked[systems, order].mean(axis=1)
