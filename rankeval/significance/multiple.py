"""Many comparisons at once: adjusted p-values.

Holm, Bonferroni and max-T control the chance of *any* false claim in the family, Benjamini-Hochberg only the
expected *share* of false claims among those made: where half of ten systems are really better it lets a false claim
through far more often than in 5 % of the experiments. Tukey's test must be blocked by query: the unpaired one found
none of the true differences in our simulation.

`max_t` and `tukey` resample the data of the whole family, because the largest of many statistics depends on how the
systems' scores go together over queries. The others take a list of p-values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE, as_columns, standard_error, without_variance
from rankeval.significance.declarations import Floats, Settings, most_reaching
from rankeval.significance.pairs import PairPlaces, Pairs, as_pairs
from rankeval.significance.signs import number_of_patterns, share_of_patterns, sums_of


def none(p: ArrayLike) -> Floats:
    """Return the p-values as they are.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 18.0-65.2 %; skew,
    one baseline 21.0-80.0 %; RR, one baseline 21.5-62.6 %; P@1, one baseline 25.9-63.1 %; beta, one baseline
    19.7-47.5 %; sym, all pairs 56.1-63.7 %; near-identical variants 80.2 %; sym, half are +.12 18.6 %; exponential, one
    baseline 27.4-60.3 %; mixed exponential, all pairs 52.3-56.6 %. One-sided, the worse side: sym, one baseline
    24.9-48.9 %; skew, one baseline 34.6-70.2 %; RR, one baseline 25.7-47.3 %; P@1, one baseline 27.0-43.7 %;
    exponential, one baseline 31.4-42.1 %.
    """
    return _checked(p).copy()


def bonferroni(p: ArrayLike) -> Floats:
    """Multiply each p-value by the size of the family.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 3.1-4.3 %; skew,
    one baseline 5.1-7.3 %; RR, one baseline 0.0-1.7 %; P@1, one baseline 0.0-2.1 %; beta, one baseline 3.9-4.4 %; sym,
    all pairs 2.9-3.6 %; near-identical variants 2.4 %; sym, half are +.12 2.2 %; exponential, one baseline 7.9-20.7 %;
    mixed exponential, all pairs 5.8-7.9 %. One-sided, the worse side: sym, one baseline 3.0-3.7 %; skew, one baseline
    6.8-10.5 %; RR, one baseline 0.1-2.2 %; P@1, one baseline 0.1-2.9 %; exponential, one baseline 10.8-21.0 %.

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

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 3.1-4.3 %; skew,
    one baseline 5.1-7.3 %; RR, one baseline 0.0-1.7 %; P@1, one baseline 0.0-2.1 %; beta, one baseline 3.9-4.4 %; sym,
    all pairs 2.9-3.6 %; near-identical variants 2.4 %; sym, half are +.12 3.6 %; exponential, one baseline 7.9-20.7 %;
    mixed exponential, all pairs 5.8-7.9 %. One-sided, the worse side: sym, one baseline 3.0-3.7 %; skew, one baseline
    6.8-10.5 %; RR, one baseline 0.1-2.2 %; P@1, one baseline 0.1-2.9 %; exponential, one baseline 10.8-21.0 %.

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

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 3.4-4.6 %; skew,
    one baseline 5.3-7.6 %; RR, one baseline 0.1-2.1 %; P@1, one baseline 0.1-2.6 %; beta, one baseline 4.4-4.5 %; sym,
    all pairs 3.2-4.0 %; near-identical variants 3.7 %; sym, half are +.12 10.5 %; exponential, one baseline 8.5-21.8 %;
    mixed exponential, all pairs 6.4-8.6 %. One-sided, the worse side: sym, one baseline 3.5-4.2 %; skew, one baseline
    7.2-11.3 %; RR, one baseline 0.4-2.9 %; P@1, one baseline 0.8-3.4 %; exponential, one baseline 11.6-21.7 %.
    """
    return np.asarray(stats.false_discovery_control(_checked(p), method="bh"), dtype=np.float64)


def by(p: ArrayLike) -> Floats:
    """Control the false discovery rate under any dependence, by Benjamini and Yekutieli (2001).

    doi:10.1214/aos/1013699998. Each p-value of `bh` times 1 + 1/2 + ... + 1/m: the price of a promise that does not
    depend on how the comparisons go together.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 0.7-2.2 %; skew,
    one baseline 2.0-3.2 %; RR, one baseline 0.0-0.3 %; P@1, one baseline 0.0-0.3 %; beta, one baseline 1.3-2.3 %; sym,
    all pairs 0.8-0.9 %; near-identical variants 0.6 %; sym, half are +.12 3.4 %; exponential, one baseline 5.1-13.5 %;
    mixed exponential, all pairs 2.5-3.6 %. One-sided, the worse side: sym, one baseline 0.8-1.5 %; skew, one baseline
    3.0-5.1 %; RR, one baseline 0.0-0.5 %; P@1, one baseline 0.0-0.6 %; exponential, one baseline 6.8-15.1 %.
    """
    return np.asarray(stats.false_discovery_control(_checked(p), method="by"), dtype=np.float64)


def max_t(d: ArrayLike | Pairs, settings: Settings) -> Floats:
    """Adjust jointly: sign flips shared by all columns, step-down against the largest studentised difference.

    Westfall and Young (1993). Uses how the systems' scores go together over queries, so it is less conservative than
    Holm for variants of one system. All patterns are counted up to 16 queries.

    Exact if differences are as likely with their signs flipped, query by query. Candidates that share a baseline share
    its luck: skewed scores then make false claims more frequent than asked, most of all one-sided, although all
    candidates were fixed before any score was seen.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, one baseline 4.8-5.2 %; skew,
    one baseline 5.6-8.4 %; RR, one baseline 4.7-5.9 %; P@1, one baseline 2.4-4.7 %; beta, one baseline 4.7 %; sym, all
    pairs 4.7-4.8 %; near-identical variants 4.9 %; sym, half are +.12 4.4 %; exponential, one baseline 10.9-21.2 %;
    mixed exponential, all pairs 8.2-10.5 %. One-sided, the worse side: sym, one baseline 4.9-5.3 %; skew, one baseline
    7.9-12.5 %; RR, one baseline 5.3-8.3 %; P@1, one baseline 4.7-7.2 %; exponential, one baseline 14.8-24.3 %.

    Parameters
    ----------
    d : array_like of shape (n_queries, n_comparisons), or Pairs
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
    pairs = as_pairs(d)
    n, m = pairs.shape
    length, total, lost = pairs.summed(_lengths_and_sums, np.ones(n))
    observed = settings.evidence(total)
    order = np.argsort(-observed, kind="stable")
    falling, scale, ordered = observed[order], _inverse(length[order]), pairs.at(order)
    least = falling - TIE_TOLERANCE * np.sqrt(n) - scale * ordered.noise(lost[order], np.ones(n))
    count = np.zeros(m, dtype=np.int64)
    for sums in sums_of(ordered, settings):
        # The largest among the hypotheses not yet rejected when this one is reached.
        largest = np.full(sums.shape[1], -np.inf)
        for columns in ordered.blocks_of_sums(sums.shape[1], backwards=True):
            drawn = settings.evidence(ordered.sums(sums, columns) * scale[columns, None])
            for place in reversed(range(len(drawn))):
                np.maximum(largest, drawn[place], out=largest)
                count[columns.start + place] += np.count_nonzero(largest >= least[columns.start + place])
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(share_of_patterns(count, n, settings))
    return adjusted


