"""Weights of queries. A mapping or a Series gives them by query, anything else by row.

The trap: a Series as long as the rows may be indexed by row or by query. It is taken by query if
its index holds every query, unless the columns beside it have the same index; if both readings are
possible and differ, it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from rankeval._checks import few
from rankeval.collection.rows import check_rows, index_of, may_number_rows, same_rows
from rankeval.errors import InvalidInput
from rankeval.io import columns
from rankeval.join.flat import Floats
from rankeval.join.joined import Joined


def query_weights(
    weights: Any | None,
    joined: Joined,
    beside: Mapping[str, Any] = MappingProxyType({}),
    *,
    all_queries: bool = True,
) -> Floats | None:
    """Return one weight a query.

    Parameters
    ----------
    weights : mapping, Series or array-like, optional
        As in `rankeval.evaluate`.
    joined : Joined
        The weighted queries and their rows.
    beside : mapping of str to array-like
        The columns of the same call by argument name. Without them a Series is taken by query.
    all_queries : bool
        Whether there are no other queries. The weights of a part may all be 0, and a mapping may
        have more queries.

    Returns
    -------
    ndarray of shape (n_queries,), or None

    Raises
    ------
    InvalidInput
        If a query has no weight or several, a weight is negative or not finite, or a Series may be
        by row or by query.
    """
    if weights is None:
        return None
    columns.refuse_masked(weights, "query_weight")
    has_index = index_of(weights) is not None
    is_long = bool(beside) and has_index and len(weights) == len(joined.score)
    if not hasattr(weights, "items") or (is_long and _is_by_row(weights, joined, beside)):
        values = _weights_of_rows(weights, joined)
    else:
        by_index = all_queries and not is_long and has_index
        if by_index and may_number_rows(weights.index, joined.queries):
            raise InvalidInput(
                "its index is 0, 1, 2, ... and the query ids are not",
                argument="query_weight",
                remedy="give the weights of these rows, or .set_axis(qid); "
                "if these are query ids, name the index",
            )
        values = _weights_of_queries(weights, joined)
        # An index that holds all queries may also be one of rows, unless it is exactly their names.
        may_be_by_row = is_long and (
            weights.index.inferred_type == "integer" or len(set(weights.index)) > joined.n_queries
        )
        if may_be_by_row and not np.array_equal(values, _weights_of_rows(weights, joined)):
            raise InvalidInput(
                "this Series may be by row or by query, and the two differ",
                argument="query_weight",
                remedy="give .to_numpy() for one weight per row, .to_dict() for one per query",
            )
    refuse_unusable(values, all_queries=all_queries)
    return values


def refuse_unusable(values: Floats, *, all_queries: bool = True) -> None:
    """Refuse weights with which no mean can be computed."""
    is_usable = np.isfinite(values).all() and not (values < 0).any()
    if not is_usable or (all_queries and not values.sum() > 0):
        problem = "expected finite numbers, none below 0 and not all 0"
        raise InvalidInput(problem, argument="query_weight")


def _is_by_row(weights: Any, joined: Joined, beside: Mapping[str, Any]) -> bool:
    indexes = map(index_of, beside.values())
    index = next((index for index in indexes if index is not None), None)
    if index is not None and same_rows(index, weights.index) and joined.n_queries != len(weights):
        return True
    if set(joined.queries.tolist()) <= set(weights.index.tolist()):
        return False
    check_rows(**beside, query_weight=weights)
    return True


def _weights_of_queries(weights: Any, joined: Joined) -> Floats:
    if hasattr(weights, "columns"):
        problem = "expected one weight for each query, found a frame"
        raise InvalidInput(problem, argument="query_weight")
    known: dict[Any, Any] = {}
    for query, weight in weights.items():
        first = known.setdefault(query, weight)
        if first is not weight and first != weight:
            problem = f"query {query!r} has several; a query has one weight"
            raise InvalidInput(problem, argument="query_weight")
    queries = joined.queries.tolist()
    lacking = [query for query in queries if query not in known]
    if lacking:
        others = f" ({len(lacking)} such in all)" if len(lacking) > 1 else ""
        problem = f"query {few(lacking[:1])} has none{others}"
        raise InvalidInput(problem, argument="query_weight")
    return columns.labels([known[query] for query in queries], "query_weight").astype(np.float64)


def _weights_of_rows(weights: Any, joined: Joined) -> Floats:
    """Return the one weight that the rows of each query share."""
    rows = columns.labels(weights, "query_weight").astype(np.float64)
    if len(rows) != len(joined.score):
        expected = f"one per row ({len(joined.score)}) or a mapping by query"
        raise InvalidInput(f"expected {expected}, found {len(rows)}", argument="query_weight")
    rows = rows if joined.order is None else rows[joined.order]
    filled = joined.offsets[:-1][np.diff(joined.offsets) > 0]
    values = rows[filled]
    if (np.maximum.reduceat(rows, filled) != np.minimum.reduceat(rows, filled)).any():
        problem = "found several within one query; a query has one weight, repeated on its rows"
        raise InvalidInput(problem, argument="query_weight")
    return values
