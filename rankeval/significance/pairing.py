"""Pair the scores of several systems by query id, never by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankeval._registry import chosen
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.significance.declarations import Floats

UNPAIRED = ("error", "skip")


@dataclass(frozen=True)
class PairedScores:
    """Scores of all systems on the same queries.

    Attributes
    ----------
    queries : Index
        Query ids in ascending order.
    scores : ndarray of shape (n_queries, n_systems, n_measures)
        Scores.
    absent : mapping of str to int
        System -> number of queries that it lacked and that were left out for all.
    n_left_out : int
        Number of queries that some system lacked.
    """

    queries: pd.Index[Any]
    scores: Floats
    absent: Mapping[str, int]
    n_left_out: int


def pair_scores(frames: Mapping[str, pd.DataFrame], labels: Sequence[str], *, unpaired: str) -> PairedScores:
    """Join the scores of systems by query id.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        System -> scores, a row per query (the index) and a column per measure, in any order.
    labels : sequence of str
        The columns to take.
    unpaired : {"error", "skip"}
        If systems have different queries: refuse, or keep the common ones. Nothing is filled in, because the scores
        do not say how much an empty ranking is worth.

    Returns
    -------
    PairedScores
        Sorted by query id, so that resampling does not depend on the order of the rows.

    Raises
    ------
    QueryIdError
        Ids that are missing or repeated, or queries that only some systems have.
    InvalidInput
        Scores that are not finite numbers, or an index of several levels.
    """
    chosen("value of unpaired", unpaired, UNPAIRED)
    for name, frame in frames.items():
        _check_frame(name, frame, labels)
    union, common = _union_and_common(frames)
    absent = {name: len(union) - len(frame) for name, frame in frames.items()}
    if unpaired == "error" or len(common) == 0:
        _refuse_different_queries(frames, union, common)
    queries = _ascending(common)
    scores = np.empty((len(queries), len(frames), len(labels)))
    for place, frame in enumerate(frames.values()):
        rows = frame.index.get_indexer(queries)
        scores[:, place] = frame[list(labels)].to_numpy(dtype=np.float64)[rows]
    lacking = {name: count for name, count in absent.items() if count}
    return PairedScores(queries, scores, lacking, len(union) - len(common))


def _check_frame(name: str, frame: pd.DataFrame, labels: Sequence[str]) -> None:
    if frame.index.nlevels > 1:
        raise InvalidInput(
            f"the scores of system {name!r} have an index of {frame.index.nlevels} levels, such as "
            f"{frame.index[:1].tolist()}; scores of one collection have an index of query ids alone, and "
            "those of several an index (collection, qid)"
        )
    if frame.index.hasnans:
        raise QueryIdError(f"system {name!r} has a query without an id; the index of its scores must be the query ids")
    if frame.index.has_duplicates:
        again = frame.index[frame.index.duplicated()][0]
        raise QueryIdError(f"system {name!r} has the query {again!r} more than once; one row per query is expected")
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()][0]
        raise InvalidInput(f"system {name!r} has two columns named {again!r}; one column per measure is expected")
    for label in labels:
        if not pd.api.types.is_numeric_dtype(frame[label]):
            raise InvalidInput(f"scores of system {name!r} in {label!r} are {frame[label].dtype}, not numbers")
        values = frame[label].to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(values).all():
            query = frame.index[~np.isfinite(values)][0]
            raise InvalidInput(
                f"the score of system {name!r} on query {query!r} in {label!r} is not finite; decide which value "
                "such a query counts with before systems are compared"
            )


def _union_and_common(frames: Mapping[str, pd.DataFrame]) -> tuple[pd.Index[Any], pd.Index[Any]]:
    first, *others = (frame.index for frame in frames.values())
    union = common = first
    for index in others:
        union, common = union.union(index, sort=False), common.intersection(index, sort=False)
    return union, common


def _refuse_different_queries(frames: Mapping[str, pd.DataFrame], union: pd.Index[Any], common: pd.Index[Any]) -> None:
    if len(common) == 0:
        ids = [f"{name!r} has ids such as {frame.index.tolist()[0]!r}" for name, frame in frames.items() if len(frame)]
        raise QueryIdError(f"the systems have no query in common: {'; '.join(ids[:3]) or 'there are no queries'}")
    for name, frame in frames.items():
        lacking = union.difference(frame.index, sort=False)
        if len(lacking):
            examples = ", ".join(repr(query) for query in lacking[:3])
            raise QueryIdError(
                f"system {name!r} lacks {len(lacking)} of {len(union)} queries, such as {examples}",
                remedy="evaluate it on all (a query that a run lacks is an empty ranking there), or pass "
                'unpaired="skip" to compare on the common ones',
            )


def _ascending(queries: pd.Index[Any]) -> pd.Index[Any]:
    try:
        ordered = queries.sort_values()
    except TypeError:  # numbers and strings do not compare: sort ids of several types by type, then as text
        ordered = pd.Index(sorted(queries, key=lambda query: (type(query).__name__, str(query))))
    return ordered
