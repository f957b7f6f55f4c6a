"""Several collections in one test: a mean over collections, and sign flips within each.

A collection's queries are a sample of their own, so the statistic is a weighted mean of the collections' mean
differences, and signs are flipped query by query within each collection. As a flip of one query is independent of all
others, this is the plain randomisation test of differences that are multiplied by their query's weight::

    collection        a     a     b     b     b     b
    difference       .1    .3    .0    .2    .1    .1       means: .2 in a, .1 in b
    weight          3/2   3/2   3/4   3/4   3/4   3/4       equal weights of the collections; their mean is 1
    product         .15   .45   .00   .15  .075  .075       mean: .15

Comparisons within collections are corrected together in the same way: the differences of a collection stand in columns
of their own, with 0 for the queries of the others, which no flip changes.

The trap: weights that follow the data must not change when signs are flipped, or the test is no longer exact. The
variance of the differences does change, the mean square of a query's scores about their mean does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import chosen
from rankeval.errors import InvalidInput
from rankeval.significance.declarations import Floats

WEIGHTS = ("collections", "queries", "inverse_variance")


def collection_weights(how: str, scores: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the share of each collection in the mean over collections.

    Parameters
    ----------
    how : {"collections", "queries", "inverse_variance"}
        "collections": equal shares. "queries": by number of queries. "inverse_variance": by number of queries over the
        mean variance of the systems' scores within a query, which is the same however signs are flipped; it is taken
        relative to its mean over collections, and averaged over the measures.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        Scores on all collections.
    parts : sequence of ndarray of int
        The places of the queries of each collection.

    Returns
    -------
    ndarray of shape (n_collections,)
        Shares, which add up to 1.

    Raises
    ------
    UnknownName
        If there are no such weights.
    InvalidInput
        If all systems have equal scores on a whole collection, and weights are to follow variances.

    Examples
    --------
    >>> scores = np.array([[[0.1], [0.3]], [[0.2], [0.4]], [[0.0], [0.4]], [[0.4], [0.0]]])
    >>> parts = [np.arange(2), np.arange(2, 4)]  # variances within queries: .01 and .04
    >>> [collection_weights(how, scores, parts).round(2).tolist() for how in ("collections", "inverse_variance")]
    [[0.5, 0.5], [0.8, 0.2]]
    """
    chosen("weights", how, WEIGHTS)
    raw = np.ones(len(parts)) if how == "collections" else np.array([float(len(part)) for part in parts])
    if how == "inverse_variance":
        variances = np.array([scores[part].var(axis=1).mean(axis=0) for part in parts])
        if not (variances > 0).all():
            raise InvalidInput(
                'weights="inverse_variance": on one of the collections all systems have the same scores by a measure, '
                'so its variance is 0; use weights="collections" or "queries"'
            )
        raw = raw / (variances / variances.mean(axis=0)).mean(axis=1)
    return np.asarray(raw / raw.sum())


def query_weights(shares: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return the weight of each query: the mean of weighted scores is the mean over collections.

    Parameters
    ----------
    shares : ndarray of shape (n_collections,)
        As `collection_weights` returns them.
    parts : sequence of ndarray of int
        The places of the queries of each collection; together, all places.

    Returns
    -------
    ndarray of shape (n_queries,)
        Weights of mean 1.

    Examples
    --------
    >>> query_weights(np.array([0.5, 0.5]), [np.arange(1), np.arange(1, 4)]).round(2).tolist()
    [2.0, 0.67, 0.67, 0.67]
    """
    n = sum(map(len, parts))
    weights = np.empty(n)
    for part, share in zip(parts, shares, strict=True):
        weights[part] = share * n / len(part)
    return weights


def within_deviation(d: Floats, parts: Sequence[NDArray[np.int64]], shares: Floats) -> tuple[Floats, Floats]:
    """Return the standard deviation within collections, and the one that gives the standard error of their mean.

    Parameters
    ----------
    d : ndarray of shape (n_queries, n_pairs)
        Per-query differences, not weighted.
    parts : sequence of ndarray of int
        The places of the queries of each collection, two or more.
    shares : ndarray of shape (n_collections,)
        The share of each collection in the mean.

    Returns
    -------
    tuple of ndarray of shape (n_pairs,)
        ``sqrt(sum w s^2)`` of the shares w and variances s^2; and ``sqrt(N sum w^2 s^2 / n)``, which over the root of
        N, the number of all queries, is the standard error. Both are the plain deviation for one collection.
    """
    variances = np.array([d[part].var(axis=0, ddof=1) for part in parts])
    sizes = np.array([len(part) for part in parts])
    return np.sqrt(shares @ variances), np.sqrt((sizes.sum() * shares**2 / sizes) @ variances)


@dataclass(frozen=True)
class Strata:
    """How columns of differences are weighed: a mean over strata, or several parts side by side.

    Attributes
    ----------
    parts : sequence of ndarray of int
        The places of the queries of each stratum; together, all places.
    weights : ndarray of shape (n_queries, n_layouts)
        Weights of the queries, 0 for those that do not belong. Columns of differences use the layouts in turn, each for
        as many columns as there are pairs.
    """

    parts: Sequence[NDArray[np.int64]]
    weights: Floats

    @classmethod
    def together(cls, parts: Sequence[NDArray[np.int64]], shares: Floats) -> Strata:
        """Return the strata of a mean over collections, with these shares."""
        return cls(parts, query_weights(shares, parts)[:, None])

    @classmethod
    def side_by_side(cls, sizes: Sequence[int]) -> Strata:
        """Return the strata of parts that are compared each by itself, in the layout of `apart`."""
        ends = np.cumsum([0, *sizes])
        parts = [np.arange(*ends[k : k + 2]) for k in range(len(sizes))]
        return cls(parts, np.column_stack([query_weights(share, parts) for share in np.eye(len(sizes))]))

    def of(self, n_columns: int, run: int) -> Floats:
        """Return the weights of columns that use each layout for a run of columns."""
        return self.weights[:, np.arange(n_columns) // run % self.weights.shape[1]]


def apart(scores: Floats, parts: Sequence[NDArray[np.int64]]) -> Floats:
    """Return scores with measures of their own for each part: 0 on the queries of the others.

    Joint corrections then run over the parts as over measures, with the weights of `Strata.side_by_side`.

    Parameters
    ----------
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        Scores.
    parts : sequence of ndarray of int
        The places of the queries of each part, none in two of them. Other queries are left out.

    Returns
    -------
    ndarray of shape (n_queries_in_parts, n_systems, n_measures * n_parts)
        The parts of a measure stand beside each other.

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
