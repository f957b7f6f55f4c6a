"""Hashes of each query's judgments and of its ranking, and the digests that they make together.

    query    judgments   ranking
    q1       9f3a...     27d0...       a digest is the SHA-256 of the ids, ascending, and of one column of hashes
    q2       11c0...     8e41...

A hash is that of its query alone: it does not depend on the queries beside it, on chunks, on the order of the input or
on the worker that computed it. So a subset, and the union of parts, have the digests that their queries have when they
are evaluated together.

The hash of a ranking adds up, modulo 2^64, a random number of each rank times one of the label there; a label of 0 adds
nothing, since all that it says is in the number of rows. Numbers of open groups of tied rows are added too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval.join.joined import digest_of_queries
from rankeval.join.judged import BELOW_ALL, Judged
from rankeval.join.matching import Hashes, mixed

_STEP = np.uint64(0x9E3779B97F4A7C15)


def digest_of(queries: NDArray[Any], hashes: Hashes) -> str:
    """Return the SHA-256 of query ids and of a hash of each query.

    Parameters
    ----------
    queries : ndarray of shape (n_queries,)
        Query ids, ascending.
    hashes : ndarray of uint64 of shape (n_queries,)
        Hashes of their judgments, or of their rankings.
    """
    digest = digest_of_queries(queries)
    digest.update(np.ascontiguousarray(hashes))
    return str(digest.hexdigest())


def label_hashes(judged: Judged) -> Hashes:
    """Return a hash of each query's labels, in whatever order their documents stand.

    A sum over documents of a mixed label: sums of plain labels would be equal for {1, 1} and {2, 0}.

    Parameters
    ----------
    judged : Judged
        A chunk of queries.

    Returns
    -------
    ndarray of uint64 of shape (n_queries,)
    """
    label = np.asarray(judged.levels, dtype=np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        number = (label ^ _STEP) * np.uint64(0xFF51AFD7ED558CCD)
        number ^= number >> np.uint64(29)
        total: Hashes = judged.counts.view(np.uint64) @ (number * np.uint64(0xC4CEB9FE1A85EC53))
    return total


def ranking_hashes(judged: Judged) -> Hashes:
    """Return a hash of each query's ranking as the measures see it: the label at each rank, and the open ties.

    Parameters
    ----------
    judged : Judged
        A chunk of queries.

    Returns
    -------
    ndarray of uint64 of shape (n_queries,)
    """
    levels = np.asarray(judged.levels, dtype=np.float64)
    speaks = (levels != 0) & (levels > BELOW_ALL)  # a row without a judgment says no more than one judged 0
    row, query, rank = judged.rows_of(speaks)
    of_rank = _numbers(int(judged.n_retrieved.max(initial=0)).bit_length())
    of_label = mixed(levels.view(np.uint64) + _STEP)
    sums = np.zeros(len(row) + 1, dtype=np.uint64)
    np.cumsum(of_rank[rank] * of_label[judged.code[row]], out=sums[1:])  # wraps, as a hash may
    upto = np.searchsorted(query, np.arange(judged.n_queries + 1))
    found: Hashes = mixed(judged.n_retrieved.view(np.uint64)) + sums[upto[1:]] - sums[upto[:-1]]
    start, end, of_group = judged.groups
    if len(start):
        begin = judged.offsets[of_group]
        tied = mixed(((start - begin) << 32 | (end - begin)).view(np.uint64) + _STEP)
        np.add.at(found, of_group, tied)
    return found


@lru_cache(maxsize=32)
def _numbers(bits: int) -> Hashes:
    """Return an odd random number for each of the first 2^bits ranks. Chunks differ in length, so these are cached."""
    numbers = mixed(np.arange(1, 2**bits + 1, dtype=np.uint64) * _STEP) | np.uint64(1)
    numbers.flags.writeable = False
    return numbers
