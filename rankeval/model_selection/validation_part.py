"""A validation part of one's own to stop early on: `eval_set` and its ids, in the forms that the boosters take."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankeval.collection.data import RankingData
from rankeval.collection.rows import check_rows
from rankeval.errors import InvalidInput, UnusableQueryIdsError
from rankeval.io import columns
from rankeval.model_selection.query_ids import find, id_array, n_rows, without_ids
from rankeval.model_selection.stopping import in_search

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