def max_t_limits(d: ArrayLike | Pairs, settings: Settings) -> tuple[Floats, Floats]:
    """Return the intervals that hold for all columns together: ``mean +- q * standard error``, one q for all.

    q is the quantile of the largest studentised mean of the *centred* differences under the sign flips of `max_t`
    (single-step max-T; Westfall and Young 1993). Centring takes the observed effects out, so the intervals hold also
    if some systems differ; the p-values of `max_t` come from differences as they are, step down, and can reject where
    the interval still holds 0, or the other way around.

    Up to 20 intervals at once hold the means in 93 to 97 % of samples of 50 queries, where 95 % were asked, and in
    92 to 94 % of samples of 25 skewed ones. Of 10 exponential differences they hold in 80 % of samples of 10 queries,
    85 % of 25, 89 % of 50; `rankeval tests max_t` has all that was measured.

    Parameters
    ----------
    d, settings
        As in `max_t`. One-sided alternatives have one-sided intervals.

    Returns
    -------
    low, high : ndarray of shape (n_comparisons,)
        The ends; infinite if so few patterns cannot reach the level.

    Raises
    ------
    InvalidInput
        As `max_t`.
    """
    pairs = as_pairs(d)

    def of_block(columns: Floats) -> tuple[Floats, ...]:
        mean = columns.mean(axis=0)
        centred = np.where(without_variance(columns), 0.0, columns - mean)
        return mean, standard_error(columns), np.sqrt((centred**2).sum(axis=0))

    mean, error, length = pairs.summed(of_block)
    q = _critical(pairs.centred(mean), length, np.full(len(mean), len(pairs)), settings)
    # Differences that are all the same tell no width.
    reach = np.where(length > 0, q * error, np.inf) if q < np.inf else np.full_like(mean, np.inf)
    return mean - reach, mean + reach


