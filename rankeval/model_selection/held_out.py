"""Set rows apart to stop a booster early by one of our measures: a part of X, or a validation part of one's own.

Whole queries, or whole units of queries, are held out: those whose ids have the smallest hashes. So the same data
gives the same queries in whatever order its rows come.

A validation part comes as `eval_set` and its ids, in the forms that the boosters take.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_share, count
from rankeval.collection.convention import Convention, get_convention
from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput, UnusableQueryIdsError, warn
from rankeval.io import columns
from rankeval.measures import Measure
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.holdout import hashed_share
from rankeval.model_selection.query_ids import encode, find, id_array, n_rows, without_ids
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.searches import in_search

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
    if found.rule_counts["fixed"] >= found.n_queries:
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
    """Mark the rows of the held-out queries, or units."""
    check_share("validation_fraction", share)
    codes, units = encode(rows.ids if rows.unit is None else rows.unit)
    noun = "queries" if rows.unit is None else "units"
    n_held_out = max(1, round(share * len(units)))
    if n_held_out >= len(units):
        raise InvalidInput(f"{len(units)} {noun} are too few to hold out a share of {share} for early stopping")
    held_out = np.zeros(len(units), dtype=bool)
    held_out[np.argsort(hashed_share(units, "early stopping"), kind="stable")[:n_held_out]] = True
    return held_out[codes]


FORMS = "give (Xv, yv), a list that holds one such pair, or a RankingData"
CUT = "A search of scikit-learn cuts metadata that is as long as X"


def validation_part(
    eval_set: Any, eval_qid: Any = None, *, eval_X: Any = None, eval_y: Any = None, single_query: bool = False
) -> RankingData | None:
    """Return the validation rows with labels and ids, or None if none are given.

    Parameters
    ----------
    eval_set : tuple of (Xv, yv), list of one such pair, or RankingData, optional
        Features and labels, rows in any order.
    eval_qid : array-like of shape (n_validation_rows,), or list of one, optional
        The query of each row. It may also be a pandas index level or a column of Xv named "qid".
    eval_X, eval_y : optional
        The same as ``eval_set=(eval_X, eval_y)``.
    single_query : bool, default=False
        Treat rows without ids as one query.

    Raises
    ------
    InvalidInput
        If `eval_set` has another form, a part is missing, or lengths or indexes differ.
    QueryIdError
        If the query of each row is not known.
    """
    if eval_X is not None or eval_y is not None:
        if eval_set is not None:
            raise InvalidInput("eval_set and eval_X, eval_y are the same rows twice: leave one of them out")
        if eval_X is None or eval_y is None:
            missing = "eval_X" if eval_X is None else "eval_y"
            raise InvalidInput(f"{missing} is missing: give both eval_X and eval_y, or eval_set=(Xv, yv)")
        eval_set = (eval_X, eval_y)
    if eval_set is None:
        if eval_qid is not None:
            raise InvalidInput("eval_qid has the queries of eval_set, which is missing: give eval_set=(Xv, yv) too")
        return None
    eval_set, eval_qid = _only(eval_set), _only_ids(eval_qid)
    if isinstance(eval_set, RankingData):
        if eval_qid is not None:
            raise InvalidInput("eval_set is a RankingData, which has query ids: leave eval_qid out")
        return eval_set
    X, y = _pair(eval_set)
    try:
        return _checked(X, y, eval_qid, single_query=single_query)
    except InvalidInput as error:
        said = str(error)
        raise (error if "eval_" in said else type(error)(f"eval_set: {said}")) from error.__cause__


def _only(eval_set: Any) -> Any:
    """Take the pair out of a list or tuple that holds one."""
    while isinstance(eval_set, (list, tuple)) and len(eval_set) == 1:
        eval_set = eval_set[0]
    return eval_set


def _only_ids(eval_qid: Any) -> Any:
    """Take the column out of a list that holds one; a list of one id is a column."""
    held: Any = eval_qid[0] if isinstance(eval_qid, (list, tuple)) and len(eval_qid) == 1 else None
    is_column = not isinstance(held, (str, bytes)) and (hasattr(held, "__len__") or hasattr(held, "__array__"))
    return held if is_column and np.ndim(held) else eval_qid


def _pair(eval_set: Any) -> tuple[Any, Any]:
    if not isinstance(eval_set, (list, tuple)):
        raise InvalidInput(f"eval_set is a {type(eval_set).__name__}: {FORMS}")
    if len(eval_set) != 2:
        raise InvalidInput(f"eval_set has {len(eval_set)} parts: {FORMS}")
    if all(isinstance(part, (tuple, RankingData)) for part in eval_set):
        raise InvalidInput("eval_set holds 2 validation parts, and training stops on one: give one of them")
    X, y = eval_set
    return (X if hasattr(X, "shape") else np.asarray(X)), y


def _checked(X: Any, y: Any, qid: Any, *, single_query: bool) -> RankingData:
    check_rows(**{"eval_set[0]": X, "eval_set[1]": y, "eval_qid": qid})
    rows = n_rows(X)
    labels = columns.labels(columns.as_column(y), "eval_set[1]")
    if labels.shape != (rows,):
        raise InvalidInput(
            f"eval_set has {rows} rows of features, and labels of shape {labels.shape}: give one per row"
        )
    if qid is not None:
        hint = f". {CUT}: give eval_qid=[ids]" if in_search() else ""
        try:
            qid = id_array(qid, rows, "eval_qid")
        except UnusableQueryIdsError as error:
            raise UnusableQueryIdsError(f"{error}{hint}") from None
    ids = find(X, y, qid=qid)
    if ids is None and not single_query:
        raise UnusableQueryIdsError(
            "eval_set needs the query id of each row: give eval_qid=, or an index level or column 'qid' of its features"
        )
    return RankingData(without_ids(X), labels, np.zeros(rows, dtype=np.int64) if ids is None else ids)


def refuse_cut(eval_X: Any, X: Any) -> None:
    """Raise if a search may have cut a validation part like X; all its columns would be cut alike, and queries too.

    Parameters
    ----------
    eval_X, X : array, sparse matrix or frame
        The features to stop on and to fit, as they came to a fit inside a search.

    Raises
    ------
    InvalidInput
        If they have the same number of rows.
    """
    if n_rows(eval_X) == n_rows(X):
        raise InvalidInput(
            f"eval_X has as many rows as X. {CUT}: put the steps into QueryRanker(Pipeline([...])) and give "
            "eval_set=(Xv, yv), eval_qid=[ids]"
        )
