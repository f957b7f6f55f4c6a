"""Analysis of variance: the variance of scores by query, by system, by replicate, by pairs of these, and the rest.

Scores are a block of shape ``(n_queries, n_systems, n_replicates)``. A replicate is one more score
of the same system on the same query: on another shard of the collection, with another seed, in
another repeat of a cross-validation. Without replicates there is one score in each cell, and query
x system cannot be told from error::

    source               crossed               nested           no replicates
    query                (none)                query x system   error
    system               query x system        query x system   error
    replicate            query x replicate
    query x system       error                 error            (part of error)
    query x replicate    error                 (part of error)
    system x replicate   error                 (part of error)

Each column says what a source is tested against, for queries drawn at random. Some systems suit
some queries, so the mean difference of two systems varies with the draw of the queries, and query x
system is the measure of this variance. Studies of TREC runs often take the queries as fixed and
test everything against error: then the claim is about these queries only.

Crossed replicates are the same for all systems: shards, folds. A query finds more in one shard than
in another, for every system. This is query x replicate, and is no error of a comparison of systems.
Nested replicates are interchangeable within a cell, as independent seeds are; whatever differs
between them is error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import Floats

QUERIES = ("random", "fixed")
REPLICATES = ("crossed", "nested")
# Axes of the block along which the effects of a source vary.
AXES = {
    "query": (0,),
    "system": (1,),
    "replicate": (2,),
    "query x system": (0, 1),
    "query x replicate": (0, 2),
    "system x replicate": (1, 2),
    "error": (0, 1, 2),
}


@dataclass(frozen=True)
class VarianceSource:
    """One row of an analysis of variance."""

    # "query", "system", "replicate", "query x system", "query x replicate", "system x replicate" or
    # "error".
    source: str
    df: int  # Degrees of freedom
    sum_sq: float  # Sum of squares, and this by the degrees of freedom
    mean_sq: float
    F: float = (
        math.nan
    )  # Mean square by the one of ``against``; nan if there is none, or if it is 0
    p_value: float = (
        math.nan
    )  # Chance of so large an F if the source has no effect; never 0, nan with F
    against: str = ""  # The source whose mean square F divides by; empty if there is none
    # Partial eta squared, ``SS / (SS + SS_against)``: in [0, 1], too large on few queries.
    eta_squared: float = math.nan
    # Partial omega squared, ``df (F - 1) / (df (F - 1) + N)`` with N scores: in [0, 1], 0 if F is
    # below 1.
    omega_squared: float = math.nan


@dataclass(frozen=True)
class TwoWay:
    """An analysis of variance by query and system, and by replicate if replicates are crossed."""

    sources: tuple[VarianceSource, ...]  # In the order of `AXES`; error last
    # Source -> estimated variance; below 0 if a mean square is smaller than the one it is tested
    # against.
    components: Mapping[str, float]


def two_way(scores: ArrayLike, *, queries: str = "random", replicates: str = "crossed") -> TwoWay:
    """Analyse the variance of scores by query and system, and by replicate.

    References
    ----------
    Nested: Voorhees, Samarov and Soboroff, Using replicates in information retrieval evaluation, TOIS 36, 2 (2017).
    Crossed: Ferro, Kim and Sanderson, Using collection shards to study retrieval performance effect sizes, TOIS 37, 3
    (2019); Faggioli and Ferro, System effect estimation by sharding: a comparison between ANOVA approaches to detect
    significant differences, ECIR 2021.

    Examples
    --------
    >>> query, system, error = two_way([[0.1, 0.3], [0.2, 0.4], [0.3, 0.8]]).sources
    >>> print(f"{system.df}, {error.df}: F = {system.F:.2f}, p = {system.p_value:.4f}")  # t = 3 on (.2, .2, .5)
    1, 2: F = 9.00, p = 0.0955
    """
    chosen("value of queries", queries, QUERIES)
    chosen("value of replicates", replicates, REPLICATES)
    block = _checked(scores)
    rows = _rows(block, crossed=replicates == "crossed")
    against = _against(list(rows), queries)
    tested = {
        name: _tested(row, rows.get(against[name]), block.size)
        for name, row in rows.items()
        if name != "error"
    }
    components = {name: _component(row, rows, block.shape) for name, row in tested.items()}
    return TwoWay((*tested.values(), rows["error"]), components | {"error": rows["error"].mean_sq})


def sphericity(scores: ArrayLike) -> float:
    """Return the Greenhouse-Geisser epsilon of systems: 1 if the differences of all pairs vary alike.

    The F of system assumes that they do. If they do not, it claims too much, and its degrees of
    freedom times epsilon give a p-value that does not.

    References
    ----------
    Greenhouse and Geisser, Psychometrika 24 (1959), doi:10.1007/BF02289823.

    Examples
    --------
    >>> sphericity([[0.1, 0.3], [0.2, 0.4], [0.3, 0.8]])  # two systems have one difference only
    1.0
    """
    cells = _checked(scores).mean(axis=2)
    if _sums_of_squares(cells[:, :, None])["query x system"] == 0:
        return math.nan
    centred = cells - cells.mean(axis=0)
    residual = centred - centred.mean(axis=1, keepdims=True)
    covariance = residual.T @ residual
    epsilon = np.trace(covariance) ** 2 / ((cells.shape[1] - 1) * (covariance**2).sum())
    return min(float(epsilon), 1.0)


def p_of_f(f: float, df: float, df_against: float) -> float:
    """Return the chance of so large an F: never 0, nan for nan."""
    if math.isnan(f):
        return math.nan
    return max(float(stats.f.sf(f, df, df_against)), float(np.finfo(np.float64).tiny))


def _checked(scores: ArrayLike) -> Floats:
    block = np.asarray(scores, dtype=np.float64)
    if block.ndim == 2:
        block = block[:, :, None]
    if (
        block.ndim != 3
        or min(block.shape[:2]) < 2
        or block.shape[2] < 1
        or not np.isfinite(block).all()
    ):
        raise InvalidInput(
            "scores have shape (n_queries, n_systems) or (n_queries, n_systems, n_replicates), with at least two "
            f"queries and two systems, all finite; found {np.shape(scores)} with "
            f"{np.count_nonzero(~np.isfinite(block))} that are not finite"
        )
    return block


def _rows(block: Floats, *, crossed: bool) -> dict[str, VarianceSource]:
    """Return each source with its sum of squares; what the model does not tell apart is error."""
    squares = _sums_of_squares(block)
    if block.shape[2] == 1:
        kept: tuple[str, ...] = ("query", "system")
    else:
        kept = tuple(AXES)[:-1] if crossed else ("query", "system", "query x system")
    parts = {name: [name] for name in kept}
    parts["error"] = [name for name in AXES if name not in kept]
    rows = {}
    for name, sources in parts.items():
        sum_sq = sum(squares[source] for source in sources)
        df = sum(math.prod(block.shape[axis] - 1 for axis in AXES[source]) for source in sources)
        rows[name] = VarianceSource(name, df, sum_sq, sum_sq / df)
    return rows


def _against(names: list[str], queries: str) -> dict[str, str]:
    """Return source -> the one whose mean square is expected to be the same if the source has no effect."""
    against = dict.fromkeys(names, "error")
    if queries == "random" and "query x system" in names:
        against |= {"query": "query x system", "system": "query x system"}
        if "replicate" in names:
            against |= {"query": "", "replicate": "query x replicate"}
    return against


def _component(
    row: VarianceSource, rows: Mapping[str, VarianceSource], shape: tuple[int, ...]
) -> float:
    per_level = math.prod(size for axis, size in enumerate(shape) if axis not in AXES[row.source])
    if row.against:
        expected = rows[row.against].mean_sq
    else:
        expected = (
            rows["query x system"].mean_sq
            + rows["query x replicate"].mean_sq
            - rows["error"].mean_sq
        )
    return (row.mean_sq - expected) / per_level


def _sums_of_squares(block: Floats) -> dict[str, float]:
    noise = block.size * (TIE_TOLERANCE * np.abs(block).max()) ** 2
    effects: dict[tuple[int, ...], Floats] = {(): block.mean(keepdims=True)}
    squares = {}
    for name, axes in AXES.items():
        means = block.mean(axis=tuple(axis for axis in range(3) if axis not in axes), keepdims=True)
        within = [effect for of, effect in effects.items() if set(of) < set(axes)]
        effects[axes] = means - sum(within)
        squares[name] = block.size / means.size * float((effects[axes] ** 2).sum())
    # Rounding leaves an effect that is 0 about 1e-32, of which F would make any number.
    return {name: value if value > noise else 0.0 for name, value in squares.items()}


def _tested(row: VarianceSource, against: VarianceSource | None, n_scores: int) -> VarianceSource:
    if against is None:
        return row
    f = row.mean_sq / against.mean_sq if against.mean_sq > 0 else math.nan
    excess = row.df * max(f - 1, 0.0)
    both = row.sum_sq + against.sum_sq
    omega_squared = excess / (excess + n_scores) if not math.isnan(f) else math.nan
    return replace(
        row,
        F=f,
        p_value=p_of_f(f, row.df, against.df),
        against=against.source,
        eta_squared=row.sum_sq / both if both > 0 else math.nan,
        omega_squared=omega_squared,
    )
