"""Is a difference the same in all parts of the queries? A permutation test of interaction.

A difference shown in one slice and not in another is no evidence that the slices differ: one may have more queries, or
chance may have helped it. The interaction is tested by itself: if the difference does not depend on the slice, then any
other deal of the queries to slices of the same sizes could have been seen as well.

The statistic is Welch's, which weighs each slice by its own variance. A permutation test with it holds its level also
where variances are unequal, and the better the more queries there are (Janssen, 1997; Chung and Romano, 2013); with the
pooled variance of the ordinary F it does not.

The trap is a slice whose differences are all alike, as most are for P@1: it has no variance, so it would weigh
infinitely. No slice is taken to vary less than a hundredth as much as all queries do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval.significance.columns import TIE_TOLERANCE, as_columns, without_variance
from rankeval.significance.declarations import Floats, Settings
from rankeval.significance.resampling import chunk_rows

_LEAST_VARIANCE = 0.01
"""Least variance within a slice, as a share of the variance of all queries."""


@dataclass(frozen=True)
class Interaction:
    """Welch's statistic and its p-value, arrays of shape ``(n_pairs,)``."""

    statistic: Floats
    p_value: Floats


def interaction(d: Floats, parts: Sequence[NDArray[np.int64]], settings: Settings) -> Interaction:
    """Test whether the mean difference is the same in all parts, by permuting queries among the parts.

    Welch (1951), doi:10.1093/biomet/38.3-4.330; Chung and Romano (2013), doi:10.1214/13-AOS1090.
    ``p = (b + 1) / (B + 1)``, b the number of permutations whose statistic reaches the observed one.

    Parameters
    ----------
    d : ndarray of shape (n_queries, n_pairs)
        Per-query differences.
    parts : sequence of ndarray of int
        The places of the queries of each part: two parts or more, of two queries or more, none in two of them. Other
        queries are left out.
    settings : Settings
        Number of permutations, and their source.

    Returns
    -------
    Interaction
        A column without variance has statistic 0 and p-value 1.

    Examples
    --------
    >>> d = np.array([[0.0], [0.1], [0.2], [0.5], [0.6], [0.7]])
    >>> found = interaction(d, [np.arange(3), np.arange(3, 6)], Settings(n_resamples=999, rng=0))
    >>> print(f"{found.statistic[0]:.1f}, p = {found.p_value[0]:.1f}")  # 2 of the 20 deals part them like this
    37.5, p = 0.1
    """
    columns, sizes = as_columns(d[np.concatenate(parts)]), np.array([len(part) for part in parts])
    flat = without_variance(columns)
    centred = np.where(flat, 0.0, columns - columns.mean(axis=0))
    n, n_pairs = centred.shape
    least = _LEAST_VARIANCE * centred.var(axis=0, ddof=1)
    labels = np.repeat(np.arange(len(parts)), sizes)
    observed = _welch(centred, labels[None], sizes, least)[0]
    generator, rows = np.random.default_rng(settings.rng), chunk_rows(n, n_pairs)
    count = np.zeros(n_pairs, dtype=np.int64)
    for start in range(0, settings.n_resamples, rows):
        # Whole rows of random numbers: the stream is the same for every chunk size.
        order = np.argsort(generator.random((min(rows, settings.n_resamples - start), n)), axis=1)
        count += (_welch(centred, labels[order], sizes, least) >= observed * (1 - 1e6 * TIE_TOLERANCE)).sum(axis=0)
    return Interaction(np.where(flat, 0.0, observed), (count + 1) / (settings.n_resamples + 1))


def _welch(centred: Floats, labels: NDArray[np.int64], sizes: NDArray[np.int64], least: Floats) -> Floats:
    """Return Welch's statistic for each row of labels and each column: shape (n_rows, n_pairs)."""
    k, n = len(sizes), sizes[:, None, None]
    members = np.stack([labels == part for part in range(k)]).astype(np.float64)  # (k, n_rows, n_queries)
    mean = members @ centred / n
    variance = np.maximum((members @ centred**2 - n * mean**2) / (n - 1), least)
    with np.errstate(divide="ignore", invalid="ignore"):  # columns without variance, which the caller replaces
        weight = n / variance
        share = weight / weight.sum(axis=0)
        spread = (weight * (mean - (share * mean).sum(axis=0)) ** 2).sum(axis=0) / (k - 1)
        uneven = ((1 - share) ** 2 / (n - 1)).sum(axis=0)
        statistic: Floats = spread / (1 + 2 * (k - 2) / (k**2 - 1) * uneven)
    return np.nan_to_num(statistic)
