"""Differences between systems as columns, checked: one row per query, one column per pair.

Pair the scores of several systems by query id, never by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rankeval._checks import plural, refuse
from rankeval._registry import chosen
from rankeval.errors import InvalidInput, QueryIdError
from rankeval.significance.declarations import Floats

TIE_TOLERANCE = 1e-12
"""Two scores closer than this share of the larger one are a tie: float noise is neither a win nor a loss."""

FOLD = "fold"
"""Name of an index of folds: a frame with such an index has fold scores."""

FOLD_COLUMNS = ({"fit_time", "score_time"}, {"fit_seconds", "score_seconds"})
"""Columns by which a table of folds is known without its index: scikit-learn's, and ``CrossValidation.folds``'."""

NOT_A_SAMPLE = (
    "these are scores of folds, which overlap and are not a sample: a t test over them claims a difference in half of "
    'the cases without one. Use CrossValidation.compare(other, question="algorithms"), or the scores per query, '
    "CrossValidation.evaluation"
)

EMPTY = " (a query that a run lacks is an empty ranking there)"
OTHER_QUERIES = (
    "compare pairs systems by {0}; for one system on other {1}, such as those of another month, use an "
    "unpaired test of its "
    "scores per {0}, scipy.stats.ttest_ind(one, other, equal_var=False)"
)
"""The remedy if two sets of scores cannot be paired, for a unit and its plural."""


def differences(system: ArrayLike, baseline: ArrayLike) -> Floats:
    """Subtract the baseline's scores from the system's; ties give exactly 0.

    Parameters
    ----------
    system, baseline : array_like
        Scores of equal shape, a row per query.

    Returns
    -------
    ndarray
        The differences; 0 where the two are within `TIE_TOLERANCE` of each other, relative to the
        larger.
    """
    high, low = np.asarray(system, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    difference = high - low
    difference[are_ties(difference, high, low)] = 0.0
    return difference


def are_ties(difference: Floats, first: Floats, second: Floats) -> NDArray[np.bool_]:
    """Tell which differences of two lists of numbers are ties, within `TIE_TOLERANCE` of the larger number."""
    reach = np.maximum(np.abs(first), np.abs(second))
    return np.asarray(np.abs(difference) <= TIE_TOLERANCE * reach)


def as_columns(d: ArrayLike) -> Floats:
    """Check differences and return them as a matrix of shape ``(n_queries, n_pairs)``."""
    refuse_fold_scores(d)
    columns = np.asarray(d, dtype=np.float64)
    few = "a paired test needs differences of at least 2 queries, (n_queries,) or (n_queries, n_pairs)"
    broken = int(np.count_nonzero(~np.isfinite(columns)))
    endless = f"differences must be finite, found {broken} that are NaN or infinite"
    refuse(
        (columns.ndim not in (1, 2) or len(columns) < 2, f"{few}; found shape {columns.shape}"),
        (broken, endless, "decide which value such a query counts with"),
    )
    return columns.reshape(len(columns), -1)


def refuse_fold_scores(table: Any) -> None:
    """Raise `InvalidInput` for a frame of fold scores: folds overlap, so tests over queries do not hold on them."""
    levels = getattr(getattr(table, "index", None), "names", ())
    columns = set(
        getattr(table, "column_names", getattr(table, "columns", ()))
    )  # the first of Arrow
    if FOLD in levels or any(theirs <= columns for theirs in FOLD_COLUMNS):
        raise InvalidInput(NOT_A_SAMPLE)


def without_variance(columns: Floats) -> NDArray[np.bool_]:
    """Find the columns whose differences are all the same number, up to rounding."""
    return np.asarray(np.ptp(columns, axis=0) <= TIE_TOLERANCE * np.abs(columns).max(axis=0))


def deviation(columns: Floats) -> Floats:
    """Return the standard deviation of each column: exactly 0 without variance, where rounding leaves about 1e-17."""
    return np.where(without_variance(columns), 0.0, columns.std(axis=0, ddof=1))


def standard_error(columns: Floats) -> Floats:
    """Return the standard error of each column's mean."""
    return np.asarray(deviation(columns) / np.sqrt(len(columns)))


def two_phase(human: Floats, judged: Floats, machine: Floats) -> pd.DataFrame:
    """Return the two-phase regression estimate of the mean of each column.

    Notes of `rankeval.judging.calibrate` have the formula. With w_i the weight of people's score i
    in the estimate, and h_i its leverage, ``uneven`` is the sum of (w_i residual_i / (1 - h_i))^2.
    ``beyond`` takes the slope outside the judged queries' scores as unknown: it is off by twice
    itself.
    """
    n, mean, alone = len(human), human.mean(axis=0), standard_error(human)
    mean_judged = judged.mean(axis=0)
    x, y, ahead = judged - mean_judged, human - mean, machine.mean(axis=0) - mean_judged
    flat = without_variance(human) | without_variance(judged)
    xx, yy = (np.where(flat, 1.0, (scores**2).sum(axis=0)) for scores in (x, y))
    rest = 1 - 1 / n - x**2 / xx  # 1 - h: without a rest, the line goes through that query's point
    flat |= (rest < TIE_TOLERANCE * n).any(axis=0)
    slope = np.where(flat, 0.0, (x * y).sum(axis=0) / xx)
    off_line = y - slope * x
    residual = np.where(alone > 0, np.sqrt((off_line**2).sum(axis=0) / (n - 2)), np.nan)
    even = residual**2 * (1 / n + ahead**2 / xx)
    uneven = (((1 / n + ahead * x / xx) * off_line / np.where(flat, 1.0, rest)) ** 2).sum(axis=0)
    outside = machine - np.clip(machine, judged.min(axis=0), judged.max(axis=0))
    beyond = 2 * slope * outside.mean(axis=0)
    own = np.maximum(even, uneven) + beyond**2
    error = np.sqrt(own + slope**2 * machine.var(axis=0, ddof=1) / len(machine))
    error = np.where(flat, np.where(alone > 0, alone, np.inf), error)
    table = {"estimate": mean + slope * ahead, "std_error": error}
    table["degrees"] = n - np.where(flat, 1, 2)
    table["correlation"] = np.where(flat, np.nan, slope * np.sqrt(xx / yy))
    table["gain"] = np.where(flat, 1.0, (alone / error) ** 2)
    table |= {"slope": slope, "sd_residual": residual}
    table["leverage"] = np.where(flat, np.nan, (x**2).max(axis=0) / xx)
    table["inflation"] = np.divide(own, even, out=np.ones_like(own), where=~flat & (even > 0))
    return pd.DataFrame(table)


