"""Set rows apart to stop a booster early by one of our measures: a part of X, or a validation part of one's own.

Whole queries, or whole groups of queries, are held out: those whose ids have the smallest hashes. So the same data
gives the same queries in whatever order its rows come.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_share, count
from rankeval.collection.convention import Convention, get_convention
from rankeval.errors import InvalidInput, warn
from rankeval.measures import Measure
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.holdout import hashed_share
from rankeval.model_selection.query_ids import encode
from rankeval.model_selection.rows import EarlyStopping, TrainingRows

SCORE = "nDCG@10"
"""The measure of `QueryRanker.score`, and the default of `eval_measure`."""


def hold_out(
    estimator: Any,
    rows: TrainingRows,
    validation: TrainingRows | None = None,
    *,
    share: Any,
    rounds: Any,
    measure: Any,
    convention: str | Convention,
) -> tuple[TrainingRows, EarlyStopping | None]:
    """Return the rows to fit and those to watch: the validation part, or queries held out of all rows.

    Parameters
    ----------
    estimator : object
        The estimator, whose own parameter for early stopping counts if `rounds` is None.
    rows : TrainingRows
        All rows.
    validation : TrainingRows, optional
        A validation part, instead of held-out queries.
    share, rounds, measure, convention
        ``validation_fraction``, ``early_stopping_rounds``, ``eval_measure`` and ``eval_convention`` of `QueryRanker`.

    Raises
    ------
    InvalidInput
        If an option is out of range, the booster cannot go back to an earlier iteration, or there are too few queries.
    """
    rounds = boosters.own_rounds(nesting.last_of(estimator)) if rounds is None else rounds
    if share is not None and validation is not None:
        raise InvalidInput("validation_fraction holds queries of X out, eval_set has rows to stop on: give only one")
    if rounds is None:
        if share is not None:
            raise InvalidInput("validation_fraction holds queries out to stop on: give early_stopping_rounds too")
        if validation is not None and not nesting.stops_by_itself(estimator):
            raise InvalidInput("eval_set has rows to stop training on: give early_stopping_rounds too")
        return replace(rows, validation=validation), None
    if not isinstance(rounds, Integral) or rounds < 1:
        raise InvalidInput(f"early_stopping_rounds is {rounds!r}; give a number of iterations above 0, or leave it out")
    boosters.refuse_no_earlier_model(nesting.last_of(estimator))
    watched_measure, rules = _watched(SCORE if measure is None else measure, convention)
    watched, name = validation, "eval_set"
    if watched is None:
        is_held_out = _held_out(0.1 if share is None else share, rows)
        rows, watched = (rows.take(np.flatnonzero(part)) for part in (~is_held_out, is_held_out))
        name = "the part held out for early stopping"
    watch = EarlyStopping(watched_measure, int(rounds), watched.in_blocks(), rules)
    found = watch.evaluation(np.zeros(len(watched.y)))
    if found.facts.totals()["fixed"] >= found.n_queries:
        warn(
            f"{name} has {count(found.n_queries, 'query')}, and no ranking changes {watched_measure} of any, as none "
            "has relevant rows and others: training stops at the first iteration. Give other queries, or more of them"
        )
    return rows, watch


def _watched(measure: Any, convention: str | Convention) -> tuple[Measure, Convention]:
    """Return the measure to watch and its rules; held-out rows have no documents to break ties by."""
    found = check_measures(measure, convention)
    if len(found) > 1:
        raise InvalidInput(argument="eval_measure", found=f"{measure!r}", remedy="give one measure to stop by")
    rules = get_convention(convention)
    return found[0][1], rules.with_rules(ties="expected") if rules.ties == "docid" else rules


def _held_out(share: float, rows: TrainingRows) -> NDArray[np.bool_]:
    """Mark the rows of the held-out queries, or groups."""
    check_share("validation_fraction", share)
    codes, units = encode(rows.ids if rows.groups is None else rows.groups)
    noun = "queries" if rows.groups is None else "groups"
    n_held_out = max(1, round(share * len(units)))
    if n_held_out >= len(units):
        raise InvalidInput(f"{len(units)} {noun} are too few to hold out a share of {share} for early stopping")
    held_out = np.zeros(len(units), dtype=bool)
    held_out[np.argsort(hashed_share(units, "early stopping"), kind="stable")[:n_held_out]] = True
    return held_out[codes]
