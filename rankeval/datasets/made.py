"""Data without files: retrieval from scikit-learn's digits, and data whose truth is known."""

from __future__ import annotations

from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import check_count, check_number, require
from rankeval.collection.data import RankingData
from rankeval.significance.declarations import generator_of


@explained
def load_digits_retrieval(
    *, n_queries: int = 300, n_candidates: int = 40, rng: Any = 0
) -> RankingData:
    """Return scikit-learn's 1,797 images of handwritten digits as a retrieval task.

    A query is an image, and its candidates are other images, drawn at random. A candidate is
    relevant if it shows the same digit (about one in ten, at least one in each query). Each pair is
    described by 35 features: the cosine and the Euclidean distance of the two images, and their
    signed differences in 4 x 4 blocks, in the profiles of rows and of columns, and in ink.
    Similarity is not linear in these, so models differ: in 3-fold cross-validation over queries
    Ridge reaches ``nDCG@10`` .74 and gradient boosting .81.

    Parameters
    ----------
    n_queries : int
        Number of queries, at most 1,797.
    n_candidates : int
        Candidates of each query.
    rng : int, Generator or None
        Seed or generator of the draws of queries and candidates.

    Returns
    -------
    RankingData
        ``qid`` is the number of the query image, ``docid`` that of the candidate, and ``y`` is 0 or
        1.

    Raises
    ------
    InvalidInput
        If there are fewer images than queries or candidates.

    Examples
    --------
    >>> load_digits_retrieval()
    RankingData('digits', 12,000 rows, 300 queries, 35 features)
    """
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    most = len(images)
    counts = (("n_queries", n_queries, 0), ("n_candidates", n_candidates, 1))
    for argument, number, others in counts:
        check_count(argument, number)
        require(number <= most - others, argument, number, f"fewer: there are {most} images")
    generator = generator_of(rng)
    query = generator.choice(len(images), n_queries, replace=False)
    drawn = [_candidates(digits, image, n_candidates, generator) for image in query]
    candidate = np.concatenate(drawn)
    query = np.repeat(query, n_candidates)
    X, feature_names = _pair_features(images[query] / 16, images[candidate] / 16)  # ink is 0 to 16
    return RankingData(
        X,
        (digits[query] == digits[candidate]).astype(np.int64),
        query,
        docid=candidate,
        feature_names=feature_names,
        name="digits",
    )


def _candidates(
    digits: NDArray[np.int64], query: int, n_candidates: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    # Drawn again until one of them is relevant.
    while True:
        drawn = generator.choice(len(digits) - 1, n_candidates, replace=False)
        drawn += drawn >= query
        if (digits[drawn] == digits[query]).any():
            return drawn


def _pair_features(
    left: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    difference = (left - right).reshape(-1, 8, 8)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosine = np.sum(left * right, axis=1) / norms
    blocks = difference.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    columns = {
        "cosine": cosine,
        "distance": np.linalg.norm(left - right, axis=1),
        "block": blocks,
        "row": difference.mean(axis=2),
        "column": difference.mean(axis=1),
        "ink": difference.mean(axis=(1, 2)),
    }
    names = []
    for name, part in columns.items():
        names += [name] if part.ndim == 1 else [f"{name}_{place}" for place in range(part.shape[1])]
    return np.column_stack(list(columns.values())), tuple(names)


@explained
def make_ranking(
    n_queries: int = 100,
    n_docs: int | tuple[int, int] = 20,
    n_features: int = 10,
    *,
    noise: float = 0.5,
    max_relevance: int = 4,
    tie_share: float = 0.0,
    shuffle: bool = False,
    rng: Any = 0,
) -> RankingData:
    """Make data whose truth is known: a linear utility, noise, and grades by quantile.

    Features are standard normal. The utility of a row is ``X @ w`` with ``w[j]`` proportional to
    ``1 / (j + 1)`` and ``w`` of length 1, so the best ranking that features allow is by ``X @ w``.
    Grades come from utility plus noise: half of all rows are 0, half of the rest 1, and so on, up
    to the largest grade, which takes the remaining rows.

    Parameters
    ----------
    n_queries : int
        Number of queries, with ids 1, 2, ...
    n_docs : int or (int, int)
        Documents of each query; a pair draws each number uniformly from that range, ends included.
    n_features : int
        Number of features.
    noise : float
        Standard deviation of the noise; that of the utility is 1.
    max_relevance : int
        The largest grade.
    tie_share : float
        Share of each query's rows, at most 1, that repeat the features of the query's first row. No
        model can distinguish them, but each has its own noise and so its own grade.
    shuffle : bool
        Whether to shuffle all rows, so that the rows of a query are not consecutive.
    rng : int, Generator or None
        Seed or generator of all draws.

    Returns
    -------
    RankingData
        Its ``docid`` are such as ``7-3``, the third document of query 7.

    Raises
    ------
    InvalidInput
        If a count is below 1, noise is negative, or a share is outside 0 to 1.

    Examples
    --------
    >>> make_ranking(50, 8, rng=1)
    RankingData('planted', 400 rows, 50 queries, 10 features)
    """
    low, high = n_docs if isinstance(n_docs, (tuple, list)) else (n_docs, n_docs)
    counts = {
        "n_queries": n_queries,
        "n_docs": low,
        "n_features": n_features,
        "max_relevance": max_relevance,
    }
    for argument, number in counts.items():
        check_count(argument, number)
    check_count("n_docs", high, least=low)
    for argument, value, most in (("noise", noise, float_info.max), ("tie_share", tie_share, 1.0)):
        check_number(argument, value)
        require(0 <= value <= most, argument, value, f"a number from 0 to {most:g}")
    generator = generator_of(rng)
    sizes = generator.integers(low, high, size=n_queries, endpoint=True)
    qid = np.repeat(np.arange(1, n_queries + 1), sizes)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(qid)) - first
    X = generator.standard_normal((len(qid), n_features))
    tied = place < np.round(tie_share * np.repeat(sizes, sizes))
    X[tied] = X[first[tied]]
    weights = 1 / np.arange(1, n_features + 1)
    utility = X @ (weights / np.linalg.norm(weights)) + noise * generator.standard_normal(len(qid))
    bounds = np.quantile(utility, 1 - 0.5 ** np.arange(1, max_relevance + 1))
    grades = np.searchsorted(bounds, utility, side="right")
    docid = np.array([f"{query}-{number}" for query, number in zip(qid, place + 1, strict=True)])
    feature_names = tuple(f"f{number}" for number in range(1, n_features + 1))
    data = RankingData(X, grades, qid, docid=docid, feature_names=feature_names, name="planted")
    return data.take(generator.permutation(len(data))) if shuffle else data
