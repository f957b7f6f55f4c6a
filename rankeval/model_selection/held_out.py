"""Set rows apart to stop a booster early by one of our measures: a part of X, or a validation part of one's own.

Whole queries, or whole units of queries, are held out: those whose ids have the smallest hashes. So the same data
gives the same queries in whatever order its rows come.

A validation part comes as `eval_set` and its ids, in the forms that the boosters take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._checks import check_count, check_share, count, refuse
from rankeval.collection.convention import get_convention
from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput, UnusableQueryIdsError, warn
from rankeval.io import columns
from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.checks import check_measures
from rankeval.model_selection.holdout import hashed_share
from rankeval.model_selection.query_ids import encode, find, id_array, n_rows, without_ids
from rankeval.model_selection.rows import EarlyStopping, TrainingRows
from rankeval.model_selection.searches import in_search

SCORE = "nDCG@10"
"""The measure of `QueryRanker.score`, and the default of `eval_measure`."""


def hold_out(
    ranker: Any, rows: TrainingRows, validation: TrainingRows | None = None
) -> tuple[TrainingRows, EarlyStopping | None]:
    """Return the rows to fit and those to watch: the validation part, or queries held out of all rows.

    Parameters
    ----------
    ranker : QueryRanker
        Says how much to hold out, when to stop and by which measure. If it does not say when, the parameter for early
        stopping of its estimator counts.
    rows : TrainingRows
        All rows.
    validation : TrainingRows, optional
        A validation part, instead of held-out queries.

    Raises
    ------
    InvalidInput
        If an option is out of range, the booster cannot go back to an earlier iteration, or there are too few queries.
    """
    share, rounds, last = ranker.validation_fraction, ranker.early_stopping_rounds, nesting.last_of(ranker.estimator)
    rounds = boosters.own_rounds(last) if rounds is None else rounds
    useless = validation is not None and rounds is None and not nesting.stops_by_itself(ranker.estimator)
    refuse(
        (
            share is not None and validation is not None,
            "validation_fraction holds queries of X out, eval_set has rows to stop on: give only one",
        ),
        (
            share is not None and rounds is None,
            "validation_fraction holds queries out to stop on: give early_stopping_rounds too",
        ),
        (useless, "eval_set has rows to stop training on: give early_stopping_rounds too"),
    )
    if rounds is None:
        return replace(rows, validation=validation), None
    check_count("early_stopping_rounds", rounds)
    boosters.refuse_no_earlier_model(last)
    found = check_measures(SCORE if ranker.eval_measure is None else ranker.eval_measure, ranker.eval_convention)
    if len(found) > 1:
        raise InvalidInput(argument="eval_measure", found=f"{ranker.eval_measure!r}", remedy="give one measure")
    rules = get_convention(ranker.eval_convention)
    # Held-out rows have no documents to break ties by.
    rules = rules.with_rules(ties="expected") if rules.ties == "docid" else rules
    watched, name = validation, "eval_set"
    if watched is None:
        is_held_out = _held_out(0.1 if share is None else share, rows)
        rows, watched = (rows.take(np.flatnonzero(part)) for part in (~is_held_out, is_held_out))
        name = "the part held out for early stopping"
    watch = EarlyStopping(found[0][1], int(rounds), watched.in_blocks(), rules)
    first = watch.evaluation(np.zeros(len(watched.y)))
    if first.facts.totals()["fixed"] >= first.n_queries:
        warn(
            f"{name} has {count(first.n_queries, 'query')}, and no ranking changes {watch.measure} of any, as none has "
            "relevant rows and others: training stops at the first iteration. Give other queries, or more of them"
        )
    return rows, watch


def _held_out(share: float, rows: TrainingRows) -> NDArray[np.bool_]:
    check_share("validation_fraction", share)
    codes, units = encode(rows.ids if rows.unit is None else rows.unit)
    noun = "queries" if rows.unit is None else "units"
    n_held_out = max(1, round(share * len(units)))
    few = f"{len(units)} {noun} are too few to hold out a share of {share} for early stopping"
    refuse((n_held_out >= len(units), few))
    held_out = np.zeros(len(units), dtype=bool)
    held_out[np.argsort(hashed_share(units, "early stopping"), kind="stable")[:n_held_out]] = True
    return held_out[codes]


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
    parts = [part for part in (eval_X, eval_y) if part is not None]
    found: Any = _only(eval_set)
    refuse(
        (bool(parts) and eval_set is not None, "eval_set and eval_X, eval_y are the same rows twice: leave one out"),
        (len(parts) == 1, "one of eval_X and eval_y is missing: give both, or eval_set=(Xv, yv)"),
        (
            not parts and eval_set is None and eval_qid is not None,
            "eval_qid has the queries of eval_set, which is missing: give eval_set=(Xv, yv) too",
        ),
        (
            isinstance(found, RankingData) and eval_qid is not None,
            "eval_set is a RankingData, which has query ids: leave eval_qid out",
        ),
    )
    if isinstance(found, RankingData):
        return found
    if eval_set is None and not parts:
        return None
    found = tuple(parts) if parts else found
    n_parts = len(found) if isinstance(found, (list, tuple)) else 1
    two = n_parts == 2 and all(isinstance(part, (tuple, RankingData)) for part in found)
    forms = "give (Xv, yv), a list that holds one such pair, or a RankingData"
    refuse(
        (n_parts != 2, f"eval_set is a {type(found).__name__} of {count(n_parts, 'part')}: {forms}"),
        (two, "eval_set holds 2 validation parts, and training stops on one: give one of them"),
    )
    X, y = found
    try:
        X = X if hasattr(X, "shape") else np.asarray(X)
        return _checked(X, y, _only_ids(eval_qid), single_query=single_query)
    except InvalidInput as error:
        raise error.having(where="eval_set") from error.__cause__


def _only(eval_set: Any) -> Any:
    while isinstance(eval_set, (list, tuple)) and len(eval_set) == 1:
        eval_set = eval_set[0]
    return eval_set


def _only_ids(eval_qid: Any) -> Any:
    """Take the column out of a list that holds one; a list of one id is a column."""
    held: Any = eval_qid[0] if isinstance(eval_qid, (list, tuple)) and len(eval_qid) == 1 else None
    is_column = not isinstance(held, (str, bytes)) and (hasattr(held, "__len__") or hasattr(held, "__array__"))
    return held if is_column and np.ndim(held) else eval_qid


def _checked(X: Any, y: Any, qid: Any, *, single_query: bool) -> RankingData:
    check_rows(**{"eval_set[0]": X, "eval_set[1]": y, "eval_qid": qid})
    rows, labels = n_rows(X), columns.labels(columns.as_column(y), "eval_set[1]")
    refuse((labels.shape != (rows,), f"{rows} rows of features, and labels of shape {labels.shape}: give one per row"))
    if qid is not None:
        try:
            qid = id_array(qid, rows, "eval_qid")
        except UnusableQueryIdsError as error:
            raise (error.having(remedy=f"{CUT}: give eval_qid=[ids]") if in_search() else error) from None
    ids = find(X, y, qid=qid)
    if ids is None and not single_query:
        raise UnusableQueryIdsError(
            "it needs the query id of each row: give eval_qid=, or an index level or column 'qid' of its features"
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
    way = "put the steps into QueryRanker(Pipeline([...])) and give eval_set=(Xv, yv), eval_qid=[ids]"
    refuse((n_rows(eval_X) == n_rows(X), f"eval_X has as many rows as X. {CUT}: {way}"))