UNPAIRED = ("error", "skip")


@dataclass(frozen=True)
class PairedScores:
    """Scores of all systems on the same queries."""

    queries: pd.Index[Any]  # Query ids in ascending order
    scores: Floats  # (n_queries, n_systems, n_measures): Scores
    absent: Mapping[
        str, int
    ]  # System -> number of queries that it lacked and that were left out for all
    n_left_out: int  # Number of queries that some system lacked


def pair_scores(
    frames: Mapping[str, pd.DataFrame], labels: Sequence[str], *, unpaired: str, unit: str = "query"
) -> PairedScores:
    """Join the scores of systems by query id."""
    chosen("value of unpaired", unpaired, UNPAIRED)
    for name, frame in frames.items():
        _check_frame(name, frame, labels, unit)
    union, common = _union_and_common(frames)
    n_union = len(union)
    absent = {name: n_union - len(frame) for name, frame in frames.items() if len(frame) < n_union}
    if unpaired == "error" or len(common) == 0:
        _refuse_different_queries(frames, union, common, unit)
    queries = _ascending(common)
    scores = np.empty((len(queries), len(frames), len(labels)))
    for place, frame in enumerate(frames.values()):
        rows = frame.index.get_indexer(queries)
        scores[:, place] = frame[list(labels)].to_numpy(dtype=np.float64)[rows]
    return PairedScores(queries, scores, absent, n_union - len(common))


def _check_frame(name: str, frame: pd.DataFrame, labels: Sequence[str], unit: str) -> None:
    if frame.index.nlevels > 1:
        raise InvalidInput(
            f"the scores of system {name!r} have an index of {frame.index.nlevels} levels, such as "
            f"{frame.index[:1].tolist()}; scores of one collection have an index of {unit} ids alone, and "
            f"those of several an index (collection, {unit})"
        )
    broken = frame.index[frame.index.isna() | frame.index.duplicated()].tolist()
    if broken:
        raise QueryIdError(
            f"system {name!r} has the {unit} {broken[0]!r} more than once, or one without an id; one row per id is "
            "expected"
        )
    if not frame.columns.is_unique:
        again = frame.columns[frame.columns.duplicated()][0]
        raise InvalidInput(
            f"system {name!r} has two columns named {again!r}; one column per measure is expected"
        )
    for label in labels:
        if not pd.api.types.is_numeric_dtype(frame[label]):
            raise InvalidInput(
                f"scores of system {name!r} in {label!r} are {frame[label].dtype}, not numbers"
            )
        values = frame[label].to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(values).all():
            query = frame.index[~np.isfinite(values)][0]
            raise InvalidInput(
                f"the score of system {name!r} on {unit} {query!r} in {label!r} is not finite; decide with "
                "which value it counts before systems are compared"
            )


def _union_and_common(frames: Mapping[str, pd.DataFrame]) -> tuple[pd.Index[Any], pd.Index[Any]]:
    first, *others = (frame.index for frame in frames.values())
    union = common = first
    for index in others:
        union, common = union.union(index, sort=False), common.intersection(index, sort=False)
    return union, common


def _refuse_different_queries(
    frames: Mapping[str, pd.DataFrame], union: pd.Index[Any], common: pd.Index[Any], unit: str
) -> None:
    units = plural(unit)
    if len(common) == 0:
        ids = [
            f"{name!r} has ids such as {frame.index.tolist()[0]!r}"
            for name, frame in frames.items()
            if len(frame)
        ]
        raise QueryIdError(
            f"the systems have no {unit} in common: {'; '.join(ids[:3]) or f'there are no {units}'}",
            remedy=OTHER_QUERIES.format(unit, units) if len(ids) > 1 else None,
        )
    for name, frame in frames.items():
        lacking = union.difference(frame.index, sort=False)
        if len(lacking):
            examples = ", ".join(repr(query) for query in lacking[:3])
            raise QueryIdError(
                f"system {name!r} lacks {len(lacking)} of {len(union)} {units}, such as {examples}",
                remedy=f"evaluate it on all{EMPTY if unit == 'query' else ''}, or pass "
                'unpaired="skip" to compare on the common ones',
            )


def _ascending(queries: pd.Index[Any]) -> pd.Index[Any]:
    try:
        ordered = queries.sort_values()
    except TypeError:
        # Numbers and strings do not compare: sort ids of several types by type, then as text.
        ordered = pd.Index(sorted(queries, key=lambda query: (type(query).__name__, str(query))))
    return ordered