def critical_t(centred: Floats, sizes: NDArray[np.int64], settings: Settings) -> float:
    """Return the quantile of the largest Student's t among columns of centred differences under sign flips.

    Parameters
    ----------
    centred : ndarray of shape (n_queries, n_comparisons)
        Centred differences, 0 for queries that are not the column's.
    sizes : ndarray of shape (n_comparisons,)
        Number of queries of each column.
    settings : Settings
        Level, number of random patterns beyond 16 queries, and their source.

    Returns
    -------
    float
        Infinite if so few patterns cannot reach the level.
    """
    return _critical(Pairs(centred.T), np.sqrt((centred**2).sum(axis=0)), sizes, settings)


def _critical(centred: Pairs, length: Floats, sizes: NDArray[np.int64], settings: Settings) -> float:
    """Return the quantile of `critical_t`, given the root of each column's sum of squares; 0 for columns left out."""
    scale, alike = _inverse(length), np.ptp(sizes) == 0
    largest = []
    for sums in sums_of(centred, settings):
        largest.append(np.full(sums.shape[1], -np.inf))
        for columns in centred.blocks_of_sums(sums.shape[1]):
            drawn = settings.evidence(centred.sums(sums, columns) * scale[columns, None])
            # Student's t rises with the sum: where all columns are equally long, the largest sum is that of the
            # largest t.
            t = drawn if alike else _t_of_sums(drawn.T, sizes[columns]).T
            np.maximum(largest[-1], t.max(axis=0), out=largest[-1])
    found = _exceeded(np.concatenate(largest), number_of_patterns(len(centred), settings), settings)
    return float(_t_of_sums(np.array(found), sizes[:1])[0]) if alike else found


