"""Tell what a ranker can do and what its search chose, through the Pipelines, searches and rankers around it."""

from __future__ import annotations

from inspect import signature
from typing import Any

from rankeval.model_selection import boosters, nesting
from rankeval.model_selection.ranker import QueryRanker


def takes_weight(estimator: Any) -> bool:
    """Return whether an estimator can be fitted with weights.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker.
    """
    last = nesting.last_of(estimator)
    if isinstance(last, QueryRanker):
        return takes_weight(last.estimator)
    return nesting.asks_for_qid(last) or "sample_weight" in signature(last.fit).parameters


def stops_early(estimator: Any) -> bool:
    """Return whether training stops early, so that a validation part is used.

    Parameters
    ----------
    estimator : object
        Anything that `QueryRanker` takes, or a QueryRanker; of a search, its estimator counts.
    """
    last = nesting.last_of(estimator)
    if isinstance(last, QueryRanker):
        return last.early_stopping_rounds is not None or stops_early(last.estimator)
    if nesting.asks_for_qid(last):
        return stops_early(last.get_params(deep=False).get("estimator"))
    return boosters.own_rounds(last) is not None


def what_was_chosen(ranker: QueryRanker) -> dict[str, Any] | None:
    """Return the best parameters of a search inside a fitted ranker, or None.

    Parameters
    ----------
    ranker : QueryRanker
        A fitted ranker.
    """
    last: Any = ranker
    while isinstance(last, QueryRanker):
        last = nesting.last_of(last.estimator_)
    chosen: dict[str, Any] | None = getattr(last, "best_params_", None)
    return chosen
