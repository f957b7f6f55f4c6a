"""Several collections in one test: a mean over collections, and sign flips within each.

A collection's queries are a sample of their own, so the statistic is a weighted mean of the
collections' mean differences, and signs are flipped query by query within each collection. As a
flip of one query is independent of all others, this is the plain randomisation test of differences
that are multiplied by their query's weight::

    collection        a     a     b     b     b     b
    difference       .1    .3    .0    .2    .1    .1       means: .2 in a, .1 in b
    weight          3/2   3/2   3/4   3/4   3/4   3/4       equal weights of the collections; their mean is 1
    product         .15   .45   .00   .15  .075  .075       mean: .15

Comparisons within collections are corrected together in the same way: the differences of a
collection stand in columns of their own, with 0 for the queries of the others, which no flip
changes.

The trap: weights that follow the data must not change when signs are flipped, or the test is no
longer exact. The variance of the differences does change, the mean square of a query's scores about
their mean does not.

Is a difference the same in all parts of the queries? A permutation test of interaction.

A difference shown in one slice and not in another is no evidence that the slices differ: one may
have more queries, or chance may have helped it. The interaction is tested by itself: if the
difference does not depend on the slice, then any other deal of the queries to slices of the same
sizes could have been seen as well.

The statistic is Welch's, which weighs each slice by its own variance. A permutation test with it
holds its level also where variances are unequal, and the better the more queries there are
(Janssen, 1997; Chung and Romano, 2013); with the pooled variance of the ordinary F it does not.

The trap is a slice whose differences are all alike, as most are for P@1: it has no variance, so it
would weigh infinitely. No slice is taken to vary less than a hundredth as much as all queries do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE, as_columns, without_variance
from rankeval.significance.declarations import (
    TESTS,
    Correction,
    Floats,
    PairedResult,
    Settings,
    SignificanceTest,
)
from rankeval.significance.multiple import critical_t, max_t_limits
from rankeval.significance.randomization import chunk_rows
from rankeval.significance.weighted import (
    effective_number,
    relative,
    size_by_degrees,
    weighted_error,
    weighted_mean,
)

STRATIFIED = "stratified randomisation test (sign flips within collections)"
WEIGHTS = {
    "collections": "collections of equal weight",
    "queries": "collections weighted by {units}",
    "inverse_variance": "collections weighted by inverse variance",
}
"""Ways to weigh collections -> their words in captions."""


def weights_of_collections(how: str, scores: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the share of each collection in the mean over collections.

    Examples
    --------
    >>> scores = np.array([[[0.1], [0.3]], [[0.2], [0.4]], [[0.0], [0.4]], [[0.4], [0.0]]])
    >>> parts = [np.arange(2), np.arange(2, 4)]  # variances within queries: .01 and .04
    >>> [weights_of_collections(how, scores, parts).round(2).tolist() for how in ("collections", "inverse_variance")]
    [[0.5, 0.5], [0.8, 0.2]]
    """
    chosen("weights", how, WEIGHTS)
    raw = np.array([1.0 if how == "collections" else float(len(part)) for part in parts])
    if how == "inverse_variance":
        variances = np.array([scores[part].var(axis=1).mean(axis=0) for part in parts])
        if not (variances > 0).all():
            raise InvalidInput(
                'weights="inverse_variance": on one of the collections all systems have the same scores by a measure, '
                'so its variance is 0; use weights="collections" or "queries"'
            )
        raw = raw / (variances / variances.mean(axis=0)).mean(axis=1)
    return np.asarray(raw / raw.sum())