def _t_of_sums(sums: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Return Student's t of flipped columns of unit length, from their sums; infinite without variance."""
    # The mean is r / n, and the variance (1 - r^2 / n) / (n - 1).
    rest = sizes - sums**2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = sums * np.sqrt((sizes - 1) / rest)
    return np.where(rest > TIE_TOLERANCE * sizes, t, np.copysign(np.inf, sums))


def tukey(scores: ArrayLike, pairs: PairPlaces, settings: Settings, *, drawn: Floats | None = None) -> Floats:
    """Adjust all pairs jointly by randomised Tukey HSD: systems shuffled within each query.

    Each pair's difference is held against the range (largest less smallest system mean) of the shuffled table.
    Carterette (2012), doi:10.1145/2094072.2094076. Assumes all systems exchangeable: with near-identical variants
    beside unlike systems it is liberal; max_t and Holm are not.

    Measured false claims where 5 % were asked, one or more in a family, two-sided: sym, all pairs 4.8-4.9 %;
    near-identical variants 16.8 %; mixed exponential, all pairs 5.2-5.8 %.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_systems) or (n_queries, n_systems, n_measures)
        Scores; several measures are one family, each range in units of the measure's spread within queries.
    pairs : sequence of (int, int)
        Columns to be compared.
    settings : Settings
        Number of shuffles and their source.
    drawn : ndarray of shape (n_resamples,), optional
        The result of `tukey_ranges`, if it is at hand.

    Returns
    -------
    ndarray of shape (n_pairs,) or (n_pairs, n_measures)
        Adjusted two-sided p-values, in (0, 1].

    Raises
    ------
    InvalidInput
        Fewer than two queries or systems, or a score that is not finite.
    """
    blocked, _ = _blocked(scores)
    means = blocked.mean(axis=0)
    low, high = np.transpose(pairs)
    observed = np.abs(means[low] - means[high])
    slack = TIE_TOLERANCE * np.abs(blocked).max()
    ranges = np.sort(_ranges(blocked, settings) if drawn is None else drawn)
    count = len(ranges) - np.searchsorted(ranges, observed - slack)
    return np.asarray((count + 1) / (settings.n_resamples + 1)).reshape(len(pairs), *np.shape(scores)[2:])


def tukey_limits(
    scores: ArrayLike, pairs: PairPlaces, settings: Settings, *, drawn: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the intervals that belong to `tukey`: difference +- the quantile of the range, in units of the measure.

    An interval excludes 0 exactly if its p-value is at most alpha.

    Parameters
    ----------
    scores, pairs, settings, drawn
        As in `tukey`.

    Returns
    -------
    low, high : ndarray of shape (n_pairs,) or (n_pairs, n_measures)
        The ends.

    Raises
    ------
    InvalidInput
        As `tukey`.
    """
    blocked, spread = _blocked(scores)
    means = blocked.mean(axis=0) * spread
    low, high = np.transpose(pairs)
    difference = means[high] - means[low]
    ranges = _ranges(blocked, settings) if drawn is None else drawn
    reach = np.where(spread > 0, _exceeded(ranges, settings.n_resamples + 1, settings) * spread, np.inf)
    shape = (len(pairs), *np.shape(scores)[2:])
    return (difference - reach).reshape(shape), (difference + reach).reshape(shape)


def tukey_ranges(scores: ArrayLike, settings: Settings) -> Floats:
    """Draw what `tukey` and `tukey_limits` read: the range of the system means in each shuffled table.

    Parameters
    ----------
    scores, settings
        As in `tukey`.

    Returns
    -------
    ndarray of shape (n_resamples,)
        Of several measures the largest range, each in units of its measure's spread within queries.

    Raises
    ------
    InvalidInput
        As `tukey`.
    """
    return _ranges(_blocked(scores)[0], settings)


def _blocked(scores: ArrayLike) -> tuple[Floats, Floats]:
    """Check scores, and return them less their query's mean in units of the spread within queries, and that spread."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim not in (2, 3) or table.shape[1] < 2:
        raise InvalidInput(
            f"scores have shape (n_queries, n_systems, n_measures), 2 systems or more, found {table.shape}"
        )
    as_columns(table.reshape(len(table), -1))
    blocked = table.reshape(*table.shape[:2], -1)
    # The variance within queries does not change when systems are shuffled within them.
    spread = np.sqrt(blocked.var(axis=1).mean(axis=0))
    return (blocked - blocked.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0), spread


def _lengths_and_sums(columns: Floats) -> tuple[Floats, Floats]:
    """Return the root of each column's sum of squares, and the sum of the column scaled to a sum of squares of 1.

    Signs leave the sum of squares as it is, so sums of such columns order the patterns as Student's t does.
    """
    length = np.sqrt((columns**2).sum(axis=0))
    return length, (columns / np.where(length > 0, length, 1.0)).sum(axis=0)


def _inverse(length: Floats) -> Floats:
    """Return one over each length; 0 for columns of zeros, whose sums are 0."""
    return np.asarray((length > 0) / np.where(length > 0, length, 1.0))


def _exceeded(drawn: Floats, patterns: int, settings: Settings) -> float:
    """Return the least value that a share of at most alpha of the patterns exceeds; infinite if they are too few."""
    # All patterns were counted, or the observed one comes on top of those that were drawn: it exceeds every value.
    counted = len(drawn) == patterns
    k = most_reaching(settings.alpha, patterns)
    # Counted patterns come in pairs, two-sided: the observed one has the same evidence as its mirror image.
    if k < (settings.sides if counted else 1):
        return np.inf
    place = len(drawn) - k - counted
    return float(np.partition(drawn, place)[place])


def _checked(p: ArrayLike) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InvalidInput(f"expected a list of p-values in [0, 1], found {values!r}")
    return values


def _ranges(blocked: Floats, settings: Settings) -> Floats:
    """Return the largest range of system means of each shuffled table."""
    return np.concatenate([np.ptp(shuffled, axis=1).max(axis=1) for shuffled in _shuffled_means(blocked, settings)])


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
