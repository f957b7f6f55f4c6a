"""Two-way analysis of variance: the variance of scores by query, by system, by their interaction, and the rest.

Scores are a block of shape ``(n_queries, n_systems, n_replicates)``. A replicate is one more score of the same system
on the same query: on another shard of the collection, with another seed, in another repeat of a cross-validation.
Without replicates there is one score in each cell, and the interaction of query and system cannot be told from error::

    source        tested against           without replicates
    query         interaction              error
    system        interaction              error
    interaction   error                    (part of error)

This holds for queries drawn at random. Some systems suit some queries, so the mean difference of two systems varies
with the draw of the queries, and the interaction is the measure of this variance. Studies of TREC runs often take the
queries as fixed and test everything against error: then the claim is about these queries only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.significance.columns import TIE_TOLERANCE
from rankeval.significance.declarations import Floats

QUERIES = ("random", "fixed")


@dataclass(frozen=True)
class Source:
    """One row of an analysis of variance.

    Attributes
    ----------
    source : str
        "query", "system", "interaction" or "error".
    df : int
        Degrees of freedom.
    sum_sq, mean_sq : float
        Sum of squares, and this by the degrees of freedom.
    F : float
        Mean square by the one of ``against``; nan if there is none, or if it is 0.
    p_value : float
        Chance of so large an F if the source has no effect; never 0, nan with F.
    against : str
        The source whose mean square F divides by.
    eta_squared : float
        Partial eta squared, ``SS / (SS + SS_against)``: in [0, 1], too large on few queries.
    omega_squared : float
        Partial omega squared, ``df (F - 1) / (df (F - 1) + N)`` with N scores: in [0, 1], 0 if F is below 1.
    """

    source: str
    df: int
    sum_sq: float
    mean_sq: float
    F: float = math.nan
    p_value: float = math.nan
    against: str = ""
    eta_squared: float = math.nan
    omega_squared: float = math.nan


@dataclass(frozen=True)
class TwoWay:
    """A two-way analysis of variance.

    Attributes
    ----------
    sources : tuple of Source
        Query, system, interaction (if there are replicates), error.
    components : mapping of str to float
        Source -> estimated variance; below 0 if a mean square is smaller than the one it is tested against.
    """

    sources: tuple[Source, ...]
    components: Mapping[str, float]


def two_way(scores: ArrayLike, *, queries: str = "random") -> TwoWay:
    """Analyse the variance of scores by query and system.

    Parameters
    ----------
    scores : array_like of shape (n_queries, n_systems) or (n_queries, n_systems, n_replicates)
        Scores by one measure, the same number in every cell.
    queries : {"random", "fixed"}, default "random"
        "random": the claim is about queries like these, and with replicates, query and system are tested against their
        interaction. "fixed": the claim is about these queries, and everything is tested against error. Without
        replicates both are the same.

    Returns
    -------
    TwoWay
        With ``y_ijk = mean + query_i + system_j + interaction_ij + error_ijk``. The component of a source is
        ``(MS - MS_against) / m``, m being the number of scores at one of its levels. For two systems and no replicates
        the F of system is the square of the paired t.

    Raises
    ------
    InvalidInput
        Fewer than two queries or systems, another shape, or a score that is not finite.
    UnknownName
        Another value of ``queries``.

    References
    ----------
    Voorhees, Samarov and Soboroff, Using replicates in information retrieval evaluation, TOIS 36, 2 (2017); Ferro and
    Silvello, A general linear mixed models approach to study system component effects, SIGIR 2016; Faggioli and Ferro,
    System effect estimation by sharding: a comparison between ANOVA approaches to detect significant differences,
    ECIR 2021.

    Examples
    --------
    >>> query, system, error = two_way([[0.1, 0.3], [0.2, 0.4], [0.3, 0.8]]).sources
    >>> print(f"{system.df}, {error.df}: F = {system.F:.2f}, p = {system.p_value:.4f}")  # t = 3 on (.2, .2, .5)
    1, 2: F = 9.00, p = 0.0955
    """
    chosen("value of queries", queries, QUERIES)
    block = _checked(scores)
    n, a, r = block.shape
    squares = _sums_of_squares(block)
    df = {"query": n - 1, "system": a - 1, "interaction": (n - 1) * (a - 1), "error": n * a * (r - 1)}
    if r == 1:
        squares["error"], df["error"] = squares.pop("interaction"), df.pop("interaction")
    rival = "interaction" if r > 1 and queries == "random" else "error"
    against = {"query": rival, "system": rival, "interaction": "error"}
    rows = {name: Source(name, df[name], squares[name], squares[name] / df[name]) for name in squares}
    per_level = {"query": a * r, "system": n * r, "interaction": r}
    tested = {name: _tested(row, rows[against[name]], block.size) for name, row in rows.items() if name != "error"}
    return TwoWay(
        (*tested.values(), rows["error"]),
        {name: (row.mean_sq - rows[row.against].mean_sq) / per_level[name] for name, row in tested.items()}
        | {"error": rows["error"].mean_sq},
    )


def sphericity(scores: ArrayLike) -> float:
    """Return the Greenhouse-Geisser epsilon of systems: 1 if the differences of all pairs vary alike.

    The F of system assumes that they do. If they do not, it claims too much, and its degrees of freedom times epsilon
    give a p-value that does not.

    Parameters
    ----------
    scores : array_like
        As in `two_way`. Replicates are averaged.

    Returns
    -------
    float
        Between ``1 / (n_systems - 1)`` and 1; nan if no difference varies over queries.

    Raises
    ------
    InvalidInput
        As in `two_way`.

    References
    ----------
    Greenhouse and Geisser, Psychometrika 24 (1959), doi:10.1007/BF02289823.

    Examples
    --------
    >>> sphericity([[0.1, 0.3], [0.2, 0.4], [0.3, 0.8]])  # two systems have one difference only
    1.0
    """
    cells = _checked(scores).mean(axis=2)
    if _sums_of_squares(cells[:, :, None])["interaction"] == 0:
        return math.nan
    residual = cells - cells.mean(axis=0) - (cells - cells.mean(axis=0)).mean(axis=1, keepdims=True)
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
    if block.ndim != 3 or block.shape[0] < 2 or block.shape[1] < 2 or block.shape[2] < 1:
        raise InvalidInput(
            "scores have shape (n_queries, n_systems) or (n_queries, n_systems, n_replicates), with at least two "
            f"queries and two systems; found {np.shape(scores)}"
        )
    if not np.isfinite(block).all():
        raise InvalidInput(f"scores must be finite, found {np.count_nonzero(~np.isfinite(block))} that are not")
    return block


def _sums_of_squares(block: Floats) -> dict[str, float]:
    """Return the sums of squares of query, system, interaction and error, each from its own deviations."""
    n, a, r = block.shape
    noise = block.size * (TIE_TOLERANCE * np.abs(block).max()) ** 2
    cells = block.mean(axis=2, keepdims=True)
    mean = cells.mean()
    by_query = cells.mean(axis=1, keepdims=True) - mean
    by_system = cells.mean(axis=0, keepdims=True) - mean
    deviations = {
        "query": (a * r, by_query),
        "system": (n * r, by_system),
        "interaction": (r, cells - mean - by_query - by_system),
        "error": (1, block - cells),
    }
    squares = {name: times * float((part**2).sum()) for name, (times, part) in deviations.items()}
    # Rounding leaves an effect that is 0 about 1e-32, of which F would make any number.
    return {name: value if value > noise else 0.0 for name, value in squares.items()}


def _tested(row: Source, against: Source, n_scores: int) -> Source:
    f = row.mean_sq / against.mean_sq if against.mean_sq > 0 else math.nan
    excess = row.df * max(f - 1, 0.0)
    both = row.sum_sq + against.sum_sq
    return Source(
        row.source,
        row.df,
        row.sum_sq,
        row.mean_sq,
        F=f,
        p_value=p_of_f(f, row.df, against.df),
        against=against.source,
        eta_squared=row.sum_sq / both if both > 0 else math.nan,
        omega_squared=excess / (excess + n_scores) if not math.isnan(f) else math.nan,
    )