def stratum_weights(shares: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the weight of each query: the mean of weighted scores is the mean over collections."""
    n = sum(map(len, parts))
    weights = np.empty(n)
    for part, share in zip(parts, shares, strict=True):
        weights[part] = share * n / len(part)
    return weights


@dataclass(frozen=True)
class Strata:
    """How columns of differences are weighed: a mean over strata, or several parts side by side."""

    parts: Sequence[
        NDArray[np.int64]
    ]  # The places of the queries of each stratum; together, all places
    # (n_queries, n_layouts): Weights of the queries, 0 for those that do not belong. Columns of
    # differences use the layouts in turn, each for as many columns as there are pairs.
    weights: Floats

    @classmethod
    def together(cls, parts: Sequence[NDArray[np.int64]], *shares: Floats) -> Strata:
        """Return the strata of means over collections, a layout for the shares of each mean."""
        return cls(parts, np.column_stack([stratum_weights(share, parts) for share in shares]))

    @classmethod
    def side_by_side(cls, sizes: Sequence[int], own: Floats | None = None) -> Strata:
        """Return the strata of parts that are compared each by itself, in the layout of `apart`.

        ``own`` are the weights of their queries, above 0.
        """
        ends = np.cumsum([0, *sizes])
        parts = [np.arange(*ends[k : k + 2]) for k in range(len(sizes))]
        strata = cls.together(parts, *np.eye(len(sizes)))
        if own is not None:
            for part in parts:
                strata.weights[part] *= relative(own[part])[:, None]
        return strata

    def with_unseen(self, n_unseen: int) -> Strata:
        """Return strata that each have so many queries more, the shares of the strata as they are.

        Their places are behind those of all other queries, in the order of `parts`. They weigh as
        much as the queries of their stratum do on average.
        """
        if not n_unseen:
            return self
        n, whole = len(self.weights), len(self.weights) + n_unseen * len(self.parts)
        means = [self.weights[part].mean(axis=0) for part in self.parts]
        weights = np.concatenate([self.weights, np.repeat(means, n_unseen, axis=0)])
        parts = []
        for start, part in zip(range(n, whole, n_unseen), self.parts, strict=True):
            parts.append(np.append(part, start + np.arange(n_unseen)))
            weights[parts[-1]] *= whole * len(part) / (n * len(parts[-1]))
        return Strata(parts, weights)

    def _own(self) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """Yield the places and weights of the queries of each stratum; of a mean, any layout has them."""
        for part in self.parts:
            yield part, self.weights[part].max(axis=1)

    @property
    def sizes(self) -> Floats:
        """The effective number of queries of each stratum: their number, if weights are equal."""
        return np.array([effective_number(weights) for _, weights in self._own()])

    @property
    def size_by_degrees(self) -> int:
        """The number of equal queries with the same degrees of freedom; the number itself, of equal weights."""
        return sum(size_by_degrees(weights) for _, weights in self._own())

    def effect(self, d: Floats) -> Floats:
        """Return the mean over strata of each column over the deviation within strata: d_z of one stratum."""
        mean = self.weights[:, 0] @ d / len(d)
        shares = np.array([self.weights[part, 0].sum() for part in self.parts]) / len(d)
        within = np.sqrt(shares @ self._variances(d))
        constant = np.where(mean == 0, 0.0, np.copysign(np.inf, mean))
        effect = np.divide(mean, within, out=constant, where=within > 0)
        return np.where(np.isinf(within), np.nan, effect)

    def error(self, d: Floats, run: int) -> Floats:
        """Return the standard error of the weighed mean of each column: strata are independent samples."""
        weights = self.of(d.shape[1], run)
        shares = np.array([weights[part].sum(axis=0) for part in self.parts]) / len(d)
        by_stratum = shares**2 / self.sizes[:, None] * self._variances(d)
        return np.asarray(np.sqrt(by_stratum.sum(axis=0)))

    def _variances(self, d: Floats) -> Floats:
        errors = [weighted_error(d[part], weights) for part, weights in self._own()]
        return np.asarray(self.sizes[:, None] * np.square(errors))

    def centred(self, d: Floats, run: int) -> Floats:
        """Return the weighed columns less the means of their strata."""
        found = self.of(d.shape[1], run).copy()
        for part, weights in self._own():
            found[part] *= d[part] - weighted_mean(d[part], weights)
        return found

    def of(self, n_columns: int, run: int) -> Floats:
        """Return the weights of columns that use each layout for a run of columns."""
        return self.weights[:, np.arange(n_columns) // run % self.weights.shape[1]]


def stratified_test(strata: Strata) -> SignificanceTest:
    """Return the randomisation test of a mean over strata, signs flipped query by query within each."""
    return replace(weighted_test(strata, TESTS["randomization"]), words=STRATIFIED)


def weighted_test(strata: Strata, test: SignificanceTest) -> SignificanceTest:
    """Return a test of the mean of weighted queries; the test itself, if their weights are equal."""
    weights = strata.weights[:, 0]
    if test.weighted is None or np.ptp(weights) == 0:
        return test
    return replace(test, function=partial(test.weighted, weights=weights))


def stratified(strata: Strata, correction: Correction, n_pairs: int) -> Correction:
    """Return a correction for columns of strata: its data are weighed before it sees them."""
    if correction.needs == "scores":

        def of_weighed(scores: Floats, *others: Any) -> PairedResult:
            found: PairedResult = correction.function(
                scores * strata.of(scores.shape[2], 1)[:, None], *others
            )
            return found

        return replace(correction, function=of_weighed)
    if correction.needs == "differences":
        return replace(
            correction,
            function=lambda d, settings: correction.function(
                d * strata.of(d.shape[1], n_pairs), settings
            ),
            own_test="",
            takes_pairs=False,
            # Centring is within strata, so the ends are found here; another joint correction has
            # none.
            limits=strata_limits(strata, n_pairs) if correction.limits is max_t_limits else None,
        )
    return correction


def strata_limits(
    strata: Strata, n_pairs: int
) -> Callable[[Floats, Settings], tuple[Floats, Floats]]:
    """Return `max_t_limits` for columns of strata: differences are centred within each, and so are their errors."""

    def limits(d: Floats, settings: Settings) -> tuple[Floats, Floats]:
        weights = strata.of(d.shape[1], n_pairs)
        mean, error = (weights * d).mean(axis=0), strata.error(d, n_pairs)
        centred = strata.centred(d, n_pairs)
        flat = np.abs(centred).max(axis=0) <= TIE_TOLERANCE * np.abs(weights * d).max(axis=0)
        centred[:, flat] = 0.0
        q = critical_t(centred, np.count_nonzero(weights, axis=0), settings)
        reach = np.where(flat, np.inf, q * error) if q < np.inf else np.full_like(mean, np.inf)
        return mean - reach, mean + reach

    return limits


def apart(scores: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return scores with measures of their own for each part: 0 on the queries of the others.

    Joint corrections then run over the parts as over measures, with the weights of
    `Strata.side_by_side`.

    Examples
    --------
    >>> scores = np.array([[[1.0]], [[2.0]], [[4.0]]])
    >>> apart(scores, [np.array([0, 2]), np.array([1])])[:, 0].tolist()
    [[1.0, 0.0], [4.0, 0.0], [0.0, 2.0]]
    """
    starts = np.cumsum([0, *map(len, parts)])
    block = np.zeros((starts[-1], *scores.shape[1:], len(parts)))
    for place, (part, start) in enumerate(zip(parts, starts, strict=False)):
        block[start : start + len(part), :, :, place] = scores[part]
    return block.reshape(len(block), scores.shape[1], -1)


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
    ``p = (b + 1) / (B + 1)``, b the number of permutations whose statistic reaches the observed
    one.

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
        drawn = _welch(centred, labels[order], sizes, least)
        count += (drawn >= observed * (1 - 1e6 * TIE_TOLERANCE)).sum(axis=0)
    return Interaction(np.where(flat, 0.0, observed), (count + 1) / (settings.n_resamples + 1))


def _welch(
    centred: Floats, labels: NDArray[np.int64], sizes: NDArray[np.int64], least: Floats
) -> Floats:
    """Return Welch's statistic for each row of labels and each column: shape (n_rows, n_pairs)."""
    k, n = len(sizes), sizes[:, None, None]
    members = np.stack([labels == part for part in range(k)]).astype(
        np.float64
    )  # (k, n_rows, n_queries)
    mean = members @ centred / n
    variance = np.maximum((members @ centred**2 - n * mean**2) / (n - 1), least)
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # columns without variance, which the caller replaces
        weight = n / variance
        share = weight / weight.sum(axis=0)
        spread = (weight * (mean - (share * mean).sum(axis=0)) ** 2).sum(axis=0) / (k - 1)
        uneven = ((1 - share) ** 2 / (n - 1)).sum(axis=0)
        statistic: Floats = spread / (1 + 2 * (k - 2) / (k**2 - 1) * uneven)
    return np.nan_to_num(statistic)
